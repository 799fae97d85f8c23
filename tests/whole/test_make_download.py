"""make run against a stand-in for Tenhou: politeness, interruption, faults, refusals."""

import calendar
import contextlib
import datetime
import email.utils
import gzip
import itertools
import os
import random
import re
import signal
import subprocess
import sys
import time
import zipfile

import pytest
from flows import NOBODY, ROOT, cache, environment, forget, make, records, stand_in, start_make
from flows import script as call
from test_full_disk import forbid_everything
from test_hostile import reply, server

from lib.cli import settings
from lib.download import lists, pause
from lib.manifest import Manifest
from lib.store import locks
from lib.store.errors import Busy, Problem

YEAR = "YEAR=2024"
NOW = str(datetime.datetime.now(settings.JAPAN).year)  # a running year
A, B, C = (f"2024010100gm-00a9-0000-0000000{n}" for n in (1, 2, 3))


def script(name, *args, **options):
    """Call bin/name with a work directory that is there."""
    if "--work" in args:
        os.makedirs(args[args.index("--work") + 1], exist_ok=True)
    return call(name, *args, **options)


def run(work, url, *more, delay=0, **options):
    return make("run", f"WORK={work}", YEAR, f"TENHOU_URL={url}", f"DELAY={delay}", *more, **options)


def asked(requests):
    """The ids that were asked for, in order."""
    return [r["gid"] for r in requests if r["gid"]]


@pytest.mark.slow
def test_killed_again_and_again_every_game_is_encoded_once_and_asked_for_once(tmp_path):
    work, delay, chance = tmp_path / "w", 0.25, random.Random(5)
    with stand_in(tmp_path, "--games", 25) as (url, log):
        kills = 0
        for i in range(6):
            victim = start_make("run", f"WORK={work}", YEAR, f"TENHOU_URL={url}", f"DELAY={delay}", "SHARD_ROWS=2000")
            time.sleep(chance.uniform(0.4, 1.5))
            kills += victim.poll() is None
            if i % 2:
                with contextlib.suppress(ProcessLookupError):  # it has ended already
                    os.killpg(victim.pid, signal.SIGKILL)
            else:
                victim.kill()  # make alone: its scripts notice and end by themselves
            victim.wait()
        done = run(work, url, "SHARD_ROWS=2000", delay=delay)
        assert done.returncode == 0, done.stderr
        undisturbed = tmp_path / "u"
        assert run(undisturbed, url).returncode == 0
        requests = log()
    first = asked(requests)[: len(asked(requests)) - 25]
    assert kills >= 3
    assert {r["status"] for r in records(work).values()} == {"encoded"}
    assert cache(work) == cache(undisturbed) and len(cache(work)) == 25
    assert len(set(first)) == 25
    assert len(first) <= 25 + kills  # one may be in flight at each kill
    assert max(r["in_flight"] for r in requests) == 1
    starts = [r["start"] for r in requests[:len(first)]]
    assert min(b - a for a, b in itertools.pairwise(starts)) >= delay


def test_nothing_to_do_asks_the_server_for_nothing_and_says_so(tmp_path):
    work = tmp_path / "w"
    with stand_in(tmp_path, "--games", 2) as (url, log):
        assert run(work, url).returncode == 0
        before = len(log())
        again = run(work, url)
        assert again.returncode == 0 and "nothing to do" in again.stderr
        quiet = make("-s", "run", f"WORK={work}", YEAR, f"TENHOU_URL={url}", "DELAY=0")
        assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")
        assert len(log()) == before


@pytest.mark.slow
def test_a_damaged_file_is_repaired_and_fetched_again(tmp_path):
    work = tmp_path / "w"
    with stand_in(tmp_path, "--games", 2) as (url, _):
        assert run(work, url).returncode == 0
        whole = cache(work)
        victim = sorted((work / "xml").glob("*.txt"))[0]
        victim.write_bytes(victim.read_bytes() + b"\n")
        found = make("check", f"WORK={work}")
        assert found.returncode == 2 and f"corrupt\t{victim.stem}" in found.stdout
        assert make("check", f"WORK={work}", "REPAIR=1").returncode == 0
        assert not victim.exists() and records(work)[victim.stem]["status"] == "corrupt"
        assert run(work, url).returncode == 0
        assert make("check", f"WORK={work}").returncode == 0
        assert cache(work) == whole


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "reason"), [
    ("404", "HTTP 404"), ("503", "HTTP 503"), ("empty", "empty body"), ("short", "short body"),
    ("html", "HTML page instead of a log"), ("reset", "connection reset"), ("slow", "timed out after 1 s"),
])  # fmt: skip
def test_each_fault_has_its_reason_and_passes(tmp_path, kind, reason):
    work = tmp_path / "w"
    options = ["--games", 6, "--fault", kind, "--fault-ids", "0.34", "--slow-seconds", 3]
    with stand_in(tmp_path, *options) as (url, _):
        done = run(work, url, f"TIMEOUT={1 if kind == 'slow' else 30}")
        assert done.returncode == 0, done.stderr
        failed = {game: r for game, r in records(work).items() if r["status"] == "failed"}
        assert len(failed) == 2 and all(r["error"].startswith(reason) for r in failed.values())
        assert all(r["stage"] == "download" and r["retry_at"] for r in failed.values())
        assert all(f"{game}: {reason}" in done.stderr for game in failed)
    with stand_in(tmp_path, "--games", 6) as (url, _):
        assert run(work, url, "RETRY=1").returncode == 0
    assert len(cache(work)) == 6


def test_games_that_failed_are_counted_by_reason(tmp_path):
    answers = {A: 404, B: 404, C: 500}
    with server(lambda handler: reply(handler, b"", answers[handler.path[-len(A):]])) as (url, _):
        done = script("fetch-paipu", "--work", tmp_path, *answers, settings={"TENHOU_URL": url, "DELAY": "0"})
    assert done.stderr.endswith("fetch-paipu: 3 failed: 2 HTTP 404, 1 HTTP 500\n"
                                "fetch-paipu: 0 downloaded, 0 duplicates, 3 failed, 0 left for later\n")


def test_too_many_requests_are_named(tmp_path):
    with server(lambda handler: reply(handler, b"", 429, Retry_After="0")) as (url, _):
        done = script("fetch-paipu", "--work", tmp_path, A, settings={"TENHOU_URL": url, "DELAY": "0"})
    assert records(tmp_path)[A]["error"] == "HTTP 429 too many requests"
    assert f"fetch-paipu: {A}: HTTP 429 too many requests; trying again in 0 s\n" in done.stderr


def test_a_missing_log_is_asked_for_again_after_a_week_a_passing_fault_at_the_next_run(tmp_path):
    work = tmp_path / "w"
    with stand_in(tmp_path, "--games", 6, "--fault", "404,empty", "--fault-ids", "0.34") as (url, log):
        run(work, url)
        before = len(log())
        run(work, url)
        again = asked(log()[before:])
    due = {r["error"]: r["retry_at"][:10] for r in records(work).values() if r["status"] == "failed"}
    assert set(again) == {game for game, r in records(work).items() if r.get("error") == "empty body"}
    assert due["HTTP 404"] == time.strftime("%Y-%m-%d", time.gmtime(time.time() + 7 * 86400))


def test_a_server_that_refuses_everything_is_left_alone_and_nothing_is_held_against_the_games(tmp_path):
    work = tmp_path / "w"
    with stand_in(tmp_path, "--games", 9, "--fault", "404") as (url, log):
        done = run(work, url, "MAX_REFUSALS=4")
        assert done.returncode == 2 and "4 requests in a row failed" in done.stderr
        told = f"in one run: make run {YEAR} DELAY=0 MAX_REFUSALS=40 TENHOU_URL={url} WORK={work}"
        assert f"{told}\n" in done.stderr
        assert len(asked(log())) == 4
        assert records(work) == {}
    with stand_in(tmp_path, "--games", 9) as (url, _):
        assert run(work, url).returncode == 0
    assert len(cache(work)) == 9


def fetch(work, url, games, *more):
    return script("fetch-paipu", "--work", work, "--queued", *more, input="\n".join(games),
                  settings={"TENHOU_URL": url, "DELAY": "0", "MAX_REFUSALS": "3"})


def test_a_row_of_games_that_are_not_there_holds_up_the_rest_for_two_runs_only(tmp_path):
    games = [f"{A[:-2]}{n:02d}" for n in range(11, 16)]

    def answer(handler):
        there = handler.path[-len(A):] in games[3:]
        reply(handler, b"<mjloggm><GO/>%s</mjloggm>" % handler.path.encode() if there else b"", 200 if there else 404)

    (tmp_path / "w").mkdir()
    with server(answer) as (url, asked):
        first = fetch(tmp_path / "w", url, games)
        assert first.returncode == 1 and len(asked) == 3 and not (tmp_path / "w" / "manifest.jsonl").exists()
        assert fetch(tmp_path / "w", NOBODY, games).returncode == 1  # a run without a network in between
        assert fetch(tmp_path / "w", url, [C] * 3, "--max-refusals", "1").returncode == 1  # and one of another list
        assert asked.pop().endswith(C)
        second = fetch(tmp_path / "w", url, games)
        assert second.returncode == 1 and len(asked) == 6 and "3 failed: 3 HTTP 404\n" in second.stderr
        due = {r["retry_at"][:10] for r in records(tmp_path / "w").values()}
        assert due == {time.strftime("%Y-%m-%d", time.gmtime(time.time() + 7 * 86400))}
        third = fetch(tmp_path / "w", url, games)
        assert third.returncode == 0 and third.stdout.split() == games[3:] and len(asked) == 8
        assert [r["status"] for r in records(tmp_path / "w").values()] == ["failed"] * 3 + ["downloaded"] * 2


@pytest.mark.parametrize("is_file", [False, True])
def test_failed_games_that_are_asked_for_again_come_after_the_new_ones_and_in_the_order_of_their_last_try(
        tmp_path, is_file):
    work, games = tmp_path / "w", [f"{A[:-2]}{n:02d}" for n in range(10, 18)]
    work.mkdir()
    put_off = {"status": "failed", "stage": "download", "error": "HTTP 404", "retry_at": "2099-01-01T00:00:00Z"}
    Manifest(work).append([{"ts": f"2024-01-0{1 + n % 4}T00:00:00Z", "gid": game, **put_off}
                           for n, game in enumerate(games)])
    (tmp_path / "ids").write_text("\n".join([*games, C]))

    def answer(handler):
        there = handler.path.endswith(C)
        reply(handler, b"<mjloggm><GO/>%s</mjloggm>" % handler.path.encode() if there else b"", 200 if there else 404)

    with server(answer) as (url, asked), open(tmp_path / "ids") as f:
        for _ in range(3):
            done = script("fetch-paipu", "--work", work, "--queued", "--retry",
                          settings={"TENHOU_URL": url, "DELAY": "0", "MAX_REFUSALS": "3"},
                          **({"stdin": f} if is_file else {"input": (tmp_path / "ids").read_text()}))
            assert done.returncode == 1 and "3 requests in a row failed" in done.stderr
            f.seek(0)
        asked = [path[-len(A):] for path in asked]
    oldest_first = [games[n] for n in (0, 4, 1, 5, 2, 6, 3, 7)]
    assert asked == [C, *oldest_first, oldest_first[0]]


@pytest.mark.parametrize(("status", "failed"), [(404, 6), (403, 6), (429, 0), (503, 0)])
def test_a_server_that_refuses_all_in_every_run_has_no_more_games_put_off_than_one_row_in_two_runs(
        tmp_path, status, failed):
    (tmp_path / "w").mkdir()
    games = [f"{A[:-2]}{n:02d}" for n in range(40)]
    with server(lambda handler: reply(handler, b"", status, Retry_After="0")) as (url, asked):
        for run in range(1, 6):
            done = fetch(tmp_path / "w", url, games)
            assert done.returncode == 1 and len(asked) == 3 * run, done.stderr
    assert len(records(tmp_path / "w") if failed else []) == failed
    assert bool(failed) == (tmp_path / "w" / "manifest.jsonl").exists()


def date_in(seconds):
    return email.utils.formatdate(time.time() + seconds, usegmt=True)


@pytest.mark.parametrize("wish", [lambda: "21600", lambda: date_in(21600), lambda: "9" * 30])
@pytest.mark.parametrize("status", [429, 503])
def test_a_server_that_asks_for_hours_is_not_asked_by_any_later_run_before(tmp_path, wish, status):
    now = time.time()
    with server(lambda handler: reply(handler, b"", status, Retry_After=wish())) as (url, asked):
        place = url.removeprefix("http://")
        path = locks.machine_path(f"fetch-{place}")
        try:
            first = script("fetch-paipu", "--work", tmp_path / "a", A, settings={"TENHOU_URL": url, "DELAY": "0"})
            told = re.search(r"127\.0\.0\.1 tells us to come back after (\S+) \(HTTP", first.stderr)
            assert first.returncode == 1 and len(asked) == 1 and not (tmp_path / "a" / "manifest.jsonl").exists()
            hours = (calendar.timegm(time.strptime(told[1], "%Y-%m-%dT%H:%M:%SZ")) - now) / 3600
            assert hours > 700 if "999" in wish() else 5.9 < hours < 6.1
            for name, *args in (["fetch-paipu", B, "--retry"], ["fetch-index", "--year", 2024]):
                later = script(name, "--work", tmp_path / "b", *args,
                               settings={"TENHOU_URL": url, "DELAY": "0", "PAIPU_RETRY": "1"})
                assert later.returncode == 1 and later.stderr == (
                    f"{name}: {place} told us to come back after {told[1]} (noted in {path}); "
                    "no request was sent\n")
            assert len(asked) == 1
            with open(path, "rb+") as f:
                locks.stamp(f.fileno(), 0, int(time.time() * 1e9))  # the time has come
            script("fetch-paipu", "--work", tmp_path / "b", B, settings={"TENHOU_URL": url, "DELAY": "0"})
            assert len(asked) == 2
        finally:
            os.unlink(path)  # the next server on this port is to be asked


def test_a_wish_that_was_noted_before_the_clock_was_set_back_by_years_does_not_hold_for_years():
    path = locks.machine_path("fetch-clock.test")
    try:
        for ahead in (7 * 86400, 40 * 86400, 10**10):
            with locks.held(path, "x") as fd:
                locks.stamp(fd, 0, int((time.time() + ahead) * 1e9))
            wait = pytest.raises(Problem) if ahead < 30 * 86400 else contextlib.nullcontext()
            with wait, pause.held("http://clock.test", 1) as found:
                assert 0 <= found.left() <= 1
    finally:
        os.unlink(path)


@pytest.mark.parametrize("here", ["XXX+9", "XXX-9"])
def test_a_wish_without_a_zone_is_in_universal_time_wherever_we_are(tmp_path, here):
    def wish(handler):
        reply(handler, b"", 503, Retry_After=date_in(21600).removesuffix(" GMT"))

    with server(wish) as (url, asked):
        now = time.time()
        done = script("fetch-paipu", "--work", tmp_path, A, settings={"TENHOU_URL": url, "DELAY": "0", "TZ": here})
        forget(url)
    told = re.search(r"tells us to come back after (\S+) \(HTTP", done.stderr)
    assert told and len(asked) == 1, done.stderr
    assert 5.9 < (calendar.timegm(time.strptime(told[1], "%Y-%m-%dT%H:%M:%SZ")) - now) / 3600 < 6.1


@pytest.mark.parametrize("timeout", [0.01, 10**9])
def test_an_answer_has_a_time_limit_with_any_timeout(tmp_path, timeout):
    with stand_in(tmp_path, "--games", 1) as (url, _):
        done = script("fetch-index", "--work", tmp_path / "w", "--year", 2024,
                      settings={"TENHOU_URL": url, "DELAY": "0", "TIMEOUT": str(timeout)})
    assert done.returncode in (0, 1) and "Traceback" not in done.stderr
    assert timeout < 1 or done.returncode == 0, done.stderr


def test_a_run_that_stopped_for_refusals_leaves_the_next_one_the_pause_that_was_asked_for(tmp_path):
    with server(lambda handler: reply(handler, b"", 503, Retry_After="2")) as (url, asked):
        for expected in (1, 1, 2):
            done = script("fetch-paipu", "--work", tmp_path, A,
                          settings={"TENHOU_URL": url, "DELAY": "0", "MAX_REFUSALS": "1"})
            assert done.returncode == 1 and len(asked) == expected, done.stderr
            if "no request was sent" in done.stderr:
                time.sleep(2)


def test_of_two_fetchers_of_a_machine_one_is_busy(tmp_path):
    with stand_in(tmp_path, "--games", 8) as (url, log):
        settings = {"TENHOU_URL": url, "DELAY": "0.2"}
        assert script("fetch-index", "--work", tmp_path / "a", "--year", 2024, settings=settings).returncode == 0
        ids = script("extract-ids", "--work", tmp_path / "a", "--year", 2024).stdout
        first = subprocess.Popen([sys.executable, ROOT / "bin" / "fetch-paipu", "--work", tmp_path / "a", *ids.split()],
                                 env=environment(**settings), stdout=subprocess.PIPE, text=True)
        first.stdout.readline()
        second = script("fetch-paipu", "--work", tmp_path / "b", *ids.split(), settings=settings)
        assert second.returncode == 75 and f"pid {first.pid}" in second.stderr
        assert first.wait() == 0
        first.stdout.close()
        assert max(r["in_flight"] for r in log()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("listed", [False, True])
def test_a_run_that_finds_another_work_directory_downloading_says_so_once_and_cron_is_silent_until_its_turn_comes(
        tmp_path, listed):
    work = tmp_path / "w"
    with stand_in(tmp_path, "--games", 2) as (url, log):
        if listed:
            assert run(work, url, "MAX_NEW=0").returncode == 0
        quiet = ["-s", "run", f"WORK={work}", YEAR, f"TENHOU_URL={url}", "DELAY=0"]
        with pause.held(url, 0, "for /their/work"):
            loud = run(work, url)
            assert loud.returncode == 2 and "Error 75" in loud.stderr and "nothing to download" not in loud.stderr
            (line,) = re.findall("^fetch-.*busy.*", loud.stderr, re.M)
            assert re.fullmatch(
                rf"fetch-{'paipu' if listed else 'index'}: busy: another process here is downloading from {url} \(for "
                rf"/their/work, pid {os.getpid()} on \S+, since \S+Z\); this run encodes what is here, a later one "
                "downloads", line)
            for _ in range(2):
                time.sleep(2.1 * listed)  # what is younger is never taken for settled
                done = make(*quiet)
                assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
            assert not asked(log()) and os.path.exists(work / "game_ids_2024.txt") == listed
        assert make(*quiet).returncode == 0
    assert len(cache(work)) == 2


@pytest.mark.slow
def test_a_lock_file_that_is_removed_does_not_let_a_second_session_ask_and_its_times_are_there_again(tmp_path):
    with stand_in(tmp_path, "--games", 8) as (url, log):
        settings = {"TENHOU_URL": url, "DELAY": "0.5"}
        assert script("fetch-index", "--work", tmp_path / "a", "--year", 2024, settings=settings).returncode == 0
        ids = script("extract-ids", "--work", tmp_path / "a", "--year", 2024).stdout
        path = locks.machine_path("fetch-" + url.removeprefix("http://"))
        first = subprocess.Popen([sys.executable, ROOT / "bin" / "fetch-paipu", "--work", tmp_path / "a", *ids.split()],
                                 env=environment(**settings), stdout=subprocess.PIPE, text=True)
        first.stdout.readline()
        os.unlink(path)
        for name, *args in (["fetch-paipu", *ids.split()], ["fetch-index", "--year", 2024]):
            second = script(name, "--work", tmp_path / "b", *args, settings=settings)
            assert second.returncode == 75 and "busy: another process here is downloading" in second.stderr
        first.stdout.readline()
        with open(path, "rb") as f:
            assert time.time() - locks.stamps(f.fileno())[0] / 1e9 < 2
            assert f"pid {first.pid} on ".encode() in f.read()
        assert len(first.stdout.read().split()) == 6 and first.wait() == 0
        first.stdout.close()
        os.unlink(path)  # nobody knows any more when the last request was
        assert script("fetch-index", "--work", tmp_path / "b", "--year", 2024, settings=settings).returncode == 0
        times = [r["start"] for r in log()]
        assert max(r["in_flight"] for r in log()) == 1 and min(b - a for a, b in itertools.pairwise(times)) >= 0.5


@pytest.mark.parametrize(("one", "other"), [
    ("https://tenhou.net", "https://TENHOU.net"), ("https://tenhou.net", "https://tenhou.net:443"),
    ("https://tenhou.net", "https://www.tenhou.net"), ("https://tenhou.net", "http://tenhou.net.:80/x"),
    ("http://Example.test:80", "http://example.test"), ("http://a@127.0.0.1:8000", "http://127.0.0.1:8000/")])
def test_a_server_has_one_lock_however_its_address_is_written(tmp_path, monkeypatch, one, other):
    monkeypatch.setattr(locks, "machine_path", lambda name: str(tmp_path / name))
    with pause.held(one, 5), pytest.raises(Busy), pause.held(other, 5):
        pass
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(("one", "other"), [
    ("https://tenhou.net", "https://eviltenhou.net"), ("http://example.test:81", "http://example.test"),
    ("http://127.0.0.1:8000", "http://127.0.0.1:8001")])
def test_two_servers_have_two_locks(tmp_path, monkeypatch, one, other):
    monkeypatch.setattr(locks, "machine_path", lambda name: str(tmp_path / name))
    with pause.held(one, 5), pause.held(other, 5):
        assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("closed", ["another user's", "a link"])
def test_a_lock_file_that_is_closed_to_us_is_a_line_that_says_so_and_nothing_is_asked(tmp_path, closed):
    with server(lambda handler: reply(handler, b"", 404)) as (url, asked):
        path = locks.machine_path("fetch-" + url.removeprefix("http://"))
        if closed == "a link":
            os.symlink(tmp_path / "x", path)
        else:
            os.close(os.open(path, os.O_CREAT, 0o644))
            os.chmod(path, 0o444)
            if os.geteuid() == 0:
                os.chown(path, 65534, 65534)
        try:
            done = script("fetch-paipu", "--work", tmp_path / "w", A, settings={"TENHOU_URL": url, "DELAY": "0"},
                          preexec_fn=forbid_everything)
        finally:
            os.unlink(path)
    why = "Permission denied" if closed != "a link" else "Too many levels of symbolic links"
    assert done.returncode == 1 and not asked and not (tmp_path / "x").exists()
    assert done.stderr == (f"fetch-paipu: {path}: {why}: this lock file belongs to another user, or is a link; "
                           "remove it, or let all users write it (chmod 666)\n")


def test_a_lock_file_of_another_user_that_all_may_write_is_as_good_as_our_own(tmp_path):
    with server(lambda handler: reply(handler, b"", 404)) as (url, asked):
        path = locks.machine_path("fetch-" + url.removeprefix("http://"))
        os.close(os.open(path, os.O_CREAT))
        os.chmod(path, 0o666)
        if os.geteuid() == 0:
            os.chown(path, 65534, 65534)
        assert script("fetch-paipu", "--work", tmp_path, A, settings={"TENHOU_URL": url, "DELAY": "0"},
                      preexec_fn=forbid_everything).returncode == 0
        os.unlink(path)
    assert len(asked) == 1


def test_of_two_runs_on_one_work_directory_one_is_busy(tmp_path):
    work = tmp_path / "w"
    with stand_in(tmp_path, "--games", 5) as (url, _):
        first = start_make("run", f"WORK={work}", YEAR, f"TENHOU_URL={url}", "DELAY=0.3")
        while not list((work / "xml").glob("2*")):
            time.sleep(0.05)
        second = run(work, url)
        assert second.returncode == 2 and f"busy: a run is at work on {work} (make run " in second.stderr
        assert f" {YEAR}, pid {first.pid} on " in second.stderr and "Error 75" in second.stderr
        assert first.wait() == 0
    assert len(cache(work)) == 5


@pytest.mark.parametrize(("signum", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_closes_the_shard_with_what_is_encoded(tmp_path, signum, status):
    work = tmp_path / "w"
    with stand_in(tmp_path, "--games", 30) as (url, _):
        settings = {"TENHOU_URL": url, "DELAY": "0.1"}
        script("fetch-index", "--work", work, "--year", 2024, settings=settings)
        ids = script("extract-ids", "--work", work, "--year", 2024).stdout
        (tmp_path / "ids").write_text(ids)
        with open(tmp_path / "ids") as stdin:
            fetch = subprocess.Popen([sys.executable, ROOT / "bin" / "fetch-paipu", "--work", work], stdin=stdin,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(**settings))
        encode = subprocess.Popen([sys.executable, ROOT / "bin" / "encode-batch", "--work", work], stdin=fetch.stdout,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment())
        fetch.stdout.close()
        while len(list((work / "xml").glob("2*"))) < 4:
            time.sleep(0.05)
        for process in (fetch, encode):
            process.send_signal(signum)
        printed = encode.communicate()[0].decode().split()
        told = re.fullmatch(r"fetch-paipu: (\d+) downloaded, 0 duplicates, 0 failed, (\d+) left for later\n",
                            fetch.communicate()[1].decode())
        assert (fetch.wait(), encode.returncode) == (status, status)
    assert int(told[1]) == len(records(work)) and int(told[1]) + int(told[2]) == 30
    encoded = {game for game, r in records(work).items() if r["status"] == "encoded"}
    assert encoded == set(printed) and encoded
    assert script("verify-shards", "--work", work).returncode == 0


@pytest.mark.parametrize("source", ["file", "pipe"])
def test_when_its_reader_has_had_enough_the_download_says_what_is_left_if_it_knows(tmp_path, source):
    work = tmp_path / "w"
    ids = "".join(f"{A[:-2]}{n:02d}\n" for n in range(20))
    (tmp_path / "ids").write_text(ids)
    work.mkdir()
    take = "<ids" if source == "file" else "< <(cat ids)"
    with server(lambda handler: reply(handler, b"<mjloggm><GO/>%s</mjloggm>" % handler.path.encode())) as (url, _):
        done = subprocess.run(
            ["bash", "-c", f"{sys.executable} {ROOT}/bin/fetch-paipu --work {work} {take} | head -1"], cwd=tmp_path,
            capture_output=True, text=True, env=environment(TENHOU_URL=url, DELAY="0.1"))
    n = len(records(work))
    assert n < 20 and done.stderr == (f"fetch-paipu: {n} downloaded, 0 duplicates, 0 failed"
                                      + (f", {20 - n} left for later\n" if source == "file" else "\n"))


def test_encoding_does_not_wait_for_the_end_of_the_ids(tmp_path):
    work = tmp_path / "w"
    with stand_in(tmp_path, "--games", 3) as (url, _):
        assert run(work, url).returncode == 0
    ids = sorted(records(work))
    for shard in (work / "cache").glob("shard_*"):
        for file in shard.iterdir():
            file.unlink()
        shard.rmdir()
    encode = subprocess.Popen([sys.executable, ROOT / "bin" / "encode-batch", "--work", work, "--shard-rows", "1"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment())
    for game in ids:
        encode.stdin.write(game + "\n")
        encode.stdin.flush()
        assert encode.stdout.readline().strip() == game
    encode.communicate()


@pytest.mark.slow
def test_the_lists_of_a_running_year_are_looked_at_once_in_twenty_minutes(tmp_path):
    work = tmp_path / "w"
    with stand_in(tmp_path, "--games", 6, "--running") as (url, log):
        assert run(work, url).returncode == 0
        looks = [r["path"] for r in log() if "list.cgi" in r["path"]]
        assert sorted(looks) == ["/sc/raw/list.cgi", "/sc/raw/list.cgi?old"]
        pages = len([r for r in log() if "/dat/" in r["path"]])
        assert pages and run(work, url).returncode == 0
        assert len([r["path"] for r in log() if "list.cgi" in r["path"]]) == 2
        os.utime(work / "raw" / ".looked", (0, 0))
        assert run(work, url).returncode == 0
        assert len([r["path"] for r in log() if "list.cgi" in r["path"]]) == 4
        assert len([r for r in log() if "/dat/" in r["path"]]) == pages
    assert len(cache(work)) == 6


@pytest.mark.slow
@pytest.mark.parametrize(("ahead", "grows"), [(600, False), (3600, True), (10 * 365 * 86400, True)])
def test_lists_that_are_dated_in_the_future_are_brought_up_to_date_all_the_same_but_not_too_often(
        tmp_path, ahead, grows):
    work, words = tmp_path / "w", (f"YEAR={NOW}", "DELAY=0", "-s")
    for games in (2, 8):
        with stand_in(tmp_path, "--games", games, "--running", "--year", NOW) as (url, _):
            done = make("run", f"WORK={work}", f"TENHOU_URL={url}", *words)
            assert done.returncode == 0, done.stderr
        ids = (work / f"game_ids_{NOW}.txt").read_text().split()
        assert set(ids) == set(records(work))
        for path in (*work.glob("game_ids_*.txt"), *(work / "raw").iterdir()):
            os.utime(path, (time.time() + ahead,) * 2)
    assert (len(ids) > 2) is grows


def test_when_the_lists_were_looked_at_is_told_by_our_own_clock(work, monkeypatch):
    monkeypatch.setattr(lists, "_fetch_lists", lambda *_: (0, 0))
    monkeypatch.setattr(time, "time", lambda: 1e9)  # that of the file server goes on
    lists.fetch_lists(None, work, 2024)
    assert lists.last_look(work) == (1e9 + lists.LOOK_EVERY, "")


def test_after_a_failed_look_a_run_says_that_it_failed_and_when_the_next_one_is_not_that_nothing_is_listed(tmp_path):
    def look(url, **more):
        return script("fetch-index", "--work", tmp_path / "w", "--year", NOW,
                      settings={"TENHOU_URL": url, "DELAY": "0", **more})

    with server(lambda handler: reply(handler, b"", 500)) as (url, asked):
        first = look(url)
        assert first.returncode == 1 and f"{url}: HTTP 500; try again later" in first.stderr and len(asked) == 3
        again = look(url)
        assert again.returncode == 1 and len(asked) == 3 and "has no list" not in again.stderr
        when = re.search(r"the last download of the lists failed: HTTP 500; try again after (\S+Z), or put",
                         again.stderr)[1]
        assert 1100 < calendar.timegm(time.strptime(when, "%Y-%m-%dT%H:%M:%SZ")) - time.time() <= 1200
        os.utime(tmp_path / "w" / "raw" / ".looked", (0, 0))
        look(url, MAX_REFUSALS="1")
        assert len(asked) == 6


@pytest.mark.parametrize(("listed", "told"), [
    (b"list([]);", "the server has no list of the games of NOW"),
    (b"list([{file:'sccNOW0101.html.gz',size:9}]);", "failed: 2 lists could not be downloaded; try again after"),
])
def test_a_look_that_finds_nothing_is_told_from_one_that_cannot_fetch_what_it_finds(tmp_path, listed, told):
    def answer(handler):
        reply(handler, listed.replace(b"NOW", NOW.encode()), 200 if "list.cgi" in handler.path else 404)

    with server(answer) as (url, asked):
        for _ in range(2):
            done = script("fetch-index", "--work", tmp_path, "--year", NOW,
                          settings={"TENHOU_URL": url, "DELAY": "0"})
            assert done.returncode == 1 and told.replace("NOW", NOW) in done.stderr.splitlines()[-1], done.stderr
    assert len(asked) == (2 if "no list" in told else 4)


def test_a_look_that_another_process_kept_us_from_is_made_by_the_next_run(tmp_path):
    with server(lambda handler: reply(handler, b"list([]);")) as (url, asked):
        settings = {"TENHOU_URL": url, "DELAY": "0"}
        with locks.held(locks.machine_path("fetch-" + url.removeprefix("http://")), "a test"):
            assert script("fetch-index", "--work", tmp_path, "--year", NOW, settings=settings).returncode == 75
        assert script("fetch-index", "--work", tmp_path, "--year", NOW, settings=settings).returncode == 1
    assert len(asked) == 2


def test_a_zip_goes_on_where_it_was_interrupted_and_is_tested_before_it_gets_its_name(tmp_path):
    work = tmp_path / "w"
    with stand_in(tmp_path, "--games", 6) as (url, log):
        settings = {"TENHOU_URL": url, "DELAY": "0"}
        whole = tmp_path / "whole"
        script("fetch-index", "--work", whole, "--year", 2024, settings=settings)
        data = (whole / "raw" / "scraw2024.zip").read_bytes()
        (work / "raw").mkdir(parents=True)
        part = work / "raw" / "scraw2024.zip.part"
        part.write_bytes(data[: len(data) // 2])
        assert script("fetch-index", "--work", work, "--year", 2024, settings=settings).returncode == 0
        assert (work / "raw" / "scraw2024.zip").read_bytes() == data and not part.exists()
        assert log()[-1]["status"] == 206
        (work / "raw" / "scraw2024.zip").unlink()
        part.write_bytes(b"x" * (len(data) // 2))  # damaged: thrown away, and fetched whole
        assert script("fetch-index", "--work", work, "--year", 2024, settings=settings).returncode == 0
        assert (work / "raw" / "scraw2024.zip").read_bytes() == data


@pytest.mark.parametrize("range_", ["bytes 0-9/{size}", "bytes {next}-{last}/{size}", "bytes {have}-{last}/{more}",
                                    "bytes {have}-{have}/{size}", "pages 1-2/3", None])
def test_a_part_that_the_server_goes_on_with_wrongly_is_dropped_and_the_zip_begun_anew(tmp_path, range_):
    years_zip(tmp_path / "whole", A)
    data = (tmp_path / "whole").read_bytes()
    have, asked_for = len(data) // 2, []

    def answer(handler):
        asked_for.append(handler.headers.get("Range"))
        if not asked_for[-1]:
            return reply(handler, data)
        numbers = {"have": have, "next": have + 1, "last": len(data) - 1, "size": len(data), "more": len(data) + 9}
        return reply(handler, data[have:], 206, Content_Range=range_ and range_.format(**numbers))

    (tmp_path / "raw").mkdir()
    part = tmp_path / "raw" / "scraw2024.zip.part"
    part.write_bytes(data[:have])
    with server(answer) as (url, _):
        done = script("fetch-index", "--work", tmp_path, "--year", 2024, settings={"TENHOU_URL": url, "DELAY": "0"})
    assert done.returncode == 0 and asked_for == [f"bytes={have}-", None], done.stderr
    assert (tmp_path / "raw" / "scraw2024.zip").read_bytes() == data and not part.exists()


def test_max_new_caps_the_downloads_of_a_run(tmp_path):
    work = tmp_path / "w"
    with stand_in(tmp_path, "--games", 5) as (url, _):
        done = run(work, url, "MAX_NEW=2")
        assert done.returncode == 0 and "2 downloaded" in done.stderr and "3 left for later" in done.stderr
        assert len(records(work)) == 2


@pytest.mark.slow
def test_a_duplicate_is_recorded_and_its_file_deleted(tmp_path):
    work = tmp_path / "w"
    with stand_in(tmp_path, "--games", 4, "--duplicates", 1) as (url, _):
        assert run(work, url).returncode == 0
    (game, record), = [(g, r) for g, r in records(work).items() if r["status"] == "duplicate"]
    assert not (work / "xml" / f"{game}.txt").exists()
    assert records(work)[record["alias_of"]]["status"] == "encoded" and len(cache(work)) == 3


def test_rooms_choose_and_a_changed_choice_makes_a_new_list(tmp_path):
    work = tmp_path / "w"
    with stand_in(tmp_path, "--games", 8) as (url, _):
        assert run(work, url, "ROOMS=00a9", "MAX_NEW=0").returncode == 0
        few = (work / "game_ids_2024.txt").read_text().split()
        assert run(work, url, "MAX_NEW=0").returncode == 0
        many = (work / "game_ids_2024.txt").read_text().split()
    assert few and all("-00a9-" in game for game in few) and set(few) < set(many)


@pytest.mark.parametrize("room", ["0xyz", "a9", "000a9", "houou", "'"])
def test_a_room_that_is_none_is_wrong_usage_is_named_and_no_older_list_is_taken_for_it(tmp_path, room):
    (tmp_path / "raw").mkdir()
    years_zip(tmp_path / "raw" / "scraw2024.zip", A)
    assert run(tmp_path, NOBODY, "MAX_NEW=0").returncode == 0
    done = run(tmp_path, NOBODY, f"ROOMS=00a9 {room}")
    told = "must be table types of four hex digits, like 00a9\n"
    assert done.returncode == 2 and done.stderr.startswith(f"ROOMS=00a9 {room}: {told}make: ***")
    done = script("extract-ids", "--work", tmp_path, "--year", 2024, settings={"ROOMS": f"00a9,{room}"})
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"extract-ids: ROOMS=00a9,{room}: {told}")


def test_rooms_may_be_written_in_capitals(tmp_path):
    years_zip(tmp_path / "year.zip", A, A.replace("00a9", "00e1"))
    assert script("extract-ids", tmp_path / "year.zip", "--rooms", "00A9").stdout.split() == [A]


def test_rooms_whose_games_cannot_be_encoded_are_told_before_they_are_asked_for(tmp_path):
    (tmp_path / "page.html").write_text(A.replace("00a9", "0009"))
    told = [line.removeprefix("extract-ids: ROOMS: games of ") for line in script(
        "extract-ids", tmp_path / "page.html", "--rooms", "00a9 00b9 00af 0841 00e1").stderr.splitlines()]
    assert told[:-1] == ["00b9 can be downloaded but not encoded: three players",
                         "00af can be downloaded but not encoded: no red fives, no open tanyao",
                         "0841 can be downloaded but not encoded: custom rules"]
    assert "0 ids" in told[-1]


def test_any_list_of_links_will_do_and_one_that_names_no_game_is_told(tmp_path):
    other = A[:-1] + "e"
    (tmp_path / "a.txt").write_text(f"my best: tenhou.net/0/?log={A.upper()}&tw=1, and /0/log/?{other}\n")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(f"'{other}'\n".encode()))
    (tmp_path / "c.txt").write_text("nothing\n")
    done = script("extract-ids", *(tmp_path / name for name in ("a.txt", "b.txt.gz", "c.txt")))
    assert done.returncode == 0 and done.stdout.split() == sorted([A, other])
    assert done.stderr == (f"extract-ids: {tmp_path}/c.txt: it names no game\n"
                           "extract-ids: 2 ids in 3 files, 0 errors\n")


def years_zip(path, *games):
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("scc20240101.html", "".join(f'<a href="http://tenhou.net/0/?log={game}">x</a>\n' for game in games))


@pytest.mark.parametrize("change", ["older", "of the same time and size"])
def test_a_zip_put_in_the_place_of_another_makes_a_new_list_however_old_it_is(tmp_path, change):
    path, listed = tmp_path / "raw" / "scraw2024.zip", tmp_path / "game_ids_2024.txt"
    path.parent.mkdir()

    def listing():
        assert run(tmp_path, NOBODY, "MAX_NEW=0").returncode == 0
        return listed.read_text().split(), listed.stat().st_mtime_ns

    years_zip(path, A)
    before = path.stat()
    ids, made = listing()
    assert ids == [A] and listing() == ([A], made)  # nothing has changed: nothing is made anew
    years_zip(tmp_path / "other", B)
    os.utime(tmp_path / "other", ns=(0, 0 if change == "older" else before.st_mtime_ns))
    assert (tmp_path / "other").stat().st_size == before.st_size
    os.replace(tmp_path / "other", path)
    assert listing()[0] == [B]


def test_a_page_in_the_place_of_the_zip_ends_the_run_with_a_line_and_the_list_of_before_is_not_taken(tmp_path):
    path = tmp_path / "raw" / "scraw2024.zip"
    path.parent.mkdir()
    years_zip(path, A)
    assert run(tmp_path, NOBODY, "MAX_NEW=0").returncode == 0
    path.write_text("<html>")
    done = run(tmp_path, NOBODY)
    assert done.returncode == 2 and f"extract-ids: {path}: not a sound zip" in done.stderr
    assert not (tmp_path / "game_ids_2024.txt").exists() and "nothing to download" in done.stderr


@pytest.mark.slow
def test_logs_that_are_refused_for_good_keep_no_other_waiting(tmp_path):
    work = tmp_path / "w"
    with stand_in(tmp_path, "--games", 12, "--fault", "404", "--fault-ids", "0.5") as (url, log):
        run(work, url, "MAX_NEW=3")  # three are refused on the way
        due = [r | {"retry_at": "2020-01-01T00:00:00Z"} for r in records(work).values() if r["status"] == "failed"]
        Manifest(work).append(due)
        assert len(due) >= 2
        for _ in range(3):
            run(work, url, "MAX_REFUSALS=2")  # each run meets with refusals in a row at its end
        assert len(cache(work)) == 6
        before = len(log())
        run(work, url, "MAX_REFUSALS=2")
        assert len(log()) - before <= 2
