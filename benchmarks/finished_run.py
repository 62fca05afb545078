"""What the commands on a finished run cost, and how that grows with its questions.

python benchmarks/finished_run.py --questions 10000 100000
"""

from __future__ import annotations

import argparse
import math
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from hedge_tasks.clustering.exact import ExactClustering
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.runs.run_files import Run, save_run
from hedge_tasks.sampling import Answer, AnswerSet


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--only", default="", help="commands whose name has this in it")
    arguments = parser.parse_args()
    sizes(arguments.questions, arguments.only)


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
