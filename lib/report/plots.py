"""Plots as SVG that goes into a page: no colour of their own but the page's, so that they fit light and dark.

Nothing but the report needs matplotlib, and only this module imports it.
"""

import atexit
import io
import logging
import os
import re
import shutil

_BEFORE = os.environ.get("MPLCONFIGDIR")
logging.getLogger("matplotlib").setLevel(logging.ERROR)  # it would tell if it could not keep its list of fonts

import matplotlib
from matplotlib import dates, ticker
from matplotlib.figure import Figure

if os.environ.get("MPLCONFIGDIR") != _BEFORE:  # it made a directory, because it cannot write in the home directory
    shutil.rmtree(os.environ["MPLCONFIGDIR"], ignore_errors=True)
    atexit.unregister(shutil.rmtree)  # it would do so only at the end of Python, to which scripts do not come

# stand-ins for the page's colours: what matplotlib writes as these becomes var(--ink), var(--grid), var(--c0) …
_INK, _GRID = "#010100", "#010101"
SERIES = [f"#02000{i}" for i in range(8)]
_SIZE = 4, 2.3  # inches of 72 units: as wide as a card on a page of 360 pixels, so that letters of 10 are 10 pixels
_TICKS = 4  # months that are named below a plot; years are shorter
_YEARS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)  # steps between them
_PARAMETERS = {
    "svg.fonttype": "none", "text.parse_math": False, "font.size": 10,
    "axes.spines.top": False, "axes.spines.right": False,
    "axes.edgecolor": _INK, "axes.labelcolor": _INK, "xtick.color": _INK, "ytick.color": _INK, "text.color": _INK,
    "axes.grid": True, "axes.grid.axis": "y", "grid.color": _GRID, "grid.linewidth": 0.6,
    "axes.axisbelow": True, "legend.frameon": False, "legend.fontsize": 10, "legend.handlelength": 1,
    "figure.constrained_layout.use": True,
    "axes.facecolor": "none", "figure.facecolor": "none", "savefig.facecolor": "none",
}


def _plot(draw, height=_SIZE[1]):
    """The SVG of what `draw(axes)` draws."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # not the settings of whoever runs this
        matplotlib.rcParams.update(_PARAMETERS)
        figure = Figure((_SIZE[0], height))
        axes = figure.add_subplot()
        axes.yaxis.set_major_formatter(short())
        draw(axes)
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    return _for_page(out.getvalue())


def _for_page(svg):
    """An SVG document as an element of a page: no head, size or fonts of its own, ids that no other plot has."""
    svg = svg[svg.index("<svg"):]
    svg = re.sub(r'^<svg [^>]*?(viewBox="[^"]*")[^>]*>', r'<svg \1 aria-hidden="true">', svg)
    svg = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", svg, count=1, flags=re.S)
    svg = re.sub("font-family: [^;]*; ", "", svg)
    svg = re.sub(r'<g id="[^"]*">', "<g>", svg).replace("xlink:href=", "href=")
    svg = svg.replace(_INK, "var(--ink)").replace(_GRID, "var(--grid)")
    return re.sub("#02000([0-7])", r"var(--c\1)", svg)


def short():
    """A formatter of axes with large numbers: 1.5k, 20k, 3M."""
    return ticker.EngFormatter(sep="", places=None)


def timeline(unit, times, counts, colour):
    """Bars over time: `times` are the beginnings of steps of a unit, as lib.store.history has them."""

    def draw(axes):
        width = {"hour": 1 / 24, "day": 1, "week": 7, "month": 28, "year": 365}[unit]
        axes.bar(times, counts, width=0.85 * width, align="edge", color=SERIES[colour])
        first, last = dates.date2num(times[0]), dates.date2num(times[-1])
        spare = max(0, 12 * width - (last - first + width)) / 2  # few bars are no broad ones
        axes.set_xlim(first - spare - 0.2 * width, last + width + spare + 0.2 * width)
        axes.set_ylim(bottom=0)
        locator = dates.AutoDateLocator(minticks=2, maxticks=6)
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
        axes.yaxis.set_major_locator(ticker.MaxNLocator(5, integer=True))

    return _plot(draw)


def calendar_ticks(steps):
    """The places of some of the growing `steps`, months like 2024-01 or years like 2024, to be named below a plot: at
    even steps, from a January on."""
    numbers = [12 * int(step[:4]) + int(step[5:] or 1) - 1 for step in steps]
    most = _TICKS if any(step[5:] for step in steps) else 2 * _TICKS
    for width in (1, 2, 3, 6, *(12 * years for years in _YEARS)):
        places = [i for i, n in enumerate(numbers) if n % width == 0]
        if len(places) <= most:
            break
    return places


def stacked(steps, series):
    """Bars, one for each of the `steps`, months or years, of the parts in series: a list of (label, counts), at most
    eight."""

    def draw(axes):
        below = [0] * len(steps)
        for i, (label, counts) in enumerate(series):
            axes.bar(range(len(steps)), counts, bottom=below, width=0.85, color=SERIES[i], label=label)
            below = [a + b for a, b in zip(below, counts, strict=True)]
        ticks = calendar_ticks(steps)
        axes.set_xticks(ticks, [steps[i] for i in ticks])
        axes.set_xlim(min(-0.6, len(steps) / 2 - 3), max(len(steps) - 0.4, len(steps) / 2 + 2))
        axes.yaxis.set_major_locator(ticker.MaxNLocator(5, integer=True))
        axes.figure.legend(loc="outside upper left")

    return _plot(draw, _SIZE[1] + 0.2 * len(series))


def columns(names, counts, colour, label="", every=1):
    """Bars side by side, every so many of them with its name."""

    def draw(axes):
        axes.bar(range(len(names)), counts, width=0.85, color=SERIES[colour])
        axes.set_xticks(range(0, len(names), every), names[::every])
        axes.set_xlabel(label)
        axes.set_xlim(-0.6, len(names) - 0.4)

    return _plot(draw)


def ranking(names, counts, colour):
    """Bars from the longest to the shortest, on a scale of powers of ten, each with its number."""

    def draw(axes):
        pairs = sorted(zip(counts, names, strict=True))
        axes.barh(range(len(pairs)), [n for n, _ in pairs], color=SERIES[colour], height=0.75)
        axes.set_yticks(range(len(pairs)), [name for _, name in pairs])
        axes.set_xscale("log")
        axes.set_xlim(0.8, 15 * max(1, *counts))
        axes.xaxis.set_major_formatter(short())
        axes.xaxis.set_minor_locator(ticker.NullLocator())
        axes.grid(axis="x")
        axes.grid(visible=False, axis="y")
        for y, (n, _) in enumerate(pairs):
            axes.text(1.2 * max(n, 0.8), y, f"{n:,}", va="center")
        axes.set_ylim(-0.6, len(pairs) - 0.4)

    return _plot(draw, 0.5 + 0.2 * len(names))


def histogram(edges, counts, colour, label, limits=()):
    """Counts in the bins between edges; limits: the part of the axis to be shown, if not all."""

    def draw(axes):
        axes.stairs(counts, edges, fill=True, color=SERIES[colour])
        axes.set_xlabel(label)
        axes.set_ylim(bottom=0)
        if limits:
            axes.set_xlim(*limits)
        axes.xaxis.set_major_formatter(short())

    return _plot(draw)


def outlines(edges, series, label):
    """Several histograms over each other, as lines: a list of (label, counts)."""

    def draw(axes):
        for i, (name, counts) in enumerate(series):
            axes.stairs(counts, edges, color=SERIES[i], linewidth=1.5, label=name)
        axes.set_xlabel(label)
        axes.set_ylim(bottom=0)
        axes.xaxis.set_major_formatter(short())
        axes.figure.legend(loc="outside upper left", ncols=4)

    return _plot(draw)
