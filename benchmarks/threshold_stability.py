"""How much of an embedding row is the lottery of one split: SE AUROC over split seeds, by the way of choosing τ.

    python benchmarks/threshold_stability.py [--answers triviaqa_llama13b_500x20.jsonl] [--run RUN] [--seeds 40]
    python benchmarks/threshold_stability.py --wikibio wikibio_gpt3_half.jsonl --ways label-free cross-fit fixed

`--answers` and `--wikibio` are files of `benchmarks/real_answers.py`; of the first all its questions, and the first
150 of them. `--run` is an output folder of lmms-eval, such as that of `hedge_demo`. `--ways` takes beginnings. For
each, without and with the question in front of the answers, and for each way: mean, standard deviation, smallest and
largest AUROC over the seeds of the split, and the number of documents that count. No model of the threshold's choice
sees the document itself, but for the oracle. A label-free threshold has no split; its AUROC varies with the documents
alone. So the last columns choose on 40 random halves of the documents: mean and standard deviation of the AUROC of a
half's threshold on the *other* half.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from real_answers import triviaqa, wikibio
from sklearn.metrics import roc_auc_score

from hedge_tasks.clustering import EmbeddingClustering
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors.pipeline import questions_of
from hedge_tasks.detectors.thresholds.choice import ThresholdChoice, choose
from hedge_tasks.detectors.thresholds.profile import DocumentProfile, profile_documents
from hedge_tasks.runs.run_files import load_run

WAYS = {
    "fixed 0.9": None,
    "tuned, optuna (the default before)": ThresholdChoice(method="tuned", search="optuna", per_class=1),
    "cross-fit, optuna, one split": ThresholdChoice(method="cross-fit", search="optuna", per_class=1, repeats=1),
    "cross-fit, plateau, one split": ThresholdChoice(method="cross-fit", repeats=1),
    "cross-fit, plateau (the default)": ThresholdChoice(method="cross-fit"),
    "label-free": ThresholdChoice(method="label-free"),
    "oracle, optuna": ThresholdChoice(method="oracle", search="optuna", per_class=1),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=Path)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--wikibio", type=Path, help="biographies: no part in the choice of the label-free quantile")
    parser.add_argument("--ways", nargs="+", default=[""], help="only these, by the beginnings of their names")
    parser.add_argument("--seeds", type=int, default=40)
    arguments = parser.parse_args()
    for way in [way for way in WAYS if not way.startswith(tuple(arguments.ways))]:
        del WAYS[way]
    if arguments.wikibio:
        run = wikibio(arguments.wikibio)
        table(run.task, run.answer_sets, arguments.seeds)
    if arguments.run:
        run = load_run(arguments.run)
        table(run.task, run.answer_sets, arguments.seeds)
    if arguments.answers:
        sets = triviaqa(arguments.answers).answer_sets
        labelled = [answers for answers in sets if answers.label is not None]
        table("TriviaQA", labelled, arguments.seeds, first=150)


def table(name: str, sets: Sequence[AnswerSet], seeds: int, first: int | None = None) -> None:
    for with_question in (False, True) if all(a.question for a in sets) else (False,):
        trees = EmbeddingClustering().dendrograms(
            [a.texts for a in sets], questions_of(sets) if with_question else None
        )
        profiles = profile_documents(sets, trees, low=ThresholdChoice.low, high=ThresholdChoice.high)
        for part in (profiles, profiles[:first]) if first else (profiles,):
            clustering = "with the question" if with_question else "answers only"
            print(f"\n### {name}, {len(part)} labelled, {clustering}\n", flush=True)
            print("| τ | mean | sd | smallest | largest | documents | other half: mean | sd |\n" + 8 * "|---" + "|")
            for way, choice in WAYS.items():
                print(row(way, part, choice, seeds), flush=True)


def row(way: str, profiles: Sequence[DocumentProfile], choice: ThresholdChoice | None, seeds: int) -> str:
    areas, counted = [], []
    for seed in range(seeds if choice else 1):
        chosen = choose(profiles, choice.replaced(seed=seed)) if choice else None
        rest = [p for p in profiles if not chosen or p.id not in chosen.held_out]
        at = {p.id: chosen.thresholds[p.id] if chosen else 0.9 for p in rest}
        areas.append(area(rest, [at[p.id] for p in rest]))
        counted.append(len(rest))
    spread = statistics.stdev(areas) if len(areas) > 1 else 0.0
    halves = [other_half(profiles, choice, seed) for seed in range(seeds)]
    cells = [statistics.fmean(areas), spread, min(areas), max(areas)]
    rest_cells = [statistics.fmean(halves), statistics.stdev(halves)]
    numbers = " | ".join(f"{cell:.3f}" for cell in cells)
    return (
        f"| {way} | {numbers} | {round(statistics.fmean(counted))} | "
        + " | ".join(f"{c:.3f}" for c in rest_cells)
        + " |"
    )


def other_half(profiles: Sequence[DocumentProfile], choice: ThresholdChoice | None, seed: int) -> float:
    groups = sorted({p.group or p.id for p in profiles})
    mine = set(np.random.default_rng(seed).permutation(groups)[: len(groups) // 2])
    half = [p for p in profiles if (p.group or p.id) in mine]
    rest = [p for p in profiles if (p.group or p.id) not in mine]
    threshold = 0.9
    if choice:
        chosen = choose(half, choice.replaced(seed=seed))
        threshold = statistics.median(chosen.thresholds[p.id] for p in half)
    return area(rest, [threshold] * len(rest))


def area(profiles: Sequence[DocumentProfile], thresholds: Sequence[float]) -> float:
    scores = [p.at("se", threshold) for p, threshold in zip(profiles, thresholds, strict=True)]
    return float(roc_auc_score([p.label for p in profiles], scores))


if __name__ == "__main__":
    main()
