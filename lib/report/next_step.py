"""What can be done about a game that has no rows in the cache, by its current record in the manifest."""

from ..store import workdir
from ..store.wording import make, script
from . import reasons


def of(work, game, record):
    """It as a part of a sentence, with the command or the file; empty if there is nothing to do. record: None if the
    game has none."""
    status, stage = (record or {}).get("status"), (record or {}).get("stage")
    if status == "encoded":
        return f"to list its rows in cache/index.json: {make(work, 'rebuild-index')}"
    if (status, stage) == ("failed", "encode"):
        group = reasons.REASONS.get(reasons.kind(record.get("error")))
        if group in ("incomplete", "damaged"):  # the same log would fail again
            return f"{reasons.GROUPS[group][2]}: {workdir.xml(work, game)}"
        return "" if group == "unsupported" else f"to try it again: {script(work, f'encode-batch --again {game}')}"
    if status == "failed":
        after = f"it is asked for again after {record['retry_at']}; " if record.get("retry_at") else ""
        return f"{after}to ask for it now: {make(work, 'run RETRY=1')}"
    run = make(work, "run")
    return {"downloaded": f"to encode it: {run}", "corrupt": f"import it again, or download it: {run}"}.get(status, "")
