"""Runs of the arena: every public set of real answers with draws, each fetched by whoever builds it.

    python benchmarks/arena/build.py --out ARENA [--options FOLDER] [--triviaqa FILE]
        [--wikibio FILE] [--festa FOLDER --festa-truth FILE]
    hedge report ARENA
    hedge detectors MY_RUN ARENA

Nothing of the sets is in this repository; README.md says where each is published and under which terms. What is given
is made into run files, one a model and set, with one seed; what is not given is left out.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hedge_tasks.cli import main as hedge
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.runs.from_answers import run_from_answers
from hedge_tasks.runs.run_files import Run, save_run

sys.path.insert(0, str(Path(__file__).parents[1]))
import noisy_draws
import real_answers

_SETS = ("mmbench", "oodcv")
_DECLINING = "E,F"
"""'I don't know' and 'None of the above', in the option sets."""


def options(folder: Path, out: Path) -> None:
    """Answers of vision-language models to multiple-choice questions, drawn from their own distributions."""
    for name in _SETS:
        weights, questions = folder / f"{name}_logits.npz", folder / f"{name}_questions.parquet"
        command = ["import", "options", str(weights), "--questions", str(questions), "--task", name]
        _hedge([*command, "--declining", _DECLINING, "--out", str(out)])


def festa(folder: Path, truth: Path, out: Path) -> None:
    """Draws of vision-language models on statements about pictures; black and white stands for the picture as it is."""
    for vanilla in sorted(folder.glob("*_vanilla_vsr.txt")):
        model = vanilla.name.removesuffix("_vanilla_vsr.txt")
        if not model.startswith("negated_"):
            sets = noisy_draws.answers(folder, model, truth, "_bw", 10)
            _save("FESTA, VSR", model, sets, f"{truth.name} of FESTA", out, closed=True)


def texts(name: str, run: Run, out: Path) -> None:
    """Answers in words, with the labels that `real_answers` gives them."""
    _save(run.task, run.model, run.answer_sets, run.task.partition(", ")[2] or name, out)


def _save(task: str, model: str, sets: Sequence[AnswerSet], given_by: str, out: Path, *, closed: bool = False) -> None:
    run = run_from_answers(task, model, sets, "none", given_by=given_by, source=task, closed=closed)
    if not closed:  # of texts each is a cluster of its own by exact clustering
        embed = Scorer.build("embed", "embed")
        run = replace(run, settings={**run.settings, "filters": {embed.name: embed.settings()}})
    save_run(run, out)


def _hedge(command: list[str]) -> None:
    if hedge(command) != 0:
        raise SystemExit(f"hedge {' '.join(command)} failed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    for name in ("options", "festa", "festa-truth", "triviaqa", "wikibio"):
        parser.add_argument(f"--{name}", type=Path)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.options:
        options(arguments.options, arguments.out)
    if arguments.festa:
        festa(arguments.festa, arguments.festa_truth, arguments.out)
    for name, read in (("triviaqa", real_answers.triviaqa), ("wikibio", real_answers.wikibio)):
        if path := getattr(arguments, name):
            texts(name, read(path), arguments.out)


if __name__ == "__main__":
    main()
