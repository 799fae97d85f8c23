"""HTTP requests to Tenhou's server, with good manners: one at a time, User-Agent, retries with growing waits, and a
stop after several refusals. lib/download/pause.py has the pause between requests, which all processes of a machine
share."""

import contextlib
import datetime
import email.utils
import os
import signal
import time
import urllib.parse

import requests

from ..cli import again, settings
from ..store.clock import utc
from ..store.errors import Problem
from ..store.wording import count
from . import faults, pause, proxies
from .faults import Fault, ProxyFault, Refused

_REDIRECTS = 3
ATTEMPTS = 3  # for a passing fault; two for 429 and 503, one for 403 and 404
_LONGEST_PAUSE = 600  # seconds; if the server asks us to wait longer, the run stops
_PATIENCE = 4  # a whole answer may take so many times TIMEOUT, for each 16 MB that it may have; at most a day


class Session:
    """One HTTP session. From the first request on it holds this machine's lock for the server."""

    def __init__(self, delay, max_refusals, say, waiting=contextlib.nullcontext, work=None):
        """delay: seconds between requests; max_refusals: stop after so many refusals in a row; say(text): prints a line
        for the user; waiting(): a context in which a signal may raise Interrupted; work: for which work directory, as
        other processes are told that find us downloading.

        Raises Usage if TENHOU_URL is not an address, or DELAY is too short for it.
        """
        self.base, self.host = settings.server(delay)
        self._user_agent = settings.user_agent()
        self.delay, self.max_refusals, self.say, self._refusals = delay, max_refusals, say, 0
        self.timeout = settings.number("TIMEOUT")
        self._waiting, self._exit, self._http = waiting, contextlib.ExitStack(), None
        self._work, self._purpose = work, f"for {os.path.abspath(work)}" if work else ""

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._exit.close()

    def _open(self):
        self._pause = self._exit.enter_context(pause.held(self.base, self.delay, self._purpose))
        self._http = self._exit.enter_context(requests.Session())
        self._http.headers["User-Agent"] = self._user_agent

    def wait(self, seconds):
        """Wait, unless a signal comes."""
        with self._waiting():
            time.sleep(max(0, seconds))

    def persist(self, name, call):
        """The result of `call()`; after a fault that may pass, call it again after a growing wait.

        Raises the last Fault. Raises Problem if the server has refused, or could not be reached, `max_refusals` times
        in a row: then the fault lies with the server, not with single games.
        """
        for attempt in range(1, ATTEMPTS + 1):
            try:
                result = call()
            except Fault as e:
                self._refusals = 0 if e.kind == "passing" else self._refusals + 1
                if self._refusals >= self.max_refusals:
                    self._pause.stay_away(e.retry_after or 0)
                    text = (f"{self.host}: {count(self._refusals, 'request')} in a row failed, the last for {name}: "
                            f"{e}; stopped. To ask for the rest later, run the same command again")
                    if e.status in (403, 404):
                        work, more = self._work or settings.work(), 10 * self.max_refusals
                        text += ("; a game that was refused in two runs is asked for again only after a week. To get "
                                 f"past more of them in one run: {again.run(work, MAX_REFUSALS=str(more))}")
                    raise Refused(text, e) from None
                if e.status in (403, 404) or attempt == (2 if e.kind == "refused" else ATTEMPTS):
                    raise
                seconds = self.delay * 2 ** attempt if e.retry_after is None else e.retry_after
                self.say(f"{name}: {e}; trying again in {seconds:g} s")
                self.wait(seconds)
            else:
                self._refusals = 0
                return result

    def get(self, path, receive, limit, headers=None):
        """Request `path` once; receive(response) returns a function that takes the chunks of the body.

        limit: the most bytes that a body may have. Returns the response, for its headers and status. Raises Fault; Busy
        if another process has the lock; Problem for a redirect to another host, or if we have to wait too long.
        """
        if self._http is None:
            self._open()
        url = self.base + path
        for _ in range(_REDIRECTS + 1):
            self.wait(self._pause.left())
            self._pause.stamp()
            try:
                with self._waiting(), _in_time(_PATIENCE * self.timeout * max(1, limit >> 24)):
                    response = self._ask(url, receive, limit, headers)
            finally:
                self._pause.stamp()
            if not response.is_redirect:
                return response
            url = self._allowed(url, response.headers["Location"])
        raise Fault("passing", "too many redirects")

    def _ask(self, url, receive, limit, headers):
        try:
            with self._http.get(url, headers=headers, timeout=self.timeout, stream=True, allow_redirects=False) as r:
                if r.is_redirect:
                    return r
                if r.status_code not in (200, 206):
                    if r.status_code in proxies.GATEWAY and (proxy := proxies.of(url)):
                        raise ProxyFault(proxy, proxies.answer(r.status_code), r.status_code)
                    kind = "refused" if r.status_code in (403, 404, 429, 503) else "passing"
                    raise Fault(kind, "HTTP 429 too many requests" if r.status_code == 429 else f"HTTP {r.status_code}",
                                r.status_code, self._retry_after(r))
                length = r.headers.get("Content-Length", "")
                if length.isdecimal() and int(length) > limit:
                    raise Fault("passing", f"body of {length} bytes, more than {limit}")
                sink, size = receive(r), 0
                for chunk in r.iter_content(1 << 16):
                    size += len(chunk)
                    if size > limit:
                        raise Fault("passing", f"body of more than {limit} bytes")
                    sink(chunk)
                return r
        except requests.exceptions.RequestException as e:
            raise faults.of(e, proxies.of(url), self.host, self.timeout) from None
        except ValueError:  # requests parses a redirect too
            raise Problem(f"{self.host} redirects to something that is not an address") from None

    def _retry_after(self, response):
        text = response.headers.get("Retry-After", "").strip()
        if not text:
            return None
        try:
            seconds = int(text)
        except ValueError:
            try:
                when = email.utils.parsedate_to_datetime(text)
            except (ValueError, TypeError, OverflowError):
                return None
            utc_now = datetime.datetime.now(datetime.timezone.utc)
            seconds = (when.replace(tzinfo=when.tzinfo or datetime.timezone.utc) - utc_now).total_seconds()
        if seconds > _LONGEST_PAUSE:
            until = utc(self._pause.stay_away(seconds))
            raise Problem(f"{self.host} tells us to come back after {until} (HTTP {response.status_code}); stopped. "
                          "Run again then")
        return max(0, seconds)

    def _allowed(self, url, location):
        """The address of a redirect. Raises Problem if it is not on the same server."""
        try:
            url = urllib.parse.urljoin(url, location)
            parts = urllib.parse.urlsplit(url)
        except ValueError:
            raise Problem(f"{self.host} redirects to something that is not an address") from None
        own = parts.hostname == self.host or (
            self.host.endswith("tenhou.net") and f".{parts.hostname}".endswith(".tenhou.net"))
        safe = parts.scheme == "https" or (parts.scheme == "http" and self.base.startswith("http:"))
        if not (own and safe):
            raise Problem(f"{self.host} redirects to {parts.scheme}://{parts.hostname}, which was not followed; "
                          "if the server has moved, set TENHOU_URL")
        return url


@contextlib.contextmanager
def _in_time(seconds):
    """A block that raises Fault after so many seconds. TIMEOUT only limits the wait for the next bytes, and a server
    may send them one by one."""

    def late(signum, frame):
        raise Fault("passing", f"too slow: no whole answer in {seconds:g} s")

    before = signal.signal(signal.SIGALRM, late)
    try:
        signal.setitimer(signal.ITIMER_REAL, min(seconds, 86400))
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
