"""What README.md, the scripts' help and the Makefile say of each other and of the code, held against these."""

import ast
import itertools
import os
import random
import re
import shutil
import signal
import subprocess
import sys

import pytest
from flows import ROOT, environment, make
from modules import MODULES, SCRIPTS

from lib.cli import helppage, settings
from lib.demo import selfplay
from lib.demo.demo_year import DemoYear
from lib.mahjong.mjlog import Unencodable
from lib.mahjong.table_type import UNSUPPORTED
from lib.report import reasons
from lib.rows.encoder import encode_game
from lib.store import errors

README = (ROOT / "README.md").read_text()
DOCSTRINGS = {path.name: ast.get_docstring(ast.parse(path.read_text()), clean=False) for path in SCRIPTS}
EXAMPLES = {name: helppage.sections(doc)[1] for name, doc in DOCSTRINGS.items()}


def table(head):
    """The rows of the table of README.md that begins with these heads, as lists of cells."""
    body = README[README.index(f"| {head} |"):].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in body]


@pytest.mark.parametrize("name", os.listdir(ROOT / "bin"))
def test_every_script_is_in_the_readme(name):
    assert f"`{name}`" in README.split("`make` only chains the scripts")[1].split("\n\n")[0]


@pytest.mark.parametrize("name", DOCSTRINGS)
def test_the_help_of_a_script_has_a_line_a_transcript_and_statuses_that_the_readme_explains(name):
    first, example, _, statuses = helppage.sections(DOCSTRINGS[name])
    assert len(first) > 20 and re.match(r"    \$ ", example) and "\n\n" not in example
    known = {status for row in table("exit status | meaning") for status in row[0].split(", ")}
    assert {"0", "1", "2"} <= set(re.findall(r"\b\d+\b", statuses)) | ({"0"} if name == "with-lock" else set())
    assert set(re.findall(r"\b\d+\b", statuses)) <= known


def test_the_exit_statuses_of_the_readme_are_those_of_the_code():
    def kinds(of):
        return [of, *itertools.chain(*map(kinds, of.__subclasses__()))]

    ours = {0, *(kind.status for kind in kinds(errors.Problem) if kind.__module__ == "lib.store.errors")}
    ours |= {128 + signum for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)}
    told = ", ".join(row[0] for row in table("exit status | meaning"))
    assert [int(status) for status in told.split(", ")] == sorted(ours)


def test_help_of_make_has_every_target_and_every_knob_with_its_value_and_the_readme_every_target():
    shown = make("help", "WORK=some/where", "USER_AGENT=it's us; $(HOME)", "MAX_NEW=7").stdout
    phony = set(" ".join(re.findall(r"^\.PHONY: (.*)", (ROOT / "Makefile").read_text(), re.M)).split())
    targets = set(re.findall(r"^  ([a-z-]+) +\S", shown, re.M))
    assert targets == phony - {"venv", "settings"}
    assert targets <= set(re.findall(r"make ([a-z-]+)", README))
    values = {"WORK": "some/where", "USER_AGENT": f"it's us; {os.environ['HOME']}", "MAX_NEW": "7"}
    values = settings.defaults() | values
    for name, value in values.items():
        found = re.search(rf"^  {name} +{re.escape(value or '-')} *\n? +(\S.*)", shown, re.M)
        assert found and f"# {found[1]}" in (ROOT / "config.mk").read_text(), name


def test_the_pythons_that_will_do_are_those_of_pyproject_toml():
    pyproject = (ROOT / "pyproject.toml").read_text()
    first, after = re.search(r'requires-python = ">=3\.(\d+),<3\.(\d+)"', pyproject).groups()
    for text in (README, (ROOT / "config.mk").read_text()):
        assert re.findall(r"3\.\d+ to 3\.\d+", text) == [f"3.{first} to 3.{int(after) - 1}"]


def test_readme_and_help_say_the_same_of_how_long_the_demo_takes():
    said = [re.search(r"demo\b.*self-played games.*(under \w+ minutes?)", text)[1]
            for text in (README, (ROOT / "Makefile").read_text())]
    assert said[0] == said[1]


def test_the_last_lines_of_the_demo_can_be_pasted(tmp_path):
    steps = re.findall(r'^echo "(make .* WORK=data/.*)"$', (ROOT / "bin" / "demo").read_text(), re.M)
    assert [step.split()[1] for step in steps] == ["import", "run", "run"]
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / f"{GAME}.mjlog").write_bytes(selfplay.play(3, hanchan=False))
    for step in steps[:2]:
        step = step.replace("WORK=data", f"WORK={tmp_path}/data")
        subprocess.run(["bash", "-ec", step], cwd=ROOT, env=environment(HOME=str(tmp_path)), check=True)
    assert (tmp_path / "data" / "tenhou" / "xml" / f"{GAME}.txt").exists()


@pytest.mark.parametrize("name", settings.defaults())
def test_every_knob_is_used(name):
    users = [ROOT / "Makefile", *(ROOT / "bin").iterdir(), *MODULES.values()]
    assert any(re.search(rf'"{name}"|\$\({name}[):]|\${{{name}-', path.read_text()) for path in users)


# The reasons of failed events

def texts(node, tree):
    """All texts that an expression can come to, … for what is known only when it runs; None if nothing is known."""
    if isinstance(node, ast.Constant):
        return [str(node.value)]
    if isinstance(node, ast.IfExp):
        return texts(node.body, tree) + texts(node.orelse, tree)
    if isinstance(node, ast.FormattedValue):
        return texts(node.value, tree) if isinstance(node.value, ast.IfExp) else ["…"]
    if isinstance(node, ast.JoinedStr):
        return ["".join(parts) for parts in itertools.product(*(texts(part, tree) for part in node.values))]
    if isinstance(node, ast.Subscript):
        return texts(node.value, tree)
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "_why":
        function = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "_why")
        return [text for n in ast.walk(function) if isinstance(n, ast.Return) for text in texts(n.value, tree)]
    return None


def written():
    """Every text that our code can put in `error` of a failed event: what Unencodable and Fault are raised with, and
    what is answered as "failed". Those of lists are about lists of games, not about games."""
    found = []
    for path in sorted(MODULES.values()):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            given = None
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Unencodable":
                given = node.args[0]
            elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Fault" and path.name != "lists.py":
                given = node.args[1] if ast.unparse(node.args[0]) != "'unreachable'" else None  # of no game
            elif path.name == "workers.py" and ast.unparse(node).startswith(("('failed', ", "('died', ")):
                given = node.elts[1]
            if given is not None and ast.unparse(given) != "str(e)":
                new = texts(given, tree)
                assert new, f"{path.name}:{node.lineno}: cannot tell what this reason may be"
                found += new
    found += [f"unsupported: {what}" for what in UNSUPPORTED.values()]
    return [text for text in found if text not in ("…: …", "unsupported: …")]


def test_every_reason_that_the_code_can_give_is_in_the_table_and_no_other():
    given = written()
    assert len(given) > 50
    fillers = ("7", "403", "404", "429 too many requests", "riichi with 5m by seat 1")
    kinds = {text: {reasons.kind(text.replace("…", filler)) for filler in fillers} for text in given}
    assert {text for text, found in kinds.items() if not found <= set(reasons.REASONS)} == set()
    assert set().union(*kinds.values()) == set(reasons.REASONS)


def test_no_other_place_writes_failed_events():
    places = [path.name for path in [*MODULES.values(), *SCRIPTS] for node in ast.walk(ast.parse(path.read_text()))
              if isinstance(node, ast.Dict) and "'status': 'failed'" in ast.unparse(node)]
    assert sorted(places) == ["batch.py", "fetcher.py"]


def test_the_readme_has_the_groups_of_reasons():
    rows = table("kind | what happened | what becomes of the game")
    assert rows == [[group, *texts] for group, (_, *texts) in reasons.GROUPS.items()]
    assert set(reasons.REASONS.values()) == set(reasons.GROUPS)


def test_damaged_logs_fail_for_reasons_of_the_table():
    chance, found = random.Random(3), set()
    tags = re.findall(rb"<[^>]*>", selfplay.play(5, hanchan=False))
    for _ in range(60):
        damaged, i = list(tags), chance.randrange(1, len(tags) - 1)
        damaged[i:i + 1] = chance.choice([[], [tags[i], tags[i]], [tags[i - 1]], [tags[i][:-3]], [b"<ODD/>"]])
        try:
            encode_game(b"".join(damaged))
        except Unencodable as e:
            found.add(reasons.kind(e))
    assert len(found) > 3 and found <= {
        reason for reason, group in reasons.REASONS.items() if reasons.GROUPS[group][0] == "encode"}


def test_a_reason_that_is_not_ours_is_its_own_kind_without_numbers():
    assert reasons.kind("hand 12: HTTP 503") == "HTTP 503" and reasons.kind("HTTP 5xx") == "HTTP …"
    assert reasons.in_group("HTTP 500") == "server trouble: HTTP 500"
    assert reasons.explain("HTTP 500") == reasons.explain("HTTP …") != reasons.explain("HTTP 404")
    assert reasons.kind("quota of 17 exceeded") == "quota of … exceeded"
    assert reasons.kind(None) == "None" and len(reasons.kind("x" * 999)) == 100


# Transcripts

UNSAFE = {"make demo": "takes long and has a stand-in of its own"}
MACHINES = "/shared/tenhou"  # of commands that need two machines: tests/cluster/test_distribute.py has them
GAME = "2024010100gm-00a9-0000-3b1a11df"  # the id of an example


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """A copy of the tree, with an .venv that counts as made, and self-played games in data/tenhou."""
    here = tmp_path_factory.mktemp("house")
    for name in ("bin", "lib"):
        shutil.copytree(ROOT / name, here / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("Makefile", "config.mk", "pyproject.toml"):
        shutil.copy(ROOT / name, here)
    (here / ".venv").symlink_to(ROOT / ".venv")
    (here / "data" / "tenhou" / "xml").mkdir(parents=True)
    (here / "data" / "demo").symlink_to("tenhou")
    (here / "logs").mkdir()
    (here / "logs" / "2024010100gm-00a9-0000-3b1a11de.mjlog").write_bytes(selfplay.play(9, hanchan=False))
    for seed, game in enumerate((GAME, "2024010101gm-00a9-0000-00000001", "2024010102gm-00e1-0000-00000002")):
        (here / "data" / "tenhou" / "xml" / f"{game}.txt").write_bytes(selfplay.play(seed, hanchan=False))
    return here


def shell(house, command, **settings):
    """What a command prints in the copy of the tree, on stdout and stderr."""
    settings |= {"JOBS": "1", "MAKEFLAGS": "-- JOBS=1"}  # as if make's command line had it
    done = subprocess.run(["bash", "-c", command], cwd=house, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, stdin=subprocess.DEVNULL, env=environment(**settings))
    return done.stdout.replace(f"{house}/", "")


def shape(line):
    """A line with ids, tiles, seats, sizes and numbers made the same."""
    line = re.sub(r"[0-9]{10}gm-[0-9a-f]{4}-[0-9]{4}-[0-9a-f]{8}", "GID", line)
    line = re.sub(r"[+-]([0-9,]+ in this hand)", r"\1", line)
    line = re.sub(r"^(self|shimocha|toimen|kamicha) .*", r"\1 WIND, SCORE, RIVER, MELDS", line)
    line = re.sub(r"\b([0-9]+[mpsz])+\b", "TILES", line)
    line = re.sub(r"\b(east|south|west|north)\b", "WIND", line)
    line = re.sub(r"(shard_[0-9]+ ?)+", "SHARDS", line)
    line = re.sub(r"[0-9][0-9.,]* (B|kB|MB|GB)\b", "SIZE", line)
    line = re.sub(r"[0-9]+(\.[0-9]+)?", "N", line.rstrip())
    return re.sub(r"\bN (duplicate|file|game|line|log|machine|process|row|shard)(e?s)?\b", r"N \1s", line)


def transcripts(text):
    """(command, lines that it prints) of the transcripts in a text."""
    for block in re.findall(r"(?:^    .*\n?)+", text, re.M):
        for part in re.split(r"^    \$ ", block, flags=re.M)[1:]:
            command, *lines = [line.removeprefix("    ") for line in part.splitlines()]
            yield command, lines


needs_jq = pytest.mark.skipif(not shutil.which("jq"), reason="needs jq")


@needs_jq
def test_transcripts_of_the_readme_are_what_the_commands_print(house):
    seen = 0
    for command, lines in transcripts(README):
        if command in UNSAFE or MACHINES in command or (command.startswith("make report") and not has_matplotlib()):
            continue
        shown = shell(house, command, HOME=str(house))
        assert "rror" not in shown, command
        if lines:
            seen += 1
            assert [shape(line) for line in shown.splitlines()] == [shape(line) for line in lines], command
    assert seen >= 3


def has_matplotlib():
    return subprocess.run([sys.executable, "-c", "import matplotlib"], stderr=subprocess.DEVNULL).returncode == 0


def put_logs_to_import(house):
    shutil.rmtree(house / "logs")
    (house / "logs").mkdir()
    shutil.copy(house / "data" / "tenhou" / "xml" / f"{GAME}.txt", house / "logs" / f"{GAME}.xml")
    (house / "logs" / "2024010105gm-00a9-0000-00000005.mjlog").write_bytes(selfplay.play(5, hanchan=False))


def put_logs_at_home(house):
    (house / "logs" / "2024010103gm-00a9-0000-00000003.txt").write_bytes(selfplay.play(3, hanchan=False))
    (house / "logs" / "2024010104gm-00b9-0000-00000004.txt").write_bytes(
        re.sub(rb'(<GO type=")\d+', rb"\g<1>185", selfplay.play(4, hanchan=False)))


def note_a_failure(house):
    with open(house / "data" / "tenhou" / "manifest.jsonl", "a") as f:
        f.write(f'{{"gid": "{GAME[:-1]}0", "status": "failed", "stage": "download", "error": "HTTP 404"}}\n')


def copy_a_shard(house):
    shutil.copytree(house / "data/tenhou/cache/shard_00000", house / "data/tenhou/cache/shard_00007")


def damage_a_file(house):
    with open(house / "data" / "tenhou" / "xml" / f"{GAME}.txt", "ab") as f:
        f.write(b"x")


def fill_the_trash(house):
    (house / "data/tenhou/trash").mkdir()
    (house / "data/tenhou/trash" / f"{GAME}.txt").write_bytes(b"x" * 5000)


def put_a_zip(house):
    (house / "data/tenhou/raw/scraw2024.zip").write_bytes(DemoYear(8, 2024, 1).zip)


def rebuild_nothing(house):
    (house / "data/tenhou/cache/index.json").unlink()


def lose_a_line(house):
    with open(house / "data" / "tenhou" / "manifest.jsonl", "a") as f:
        f.write("torn\n")


def forget_exports(house):
    shutil.rmtree(house / "data/tenhou/mjai", ignore_errors=True)


# in this order, each after what makes ready for it
STAGED = {
    "cache-cat": None, "export-mjai": forget_exports, "import-logs": put_logs_to_import, "adopt-xml": put_logs_at_home,
    "manifest-status": note_a_failure, "encode-batch": None, "manifest-latest": None,
    "rebuild-index": rebuild_nothing, "verify-shards": copy_a_shard,
    "verify-xml": damage_a_file, "empty-trash": fill_the_trash, "compact-shards": None, "fetch-index": put_a_zip,
    "extract-ids": None, "update-ids": None,
    "recover-manifest": lose_a_line, "report": None, "probe-fs": None,
}
# the others have tests of their own that look at what they print
ELSEWHERE = {"bench", "bench-cache", "fetch-paipu", "serve-demo", "with-lock", "distribute", "train-demo"}


@needs_jq
def test_the_example_in_the_help_of_a_script_has_lines_that_it_prints(house):
    assert set(STAGED) | ELSEWHERE == set(DOCSTRINGS)
    shell(house, "make run")
    for name, prepare in STAGED.items():
        if name == "report" and not has_matplotlib():
            continue
        if prepare:
            prepare(house)
        for command, lines in transcripts(EXAMPLES[name]):
            shown = shell(house, command, HOME=str(house))
            unknown = {shape(line) for line in lines if line != "..."} - {shape(line) for line in shown.splitlines()}
            assert not unknown, f"{name}: {unknown}\n{shown}"
