"""Game ids: their pattern, and the links and file names that people paste instead of a bare id."""

import re

PATTERN = r"[0-9]{8}(?:[0-9]{2})?gm-[0-9a-f]{4}-[0-9]{4,5}-[0-9a-f]{8}"
_GID = re.compile(PATTERN)
_ANY = rf"({PATTERN}|[0-9]{{10}}gm-[0-9a-f]{{4}}-[0-9]{{4,5}}-x[0-9a-f]{{12}})"
_SITE = r"(?:(?:https?:)?//)?(?:www\.)?tenhou\.net"
_FOUND = re.compile(rf"(?:(?:{_SITE})?(?:/[0-9a-z/]*)?\?(?:[0-9a-z]+=[^&\s]*&)*(?:log=)?|log=)?{_ANY}"
                    r"(?:\.(?:mjlog|txt|xml|log|gz)|[&?][0-9a-z]+=[^&\s]*)*", re.I | re.A)
_IN_TEXT = re.compile(rf"(?<![0-9]){_ANY}(?![0-9a-f])")

# The key table of links whose last part is scrambled ("x" + 12 hex digits).
_TABLE = (
    22136, 52719, 55146, 42104, 59591, 46934, 9248, 28891, 49597, 52974, 62844, 4015, 18311, 50730, 43056, 17939, 64838,
    38145, 27008, 39128, 35652, 63407, 65535, 23473, 35164, 55230, 27536, 4386, 64920, 29075, 42617, 17294, 18868, 2081,
)  # fmt: skip


def is_gid(text):
    """True if `text` is a bare game id and nothing else. Such a text is safe as a file name."""
    return _GID.fullmatch(text) is not None


def viewer(game, seat=None):
    """The link to Tenhou's viewer of a game, from a seat (0..3) if one is given."""
    return f"https://tenhou.net/0/?log={game}{'' if seat is None else f'&tw={seat}'}"


def parse(text):
    """The game id that `text` stands for: an id, a link of any form, or a file name, in small or capital letters,
    scrambled or not. None for anything else, also for a longer text that contains an id."""
    found = _FOUND.fullmatch(text.strip())
    return _plain(found[1]) if found else None


def find(text):
    """Yield all game ids in a text, whatever is between them."""
    text = text.lower()
    at = text.find("gm-")
    while at >= 0:  # ten times as fast as the expression alone in a text without ids
        found = _IN_TEXT.search(text, max(0, at - 10), at + 40)
        if found:
            yield _plain(found[1])
        at = text.find("gm-", at + 3)


def of_name(name):
    """The game id in the last part of a path; None if there is no id, or more than one."""
    found = set(find(re.split(r"[/\\]", name)[-1]))
    return found.pop() if len(found) == 1 else None


def _plain(text):
    head, _, tail = text.lower().rpartition("-")
    return f"{head}-{tail if len(tail) == 8 else _unscramble(head, tail)}"


def _unscramble(head, tail):
    a, b, c = (int(tail[i:i + 4], 16) for i in (1, 5, 9))
    i = 0
    if head[:12] >= "2010041111gm":
        i = int("3" + head[4:10]) % (33 - int(head[9]))
    return f"{a ^ b ^ _TABLE[i]:04x}{b ^ c ^ _TABLE[i] ^ _TABLE[i + 1]:04x}"
