"""The report as a page: picks the figures and plots of what was found, and puts them into one file without network."""

import collections
import re

import numpy as np

from ..cli import units
from ..mahjong import table_type
from ..mahjong.action import CHI
from ..rows import notation
from ..store import locks, wording
from ..train.sample import DELTA_EDGES, FINAL_EDGES
from . import elements as el
from . import overview, plots, reasons
from .played_games import by_month_and_type, steps

_NOTE = 1000  # characters: a command to paste has to be whole, however long its paths are
_TYPES = 7  # table types that have a colour of their own
_BIN = 5  # tokens
_IDS = 10  # games that are named of those that failed for one reason


def build(found, events, rows):
    """The page (text) of what `overview`, a History and `sample` found; rows: the latter, or why there is none."""
    return el.document(f"Report of {found['work']}", [
        f"<h1>Tenhou paipu in {el.text(found['work'])}</h1>",
        f"<p>as of {el.utc(found['time'])}; all times are UTC</p>", _key_figures(found),
        "<h2>Where the games are</h2>", el.grid(_statuses(found), _shards(found), _disk(found)),
        "<h2>What happened when</h2>", *_timeline(events),
        "<h2>Why games failed</h2>", _failures(events.latest),
        "<h2>When and where the encoded games were played</h2>", *_played(events.latest),
        "<h2>What the rows are like</h2>", *_rows(rows, found),
    ])


def _key_figures(found):
    def left(kind):
        count, _, more = overview.left(found[kind], kind).partition(", ")
        return el.number(int(count)), more.partition(" (")[0], more.partition(" (")[2].removesuffix(")")

    status, off = found["statuses"].get, found["put_off"]["games"]
    again = f"{off:,} to be asked for again ({overview.put_off(found)})" if off else ""
    at_work = (locks.described(found["run"]) or "a run is at work") if found["at_work"] else "no run is at work"
    day, _, time = el.utc(found["last_event"] or "none").partition(" ")
    how = [overview.how_to(found)] if found["lists"] else []
    figures = [("games on record", el.number(found["games"]), "", ""),
               ("encoded", el.number(status("encoded", 0)), "", ""),
               ("failed", el.number(status("failed", 0)), again, ""),
               ("live rows", el.number(found["rows"]), "", ""),
               ("disk use", units.size(sum(found["disk"].values())), f"{units.size(found['free'])} free", ""),
               ("left to download", *left("downloads"), *how), ("left to encode", *left("encodes")),
               ("last event", day, time, at_work)]  # eight: full rows of two, four and eight
    cards = []
    for name, value, *notes in figures:
        more = "".join(f"<small>{el.text(note, _NOTE)}</small>" for note in notes if note)
        cards.append(f"<div><dt>{name}</dt><dd>{el.text(value)}{more}</dd></div>")
    return f"<dl>{''.join(cards)}</dl>"


def _statuses(found):
    return el.figure("Games by status", el.table(list(found["statuses"].items()), bars=True))


def _shards(found):
    rows = [(f"shards, {layout}", n) for layout, n in found["shards"].items()] or [("shards", 0)]
    rows += [(name.replace("_", " "), found[name]) for name in ("stale_rows", "shard_mismatches", "orphan_shards")]
    return el.figure("Shards", el.table(rows))


def _disk(found):
    rows = [(name, units.size(n)) for name, n in found["disk"].items()]
    return el.figure("Disk use", el.table([*rows, ("free", units.size(found["free"]))]))


def _timeline(events):
    unit, times, counts, untimed = events.timeline()
    if untimed:
        yield f"<p>{untimed} events without a sound time are left out.</p>"
    figures = []
    for kind, title, colour in (("downloads", "Downloads and adoptions", 0), ("encodes", "Encodes", 2),
                                ("failures", "Failures", 3)):
        any_there = any(counts[kind])
        also = "; includes games that succeeded later" if kind == "failures" else ""
        numbers = [(f"{time:%Y-%m-%d %H:%M}", n) for time, n in zip(times, counts[kind], strict=True) if n]
        figures.append(el.figure(title, any_there and plots.timeline(unit, times, counts[kind], colour),
                                 f"per {unit} (UTC){also}" if any_there else "", numbers, ("UTC", "games")))
    yield el.grid(*figures)


def _failures(latest):
    counts, last = collections.Counter(), {}
    for game, record in latest.items():
        if record.get("status") == "failed":
            kind = reasons.kind(record.get("error"))
            counts[kind] += 1
            last.setdefault(kind, collections.deque(maxlen=_IDS)).append((game, record))
    if not counts:
        return "<p>No game has failed.</p>"
    lines, most = [], max(counts.values())
    for kind, n in counts.most_common():
        (game, record), *others = reversed(last[kind])
        meaning = "; ".join(filter(None, reasons.explain(kind))).replace("`", "")
        shown = f"the last {len(others) + 1} of {n:,}" if len(others) + 1 < n else f"{len(others)} more"
        more = el.folded(shown, f"<small>{' '.join(el.link(other) for other, _ in others)}</small>")
        error = el.text(_without_tuples(record.get("error")))
        named = f"{el.text(reasons.in_group(kind))}<small>{el.text(record.get('stage'))}: {el.text(meaning)}</small>"
        lines.append(f"<tr><td>{named}</td>"
                     f'<td class="n">{n:,}</td><td class="bar"><i style="width: {100 * n / most:.1f}%"></i></td>'
                     f'<td class="games">{error}<small>{el.link(game)}</small>{more if others else ""}</td></tr>')
    return ('<figure><table class="failures"><tr><th>reason</th><th class="n">games</th><th class="bar"></th>'
            f'<th class="games">the last of them</th></tr>{"".join(lines)}</table></figure>')


def _without_tuples(error):
    """An error whose lists of numbers, as older versions wrote them, (1, 2) or [1, 2], are told without brackets."""
    return re.sub(r"[\[(](-?[0-9]+(?:, -?[0-9]+)+)[\])]", lambda found: found[1].replace(",", ""), str(error))


def _played(latest):
    found = by_month_and_type(latest)
    names = steps({month for month, _ in found})
    types, summed = collections.defaultdict(lambda: [0, 0]), collections.defaultdict(lambda: [0, 0])
    for (month, code), counts in found.items():
        for i, n in enumerate(counts):
            types[code][i] += n
            summed[month[:len(names[0])], code][i] += n
    ranked = sorted(types, key=lambda code: types[code], reverse=True)
    groups = [(f"{code} {table_type.name(code)}", [code]) for code in ranked[:_TYPES]]
    if ranked[_TYPES:]:
        groups.append(("others", ranked[_TYPES:]))
    figures = []
    for i, title in enumerate(("Games", "Rows")):
        parts = [(label, [sum(summed[name, code][i] for code in codes) for name in names]) for label, codes in groups]
        sums = [sum(column) for column in zip(*(counts for _, counts in parts), strict=True)]
        unit = "year" if names and len(names[0]) == 4 else "month"
        figures.append(el.figure(f"{title} by {unit} of play", names and plots.stacked(names, parts),
                                 "by table type; the days are Japan's", list(zip(names, sums, strict=True))))
    head, rows = ("", "games", "rows", "rows a game"), {}
    for label, codes in [*groups, *((f"{code} {table_type.name(code)}", [code]) for code in ranked[_TYPES:])]:
        games, n = (sum(types[code][i] for code in codes) for i in (0, 1))
        rows[label] = label, games, n, round(n / games)
    rows = list(rows.values())
    table = rows and el.table(rows[:_TYPES + 1], head)
    yield el.grid(*figures, el.figure("Table types", table, "", rows[_TYPES + 1:], head))


def _rows(rows, found):
    if isinstance(rows, str) or not rows["of"]:
        yield f"<p>{el.text(rows) if isinstance(rows, str) else 'nothing yet'}</p>"
        return
    part = f"All {rows['of']:,}" if rows["rows"] == rows["of"] else (
        f"A sample, evenly spread: {rows['rows']:,} of {rows['of']:,}")
    if rows["of"] == found["rows"]:
        yield f"<p>{part} live rows.</p>"
    else:  # a run has gone on since it was written, or was interrupted before it wrote it again
        yield (f"<p>{part} rows that cache/index.json lists; {found['rows']:,} are live. To bring it up to date: "
               f"{el.text(wording.make(found['work'], 'rebuild-index'))}</p>")
    yield from (f"<p>Left out, could not be read: {el.text(text)}</p>" for text in rows["damaged"])
    if not rows["rows"]:
        return
    actions, legal = rows["actions"].tolist(), rows["legal"].tolist()
    kinds = [("discard", sum(actions[:CHI])), *zip(notation.ACTIONS[CHI:], actions[CHI:], strict=True)]
    tokens, n = rows["tokens"], rows["rows"]
    seen = np.flatnonzero(tokens)
    low, high, mean = int(seen[0]), int(seen[-1]), float((tokens * np.arange(len(tokens))).sum() / n)
    binned = np.add.reduceat(tokens, range(0, len(tokens), _BIN)).tolist()
    numbers = [row for row in zip(notation.ACTIONS, actions, legal, strict=True) if row[2]]
    yield el.grid(
        el.figure("Actions", plots.ranking(*zip(*kinds, strict=True), 0), "rows; the scale goes in powers of ten",
                numbers, ("", "taken", "legal")),
        el.figure("Discards by tile", plots.columns(notation.ACTIONS[:CHI], actions[:CHI], 2, every=3),
                "rows; 0m 0p 0s are the red fives"),
        el.figure("Tokens a row", plots.histogram(
            np.arange(0, len(tokens) + _BIN, _BIN), binned, 4, "tokens", (low, high + 1)),
            f"rows; {low} to {high}, {mean:.0f} on average; a row has room for {len(tokens) - 1}"),
        el.figure("Rows by the final place of their player", plots.columns(
            ["1st", "2nd", "3rd", "4th"], rows["places"].tolist(), 1), "rows"),
        el.figure("Points at the end of the game", plots.outlines(
            FINAL_EDGES, list(zip(("1st", "2nd", "3rd", "4th"), rows["finals"].tolist(), strict=True)), "points"),
            "players by their place; what is beyond the ends is in the last steps"),
        el.figure("Points won or lost in the hand", plots.histogram(DELTA_EDGES, rows["deltas"].tolist(), 3, "points"),
                f"rows; in {100 * rows['won'] / n:.0f} % the player won points; what is beyond the ends is in the last "
                "steps"))
