"""llama.cpp's own HTTP server, from the wheel of xllamacpp: `python llama_server.py FOLDER PORT [TOP_K]`."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import xllamacpp


def main(folder: Path, port: int, top_k: int | None = None) -> None:
    """Serve the two files of `gguf_export` until the process is ended.

    Args:
        top_k: in place of llama.cpp's own default, as `llama-server --top-k`.
    """
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
    if top_k is not None:
        settings.sampling.top_k = top_k
    server = xllamacpp.Server(settings)
    print("listening at", server.listening_address, flush=True)
    signal.pause()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
