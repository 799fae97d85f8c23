"""The SQLite files of houou-logs and phoenix-logs: the logs in them."""

import contextlib
import os
import sqlite3
import urllib.parse

from .streams import Damaged

MAGIC = b"SQLite format 3\0"
_COLUMNS = ("id", "log"), ("log_id", "log_content")  # of houou-logs, of phoenix-logs
_SUFFIXES = "-wal", "-journal"  # what a program that has not closed its database keeps beside it


def has_news_beside(path):
    """The paths of files beside a database without which it is not what its program last wrote."""
    return [path + suffix for suffix in _SUFFIXES
            if os.path.exists(path + suffix) and os.path.getsize(path + suffix)]


def logs(path, limit, write=False):
    """Yield (id as bytes, log as bytes as it is packed) for each row of a database that has a log.

    The file is not touched, and nothing is written beside it, unless `write`. A log of more than `limit` bytes comes as
    b"". Raises Damaged for what is no database, or none of those two.
    """
    address = f"file:{urllib.parse.quote(os.path.abspath(path))}?mode={'rw' if write else 'ro&immutable=1'}"
    try:
        with contextlib.closing(sqlite3.connect(address, uri=True)) as connection:
            connection.text_factory = bytes  # an id is checked anyway, and may be anything
            gid, log = _columns(connection)
            yield from connection.execute(
                f"SELECT ifnull(CAST({gid} AS TEXT), ''), "
                f"CASE WHEN length({log}) <= {limit} THEN CAST({log} AS BLOB) ELSE x'' END "
                f"FROM logs WHERE length({log}) > 0")
    except sqlite3.Error as e:
        raise Damaged(f"SQLite says: {e}") from None


def _columns(connection):
    """The names of the two columns. A view, or a column that is computed, could be anything, and without end."""
    kinds = [kind for kind, in connection.execute(
        "SELECT type || (sql LIKE 'CREATE VIRTUAL%') FROM sqlite_master WHERE name = 'logs'")]
    found = {row[1].decode("utf-8", "replace"): row[6] for row in connection.execute("PRAGMA table_xinfo(logs)")}
    for pair in _COLUMNS:
        if kinds == [b"table0"] and [found.get(name) for name in pair] == [0, 0]:
            return pair
    raise Damaged("no database of houou-logs or phoenix-logs: it has no such table `logs`")
