"""`hedge judge --check`: a judge against labels that people gave, beside what it has to beat."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.io.files import write_whole
from hedge_tasks.judging import NO_ANSWER, judge_from, keep_labels
from hedge_tasks.judging.baselines import MAJORITY, majority, stand_beside
from hedge_tasks.judging.check import LABELS, check, check_categories, facets, read_checked
from hedge_tasks.judging.config import parse_spec
from hedge_tasks.llm import account
from hedge_tasks.numbers import Column, Table

if TYPE_CHECKING:
    from hedge_tasks.judging import Case, Judge, Verdict
    from hedge_tasks.judging.baselines import Beside
    from hedge_tasks.judging.check import Facet, JudgeCheck, Recall
    from hedge_tasks.judging.label_files import HumanLabel

_NOT_JUDGED = "not judged"


def run_check(
    file: Path,
    judge: Judge,
    specs: str | Sequence[str],
    *,
    label_store: Path | None,
    wrong: Path | None,
    **options: Any,
) -> dict[str, Any]:
    """Return facts of a judge against labels that people gave, beside the rule and guesses.

    Args:
        file: A case and its label a row.
        specs: What the judge was built from.
        label_store: Folder of the kept replies.
        wrong: Where the cases are written that the judge got wrong.
        options: Of `hedge_tasks.judging.check.read_checked`.
    """
    cases, human = read_checked(file, **options)
    case_facets = facets(cases, human, options["columns"])
    keep_labels(judge, label_store)
    verdicts = judge.judge(cases)
    scheme = options["scheme"]
    checks = {"labels": check(cases, human, verdicts, case_facets)}
    if scheme and any(v.category not in (None, NO_ANSWER) for v in verdicts):
        checks["categories"] = check_categories(cases, human, verdicts, scheme, case_facets)
    if wrong:
        write_lines(wrong, [_wrong(*row) for row in checks["labels"].wrong])
    others, askers = _rivals(judge, specs, label_store, cases)
    judges = {_title(judge): verdicts, **others}
    cost, notes = account.asked(judge, *askers)
    facts: dict[str, Any] = {"file": str(file), "judge": judge.settings(), **cost}
    for name, result in checks.items():
        rivals = _compared(name, human, case_facets, judges)
        facts[name] = {**_check_json(result), "beside": _beside_table(rivals)}
    return {**facts, "notes": notes}


def _rivals(
    judge: Judge, specs: str | Sequence[str], label_store: Path | None, cases: Sequence[Case]
) -> tuple[dict[str, list[Verdict]], list[Judge]]:
    """Judge the cases as the rule does and, beside a trained judge, as the model that it was made of does.

    Returns:
        Verdicts by name, and the judges that were asked for them.
    """
    verdicts: dict[str, list[Verdict]] = {}
    askers: list[Judge] = []
    if judge.name != "rule":
        verdicts["rule"] = judge_from("rule").judge(cases)
    [spec, *further] = parse_spec(specs)
    if not further and spec.get("peft"):
        untrained = judge_from({key: value for key, value in spec.items() if key != "peft"})
        keep_labels(untrained, label_store)
        verdicts[f"{_title(untrained)}, untrained"] = untrained.judge(cases)
        askers.append(untrained)
    return verdicts, askers


def _compared(
    name: str, human: Sequence[HumanLabel], case_facets: Sequence[Facet], judges: Mapping[str, Sequence[Verdict]]
) -> list[Beside]:
    """Return the judge, the others and the guesses, by labels or by categories."""

    def outcome(label: int | None, category: str | None) -> str | None:
        return category if name == "categories" else None if label is None else LABELS[label]

    outcomes = [outcome(h.label, h.category) for h in human]
    labelled = [i for i, label in enumerate(outcomes) if label is not None]
    people = [str(outcomes[i]) for i in labelled]
    labels: dict[str, list[str | None]] = {
        who: [outcome(verdicts[i].label, verdicts[i].category) for i in labelled] for who, verdicts in judges.items()
    }
    # The rule knows no categories.
    labels = {who: own for who, own in labels.items() if who != "rule" or any(own)}
    return stand_beside(people, {**labels, MAJORITY: majority(people)}, [case_facets[i].group for i in labelled])


def _beside_table(rivals: Sequence[Beside]) -> Table:
    columns = [
        *(Column("name", "who"), Column("judged"), Column("agreement", interval=True)),
        Column("judge_ahead", "the judge is ahead by", interval=True),
    ]
    rows = [
        {"name": rival.name, "judged": rival.judged, "agreement": rival.agreement, "judge_ahead": rival.ahead}
        for rival in rivals
    ]
    n, groups = rivals[0].agreement.n, rivals[0].agreement.n_groups
    note = f"Of all {n} answers, with what got no label as wrong; intervals over {groups} images or questions."
    return Table(columns, rows, notes=[note])


def _title(judge: Judge) -> str:
    return str(getattr(judge, "title", judge.name))


def _check_json(check: JudgeCheck) -> dict[str, Any]:
    return {
        "n": check.n,
        "judged": check.judged,
        "coverage": check.coverage,
        "accuracy": check.accuracy,
        "kappa": check.kappa,
        "agreement": check.agreement,
        "question_types": {name: _check_json(part) for name, part in check.of_type.items()},
        "classes": {name: {**vars(recall), **_shares(recall)} for name, recall in check.recall.items()},
        "confusion": {
            people: dict(zip((*check.classes, _NOT_JUDGED), row, strict=True))
            for people, row in zip(check.classes, check.confusion, strict=True)
        },
    }


def _shares(recall: Recall) -> dict[str, float | None]:
    return {"recall": recall.recall, "recall_of_all": recall.recall_of_all, "precision": recall.precision}


def _wrong(case: Case, people: str, verdict: Verdict) -> dict[str, Any]:
    texts = {key: getattr(case, key) for key in ("question", "reference", "answer")}
    return {"line": case.id, **texts, "human": people, "verdict": verdict.to_dict()}


def write_lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    write_whole(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
