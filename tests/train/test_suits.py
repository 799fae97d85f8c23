"""Exchanging suits gives just the rows that the same game, dealt in other suits, would have given."""

import re

import made_rows as make
import numpy as np
import pytest

from lib.mahjong import action
from lib.rows import encoder, folded
from lib.train import suits


def permute(rows, which):
    """suits.permute on dense arrays."""
    return folded.unfold(suits.permute(folded.placed(folded.fold(rows)), which))


def exchanged(log, become):
    """The text of a game log with its suits exchanged: suit s becomes become[s]."""

    def tile(n):
        return 36 * become[n // 36] + n % 36 if n < 108 else n

    def call(m):
        if m & 4:  # chi
            low, called = divmod(m >> 10, 3)
            return (3 * (7 * become[low // 7] + low % 7) + called) << 10 | m & 0x3FF
        if m & 24:  # pon, added kan
            kind, called = divmod(m >> 9, 3)
            return (3 * (tile(4 * kind) // 4) + called) << 9 | m & 0x1FF
        return tile(m >> 8) << 8 | m & 0xFF

    def numbers(found):
        return found[1] + ",".join(str(tile(int(n))) for n in found[2].split(",")) + '"'

    log = re.sub(r"<([TUVWDEFG])(\d+)", lambda found: f"<{found[1]}{tile(int(found[2]))}", log)
    log = re.sub(r'(<N [^>]*?\bm=")(\d+)', lambda found: found[1] + str(call(int(found[2]))), log)
    log = re.sub(r'(seed="\d+,\d+,\d+,\d+,\d+,)(\d+)"', numbers, log)
    return re.sub(r'(\b(?:hai\d?|doraHai|doraHaiUra|machi)=")([\d,]+)"', numbers, log)


@pytest.mark.parametrize("which", range(6))
@pytest.mark.parametrize("game", [0, 1])
def test_permuted_rows_are_those_of_the_game_in_other_suits(which, game):
    _, log = make.games(2)[game]
    rows = make.of(log)
    other = encoder.encode_game(exchanged(log.decode(), suits.PERMUTATIONS[which].tolist()).encode())
    make.assert_equal(permute(rows, np.full(len(rows["labels"]), which)), other)


def test_each_row_is_permuted_by_its_own_number():
    rows = make.of(make.games(1)[0][1])
    which = np.random.default_rng(0).integers(0, 2**64, len(rows["labels"]), np.uint64)
    mixed = permute(rows, which)
    for one in range(6):
        chosen = which % np.uint64(6) == one
        alone = permute({name: array[chosen] for name, array in rows.items()}, np.full(chosen.sum(), one))
        make.assert_equal({name: array[chosen] for name, array in mixed.items()}, alone)
    assert mixed["action_mask"][np.arange(len(which)), mixed["labels"]].all()


def test_winds_dragons_and_calls_stay():
    rows = make.of(make.games(1)[0][1])
    n = len(rows["labels"])
    swapped = permute(rows, np.full(n, 5))
    fixed = [*range(27, 34), *range(action.CHI, action.COUNT)]
    assert np.array_equal(swapped["action_mask"][:, fixed], rows["action_mask"][:, fixed])
    assert np.array_equal(swapped["tokens"][..., [0, 2, 3]].sum(), rows["tokens"][..., [0, 2, 3]].sum())
    make.assert_equal(permute(swapped, np.full(n, 5)), rows)  # manzu and souzu, there and back


def test_no_rows_are_no_trouble():
    rows = {name: array[:0] for name, array in make.of(make.games(1)[0][1]).items()}
    make.assert_equal(permute(rows, np.array([], int)), rows)
