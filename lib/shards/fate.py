"""What has become of a game, by its current record in the manifest, in words."""


def of(record):
    """What has become of a game with this current record (None: it has none), as the end of a sentence about it."""
    if record is None:
        return ("is unknown here: its log was never downloaded (make run IDS=<file with the id>) or imported "
                "(make import FROM=<file>)")
    status, error = record.get("status"), record.get("error")
    if status == "encoded":
        return f"is encoded: {record.get('n_samples')} rows in {record.get('shard')}"
    if status == "downloaded":
        return "is downloaded, but not yet encoded"
    if status == "duplicate":
        return f"has the very same log as {record.get('alias_of')}: look at that one"
    if status == "corrupt":
        return "has no sound log: the log was damaged or lost"
    if status == "failed" and record.get("stage") == "download":
        return f"could not be downloaded: {error}"
    if status == "failed":
        return f"could not be encoded: {error}"
    return f"has the status {status}, which this version does not know"


def may_be_tried_again(record):
    """True if a game with this current record was encoded, or failed to be: its log may be encoded once more."""
    status, stage = (record or {}).get("status"), (record or {}).get("stage")
    return status == "encoded" or (status, stage) == ("failed", "encode")
