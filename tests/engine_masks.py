"""What the engine allows at each decision of a hand, and what our rules do: two lists to be held against each other."""

import MahjongPyWrapper as pm

from lib.mahjong import action, judge, legality
from lib.mahjong.answers import has_red
from lib.mahjong.tile import FACE
from lib.rows import decisions

Act = pm.BaseAction
PLAIN = {
    Act.AnKan: action.ANKAN, Act.KaKan: action.KAKAN, Act.Tsumo: action.TSUMO, Act.Kan: action.MINKAN,
    Act.Kyushukyuhai: action.NINE_TERMINALS, Act.Pass: action.PASS,
    **dict.fromkeys((Act.Ron, Act.ChanKan, Act.ChanAnKan), action.RON),
}  # fmt: skip


def numbers(actions, offered):
    """The numbers of the engine's actions, and the tiles with which riichi may be said."""
    found, riichi = set(), set()
    for it in actions:
        own = [t.id for t in it.correspond_tiles]
        if it.action == Act.Riichi:
            riichi.add(FACE[own[0]])
        elif it.action == Act.Discard:
            found.add(FACE[own[0]])
        elif it.action == Act.Pon:
            found.add(action.PON_RED if has_red(own) else action.PON)
        elif it.action == Act.Chi:
            place = (own[0] < offered) + (own[1] < offered)
            found.add(place + (action.CHI_RED if has_red(own) else action.CHI))
        else:
            found.add(PLAIN[it.action])
    return found, riichi


class Asked:
    """An engine that notes, before each selection that is a choice, (seat, legal actions, tiles for riichi)."""

    def __init__(self):
        self._engine, self.notes, self.offered = pm.PaipuReplayer(), [], None

    def _note(self):
        phase = self._engine.get_phase()
        actions = self._engine.get_self_actions() if phase < 4 else self._engine.get_response_actions()
        found, riichi = numbers(actions, self.offered)
        if found != {action.PASS}:
            self.notes.append((phase % 4, found, riichi))

    def make_selection(self, i):
        self._note()
        self._engine.make_selection(i)

    def make_selection_from_action(self, act, tiles):
        self._note()
        if act in (Act.Discard, Act.Riichi, Act.AnKan, Act.KaKan):
            self.offered = tiles[0]
        return self._engine.make_selection_from_action(act, tiles)

    def __getattr__(self, name):
        return getattr(self._engine, name)


def of_engine(hand):
    """The decisions of a Hand as the engine sees them, in order: (seat, legal actions, tiles for riichi)."""
    engine = Asked()
    engine.init(*judge.setup(hand, hand.points))
    judge.lead(engine, hand.events, judge.SEATS)
    return engine.notes


def of_rules(hand, monkeypatch):
    """The same as our rules have them, and whether the engine may be expected to allow more: [(…), …], [set, …].

    What more: the ron of a seat that has thrown a tile that it waits for, kans with no tile left to draw, and a win by
    tsumo on a called tile.
    """
    notes, more = [], []

    def bits(mask):
        return {number for number, legal in enumerate(mask) if legal}

    def turn(name):
        real = getattr(legality, name)

        def noted(table, seat, *args):
            mask = real(table, seat, *args)
            tiles = [t for t in range(136) if mask[FACE[t]] and name == "own_turn"
                     and legality.may_say_riichi(table, seat, t)]
            notes.append((seat, bits(mask), {FACE[t] for t in tiles}))
            more.append(({action.ANKAN, action.KAKAN} if not table.left else set())
                        | ({action.TSUMO} if name == "after_call" else set()))
            return mask

        monkeypatch.setattr(legality, name, noted)

    def reply(name):
        real = getattr(legality, name)

        def noted(table, actor, tile, *args):
            found = dict(real(table, actor, tile, *args))
            kind = tile // 4
            for seat in range(4):
                furiten = table.waits[seat] >> kind & 1 and table.thrown[seat] & table.waits[seat]
                if seat != actor and (seat in found or furiten):
                    mask = found.get(seat, legality.NO_CALLS)
                    notes.append((seat, bits(mask) or {action.PASS}, set()))
                    more.append({action.RON} if furiten else set())
            return list(found.items())

        monkeypatch.setattr(legality, name, noted)

    turn("own_turn")
    turn("after_call")
    reply("answers")
    reply("robbers")
    decisions.decisions(hand)
    return notes, more
