"""What has become of a game, by its current record in the manifest, in words."""

from ..store import wording


def of(record):
    """What has become of a game with this current record (None: it has none), as the end of a sentence about it."""
    if record is None:
        return "is unknown here: its log was never downloaded or imported"
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


def next_step(work, game, record):
    """What can be done about a game with this current record that has no rows in the index, with the command for it;
    empty if nothing can."""
    status, run = (record or {}).get("status"), wording.make(work, "run")
    if may_be_tried_again(record) and status == "failed":
        return f"to try it again: {wording.script(work, f'encode-batch --again {game}')}"
    if status == "failed":
        after = f"it is asked for again after {record['retry_at']}; " if record.get("retry_at") else ""
        return f"{after}to ask for it now: {wording.make(work, 'run RETRY=1')}"
    if status == "encoded":
        return f"to list its rows in cache/index.json: {wording.make(work, 'rebuild-index')}"
    return {"downloaded": f"to encode it: {run}", "corrupt": f"to download it again: {run}"}.get(status, "")
