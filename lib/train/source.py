"""Rows of a cache from its shards, even if they have been moved by a compaction since the cache was opened."""

import os

import numpy as np

from ..rows import folded
from ..shards import layouts
from ..store.errors import Problem
from ..store.wording import make
from . import epoch, gametable, selection
from .gametable import CacheError


class Source:
    """The shards of a cache directory. table: its lib.train.gametable.Table as it was when the cache was opened; where
    rows are now is known only here. encoders: as in lib.train.reader's Cache."""

    def __init__(self, path, encoder=None):
        """encoder: the version of the encoder whose rows to show; None: all rows. Raises CacheError."""
        self._path, self._encoder = path, encoder
        self.table, self.encoders = gametable.load(path, encoder)
        self._now = self.table

    def rows(self, numbers):
        """The rows with these numbers, which must grow, as a placed folded (see lib.rows.folded) with `row` and `game`.
        """
        return self._try(self._rows, numbers)

    def are_of_kinds(self, kinds):
        """Which rows of the cache are of these kinds, see lib.train.selection, as booleans."""
        return self._try(self._are_of_kinds, kinds)

    def _try(self, read, what):
        try:
            return read(what)
        except FileNotFoundError:  # compacted away?
            self._now = gametable.moved(self._now, self._path, self._encoder)
        try:
            return read(what)
        except FileNotFoundError as e:
            raise CacheError(f"{e.filename}: {e.strerror}") from None

    def _rows(self, numbers):
        table = self._now
        game = np.searchsorted(table.first, numbers, side="right") - 1
        local, shard = numbers - table.first[game] + table.start[game], table.shard[game]
        cuts = np.flatnonzero((np.diff(shard) != 0) | (np.diff(local) <= 0)) + 1
        parts = [self._of_shard(int(shard[these[0]]), lambda layout, *where, wanted=local[these]:
                                layout.read(*where, wanted))
                 for these in np.split(np.arange(len(numbers)), cuts) if len(these)]
        found = folded.join(parts or [folded.fold(folded.empty(0))])
        origin = found["origin"].copy()
        origin["game"] = table.place[game]
        return folded.placed(found) | {"origin": origin, "row": numbers, "game": game.astype(np.int32)}

    def _are_of_kinds(self, kinds):
        table = self._now
        out = np.zeros(table.first[-1], bool)
        for number in np.unique(table.shard).tolist():
            games = np.flatnonzero(table.shard == number)
            masks = self._of_shard(number, lambda layout, *where: layout.masks(*where))
            rows = epoch.runs(table.start[games], table.rows[games])
            out[epoch.runs(table.first[games], table.rows[games])] = selection.of_kinds(masks, kinds)[rows]
        return out

    def _of_shard(self, number, read):
        """What read(layout, path, meta) returns for a shard. Raises FileNotFoundError if it is gone, CacheError."""
        name, meta = self._now.shards[number], self._now.metas[number]
        try:
            if "broken" in meta:
                raise ValueError(meta["broken"])
            return read(layouts.LAYOUTS[meta["layout"]], os.path.join(self._path, name), meta)
        except FileNotFoundError:
            raise
        except (OSError, Problem) as e:
            raise CacheError(f"{name}: {e}") from None
        except (ValueError, IndexError) as e:
            work = os.path.dirname(os.path.abspath(self._path))
            raise CacheError(f"{name}: {e}; to see what mends it: {make(work, 'check')} "
                             "(or, if that finds nothing, with DEEP=1)") from None
