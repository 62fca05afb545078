"""llama.cpp's own HTTP server, from the wheel of xllamacpp: `python llama_server.py FOLDER PORT`."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import xllamacpp


def main(folder: Path, port: int) -> None:
    """Serve the two files of `gguf_export` until the process is ended."""
    settings = xllamacpp.CommonParams()
    settings.model.path = str(folder / "text.gguf")
    settings.mmproj.path = str(folder / "vision.gguf")
    settings.hostnames = ["127.0.0.1"]
    settings.port = port
    settings.n_ctx, settings.n_parallel = 2048, 4
    settings.cpuparams.n_threads = 1
    settings.warmup = False
    settings.use_jinja = True
    settings.model_alias = {"tiny"}  # else /v1/models and every reply name the file's path
    server = xllamacpp.Server(settings)
    print("listening at", server.listening_address, flush=True)
    signal.pause()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
