"""Logs of a few tags, written by hand in a shorthand, for tests that have to know every tile.

Tiles are written 123m, 0p (the red five), 17z. A QUIET hand has no pair and no two tiles of a run: it can neither call
nor win whatever is thrown, and four of them hold every tile of the kinds that they are made of.
"""

import re

from lib.demo.mjlog_writer import added_code, chi_code, kan_code, pon_code, tag

QUIET = "147m147p147s1234z"
LOOSE = [f"{n}{suit}" for n in (2, 3, 6, 8, 9) for suit in "mps"] + ["5z", "6z", "7z"]  # kinds that no QUIET hand holds
LEVEL = "250,0,250,0,250,0,250,0"
FINAL = "250,0.0,250,0.0,250,0.0,250,0.0"


def names(text):
    """'12m0p' -> ['1m', '2m', '0p']."""
    return [n + suit for digits, suit in re.findall(r"(\d+)([mpsz])", text) for n in digits]


def log(*hands, rules=169):
    """The bytes of a log."""
    tags = [tag("GO", type=rules, lobby=0), tag("UN", n0="a", n1="b", n2="c", n3="d"), tag("TAIKYOKU", oya=0), *hands]
    return f'<mjloggm ver="2.3">{"".join(tags)}</mjloggm>'.encode()


def drawn(sc=LEVEL, owari=FINAL, **attrs):
    return tag("RYUUKYOKU", **attrs, ba="0,0", sc=sc, owari=owari)


def won(who, loser, sc, owari=None, **attrs):
    return tag("AGARI", who=who, fromWho=loser, **attrs, sc=sc, owari=owari)


def hand(script, *ends, deals=(), seed="0,0,0", indicator="7z", ten="250,250,250,250", oya=0):
    """The tags of a hand, from INIT to its `ends`. `deals` are the hands of the first seats, the others are QUIET.

    The script is a list of: 0+5z seat 0 draws; 0-5z discards (the drawn tile if it is one); 1c23m takes the last
    discard with 23m of its hand, a chi, 1p55z a pon, 1k555z an open kan; 0a1m closed kan, 0j1m added kan; 0r says
    riichi, 0R pays for it; 0b is gone, 0u is back; *3p a new indicator. Anything else stands for itself, ~ for a space.
    """
    free = {}
    for tile in range(136):
        red = tile in (16, 52, 88)
        free.setdefault(f"{0 if red else tile // 4 % 9 + 1}{'mpsz'[tile // 36]}", []).append(tile)

    def take(name):
        return free[name].pop(0)

    hands = [[take(name) for name in names(text)] for text in [*deals, QUIET, QUIET, QUIET, QUIET][:4]]
    hais = {f"hai{seat}": tiles for seat, tiles in enumerate(hands)}
    tags = [tag("INIT", seed=f"{seed},1,1,{take(indicator)}", ten=ten, oya=oya, **hais)]
    codes, last, thrower = [[], [], [], []], None, None

    def out(seat, wanted):
        """The tiles of these names leave the hand, the latest first."""
        found = []
        for name in names(wanted):
            kind, red = "mpsz".index(name[1]) * 9 + (int(name[0]) or 5) - 1, name[0] == "0"
            found.append(next(t for t in hands[seat][::-1] if t // 4 == kind and (t in (16, 52, 88)) == red))
            hands[seat].remove(found[-1])
        return found

    for step in script.split():
        if step[0] == "*":
            tags.append(tag("DORA", hai=take(step[1:])))
            continue
        if step[0] not in "0123":
            tags.append(step.replace("~", " "))
            continue
        seat, op, tiles = int(step[0]), step[1], step[2:]
        if op == "+":
            hands[seat].append(take(tiles))
            tags.append(f"<{'TUVW'[seat]}{hands[seat][-1]}/>")
        elif op == "-":
            (last,), thrower = out(seat, tiles), seat
            tags.append(f"<{'DEFG'[seat]}{last}/>")
        elif op in "rR":
            tags.append(tag("REACH", who=seat, step=1 + (op == "R")))
        elif op == "b":
            tags.append(tag("BYE", who=seat))
        elif op == "u":
            tags.append(tag("UN", **{f"n{seat}": "x"}))
        else:
            source = (thrower - seat) % 4 if thrower is not None else 0
            if op == "a":
                code = kan_code(out(seat, 4 * tiles)[0])
            elif op == "j":
                code = added_code(codes[seat], *out(seat, tiles))
            elif op == "k":
                out(seat, tiles)
                code = kan_code(last, source)
            else:
                code = (chi_code if op == "c" else pon_code)(last, out(seat, tiles), source)
            codes[seat].append(code)
            tags.append(tag("N", who=seat, m=code))
    return "".join([*tags, *ends])
