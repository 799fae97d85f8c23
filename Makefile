# From Tenhou's game logs to training data: rules that chain the scripts in bin/. `make help` lists them.
ifneq ($(filter 3.%,$(MAKE_VERSION)),)  # that of macOS is of 2006
$(error needs GNU make 4 or later: brew install make, then gmake $(or $(MAKECMDGOALS),run))
endif
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += -r
.SUFFIXES:
.NOTPARALLEL:
.DEFAULT_GOAL := help
.PHONY: run import check status watch report export-mjai rebuild-index compact recover purge demo bench setup test
.PHONY: convert train-demo test-all torture help venv settings

include config.mk
# before make takes it for something of its own, and does it
$(foreach k,WORK IDS YEAR,$(if $(findstring $$,$(value $k)),$(error $k='$(value $k)': must have no $$)))
# for lib/cli/makeline.py, which checks what make was called with
export GOALS := $(MAKECMDGOALS)
# the scripts of a run end when the make that the user started ends, however it ends; a number means it only here
export RUN_PID := $(or $(RUN_PID),$(shell cd /proc 2>/dev/null || :; echo \
  "$$PPID@$$(cat sys/kernel/random/boot_id 2>/dev/null)/$$(readlink self/ns/pid 2>/dev/null)"))
export PATH := $(or $(realpath .venv),$(CURDIR)/.venv)/bin:$(or $(PATH),/usr/local/bin:/usr/bin:/bin)
# `make -s` is for cron: the scripts then speak only when something happened or is wrong
QUIET := $(if $(findstring s,$(filter-out --%,$(firstword -$(MAKEFLAGS)))),--quiet)
# of the shards that compact writes: only if asked for in so many words, not for config.mk's sake
CONVERT = $(if $(filter command,$(firstword $(origin SHARD_LAYOUT))),$(SHARD_LAYOUT))
SPREAD := $(if $(filter-out local,$(DISTRIBUTE)),bin/distribute )

run: venv settings  ## check, adopt, download, encode, index, status: everything that is left to do
	@bin/with-lock $(QUIET) --create -- bash -uo pipefail -c '\
	  bin/check-first $(QUIET); \
	  bin/adopt-xml $(QUIET) --all </dev/null >/dev/null || exit; \
	  status=0; ids=$$(bin/update-ids $(QUIET)) || status=$$?; \
	  bin/fetch-paipu $(QUIET) --queued <"$$ids" | \
	    $(SPREAD)bin/encode-batch $(QUIET) --queued >/dev/null || status=$$?; \
	  bin/rebuild-index $(QUIET) & table=$$(bin/manifest-status $(QUIET)) || status=$$?; \
	  wait $$! || status=$$?; $(if $(QUIET),,echo "$$table";) exit $$status'

check: venv settings  ## hold files and shards against the manifest; REPAIR=1 moves damaged XML files to trash/, queues what is lost
	@status=0; $(SPREAD)bin/verify-xml $(QUIET) --all </dev/null 2>&1 || status=$$?; \
	  bin/verify-shards $(QUIET) 2>&1 || status=$$?; \
	  bin/rebuild-index $(QUIET) --check 2>&1 || status=$$?; exit $$status

status: venv settings  ## games by their state, shards, disk use, what is left to do, why games failed
	@bin/manifest-status --full

watch: venv settings  ## the status again and again, until Ctrl-C
	@bin/manifest-status --watch 5

report: venv settings  ## write <work>/report.html: how it stands and how it went, with plots; one file, no network
	@bin/make-venv report
	@bin/report

export-mjai: venv settings  ## write all games as mjai events, for Mortal: <work>/mjai/<game id>.json.gz
	@bin/export-mjai $(QUIET) --all </dev/null >/dev/null

import: venv settings  ## take in the logs in FROM: a folder, zip, tar, file or SQLite database; make run does the rest
	@bin/import-logs $(QUIET) >/dev/null

rebuild-index: venv settings  ## write cache/index.json anew
	@bin/rebuild-index

compact: venv settings  ## merge small shards, drop stale rows and orphan shards; SHARD_LAYOUT=…: convert too
	@bin/with-lock $(QUIET) -- bin/compact-shards $(QUIET) $(addprefix --layout=,$(CONVERT))
	@bin/rebuild-index $(QUIET)

convert: CONVERT = $(LAYOUT)
convert: compact  ## write all shards anew in LAYOUT=parquet or LAYOUT=dense

recover: venv settings  ## rebuild a lost or broken manifest from the shards and xml/; the old file is kept
	@bin/with-lock $(QUIET) -- bin/recover-manifest
	@bin/adopt-xml $(QUIET) --all </dev/null >/dev/null
	@bin/rebuild-index

purge: venv settings  ## empty trash/, where repair and compaction put what they take out
	@bin/with-lock $(QUIET) -- bin/empty-trash $(QUIET)

demo: export MAKE := $(MAKE)
demo: settings  ## the whole pipeline on self-played games in data/demo, no network needed; under a minute
	@bin/demo

train-demo: venv settings  ## train a small policy on the cache for three minutes, to see that it is sound
	@bin/make-venv torch
	@bin/train-demo

bench: venv settings  ## measure it all, against something that does the bare minimum
	@bin/make-venv parquet
	@bin/bench

setup: venv settings  ## make .venv with the pinned packages; see to jq
	@echo "$$(.venv/bin/python --version) in .venv, with the packages of pyproject.toml"
	@command -v jq >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	  echo 'now jq, to look into the manifest: apt-get installs it on this system, outside this tree' && \
	  apt-get install -qq -y jq >/dev/null; } || \
	  echo 'jq is missing: install it (apt install jq, brew install jq) to look into the manifest'

test: venv settings  ## run the tests but the slow ones, in some minutes; TORCH=1: those with PyTorch too
	@bin/make-venv test report parquet $(if $(filter-out 0,$(TORCH)),torch)
	@.venv/bin/python -m ruff check --quiet .
	@.venv/bin/python -m pytest -n 2 --dist loadscope -m 'not slow' $(PYTEST_ARGS)

test-all: test  ## then those with kills, pip, no-op runs and other machines too
	@.venv/bin/python -m pytest -m slow $(PYTEST_ARGS)

torture: venv settings  ## kill and fail every script, some fifteen minutes, and count what is lost; TORTURE=long: hours
	@bin/make-venv test parquet
	@.venv/bin/python tests/torture.py

help:  ## list targets, and settings with their values as they are now
	@PYTHONSAFEPATH= python3 -m lib.cli.makeline help

venv:
	@bin/make-venv $(if $(filter parquet,$(SHARD_LAYOUT) $(LAYOUT)),parquet)
settings:
	+@PYTHONSAFEPATH= python3 -m lib.cli.makeline $(QUIET)

# nothing is done for a target that is misspelt, nor for one beside it
.DEFAULT:
	@echo '$@ is no target: make help lists them' >&2; exit 2
