"""Rows on disk: layouts, writing, reading, claims of the manifest, compaction, the index."""
