"""What a finished run costs: the report of one, and the evidence of a large one.

python benchmarks/finished_run.py report results        # `hedge report`, which fails where a model library is imported
python benchmarks/finished_run.py evidence --questions 20000 --distinct 8
python benchmarks/finished_run.py sizes --questions 10000 100000        # every command on a run of so many questions
"""

from __future__ import annotations

import argparse
import math
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from hedge_tasks.clustering import ExactClustering
from hedge_tasks.clustering.embedding import EmbeddingClustering
from hedge_tasks.clustering.model_outputs import COSINES, RELATIONS, ModelOutputs, Source
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.runs.evidence import pack_outputs
from hedge_tasks.runs.run_files import Run, load_run, save_run
from hedge_tasks.sampling import Answer, AnswerSet

REPORT = """
import sys
from hedge_tasks.cli import main

code = main(["report", *sys.argv[1:]])
heavy = {"torch", "transformers", "sentence_transformers", "lmms_eval", "datasets", "pandas", "sklearn", "scipy.stats"}
loaded = heavy & sys.modules.keys()
sys.exit(f"imported: {loaded}" if loaded else code)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(required=True, dest="action")
    reporting = actions.add_parser("report")
    reporting.add_argument("run", type=Path)
    reporting.add_argument("--repeats", type=int, default=3)
    keeping = actions.add_parser("evidence")
    keeping.add_argument("--questions", type=int, default=20_000)
    keeping.add_argument("--distinct", type=int, default=8, help="different answers of the 21 to each question")
    sizing = actions.add_parser("sizes")
    sizing.add_argument("--questions", type=int, nargs="+", default=[10_000, 100_000])
    sizing.add_argument("--only", help="commands whose name has this in it")
    arguments = parser.parse_args()
    if arguments.action == "report":
        report(arguments.run, arguments.repeats)
    elif arguments.action == "sizes":
        sizes(arguments.questions, arguments.only or "")
    else:
        evidence(arguments.questions, arguments.distinct)


def report(run: Path, repeats: int) -> None:
    """Wall and CPU seconds of whole processes, the best of several, in turns with importing what a model needs."""
    with tempfile.TemporaryDirectory() as folder:
        out = ["--out", f"{folder}/report.html"]
        programs = {
            "hedge report": ["-c", REPORT, str(run), *out],
            "hedge report --no-curves": ["-c", REPORT, str(run), *out, "--no-curves"],
            "hedge --help": ["-m", "hedge_tasks.cli", "--help"],
            "importing sentence-transformers and datasets": ["-c", "import sentence_transformers, datasets"],
        }
        took: dict[str, list[tuple[float, float]]] = {name: [] for name in programs}
        for _ in range(repeats):
            for name, arguments in programs.items():
                took[name].append(seconds_of(arguments))
    least = {name: tuple(min(of) for of in zip(*found, strict=True)) for name, found in took.items()}
    *_, (_, reference) = least.values()
    print(f"best of {repeats}; load {os.getloadavg()[0]:.1f}")
    for name, (wall, cpu) in least.items():
        print(f"{name}: wall {wall:.2f} s, CPU {cpu:.2f} s, {cpu / reference:.2f} of the last line's")


def seconds_of(arguments: list[str]) -> tuple[float, float]:
    """Wall and CPU seconds of a Python process."""
    # Compiled modules as every installation has them, also where a machine of tests writes none.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | {"OMP_NUM_THREADS": "1"}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, env=environment, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - start, cpu


def evidence(questions: int, distinct: int) -> None:
    """Size and seconds of cosines and relations of all pairs, kept and read again."""
    dice, numbers = random.Random(0), np.random.default_rng(0)
    sets, outputs = [], ModelOutputs()
    cosines, relations = (
        outputs.table(Source(COSINES, "embedding")),
        outputs.table(Source(RELATIONS, "nli", None, "float32")),
    )
    for i in range(questions):
        texts = [f"answer {k} to question {i}, in some words" for k in range(distinct)]
        given = [*texts, *dice.choices(texts, k=21 - distinct)]
        answers = tuple(Answer(text, -dice.random(), 8) for text in given)
        sets.append(AnswerSet(f"q{i}", answers[0], answers[1:11], answers[11:], f"question {i}?", "a", i % 2))
        cosines.add_matrix(texts, numbers.uniform(0.2, 1.0, (distinct, distinct)))
        relations.add_matrix(texts, numbers.dirichlet((1, 1, 1), (distinct, distinct)))
    run = Run("hedge_large", "none", tuple(sets), created="2026-01-01T00:00:00+00:00")
    seconds = {}
    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        kept = replace(run, evidence=pack_outputs(outputs, sets))
        seconds["packed"] = time.process_time() - start
        plain, path = save_run(run, Path(folder)), save_run(kept, Path(folder))
        sizes = plain.stat().st_size, path.stat().st_size
        start = time.process_time()
        read = load_run(path)
        seconds["read"] = time.process_time() - start
        start = time.process_time()
        again = read.outputs
        seconds["unpacked"] = time.process_time() - start
        start = time.process_time()
        EmbeddingClustering(model="embedding").with_outputs(again).cluster([a.texts for a in read.answer_sets])
        seconds["clustered by it"] = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    told = ", ".join(f"{name} {value:.1f} s" for name, value in seconds.items())
    size = f"run file {sizes[0] / 1e6:.1f} MB, with evidence of all pairs {sizes[1] / 1e6:.1f} MB"
    print(f"{questions} questions x 21 answers, {distinct} different: {size}; CPU: {told}; peak memory {peak:.0f} MB")


def sizes(numbers: list[int], only: str) -> None:
    """CPU seconds and the largest memory of the commands that need a whole run, and how both grow."""
    rows: list[dict[str, tuple[float, float]]] = []
    for questions in numbers:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            path = save_run(made_run(questions), folder)
            print(f"{questions} questions: a run file of {path.stat().st_size / 1e6:.1f} MB", flush=True)
            commands = {
                "health": ["health", str(path)],
                "rescore": ["rescore", str(path), "--clustering", "exact"],
                "report": ["report", str(path), "--out", str(folder / "report.html")],
                "submission": ["leaderboard", "submit", str(path), "--out", str(folder / "board")],
            }
            row = {}
            for command, arguments in commands.items():
                if only in command:
                    row[command] = price_of(arguments)
                    print(f"{command}: {row[command][0]:.1f} CPU s, {row[command][1]:.0f} MB", flush=True)
            rows.append(row)
    if len(rows) > 1:
        steps = math.log(numbers[-1] / numbers[-2])
        for command, after in rows[-1].items():
            before = rows[-2][command]
            grown = [math.log(b / a) / steps for a, b in zip(before, after, strict=True)]
            print(f"{command}: CPU time grows with the power {grown[0]:.2f}, memory with {grown[1]:.2f}")


def made_run(questions: int) -> Run:
    """Return a run of made-up answers: ten clean and ten noisy draws a question, of three texts, by groups of five."""
    dice = random.Random(0)
    sets = []
    for i in range(questions):
        texts = [f"answer {k} to question {i}" for k in range(3)]
        answers = tuple(Answer(text, -dice.random(), 8) for text in (texts[0], *dice.choices(texts, k=20)))
        more = {"group": f"picture {i // 5}", "question_type": "open" if i % 2 else "closed"}
        sets.append(
            AnswerSet(f"q{i}", answers[0], answers[1:11], answers[11:], f"question {i}?", "a", i % 3 % 2, **more)
        )
    settings = {"filters": {"exact": Scorer("exact", ExactClustering()).settings()}}
    return Run("hedge_large", "none", tuple(sets), created="2026-01-01T00:00:00+00:00", settings=settings)


def price_of(arguments: list[str]) -> tuple[float, float]:
    """CPU seconds and MB at most of one command, in a process of its own.

    Raises:
        SystemExit: it fails.
    """
    program = (
        "import resource, sys; from hedge_tasks.cli import main; code = main(sys.argv[1:]); "
        "used = resource.getrusage(resource.RUSAGE_SELF); "
        "print(code, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, file=sys.stderr)"
    )
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, env=environment, text=True, capture_output=True, check=False)
    code, seconds, memory = (done.stderr.splitlines() or ["1 0 0"])[-1].split()
    if code != "0":
        raise SystemExit(f"hedge {' '.join(arguments)} ended with {code}:\n{done.stdout}\n{done.stderr}")
    return float(seconds), float(memory)


if __name__ == "__main__":
    main()
