"""A second engine, riichienv, plays games again that it knows as mjai events alone.

It is told the walls, as far as the events show them, and what each player does; it draws, offers, decides who comes
first, turns indicators and pays by itself, and keeps a log in mjai of its own.
"""

import pytest

riichienv = pytest.importorskip("riichienv", reason="riichienv, the second engine, is not there for this Python")
name_of = riichienv.convert.tid_to_mjai
Act = riichienv.ActionType

INDICATORS, URA = (4, 6, 8, 10, 12), (5, 7, 9, 11, 13)  # their places in the dead wall; from its front go replacements
KANS = {"daiminkan": Act.DAIMINKAN, "kakan": Act.KAKAN, "ankan": Act.ANKAN}
CALLS = {"chi": Act.CHI, "pon": Act.PON, "daiminkan": Act.DAIMINKAN}
OWN = {"dahai": Act.DISCARD, "reach": Act.RIICHI, "hora": Act.TSUMO, "ryukyoku": Act.KYUSHU_KYUHAI, **KANS}


class Differs(AssertionError):
    """The engine cannot do what the events say."""


def hands(events):
    """The events of each hand that has an end, from start_kyoku to end_kyoku."""
    starts = [i for i, event in enumerate(events) if event["type"] == "start_kyoku"]
    stops = [i for i, event in enumerate(events) if event["type"] == "end_kyoku"]
    return [events[start : stop + 1] for start, stop in zip(starts, stops, strict=False)]


def types(events):
    return [event["type"] for event in events]


def wall_of(events):
    """136 tiles in the order in which the engine takes them, for the events of a hand; what never shows is anywhere."""
    pool, start = {}, events[0]
    for tile in range(136):
        pool.setdefault(name_of(tile), []).append(tile)
    live, dead, kan, indicators, ura = [], {}, False, [start["dora_marker"]], []
    for first, n in ((0, 4), (4, 4), (8, 4), (12, 1)):
        for turn in range(4):
            live += start["tehais"][(start["oya"] + turn) % 4][first : first + n]
    for event in events:
        kind = event["type"]
        if kind == "tsumo" and kan:
            dead[len(dead)] = event["pai"]
        elif kind == "tsumo":
            live.append(event["pai"])
        elif kind == "dora":
            indicators.append(event["dora_marker"])
        elif kind == "hora":
            ura = max(ura, event["ura_markers"], key=len)
        kan = kind in KANS or (kan and kind == "dora")
    dead.update(zip(INDICATORS, indicators, strict=False))
    dead.update(zip(URA, ura, strict=False))
    live = [pool[name].pop() for name in live]
    dead = {place: pool[name].pop() for place, name in dead.items()}
    rest = [tile for tiles in pool.values() for tile in tiles]
    front = [dead[place] if place in dead else rest.pop() for place in range(14)]
    return live + rest + front[::-1]


def pick(env, seen, kind, event):
    """The legal action of this kind that does what `event` says."""
    for action in seen.legal_actions():
        if action.action_type != kind:
            continue
        fits = True
        if kind == Act.DISCARD:
            fits = name_of(action.tile) == event["pai"] and (action.tile == env.drawn_tile) == event["tsumogiri"]
        elif kind == Act.KAKAN:
            fits = name_of(action.tile) == event["pai"]
        elif kind in (Act.CHI, Act.PON, Act.DAIMINKAN, Act.ANKAN):
            fits = sorted(map(name_of, action.consume_tiles)) == sorted(event["consumed"])
        if fits:
            return action
    raise Differs(f"{kind}, {event}: not among {[action.to_mjai() for action in seen.legal_actions()]}")


def answers_to(asked, events):
    """seat -> (action, event) of those who answer a discard or kan with other than a pass."""
    event = events[0]
    if event["type"] == "hora":
        return {each["actor"]: (Act.RON, each) for each in events if each["type"] == "hora"}
    if event["type"] in CALLS:
        return {event["actor"]: (CALLS[event["type"]], event)}
    ready = [seat for seat, seen in asked.items() if any(a.action_type == Act.RON for a in seen.legal_actions())]
    if event["type"] == "ryukyoku" and len(ready) == 3:
        return dict.fromkeys(ready, (Act.RON, event))
    return {}


def play(events):
    """What the engine logs of a hand, for the hand's events."""
    start, rule = events[0], riichienv.GameRule.default_tenhou()
    rule.allows_ron_on_ankan_for_kokushi_musou = True
    env = riichienv.RiichiEnv(game_mode="4p-red-half", rule=rule)
    asked = env.reset(oya=start["oya"], wall=wall_of(events), round_wind="ESWN".index(start["bakaze"]),
                      scores=start["scores"], honba=start["honba"], kyotaku=start["kyotaku"])
    i = 1
    while not hands(env.mjai_log):
        own = env.phase == riichienv.Phase.WaitAct
        while events[i]["type"] in ("dora", "reach_accepted", "tsumo")[: 2 + own]:
            i += 1
        event, acts = events[i], {}
        if own:
            (seat,) = asked
            if event.get("actor", seat) != seat:
                raise Differs(f"it is seat {seat}'s turn: {event}")
            acts[seat] = pick(env, asked[seat], OWN[event["type"]], event)
            i += 1
        else:
            answers = answers_to(asked, events[i:])
            if not answers.keys() <= asked.keys():
                raise Differs(f"only {[*asked]} are asked: {event}")
            for seat, seen in asked.items():
                acts[seat] = pick(env, seen, *answers.get(seat, (Act.PASS, event)))
            i += len(answers)
        asked = env.step(acts)
    return hands(env.mjai_log)[0]


def differences(events, paid=True):
    """Yield (ours, the engine's) of each event of a hand in which the two logs differ; paid: points too."""
    logged, last = play(events), max(i for i, e in enumerate(events) if e["type"] == "tsumo") + 1
    if types(events[last:]) == ["ankan", "dora", "hora", "end_kyoku"]:  # robbed: it logs neither
        events = events[:last] + events[-2:]
    if types(logged) != types(events):
        yield types(events), types(logged)
        return
    for ours, theirs in zip(events, logged, strict=True):
        for key, value in ours.items():
            other = theirs.get(key)
            if key in ("consumed", "tehais"):  # in no order
                value, other = sorted(map(sorted, value)), sorted(map(sorted, other))
            if value != other and (paid or key != "deltas"):
                yield ours, theirs
                break


def final_points(events):
    """The points at the end of a game as a reader of its events comes to them: those of the last start_kyoku, less the
    sticks paid, and the deltas; the sticks that nobody won go to the first."""
    last = hands(events)[-1]
    points = list(last[0]["scores"])
    sticks = last[0]["kyotaku"]
    for event in last:
        if event["type"] == "reach_accepted":
            points[event["actor"]] -= 1000
            sticks += 1
        points = [a + b for a, b in zip(points, event.get("deltas", (0, 0, 0, 0)), strict=True)]
        sticks = 0 if event["type"] == "hora" else sticks
    points[max(range(4), key=lambda seat: (points[seat], -seat))] += 1000 * sticks
    return points


def read(path):
    """How many hands the engine's own reader of mjai files finds in one."""
    return riichienv.MjaiReplay.from_jsonl(str(path)).num_rounds()


def furiten(events):
    """True if a hand ends with a ron by someone who has thrown one of his waits: pymahjong, with which games are made
    up here, forgets that now and then; the rules do not."""
    for win in events:
        if win["type"] == "hora" and win["actor"] != win["target"]:
            hand, river = list(events[0]["tehais"][win["actor"]]), []
            for event in events:
                if event.get("actor") == win["actor"]:
                    hand += [event["pai"]] if event["type"] == "tsumo" else []
                    river += [event["pai"]] if event["type"] == "dahai" else []
                    for tile in event.get("consumed", ()) if event["type"] != "kakan" else [event["pai"]]:
                        hand.remove(tile)
                    if event["type"] == "dahai":
                        hand.remove(event["pai"])
            tiles = [riichienv.convert.mjai_to_tid(name) for name in hand]
            if any(riichienv.calculate_shanten(sorted([*tiles, riichienv.convert.mjai_to_tid(name)])) < 0
                   for name in river):
                return True
    return False
