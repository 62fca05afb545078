"""All detectors on real sampled answers, with their price and intervals.

    python benchmarks/real_answers.py --triviaqa triviaqa_llama13b_500x20.jsonl --wikibio wikibio_gpt3_half.jsonl
        [--run RUN --filter nli embed] [--clustering embed]

- `--triviaqa`: 500 TriviaQA questions with 20 answers each of a 13 B text model, without log-probabilities. Every line
  has `id`, `question`, `reference` and `samples`. The first sample stands in for the baseline answer, which the file
  lacks, and the others are the clean answers; the rule judge labels. Most wrong answers are names that its table does
  not know, on which it is silent: here these count as wrong.
- `--wikibio`: 119 biographies by GPT-3 with 20 draws each and people's labels of every sentence (SelfCheckGPT's data;
  Manakul et al. 2023). Every line has `id`, `sentences`, `labels` and `samples`. A biography counts as hallucinated
  where people call at least half of its sentences majorly inaccurate. Clustered by `exact`, under which every biography
  is a meaning of its own, so that only what compares words says anything, and as `--clustering` says.
- `--run`: a finished run, such as one of `hedge_demo`, under some of its own filters.

What a set of answers cannot give (log-probabilities, noisy answers, an NLI model for its language) is left out.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.detectors import get, names
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.judging import Case, build_judge
from hedge_tasks.measures.detector_table import DetectorNumbers, DetectorTable, detector_table
from hedge_tasks.runs.run_files import Run, load_run
from hedge_tasks.runs.scorers import scorer_of


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


UNKNOWN = "unknown-words"
"""The rule judge is silent, as its table knows neither the answer nor the reference."""


def name_labels(rows: Sequence[dict[str, Any]]) -> list[int | None]:
    """Labels of first answers by the rule judge, a name that it does not know counting as wrong."""
    cases = [Case(row["id"], row["question"], row["reference"], row["samples"][0]) for row in rows]
    verdicts = build_judge("rule").judge(cases)
    return [1 if v.label is None and (v.reason or "").startswith(f"{UNKNOWN}:") else v.label for v in verdicts]


def triviaqa(path: Path) -> Run:
    rows = rows_of(path)
    sets = [
        AnswerSet(
            row["id"],
            Answer(row["samples"][0]),
            tuple(map(Answer, row["samples"][1:])),
            question=row["question"],
            label=label,
        )
        for row, label in zip(rows, name_labels(rows), strict=True)
    ]
    version = build_judge("rule").version
    return Run(f"TriviaQA, labelled by rule judge {version}, unknown names wrong", "LLaMA-13B", tuple(sets))


def wikibio(path: Path) -> Run:
    sets = [
        AnswerSet(
            str(row["id"]),
            Answer(" ".join(row["sentences"])),
            tuple(map(Answer, row["samples"])),
            label=int(2 * row["labels"].count("major_inaccurate") >= len(row["labels"])),
        )
        for row in rows_of(path)
    ]
    return Run("WikiBio, people's labels", "GPT-3", tuple(sets))


def together(tables: Sequence[DetectorTable]) -> Iterator[str]:
    """One row a detector, one column a set of answers under one clustering."""
    for i, table in enumerate(tables, start=1):
        labels = [a.label for a in table.run.answer_sets if a.label is not None]
        clean, noisy = (min(len(getattr(a, name)) for a in table.run.answer_sets) for name in ("clean", "noisy"))
        about = f"{len(labels)} labelled, {sum(labels) / len(labels):.2f} of them hallucinated"
        yield f"{i}. {table.run.task} of {table.run.model}, clustering `{table.scorer.name}`: {about}; "
        yield f"   {clean} clean and {noisy} noisy answers."
    yield ""
    yield "| detector | draws | " + " | ".join(str(i) for i, _ in enumerate(tables, start=1)) + " |"
    yield "| --- " * (2 + len(tables)) + "|"
    rows = [{row.detector: row for row in table.rows} for table in tables]
    places: dict[str, list[float]] = {}
    for of in rows:
        for place, name in enumerate(of):
            places.setdefault(name, []).append(place / len(of))
    for name in sorted(places, key=lambda name: sum(places[name]) / len(places[name])):
        prices = sorted({str(of[name].draws) for of in rows if name in of}, key=int)
        yield f"| `{name}` | {', '.join(prices)} | {' | '.join(cell(of.get(name)) for of in rows)} |"
    yield ""
    yield f"▲▼ better or worse than `{tables[0].against}` on the same answers, p < 0.05 after max-T over the column."


def cell(row: DetectorNumbers | None) -> str:
    if row is None:
        return ""
    low, high = row.estimate.interval or (float("nan"), float("nan"))
    told = row.difference.difference if row.difference else None
    sure = row.p_adjusted is not None and row.p_adjusted < 0.05
    mark = "" if told is None or not sure else " ▲" if told > 0 else " ▼"
    return f"{row.estimate.value:.3f} [{low:.2f}, {high:.2f}]{mark}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--triviaqa", type=Path)
    parser.add_argument("--wikibio", type=Path)
    parser.add_argument("--clustering", nargs="+", default=["embed"])
    parser.add_argument("--run", type=Path)
    parser.add_argument("--filter", nargs="+", default=["nli", "embed"])
    arguments = parser.parse_args()
    usual = [name for name in names() if not get(name).experimental]
    scorers = [Scorer.build(name, name) for name in arguments.clustering]
    asked: list[tuple[Run, Scorer, list[str]]] = []
    if arguments.run is not None:
        run = load_run(arguments.run)
        # What needs a forced pass is in the table where the run has some.
        forced = [name for name in names() if get(name).experimental and any(a.forced for a in run.answer_sets)]
        asked += [(run, scorer_of(run, name), [*usual, *forced]) for name in arguments.filter]
    if arguments.triviaqa is not None:
        answers = triviaqa(arguments.triviaqa)
        asked += [(answers, scorer, usual) for scorer in scorers]
    if arguments.wikibio is not None:
        answers = wikibio(arguments.wikibio)
        asked += [(answers, scorer, usual) for scorer in [Scorer.build("exact", "exact"), *scorers]]
    print("\n".join(together([detector_table(run, scorer, detectors) for run, scorer, detectors in asked])))


if __name__ == "__main__":
    main()
