"""Helpers of the tests of DISTRIBUTE: two machines on loopback addresses, by sshd or as nodes of a Slurm of our own."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

DAEMONS = f"{os.environ['PATH']}:/usr/sbin"  # where they are
_SSHD_CONFIG = """\
ListenAddress {address}
Port {port}
HostKey {here}/host
AuthorizedKeysFile {here}/user.pub
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
"""
_SSH_CONFIG = """\
Host alpha
  HostName 127.0.0.2
  Port {alpha}
Host beta
  HostName 127.0.0.3
  Port {beta}
Host *
  IdentityFile {here}/user
  IdentitiesOnly yes
  BatchMode yes
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  LogLevel ERROR
"""
_SLURM_CONF = """\
ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={ctld}
SlurmUser=root
AuthInfo=socket={here}/munge,cred_expire=5
StateSaveLocation={here}/state
SlurmdSpoolDir={here}/%n
SlurmctldPidFile={here}/slurmctld.pid
SlurmdPidFile={here}/%n.pid
SlurmctldLogFile={here}/slurmctld.log
SlurmdLogFile={here}/%n.log
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=bf_interval=1,sched_interval=1
NodeName=n[1-2] NodeHostname=localhost NodeAddr=127.0.0.[2-3] Port=[{n1},{n2}] CPUs=1
PartitionName=cpu Nodes=n[1-2] Default=YES
"""


def _ports(n):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(n)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _start(log, name, *args):
    command = [shutil.which(name, path=DAEMONS), *map(str, args)]
    with open(log, "wb") as out:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)


def until(true, seconds=20, pause=0.01):
    """Wait until `true()` is, and return what it gives; fails after so long."""
    end = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(pause)
    return found


def below(*roots):
    """The process numbers of `roots` and of all that they started."""
    children = {}
    for entry in os.listdir("/proc"):
        if entry.isdecimal():
            with contextlib.suppress(OSError), open(f"/proc/{entry}/stat") as f:
                children.setdefault(int(f.read().rpartition(")")[2].split()[1]), []).append(int(entry))
    found = [*roots]
    for pid in found:
        found += children.get(pid, [])
    return found


def kill(pids):
    """SIGKILL for all of them."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def two_sshd(here):
    """The hosts alpha and beta; yields (a PARALLEL_SSH that knows them, the sshd of each)."""
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", here / name], check=True)
    if os.getuid() == 0:
        os.makedirs("/run/sshd", exist_ok=True)  # where a system's own sshd expects it
    alpha, beta = _ports(2)
    (here / "config").write_text(_SSH_CONFIG.format(here=here, alpha=alpha, beta=beta))
    daemons = []
    try:
        for address, port in (("127.0.0.2", alpha), ("127.0.0.3", beta)):
            (here / address).write_text(_SSHD_CONFIG.format(here=here, address=address, port=port))
            daemons.append(_start(here / f"{address}.log", "sshd", "-D", "-e", "-f", here / address))
        for name in ("alpha", "beta"):
            until(lambda name=name: not subprocess.run(["ssh", "-F", here / "config", name, "true"]).returncode)
        yield f"ssh -F {here}/config", daemons
    finally:
        for daemon in daemons:
            kill(below(daemon.pid))
            daemon.wait()


@contextlib.contextmanager
def slurm(here):
    """A Slurm with the nodes n1 and n2; yields (the path of its slurm.conf, the slurmd of each)."""
    ctld, n1, n2 = _ports(3)
    conf = here / "slurm.conf"
    conf.write_text(_SLURM_CONF.format(here=here, ctld=ctld, n1=n1, n2=n2))
    for name in ("state", "n1", "n2"):
        (here / name).mkdir()
    (here / "key").write_bytes(os.urandom(1024))
    (here / "key").chmod(0o600)
    munge = [f"--{what}={here}/munge{end}" for what, end in (
        ("socket", ""), ("log-file", ".log"), ("pid-file", ".pid"), ("seed-file", ".seed"))]
    daemons = []
    try:
        daemons.append(_start(here / "munge.out", "munged", "-F", "--force", f"--key-file={here}/key", *munge))
        until((here / "munge").exists)
        daemons.append(_start(here / "ctld.out", "slurmctld", "-D", "-i", "-f", conf))
        nodes = [_start(here / f"{node}.out", "slurmd", "-D", "-f", conf, "-N", node) for node in ("n1", "n2")]
        daemons += nodes
        until(lambda: says(conf, "sinfo", "-h", "-t", "idle", "-o", "%D") == "2")
        yield conf, nodes
    finally:
        kill([*steps(conf, "n1"), *steps(conf, "n2")])
        for daemon in reversed(daemons):
            daemon.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                daemon.wait(5)
            kill(below(daemon.pid))
            daemon.wait()


def says(conf, *command):
    """What a command of Slurm prints."""
    env = os.environ | {"SLURM_CONF": str(conf)}
    return subprocess.run(command, env=env, capture_output=True, text=True).stdout.strip()


def steps(conf, node):
    """The process numbers of what Slurm runs on a node, with the slurmstepd above it."""
    found = []
    for entry in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            said = Path(f"/proc/{entry}/environ").read_bytes().split(b"\0")
            if f"SLURMD_NODENAME={node}".encode() in said and f"SLURM_CONF={conf}".encode() in said:
                found.append(int(entry))
                parent = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[1]
                if b"slurmstepd" in Path(f"/proc/{parent}/cmdline").read_bytes():
                    found.insert(0, int(parent))  # killed after its script it might tell that the script has failed
    return found


def node_is_down(conf, node):
    """What Slurm finds out by itself after its SlurmdTimeout."""
    says(conf, "scontrol", "update", f"nodename={node}", "state=down", "reason=killed")
