"""What a record of the manifest and an entry of a shard's meta.json say of each other."""



def claim(game, name):
    """The `encoded` event of a meta.json entry `game` in the shard `name`."""
    return {"gid": game["gid"], "status": "encoded", "shard": name, "n_samples": game["n_rows"],
            "sha256": game["sha256"], "start": game["start"]}


def matches(game, record):
    """True if the meta.json entry `game` has just the rows, of just the bytes, that an `encoded` record claims."""
    get, rows, sha256, start = record.get, game["n_rows"], game["sha256"], game["start"]  # for each game: kept quick
    return (get("n_samples", rows) == rows and get("sha256", sha256) == sha256 and get("start", start) == start
            and record["gid"] == game["gid"] and get("status") == "encoded")


def awaits(game, record):
    """True if the next run will claim the meta.json entry `game` with this record: a commit was cut short."""
    return record.get("status") == "downloaded" and record.get("sha256") == game["sha256"]


def needs_encoding(record, encoder, gone=()):
    """True if a game with this current record is to be encoded by `encoder` (a dict with name and version): it is
    downloaded, it failed when another encoder tried, or its rows were in one of the `gone` shards."""
    record = record or {}
    status = record.get("status")
    return (status == "downloaded" or (status == "encoded" and record.get("shard") in gone)
            or (status == "failed" and record.get("stage") == "encode" and record.get("encoder") != encoder["version"]))


def unchanged(record):
    """A current record as an event that leaves it as it is."""
    return {key: value for key, value in record.items() if key != "ts"}
