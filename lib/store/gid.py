"""Game ids: the one pattern, and what people paste instead of a bare id."""

import re

PATTERN = r"[0-9]{8}(?:[0-9]{2})?gm-[0-9a-f]{4}-[0-9]{4,5}-[0-9a-f]{8}"
_GID = re.compile(PATTERN)
_FOUND = re.compile(rf"(?:https?://tenhou\.net/[0-9]/\?log=)?({PATTERN}|[0-9]{{10}}gm-[0-9a-f]{{4}}-[0-9]{{4,5}}-x[0-9a-f]{{12}})"
                    r"(?:\.mjlog|\.txt|&[a-z]+=[0-9a-zA-Z-]*)*")

# The key table of links whose last part is scrambled ("x" + 12 hex digits).
_TABLE = (
    22136, 52719, 55146, 42104, 59591, 46934, 9248, 28891, 49597, 52974, 62844, 4015, 18311, 50730, 43056, 17939, 64838,
    38145, 27008, 39128, 35652, 63407, 65535, 23473, 35164, 55230, 27536, 4386, 64920, 29075, 42617, 17294, 18868, 2081,
)  # fmt: skip


def is_gid(text):
    """True if `text` is a bare game id and nothing else: safe as a file name."""
    return _GID.fullmatch(text) is not None


def viewer(game, seat=None):
    """The link to Tenhou's viewer of a game, from a seat (0..3) if one is given."""
    return f"https://tenhou.net/0/?log={game}{'' if seat is None else f'&tw={seat}'}"


def parse(text):
    """The game id in `text`, which may be a viewer link, a file name or a scrambled link; None if there is none."""
    found = _FOUND.fullmatch(text.strip())
    if not found:
        return None
    head, _, tail = found[1].rpartition("-")
    return found[1] if len(tail) == 8 else f"{head}-{_unscramble(head, tail)}"


def _unscramble(head, tail):
    a, b, c = (int(tail[i:i + 4], 16) for i in (1, 5, 9))
    i = 0
    if head[:12] >= "2010041111gm":
        i = int("3" + head[4:10]) % (33 - int(head[9]))
    return f"{a ^ b ^ _TABLE[i]:04x}{b ^ c ^ _TABLE[i] ^ _TABLE[i + 1]:04x}"
