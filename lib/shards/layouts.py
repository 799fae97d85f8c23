"""The layouts that a shard may have."""


from . import dense, parquet

LAYOUTS = {"dense": dense, "parquet": parquet}  # modules that write, read and check the files of a shard
