"""All detectors against lm-polygraph's and uqlm's own code, in one run on the same relations and embeddings.

    python benchmarks/detectors.py [--questions 451] [--n 20] [--all 20000]
    python benchmarks/detectors.py --score 20000 [--n 10] [--clustering exact embed]

Runs where lm-polygraph 0.7.0 and uqlm 0.6.7 can be imported (`tests/golden/make_detectors.py` says how) and says so
elsewhere. Answers, NLI probabilities, embeddings and log-probabilities are synthetic and given to both; what is timed
is only the way from them to the scores, in seconds of CPU time, ours in turns with theirs (median). The libraries'
pauses of 0.1 s and progress bars are left out. In the end all our detectors score `--all` questions with n clean and n
noisy answers.

`--score` times the command instead: `hedge score FILE --detectors all` on so many questions with n clean and n noisy
answers, from the start of the process to its end, reading the file, clustering, models and intervals among it.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hedge_tasks.detectors import Evidence, get, names

MAKER = Path(__file__).parents[1] / "tests" / "golden" / "make_detectors.py"


def maker() -> Any:
    """The module that asks the libraries."""
    spec = importlib.util.spec_from_file_location("make_detectors", MAKER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def evidence(golden: Any, question: dict[str, Any]) -> Evidence:
    contradiction, neutral, entailment, cosines = golden.matrices(question)
    return Evidence(
        texts=tuple(question["texts"]),
        n_clean=len(question["texts"]) - 1,
        cluster_ids=tuple(question["cluster_ids"]),
        mean_logprobs=np.array([np.mean(tokens) for tokens in question["token_logprobs"]]),
        n_tokens=np.array([float(len(tokens)) for tokens in question["token_logprobs"]]),
        relations=np.stack([contradiction, neutral, entailment], axis=-1),
        cosines=cosines,
    )


def fresh(known: Evidence, n_clean: int | None = None) -> Evidence:
    """The same evidence, of which nothing has been computed yet."""
    return Evidence(
        known.texts,
        known.n_clean if n_clean is None else n_clean,
        known.cluster_ids,
        known.mean_logprobs,
        known.n_tokens,
        known.relations,
        known.cosines,
    )


def seconds(function: Callable[[], Any]) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start


def in_turns(
    mine: Callable[[list[Evidence]], Any], known: list[Evidence], theirs: Callable[[], Any], repetitions: int
) -> tuple[float, float]:
    """Median seconds of ours and of theirs."""
    pairs = []
    for _ in range(repetitions):
        untouched = [fresh(one) for one in known]
        pairs.append((seconds(lambda untouched=untouched: mine(untouched)), seconds(theirs)))
    ours, others = zip(*pairs, strict=True)
    return statistics.median(ours), statistics.median(others)


def compare(golden: Any, questions: list[dict[str, Any]], repetitions: int) -> None:
    known = [evidence(golden, question) for question in questions]
    theirs_together, compared = 0.0, []
    print(f"{'detector':20} {'library':13} {'ours':>8} {'theirs':>8} {'ratio':>7}")
    for library, scores in (("lm-polygraph", golden.lm_polygraph_scores()), ("uqlm", golden.uqlm_scores())):
        for name, prepare in scores.items():
            detector, run = get(name), prepare(questions)
            ours, theirs = in_turns(lambda them, d=detector: [d.score(one) for one in them], known, run, repetitions)
            theirs_together += theirs
            compared.append(detector)
            print(f"{name:20} {library:13} {ours:8.4f} {theirs:8.4f} {theirs / ours:6.1f}x")
    together = statistics.median(
        seconds(lambda: [d.score(one) for one in map(fresh, known) for d in compared]) for _ in range(repetitions)
    )
    print(f"all {len(compared)} together: ours {together:.3f} s, theirs {theirs_together:.3f} s: "
          f"{theirs_together / together:.1f}x")  # fmt: skip


def many(golden: Any, questions: int, n: int) -> Iterator[Evidence]:
    """Evidence with n clean and n noisy answers, some hundred different ones again and again."""
    different = [evidence(golden, golden.question(seed, 2 * n)) for seed in range(min(questions, 500))]
    dice = random.Random(0)
    return (fresh(dice.choice(different), n) for _ in range(questions))


def score_command(golden: Any, questions: int, n: int, clusterings: list[str]) -> None:
    """CPU time and memory of `hedge score --detectors all`, each in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "answers.jsonl"
        with file.open("w", encoding="utf-8") as lines:
            for seed in range(questions):
                lines.write(json.dumps(answers(golden.question(seed, 2 * n), seed, n)) + "\n")
        print(f"{questions} questions x {n} clean and {n} noisy answers, {file.stat().st_size / 1e6:.0f} MB")
        for clustering in clusterings:
            command = ["score", str(file), "--clustering", clustering, "--detectors", "all", "--json"]
            with subprocess.Popen([sys.executable, "-m", "hedge_tasks.cli", *command], stdout=subprocess.PIPE) as child:
                assert child.stdout is not None
                told = json.loads(child.stdout.read())
                _, status, usage = os.wait4(child.pid, 0)
                child.returncode = os.waitstatus_to_exitcode(status)
            aurocs = [name for name, estimate in told["auroc"].items() if estimate["value"] is not None]
            cpu = usage.ru_utime + usage.ru_stime
            print(f"{clustering}: {len(aurocs)} detectors, {cpu:.1f} s of CPU time, peak memory "
                  f"{usage.ru_maxrss / 1024:.0f} MB")  # fmt: skip


def answers(question: dict[str, Any], seed: int, n: int) -> dict[str, Any]:
    """A question of the golden generator as a line that `hedge score` reads."""
    pairs = zip(question["texts"], question["token_logprobs"], strict=True)
    said = [{"text": text, "logprobs": tokens} for text, tokens in pairs]
    label = random.Random(seed).randrange(2)
    return {"id": str(seed), "label": label, "baseline": said[0], "clean": said[1 : 1 + n], "noisy": said[1 + n :]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=451)
    parser.add_argument("--n", type=int, default=20)
    parser.add_argument("--all", type=int, default=20_000)
    parser.add_argument("--score", type=int, metavar="QUESTIONS")
    parser.add_argument("--clustering", nargs="+", default=["exact", "embed"])
    parser.add_argument("--repetitions", type=int, default=5)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    golden = maker()
    if arguments.score is not None:
        score_command(golden, arguments.score, arguments.n, arguments.clustering)
        return
    questions = [golden.question(seed, arguments.n) for seed in range(arguments.questions)]
    print(f"{arguments.questions} questions x {1 + arguments.n} answers")
    try:
        with np.errstate(all="ignore"):
            compare(golden, questions, arguments.repetitions)
    except ModuleNotFoundError as error:
        print(f"not compared with lm-polygraph and uqlm: {error}", file=sys.stderr)
    detectors = [get(name) for name in names() if not get(name).experimental]
    stream = many(golden, arguments.all, arguments.n)
    took = seconds(lambda: [detector.score(one) for one in stream for detector in detectors])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{arguments.all} questions x {arguments.n} clean and {arguments.n} noisy answers, all {len(detectors)} "
          f"detectors: {took:.1f} s, peak memory of the process {peak:.0f} MB")  # fmt: skip


if __name__ == "__main__":
    main()
