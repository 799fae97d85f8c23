"""The stand-in, through its command line: what it serves, how it misbehaves, and what it writes down."""

import gzip
import http.client
import io
import itertools
import json
import re
import signal
import socket
import subprocess
import sys
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from lib.demo.selfplay import play

SCRIPT = Path(__file__).resolve().parents[2] / "bin" / "serve-demo"


class Client:
    """Asks one stand-in; each request on a connection of its own."""

    def __init__(self, url):
        self.host = url.removeprefix("http://")

    def get(self, path, timeout=20, **headers):
        """(status, headers, body)"""
        connection = http.client.HTTPConnection(self.host, timeout=timeout)
        try:
            connection.request("GET", path, headers=headers)
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()

    def log(self, gid, **options):
        return self.get(f"/0/log/?{gid}", **options)


@contextmanager
def demo(*options):
    """A running stand-in."""
    command = [sys.executable, SCRIPT, *map(str, options)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        try:
            yield Client(server.stdout.readline().strip())
        finally:
            server.send_signal(signal.SIGTERM)
            errors = server.stderr.read()
            assert server.wait(10) == 0
            assert errors == ""


def members(data):
    """Files of a zip, {name: bytes}, gzip taken off."""
    archive = zipfile.ZipFile(io.BytesIO(data))
    assert archive.testzip() is None
    found = {name: archive.read(name) for name in archive.namelist()}
    return {name: gzip.decompress(data) if name.endswith(".gz") else data for name, data in found.items()}


def links(pages):
    return re.findall(r"log=([-0-9a-z]+)", "".join(page.decode() for page in pages))


def four_player_ids(client, year=2024):
    pages = members(client.get(f"/sc/raw/scraw{year}.zip")[2])
    ids = links(page for name, page in pages.items() if "/scc" in name)
    return sorted(gid for gid in ids if "-00b9-" not in gid)


@pytest.fixture(scope="module")
def plain():
    with demo("--games", 30, "--seed", 3) as client:
        yield client


def test_the_zip_names_each_game_once_between_decoys(plain):
    pages = members(plain.get("/sc/raw/scraw2024.zip")[2])
    assert {re.sub(r"\d+", "", name) for name in pages} == {
        "/sca.log.gz", "/scb.log.gz", "/scc.html.gz", "/sce.html.gz", "/scf.html.gz",
    }  # fmt: skip
    scc = {name: page for name, page in pages.items() if "/scc" in name}
    assert {len(name) for name in scc} == {len("2024/scc20240101.html.gz"), len("2024/scc2024012312.html.gz")}
    ids = links(scc.values())
    assert all(re.fullmatch(r"2024\d{6}gm-00(a9|e1|b9)-0000-[0-9a-f]{8}", gid) for gid in ids)
    assert len(set(ids)) == len(ids)
    kinds = [gid[13:17] for gid in ids]
    assert kinds.count("00a9") == 25 and kinds.count("00e1") == 5 and kinds.count("00b9") == 10
    assert not set(ids) & set(links(page for name, page in pages.items() if name not in scc))
    line = r'\d\d:\d\d \| 35 \| [四三]鳳[南東]喰赤. \| <a href="http://tenhou.net/0/\?log=[^"]+">牌譜</a> \| .*'
    assert all(re.fullmatch(line, text) for page in scc.values() for text in page.decode().splitlines() if text)


def test_an_old_years_pages_are_plain(plain):
    with demo("--year", 2010) as client:
        pages = members(client.get("/sc/raw/scraw2010.zip")[2])
        assert {name.rpartition(".")[2] for name in pages} == {"html", "log"}
        assert len(four_player_ids(client, 2010)) == 20


def test_every_id_has_a_log_of_its_own_and_nothing_else_has(plain):
    ids = four_player_ids(plain)
    bodies = {}
    for gid in ids[:8]:
        status, headers, bodies[gid] = plain.log(gid)
        assert status == 200 and int(headers["Content-Length"]) == len(bodies[gid])
        assert bodies[gid].startswith(b"<mjloggm") and bodies[gid].endswith(b"</mjloggm>")
        assert f'GO type="{int(gid[13:17], 16)}"'.encode() in bodies[gid]
    assert len(set(bodies.values())) == 8
    assert plain.log(ids[0])[2] == bodies[ids[0]]
    assert bodies[ids[0]] == play(3_000_000)
    for path in ("/0/log/?2024010100gm-00a9-0000-00000000", "/0/?log=" + ids[0], "/", "/sc/raw/scraw2023.zip"):
        assert plain.get(path)[0] == 404


def test_the_zip_comes_in_ranges(plain):
    path = "/sc/raw/scraw2024.zip"
    status, headers, whole = plain.get(path)
    assert status == 200 and headers["ETag"] and headers["Last-Modified"].endswith("GMT")
    status, part_headers, part = plain.get(path, Range="bytes=100-199")
    assert (status, part) == (206, whole[100:200])
    assert part_headers["Content-Range"] == f"bytes 100-199/{len(whole)}"
    assert plain.get(path, Range="bytes=100-")[2] == whole[100:]
    assert plain.get(path, Range=f"bytes={len(whole)}-")[0] == 416
    assert plain.get(path, Range="bytes=100-", **{"If-Range": headers["ETag"]})[0] == 206
    assert plain.get(path, Range="bytes=100-", **{"If-Range": '"another"'})[2] == whole


def test_a_past_year_has_empty_lists(plain):
    assert plain.get("/sc/raw/list.cgi")[2] == plain.get("/sc/raw/list.cgi?old")[2] == b"list([]);\r\n"


def test_a_running_year_has_lists_in_place_of_a_zip():
    with demo("--games", 30, "--running") as client:
        assert client.get("/sc/raw/scraw2024.zip")[0] == 404
        pages = []
        for path, shape in (
            ("list.cgi", r"sc[abcef]\d{10}\.\w+\.gz"),
            ("list.cgi?old", r"2024/sc[abcef]\d{8}\.\w+\.gz"),
        ):
            text = client.get("/sc/raw/" + path)[2].decode()
            assert re.fullmatch(rf"list\(\[\r\n({{file:'{shape}',size:\d+}},?\r\n)+\]\);\r\n", text)
            for name, size in re.findall(r"file:'([^']+)',size:(\d+)", text):
                data = client.get("/sc/raw/dat/" + name)[2]
                assert len(data) == int(size)
                if "scc" in name:
                    pages.append(gzip.decompress(data))
        assert len([gid for gid in links(pages) if "-00b9-" not in gid]) == 30


def test_gzip_packs_the_same_logs(plain):
    with demo("--games", 30, "--seed", 3, "--gzip") as client:
        gid = four_player_ids(client)[0]
        assert gzip.decompress(client.log(gid)[2]) == plain.log(gid)[2]


def test_duplicates_share_a_body():
    with demo("--games", 6, "--duplicates", 2) as client:
        bodies = [client.log(gid)[2] for gid in four_player_ids(client)]
        assert bodies[4:] == bodies[:2]
        assert len(set(bodies)) == 4


@pytest.mark.parametrize(("kind", "retry_after"), [("403", None), ("404", None), ("429", "1"), ("503", "1")])
def test_a_status_as_a_fault(kind, retry_after):
    with demo("--games", 2, "--fault", kind) as client:
        status, headers, body = client.log(four_player_ids(client)[0])
        assert status == int(kind) and headers["Retry-After"] == retry_after and b"<html>" in body


def test_faults_of_the_body():
    with demo("--games", 3, "--fault", "empty,html,short") as client:
        empty, html, short = four_player_ids(client)
        assert client.log(empty)[::2] == (200, b"")
        status, _, body = client.log(html)
        assert status == 200 and body.startswith(b"<html>")
        with pytest.raises(http.client.IncompleteRead) as caught:
            client.log(short)
        assert len(caught.value.partial) > 1000 and caught.value.expected > 1000


def test_faults_of_the_connection(tmp_path):
    log = tmp_path / "log"
    with demo("--games", 2, "--fault", "reset,slow", "--slow-seconds", 2, "--fault-times", 2, "--log", log) as client:
        reset, slow = four_player_ids(client)
        with pytest.raises(ConnectionResetError):
            client.log(reset)
        with pytest.raises(socket.timeout):
            client.log(slow, timeout=0.3)
        before = time.monotonic()
        assert client.log(slow)[0] == 200
        assert time.monotonic() - before > 1.9
    assert [json.loads(line)["status"] for line in log.read_text().splitlines()] == [200, "reset", "slow", "slow"]


def test_faults_pass_after_their_times_and_strike_a_share_of_the_ids():
    with demo("--games", 9, "--fault", "404", "--fault-ids", "0.34", "--fault-times", 2) as client:
        ids = four_player_ids(client)
        rounds = [[client.log(gid)[0] for gid in ids] for _ in range(3)]
        assert rounds[0] == rounds[1] and rounds[0].count(404) == 3
        assert rounds[2] == [200] * 9


def test_faults_of_named_things():
    with demo(
        "--games", 2, "--fault", "503", "--fault-ids", "scraw2024.zip,list.cgi?old", "--fault-times", 1
    ) as client:
        assert client.get("/sc/raw/list.cgi")[0] == 200
        assert client.get("/sc/raw/list.cgi?old")[0] == 503
        assert client.get("/sc/raw/scraw2024.zip")[0] == 503
        assert client.get("/sc/raw/scraw2024.zip")[0] == 200


def test_requests_at_once_are_seen_as_such_and_others_are_not(tmp_path):
    log = tmp_path / "log"
    options = ("--fault", "slow", "--slow-seconds", 0.5, "--fault-ids", "list.cgi?old", "--log", log)
    with demo("--games", 4, *options) as client:
        ids = four_player_ids(client)
        for gid in ids:
            client.log(gid)
        with ThreadPoolExecutor() as pool:
            slow = pool.submit(client.get, "/sc/raw/list.cgi?old")
            time.sleep(0.2)
            client.log(ids[0])
            assert slow.result()[0] == 200
    *alone, inner, outer = [json.loads(line) for line in log.read_text().splitlines()]
    assert [entry["gid"] for entry in alone] == [None, *ids]
    assert alone[0]["path"] == "/sc/raw/scraw2024.zip"
    assert all(entry["in_flight"] == 1 and entry["status"] == 200 for entry in alone)
    assert all(a["end"] <= b["start"] for a, b in itertools.pairwise(alone))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", alone[0]["ts_start"])
    assert (inner["gid"], inner["in_flight"]) == (ids[0], 2)
    assert outer["in_flight"] == 1 and outer["start"] < inner["start"] and inner["end"] < outer["end"]


def run(*options):
    return subprocess.run([sys.executable, SCRIPT, *options], capture_output=True, text=True, timeout=20)


def test_wrong_usage_exits_2_and_names_the_option():
    for options, named in ((["--fault", "503,nonsense"], "nonsense"), (["--games", "0"], "--games")):
        done = run(*options)
        assert (done.returncode, done.stdout) == (2, "") and named in done.stderr


def test_a_taken_port_exits_1_and_says_so(plain):
    port = plain.host.rpartition(":")[2]
    done = run("--port", port)
    assert done.returncode == 1
    assert done.stderr == f"serve-demo: port {port}: Address already in use\n"


def test_help_is_the_docstring():
    assert "serve-demo - stand in for Tenhou on this machine" in run("--help").stdout
