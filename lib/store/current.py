"""The current record of each game, kept as the line of the manifest: for printing, without looking into it."""

import json

from ..manifest import TEXT, Manifest
from . import gid


class CurrentLines(Manifest):
    """A Manifest for reading only. latest: gid -> the line (bytes) of its current record, with the last known
    `sha256`."""

    def _forget(self):
        super()._forget()
        self._sha256 = {}

    def _resume(self, f, end):
        """Read the whole file, because a snapshot has no lines."""

    def _put(self, record, line):
        get = record.get
        game, status, sha256, shard = get("gid"), get("status"), get("sha256"), get("shard")
        if not (type(game) is str and type(status) in TEXT and type(sha256) in TEXT and type(shard) in TEXT):
            return False
        if game not in self.latest and not gid.is_gid(game):
            return False
        if sha256 is not None:
            self._sha256[game] = sha256
        elif game in self._sha256:
            line = _with_sha256(line, record, self._sha256[game])
        self.latest[game] = line
        return True


def _with_sha256(line, record, sha256):
    """The line of a record that has no sha256, with one."""
    if b"sha256" not in line:
        return b'%b, "sha256": %b}' % (line.rstrip()[:-1], json.dumps(sha256).encode())
    return json.dumps(record | {"sha256": sha256}).encode()  # it has the word, as null or in a text
