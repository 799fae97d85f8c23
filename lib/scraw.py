"""Tenhou's lists of games (scraw zips, hourly and daily scc files): getting them, and the ids in them."""

import contextlib
import gzip
import io
import json
import os
import re
import time
import zipfile
import zlib

from lib import files, gid, workdir
from lib.errors import Problem
from lib.tenhou import Fault

LOOK_EVERY = 20 * 60  # seconds between two looks at the lists, failed ones counted
_MEMBER = re.compile(r"scc[0-9]{8}(?:[0-9]{2})?\.html(?:\.gz)?")
_LISTED = re.compile(r"\{file:'([^']*)',size:([0-9]+)\}")
_LINK = re.compile(rb'<a href="[^">\n]{0,500}?[?&]log=([^"&<>\n]{0,500})')
_LINE_LIMIT = 1 << 16  # bytes; a line of a page has 200
_BLOCK = 1 << 20  # bytes of a page that are looked at together
_PAGE_LIMIT = 1 << 26  # bytes that one page may unpack to; a day has 300 kB
_YEAR_LIMIT = 1 << 29  # bytes that all pages of a zip may unpack to; a year has 110 MB
_ZIP_LIMIT = 1 << 31  # bytes of a zip, and of what all its members unpack to; they are packed already
_READ_LIMIT = 1 << 24  # bytes that are read in one go: a zip's table of contents, a year's has 6 MB at most
_FILE_LIMIT = 1 << 26


def zip_path(work, year):
    """Where a year's zip belongs."""
    return workdir.path(work, "raw", f"scraw{year}.zip")


def fetch_zip(session, work, year):
    """Download a year's zip, going on where an interrupted download ended. Raises Fault, OSError, Problem.

    It is tested whole before it takes its final name.
    """
    path = zip_path(work, year)
    part = f"{path}.part"

    def ask():
        have = os.path.getsize(part) if os.path.exists(part) else 0
        if have and not _zip_problem(part):
            return  # whole: only its name was still to be given
        with files.naming(part), open(part, "ab") as f:

            def receive(response):
                goes_on = response.status_code == 206
                if goes_on and not response.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
                    raise Fault("passing", "another part of the file came than was asked for")
                if not goes_on:
                    f.truncate(0)
                return f.write

            try:
                session.get(f"/sc/raw/scraw{year}.zip", receive, _ZIP_LIMIT - have,
                            {"Range": f"bytes={have}-"} if have else None)
            except Fault as e:
                if e.status == 416 or have >= _ZIP_LIMIT:
                    f.truncate(0)  # it is longer than what the server has now: begin anew
                raise
            f.flush()
            os.fsync(f.fileno())
        problem = _zip_problem(part)
        if problem:
            os.unlink(part)
            raise Fault("passing", problem)

    try:
        session.persist(os.path.basename(path), ask)
    except Fault as e:
        if os.path.exists(part) and not os.path.getsize(part):
            os.unlink(part)
        if e.status == 404:
            return False
        raise
    os.rename(part, path)
    files.sync_dir(os.path.dirname(path))
    return True


class _Careful(io.BufferedReader):
    """A file that refuses to be read into memory: zipfile takes a table of contents in one go, however long it is."""

    def read(self, size=-1):
        data = super().read(_READ_LIMIT + 1 if size is None or size < 0 else min(size, _READ_LIMIT + 1))
        if len(data) > _READ_LIMIT:
            raise zipfile.BadZipFile("its table of contents is too long")
        return data


@contextlib.contextmanager
def _open_zip(path):
    """A ZipFile, for the block; raises BadZipFile for what is none, or so made that it takes much memory."""
    with _Careful(io.FileIO(path)) as f, zipfile.ZipFile(f) as z:
        if any(info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for info in z.infolist()):
            raise zipfile.BadZipFile("packed by an uncommon method")
        yield z


def _zip_problem(path):
    try:
        with _open_zip(path) as z:
            size = sum(info.file_size for info in z.infolist())  # no more than that is unpacked, whatever there is
            bad = f"its members unpack to {size} bytes" if size > _ZIP_LIMIT else z.testzip()
        return f"damaged zip: {bad}" if bad else None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as e:
        return f"no sound zip: {e}"


def fetch_lists(session, work, year):
    """Download the daily and hourly files of a year that are new or have grown. Returns (files fetched, files failed).

    Returns (0, 0) without asking if the last look was less than LOOK_EVERY seconds ago. Raises Fault, OSError, Problem.
    """
    stamp = workdir.path(work, "raw", ".looked")
    if os.path.exists(stamp) and 0 <= time.time() - os.path.getmtime(stamp) < LOOK_EVERY:
        return 0, 0
    files.write(stamp, b"")
    state_path = workdir.path(work, "raw", "listed.json")
    state = _read_state(state_path)
    fetched = failed = 0
    for query in ("?old", ""):
        for name, size in _look(session, f"/sc/raw/list.cgi{query}"):
            base = os.path.basename(name)
            path = workdir.path(work, "raw", base)
            if not base.startswith(f"scc{year}") or (state.get(base) == size and os.path.exists(path)):
                continue
            try:
                files.write(path, session.persist(base, lambda name=name: _get_page(session, name)))
            except Fault as e:
                session.say(f"{base}: {e}; left for the next look")
                failed += 1
                continue
            state[base] = size
            files.write(state_path, json.dumps(state).encode())
            fetched += 1
    return fetched, failed


def _read_state(path):
    try:
        with open(path, encoding="utf-8") as f:
            state = json.load(f)
        return state if isinstance(state, dict) else {}
    except (FileNotFoundError, ValueError):
        return {}


def _look(session, path):
    """The (file, size) pairs of one of the JavaScript lists; raises Fault for anything that is none."""

    def ask():
        text = _get(session, path).decode("utf-8", "replace").strip()
        inside = re.fullmatch(r"list\(\s*(?:\[(.*)\])?\s*\);?", text, re.S)
        if not inside or re.sub(r"[\s,]", "", _LISTED.sub("", inside[1] or "")):
            raise Fault("passing", f"{path} is no list of files")
        return [(name, int(size)) for name, size in _LISTED.findall(inside[1] or "")
                if re.fullmatch(r"(?:[0-9]{4}/)?" + _MEMBER.pattern, name)]

    return session.persist(path, ask)


def _get(session, path):
    body = bytearray()
    session.get(path, lambda response: body.extend, _FILE_LIMIT)
    return bytes(body)


def _get_page(session, name):
    data = _get(session, f"/sc/raw/dat/{name}")
    if name.endswith(".gz"):
        try:
            text = zlib.decompressobj(wbits=31).decompress(data, _FILE_LIMIT)
        except zlib.error as e:
            raise Fault("passing", f"no gzip file: {e}") from None
    else:
        text = data
    if b"<html" in text[:1000].lower() or b"<!doctype" in text[:1000].lower():
        raise Fault("passing", "an HTML page instead of a list of games")
    return data


def index_files(work, year):
    """The files of raw/ that list the games of a year: the zip if it is there, and the daily and hourly files."""
    raw = workdir.path(work, "raw")
    names = [name for name in sorted(os.listdir(raw)) if name.startswith(f"scc{year}") and _MEMBER.fullmatch(name)]
    paths = [os.path.join(raw, name) for name in names]
    return ([zip_path(work, year)] if os.path.exists(zip_path(work, year)) else []) + paths


def ids(path, tell):
    """Yield the id of each game that a zip, or a page, plain or gzipped, lists; `tell(text)` for each bad link or page.

    Memory stays small whatever the file is. Raises OSError, Problem for a file that cannot be read as what it is.
    """
    with open(path, "rb") as f:
        if f.read(4) != b"PK\x03\x04":
            yield from _page_ids(f, path, tell)
            return
    left = _YEAR_LIMIT
    try:
        with _open_zip(path) as z:
            for info in z.infolist():
                if _MEMBER.fullmatch(info.filename.rpartition("/")[2]):
                    with z.open(info) as member:
                        left -= yield from _page_ids(member, f"{path}: {ascii(info.filename)[1:-1]}", tell)
                    if left < 0:
                        raise zipfile.BadZipFile(f"its pages unpack to more than {_YEAR_LIMIT >> 20} MB")
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as e:
        raise Problem(f"{path}: no sound zip ({e}); remove it, and it is downloaded again") from None


def _page_ids(f, name, tell):
    """Yield the ids of a page; returns how many bytes of it were read."""
    f.seek(0)
    head = f.read(2)
    f.seek(0)
    page = gzip.GzipFile(fileobj=f) if head == b"\x1f\x8b" else f
    size, rest = 0, b""
    try:
        while block := page.read(_BLOCK):
            size += len(block)
            if size > _PAGE_LIMIT:
                tell(f"{name}: unpacks to more than {_PAGE_LIMIT >> 20} MB: the rest is passed over")
                return size
            text = rest + block
            end = text.rfind(b"\n") + 1
            if len(text) - end > _LINE_LIMIT:
                end = len(text)  # no page has such lines
            rest = text[end:]
            yield from _block_ids(text[:end], name, tell)
        yield from _block_ids(rest, name, tell)
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile) as e:
        if isinstance(e, OSError) and e.errno:
            raise
        tell(f"{name}: damaged: {e}")
    return size


def _block_ids(text, name, tell):
    """Yield the id of the first link of each line."""
    line_end = 0
    for link in _LINK.finditer(text):
        if link.start() < line_end:
            continue
        line_end = text.find(b"\n", link.end()) % (len(text) + 1)
        game = gid.parse(link[1].decode("ascii", "replace"))
        if game:
            yield game
        else:
            tell(f"{name}: {link[1][:60]!r} is no game id")
