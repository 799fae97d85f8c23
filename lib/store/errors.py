"""Errors that end a script with one line for the person reading it, and the exit status that goes with each."""


class Problem(Exception):
    """The work cannot go on; str() says what happened, to what, and what to do next. Exit status 1."""

    status = 1


class Usage(Problem):
    """Wrong usage: an argument or a setting that cannot be. Exit status 2."""

    status = 2


class Busy(Problem):
    """Somebody else holds a lock that is needed; trying later helps. Exit status 75 (EX_TEMPFAIL)."""

    status = 75


class Interrupted(BaseException):
    """A signal asks the script to end while it was waiting for something; no Exception, so that nobody retries it."""
