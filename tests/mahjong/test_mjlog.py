"""Scanning: what does a log no harm, and how bad ones are named."""

import gzip
import time

import pytest
from handwritten import drawn, hand, log

from lib.mahjong import mjlog
from lib.mahjong.mjlog import Unencodable, attributes, numbers, tags, text

PLAIN = log(hand("0+5z", drawn()))


def scan(data):
    return [(name, attributes(tail)) for name, tail in tags(text(data))]


@pytest.mark.parametrize(
    "change",
    [
        lambda log: b"\xef\xbb\xbf" + log,
        lambda log: b'<?xml version="1.0"?>\n<!DOCTYPE mjloggm>\n' + log,
        lambda log: log.replace(b"><", b">\r\n<"),
        lambda log: log.replace(b"/>", b"\n />").replace(b'="', b' = "'),
        lambda log: log.replace(b'"', b"'"),
        lambda log: log.replace(b"<GO", b"<!-- <T1/> > --><!----><GO"),
        lambda log: log.replace(b' lobby="0"', b' lobby="0" lobby="0"'),
        lambda log: log + b"\n<!-- end -->\n",
        gzip.compress,
    ],
)
def test_reformatting_changes_nothing(change):
    assert change(PLAIN) != PLAIN
    assert scan(change(PLAIN)) == scan(PLAIN)


def test_tags_are_found_in_order_with_their_attributes():
    found = scan(PLAIN)
    assert [name for name, _ in found] == ["mjloggm", "GO", "UN", "TAIKYOKU", "INIT", "T124", "RYUUKYOKU"]
    assert found[1][1] == {"type": "169", "lobby": "0"}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not a log: empty file"),
        (b" \r\n", "not a log: empty file"),
        (b"\xef\xbb\xbf", "not a log: no mjloggm tag"),
        (b"<html><body>404 mjlog</body></html>", "not a log: HTML page"),
        (b"<!DOCTYPE html><title>x</title>", "not a log: HTML page"),
        (b"\x00\xff" * 99, "not a log: no mjloggm tag"),
        (PLAIN[:-20], "truncated in a tag"),
        (PLAIN[: PLAIN.index(b"<T124")], "truncated between tags"),
        (PLAIN.replace(b"<T124/>", b"<!-- <T124/>"), "truncated between tags"),
        (PLAIN.replace(b"<T124/>", b"<T124/"), "not a log: broken tags"),
        (PLAIN.replace(b"<T124/>", b"<124/>"), "not a log: broken tags"),
        (PLAIN + PLAIN, "not a log: several in one file"),
        (gzip.compress(PLAIN)[:-20], "truncated gzip"),
        (b"\x1f\x8b" + PLAIN, "not a log: broken gzip, Error -3 while decompressing data: unknown compression method"),
        (PLAIN.replace(b"<T124/>", b"<T124/>" * 30_000), "not a log: 30006 tags"),
        (PLAIN + b" " * mjlog.MAX_BYTES, "not a log: over 4 MiB"),
    ],
)
def test_bad_input_is_named(data, reason):
    with pytest.raises(Unencodable) as caught:
        tags(text(data))
    assert str(caught.value) == reason


@pytest.mark.parametrize(
    "data",
    [
        gzip.compress(bytes(300 << 20), 1),
        b"<mjloggm " + b"a" * 4_190_000,
        b"<mjloggm><" + b"a" * 4_000_000 + b"</mjloggm>",
        b"<mjloggm><A " + b"a" * 4_000_000 + b"/></mjloggm>",
        b"<mjloggm>" + b"<!--" * 1_000_000,
        b"<mjloggm>" + b"<!---->" * 500_000,
        b"<mjloggm" * 500_000,
        b"<mjloggm>" + b"<" * 4_000_000 + b"</mjloggm>",
    ],
    ids=["bomb", "open", "name", "tail", "comments", "empty comments", "starts", "brackets"],
)
def test_hostile_text_is_refused_quickly(data):
    start = time.process_time()
    with pytest.raises(Unencodable):
        scan(data)
    assert time.process_time() - start < 2


def test_numbers_are_checked_for_count_and_range():
    attrs = {"ten": "1,-2,3", "odd": "1,,2", "big": "9" * 5000, "owari": "5,1.5,6,0.5"}
    assert numbers(attrs, "ten", 3, -2, 3) == (1, -2, 3)
    assert numbers(attrs, "owari", 2, 0, 9, slice(0, 4, 2)) == (5, 6)
    for key, count, low, high in (("ten", 2, -9, 9), ("ten", 3, -1, 9), ("ten", 3, -9, 2), ("odd", 0, 0, 9)):
        with pytest.raises(Unencodable, match=key):
            numbers(attrs, key, count, low, high)
    for key in ("big", "missing", "owari"):
        with pytest.raises(Unencodable, match=f"no numbers in attribute {key}"):
            numbers(attrs, key, 0, 0, 9)
