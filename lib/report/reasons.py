"""Why games fail: the reasons that can stand as `error` in a `failed` event, in groups by what becomes of the game.

The README shows the groups; the report and the status count by reason; a test holds the reasons against the code.
"""

import functools
import re

# the name of a group -> (stage, what happened, what becomes of the game)
GROUPS = {
    "refused": ("download", "Tenhou refuses this log or does not have it",
                "the first run after a week asks again; `RETRY=1` asks now"),
    "server trouble": ("download", "the server is overloaded or has a fault of its own",
                       "the next run asks again; after a second refusal, not before the next day"),
    "network": ("download", "the connection failed, or was too slow", "the next run asks again"),
    "not a whole log": ("download", "what came is a web page, or only a part of a log", "the next run asks again"),
    "unsupported": ("encode", "the log is sound, but we do not encode games with these rules",
                    "the log stays in `xml/`; there is nothing to do"),
    "incomplete": ("encode", "the file is not a log, or the game in it has no end",
                   "put a whole log in its place, and the next run takes it"),
    "damaged": ("encode", "something in the log cannot be true",
                "put a sound log in its place, and the next run takes it"),
    "doubtful": ("encode", "our rules and the engine disagree, or one of them has a bug",
                 "please report it with the game id"),
}

# reason, … standing for anything -> the name of its group
REASONS = {
    "HTTP 403": "refused",
    "HTTP 404": "refused",
    "HTTP 429…": "server trouble",
    "HTTP …": "server trouble",
    "too many redirects": "server trouble",
    "timed out…": "network",
    "too slow: …": "network",
    "connection reset": "network",
    "connection refused": "network",
    "no such host, or no network": "network",
    "its certificate cannot be verified": "network",
    "no connection: …": "network",
    "no usable answer: …": "network",
    "short body: …": "not a whole log",
    "empty body": "not a whole log",
    "body of …": "not a whole log",
    "HTML page instead of a log": "not a whole log",
    "not a whole log: …": "not a whole log",
    "unsupported: three players": "unsupported",
    "unsupported: no red fives": "unsupported",
    "unsupported: no open tanyao": "unsupported",
    "unsupported: custom rules": "unsupported",
    "incomplete: no owari": "incomplete",
    "incomplete: …": "incomplete",
    "truncated …": "incomplete",
    "not a log: …": "incomplete",
    "unknown tag …": "damaged",
    "no numbers in attribute …": "damaged",
    "attribute … out of range": "damaged",
    "call … is none": "damaged",
    "RYUUKYOKU of an unknown type": "damaged",
    "goes on after its end": "damaged",
    "… out of turn": "damaged",
    "… of another tile": "damaged",
    "… without its pon": "damaged",
    "… is never paid": "damaged",
    "… does not have the … that leaves its hand": "damaged",
    "tile … shows twice": "damaged",
    "more tiles drawn or shown than the wall has": "damaged",
    "final points do not follow …": "damaged",
    "the next INIT does not follow …": "damaged",
    "… dora indicators after … kans": "damaged",
    "the rules do not allow …": "doubtful",
    "engine refuses …": "doubtful",
    "engine and log disagree on …": "doubtful",
    "engine fails: …": "doubtful",
    "a row of more than … tokens": "doubtful",
    "the encoder died on it (…)": "doubtful",
}
_STATUS = re.compile("HTTP [0-9]{3}")


@functools.cache
def _patterns():
    return {reason: re.compile(".*".join(map(re.escape, reason.split("…"))), re.S) for reason in REASONS}


def kind(error):
    """The first key of REASONS that fits an event's `error`, or an HTTP status with its number; what no version of ours
    wrote is its own kind, without numbers."""
    text = bare(error)
    if _STATUS.fullmatch(text):
        return text
    known = (reason for reason, pattern in _patterns().items() if pattern.fullmatch(text))
    return next(known, None) or re.sub("[0-9]+", "…", text)[:100]


def bare(error):
    """An event's `error` without the hand that it names, as "east 2, honba 1" or, in older manifests, as "hand 5"."""
    return re.sub(r"^(?:hand [0-9]+(?: of [0-9]+)?|(?:east|south|west|north) [1-4], honba [0-9]+): ", "", str(error))


def explain(reason):
    """(what happened, what becomes of the game), for a key of REASONS or any other kind."""
    group = _group(reason)
    return GROUPS[group][1:] if group else ("this version does not give this reason", "")


def in_group(reason):
    """A reason with the name of its group before it, unless it begins with that."""
    group = _group(reason)
    return reason if not group or reason.startswith(group) else f"{group}: {reason}"


def _group(reason):
    return REASONS.get(reason) or (REASONS["HTTP …"] if _STATUS.fullmatch(reason) else "")
