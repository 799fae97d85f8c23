# All settings with their defaults. The environment overrides this file, `make KEY=value` overrides both, and a script's
# option overrides all three.
# In the environment REPAIR, RETRY, DEEP and OUTDATED are called PAIPU_REPAIR and so on, because a cluster may use the
# plain names for something else.
# Scripts that you call directly read this file too; so each setting is one line: KEY ?= value  # what it is
# (with = in place of ?= make does not let the environment override it).
PYTHON      ?= python3          # the Python that makes .venv (3.10 to 3.13)
WORK        ?= data/tenhou      # work directory: manifest, xml, cache
YEAR        ?=                  # year to download, e.g. 2024; empty: only what is queued in the manifest
IDS         ?=                  # file with game ids to download, one per line, instead of YEAR
FROM        ?=                  # make import: the folder, archive, database or file with your logs
ROOMS       ?= 00a9 00e9 00a1 00e1  # table types to download: houou, four players, red fives, open tanyao
MAX_NEW     ?=                  # a run stops downloading after this many new games; empty: no limit
DELAY       ?= 5                # seconds between requests, for all processes and runs of this machine
TIMEOUT     ?= 30               # a request fails after this many seconds without an answer
MAX_REFUSALS ?= 5               # a run stops downloading after this many refusals in a row (403, 404, 429, 503)
RETRY       ?=                  # 1: try all failed downloads again now
TENHOU_URL  ?= https://tenhou.net  # the server; `make demo` uses one of its own
USER_AGENT  ?= tenhou-paipu-cache/1.0 (one request at a time; python-requests)  # the name that we give to the server
SHARD_ROWS  ?= 65536            # a shard is closed after this many rows (520 MB in the dense layout)
SHARD_LAYOUT ?= dense           # layout of new shards: dense (for np.load) or parquet (130 times smaller)
JUDGE       ?= 1                # pymahjong checks one game in every N: 1 for all games, 16 for one in 16
JOBS        ?=                  # processes that encode, verify or export; empty: one for each core
DISTRIBUTE  ?= local            # where to encode and verify: local, parallel (GNU parallel over ssh) or slurm (a job array)
HOSTS       ?=                  # parallel: the machines, e.g. alpha,me@beta; they must share the work directory
SBATCH      ?=                  # slurm: options for sbatch, e.g. --partition=cpu --cpus-per-task=8
PIECE       ?= 1000             # parallel, slurm: games that a machine gets at a time
REPAIR      ?=                  # 1: check and run move damaged XML files to trash/ and queue lost games for download
DEEP        ?=                  # 1: check also hashes every array of every shard; run encodes damaged ones again
OUTDATED    ?=                  # 1: run encodes again the games that an older encoder made
