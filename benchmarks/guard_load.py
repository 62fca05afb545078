"""`hedge serve` under load: what a verdict costs in time, whether anything is lost, and whether its memory grows.

    python benchmarks/guard_load.py                                          # in front of a scripted server
    python benchmarks/guard_load.py --upstream http://localhost:8000/v1 --model NAME

First plain requests to the model's server, then as many questions through the proxy, so many at once each time. The
policy is made up (RadFlag of 10 draws under exact matching, at most 3 may disagree): what it promises is no subject
here. The scripted server takes `--latency` seconds for each answer, whatever is asked of it meanwhile, as a batching
engine with room does; every fifth of its questions is an uncertain one.
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from hedge_tasks.guard.policy import Policy, Promise, save_policy
from hedge_tasks.sampling.plan import SamplingPlan
from hedge_tasks.statistics.risk_control import binomial_p_value

N = 10
BLOCKS = 4
"""Parts of the load, after each of which the proxy's memory is looked at."""


@dataclass(frozen=True)
class Reply:
    """One answer to a request."""

    status: int
    seconds: float
    hedge: dict[str, Any]


def policy_file(folder: Path, model: str) -> Path:
    sampling = SamplingPlan(n=N, n_noisy=0, max_new_tokens=16).settings()
    prompt = {"name": "plain", "user": "<image>{question}", "system": None}
    circumstances = {"model": f"{model} (hedge_openai)", "sampling": sampling, "prompt": prompt}
    clustering = {"with_question": False, "backend": "exact", "alpha": 1.0}
    promise = Promise(
        risk=0.1,
        confidence=0.9,
        accepted=0.8,
        accepted_interval=(0.7, 0.9),
        n=500,
        n_groups=None,
        n_accepted=400,
        n_wrong=20,
        p_value=binomial_p_value(400, 20, 0.1),
        level=0.02,
        n_detectors=1,
    )
    about = {"clustering": clustering, "promise": promise, "circumstances": circumstances, "calibration": {}}
    save_policy(Policy(detector="radflag", threshold=0.3, **about), folder / "policy.json")
    return folder / "policy.json"


@contextmanager
def scripted(latency: float) -> Iterator[tuple[str, Counter[str]]]:
    """A server that takes its time; yields its address and what it was asked."""
    asked: Counter[str] = Counter()
    counting = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._send({"object": "list", "data": [{"id": "scripted", "object": "model"}]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            time.sleep(latency)
            hot = body["temperature"] > 0.5
            with counting:
                asked["draws" if hot else "baselines"] += 1
            number = int(body["messages"][-1]["content"][-1]["text"].rpartition(" ")[2])
            chance = random.Random(body.get("seed", 0))
            text = chance.choice(["yes", "no", "maybe"]) if hot and number % 5 == 0 else "yes"
            message = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
            self._send({"object": "chat.completion", "model": "scripted", "choices": [message]})

        def _send(self, body: Any) -> None:
            content = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = 512
        daemon_threads = True

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", asked
    finally:
        server.shutdown()


@contextmanager
def served(policy: Path, upstream: str, *options: str) -> Iterator[tuple[str, int]]:
    """`hedge serve` in a process of its own; yields its address and process id."""
    command = [sys.executable, "-m", "hedge_tasks.cli", "serve", "--policy", str(policy), "--upstream", upstream]
    process = subprocess.Popen([*command, "--port", "0", *options], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = ""
        while not address.startswith("http"):
            address = process.stdout.readline()
            if process.poll() is not None:
                raise SystemExit(f"`hedge serve` ended with {process.returncode}")
        yield address.split()[0], process.pid
    finally:
        process.terminate()
        process.wait(timeout=60)


def body_of(number: int, model: str, **fields: Any) -> bytes:
    pixels = np.random.default_rng(number).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    url = f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
    parts = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": f"What is it? {number}"}]
    return json.dumps({"model": model, "messages": [{"role": "user", "content": parts}], **fields}).encode()


def send(url: str, body: bytes) -> Reply:
    request = urllib.request.Request(f"{url}/chat/completions", body, {"Content-Type": "application/json"})
    started = time.monotonic()
    try:
        with urllib.request.urlopen(request, timeout=600) as response:
            found = json.loads(response.read())
            return Reply(response.status, time.monotonic() - started, found.get("hedge", {}))
    except urllib.error.HTTPError as error:
        error.read()
        return Reply(error.code, time.monotonic() - started, {})


def load(url: str, bodies: Sequence[bytes], at_once: int) -> list[Reply]:
    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(lambda body: send(url, body), bodies))


def resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024


def row(name: str, replies: Sequence[Reply], seconds: float, memory: Sequence[float] = ()) -> str:
    times = np.array([reply.seconds for reply in replies])
    p50, p95 = np.percentile(times, [50, 95])
    statuses = ", ".join(f"{n} × {status}" for status, n in sorted(Counter(r.status for r in replies).items()))
    judged = [r.hedge for r in replies if r.hedge.get("judged")]
    draws = f"{np.mean([h['draws'] for h in judged]):.1f}" if judged else ""
    accepted = f"{np.mean([h['accepted'] for h in judged]):.0%}" if judged else ""
    grown = " → ".join(f"{mb:.0f}" for mb in memory)
    throughput = len(replies) / seconds
    return f"| {name} | {statuses} | {p50:.2f} | {p95:.2f} | {throughput:.1f} | {draws} | {accepted} | {grown} |"


def measured(name: str, url: str, bodies: Sequence[bytes], at_once: int, pid: int | None = None) -> tuple[str, float]:
    memory = [resident_mb(pid)] if pid else []
    replies: list[Reply] = []
    started = time.monotonic()
    size = -(-len(bodies) // BLOCKS)
    for i in range(BLOCKS):
        replies += load(url, bodies[i * size : (i + 1) * size], at_once)
        memory += [resident_mb(pid)] if pid else []
    median = float(np.median([reply.seconds for reply in replies]))
    return row(name, replies, time.monotonic() - started, memory), median


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--upstream", help="address of a server (default: a scripted one)")
    parser.add_argument("--model", default="scripted", help="its model")
    parser.add_argument("--latency", type=float, default=0.2, help="of the scripted server")
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--at-once", type=int, default=16)
    arguments = parser.parse_args()
    print("| | replies | median s | 95 % s | replies/s | draws | accepted | memory of the proxy, MB |")
    print("|---|---|--:|--:|--:|--:|--:|---|")
    with tempfile.TemporaryDirectory() as folder, scripted(arguments.latency) as (address, asked):
        upstream, model, at_once = arguments.upstream or address, arguments.model, arguments.at_once
        cold = {"temperature": 0.1, "max_tokens": 16}
        plain = [body_of(i, model, **cold) for i in range(arguments.requests)]
        bodies = [body_of(i, model) for i in range(arguments.requests)]
        load(upstream, plain[:4], 4)
        line, alone = measured(f"plain, {at_once} at once", upstream, plain, at_once)
        print(line, flush=True)
        policy = policy_file(Path(folder), model)
        for name, options in (("draws in waves", ()), ("all draws at once", ("--at-once",))):
            with served(policy, upstream, "--within", "300", "--concurrency", str(at_once), *options) as (url, pid):
                load(url, bodies[:4], 4)
                asked.clear()
                line, median = measured(f"guarded, {name}", url, bodies, at_once, pid)
                print(line, flush=True)
                asks = "" if arguments.upstream else f" The server was asked for {asked['baselines']} baseline answers "
                asks += "" if arguments.upstream else f"and {asked['draws']} draws."
                print(f"<!-- {name}: {median / alone:.1f} times the time of a plain request.{asks} -->", flush=True)


if __name__ == "__main__":
    main()
