"""A process that has imported lmms-eval, torch and this package, and forks for each program that a test starts.

A fresh interpreter takes ten CPU seconds for these imports, a fork a tenth of one. conftest.py starts the server and
ends it with the test run; `forked.py` is the interpreter that tests call, as they would call `sys.executable`. The
imports are made at the first call. A test of imports, of start-up, or of another build of the package needs a real
process.

    python tests/fork_server.py NUMBER-OF-A-LISTENING-SOCKET
"""

from __future__ import annotations

import array
import atexit
import gc
import json
import os
import runpy
import select
import signal
import socket
import struct
import sys
import threading
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from killing import progress_locks_apart
from once import SHARED, leave_out_unused

READ_AT_IMPORT = ("HF_", "TRANSFORMERS_", "OMP_", "MKL_", "TOKENIZERS_", "PYTHONHASHSEED")
"""Beginnings of the names of variables that libraries read as they are imported: a program cannot have others."""

PRELOADED = (
    "lmms_eval.__main__",
    "lmms_eval.evaluator",
    "lmms_eval.models.chat",
    "hedge_tasks.cli",
    "hedge_tasks.lmms.task",
    "hedge_tasks.lmms.filters",
    "hedge_tasks.models.hedge_tiny",
    "hedge_tasks.models.hedge_openai",
    "hedge_tasks.perturb.image",
    "albumentations",
    "sentence_transformers",
    "sklearn.metrics",
    "torch.distributed.run",
    "matplotlib.figure",
    "pandas",
)


class Server:
    """Accepts calls, one connection a program, and says on it the process id and, in the end, the status."""

    def __init__(self, listening: int) -> None:
        self._listening = socket.socket(fileno=listening)
        self._wake, wake = socket.socketpair()
        wake.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        self._waking = wake
        self._calls: dict[int, socket.socket] = {}
        self._started_by = os.getppid()
        self._ready = False

    def serve(self) -> None:
        """Serve until the test run has ended."""
        while os.getppid() == self._started_by:
            waiting: list[Any] = [self._listening, self._wake, *self._calls.values()]
            for ready in select.select(waiting, [], [], 5.0)[0]:
                if ready is self._wake:
                    self._wake.recv(4096)
                    self._reap()
                elif ready is self._listening:
                    self._accept(self._listening.accept()[0])
                else:
                    self._hung_up(ready)
        for process in self._calls:
            os.kill(process, signal.SIGKILL)

    def _accept(self, call: socket.socket) -> None:
        if not self._ready:
            preload()
            self._ready = True
        request, handles = receive(call)
        process = os.fork()
        if not process:
            self._close()
            call.close()
            become(request, handles)
        for handle in handles:
            os.close(handle)
        call.sendall(struct.pack("i", process))
        self._calls[process] = call

    def _close(self) -> None:
        """In a new process: none of this is its own."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for each in (self._listening, self._wake, self._waking, *self._calls.values()):
            each.close()

    def _reap(self) -> None:
        for process in list(self._calls):
            found, status = os.waitpid(process, os.WNOHANG)
            if found:
                call = self._calls.pop(process)
                try:
                    call.sendall(struct.pack("i", os.waitstatus_to_exitcode(status)))
                except BrokenPipeError:
                    pass  # whoever called has been killed
                finally:
                    call.close()

    def _hung_up(self, call: socket.socket) -> None:
        """Whoever called has been killed, and so is the program."""
        for process, each in self._calls.items():
            if each is call:
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)
                del self._calls[process]
                call.close()
                return


AFTER_ENTRY_POINT = "after_entry_point"
"""File in the folder of the test run with the names of the modules that the entry point loads, one a line."""


def preload() -> None:
    """Import what programs of the tests import. There must be no thread afterwards, or a fork could hang."""
    leave_out_unused()
    __import__("lmms_eval.models")
    __import__("hedge_tasks.lmms.plugin")
    Path(os.environ[SHARED], AFTER_ENTRY_POINT).write_text("\n".join(sys.modules))
    import evaluation
    from loguru import logger

    evaluation.prepare()
    for name in PRELOADED:
        __import__(name)
    progress_locks_apart()
    logger.remove()  # lmms-eval has put a sink of its own there
    logger.add(sys.stderr)
    gc.collect()
    gc.freeze()
    threads = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
    assert len(threads) == 1, f"threads before a fork: {threads}"


def receive(call: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Return what is to be run, and the file descriptors of its input, output and errors."""
    handles = array.array("i")
    size = handles.itemsize * 3
    first, extra, _, _ = call.recvmsg(4, socket.CMSG_SPACE(size))
    for _, _, data in extra:
        handles.frombytes(data[:size])
    length, text = struct.unpack("I", first)[0], b""
    while len(text) < length:
        text += call.recv(length - len(text))
    return json.loads(text), list(handles)


def become(request: dict[str, Any], handles: list[int]) -> None:
    """Be the program: its working folder, environment, arguments and streams; then end with its status."""
    status = 1
    try:
        for number, handle in enumerate(handles):
            os.dup2(handle, number)
            os.close(handle)
        os.chdir(request["folder"])
        take(request["environment"])
        status = run(request["arguments"])
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        if not isinstance(ended.code, int | None):
            sys.stderr.write(f"{ended.code}\n")
    except BaseException:
        traceback.print_exc()
    try:  # as an interpreter ends
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status & 0xFF)


def take(environment: dict[str, str]) -> None:
    """Take the environment of the caller.

    Raises:
        RuntimeError: it has another value of what was read as libraries were imported.
    """
    names = {name for name in {*environment, *os.environ} if name.startswith(READ_AT_IMPORT)}
    if other := sorted(name for name in names if environment.get(name) != os.environ.get(name)):
        raise RuntimeError(f"{', '.join(other)}: read at import, so this needs a real process (sys.executable)")
    os.environ.clear()
    os.environ.update(environment)


def run(arguments: list[str]) -> int:
    """Do what `python ARGUMENTS` does; modules `-m`, programs `-c` and files."""
    import numpy as np

    np.random.seed()  # as in every new process; `random` sees to it by itself
    if arguments[0] == "-u":
        arguments = arguments[1:]
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    kind, sys.argv = arguments[0], arguments[1:] if arguments[0] in ("-m", "-c") else arguments
    first = {"-m": os.getcwd(), "-c": ""}.get(kind, str(Path(kind).resolve().parent))
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    here = str(Path(__file__).parent)
    sys.path[:] = [first, *paths, *(p for p in sys.path if p != here and p not in paths)]
    if kind == "-m":
        for name in (sys.argv[0], f"{sys.argv[0]}.__main__"):
            if not hasattr(sys.modules.get(name), "__path__"):
                sys.modules.pop(name, None)
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        main = sys.modules["__main__"] = ModuleType("__main__")
        program, sys.argv[0] = sys.argv[0], "-c"
        exec(compile(program, "<string>", "exec"), main.__dict__)
    else:
        runpy.run_path(kind, run_name="__main__")
    return 0


if __name__ == "__main__":
    Server(int(sys.argv[1])).serve()
