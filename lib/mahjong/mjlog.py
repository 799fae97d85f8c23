"""Scan a Tenhou log (mjlog) into a flat list of tags.

One regular expression finds the tags. No XML parser is used, because some real logs have an attribute twice in one tag,
which XML forbids. Nothing is lost by it, because no tag of a log stands inside another.
"""

import re
import zlib

MAX_BYTES = 4 << 20  # the longest hanchan known is under 64 KiB
MAX_TAGS = 20_000  # the same has some 3,000 tags

MAX_TAIL = 16_384  # a seed in hex, which stands in INIT in logs of 2009, is the longest attribute

# \b and the look-behind keep both linear in time on hostile text
TAG = re.compile(r"<([A-Za-z]\w*)\b([^<>]*)>")
ATTRIBUTE = re.compile(r"""(?<!\w)(\w+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")


class Unencodable(Exception):
    """A game that cannot become rows; str() is the reason, one line, as the manifest keeps it. event: the number, from
    0, of the event of its hand at which that was found; None where it is not known."""

    event = None


def text(data):
    """The log as a string, unpacked if it is gzip. Raises Unencodable for what is empty or far too long."""
    if data[:2] == b"\x1f\x8b":
        unpacker = zlib.decompressobj(31)
        try:
            data = unpacker.decompress(data, MAX_BYTES + 1)
        except zlib.error as error:
            raise Unencodable(f"not a log: broken gzip, {error}") from None
        if len(data) <= MAX_BYTES and not unpacker.eof:
            raise Unencodable("truncated gzip")
    if len(data) > MAX_BYTES:
        raise Unencodable(f"not a log: over {MAX_BYTES >> 20} MiB")
    if not data.strip():
        raise Unencodable("not a log: empty file")
    return data.decode("utf-8-sig", errors="replace")


def tags(log):
    """The tags of a log as a list of (name, attribute text). Raises Unencodable if it is not a log, or not a whole one.
    """
    if "<!--" in log:
        first, *rest = log.split("<!--")
        log = first + "".join(part.partition("-->")[2] for part in rest)
    start = log.find("<mjloggm")
    if start < 0:
        head = log[:1000].lower()
        raise Unencodable(f"not a log: {'HTML page' if '<html' in head or '<!doctype' in head else 'no mjloggm tag'}")
    body, end, rest = log[start:].partition("</mjloggm")
    if not end:
        raise Unencodable(f"truncated {'in a tag' if body.rfind('<') > body.rfind('>') else 'between tags'}")
    if "<mjloggm" in rest:
        raise Unencodable("not a log: several in one file")
    count = body.count("<")
    if count > MAX_TAGS:
        raise Unencodable(f"not a log: {count} tags")
    found = TAG.findall(body)
    if len(found) != count:
        raise Unencodable("not a log: broken tags")
    return found


def attributes(tail):
    """The attributes of a tag as a dict. If one stands there twice, the last counts."""
    if len(tail) > MAX_TAIL:
        raise Unencodable("not a log: attributes without end")
    return {name: double or single for name, double, single in ATTRIBUTE.findall(tail)}


def numbers(attrs, key, count, low, high, part=slice(None)):
    """Attribute `key`, a list of numbers, or `part` of it as a tuple of ints.

    Raises Unencodable unless there are `count` of them (0: any number), each in low..high.
    """
    try:
        values = tuple(map(int, attrs[key].split(",")[part]))
    except (KeyError, ValueError):
        raise Unencodable(f"no numbers in attribute {key}") from None
    if (count and len(values) != count) or min(values, default=low) < low or max(values, default=low) > high:
        raise Unencodable(f"attribute {key} out of range")
    return values
