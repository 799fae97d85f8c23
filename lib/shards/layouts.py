"""The two layouts that a shard may have. A row is bit for bit the same from either, and one cache may have both.

                                                  dense                  parquet
    bytes a row (real logs)                       8,009                  60
    a shard of 65,536 rows                        525 MB                 4 MB
    a year of houou games, some 150 million rows  1.2 TB                 9 GB
    read by                                       what reads .npy files  what reads Parquet
    needs                                         numpy                  pyarrow, which `make` installs when it is used

SHARD_LAYOUT=parquet is for the shards that are written from now on. `make convert LAYOUT=parquet` (or dense) converts
all that are there. bin/bench-cache measures both on rows of your own. paipu_cache.train.reader reads both; without it:

    duckdb.sql("SELECT label, count(*) FROM 'data/demo/cache/shard_*/rows.parquet' GROUP BY label").fetchall()
    polars.scan_parquet("data/demo/cache/shard_*/rows.parquet").group_by("label").len().collect()
    datasets.load_dataset("parquet", data_files="data/demo/cache/shard_*/rows.parquet", split="train")

These read all rows of a shard, also stale ones: run `make compact` before. For dense shards see dense.py
beside this file.
"""

from . import dense, parquet

LAYOUTS = {"dense": dense, "parquet": parquet}  # modules that write, read and check the files of a shard
GONE = {"packed": "; commit 77ce1fe converts it: bin/compact-shards --layout dense"}


def require(layout):
    """Raises Problem if a layout needs a package that is not installed."""
    if layout == "parquet":
        parquet.pyarrow()
