"""The claim of a game on rows of a shard. A game has one if it is encoded, or if only its log is downloaded again."""

FIELDS = "shard", "start", "n_samples", "sha256", "encoder"


def held(record):
    """The claim on rows that a current record holds, as an `encoded` record; None if it holds none.

    The record of an encoded game is the claim itself. While its log is downloaded again, the record keeps it in
    `claim`.
    """
    if record.get("status") == "encoded":
        return record
    return {"gid": record["gid"], "status": "encoded", **record["claim"]} if record.get("claim") else None


def kept(record):
    """The fields that an event of another status needs in order to keep the claim of the record before it."""
    claim = held(record or {})
    return {"claim": {key: claim[key] for key in FIELDS if key in claim}} if claim else {}
