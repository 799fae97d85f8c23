"""The trash of a work directory: files that were taken out of their places stay there until `make purge`."""

import errno
import os
import shutil

from . import files

FOLDER = "trash"


def put(work, path):
    """Move the file or directory `path` into the trash, durably; returns its new path. For use under the manifest's
    lock. Raises OSError."""
    folder = os.path.join(work, FOLDER)
    files.make_dirs(folder)
    target = stem = os.path.join(folder, os.path.basename(path))
    number = 1
    while os.path.lexists(target):
        number += 1
        target = f"{stem}.{number}"
    try:
        os.rename(path, target)
    except OSError as e:
        if e.errno != errno.EXDEV:
            raise
        _copy(path, target)  # the trash is on another file system
        shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
    files.sync_dir(folder)
    files.sync_dir(os.path.dirname(path))
    return target


def _copy(path, target):
    if os.path.islink(path):
        os.symlink(os.readlink(path), target)
    elif os.path.isdir(path):
        temporary = files.temporary_path(target)
        shutil.copytree(path, temporary, symlinks=True)
        os.rename(temporary, target)
    else:
        with open(path, "rb") as old, files.atomic_write(target, os.stat(path)) as new:
            shutil.copyfileobj(old, new, 1 << 20)
