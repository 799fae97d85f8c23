"""The logs in the SQLite files of houou-logs and phoenix-logs."""

import contextlib
import os
import sqlite3
import urllib.parse

from .streams import Damaged

MAGIC = b"SQLite format 3\0"
_COLUMNS = ("id", "log"), ("log_id", "log_content")  # of houou-logs, of phoenix-logs
_SUFFIXES = "-wal", "-journal"  # files beside a database that a program has not closed


def has_news_beside(path):
    """The paths of files beside a database that hold its latest changes."""
    return [path + suffix for suffix in _SUFFIXES
            if os.path.exists(path + suffix) and os.path.getsize(path + suffix)]


def logs(path, limit, write=False):
    """Yield (id as bytes, log as bytes, packed as in the database) for each row of a database.

    A row without a log comes with None. Unless `write`, the file is not changed and nothing is written beside it. A log
    of more than `limit` bytes comes as b"". Raises Damaged if it is not a database, or not one of these two programs.
    """
    address = f"file:{urllib.parse.quote(os.path.abspath(path))}?mode={'rw' if write else 'ro&immutable=1'}"
    try:
        with contextlib.closing(sqlite3.connect(address, uri=True)) as connection:
            connection.text_factory = bytes  # the id is checked later, and may be any bytes
            gid, log = _columns(connection)
            yield from connection.execute(
                f"SELECT ifnull(CAST({gid} AS TEXT), ''), "
                f"CASE WHEN ifnull(length({log}), 0) = 0 THEN NULL "
                f"WHEN length({log}) <= {limit} THEN CAST({log} AS BLOB) ELSE x'' END FROM logs")
    except sqlite3.Error as e:
        raise Damaged(f"SQLite says: {e}") from None


def _columns(connection):
    """The names of the two columns. Views and computed columns are refused: they could yield anything, without end."""
    kinds = [kind for kind, in connection.execute(
        "SELECT type || (sql LIKE 'CREATE VIRTUAL%') FROM sqlite_master WHERE name = 'logs'")]
    found = {row[1].decode("utf-8", "replace"): row[6] for row in connection.execute("PRAGMA table_xinfo(logs)")}
    for pair in _COLUMNS:
        if kinds == [b"table0"] and [found.get(name) for name in pair] == [0, 0]:
            return pair
    raise Damaged("not a database of houou-logs or phoenix-logs: it has no table `logs` like theirs")
