"""Spreading a script's work, in pieces, over machines that share the work directory, and joining what they print."""

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys

from ..cli import origins
from ..cli import settings as cli_settings
from ..store import files, wording, workdir
from ..store.errors import Problem

# the settings that matter to a piece; ssh does not pass the environment on
_KNOBS = "SHARD_ROWS", "SHARD_LAYOUT", "JUDGE", "JOBS", "REPAIR", "DEEP", "OUTDATED"
_TASKS = 1000  # of a Slurm array: as many as the default MaxArraySize allows
# a host that is switched off does not close its connection: ask whether it is alive
SSH = {"PARALLEL_SSH": "ssh -o BatchMode=yes -o ServerAliveInterval=10 -o ServerAliveCountMax=3"}
_LOST = 255  # the exit status of ssh when it has lost its host

# numbers with a noun, as lib.store.wording.count puts them
_COUNTED = re.compile(r"\b([0-9]+ (?:[a-z]+ )?)(duplicate|file|game|id|line|log|row|shard)s?\b")


def _agree(found):
    return found[1] + found[2] + ("" if found[1].startswith("1 ") else "s")


def command(script, options, work):
    """The words of a command that runs `script` on any machine, for the game ids that follow; its last line is `exit
    N`.

    If the script ends with a status up to 2, the command ends with 0. If the script is killed or cannot be found, or
    the machine has no work directory or no Python of this tree, the command fails: another machine may do better.
    """
    settings = [f"{origins.key(name)}={cli_settings.get(name)}" for name in _KNOBS]
    settings.append(f"{wording.CALLED_IN}={wording.called_in()}")
    run = shlex.join(["env", *settings, os.path.join(cli_settings.ROOT, "bin", script), "--work", work, *options])
    python = os.path.join(cli_settings.ROOT, ".venv", "bin", "python")  # a link: its target may be missing there
    needed = shlex.join([workdir.path(work, workdir.MANIFEST), *[python] * os.path.exists(python)])
    return ["sh", "-c", f'for f in {needed}; do test -e "$f" || '
                        f'{{ echo "$(hostname): $f is not there" >&2; exit {_LOST}; }}; done; '
                        f'{run} "$@"; s=$?; echo "exit $s" >&2; test $s -le 2', "sh"]


class Summary:
    """Joins what the pieces print on stderr into what one script alone would print.

    status: the worst exit status so far; ended: how many pieces have ended
    """

    def __init__(self):
        self.status, self.ended, self._closing = 0, 0, {}

    def add_line(self, line):
        """Take a line: sum up the numbers of closing lines, print news of a game on stderr at once."""
        if ended := re.fullmatch(r"exit (\d+)", line):
            self.ended += 1
            self.fail(int(ended[1]))
        elif re.fullmatch(r"(.* : \d+|[a-z-]+: \d+ .*)", line):
            what, colon, command = line.partition(": make ")  # numbers of a command are not summed up
            numbers = [int(n) for n in re.findall(r"\d+", what)]
            what = _COUNTED.sub(r"\1\2s", re.sub("([{}])", r"\1\1", what))  # a machine may greet us with braces
            sums = self._closing.setdefault((re.sub(r"\d+", "{}", what), colon + command), [0] * len(numbers))
            sums[:] = map(sum, zip(sums, numbers, strict=True))
        elif re.match(r"[a-z-]+: (?!\d{10}gm-)", line):
            self._closing[line, ""] = None  # once, however many pieces say it
        else:
            print(line, file=sys.stderr, flush=True)

    def fail(self, status):
        """Note an exit status; one that our scripts do not have counts as 1."""
        self.status = max(self.status, status if 0 <= status <= 2 else 1)

    def close(self, quiet):
        """Print the closing lines, the table first; if quiet, only what happened or is wrong."""
        for (line, command), sums in sorted(self._closing.items(), key=lambda item: " : {}" not in item[0][0]):
            if not (quiet and sums and not self.status and (" : {}" in line or not any(sums))):
                text = _COUNTED.sub(_agree, line.format(*sums)) if sums else line
                print(text + command, file=sys.stderr, flush=True)


def over_ssh(words, ids, hosts, size, summary):
    """Let GNU parallel run `words` with `size` of the lines of the file `ids` at a time, a piece a host at a time.

    hosts: its --sshlogin. If a host is lost, others try its piece. Raises Problem if GNU parallel cannot run.
    """
    command = ["parallel", "--will-cite", "--jobs", "1", "--max-args", str(size), "--retries", "3", "--sshlogin", hosts]
    with tool("parallel"):
        if b"GNU" not in subprocess.run(["parallel", "--version"], capture_output=True).stdout:
            raise Problem("`parallel` is not GNU parallel; to install that: apt install parallel")
    read, write = os.pipe()
    process = subprocess.Popen([*command, shlex.join(words)], stdin=ids, stderr=write, env=SSH | os.environ)
    os.close(write)
    try:
        with open(read, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                summary.add_line(line.rstrip("\n"))
        if lost := process.wait():  # parallel's status is how many pieces failed, 101 for more than 100
            pieces = wording.count(lost, "piece") if lost <= 100 else "more than 100 pieces"
            what = f"no machine could do {pieces}" if lost <= 101 else "parallel could not go on"
            summary.add_line(f"distribute: {what}; the next run tries again")
            summary.fail(1)
    finally:
        end(process)


def end(process):
    """End a process with SIGTERM, sent again and again: at the first one GNU parallel only starts nothing new."""
    while process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.2)


def as_array(words, ids, options, size, work, summary):
    """Let Slurm run `words` in one job array, each task with `size` lines of the file `ids`.

    options: more options for sbatch. If a node is lost, Slurm queues its task again. Raises Problem, OSError.
    """
    games = ids.read().split()
    if not games:
        return
    size = max(size, -(-len(games) // _TASKS))
    parts = [games[i:i + size] for i in range(0, len(games), size)]
    here = os.path.abspath(files.temporary_path(workdir.path(work, "pieces")))
    os.mkdir(here)
    try:
        for number, part in enumerate(parts, 1):
            files.write(os.path.join(here, str(number)), "\n".join(part).encode())
        command = ["sbatch", "--parsable", "--wait", "--requeue", "--open-mode=truncate", f"--array=1-{len(parts)}",
                   "--job-name=tenhou", f"--chdir={here}", "--output=%a.out", "--error=%a.err", *options]
        script = (f"#!/bin/sh\nids=$(cat $SLURM_ARRAY_TASK_ID) && test -n \"$ids\" || exit {_LOST}\n"
                  f"exec {shlex.join(words)} $ids\n")
        with tool("sbatch"):
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        _await(process, script, here)
        for number in range(1, len(parts) + 1):
            _pass_on(os.path.join(here, str(number)), summary)
        if summary.ended < len(parts):
            pieces = wording.count(len(parts) - summary.ended, "piece")
            summary.add_line(f"distribute: not done: {pieces}; the next run tries again")
            summary.fail(1)
    finally:
        shutil.rmtree(here, ignore_errors=True)


def _await(process, script, directory):
    job = ""
    try:
        process.stdin.write(script)
        process.stdin.close()
        job = process.stdout.readline().strip()
        if not job:
            raise Problem("sbatch accepted no job")
        while True:
            try:
                process.wait(3600)
                break
            except subprocess.TimeoutExpired:
                os.utime(directory)  # the job may wait for longer than files.sweep does
    finally:
        if process.poll() is None:
            process.kill()
            if job:
                subprocess.run(["scancel", job])


def _pass_on(path, summary):
    with contextlib.suppress(FileNotFoundError):
        with open(f"{path}.out", encoding="utf-8", errors="replace") as f:
            sys.stdout.write(f.read())
        with open(f"{path}.err", encoding="utf-8", errors="replace") as f:
            for line in f:
                summary.add_line(line.rstrip("\n"))


@contextlib.contextmanager
def tool(name):
    """A block that starts the tool `name`. Raises Problem if it is not installed."""
    try:
        yield
    except FileNotFoundError:
        raise Problem(f"{name} is not installed here: install it, or set DISTRIBUTE=local and no HOSTS") from None
