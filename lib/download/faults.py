"""What can go wrong with a request, in words that a `failed` event can hold."""

import ssl

import requests

from ..store.errors import Problem
from . import proxies


class Fault(Exception):
    """A request without a usable answer; str() says what happened.

    kind: 'refused' (403, 404, 429, 503), 'passing', 'unreachable'; status: the HTTP status, None without an answer;
    retry_after: the seconds that the server tells us to wait, None if it does not
    """

    def __init__(self, kind, text, status=None, retry_after=None):
        super().__init__(text)
        self.kind, self.status, self.retry_after = kind, status, retry_after


class ProxyFault(Fault):
    """The server was not asked, since the proxy did not pass it on: this says nothing about what was asked for."""

    def __init__(self, proxy, why, status=None):
        super().__init__("unreachable", f"{proxy}: {why}", status)


class Refused(Problem):
    """The server refuses everything, or cannot be reached; `fault` is the last Fault."""

    def __init__(self, text, fault):
        super().__init__(text)
        self.fault = fault


def of(error, proxy, host, timeout):
    """The Fault of a request that raised `error`. proxy: what it went through, see lib.download.proxies.of, or None.
    Raises Problem if the proxy cannot be used at all."""
    if proxy and (why := proxies.why_unusable(error)):
        raise Problem(f"{proxy}: {why}; unset it, or set no_proxy={host} to bypass it")
    if isinstance(error, requests.exceptions.ChunkedEncodingError):
        return Fault("passing", _why(error))
    if proxy and (_is_among(error, "ProxyError") or _is_lost(error)):  # lost by whom nobody can tell
        status = proxies.refusal(error)
        return ProxyFault(proxy, proxies.answer(status) if status else _why(error), status)
    if isinstance(error, requests.exceptions.Timeout) or _is_among(error, "ReadTimeoutError", TimeoutError):
        return Fault("passing", f"timed out after {timeout:g} s")
    if isinstance(error, requests.exceptions.ConnectionError):
        away = "NewConnectionError", "NameResolutionError", ConnectionRefusedError, "SSLError", "ProxyError"
        return Fault("unreachable" if _is_among(error, *away) else "passing", _why(error))
    return Fault("passing", f"no usable answer: {type(error).__name__}: {error}"[:200])


def _is_lost(error):
    """True if a connection ended before there was an answer."""
    return (isinstance(error, requests.exceptions.ConnectionError)
            and not isinstance(error, requests.exceptions.Timeout) and not _is_among(error, TimeoutError))


def _is_among(error, *kinds):
    """True if `error`, or one of its causes, is an exception of one of these classes or class names."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if any(isinstance(error, k) if isinstance(k, type) else type(error).__name__ == k for k in kinds):
            return True
        nested = [a for a in getattr(error, "args", ()) if isinstance(a, BaseException)]
        error = getattr(error, "reason", None) or error.__cause__ or error.__context__ or (nested or [None])[0]
        error = error if isinstance(error, BaseException) else None
    return False


def _why(error):
    if _is_among(error, "IncompleteRead"):
        return "short body: the connection ended before the length that was announced"
    if _is_among(error, ConnectionResetError, "RemoteDisconnected"):
        return "connection reset"
    if _is_among(error, ssl.SSLCertVerificationError):
        return "its certificate cannot be verified"
    if _is_among(error, "NameResolutionError"):
        return "no such host, or no network"
    if _is_among(error, ConnectionRefusedError):
        return "connection refused"
    return f"no connection: {error}"[:200]
