"""Where things are in a work directory. Ids become paths only here."""

import functools
import os
import stat

from .. import manifest
from . import claims, files, gid, identity
from .errors import Problem

MANIFEST = manifest.FILE
RUN_LOCK = ".run.lock"
SETTLED = ".settled"  # what a run printed that found nothing to do (lib.report.settled)
NO_NEWS = ".no-news"  # there during a run, until it tells what the next one has to tell too
LINKS = "game_ids_imported.txt"  # ids of links that were imported, for the next run to download
SHARD = "shard_{:05d}"


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


def make(work, *needed):
    """Make the work directory if it is not there, or take over an older version's; sweep what dead processes left at
    its top. needed: the folders, "cache" and "xml", that must be there, not only a place to mount them; none: both.

    Raises Problem if one is not, or the work directory is of another format, OSError.
    """
    if identity.read(work) is None:
        identity.begin(work, _contents(work))
    identity.confirm(work)
    identity.must_be_here(work, *needed or identity.FOLDERS)
    files.make_dirs(os.path.join(work, "raw"))
    files.sweep(work)


def must_exist(work):
    """Raises Problem if there is no such work directory, or one of another format; OSError."""
    identity.must_exist(work)


def _contents(work):
    """folder -> the names of what the manifest says is there."""
    if not os.path.isdir(work):
        return {}
    latest = manifest.Manifest(work).latest
    shards = (claim.get("shard") for claim in map(claims.held, latest.values()) if claim)
    return {"cache": set(filter(None, shards)),
            "xml": {f"{game}.txt" for game, record in latest.items() if record.get("status") == "downloaded"}}


def log_is_gone(work, game):
    """True if a game's log is not in xml/, and xml/ is there to be seen. Raises Problem if it is not mounted."""
    try:
        os.lstat(xml(work, game))
    except FileNotFoundError:
        identity.must_be_here(work, "xml")
        return True
    except OSError:
        pass  # it cannot be seen: that is not gone
    return False


def why_foreign(work, name):
    """What keeps the file `name` of xml/ from being a game's; None for a file named as logs are elsewhere."""
    path = os.path.join(work, "xml", name)
    if not gid.of_name(name):
        return "its name is no game id"
    if stat.S_ISREG(os.lstat(path).st_mode):
        return None
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
