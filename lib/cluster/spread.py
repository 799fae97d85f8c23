"""Spreading a script's work, in pieces, over machines that share the work directory; and what all say, as one."""

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys

from ..cli import origins
from ..cli import settings as cli_settings
from ..store import files, workdir
from ..store.errors import Problem

# what matters to a piece: ssh passes no environment on
_KNOBS = "SHARD_ROWS", "SHARD_LAYOUT", "JOBS", "REPAIR", "DEEP", "OUTDATED"
_TASKS = 1000  # of a Slurm array: what MaxArraySize allows unless it has been changed
# a host that is switched off hangs up no connection
SSH = {"PARALLEL_SSH": "ssh -o BatchMode=yes -o ServerAliveInterval=10 -o ServerAliveCountMax=3"}
_LOST = 255  # what ssh ends with too, when it has lost its host


def command(script, options, work):
    """The words that run `script` for the game ids that follow them, on any machine; its last line is `exit N`.

    Statuses up to 2 are the script's answer, and the words end with 0. A script that is killed, or cannot be found, and
    a machine without the work directory or this tree's Python fail: another may do better.
    """
    settings = [f"{origins.key(name)}={cli_settings.get(name)}" for name in _KNOBS]
    run = shlex.join(["env", *settings, os.path.join(cli_settings.ROOT, "bin", script), "--work", work, *options])
    python = os.path.join(cli_settings.ROOT, ".venv", "bin", "python")  # a link: what it leads to may not be there
    needed = shlex.join([workdir.path(work, workdir.MANIFEST), *[python] * os.path.exists(python)])
    return ["sh", "-c", f'for f in {needed}; do test -e "$f" || '
                        f'{{ echo "$(hostname): no $f" >&2; exit {_LOST}; }}; done; '
                        f'{run} "$@"; s=$?; echo "exit $s" >&2; test $s -le 2', "sh"]


class Summary:
    """What the pieces say on stderr, made into what one script alone would say.

    status: the worst exit status so far; ended: how many pieces have come to their end
    """

    def __init__(self):
        self.status, self.ended, self._closing = 0, 0, {}

    def add_line(self, line):
        """Take a line in: numbers of closing lines are summed up, news of a game goes to stderr at once."""
        if ended := re.fullmatch(r"exit (\d+)", line):
            self.ended += 1
            self.fail(int(ended[1]))
        elif re.fullmatch(r"(.* : \d+|[a-z-]+: \d+ .*)", line):
            numbers = [int(n) for n in re.findall(r"\d+", line)]
            pattern = re.sub(r"\d+", "{}", re.sub("([{}])", r"\1\1", line))  # whatever a machine greets us with
            sums = self._closing.setdefault(pattern, [0] * len(numbers))
            sums[:] = map(sum, zip(sums, numbers, strict=True))
        elif re.match(r"[a-z-]+: (?!\d{10}gm-)", line):
            self._closing[line] = None  # once, however many say it
        else:
            print(line, file=sys.stderr, flush=True)

    def fail(self, status):
        """Note an exit status; what is none of a script's own is 1."""
        self.status = max(self.status, status if 0 <= status <= 2 else 1)

    def close(self, quiet):
        """Print the closing lines, the table first; if quiet, only what happened or is wrong."""
        for line, sums in sorted(self._closing.items(), key=lambda item: " : {}" not in item[0]):
            if not (quiet and sums and not self.status and (" : {}" in line or not any(sums))):
                print(line.format(*sums) if sums else line, file=sys.stderr, flush=True)


def over_ssh(words, ids, hosts, size, summary):
    """Let GNU parallel run `words` with `size` of the lines of the file `ids` at a time, a piece a host at a time.

    hosts: its --sshlogin. A piece whose host is lost is tried on others. Raises Problem if it cannot be run.
    """
    command = ["parallel", "--will-cite", "--jobs", "1", "--max-args", str(size), "--retries", "3", "--sshlogin", hosts]
    with tool("parallel"):
        if b"GNU" not in subprocess.run(["parallel", "--version"], capture_output=True).stdout:
            raise Problem("`parallel` is not GNU parallel: install that (apt install parallel)")
    read, write = os.pipe()
    process = subprocess.Popen([*command, shlex.join(words)], stdin=ids, stderr=write, env=SSH | os.environ)
    os.close(write)
    try:
        with open(read, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                summary.add_line(line.rstrip("\n"))
        if lost := process.wait():  # it counts to 100; what is far beyond is no number of pieces
            how_many = lost if lost <= 100 else "more than 100"
            what = f"{how_many} pieces found no machine to do them" if lost <= 101 else "parallel could not go on"
            summary.add_line(f"distribute: {what}; the next run tries again")
            summary.fail(1)
    finally:
        end(process)


def end(process):
    """End a process with SIGTERM, again and again: GNU parallel waits at first for what is at work."""
    while process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.2)


def as_array(words, ids, options, size, work, summary):
    """Let Slurm run `words` with `size` of the lines of the file `ids` a task, in one job array.

    options: more of sbatch's. A task whose node is lost is put into the queue again. Raises Problem, OSError.
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
            summary.add_line(f"distribute: {len(parts) - summary.ended} pieces were not done; the next run tries again")
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
            raise Problem("sbatch took no job")
        while True:
            try:
                process.wait(3600)
                break
            except subprocess.TimeoutExpired:
                os.utime(directory)  # the queue may be longer than files.sweep waits
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
    """A block that starts the tool `name`; raises Problem if it is not installed."""
    try:
        yield
    except FileNotFoundError:
        raise Problem(f"there is no `{name}` here: install it, or do without other machines") from None
