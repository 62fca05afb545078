"""A SLURM of two nodes on this machine: munged, slurmctld and two slurmd in a folder, without systemd and cgroups."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol")
PATIENCE_S = 60.0
NODES = ("n1", "n2")

_CONF = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldPort={controller}
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdTimeout=10
MinJobAge=3600
KillWait=2
ReturnToService=2
MpiDefault=none
SwitchType=switch/none
{nodes}
PartitionName=main Nodes={names} Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> list[str]:
    """Programs of Debian's packages slurmctld, slurmd, slurm-client and munge that are not here."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    return [program for program in PROGRAMS if shutil.which(program, path=path) is None]


class Slurm:
    """The cluster, up from `__enter__` to `__exit__`. Its folder must have a short name: sockets' names are limited."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
        self.environment["PATH"] += os.pathsep + "/usr/sbin"
        self._stop = ExitStack()
        self._nodes: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Slurm:
        self._write()
        with ExitStack() as stop:  # what came up goes down again where the rest does not come up
            self._stop = stop
            self._start("munged", "--foreground", f"--key-file={self.folder}/munge.key", *self._munge_files())
            wait_until((self.folder / "munge.socket").exists, "munged's socket")
            self._start("slurmctld", "-D")
            for node in NODES:
                self._nodes[node] = self._start("slurmd", "-D", "-N", node)
            wait_until(lambda: self.run("sinfo", "-h", "-t", "idle", "-o", "%D").strip() == "2", "two idle nodes")
            self._stop = stop.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        for node in NODES:
            self._kill_jobs(node)
        self._stop.close()

    def run(self, *command: str) -> str:
        """Return what a command of SLURM prints.

        Raises:
            AssertionError: it failed.
        """
        done = subprocess.run(command, capture_output=True, text=True, env=self.environment, check=False, timeout=60)
        assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
        return done.stdout

    def tasks(self, job: str) -> dict[str, str]:
        """State of each task of an array."""
        rows = self.run("squeue", "-h", "-r", "-t", "all", "-j", job, "-o", "%K %T").splitlines()
        return dict(row.split() for row in rows)

    def node_of(self, job: str, task: str) -> str:
        return self.run("squeue", "-h", "-t", "all", "-j", f"{job}_{task}", "-o", "%N").strip()

    def kill(self, node: str) -> None:
        """Kill a node with all that runs on it, as a power cut does."""
        self._nodes[node].kill()
        self._nodes[node].wait(PATIENCE_S)
        self._kill_jobs(node)

    def _write(self) -> None:
        for name in ("state", *(f"spool-{node}" for node in NODES)):
            (self.folder / name).mkdir()
        (self.folder / "munge.key").write_bytes(secrets.token_bytes(128))
        (self.folder / "munge.key").chmod(0o400)
        host = socket.gethostname().split(".")[0]
        controller, *ports = _free_ports(1 + len(NODES))
        nodes = "\n".join(
            f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=1 State=UNKNOWN"
            for node, port in zip(NODES, ports, strict=True)
        )
        user = pwd.getpwuid(os.getuid()).pw_name
        text = _CONF.format(
            host=host, folder=self.folder, user=user, controller=controller, nodes=nodes, names=",".join(NODES)
        )
        (self.folder / "slurm.conf").write_text(text, "utf-8")

    def _munge_files(self) -> list[str]:
        names = {"socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
        return [*(f"--{option}={self.folder}/munge.{ending}" for option, ending in names.items()), "--force"]

    def _start(self, *command: str) -> subprocess.Popen[bytes]:
        log = self._stop.enter_context(
            (self.folder / f"{command[-1] if 'slurmd' in command else command[0]}.log").open("wb")
        )
        program = shutil.which(command[0], path=self.environment["PATH"])
        assert program
        process = subprocess.Popen(
            [program, *command[1:]], env=self.environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
        self._stop.callback(_end, process)
        return process

    def _kill_jobs(self, node: str) -> None:
        """Kill what runs on a node at once: all stop first, so that none sees another die and reports it."""
        pids = processes({"SLURMD_NODENAME": node, "SLURM_CONF": self.environment["SLURM_CONF"]})
        pids = [*{_parent(pid) for pid in pids if _name(_parent(pid)) == "slurmstepd"}, *pids]
        for sign in (signal.SIGSTOP, signal.SIGKILL):
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, sign)


def wait_until(condition: Callable[[], object], name: str, seconds: float = PATIENCE_S) -> None:
    """Wait for a condition; fail after `seconds`."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds:g} s: {name}"
        time.sleep(0.2)


def processes(variables: Mapping[str, str]) -> list[int]:
    """Processes that have these environment variables."""
    expected = {f"{name}={value}".encode() for name, value in variables.items()}
    pids = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if expected <= set((folder / "environ").read_bytes().split(b"\0")):
                pids.append(int(folder.name))
    return pids


def _parent(pid: int) -> int:
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[1])
    return 0


def _name(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text("utf-8").strip()
    return ""


def _free_ports(n: int) -> list[int]:
    with ExitStack() as open_ones:
        sockets = [open_ones.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(n)]
        return [each.getsockname()[1] for each in sockets]


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(PATIENCE_S)
