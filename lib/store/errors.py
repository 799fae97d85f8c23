"""Errors that end a script with one line for its user, and the exit status of each."""


class Problem(Exception):
    """The work cannot go on; str() says what happened, to what, and what to do next. Exit status 1."""

    status = 1


class Usage(Problem):
    """Wrong usage: an argument or a setting that is not allowed. Exit status 2."""

    status = 2


class Busy(Problem):
    """Another process holds a lock that we need; trying again later helps. Exit status 75 (EX_TEMPFAIL)."""

    status = 75


class Interrupted(BaseException):
    """A signal asks the script to end while it waits for something. Not an Exception, so that nobody retries the
    wait."""
