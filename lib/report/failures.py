"""Why games failed, counted, in one line."""

import collections
import re

from . import reasons

_MOST = 5  # reasons that are named


class Failures:
    """Counts errors as `add` is told them. str(): '3 incomplete: no owari, 1 unsupported: three players'."""

    def __init__(self):
        self._counts, self._texts = collections.Counter(), {}

    def add(self, error):
        """Count a game that failed for this reason, as it stands in `error` of its event."""
        kind, text = reasons.kind(error), reasons.bare(error)
        self._counts[kind] += 1
        if self._texts.setdefault(kind, text) != text or re.search("[0-9]", text):
            self._texts[kind] = kind  # with … in the place of what differs

    def __str__(self):
        """The most frequent reasons come first."""
        named = self._counts.most_common(_MOST)
        rest = self._counts.total() - sum(n for _, n in named)
        return ", ".join([f"{n} {self._texts[kind]}" for kind, n in named] + [f"{rest} for other reasons"] * bool(rest))
