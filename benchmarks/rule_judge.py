"""Measure the rule judge against human labels and show how much of real answers it judges.

    python benchmarks/rule_judge.py --data DIR [--show N] [--readings FILE]

The first table has real answers: how many the judge leaves unlabelled, by question type. A fifth of the questions, by
hash, is held out: the second edition was written without them; two rules were changed after they had been read.
`--readings` is a JSON list of answers with question, reference, answer, label (1 = does not mean what the reference
means) and source, to compare with.
What version 1 gave is in `RESULTS.md`.

DIR holds `judge/medhallmark_judged.jsonl`, `judge/halp_vlm_hallucinated_80.jsonl` and
`vqa_rad/predictions/*.jsonl`; a file that is not there is skipped. `--show N` prints N randomly chosen verdicts per
file for reading.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hedge_tasks.adjudication import Case, Verdict, build_judge

Row = dict[str, Any]
CORRECT_STATEMENT = 5  # Med-HallMark's category of answers without a hallucination


def read(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def case(number: int, question: str, reference: str, answer: str) -> Case:
    return Case(id=str(number), question=question, reference=reference, answer=answer)


def kappa(table: Counter[tuple[int, int]]) -> float | None:
    """Cohen's kappa of a 2 x 2 table; None where people gave only one label, for there it says nothing."""
    total = sum(table.values())
    people = [table[label, 0] + table[label, 1] for label in (0, 1)]
    if 0 in people:
        return None
    agree = (table[0, 0] + table[1, 1]) / total
    chance = sum(people[label] * (table[0, label] + table[1, label]) for label in (0, 1)) / total**2
    return (agree - chance) / (1 - chance)


def held_out(question: str) -> bool:
    """A fifth of the questions, by hash, kept back while the second edition was written."""
    return int(hashlib.sha256(question.strip().lower().encode()).hexdigest(), 16) % 5 == 0


def unlabelled(folder: Path) -> None:
    """The share left unlabelled, by file, question type, and side of the hold-out."""
    judge = build_judge("rule")
    print(f"\nunlabelled share, rule judge version {judge.version}; 'silent': empty, a question back, a refusal")
    print(
        "| answers | questions | n | unlabelled | of them silent | judged hallucinated "
        "| held out: n | unlabelled | silent |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    files = [(path.stem, predictions(path)) for path in sorted((folder / "vqa_rad" / "predictions").glob("*.jsonl"))]
    for path in sorted((folder / "kvasir").glob("*.csv")):
        with path.open(encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        texts = [(r["question"].removeprefix("<MedVQA>"), r["answer"], r["generated_answer"]) for r in rows]
        files.append((path.stem, [("open", case(i, *text)) for i, text in enumerate(texts)]))
    for name, rows in files:
        for kind in sorted({kind for kind, _ in rows}):
            cells = []
            for side in (False, True):
                cases = [c for k, c in rows if k == kind and held_out(c.question) == side]
                verdicts = judge.judge(cases)
                left = [v.reason.partition(":")[0] for v in verdicts if v.label is None]
                silent = sum(reason in ("empty-answer", "refusal") for reason in left)
                share = f"{len(left) / len(cases):.3f}" if cases else "undefined"
                cells.append((len(cases), share, silent, sum(v.label == 1 for v in verdicts), len(cases) - len(left)))
            (n, share, silent, wrong, judged), (n_out, share_out, silent_out, *_) = cells
            print(
                f"| {name} | {kind} | {n} | {share} | {silent} | {ratio(wrong, judged)} "
                f"| {n_out} | {share_out} | {silent_out} |"
            )


def predictions(path: Path) -> list[tuple[str, Case]]:
    """(question type, case) of every row of a file of real answers."""
    found = []
    for i, row in enumerate(read(path)):
        answer = row["prediction"] if "prediction" in row else row["clean"]
        text = (row["question"], row.get("ground_truth") or row["answer"], answer)
        found.append(((row.get("answer_type") or row["type"]).lower(), case(i, *text)))
    return found


def ratio(part: int, whole: int) -> str:
    return f"{part / whole:.3f} ({part}/{whole})" if whole else "undefined (0)"


def against_labels(name: str, cases: list[Case], human: list[int]) -> list[Verdict]:
    verdicts = build_judge("rule").judge(cases)
    table = Counter((h, v.label) for h, v in zip(human, verdicts, strict=True) if v.label is not None)
    judged = sum(table.values())
    print(f"\n{name}: {len(cases)} cases, {sum(human)} hallucinated according to the human label")
    print(f"  coverage                    {ratio(judged, len(cases))}")
    print(f"  accuracy on judged          {ratio(table[0, 0] + table[1, 1], judged)}")
    print(f"  recall, hallucinated        {ratio(table[1, 1], table[1, 1] + table[1, 0])} of the judged")
    print(f"  precision, hallucinated     {ratio(table[1, 1], table[1, 1] + table[0, 1])}")
    agreement = kappa(table)
    print(f"  Cohen's kappa               {'undefined, one human label' if agreement is None else f'{agreement:.3f}'}")
    print(f"  human 1: judged 1 {table[1, 1]}, judged 0 {table[1, 0]} | human 0: 1 {table[0, 1]}, 0 {table[0, 0]}")
    by_rule(verdicts)
    return verdicts


def by_rule(verdicts: Iterable[Verdict]) -> None:
    rules = Counter((v.reason.partition(":")[0], v.label) for v in verdicts)
    for rule in sorted({rule for rule, _ in rules}):
        print(
            f"    {rule:16} hallucinated {rules[rule, 1]:4}  supported {rules[rule, 0]:4}  none {rules[rule, None]:4}"
        )


def show(cases: list[Case], verdicts: list[Verdict], number: int) -> None:
    for at in sorted(random.Random(0).sample(range(len(cases)), min(number, len(cases)))):
        c, v = cases[at], verdicts[at]
        print(f"    [{v.label}] {v.reason}\n        Q {c.question!r}\n        R {c.reference!r}  A {c.answer[:200]!r}")


def coverage(name: str, rows: list[tuple[str, Case]], number: int) -> None:
    cases = [c for _, c in rows]
    verdicts = build_judge("rule").judge(cases)
    print(f"\n{name}: {len(rows)} answers without human label")
    for kind in sorted({kind for kind, _ in rows}):
        labels = [v.label for (k, _), v in zip(rows, verdicts, strict=True) if k == kind]
        judged = [label for label in labels if label is not None]
        rate = f"{sum(judged) / len(judged):.3f}" if judged else "undefined"
        print(f"  {kind.lower():7} coverage {ratio(len(judged), len(labels))}, judged hallucinated {rate}")
    by_rule(verdicts)
    show(cases, verdicts, number)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the judged answers")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print N random verdicts per file")
    parser.add_argument("--readings", type=Path, help="open answers with labels of a reader (JSON)")
    options = parser.parse_args()
    if not any((options.data / part).exists() for part in ("judge", "vqa_rad")):
        parser.error(f"{options.data} has neither a folder 'judge' nor 'vqa_rad'")

    unlabelled(options.data)
    if options.readings:
        readings = json.loads(options.readings.read_text("utf-8"))
        for name in ("kvasir", "VQA-RAD"):
            part = [row for row in readings if (row["source"] == "kvasir") == (name == "kvasir")]
            cases = [case(i, r["question"], r["reference"], r["answer"]) for i, r in enumerate(part)]
            show(cases, against_labels(f"read, {name}", cases, [r["label"] for r in part]), options.show)
    path = options.data / "judge" / "medhallmark_judged.jsonl"
    if path.exists():
        rows = [row for row in read(path) if row["ground_truth"]]
        for source in sorted({row["source"] for row in rows}):
            part = [row for row in rows if row["source"] == source]
            cases = [case(i, r["question"], r["ground_truth"], r["answer"]) for i, r in enumerate(part)]
            human = [int(row["label_id"] != CORRECT_STATEMENT) for row in part]
            show(cases, against_labels(f"Med-HallMark, {source}", cases, human), options.show)
    path = options.data / "judge" / "halp_vlm_hallucinated_80.jsonl"
    if path.exists():
        rows = read(path)
        cases = [case(i, r["question"], r["ground_truth"], r["answer"]) for i, r in enumerate(rows)]
        show(cases, against_labels("HALP (positives only)", cases, [1] * len(rows)), options.show)
    for path in sorted((options.data / "vqa_rad" / "predictions").glob("*.jsonl")):
        answers = predictions(path)
        coverage(f"VQA-RAD, {path.stem}", answers, options.show)


if __name__ == "__main__":
    main()
