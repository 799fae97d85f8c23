# Every knob with its default. Layers: this file < environment < `make KEY=value` < a script's own flag. The environment
# has REPAIR, RETRY, DEEP and OUTDATED as PAIPU_REPAIR and so on: a cluster may mean something else by the plain names.
# Scripts called directly read the same defaults from here: one `KEY ?= value  # what it is` a line.
PYTHON      ?= python3          # the interpreter that makes .venv (3.10 to 3.13)
WORK        ?= data/tenhou      # work directory: manifest, xml, cache
YEAR        ?=                  # year to download, e.g. 2024; empty: only what the manifest has queued
IDS         ?=                  # file with ids of your own to download, one a line, instead of YEAR
FROM        ?=                  # make import: the folder, archive, database or file with logs of your own
ROOMS       ?= 00a9 00e9 00a1 00e1  # table types to download: houou, four players, red fives, open tanyao
MAX_NEW     ?=                  # new downloads after which a run stops fetching; empty: no limit
DELAY       ?= 5                # seconds between requests, over all processes and runs of this machine
TIMEOUT     ?= 30               # seconds without an answer after which a request has failed
MAX_REFUSALS ?= 5               # refusals in a row (403, 404, 429, 503) after which a run stops asking
RETRY       ?=                  # 1: ask again now for all games whose download failed
TENHOU_URL  ?= https://tenhou.net  # the server; `make demo` puts its stand-in here
USER_AGENT  ?= tenhou-paipu-cache/1.0 (one request at a time; python-requests)  # how we introduce ourselves
SHARD_ROWS  ?= 65536            # rows after which a shard is closed (520 MB in the dense layout)
SHARD_LAYOUT ?= dense           # layout of new shards: dense (np.load reads it) or parquet (130 times smaller)
JUDGE       ?= 1                # games of which pymahjong plays one through as a judge: 1 each, 16 one in 16
JOBS        ?=                  # processes that encode, verify or export; empty: one for each core
DISTRIBUTE  ?= local            # where to encode and verify: local, parallel (GNU parallel, ssh) or slurm (job array)
HOSTS       ?=                  # parallel: its --sshlogin list, e.g. alpha,me@beta; they share the work directory
SBATCH      ?=                  # slurm: options for sbatch, e.g. --partition=cpu --cpus-per-task=8
PIECE       ?= 1000             # games that a machine is given at a time
REPAIR      ?=                  # 1: check and run move damaged XML files to trash/, and queue what is lost for download
DEEP        ?=                  # 1: check also hashes every array of every shard, run mends what that finds
OUTDATED    ?=                  # 1: run encodes again what an older version of the encoder made
