"""The layouts that a shard may have."""


from . import dense, packed

LAYOUTS = {"dense": dense, "packed": packed}  # modules that write, read and check the files of a shard
