"""A proxy that the environment sets: what is its fault is held against no game, and its line names it."""

import contextlib
import socketserver
import threading

import pytest
from flows import NOBODY, records, script
from support import game
from test_hostile import reply, server

from lib.download import proxies

pytestmark = pytest.mark.slow

GAMES = [game(n) for n in range(7)]


@contextlib.contextmanager
def proxy(answer):
    """A proxy on 127.0.0.1 that sends the bytes `answer(request)` and closes. Yields (its host and port, requests)."""
    asked = []

    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            line = self.rfile.readline()
            while self.rfile.readline().strip():
                pass
            asked.append(line.decode().strip())
            self.wfile.write(answer(asked))

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True

    with Server(("127.0.0.1", 0), Handler) as s:
        threading.Thread(target=s.serve_forever, args=[0.05], daemon=True).start()
        try:
            yield f"127.0.0.1:{s.server_address[1]}", asked
        finally:
            s.shutdown()


def fetch(tmp_path, variable, address, **settings):
    settings = {"DELAY": "0", "TENHOU_URL": NOBODY, variable: address, **settings}
    (tmp_path / "w").mkdir(exist_ok=True)
    return script("fetch-paipu", "--work", tmp_path / "w", *GAMES, settings=settings)


def no_event(tmp_path):
    return not (tmp_path / "w" / "manifest.jsonl").exists() or not records(tmp_path / "w")


def head(status):
    return f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(("answer", "why"), [
    (b"", "connection reset"), (head("407 Proxy Authentication Required"), "it answers HTTP 407, wants a user name"),
    (head("502 Bad Gateway"), "it answers HTTP 502"), (head("504 Gateway Timeout"), "it answers HTTP 504")])
def test_what_a_proxy_does_not_pass_on_ends_the_run_soon_and_is_held_against_no_game(tmp_path, scheme, answer, why):
    with proxy(lambda _: answer) as (where, asked):
        done = fetch(tmp_path, "ALL_PROXY", f"http://me:secret@{where}", TENHOU_URL=NOBODY.replace("http", scheme))
    assert done.returncode == 1 and len(asked) == 5 and no_event(tmp_path), done.stderr
    *_, last = done.stderr.splitlines()
    assert last.startswith("fetch-paipu: 127.0.0.1: 5 requests in a row failed, the last for ")
    assert f"the proxy http://{where} (from ALL_PROXY): {why}" in last and "secret" not in done.stderr


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("variable", ["ALL_PROXY", "all_proxy", "{}_proxy", "{}_PROXY"])
def test_a_proxy_that_is_not_there_is_named_and_so_is_who_names_it(tmp_path, scheme, variable):
    variable = variable.format(scheme.upper() if "PROXY" in variable else scheme)
    with proxy(lambda _: b"") as (where, _):
        pass
    done = fetch(tmp_path, variable, f"http://{where}", TENHOU_URL=NOBODY.replace("http", scheme))
    assert done.returncode == 1 and no_event(tmp_path)
    assert f"the proxy http://{where} (from {variable}): connection refused; stopped" in done.stderr


@pytest.mark.parametrize(("address", "shown", "why"), [
    ("socks5://me:secret@127.0.0.1:9", "socks5://127.0.0.1:9", "SOCKS needs the package PySocks"),
    ("socks5h://127.0.0.1:9", "socks5h://127.0.0.1:9", "SOCKS needs the package PySocks"),
    ("http://me:secret@127.0.0.1:x", "http://127.0.0.1:x", "this is not the address of a proxy"),
    ("gopher://127.0.0.1:9", "gopher://127.0.0.1:9", "this is not the address of a proxy"),
    ("http://", "http://", "this is not the address of a proxy")])
def test_a_proxy_that_cannot_be_used_ends_the_run_at_once_in_one_line(tmp_path, address, shown, why):
    done = fetch(tmp_path, "ALL_PROXY", address)
    assert done.returncode == 1 and no_event(tmp_path)
    assert done.stderr.startswith(f"fetch-paipu: the proxy {shown} (from ALL_PROXY): {why}"), done.stderr
    assert "no_proxy=127.0.0.1" in done.stderr and done.stderr.count("\n") == 1 and "secret" not in done.stderr


def test_a_list_that_no_proxy_passes_on_is_told_with_its_name(tmp_path):
    with proxy(lambda _: head("502 Bad Gateway")) as (where, _):
        done = script("fetch-index", "--work", tmp_path / "w", "--year", 2024, settings={
            "DELAY": "0", "TENHOU_URL": NOBODY, "http_proxy": f"http://{where}"})
    assert done.returncode == 1 and f"the proxy http://{where} (from http_proxy): it answers HTTP 502" in done.stderr


def test_a_proxy_that_fails_now_and_then_leaves_those_games_as_they_are(tmp_path):
    log = b'<mjloggm ver="2.3"><GO/></mjloggm>'

    def answer(asked):  # no answer to all three requests for the first game
        if len(asked) <= 3:
            return b""
        body = log.replace(b"<GO/>", b'<GO n="%d"/>' % len(asked))
        return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b" % (len(body), body)

    with proxy(answer) as (where, _):
        done = fetch(tmp_path, "http_proxy", f"http://{where}")
    assert done.returncode == 0 and done.stdout.split() == GAMES[1:], done.stderr
    assert set(records(tmp_path / "w")) == set(GAMES[1:])
    assert f"{GAMES[0]}: the proxy http://{where} (from http_proxy): connection reset; left for the next run\n" in (
        done.stderr)
    assert "6 downloaded, 0 duplicates, 0 failed, 1 left for later" in done.stderr


def test_no_proxy_goes_around_it(tmp_path):
    with server(lambda handler: reply(handler, b"", 404)) as (url, asked):
        done = fetch(tmp_path, "ALL_PROXY", "socks5://127.0.0.1:9", TENHOU_URL=url, no_proxy="127.0.0.1")
    assert "proxy" not in done.stderr.replace(str(tmp_path), "") and len(asked) == 5


def test_a_name_of_a_proxy_has_no_password_in_it(monkeypatch):
    assert proxies.of(NOBODY) is None
    for given, shown in (("http://a:b@p:1", "http://p:1"), ("a:b@c@p:1", "p:1"), ("http://a:x@y/z@p", "http://p"),
                         ("p:3128", "p:3128")):
        monkeypatch.setenv("all_proxy", given)
        assert proxies.of(NOBODY) == f"the proxy {shown} (from all_proxy)"
