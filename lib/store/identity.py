"""Whether a folder belongs to this work directory: its id is in format.json, and again in cache/ and in xml/.

If a folder does not have the id, its file system is not mounted, or another one is mounted there. Then a missing file
means nothing, and no script may take it for lost.
"""

import contextlib
import errno
import json
import os
import shlex
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
        raise Problem(f"{path} is damaged; delete it, and the next run writes it again, with the id that is in "
                      f"{' and '.join(f'{folder}/' for folder in FOLDERS)}") from None
    if number != FORMAT:
        raise Problem(f"{path}: the work directory has format {number}, but this version knows only {FORMAT}; "
                      "use the version that made it")
    return known


def must_exist(work):
    """Raise Problem if there is no such work directory, or if it has another format; OSError."""
    if not os.path.isdir(work):
        raise Problem(f"{work}: no such work directory")
    if os.path.exists(os.path.join(work, MARKER)):
        raise Problem(f"{work} is a folder of a work directory: name {os.path.dirname(os.path.abspath(work))}")
    read(work)


def must_be_here(work, *folders):
    """Raise Problem for the first of these folders that does not belong to this work directory. A work directory of an
    older version has no id, so nothing is checked there. Raises OSError."""
    known = read(work)
    for folder in folders if known else ():
        found = _marker(work, folder)
        if found is None:
            raise Problem(_not_mounted(work, folder, f"it has no {MARKER}"))
        if found not in ("", known):
            raise Problem(f"{os.path.join(work, folder)} belongs to another work directory; mount this one's")


def begin(work, contents):
    """Give an id to a work directory, a new one or one that an older version made. If this is killed, the next call
    continues.

    contents: folder -> the names that should be in it. Raises Problem for a folder that has no marker and none of these
    names, OSError.
    """
    for folder, names in contents.items():
        if names and _marker(work, folder) is None and not names & _names(os.path.join(work, folder)):
            raise Problem(_not_mounted(work, folder, "it has none of the files that the manifest names"))
    known = next(filter(None, (_marker(work, folder) for folder in FOLDERS)), None) or uuid.uuid4().hex
    # if two processes begin at the same time, the first folder decides; format.json comes last, when all is done
    for folder in FOLDERS:
        if leads_nowhere(os.path.join(work, folder)):
            raise Problem(_not_mounted(work, folder, ""))
        files.make_dirs(os.path.join(work, folder))
        files.sweep(os.path.join(work, folder))
        known = _mark(work, folder, known)
    files.write(os.path.join(work, FILE), json.dumps({"format": FORMAT, "id": known}).encode() + b"\n")


def confirm(work):
    """Write the id into an empty marker, with which a user says that a folder starts empty. Raises Problem, OSError."""
    for folder in FOLDERS:
        if _marker(work, folder) == "":
            files.write(os.path.join(work, folder, MARKER), read(work).encode() + b"\n")


def _marker(work, folder):
    """The id in a folder's marker, '' if the marker is empty, None if there is no marker."""
    try:
        with open(os.path.join(work, folder, MARKER), encoding="ascii", errors="replace") as f:
            return f.read(100).strip()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _mark(work, folder, known):
    """Put the marker in a folder unless it has one; returns the id that is in the folder then."""
    path = os.path.join(work, folder, MARKER)
    if found := _marker(work, folder):
        return found
    temporary = files.temporary_path(path)
    files.write(temporary, known.encode() + b"\n")
    try:
        with contextlib.suppress(FileNotFoundError):
            if _marker(work, folder) == "":
                os.unlink(path)
        os.link(temporary, path)  # unlike a rename, it never replaces another marker
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


def leads_nowhere(path):
    """The place to which the link `path` points, if nothing is there; None if it is another thing."""
    return os.path.realpath(path) if os.path.islink(path) and not os.path.exists(path) else None


def _not_mounted(work, folder, why):
    path = os.path.join(work, folder)
    nowhere = leads_nowhere(path)
    gone = "" if os.path.lexists(path) else "gone, "
    what = f"{path} is {gone}not mounted, or belongs to another work directory ({why}): mount it"
    if nowhere:
        what = f"{path} is a link to {nowhere}, and nothing is there: mount what should be there, or mend the link"
    name = shlex.quote(nowhere or path)
    return (f"{what}; if its contents are lost for good, start with an empty one: "
            f"mkdir -p {name} && touch {name}/{MARKER}")
