"""Ready and complete hands by table, against a slow count of shanten that knows nothing of tables."""

from hypothesis import given
from hypothesis import strategies as st

from lib.mahjong import ready
from lib.mahjong.shanten import shanten

RUNS = [(k, k + 1, k + 2) for k in range(27) if k % 9 < 7]
TRIPLETS = [(k,) * 3 for k in range(34)]


def codes_of(counts):
    codes = [0] * 4
    for kind, n in enumerate(counts):
        codes[ready.SUIT[kind]] += n * ready.POWER[kind]
    return codes


def waits(counts, melds=0):
    found = ready.waits(codes_of(counts), counts, [None] * melds)
    return [kind for kind in range(34) if found >> kind & 1]


def slow_waits(counts, melds):
    found = []
    for kind in range(34):
        if counts[kind] < 4:
            more = list(counts)
            more[kind] += 1
            found += [kind] * (shanten(more, melds) < 0)
    return found


@st.composite
def hands(draw):
    """13 tiles, three less for each meld, most of them near to ready: a complete hand with some tiles changed."""
    melds = draw(st.integers(0, 3))
    if not melds and draw(st.booleans()):
        kinds = draw(st.lists(st.sampled_from(range(34)), min_size=7, max_size=7, unique=True))
        orphans = [*ready.TERMINALS, draw(st.sampled_from(ready.TERMINALS))]
        tiles = draw(st.sampled_from([kinds * 2, orphans]))
    else:
        sets = draw(st.lists(st.sampled_from(RUNS + TRIPLETS), min_size=4 - melds, max_size=4 - melds))
        tiles = [kind for unit in sets for kind in unit] + [draw(st.integers(0, 33))] * 2
    counts = [0] * 34
    for kind in tiles:
        counts[kind] += 1
    for _ in range(draw(st.integers(0, 2))):
        out, new = draw(st.sampled_from([k for k in range(34) if counts[k]])), draw(st.integers(0, 33))
        counts[out] -= 1
        counts[new] += 1
    counts[draw(st.sampled_from([k for k in range(34) if counts[k]]))] -= 1
    spare = sum(max(0, n - 4) for n in counts)
    counts = [min(n, 4) for n in counts]
    while spare:  # a fifth tile of a kind cannot be: it becomes another
        kind = draw(st.sampled_from([k for k in range(34) if counts[k] < 4]))
        counts[kind] += 1
        spare -= 1
    return counts, melds


@given(hands())
def test_a_hand_waits_for_what_completes_it(hand):
    counts, melds = hand
    assert waits(counts, melds) == slow_waits(counts, melds)


def counts_of(*kinds):
    return [kinds.count(kind) for kind in range(34)]


def test_seven_pairs_and_thirteen_orphans():
    assert waits(counts_of(*[1, 1, 3, 3, 5, 5, 9, 9, 20, 20, 31, 31], 27)) == [27]
    assert waits(counts_of(*[1, 1, 3, 3, 5, 5, 9, 9, 20, 20, 31, 31, 31])) == [], "six kinds"
    assert waits(counts_of(*ready.TERMINALS)) == list(ready.TERMINALS)
    assert waits(counts_of(*ready.TERMINALS[:-1], 0)) == [33]


def test_nobody_waits_for_a_fifth_tile_of_his_own_hand():
    assert waits(counts_of(0, 0, 0, 0, *[9, 10, 11], *[12, 13, 14], *[18, 19, 20])) == []
