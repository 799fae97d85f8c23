"""One hand of self-play. The engine decides what is legal and who gets which points; this module writes the log.

The engine allows more than Tenhou's rules in a few places (see lib.mahjong.judge). There the player is not asked.
"""

import MahjongPyWrapper as pm

from ..mahjong import game, legality, meld
from ..mahjong.table import Table
from ..mahjong.wall import INDICATORS, REPLACEMENTS, URA
from . import mjlog_writer as log
from .players import discard, tiles_of
from .rigged_walls import dealt_places

A, End = pm.BaseAction, pm.ResultType
GAME_OVER = 16
RYUUKYOKU = {
    End.NoTileRyuuKyoku: None, End.NagashiMangan: "nm", End.Ryukyouku_Interval_9Hai: "yao9",
    End.Ryukyouku_Interval_4Riichi: "reach4", End.Ryukyouku_Interval_3Ron: "ron3",
    End.Ryukyouku_Interval_4Kan: "kan4", End.Ryukyouku_Interval_4Wind: "kaze4",
}  # fmt: skip
KANS = (A.AnKan, A.KaKan)
WINS = (A.Ron, A.ChanKan, A.ChanAnKan)


class PlayedHand:
    """A hand being played. `wall` 136 tiles, `kyoku` 0-11, `points` of the four seats, `players` one Player a seat,
    `line` the connection (see Line). `play` fills `tags` and leaves the ends in `ends`, as attributes of AGARI or
    RYUUKYOKU; `points` and `sticks` are then those after the hand.
    """

    def __init__(self, wall, kyoku, honba, sticks, points, players, line, dice):
        self.wall, self.honba, self.sticks = wall, honba, sticks
        self.points, self.players, self.line = list(points), players, line
        self.oya = kyoku % 4
        self.engine = pm.PaipuReplayer()
        self.engine.init(wall, points, sticks, honba, kyoku // 4, self.oya)
        self.table = self.engine.table
        self.melds = [[], [], [], []]  # m codes, oldest first
        self.left = len(wall) - 52  # the next draw stands just before this place
        self.kans, self.shown = 0, 1
        self.pending = 0  # indicators to turn with the next discard or kan
        self.draws = True  # does the next own turn begin with a draw,
        self.replacement = False  # and from the dead wall?
        self.ends = []
        seed = [kyoku, honba, sticks, *dice, wall[INDICATORS[0]]]
        init = {f"hai{s}": [wall[i] for i in dealt_places((s - self.oya) % 4)] for s in range(4)}
        self.tags = [log.tag("INIT", seed=seed, ten=log.hundreds(points), oya=self.oya, **init)]
        dealt = [init[f"hai{seat}"] for seat in range(4)]
        self.rules = Table(game.Hand(kyoku // 4, self.oya, honba, sticks, seed[5], points, dealt, (), [], ()))

    def concealed(self, seat):
        """Tiles in the hand of a seat, the drawn one last."""
        return [t.id for t in self.table.players[seat].hand]

    def play(self):
        """Play to the end. Returns the engine's result; RuntimeError when the log's points are not the engine's."""
        while (phase := self.engine.get_phase()) != GAME_OVER:
            if phase < 4:
                self._own_turn(phase)
            else:
                self._answers()
        result = self.engine.get_result()
        if result.result_type in RYUUKYOKU:
            self._ryuukyoku(result)
        else:
            self._agari(result)
        if self.points != list(result.score):
            raise RuntimeError(f"points {self.points} are not the engine's {list(result.score)}")
        return result

    def _turn_indicators(self, count):
        for _ in range(count):
            self.tags.append(log.tag("DORA", hai=self.wall[INDICATORS[self.shown]]))
            self.shown += 1

    def _draw(self, seat):
        self.left -= not self.replacement
        self.tile = self.wall[REPLACEMENTS[self.kans - 1] if self.replacement else self.left]
        self.draws = self.replacement = False
        self.rules.draw(seat, self.tile)
        self.tags.append(f"<{'TUVW'[seat]}{self.tile}/>")

    def _own_turn(self, seat):
        if self.draws:
            self.tags += self.line.back()
            self._draw(seat)
        self.tags += self.line.lost()
        actions, hand = self.engine.get_self_actions(), self.concealed(seat)
        barred = [A.Tsumo] * (self.rules.drawn[seat] is None) + [*KANS] * (not self.rules.left)
        choose = discard if seat in self.line.away else self.players[seat].own_turn
        index = self._choice(actions, barred, choose, hand)
        action, tiles = actions[index].action, tiles_of(actions[index])
        self.turn, self.riichi = seat, action == A.Riichi
        if self.riichi:
            self.tags.append(log.tag("REACH", who=seat, step=1))
        if action in (A.Discard, A.Riichi):
            self._turn_indicators(self.pending)
            self.pending = 0
            self.tags.append(f"<{'DEFG'[seat]}{tiles[0]}/>")
            self.tile, self.draws = tiles[0], True
            self.rules.discard(seat, self.tile)
        elif action == A.AnKan:
            self._kan(seat, log.kan_code(tiles[0] // 4 * 4), closed=True)
            self.players[seat].melds.append([tiles[0] // 4])
        elif action == A.KaKan:
            self._kan(seat, log.added_code(self.melds[seat], tiles[0]))
        if action in KANS:
            self.tile = tiles[0]
        self.engine.make_selection(index)

    @staticmethod
    def _choice(actions, barred, choose, *args):
        """The index of the action that `choose` takes, of those that are not of a barred kind."""
        offered = [i for i, action in enumerate(actions) if action.action not in barred]
        return offered[choose([actions[i] for i in offered], *args)]

    def _kan(self, seat, code, closed=False):
        self._meld(seat, code)
        self._turn_indicators(self.pending + closed)
        self.pending = int(not closed)
        self.kans += 1
        self.draws = self.replacement = True

    def _meld(self, seat, code):
        self.melds[seat] = [m for m in self.melds[seat] if not log.grows(m, code)] + [code]
        self.tags.append(log.tag("N", who=seat, m=code))
        self.rules.call(seat, meld.decode(code))

    def _answers(self):
        self.tags += self.line.lost()
        answers = []
        for seat in range(4):
            actions = self.engine.get_response_actions()
            index = 0
            if len(actions) > 1 and seat not in self.line.away:
                barred = WINS if legality.is_furiten(self.rules, seat) else ()
                index = self._choice(actions, barred, self.players[seat].answer, self.concealed(seat), self.tile)
            answers.append((actions[index].action, seat, tiles_of(actions[index])))
            self.engine.make_selection(index)
        if any(action in WINS for action, _, _ in answers):
            return
        self.rules.pass_up(self.turn, self.tile // 4)
        if self.riichi:
            self.riichi = False
            self.rules.accept(self.turn)
            self.points[self.turn] -= 1000
            self.sticks += 1
            self.tags.append(log.tag("REACH", who=self.turn, ten=log.hundreds(self.points), step=2))
        order = [A.Pass, A.Chi, A.Pon, A.Kan]
        action, seat, own = max(answers, key=lambda answer: order.index(answer[0]))
        if action == A.Pass:
            return
        source = (self.turn - seat) % 4
        self.players[seat].melds.append(sorted(t // 4 for t in [*own, self.tile]))
        if action == A.Kan:
            self._kan(seat, log.kan_code(self.tile, source))
        else:
            self.draws = False
            code = log.chi_code if action == A.Chi else log.pon_code
            self._meld(seat, code(self.tile, own, source))

    def _sc(self, after):
        pairs = zip(log.hundreds(self.points), log.hundreds(after), strict=True)
        return [x for before, then in pairs for x in (before, then - before)]

    def _ryuukyoku(self, result):
        kind, others = RYUUKYOKU[result.result_type], [s for s in range(4) if s != self.turn]
        tenpai = [s for s in range(4) if self.table.players[s].is_tenpai()]
        shown = {None: tenpai, "nm": tenpai, "yao9": [self.turn], "reach4": range(4), "ron3": others}.get(kind, ())
        after = list(result.score)
        hais = {f"hai{s}": sorted(self.concealed(s)) for s in shown}
        self.ends.append({"type": kind, "ba": [self.honba, self.sticks], "sc": self._sc(after), **hais})
        self.points = after

    def _agari(self, result):
        tsumo = result.result_type == End.TsumoAgari
        winners = [self.turn] if tsumo else sorted(result.winner, key=lambda seat: (seat - self.turn) % 4)
        bonus = self.honba
        for who in winners:
            counter, after = result.results[who], list(self.points)
            for seat in set(range(4)) - {who} if tsumo else [self.turn]:
                dealer = self.oya in (seat, who)
                pay = counter.score1 if dealer or not tsumo else counter.score2
                pay += bonus * (100 if tsumo else 300)
                after[seat] -= pay
                after[who] += pay
            ten = after[who] - self.points[who] - 300 * bonus
            after[who] += 1000 * self.sticks
            self.ends.append(self._win(who, counter, ten, after))
            self.points, self.sticks, bonus = after, 0, 0

    def _win(self, who, counter, ten, after):
        player, active = self.table.players[who], self.table.n_active_dora
        if active != self.shown:
            raise RuntimeError(f"{self.shown} indicators in the log, {active} on the table")
        names = [y.name for y in counter.yakus]
        yaku, yakuman = log.yaku(names, player.riichi)
        return {
            "ba": [self.honba, self.sticks],
            "hai": sorted({*self.concealed(who), self.tile}),
            "m": self.melds[who][::-1] or None,
            "machi": self.tile,
            "ten": [counter.fu, ten, log.level(counter.fan, counter.fu, yakuman)],
            "yaku": yaku,
            "yakuman": yakuman,
            "doraHai": [self.wall[i] for i in INDICATORS[:active]],
            "doraHaiUra": [self.wall[i] for i in URA[:active]] if player.riichi else None,
            "who": who,
            "fromWho": self.turn,
            "sc": self._sc(after),
        }
