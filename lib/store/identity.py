"""Whether a folder is this work directory's: its id stands in format.json, and again in cache/ and in xml/.

Where the id is not, the file system with the folder is not mounted, or another one is. Then what is not there says
nothing: nobody may take it for lost.
"""

import contextlib
import errno
import json
import os
import uuid

from . import files
from .errors import Problem

FORMAT = 1
FILE = "format.json"
MARKER = ".work-id"
FOLDERS = ("cache", "xml")


def read(work):
    """The id of a work directory; None if it has none yet. Raises Problem for another format, OSError."""
    path = os.path.join(work, FILE)
    try:
        with open(path, "rb") as f:
            found = json.loads(f.read())
        number, known = found["format"], found["id"]
        if type(number) is not int or type(known) is not str or not known:
            raise ValueError
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Problem(f"{path} is damaged: remove it, and the next run writes it again, with the id that "
                      f"{' and '.join(f'{folder}/' for folder in FOLDERS)} have") from None
    if number != FORMAT:
        raise Problem(f"{path}: the work directory has format {number}, this version knows {FORMAT}: "
                      "use the version that made it")
    return known


def must_exist(work):
    """Raises Problem if there is no such work directory, or one of another format; OSError."""
    if not os.path.isdir(work):
        raise Problem(f"{work}: no such work directory")
    read(work)


def must_be_here(work, *folders):
    """Raise Problem for the first of these folders that is not this work directory's. Of one without an id, as older
    versions made them, nothing is known. Raises OSError."""
    known = read(work)
    for folder in folders if known else ():
        found = _marker(work, folder)
        if found is None:
            raise Problem(_not_mounted(work, folder, f"it has no {MARKER}"))
        if found not in ("", known):
            raise Problem(f"{os.path.join(work, folder)} belongs to another work directory: mount this one's")


def begin(work, contents):
    """Give a work directory its id, a new one or one that an older version made. Killed anywhere it goes on from there.

    contents: folder -> the names of what should be there, one of them at least. Raises Problem for a folder that has no
    marker and nothing of that, OSError.
    """
    for folder, names in contents.items():
        if names and _marker(work, folder) is None and not names & _names(os.path.join(work, folder)):
            raise Problem(_not_mounted(work, folder, "it has nothing of what the manifest says is there"))
    known = next(filter(None, (_marker(work, folder) for folder in FOLDERS)), None) or uuid.uuid4().hex
    for folder in FOLDERS:  # the first decides if two begin at the same time; format.json last: what it says is done
        files.make_dirs(os.path.join(work, folder))
        files.sweep(os.path.join(work, folder))
        known = _mark(work, folder, known)
    files.write(os.path.join(work, FILE), json.dumps({"format": FORMAT, "id": known}).encode() + b"\n")


def confirm(work):
    """Put the id where a user has put an empty marker: a folder begun anew. Raises Problem, OSError."""
    for folder in FOLDERS:
        if _marker(work, folder) == "":
            files.write(os.path.join(work, folder, MARKER), read(work).encode() + b"\n")


def _marker(work, folder):
    """The id that a folder repeats, '' for an empty marker, None for none."""
    try:
        with open(os.path.join(work, folder, MARKER), encoding="ascii", errors="replace") as f:
            return f.read(100).strip()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _mark(work, folder, known):
    """Put the marker in a folder unless one is there; returns the id that stands there then."""
    path = os.path.join(work, folder, MARKER)
    if found := _marker(work, folder):
        return found
    temporary = files.temporary_path(path)
    files.write(temporary, known.encode() + b"\n")
    try:
        with contextlib.suppress(FileNotFoundError):
            if _marker(work, folder) == "":
                os.unlink(path)
        os.link(temporary, path)  # unlike a rename it takes no other's place
    except FileExistsError:
        pass
    except OSError as e:
        if e.errno not in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS):
            raise
        os.rename(temporary, path)  # a file system without links
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
    files.sync_dir(os.path.dirname(path))
    return _marker(work, folder)


def _names(path):
    try:
        return set(os.listdir(path))
    except (FileNotFoundError, NotADirectoryError):
        return set()


def _not_mounted(work, folder, why):
    path = os.path.join(work, folder)
    return (f"{path} is not mounted, or not this work directory's ({why}): mount it; if what was there is gone for "
            f"good, `mkdir -p {path} && touch {path}/{MARKER}` says so")
