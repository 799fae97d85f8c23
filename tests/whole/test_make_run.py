"""make run, check, compact and recover on logs of one's own."""

import os
import random
import re
import signal
import subprocess
import time

import pytest
from flows import NOBODY, ROOT, cache, environment, make, records, script, start_make

from lib.demo.selfplay import play
from lib.manifest import Manifest


@pytest.fixture(scope="module")
def logs():
    """Eight self-played games by their ids."""
    return {f"202401010{i}gm-00a9-0000-0000000{i}": play(i) for i in range(8)}


@pytest.fixture
def work(tmp_path, logs):
    """A work directory with these logs in xml/, and nothing else."""
    (tmp_path / "w" / "xml").mkdir(parents=True)
    for game, data in logs.items():
        (tmp_path / "w" / "xml" / f"{game}.txt").write_bytes(data)
    return tmp_path / "w"


def test_logs_in_a_right_cache_out_and_a_second_run_does_nothing(work, logs):
    first = make("run", f"WORK={work}")
    assert first.returncode == 0 and "8 encoded, 0 failed" in first.stderr
    assert set(cache(work)) == set(logs)
    lines = (work / "manifest.jsonl").read_bytes()
    second = make("run", f"WORK={work}")
    assert second.returncode == 0 and "nothing to do" in second.stderr
    assert (work / "manifest.jsonl").read_bytes() == lines


def test_a_run_that_finds_no_games_says_what_to_do_next(tmp_path, work):
    first = make("-s", "run", f"WORK={tmp_path / 'quiet'}")
    assert (first.returncode, first.stderr) == (0, "") and (tmp_path / "quiet" / "cache" / "index.json").exists()
    told = f"no games yet; to take in your own logs: make import FROM=~/logs WORK={tmp_path / 'new'}\n"
    assert told in make("run", f"WORK={tmp_path / 'new'}").stderr
    (tmp_path / "ids").touch()
    assert "no games yet" not in make("run", f"WORK={tmp_path / 'new'}", f"IDS={tmp_path / 'ids'}").stderr
    assert "no games yet" not in make("run", f"WORK={work}").stderr
    assert make("-s", "run", f"WORK={tmp_path / 'new'}").stderr == ""


def test_the_table_of_check_has_the_words_of_the_design(work):
    make("run", f"WORK={work}")
    checked = make("check", f"WORK={work}")
    assert checked.returncode == 0
    assert re.findall(r"^(.*) : (\d+)$", checked.stdout, re.M) == [
        ("xmls (ok)", "8"), ("xmls (corrupt)", "0"), ("xmls (missing)", "0"), ("xmls (unknown)", "0"),
        ("shard mismatches", "0"), ("orphan shards", "0"), ("stale rows", "0")]


def test_a_log_that_cannot_be_encoded_fails_with_its_reason_and_a_whole_one_in_its_place_heals(work, logs):
    victim = sorted(logs)[3]
    path = work / "xml" / f"{victim}.txt"
    path.write_bytes(logs[victim].replace(b"owari", b"other"))
    assert make("run", f"WORK={work}").returncode == 0
    failed = records(work)[victim]
    assert failed["status"] == "failed" and failed["error"].startswith("incomplete") and failed["stage"] == "encode"
    assert "nothing to do" in make("run", f"WORK={work}").stderr  # the same bytes are not tried again
    path.write_bytes(logs[victim])
    assert make("run", f"WORK={work}").returncode == 0
    assert records(work)[victim]["status"] == "encoded"


@pytest.mark.slow
def test_the_right_file_put_back_heals_a_repaired_game(work, logs):
    make("run", f"WORK={work}")
    whole, victim = cache(work), sorted(logs)[0]
    path = work / "xml" / f"{victim}.txt"
    path.write_bytes(logs[victim] + b"x")
    found = make("check", f"WORK={work}")
    assert found.returncode == 2 and f"corrupt\t{victim}\n" in found.stdout
    assert make("check", f"WORK={work}", "REPAIR=1").returncode == 0
    assert records(work)[victim]["status"] == "corrupt" and not path.exists()
    path.write_bytes(logs[victim])
    assert make("run", f"WORK={work}", f"TENHOU_URL={NOBODY}", "DELAY=0").returncode == 0
    assert cache(work) == whole and make("check", f"WORK={work}").returncode == 0


def test_a_damaged_file_is_left_out_and_the_rest_encoded(work, logs):
    victim = sorted(logs)[2]
    script("adopt-xml", "--work", work)
    (work / "xml" / f"{victim}.txt").write_bytes(logs[victim][:-1])
    assert make("run", f"WORK={work}", f"TENHOU_URL={NOBODY}", "DELAY=0", "MAX_NEW=0").returncode == 0
    states = {game: r["status"] for game, r in records(work).items()}
    assert states.pop(victim) == "corrupt" and set(states.values()) == {"encoded"}
    assert f"corrupt\t{victim}" in make("check", f"WORK={work}").stdout


@pytest.mark.slow
def test_killed_at_random_moments_the_rows_are_the_same(work, tmp_path, logs):
    chance, kills = random.Random(7), 0
    for i in range(6):
        victim = start_make("run", f"WORK={work}", "SHARD_ROWS=1500")
        time.sleep(chance.uniform(0.1, 0.9))
        kills += victim.poll() is None
        os.killpg(victim.pid, signal.SIGKILL) if i % 2 and victim.poll() is None else victim.kill()
        victim.wait()
    assert make("run", f"WORK={work}", "SHARD_ROWS=1500").returncode == 0
    calm = tmp_path / "calm"
    (calm / "xml").mkdir(parents=True)
    for game, data in logs.items():
        (calm / "xml" / f"{game}.txt").write_bytes(data)
    make("run", f"WORK={calm}")
    assert kills and cache(work) == cache(calm)
    assert make("check", f"WORK={work}").returncode == 0


@pytest.mark.slow
def test_compact_makes_few_full_shards_of_many_and_drops_stale_rows(work, logs):
    make("run", f"WORK={work}", "SHARD_ROWS=1000")
    whole, victim = cache(work), sorted(logs)[0]
    Manifest(work).append([{"gid": victim, "status": "corrupt"}])  # as of one whose rows were damaged
    make("run", f"WORK={work}", "SHARD_ROWS=1000")
    assert "stale rows : 0" not in make("check", f"WORK={work}").stdout
    assert make("compact", f"WORK={work}").returncode == 0
    assert cache(work) == whole and len(list((work / "cache").glob("shard_*"))) == 1
    checked = make("check", f"WORK={work}", "DEEP=1")
    assert checked.returncode == 0 and "stale rows : 0" in checked.stdout
    assert "0 shards removed" in make("compact", f"WORK={work}").stderr


@pytest.mark.slow
def test_a_lost_manifest_is_recovered_without_encoding_again(work):
    make("run", f"WORK={work}", "SHARD_ROWS=1000")
    whole = cache(work)
    (work / "manifest.jsonl").unlink()
    assert make("recover", f"WORK={work}").returncode == 0
    assert cache(work) == whole and make("check", f"WORK={work}").returncode == 0
    assert "nothing to do" in make("run", f"WORK={work}").stderr


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["cut", "flip", "meta", "gone"])
def test_the_games_of_a_damaged_shard_are_encoded_again_once(work, damage):
    make("run", f"WORK={work}", "SHARD_ROWS=1000")
    whole = cache(work)
    shard = sorted((work / "cache").glob("shard_*"))[1]
    if damage == "cut":
        os.truncate(shard / "tokens.npy", 5000)
    elif damage == "flip":
        data = bytearray((shard / "labels.npy").read_bytes())
        data[-3] ^= 1
        (shard / "labels.npy").write_bytes(data)
    elif damage == "meta":
        (shard / "meta.json").write_text('{"games": [')
    else:
        for file in shard.iterdir():
            file.unlink()
        shard.rmdir()
    found = make("check", f"WORK={work}", "DEEP=1")
    assert found.returncode == 2 and f"mismatch\t{shard.name}" in found.stdout
    assert make("run", f"WORK={work}", "DEEP=1").returncode == 0
    assert cache(work) == whole
    assert "nothing to do" in make("run", f"WORK={work}", "DEEP=1").stderr
    assert make("compact", f"WORK={work}").returncode == 0
    assert make("check", f"WORK={work}", "DEEP=1").returncode == 0 and cache(work) == whole


def test_a_junk_line_in_the_file_of_ids_is_counted_and_named_and_stops_nothing(work, tmp_path, logs):
    victim = sorted(logs)[0]
    (tmp_path / "ids").write_text(f"junk\n{victim}\n")
    done = make("run", f"WORK={work}", f"IDS={tmp_path / 'ids'}")
    assert done.returncode == 0, done.stderr
    assert "fetch-paipu: 'junk' is not a game id; skipped\nfetch-paipu: nothing to download\n" in done.stderr
    assert "fetch-paipu: skipped 1 line without a game id\n" in done.stderr and set(cache(work)) == set(logs)


def test_a_year_beside_a_file_of_ids_is_told_not_to_count(work, tmp_path, logs):
    (tmp_path / "ids").write_text("".join(f"{game}\n" for game in logs))
    words = "run", f"WORK={work}", f"IDS={tmp_path / 'ids'}", "YEAR=2024"
    told = "settings: IDS and YEAR are both set: this run downloads the list in IDS, not 2024\n"
    assert make(*words).stderr.count(told) == 1
    assert "IDS and YEAR" not in make("-s", *words).stderr + make("status", *words[1:]).stderr


def test_a_file_whose_name_is_no_game_id_is_reported_and_never_touched(work):
    odd = work / "xml" / "notes.txt"
    odd.write_text("mine")
    done = make("run", f"WORK={work}")
    assert done.returncode == 0 and "notes.txt" in done.stderr and odd.read_text() == "mine"
    assert "foreign\tnotes.txt" in make("check", f"WORK={work}").stdout


@pytest.mark.parametrize("quiet", [["-s"], ["--silent"], ["-sk"]])
def test_a_quiet_run_that_finds_another_at_work_is_silent_and_well_and_a_loud_one_says_who_it_is(tmp_path, quiet):
    holder = subprocess.Popen([ROOT / "bin" / "with-lock", "--create", "--work", tmp_path / "w", "--", "sh", "-c",
                               "echo; exec sleep 60"], env=environment(), stdout=subprocess.PIPE)
    with holder:
        holder.stdout.readline()
        loud, silent = make("run", f"WORK={tmp_path / 'w'}"), make(*quiet, "run", f"WORK={tmp_path / 'w'}")
        script_of_theirs = script("with-lock", "--work", tmp_path / "w", "--", "true")
        compacted = make(*quiet, "compact", f"WORK={tmp_path / 'w'}")
        holder.kill()
    assert (silent.returncode, silent.stdout, silent.stderr) == (0, "", "")
    told = f"with-lock: busy: a run is at work on {tmp_path / 'w'} (sh -c 'echo; exec sleep 60', pid {holder.pid} on "
    assert loud.returncode == 2 and loud.stderr.startswith(told) and loud.stderr.count("\n") == 2
    assert script_of_theirs.returncode == 75 and script_of_theirs.stderr.startswith(told)
    assert compacted.returncode == 2 and compacted.stderr.startswith(told)  # nobody does that


TARGETS = ["status", "watch", "check", "report", "rebuild-index", "compact", "recover", "purge", "export-mjai", "help"]


@pytest.mark.parametrize("target", TARGETS)
def test_a_work_directory_that_is_not_there_is_made_by_run_only(tmp_path, target):
    done = make(target, f"WORK={tmp_path / 'typo'}")
    assert done.returncode == (0 if target == "help" else 2) and list(tmp_path.iterdir()) == []
    if target != "help":  # one line, and make's own
        told = f"{tmp_path / 'typo'}: no such work directory; check WORK, or begin one: make import FROM=~/logs WORK="
        assert done.stderr.startswith(told) and done.stderr.count("\n") == 2
        assert not [line for line in done.stdout.splitlines() if not line.startswith("make: ")]


ENTERING = ["compact-shards", "recover-manifest", "rebuild-index", "encode-batch", "adopt-xml", "fetch-paipu"]


@pytest.mark.parametrize("name", ENTERING)
def test_a_mistyped_work_directory_is_refused_by_scripts_and_not_made(tmp_path, name):
    done = script(name, "--work", tmp_path / "typo")
    assert (done.returncode, done.stderr) == (1, f"{name}: {tmp_path / 'typo'}: no such work directory\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("options", [["-n"], ["-ns"], ["--dry-run", "YEAR=2024", f"TENHOU_URL={NOBODY}"]])
def test_make_n_shows_what_a_run_would_do_and_does_nothing(tmp_path, options):
    done = make(*options, "run", f"WORK={tmp_path / 'w'}")
    assert (done.returncode, done.stderr) == (0, "") and not list(tmp_path.iterdir())
    assert re.search(r"bin/with-lock(.|\n)*bin/fetch-paipu .*\|(.|\n)*bin/encode-batch", done.stdout)


@pytest.mark.parametrize("odd", ["a$b", "a'b", 'a"b', "a;touch x", "a;b", "a&b", "a|b", "a`b`", "$(shell touch x)", "~",
                                 "a\\b", "a#b", "a:b", "a%b", "a*", "(a", "a b"])
@pytest.mark.parametrize("name", ["WORK", "IDS"])
def test_a_path_that_make_or_the_shell_would_take_for_something_else_is_refused_in_a_line(tmp_path, name, odd):
    for args, settings in (([f"{name}={tmp_path}/{odd}"], {}), ([], {name: f"{tmp_path}/{odd}"})):
        done = make("status", *args, settings=settings)
        told = "spaces or any of $ ' \" ` \\ ; &"
        told = "write the path without ~" if odd == "~" else f"must not contain {'$' if '$' in odd else told}"
        assert done.returncode == 2 and f"{name}='{tmp_path}/{odd}': {told}" in done.stderr
        assert done.stderr.count("\n") <= 2
    assert not list(tmp_path.iterdir()) and not (ROOT / "x").exists()


@pytest.mark.parametrize(("word", "told"), [
    ("WORK=", "WORK='': must be a path"), ("IDS=/no/such/file", "IDS=/no/such/file: no such file"),
    ("IDS=lib", "IDS=lib: must be a file with ids or links, not a folder"),
    ("YEAR=2024 2025", "YEAR=2024 2025: must be a year like 2024"), ("YEAR=2098", "YEAR=2098 has not begun yet\n"),
    ("LAYOUT=dense", "LAYOUT goes with make convert"),
    ("convert", "make convert needs LAYOUT=parquet or LAYOUT=dense\n"),
    ("DISTRIBUTE=parallel", "HOSTS is empty: name the machines")])
def test_a_word_of_the_command_line_that_cannot_be_is_refused_in_a_line(tmp_path, word, told):
    done = make("run", f"WORK={tmp_path / 'w'}", word)
    assert done.returncode == 2 and done.stderr.startswith(told) and done.stderr.count("\n") == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("target", ["run", "check", "compact", "status"])
def test_a_setting_that_cannot_be_is_told_before_anything_is_done(tmp_path, target):
    done = make(target, f"WORK={tmp_path / 'w'}", "DELAY=abc")
    assert done.returncode == 2 and ":" not in done.stdout.replace("make:", "") and not list(tmp_path.iterdir())
    assert done.stderr.startswith("DELAY=abc: must be a number\nmake: ***") and done.stderr.count("\n") == 2


def test_a_switch_that_is_0_is_off(work):
    make("run", f"WORK={work}")
    (work / "cache" / "index.json").unlink()
    assert make("check", f"WORK={work}", "REPAIR=0", "DEEP=0").returncode == 2
    assert not (work / "cache" / "index.json").exists()
    assert make("check", f"WORK={work}", "REPAIR=1").returncode == 0


@pytest.mark.parametrize(("words", "told"), [
    (["run", "YAER=2024"], "YAER is not a setting"), (["run", "work=data/own"], "work is not a setting"),
    (["-s", "help", "DELAY=1", "MAX_ROWS:=$(HOME)"], "MAX_ROWS is not a setting"), (["satus"], "satus is not a target"),
    (["-n", "run", "compct"], "compct is not a target")])
def test_a_misspelt_setting_or_target_is_refused_in_a_line_that_leads_to_help(tmp_path, words, told):
    done = make(*words, f"WORK={tmp_path / 'w'}")
    assert done.returncode == 2 and done.stderr.startswith(f"{told}; to list the {told.split()[-1]}s: make help\n")
    assert done.stderr.count("\n") == 2 and not list(tmp_path.iterdir())


def test_what_is_no_setting_but_is_known_passes_and_so_does_what_another_makefile_was_given(tmp_path):
    assert make("help", "TORCH=1", "PYTEST_ARGS=-x -k a", "RUN_PID=1", "PARALLEL_SSH=ssh -F x").returncode == 0
    (tmp_path / "Makefile").write_text(f"all:\n\t$(MAKE) -C {ROOT} status DEEP=0\n")
    for word, told in (("THEIRS=1", "no such work directory"), ("JOBS=x", "JOBS=x: must be a whole number")):
        done = subprocess.run(["make", "-C", tmp_path, f"WORK={tmp_path / 'w'}", word], env=environment(),
                              capture_output=True, text=True)
        assert done.returncode == 2 and told in done.stderr
