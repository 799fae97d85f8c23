# From Tenhou's game logs to a token cache: short recipes that chain the scripts in bin/. `make help` lists everything.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += -r

include config.mk
# make and shell read them, and would each take these for something else
ODD := $$ ' " ` \ ; & | < > ( ) { } [ ] * ? ! : % = ~ \#
$(foreach k,WORK IDS YEAR,$(if $(word 2,$(value $k))$(strip $(foreach c,$(ODD),$(findstring $c,$(value $k)))),\
  $(error $k='$(value $k)': must have no spaces and none of $(ODD))))
# config.mk's default makes a .venv where there is none; who names an interpreter wants that one
NAMED := $(if $(filter 0command 0environment,$(MAKELEVEL)$(firstword $(origin PYTHON))),$(PYTHON))
# of the shards that compact writes: only if asked for in so many words, never for config.mk's sake
CONVERT := $(if $(filter command,$(firstword $(origin SHARD_LAYOUT))),$(strip $(SHARD_LAYOUT)))
KNOBS := $(shell sed -n 's/^\([A-Z_]*\) *?=.*/\1/p' config.mk)
# what is misspelt would be swallowed; a sub-make, and one that another Makefile calls, has what is not meant for it
OTHERS := RUN_PID LAYOUT TORCH PYTEST_ARGS PARALLEL_SSH MAKEFLAGS SHELL TMPDIR http_proxy https_proxy no_proxy
ifeq ($(MAKELEVEL),0)
$(foreach v,$(filter-out $(KNOBS) $(OTHERS) -%,$(.VARIABLES)),$(if $(filter command,$(firstword $(origin $v))),\
  $(error $v is no setting: make help lists them)))
TARGETS := $(shell sed -n 's/^\([a-z-]*\):.*/\1/p' Makefile)
$(foreach t,$(filter-out $(TARGETS),$(MAKECMDGOALS)),$(if $(findstring /,$t),,\
  $(error $t is no target: make help lists them)))
$(if $(filter command,$(firstword $(origin LAYOUT))),$(if $(filter convert,$(MAKECMDGOALS)),,\
  $(error LAYOUT is for make convert: SHARD_LAYOUT is the layout of new shards)))
endif
$(foreach k,$(KNOBS),$(eval override $k := $$(strip $$($k))))
export $(KNOBS)
ifneq ($(words $(WORK)),1)
$(error WORK='': must be a path)
endif

ifneq ($(IDS),)
$(if $(wildcard $(IDS)),,$(error IDS=$(IDS): there is no such file))
endif

$(if $(filter local parallel slurm,$(DISTRIBUTE)),,$(error DISTRIBUTE=$(DISTRIBUTE): must be local, parallel or slurm))
$(if $(filter parallel,$(DISTRIBUTE)),$(if $(HOSTS),,$(error HOSTS is empty: name the machines, e.g. HOSTS=alpha,beta)))
SPREAD := $(if $(filter-out local,$(DISTRIBUTE)),bin/distribute )

export PATH := $(CURDIR)/.venv/bin:$(or $(PATH),/usr/local/bin:/usr/bin:/bin)
# `make -s` is for cron: the scripts then speak only when something happened or is wrong
QUIET := $(if $(findstring s,$(filter-out --%,$(firstword -$(MAKEFLAGS)))),--quiet)
VENV := .venv/.ready
PARQUET := $(if $(filter parquet,$(SHARD_LAYOUT) $(LAYOUT)),.venv/.parquet-ready)
version = $(shell $1 -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
ANOTHER := $(if $(NAMED),$(filter-out =$(call version,.venv/bin/python),=$(call version,$(NAMED))))
LIST := $(if $(IDS),,$(YEAR:%=$(WORK)/game_ids_%.txt))
# the scripts of a run end when the make that the user started ends, however it ends
export RUN_PID ?= $(shell echo $$PPID)
RUN_PID := $(RUN_PID)

# a recipe that has MAKE, or begins with +, is run by `make -n` too
AGAIN := $(MAKE) --no-print-directory
SHARED := $(if $(findstring n,$(filter-out --%,$(firstword -$(MAKEFLAGS)))),,+)

.NOTPARALLEL:
.PHONY: run steps check-first adopt encode settings check status watch report rebuild-index compact recover demo bench setup
.PHONY: convert train-demo test torture help
.DEFAULT_GOAL := help

run: $(VENV) $(PARQUET) settings  ## check, adopt, download, encode, index, status: everything that is left to do
	$(SHARED)@bin/with-lock --create -- $(AGAIN) steps

# before anything is done: what cannot be meant is told at once, not when it is needed
settings: $(VENV)
	@PYTHONSAFEPATH= python3 -m lib.cli.settings

steps: check-first adopt encode
check-first:
	@{ bin/verify-xml $(QUIET) --trust </dev/null 2>&1 | grep -Ev '^(unknown|foreign)' || true; } & \
	  found="$$(bin/verify-shards $(QUIET) 2>&1 || true)"; wait; [ -z "$$found" ] || echo "$$found"
adopt:
	@bin/adopt-xml $(QUIET) </dev/null >/dev/null
encode:
	$(SHARED)@status=0; ids=$(or $(IDS),$(LIST),/dev/null); \
	$(if $(LIST),$(AGAIN) $(LIST) || status=$$?; [ -e $(LIST) ] || ids=/dev/null;) \
	bin/fetch-paipu $(QUIET) --queued <"$$ids" | \
	  $(SPREAD)bin/encode-batch $(QUIET) --queued >/dev/null || status=$$?; \
	bin/rebuild-index $(QUIET) & table="$$($(if $(QUIET),:,bin/manifest-status))" || status=$$?; \
	wait $$! || status=$$?; [ -z "$$table" ] || echo "$$table"; \
	$(if $(YEAR)$(IDS),,[[ "$$table" != 'games : 0'* ]] || \
	  echo 'no games yet: put logs (<game id>.txt) into $(WORK)/xml/, or give YEAR= or IDS=' >&2;) \
	exit $$status

ifneq ($(YEAR),)
$(WORK)/raw/scraw$(YEAR).zip:
	@bin/fetch-index $(QUIET)
$(LIST): $(WORK)/raw/sources$(YEAR)
	@bin/extract-ids $(QUIET) --output $@
# what the list is made of: a file put there by hand may be older than the list, and so its time alone says nothing
$(WORK)/raw/sources$(YEAR): $(WORK)/raw/scraw$(YEAR).zip FORCE
	@now="$$(echo "$$ROOMS"; cd $(@D); stat -c '%n %s %y %i' scraw$(YEAR).zip scc$(YEAR)* 2>/dev/null || :)"; \
	  [ "$$(cat $@ 2>/dev/null)" = "$$now" ] || { rm -f $(LIST); echo "$$now" >$@; }
endif
FORCE:

check: $(VENV) settings  ## hold files and shards against the manifest; REPAIR=1 deletes damaged XML files and queues their games
	@status=0; $(SPREAD)bin/verify-xml $(QUIET) </dev/null 2>&1 || status=$$?; \
	  bin/verify-shards $(QUIET) 2>&1 || status=$$?; \
	  bin/rebuild-index $(if $(filter 1,$(REPAIR)),$(QUIET),--check) 2>&1 || status=$$?; exit $$status

status: $(VENV) settings  ## games by their state, shards, disk use, what is left to do, why games failed
	@bin/manifest-status --full

watch: $(VENV) settings  ## the status again and again, until Ctrl-C
	@bin/manifest-status --watch 5

report: .venv/.report-ready $(PARQUET) settings  ## write <work>/report.html: how it stands and how it went, with plots; one file, no network
	@bin/report

rebuild-index: $(VENV) settings  ## write cache/index.json anew
	@bin/rebuild-index

demo:  ## the whole pipeline on self-played games in data/demo, no network needed; under a minute
	@bin/demo

bench: $(VENV) .venv/.parquet-ready  ## measure it all, against something that does the bare minimum
	@bin/bench

compact: $(VENV) $(PARQUET) settings  ## merge small shards, drop stale rows and orphan shards; SHARD_LAYOUT=…: convert too
	@bin/with-lock -- bin/compact-shards $(QUIET) $(addprefix --layout=,$(CONVERT))
	@bin/rebuild-index $(QUIET)

convert: CONVERT = $(or $(LAYOUT),$(error LAYOUT is missing: make convert LAYOUT=parquet, or LAYOUT=dense))
convert: compact  ## write all shards anew in LAYOUT=parquet or LAYOUT=dense

recover: $(VENV) settings  ## rebuild a lost or broken manifest from the shards and xml/; the old file is kept
	@bin/with-lock -- bin/recover-manifest
	@bin/adopt-xml $(QUIET) </dev/null >/dev/null
	@bin/rebuild-index

setup: $(VENV) $(PARQUET)  ## make .venv with the pinned packages; see to jq
	@echo "$$(.venv/bin/python --version) in .venv, with the packages of requirements.txt"
	@command -v jq >/dev/null || { test "$$(id -u)" = 0 && apt-get install -qq -y jq >/dev/null; } \
	  || echo 'jq is missing: install it (apt install jq, brew install jq) to look into the manifest'

$(VENV): requirements.txt $(if $(ANOTHER),FORCE)
	@$(if $(ANOTHER),,[ -e $@ ] && .venv/bin/python -m pip --version >/dev/null 2>&1 ||) { \
	  v='$(call version,$(PYTHON))'; case $$v in 3.1[0-3]) why= ;; '') why='PYTHON=$(PYTHON) does not run' ;; \
	    2.* | 3.?) why="Python $$v is too old" ;; *) why="Python $$v is too new" ;; esac; \
	  [ -z "$$why" ] || { echo "setup: $$why: 3.10 to 3.13 is needed, e.g. make setup PYTHON=python3.12" >&2; exit 2; }; \
	  rm -rf .venv; $(PYTHON) -m venv .venv; }
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@touch $@

.venv/.test-ready: tests/requirements.txt requirements-parquet.txt $(VENV)
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check -r tests/requirements.txt
	@touch $@ .venv/.parquet-ready

.venv/.parquet-ready: requirements-parquet.txt $(VENV)
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-parquet.txt
	@touch $@

.venv/.report-ready: requirements-report.txt $(VENV)
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-report.txt
	@touch $@

test: .venv/.test-ready .venv/.report-ready setup  ## run the tests; TORCH=1: those with PyTorch too
	@$(if $(filter-out 0,$(TORCH)),.venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-torch.txt)
	@.venv/bin/python -m ruff check --quiet .
	@.venv/bin/python -m pytest $(PYTEST_ARGS)

train-demo: .venv/.torch-ready $(PARQUET) settings  ## train a small policy on the cache for three minutes: is it sound?
	@bin/train-demo

.venv/.torch-ready: requirements-torch.txt $(VENV)
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-torch.txt
	@touch $@

torture: .venv/.test-ready  ## kill and fail every writer hundreds of times, some ten minutes, and count what is lost
	@.venv/bin/python tests/torture.py

help:  ## list targets, and variables with their current values
	@echo 'make TARGET [KEY=value …]'; echo; echo targets:
	@sed -n 's/^\([a-z-]*\):.*  ## \(.*\)/  \1\t\2/p' Makefile | expand -t 18
	@echo; echo 'variables: their values as they are now, and what they are (config.mk has the defaults):'
	@for k in $(KNOBS); do v=$${!k:--}; \
	  printf '  %-15s %-14s ' "$$k" "$$v"; [ $${#v} -le 14 ] || printf '\n  %30s ' ''; \
	  sed -n "s/^$$k *?=.*# //p" config.mk; done
