"""The order of an epoch, and which part of it each rank and each worker gets. Only numbers: nothing is read here.

The chosen games are cut into pieces: neighbours in a shard that together have some 2,048 rows. The pieces are shuffled;
that gives each chosen row a position. Each rank gets a stretch of the positions, and each worker a stretch of its
rank's, called its lane. A worker goes through its lane in windows, and shuffles the single rows within each window.
"""

import itertools

import numpy as np

PIECE_ROWS = 2048  # rows that stay together when pieces are shuffled, and are read in one go: a row group of parquet


def pieces(table, chosen, counts):
    """An array of pieces, in the order of the cache: first game, the game after the last, how many rows are wanted.

    table: a lib.train.gametable.Table; chosen: which games are wanted, as booleans; counts: how many rows of each game.
    """
    found, rows, last = [], 0, -1
    part, sizes, wanted = table.part.tolist(), table.rows.tolist(), counts.tolist()
    for game in np.flatnonzero(chosen).tolist():
        if game != last or not rows or rows >= PIECE_ROWS or part[game] != part[last - 1]:
            found.append([game, game, 0])
            rows = 0
        rows, last = rows + sizes[game], game + 1
        found[-1][1] = last
        found[-1][2] += wanted[game]
    out = np.array(found, np.int64).reshape(-1, 3)
    return out[out[:, 2] > 0]


def shuffled(found, seed, epoch):
    """The pieces in the order of an epoch. If seed is None, they stay as they are."""
    return found if seed is None else found[np.argsort(draws(len(found), seed, epoch), kind="stable")]


def share(total, rank=0, world=1):
    """(first position, how many) of a rank. All ranks get the same number; the few rows that are left over, fewer than
    there are ranks, are not used."""
    return rank * (total // world), total // world


def batches(n, size, drop_last):
    """How many batches of `size` rows `n` rows give."""
    return n // size if drop_last else -(-n // size)


def lane(n, size, worker, workers):
    """(first, how many) of the `n` rows of a rank that are in a worker's lane. If the workers are asked in turn, from
    number 0 on, they give all batches, and only the last batch may have fewer than `size` rows."""
    whole = batches(n, size, False)
    order = [(i + whole) % workers for i in range(workers)]  # the one that has the last batch stands last
    sizes = [size * (whole // workers + (i < whole % workers)) for i in order]
    at = order.index(worker)
    first = min(n, sum(sizes[:at]))
    return first, min(n, first + sizes[at]) - first


def taken(start, worker, workers):
    """After `start` batches have been taken from the workers in turn: (number of the worker whose lane this one goes on
    with, batches that were taken from that lane)."""
    which = (worker + start) % workers
    return which, len(range(which, start, workers))


def windows(found, first, n, rows):
    """The stretch of `n` positions from `first` on, cut into windows of about `rows`: a list of (pieces, positions at
    the beginning of the first piece that do not belong to the stretch, positions that do)."""
    ends = np.cumsum(found[:, 2])
    begins = ends - found[:, 2]
    a, b = np.searchsorted(ends, first, side="right"), np.searchsorted(begins, first + n)
    parts = []
    numbers = (np.maximum(begins[a:b], first) - first) // rows
    for _, group in itertools.groupby(range(a, b), key=lambda i: numbers[i - a]):
        i, *_, j = [*group] * 2
        begin, end = max(begins[i], first), min(ends[j], first + n)
        parts.append((found[i:j + 1], int(begin - begins[i]), int(end - begin)))
    return parts if n else []


def bucketed(order, lengths, size, before, seed, epoch, position):
    """The order of a window, changed so that the rows of a batch have similar lengths. before: how many rows the last
    batch of the window before still needs."""
    order = order[np.argsort(lengths[order], kind="stable")]
    before = min(before, len(order))
    whole = (len(order) - before) // size
    batches, rest = order[:whole * size].reshape(whole, size), order[whole * size:]  # rest: the longest rows
    batches = batches[np.argsort(draws(whole, seed, epoch, position, 1), kind="stable")]
    return np.concatenate([rest[:before], batches.reshape(-1), rest[before:]])


def runs(starts, lengths):
    """The numbers start, start + 1, … of several runs, one run after the other."""
    ends = np.cumsum(lengths)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - (ends - lengths), lengths)


def draws(n, *key):
    """`n` random uint64 that depend on the numbers `key` alone. numpy promises that they never change."""
    return np.random.PCG64(np.random.SeedSequence(key)).random_raw(n)
