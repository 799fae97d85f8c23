"""The dense layout of a shard: an .npy file for each array of paipu_cache.rows.schema, to be mapped with np.load.

It can be read with nothing of this tree. index.json says which rows of a shard are live; the others are stale, which
means that their games have been encoded again elsewhere. In a cache that has only dense shards:

    import json
    import numpy as np

    index = json.load(open("data/demo/cache/index.json"))
    for shard in index["shards"]:
        tokens = np.load(f"data/demo/cache/{shard['path']}/tokens.npy", mmap_mode="r")
        for start, stop in index["row_ranges"][shard["path"]]:
            print(shard["path"], tokens[start:stop].shape)
"""

import concurrent.futures
import contextlib
import errno
import hashlib
import io
import math
import os

import numpy as np

from ..rows import folded, schema
from ..store import files

_FLUSH = 1 << 27  # bytes after which the large files are sent to the disk, while the next games are encoded
_LARGE = ("tokens", "scalars")
_ROWS = 1024  # few enough for the caches of the processor


class Writer:
    """The files of one shard in the making, in its directory `path`."""

    def __init__(self, path):
        """Raises OSError."""
        self._flusher, self._flush, self._unsent = concurrent.futures.ThreadPoolExecutor(1), None, 0
        self._files = {name: open(_file(path, name), "wb") for name in schema.ARRAYS}  # noqa: SIM115
        self._digests = {name: hashlib.sha256() for name in schema.ARRAYS}
        self._n_rows = 0
        self._write_headers()

    def _write_headers(self):
        for name, f in self._files.items():
            f.seek(0)
            _write_header(f, name, self._n_rows)

    def add(self, rows, game):
        """Append rows of the game `game`: a folded, or a dict of the arrays of lib.rows.schema.

        Raises OSError, and ValueError for arrays that lib.rows.schema has not.
        """
        for part in folded.pieces(rows) if "text" in rows else [rows]:
            self._add(_checked(part, game))

    def _add(self, rows):
        for name, array in rows.items():
            data = array.view("u1") if array.size else b""
            self._files[name].write(data)
            self._digests[name].update(data)
            self._unsent += array.nbytes
        self._n_rows += len(rows["labels"])
        if self._unsent >= _FLUSH:
            self._await_flush()
            self._flush, self._unsent = self._flusher.submit(self._sync, _LARGE), 0

    def finish(self):
        """Complete the files, durably; returns what meta.json has to say about them. Raises OSError."""
        self._await_flush()
        self._write_headers()
        for f in self._files.values():
            f.flush()
        self._sync(self._files)
        self.close()
        return {"sha256": {name: digest.hexdigest() for name, digest in self._digests.items()}}

    def _sync(self, names):
        for name in names:
            os.fsync(self._files[name].fileno())

    def _await_flush(self):
        if self._flush:
            self._flush.result()  # the system tells of a failed write only once, so this must not be ignored

    def close(self):
        """Let go of the files, finished or not. Raises OSError."""
        with contextlib.ExitStack() as all_of_them:  # even if one fails, as each does on a full disk
            for f in self._files.values():
                all_of_them.callback(f.close)
            self._flusher.shutdown()


def _checked(rows, game):
    """The arrays of lib.rows.schema and no others. Raises ValueError if one has the wrong shape or type."""
    n, arrays = len(rows["labels"]), {}
    for name, (shape, dtype) in schema.ARRAYS.items():
        arrays[name] = array = np.ascontiguousarray(rows[name])
        if array.shape != (n, *shape) or array.dtype != dtype:  # a cast would cut numbers silently
            raise ValueError(f"{game}: {name} is {array.dtype} {array.shape}, not {dtype} {(n, *shape)}")
    return arrays


def rows(path, meta, wanted, names=tuple(schema.ARRAYS)):
    """The rows `wanted` (numbers in the shard, growing) of the shard in the directory `path`: these arrays of
    lib.rows.schema. Raises OSError, and ValueError when a file is damaged."""
    if len(wanted) and wanted[-1] - wanted[0] == len(wanted) - 1:
        wanted = slice(wanted[0], wanted[-1] + 1)  # faster than a list of numbers
    found = {name: _load(path, name, meta)[wanted] for name in names if _is_there(meta, name)}
    unknown = {name: np.full((len(found["labels"]), 4), schema.UNKNOWN, "<i4") for name in names if name not in found}
    return found | unknown


def _is_there(meta, name):
    """False for an array that a shard does not have because the shard is older than that array."""
    return name != "deltas" or name in meta["sha256"]


def read(path, meta, wanted):
    """The same rows as a folded. Raises as `rows` does."""
    return folded.join([folded.fold(rows(path, meta, wanted[first:first + _ROWS]))
                        for first in range(0, max(1, len(wanted)), _ROWS)])


def masks(path, meta):
    """The action masks of all rows of a shard, (n_rows, 54). Raises as `rows` does."""
    return _load(path, "action_mask", meta)


def _load(path, name, meta):
    """An array of a shard, mapped. Raises OSError if the file cannot be read, and ValueError if it is damaged."""
    shape, dtype = schema.ARRAYS[name]
    try:
        found = np.lib.format.open_memmap(_file(path, name), "r")
    except Exception as e:  # on a damaged header numpy raises nearly anything, TokenError too
        if isinstance(e, OSError) and e.errno not in (None, errno.EINVAL):  # these two tell of what was read
            raise
        raise ValueError(_why_unfit(path, name, meta, e)) from None
    if found.dtype != dtype or found.shape[1:] != shape:
        raise ValueError(f"{name}.npy has numbers of another type, or rows of another size, than {name} has")
    if len(found) != meta["n_rows"]:
        raise ValueError(f"{name}.npy has {len(found)} rows; meta.json says {meta['n_rows']}")
    return found


def _why_unfit(path, name, meta, error):
    header, row_bytes = _header(name, meta["n_rows"])
    found, whole = os.path.getsize(_file(path, name)), len(header) + meta["n_rows"] * row_bytes
    if found < whole:
        return f"{name}.npy is cut short: it should have {whole} bytes, and has {found}"
    return f"{name}.npy cannot be understood: {error}"


def damage(path, meta, deep=False):
    """What is wrong with the files of the shard in the directory `path`, compared with its `meta`, as text; None if
    nothing is. deep: read and hash them too. Raises OSError if one cannot be read."""
    for name in schema.ARRAYS:
        if not _is_there(meta, name) or (not deep and _is_as_written(path, name, meta["n_rows"])):
            continue
        try:
            found = _load(path, name, meta)
        except FileNotFoundError:
            return f"{name}.npy is gone"
        except ValueError as e:
            return str(e)
        if deep and len(found) and _hash(_file(path, name), found) != meta.get("sha256", {}).get(name):
            return f"{name}.npy: its SHA-256 differs from meta.json"
    return None


def _is_as_written(path, name, n_rows):
    """True if a file has the header and the size that `Writer` gives it. This is twenty times as fast as numpy."""
    header, row_bytes = _header(name, n_rows)
    try:
        fd = os.open(_file(path, name), os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        with files.naming(_file(path, name)):
            return os.fstat(fd).st_size == len(header) + n_rows * row_bytes and os.read(fd, len(header)) == header
    finally:
        os.close(fd)


def _header(name, n_rows):
    """(the header of an array of so many rows, the bytes of a row)."""
    (shape, dtype), f = schema.ARRAYS[name], io.BytesIO()
    _write_header(f, name, n_rows)
    return f.getvalue(), math.prod(shape) * dtype.itemsize


def _write_header(f, name, n_rows):
    # numpy pads a header so that the number of rows can grow: the final header takes exactly the same room
    shape, dtype = schema.ARRAYS[name]
    np.lib.format.write_array_header_1_0(f, {
        "descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": (n_rows, *shape),
    })


def _file(path, name):
    return os.path.join(path, f"{name}.npy")


def _hash(path, array):
    """The SHA-256 of the data of a mapped array. The file is read, not the map, because there a bad disk would kill the
    process."""
    digest = hashlib.sha256()
    with files.naming(path), open(path, "rb") as f:
        f.seek(array.offset)
        left = array.nbytes
        while left and (block := f.read(min(left, 1 << 20))):
            digest.update(block)
            left -= len(block)
    return digest.hexdigest()
