"""What kind of file system a path is on, as far as that has to be told."""

import os
import re

WINDOWS = ("{} is on a Windows drive: slow, and a power loss may undo what was reported as done; "
           "use a folder of Linux itself, e.g. WORK=/home/me/tenhou")
_MOUNTS = "/proc/self/mounts"


def is_windows_drive(path):
    """True if WSL shows a drive of Windows there, as it does below /mnt/c: over a network protocol (9p, virtiofs)."""
    try:
        with open(_MOUNTS, encoding="utf-8", errors="surrogateescape") as f:
            mounts = [line.split(" ") for line in f]
    except OSError:  # no Linux
        return False
    real, longest, found = os.path.join(os.path.realpath(path), ""), 0, False
    for source, point, kind, options, *_ in mounts:
        point = os.path.join(re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), point), "")
        if real.startswith(point) and len(point) >= longest:  # of two on one point the later one is seen
            longest = len(point)
            found = kind == "drvfs" or "aname=drvfs" in options or source.startswith("drvfs")
    return found
