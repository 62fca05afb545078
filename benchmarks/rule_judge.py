"""Measure the rule judge against readings and human labels, and show how much of real answers it judges.

    python benchmarks/rule_judge.py --data DIR [--show N]

The first table has real answers: how many the judge leaves without a verdict, by question type; the second what of
them was read; the third how often each kind of verdict was false. A fifth of the questions, by hash, is held out: the
rules were written without looking at how the judge does on them (Kvasir-VQA repeats references under many questions,
so there the references are held out).

What was read is in `rule_judge_readings.jsonl`: hashes of (question, reference, answer) and whether the answer means
what the reference means (supported), does not (hallucinated), claims nothing (no_answer) or is open to argument, for
instance because it is only less specific. A language model read them, the one that wrote the third edition, before it
knew the verdicts; so the texts of the held-out answers, though no verdicts on them, had been seen when the rules were
written. Answers equal to the reference were not read.

DIR holds `judge/medhallmark_judged.jsonl`, `judge/halp_vlm_hallucinated_80.jsonl`, `kvasir/*.csv` and
`vqa_rad/predictions/*.jsonl`; a file that is not there is skipped. `--show N` prints N randomly chosen verdicts per
file for reading. `RESULTS.md` has what earlier editions gave.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hedge_tasks.judging import Case, Verdict, build_judge
from hedge_tasks.replies.reading import UNANSWERED
from hedge_tasks.statistics.agreement import Agreement, cohen_kappa, percent_agreement

Row = dict[str, Any]
CORRECT_STATEMENT = 5  # Med-HallMark's category of answers without a hallucination


def read(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def case(number: int, question: str, reference: str, answer: str) -> Case:
    return Case(id=str(number), question=question, reference=reference, answer=answer)


def held_out(text: str) -> bool:
    """A fifth of the questions (Kvasir-VQA: of the references), by hash, kept back while the rules were written."""
    return int(hashlib.sha256(text.strip().lower().encode()).hexdigest(), 16) % 5 == 0


def real_answers(folder: Path) -> list[tuple[str, list[tuple[str, Case]]]]:
    """(name of the file, (question type, case) of each answer) of every file of real answers."""
    files = [(path.stem, predictions(path)) for path in sorted((folder / "vqa_rad" / "predictions").glob("*.jsonl"))]
    for path in sorted((folder / "kvasir").glob("*.csv")):
        with path.open(encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        texts = [(r["question"].removeprefix("<MedVQA>"), r["answer"], r["generated_answer"]) for r in rows]
        files.append((path.stem, [("open", case(i, *text)) for i, text in enumerate(texts)]))
    return files


def of_hold_out(name: str, of: Case) -> bool:
    return held_out(of.reference if "kvasir" in name else of.question)


def silent(verdict: Verdict) -> bool:
    """Does the judge say that the answer claims nothing?"""
    return verdict.label is None and verdict.basis in UNANSWERED


def unlabelled(folder: Path, number: int) -> None:
    """The share without a verdict, by file, question type, and side of the hold-out; then some verdicts of each."""
    judge = build_judge("rule")
    print(f"\nrule judge version {judge.version}; silent: claims nothing; undecided: neither label nor silent")
    print("| answers, questions | n | silent | undecided | judged hallucinated | held out: n | silent | undecided |")
    print("|---|---|---|---|---|---|---|---|")
    for name, rows in real_answers(folder):
        for kind in sorted({kind for kind, _ in rows}):
            sides = []
            for side in (False, True):
                verdicts = judge.judge([c for k, c in rows if k == kind and of_hold_out(name, c) == side])
                n, quiet = len(verdicts), sum(map(silent, verdicts))
                left = sum(v.label is None for v in verdicts) - quiet
                labelled = [v.label for v in verdicts if v.label is not None]
                sides.append((n, share(quiet, n), share(left, n), ratio(sum(labelled), len(labelled))))
            (n, quiet_share, left_share, wrong), (n_out, quiet_out, left_out, _) = sides
            title = name.replace("_", " ")
            cells = (f"{title}, {kind}", n, quiet_share, left_share, wrong, n_out, quiet_out, left_out)
            print("| " + " | ".join(map(str, cells)) + " |")
    for name, rows in real_answers(folder) if number else ():
        print(f"\n{name}")
        cases = [c for _, c in rows]
        show(cases, judge.judge(cases), number)


def share(part: int, whole: int) -> str:
    return f"{part / whole:.3f}" if whole else "undefined"


@dataclass(frozen=True)
class Reading:
    """An answer that was read: where it is from, as what it was read, and the verdict on it."""

    source: str
    kind: str
    held_out: bool
    read_as: str
    cluster: str
    verdict: Verdict

    @property
    def label(self) -> int | None:
        return {"supported": 0, "hallucinated": 1}.get(self.read_as)


def read_answers(folder: Path) -> list[Reading]:
    """The readings whose answers are in the folder, with the judge's verdicts."""
    known = {row["key"]: row for row in read(Path(__file__).with_name("rule_judge_readings.jsonl"))}
    judge, found = build_judge("rule"), {}
    for name, rows in real_answers(folder):
        for _, of in rows:
            key = hashlib.sha256("\0".join((of.question, of.reference, of.answer)).encode()).hexdigest()[:20]
            if key in known and key not in found:
                row, cluster = known[key], of.reference if "kvasir" in name else of.question.strip().lower()
                facts = (row["source"], row["type"], row["held_out"], row["read_as"])
                found[key] = Reading(*facts, cluster, judge.judge([of])[0])
    print(f"\n{len(found)} of {len(known)} read answers are here")
    return list(found.values())


def agreement(readings: Sequence[Reading]) -> None:
    """Agreement and kappa by source, question type and side; intervals are bootstraps over questions."""
    print("\n| read answers | n | hallucinated | undecided | agreement [95 %] | kappa [95 %] | silent: found of read |")
    print("|---|---|---|---|---|---|---|")
    keys = sorted({(r.source, r.kind, r.held_out) for r in readings})
    groups = [
        (
            f"{s}, {k}, {'held out' if h else 'developed on'}",
            lambda r, key=(s, k, h): key == (r.source, r.kind, r.held_out),
        )
        for s, k, h in keys
    ]
    groups.append(("all open, held out", lambda r: r.kind == "open" and r.held_out))
    for title, mine in groups:
        rows = [r for r in readings if mine(r)]
        quiet = [r for r in rows if r.read_as == "no_answer"]
        labelled = [r for r in rows if r.label is not None]
        judged = [r for r in labelled if r.verdict.label is not None]
        people, machine = [r.label for r in judged], [r.verdict.label for r in judged]
        clusters = [r.cluster for r in judged]
        agree = percent_agreement([people, machine], groups=clusters)
        beyond = cohen_kappa(people, machine, groups=clusters)
        cells = (
            title,
            len(labelled),
            sum(r.label == 1 for r in labelled),
            len(labelled) - len(judged),
            interval(agree),
            interval(beyond),
            f"{sum(silent(r.verdict) for r in quiet)} of {len(quiet)}",
        )
        print("| " + " | ".join(map(str, cells)) + " |")


def interval(of: Agreement) -> str:
    if of.value is None:
        return f"undefined ({of.reason})"
    return f"{of.value:.3f}" + (f" [{of.interval[0]:.3f}, {of.interval[1]:.3f}]" if of.interval else "")


def false_verdicts(readings: Sequence[Reading]) -> None:
    """How often each kind of verdict was false, among the answers that were read as one or the other."""
    print("\n| verdict (rule) | developed on: false of read | held out: false of read | both |")
    print("|---|---|---|---|")
    judged = [r for r in readings if r.label is not None and r.verdict.label is not None]

    def kinds(r: Reading) -> tuple[str, str]:
        name = "hallucinated" if r.verdict.label else "supported"
        return name, f"{name} ({r.verdict.reason.partition(':')[0]})"

    for kind in sorted({kind for r in judged for kind in kinds(r)}):
        mine = [r for r in judged if kind in kinds(r)]
        parts = [[r for r in mine if r.held_out == side] for side in (False, True)]
        cells = [f"{sum(r.label != r.verdict.label for r in part)} of {len(part)}" for part in (*parts, mine)]
        print(f"| {kind} | " + " | ".join(cells) + " |")


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
    print(f"  Cohen's kappa               {interval(cohen_kappa(human, [v.label for v in verdicts]))}")
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the judged answers")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print N random verdicts per file")
    options = parser.parse_args()
    if not any((options.data / part).exists() for part in ("judge", "vqa_rad")):
        parser.error(f"{options.data} has neither a folder 'judge' nor 'vqa_rad'")

    unlabelled(options.data, options.show)
    readings = read_answers(options.data)
    if readings:
        agreement(readings)
        false_verdicts(readings)
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


if __name__ == "__main__":
    main()
