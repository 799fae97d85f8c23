"""A process that does not outlive the one that started it, and so cannot keep a lock of its own accord."""

import contextlib
import os
import signal

_PR_SET_PDEATHSIG = 1  # prctl(2)


def end_with(pid):
    """Have the system kill this process as soon as its parent, whose number is `pid`, has ended, however that ends.

    Only Linux can do that; elsewhere this process has to notice by itself.
    """
    import ctypes  # few need it

    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != pid:  # it has ended already
        os._exit(1)
