"""The report: what it counts, with or without matplotlib, and the page, where matplotlib is there."""

import html.parser
import importlib.util
import itertools
import os
import re
import resource
import signal
import subprocess
import sys

import made_rows as make
import numpy as np
import pytest
from flows import ROOT, environment, script
from modules import MODULES, SCRIPTS, imported
from support import event, game, put_shard

from lib.mahjong import table_type
from lib.manifest import Manifest
from lib.report.played_games import by_month_and_type, steps
from lib.rows import schema
from lib.shards import index
from lib.store import gid
from lib.train.reader import Cache
from lib.train.sample import DELTA_EDGES, FINAL_EDGES, sample

drawn = pytest.mark.skipif(not importlib.util.find_spec("matplotlib"), reason="needs matplotlib")
HOSTILE = "<script>alert(1)</script>\"'&amp;$\\frac$ \033[2J\u202e" + "x" * 500


def put_rows(work, n=4, layout="dense"):
    """Some self-played games in a shard of a cache; returns their rows, joined."""
    chosen = [(gid, make.of(log)) for gid, log in make.games(n)]
    make.add_shard(work, layout, chosen)
    return make.join([rows for _, rows in chosen])


# What is counted

@pytest.mark.parametrize("layout", ["dense", "parquet"])
def test_a_small_cache_is_counted_row_by_row(work, layout):
    rows = put_rows(work, layout=layout)
    found = sample(Cache(os.path.join(work, "cache")))
    n = len(rows["labels"])
    assert (found["rows"], found["of"], found["damaged"]) == (n, n, [])
    assert found["actions"].tolist() == [int((rows["labels"] == a).sum()) for a in range(schema.ACTION_DIM)]
    assert (found["legal"] == rows["action_mask"].sum(axis=0)).all()
    assert [found["tokens"][k] for k in (60, 90)] == [(rows["attention_mask"].sum(axis=1) == k).sum() for k in (60, 90)]
    assert found["tokens"].sum() == found["places"].sum() == found["deltas"].sum() == n
    assert found["places"].tolist() == [int((rows["outcome"]["final_rank"] == p).sum()) for p in (1, 2, 3, 4)]
    points = rows["outcome"]["hand_delta"]
    zero = np.searchsorted(DELTA_EDGES, 0) - 1
    assert found["deltas"][zero] == ((points >= -500) & (points < 500)).sum() and found["won"] == (points > 0).sum()


@pytest.mark.parametrize("most", [1 << 17, 0])
def test_a_player_counts_once_a_game_at_its_end(work, monkeypatch, most):
    monkeypatch.setattr("lib.train.sample.PIECE_ROWS", 100)  # so that games lie in several pieces
    put_rows(work)
    finals = sample(Cache(os.path.join(work, "cache")))["finals"]
    assert finals.sum(axis=1).tolist() == [4] * 4
    middle = (FINAL_EDGES[:-1] + FINAL_EDGES[1:]) / 2
    means = (finals * middle).sum(axis=1) / 4
    assert means.tolist() == sorted(means, reverse=True) and abs(means.sum() - 100_000) < 5_000


def test_of_a_larger_cache_pieces_from_its_beginning_to_its_end_are_counted(work, monkeypatch):
    monkeypatch.setattr("lib.train.sample.PIECE_ROWS", 100)
    read = []

    class Watched(Cache):
        def __getitem__(self, wanted):
            read.append((wanted.start, wanted.stop))
            return super().__getitem__(wanted)

    n = len(put_rows(work)["labels"])
    found = sample(Watched(os.path.join(work, "cache")), 500)
    assert found["rows"] == 500 and found["of"] == n == max(stop for _, stop in read) and min(read)[0] == 0
    assert len({b[0] - a[0] for a, b in itertools.pairwise(read)}) <= 2 and len(read) == 5


def test_what_cannot_be_read_is_told_and_the_rest_is_counted(work, monkeypatch):
    monkeypatch.setattr("lib.train.sample.PIECE_ROWS", 100)
    first = len(put_rows(work, 1)["labels"])
    name = make.add_shard(work, "parquet", [("2024010190gm-00a1-0000-00000090", make.of(make.games(2)[1][1]))])
    with open(os.path.join(work, "cache", name, "rows.parquet"), "r+b") as f:
        f.seek(5000)
        f.write(b"damage")
    found = sample(Cache(os.path.join(work, "cache")))
    assert found["rows"] == first // 100 * 100 and name in found["damaged"][0] and found["rows"] < found["of"]


def test_games_are_counted_by_month_and_table_as_their_ids_say():
    latest = {
        "2024010100gm-00a9-0000-00000001": {"status": "encoded", "n_samples": 5},
        "2024013100gm-00a9-0000-00000002": {"status": "encoded", "n_samples": 6},
        "20240201gm-00e1-0000-00000003": {"status": "encoded"},
        "2024020100gm-00e1-0000-00000004": {"status": "failed", "n_samples": 7},
    }
    assert by_month_and_type(latest) == {("2024-01", "00a9"): [2, 11], ("2024-02", "00e1"): [1, 0]}


def test_months_without_games_are_there_but_no_centuries():
    assert steps({"2023-11", "2024-02"}) == ["2023-11", "2023-12", "2024-01", "2024-02"]
    assert steps({"0001-01", "2024-12"}) == ["0001", "2024"] and steps(set()) == []


def test_of_many_months_the_years_are_told():
    assert len(steps({"2020-01", "2023-12"})) == 48
    assert steps({"2020-01", "2024-01"}) == ["2020", "2021", "2022", "2023", "2024"]
    assert steps({"2010-06", "2024-01"}) == [str(year) for year in range(2010, 2025)]


@pytest.mark.parametrize(("code", "name"), [
    ("00a9", "houou hanchan"), ("00e1", "houou tonpuu, fast"), ("00b9", "houou hanchan, three players"),
    ("0009", "ippan hanchan"), ("0089", "joukyuu hanchan"), ("0029", "tokujou hanchan"), ("0841", "other rules"),
    ("00af", "houou hanchan, no red fives, no open tanyao"), ("0000", "other rules")])
def test_table_types_have_names(code, name):
    assert table_type.name(code) == name


def test_nothing_but_the_report_needs_matplotlib():
    users = {"matplotlib": set(), "lib.report.plots": set(), "lib.report.page": set()}
    for path in [*MODULES.values(), *SCRIPTS]:
        for name in users:
            users[name] |= {path.name} if any(f"{n}.".startswith(f"{name}.") for n in imported(path)) else set()
    assert users == {"matplotlib": {"plots.py"}, "lib.report.plots": {"page.py"}, "lib.report.page": {"report"}}


def test_without_matplotlib_the_script_says_what_to_do(work, tmp_path):
    (tmp_path / "matplotlib.py").write_text("raise ImportError('matplotlib is not here')")
    done = script("report", "--work", work, settings={"PYTHONPATH": str(tmp_path)})
    assert (done.returncode, done.stdout) == (1, "") and "report.html" not in os.listdir(work)
    assert done.stderr == f"report: matplotlib is not here; to install it: make report WORK={work}\n"


@drawn
@pytest.mark.parametrize(("first", "n", "named"), [
    ("2023-11", 1, ["2023-11"]), ("2023-11", 4, ["2023-11", "2023-12", "2024-01", "2024-02"]),
    ("2023-11", 6, ["2024-01", "2024-03", "2023-11"]),
    ("2023-11", 9, ["2024-01", "2024-04", "2024-07"]),
    ("2023-02", 14, ["2023-04", "2023-07", "2023-10", "2024-01"]),
    ("2023-02", 30, ["2024-01", "2025-01"]),
    ("2009-02", 190, ["2010-01", "2015-01", "2020-01"]),
    ("0001-01", 12 * 2023, ["0500-01", "1000-01", "1500-01", "2000-01"])])
def test_months_that_are_named_below_a_plot_are_few_and_january_is_among_them(first, n, named):
    from lib.report import plots

    begin = 12 * int(first[:4]) + int(first[5:]) - 1
    all_months = [f"{i // 12:04d}-{i % 12 + 1:02d}" for i in range(begin, begin + n)]
    assert [all_months[i] for i in plots.calendar_ticks(all_months)] == sorted(named)
    years = [str(year) for year in range(2010, 2025)]
    assert [years[i] for i in plots.calendar_ticks(years)] == years[::2]


# The page

class Page(html.parser.HTMLParser):
    """What a browser would see of a page: its texts, its tags, and what it would ask a network for."""

    def __init__(self, text):
        super().__init__()
        self.texts, self.tags, self.links, self._open = [], [], [], []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.links += [value for name, value in attributes if name in ("src", "href", "xlink:href", "srcset", "data")]
        assert not [name for name, _ in attributes if name.startswith("on")]
        if tag not in ("meta", "path", "use"):
            self._open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.handle_endtag(tag)

    def handle_endtag(self, tag):
        if tag not in ("meta", "path", "use"):
            assert self._open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def report(work, **settings):
    """The page as text, and as a browser sees it."""
    done = script("report", "--work", work, settings=settings)
    told = f"report: reading {work} and drawing; a large cache takes a minute\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{work}/report.html\n", told)
    assert not [name for name in os.listdir(work) if name.startswith(".tmp-")]
    with open(os.path.join(work, "report.html"), encoding="utf-8") as f:
        text = f.read()
    return text, Page(text)


@drawn
def test_with_no_game_there_is_a_page_without_plots(tmp_path):
    (tmp_path / "w").mkdir()
    _, page = report(str(tmp_path / "w"))
    assert "nothing yet" in page.texts and "svg" not in page.tags and "Games by status" in page.texts


@drawn
def test_rows_that_the_index_does_not_list_yet_are_told(work):
    n = len(put_rows(work, 1)["labels"])
    index.rebuild(work, Manifest(work).latest)
    assert f"All {n:,} live rows." in report(work)[1].texts
    put_shard(work, {1: 3})
    assert (f"All {n:,} rows that cache/index.json lists; {n + 3:,} are live. To bring it up to date: "
            f"make rebuild-index WORK={work}") in report(work)[1].texts


@pytest.fixture(scope="module")
def drawn_once(tmp_path_factory):
    """The page of a work directory with games of all kinds, and with hostile texts wherever they may come from."""
    work = str(tmp_path_factory.mktemp("report") / "w<b>&amp;")
    put_rows(work, 4)
    put_rows(work, 2, "parquet")  # the same games again: the first shard has stale rows
    for n, status in enumerate((HOSTILE, "failed", "downloaded", "duplicate")):
        event(work, 10 + n, status=status, error=HOSTILE, stage=HOSTILE, ts="2024-05-01T12:00:00Z")
    for n in range(20):
        event(work, 20 + n, status="failed", error=f"hand {n}: engine refuses chi by seat {n % 4}", stage="encode")
    ugly = tmp_path_factory.mktemp("settings") / "matplotlibrc"
    ugly.write_text("axes.facecolor: red\nfont.size: 40\nsvg.fonttype: path\ntext.color: red\n")
    return report(work, MATPLOTLIBRC=str(ugly))


@drawn
def test_the_page_is_one_file_without_network_and_scripts(drawn_once):
    text, page = drawn_once
    assert page.tags.count("svg") == 3 + 2 + 6
    assert not {"script", "link", "img", "iframe", "object", "base", "form"} & set(page.tags)
    viewer = rf'<a href="https://tenhou\.net/0/\?log={gid.PATTERN}" rel="noreferrer">'  # asked only by who clicks
    assert re.search(viewer, text) and "default-src 'none'" in text
    assert all(link.startswith(("#", gid.viewer(""))) for link in page.links)
    assert not re.findall(r"url\((?!#)|@import|https?://(?!www\.w3\.org/)", re.sub(viewer, "", text))


@drawn
def test_whatever_stands_in_the_manifest_is_only_text(drawn_once):
    text, page = drawn_once
    assert "<script" not in text and "\033" not in text and "\u202e" not in text
    shown = [t for t in page.texts if t.startswith("<script>alert(1)</script>\"'&amp;$\\frac$ ?[2J?xxx")]
    assert len(shown) >= 3 and max(map(len, page.texts[1:])) < 5000 and max(map(len, shown)) < 250
    assert any("w<b>&amp;" in t for t in page.texts)


@drawn
def test_the_page_says_what_the_status_says(drawn_once):
    _, page = drawn_once
    text = " ".join(page.texts)
    assert re.search(r"per \w+ \(UTC\); includes games that succeeded later", text) and "all times are UTC" in text
    assert "games on record 28" in text and "failed 21" in text and "stale rows" in text
    assert re.search(r"engine refuses … encode: [^…]* 20 hand 19: engine refuses chi by seat 3 " + game(39), text)
    assert re.search(r"All [\d,]+ live rows", text)
    rows = int(re.search(r"live rows ([\d,]+)", text)[1].replace(",", ""))
    assert rows == sum(len(make.of(log)["labels"]) for _, log in make.games(4))


@drawn
def test_of_the_games_that_failed_the_last_are_named_with_a_link_and_without_tuples(work):
    for n in range(15):
        event(work, n, status="failed", stage="encode",
              error=f"engine and log disagree on points ([{n}, -1, 2], log (3, 4))")
    _, page = report(work)
    assert [link for link in page.links if "log=" in link] == [gid.viewer(game(n)) for n in range(14, 4, -1)]
    assert "engine and log disagree on points (14 -1 2, log 3 4)" in page.texts and "the last 10 of 15" in page.texts


@drawn
def test_there_are_eight_cards_whatever_there_is_to_tell_and_two_four_and_eight_stand_in_a_row(work):
    for prepare in (lambda: None, lambda: event(work, 1, status="failed", stage="download", error="HTTP 404",
                                                retry_at="2099-01-01T00:00:00Z")):
        prepare()
        text, page = report(work)
        assert page.tags.count("dt") == 8
    assert f"1 to be asked for again (the first on 2099-01-01; to ask now: make run RETRY=1 WORK={work})" in page.texts
    columns = re.findall(r"dl \{ grid-template-columns: ([^}]*) \}", re.sub(r"; margin[^}]*", " ", text))
    assert [c.replace("1fr 1fr", "repeat(2, 1fr)").strip() for c in columns] == [
        "repeat(2, 1fr)", "repeat(4, 1fr)", "repeat(8, 1fr)"]


@drawn
def test_plots_have_no_colours_and_names_but_the_page_s(drawn_once):
    text, _ = drawn_once
    plots = "".join(re.findall(r"<svg.*?</svg>", text, re.S))
    assert set(re.findall(r"#[0-9a-f]{6}\b", plots)) == set() and "var(--ink)" in plots and "var(--c0)" in plots
    names = re.findall(r' id="([^"]*)"', text)
    assert len(names) == len(set(names)) and {f"#{name}" for name in names} >= set(re.findall(r'href="(#[^"]*)"', text))
    assert set(re.findall(r"var\((--\w+)\)", text)) <= set(re.findall(r"(--\w+):", text))


@drawn
def test_the_settings_of_the_user_s_matplotlib_change_nothing(drawn_once):
    text, _ = drawn_once
    plots = "".join(re.findall(r"<svg.*?</svg>", text, re.S))
    assert "font-size: 10px" in plots and "40px" not in text
    assert "red" not in set(re.findall(r"fill: (\w+)", plots))


@drawn
def test_letters_of_plots_are_ten_pixels_on_a_narrow_page_and_cards_fill_their_rows(drawn_once):
    text, _ = drawn_once
    plots = re.findall(r"<svg.*?</svg>", text, re.S)
    card = 360 - 2 * 0.7 * 16 - 2 * 0.9 * 15 - 15  # without the padding of page and card, and a scrollbar
    widths = [float(width) for plot in plots for width in re.findall('viewBox="0 0 (\\S+)', plot)]
    assert len(widths) > 8 and max(widths) <= card
    sizes = [float(size) for plot in plots for size in re.findall(r"font(?:-size)?: (?:\S+ )*?([\d.]+)px", plot)]
    assert len(sizes) > 50 and min(sizes) >= 10
    grids = re.findall('<div class="grid (\\w+)">(.*?)</div>', text, re.S)
    assert [(name, part.count("<figure>")) for name, part in grids] == [("three", 3)] * 3 + [("six", 6)]
    assert ".six { grid-template-columns: 1fr 1fr }" in text and ".three { grid-template-columns" not in text


@drawn
def test_a_home_directory_in_which_matplotlib_cannot_write_is_no_matter(work, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "tmp").mkdir()
    put_rows(work, 1)
    done = script("report", "--work", work, settings={
        "HOME": f"{tmp_path}/file", "TMPDIR": f"{tmp_path}/tmp", "MPLCONFIGDIR": "", "XDG_CONFIG_HOME": "",
        "XDG_CACHE_HOME": ""})
    assert done.returncode == 0 and done.stderr.splitlines() == [
        f"report: reading {work} and drawing; a large cache takes a minute"]
    assert os.listdir(tmp_path / "tmp") == []


@drawn
def test_an_index_that_cannot_be_read_is_told_on_the_page(work):
    put_rows(work, 1)
    with open(os.path.join(work, "cache", "index.json"), "w") as f:
        f.write("{}")
    _, page = report(work)
    assert any(t.startswith("the cache cannot be read: ") for t in page.texts)


@drawn
def test_the_page_is_written_whole_or_not_at_all(work):
    path = os.path.join(work, "report.html")
    with open(path, "w") as f:
        f.write("the last one")
    done = subprocess.run([sys.executable, ROOT / "bin" / "report", "--work", work], capture_output=True, text=True,
                          env=environment(), preexec_fn=lambda: (
                              signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
                              resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))))
    assert done.returncode == 1 and done.stderr.splitlines()[1:] == [f"report: {path}: File too large"]
    with open(path) as f:
        assert f.read() == "the last one" and not [name for name in os.listdir(work) if name.startswith(".tmp-")]
