"""Why games fail: every reason that can stand as `error` in a `failed` event, what it means, what becomes of the game.

The README shows this table, the report and the status count by it, and a test holds it against the code.
"""

import functools
import re

_AGAIN = "asked again by the next run"
_BYTES = "a whole log in its place is taken by the next run"
_CONTRADICTION = "the log contradicts itself; " + _BYTES
_REPORT = "please report it with the id"
_RULES = "the log is sound, its rules are not encoded"

# reason, … standing for anything -> (stage, what it means and what to do)
REASONS = {
    "HTTP 403": ("download", "the server refuses it; asked again after a week"),
    "HTTP 404": ("download", "the server has no such log; asked again after a week"),
    "HTTP 429 too many requests": ("download", f"the server asks us to slow down; {_AGAIN}"),
    "HTTP …": ("download", f"another answer that is no log; {_AGAIN}"),
    "timed out…": ("download", f"no answer within TIMEOUT seconds; {_AGAIN}"),
    "too slow: …": ("download", f"an answer that drips, not whole after four times TIMEOUT; {_AGAIN}"),
    "connection reset": ("download", f"the server hung up; {_AGAIN}"),
    "connection refused": ("download", f"no server listens there; {_AGAIN}"),
    "no such host, or no network": ("download", f"see to the network, or to TENHOU_URL; {_AGAIN}"),
    "its certificate cannot be verified": ("download", f"see to the clock and the certificates here; {_AGAIN}"),
    "no connection: …": ("download", f"what the network says; {_AGAIN}"),
    "no usable answer: …": ("download", f"what the HTTP library says; {_AGAIN}"),
    "too many redirects": ("download", f"the server sends us in circles; {_AGAIN}"),
    "short body: …": ("download", f"less came than was announced; {_AGAIN}"),
    "empty body": ("download", f"nothing came; {_AGAIN}"),
    "body of …": ("download", f"far more came than a log has; {_AGAIN}"),
    "HTML page instead of a log": ("download", f"often a notice of the server: look at it; {_AGAIN}"),
    "not a whole log: …": ("download", f"no paipu, or a part of one; {_AGAIN}"),
    "unsupported: three players": ("encode", _RULES),
    "unsupported: no red fives": ("encode", _RULES),
    "unsupported: no open tanyao": ("encode", _RULES),
    "unsupported: custom rules": ("encode", _RULES),
    "incomplete: …": ("encode", f"the game was not played, or not logged, to its end; {_BYTES}"),
    "truncated …": ("encode", f"the file ends too early; {_BYTES}"),
    "not a log: …": ("encode", f"the file is something else; {_BYTES}"),
    "unknown tag …": ("encode", f"no tag of a paipu that is known; {_BYTES}"),
    "no numbers in attribute …": ("encode", f"a tag is damaged; {_BYTES}"),
    "attribute … out of range": ("encode", f"a tag is damaged; {_BYTES}"),
    "call … is none": ("encode", f"a number that stands for no chi, pon or kan; {_BYTES}"),
    "RYUUKYOKU of an unknown type": ("encode", f"a draw that the rules do not know; {_BYTES}"),
    "goes on after its end": ("encode", _CONTRADICTION),
    "… out of turn": ("encode", _CONTRADICTION),
    "… of another tile": ("encode", _CONTRADICTION),
    "… without its pon": ("encode", _CONTRADICTION),
    "… is never paid": ("encode", _CONTRADICTION),
    "… does not have the … that leaves its hand": ("encode", _CONTRADICTION),
    "tile … shows twice": ("encode", _CONTRADICTION),
    "more tiles drawn or shown than the wall has": ("encode", _CONTRADICTION),
    "final points do not follow …": ("encode", _CONTRADICTION),
    "the next INIT does not follow …": ("encode", "the log skips a hand, or counts otherwise than the engine"),
    "… dora indicators after … kans": ("encode", _CONTRADICTION),
    "the rules do not allow …": ("encode", f"Tenhou's rules do not know this move, or we are wrong; {_REPORT}"),
    "engine refuses …": ("encode", f"our rules allow the move and the engine does not: one is wrong; {_REPORT}"),
    "engine and log disagree on …": ("encode", f"the engine comes to another result than the log; {_REPORT}"),
    "engine fails: …": ("encode", f"what the engine says; {_REPORT}"),
    "a row of more than … tokens": ("encode", f"the schema has no room for it; {_REPORT}"),
    "the encoder died on it (…)": ("encode", f"twice: no memory, no end, or a fault of the engine; {_REPORT}"),
}


@functools.cache
def _patterns():
    return {reason: re.compile(".*".join(map(re.escape, reason.split("…"))), re.S) for reason in REASONS}


def kind(error):
    """The first key of REASONS that fits an event's `error`; what no version of ours wrote is its own kind, without
    numbers."""
    text = bare(error)
    known = (reason for reason, pattern in _patterns().items() if pattern.fullmatch(text))
    return next(known, None) or re.sub("[0-9]+", "…", text)[:100]


def bare(error):
    """An event's `error` without the hand that it names, as "east 2, honba 1" or, in older manifests, as "hand 5"."""
    return re.sub(r"^(?:hand [0-9]+(?: of [0-9]+)?|(?:east|south|west|north) [1-4], honba [0-9]+): ", "", str(error))
