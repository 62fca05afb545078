"""Processor time of a draw through a real vLLM with the embedded model, of client and server: ours, the cheapest way.

    python tests/engines/environments.py .engines vllm        # once
    python benchmarks/sampling_cost.py                        # servers
    python benchmarks/sampling_cost.py --local                # hedge_hf against num_return_sequences: time and memory
    python benchmarks/sampling_cost.py --client               # the client alone, on a server that costs nothing
    python benchmarks/sampling_cost.py --pictures             # perturbing and encoding alone

Processor time and not time by the clock, so that the numbers hold on a machine with other work. The ways take turns;
ratios are of medians within one run. Pictures of every size are scaled by the server to the size of its model.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from hedge_tasks.data.pictures import png_url
from hedge_tasks.models.hedge_openai import HedgeOpenAI
from hedge_tasks.perturb import Wording, build_noise, perturb_image
from hedge_tasks.perturb.workers import PictureJob
from hedge_tasks.sampling import SamplingPlan
from hedge_tasks.sampling.prompts import Prompt
from hedge_tasks.sampling.requests import DrawRequest, SampleRequest
from hedge_tasks.sampling.series import request_seed

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

N = 10
AT_ONCE = 16
FEWEST = 2
"""Documents; so many as are asked for are those of 64 pixels."""

MODEL = "tiny"
FIELDS: Mapping[str, Any] = {"max_tokens": 24, "logprobs": True, "top_p": 1.0, "temperature": 1.0}
BEYOND: Mapping[str, Any] = {"top_k": -1, "min_p": 0.0}
"""Fields of the server's that the openai library does not know."""

CHEAP_SERVER = r"""
import asyncio, json
entry = lambda t: {"token": t, "logprob": -0.5, "bytes": list(t.encode()), "top_logprobs": []}
choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "upper left"},
          "logprobs": {"content": [entry(t) for t in ("upper", " left", "</s>")]}}
body = json.dumps({"id": "c", "object": "chat.completion", "created": 0, "model": "tiny", "choices": [choice],
                   "usage": {"prompt_tokens": 1, "completion_tokens": 3, "total_tokens": 4}}).encode()
reply = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body

class Answering(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.seen = transport, bytearray()

    def data_received(self, data):
        self.seen += data
        while (end := self.seen.find(b"\r\n\r\n")) >= 0:
            at = bytes(self.seen[:end]).lower().find(b"content-length:")
            length = int(bytes(self.seen[at + 15 : end]).split(b"\r\n")[0]) if at >= 0 else 0
            if len(self.seen) < end + 4 + length:
                return
            del self.seen[: end + 4 + length]
            self.transport.write(reply)

async def main():
    server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""


# --- documents --------------------------------------------------------------------------------------------------------


def draws_of(documents: int, side: int, part: str) -> list[DrawRequest]:
    """The draws at temperature 1 of documents that nobody has asked about: `part` is in their questions.

    Args:
        side: of the pictures; 0 for none.
    """
    plan = SamplingPlan(n=N, n_noisy=N, max_new_tokens=FIELDS["max_tokens"], probe=False)
    found = []
    for i in range(documents):
        rng = np.random.default_rng([side, i, *part.encode()])
        coarse = Image.fromarray(rng.integers(0, 255, (16, 16, 3), dtype=np.uint8))
        picture = coarse.resize((side or 1, side or 1), Image.Resampling.BICUBIC)
        request = SampleRequest(
            id=f"{part} {i}",
            key=f"{part} {side} {i}",
            question=f"Which side is it on, {part} {i}?",
            prompt=Prompt("cost/question", "<image>{question}" if side else "{question}"),
            plan=plan,
            load_images=lambda document: [document["image"]] if side else [],
        )
        document = {"image": picture}
        draws = [draw for draw in plan.draws(request.key) if draw.condition != "baseline"]
        found += [DrawRequest(request, draw, lambda document=document: document, ("cost", "test", i)) for draw in draws]
    return found


def of(condition: str, draws: Sequence[DrawRequest]) -> list[DrawRequest]:
    return [draw for draw in draws if draw.draw.condition == condition]


# --- ways to ask ------------------------------------------------------------------------------------------------------


def ours(adapter: HedgeOpenAI, draws: Sequence[DrawRequest]) -> int:
    """hedge_openai: answers read, checked and handed over."""
    answers = [answer for batch in adapter.generate_draws(draws) for _, answer in batch]
    failed = [answer for answer in answers if isinstance(answer, str)]
    if failed:
        raise SystemExit(f"a draw failed: {failed[0]}")
    return len(answers)


def openai_client(url: str, draws: Sequence[DrawRequest], n: int) -> int:
    """The openai library's asynchronous client, a request a document with `n` or one a draw; pictures encoded once."""
    import openai

    firsts = draws[::n]

    async def ask_all() -> int:
        places = asyncio.Semaphore(AT_ONCE)
        async with openai.AsyncOpenAI(base_url=url, api_key="x", max_retries=0, timeout=300) as client:

            async def ask(draw: DrawRequest) -> int:
                async with places:
                    reply = await client.chat.completions.create(
                        model=MODEL,
                        messages=messages_of(draw),
                        n=n,
                        seed=request_seed(draw),
                        **FIELDS,
                        extra_body=dict(BEYOND),
                    )
                return len(reply.choices)

            return sum(await asyncio.gather(*map(ask, firsts)))

    return asyncio.run(ask_all())


def raw_client(url: str, draws: Sequence[DrawRequest], bodies: Sequence[bytes] | None = None) -> int:
    """aiohttp as it is: a request a draw, the reply parsed and no more.

    Args:
        bodies: of the requests, where these were made before.
    """
    import aiohttp

    async def ask_all() -> int:
        connector = aiohttp.TCPConnector(limit=AT_ONCE)
        async with aiohttp.ClientSession(connector=connector) as client:

            async def ask(i: int) -> int:
                # In a thread: the server closes connections on which nothing is said for five seconds.
                body = bodies[i] if bodies else await asyncio.to_thread(body_of, draws[i])
                headers = {"Content-Type": "application/json"}
                async with client.post(f"{url}/chat/completions", data=body, headers=headers) as reply:
                    return len(json.loads(await reply.read())["choices"])

            places = asyncio.Semaphore(AT_ONCE)

            async def ask_in_turn(i: int) -> int:
                async with places:
                    return await ask(i)

            return sum(await asyncio.gather(*map(ask_in_turn, range(len(draws)))))

    return asyncio.run(ask_all())


def messages_of(draw: DrawRequest) -> Any:
    [image] = draw.request.load_images(draw.document()) or [None]
    if image is not None and draw.draw.condition == "noisy":
        image = perturb_image(image, seed=draw.draw.seed)
    text = {"type": "text", "text": draw.request.question}
    picture = [] if image is None else [{"type": "image_url", "image_url": {"url": png_url(image)}}]
    return [{"role": "user", "content": [*picture, text]}]


def body_of(draw: DrawRequest) -> bytes:
    fields = {"model": MODEL, "messages": messages_of(draw), "seed": request_seed(draw), **FIELDS, **BEYOND}
    return json.dumps(fields).encode()


# --- processor time ---------------------------------------------------------------------------------------------------


class Clock:
    """Processor seconds so far, by who spent them.

    Args:
        server: the first process of its group.
    """

    def __init__(self, server: int) -> None:
        self.server = server

    def __call__(self) -> dict[str, float]:
        below = descendants(self.server)
        engine = max(below, key=spent, default=None)
        mine = [number for number in descendants(os.getpid()) if number not in {self.server, *below}]
        return {
            "client": time.process_time(),
            "picture workers": sum(map(spent, mine)),
            "API server": spent(self.server),
            "engine": sum(map(spent, below)) if engine else 0.0,
        }


def spent(number: int) -> float:
    try:
        fields = Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def descendants(number: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{number}/task").glob("*/children"):
        try:
            children = [int(child) for child in task.read_text().split()]
        except (FileNotFoundError, ProcessLookupError):
            continue
        found += [below for child in children for below in (child, *descendants(child))]
    return found


Way = Callable[[], int]


def compare(ways: Mapping[str, Way], clock: Callable[[], dict[str, float]], rounds: int) -> dict[str, dict[str, float]]:
    """Median milliseconds a draw of every way, by who spent them and in all; the ways take turns."""
    for way in ways.values():
        way()  # connections, caches, processes that are begun once
    seen: dict[str, list[dict[str, float]]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            before = clock()
            answers = way()
            after = clock()
            parts = {part: 1e3 * (after[part] - before[part]) / answers for part in after}
            seen[name].append({**parts, "all": sum(parts.values())})
    return {
        name: {part: statistics.median(one[part] for one in many) for part in many[0]} for name, many in seen.items()
    }


# --- tables -----------------------------------------------------------------------------------------------------------


def table(title: str, found: Mapping[str, Mapping[str, float]], cheapest: str) -> str:
    parts = list(next(iter(found.values())))
    lines = [f"| {title} | {' | '.join(parts)} | × |", f"|{'---|' * (len(parts) + 2)}"]
    for name, row in found.items():
        ratio = row["all"] / found[cheapest]["all"]
        lines.append(f"| {name} | {' | '.join(f'{row[part]:.2f}' for part in parts)} | {ratio:.2f} |")  # as measured
    return "\n".join(lines)


def through_vllm(sides: Sequence[int], documents: int, rounds: int) -> Iterator[str]:
    from engines.servers import running

    with tempfile.TemporaryDirectory() as folder, running("vllm", Path(folder)) as server:
        [process] = [child for child in descendants(os.getpid()) if b"api_server" in command_of(child)]
        clock = Clock(process)
        for side in sides:
            adapter = HedgeOpenAI(model=MODEL, base_url=server.url, num_concurrent=AT_ONCE)
            draws = draws_of(max(documents * 64 // side, FEWEST), side, "a")
            clean, noisy = of("clean", draws), of("noisy", draws)
            found = compare(
                {
                    "hedge_openai": lambda clean=clean, a=adapter: ours(a, clean),
                    "openai client, n = 10": lambda clean=clean: openai_client(server.url, clean, N),
                    "openai client, a request a draw": lambda clean=clean: openai_client(server.url, clean, 1),
                },
                clock,
                rounds,
            )
            yield table(f"clean, {side} pixels", found, "openai client, n = 10")
            bodies = [body_of(draw) for draw in noisy]
            found = compare(
                {
                    "hedge_openai": lambda noisy=noisy, a=adapter: ours(a, noisy),
                    "aiohttp, pictures made and sent": lambda noisy=noisy: raw_client(server.url, noisy),
                    "aiohttp, pictures made before": lambda noisy=noisy, b=bodies: raw_client(server.url, noisy, b),
                },
                clock,
                rounds,
            )
            yield table(f"noisy, {side} pixels", found, "aiohttp, pictures made and sent")


@contextmanager
def cheap_server() -> Iterator[tuple[str, int]]:
    with subprocess.Popen([sys.executable, "-c", CHEAP_SERVER], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1", process.pid
        finally:
            process.terminate()


def client_alone(documents: int, rounds: int) -> Iterator[str]:
    with cheap_server() as (url, process):

        def clock() -> dict[str, float]:
            return {"client": time.process_time()}

        for side in (0, 64):
            adapter = HedgeOpenAI(
                model=MODEL, base_url=url, num_concurrent=AT_ONCE, draws_per_request=1, wait_for_server=0
            )
            clean = of("clean", draws_of(documents, side, "c"))
            found = compare(
                {
                    "hedge_openai": lambda clean=clean, a=adapter: ours(a, clean),
                    "aiohttp": lambda clean=clean: raw_client(url, clean),
                    "openai, asynchronous": lambda clean=clean: openai_client(url, clean, 1),
                },
                clock,
                rounds,
            )
            yield table(f"{side} pixels" if side else "text", found, "aiohttp")
        assert process


def pictures(sides: Sequence[int], rounds: int) -> str:
    """Milliseconds of processor time of a noisy picture, by step; the ways take turns."""
    lines = ["| pixels | perturbed | as PNG in base64 | together, perturb_at=336 |", "|---|---|---|---|"]
    noise, wording = build_noise("hedge"), Wording("?")
    for side in sides:
        image = draws_of(1, side, "p")[0].document()["image"]
        seen: dict[str, list[float]] = {"perturbed": [], "encoded": [], "small": []}
        for seed in range(10 * rounds):
            began = time.process_time()
            [noisy] = PictureJob(noise, wording, seed).done([image])
            perturbed = time.process_time()
            png_url(noisy)
            encoded = time.process_time()
            PictureJob(noise, wording, seed, perturb_at=336, encode=True).done([image])
            small = time.process_time()
            for name, seconds in zip(seen, (perturbed - began, encoded - perturbed, small - encoded), strict=True):
                seen[name].append(1e3 * seconds)
        lines.append(f"| {side} | {' | '.join(f'{statistics.median(of):.1f}' for of in seen.values())} |")
    return "\n".join(lines)


def command_of(number: int) -> bytes:
    return Path(f"/proc/{number}/cmdline").read_bytes()


# --- in this process --------------------------------------------------------------------------------------------------


CASES = ("tiny clean", "tiny all", "small clean", "small all")
"""The embedded model on six documents, and a small one of Qwen2.5-VL's shape on one; 11 draws, or 21."""


def local(rounds: int) -> str:
    """hedge_hf's shared prefill against `num_return_sequences`, each in a process of its own."""
    lines = ["| | way | CPU s | MB at most | times as fast | share of its memory |", "|---|---|---|---|---|---|"]
    for case in CASES:
        found: dict[str, list[dict[str, float]]] = {"shared prefill": [], "num_return_sequences": []}
        for _ in range(rounds):
            for name, seen in found.items():
                command = [sys.executable, __file__, "--measure", f"{case}/{name}"]
                done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
                seen.append(json.loads(done.stdout.splitlines()[-1]))
        medians = {
            name: {key: statistics.median(one[key] for one in many) for key in many[0]} for name, many in found.items()
        }
        other = medians["num_return_sequences"]
        for name, row in medians.items():
            faster, share = other["seconds"] / row["seconds"], row["megabytes"] / other["megabytes"]
            lines.append(
                f"| {case} | {name} | {row['seconds']:.2f} | {row['megabytes']:.0f} | {faster:.2f} | {share:.2f} |"
            )
    return "\n".join(lines)


@torch.inference_mode()
def measured(what: str) -> dict[str, float]:
    """Processor seconds of the draws, and by how much they raised the memory of the process."""
    from sampling import ALL_OWNERS, CLEAN_OWNERS, methods, qwen_case, tiny_case

    asked, _, name = what.partition("/")
    size, _, which = asked.partition(" ")
    case = tiny_case() if size == "tiny" else qwen_case("small", 300, 16, "cpu", torch.float32)
    method = methods(case, ALL_OWNERS if which == "all" else CLEAN_OWNERS)[name]
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = memory("VmRSS")
    method()
    raised = memory("VmHWM") - before
    began = time.process_time()
    for _ in range(3):
        method()
    return {"seconds": (time.process_time() - began) / 3, "megabytes": raised}


def memory(field: str) -> float:
    """Megabytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sides", type=lambda text: [int(side) for side in text.split(",")], default=[64, 336, 1024])
    parser.add_argument("--documents", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--local", action="store_true")
    parser.add_argument("--client", action="store_true")
    parser.add_argument("--pictures", action="store_true")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.measure:
        print(json.dumps(measured(options.measure)))
    elif options.pictures:
        print(pictures(options.sides, options.rounds))
    elif options.local:
        print(local(options.rounds))
    else:
        tables = (
            client_alone(options.documents, options.rounds)
            if options.client
            else through_vllm(options.sides, options.documents, options.rounds)
        )
        for one in tables:
            print(one, end="\n\n", flush=True)


if __name__ == "__main__":
    main()
