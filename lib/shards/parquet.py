"""The parquet layout of a shard: one file, rows.parquet, that every program for Parquet can read. A row takes some 60
bytes. It has these columns:

    gid             string     the game
    hand            uint8      these three as in `origin` of paipu_cache.rows.schema
    seat            uint8
    step            uint16
    tokens          binary     five bytes a token, without padding
    points          int32[4]   points of the four seats at the decision
    action_mask     int64      bit i is 1 where action i is legal
    label           int16      the action taken
    hand_delta      int32      these three as in `outcome`
    final_score     int32
    final_rank      uint8
    deltas          int32[4]   the hand_delta of each seat; null in rows that come from an old dense shard

To numpy, the tokens of a row are np.frombuffer(row["tokens"], np.uint8).reshape(-1, 5). The scalars of the schema are
not stored: they follow from tokens and points. The rows are in the order of the games in meta.json. A row group has
whole games, some 2,048 rows. paipu_cache.train.reader makes of them, bit for bit, the same arrays as of a dense shard.
pyarrow is imported only when a shard of this layout is read or written, so that nobody else needs it.

Other programs read these files too, but all rows of a shard, also stale ones, whose games have been encoded again
elsewhere: run `make compact` before. How often each action was taken, with DuckDB, Polars and `datasets`:

    import duckdb
    labels = duckdb.sql("SELECT label, count(*) FROM 'data/demo/cache/shard_*/rows.parquet' GROUP BY label").fetchall()
    print(dict(labels))

    import polars
    rows = polars.scan_parquet("data/demo/cache/shard_*/rows.parquet")
    print(dict(rows.group_by("label").len().collect().iter_rows()))

    import datasets, collections
    rows = datasets.load_dataset("parquet", data_files="data/demo/cache/shard_*/rows.parquet", split="train")
    print(dict(collections.Counter(rows["label"])))
"""

import functools
import os

import numpy as np

from ..rows import folded
from ..rows.schema import ACTION_DIM, UNKNOWN
from ..store import files
from ..store.errors import Problem

FILE = "rows.parquet"
# On 62,215 rows of real logs, level 3 took 86 bytes a row, 6 took 61; 9 took 59, and 1.5 times as long to write.
LEVEL = 6
GROUP_ROWS = 2048  # a row group is closed when it has so many
_TYPES = {
    "gid": "string", "hand": "uint8", "seat": "uint8", "step": "uint16", "tokens": "binary", "points": "int32 x 4",
    "action_mask": "int64", "label": "int16", "hand_delta": "int32", "final_score": "int32", "final_rank": "uint8",
    "deltas": "int32 x 4",
}


def pyarrow():
    """(pyarrow, pyarrow.parquet). Raises Problem where they are not installed."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise Problem("the layout parquet needs pyarrow; to install it: make setup SHARD_LAYOUT=parquet") from None
    return pa, pq


class Writer:
    """The file of one shard in the making, in its directory `path`; holds one row group in memory."""

    def __init__(self, path):
        """Raises OSError, and Problem without pyarrow."""
        pa, pq = pyarrow()
        self._path, self._held, self._n_rows, self._groups = os.path.join(path, FILE), [], 0, []
        types = {name: pa.list_(pa.int32(), 4) if kind == "int32 x 4" else getattr(pa, kind)()
                 for name, kind in _TYPES.items()}
        self._schema = pa.schema([pa.field(name, kind, nullable=name == "deltas") for name, kind in types.items()])
        self._file = open(self._path, "wb")  # noqa: SIM115
        self._writer = pq.ParquetWriter(
            self._file, self._schema, compression="zstd", compression_level=LEVEL,
            use_dictionary=[name for name in types if name != "tokens"], write_page_checksum=True,
            write_statistics=["gid", "label"])  # for tokens these would take more room than all the rest

    def add(self, rows, game):
        """Append the rows of the game `game`: a folded, or a dict of the arrays of lib.rows.schema.

        Raises OSError, and ValueError for rows that lib.rows.schema has not.
        """
        self._held.append((game, rows if "text" in rows else folded.fold(rows)))
        self._n_rows += len(rows["labels"])
        if self._n_rows >= GROUP_ROWS:
            self._close_group()

    def _close_group(self):
        pa, _ = pyarrow()
        rows, n = folded.join([rows for _, rows in self._held]), self._n_rows
        sizes = [len(rows["labels"]) for _, rows in self._held]
        offsets = np.concatenate([np.zeros(1, np.int32), np.cumsum(rows["lengths"], dtype=np.int32)])
        known = rows["deltas"][:, 0] != UNKNOWN
        columns = {
            "gid": pa.DictionaryArray.from_arrays(np.repeat(np.arange(len(sizes)), sizes),
                                                  [game for game, _ in self._held]).cast(pa.string()),
            "tokens": pa.Array.from_buffers(pa.binary(), n, [None, pa.py_buffer(offsets), pa.py_buffer(rows["text"])]),
            "points": pa.FixedSizeListArray.from_arrays(rows["points"].reshape(-1), 4),
            "deltas": pa.FixedSizeListArray.from_arrays(rows["deltas"].reshape(-1), 4,
                                                        mask=None if known.all() else pa.array(~known)),
            "action_mask": pa.array(_as_number(rows["action_mask"])), "label": pa.array(rows["labels"]),
        }
        columns |= {name: pa.array(rows[array][name]) for array in ("origin", "outcome")
                    for name in rows[array].dtype.names if name in _TYPES}
        arrays = [columns[name] for name in self._schema.names]
        self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema), row_group_size=n)
        self._groups.append(n)
        self._held, self._n_rows = [], 0

    def finish(self):
        """Complete the file, durably; returns what meta.json has to say about it. Raises OSError."""
        if self._n_rows:
            self._close_group()
        self._writer.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        return {"bytes": os.path.getsize(self._path), "row_groups": self._groups,
                "sha256": {FILE: files.sha256(self._path)}}

    def close(self):
        """Let go of the file, finished or not. Raises OSError."""
        try:
            self._writer.close()
        finally:
            self._file.close()


class _File:
    """The file of a shard, opened when it is first read. It is equal to others of the same path and content."""

    def __init__(self, path, meta):
        self._path, self._size, self._opened = os.path.join(path, FILE), meta["bytes"], None
        self._key = self._path, self._size, meta["sha256"][FILE]

    def __hash__(self):
        return hash(self._key)

    def __eq__(self, other):
        return self._key == other._key

    def table(self, columns, groups):
        """These columns of these row groups, as a pyarrow table."""
        if not self._opened:
            if os.path.getsize(self._path) != self._size:
                raise ValueError(f"{FILE} does not have the length that meta.json gives")
            self._opened = pyarrow()[1].ParquetFile(self._path, pre_buffer=False, page_checksum_verification=True)
        return self._opened.read_row_groups(groups, columns, use_threads=False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._opened:
            self._opened.close(force=True)  # one that is deleted meanwhile takes no room then
            self._opened = None


def read(path, meta, wanted):
    """The rows `wanted` (numbers in the shard, growing) of the shard in the directory `path`, as a folded; their
    origin.game is 0. Raises OSError, ValueError when the file is damaged, Problem without pyarrow.
    """
    sizes, parts = meta["row_groups"], []
    starts = np.cumsum([0, *sizes])
    cuts = np.searchsorted(wanted, starts)
    with _File(path, meta) as file:
        for i in np.flatnonzero(np.diff(cuts)).tolist():
            group, rows = _group(file, i), wanted[cuts[i]:cuts[i + 1]] - starts[i]
            parts.append(group if len(rows) == sizes[i] else
                         folded.compact(folded.take(folded.placed(group), rows)))
    return folded.join(parts or [folded.fold(folded.empty(0))])


@functools.lru_cache(maxsize=16)  # some 20 MB: rows that are asked for one by one come from the same few groups
def _group(file, i):
    """All rows of a row group, as a folded."""
    table = file.table([name for name in _TYPES if name != "gid"], [i])
    column, n = {name: table[name].combine_chunks() for name in table.column_names}, len(table)
    rows = folded.empty(n, ("origin", "outcome"))
    for array in rows.values():
        for name in set(array.dtype.names) & set(_TYPES):
            array[name] = column[name]
    _, offsets, text = column["tokens"].buffers()
    ends = np.frombuffer(offsets, np.int32)[column["tokens"].offset:][:n + 1]
    return {
        "text": np.frombuffer(text, np.uint8)[ends[0]:ends[-1]] if n else np.zeros(0, np.uint8),
        "lengths": np.diff(ends), "points": _four(column["points"]), "deltas": _four(column["deltas"]),
        "action_mask": _as_bits(column["action_mask"]), "labels": np.asarray(column["label"]), **rows,
    }


def masks(path, meta):
    """The action masks of all rows of a shard, (n_rows, 54). Raises as `read` does."""
    with _File(path, meta) as file:
        return _as_bits(file.table(["action_mask"], range(len(meta["row_groups"])))[0].combine_chunks())


def forget():
    """Drop the rows that are kept in memory for the next call."""
    _group.cache_clear()


def _four(array):
    """An array of four numbers a row as (n, 4)."""
    if not len(array):
        return np.zeros((0, 4), np.int32)
    numbers = np.frombuffer(array.values.buffers()[1], np.int32)[4 * array.offset:][:4 * len(array)].reshape(-1, 4)
    return np.where(np.asarray(array.is_null())[:, None], np.int32(UNKNOWN), numbers) if array.null_count else numbers


def _as_number(bits):
    """Rows of ACTION_DIM bits as int64, action 0 in the lowest bit."""
    out = np.zeros((len(bits), 8), np.uint8)
    out[:, :(ACTION_DIM + 7) // 8] = np.packbits(bits, axis=1, bitorder="little")
    return out.view("<i8")[:, 0]


def _as_bits(numbers):
    numbers = np.ascontiguousarray(numbers, "<i8").view(np.uint8).reshape(-1, 8)
    return np.unpackbits(numbers, axis=1, count=ACTION_DIM, bitorder="little")


def damage(path, meta, deep=False):
    """What is wrong with the file of the shard in the directory `path`, compared with its `meta`, as text; None if
    nothing is. deep: read and hash it too. Needs no pyarrow. Raises OSError if the file cannot be read."""
    try:
        found = os.path.getsize(os.path.join(path, FILE))
        if found != meta["bytes"]:
            return f"{FILE} has {found} bytes; meta.json says {meta['bytes']}"
        if sum(meta["row_groups"]) != meta["n_rows"]:
            return f"in meta.json the row groups have {sum(meta['row_groups'])} rows, but the games {meta['n_rows']}"
        if deep and files.sha256(os.path.join(path, FILE)) != meta["sha256"].get(FILE):
            return f"{FILE}: its SHA-256 differs from meta.json"
    except (KeyError, TypeError, ValueError) as e:
        return f"meta.json does not say how long {FILE} is, or its SHA-256: {e!r}"
    except FileNotFoundError:
        return f"{FILE} is gone"
    return None
