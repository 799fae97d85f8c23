"""The order of an epoch, and the share of it that each rank and each worker has. Numbers only: nothing is read here.

The chosen games are cut into pieces, neighbours of a shard that together have some 2,048 rows, and the pieces are
shuffled: that gives each chosen row a position. A rank has a stretch of the positions, a worker (its *lane*) a stretch
of its rank's, and it goes through its lane in windows, within which single rows are shuffled.
"""

import itertools

import numpy as np

PIECE_ROWS = 2048  # rows that stay together when an epoch is shuffled, and are read in one go: a row group of parquet


def pieces(table, chosen, counts):
    """Pieces as rows of (first game, one after the last, how many of their rows are wanted), in the order of the cache.

    table: a lib.train.gametable.Table; chosen: which games; counts: how many rows are wanted of each.
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
    """The pieces in the order of an epoch; seed None leaves them as they are."""
    return found if seed is None else found[np.argsort(draws(len(found), seed, epoch), kind="stable")]


def share(total, rank=0, world=1):
    """(first position, how many) of a rank: the same number for each, so that less than one row a rank is nobody's."""
    return rank * (total // world), total // world


def lane(n, size, worker, workers):
    """(first, how many) of the `n` rows of a rank that are in a worker's lane. Workers asked in turn, from number 0 on,
    give all batches, and the last is the only one that may have fewer than `size` rows."""
    batches = -(-n // size)
    order = [(i + batches) % workers for i in range(workers)]  # the one that has the last batch stands last
    sizes = [size * (batches // workers + (i < batches % workers)) for i in order]
    at = order.index(worker)
    first = min(n, sum(sizes[:at]))
    return first, min(n, first + sizes[at]) - first


def taken(start, worker, workers):
    """(number of the worker whose lane this one continues, batches that were taken from it) once `start` batches have
    been taken from the workers in turn."""
    which = (worker + start) % workers
    return which, len(range(which, start, workers))


def windows(found, first, n, rows):
    """The stretch of `n` positions from `first` on, in windows of some `rows`: a list of (pieces, positions before the
    first of them that are not the stretch's, positions that are)."""
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
    """A window's order changed so that the rows of a batch are of like length. before: how many of them the batch needs
    with which the window before ended."""
    order = order[np.argsort(lengths[order], kind="stable")]
    before = min(before, len(order))
    whole = (len(order) - before) // size
    batches, rest = order[:whole * size].reshape(whole, size), order[whole * size:]  # the longest: ends meet beginnings
    batches = batches[np.argsort(draws(whole, seed, epoch, position, 1), kind="stable")]
    return np.concatenate([rest[:before], batches.reshape(-1), rest[before:]])


def runs(starts, lengths):
    """The numbers start, start + 1, … of each of several runs, one run after the other."""
    ends = np.cumsum(lengths)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - (ends - lengths), lengths)


def draws(n, *key):
    """`n` random uint64, a function of the numbers `key` alone: numpy promises that these stay the same for ever."""
    return np.random.PCG64(np.random.SeedSequence(key)).random_raw(n)
