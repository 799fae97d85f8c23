"""Times as the manifest writes them: UTC, whole seconds, Z."""

import datetime
import time

_FORM = "%Y-%m-%dT%H:%M:%SZ"


def moment(text):
    """A time of the manifest as a datetime in UTC; None if it is not a time, or not one between 2000 and 2099."""
    try:
        time = datetime.datetime.strptime(str(text), _FORM).replace(tzinfo=datetime.timezone.utc)
    except ValueError:
        return None
    return time if 2000 <= time.year < 2100 else None


def utc(seconds):
    """A time in seconds since 1970 as the manifest writes it: UTC, whole seconds, Z."""
    return time.strftime(_FORM, time.gmtime(seconds))


def now():
    """This moment as the manifest writes it."""
    return utc(time.time())
