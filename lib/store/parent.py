"""A process that ends with the one that started it, so that it never holds a lock on its own."""

import contextlib
import os
import signal

_PR_SET_PDEATHSIG = 1  # prctl(2)


def end_with(pid):
    """Have the system kill this process as soon as its parent, the process `pid`, has ended for whatever reason.

    Only Linux can do that; elsewhere this process has to notice it itself.
    """
    import ctypes  # here, because few scripts need it

    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != pid:  # it has ended already
        os._exit(1)
