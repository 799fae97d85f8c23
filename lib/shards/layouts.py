"""The layouts that a shard may have."""

from . import dense, parquet

LAYOUTS = {"dense": dense, "parquet": parquet}  # modules that write, read and check the files of a shard
GONE = {"packed": "; commit 77ce1fe converts it: bin/compact-shards --layout dense"}


def require(layout):
    """Raises Problem if what a layout needs is not installed."""
    if layout == "parquet":
        parquet.pyarrow()
