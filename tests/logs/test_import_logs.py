"""Importing: logs out of whatever people keep them in, each under its id, once, and never in a better one's place."""

import bz2
import gzip
import io
import lzma
import os
import sqlite3
import struct
import tarfile
import zipfile

import pytest
from flows import script
from support import downloaded, event, game, in_xml, log, put, sha, tree

from lib.logs import adopt, imports, logfile, sources
from lib.manifest import Manifest
from lib.store import workdir

A, B, C = game(1), game(2), game(3)
HOUOU = "id TEXT PRIMARY KEY, date TEXT, num_players INT, is_tonpu INT, is_processed INT, was_error INT, log BLOB"
PHOENIX = ("log_id text primary key, date text, is_tonpusen int, is_hirosima int, is_processed int, was_error int, "
           "log_content text")


class Done:
    """What an import did: ids, in order; tally; told: (kind, where, why) of each line; links."""

    def __init__(self, work, *paths, unnamed=False):
        self.told = []
        importer = imports.Import(work, Manifest(work), lambda *line: self.told.append(line), unnamed)
        self.ids = list(importer.run(sources.Reader(work, importer._tell).read([str(path) for path in paths])))
        self.tally, self.links = dict(importer.tally), importer.links
        assert not [name for name in os.listdir(work) if name.startswith(".tmp-")]
        assert not [name for name in os.listdir(os.path.join(work, "xml")) if name.startswith(".tmp-")]


def record(work, n):
    return Manifest(work).latest[game(n)]


def zipped(members, method=zipfile.ZIP_DEFLATED):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method) as z:
        for name, content in members.items():
            z.writestr(name, content)
    return data.getvalue()


def tarred(members, mode="w", **options):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode=mode, **options) as t:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            t.addfile(info, io.BytesIO(content))
    return data.getvalue()


def database(path, schema, rows, pragma=None):
    """A database of one of the two downloaders with (id, log) rows."""
    names = [column.split()[0] for column in schema.split(", ")]
    connection = sqlite3.connect(path)
    connection.execute(pragma or "PRAGMA user_version = 0")
    connection.execute(f"CREATE TABLE logs ({schema})")
    connection.executemany(f"INSERT INTO logs ({names[0]}, {names[-1]}) VALUES (?, ?)", rows)
    connection.commit()
    return connection


# what logs lie in

@pytest.mark.parametrize("name", [f"{A}.xml", f"{A}.TXT", f"{A}&tw=2.mjlog", f"2009/{A.upper()}.mjlog", f"?log={A}", A])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_a_log_is_taken_in_whatever_its_name_and_packing(work, tmp_path, name, pack):
    path = tmp_path / "logs" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(pack(log(1)))
    before = tree(tmp_path / "logs")
    done = Done(work, tmp_path / "logs")
    assert done.ids == [A] and not done.told and tree(tmp_path / "logs") == before
    assert record(work, 1) | {"ts": ""} == {"ts": "", "gid": A, "status": "downloaded", "sha256": sha(log(1)),
                                           "size": len(log(1)), "source": str(path)}
    assert in_xml(work) == {f"{A}.txt": log(1)}


def test_a_hidden_id_is_made_plain(work, tmp_path):
    (tmp_path / "2012090306gm-0089-0000-x666f4d41e26b&tw=1.mjlog").write_bytes(gzip.compress(log(1)))
    assert Done(work, tmp_path / "2012090306gm-0089-0000-x666f4d41e26b&tw=1.mjlog").ids == [
        "2012090306gm-0089-0000-dc81a77a"]


NAMES = {f"some/where/{'deep/' * 50}{A}.mjlog": gzip.compress(log(1)), f"{B}.xml": log(2),
         f"{C}.bz2": bz2.compress(log(3))}
ARCHIVES = {
    "zip": lambda: zipped(NAMES), "stored zip": lambda: zipped(NAMES, zipfile.ZIP_STORED),
    "zip in zip": lambda: zipped({"a/b.dat": zipped({"c": zipped(NAMES)})}),
    "zip behind something": lambda: zipped(NAMES)[:0] + b"PK\3\4" + bytes(500) + zipped(NAMES),
    "tar": lambda: tarred(NAMES), "gnu tar": lambda: tarred(NAMES, format=tarfile.GNU_FORMAT),
    "pax tar": lambda: tarred(NAMES, format=tarfile.PAX_FORMAT), "tar.gz": lambda: tarred(NAMES, "w:gz"),
    "tar.bz2": lambda: tarred(NAMES, "w:bz2"), "tar.xz": lambda: tarred(NAMES, "w:xz"),
    "tar.gz in zip in tar": lambda: tarred({"x": zipped({"y.tgz": tarred(NAMES, "w:gz")})}),
}


@pytest.mark.parametrize("what", ARCHIVES)
@pytest.mark.parametrize("name", ["logs.dat", "logs.zip"])
def test_an_archive_is_known_by_what_it_is_and_its_members_are_taken_in(work, tmp_path, what, name):
    (tmp_path / name).write_bytes(ARCHIVES[what]())
    done = Done(work, tmp_path / name)
    assert sorted(done.ids) == [A, B, C] and not done.told
    assert in_xml(work) == {f"{game(n)}.txt": log(n) for n in (1, 2, 3)}
    assert record(work, 1)["source"].startswith(f"{tmp_path / name}: ") and A in record(work, 1)["source"]


def test_a_zip_of_the_long_form_is_read(work, tmp_path):
    with zipfile.ZipFile(tmp_path / "z", "w") as z, z.open(zipfile.ZipInfo(f"{A}.xml"), "w", force_zip64=True) as f:
        f.write(log(1))
    data = bytearray((tmp_path / "z").read_bytes())
    at, end = data.index(b"PK\1\2"), data.index(b"PK\5\6")
    entry = data[at:end]
    offset = struct.pack("<2HQ", 1, 8, 0)  # where the member is, in the additional field
    entry[42:46], entry[30:32] = b"\xff" * 4, struct.pack("<H", len(offset) + struct.unpack_from("<H", entry, 30)[0])
    entry = entry + offset
    long = struct.pack("<4sQ2H2I4Q", b"PK\6\6", 44, 45, 45, 0, 0, 1, 1, len(entry), at)
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, at + len(entry), 1)
    short = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    (tmp_path / "long.zip").write_bytes(bytes(data[:at]) + entry + long + locator + short)
    with zipfile.ZipFile(tmp_path / "long.zip") as z:
        assert z.read(f"{A}.xml") == log(1)  # or the trial itself is wrong
    done = Done(work, tmp_path / "long.zip")
    assert done.ids == [A] and not done.told


@pytest.mark.parametrize(("schema", "pack"), [
    (HOUOU, gzip.compress), (PHOENIX, gzip.compress), (PHOENIX, bz2.compress)])
@pytest.mark.parametrize("wrap", [bytes, gzip.compress, lambda data: zipped({"db": data})])
def test_the_logs_of_both_kinds_of_database_are_taken_in(work, tmp_path, schema, pack, wrap):
    database(tmp_path / "db", schema, [(A, pack(log(1))), (B, None), (C, ""), (game(4), pack(log(4)))]).close()
    (tmp_path / "db").write_bytes(wrap((tmp_path / "db").read_bytes()))
    before = tree(tmp_path)
    done = Done(work, tmp_path / "db")
    assert done.ids == [A, game(4)] and [line[::2] for line in done.told] == [("empty", "2 rows without a log")]
    assert {path: data for path, data in tree(tmp_path).items() if not path.startswith("work")} == {
        path: data for path, data in before.items() if not path.startswith("work")}


@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
def test_a_database_whose_program_is_at_work_is_read_as_it_was_last_left(work, tmp_path, mode):
    connection = database(tmp_path / "db", HOUOU, [(A, log(1))], f"PRAGMA journal_mode = {mode}")
    connection.execute("PRAGMA cache_size = 1")
    connection.execute("INSERT INTO logs (id, log) VALUES (?, ?)", (B, log(2)))
    if mode == "WAL":
        connection.commit()
    assert os.path.getsize(tmp_path / ("db-wal" if mode == "WAL" else "db-journal"))
    before = {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path) if name.startswith("db")}
    done = Done(work, tmp_path / "db")
    assert done.ids == ([A, B] if mode == "WAL" else [A]) and not done.told
    assert before == {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path) if name.startswith("db")}
    connection.close()


def test_lists_of_links_are_kept_for_the_next_run_and_known_games_are_not(work, tmp_path):
    downloaded(work, 1, log(1))
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "a.txt").write_text(f"mine: http://tenhou.net/0/?log={A}&tw=1\n{B.upper()}, and {C}\n")
    (tmp_path / "links" / "b.txt").write_text(f"tenhou.net/0/?log={game(4)}\r\n", encoding="utf-16")
    (tmp_path / "links" / "c.zip").write_bytes(zipped({"x.html": f"<a href='/0/?log={game(5)}'>x</a>"}))
    (tmp_path / "links" / "scc20240101.html.gz").write_bytes(gzip.compress(f'<a href="?log={game(6)}">'.encode()))
    done = script("import-logs", "--work", work, tmp_path / "links")
    assert done.returncode == 0 and done.stdout == ""
    told = "import-logs: the lists name 4 games not here yet; the next run downloads what they name, unless you first "
    assert done.stderr.splitlines()[-2:] == [
        f"{told}delete {work}/{workdir.LINKS}: make run WORK={work}",
        "import-logs: 0 imported, 0 duplicates, 1 other file, 3 lists of games"]
    assert "a.txt: a list that names 3 games" in done.stderr
    assert "scc20240101.html.gz: one of Tenhou's own lists" in done.stderr
    with open(os.path.join(work, workdir.LINKS)) as f:
        assert f.read().split() == [game(n) for n in (2, 3, 4, 5)]
    (tmp_path / "links" / "a.txt").write_text(f"{game(9)}\n")
    assert script("import-logs", "--work", work, tmp_path / "links" / "a.txt").returncode == 0
    with open(os.path.join(work, workdir.LINKS)) as f:
        assert f.read().split() == [game(n) for n in (2, 3, 4, 5, 9)]


def test_a_long_list_is_read_to_its_end(work, tmp_path):
    with open(tmp_path / "list", "w") as f:
        f.write(f"{A}\n" + ("x" * 99 + "\n") * 180_000 + f"{B}\n" + ("x" * 99 + "\n") * 50_000 + C)
    assert os.path.getsize(tmp_path / "list") > logfile.LIMIT
    assert Done(work, tmp_path / "list").links == {A, B, C}


def test_of_another_work_directory_only_the_logs_are_taken_and_of_this_one_nothing(work, tmp_path):
    other = tmp_path / "other"
    workdir.make(other)
    downloaded(other, 1, log(1))
    event(other, 2, status="failed", stage="download")
    (other / "game_ids_2024.txt").write_text(f"{C}\n")
    (other / ".seen").write_text(f"{C}\n")
    done = Done(work, tmp_path)
    assert done.ids == [A] and not done.links and [line[:2] for line in done.told] == [("other", str(work))]


# which log of a game stays

def whole(n, rows=3):
    """A log that was played to its end."""
    return log(n, rows).replace(b"<ROWS", b'<END owari="1"/><ROWS')


FAILED = {"status": "failed", "stage": "download", "error": "HTTP 404"}
UNFIT = {"status": "failed", "stage": "encode", "error": "incomplete: no owari"}


@pytest.mark.parametrize(("there", "events", "outcome"), [
    (None, [], "downloaded"),
    (None, [FAILED], "downloaded"),
    (None, [{"status": "corrupt"}], "downloaded"),
    (None, [{"status": "corrupt", "sha256": sha(log(7))}], "downloaded"),
    (log(7), [{"status": "corrupt", "sha256": sha(whole(1)), "found": sha(log(7))}], "downloaded"),
    (log(7), [UNFIT | {"sha256": sha(log(7))}], "downloaded"),
    (log(7)[:-9], [], "downloaded"),
    (whole(1), [], "downloaded"),
    (None, [{"status": "downloaded", "sha256": sha(log(7))}], "downloaded"),
    (None, [{"status": "downloaded", "sha256": sha(whole(1))}], "put back"),
    (None, [{"status": "encoded", "sha256": sha(whole(1)), "shard": "shard_00000"}], "put back"),
    (log(7), [{"status": "downloaded", "sha256": sha(whole(1))}], "put back"),
    (whole(1), [{"status": "downloaded", "sha256": sha(whole(1))}], "known"),
    (whole(1), [{"status": "encoded", "sha256": sha(whole(1)), "shard": "shard_00000"}], "known"),
    (None, [{"status": "duplicate", "sha256": sha(whole(1)), "alias_of": B}], "known"),
    (log(7), [], "another"),
    (log(7), [{"status": "downloaded", "sha256": sha(log(7))}], "another"),
    (log(7), [{"status": "encoded", "sha256": sha(log(7)), "shard": "shard_00000"}], "another"),
])
def test_what_becomes_of_a_log_and_of_what_was_there(work, tmp_path, there, events, outcome):
    for each in events:
        event(work, 1, **each)
    if there is not None:
        put(work, 1, there)
    (tmp_path / f"{A}.xml").write_bytes(whole(1))
    before = Manifest(work).latest.get(A)
    done = Done(work, tmp_path / f"{A}.xml")
    taken = outcome == "downloaded"
    assert done.ids == [A] * taken
    assert done.tally == ({} if outcome == "another" else {outcome: 1})
    assert [line[0] for line in done.told] == ["another"] * (outcome == "another")
    files = tree(work)
    if taken or outcome == "put back":
        assert files[f"xml/{A}.txt"] == whole(1)
        assert files.get(f"trash/{A}.txt") == (None if there == whole(1) else there)  # nothing is destroyed
    else:
        assert files.get(f"xml/{A}.txt") == there
    if taken:
        assert (record(work, 1)["status"], record(work, 1)["sha256"]) == ("downloaded", sha(whole(1)))
    else:
        assert Manifest(work).latest.get(A) == before
    again = Done(work, tmp_path / f"{A}.xml")
    assert again.ids == [] and again.tally == ({} if outcome == "another" else {"known": 1})


def test_half_a_log_is_told_and_takes_nobody_s_place(work, tmp_path):
    (tmp_path / f"{A}.xml").write_bytes(log(1)[:-5])
    (tmp_path / f"{B}.mjlog").write_bytes(gzip.compress(log(2))[:-9])
    (tmp_path / f"{C}.xml").write_bytes(b"<html>404 Not Found</html>")
    done = Done(work, *(tmp_path / name for name in (f"{A}.xml", f"{B}.mjlog", f"{C}.xml")))
    assert [line[0] for line in done.told] == ["broken", "damaged", "html"]
    assert not done.ids and not done.links and not Manifest(work).latest


def test_the_same_bytes_under_another_id_are_a_duplicate_once(work, tmp_path):
    for n in (1, 2, 3):
        (tmp_path / f"{game(n)}.xml").write_bytes(log(1))
    (tmp_path / "more.zip").write_bytes(zipped({f"a/{A}.mjlog": gzip.compress(log(1)), f"{B}.xml": log(1)}))
    for ids, tally in (([A], {"downloaded": 1, "duplicate": 2, "known": 2}), ([], {"known": 5})):
        done = Done(work, *sorted(tmp_path.glob("*.*")))
        assert done.ids == ids and done.tally == tally and not done.told
    assert record(work, 2)["alias_of"] == A and record(work, 2)["source"] == str(tmp_path / f"{B}.xml")
    assert list(in_xml(work)) == [f"{A}.txt"]


def test_two_logs_of_one_game_in_one_import_the_first_stays(work, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / f"{A}.1.xml").write_bytes(log(1))
    (tmp_path / "a" / f"{A}.2.xml").write_bytes(log(1, rows=9))
    done = Done(work, tmp_path / "a")
    assert done.ids == [A] and [line[0] for line in done.told] == ["another"]
    assert record(work, 1)["sha256"] == sha(log(1))


def test_a_page_saved_under_the_name_of_a_log_is_said_to_be_html(work, tmp_path):
    for start in (b"<html>", b"\xef\xbb\xbf\n<!DOCTYPE HTML><html>"):
        (tmp_path / f"{A}.xml").write_bytes(start + b"404 Not Found</html>")
        done = script("import-logs", "--work", work, tmp_path / f"{A}.xml")
        assert f"{A}.xml: an HTML page, not a log\n" in done.stderr
        assert done.stderr.endswith("import-logs: 0 imported, 0 duplicates, 1 HTML page\n")


# logs without an id

def nameless(n):
    return log(n).replace(b"<GO ", b'<GO type="169" lobby="1234" ')


def test_a_log_without_an_id_is_told_and_gets_one_if_asked_for(work, tmp_path):
    (tmp_path / "a").mkdir()
    for n in (1, 2):
        (tmp_path / "a" / f"my game {n}.xml").write_bytes(nameless(n))
    (tmp_path / "a" / f"z {A}.xml").write_bytes(nameless(1))  # one of them comes again, with its id
    done = script("import-logs", "--work", work, tmp_path / "a")
    assert done.returncode == 0 and done.stdout.split() == [A]
    assert "my game 2.xml: a log without a game id in its name" in done.stderr and "my game 1" not in done.stderr
    assert "1 without an id" in done.stderr and "1 here already" in done.stderr
    done = script("import-logs", "--work", work, "--unnamed", tmp_path / "a")
    assert done.stdout == f"00010101gm-00a9-1234-{sha(nameless(2))[:8]}\n"
    assert script("import-logs", "--work", work, "--unnamed", tmp_path / "a").stdout == ""


def test_copies_of_a_game_without_an_id_get_the_same_one_and_come_in_once(work, tmp_path):
    moves = b'<T1/><D1/><U22/><e22/>'
    for n, data in enumerate((moves, moves + b"\n", b'<UN n0="x"/>' + moves, b"<T1/><D2/><U22/>")):
        (tmp_path / f"{n}.xml").write_bytes(nameless(1).replace(b"<ROWS", data + b"<ROWS"))
    done = script("import-logs", "--work", work, "--unnamed", tmp_path)
    assert len(done.stdout.split()) == 2 and "2 other logs of games that are here" in done.stderr


def test_a_log_without_an_id_that_the_manifest_knows_as_lost_is_taken_back(work, tmp_path):
    event(work, 1, status="corrupt", sha256=sha(log(1)))
    (tmp_path / "x.xml").write_bytes(log(1))
    assert Done(work, tmp_path / "x.xml").ids == [A]


# the script

def test_many_logs_come_in_in_batches_and_only_once(work, tmp_path, monkeypatch):
    monkeypatch.setattr(imports, "_MANY", 7)
    (tmp_path / "z").write_bytes(zipped({f"{game(n)}.xml": log(n % 90) for n in range(100)}))
    done = Done(work, tmp_path / "z")
    assert len(done.ids) == 90 and done.tally == {"downloaded": 90, "duplicate": 10}
    assert len(in_xml(work)) == 90
    assert Done(work, tmp_path / "z").tally == {"known": 100}


def test_what_is_none_of_ours_is_counted_and_only_a_few_are_told(work, tmp_path):
    (tmp_path / "a").mkdir()
    for i in range(9):
        (tmp_path / "a" / f"\x1b[2J{i}.txt").write_text("hello")
    os.mkfifo(tmp_path / "a" / "pipe")
    os.symlink("/etc/passwd", tmp_path / "a" / f"{A}.txt")
    os.symlink("/", tmp_path / "a" / "root")
    done = script("import-logs", "--work", work, tmp_path / "a", timeout=60)
    assert done.returncode == 0 and done.stderr.count("\n") == 7 and "\x1b" not in done.stderr
    *_, total, more = done.stderr.splitlines()
    assert total == "import-logs: 0 imported, 0 duplicates, 12 other files" and "--verbose names them all" in more
    assert script("import-logs", "--work", work, "--quiet", tmp_path / "a").stderr.count("\n") == 2
    assert script("import-logs", "--work", work, "--verbose", tmp_path / "a").stderr.count("\n") == 13


@pytest.mark.parametrize(("args", "settings", "told"), [
    ([], {}, "nothing to import: name a folder or file, e.g. make import FROM=~/logs WORK="),
    (["/no/such"], {}, "/no/such: no such file or folder; nothing was imported"),
    ([], {"FROM": "~/nowhere"}, "nowhere: no such file or folder; nothing was imported")])
def test_without_a_path_that_is_there_nothing_is_done(tmp_path, args, settings, told):
    done = script("import-logs", "--work", tmp_path / "w", *args, settings=settings)
    assert done.returncode == 2 and told in done.stderr and not (tmp_path / "w").exists()


def test_what_cannot_be_read_is_named_and_the_rest_is_taken_in(work, tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    for n in (1, 2):
        (tmp_path / "a" / f"{game(n)}.xml").write_bytes(log(n))
    real = os.open

    def forbid(path, *args, **kwargs):
        if path == str(tmp_path / "a" / f"{A}.xml"):
            raise PermissionError(13, "Permission denied", path)
        return real(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", forbid)
    done = Done(work, tmp_path / "a")
    assert done.ids == [B] and done.told == [("damaged", str(tmp_path / "a" / f"{A}.xml"), "Permission denied")]


def test_a_file_of_xml_that_was_never_adopted_stays_and_is_adopted(work, tmp_path):
    put(work, 1, log(7))
    (tmp_path / f"{A}.xml").write_bytes(log(1))
    assert [line[0] for line in Done(work, tmp_path / f"{A}.xml").told] == ["another"]
    assert adopt.take_in(work, Manifest(work), A) == "downloaded" and record(work, 1)["sha256"] == sha(log(7))
