"""What manifest-status tells beyond the counts: history, rates, what is left, shards, disk use, on one screen."""

import datetime
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import made_rows
import pytest
from flows import ROOT, environment, make, script, stand_in
from support import downloaded, event, findings, game, log, put_shard, sha

from lib.cli import units
from lib.download import asked
from lib.manifest import Manifest
from lib.report import overview
from lib.shards import pace, totals
from lib.store import workdir
from lib.store.claims import FIELDS
from lib.store.clock import moment, now
from lib.store.history import History


def at(minutes, start="2024-05-01T12:00:00Z"):
    """The time so many minutes after a start, as the manifest writes it."""
    begin = datetime.datetime.strptime(start, "%Y-%m-%dT%H:%M:%SZ")
    return f"{begin + datetime.timedelta(minutes=minutes):%Y-%m-%dT%H:%M:%SZ}"


def events(work, *found):
    """Append (minutes, number of the game, status) events, with more fields where a dict follows; returns the History.
    """
    Manifest(work).append([{"ts": at(minutes), "gid": game(n), "status": status, **(more[0] if more else {})}
                           for minutes, n, status, *more in found])
    return History(work)


def full(work, *args):
    done = script("manifest-status", "--work", work, *(args or ["--full"]))
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def test_events_are_counted_by_the_hour_and_kind(work):
    found = events(work, (0, 1, "downloaded"), (1, 2, "duplicate"), (2, 3, "failed"), (59, 1, "encoded"),
                   (61, 3, "corrupt"), (62, 4, "strange"))
    assert found.hours == {("2024-05-01T12", "downloads"): 2, ("2024-05-01T12", "failures"): 1,
                           ("2024-05-01T12", "encodes"): 1, ("2024-05-01T13", "failures"): 1}


def test_events_that_only_move_a_game_do_not_count(work):
    found = events(work, (0, 1, "downloaded"), (1, 1, "encoded", {"shard": "shard_00000", "n_samples": 3}),
                   (2, 1, "encoded", {"shard": "shard_00001", "n_samples": 3}),
                   (3, 2, "failed", {"dropped": ["shard_00005"]}), (4, 1, "corrupt"), (5, 1, "encoded"))
    assert sum(found.hours.values()) == 4 and found.hours["2024-05-01T12", "encodes"] == 2


def test_what_is_no_record_is_no_event_and_later_events_are_added(work):
    events(work, (0, 1, "downloaded"))
    with open(os.path.join(work, "manifest.jsonl"), "a") as f:
        f.write('{"gid": {}, "status": "encoded"}\n[]\n{"status": "encoded"}\n{"gid": "../x", "status": "failed"}\n')
    found = History(work)
    assert sum(found.hours.values()) == 1 and len(found.bad) == 4
    events(work, (1, 1, "encoded"))
    found.refresh()
    assert sum(found.hours.values()) == 2


def test_a_snapshot_of_the_manifest_hides_no_event(work, monkeypatch):
    monkeypatch.setattr("lib.store.snapshot.LARGE", 0)
    monkeypatch.setattr("lib.store.snapshot.NEWS", 0)
    events(work, (0, 1, "downloaded"), (1, 1, "encoded"))
    Manifest(work).save_snapshot()
    assert os.path.exists(os.path.join(work, ".manifest-snapshot"))
    found = History(work)
    assert sum(found.hours.values()) == 2 and found.latest == Manifest(work).latest


def test_the_pace_is_that_of_the_last_downloads_however_long_a_run_goes_on_encoding_after_them(work):
    before = [(-300 + n / 100, n, "downloaded") for n in range(100)]
    run = [(n, 200 + n, "downloaded") for n in range(31)]
    found = events(work, *before, *run, *((30 + n, 200 + n, "encoded") for n in range(31)))
    assert f"{found.last_event():%H:%M}" == "13:00" and found.pace() == 60


def test_the_last_event_may_be_that_of_a_game_that_was_encoded_again(work):
    assert events(work, (0, 1, "encoded"), (5, 1, "encoded")).last_event() == moment(at(5))


def test_a_folder_that_is_not_mounted_is_told_with_the_status(work):
    os.rename(os.path.join(work, "xml"), os.path.join(work, "away"))
    done = script("manifest-status", "--work", work, "--full")
    assert done.returncode == 0 and f"manifest-status: {work}/xml" in done.stderr and "games : 0" in done.stdout


def test_of_a_long_run_the_last_hour_counts(work):
    found = events(work, *[(n, n, "downloaded") for n in range(300)],
                      *[(300 + n * 10, 300 + n, "downloaded") for n in range(7)])
    assert found.pace() == 6


@pytest.mark.parametrize("found", [
    [], [(0, 1, "downloaded")], [(0, 1, "downloaded"), (0, 2, "downloaded"), (0.9, 3, "downloaded")],
    [(n, n, "encoded") for n in range(9)], [(n, n, "downloaded", {"source": "a.zip"}) for n in range(9)]])
def test_what_does_not_tell_how_quick_downloads_are_is_no_pace_and_the_time_left_is_by_delay(work, found):
    assert events(work, *found).pace() is None
    event(work, 99, status="corrupt")
    assert re.search(r"^left to download : \d+, \d+ s \(720 an hour by DELAY\)$", full(work), re.M)


@pytest.mark.parametrize(("minutes", "unit", "steps"), [
    ([0], "hour", 1), ([0, 60 * 10], "hour", 11), ([0, 60 * 24 * 9], "day", 10), ([0, 60 * 24 * 99], "week", 15),
    ([0, 60 * 24 * 365 * 3], "month", 37), ([0, 60 * 24 * 365 * 14], "year", 15)])
def test_the_timeline_has_few_steps_without_gaps_and_loses_no_event(work, minutes, unit, steps):
    found = events(work, *[(m, n, "downloaded") for n, m in enumerate(minutes)])
    got, times, counts, untimed = found.timeline()
    assert (got, len(times), untimed) == (unit, steps, 0) and times == sorted(set(times))
    assert sum(counts["downloads"]) == len(minutes) and counts["downloads"][0] and counts["downloads"][-1]


def test_events_without_a_sound_time_are_counted_apart(work):
    odd = [{"ts": ts, "gid": game(n), "status": "downloaded"} for n, ts in enumerate(
        ["", "yesterday", "0001-01-01T00:00:00Z", "9999-01-01T00:00:00Z", 7, None, [], at(0)])]
    Manifest(work).append(odd)
    found = History(work)
    assert found.timeline()[3] == 7 and sum(found.timeline()[2]["downloads"]) == 1
    assert found.last_event() == moment(at(0))


def test_left_is_what_the_lists_name_what_is_due_and_what_waits_for_encoding(work):
    downloaded(work, 1, log(1))
    event(work, 2, status="downloaded", sha256=sha(b"x"))  # its file is gone
    event(work, 3, status="corrupt")
    event(work, 4, status="failed", stage="download", error="HTTP 500", retry_at="2024-01-01T00:00:00Z")
    event(work, 5, status="failed", stage="download", error="HTTP 404", retry_at="2099-01-01T00:00:00Z")
    event(work, 6, status="failed", stage="encode", error="incomplete: no owari", encoder="0", sha256=sha(b"y"))
    with open(os.path.join(work, "game_ids_2024.txt"), "w") as f:
        f.write(f"{game(1)}\n{game(7)}\n{game(8)}\n")
    found = json.loads(full(work, "--json"))
    assert (found["downloads"]["left"], found["encodes"]["left"]) == (5, 2)
    assert found["put_off"] == {"games": 1, "first": "2099-01-01T00:00:00Z"}
    shown = full(work)
    assert f"\nto be asked for again : 1 (the first on 2099-01-01; to ask now: make run RETRY=1 WORK={work})\n" in shown
    assert found["lists"] == {"2024": 2}
    assert f"\nlisted, not downloaded : 2 (make run YEAR=2024 WORK={work})\n" in shown


def test_of_several_lists_it_is_told_which_are_left_on_one_line(work):
    for year, n in ((2009, 0), (2022, 123_456), (2023, 12), (2024, 234_567), (2025, 1)):
        with open(os.path.join(work, f"game_ids_{year}.txt"), "w") as f:
            f.writelines(f"{game(1_000_000 * (year - 2000) + i)}\n" for i in range(n))
    (line,) = re.findall("^listed.*", full(work), re.M)
    assert line == f"listed, not downloaded : 358036 (234567 of them by make run YEAR=2024 WORK={work})"


@pytest.mark.parametrize(("words", "more", "year", "again"), [
    ([], "run IDS={} ", "run YEAR=2024 ", "run IDS={} RETRY=1 "),
    (["SHARD_LAYOUT=parquet", "DELAY=7", "YEAR=2023"], "run IDS={} DELAY=7 SHARD_LAYOUT=parquet ",
     "run YEAR=2024 DELAY=7 SHARD_LAYOUT=parquet ", "run YEAR=2023 IDS={} DELAY=7 RETRY=1 SHARD_LAYOUT=parquet ")])
def test_the_file_ids_is_a_list_too_whose_games_count_once_and_advice_keeps_what_make_was_told(
        work, tmp_path, words, more, year, again):
    event(work, 1, status="duplicate", sha256=sha(b"x"))
    event(work, 2, status="failed", stage="download", error="HTTP 404", retry_at="2099-01-01T00:00:00Z")
    (tmp_path / "ids").write_text(f"\ufeff{game(1)}\nhttps://tenhou.net/0/?log={game(7)}&tw=2\n{game(8)}\njunk\n")
    with open(os.path.join(work, "game_ids_2024.txt"), "w") as f:
        f.write(f"{game(8)}\n{game(9)}\n")
    shown = make("status", f"IDS={tmp_path}/ids", f"WORK={work}", *words).stdout
    assert f"\nlisted, not downloaded : 3 (2 of them by make {more}WORK={work})\n".format(f"{tmp_path}/ids") in shown
    assert "\nleft to download : 3, " in shown
    assert f"; to ask now: make {again}WORK={work})\n".format(f"{tmp_path}/ids") in shown
    shown = make("status", f"WORK={work}", *words).stdout
    assert f"\nlisted, not downloaded : 2 (make {year}WORK={work})\n" in shown and "\nleft to download : 2, " in shown


def test_without_a_list_the_one_that_the_last_run_was_to_download_counts(work, tmp_path):
    def told():
        return re.findall("^(?:left to download|list).*", full(work), re.M)

    def begin(**settings):
        assert script("update-ids", "--work", work, settings=settings).returncode < 2

    (tmp_path / "ids").write_text(f"{game(7)}\n{game(8)}\n")
    assert told() == ["left to download : 0"]
    begin(IDS=os.path.relpath(tmp_path / "ids"))
    listed = [f"listed, not downloaded : 2 (make run IDS={tmp_path}/ids WORK={work})"]
    assert told()[1:] == listed and told()[0].startswith("left to download : 2, ")
    begin()  # a run that is to download nothing new
    begin(IDS=os.devnull)
    assert told()[1:] == listed
    assert f"; listed, not downloaded: 2 (make run IDS={tmp_path}/ids" in script(
        "fetch-paipu", "--work", work, "--queued").stderr
    event(work, 7, status="duplicate", sha256=sha(b"x"))
    assert "left to download : 1, " in full(work)
    os.unlink(tmp_path / "ids")
    assert told() == ["left to download : 0"]
    with stand_in(tmp_path, "--games", 1, "--year", 2023) as (url, _):
        begin(YEAR="2024", TENHOU_URL=url, DELAY="0")  # there is none
    coming = [f"list of ids : not downloaded yet (make run YEAR=2024 WORK={work})"]
    assert told() == ["left to download : 0", *coming]
    assert f"({coming[0].rpartition('(')[2].replace('2024', '2023')}" in script(
        "manifest-status", "--work", work, "--full", settings={"YEAR": "2023"}).stdout
    with open(os.path.join(work, "game_ids_2024.txt"), "w") as f:
        f.write(f"{game(9)}\n")
    assert told()[1:] == [f"listed, not downloaded : 1 (make run YEAR=2024 WORK={work})"]


@pytest.mark.parametrize("kept", ["", "IDS=", "IDS=/\0", "YEAR=x", "YEAR=2024 $(x)", "\udcff", "JOBS=1", "IDS=/none"])
def test_a_note_of_the_last_run_that_is_damaged_tells_nothing(work, kept):
    with open(os.path.join(work, workdir.ASKED), "wb") as f:
        f.write(os.fsencode(kept))
    assert asked.recall(work) == ("", "") and "left to download : 0\n" in full(work)


@pytest.mark.parametrize(("words", "named"), [
    ([], "SHARD_LAYOUT=parquet "), (["SHARD_LAYOUT=dense"], "SHARD_LAYOUT=dense "),
    (["SHARD_LAYOUT=parquet"], "SHARD_LAYOUT=parquet ")])
def test_advice_goes_on_with_the_layout_of_the_last_shard_unless_make_was_told_another(work, words, named):
    made_rows.add_shard(work, "parquet", [(gid, made_rows.of(log)) for gid, log in made_rows.games(1)])
    event(work, 2, status="failed", stage="download", error="HTTP 404", retry_at="2099-01-01T00:00:00Z")
    with open(os.path.join(work, "game_ids_2024.txt"), "w") as f:
        f.write(f"{game(7)}\n")
    shown = make("status", f"WORK={work}", *words).stdout
    assert f"\nlisted, not downloaded : 1 (make run YEAR=2024 {named}WORK={work})\n" in shown
    assert f"; to ask now: make run RETRY=1 {named}WORK={work})\n" in shown
    shown = make("status", f"WORK={work}", "YEAR=2023", *words).stdout
    assert f"\nlist of ids : not downloaded yet (make run YEAR=2023 {named}WORK={work})\n" in shown
    if not words:
        told = script("fetch-paipu", "--work", work, "--queued").stderr
        assert f"not downloaded: 1 (make run YEAR=2024 {named}WORK={work})\n" in told


def test_nothing_to_download_says_of_which_years_games_are_left(work):
    with open(os.path.join(work, "game_ids_2024.txt"), "w") as f:
        f.write(f"{game(7)}\n{game(8)}\n")
    told = f"; listed, not downloaded: 2 (make run YEAR=2024 WORK={work})"
    for settings, more in (({}, told), ({"YEAR": "2023"}, ""), ({"IDS": "x"}, "")):
        done = script("fetch-paipu", "--work", work, "--queued", settings=settings)
        assert (done.returncode, done.stderr) == (0, f"fetch-paipu: nothing to download{more}\n")


def test_time_left_is_by_the_last_run_or_else_by_delay(work):
    event(work, 1, status="corrupt", ts=at(-999))
    assert overview.gather(work, History(work))["downloads"] == {
        "left": 1, "per_hour": 720, "measured": False, "seconds_left": 5}
    found = overview.gather(work, events(work, (0, 2, "duplicate"), (15, 3, "duplicate"), (30, 4, "duplicate")))
    assert found["downloads"] == {"left": 1, "per_hour": 4, "measured": True, "seconds_left": 900}
    assert found["last_event"] == at(30)


def test_logs_that_were_imported_in_a_minute_do_not_make_a_download_quick(work):
    found = overview.gather(work, events(work, (0, 1, "corrupt"), (0, 2, "downloaded"), *(
        (1, n, "downloaded") for n in range(3, 3000))))
    assert found["downloads"]["per_hour"] == 720 and not found["downloads"]["measured"]


def test_time_left_to_encode_is_by_the_work_that_encoding_was_however_slowly_the_games_came(work):
    downloaded(work, 9, log(9))
    put_shard(work, {1: 3, 2: 4})
    assert overview.gather(work, History(work))["encodes"] == {
        "left": 1, "per_hour": None, "measured": False, "seconds_left": None}
    for games in (40, 1):  # one alone says little
        spent = pace.Spent()
        spent.games, spent.encode, spent.write = games, 800, 40
        spent.note(work)
    events(work, (0, 1, "corrupt"), (0, 1, "encoded"), (600, 2, "corrupt"), (600, 2, "encoded"))
    for jobs, seconds in (("1", 20), ("4", 5), ("100", 1)):  # the one that writes goes no faster for it
        found = json.loads(script("manifest-status", "--work", work, "--json", settings={"JOBS": jobs}).stdout)
        assert found["encodes"]["seconds_left"] == seconds and found["encodes"]["measured"]
    assert "left to encode : 1, 20 s (180 an hour by the last batch)\n" in script(
        "manifest-status", "--work", work, "--full", settings={"JOBS": "1"}).stdout


def test_a_run_is_at_work_while_it_holds_the_lock_and_no_moment_longer(work):
    event(work, 5, status="duplicate", ts=now())
    assert f"last event : {now()[:10]}" in full(work) and "no run is at work" in full(work)
    shown = script("with-lock", "--work", work, "--", sys.executable, ROOT / "bin" / "manifest-status", "--work", work,
                   "--json")
    shown = json.loads(shown.stdout)
    assert shown["at_work"] is True and shown["run"]["command"].startswith(sys.executable)
    assert json.loads(full(work, "--json"))["at_work"] is False and "no run is at work" in full(work)


def test_a_run_that_is_at_work_is_told_by_its_command_and_number(work):
    settings = {"MAKELEVEL": "1", "GOALS": "run", "MAKEFLAGS": f"s -- YEAR=2024 WORK={work} http_proxy=u:secret@x"}
    done = script("with-lock", "--work", work, "--", sys.executable, ROOT / "bin" / "manifest-status", "--work", work,
                  "--full", settings=settings)
    (line,) = re.findall("^at work : (.*)", done.stdout, re.M)
    assert re.fullmatch(r"make run YEAR=2024, pid \d+ on \S+, since \d{4}-\S+Z", line)
    assert "no run is at work" not in done.stdout and "secret" not in done.stdout


def test_shards_are_told_as_check_tells_them(work):
    put_shard(work, {1: 3, 2: 4})
    put_shard(work, {3: 2}, claimed=False)
    put_shard(work, {1: 3})
    found = json.loads(full(work, "--json"))
    kinds, _ = findings(work)
    assert found["shards"] == {"dense": 3} and found["rows"] == 7
    assert found["stale_rows"] == sum(stale for _, stale in kinds.values()) == 3
    assert found["orphan_shards"] == [kind for kind, _ in kinds.values()].count("orphan")
    assert found["shard_mismatches"] == [kind for kind, _ in kinds.values()].count("mismatch")


@pytest.mark.parametrize("full", [[], ["--full"]])
def test_rows_are_those_that_are_there_and_what_is_gone_or_kept_of_games_of_another_status_is_told(work, full):
    put_shard(work, {1: 3, 2: 4})
    lost = put_shard(work, {3: 5, 4: 6, 5: 7})
    kept = {key: claim for key, claim in Manifest(work).latest[game(1)].items() if key in FIELDS}
    event(work, 1, status="failed", stage="download", error="HTTP 404", retry_at="2099-01-01T00:00:00Z", claim=kept)

    def shown():
        done = script("manifest-status", "--work", work, *full)
        assert (done.returncode, done.stderr) == (0, "")
        return re.search("^games : 5\n((?:rows.*\n)*)", done.stdout, re.M)[1]

    told = "rows kept from corrupt or failed games : 3 (1 game)\n"
    assert shown() == f"rows : 25\n{told}"
    shutil.rmtree(os.path.join(work, "cache", lost))
    assert shown() == f"rows : 7\n{told}rows in shards that are gone : 18 (make check WORK={work})\n"
    for n in (3, 4, 5):  # as check REPAIR=1 queues them
        event(work, n, status="corrupt", claim={"shard": lost, "n_samples": n + 2, "sha256": sha(log(n, n + 2))})
    assert shown() == f"rows : 7\n{told}rows in shards that are gone : 18\n"


def test_the_rows_of_shards_that_were_compacted_meanwhile_are_not_gone_nor_those_of_a_cache_that_is_not_mounted(work):
    old, handle = put_shard(work, {1: 3, 2: 4}), Manifest(work)
    put_shard(work, {1: 3, 2: 4})
    shutil.rmtree(os.path.join(work, "cache", old))
    found = totals.count(work, handle)
    assert (found["rows"], found["rows_gone"]) == (7, 0)
    os.rename(os.path.join(work, "cache"), os.path.join(work, "elsewhere"))
    found = totals.count(work, handle)
    assert (found["rows"], found["rows_gone"]) == (7, 0)


def test_disk_use_is_that_of_the_file_system(work):
    before = overview.disk(work)
    with open(os.path.join(work, "xml", "big"), "wb") as f:
        f.write(b"x" * 300_000)
        os.fsync(f.fileno())
    os.truncate(os.path.join(work, "xml", "big"), 50_000_000)  # a hole takes nothing
    after = overview.disk(work)
    assert 300_000 <= after.pop("xml") - before.pop("xml") < 1_000_000 and after == before


def test_it_fits_a_terminal_and_is_safe_to_print_whatever_stands_in_the_manifest(work):
    for n in range(60):
        event(work, n, status="failed", error=f"{chr(97 + n % 26) * (90 + n)}\033[2J\n\u202e{'x' * n}",
              stage="encode", encoder="1")
    event(work, 70, status="\033[31mred\n", sha256=sha(b"z"))
    put_shard(work, {71: 3})
    shown = full(work)
    lines = shown.splitlines()
    assert len(lines) <= 24 and max(map(len, lines)) <= 80
    assert all(c.isprintable() or c == "\n" for c in shown) and "for 31 other reasons" in lines[-1]


def test_full_begins_with_the_lines_of_the_plain_counts(work):
    put_shard(work, {1: 3, 2: 4})
    event(work, 3, status="failed", error="hand 3: engine refuses chi by seat 1", stage="encode")
    plain = full(work, "--work", work)
    assert plain == "encoded : 2\nfailed : 1\ngames : 3\nrows : 7\n" and full(work).startswith(plain)
    assert "\n        1  doubtful: engine refuses …\n" in full(work)


def test_an_empty_work_directory_is_all_zeros_and_one_that_is_not_there_is_told(tmp_path):
    shown = full(tmp_path)
    assert re.findall(r"^(?:games|rows|shards|left to \w+) : (.*)$", shown, re.M) == ["0"] * 5
    assert json.loads(full(tmp_path, "--json"))["last_event"] is None and os.listdir(tmp_path) == []
    done = script("manifest-status", "--work", tmp_path / "none", "--full")
    assert (done.returncode, done.stdout) == (1, "") and done.stderr.endswith("no such work directory\n")


def test_watch_tells_it_again_with_what_is_new_until_ctrl_c(work):
    with subprocess.Popen([sys.executable, ROOT / "bin" / "manifest-status", "--work", work, "--watch", "0.1"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()) as process:
        head = re.fullmatch(r"(.*), (\S+), every 0\.1 s until Ctrl-C\n", process.stdout.readline())
        assert head[1] == work and abs(moment(head[2]) - moment(now())).total_seconds() < 60
        games = iter(line for line in process.stdout if line.startswith("games"))
        assert next(games) == "games : 0\n"
        event(work, 1, status="corrupt")
        deadline = time.monotonic() + 20
        assert any(line == "games : 1\n" or time.monotonic() > deadline for line in games)
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == -signal.SIGINT and process.stderr.read() == ""


@pytest.mark.parametrize("seconds", ["0", "-1", "x", "nan"])
def test_a_watch_without_a_pause_is_wrong_usage(work, seconds):
    done = script("manifest-status", "--work", work, f"--watch={seconds}")
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.count("\n") == 1


@pytest.mark.parametrize(("n", "text"), [
    (0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (99_950, "100 kB"), (999_600, "1.0 MB"), (520e6, "520 MB"),
    (1.25e12, "1.2 TB"), (5e15, "5000 TB")])
def test_sizes_have_two_or_three_digits(n, text):
    assert units.size(n) == text


@pytest.mark.parametrize(("seconds", "text"), [
    (0, "0 s"), (59, "59 s"), (3599, "59 min"), (3 * 3600 + 60, "3 h 01 min"), (90_000, "1 d 01 h")])
def test_durations_have_two_units(seconds, text):
    assert units.duration(seconds) == text
