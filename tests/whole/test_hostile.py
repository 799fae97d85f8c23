"""What comes from outside may be anything: it leads nowhere else, fills neither memory nor disk, and takes no time."""

import contextlib
import gzip
import http.server
import io
import os
import shutil
import ssl
import struct
import subprocess
import threading
import time
import zipfile

import pytest
from flows import forget, measured, quick_and_small, records, script
from support import game, tree

from lib.download.session import Session
from lib.manifest import Manifest
from lib.store.errors import Problem

MB = 1 << 20
LINK = '23:02 | 35 | x | <a href="http://tenhou.net/0/?log={}">x</a> | x<br>\n'


@contextlib.contextmanager
def server(answer, wrap=None):
    """An HTTP server on 127.0.0.1; `answer(handler)` handles a GET. Yields (its address, the paths asked for)."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            with contextlib.suppress(ConnectionError):  # who has heard enough hangs up
                answer(self)

        def log_message(self, *args):
            pass

    class Server(http.server.ThreadingHTTPServer):
        def handle_error(self, *args):
            pass

    with Server(("127.0.0.1", 0), Handler) as httpd:
        if wrap:
            httpd.socket = wrap(httpd.socket)
        thread = threading.Thread(target=httpd.serve_forever, args=[0.05])
        thread.start()
        url = f"http{'s' if wrap else ''}://127.0.0.1:{httpd.server_address[1]}"
        try:
            yield url, asked
        finally:
            httpd.shutdown()
            forget(url)
            thread.join()


def reply(handler, body, status=200, **headers):
    handler.send_response(status)
    for name, value in {"Content-Length": str(len(body)), **headers}.items():
        if value is not None:
            handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


# ids and names

def make_zip(path, members, **options):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, **options) as z:
        for name, data in members.items():
            z.writestr(name, data)


def test_a_zip_with_any_names_leads_nowhere(tmp_path):
    """Only the last part of a member's name is looked at, and nothing is unpacked to disk."""
    names = ["../../scc20240101.html", "/etc/scc20240102.html", "a/b/../../../scc20240103.html", "x\\scc20240104.html",
             "scc20240105.html/../../evil", "\x1b[2Jevil/scc20240106.html", "scc/sce20240107.html",
             "~/scc20240108.html", "scc20240109.html", "inner.zip", "scc20240110.html.gz"]
    members = {name: LINK.format(game(i)) + LINK.format("../../../etc/passwd") for i, name in enumerate(names)}
    members["scc20240110.html.gz"] = gzip.compress(members["scc20240110.html.gz"].encode())
    inner = io.BytesIO()
    make_zip(inner, {"scc20240101.html": LINK.format(game(99))})
    members["inner.zip"] = inner.getvalue()
    make_zip(tmp_path / "year.zip", members)
    before = tree(tmp_path)
    status, stdout, stderr, *_ = measured("extract-ids", tmp_path / "year.zip", "--rooms", "00e1", "--work", tmp_path)
    assert status == 0 and stdout.split() == [game(i) for i in (0, 1, 2, 5, 7, 8, 10)]
    assert "'../../../etc/passwd' is not a game id" in stderr and ", 7 errors" in stderr and "\x1b" not in stderr
    assert tree(tmp_path) == before


def test_a_list_with_any_names_leads_nowhere(tmp_path):
    listed = ["scc2024010100.html.gz", "2024/scc20240101.html.gz", "../../scc2024010101.html.gz",
              "/tmp/scc2024010102.html.gz", "2024/../../scc2024010103.html.gz", "scc2024010104.html.gz/../x",
              "http://127.0.0.1:9/scc2024010105.html.gz", "sca2024010106.log.gz"]

    def answer(handler):
        if "zip" in handler.path:
            reply(handler, b"", 404)
        elif "list.cgi" in handler.path:
            entries = ",\r\n".join(f"{{file:'{name}',size:9}}" for name in listed)
            reply(handler, f"list([\r\n{entries}\r\n]);\r\n".encode() if "old" in handler.path else b"list();")
        else:
            reply(handler, gzip.compress(LINK.format(game(1)).encode()))

    work = tmp_path / "a" / "b" / "work"
    with server(answer) as (url, asked):
        done = script("fetch-index", "--work", work, "--year", 2024, settings={"TENHOU_URL": url, "DELAY": "0"})
    assert done.returncode == 0, done.stderr
    assert [path for path in asked if "dat" in path] == [
        "/sc/raw/dat/scc2024010100.html.gz", "/sc/raw/dat/2024/scc20240101.html.gz"]
    there = {path for path in tree(tmp_path) if os.path.basename(path) not in (".work-id", "format.json")}
    assert {os.path.basename(path) for path in there} == {
        ".looked", "listed.json", "scc2024010100.html.gz", "scc20240101.html.gz"}
    assert all(path.startswith("a/b/work/raw/") for path in there)


def test_a_shard_that_is_a_link_is_taken_away_and_what_it_points_to_is_not(tmp_path):
    outside, work = tmp_path / "outside", tmp_path / "w"
    (outside / "shard").mkdir(parents=True)
    (outside / "shard" / "labels.npy").write_bytes(b"precious")
    work.mkdir()
    assert script("rebuild-index", "--work", work).returncode == 0
    Manifest(work).append([{"gid": game(1), "status": "failed"}])
    for target in (outside / "shard", outside / "nothing"):
        os.symlink(target, work / "cache" / "shard_00005")
        assert script("compact-shards", "--work", work).returncode == 0
        assert not os.path.lexists(work / "cache" / "shard_00005")
    assert script("compact-shards", "--work", work).returncode == 0
    assert sorted(os.listdir(work / "cache")) == [".work-id", "index.json"]
    assert sorted(os.listdir(work / "trash")) == ["shard_00005", "shard_00005.2"]
    assert tree(outside) == {"shard/labels.npy": b"precious"}


# zips

def table_of_contents(n, size=0, method=8, name=b"scc20240101.html"):
    """A zip that is nothing but a table of contents: n members of `size` bytes each, all at the same place."""
    local = struct.pack("<4s5H3I2H", b"PK\3\4", 20, 0, method, 0, 0, 1, 0, size, len(name), 0) + name
    entry = struct.pack("<4s6H3I5H2I", b"PK\1\2", 20, 20, 0, method, 0, 0, 1, 0, size, len(name), *[0] * 6) + name
    return local + entry * n + struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, n & 0xFFFF, n & 0xFFFF, len(entry) * n,
                                           len(local), 0)


def encrypted():
    data = io.BytesIO()
    make_zip(data, {"scc20240101.html": LINK.format(game(1))})
    data = bytearray(data.getvalue())
    for signature, offset in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        data[data.index(signature) + offset] |= 1
    return bytes(data)


def packed(text, **options):
    data = io.BytesIO()
    make_zip(data, {"scc20240101.html": text}, **options)
    return data.getvalue()


def of_method(method):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method) as z:
        z.writestr("scc20240101.html", LINK.format(game(1)))
    return data.getvalue()


ZIPS = {
    "a table of contents without end": lambda: table_of_contents(300_000),
    "members larger than any disk": lambda: table_of_contents(1000, 1 << 31),
    "a method that needs memory": lambda: of_method(zipfile.ZIP_LZMA),
    "a method that does not exist": lambda: table_of_contents(1, 10, method=77),
    "an encrypted member": encrypted,
    "a wrong checksum": lambda: packed(LINK.format(game(1)) * 50).replace(b"PK\1\2", b"PK\1\2", 1)[:-30] + b"x" * 30,
    "cut": lambda: packed(os.urandom(9999))[:5000],
    "sizes that are lies": lambda: table_of_contents(3, 1000),
    "no zip at all": lambda: b"PK\3\4" + bytes(1000),
}


@pytest.mark.parametrize("what", ZIPS)
def test_an_odd_zip_is_refused_in_one_line_by_reader_and_fetcher(tmp_path, what):
    data = ZIPS[what]()
    (tmp_path / "year.zip").write_bytes(data)
    status, stdout, stderr, seconds, memory = measured("extract-ids", tmp_path / "year.zip", "--work", tmp_path)
    assert stdout == "" and 1 <= len(stderr.splitlines()) <= 6
    assert (status == 1 and "not a sound zip" in stderr) or "damaged" in stderr, stderr
    quick_and_small(seconds, memory)
    with server(lambda handler: reply(handler, data)) as (url, asked):
        status, _, stderr, seconds, memory = measured(
            "fetch-index", "--work", tmp_path / "w", "--year", 2020, TENHOU_URL=url, DELAY="0")
    assert status == 1 and "zip" in stderr.splitlines()[-1] and len(asked) == 3
    assert not list((tmp_path / "w" / "raw").iterdir())  # nothing under any name
    quick_and_small(seconds, memory)


@pytest.mark.parametrize(("data", "why"), [
    (b"<!DOCTYPE html><html><body>Please log in</body></html>", "File is not a zip file"),
    (b"", "File is not a zip file"),
], ids=["page", "empty"])
def test_what_is_put_in_the_place_of_a_year_s_zip_and_is_none_is_one_line_that_names_it(tmp_path, data, why):
    (tmp_path / "raw").mkdir()
    path = tmp_path / "raw" / "scraw2024.zip"
    path.write_bytes(data)
    done = script("extract-ids", "--work", tmp_path, "--year", 2024, "--output", tmp_path / "ids")
    assert done.returncode == 1 and not (tmp_path / "ids").exists()
    assert done.stderr == (f"extract-ids: {path}: not a sound zip ({why}); "
                           "delete it, and the next run downloads it again\n")


@pytest.mark.parametrize("data", [
    packed(LINK).replace(b"scc20240101.html", b"sce20240101.html"), table_of_contents(0)[-22:]])
def test_a_zip_that_names_no_game_is_told_and_no_error(tmp_path, data):
    """Those before 2009 are of that kind, and somebody may have put it there himself."""
    (tmp_path / "raw").mkdir()
    path = tmp_path / "raw" / "scraw2024.zip"
    path.write_bytes(data)
    done = script("extract-ids", "--work", tmp_path, "--year", 2024, "--output", tmp_path / "ids")
    assert done.returncode == 0 and (tmp_path / "ids").read_text() == ""
    assert done.stderr == (f"extract-ids: {path}: it names no game (Tenhou's lists begin in 2009)\n"
                           "extract-ids: 0 ids in 1 file, 0 errors\n")


def test_a_page_that_unpacks_to_too_much_is_passed_over_and_the_other_pages_are_read(tmp_path):
    bomb = gzip.compress(b"\n" * (80 * MB), 9)
    bomb = gzip.compress(bomb)  # once more: what is packed twice is a page of nonsense
    with zipfile.ZipFile(tmp_path / "year.zip", "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("scc20240101.html", b"x" * (80 * MB))
        z.writestr("scc20240102.html.gz", gzip.compress(b"\n" * (80 * MB), 9))
        z.writestr("scc20240103.html.gz", bomb)
        z.writestr("scc20240104.html", LINK.format(game(4)))
    assert (tmp_path / "year.zip").stat().st_size < MB
    status, stdout, stderr, seconds, memory = measured("extract-ids", tmp_path / "year.zip", "--rooms", "00e1")
    assert status == 0 and stdout.split() == [game(4)] and stderr.count("unpacks to more than 64 MB") == 2
    quick_and_small(seconds, memory)


@pytest.mark.slow
def test_a_zip_whose_pages_together_unpack_to_too_much_is_refused(tmp_path):
    page = gzip.compress(b"x" * 999 + b"\n" * (60 * MB), 9)
    with zipfile.ZipFile(tmp_path / "year.zip", "w") as z:
        for day in range(10, 30):
            z.writestr(f"scc202401{day}.html.gz", page)
    status, _, stderr, seconds, memory = measured("extract-ids", tmp_path / "year.zip")
    assert status == 1 and "its pages unpack to more than 512 MB" in stderr
    quick_and_small(seconds, memory)


def test_a_zip_without_end_is_given_up_before_the_disk_is_full(tmp_path, monkeypatch):
    def endless(handler):
        handler.send_response(200)
        handler.end_headers()
        while True:
            handler.wfile.write(bytes(MB))

    monkeypatch.setattr("lib.download.listfiles.ZIP_LIMIT", 5 * MB)
    monkeypatch.setenv("DELAY", "0")
    from lib.download import lists
    from lib.download.faults import Fault

    (tmp_path / "raw").mkdir()
    with server(endless) as (url, _):
        monkeypatch.setenv("TENHOU_URL", url)
        for _ in range(3):
            with Session(0, 9, lambda text: None) as session, pytest.raises(Fault, match="more than"):
                lists.fetch_zip(session, tmp_path, 2020)
            assert sum(len(data) for data in tree(tmp_path).values()) <= 5 * MB


# logs

HUGE = {
    "100 MB": b"<mjloggm>" + b"<T1/>" * 20_000_000 + b"</mjloggm>",
    "a million attributes": b'<mjloggm><GO type="169"/><INIT ' + b"a='1' " * 600_000
                            + b"/><AGARI owari='1,1,1,1,1,1,1,1'/></mjloggm>",
    "a million tags": b"<mjloggm>" + b"<A/>" * 1_000_000 + b"</mjloggm>",
    "gzip of 100 MB": gzip.compress(b"<mjloggm>" + b" " * (100 * MB) + b"</mjloggm>"),
}


@pytest.mark.parametrize("what", HUGE)
def test_a_log_that_is_far_too_long_is_refused_quickly_by_adopt_and_encode(tmp_path, what):
    (tmp_path / "xml").mkdir()
    (tmp_path / "xml" / f"{game(1)}.txt").write_bytes(HUGE[what])
    for name, *options in (["adopt-xml"], ["encode-batch", "--queued", "--jobs", 1]):
        status, _, _, seconds, memory = measured(name, "--work", tmp_path, *options)
        assert status == 0
        quick_and_small(seconds, memory)
    record = records(tmp_path)[game(1)]
    assert record["status"] == "failed" and "not a log" in record["error"], record
    assert script("verify-xml", "--work", tmp_path).returncode == 0
    assert len((tmp_path / "manifest.jsonl").read_bytes()) < 2000


@pytest.mark.slow
def test_a_log_of_gigabytes_does_not_get_into_memory(tmp_path):
    (tmp_path / "xml").mkdir()
    with open(tmp_path / "xml" / f"{game(1)}.txt", "wb") as f:
        f.truncate(1000 * MB)
    for name, *options in (["adopt-xml"], ["encode-batch", "--queued", "--jobs", 1], ["verify-xml"]):
        status, _, _, seconds, memory = measured(name, "--work", tmp_path, *options)
        assert status == 0 and memory < 200 and seconds < 60
    assert records(tmp_path)[game(1)]["status"] == "failed"


@pytest.mark.parametrize("what", HUGE)
@pytest.mark.parametrize("announced", [True, False])
def test_a_log_that_is_far_too_long_is_not_downloaded(tmp_path, what, announced):
    length = {} if announced else {"Content_Length": None}
    with server(lambda handler: reply(handler, HUGE[what], **length)) as (url, asked):
        status, _, _, seconds, memory = measured(
            "fetch-paipu", "--work", tmp_path, game(1), TENHOU_URL=url, DELAY="0")
    record = records(tmp_path)[game(1)]
    assert status == 0
    quick_and_small(seconds, memory)
    if len(HUGE[what]) > 16 * MB:
        assert record["status"] == "failed" and "more than 16777216" in record["error"] and len(asked) == 3
        assert [path.name for path in (tmp_path / "xml").iterdir()] == [".work-id"]
    elif record["status"] == "downloaded":  # it may be a log, as far as a download can tell
        status, _, _, seconds, memory = measured("encode-batch", "--work", tmp_path, game(1))
        assert records(tmp_path)[game(1)]["status"] == "failed"
        quick_and_small(seconds, memory)


def drip(head, body):
    """An answer of which each byte comes well within TIMEOUT, and the whole never."""
    def answer(handler):
        with contextlib.suppress(ConnectionError):
            handler.wfile.write(head)
            while True:
                handler.wfile.write(body)
                time.sleep(0.05)
    return answer


DRIPS = {
    "a body of announced length": (b"HTTP/1.0 200 OK\r\nContent-Length: 60000\r\n\r\n", b"<"),
    "a body in chunks": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n<\r\n"),
    "headers": (b"HTTP/1.0 200 OK\r\nX: ", b"x"),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", DRIPS)
def test_a_server_that_drips_is_given_up_in_a_few_times_timeout_and_the_next_game_is_asked_for(tmp_path, what):
    def answer(handler):
        if game(1) in handler.path:
            drip(*DRIPS[what])(handler)
        else:
            reply(handler, b"<mjloggm ver='2.3'><GO type='9'/></mjloggm>")

    with server(answer) as (url, asked):
        start = time.monotonic()
        done = script("fetch-paipu", "--work", tmp_path, game(1), game(2), timeout=60,
                      settings={"TENHOU_URL": url, "DELAY": "0", "TIMEOUT": "0.5"})
    assert done.returncode == 0 and 6 < time.monotonic() - start < 20 and len(asked) == 4, done.stderr
    assert records(tmp_path)[game(1)]["error"] == "too slow: no whole answer in 2 s"
    assert records(tmp_path)[game(2)]["status"] == "downloaded"


# redirects and TLS

def fetch(work, url, **settings):
    os.makedirs(work, exist_ok=True)
    return script("fetch-paipu", "--work", work, game(1), settings={"TENHOU_URL": url, "DELAY": "0", **settings})


def redirect(to):
    def answer(handler):
        if handler.path.startswith("/0/log"):
            reply(handler, b"", 302, Location=to.replace("PORT", str(handler.server.server_address[1])))
        else:
            reply(handler, b"<mjloggm ver='2.3'><GO type='9'/></mjloggm>")
    return answer


@pytest.mark.parametrize("to", ["/elsewhere", "http://127.0.0.1:PORT/elsewhere", "//127.0.0.1:PORT/elsewhere",
                                "http:///x"])
def test_a_redirect_to_the_same_host_is_followed(tmp_path, to):
    with server(redirect(to)) as (url, asked):
        assert fetch(tmp_path, url).returncode == 0
    assert len(asked) == 2 and records(tmp_path)[game(1)]["status"] == "downloaded"


@pytest.mark.parametrize("to", [
    "http://localhost:PORT/x", "//localhost:PORT/x", "http://127.0.0.1@localhost:PORT/x", "http://[", "http://[::1]/x",
    "file:///etc/passwd", "ftp://127.0.0.1/x", "gopher:x", "javascript:x", "https://tenhou.net.example.org/x",
    "http://127.0.0.1.example.org/x",
])  # fmt: skip
def test_a_redirect_to_anywhere_else_is_not_followed(tmp_path, to):
    with server(redirect(to)) as (url, asked):
        done = fetch(tmp_path, url)
    assert done.returncode == 1 and "redirects to" in done.stderr and "Traceback" not in done.stderr, done.stderr
    assert len(asked) == 1 and not (tmp_path / "manifest.jsonl").exists()  # nothing is held against the game


def test_a_redirect_in_a_circle_ends(tmp_path):
    with server(redirect("/0/log/?x")) as (url, asked):
        assert fetch(tmp_path, url).returncode == 0
    assert records(tmp_path)[game(1)]["error"] == "too many redirects" and len(asked) == 12  # 3 tries, 4 requests each


@pytest.mark.parametrize(("location", "followed"), [
    ("https://tenhou.net/x", True), ("https://mjv.tenhou.net/x", True), ("/x", True), ("http://tenhou.net/x", False),
    ("https://tenhou.net.example.org/", False), ("https://eviltenhou.net/", False), ("https://example.org/", False),
    ("https://tenhou.net@example.org/", False), ("https://example.org/tenhou.net", False),
])  # fmt: skip
def test_tenhou_redirects_within_its_own_hosts_and_never_away_from_tls(monkeypatch, location, followed):
    monkeypatch.setenv("TENHOU_URL", "https://tenhou.net")
    session = Session(5, 5, print)
    with contextlib.nullcontext() if followed else pytest.raises(Problem, match="redirects to"):
        session._allowed("https://tenhou.net/0/log/?x", location)


def test_a_certificate_that_nobody_vouches_for_ends_the_download_before_anything_is_asked(tmp_path):
    openssl = shutil.which("openssl")
    if not openssl:
        pytest.skip("no openssl here to make a certificate")
    subprocess.run([openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", tmp_path / "key", "-out", tmp_path / "cert"],
                   check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert", tmp_path / "key")

    def wrap(socket):
        return context.wrap_socket(socket, server_side=True)

    with server(lambda handler: reply(handler, b"<mjloggm><GO type='9'/></mjloggm>"), wrap) as (url, asked):
        done = fetch(tmp_path / "w", url, MAX_REFUSALS="1")
        assert done.returncode == 1 and "its certificate cannot be verified" in done.stderr and not asked
        trusted = fetch(tmp_path / "w", url, MAX_REFUSALS="1", REQUESTS_CA_BUNDLE=str(tmp_path / "cert"))
        assert trusted.returncode == 0 and len(asked) == 1, trusted.stderr  # it was the certificate, and nothing else
