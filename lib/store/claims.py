"""The claim on rows that a current record holds: of an encoded game, or of one whose log is fetched again."""

FIELDS = "shard", "start", "n_samples", "sha256", "encoder"


def held(record):
    """The claim on rows that a current record holds, as an `encoded` record; None if it holds none.

    An encoded game's is the record itself. In its `claim` a record may keep one while its log is fetched again.
    """
    if record.get("status") == "encoded":
        return record
    return {"gid": record["gid"], "status": "encoded", **record["claim"]} if record.get("claim") else None


def kept(record):
    """What an event of another status needs to have, beside its own, to keep the claim of the record before it."""
    claim = held(record or {})
    return {"claim": {key: claim[key] for key in FIELDS if key in claim}} if claim else {}
