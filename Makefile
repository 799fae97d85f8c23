# From Tenhou's game logs to training data: these rules call the scripts in bin/. `make help` lists them.
ifneq ($(filter 3.%,$(MAKE_VERSION)),)  # macOS comes with make 3.81 of 2006
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
# refuse a $ before make expands it
$(foreach k,WORK IDS YEAR,$(if $(findstring $$,$(value $k)),$(error $k='$(value $k)': must not contain $$)))
# for commands to paste: -C goes into the tree, but not the user
export CALLED_IN := $(PWD)
# for lib/cli/makeline.py, which checks the command line
export GOALS := $(MAKECMDGOALS)
# When the make that the user started ends, for whatever reason, its scripts end too. Its process number means nothing on
# another machine or in another container, so it comes with their ids.
export RUN_PID := $(or $(RUN_PID),$(shell cd /proc 2>/dev/null || :; echo \
  "$$PPID@$$(cat sys/kernel/random/boot_id 2>/dev/null)/$$(readlink self/ns/pid 2>/dev/null)"))
export PATH := $(or $(realpath .venv),$(CURDIR)/.venv)/bin:$(or $(PATH),/usr/local/bin:/usr/bin:/bin)
# `make -s` is for cron: the scripts then speak only when something happened or is wrong. A run that finds another one at
# work is neither: what it was to do is being done, so `make -s run` ends with 0 and nothing to mail. Nor is a run that
# may not download because one on another work directory of this machine does: it encodes what is here, and the first
# run of cron that finds nobody downloading does the rest; with two years in cron each would else send a mail an hour, for
# weeks. Without -s it says who is at work, and make ends with 2; who needs to know which it was calls bin/with-lock or
# bin/fetch-paipu, whose status then is 75.
QUIET := $(if $(findstring s,$(filter-out --%,$(firstword -$(MAKEFLAGS)))),--quiet)
IF_BUSY := $(if $(QUIET), --if-busy 0)
# compact changes the layout of shards only if SHARD_LAYOUT is on the command line, not if it is in config.mk
CONVERT = $(if $(filter command,$(firstword $(origin SHARD_LAYOUT))),$(SHARD_LAYOUT))
SPREAD := $(if $(filter-out local,$(DISTRIBUTE)),bin/distribute )

run: venv settings  ## do everything that is left: check, adopt, download, encode, index, status
	@bin/with-lock $(QUIET)$(IF_BUSY) --create -- bash -uo pipefail -c '\
	  settled="python3 -m lib.report.settled $(QUIET)"; PYTHONSAFEPATH= $$settled && exit; \
	  export IN_RUN=1; bin/check-first $(QUIET); odd=$$?; \
	  bin/adopt-xml $(QUIET) --all </dev/null >/dev/null || exit; \
	  status=0; ids=$$(bin/update-ids $(QUIET)$(IF_BUSY)) || status=$$?; \
	  { [ $$status = 75 ] || exec bin/fetch-paipu $(QUIET)$(IF_BUSY) --queued <"$$ids"; } | \
	    $(SPREAD)bin/encode-batch $(QUIET) --queued >/dev/null || status=$$?; \
	  bin/rebuild-index $(QUIET) & table=$$(bin/manifest-status $(QUIET)) || status=$$?; \
	  wait $$! || status=$$?; $(if $(QUIET),,echo "$$table";) \
	  [ $$odd$$status != 00 ] || PYTHONSAFEPATH= $$settled --keep <<<"$$table"; exit $$status'

check: venv settings  ## compare files and shards with the manifest; REPAIR=1 moves damaged XML files to trash/, queues lost games
	@status=0; $(SPREAD)bin/verify-xml $(QUIET) --all </dev/null 2>&1 || status=$$?; \
	  bin/verify-shards $(QUIET) 2>&1 || status=$$?; \
	  bin/rebuild-index $(QUIET) --check 2>&1 || status=$$?; exit $$status

status: venv settings  ## show games by status, shards, disk use, what is left to do, why games failed
	@bin/manifest-status --full

watch: venv settings  ## show the status every five seconds, until Ctrl-C
	@bin/manifest-status --watch 5

report: venv settings  ## write <work>/report.html: the status and the history, with plots; one file, no network needed
	@bin/make-venv report
	@bin/report $(QUIET)

export-mjai: venv settings  ## write all games as mjai events, for Mortal: <work>/mjai/<game id>.json.gz
	@bin/export-mjai $(QUIET) --all </dev/null >/dev/null

import: venv settings  ## import the logs in FROM: a folder, zip, tar, file or SQLite database; make run does the rest
	@bin/import-logs $(QUIET) >/dev/null

rebuild-index: venv settings  ## write cache/index.json again
	@bin/rebuild-index

compact: venv settings  ## merge small shards, drop stale rows and orphan shards; SHARD_LAYOUT=… converts them too
	@bin/with-lock $(QUIET) -- bin/compact-shards $(QUIET) $(addprefix --layout=,$(CONVERT))
	@bin/rebuild-index $(QUIET)

convert: CONVERT = $(LAYOUT)
convert: compact  ## rewrite all shards in LAYOUT=parquet or LAYOUT=dense

recover: venv settings  ## rebuild a lost or damaged manifest from the shards and xml/; keeps the old file
	@bin/with-lock $(QUIET) -- bin/recover-manifest
	@bin/adopt-xml $(QUIET) --all </dev/null >/dev/null
	@bin/rebuild-index

purge: venv settings  ## empty trash/, where repair and compaction move files; a log that is the only copy of its game stays
	@bin/with-lock $(QUIET) -- bin/empty-trash $(QUIET)

demo: export MAKE := $(MAKE)
demo: settings  ## show the whole pipeline on self-played games, in data/demo or WORK, no network needed; under a minute
	@bin/demo

train-demo: venv settings  ## train a small policy on the cache for three minutes, to see that it learns
	@bin/make-venv torch
	@bin/train-demo

bench: venv settings  ## measure the speed of all steps, next to scripts that do the bare minimum
	@bin/make-venv parquet
	@bin/bench

setup: venv settings  ## make .venv with the pinned packages; install jq or say how
	@echo "$$(.venv/bin/python --version) in .venv, with the packages of pyproject.toml"
	@command -v jq >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	  echo 'installing jq with apt-get, for looking into the manifest; this changes the system, not only this tree' && \
	  apt-get install -qq -y jq >/dev/null; } || \
	  echo 'jq is not installed; you need it to look into the manifest: apt install jq (or brew install jq)'

test: venv settings  ## run the tests, without the slow ones, in some minutes; TORCH=1: also those with PyTorch
	@bin/make-venv test report parquet $(if $(filter-out 0,$(TORCH)),torch)
	@.venv/bin/python -m ruff check --quiet .
	@.venv/bin/python -m pytest -n 2 --dist loadscope -m 'not slow' $(PYTEST_ARGS)

test-all: test  ## run all tests, also those with kills, pip, no-op runs and other machines
	@.venv/bin/python -m pytest -m slow $(PYTEST_ARGS)

torture: venv settings  ## kill every script and make its system calls fail, for fifteen minutes; count losses; TORTURE=long: for hours
	@bin/make-venv test parquet
	@.venv/bin/python tests/torture.py

help:  ## list the targets, and the settings with their current values
	@PYTHONSAFEPATH= python3 -m lib.cli.makeline help

venv:
	@bin/make-venv $(if $(filter parquet,$(SHARD_LAYOUT) $(LAYOUT)),parquet)
settings:
	+@PYTHONSAFEPATH= python3 -m lib.cli.makeline $(QUIET)

# if a target is misspelt, do nothing, also not for the other targets
.DEFAULT:
	@echo '$@ is not a target; to list the targets: make help' >&2; exit 2
