"""Ceph's object gateway on this machine, a real S3: a monitor, an OSD in memory and radosgw in a folder."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
import uuid
from contextlib import ExitStack, closing, suppress
from pathlib import Path

PROGRAMS = ("ceph-mon", "ceph-osd", "radosgw", "monmaptool", "ceph", "radosgw-admin")
PATIENCE_S = 180.0

_CONF = """
[global]
fsid = {fsid}
mon_initial_members = a
mon_host = v1:127.0.0.1:{port}
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_num = 4
osd_crush_chooseleaf_type = 0
osd_objectstore = memstore
memstore_device_bytes = 1073741824
mon_allow_pool_size_one = true
mon_max_pg_per_osd = 1000
run_dir = {folder}
admin_socket = {folder}/$name.asok
log_file = {folder}/$name.log
pid_file = {folder}/$name.pid
ms_bind_ipv6 = false
public_addr = 127.0.0.1
cluster_addr = 127.0.0.1
[mon.a]
mon_data = {folder}/mon
[osd.0]
osd_data = {folder}/osd
"""


def missing() -> list[str]:
    """Programs of Debian's packages ceph-mon, ceph-osd, ceph-common and radosgw that are not here."""
    return [program for program in PROGRAMS if shutil.which(program) is None]


class Ceph:
    """A cluster in memory. Its folder must have a short name: sockets' names are limited."""

    def __init__(self, folder: Path, access_key: str, secret_key: str) -> None:
        self._folder = folder
        with ExitStack() as stop:  # what came up goes down again where the rest does not come up
            self._stop = stop
            self._start_cluster()
            user = ["--uid", "test", "--display-name", "test", "--access-key", access_key, "--secret-key", secret_key]
            self._run("radosgw-admin", "user", "create", *user)
            self._stop = stop.pop_all()

    def gateway(self, port: int) -> Gateway:
        """Start a gateway that speaks S3."""
        frontend = f"--rgw_frontends=beast endpoint=127.0.0.1:{port}"
        gateway = Gateway(port, self._start("radosgw", "-n", "client.rgw", frontend))
        gateway.wait()
        return gateway

    def remove_bucket(self, name: str) -> None:
        self._run("radosgw-admin", "bucket", "rm", f"--bucket={name}", "--purge-objects")

    def stop(self) -> None:
        self._stop.close()

    def _start_cluster(self) -> None:
        folder, fsid = self._folder, str(uuid.uuid4())
        for name in ("mon", "osd"):
            (folder / name).mkdir()
        with closing(socket.create_server(("127.0.0.1", 0))) as free:
            port = free.getsockname()[1]
        (folder / "ceph.conf").write_text(_CONF.format(fsid=fsid, port=port, folder=folder), "utf-8")
        address = f"[v1:127.0.0.1:{port}]"
        self._run("monmaptool", "--create", "--addv", "a", address, "--fsid", fsid, str(folder / "monmap"))
        self._run("ceph-mon", "--mkfs", "-i", "a", "--monmap", str(folder / "monmap"))
        self._start("ceph-mon", "-i", "a")
        self._run("ceph", "--connect-timeout", "60", "osd", "create")
        self._run("ceph-osd", "-i", "0", "--mkfs")
        self._start("ceph-osd", "-i", "0")

    def _run(self, program: str, *arguments: str) -> None:
        command = [program, "-c", str(self._folder / "ceph.conf"), *arguments]
        if program == "monmaptool":
            command = [program, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
        assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"

    def _start(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        log = self._stop.enter_context((self._folder / f"{program}.out").open("wb"))
        command = [program, "-c", str(self._folder / "ceph.conf"), "-f", *arguments]
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env={**os.environ})
        self._stop.callback(_end, process)
        return process


class Gateway:
    """A process that speaks S3 at a port."""

    def __init__(self, port: int, process: subprocess.Popen[bytes]) -> None:
        self.port = port
        self._process = process

    def stop(self) -> None:
        _end(self._process)

    def wait(self) -> None:
        """Wait until it answers."""
        end = time.monotonic() + PATIENCE_S
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            assert self._process.poll() is None, "radosgw has ended"
            assert time.monotonic() < end, "radosgw does not answer"
            time.sleep(0.2)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()  # what it holds is of no use to anybody
    process.wait(PATIENCE_S)
