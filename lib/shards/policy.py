"""Comparing a record of the manifest with an entry of a shard's meta.json: who claims which rows, what is to be
encoded."""

from ..store.claims import held


def claim(game, name):
    """The `encoded` event of a meta.json entry `game` in the shard `name`."""
    event = {"gid": game["gid"], "status": "encoded", "shard": name, "n_samples": game["n_rows"],
             "sha256": game["sha256"], "start": game["start"]}
    return event | ({"encoder": game["encoder"]} if "encoder" in game else {})


def matches(game, record):
    """True if the meta.json entry `game` has exactly the rows, of exactly the log, that an `encoded` record claims."""
    get, rows, sha256, start = record.get, game["n_rows"], game["sha256"], game["start"]  # fast: done for each game
    return (get("n_samples", rows) == rows and get("sha256", sha256) == sha256 and get("start", start) == start
            and record["gid"] == game["gid"] and get("status") == "encoded")


def live(meta, name, latest):
    """The games of a shard's meta.json whose current records claim just these rows."""
    claims = ((g, held(latest[g["gid"]])) for g in meta["games"] if g["gid"] in latest)
    return [g for g, claimed in claims if claimed and claimed.get("shard") == name and matches(g, claimed)]


def awaits(game, record):
    """True if the next run will claim the rows of the meta.json entry `game`, of a game with this current record,
    because a process was killed before it could."""
    return record.get("status") == "downloaded" and record.get("sha256") == game["sha256"]


def is_forgotten(game, name, manifest, gone):
    """True if the manifest has lost the event that claims the meta.json entry `game` of the shard `name`: it does not
    know the game, or claims rows of the same bytes in one of the `gone` shards."""
    record = manifest.latest.get(game["gid"])
    return game["gid"] not in manifest.claims.get(name, ()) and (
        record is None or (record.get("status") == "encoded" and record.get("shard") in gone
                           and record.get("sha256") == game["sha256"]))


def needs_encoding(record, encoder, gone=(), outdated=()):
    """True if a game with this current record is to be encoded by `encoder` (a dict with name and version). It is, if
    it is downloaded; if it failed with another version of the encoder; if its rows were in one of the `gone` shards; or
    if it is one of the `outdated` games and its rows are still those of an older encoder."""
    record = record or {}
    status = record.get("status")
    if status == "encoded":
        older = record.get("gid") in outdated and is_older(record.get("encoder"), encoder)
        return older or record.get("shard") in gone
    return status == "downloaded" or (
        status == "failed" and record.get("stage") == "encode" and record.get("encoder") != encoder["version"])


def version(meta, game):
    """The version of the encoder that made the rows of `game`, an entry of `meta`; None if that is not known."""
    made = meta.get("encoder")
    return game.get("encoder") or (made.get("version") if isinstance(made, dict) else None) or None


def is_older(found, encoder):
    """True if rows of the version `found`, None if not known, were made by an older encoder than `encoder`."""
    try:
        return int(found) < int(encoder["version"])
    except (TypeError, ValueError):
        return found != encoder["version"]


def unchanged(record):
    """A current record as an event that leaves it as it is."""
    return {key: value for key, value in record.items() if key != "ts"}
