"""False alarms and power of `hedge attest` on the embedded model.

    python benchmarks/attestation.py hedge_hf --dtype float32 [--honest 20] [--forged 3] [--documents 24]
    python benchmarks/attestation.py power

The first line makes entries of `--documents` documents of hedge_demo (five clean and five noisy draws), honest ones
with as many seeds as `--honest`, and of each forgery as many as `--forged`; all documents of each are read again. A
table has how many were contradicted, by any test and by those that an engine without seeds of ours has. Forgers are
*able* where they state the log-probabilities that the stated model has for their texts, else they state their own
model's or invented ones. `hedge_vllm` runs in an environment that has vLLM; `--packages DIR` is then this project's
site-packages.

The second line tells how likely 24 documents, and others, meet a forged one, by closed form and by 20,000 beacons.
"""

from __future__ import annotations

import argparse
import shutil
import site
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("hedge_hf", "hedge_vllm", "power"))
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--honest", type=int, default=20)
    parser.add_argument("--forged", type=int, default=3)
    parser.add_argument("--documents", type=int, default=24)
    parser.add_argument("--packages", help="site-packages that are appended to the path")
    arguments = parser.parse_args()
    if arguments.packages:
        site.addsitedir(arguments.packages)
    sys.path[:0] = [str(ROOT / "tests")]
    if arguments.what == "power":
        power()
    else:
        with tempfile.TemporaryDirectory() as folder:
            table(arguments, Path(folder))


def table(arguments: argparse.Namespace, folder: Path) -> None:
    """One row a case, as it is done."""
    from attested import statement_on

    from hedge_tasks.leaderboard.attestation import beacon_of
    from hedge_tasks.leaderboard.attestation_tests import LOGPROBS, SEEDS, verdict_of

    print(f"{arguments.what}, {arguments.dtype}, {arguments.documents} documents\n")
    print("| entry | entries | replayed | contradicted | without seeds of ours | by |\n|---|--:|--:|--:|--:|---|")
    for name, model, entries in cases(arguments, folder):
        began, verdicts, unseeded, by = time.perf_counter(), Counter[str](), Counter[str](), Counter[str]()
        apart, tolerances = [0.0], list[float]()
        for i, entry in enumerate(entries):
            beacon = beacon_of(f"{i + 1:064x}")
            statement = statement_on(model, entry, arguments.documents, beacon, arguments.what)
            apart += deviations(statement, entry)
            tolerances += [float(statement.tests[LOGPROBS].allowed or 0)]
            verdicts[statement.verdict] += 1
            tests = {test: one for test, one in statement.tests.items() if test != SEEDS}
            unseeded[verdict_of(tests)] += 1
            by.update(test for test, one in statement.tests.items() if one.state in ("contradicted", "not met"))
        n = verdicts.total()
        if name.startswith("honest"):
            told = f"{max(apart):.5f}, tolerances {min(tolerances):.5f} to {max(tolerances):.5f} nats a token"
            print(f"{name}: answers are apart by at most {told}", file=sys.stderr, flush=True)
        told = ", ".join(f"{test} {times}" for test, times in by.most_common())
        row = (name, n, verdicts["replayed"], verdicts["contradicted"], unseeded["contradicted"], told)
        print("| " + " | ".join(map(str, row)) + " |", flush=True)
        print(f"{name}: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)


def deviations(statement: Any, entry: dict[str, Any]) -> Iterator[float]:
    """How far what the model finds is from what is stated, in nats a token."""
    stated = {document["id"]: document for document in entry["documents"]}
    for document in statement.documents:
        of = stated[document.id]
        for found, said, n, n_said in zip(
            document.logprobs, of["logprobs"], document.n_tokens, of["n_tokens"], strict=True
        ):
            if isinstance(found, float) and isinstance(said, float) and n == n_said:
                yield abs(found - said)


def cases(arguments: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Any, Iterator[dict[str, Any]]]]:
    """Name, the model that is stated, and entries."""
    from attested import copied_noisy, entry_of, kept_best, plan, sampled, scripted, told_by

    n, ours = arguments.documents, arguments.what == "hedge_hf"
    model = loaded(arguments, weights(folder / "model", arguments.what, 0.0))

    def entries(
        times: int, make: Callable[[int], Any], stated: Callable[[int], Any] = lambda seed: plan(seed=seed)
    ) -> Any:
        return (entry_of(make(seed), stated(seed), sampled_here=ours) for seed in range(times))

    def honest(seed: int) -> Any:
        return sampled(model, plan(seed=seed), n)

    yield "honest", model, entries(arguments.honest, honest)
    if ours:
        alone = loaded(arguments, folder / "model", draws_per_batch=3, share_prefill=False)
        yield (
            "honest, in other batches and without a shared cache",
            model,
            entries(arguments.honest // 2, lambda seed: sampled(alone, plan(seed=seed), n)),
        )
    forgeries: dict[str, Callable[[int], Any]] = {
        "scripted": lambda seed: scripted(honest(seed)),
        "scripted, able": lambda seed: told_by(model, scripted(honest(seed))),
        "a quarter scripted, able": lambda seed: told_by(model, scripted(honest(seed), 0.25, seed)),
        "a tenth scripted, able": lambda seed: told_by(model, scripted(honest(seed), 0.1, seed)),
        "temperature .7": lambda seed: sampled(model, plan(seed=seed, temperature=0.7), n),
        "temperature 1.3": lambda seed: sampled(model, plan(seed=seed, temperature=1.3), n),
        "best 5 of 10 draws": lambda seed: kept_best(sampled(model, plan(seed=seed, n=10), n), 5),
        "another seed stated": lambda seed: sampled(model, plan(seed=seed + 1000), n),
        "noisy draws copied": lambda seed: copied_noisy(honest(seed)),
        "noisy draws copied, able": lambda seed: told_by(model, copied_noisy(honest(seed))),
    }
    if not arguments.forged:
        return
    for name, make in forgeries.items():
        yield name, model, entries(arguments.forged, make)
    for noise in (0.01, 0.05, 0.2) if ours else (0.05,):
        other = loaded(arguments, weights(folder / f"other-{noise}", arguments.what, noise))
        theirs = [sampled(other, plan(seed=seed), n) for seed in range(arguments.forged)]
        yield f"weights with {noise:.0%} of noise", model, entries(arguments.forged, lambda seed, of=theirs: of[seed])
        yield (
            f"weights with {noise:.0%} of noise, able",
            model,
            entries(arguments.forged, lambda seed, of=theirs: told_by(model, of[seed])),
        )
    if ours:
        reports = loaded(arguments, None, writes="reports")
        yield (
            "the other embedded model",
            model,
            entries(arguments.forged, lambda seed: sampled(reports, plan(seed=seed), n)),
        )


def loaded(arguments: argparse.Namespace, folder: Path | None, **options: Any) -> Any:
    """The adapter on some weights; without, the embedded model."""
    from hedge_tasks.models import adapter_class

    given: dict[str, Any] = {"dtype": arguments.dtype, **options}
    if arguments.what == "hedge_hf":
        given.setdefault("batch_size", 8)
    else:
        given |= {"max_model_len": 512, "max_num_batched_tokens": 32768, "enforce_eager": True}
        given["gpu_memory_utilization"] = 0.15  # of the machine's memory, where vLLM runs on a CPU
    if folder is None:
        return adapter_class("hedge_tiny")(**given)
    return adapter_class(arguments.what)(pretrained=str(folder), **given)


def weights(folder: Path, adapter: str, noise: float) -> Path:
    """The embedded model with noise in its weights, in standard deviations of each matrix."""
    import torch
    from safetensors.torch import load_file, save_file

    from hedge_tasks.models.tiny import vlm_path

    shutil.copytree(vlm_path(), folder)
    torch.manual_seed(0)
    old, new = "vision_tower.", "vision_tower.vision_model."
    found = {}
    for name, tensor in load_file(folder / "model.safetensors").items():
        # vLLM's loader knows the older names of LLaVA checkpoints.
        older = adapter == "hedge_vllm" and name.startswith(old) and not name.startswith(new)
        changed = tensor + noise * tensor.float().std().nan_to_num() * torch.randn(tensor.shape)
        found[new + name.removeprefix(old) if older else name] = changed.to(tensor.dtype) if noise else tensor
    save_file(found, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def power(documents: int = 120, beacons: int = 20_000) -> None:
    """Chance that a forged document is among those picked."""
    from hedge_tasks.leaderboard.attestation import beacon_of, detects, picked

    ids = [f"q{i}" for i in range(documents)]
    rounds = [picked(beacon_of(f"{i:064x}"), f"sha256:{'0' * 64}", ids, documents) for i in range(beacons)]
    places = [{id: place for place, id in enumerate(order)} for order in rounds]
    print("| forged | k | closed form | measured |\n|--:|--:|--:|--:|")
    for forged in (1, 3, 6, 12, 30, 60):
        first = [min(of[id] for id in ids[:forged]) for of in places]
        for k in (6, 12, 24, 48):
            met = sum(place < k for place in first) / beacons
            print(f"| {forged} of {documents} | {k} | {detects(documents, forged, k):.3f} | {met:.3f} |")


if __name__ == "__main__":  # vLLM starts its engine in a process that imports this file
    main()
