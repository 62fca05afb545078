"""`hedge judge --check`: a judge against labels that people gave, beside what it has to beat."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.cli.choices import key_and_value
from hedge_tasks.io.commands import show
from hedge_tasks.numbers import count_of

if TYPE_CHECKING:
    from hedge_tasks.judging import Case, Judge, Verdict
    from hedge_tasks.judging.baselines import Beside
    from hedge_tasks.judging.check import Facet, JudgeCheck, Recall
    from hedge_tasks.judging.label_files import HumanLabel
    from hedge_tasks.numbers import Table

_NOT_JUDGED = "not judged"


def run_check(arguments: argparse.Namespace, judge: Judge) -> int:
    from hedge_tasks.judging import NO_ANSWER, keep_labels
    from hedge_tasks.judging.check import check, check_categories, facets, read_checked
    from hedge_tasks.llm import account

    columns = dict(key_and_value("--column", text, "KEY=COLUMN") for text in arguments.column)
    cases, human = read_checked(
        arguments.check,
        label_field=arguments.label_field,
        scheme=arguments.scheme,
        columns=columns,
        images=arguments.images,
    )
    case_facets = facets(cases, human, columns)
    keep_labels(judge, arguments.label_store)
    verdicts = judge.judge(cases)
    checks = {"labels": check(cases, human, verdicts, case_facets)}
    if arguments.scheme and any(v.category not in (None, NO_ANSWER) for v in verdicts):
        checks["categories"] = check_categories(cases, human, verdicts, arguments.scheme, case_facets)
    if arguments.wrong:
        write_lines(arguments.wrong, [_wrong(*row) for row in checks["labels"].wrong])
    others, askers = _rivals(arguments, judge, cases)
    judges = {_title(judge): verdicts, **others}
    beside = {name: _beside_table(_compared(name, human, case_facets, judges)) for name in checks}
    cost, cost_lines = account.asked(judge, *askers)
    facts = {
        "file": str(arguments.check),
        "judge": judge.settings(),
        **cost,
        **{name: {**_check_json(result), "beside": beside[name]} for name, result in checks.items()},
    }
    parts = [part for name, result in checks.items() for part in (_check_text(name, result), beside[name])]
    show(arguments, facts, f"{_title(judge)} against {arguments.check}", *parts, *cost_lines)
    return 0


def _rivals(
    arguments: argparse.Namespace, judge: Judge, cases: Sequence[Case]
) -> tuple[dict[str, list[Verdict]], list[Judge]]:
    """Judge the cases as the rule does and, beside a trained judge, as the model that it was made of does.

    Returns:
        Verdicts by name, and the judges that were asked for them.
    """
    from hedge_tasks.judging import judge_from, keep_labels
    from hedge_tasks.judging.config import ENVIRONMENT, parse_spec

    verdicts: dict[str, list[Verdict]] = {}
    askers: list[Judge] = []
    if judge.name != "rule":
        verdicts["rule"] = judge_from("rule").judge(cases)
    [spec, *further] = parse_spec(arguments.judge or os.environ.get(ENVIRONMENT, "").strip())
    if not further and spec.get("peft"):
        untrained = judge_from({key: value for key, value in spec.items() if key != "peft"})
        keep_labels(untrained, arguments.label_store)
        verdicts[f"{_title(untrained)}, untrained"] = untrained.judge(cases)
        askers.append(untrained)
    return verdicts, askers


def _compared(
    name: str, human: Sequence[HumanLabel], case_facets: Sequence[Facet], judges: Mapping[str, Sequence[Verdict]]
) -> list[Beside]:
    """Return the judge, the others and the guesses, by labels or by categories."""
    from hedge_tasks.judging.baselines import BY_KIND, MAJORITY, majority, majority_by, stand_beside
    from hedge_tasks.judging.check import LABELS

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
    guesses = {MAJORITY: majority(people), BY_KIND: majority_by(people, [case_facets[i].kind for i in labelled])}
    return stand_beside(people, {**labels, **guesses}, [case_facets[i].group for i in labelled])


def _beside_table(rivals: Sequence[Beside]) -> Table:
    from hedge_tasks.numbers import Column, Table

    columns = [
        Column("name", "who"),
        Column("judged"),
        Column("agreement", interval=True),
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


def _check_text(name: str, check: JudgeCheck) -> str:
    from hedge_tasks.numbers import Column, Table, format_number, format_value

    kappa = format_number(check.kappa, interval=True)
    why = f" ({check.kappa.reason})" if check.kappa.value is None else ""
    heading = (
        f"{name}: {count_of(check.n, 'answer')}, {check.judged} judged\n"
        f"coverage {format_value(check.coverage)}, accuracy of the judged {format_value(check.accuracy)}, "
        f"Cohen's kappa {kappa}{why}"
    )
    kinds = Table(
        [
            Column("questions"),
            Column("n"),
            Column("not_judged"),
            Column("agreement", interval=True),
            Column("kappa", interval=True),
        ],
        [
            {
                "questions": kind,
                "n": part.n,
                "not_judged": 1 - part.judged / part.n,
                "agreement": part.agreement,
                "kappa": part.kappa,
            }
            for kind, part in check.of_type.items()
        ],
    )
    classes = Table(
        [Column("class"), Column("n"), Column("recall"), Column("recall_of_all", "of all"), Column("precision")],
        [{"class": key, "n": recall.n, **_shares(recall)} for key, recall in check.recall.items()],
    )
    judged_as = [*check.classes, _NOT_JUDGED]
    confusion = Table(
        [Column("people", "people \\ judge"), *(Column(key, key) for key in judged_as)],
        [
            {"people": people, **dict(zip(judged_as, row, strict=True))}
            for people, row in zip(check.classes, check.confusion, strict=True)
        ],
    )
    return "\n\n".join(map(str, (heading, kinds, classes, confusion)))


def _wrong(case: Case, people: str, verdict: Verdict) -> dict[str, Any]:
    texts = {key: getattr(case, key) for key in ("question", "reference", "answer")}
    return {"line": case.id, **texts, "human": people, "verdict": verdict.to_dict()}


def write_lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    import json

    from hedge_tasks.io.files import write_whole

    write_whole(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
