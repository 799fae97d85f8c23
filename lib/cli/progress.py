"""Progress on stderr: a bar on a terminal, a line a minute elsewhere."""

import os
import stat
import sys
import time

_EVERY = 60  # seconds between lines
_bar = None


def write(line):
    """A line on stderr, above the bar if there is one."""
    if _bar is not None:
        _bar.write(line, file=sys.stderr)
    else:
        print(line, file=sys.stderr, flush=True)


def _show(bar):
    global _bar
    _bar = bar


class Progress:
    """Counts the things that are done and that failed, of `total` (None: unknown), and shows the progress."""

    def __init__(self, prog, what, total=None, quiet=False):
        """what: the word for a thing done, e.g. 'downloaded'. If stdin is a pipe, progress is shown as lines, so that
        the bars of the scripts in a pipeline do not overwrite each other."""
        self._prog, self._what, self._total = prog, what, total
        self._start = self._told = time.monotonic()
        self.done = self.failed = 0
        if sys.stderr.isatty() and not quiet and not stat.S_ISFIFO(os.fstat(sys.stdin.fileno()).st_mode):
            from tqdm import tqdm

            _show(tqdm(total=total, desc=what, unit="game", file=sys.stderr, dynamic_ncols=True))

    def update(self, done, failed):
        """Show that so many are done and so many have failed by now."""
        step, self.done, self.failed = done + failed - self.done - self.failed, done, failed
        if _bar is not None:
            _bar.set_postfix(failed=failed, refresh=False)
            _bar.update(step)
        elif time.monotonic() - self._told >= _EVERY:
            self._told = time.monotonic()
            print(f"{self._prog}: {self}", file=sys.stderr, flush=True)

    def __str__(self):
        handled = self.done + self.failed
        rate = handled / max(time.monotonic() - self._start, 1e-9)
        text = f"{self.done} {self._what}, {self.failed} failed, {60 * rate:.1f} a minute"
        if self._total is not None and rate:
            minutes = int((self._total - handled) / rate / 60)
            text += f", {minutes // 60} h {minutes % 60:02d} min left"
        return text

    def close(self):
        """Take the bar away."""
        if _bar is not None:
            _bar.close()
            _show(None)
