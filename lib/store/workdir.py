"""The paths of a work directory. Only here ids become paths."""

import errno
import functools
import os
import shlex
import stat

from .. import manifest
from . import claims, files, gid, identity, wording
from .errors import Problem

MANIFEST = manifest.FILE
RUN_LOCK = ".run.lock"
SETTLED = ".settled"  # what a run printed that found nothing to do (lib.report.settled)
NO_NEWS = ".no-news"  # there during a run, until it tells what the next one has to tell too
ASKED = ".asked"  # what the last run was to download (lib.download.asked)
LINKS = "game_ids_imported.txt"  # ids from imported links, which the next run downloads
SHARD = "shard_{:05d}"


def path(work, *parts):
    """A path below the work directory."""
    return os.path.join(work, *parts)


def xml(work, game):
    """The path of a game's paipu. Raises Problem for anything that is not a game id."""
    if not gid.is_gid(game):
        raise Problem(f"{game!r} is not a game id")
    return f"{_xml(work)}{game}.txt"


@functools.lru_cache(maxsize=4)  # a run asks for hundreds of thousands of files
def _xml(work):
    return os.path.join(work, "xml", "")


def mjai(work, game):
    """The path of a game's mjai file. Raises Problem for anything that is not a game id."""
    return path(work, "mjai", f"{os.path.basename(xml(work, game))[:-4]}.json.gz")


def cache(work):
    """The directory of the shards."""
    return os.path.join(work, "cache")


def make(work, *needed):
    """Make the work directory if it is not there, or bring one of an older version up to date; remove temporary files
    of dead processes at its top. needed: which of the folders "cache" and "xml" must be there, and be mounted; without
    any, both.

    Raises Problem if one is not there, or if the work directory has another format; OSError.
    """
    if identity.read(work) is None:
        _begin(work)
    identity.confirm(work)
    identity.must_be_here(work, *needed or identity.FOLDERS)
    files.make_dirs(os.path.join(work, "raw"))
    files.sweep(work)


def _begin(work):
    try:
        identity.begin(work, _contents(work))
    except OSError as e:
        if e.errno in (errno.EACCES, errno.EROFS) and wording.is_default(work) and not os.path.isdir(work):
            elsewhere = shlex.quote(os.path.expanduser("~/tenhou"))
            raise Problem(f"{e.filename}: {e.strerror}; name a directory that you may write in, e.g. "
                          f"WORK={elsewhere}") from None
        raise


def must_exist(work):
    """Raises Problem if there is no such work directory, or one of another format; OSError."""
    identity.must_exist(work)


def enter(work, *needed):
    """As `make`, for a work directory that must be there already: a typo must not make one, nor make another folder
    one. Raises Problem, OSError."""
    must_exist(work)
    found = set(os.listdir(work))
    if found and not found & {identity.FILE, MANIFEST, RUN_LOCK, "raw", *identity.FOLDERS}:
        raise Problem(f"{work} is not a work directory: it has none of {MANIFEST}, xml/ and cache/")
    make(work, *needed)


def _contents(work):
    """folder -> the names of the files and directories that should be in it, according to the manifest."""
    if not os.path.isdir(work):
        return {}
    latest = manifest.Manifest(work).latest
    shards = (claim.get("shard") for claim in map(claims.held, latest.values()) if claim)
    return {"cache": set(filter(None, shards)),
            "xml": {f"{game}.txt" for game, record in latest.items() if record.get("status") == "downloaded"}}


def log_is_gone(work, game):
    """True if xml/ is mounted and has no log of a game. Raises Problem if xml/ is not mounted."""
    try:
        os.lstat(xml(work, game))
    except FileNotFoundError:
        identity.must_be_here(work, "xml")
        return True
    except OSError:
        pass  # we cannot see it, which does not mean that it is gone
    return False


def why_foreign(work, name):
    """Why the entry `name` of xml/ cannot be adopted, as text; None if it may be a log under another usual name."""
    path = os.path.join(work, "xml", name)
    if not gid.of_name(name):
        return "there is no game id in its name"
    if stat.S_ISREG(os.lstat(path).st_mode):
        return None
    return ("it is a link" if os.path.islink(path) else "it is a directory" if os.path.isdir(path) else
            "it is not a regular file")


def xml_files(work, but=()):
    """Yield (gid or None, directory entry) for each entry of xml/; None if it is not a regular file named <gid>.txt.

    Names that begin with a dot, such as temporary files, are left out. but: more names to leave out.
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
