"""The trash of a work directory: what was taken out of it stays there until `make purge`."""

import os

from . import files

FOLDER = "trash"


def put(work, path):
    """Move what stands at `path`, whatever it is, into the trash, durably; returns where it is now. For use under the
    manifest's lock. Raises OSError."""
    folder = os.path.join(work, FOLDER)
    os.makedirs(folder, exist_ok=True)
    target = stem = os.path.join(folder, os.path.basename(path))
    number = 1
    while os.path.lexists(target):
        number += 1
        target = f"{stem}.{number}"
    os.rename(path, target)
    files.sync_dir(work)
    files.sync_dir(folder)
    files.sync_dir(os.path.dirname(path))
    return target
