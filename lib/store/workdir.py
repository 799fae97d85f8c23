"""Where things are in a work directory. Ids become paths only here."""

import functools
import os
import re

from . import files, gid
from .errors import Problem

MANIFEST = "manifest.jsonl"
RUN_LOCK = ".run.lock"
SHARD = "shard_{:05d}"
_ALMOST = re.compile(rf"({gid.PATTERN})(?:\.(?:xml|mjlog|log|txt))?(?:\.gz)?")  # names that logs have elsewhere


def path(work, *parts):
    """A path below the work directory."""
    return os.path.join(work, *parts)


def xml(work, game):
    """The path of a game's paipu; raises Problem for anything that is not a game id."""
    if not gid.is_gid(game):
        raise Problem(f"{game!r} is no game id")
    return f"{_xml(work)}{game}.txt"


@functools.lru_cache(maxsize=4)  # a run asks for hundreds of thousands of files
def _xml(work):
    return os.path.join(work, "xml", "")


def mjai(work, game):
    """The path of a game's mjai file; raises Problem for anything that is not a game id."""
    return path(work, "mjai", f"{os.path.basename(xml(work, game))[:-4]}.json.gz")


def cache(work):
    """The directory of the shards."""
    return os.path.join(work, "cache")


def make(work):
    """Create the work directory's folders, and sweep what dead processes left at its top; raises OSError."""
    for name in ("xml", "cache", "raw"):
        os.makedirs(os.path.join(work, name), exist_ok=True)
    files.sweep(work)


def must_exist(work):
    """Raises Problem if there is no such work directory."""
    if not os.path.isdir(work):
        raise Problem(f"{work}: no such work directory")


def why_foreign(work, name):
    """What keeps the file `name` of xml/ from being a game's."""
    if not (name[-4:] == ".txt" and gid.is_gid(name[:-4])):
        found = _ALMOST.fullmatch(name)
        return f"rename it to {found[1]}.txt" if found else "its name is no game id"
    path = os.path.join(work, "xml", name)
    return "it is a link" if os.path.islink(path) else "it is a directory" if os.path.isdir(path) else "it is no file"


def xml_files(work, but=()):
    """Yield (gid or None, directory entry) for each file in xml/; None where it is no regular file by a game's name.

    What is being written aside (names that begin with a dot) is not there yet. but: names that are passed over.
    """
    try:
        entries = os.scandir(os.path.join(work, "xml"))
    except FileNotFoundError:
        return
    with entries:
        for entry in entries:
            name = entry.name
            if name[:1] != "." and name not in but:
                yield (name[:-4] if name[-4:] == ".txt" and gid.is_gid(name[:-4])
                       and entry.is_file(follow_symlinks=False) else None), entry
