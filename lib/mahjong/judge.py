"""pymahjong's engine as a judge. It plays a hand as the log tells it, must accept every move, and must come to the same
points.

The engine does not make the masks, because it allows more than Tenhou's rules in a few places: ron on a wait that the
player has discarded earlier, a kan when no tile is left to draw, tsumo on a called tile. See lib.mahjong.legality.

`PaipuReplayer` asks all four seats after each discard and each added or closed kan, in the order of seats; selection 0
is always the pass. At each draw of a closed hand it looks for discards that allow riichi, which takes most of its time.
It does not look for a seat that has no points for a riichi stick. So we give a seat points only if it says riichi and
wins, or if all four say riichi. All others who say riichi just discard their tile: we ask the engine whether the hand
is closed and ready, and count the stick ourselves.
"""

import hashlib

import MahjongPyWrapper as pm

from . import answers, points, tile, wall
from .game import ABORT, CALL, DECLARE, DISCARD, DORA, DRAW, RIICHI, WIN
from .meld import ANKAN, CHI, KAKAN, MINKAN, NAMES, PON
from .mjlog import Unencodable

Act = pm.BaseAction
SEATS = (0, 1, 2, 3)
ACTS = {CHI: Act.Chi, PON: Act.Pon, MINKAN: Act.Kan, KAKAN: Act.KaKan, ANKAN: Act.AnKan}
RESPONSE, ROB_ADDED, ROB_CLOSED, OVER = 4, 8, 12, 16  # phases: seat 0 answers; the hand has ended
RONS = {RESPONSE: Act.Ron, ROB_ADDED: Act.ChanKan, ROB_CLOSED: Act.ChanAnKan}


def is_judged(gid, one_in):
    """Whether the judge looks at a game: at one in `one_in`, by a hash of the id."""
    return int.from_bytes(hashlib.sha256(gid.encode()).digest()[:4], "big") % one_in == 0


def judge(hand, following):
    """Raises Unencodable if the engine does not accept a hand, or does not come to the points of the log.

    `following` is the next Hand of the game, or, after the last one, the final points.
    """
    seen = backed(hand.events)
    stakes = [1000 * (seat in seen) for seat in SEATS]
    engine = pm.PaipuReplayer()
    try:
        engine.init(*setup(hand, stakes))
        lead(engine, hand.events, seen)
        if engine.get_phase() != OVER:
            raise Unencodable("engine and log disagree on the end")
        result = engine.get_result()
    except RuntimeError as error:  # the only kind that the engine's C++ throws
        raise Unencodable(f"engine fails: {' '.join(str(error).split())[:100]}") from None
    scores = [real + score - stake for real, score, stake in zip(hand.points, result.score, stakes, strict=True)]
    unbacked = [seat for op, seat, _ in hand.events if op == RIICHI and seat not in seen]
    for seat in unbacked:
        scores[seat] -= 1000
    winner = next((seat for op, seat, _ in hand.events if op == WIN), None)
    if winner is not None:  # the first winner in the log gets the sticks
        scores[winner] += 1000 * len(unbacked)
        unbacked = []
    points.check(hand, following, scores, result.renchan, result.n_honba, result.n_riichibo + len(unbacked))


def backed(events):
    """The seats that the engine must see in riichi: those who win after it, and all four if four riichi end the hand.
    """
    drawn_by_riichi = (ABORT, -1, "reach4") in events
    winners = {seat for op, seat, _ in events if op == WIN}
    return {seat for op, seat, _ in events if op == DECLARE and (drawn_by_riichi or seat in winners)}


def setup(hand, scores):
    """The arguments of the engine's init for a Hand, with these points of the seats."""
    return wall.build(hand), list(scores), hand.sticks, hand.honba, hand.wind, hand.dealer


def lead(engine, events, seen):
    """Lead the engine through the events of a hand; `seen`: the seats whose riichi it sees."""
    declared, shown, phase_of, table = None, 1, engine.get_phase, engine.table
    i = None
    try:
        for i, (op, seat, what) in enumerate(events):
            if op == DRAW:
                if phase_of() != seat:
                    raise Unencodable(f"draw by seat {seat} out of turn")
            elif op == DISCARD:
                act = Act.Riichi if declared == seat and seat in seen else Act.Discard
                select(engine, seat, act, [what], tile.DISCARD_OF[what])
                declared = None
                if table.n_active_dora != shown:
                    raise Unencodable("engine and log disagree on the dora indicators")
                answer(engine, events, i, seat, what, RESPONSE)
            elif op == DECLARE:
                declared = seat
            elif op == RIICHI and seat not in seen:
                player = table.players[seat]
                if not (player.menzen and player.is_tenpai()):
                    raise Unencodable(f"engine refuses riichi by seat {seat}")
            elif op == DORA:
                shown += 1
            elif op == CALL and what.type in (KAKAN, ANKAN):
                select(engine, seat, ACTS[what.type], list(what.own), NAMES[what.type])
                answer(engine, events, i, seat, what.own[0], ROB_ADDED if what.type == KAKAN else ROB_CLOSED)
            elif op == WIN and what.loser == seat:
                select(engine, seat, Act.Tsumo, [], "tsumo")
            elif op == ABORT and what == "yao9":
                select(engine, phase_of(), Act.Kyushukyuhai, [], "nine terminals")
    except Unencodable as error:
        error.event = i
        raise


def answer(engine, events, i, actor, offered, base):
    """All four seats answer event `i`, in which `actor` offers a tile; `base` is the phase of seat 0's answer."""
    if engine.get_phase() != base:
        raise Unencodable("engine and log disagree on whose turn it is")
    j = answers.answer_to(events, i)
    takers = answers.takers(events, j, actor, offered) if events[j][0] != DRAW else {}
    for seat in SEATS:
        if seat not in takers:
            engine.make_selection(0)
        elif takers[seat]:
            meld = takers[seat]
            select(engine, seat, ACTS[meld.type], list(meld.own), NAMES[meld.type])
        else:
            select(engine, seat, RONS[base], [], "ron")


def select(engine, seat, act, tiles, what):
    if not engine.make_selection_from_action(act, tiles):
        raise Unencodable(f"engine refuses {what} by seat {seat}")
