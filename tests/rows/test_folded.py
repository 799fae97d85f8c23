"""Rows without padding come to the dense arrays and back, bit for bit; what the schema has not is refused."""

import made_rows as make
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.demo.selfplay import play
from lib.rows import folded, schema
from lib.rows.encoder import encode_folded, encode_game


@st.composite
def foldeds(draw):
    """Rows that have the form of rows and nothing else: any tokens around the four scores, any masks, any numbers."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.sampled_from([0, 1, 2, 70, 200]))
    most = draw(st.sampled_from([0, 30, schema.MAX_SEQ_LEN - 22]))
    sizes = 22 + rng.integers(0, most + 1, n)
    rows = folded.empty(n)
    text = []
    for size in sizes.tolist():
        tokens = rng.integers(0, 256, (size, schema.TOKEN_FEATURES), np.uint8)
        tokens[tokens[:, 0] == folded.SCORE, 0] = 1
        tokens[rng.integers(0, size - 21) + np.array([0, 4, 8, 12]), 0] = folded.SCORE
        text.append(tokens.tobytes())
    rows["action_mask"][...] = rng.integers(0, 2, rows["action_mask"].shape)
    for array in (rows["labels"], rows["deltas"], *(rows[name][key] for name in ("origin", "outcome")
                                                    for key in rows[name].dtype.names)):
        low, high = np.iinfo(array.dtype).min, np.iinfo(array.dtype).max
        array[...] = rng.integers(low, high, array.shape, array.dtype, endpoint=True)
    rows["origin"]["seat"] %= 4
    points = rng.integers(-1_000_000, 1_000_000, (n, 4), np.int32)
    points[rng.random((n, 4)) < 0.3] = 25000  # its scalar is 0
    return {"text": b"".join(text), "lengths": (5 * sizes).astype(np.int32), "points": points,
            **{name: rows[name] for name in folded.PLAIN}}


def equal(a, b):
    assert bytes(a["text"]) == bytes(b["text"])
    make.assert_equal({k: v for k, v in a.items() if k != "text"}, {k: v for k, v in b.items() if k != "text"})


@given(rows=foldeds())
def test_any_rows_come_to_dense_arrays_and_back(rows):
    dense = folded.unfold(rows)
    assert {name: (array.shape[1:], array.dtype) for name, array in dense.items()} == schema.ARRAYS
    equal(folded.fold(dense), rows)


@given(rows=foldeds(), data=st.data())
def test_rows_are_taken_in_any_order_and_joined(rows, data):
    n, dense = len(rows["labels"]), folded.unfold(rows)
    some = np.array(data.draw(st.lists(st.integers(0, max(n - 1, 0)), max_size=min(n, 9))), np.int64)
    parts = [folded.take(folded.placed(rows), some), folded.take(folded.placed(rows), slice(n // 3, n))]
    both = folded.join([folded.compact(part) for part in parts])
    expected = {name: np.concatenate([array[some], array[n // 3:]]) for name, array in dense.items()}
    make.assert_equal(folded.unfold(both), expected)


@given(rows=foldeds())
def test_ragged_tokens_are_the_dense_ones_without_padding(rows):
    dense, found = folded.unfold(rows), folded.ragged(folded.placed(rows))
    stands = dense["attention_mask"].astype(bool)
    assert np.array_equal(found["tokens"], dense["tokens"][stands])
    assert found["scalars"].tobytes() == dense["scalars"][stands].tobytes()
    assert np.array_equal(np.diff(found["cu_seqlens"]), stands.sum(axis=1)) and found["cu_seqlens"].dtype == np.int32


@pytest.mark.parametrize("data", [play(4, hanchan=True), play(5, hanchan=False)])
def test_the_pieces_of_a_game_come_to_its_rows(data):
    rows, parts = encode_game(data), list(folded.pieces(encode_folded(data)))
    make.assert_equal(make.join(parts), rows)
    assert all(len(part["labels"]) == folded.PIECE_ROWS for part in parts[:-1]) and len(parts) > 3


@pytest.mark.parametrize(("name", "place", "value", "words"), [
    ("attention_mask", (3, 2), 0, "mask"), ("attention_mask", (3, 0), 2, "mask"), ("tokens", (3, 359, 1), 1, "stands"),
    ("scalars", (3, 359, 0), -0.0, "should be none"), ("action_mask", (3, 7), 2, "mask"),
    ("tokens", (3, 1, 0), folded.SCORE, "score"), ("tokens", (3, 1, 0), 0, None),
])
def test_rows_that_the_schema_has_not_are_refused(name, place, value, words):
    rows = make.of(make.games(1)[0][1])
    rows[name][place] = value
    if words is None:
        folded.fold(rows)
        return
    with pytest.raises(ValueError, match=words):
        folded.fold(rows)


@pytest.mark.parametrize("value", [0.25, np.nan, np.inf, -0.0, 1e30])
def test_a_scalar_that_does_not_follow_from_the_tokens_is_refused(value):
    rows = make.of(make.games(1)[0][1])
    used = np.argwhere(rows["scalars"][40])
    scores = rows["tokens"][40, :, 0] == folded.SCORE  # column 0 of these says what the points were: any may be
    for place, column in used[~scores[used[:, 0]] | (used[:, 1] == 1)].tolist():
        if rows["scalars"][40, place, column] == value:
            continue
        changed = rows | {"scalars": rows["scalars"].copy()}
        changed["scalars"][40, place, column] = value
        with pytest.raises(ValueError, match="scalars"):
            folded.fold(changed)


def test_places_go_by_points_and_then_by_seat():
    assert folded.places([25000, 30000, 25000, 20000]).tolist() == [2, 1, 3, 4]
    assert folded.places([[0, 0, 0, 0], [-100, 1, 2, 3]]).tolist() == [[1, 2, 3, 4], [4, 3, 2, 1]]
