"""A game as its log tells it: rules, hands, events, results.

Every number is checked here, so that later modules can use it as an index. Whether each event may follow the one
before is not checked here: lib.rows.decisions and lib.mahjong.judge do that.
"""

import re
import urllib.parse
from typing import NamedTuple

from . import meld, mjlog, table_type
from .mjlog import Unencodable, numbers

# what an event is: the first item of its tuple
DRAW, DISCARD, CALL, DECLARE, RIICHI, DORA, BYE, UN, WIN, ABORT = range(10)

TURNS = {
    f"{letter}{tile}": (op, seat, tile)
    for op, letters in ((DRAW, "TUVW"), (DISCARD, "DEFG"))
    for seat, letter in enumerate(letters)
    for tile in range(136)
}
ENDS = {"AGARI": WIN, "RYUUKYOKU": ABORT}
ABORTS = ("", "yao9", "reach4", "ron3", "kan4", "kaze4", "nm")
DOUBT = re.compile(r"\b(?:yakuman|paoWho)\s*=")
CUSTOM = re.compile(r"\s(?:csrule|chip)[\w-]*\s*=")  # attributes of GO and INIT where somebody chose the rules
WINDS = ("east", "south", "west", "north")
LIMIT = 10_000  # points in hundreds
MAX_HANDS = 255  # as origin.hand counts them


class Win(NamedTuple):
    """`who` wins on a tile of `loser` (his own: tsumo). `ura`: the indicators shown; `pao`: the seat liable, or -1."""

    who: int
    loser: int
    ura: tuple
    pao: int


class Hand(NamedTuple):
    """What INIT says; which seats are `away` when the hand starts; the events; the points `after` the hand; and
    `changes`, the points that each WIN, or the ABORT, moved: four numbers each. All points are full points, as players
    count them, not hundreds as in the log.

    Events are (op, seat, argument). The argument is a tile for DRAW, DISCARD and DORA, a Meld for CALL, a Win for WIN,
    and the type for ABORT ('' when the wall ran out). A hand ends with one ABORT, or with one or more WINs.
    """

    wind: int
    dealer: int
    honba: int
    sticks: int
    indicator: int
    points: tuple
    dealt: tuple
    away: frozenset
    events: list
    after: tuple
    changes: tuple = ()

    @property
    def name(self):
        """Such as 'east 2, honba 1'."""
        return hand_name(4 * self.wind + self.dealer, self.honba)


class Game(NamedTuple):
    """A whole game: its Hands, the final points of seats 0..3, and whether there is a reason to doubt it: a yakuman,
    liability (pao), or something in GO that is not known."""

    hands: list
    final: tuple
    doubtful: bool


def read(data):
    """The Game of a log (bytes). Raises Unencodable unless it is complete, and its rules are those that are encoded.
    """
    return read_tags(mjlog.tags(mjlog.text(data)), table_type.UNSUPPORTED)


def read_tags(tags, unsupported):
    """The Game that the tags of a log tell; `unsupported`: the bits of GO type that it must not have, with their names.
    Raises Unencodable."""
    unknown = check_rules(tags, unsupported)
    doubtful = unknown or any(name == "AGARI" and DOUBT.search(tail) for name, tail in tags)
    starts = [i for i, (name, _) in enumerate(tags) if name == "INIT"]
    if not starts:
        raise Unencodable("incomplete: no hands")
    if len(starts) > MAX_HANDS:
        raise Unencodable(f"not a log: {len(starts)} hands")
    last = next((mjlog.attributes(tail) for name, tail in reversed(tags) if name in ENDS), {})
    if not last.get("owari", "").strip():
        raise Unencodable("incomplete: no owari")
    final = numbers(last, "owari", 4, -LIMIT, LIMIT, slice(0, 8, 2))
    away = set()
    for name, tail in tags[: starts[0]]:
        if name in ("BYE", "UN"):
            move(away, presence(name, mjlog.attributes(tail)))
    hands = []
    for start, stop in zip(starts, [*starts[1:], len(tags)], strict=True):
        try:
            found = hand(tags[start:stop], away)
        except Unencodable as error:
            raise Unencodable(f"{_place(tags[start], len(hands), len(starts))}: {error}") from None
        if not found:
            raise Unencodable(f"incomplete: {_place(tags[start], len(hands), len(starts))} has no end")
        hands.append(found)
    return Game(hands, tuple(100 * points for points in final), bool(doubtful))


def hand_name(number, honba):
    """What players call a hand, its round counted from 0 for east 1: 'east 2, honba 1'."""
    return f"{WINDS[number // 4 % 4]} {number % 4 + 1}, honba {honba}"


def _place(init, number, hands):
    """Which hand of a game this is, by its INIT tag; if that is damaged, which of its `hands`."""
    try:
        round_, honba = numbers(mjlog.attributes(init[1]), "seed", 2, 0, 95, slice(2))
        return hand_name(round_, honba) if round_ < 12 else f"hand {number + 1} of {hands}"
    except Unencodable:
        return f"hand {number + 1} of {hands}"


def check_rules(tags, unsupported):
    """The names of what GO says beside its type and lobby. Raises Unencodable if the rules are `unsupported`."""
    bits, others = rules(tags)
    for bit, what in unsupported.items():
        if bits & bit:
            raise Unencodable(f"unsupported: {what}")
    if any(name in ("GO", "INIT") and CUSTOM.search(tail) for name, tail in tags):
        raise Unencodable("unsupported: custom rules")
    return others


def rules(tags):
    """(the bits of GO type, the names of GO's other attributes but the lobby). Raises Unencodable if the log does not
    say by which rules it was played."""
    go = next((mjlog.attributes(tail) for name, tail in tags if name == "GO"), {})
    if "type" not in go:
        raise Unencodable("incomplete: no rules (GO type)")
    return numbers(go, "type", 1, 0, 1 << 20)[0], go.keys() - {"type", "lobby"}


def names(tags):
    """The names of seats 0..3 as the log's first UN has them, '' where it has none."""
    un = next((mjlog.attributes(tail) for name, tail in tags if name == "UN"), {})
    return tuple(urllib.parse.unquote(un.get(f"n{seat}", "")) for seat in range(4))


def hand(tags, away):
    """The Hand that `tags` tell, the first of them INIT; None if it has no end. `away`, a set, is kept up to date."""
    init = mjlog.attributes(tags[0][1])
    round_, honba, sticks, _, _, indicator = numbers(init, "seed", 6, 0, 135)
    if round_ > 11 or honba > 95 or sticks > 95:
        raise Unencodable("attribute seed out of range")
    points = tuple(100 * ten for ten in numbers(init, "ten", 4, -LIMIT, LIMIT))
    (dealer,) = numbers(init, "oya", 1, 0, 3)
    dealt = tuple(numbers(init, f"hai{seat}", 13, 0, 135) for seat in range(4))
    events, ends, away_before = [], [], frozenset(away)
    for name, tail in tags[1:]:
        event = TURNS.get(name)
        if event:
            events.append(event)
        elif name in ("BYE", "UN"):
            found = presence(name, mjlog.attributes(tail))
            move(away, found)
            events += found
        elif name in READERS:
            attrs = mjlog.attributes(tail)
            events.append(READERS[name](attrs))
            if name in ENDS:
                ends.append(attrs)
        elif name != "SHUFFLE":
            raise Unencodable(f"unknown tag {name[:20]}")
    if not ends:
        return None
    first = next(i for i, event in enumerate(events) if event[0] in (WIN, ABORT))
    allowed = (BYE, UN, WIN) if events[first][0] == WIN else (BYE, UN)
    if any(op not in allowed for op, _, _ in events[first + 1 :]):
        raise Unencodable("goes on after its end")
    moved = [numbers(end, "sc", 8, -LIMIT, LIMIT, slice(8)) for end in ends]  # before and change of each seat
    changes = tuple(tuple(100 * change for change in sc[1::2]) for sc in moved)
    after = tuple(100 * before + change for before, change in zip(moved[-1][::2], changes[-1], strict=True))
    return Hand(round_ // 4, dealer, honba, sticks, indicator, points, dealt, away_before, events, after, changes)


def presence(name, attrs):
    """The events of a BYE or UN tag: a UN names those who are back by n0..n3."""
    if name == "BYE":
        return [(BYE, *numbers(attrs, "who", 1, 0, 3), None)]
    return [(UN, seat, None) for seat in range(4) if f"n{seat}" in attrs]


def move(away, events):
    """Bring the set of absent seats up to date."""
    for op, seat, _ in events:
        (away.add if op == BYE else away.discard)(seat)


def call(attrs):
    return (CALL, *numbers(attrs, "who", 1, 0, 3), meld.decode(*numbers(attrs, "m", 1, 0, 0xFFFF)))


def reach(attrs):
    (step,) = numbers(attrs, "step", 1, 1, 2)
    return (DECLARE if step == 1 else RIICHI, *numbers(attrs, "who", 1, 0, 3), None)


def dora(attrs):
    return (DORA, -1, *numbers(attrs, "hai", 1, 0, 135))


def win(attrs):
    (who,), (loser,) = (numbers(attrs, key, 1, 0, 3) for key in ("who", "fromWho"))
    ura = numbers(attrs, "doraHaiUra", 0, 0, 135) if attrs.get("doraHaiUra") else ()
    pao = numbers(attrs, "paoWho", 1, 0, 3)[0] if "paoWho" in attrs else -1
    return (WIN, who, Win(who, loser, ura, pao))


def abort(attrs):
    type_ = attrs.get("type", "")
    if type_ not in ABORTS:
        raise Unencodable("RYUUKYOKU of an unknown type")
    return (ABORT, -1, type_)


READERS = {"N": call, "REACH": reach, "DORA": dora, "AGARI": win, "RYUUKYOKU": abort}
