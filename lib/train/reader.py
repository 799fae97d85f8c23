"""Reading the cache for training: rows by number, or in shuffled batches that several workers and machines can share.

    from paipu_cache.train.reader import Cache

    cache = Cache("data/tenhou/cache")
    cache[0], cache[10:20], cache[[5, 3, 8]]     # dicts of numpy arrays, see paipu_cache.rows.schema
    for rows in cache.batches(1024, seed=1, epoch=0, split="train"):
        rows["tokens"], rows["action_mask"], rows["labels"]

It needs numpy, and pyarrow if a shard has the layout parquet. `pip install '/path/to/this/tree[parquet]'` installs it
in any Python as the package paipu_cache. In this tree, with .venv/bin/python, the package is called lib.
"""

import bisect
import hashlib
import numbers
import os
import warnings

import numpy as np

from ..rows import folded
from . import columns as cols
from . import epoch as plan
from . import gametable, selection, suits
from .gametable import CacheError
from .source import Source


class Cache:
    """The live rows of a cache directory, numbered from 0 in the order of index.json. Stale rows are left out.

    A Cache may be used in forked or spawned workers, and can be pickled. It goes on while shards are compacted or
    converted, because it finds its games in the new shards. It does not see rows that are added meanwhile: open the
    cache again for these.

    path, validation: as they were given. encoders: version of the encoder -> number of live rows that it made; the
    version is None if it is not known.
    """

    def __init__(self, path, validation=0.05, encoder=None):
        """Read index.json and each shard's meta.json.

        validation: the fraction of the games that are the split "validation"; all others are "train". A hash of the gid
        decides, so a game never changes its side when games are added, and a larger fraction keeps all games of a
        smaller one. encoder: show only rows that this version of the encoder made, a text as in index.json; None: all.
        Raises CacheError, ValueError.
        """
        if not (isinstance(validation, numbers.Real) and 0 <= validation <= 1):
            raise ValueError(f"validation={validation!r}: must be a number from 0 to 1")
        self.path, self.validation = os.fspath(path), validation
        self._source, self._counts = Source(self.path, encoder), {}
        self._table, self.encoders = self._source.table, self._source.encoders

    @property
    def shards(self):
        """The names of the shards."""
        return self._table.shards

    @property
    def fingerprint(self):
        """A text that changes if the order of an epoch would. If it has changed, an epoch cannot be resumed."""
        return gametable.fingerprint(self._table)

    def __len__(self):
        return int(self._table.first[-1])

    def __getitem__(self, wanted):
        """One row, by its number, or several, by a slice or a list of numbers: a dict of padded arrays. Raises
        IndexError, CacheError."""
        if isinstance(wanted, slice):
            wanted = np.arange(*wanted.indices(len(self)))
        found = self.rows(wanted)
        return {name: array[0] for name, array in found.items()} if np.ndim(wanted) == 0 else found

    def rows(self, wanted, columns=None, ragged=False, cut=False):
        """The rows with these numbers, a sequence or one number, with the columns that `batches` gives. Raises
        IndexError, CacheError."""
        n, wanted = len(self), np.asarray(wanted)
        if not wanted.size:
            wanted = np.arange(0)
        elif wanted.dtype.kind not in "iu" or wanted.ndim > 1:
            raise IndexError("rows must be asked for by a number, a slice or a list of numbers")
        wanted = wanted.astype(np.int64).reshape(-1)
        if len(wanted) and not (-n <= wanted.min() and wanted.max() < n):
            raise IndexError(f"row out of range: the cache has {n} rows")
        names = cols.chosen(columns, ragged)
        distinct, places = np.unique(wanted % max(n, 1), return_inverse=True)
        found = self._source.rows(distinct)
        if {"next", "done"} & set(names):  # these may be rows that were not asked for
            games = np.unique(found["game"])
            whole = self._source.rows(plan.runs(self._table.first[games], self._table.rows[games]))
            found["next"] = cols.next_rows(whole)[np.searchsorted(whole["row"], distinct)]
        return self._build(folded.take(found, places), names, ragged, cut)

    def _build(self, rows, names, ragged, cut):
        try:
            return cols.build(rows, names, ragged, cut)
        except ValueError as e:
            raise CacheError(f"{self.path}: {e}") from None

    def games(self, split=None):
        """The games of a split ("train", "validation"; None: all) in the order of their rows, as a structured array.

        Its fields: game (the number that batches have as `game`), gid, type (the table type, "00a9"), date, first (the
        number of its first row), rows (how many), scores and ranks (of the four seats at the end of the game; ranks are
        0 if the shard is too old to say). Raises CacheError.
        """
        table = gametable.games(self._table)
        return table if split is None else table[self._side(split)]

    def _side(self, split):
        """Which games are of a split, as booleans."""
        if split not in (None, "train", "validation"):
            raise ValueError(f"split {split!r}: must be 'train', 'validation' or None")
        if split is None:
            return np.ones(len(self._table.gid), bool)
        limit = self.validation * 2**64
        held_out = [int.from_bytes(hashlib.sha256(gid).digest()[:8], "big") < limit for gid in self._table.gid.tolist()]
        return np.array(held_out, bool) == (split == "validation")

    def count(self, split=None, select=None):
        """How many rows a split has, of those that `select` chooses."""
        chosen, counts, _ = self._select(split, select)
        return int(counts[chosen].sum())

    def _select(self, split, select):
        """(which games, how many rows are wanted of each, the kinds of rows or None)."""
        wanted, kinds = selection.parse(select)
        chosen = self._side(split)
        if wanted:
            chosen = chosen & np.asarray(wanted(self.games()), bool)
        return chosen, self._table.rows if kinds is None else self._of_kinds(kinds), kinds

    def _of_kinds(self, kinds):
        """How many rows of these kinds each game has. The first time it looks at the mask of every row."""
        if kinds not in self._counts:
            ends = np.concatenate([[0], np.cumsum(self._source.are_of_kinds(kinds))])
            self._counts[kinds] = np.diff(ends[self._table.first])
        return self._counts[kinds]

    def numbers(self, split=None, select=None):
        """The numbers of the rows of a split, of those that `select` chooses."""
        chosen, _, kinds = self._select(split, select)
        found = plan.runs(self._table.first[:-1][chosen], self._table.rows[chosen])
        return found if kinds is None else found[self._source.are_of_kinds(kinds)[found]]

    def n_batches(self, size, split=None, drop_last=False, select=None, world=1):
        """How many batches of `size` rows an epoch has for each rank."""
        if size < 1 or world < 1:
            raise ValueError("size and world must be at least 1")
        return plan.batches(plan.share(self.count(split, select), 0, world)[1], size, drop_last)

    def batches(self, size, seed=0, epoch=0, split=None, drop_last=False, start=0, worker=0, num_workers=1,
                window=65536, permute_suits=False, select=None, columns=None, rank=0, world=1, ordered=False,
                ragged=False, cut=False, bucket=False):
        """Yield the batches of one epoch, as dicts of arrays with `size` rows each. The last batch may have fewer,
        unless `drop_last` leaves it out.

        Order: pieces of some 2,048 neighbouring rows are shuffled over all shards, then single rows within a `window`
        of so many rows. So reads are large, and yet the rows of a game are far apart. A window takes some 700 bytes of
        memory a row, 45 MB in all. The order depends only on seed, epoch, window, the cache, what is chosen, and how it
        is shared out. With seed None the rows keep the order of the cache.

        Choice: split, "train" or "validation", goes by whole games; None takes all. select chooses games and kinds of
        decision before batches are made, so that batches are full: a dict like {"type": "00a9", "dates": ("2024-01-01",
        None), "kinds": ["call", "riichi"], "gids": […], "games": function}, see parse() in selection.py beside this
        file. The kinds are turn, call and riichi, of which a row has exactly one, and chi, pon, kan and win, which say
        what could be done. columns chooses columns, see paipu_cache.train.columns; each batch has `row`, the numbers of
        its rows in the cache, and `game`, those of their games in games(), unless it chooses others.

        Sharing: each `rank` of `world` ranks gets as many rows as the others, and no row of another; the few rows that
        are left over, fewer than `world`, belong to none in this epoch. Each `worker` of `num_workers` reads only its
        own part of its rank's rows; if the workers are asked in turn, they give all batches. With `ordered` they give
        them in the order of one worker alone, but then each reads everything.

        Resuming: give epoch, and as `start` the number of batches that this rank has seen, over all its workers. The
        rest of the epoch follows, with the same number of workers or, if `ordered`, any number.

        Nothing to give: if an epoch has no batch at all, because no row is chosen or too few, a warning says so. A
        select that can match nothing in any cache, like the type "a9", raises ValueError, and so does a start beyond
        the end.

        Form: `ragged` gives tokens and scalars without padding, and cu_seqlens, which says where each row begins; for
        origin and outcome it gives their fields, like hand_delta, unless columns chooses others. `cut` pads no further
        than the longest row of the batch. `bucket` makes batches of rows of similar length. Rows have 118 tokens on
        average, 246 at most. permute_suits exchanges manzu, pinzu and souzu at random, row by row: tokens, masks and
        labels become just those of the same game dealt in other suits.

        Raises CacheError, ValueError.
        """
        if size < 1 or window < 1 or not 0 <= worker < num_workers or not 0 <= rank < world or start < 0:
            raise ValueError(f"size={size} and window={window} must be at least 1, worker={worker} below num_workers="
                             f"{num_workers}, rank={rank} below world={world}, and start={start} at least 0")
        names = cols.chosen(columns, ragged)
        chosen, counts, kinds = self._select(split, select)
        pieces = plan.shuffled(plan.pieces(self._table, chosen, counts), seed, epoch)
        found = int(pieces[:, 2].sum())
        begin, n = plan.share(found, rank, world)
        batches = plan.batches(n, size, drop_last)
        if start >= batches + num_workers:  # a worker alone may count up to the batches that others would have given
            raise ValueError(f"start={start}: an epoch has only {batches} batches")
        if not batches:
            warnings.warn(f"{self.path}: an epoch has no batch: split={split!r}, select={select!r} choose {found} of "
                          f"{len(self)} rows; size={size}, world={world}, drop_last={drop_last}", stacklevel=2)
        first, step = start + worker, num_workers
        if not ordered:
            which, first = plan.taken(start, worker, num_workers)
            before, n = plan.lane(n, size, which, num_workers)
            begin, step = begin + before, 1
        windows = plan.windows(pieces, begin, n, window)
        ends = np.cumsum([0] + [rows for _, _, rows in windows]).tolist()
        held, follow = None, bool({"next", "done"} & set(names))
        for at in range(first * size, n - n % size if drop_last else n, size * step):
            until, parts = min(at + size, n), []
            while at < until:  # more than once only if a batch reaches into the next window
                number = bisect.bisect_right(ends, at) - 1
                if number != held:
                    held, rows = number, None  # frees the memory before the next window is read
                    position = begin + ends[number]
                    rows, order = self._window(*windows[number], kinds, follow, seed, epoch, position)
                    if bucket:
                        order = plan.bucketed(order, rows["lengths"], size, -ends[number] % size, seed, epoch, position)
                stop = min(until, ends[number + 1])
                parts.append(folded.take(rows, order[at - ends[number]:stop - ends[number]]))
                at = stop
            found = parts[0] if len(parts) == 1 else folded.placed(folded.join([folded.compact(p) for p in parts]))
            if permute_suits:
                found = suits.permute(found, found["draw"])
            yield self._build(found, names, ragged, cut)

    def _window(self, pieces, skip, n, kinds, follow, seed, epoch, position):
        """(rows, the order in which to give them) of a window, as lib.train.epoch describes it."""
        first, last = self._table.first[pieces[:, 0]], self._table.first[pieces[:, 1]]
        rows = self._source.rows(np.sort(plan.runs(first, last - first)))
        if follow:
            rows["next"] = cols.next_rows(rows)
        wanted = np.arange(len(rows["labels"]))
        if kinds is not None:
            wanted = wanted[selection.of_kinds(rows["action_mask"], kinds)]
        turn, sizes = np.argsort(first), pieces[:, 2]
        positions = plan.runs((np.cumsum(sizes) - sizes)[turn], sizes[turn])  # of the wanted rows, in their order
        wanted = wanted[(positions >= skip) & (positions < skip + n)]  # the others belong to other lanes
        if len(wanted) < len(rows["labels"]):
            rows = folded.take(rows, wanted)
        values = plan.draws(2 * n, seed or 0, epoch, position + 1)
        rows["draw"] = values[n:]
        return rows, np.arange(n) if seed is None else np.argsort(values[:n], kind="stable")
