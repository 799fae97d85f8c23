"""What all scripts do alike: ids, settings, exit statuses, signals, and one line for whoever reads the error."""

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from flows import ROOT, environment
from support import game

HEAD = ("import errno, os, sys, time; from lib.cli import options, script, settings, signals, stdin; "
        "from lib.store import errors\n")
A, B = game(1), game(2)


def script(code, *args, settings=(), **options):
    """Run Python code that has lib.cli.script, as a process of its own."""
    options = {"stdin": subprocess.DEVNULL} | options if "input" not in options else options
    return subprocess.run([sys.executable, "-c", HEAD + code, *args], cwd=ROOT, capture_output=True, text=True,
                          env=environment(**dict(settings)), **options)


def start(code, *args, **options):
    return subprocess.Popen([sys.executable, "-c", HEAD + code, *args], cwd=ROOT, text=True, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), **options)


@pytest.mark.parametrize(("ending", "status", "told"), [
    ("return None", 0, ""),
    ("return 1", 1, ""),
    ("raise errors.Problem('the disk: gone')", 1, "-c: the disk: gone\n"),
    ("raise errors.Usage('no')", 2, "-c: no\n"),
    ("raise errors.Busy('later')", 75, "-c: later\n"),
    ("open('/nowhere/x')", 1, "-c: /nowhere/x: No such file or directory\n"),
    ("raise OSError(28, 'No space left on device')", 1, "-c: No space left on device\n"),
    ("raise OSError(28, 'No space left on device', '/d/x')", 1, "-c: /d/x: No space left on device; what was finished "
     "is safe: free some space, then run the same command again\n"),
    ("raise OSError(errno.EDQUOT, 'Over quota', '/d/x')", 1, "-c: /d/x: Over quota; what was finished "
     "is safe: free some space, then run the same command again\n"),
    ("raise BrokenPipeError", 141, ""),
])
def test_the_ways_to_end_have_their_status_and_at_most_one_line(ending, status, told):
    done = script(f"def main():\n    {ending}\nscript.run(main)")
    assert (done.returncode, done.stderr, done.stdout) == (status, told, "")


@pytest.mark.parametrize("error", ["errors.Problem('gone')", "OSError(5, 'Input/output error')", "errors.Interrupted"])
def test_what_was_printed_before_an_error_is_not_lost(error):
    done = script(f"def main():\n    print('a row')\n    raise {error}\nscript.run(main)")
    assert done.stdout == "a row\n"


def test_an_error_that_nobody_expected_keeps_its_traceback():
    done = script("def main():\n    1 / 0\nscript.run(main)")
    assert done.returncode == 1 and "Traceback" in done.stderr and "ZeroDivisionError" in done.stderr


def test_a_missing_library_is_one_line_that_says_what_to_do():
    done = script("import no_such_library")
    assert done.returncode == 1
    assert done.stderr == f"-c: No module named 'no_such_library'; to install what is missing: make -C {ROOT} setup\n"


def test_what_cannot_be_written_to_stdout_is_an_error():
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-c", HEAD + "script.run(lambda: print('data'))"], cwd=ROOT, stdout=full,
                              stderr=subprocess.PIPE, text=True, env=environment())
    assert done.returncode == 1 and done.stderr == "-c: No space left on device\n"


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_standard_files_that_are_closed_give_their_numbers_to_no_other_file(tmp_path, closed):
    code = ("def main():\n"
            f"    with open({str(tmp_path / 'data')!r}, 'w') as f:\n"
            "        print('to stdout'); script.say('to stderr'); f.write('data'); assert f.fileno() > 2\n"
            "        assert list(stdin.ids([], stdin.Lines())) == []\n"
            "script.run(main)")
    done = script(code, preexec_fn=lambda: [os.close(fd) for fd in closed])
    assert done.returncode == 0 and (tmp_path / "data").read_text() == "data"


READ = ("lines = stdin.Lines()\ndef main():\n    for game in stdin.ids(sys.argv[1:], lines):\n"
        "        print(game, flush=True)\n"
        "    return stdin.exit_status(lines)\nscript.run(main)")


def test_ids_are_arguments_or_else_lines_of_stdin_in_any_of_their_forms():
    assert script(READ, A, f"http://tenhou.net/0/?log={B}&tw=1", input=f"{game(3)}\n").stdout.split() == [A, B]
    done = script(READ, input=f"{A}\n\n  {B}.txt\r\nhttps://tenhou.net/0/?log={game(3)}\n{game(4)}")
    assert done.stdout.split() == [A, B, game(3), game(4)] and (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("bad", ["../../x", "/etc/passwd", f"{A}/..", "x\x1b[2J", "--", f"{A}\0", "\udcff\udcfe"])
def test_a_bad_line_is_told_skipped_and_counted_and_not_printed_raw(bad):
    line = bad.encode(errors="surrogateescape")
    done = subprocess.run([sys.executable, "-c", HEAD + READ], cwd=ROOT, capture_output=True,
                          input=A.encode() + b"\n" + line + b"\n" + B.encode(),
                          env=environment(PYTHONIOENCODING="utf-8:strict"))
    assert done.stdout.decode().split() == [A, B] and done.returncode == 0
    told, counted = done.stderr.splitlines()
    assert told.endswith(b" is not a game id; skipped") and counted == b"-c: skipped 1 line without a game id"
    assert b"\x1b" not in done.stderr and b"\0" not in done.stderr


def test_many_bad_lines_are_counted_the_first_few_told_and_only_nothing_but_bad_lines_is_wrong_usage():
    done = script(READ, input="junk\n" * 999 + A + "\n")
    assert done.returncode == 0 and done.stderr.count("'junk' is not a game id; skipped") == 5
    assert done.stderr.splitlines()[5:] == ["-c: skipped 999 lines without a game id"]
    done = script(READ, input="junk\n\n")
    assert done.returncode == 2 and done.stderr.splitlines()[-1] == "-c: the only line is not a game id"
    assert script(READ, input="junk\njunk\n").stderr.splitlines()[-1] == "-c: none of the 2 lines is a game id"
    assert script(READ, input="\n \n").returncode == 0


def test_a_bad_argument_is_refused_before_anything_is_done():
    code = "ids = stdin.ids(sys.argv[1:], stdin.Lines())\nprint('working')\nlist(ids)"
    done = script(f"def main():\n    {code.replace(chr(10), chr(10) + '    ')}\nscript.run(main)", A, "../../x")
    assert done.returncode == 2 and done.stdout == "" and "'../../x' is not a game id" in done.stderr


def test_ids_are_yielded_as_they_come_and_not_at_the_end():
    with start(READ) as process:
        for wanted in (A, B):
            process.stdin.write(f"{wanted[:10]}")
            process.stdin.flush()
            time.sleep(0.05)
            process.stdin.write(f"{wanted[10:]}\n")
            process.stdin.flush()
            assert process.stdout.readline() == f"{wanted}\n"
        process.stdin.close()
        assert process.wait(10) == 0


def test_while_stdin_has_nothing_there_is_time_for_something_else():
    code = "for game in stdin.ids_as_they_come([], stdin.Lines()):\n    print(game, flush=True)\n    time.sleep(0.01)"
    with start(code) as process:
        assert process.stdout.readline() == "None\n"
        process.stdin.write(f"{A}\n")
        process.stdin.close()
        assert {line for line in process.stdout if line != "None\n"} == {f"{A}\n"}


ALL = ("lines = stdin.Lines()\n"
       "found = stdin.ids_or_all(sys.argv[1:], lines)\nprint(found if found is None else list(found))")


@pytest.mark.parametrize(("args", "stdin", "found"), [
    ([], None, "None"), ([], "", "[]"), ([], "\n\n", "[]"), ([A], None, f"[{A!r}]"), ([A], f"{B}\n", f"[{A!r}]"),
    ([], f"{A}\n{B}\n", f"[{A!r}, {B!r}]"), ([], "../x\n", "[]"), ([], f"../x\n{A}\n", f"[{A!r}]")])
def test_no_ids_mean_all_but_not_in_a_pipe(args, stdin, found):
    done = script(ALL, *args, **({} if stdin is None else {"input": stdin}))
    assert done.stdout == f"{found}\n", done.stderr


KNOB = ("def main():\n    p = options.parser('x')\n    options.knob(p, '--shard-rows', 'SHARD_ROWS')\n"
        "    args = p.parse_args()\n    print(args.work, args.shard_rows)\nscript.run(main)")


def test_a_flag_wins_over_the_environment_and_that_over_config_mk():
    assert script(KNOB).stdout == f"{ROOT}/data/tenhou 65536\n"
    assert script(KNOB, settings={"SHARD_ROWS": "7", "WORK": "w"}).stdout == "w 7\n"
    assert script(KNOB, "--shard-rows", "5", "--work", "v", settings={"SHARD_ROWS": "7", "WORK": "w"}).stdout == "v 5\n"


@pytest.mark.parametrize(("args", "settings"), [
    (["--shard-rows", "x"], {}), (["--shard-rows", "0"], {}), ([], {"SHARD_ROWS": "many"}), ([], {"SHARD_ROWS": "-1"})])
def test_a_number_that_is_none_is_wrong_usage_wherever_it_comes_from(args, settings):
    done, given = script(KNOB, *args, settings=settings), "SHARD_ROWS" if settings else "--shard-rows"
    assert done.returncode == 2 and done.stderr.startswith(f"-c: {given}=") and done.stderr.count("\n") == 1


STOP = ("signals.stop.catch()\nlines = stdin.Lines()\ndef main():\n    print('ready', flush=True)\n"
        "    for game in stdin.ids([], lines):\n        print(game, flush=True)\n    print('closing', flush=True)\n"
        "    if 'slow' in sys.argv: time.sleep(20)\nscript.run(main)")


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_ids_and_lets_the_script_close_what_it_has(signum):
    with start(STOP) as process:
        process.stdout.readline()
        process.stdin.write(f"{A}\n")
        process.stdin.flush()
        assert process.stdout.readline() == f"{A}\n"
        process.send_signal(signum)
        assert process.wait(10) == 128 + signum
        assert (process.stdout.read(), process.stderr.read()) == ("closing\n", "")


def test_a_second_signal_just_kills():
    with start(STOP, "slow") as process:
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "closing\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == -signal.SIGINT


def test_a_script_of_bin_runs_under_the_tree_s_venv_when_there_is_one(tmp_path):
    shutil.copytree(ROOT / "lib", tmp_path / "lib", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "config.mk", tmp_path)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "probe").write_text(f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
                                            "from lib.cli import script\nprint('no venv', sys.argv[1:])\n")
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    python = tmp_path / ".venv" / "bin" / "python"

    def probe():
        return subprocess.run([sys.executable, tmp_path / "bin" / "probe", "a b"], cwd="/", capture_output=True,
                              text=True, env={}).stdout

    assert probe() == "no venv ['a b']\n"
    python.write_text('#!/bin/sh\necho "venv: $*"\n')
    python.chmod(0o755)
    assert probe() == f"venv: {tmp_path}/bin/probe a b\n"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')  # one that does not know that it lives in a venv
    assert probe() == "no venv ['a b']\n"
