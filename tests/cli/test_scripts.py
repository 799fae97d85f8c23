"""The scripts of the pipeline through their real command lines: what they print, where, and how they end."""

import bz2
import gzip
import json
import lzma
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

import pytest
from flows import NOBODY, ROOT, environment, make, script
from support import downloaded, event, game, in_cache, in_xml, log, put, put_shard, sha, tree

from lib.demo.selfplay import play
from lib.logs import adopt, place
from lib.manifest import Manifest
from lib.store import workdir

SCRIPTS = sorted(path.name for path in (ROOT / "bin").iterdir())
PYTHON = [name for name in SCRIPTS if (ROOT / "bin" / name).read_bytes().startswith(b"#!/usr/bin/env python3\n")]
PIPELINE = ["adopt-xml", "encode-batch", "manifest-latest", "manifest-status", "rebuild-index", "verify-shards",
            "verify-xml"]
TAKING_IDS = ["adopt-xml", "encode-batch", "manifest-latest", "verify-xml"]
A, B, C = game(1), game(2), game(3)


@pytest.fixture(scope="module")
def logs():
    """Two self-played games, and one that has no end."""
    games = [play(seed, hanchan=False) for seed in range(2)]
    return [*games, games[0].replace(b"owari", b"other")]


@pytest.fixture
def full(work, logs):
    """A work directory with the three logs in xml/ and nothing else."""
    for n, data in enumerate(logs, 1):
        put(work, n, data)
    return work


def run(name, work, *args, **options):
    """Run a script on a work directory, with one job."""
    options["settings"] = {"JOBS": "1"} | options.get("settings", {})
    return script(name, "--work", work, *args, **options)


@pytest.fixture
def done(full):
    """The work directory after adoption and encoding."""
    assert run("adopt-xml", full).returncode == 0
    assert run("encode-batch", full, "--queued").returncode == 0
    return full


@pytest.mark.parametrize("name", SCRIPTS)
def test_help_says_what_the_script_is_for_with_an_example(name, tmp_path):
    with open(ROOT / "bin" / name) as f:
        shell = "bash" in f.readline()
    shown = subprocess.run([*(["bash"] if shell else [sys.executable]), ROOT / "bin" / name, "--help"], cwd=tmp_path,
                           capture_output=True, text=True, env=environment(), stdin=subprocess.DEVNULL)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert re.search(r"^    \$ .*\b" + name + r"\b|^    \$ make ", shown.stdout, re.M)
    assert "(now: )" not in shown.stdout and "(now: None)" not in shown.stdout
    assert "\nEXIT STATUS\n" in shown.stdout and os.listdir(tmp_path) == []


ODD = [{"PYTHONOPTIMIZE": "1"}, {"PYTHONOPTIMIZE": "2"}, {"PYTHONIOENCODING": "latin-1"}, {"PYTHONIOENCODING": "ascii"},
       {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}]


@pytest.mark.parametrize("odd", [ODD[1], ODD[-1]])
@pytest.mark.parametrize("name", PYTHON)
def test_help_is_the_same_without_docstrings_and_in_every_locale(name, odd):
    def help_page(env):
        return subprocess.run([sys.executable, ROOT / "bin" / name, "--help"], capture_output=True,
                              stdin=subprocess.DEVNULL, env=env)

    plain, shown = help_page(environment(PYTHONUTF8="1")), help_page(environment(**odd))
    assert (shown.returncode, shown.stderr) == (0, b"") and shown.stdout == plain.stdout


@pytest.mark.parametrize("odd", ODD)
def test_make_help_is_the_same_in_every_locale(odd):
    assert make("help", settings=odd).stdout == make("help").stdout


@pytest.mark.slow
@pytest.mark.parametrize("odd", ODD)
def test_data_is_the_same_with_optimised_bytecode_and_in_every_locale(tmp_path, logs, odd):
    """Names of players, words of a log, and the name of the work directory are not ASCII."""
    def printed(work, odd):
        put(work, 1, logs[0].replace(b'n0="%E6%9D%B1"', b'n0="%E7%89%8C%C3%A9"'))
        found = []
        for name, *args in (["adopt-xml"], ["encode-batch", "--queued"], ["rebuild-index"], ["verify-xml"],
                            ["verify-shards", "--deep"], ["manifest-latest"], ["manifest-status", "--full"],
                            ["manifest-status", "--json"], ["cache-cat", "--limit", "3"],
                            ["cache-cat", "--limit", "1", "--pretty"], ["export-mjai", "--stdout"],
                            ["update-ids", "--year", 2024]):
            done = subprocess.run([sys.executable, ROOT / "bin" / name, "--work", work, *map(str, args)],
                                  capture_output=True, stdin=subprocess.DEVNULL,
                                  env=environment(JOBS="1", TENHOU_URL=NOBODY, DELAY="0", **odd))
            assert b"Traceback" not in done.stderr and done.returncode == (name == "update-ids"), done.stderr
            if name != "manifest-status":  # which tells of disk use and speed
                found.append(re.sub(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", b"", done.stdout))
        assert script("update-ids", "--work", work, "--year", 2024, settings={"IDS": work, **odd}).stdout == f"{work}\n"
        return found

    works = [os.path.join(tmp_path, "\u724c\u00e9", name) for name in ("a", "b")]
    for work in works:
        workdir.make(work)
    assert printed(works[0], odd) == printed(works[1], {"PYTHONUTF8": "1"})


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_can_be_executed_as_it_is(name):
    assert os.access(ROOT / "bin" / name, os.X_OK)


@pytest.mark.parametrize("name", PYTHON)
def test_an_option_that_does_not_exist_is_wrong_usage(name, tmp_path):
    shown = script(name, "--work", tmp_path / "w", "--no-such-option")
    assert shown.returncode == 2 and shown.stdout == "" and f"{name}: error:" in shown.stderr
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", PIPELINE)
def test_scripts_work_from_anywhere_with_nothing_set_and_stdin_closed(name, tmp_path):
    shutil.copytree(ROOT / "lib", tmp_path / "lib", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "config.mk", tmp_path)
    shutil.copytree(ROOT / "bin", tmp_path / "bin")
    (tmp_path / "data" / "tenhou").mkdir(parents=True)
    shown = subprocess.run([sys.executable, tmp_path / "bin" / name], cwd="/", env={}, capture_output=True, text=True,
                           preexec_fn=lambda: os.close(0))
    assert shown.returncode == 0, shown.stderr
    assert os.listdir(tmp_path / "data") == ["tenhou"]


@pytest.mark.parametrize("name", PYTHON)
def test_without_the_libraries_there_is_help_and_else_one_line_that_says_what_to_do(name):
    def run(*args):
        return subprocess.run([sys.executable, "-S", ROOT / "bin" / name, *args], capture_output=True, text=True,
                              env=environment(_TENHOU_VENV="1"), stdin=subprocess.DEVNULL)

    shown = run("--help")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "    $ " in shown.stdout and "exit status" in shown.stdout.lower()
    assert "\nOPTIONS\n" in shown.stdout or "To see its options, run `make setup`" in shown.stdout
    shown = run("--no-such-option")
    if shown.returncode != 2:
        assert shown.returncode == 1 and shown.stderr.count("\n") == 1
        assert shown.stderr.endswith(f": make -C {ROOT} setup\n")


def test_from_logs_to_rows_each_step_prints_the_ids_that_it_moved_on(full, logs):
    adopted = run("adopt-xml", full)
    assert (adopted.returncode, adopted.stdout.split()) == (0, [A, B, C])
    assert adopted.stderr == "adopt-xml: 3 adopted, 0 duplicates\n"
    assert run("manifest-status", full).stdout == "downloaded : 3\ngames : 3\nrows : 0\n"
    encoded = run("encode-batch", full, input=adopted.stdout)
    assert (encoded.returncode, encoded.stdout.split()) == (0, [A, B])
    rows = sum(r["n_samples"] for r in map(json.loads, run("manifest-latest", full, A, B).stdout.splitlines()))
    assert rows > 300 and encoded.stderr.splitlines() == [
        f"encode-batch: {C}: incomplete: no owari", f"encode-batch: 2 encoded, 1 failed, 0 corrupt; {rows} rows"]
    failed = json.loads(run("manifest-latest", full, C).stdout)
    assert failed["status"] == "failed" and failed["stage"] == "encode" and failed["error"] == "incomplete: no owari"
    indexed = run("rebuild-index", full)
    assert (indexed.returncode, indexed.stdout) == (0, "")
    assert indexed.stderr == f"rebuild-index: {rows} rows in 1 shard\n"
    assert run("manifest-status", full).stdout == f"encoded : 2\nfailed : 1\ngames : 3\nrows : {rows}\n"
    assert run("verify-shards", full).stderr == "shard mismatches : 0\norphan shards : 0\nstale rows : 0\n"
    assert run("verify-xml", full).stderr == (
        "xmls (ok) : 3\nxmls (corrupt) : 0\nxmls (missing) : 0\nxmls (unknown) : 0\n")


@pytest.mark.skipif(not shutil.which("jq"), reason="needs jq")
def test_the_pipe_of_the_readme_does_what_it_says(full):
    run("adopt-xml", full, B, C)
    pipe = ("bin/manifest-latest | jq -r 'select(.status==\"downloaded\").gid' | head -1 | bin/encode-batch")
    shown = subprocess.run(["bash", "-euo", "pipefail", "-c", pipe.replace("bin/", f"{sys.executable} bin/")], cwd=ROOT,
                           capture_output=True, text=True, env=environment(WORK=full, JOBS="1"))
    assert (shown.returncode, shown.stdout) == (0, f"{B}\n")
    assert [json.loads(line)["status"] for line in run("manifest-latest", full).stdout.splitlines()] == [
        "encoded", "downloaded"]


def test_a_second_time_there_is_nothing_to_do_and_nothing_changes(done):
    run("rebuild-index", done)
    before = tree(done)
    for name in PIPELINE:
        shown = run(name, done, *(["--queued"] if name == "encode-batch" else []))
        assert shown.returncode == 0 and (not shown.stdout or name.startswith("manifest-")), shown
    assert "nothing to do" in run("encode-batch", done, "--queued").stderr
    assert {name: data for name, data in tree(done).items() if name != ".seen"} == before


@pytest.mark.parametrize("name", [name for name in PIPELINE if not name.startswith("manifest-")])
def test_quiet_is_quiet_when_nothing_happens(done, name):
    run("rebuild-index", done)
    shown = run(name, done, "--quiet")
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, "", "")


@pytest.mark.parametrize("name", TAKING_IDS)
@pytest.mark.parametrize("bad", ["../../x", "/etc/passwd", "x\ny", f"{A}/..", "\x1b[2J"])
def test_a_bad_id_as_argument_is_refused_before_anything_is_done(full, name, bad):
    before = tree(full)
    shown = run(name, full, A, bad, *(["--queued"] if name == "encode-batch" else []))
    assert shown.returncode == 2 and shown.stdout == "" and tree(full) == before
    assert shown.stderr.startswith(f"{name}: {bad!r} is not a game id") and shown.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["adopt-xml", "encode-batch", "verify-xml"])
def test_a_bad_id_on_stdin_is_told_and_skipped_and_the_others_are_done(done, name):
    put(done, 1, b"damaged")
    shown = run(name, done, input=f"../../x\n{A}\n{game(99)}\n")
    assert f"{name}: '../../x' is not a game id; skipped\n" in shown.stderr
    assert f"{name}: skipped 1 line without a game id\n" in shown.stderr
    assert shown.stdout == (f"corrupt\t{A}\n" if name == "verify-xml" else "")
    assert shown.returncode == (1 if name == "verify-xml" else 0)


def test_the_check_says_of_an_id_that_it_is_of_no_game_here(done):
    os.unlink(os.path.join(done, "xml", f"{A}.txt"))  # encoded: no log is needed
    shown = run("verify-xml", done, A, game(99))
    assert (shown.returncode, shown.stdout) == (0, "")
    assert f"verify-xml: {game(99)}: no such game in this work directory\n" in shown.stderr
    assert f"{A}: no such game" not in shown.stderr and "1 game without a log in xml/: encoded, " in shown.stderr
    shown = run("verify-xml", done, input="".join(f"{game(n)}\n" for n in range(90, 99)))
    assert shown.stderr.count("no such game") == 5 and "verify-xml: 9 ids not on record in" in shown.stderr
    assert "no such game" not in run("verify-xml", done).stderr


def test_the_check_says_how_many_games_have_no_rows_until_their_logs_are_back(done):
    for n, told in enumerate(("1 game has no rows until its log is", "2 games have no rows until their logs are"), 70):
        Manifest(done).append([{"gid": game(n), "status": "corrupt", "sha256": sha(str(n).encode())}])
        assert f"verify-xml: {told} downloaded again: make run WORK={done}\n" in run("verify-xml", done, "--all").stderr
    for n, told in enumerate(("1 game whose shard is gone has no rows until its log is",
                              "2 games whose shard is gone have no rows until their logs are"), 70):
        claim = {"shard": "shard_00777", "start": 0, "n_samples": 3, "sha256": sha(str(n).encode())}
        Manifest(done).append([{"gid": game(n), "status": "corrupt", "claim": claim}])
        assert f"verify-shards: {told} downloaded again: make run WORK={done}\n" in run("verify-shards", done).stderr


def test_only_the_ids_given_are_adopted(full):
    assert run("adopt-xml", full, B).stdout == f"{B}\n" and list(Manifest(full).latest) == [B]
    assert run("adopt-xml", full, input=f"{C}\n").stdout == f"{C}\n" and list(Manifest(full).latest) == [B, C]


def test_adopting_reports_a_foreign_file_safely_and_never_touches_it(full):
    odd = os.path.join(full, "xml", "evil\n\x1b[2J.txt")
    with open(odd, "w") as f:
        f.write("mine")
    put(full, 4, log(1))
    put(full, 5, log(1))
    shown = run("adopt-xml", full)
    assert shown.stdout.split() == [A, B, C, game(4)] and shown.returncode == 0
    assert r"xml/'evil\n\x1b[2J.txt': there is no game id in its name; not adopted" in shown.stderr
    assert "4 adopted, 1 duplicate, 1 not adopted\n" in shown.stderr and os.path.exists(odd)
    assert r"foreign	evil\n\x1b[2J.txt" in run("verify-xml", full).stdout


def test_latest_prints_what_is_known_of_the_ids_asked_for_in_any_locale(work):
    Manifest(work).append([{"gid": A, "status": "of next year", "error": "牌\ud800", "more": {"a": [1]}},
                           {"gid": B, "status": "failed"}])
    shown = run("manifest-latest", work, B, game(9), A, settings={"PYTHONIOENCODING": "ascii"})
    assert [json.loads(line)["gid"] for line in shown.stdout.splitlines()] == [B, A] and shown.returncode == 0
    assert json.loads(shown.stdout.splitlines()[1]) == Manifest(work).latest[A]
    assert "of next year : 1" in run("manifest-status", work).stdout


def test_bad_lines_of_the_manifest_are_told_and_hide_nothing(work):
    event(work, 1, status="corrupt")
    with open(os.path.join(work, "manifest.jsonl"), "ab") as f:
        f.write(b'garbage\n{"gid": "../../x"}\n')
    event(work, 2, status="corrupt")
    for name in ("manifest-latest", "manifest-status", "verify-xml"):
        shown = run(name, work)
        assert "skipped 2 lines without a valid record (first: line 2)" in shown.stderr
        assert shown.stderr.endswith(f": make recover WORK={work}\n") and shown.returncode == 0
    assert [json.loads(line)["gid"] for line in run("manifest-latest", work).stdout.splitlines()] == [A, B]


def test_a_reader_that_has_had_enough_is_no_error(work):
    Manifest(work).append([{"gid": game(n), "status": "failed", "error": "x" * 100} for n in range(2000)])
    shown = subprocess.run(["bash", "-c", f"{sys.executable} bin/manifest-latest | head -1; echo ${{PIPESTATUS[0]}}"],
                           cwd=ROOT, capture_output=True, text=True, env=environment(WORK=work))
    first, status = shown.stdout.splitlines()
    assert json.loads(first)["gid"] == game(0) and status == "141" and shown.stderr == ""


@pytest.mark.parametrize("name", ["manifest-latest", "manifest-status"])
def test_output_that_cannot_be_written_is_an_error(work, name):
    event(work, 1, status="corrupt")
    with open("/dev/full", "w") as full_disk:
        shown = subprocess.run([sys.executable, ROOT / "bin" / name, "--work", work], stdout=full_disk,
                               stderr=subprocess.PIPE, text=True, env=environment())
    assert shown.returncode == 1 and shown.stderr == f"{name}: No space left on device\n"


def test_a_damaged_and_a_lost_file_are_named_and_repair_throws_the_damaged_one_out(done):
    put(done, 1, b"damaged")
    downloaded(done, 4, log(4))
    os.unlink(os.path.join(done, "xml", f"{game(4)}.txt"))
    before = tree(done)
    shown = run("verify-xml", done)
    assert shown.returncode == 1 and sorted(shown.stdout.splitlines()) == [f"corrupt\t{A}", f"missing\t{game(4)}"]
    assert "xmls (corrupt) : 1\nxmls (missing) : 1\n" in shown.stderr and "make check REPAIR=1" in shown.stderr
    assert {name: data for name, data in tree(done).items() if name != ".seen"} == before
    repaired = run("verify-xml", done, settings={"PAIPU_REPAIR": "1"})
    assert repaired.returncode == 1  # one is still missing
    assert not os.path.exists(os.path.join(done, "xml", f"{A}.txt")) and Manifest(done).latest[A]["status"] == "corrupt"
    assert run("verify-xml", done, A, B, "--repair").returncode == 0


@pytest.mark.parametrize("make", [
    lambda path, outside: os.symlink(outside, path), lambda path, _: os.mkfifo(path), lambda path, _: os.mkdir(path)],
    ids=["link", "pipe", "directory"])
def test_what_is_no_file_stops_nothing_and_is_not_followed(done, tmp_path, logs, make):
    (tmp_path / "outside").write_bytes(log(7))
    downloaded(done, 7, log(7))
    path = os.path.join(done, "xml", f"{game(7)}.txt")
    os.unlink(path)
    make(path, tmp_path / "outside")
    shown = run("verify-xml", done, timeout=30)
    assert shown.returncode == 1 and shown.stdout.splitlines() == [f"foreign\t{game(7)}.txt", f"missing\t{game(7)}"]
    assert run("adopt-xml", done, timeout=30).returncode == 0
    shown = run("encode-batch", done, "--queued", timeout=30)
    assert shown.returncode == 0 and "1 game skipped: the log is not in xml/" in shown.stderr
    assert Manifest(done).latest[game(7)]["status"] == "downloaded" and (tmp_path / "outside").read_bytes() == log(7)


@pytest.mark.parametrize("name", [A, f"{A}.xml", f"{A}.MJLOG", f"{A.upper()}.txt", f"{A}&tw=2.mjlog", f"log_{A}.log"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_a_log_by_the_name_that_it_has_elsewhere_is_adopted_under_its_own_and_unpacked(work, name, pack):
    data = log(1)
    with open(os.path.join(work, "xml", name), "wb") as f:
        f.write(pack(data))
    shown = run("verify-xml", work)
    assert shown.stdout == f"unknown\t{name}\n" and shown.returncode == 0
    shown = run("adopt-xml", work)
    assert shown.stdout == f"{A}\n" and shown.stderr == "adopt-xml: 1 adopted, 0 duplicates\n"
    assert in_xml(work) == {f"{A}.txt": data}
    record = Manifest(work).latest[A]
    assert (record["sha256"], record["source"]) == (sha(data), f"xml/{name}")
    assert run("verify-xml", work).stdout == ""


def test_a_log_whose_name_differs_in_capitals_only_is_not_removed_where_both_are_one_name(work, monkeypatch):
    """As on the disk of a Mac: what is written to the one is found under the other."""
    own, other = os.path.join(work, "xml", f"{A}.txt"), os.path.join(work, "xml", f"{A.upper()}.TXT")
    with open(other, "wb") as f:
        f.write(log(1))
    put = place.put

    def put_and_both_are_one(*args):
        found = put(*args)
        os.unlink(other)
        os.link(own, other)
        return found

    removed, unlink = [], os.unlink
    monkeypatch.setattr(place, "put", put_and_both_are_one)
    monkeypatch.setattr(os, "unlink", lambda path: removed.append(path) or unlink(path))
    assert adopt.take_in_renamed(work, Manifest(work), f"{A.upper()}.TXT") == (A, "downloaded")
    assert removed == [other] and os.path.exists(own)  # what the test removed itself


NOT_WHOLE = "not a whole log, or not a log at all: replace it or move it away"


@pytest.mark.parametrize(("data", "why"), [
    (b"<mjloggm><GO/>", NOT_WHOLE), (b"a page", NOT_WHOLE), (b"", NOT_WHOLE),
    (gzip.compress(log(1), mtime=0)[:40], "damaged or still being copied: .*"),
    (log(1, rows=9), f"another log of {A} is here already")], ids=range(5))
def test_what_only_has_the_name_of_a_log_stays_where_it_is(work, data, why):
    put(work, 1, log(1))
    assert run("adopt-xml", work).stdout == f"{A}\n"
    with open(os.path.join(work, "xml", f"{A}.mjlog"), "wb") as f:
        f.write(data)
    before = tree(work)
    shown = run("adopt-xml", work)
    told = f"adopt-xml: xml/'{A}.mjlog': {why}; not adopted\nadopt-xml: 0 adopted, 0 duplicates, 1 not adopted\n"
    assert re.fullmatch(told, shown.stderr)
    assert tree(work) == before


@pytest.mark.parametrize(("make", "what"), [
    (lambda path: os.symlink("x", path), "it is a link"), (os.mkfifo, "it is not a regular file"),
    (os.mkdir, "it is a directory")])
def test_adopting_says_what_stands_there_under_the_name_of_a_game_and_is_no_file(work, make, what):
    make(os.path.join(work, "xml", f"{A}.txt"))
    shown = run("adopt-xml", work, timeout=30)
    assert shown.stderr == (f"adopt-xml: xml/'{A}.txt': {what}; not adopted\n"
                            "adopt-xml: 0 adopted, 0 duplicates, 1 not adopted\n")
    assert os.path.lexists(os.path.join(work, "xml", f"{A}.txt")) and shown.returncode == 0


def test_shards_that_are_wrong_are_named_each_with_its_reason(work):
    put_shard(work, {1: 2})
    put_shard(work, {2: 3})
    put_shard(work, {3: 1}, claimed=False)
    assert run("verify-shards", work).stdout == "orphan\tshard_00002\tno event names it\n"
    put_shard(work, {1: 2})
    os.truncate(os.path.join(work, "cache", "shard_00001", "labels.npy"), 60)
    event(work, 4, status="encoded", shard="../\x1b[2J\n", n_samples=1)
    before = tree(work)
    shown = run("verify-shards", work)
    found = dict(line.split("\t")[1::-1] for line in shown.stdout.splitlines())
    assert shown.returncode == 1 and found == {
        "shard_00001": "mismatch", "shard_00002": "orphan", r"../\x1b[2J\n": "mismatch", game(4): "lost"}
    assert shown.stderr.startswith("shard mismatches : 2\norphan shards : 1\nstale rows : 2\n") and tree(work) == before


def test_an_index_that_has_to_leave_something_out_says_so(work):
    put_shard(work, {1: 2})
    put_shard(work, {2: 3})
    shutil.rmtree(os.path.join(work, "cache", "shard_00000"))
    shown = run("rebuild-index", work)
    assert shown.returncode == 1 and shown.stderr.startswith("rebuild-index: shard_00000: 1 game left out: ")
    with open(os.path.join(work, "cache", "index.json")) as f:
        assert json.load(f)["row_ranges"] == {"shard_00001": [[0, 3]]}


def test_rows_of_a_lost_manifest_whose_logs_are_there_are_claimed_by_a_run_too(done):
    os.unlink(os.path.join(done, "manifest.jsonl"))
    assert run("verify-shards", done).stderr.endswith(f": make recover WORK={done}\n")
    before = {name: data for name, data in tree(done).items() if name.startswith("cache/shard")}
    run("adopt-xml", done)
    assert "2 encoded" in run("encode-batch", done, "--queued").stderr and run("verify-shards", done).returncode == 0
    assert {name: data for name, data in tree(done).items() if name.startswith("cache/shard")} == before


def limited(size):
    """For preexec_fn: a disk on which no file can grow beyond `size` bytes."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_a_full_disk_is_one_line_and_status_1_and_the_next_run_goes_on(full):
    shown = run("adopt-xml", full, preexec_fn=limited(400))
    assert shown.returncode == 1 and re.fullmatch(r"adopt-xml: [^\n]+\n", shown.stderr)
    adopted = Manifest(full)
    assert 0 < len(adopted.latest) < 3 and not adopted.bad
    assert run("adopt-xml", full).returncode == 0 and set(Manifest(full).latest) == {A, B, C}
    shown = run("encode-batch", full, "--queued", preexec_fn=limited(100_000))
    assert shown.returncode == 1 and re.fullmatch(r"encode-batch: [^\n]+\n", shown.stderr) and shown.stdout == ""
    assert in_cache(full) == [] and not Manifest(full).claims
    assert run("encode-batch", full, "--queued").stdout.split() == [A, B]


@pytest.mark.parametrize("name", PIPELINE)
def test_a_manifest_that_cannot_be_read_is_one_line_and_status_1(work, name):
    os.mkdir(os.path.join(work, "manifest.jsonl"))
    put(work, 1, log(1))
    shown = run(name, work)
    assert shown.returncode == 1 and shown.stdout == ""
    assert re.fullmatch(rf"{name}: .*manifest\.jsonl: Is a directory\n", shown.stderr)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_closes_the_shard_in_the_making_and_says_its_ids(full, signum):
    run("adopt-xml", full)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, ROOT / "bin" / "encode-batch", "--work", full, "--jobs", "1"], text=True,
                          env=environment(), **pipes) as p:
        p.stdin.write(f"{A}\n")
        p.stdin.flush()
        while not in_cache(full):  # the shard in the making
            time.sleep(0.01)
        p.send_signal(signum)
        assert p.wait(30) == 128 + signum
        assert p.stdout.read() == f"{A}\n" and "1 encoded" in p.stderr.read()
    assert run("verify-shards", full).returncode == 0


def test_one_id_queued_and_on_stdin_is_encoded_once(full):
    run("adopt-xml", full)
    shown = run("encode-batch", full, "--queued", input=f"{A}\n{B}\n{A}\n")
    assert shown.stdout.split() == [A, B] and run("verify-shards", full).returncode == 0


def test_a_file_that_changed_since_its_download_is_left_out(full, logs):
    run("adopt-xml", full)
    put(full, 1, logs[0] + b" ")
    shown = run("encode-batch", full, "--queued")
    assert shown.returncode == 0 and shown.stdout.split() == [B] and "1 encoded, 1 failed, 1 corrupt" in shown.stderr
    assert Manifest(full).latest[A]["found"] == sha(logs[0] + b" ")
    put(full, 1, logs[0])
    assert run("adopt-xml", full).stdout == f"{A}\n" and run("encode-batch", full, A).stdout == f"{A}\n"


# An empty pipe

@pytest.mark.parametrize("name", ["adopt-xml", "verify-xml"])
@pytest.mark.parametrize("text", ["", "\n"])
def test_a_pipe_without_ids_means_none_and_says_what_means_all(full, name, text):
    """As of `grep nosuch ids | bin/adopt-xml`."""
    before = tree(full)
    shown = run(name, full, input=text)
    assert (shown.returncode, shown.stdout) == (0, "") and tree(full) == before
    assert f"{name}: no game ids came on stdin, so nothing was done; for all games use --all\n" in shown.stderr


def test_an_empty_file_means_none_too(full, tmp_path):
    (tmp_path / "ids").touch()
    with open(tmp_path / "ids") as f:
        assert run("adopt-xml", full, stdin=f).stdout == "" and not Manifest(full).latest


def test_all_means_all_whatever_stdin_is(full):
    assert run("adopt-xml", full, "--all", input="").stdout.split() == [A, B, C]
    assert "xmls (ok) : 3" in run("verify-xml", full, "--all", input=f"{A}\n").stderr
    assert run("verify-xml", full, "--all", A).returncode == 2


def test_nothing_is_repaired_when_no_ids_come(done):
    put(done, 1, b"damaged")
    before = tree(done)
    assert run("verify-xml", done, "--repair", input="").returncode == 0 and tree(done) == before
