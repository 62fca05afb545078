"""All detectors on real sampled answers, with their price and intervals.

    python benchmarks/real_answers.py --triviaqa triviaqa_llama13b_500x20.jsonl [--wikibio wikibio_gpt3_half.jsonl]
        [--run RUN --filter nli embed] [--clustering embed]

- `--triviaqa`: 500 TriviaQA questions with 20 answers each of a 13 B text model, without log-probabilities. Every line
  has `id`, `question`, `reference` and `samples`. The first sample stands in for the baseline answer, which the file
  lacks, and the others are the clean answers; the rule judge labels.
- `--wikibio`: biographies by GPT-3 with 20 draws each; every sentence is an answer whose clean samples are the draws,
  and people said whether it is accurate. Resampled by biography.
- `--run`: a finished run, such as one of `hedge_demo`, under some of its own filters.

What a set of answers cannot give (log-probabilities, noisy answers, an NLI model for its language) is left out.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hedge_tasks.adjudication import Case, build_judge
from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.detectors import get, names
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.runs.detector_table import DetectorTable, detector_table
from hedge_tasks.runs.run_files import Run, load_run
from hedge_tasks.runs.scorers import scorer_of


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def triviaqa(path: Path) -> Run:
    rows = rows_of(path)
    judge = build_judge("rule")
    cases = [Case(row["id"], row["question"], row["reference"], row["samples"][0]) for row in rows]
    sets = [
        AnswerSet(
            row["id"],
            Answer(row["samples"][0]),
            tuple(map(Answer, row["samples"][1:])),
            question=row["question"],
            label=verdict.label,
        )
        for row, verdict in zip(rows, judge.judge(cases), strict=True)
    ]
    return Run(f"TriviaQA, labelled by rule judge {judge.version}", "LLaMA-13B", tuple(sets))


def wikibio(path: Path) -> Run:
    sets = [
        AnswerSet(
            f"{row['id']}/{i}",
            Answer(sentence),
            tuple(map(Answer, row["samples"])),
            label=int(label != "accurate"),
            group=str(row["id"]),
        )
        for row in rows_of(path)
        for i, (sentence, label) in enumerate(zip(row["sentences"], row["labels"], strict=True))
    ]
    return Run("WikiBio sentences, labelled by people", "GPT-3", tuple(sets))


def markdown(table: DetectorTable) -> Iterator[str]:
    labels = [a.label for a in table.run.answer_sets if a.label is not None]
    sizes = {len(a.clean) for a in table.run.answer_sets}
    told = f"{len(labels)} labelled, {sum(labels) / len(labels):.2f} hallucinated, {min(sizes)} clean answers"
    yield f"**{table.run.task} of {table.run.model}, clustering {table.scorer.name}**: {told}"
    yield ""
    yield f"| detector | draws | AUROC | 95 % | − `{table.against}` | 95 % | p (Holm) |"
    yield "|---|---|---|---|---|---|---|"
    for row in table.rows:
        low, high = row.estimate.interval or (float("nan"), float("nan"))
        cells = [f"`{row.detector}`", str(row.draws), f"{row.estimate.value:.3f}", f"[{low:.3f}, {high:.3f}]"]
        if row.difference is not None and row.difference.difference is not None and row.difference.interval:
            low, high = row.difference.interval
            p = "" if row.p_holm is None else f"{row.p_holm:.3f}"
            cells += [f"{row.difference.difference:+.3f}", f"[{low:+.3f}, {high:+.3f}]", p]
        else:
            cells += ["", "", ""]
        yield f"| {' | '.join(cells)} |"
    reasons: dict[str, list[str]] = {}
    for name, reason in table.left_out.items():
        reasons.setdefault(reason.partition("(")[2].rstrip(")") or reason, []).append(f"`{name}`")
    yield ""
    for reason, of in reasons.items():
        yield f"Left out, {reason}: {', '.join(of)}."


def show(run: Run, scorers: Sequence[Scorer], detectors: Sequence[str]) -> None:
    for scorer in scorers:
        start = time.process_time()
        table = detector_table(run, scorer, detectors)
        print("\n".join(markdown(table)))
        print(f"\n{time.process_time() - start:.0f} s of CPU time.\n", flush=True)


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
    if arguments.run is not None:
        run = load_run(arguments.run)
        forced = [name for name in ("p_true", "image_ratio") if any(a.forced for a in run.answer_sets)]
        show(run, [scorer_of(run, name) for name in arguments.filter], [*usual, *forced])
    if arguments.triviaqa is not None:
        show(triviaqa(arguments.triviaqa), scorers, usual)
    if arguments.wikibio is not None:
        show(wikibio(arguments.wikibio), scorers, usual)


if __name__ == "__main__":
    main()
