"""Archives and databases made to do harm: they lead nowhere, fill neither memory nor disk, and take no time."""

import bz2
import gzip
import io
import lzma
import os
import sqlite3
import stat
import struct
import subprocess
import tarfile
import zipfile

import pytest
from flows import measured, quick_and_small
from support import game, in_xml, log, tree

A = game(1)
MB = 1 << 20


def imported(tmp_path, *paths, taken=(), status=None):
    """Import paths; returns stderr. taken: the numbers of the games that must have come in, and no others."""
    status_found, stdout, stderr, seconds, memory = measured("import-logs", "--work", tmp_path / "w", *paths)
    quick_and_small(seconds, memory)
    assert sorted(stdout.split()) == sorted(game(n) for n in taken), stderr
    assert status in (None, status_found), stderr
    assert sorted(in_xml(tmp_path / "w")) == sorted(f"{game(n)}.txt" for n in taken)
    assert not [path for path in tree(tmp_path / "w") if ".tmp-" in path]
    return stderr


# names and links

NAMES = ["../../{}.xml", "/etc/{}.xml", "C:\\x\\..\\{}.xml", "a/../../../{}", "{}.xml/../..", "\x1b[2J{}.xml", "~/{}"]


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_names_in_archives_lead_nowhere(tmp_path, kind):
    path = tmp_path / "deep" / "in" / "it" / "logs"
    path.parent.mkdir(parents=True)
    members = {name.format(game(i)): log(i) for i, name in enumerate(NAMES)}
    if kind == "zip":
        with zipfile.ZipFile(path, "w") as z:
            for name, data in members.items():
                z.writestr(name, data)
    else:
        with tarfile.open(path, "w") as t:
            for name, data in members.items():
                info = tarfile.TarInfo(name)
                info.size = len(data)
                t.addfile(info, io.BytesIO(data))
    before = set(tree(tmp_path))
    stderr = imported(tmp_path, path, taken=[0, 1, 2, 3, 5, 6], status=0)
    assert "\x1b" not in stderr and "1 without an id" in stderr
    assert {name for name in set(tree(tmp_path)) - before if not name.startswith("w/")} == set()


def test_links_and_devices_in_archives_and_folders_are_nothing(tmp_path):
    outside, folder = tmp_path / "outside", tmp_path / "logs"
    folder.mkdir()
    outside.write_bytes(log(1))
    with tarfile.open(folder / "t", "w") as t:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE,
                     tarfile.DIRTYPE):
            info = tarfile.TarInfo(f"{A}.xml")
            info.type, info.linkname = kind, str(outside)
            t.addfile(info)
    with zipfile.ZipFile(folder / "z", "w") as z:
        info = zipfile.ZipInfo(f"{A}.xml")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        z.writestr(info, str(outside))
    os.symlink(outside, folder / f"{A}.xml")
    os.symlink(tmp_path, folder / "up")
    os.mkfifo(folder / f"{game(2)}.xml")
    imported(tmp_path, folder, status=0)


def test_folders_without_end_are_walked_to_what_can_be_opened(tmp_path):
    (tmp_path / "logs").mkdir()
    fd = os.open(tmp_path / "logs", os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=fd)
        inside = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = inside
    os.close(fd)
    (tmp_path / "logs" / f"{A}.xml").write_bytes(log(1))
    assert "File name too long" in imported(tmp_path, tmp_path / "logs", taken=[1], status=1)
    subprocess.run(["rm", "-rf", tmp_path / "logs"], check=True)


# what unpacks to too much

def of_zeros(n, kind=gzip):
    """A stream of one kind that unpacks to n MB."""
    data = io.BytesIO()
    with kind.open(data, "wb") as f:
        for _ in range(n):
            f.write(bytes(MB))
    return data.getvalue()


def zip_of(members):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as z:
        for name, content in members.items():
            z.writestr(name, content)
    return data.getvalue()


def tar_head(name=f"{A}.xml", size=0, kind=tarfile.REGTYPE):
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    return info.tobuf(tarfile.GNU_FORMAT)


def overlapping(n):
    """A zip of n members that are all the same 10 MB."""
    packed = zip_of({f"{A}.xml": b"<mjloggm>" + bytes(10 * MB)})
    at, end = packed.index(b"PK\1\2"), packed.index(b"PK\5\6")
    entries = packed[at:end] * n
    return packed[:at] + entries + struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, n & 0xFFFF, n & 0xFFFF, len(entries), at, 0)


def nested_zips(depth, width):
    data = zip_of({f"{A}.xml": bytes(40 * MB)})
    for _ in range(depth):
        data = zip_of({f"{i}.zip": data for i in range(width)})
    return data


BOMBS = {
    "gzip": lambda: of_zeros(600), "bzip2": lambda: of_zeros(300, bz2), "xz": lambda: of_zeros(600, lzma),
    "gzip in gzip": lambda: gzip.compress(of_zeros(600)),
    "a tar of one file without end": lambda: gzip.compress(tar_head(size=9 << 30) + bytes(600 * MB)),
    "members that are all the same": lambda: overlapping(2000), "zips in zips": lambda: nested_zips(2, 16),
    "zips without end": lambda: nested_zips(9, 1),
    "a tar of empty files": lambda: gzip.compress(tar_head() * 200_000, 1),
    "a name without end": lambda: gzip.compress(
        tar_head(size=1 << 30, kind=tarfile.GNUTYPE_LONGNAME) + b"x" * (99 * MB)),
    "a header without end": lambda: gzip.compress(tar_head(size=1 << 30, kind=tarfile.XHDTYPE) + b"x" * (99 * MB)),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", BOMBS)
def test_what_unpacks_to_too_much_is_passed_over_and_the_rest_is_taken(tmp_path, what):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a").write_bytes(BOMBS[what]())
    (tmp_path / "logs" / f"{game(7)}.xml").write_bytes(log(7))
    assert os.path.getsize(tmp_path / "logs" / "a") < 24 * MB
    stderr = imported(tmp_path, tmp_path / "logs", taken=[7])
    assert len(stderr.splitlines()) <= 16
    assert sum(len(data) for data in tree(tmp_path / "w").values()) < MB


@pytest.mark.parametrize("data", [log(1)[:-10] + b"<T1/>" * (5 * MB) + log(1)[-10:], b"<mjloggm" + b" a='b'" * MB])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_log_that_is_too_long_to_be_one_is_not_taken(tmp_path, data, pack):
    (tmp_path / f"{A}.xml").write_bytes(pack(data))
    assert "1 incomplete" in imported(tmp_path, tmp_path / f"{A}.xml", status=0)


# a million members

def test_of_a_zip_with_a_million_members_those_that_are_logs_are_taken(tmp_path):
    with open(tmp_path / "many.zip", "wb") as f:
        one = zip_of({f"{A}.xml": log(1)})
        at, end = one.index(b"PK\1\2"), one.index(b"PK\5\6")
        f.write(one[:at])
        empty = one[at:end]
        empty = empty[:16] + bytes(12) + empty[28:].replace(b".xml", b".png")  # no checksum, no bytes
        for _ in range(1000):
            f.write(empty * 1000)
        f.write(one[at:end])
        start, size = at, 1_000_000 * len(empty) + end - at
        f.write(struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, size, start, 0))
    stderr = imported(tmp_path, tmp_path / "many.zip", taken=[1], status=0)
    assert "1000000 other files" in stderr and len(stderr.splitlines()) == 7


def test_a_tar_with_many_members_is_read_to_its_end(tmp_path):
    with open(tmp_path / "many.tar", "wb") as f:
        for _ in range(100):
            f.write(tar_head("x.png") * 1000)
        f.write(tar_head(size=len(log(1))) + log(1).ljust(512, b"\0") + bytes(1024))
    assert "100000 other files" in imported(tmp_path, tmp_path / "many.tar", taken=[1], status=0)


# archives that are broken

def at_zip(offset, form, *values):
    """A zip of one log with other values at an offset of its table of contents."""
    data = bytearray(zip_of({f"{A}.xml": log(1)}))
    struct.pack_into(form, data, data.index(b"PK\1\2") + offset, *values)
    return bytes(data)


BROKEN = {
    "no zip": lambda: b"PK\3\4" + bytes(1000), "a zip that is cut": lambda: zip_of({A: os.urandom(9999)})[:5000],
    "an encrypted zip": lambda: at_zip(8, "<H", 1), "an odd method": lambda: at_zip(10, "<H", 14),
    "no such method": lambda: at_zip(10, "<H", 77), "a wrong checksum": lambda: at_zip(16, "<I", 1),
    "a size too small": lambda: at_zip(20, "<2I", 5, 5),
    "a place beyond its end": lambda: at_zip(42, "<I", 1 << 31),
    "a place in the middle": lambda: at_zip(42, "<I", 3), "a name beyond its end": lambda: at_zip(28, "<H", 60000),
    "a longer place that is not there": lambda: at_zip(42, "<I", 0xFFFFFFFF),
    "a table of contents before its beginning": lambda: zip_of({A: b""})[:-10] + b"\xff" * 4 + bytes(6),
    "a tar that is cut": lambda: tar_head(size=9999) + bytes(512), "a tar without an end": lambda: tar_head(),
    "a tar with a broken head": lambda: tar_head() + b"x" * 512, "a tar with holes": lambda: tar_head(
        kind=tarfile.GNUTYPE_SPARSE), "gzip that is cut": lambda: gzip.compress(log(1))[:-9],
    "gzip and something else": lambda: gzip.compress(log(1)) + b"x" * 99,
    "bzip2 that is none": lambda: b"BZh9" + bytes(99), "xz that is none": lambda: b"\xfd7zXZ\0" + bytes(99),
    "a tar of a size below zero": lambda: b"x" * 124 + b"\xff" * 12 + bytes(376),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_archive_is_told_in_one_line_and_the_rest_is_taken(tmp_path, what):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / f"{A}.xml").write_bytes(BROKEN[what]())
    (tmp_path / "logs" / f"{game(7)}.xml").write_bytes(log(7))
    stderr = imported(tmp_path, tmp_path / "logs", taken=[7])
    assert len(stderr.splitlines()) in (2, 3) and str(tmp_path / "logs" / A) in stderr.splitlines()[0], stderr


# databases that are none

def database(path, *statements):
    with sqlite3.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
DATABASES = {
    "an empty one": [], "another program's": ["CREATE TABLE moz_places (id, url)"],
    "other columns": ["CREATE TABLE logs (id TEXT, text TEXT)"],
    "a view without end": [f"CREATE VIEW logs AS {ENDLESS} SELECT '{A}' AS id, i AS log FROM n"],
    "a column that is computed": ["CREATE TABLE logs (id TEXT, log BLOB AS (zeroblob(900000000)))",
                                  f"INSERT INTO logs (id) VALUES ('{A}')"],
    "a virtual table": ["CREATE VIRTUAL TABLE logs USING fts5(id, log)"],
    "values of any kind": ["CREATE TABLE logs (id, log)", "INSERT INTO logs VALUES (NULL, 7)",
                           "INSERT INTO logs VALUES (x'ff', 'x')", "INSERT INTO logs VALUES (1.5, zeroblob(9))"],
    "a log that is far too long": ["CREATE TABLE logs (id, log)",
                                   f"INSERT INTO logs VALUES ('{A}', zeroblob(20000000))"],
}


@pytest.mark.parametrize("what", DATABASES)
def test_a_database_that_is_none_of_ours_gives_nothing(tmp_path, what):
    (tmp_path / "logs").mkdir()
    database(tmp_path / "logs" / "a.db", *DATABASES[what])
    (tmp_path / "logs" / f"{game(7)}.xml").write_bytes(log(7))
    before = tree(tmp_path / "logs")
    stderr = imported(tmp_path, tmp_path / "logs", taken=[7])
    assert "a.db" in stderr and len(stderr.splitlines()) <= 5 and tree(tmp_path / "logs") == before


@pytest.mark.parametrize("damage", [lambda data: b"SQLite format 3\0" + os.urandom(5000), lambda data: data[:5000],
                                    lambda data: data[:100] + bytes(4000) + data[4100:],
                                    lambda data: data[:8192] + os.urandom(8192) + data[16384:]])
def test_a_damaged_database_is_told_and_the_rest_is_taken(tmp_path, damage):
    (tmp_path / "logs").mkdir()
    database(tmp_path / "logs" / "a.db", "CREATE TABLE logs (id, log)",
             *(f"INSERT INTO logs VALUES ('x{i}', '{'x' * 999}')" for i in range(40)))
    path = tmp_path / "logs" / "a.db"
    path.write_bytes(damage(path.read_bytes()))
    (tmp_path / "logs" / f"{game(7)}.xml").write_bytes(log(7))
    stderr = imported(tmp_path, tmp_path / "logs", taken=[7], status=1)
    assert "a.db: damaged or incomplete: SQLite says: " in stderr
