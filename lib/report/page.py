"""The report: one page that says how a work directory stands and how it went, in one file that needs no network."""

import collections
from html import escape

import numpy as np

from ..download import wanted
from ..mahjong import table_type
from ..mahjong.action import CHI
from ..rows import notation
from ..store import gid
from ..train.sample import DELTA_EDGES, FINAL_EDGES
from . import overview, plots, reasons
from .played_games import by_month_and_type, months

_TYPES = 7  # table types that have a colour of their own
_BIN = 5  # tokens
_TEXT = 160  # characters of a text from outside
STYLE = """
:root { color-scheme: light dark; --paper: #fff; --card: #f5f7f9; --ink: #1c2126; --soft: #59636e; --grid: #d9dee4;
  --c0: #2f6fb3; --c1: #d27a22; --c2: #2f8f5b; --c3: #b8437f; --c4: #7a5cc0; --c5: #8a6d1f; --c6: #2b8b99;
  --c7: #8b949e }
@media (prefers-color-scheme: dark) { :root { --paper: #14181c; --card: #1d2328; --ink: #e2e7ec; --soft: #9aa5b0;
  --grid: #39424b; --c0: #6aa9ea; --c1: #f0a559; --c2: #5fc48d; --c3: #e583b4; --c4: #ab93ea; --c5: #d1b152;
  --c6: #69c7d4; --c7: #9aa4ae } }
* { box-sizing: border-box }
body { margin: 0 auto; padding: 1rem clamp(.7rem, 3vw, 2rem) 3rem; max-width: 90rem; background: var(--paper);
  color: var(--ink); font: 15px/1.45 system-ui, sans-serif; overflow-wrap: anywhere }
h1 { font-size: 1.4rem; margin: .3rem 0 } h2 { font-size: 1.1rem; margin: 2.2rem 0 .6rem }
p, figcaption small, dt { color: var(--soft); margin: .2rem 0 }
dl, .grid { display: grid; gap: .8rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 23rem), 1fr)) }
dl { grid-template-columns: repeat(auto-fit, minmax(min(100%, 9.4rem), 1fr)) }
dl div, figure { background: var(--card); border-radius: .5rem; padding: .7rem .9rem; margin: 0; min-width: 0 }
dd { margin: 0; font-size: 1.2rem; font-weight: 600; white-space: nowrap }
dd small { font-size: .8rem; font-weight: 400; display: block; white-space: normal }
figcaption { font-weight: 600; margin-bottom: .3rem } figcaption small { display: block; font-weight: 400 }
svg { display: block; width: 100%; height: auto; max-width: 40rem }
table { border-collapse: collapse; width: 100%; font-size: .9rem } th { text-align: left; color: var(--soft) }
th, td { padding: .25rem .5rem .25rem 0; vertical-align: top; border-bottom: 1px solid var(--grid); font-weight: 400 }
.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums } summary { cursor: pointer }
.bar { width: 30% } .bar i { display: block; height: .8em; margin-top: .3em; background: var(--c0); border-radius: 2px }
td small { display: block; color: var(--soft) } a { color: inherit }
@media (max-width: 40rem) { .wide { display: none } }
"""


def build(found, events, rows):
    """The page (text) of what `overview`, a History and `sample` found; rows: the latter, or why there is none."""
    body = [
        f"<h1>Tenhou paipu in {_text(found['work'])}</h1>", f"<p>as of {_text(found['time'])}</p>", _key_figures(found),
        "<h2>Where the games are</h2>", _grid(_statuses(found), _shards(found), _disk(found)),
        "<h2>What happened when</h2>", *_timeline(events),
        "<h2>Why games failed</h2>", _failures(events.latest),
        "<h2>When and where the encoded games were played</h2>", *_played(events.latest),
        "<h2>What the rows are like</h2>", *_rows(rows),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Report of {_text(found['work'])}</title><style>{STYLE}</style></head>\n<body>\n" + "\n".join(body)
        + "\n</body></html>\n")


def _text(thing):
    """Anything as text that can stand in a page, wherever it came from."""
    text = overview.plain(str(thing))
    return escape(text if len(text) <= _TEXT else text[:_TEXT] + "…")


def _link(game):
    """The id of a game, which leads to Tenhou's viewer, if it is one."""
    return f'<a href="{gid.viewer(game)}" rel="noreferrer">{game}</a>' if gid.is_gid(game) else _text(game)


def _number(n):
    return f"{n:,}" if isinstance(n, int) else _text(n)


def _grid(*figures):
    return f'<div class="grid">{"".join(figures)}</div>'


def _figure(title, content, note="", numbers=(), head=()):
    """A figure with its title; without content it says so. numbers, head: a table that can be unfolded."""
    table = f"<details><summary><small>numbers</small></summary>{_table(numbers, head)}</details>" if numbers else ""
    return (f"<figure><figcaption>{_text(title)}<small>{_text(note)}</small></figcaption>"
            f"{content or '<p>nothing yet</p>'}{table if content else ''}</figure>")


def _table(rows, head=(), bars=False):
    """A table of tuples: names, then numbers; bars: with a bar for the first number."""
    most = max((row[1] for row in rows), default=0) if bars else 0
    lines = [f"<tr>{''.join(f'<th{NUMBER if i else str()}>{_text(name)}</th>' for i, name in enumerate(head))}"
             f"{'<th></th>' if bars else ''}</tr>"] if head else []
    for name, *numbers in rows:
        bar = f'<td class="bar"><i style="width: {100 * numbers[0] / most:.1f}%"></i></td>' if most else ""
        cells = "".join(f"<td{NUMBER}>{_number(n)}</td>" for n in numbers)
        lines.append(f"<tr><td>{_text(name)}</td>{cells}{bar}</tr>")
    return f"<table>{''.join(lines)}</table>" if lines else ""


NUMBER = ' class="n"'


def _key_figures(found):
    def left(kind):
        count, _, more = overview.left(found[kind]).partition(", ")
        return _number(int(count)), more.partition(" (")[0], more.partition(" (")[2].removesuffix(")")

    status = found["statuses"].get
    how = [wanted.how_to(found["work"], found["lists"])] if found["lists"] else []
    figures = [("games on record", _number(found["games"]), "", ""),
               ("encoded", _number(status("encoded", 0)), "", ""), ("failed", _number(status("failed", 0)), "", ""),
               ("live rows", _number(found["rows"]), "", ""),
               ("disk use", overview.size(sum(found["disk"].values())), f"{overview.size(found['free'])} free", ""),
               ("left to download", *left("downloads"), *how), ("left to encode", *left("encodes"))]
    if off := found["put_off"]["games"]:
        figures.append(("asked again later", _number(off), overview.put_off(found["put_off"]), ""))
    if found["last_event"]:
        figures.append(("last event", found["last_event"][:10], found["last_event"][11:],
                        "" if found["at_work"] else "no run is at work"))
    return "<dl>" + "".join(
        f"<div><dt>{name}</dt><dd>{_text(value)}{''.join(f'<small>{_text(more)}</small>' for more in notes if more)}"
        "</dd></div>" for name, value, *notes in figures) + "</dl>"


def _statuses(found):
    return _figure("Games by status", _table(list(found["statuses"].items()), bars=True))


def _shards(found):
    rows = [(f"shards, {layout}", n) for layout, n in found["shards"].items()] or [("shards", 0)]
    rows += [(name.replace("_", " "), found[name]) for name in ("stale_rows", "shard_mismatches", "orphan_shards")]
    return _figure("Shards", _table(rows))


def _disk(found):
    rows = [(name, overview.size(n)) for name, n in found["disk"].items()]
    return _figure("Disk use", _table([*rows, ("free", overview.size(found["free"]))]))


def _timeline(events):
    unit, times, counts, untimed = events.timeline()
    if untimed:
        yield f"<p>{untimed} events without a sound time are left out.</p>"
    figures = []
    for kind, title, colour in (("downloads", "Downloads and adoptions", 0), ("encodes", "Encodes", 2),
                                ("failures", "Failures", 3)):
        any_there = any(counts[kind])
        also = "; also of games that were tried again and are well by now" if kind == "failures" else ""
        numbers = [(f"{time:%Y-%m-%d %H:%M}", n) for time, n in zip(times, counts[kind], strict=True) if n]
        figures.append(_figure(title, any_there and plots.timeline(unit, times, counts[kind], colour),
                               f"a {unit}, by the clock of Greenwich{also}" if any_there else "", numbers))
    yield _grid(*figures)


def _failures(latest):
    counts, examples = collections.Counter(), {}
    for game, record in latest.items():
        if record.get("status") == "failed":
            kind = reasons.kind(record.get("error"))
            counts[kind] += 1
            examples[kind] = game, record.get("error"), record.get("stage")
    if not counts:
        return "<p>none has</p>"
    lines, most = [], max(counts.values())
    for kind, n in counts.most_common():
        game, error, stage = examples[kind]
        _, meaning = reasons.REASONS.get(kind, ("", "not a reason that this version gives"))
        lines.append(f"<tr><td>{_text(kind)}<small>{_text(stage)}: {_text(meaning)}</small></td>"
                     f'<td class="n">{n:,}</td><td class="bar wide"><i style="width: {100 * n / most:.1f}%"></i></td>'
                     f'<td class="wide">{_text(error)}<small>{_link(game)}</small></td></tr>')
    return ('<figure><table><tr><th>reason</th><th class="n">games</th><th class="wide"></th>'
            f'<th class="wide">the last of them</th></tr>{"".join(lines)}</table></figure>')


def _played(latest):
    found = by_month_and_type(latest)
    types = collections.defaultdict(lambda: [0, 0])
    for (_, code), (games, n) in found.items():
        types[code][0] += games
        types[code][1] += n
    ranked = sorted(types, key=lambda code: types[code], reverse=True)
    names, series = months({month for month, _ in found}) if found else [], ([], [])
    groups = [(f"{code} {table_type.name(code)}", [code]) for code in ranked[:_TYPES]]
    if ranked[_TYPES:]:
        groups.append(("others", ranked[_TYPES:]))
    for label, codes in groups:
        for i, parts in enumerate(series):
            parts.append((label, [sum(found.get((month, each), (0, 0))[i] for each in codes) for month in names]))
    figures = []
    for title, parts in zip(("Games", "Rows"), series, strict=True):
        sums = [sum(column) for column in zip(*(counts for _, counts in parts), strict=True)]
        figures.append(_figure(f"{title} a month of play", names and plots.stacked(names, parts), "by table type",
                               list(zip(names, sums, strict=True))))
    rows = [(f"{code} {table_type.name(code)}", games, n, round(n / games))
            for code, (games, n) in ((code, types[code]) for code in ranked)]
    yield _grid(*figures, _figure("Table types", _table(rows, ("", "games", "rows", "rows a game")) if rows else ""))


def _rows(rows):
    if isinstance(rows, str) or not rows["of"]:
        yield f"<p>{_text(rows) if isinstance(rows, str) else 'nothing yet'}</p>"
        return
    part = "All" if rows["rows"] == rows["of"] else "A sample, evenly spread:"
    yield f"<p>{part} {rows['rows']:,} of {rows['of']:,} live rows.</p>"
    yield from (f"<p>Left out, could not be read: {_text(text)}</p>" for text in rows["damaged"])
    if not rows["rows"]:
        return
    actions, legal = rows["actions"].tolist(), rows["legal"].tolist()
    kinds = [("discard", sum(actions[:CHI])), *zip(notation.ACTIONS[CHI:], actions[CHI:], strict=True)]
    tokens, n = rows["tokens"], rows["rows"]
    seen = np.flatnonzero(tokens)
    low, high, mean = int(seen[0]), int(seen[-1]), float((tokens * np.arange(len(tokens))).sum() / n)
    binned = np.add.reduceat(tokens, range(0, len(tokens), _BIN)).tolist()
    numbers = [row for row in zip(notation.ACTIONS, actions, legal, strict=True) if row[2]]
    yield _grid(
        _figure("Actions", plots.ranking(*zip(*kinds, strict=True), 0), "rows; the scale goes in powers of ten",
                numbers, ("", "taken", "legal")),
        _figure("Discards by tile", plots.columns(notation.ACTIONS[:CHI], actions[:CHI], 2, every=3),
                "rows; 0m 0p 0s are the red fives"),
        _figure("Tokens a row", plots.histogram(
            np.arange(0, len(tokens) + _BIN, _BIN), binned, 4, "tokens", (low, high + 1)),
            f"rows; {low} to {high}, {mean:.0f} on average, at most {len(tokens) - 1} in any"),
        _figure("Rows by the final place of their player", plots.columns(
            ["1st", "2nd", "3rd", "4th"], rows["places"].tolist(), 1), "rows"),
        _figure("Points at the end of the game", plots.outlines(
            FINAL_EDGES, list(zip(("1st", "2nd", "3rd", "4th"), rows["finals"].tolist(), strict=True)), "points"),
            "players by their place"),
        _figure("Points won or lost in the hand", plots.histogram(DELTA_EDGES, rows["deltas"].tolist(), 3, "points"),
                f"rows; {100 * rows['won'] / n:.0f} % of them won some"))
