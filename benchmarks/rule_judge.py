"""Measure the rule judge against human labels and show how much of real answers it judges.

    python benchmarks/rule_judge.py --data DIR [--show N]

DIR holds `judge/medhallmark_judged.jsonl`, `judge/halp_vlm_hallucinated_80.jsonl` and
`vqa_rad/predictions/*.jsonl`; a file that is not there is skipped. `--show N` prints N randomly chosen verdicts per
file for reading.
"""

from __future__ import annotations

import argparse
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
    options = parser.parse_args()
    if not any((options.data / part).exists() for part in ("judge", "vqa_rad")):
        parser.error(f"{options.data} has neither a folder 'judge' nor 'vqa_rad'")

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
        rows = read(path)
        answers = [
            (
                r.get("answer_type") or r["type"],
                case(
                    i,
                    r["question"],
                    r.get("ground_truth") or r["answer"],
                    r["prediction"] if "prediction" in r else r["clean"],
                ),
            )
            for i, r in enumerate(rows)
        ]
        coverage(f"VQA-RAD, {path.stem}", answers, options.show)


if __name__ == "__main__":
    main()
