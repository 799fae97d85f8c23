"""Downloading Tenhou's lists of games: the scraw zips of past years, the hourly and daily scc files."""

import json
import os
import re
import time
import zlib

from ..store import files, wording, workdir
from ..store.errors import Busy, Problem
from . import listfiles
from .faults import Fault

LOOK_EVERY = 20 * 60  # seconds between two requests for the lists, failed ones too
_LISTED = re.compile(r"\{file:'([^']*)',size:([0-9]+)\}")
_RANGE = re.compile(r"bytes ([0-9]+)-([0-9]+)/([0-9]+|\*)")
_FILE_LIMIT = 1 << 26


def zip_path(work, year):
    """The path of a year's zip."""
    return workdir.path(work, "raw", f"scraw{year}.zip")


def fetch_zip(session, work, year):
    """Download a year's zip, or the rest of it if a download was interrupted; returns False if the server has none.

    The whole zip is tested before it gets its final name. Raises Fault, OSError, Problem.
    """
    path = zip_path(work, year)
    part = f"{path}.part"

    def ask():
        have = os.path.getsize(part) if os.path.exists(part) else 0
        if have and not listfiles.zip_problem(part):
            return  # it is whole, only the rename was missing
        with files.naming(part), open(part, "ab") as f:

            def receive(response):
                found = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
                fits = found and int(found[1]) == have and found[3] in ("*", str(int(found[2]) + 1))
                if response.status_code != 206 or not fits:
                    f.truncate(0)  # start again, with this answer or the next one
                if response.status_code == 206 and not fits:
                    raise Fault("passing", "the server sent another part of the file than we asked for")
                return f.write

            try:
                session.get(f"/sc/raw/scraw{year}.zip", receive, listfiles.ZIP_LIMIT - have,
                            {"Range": f"bytes={have}-"} if have else None)
            except Fault as e:
                if e.status == 416 or have >= listfiles.ZIP_LIMIT:
                    f.truncate(0)  # it is longer than the server's file is now: start again
                raise
            f.flush()
            os.fsync(f.fileno())
        problem = listfiles.zip_problem(part)
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


def fetch_lists(session, work, year):
    """Download the daily and hourly files of a year that are new or have grown; returns (how many, how many failed).

    Returns (0, 0) without a request if the last look was less than LOOK_EVERY seconds ago. Raises Fault, OSError,
    Problem.
    """
    if last_look(work):
        return 0, 0
    _put_stamp(work, "it was interrupted")
    try:
        fetched, failed = _fetch_lists(session, work, year)
    except Busy:
        os.unlink(_stamp(work))  # nothing was requested
        raise
    except (Fault, Problem) as e:
        _put_stamp(work, str(e))
        raise
    _put_stamp(work, f"{wording.count(failed, 'list')} could not be downloaded" if failed else "")
    return fetched, failed


def last_look(work):
    """(when we may ask for the lists again, in seconds since 1970, what went wrong the last time or ''); None if we may
    ask now."""
    try:
        with open(_stamp(work), encoding="utf-8", errors="replace") as f:
            looked, what = os.fstat(f.fileno()).st_mtime, f.read()
    except FileNotFoundError:
        return None
    # a clock that was set back by more than that must not keep us from looking for years
    return (looked + LOOK_EVERY, what) if abs(time.time() - looked) < LOOK_EVERY else None


def _put_stamp(work, what):
    files.write(_stamp(work), what.encode())
    os.utime(_stamp(work), (time.time(),) * 2)  # by our own clock: that of a file server may be another


def _stamp(work):
    return workdir.path(work, "raw", ".looked")


def _fetch_lists(session, work, year):
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
                session.say(f"{base}: {e}; left for the next run")
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
    """The (file, size) pairs of one of the JavaScript lists. Raises Fault if the answer is not such a list."""

    def ask():
        text = _get(session, path).decode("utf-8", "replace").strip()
        inside = re.fullmatch(r"list\(\s*(?:\[(.*)\])?\s*\);?", text, re.S)
        if not inside or re.sub(r"[\s,]", "", _LISTED.sub("", inside[1] or "")):
            raise Fault("passing", f"{path} is not a list of files")
        return [(name, int(size)) for name, size in _LISTED.findall(inside[1] or "")
                if re.fullmatch(r"(?:[0-9]{4}/)?" + listfiles.MEMBER.pattern, name)]

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
            raise Fault("passing", f"not a gzip file: {e}") from None
    else:
        text = data
    if b"<html" in text[:1000].lower() or b"<!doctype" in text[:1000].lower():
        raise Fault("passing", "an HTML page instead of a list of games")
    return data


def index_files(work, year):
    """The files in raw/ that list the games of a year: the zip if there is one, and the daily and hourly files."""
    raw = workdir.path(work, "raw")
    names = [name for name in sorted(os.listdir(raw))
             if name.startswith(f"scc{year}") and listfiles.MEMBER.fullmatch(name)]
    paths = [os.path.join(raw, name) for name in names]
    return ([zip_path(work, year)] if os.path.exists(zip_path(work, year)) else []) + paths
