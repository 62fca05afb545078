"""A whole run of ten thousand documents, one of which the server refuses for good.

    python benchmarks/large_run.py [--documents 10000] [--n 2] [--n-noisy 1] [--concurrent 16] [--folder .]

lmms-eval asks a scripted server on this machine through `hedge_openai`, with `max_failed=1`. The server has no model in
it, so what is measured is everything else: lmms-eval, the requests, the pictures, the store, judge, scores, run file.
Prints the table, what `hedge health` says, seconds and the largest memory of the evaluation.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

TASK = "large_run"
PLACES = ("upper left", "upper right", "lower left", "lower right")
SIDE = 8
"""Pixels of the pictures: what a larger one costs is no matter of how many documents there are."""

_YAML = """\
include: {template}
task: {task}
dataset_path: own/large
test_split: test
filter_list:
  - name: exact
    filter:
      - {{function: hedge_cluster, backend: exact}}
      - {{function: hedge_score}}
hedge: {{prompt: plain/question, question: question, answer: answer, images: [image], id: id, judge: rule}}
metadata: {{version: 1.0}}
"""


def prepare(folder: Path, documents: int) -> tuple[Path, Path]:
    """Write the questions and their task.

    Returns:
        Folder of the task, and the one for HEDGE_DATA_DIR.
    """
    import numpy as np
    from datasets import Dataset, Features, Image, Value
    from PIL import Image as Pictures

    from hedge_tasks.lmms.catalogue import task_folder

    dice = np.random.default_rng(0)
    rows: dict[str, list[Any]] = {"id": [], "question": [], "answer": [], "image": []}
    for i in range(documents):
        content = io.BytesIO()
        Pictures.fromarray(dice.integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)).save(content, "PNG")
        rows["id"].append(f"q{i}")
        rows["question"].append(question(i))
        rows["answer"].append(PLACES[i % len(PLACES)])
        rows["image"].append({"bytes": content.getvalue(), "path": None})
    texts = {name: Value("string") for name in ("id", "question", "answer")}
    data, tasks = folder / "data" / "own__large", folder / "tasks" / TASK
    for made in (data, tasks):
        made.mkdir(parents=True)
    Dataset.from_dict(rows, Features({**texts, "image": Image()})).to_parquet(data / "test.parquet")
    template = task_folder() / "_hedge_template_yaml"
    (tasks / f"{TASK}.yaml").write_text(_YAML.format(template=template, task=TASK), "utf-8")
    return tasks.parent, data.parent


def question(number: int) -> str:
    return f"Where is the lesion in picture {number}?"


def answer(body: dict[str, Any], refused: int) -> dict[str, Any] | None:
    """A chat completion to a request; None for the document that the server refuses.

    Every question has an uncertainty of its own, which decides how often the answer is another place than the right
    one; so the entropies tell something about the labels.
    """
    parts = body["messages"][-1]["content"]
    text = parts if isinstance(parts, str) else " ".join(part.get("text", "") for part in parts)
    number = int(re.search(r"picture (\d+)", text)[1])  # type: ignore[index]
    if number == refused:
        return None
    dice, own = random.Random(body.get("seed")), random.Random(number)
    right, sure = PLACES[number % len(PLACES)], 0.25 + 0.75 * own.random()
    weights = [sure if place == right else (1 - sure) / 3 for place in PLACES]
    weights = [weight ** (1 / max(body["temperature"], 0.01)) for weight in weights]
    said = dice.choices(PLACES, weights)[0]
    logprob = max(sure if said == right else (1 - sure) / 3, 1e-9)
    token = {"token": said, "bytes": list(said.encode()), "logprob": math.log(logprob)}
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": said}}
    choice["logprobs"] = {"content": [token]}
    return {"id": "1", "object": "chat.completion", "created": 0, "model": body["model"], "choices": [choice]}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    refused = -1

    def do_GET(self) -> None:
        self._send(404, {"error": {"message": "no such address"}})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        reply = answer(body, self.refused)
        refusal = {"error": {"message": "this picture cannot be read"}}
        self._send(*((400, refusal) if reply is None else (200, reply)))

    def _send(self, status: int, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        head = f"HTTP/1.1 {status} .\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        self.wfile.write(head.encode() + content)  # at once, or the second part waits for an acknowledgement

    def log_message(self, *arguments: Any) -> None:
        pass


class _Server(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True


def serve(refused: int) -> None:
    """Serve until the process is ended; the first line of the output is the port."""
    _Handler.refused = refused
    server = _Server(("127.0.0.1", 0), _Handler)
    print(server.server_port, flush=True)
    server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--n", type=int, default=2)
    parser.add_argument("--n-noisy", type=int, default=1)
    parser.add_argument("--concurrent", type=int, default=16)
    parser.add_argument("--folder", type=Path, help="where everything is made (default: the temporary folder)")
    parser.add_argument("--serve", type=int, metavar="REFUSED", help="be the server that refuses this document")
    options = parser.parse_args()
    if options.serve is not None:
        serve(options.serve)
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        tasks, data = prepare(Path(folder), options.documents)
        server = subprocess.Popen(
            [sys.executable, __file__, "--serve", str(options.documents // 2)], stdout=subprocess.PIPE, text=True
        )
        try:
            assert server.stdout is not None
            url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
            evaluate(Path(folder), tasks, data, url, options)
        finally:
            server.kill()
            server.wait()


def evaluate(folder: Path, tasks: Path, data: Path, url: str, options: argparse.Namespace) -> None:
    """Run lmms-eval, and say what came of it."""
    settings = f"n={options.n},n_noisy={options.n_noisy},max_failed=1"
    command = [
        *(sys.executable, "-m", "lmms_eval", "--model", "hedge_openai", "--tasks", TASK, "--include_path", str(tasks)),
        *("--model_args", f"model=scripted,base_url={url},num_concurrent={options.concurrent}"),
        *("--gen_kwargs", settings, "--output_path", str(folder / "out"), "--log_samples"),
    ]
    environment = {**os.environ, "HEDGE_DATA_DIR": str(data), "HF_HUB_OFFLINE": "1"}
    start = time.monotonic()
    with (folder / "log").open("w") as log:
        done = subprocess.run(command, env=environment, stdout=log, stderr=subprocess.STDOUT, check=False)
    seconds, used = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    said = (folder / "log").read_text("utf-8", "replace").splitlines()
    if done.returncode or not list((folder / "out").rglob("*_results.json")):
        raise SystemExit("\n".join(said[-30:]))
    print("\n".join(line for line in said if line.startswith("|") or "left out" in line))
    subprocess.run([sys.executable, "-m", "hedge_tasks.cli", "health", str(folder / "out")], check=False)
    draws = options.documents * (1 + options.n + options.n_noisy)
    size = sum(file.stat().st_size for file in (folder / "out" / "hedge_answers").iterdir())
    print(
        f"{options.documents:,} documents, {draws:,} draws: {seconds:.0f} s, {used.ru_utime + used.ru_stime:.0f} s of "
        f"CPU time, {used.ru_maxrss / 1e3:.0f} MB at most, store {size / 1e6:.1f} MB"
    )


if __name__ == "__main__":
    main()
