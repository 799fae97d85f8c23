"""Helpers of the tests of the make flows: a stand-in, make, and what a cache holds."""

import contextlib
import hashlib
import json
import os
import re
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np

from lib.cli import origins
from lib.cli import settings as cli_settings
from lib.rows import schema
from lib.store import locks

ROOT = Path(__file__).resolve().parent.parent
# an address where no server listens; tests that run at the same time have one each, since one process at a time may ask
NOBODY = f"http://127.0.0.1:{9 + int(os.environ.get('PYTEST_XDIST_WORKER', 'gw0')[2:])}"
_KNOBS = {"PYTHONUNBUFFERED", "WORK", "YEAR", "DELAY", "TENHOU_URL", "RUN_PID", "CALLED_IN", "MAKEFLAGS", "MFLAGS",
          "MAKELEVEL", *map(origins.key, origins.SWITCHES)}


def environment(**settings):
    """The environment without knobs of the one who runs the tests, but with `settings`."""
    kept = {k: v for k, v in os.environ.items() if k not in _KNOBS and k not in cli_settings.defaults()}
    return kept | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PWD": str(ROOT)} | settings


def script(name, *args, **options):
    """Run bin/name to its end, with no stdin unless told otherwise; returns the CompletedProcess with text."""
    settings = {"TENHOU_URL": NOBODY} | options.pop("settings", {})
    options = ({} if "input" in options else {"stdin": subprocess.DEVNULL}) | options
    return subprocess.run([sys.executable, ROOT / "bin" / name, *map(str, args)], capture_output=True, text=True,
                          env=environment(**settings), **options)


def make_words(*args, **settings):
    """The command that runs make in the tree. A run asks no server unless the test names one, least of all Tenhou's."""
    words = ["make", "-C", ROOT, *map(str, args)]
    named = "TENHOU_URL" in settings or any(str(word).startswith("TENHOU_URL=") for word in words)
    return words if named or "run" not in words else [*words, f"TENHOU_URL={NOBODY}"]


def make(*args, **options):
    """Run make in the tree to its end; returns the CompletedProcess with text."""
    settings = options.pop("settings", {})
    return subprocess.run(make_words(*args, **settings), capture_output=True, text=True, env=environment(**settings),
                          stdin=subprocess.DEVNULL, **options)


def start_make(*args):
    """Start make in the tree as a process group of its own."""
    return subprocess.Popen(make_words(*args), env=environment(), stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)


@contextlib.contextmanager
def stand_in(tmp_path, *options):
    """A running stand-in; yields (its address, a function that gives its log as a list of requests)."""
    log = tmp_path / "requests.log"
    with subprocess.Popen([sys.executable, ROOT / "bin" / "serve-demo", "--log", log, *map(str, options)],
                          stdout=subprocess.PIPE, text=True, env=environment()) as server:
        try:
            url = server.stdout.readline().strip()
            yield url, lambda: [json.loads(line) for line in log.read_text().splitlines()]
        finally:
            server.terminate()
            forget(url)


def forget(url):
    """Remove the lock file of a test's server: the next one on its port need not heed what it wished."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(locks.machine_path("fetch-" + url.partition("//")[2]))


def records(work):
    """gid -> current record, straight from the manifest's lines."""
    latest = {}
    with open(work / "manifest.jsonl", encoding="utf-8") as f:
        for line in f:
            with contextlib.suppress(ValueError):
                record = json.loads(line)
                latest[record["gid"]] = record
    return latest


def cache(work):
    """gid -> digest of all that the cache holds for it; asserts that the index is the sum of the claims."""
    found, live = {}, 0
    index = json.loads((work / "cache" / "index.json").read_text())
    for game, record in records(work).items():
        if record["status"] == "encoded":
            shard = work / "cache" / record["shard"]
            meta = {g["gid"]: g for g in json.loads((shard / "meta.json").read_text())["games"]}[game]
            span = slice(meta["start"], meta["start"] + meta["n_rows"])
            digest = hashlib.sha256()
            for name in schema.ARRAYS:
                rows = np.load(shard / f"{name}.npy", mmap_mode="r")[span]
                for field in rows.dtype.names or [...]:
                    if field != "game":  # a game's number in its shard
                        digest.update(np.ascontiguousarray(rows[field]))
            found[game] = digest.hexdigest()
            live += meta["n_rows"]
    assert index["total_rows"] == live
    assert live == sum(stop - start for spans in index["row_ranges"].values() for start, stop in spans)
    return found


# a process inherits the high-water mark of the one that started it, so that one has to be small
MEASURE = """import os, sys
pid = os.fork() or os.execv(sys.argv[1], sys.argv[1:])
_, status, usage = os.wait4(pid, 0)
print("memory:", usage.ru_maxrss, file=sys.stderr)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def measured(name, *args, **settings):
    """(status, stdout, stderr, seconds, MB of memory at most) of a script of bin/."""
    start = time.monotonic()
    done = subprocess.run([sys.executable, "-c", MEASURE, sys.executable, ROOT / "bin" / name, *map(str, args)],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment(**settings))
    stderr, _, memory = done.stderr.rpartition("memory: ")
    assert "Traceback" not in stderr, stderr
    return done.returncode, done.stdout, stderr, time.monotonic() - start, int(memory) // 1024


def quick_and_small(seconds, memory):
    """On a busy machine too: what is meant is neither minutes nor gigabytes."""
    assert seconds < 20 and memory < 200, (seconds, memory)


def python_in(name):
    """The blocks of Python in a file of the tree: those of Markdown, or those indented in a module's docstring."""
    text = (ROOT / name).read_text()
    if name.endswith(".md"):
        return re.findall(r"```python\n(.*?)```", text, re.S)
    indented = re.findall(r"(?:^(?: {4}.*)?\n)+", text.split('"""')[1] + "\n", re.M)
    parts = [part for block in indented for part in re.split(r"\n\n(?= +import )", block) if "    import " in part]
    return [textwrap.dedent(part).strip() + "\n" for part in parts]
