"""Reading the cache, for training: rows by number, and shuffled batches that can be resumed and shared among workers.

    c = Cache("data/tenhou/cache")
    c[0], c[10:20], c[[5, 3, 8]]                 # dicts of numpy arrays, shapes and dtypes of lib.rows.schema
    for rows in c.batches(1024, seed=1, epoch=0, split="train"): ...

Needs numpy alone, reads shards of both layouts, and opens files only for the moment that it reads from them: a Cache
can be pickled and used in forked or spawned workers.
"""

import bisect
import hashlib
import json
import os

import numpy as np

from ..rows import schema
from ..shards import layouts, ragged, reading
from . import suits

PIECE_ROWS = 2048  # rows that stay together when an epoch is shuffled, to be read in one go


class CacheError(Exception):
    """The cache is not there, is not what its index says, or has another schema."""


class Cache:
    """The live rows of a cache directory, numbered from 0 in the order of index.json; shards that have stale rows show
    only the others.

    validation: the fraction of games, by a hash of the gid, that are `split` "validation"; the others are "train". No
    game changes sides when others are added, and a larger fraction keeps those that a smaller one had.

    encoder: show only rows that this version of the encoder made (text, as in index.json); None: all.
    encoders: version -> rows, of all that are live; the version is None where it is not known.
    """

    def __init__(self, path, validation=0.05, encoder=None):
        """Read index.json. Raises CacheError."""
        self.path, self.validation, self._metas = os.fspath(path), validation, {}
        try:
            with open(os.path.join(self.path, "index.json"), encoding="utf-8") as f:
                index = json.load(f)
            self._check_schema(index["schema"])
            made, self.encoders = index.get("encoders", {}), {}
            for entry in index["shards"]:
                version = made.get(entry["path"])
                self.encoders[version] = self.encoders.get(version, 0) + entry["n_rows"]
            self.shards = [entry["path"] for entry in index["shards"] if encoder in (None, made.get(entry["path"]))]
            spans = [(number, start, stop) for number, name in enumerate(self.shards)
                     for start, stop in index["row_ranges"][name]]
        except (FileNotFoundError, NotADirectoryError):
            hint = ("the cache is its folder cache/" if os.path.isdir(os.path.join(self.path, "cache")) else
                    "`make run` or `make rebuild-index` writes index.json"
                    if os.path.isdir(os.path.dirname(os.path.abspath(self.path))) else
                    "there is no such directory")
            raise CacheError(f"{self.path}: no index of a cache: {hint}") from None
        except OSError as e:
            raise CacheError(f"{self.path}: index.json: {e.strerror}") from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise CacheError(f"{self.path}: index.json is damaged: `make rebuild-index` writes it anew") from None
        if encoder is not None and encoder not in self.encoders:
            raise CacheError(f"{self.path}: no rows of encoder version {encoder!r}; versions and rows: {self.encoders}")
        self._shard, self._start, stop = np.array(spans, np.int64).reshape(-1, 3).T
        self._first = np.concatenate([[0], np.cumsum(stop - self._start)])  # number of each span's first row

    def _check_schema(self, found):
        for key, value in schema.DESCRIPTION.items():
            if found.get(key) != value:
                raise CacheError(f"{self.path}: its schema has {key} {found.get(key)!r}, this reader needs {value!r}")

    def __getstate__(self):
        return self.__dict__ | {"_metas": {}}

    def __len__(self):
        return int(self._first[-1])

    def __getitem__(self, rows):
        """One row (a number), or as many as a slice or an array of numbers asks for. Raises IndexError, CacheError."""
        n = len(self)
        wanted = np.arange(*rows.indices(n)) if isinstance(rows, slice) else np.asarray(rows)
        single = wanted.ndim == 0
        if not wanted.size:
            wanted = np.arange(0)
        elif wanted.dtype.kind not in "iu" or wanted.ndim > 1:
            raise IndexError("rows are asked for by a number, a slice or a list of numbers")
        wanted = wanted.astype(np.int64).reshape(-1)
        if len(wanted) and not (-n <= wanted.min() and wanted.max() < n):
            raise IndexError(f"row out of range: the cache has {n}")
        distinct, places = np.unique(wanted % max(n, 1), return_inverse=True)
        found = ragged.to_dense(self._read(distinct), places)
        return {name: array[0] for name, array in found.items()} if single else found

    def _meta(self, number):
        if number not in self._metas:
            try:
                self._metas[number] = reading.load_meta(os.path.join(self.path, self.shards[number]))
            except (OSError, ValueError) as e:
                raise CacheError(f"{self.shards[number]}: {e} (open the cache anew if it was compacted)") from None
        return self._metas[number]

    def _read(self, rows, space=None):
        """The ragged of rows given by their growing numbers; `space` as in ragged.concatenate."""
        span = np.searchsorted(self._first, rows, side="right") - 1
        local, shard, found = rows - self._first[span] + self._start[span], self._shard[span], []
        for number in np.unique(shard).tolist():
            meta, path = self._meta(number), os.path.join(self.path, self.shards[number])
            try:
                found += layouts.LAYOUTS[meta["layout"]].read(path, meta, local[shard == number])
            except (OSError, ValueError, IndexError) as e:
                raise CacheError(f"{self.shards[number]}: {e} (open the cache anew if it was compacted)") from None
        return ragged.concatenate(found, space)

    def games(self, split=None):
        """Yield (gid, number of its first row, how many rows) of the games of a split ("train", "validation"; None:
        all), in the order of the rows. Raises CacheError."""
        if split not in (None, "train", "validation"):
            raise ValueError(f"split {split!r}: must be 'train', 'validation' or None")
        for number in range(len(self.shards)):
            a, b = np.searchsorted(self._shard, [number, number + 1])
            starts = self._start[a:b].tolist()
            for game in self._meta(number)["games"]:
                span = a + bisect.bisect_right(starts, game["start"]) - 1
                first = int(self._first[span] + game["start"] - self._start[span])
                if span < a or not game["n_rows"] or first >= self._first[span + 1]:
                    continue  # stale
                if split is None or (split == "validation") == self._is_held_out(game["gid"]):
                    yield game["gid"], first, game["n_rows"]

    def _is_held_out(self, gid):
        return int.from_bytes(hashlib.sha256(gid.encode()).digest()[:8], "big") < self.validation * 2**64

    def count(self, split=None):
        """How many rows a split has."""
        return len(self) if split is None else sum(n for _, _, n in self.games(split))

    def batches(self, size, seed=0, epoch=0, split=None, drop_last=False, start=0, worker=0, num_workers=1,
                window=65536, permute_suits=False):
        """Yield the batches of one epoch, dicts of arrays with `size` rows (the last one may have fewer).

        The order is a function of (seed, epoch, window) and the cache alone. Pieces of 2,048 neighbouring rows are
        shuffled over the whole cache, then single rows within each `window` of them (about 2.5 kB of memory a row).
        seed None leaves all in the order of the cache. start: the number of the batch to begin with; (epoch, batches
        seen so far) is all that is needed to resume. Of several workers each yields every num_workers-th batch from
        there on: asked in turn, they give the sequence that one alone would give.
        permute_suits: exchange manzu, pinzu and souzu at random, row by row. Raises CacheError, ValueError.
        """
        if size < 1 or window < 1 or not 0 <= worker < num_workers or start < 0:
            raise ValueError("size, window: at least 1; worker: below num_workers; start: at least 0")
        windows = self._windows(split, seed, epoch, window)
        ends = np.cumsum([0] + [int((pieces[:, 1] - pieces[:, 0]).sum()) for pieces in windows]).tolist()
        stop = ends[-1] - ends[-1] % size if drop_last else ends[-1]
        held, space = None, np.empty(160 * window, np.uint64)  # used again and again: memory from the system is slow
        for first in range((start + worker) * size, stop, size * num_workers):
            last = min(first + size, stop)
            out, swaps = ragged.empty(last - first), []
            at = first
            while at < last:  # mostly once: a batch may reach over the end of a window
                number = bisect.bisect_right(ends, at) - 1
                until = min(last, ends[number + 1])
                if number != held:
                    rows, order, draws = self._window(windows[number], seed, epoch, number, space)
                    held = number
                chosen = order[at - ends[number]:until - ends[number]]
                ragged.to_dense(rows, chosen, {name: a[at - first:until - first] for name, a in out.items()})
                swaps.append(draws[chosen])
                at = until
            yield suits.permute(out, np.concatenate(swaps)) if permute_suits else out

    def _windows(self, split, seed, epoch, window):
        """The epoch's pieces of the cache, arrays of (first row, one after the last), one array a window."""
        runs = []  # of neighbouring games
        for _, first, n in [("", 0, len(self))] if split is None else self.games(split):
            if runs and runs[-1][1] == first:
                runs[-1][1] += n
            else:
                runs.append([first, first + n])
        pieces = [(a, min(a + PIECE_ROWS, stop)) for start, stop in runs for a in range(start, stop, PIECE_ROWS)]
        pieces = np.array(pieces, np.int64).reshape(-1, 2)
        if seed is not None:
            pieces = pieces[np.argsort(_draws(len(pieces), seed, epoch), kind="stable")]
        sizes = pieces[:, 1] - pieces[:, 0]
        cuts = np.flatnonzero(np.diff((np.cumsum(sizes) - sizes) // window)) + 1
        return np.split(pieces, cuts)

    def _window(self, pieces, seed, epoch, number, space):
        """(ragged, order in which its rows are to come, a number drawn at random for each row) of a window."""
        pieces = pieces[np.argsort(pieces[:, 0])]
        rows = self._read(ragged.spread(pieces[:, 0], pieces[:, 1] - pieces[:, 0]), space)
        n = len(rows["labels"])
        draws = _draws(2 * n, seed or 0, epoch, number + 1)
        return rows, np.arange(n) if seed is None else np.argsort(draws[:n], kind="stable"), draws[n:]


def _draws(n, *key):
    """`n` random uint64, a function of the numbers `key` alone: numpy promises that these stay the same for ever."""
    return np.random.PCG64(np.random.SeedSequence(key)).random_raw(n)
