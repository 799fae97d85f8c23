"""A simple player for self-play. It goes for the quickest hand, and calls if it sees a yaku.

A choice is an index into the engine's list of legal actions, so a player can only do what is legal.
"""

import MahjongPyWrapper as pm

from ..mahjong.shanten import TERMINALS, shanten
from ..mahjong.tile import RED

A = pm.BaseAction


def kinds(tiles):
    """Tile numbers -> list of 34 counts."""
    counts = [0] * 34
    for tile in tiles:
        counts[tile // 4] += 1
    return counts


def tiles_of(action):
    """Tile numbers that an engine's action names."""
    return [t.id for t in action.correspond_tiles]


def group(actions):
    """Kind of action -> indices of the actions of that kind."""
    found = {}
    for i, action in enumerate(actions):
        found.setdefault(action.action, []).append(i)
    return found


def discard(actions, hand):
    """Index of the discard of the tile just drawn or, if that is not allowed, of the nearest tile that may be
    discarded. Tenhou's server does the same for a player who is away."""
    choices = group(actions)[A.Discard]
    return max(choices, key=lambda i: hand.index(tiles_of(actions[i])[0]))


class Player:
    """One seat of one hand. rng: the game's random.Random; eager: how often the player considers a call, 0 to 1;
    values: the kinds that are a yaku as a triplet. script: a list of pairs (action, kind or None); as long as there is
    one, the player waits until its next action is possible, and until then calls nothing and discards what it draws.
    """

    def __init__(self, rng, eager, values, script=()):
        self.rng, self.eager, self.values, self.script = rng, eager, values, list(script)
        self.melds = []  # the kinds of each meld

    def own_turn(self, actions, hand):
        """Index of the action to take after a draw or a call; `hand` holds the concealed tiles."""
        if self.script:
            return self._scripted(actions, discard(actions, hand))
        by = group(actions)
        if A.Tsumo in by:
            return by[A.Tsumo][0]
        if A.Kyushukyuhai in by and self.rng.random() < 0.7:
            return by[A.Kyushukyuhai][0]
        for kan in (A.AnKan, A.KaKan):
            if kan in by and self.rng.random() < 0.7:
                return by[kan][0]
        if A.Riichi in by and self.rng.random() < 0.9:
            return self._best_discard(actions, by[A.Riichi], hand)
        return self._best_discard(actions, by[A.Discard], hand)

    def answer(self, actions, hand, tile):
        """Index of the answer to another player's `tile`. It passes on one ron in fifty, as people do for a better
        place."""
        by = group(actions)
        if self.script:
            return self._scripted(actions, by[A.Pass][0])
        for ron in (A.Ron, A.ChanKan, A.ChanAnKan):
            if ron in by:
                return by[ron][0] if self.rng.random() < 0.98 else by[A.Pass][0]
        calls = [i for call in (A.Kan, A.Pon, A.Chi) for i in by.get(call, ())]
        if calls and self.rng.random() < self.eager:
            before = self._distance(kinds(hand), self.melds)
            for i in calls:
                own = tiles_of(actions[i])
                rest = kinds(t for t in hand if t not in own)
                meld = sorted(t // 4 for t in [*own, tile])
                after = self._distance(rest, [*self.melds, meld], opened=True)
                if after < before or (len(own) == 3 and after == before and self.melds):
                    return i
        return by[A.Pass][0]

    def _scripted(self, actions, otherwise):
        wanted, kind = self.script[0]
        for i, action in enumerate(actions):
            if action.action == wanted and (kind is None or kind in [t // 4 for t in tiles_of(action)]):
                del self.script[0]
                return i
        return otherwise

    def _distance(self, counts, melds, opened=False):
        """Shanten. An open hand without a triplet that is a yaku has to be all simples, so terminals do not count in
        it."""
        if (opened or melds) and not any(m[0] in self.values for m in melds):
            pairs = [k for k in self.values if counts[k] > 1]
            if any(m[0] in TERMINALS or m[-1] in TERMINALS for m in melds):
                return 9 if not pairs else 1 + shanten(counts, len(melds))
            if not any(counts[k] > 2 for k in self.values):
                counts = [0 if k in TERMINALS else n for k, n in enumerate(counts)]
        return shanten(counts, len(melds))

    def _best_discard(self, actions, choices, hand):
        counts = kinds(hand)
        best = {}
        for i in choices:
            tile = tiles_of(actions[i])[0]
            kind = tile // 4
            counts[kind] -= 1
            distance = self._distance(counts, self.melds)
            worth = self._worth(counts, kind) if distance else -self._wait(counts)
            counts[kind] += 1
            best[i] = (distance, worth, tile in RED, tile)
        return min(best, key=best.get)

    def _worth(self, counts, kind):
        """How useful a tile is, by its neighbours in the counts, which do not include the tile itself."""
        if kind >= 27:
            return 6 * counts[kind] + 2 * (kind in self.values)
        number = kind % 9
        near = sum(
            weight * counts[kind + step]
            for step, weight in ((-2, 1), (-1, 3), (1, 3), (2, 1))
            if 0 <= number + step <= 8
        )
        return 4 * counts[kind] + near + min(number, 8 - number, 2)

    def _wait(self, counts):
        """How many tiles that the player does not hold complete a ready hand."""
        total = 0
        for kind in range(34):
            if counts[kind] < 4:
                counts[kind] += 1
                total += (5 - counts[kind]) * (self._distance(counts, self.melds) < 0)
                counts[kind] -= 1
        return total
