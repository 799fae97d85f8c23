"""Whether a run has nothing to do, found out without a look at each game: if all that a run decides by is as it was for
a run that found nothing to do, the next one would find nothing to do either.

    $ python3 -m lib.report.settled || echo 'a run has to look at each game'

All of it is read anew each time: the bytes of the manifest, of the lists of ids, of each shard's meta.json and of the
index; size, times, inode and mode of each file in xml/ and cache/; the settings, and this tree's programs. Only the
conclusion is kept, in .settled, sealed with a hash of all that; losing it costs time only. --keep, the last step of a
run, keeps it, if no step has told anything that the next run has to tell too.
Exit status: 0 nothing to do, 1 that is not known.
"""

import glob
import hashlib
import json
import os
import sys
import time

from ..cli import options, progress, script, settings
from ..download import asked, idlist, wanted
from ..manifest import Manifest
from ..store import clock, files, identity, workdir
from ..store.errors import Problem

_RACY = 2 * 10 ** 9  # nanoseconds: what changed so shortly before we looked may change again without showing it
_HEAD = 128  # bytes of a shard's array that a check reads
_BLOCK = 1 << 20
_PROGRAM = "lib/**/*.py", "bin/*", "Makefile", "*.mk", "pyproject.toml"


class Evidence:
    """What a run decides by, as hashes. facts: of what a run with nothing to do leaves as it is; aids: of what it may
    write all the same; newest: when the youngest file changed, in nanoseconds since 1970."""

    def __init__(self, work):
        """Look at a work directory. Raises OSError, and Problem if a run has more to do than to look at what is here.
        """
        identity.must_be_here(work, *identity.FOLDERS)
        self.newest, self._facts, aids = 0, hashlib.blake2b(), hashlib.blake2b()
        self._facts.update(json.dumps([sys.version, os.geteuid(), identity.read(work), _settings()]).encode())
        for path in (*_program(), *_lists(work), workdir.path(work, workdir.MANIFEST)):
            self._facts.update(_file(path))
        self._add_folder(workdir.path(work, "xml"))
        for name in self._add_folder(workdir.cache(work), but="index.json"):
            self._add_shard(workdir.path(work, "cache", name))
        for parts in (("cache", "index.json"), (".seen",)):
            aids.update(_file(workdir.path(work, *parts)))
        self.facts, self.aids = self._facts.hexdigest(), aids.hexdigest()

    def _add_folder(self, path, but=None):
        """The names in a folder, and what their files look like; returns those that may be shards, sorted."""
        shards, update, stamp = [], self._facts.update, self._stamp
        with os.scandir(path) as entries:
            for entry in entries:
                name = entry.name
                if name.startswith(files.ASIDE):
                    raise Problem("what was left aside may have to be swept")
                if name != but:
                    update(stamp(name, entry.stat(follow_symlinks=False)))
                    if name.startswith("shard_") and entry.is_dir():
                        shards.append(name)
        return sorted(shards)

    def _add_shard(self, path):
        """What a check reads of a shard: meta.json, how the other files begin, and how long they are."""
        for name in sorted(os.listdir(path)):
            fd = os.open(os.path.join(path, name), os.O_RDONLY | os.O_NONBLOCK)
            try:
                info = os.fstat(fd)
                text = os.read(fd, info.st_size + 1 if name == "meta.json" else _HEAD)
                self._facts.update(self._stamp(name, info) + hashlib.blake2b(text).digest())
            finally:
                os.close(fd)

    def _stamp(self, name, info):
        """What a change of a file would change; a / stands in no name."""
        self.newest = max(self.newest, info.st_mtime_ns, info.st_ctime_ns)
        return os.fsencode(f"{name}/{info.st_size} {info.st_mtime_ns} {info.st_ctime_ns} {info.st_ino} {info.st_mode}/")


def _file(path):
    """The name of a file and a hash of its bytes; if it is not there, what no other file has."""
    content = hashlib.blake2b()
    try:
        with open(path, "rb", buffering=0) as f:
            while block := f.read(_BLOCK):
                content.update(block)
    except FileNotFoundError:
        return os.fsencode(f"{path}/")
    return os.fsencode(path) + content.digest()


def _settings():
    """name -> value of all settings."""
    if settings.switch("DEEP") or settings.choice("DISTRIBUTE") != "local":
        raise Problem("every byte is to be read, or other machines are to be asked")
    return {name: settings.get(name) for name in settings.defaults()}


def _program():
    """The files that decide what a run does."""
    return sorted(path for pattern in _PROGRAM
                  for path in glob.glob(os.path.join(settings.ROOT, pattern), recursive=True))


def _lists(work):
    """The lists of ids that a run reads."""
    year, chosen = settings.parse_year(settings.get("YEAR")), settings.get("IDS")
    if year and not chosen and not idlist.is_final(work, year, settings.get("ROOMS")):
        raise Problem("the list of the year is to be made, or the server to be asked for it")
    if chosen and not os.path.isfile(chosen):
        raise Problem("the ids come from a pipe: they can be read only once")
    if not (chosen or year):
        chosen = asked.recall(work)[0]  # of which fetch-paipu tells what is left
    names = (name for name in os.listdir(work) if idlist.NAME.fullmatch(name) or name == workdir.LINKS)
    return [*filter(None, [chosen]), *(workdir.path(work, name) for name in sorted(names))]


def recall(work, evidence, quiet):
    """The table that a run with this very evidence printed, and nothing else; None if there was none such, or a game
    has become due since. quiet: what is odd, but not wrong, need not be told."""
    try:
        with files.open_regular(workdir.path(work, workdir.SETTLED)) as f:
            seal, _, kept = f.read().decode(errors="replace").partition("\n")
            ours = files.is_ours(os.fstat(f.fileno()))
    except FileNotFoundError:
        return None
    if not ours or seal != _seal(evidence, kept):
        return None
    table, due, was_quiet = json.loads(kept)
    return table if clock.now() < due and (quiet or not was_quiet) else None


def keep(work, evidence, table, quiet):
    """Keep what `recall` tells. quiet: what is odd, but not wrong, was not told. Raises OSError."""
    due = wanted.first_due(Manifest(work).latest.values())
    kept = json.dumps([table, due, quiet])
    files.write(workdir.path(work, workdir.SETTLED), f"{_seal(evidence, kept)}\n{kept}".encode())


def _seal(evidence, kept):
    return hashlib.blake2b(f"{evidence.facts} {evidence.aids} {kept}".encode()).hexdigest()


def begin(work, quiet):
    """The first step of a run: 0, and what such a run prints, if it has nothing to do; 1 if it has to look."""
    script.note_news(work)
    try:
        evidence = Evidence(work)
        table = recall(work, evidence, quiet)
        if table is None and evidence.newest < time.time_ns() - _RACY:
            files.write(workdir.path(work, workdir.NO_NEWS), evidence.facts.encode())
    except (OSError, Problem):
        return 1  # the steps of the run tell it
    if table is not None and not quiet:
        progress.write("run: nothing has changed since the last run: nothing to do")
        print(table, end="")
    return 1 if table is None else 0


def end(work, table, quiet):
    """The last step of a run that ended well: keep its table, if it told no news and changed nothing."""
    try:
        with files.open_regular(workdir.path(work, workdir.NO_NEWS)) as f:
            facts = f.read().decode(errors="replace")
        evidence = Evidence(work)
        if evidence.facts == facts:
            keep(work, evidence, table, quiet)
    except (OSError, Problem):
        pass  # the next run looks at it all
    script.note_news(work)


def main():
    p = options.parser(__doc__)
    p.add_argument("--keep", action="store_true", help="keep what a run found; stdin: the table that it printed")
    args = p.parse_args()
    if args.keep:
        return end(args.work, sys.stdin.read(), args.quiet)
    return begin(args.work, args.quiet)


if __name__ == "__main__":
    script.run(main)
