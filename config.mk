# Every knob with its default. Layers: this file < environment < `make KEY=value` < a script's own flag.
# Scripts called directly read the same defaults from here: one `KEY ?= value  # what it is` a line.
PYTHON      ?= python3          # the interpreter that makes .venv (3.10 to 3.13)
WORK        ?= data/tenhou      # work directory: manifest, xml, cache
YEAR        ?=                  # year to download, e.g. 2024; empty: only what the manifest has queued
SHARD_ROWS  ?= 65536            # rows after which a shard is closed (520 MB in the dense layout)
REPAIR      ?=                  # 1: check and run delete damaged XML files and queue their games again
