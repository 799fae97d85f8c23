"""When each log file was last found sound: if it has not changed since, it need not be hashed again."""

import contextlib
import time

from ..store import files, workdir

_RACY = 2  # seconds: a file that changed so shortly before its hash may change again within the same time stamp


def stamp(info):
    """A text that changes when a file changes; info: its os.stat_result."""
    return f"{info.st_size} {info.st_mtime_ns} {info.st_ino}"


class LastChecks:
    """When each file was last found sound, and its stamp then. A cache: losing it only costs time.

    news: the entries that `save` still has to write
    """

    def __init__(self, work):
        """Read the cache from the work directory; a damaged one counts as empty."""
        self._path, self.news = workdir.path(work, ".seen"), {}
        self.entries = self._read()

    def _read(self):
        with contextlib.suppress(OSError, ValueError), open(self._path, encoding="ascii") as f:
            # the rest of a line is split only when needed: splitting all would take most of the time
            return dict(line.split("\t", 1) for line in f.read().split("\n") if line)
        return {}

    def is_sound(self, game, sha256, stamp):
        """True if the file had this stamp and this hash when it was last hashed."""
        entry = self.entries.get(game, "")
        return entry.startswith(sha256[:16] + "\t") and entry.endswith("\t" + stamp)

    def checked(self, game):
        """When the file was last found sound, in seconds since 1970; 0 if that is not known."""
        checked = self.entries.get(game, "").split("\t")[1:2]
        return int(checked[0]) if checked and checked[0].isdecimal() else 0

    def put(self, game, sha256, stamp):
        """Note that a file with this stamp was hashed just now, and is sound."""
        if int(stamp.split()[1]) < (time.time() - _RACY) * 1e9:
            self.news[game] = self.entries[game] = f"{sha256[:16]}\t{int(time.time())}\t{stamp}"

    def save(self):
        """Write the new entries, and keep those that others have written. For use under a lock. Raises OSError."""
        if self.news:
            self.entries = self._read() | self.news
            lines = (f"{game}\t{entry}\n" for game, entry in self.entries.items())
            files.write(self._path, "".join(lines).encode())
            self.news = {}
