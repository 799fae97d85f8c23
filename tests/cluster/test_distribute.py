"""DISTRIBUTE: pieces on two machines, by GNU parallel over ssh and by Slurm, and what they say together."""

import os
import shutil
import subprocess
import sys
import time

import faulty
import machines
import pytest
from flows import ROOT, environment, make, make_words, script, stand_in
from support import broken
from test_documented import EXAMPLES, MACHINES, README, shape, transcripts

from lib.cli import settings
from lib.cluster import spread
from lib.demo.selfplay import play
from lib.logs import last_check
from lib.manifest import Manifest
from lib.shards import commit, reading
from lib.store import files, locks

pytestmark = pytest.mark.slow

SPREAD = "DISTRIBUTE=parallel", "HOSTS=alpha,beta"
TABLE = "xmls (ok) : {}\nxmls (corrupt) : {}\nxmls (missing) : {}\nxmls (unknown) : {}\n"


def needs(*tools):
    missing = [tool for tool in tools if not shutil.which(tool, path=machines.DAEMONS)]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


needs_ssh = needs("sshd", "ssh", "ssh-keygen", "parallel")
needs_slurm = needs("munged", "slurmctld", "slurmd", "sbatch")
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="Slurm's daemons want to be root")


@pytest.fixture(scope="module")
def games():
    """Twelve small games by their ids."""
    return {f"20240101{n:02d}gm-00e1-0000-000000{n:02x}": play(n, hanchan=False) for n in range(12)}


@pytest.fixture(scope="module")
def local(tmp_path_factory, games):
    """The rows that a run on one machine makes of them."""
    work = tmp_path_factory.mktemp("local") / "w"
    faulty.put(work, games)
    assert make("run", f"WORK={work}").returncode == 0
    return faulty.rows(work)


@pytest.fixture
def work(tmp_path, games):
    """A work directory with these games in xml/, and nothing else."""
    faulty.put(tmp_path / "w", games)
    return tmp_path / "w"


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    """The environment in which alpha and beta can be reached."""
    with machines.two_sshd(tmp_path_factory.mktemp("ssh")) as (ssh, _):
        yield {"PARALLEL_SSH": ssh}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A Slurm: (the environment in which it is found, its slurm.conf, the slurmd of n1 and of n2)."""
    with machines.slurm(tmp_path_factory.mktemp("slurm")) as (conf, nodes):
        yield {"SLURM_CONF": str(conf)}, conf, nodes


def start(*args, settings):
    """Start make in the tree, with its output in a pipe."""
    return subprocess.Popen(make_words(*args, **settings), env=environment(**settings), text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def encoding(work, pids):
    """Those of `pids` that are in the middle of a shard."""
    return [pid for pid in pids() if list((work / "cache").glob(f".tmp-*-{pid}-*-shard"))]


@needs_ssh
def test_of_two_hosts_one_is_killed_half_way_and_the_rows_are_those_of_a_local_run(work, tmp_path, local):
    (tmp_path / "ssh").mkdir()
    with machines.two_sshd(tmp_path / "ssh") as (ssh, (_, beta)):
        run = start("run", f"WORK={work}", *SPREAD, "PIECE=3", "SHARD_LAYOUT=parquet", "JOBS=1",
                    settings={"PARALLEL_SSH": ssh})
        machines.until(lambda: encoding(work, lambda: machines.below(beta.pid)))
        machines.kill(machines.below(beta.pid))
        said = run.communicate()[0]
    assert run.returncode == 0, said
    assert faulty.difference(work, local) == (0, 0)
    assert {reading.read_meta(work, name)["layout"] for name in reading.names(work)} == {"parquet"}
    faulty.assert_clean(work)
    assert make("check", f"WORK={work}", "DEEP=1").returncode == 0


@needs_slurm
@needs_root
def test_of_two_nodes_one_is_killed_half_way_and_the_rows_are_those_of_a_local_run(work, cluster, local):
    settings, conf, (_, slurmd) = cluster
    run = start("run", f"WORK={work}", "DISTRIBUTE=slurm", "PIECE=3", "JOBS=1", settings=settings)
    machines.until(lambda: encoding(work, lambda: machines.steps(conf, "n2")))
    machines.kill([slurmd.pid, *machines.steps(conf, "n2")])
    machines.node_is_down(conf, "n2")
    said = run.communicate()[0]
    assert run.returncode == 0, said
    assert "due to failure of node n2" in (conf.parent / "slurmctld.log").read_text()
    assert faulty.difference(work, local) == (0, 0)
    faulty.assert_clean(work)


def damage(work, games):
    """A damaged file, a missing one, one without a record, and one whose name is no id."""
    names = sorted(games)
    assert script("adopt-xml", "--work", work).returncode == 0
    with open(work / "xml" / f"{names[3]}.txt", "ab") as f:
        f.write(b"x")
    (work / "xml" / f"{names[5]}.txt").unlink()
    (work / "xml" / "2024010200gm-00e1-0000-00000000.txt").write_bytes(b"news")
    (work / "xml" / "notes.txt").write_bytes(b"mine")


@needs_ssh
def test_a_check_on_two_hosts_says_what_a_local_one_says_and_repairs(work, games, hosts):
    damage(work, games)
    alone = make("check", f"WORK={work}")
    spread = make("check", f"WORK={work}", *SPREAD, "PIECE=2", settings=hosts)
    assert TABLE.format(10, 1, 1, 1) in alone.stdout and "corrupt\t" in alone.stdout and "notes.txt" in alone.stdout
    assert sorted(spread.stdout.splitlines()) == sorted(alone.stdout.splitlines())
    assert TABLE.format(10, 1, 1, 1) in spread.stdout and spread.returncode == alone.returncode == 2
    repaired = make("check", f"WORK={work}", *SPREAD, "PIECE=2", "REPAIR=1", settings=hosts)
    assert "verify-xml: 1 corrupt file moved to trash/" in repaired.stdout
    assert not (work / "xml" / f"{sorted(games)[3]}.txt").exists()
    assert Manifest(work).latest[sorted(games)[3]]["status"] == "corrupt"


@needs_slurm
@needs_root
def test_a_check_by_slurm_says_what_a_local_one_says(work, games, cluster):
    damage(work, games)
    alone = make("check", f"WORK={work}")
    spread = make("check", f"WORK={work}", "DISTRIBUTE=slurm", "PIECE=7", settings=cluster[0])
    assert sorted(spread.stdout.splitlines()) == sorted(alone.stdout.splitlines())
    assert TABLE.format(10, 1, 1, 1) in spread.stdout and spread.returncode == 2
    assert not list(work.glob(".tmp-*"))


@needs_ssh
def test_while_one_session_downloads_two_hosts_encode(tmp_path, hosts):
    with stand_in(tmp_path, "--games", 5, "--duplicates", 1) as (url, log):
        settings = {"TENHOU_URL": url, "DELAY": "0"}
        for name, options, env in (("calm", [], {}), ("w", [*SPREAD, "PIECE=2"], hosts)):
            done = make("run", f"WORK={tmp_path / name}", "YEAR=2024", *options, settings=settings | env)
            assert done.returncode == 0, done.stderr
        assert log()
    assert "encode-batch: 4 encoded, 0 failed, 0 corrupt; " in done.stderr
    assert faulty.difference(tmp_path / "w", faulty.rows(tmp_path / "calm")) == (0, 0)
    faulty.assert_clean(tmp_path / "w")


@needs_ssh
def test_quiet_is_quiet_unless_something_happened_or_is_wrong(work, games, hosts):
    def run(target):
        done = make("-s", target, f"WORK={work}", *SPREAD, settings=hosts)
        return done.returncode, done.stdout + done.stderr

    assert "encode-batch: 12 encoded" in run("run")[1]
    assert run("run") == (0, "") and run("check") == (0, "")
    with open(work / "xml" / f"{min(games)}.txt", "ab") as f:
        f.write(b"x")
    status, said = run("check")
    assert status == 2 and TABLE.format(11, 1, 0, 0) in said


@needs_ssh
def test_hosts_that_cannot_be_reached_lose_nothing_and_are_told(work, tmp_path):
    (tmp_path / "config").write_text("Host *\n  HostName 127.0.0.4\n  Port 9\n")
    done = make("run", f"WORK={work}", *SPREAD, settings={"PARALLEL_SSH": f"ssh -F {tmp_path}/config"})
    assert done.returncode == 2 and "distribute: no machine could do 1 piece;" in done.stderr, done.stderr
    assert {r["status"] for r in Manifest(work).latest.values()} == {"downloaded"}


@needs("parallel")
def test_when_parallel_itself_fails_no_pieces_are_counted(work):
    script("adopt-xml", "--work", work)
    done = script("distribute", "--work", work, "encode-batch", "--queued",
                  settings={"DISTRIBUTE": "parallel", "HOSTS": "/no/such/list/.."})
    assert done.returncode == 1 and "distribute: parallel could not go on" in done.stderr, done.stderr
    assert {r["status"] for r in Manifest(work).latest.values()} == {"downloaded"}


@needs_ssh
def test_a_comma_too_many_among_the_hosts_is_none(work, hosts):
    done = make("run", f"WORK={work}", "DISTRIBUTE=parallel", "HOSTS=alpha,,beta,", settings=hosts)
    assert done.returncode == 0 and "encode-batch: 12 encoded" in done.stderr + done.stdout, done.stderr


@needs_ssh
def test_the_end_of_make_ends_the_pieces(work, hosts):
    run = start("run", f"WORK={work}", *SPREAD, "JOBS=1", settings=hosts)
    pid, = machines.until(lambda: encoding(work, lambda: [
        int(each.name.split("-")[2]) for each in (work / "cache").glob(".tmp-*-shard")]))
    run.kill()
    run.communicate()
    machines.until(lambda: not files.is_alive(pid))


@needs_slurm
@needs_root
def test_the_end_of_make_ends_the_array(work, cluster):
    settings, conf, _ = cluster
    run = start("run", f"WORK={work}", "DISTRIBUTE=slurm", "PIECE=1", "JOBS=1", settings=settings)
    machines.until(lambda: encoding(work, lambda: machines.steps(conf, "n1")))
    run.kill()
    run.communicate()
    machines.until(lambda: not machines.says(conf, "squeue", "-h") and not machines.steps(conf, "n1"))
    assert not list(work.glob(".tmp-*-pieces")) and broken(work, Manifest(work)) == set()


@needs_slurm
@needs_root
def test_a_job_that_slurm_refuses_is_told(work, cluster):
    script("adopt-xml", "--work", work)
    done = script("distribute", "--work", work, "encode-batch", "--queued",
                  settings={**cluster[0], "DISTRIBUTE": "slurm", "SBATCH": "--partition=nowhere"})
    assert done.returncode == 1 and "sbatch accepted no job" in done.stderr and not list(work.glob(".tmp-*"))


@needs_ssh
def test_the_commands_by_hand_of_the_help_encode_on_two_hosts(work, hosts, local):
    script("adopt-xml", "--work", work)
    by_hand = [command for command, _ in transcripts(EXAMPLES["distribute"]) if MACHINES in command]
    assert len(by_hand) == 3
    subprocess.run(["bash", "-ec", "\n".join(by_hand).replace(MACHINES, str(work))], cwd=ROOT, check=True,
                   env=environment(**hosts), capture_output=True, stdin=subprocess.DEVNULL)
    assert faulty.difference(work, local) == (0, 0)
    faulty.assert_clean(work)


@needs_ssh
def test_the_commands_of_the_readme_run_on_two_hosts(work, hosts):
    commands = [command for command, _ in transcripts(README) if MACHINES in command and "slurm" not in command]
    shown = []
    for command in commands:
        done = subprocess.run(["bash", "-c", command.replace(MACHINES, str(work))], cwd=ROOT, text=True,
                              env=environment(**hosts), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        assert done.returncode == 0, done.stdout
        shown.append(done.stdout)
    ((_, lines),) = transcripts(EXAMPLES["probe-fs"])
    assert len(shown) == 2 and sorted(map(shape, shown[0].splitlines())) == sorted(map(shape, lines))


@pytest.mark.parametrize(("settings", "word"), [
    (["DISTRIBUTE=cloud"], "local or parallel or slurm"), (["DISTRIBUTE=parallel"], "HOSTS")])
def test_a_wrong_setting_is_one_line_and_status_2(work, settings, word):
    done = make("run", f"WORK={work}", *settings)
    assert done.returncode == 2 and word in done.stderr and done.stderr.count("\n") == 2
    assert not (work / "manifest.jsonl").exists()
    done = script("distribute", "--work", work, "encode-batch", settings=dict([settings[0].split("=")]))
    assert done.returncode == 2 and word in done.stderr and done.stderr.count("\n") == 1


def test_options_of_sbatch_with_an_open_quote_are_wrong_usage(work):
    settings = {"DISTRIBUTE": "slurm", "SBATCH": "--comment='x"}
    done = script("distribute", "--work", work, "encode-batch", settings=settings)
    assert done.returncode == 2 and "SBATCH=--comment='x" in done.stderr and len(done.stderr.splitlines()) == 1


def test_braces_that_parallel_would_fill_in_are_refused(tmp_path):
    done = script("distribute", "--work", tmp_path / "{#}", "encode-batch",
                  settings={"DISTRIBUTE": "parallel", "HOSTS": "alpha"})
    assert done.returncode == 2 and "{#}" in done.stderr and len(done.stderr.splitlines()) == 1


def test_the_closing_lines_of_the_pieces_are_summed_up_but_not_the_numbers_of_a_command(capsys):
    summary = spread.Summary()
    for line in ("x: 1 corrupt file moved; to go on: make run DEEP=1 WORK=/w7", "exit 0", "x: 1 row", "y: one {4}"):
        summary.add_line(line)
    for line in ("x: 2 corrupt files moved; to go on: make run DEEP=1 WORK=/w7", "x: 0 rows", "y: one {4}"):
        summary.add_line(line)
    summary.close(quiet=False)
    assert capsys.readouterr().err.splitlines() == [
        "x: 3 corrupt files moved; to go on: make run DEEP=1 WORK=/w7", "x: 1 row", "y: one {4}"]


def test_a_script_that_cannot_be_spread_is_refused(work):
    done = script("distribute", "--work", work, "fetch-paipu")
    assert done.returncode == 2 and "only encode-batch and verify-xml" in done.stderr


@pytest.mark.parametrize(("settings", "tool"), [
    ({"DISTRIBUTE": "parallel", "HOSTS": "alpha"}, "parallel"), ({"DISTRIBUTE": "slurm"}, "sbatch")])
def test_a_tool_that_is_not_there_is_named(work, tmp_path, settings, tool):
    script("adopt-xml", "--work", work)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(sys.executable)
    settings = settings | {"PATH": f"{tmp_path}/bin"}
    done = script("distribute", "--work", work, "encode-batch", "--queued", settings=settings)
    assert done.returncode == 1 and f"{tool} is not installed here" in done.stderr and done.stderr.count("\n") == 1
    assert not list(work.glob(".tmp-*"))


def test_with_local_the_script_runs_as_if_called_itself(work):
    script("adopt-xml", "--work", work)
    done = script("distribute", "--work", work, "bin/encode-batch", "--shard-rows", 1, "--queued")
    assert "encode-batch: 12 encoded" in done.stderr and len(reading.names(work)) == 12


def piece(script_name, work, *ids, options=()):
    return subprocess.run([*spread.command(script_name, options, str(work)), *ids], capture_output=True, text=True,
                          env=environment(), stdin=subprocess.DEVNULL)


def test_what_a_script_finds_is_an_answer_and_no_failure_of_its_machine(work, games):
    damage(work, games)
    found = piece("verify-xml", work, sorted(games)[3])
    assert found.returncode == 0 and found.stdout.startswith("corrupt\t") and found.stderr.endswith("exit 1\n")


def test_a_machine_without_the_work_directory_or_the_script_fails(work, tmp_path, games):
    script("adopt-xml", "--work", work)
    assert piece("no-such-script", work, min(games)).returncode != 0
    blind = piece("encode-batch", tmp_path / "not mounted", min(games))
    assert blind.returncode == 255 and "not mounted/manifest.jsonl" in blind.stderr


def test_a_machine_without_the_python_of_this_tree_fails(work, tmp_path, monkeypatch):
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    python = tmp_path / ".venv" / "bin" / "python"
    python.symlink_to(sys.executable)
    (tmp_path / "bin").symlink_to(ROOT / "bin")
    script("adopt-xml", "--work", work)
    monkeypatch.setattr(settings, "ROOT", str(tmp_path))
    there = spread.command("verify-xml", [], str(work))
    python.unlink()
    python.symlink_to("/not/installed/here")
    done = subprocess.run(there, capture_output=True, text=True, env=environment(), stdin=subprocess.DEVNULL)
    assert done.returncode == 255 and f"{python} is not there" in done.stderr
    assert not spread.command("verify-xml", [], str(work))[2].count(str(python))  # it is not here either


def test_closing_lines_are_summed_up_and_news_of_games_are_not(capsys):
    summary = spread.Summary()
    for n in (1, 20):
        for line in (f"encode-batch: 202401010{n % 7}gm-00e1-0000-00000000: truncated", "encode-batch: same advice",
                     f"encode-batch: {n} encoded, 0 failed, 2 corrupt; {n * 100} rows", f"xmls (ok) : {n}", "exit 1"):
            summary.add_line(line)
    assert capsys.readouterr().err.count("truncated") == 2
    summary.close(quiet=False)
    assert capsys.readouterr().err.splitlines() == [
        "xmls (ok) : 21", "encode-batch: same advice", "encode-batch: 21 encoded, 0 failed, 4 corrupt; 2100 rows"]
    assert summary.status == 1 and summary.ended == 2
    summary.fail(137)
    assert summary.status == 1


def test_a_greeting_of_a_machine_is_passed_on_whatever_is_in_it(capsys):
    summary = spread.Summary()
    for line in ("{users} : 5", "{} welcome {0}", "uptime: 3 days, {load}"):
        summary.add_line(line)
    summary.close(quiet=False)
    assert sorted(capsys.readouterr().err.splitlines()) == sorted(
        ["{users} : 5", "{} welcome {0}", "uptime: 3 days, {load}"])


def test_list_has_just_the_ids_that_would_be_encoded(work, games):
    names = sorted(games)
    script("adopt-xml", "--work", work)
    faulty.ok("encode-batch", "--work", work, *names[:3])
    Manifest(work).append([{"gid": names[5], "status": "failed", "stage": "encode", "encoder": "of old", "error": "x"},
                           {"gid": names[6], "status": "failed", "stage": "download", "error": "HTTP 404"}])
    before = (work / "manifest.jsonl").read_bytes()
    asked = [f"{names[4]}\n", f"{names[0]}\n"]  # waiting, and done
    alone = faulty.ok("encode-batch", "--work", work, "--list", *(line.strip() for line in asked)).stdout
    queued = faulty.ok("encode-batch", "--work", work, "--list", "--queued").stdout.split()
    assert alone == asked[0] and queued == [*names[3:6], *names[7:]]
    shutil.rmtree(work / "cache" / "shard_00000")
    queued = faulty.ok("encode-batch", "--work", work, "--list", "--queued").stdout.split()
    assert queued == [*names[:6], *names[7:]] and (work / "manifest.jsonl").read_bytes() == before
    assert set(faulty.ok("encode-batch", "--work", work, "--queued").stdout.split()) == set(queued)


def test_what_two_checks_have_seen_is_kept_of_both(work):
    one, two = last_check.LastChecks(work), last_check.LastChecks(work)
    for seen, name in ((one, "a"), (two, "b")):
        seen.put(name, "0" * 64, "1 1 1")
        seen.save()
    assert set(last_check.LastChecks(work).entries) == {"a", "b"}


def test_a_piece_looks_at_no_shards_but_those_of_its_games(work, games):
    names = sorted(games)
    script("adopt-xml", "--work", work)
    faulty.ok("encode-batch", "--work", work, "--shard-rows", 1, *names[:3])
    for name in ("shard_00000", "shard_00001"):
        (work / "cache" / name / "labels.npy").unlink()
    manifest = Manifest(work)
    assert broken(work, manifest) == {"shard_00000", "shard_00001"}
    assert broken(work, manifest, of=[names[1], names[9]]) == {"shard_00001"}
    assert faulty.ok("encode-batch", "--work", work, names[1], names[9]).stdout.split() == [names[1], names[9]]


def test_encoders_that_start_wait_for_no_lock(work):
    script("adopt-xml", "--work", work)
    manifest = Manifest(work)
    with Manifest(work).locked():
        assert commit.finish_interrupted(work, manifest, {"version": "1"}) == []


def test_the_holder_of_a_lock_on_another_machine_counts_as_alive(tmp_path):
    path = tmp_path / "lock"
    with locks.held(str(path), "a test", pid=2 ** 22 + 1):  # no process has that number
        assert not locks.holder_is_alive(path)
        path.write_text(path.read_text().replace(files.HOST, "elsewhere_12345678"))
        assert locks.holder_is_alive(path)


def age(path, seconds):
    os.utime(path, (time.time() - seconds,) * 2)


def test_the_left_overs_of_another_host_are_swept_when_a_day_old(tmp_path):
    for name, hours in (("old", 25), ("new", 23), ("busy", 25)):
        shard = tmp_path / f".tmp-elsewhere_12345678-1-{name}"
        shard.mkdir()
        (shard / "tokens.npy").write_bytes(b"")
        age(shard / "tokens.npy", 0 if name == "busy" else hours * 3600)
        age(shard, hours * 3600)
    files.sweep(str(tmp_path))
    assert sorted(name.rpartition("-")[2] for name in os.listdir(tmp_path)) == ["busy", "new"]
