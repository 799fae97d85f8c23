"""Writing a shard: rows go into a temporary folder, which one rename puts in its place."""

import contextlib
import json
import os
import shutil

import numpy as np

from ..rows import schema
from ..store import files, workdir
from . import layouts, reading


class Writer:
    """A shard that is being written. Rows go straight to disk, so it needs no more memory when it grows.

    games: the entries of meta.json so far; n_rows: how many rows they have together
    """

    def __init__(self, work, layout="dense"):
        """Begin a shard of a layout (a key of LAYOUTS) in a temporary folder of the cache of `work`. Raises OSError."""
        self.path = files.temporary_path(workdir.path(work, "cache", "shard"))
        self.games, self.n_rows, self._layout = [], 0, layout
        os.mkdir(self.path)
        self._rows = layouts.LAYOUTS[layout].Writer(self.path)

    def add(self, game, sha256, rows, final=None):
        """Append all rows of a game: a folded, or a dict of the arrays of the schema. final: the points of the four
        seats at the end of the game. Raises OSError, and ValueError for rows that do not fit the schema.
        """
        n = len(rows["labels"])
        self.games.append({"gid": game, "sha256": sha256, "start": self.n_rows, "n_rows": n,
                           **({"final": list(final)} if final else {})})
        origin = np.array(rows["origin"])
        origin["game"] = len(self.games) - 1
        with files.naming(self.path):
            self._rows.add({**rows, "origin": origin}, game)
        self.n_rows += n

    def finish(self, encoder):
        """Complete the arrays and meta.json, and have all of it on disk. encoder: name and version of the encoder that
        made all the rows. Raises OSError."""
        if encoder and encoder.get("version"):
            self.games = [{**g, "encoder": encoder["version"]} for g in self.games]
        with files.naming(self.path):
            found = self._rows.finish()
        meta = {
            "schema_version": schema.SCHEMA_VERSION, "layout": self._layout, "n_rows": self.n_rows,
            "max_seq_len": schema.MAX_SEQ_LEN, "encoder": encoder, **found, "games": self.games,
        }
        files.write(os.path.join(self.path, reading.META), json.dumps(meta).encode() + b"\n")

    def move_into_place(self, work, used):
        """Rename the finished shard; its number is higher than all that are `used` or present. Returns its name. Raises
        OSError."""
        highest = max((n for n in [*used, *map(reading.number, reading.names(work))] if n is not None), default=-1)
        name = workdir.SHARD.format(highest + 1)
        os.rename(self.path, workdir.path(work, "cache", name))
        files.sync_dir(workdir.cache(work))
        return name

    def discard(self):
        """Close and remove the temporary folder."""
        with contextlib.suppress(OSError):
            self._rows.close()
        shutil.rmtree(self.path, ignore_errors=True)
