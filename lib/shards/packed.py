"""The packed layout of a shard: each token of a hand once, with the run of rows that have it.

A dense row is 7,976 bytes, nearly all of them zeros or what the row before had. On real logs a packed one is about 27.

FILES  `packed.bin` is a row of blocks, each one zlib stream (RFC 1950) and nothing between them. `meta.json` has
`"layout": "packed"`, `"blocks": [[rows, bytes], …]` in the order of the file, and `sha256.packed` of the whole file.

A BLOCK  holds consecutive rows of the shard. Uncompressed, it begins with four uint32: how many chunks, lives, scalars
and rows it has. Then come the columns of `COLUMNS` below, in that order and with nothing between them: each column is
one array with an entry for each chunk, life, scalar or row of the block. All numbers are little-endian.

A CHUNK  is `chunk_rows` (at most 128) consecutive rows of one hand, with `chunk_lives` lives and `chunk_scalars`
scalars. Chunks, and within them lives, scalars and rows, follow each other in the columns. Within a chunk a row has two
numbers: its *turn*, 0, 1, … in the order of the rows, and its *rank*, 0, 1, … when the chunk's rows are ordered by seat
(lowest two bits of `seat`) and, within a seat, by turn.

A LIFE  is a token and the run of rows that have it. Begin each chunk with end = 0; for each life in order

    start = (end + gap) mod 256;  end = (start + span) mod 256

and the rows that have the token are those with start <= p < end, where p is the row's rank if `by_seat` is 1, else its
turn. The tokens of a row are those of its lives, in the order of the lives, and stand from place 0 of `tokens` on;
`attention_mask` is 1 there, everything after them is 0. The token's scalars are zeros if `scalar` is 0, else they are
the chunk's scalars number `scalar`, counted from 1.

SEATS  Lives are shared by the players, so they name seats absolutely. To read a token as the row's player sees it:
if who < 4, who becomes (who - seat) mod 4; then, if who is 0, segments 3 and 4 change places, and so do 5 and 6.

A ROW  has, apart from its tokens, `action_mask` as 54 bits, action 0 in the highest bit of the first byte, and the
fields of labels, origin and outcome as they are in the dense layout.

Any rows can be written like this (at worst each token lives for one row); how well they pack depends on how a writer
finds the lives: `lib.shards.lives` is ours.
"""

import functools
import hashlib
import os
import zlib

import numpy as np

from ..rows.schema import ACTION_DIM, ORIGIN, OUTCOME, SCALAR_DIM
from ..store import files
from . import lives, ragged
from .lives import OTHER, TURNED

FILE = "packed.bin"
BLOCK_ROWS = 2048  # rows after which a block is closed; fewer: quicker single rows, more bytes
LEVEL = 6
_CHUNK, _LIFE, _SCALAR, _ROW = range(4)
# name -> (one entry for each of what, dtype, numbers in an entry)
COLUMNS = {
    "chunk_rows": (_CHUNK, "u1", 1), "chunk_lives": (_CHUNK, "<u4", 1), "chunk_scalars": (_CHUNK, "<u2", 1),
    "segment": (_LIFE, "u1", 1), "tile": (_LIFE, "u1", 1), "count": (_LIFE, "u1", 1), "who": (_LIFE, "u1", 1),
    "extra": (_LIFE, "u1", 1), "scalar": (_LIFE, "<u2", 1), "by_seat": (_LIFE, "u1", 1), "gap": (_LIFE, "u1", 1),
    "span": (_LIFE, "u1", 1),
    "scalars": (_SCALAR, "<f4", SCALAR_DIM),
    "action_mask": (_ROW, "u1", (ACTION_DIM + 7) // 8), "labels": (_ROW, "<i2", 1),
    **{name: (_ROW, kind[name].str, 1) for kind in (ORIGIN, OUTCOME) for name in kind.names},
}


class Writer:
    """The files of one shard in the making, in its directory `path`; holds one block in memory."""

    def __init__(self, path):
        """Raises OSError."""
        self._file = open(os.path.join(path, FILE), "wb")  # noqa: SIM115
        self._digest, self._blocks, self._chunks, self._rows = hashlib.sha256(), [], [], 0

    def add(self, rows):
        """Append rows, a dict of dense arrays. Raises OSError, ValueError for rows that the schema has not."""
        for chunk in lives.pack(rows):
            self._chunks.append(chunk)
            self._rows += len(chunk["labels"])
            if self._rows >= BLOCK_ROWS:
                self._close_block()

    def _close_block(self):
        columns = {name: np.concatenate([chunk[name] for chunk in self._chunks]) for name in COLUMNS}
        sizes = np.array([len(columns[name]) for name in ("chunk_rows", "segment", "scalars", "labels")], "<u4")
        arrays = [np.ascontiguousarray(columns[name], dtype) for name, (_, dtype, _) in COLUMNS.items()]
        data = zlib.compress(b"".join([sizes.tobytes(), *(array.tobytes() for array in arrays)]), LEVEL)
        self._file.write(data)
        self._digest.update(data)
        self._blocks.append([self._rows, len(data)])
        self._chunks, self._rows = [], 0

    def finish(self):
        """Complete the file, durably; returns what meta.json has to say about it. Raises OSError."""
        if self._chunks:
            self._close_block()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        return {"blocks": self._blocks, "sha256": {"packed": self._digest.hexdigest()}}

    def close(self):
        """Let go of the file, finished or not. Raises OSError."""
        self._file.close()


def read(path, meta, wanted):
    """Yield the rows `wanted` (numbers in the shard, growing) of the shard in the directory `path`, as ragged.

    Raises OSError, and ValueError when the file is damaged.
    """
    blocks = np.array(meta["blocks"], np.int64).reshape(-1, 2)
    rows, offsets = (np.concatenate([[0], np.cumsum(column)]) for column in blocks.T)
    cuts = np.searchsorted(wanted, rows)
    for i in np.flatnonzero(np.diff(cuts)).tolist():
        block = block_at(os.path.join(path, FILE), int(offsets[i]), int(blocks[i, 1]))
        yield _rows(block, wanted[cuts[i]:cuts[i + 1]] - rows[i])


@functools.lru_cache(maxsize=32)  # some 30 MB; rows asked for one by one, or by pieces, come from the same few blocks
def block_at(path, offset, size):
    """A block, ready for `_rows`: its columns, and `items` of its lives as each of the four seats sees them."""
    with open(path, "rb") as f:
        f.seek(offset)
        data = f.read(size)
    try:
        data = zlib.decompress(data)
        sizes, at, block = np.frombuffer(data, "<u4", 4).tolist(), 16, {}
        for name, (per, dtype, width) in COLUMNS.items():
            block[name] = np.frombuffer(data, dtype, sizes[per] * width, at)
            at += block[name].nbytes
    except (zlib.error, ValueError) as e:
        raise ValueError(f"{path}: the block at byte {offset} is damaged: {e}") from None
    rows, alive, scalars = (block[f"chunk_{name}"].astype(np.int64) for name in ("rows", "lives", "scalars"))
    items = np.zeros(len(block["gap"]), np.uint64)
    for i, name in ((1, "tile"), (2, "count"), (4, "extra"), (5, "scalar")):
        items |= block[name].astype(np.uint64) << np.uint64(8 * i)
    who = TURNED[[0, 3, 2, 1]][:, block["who"]]
    segment = np.where(who == 0, OTHER[block["segment"]], block["segment"])
    items = items | segment | who.astype(np.uint64) << np.uint64(24)
    ends = np.cumsum(block["gap"] + block["span"], dtype=np.uint8)  # mod 256, as is all that is done with it
    before = np.concatenate([np.zeros(1, np.uint8), ends])[np.cumsum(alive) - alive]
    turn = ragged.spread(np.zeros_like(rows), rows).astype(np.uint8)
    seat = (block["seat"] & 3).astype(np.int64)
    rank = np.empty_like(turn)
    rank[np.lexsort((turn, seat, np.repeat(np.arange(len(rows)), rows)))] = turn
    return block | {
        "items": items, "start": ends - block["span"] - np.repeat(before, alive), "turn": turn, "shift": rank - turn,
        "own": seat * len(block["gap"]),  # where the row's seat has its part of `items`
        "rows": np.concatenate([[0], np.cumsum(rows)]), "lives": np.concatenate([[0], np.cumsum(alive)]),
        "bases": np.repeat(np.cumsum(scalars) - scalars, rows),
    }


def _rows(block, wanted):
    """The ragged of the rows `wanted` (growing) of a block."""
    cuts = np.searchsorted(wanted, block["rows"])
    places, lengths = [], []
    for i in np.flatnonzero(np.diff(cuts)).tolist():
        mine, first, last = wanted[cuts[i]:cuts[i + 1]], *block["lives"][i:i + 2].tolist()
        these = slice(first, last)
        at = block["turn"][mine, None] + block["shift"][mine, None] * block["by_seat"][these]
        stands = at - block["start"][these] < block["span"][these]
        lengths.append(np.add.reduce(stands.view(np.uint8), axis=1, dtype=np.uint16).astype(np.int64))
        own = block["own"][mine] + first - np.arange(len(mine)) * (last - first)
        places.append(np.flatnonzero(stands) + np.repeat(own, lengths[-1]))
    fields = {array: np.empty(len(wanted), kind) for array, kind in (("origin", ORIGIN), ("outcome", OUTCOME))}
    for array in fields.values():
        for name in array.dtype.names:
            array[name] = block[name][wanted]
    masks = block["action_mask"].reshape(len(block["labels"]), -1)[wanted]
    return fields | {
        "items": block["items"].reshape(-1)[np.concatenate(places)], "lengths": np.concatenate(lengths),
        "scalars": block["scalars"].reshape(-1, SCALAR_DIM), "bases": block["bases"][wanted],
        "action_mask": np.unpackbits(masks, axis=1, count=ACTION_DIM), "labels": block["labels"][wanted],
    }


def rows(path, meta, wanted):
    """The rows `wanted` as `read` takes them, as dense arrays. Raises as `read` does."""
    return ragged.to_dense(ragged.concatenate(list(read(path, meta, wanted))))


def damage(path, meta, deep=False):
    """What is wrong with the files in the directory `path` against its `meta`, as text; None if nothing is. deep: hash
    them too. Raises OSError if one cannot be read."""
    try:
        found = os.path.getsize(os.path.join(path, FILE))
        blocks = [(int(n), int(size)) for n, size in meta["blocks"]]
        if found != sum(size for _, size in blocks):
            return f"{FILE} has {found} bytes, the blocks of meta.json have {sum(size for _, size in blocks)}"
        if sum(n for n, _ in blocks) != meta["n_rows"]:
            return f"the blocks of meta.json have {sum(n for n, _ in blocks)} rows, its games {meta['n_rows']}"
        if deep and files.sha256(os.path.join(path, FILE)) != meta.get("sha256", {}).get("packed"):
            return f"{FILE}: its sha256 is not the one in meta.json"
    except (KeyError, TypeError, ValueError) as e:
        return f"meta.json has no sound list of blocks: {e!r}"
    except FileNotFoundError:
        return f"{FILE} is gone"
    return None
