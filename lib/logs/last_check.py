"""When each log file was last found sound: one that nothing touched since need not be hashed again."""

import contextlib
import time

from ..store import files, workdir

_RACY = 2  # seconds: a file that was changed so shortly before it was hashed may change again without showing it


def stamp(info):
    """What a change of a file would change, of its os.stat_result, as text."""
    return f"{info.st_size} {info.st_mtime_ns} {info.st_ino}"


class LastChecks:
    """When each file was last found sound, and what it looked like then. A cache: losing it costs time only.

    news: the entries that `save` has still to write
    """

    def __init__(self, work):
        """Read it from the work directory; a damaged one counts as empty."""
        self._path, self.news = workdir.path(work, ".seen"), {}
        self.entries = self._read()

    def _read(self):
        with contextlib.suppress(OSError, ValueError), open(self._path, encoding="ascii") as f:
            # split up no further before it is asked for: that would be most of the work of looking at many files
            return dict(line.split("\t", 1) for line in f.read().split("\n") if line)
        return {}

    def is_sound(self, game, sha256, stamp):
        """True if the file looked like this when it was last hashed, and had this hash."""
        entry = self.entries.get(game, "")
        return entry.startswith(sha256[:16] + "\t") and entry.endswith("\t" + stamp)

    def checked(self, game):
        """When the file was last hashed and found sound, in seconds since 1970; 0 if that is not known."""
        checked = self.entries.get(game, "").split("\t")[1:2]
        return int(checked[0]) if checked and checked[0].isdecimal() else 0

    def put(self, game, sha256, stamp):
        """Note that a file that looks like this was hashed just now, and is sound."""
        if int(stamp.split()[1]) < (time.time() - _RACY) * 1e9:
            self.news[game] = self.entries[game] = f"{sha256[:16]}\t{int(time.time())}\t{stamp}"

    def save(self):
        """Write back what is new, beside what others have written meanwhile; for use under a lock. Raises OSError."""
        if self.news:
            self.entries = self._read() | self.news
            lines = (f"{game}\t{entry}\n" for game, entry in self.entries.items())
            files.write(self._path, "".join(lines).encode())
            self.news = {}
