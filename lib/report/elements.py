"""What the page of the report is made of: its style, texts that are safe to show, tables, figures."""

from html import escape

from ..store import gid
from . import overview

_TEXT = 160  # characters of a text from outside
_NUMBER = ' class="n"'
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
dl, .grid { display: grid; gap: .8rem; margin: 0 } dl { grid-template-columns: 1fr 1fr; margin-top: 1rem }
@media (min-width: 44rem) { dl { grid-template-columns: repeat(4, 1fr) } .six { grid-template-columns: 1fr 1fr } }
@media (min-width: 44rem) and (max-width: 71.99rem) {
  .three figure { display: grid; grid-template-columns: 1fr 2fr; column-gap: 1rem; align-items: start }
  .three figcaption { grid-row: span 2 } .three figcaption ~ * { grid-column: 2 } }
@media (min-width: 72rem) { .grid { grid-template-columns: repeat(3, 1fr) } }
@media (min-width: 96rem) { dl { grid-template-columns: repeat(8, 1fr) } }
dl div, figure { background: var(--card); border-radius: .5rem; padding: .7rem .9rem; margin: 0; min-width: 0 }
dd { margin: 0; font-size: 1.2rem; font-weight: 600; white-space: nowrap }
dd small { font-size: .8rem; font-weight: 400; display: block; white-space: normal }
figcaption { font-weight: 600; margin-bottom: .3rem } figcaption small { display: block; font-weight: 400 }
svg { display: block; width: 100%; height: auto; max-width: 25rem; margin: 0 auto }
table { border-collapse: collapse; width: 100%; font-size: .9rem } th { text-align: left; color: var(--soft) }
th, td { padding: .25rem .5rem .25rem 0; vertical-align: top; border-bottom: 1px solid var(--grid); font-weight: 400 }
.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums } summary { cursor: pointer }
summary small { display: inline !important }
.bar { width: 30% } .failures .bar { width: 15% }
.bar i { display: block; height: .8em; margin-top: .3em; background: var(--c0); border-radius: 2px }
td small { display: block; color: var(--soft) } a { color: inherit } .games a { display: inline-block }
@media (max-width: 44rem) { .failures tr { display: grid; grid-template-columns: 1fr auto;
  border-bottom: 1px solid var(--grid) } .failures th, .failures td { border: 0 }
  .failures .bar { display: none } .failures .games { grid-column: span 2 } .failures th.games { display: none } }
"""


def document(title, body):
    """A whole page that asks no network for anything; body: its parts."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{text(title)}</title><style>{STYLE}</style></head>\n<body>\n" + "\n".join(body)
        + "\n</body></html>\n")


def text(thing, most=_TEXT):
    """Anything as text of at most so many characters that can stand in a page, wherever it came from."""
    plain = overview.plain(str(thing))
    return escape(plain if len(plain) <= most else plain[:most] + "…")


def utc(time):
    """A time of the manifest for a reader: 2024-05-01 12:00:00."""
    return text(time.replace("T", " ").removesuffix("Z"))


def link(game):
    """The id of a game, which leads to Tenhou's viewer, if it is one."""
    return f'<a href="{gid.viewer(game)}" rel="noreferrer">{game}</a>' if gid.is_gid(game) else text(game)


def number(n):
    """A number with its thousands apart, or any other text."""
    return f"{n:,}" if isinstance(n, int) else text(n)


def grid(*figures):
    """Three or six figures side by side, as many in a row as there is room for and as give full rows."""
    return f'<div class="grid {"three" if len(figures) == 3 else "six"}">{"".join(figures)}</div>'


def figure(title, content, note="", numbers=(), head=()):
    """A figure with its title; without content it says so. numbers, head: a table that can be unfolded."""
    more = folded("numbers", table(numbers, head)) if numbers and content else ""
    return (f"<figure><figcaption>{text(title)}<small>{text(note)}</small></figcaption>"
            f"{content or '<p>nothing yet</p>'}{more}</figure>")


def folded(name, content):
    """Something that is shown to who clicks on its name."""
    return f"<details><summary><small>{text(name)}</small></summary>{content}</details>"


def table(rows, head=(), bars=False):
    """A table of tuples: names, then numbers; bars: with a bar for the first number."""
    most = max((row[1] for row in rows), default=0) if bars else 0
    lines = [f"<tr>{''.join(f'<th{_NUMBER if i else str()}>{text(name)}</th>' for i, name in enumerate(head))}"
             f"{'<th></th>' if bars else ''}</tr>"] if head else []
    for name, *numbers in rows:
        bar = f'<td class="bar"><i style="width: {100 * numbers[0] / most:.1f}%"></i></td>' if most else ""
        cells = "".join(f"<td{_NUMBER}>{number(n)}</td>" for n in numbers)
        lines.append(f"<tr><td>{text(name)}</td>{cells}{bar}</tr>")
    return f"<table>{''.join(lines)}</table>" if lines else ""
