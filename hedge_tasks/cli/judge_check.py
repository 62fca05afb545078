"""`hedge judge --check`: a judge against labels that people gave, beside what it has to beat."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.io.commands import number, show, table

if TYPE_CHECKING:
    from hedge_tasks.adjudication import Case, Judge, Verdict
    from hedge_tasks.adjudication.baselines import Beside
    from hedge_tasks.adjudication.check import Check, Facet
    from hedge_tasks.adjudication.label_files import HumanLabel


def run_check(arguments: argparse.Namespace, judge: Judge) -> int:
    from hedge_tasks.adjudication import NO_ANSWER, keep_labels
    from hedge_tasks.adjudication.check import check, check_categories, facets, read_checked
    from hedge_tasks.asking.account import asked

    columns = dict(_pair(text) for text in arguments.column)
    cases, human = read_checked(
        arguments.check,
        label_field=arguments.label_field,
        scheme=arguments.scheme,
        columns=columns,
        images=arguments.images,
    )
    about = facets(cases, human, columns)
    keep_labels(judge, arguments.labels)
    verdicts = judge.judge(cases)
    checks = {"labels": check(cases, human, verdicts, about)}
    if arguments.scheme and any(v.category not in (None, NO_ANSWER) for v in verdicts):
        checks["categories"] = check_categories(cases, human, verdicts, arguments.scheme, about)
    if arguments.wrong:
        write_lines(arguments.wrong, [_wrong(*row) for row in checks["labels"].wrong])
    others = _others(arguments, judge, cases)
    beside = {name: _beside(name, human, about, {_title(judge): verdicts, **others}) for name in checks}
    cost, cost_lines = asked(judge)
    facts = {
        "file": str(arguments.check),
        "judge": judge.settings(),
        **cost,
        **{name: {**_check_json(of), "beside": [_beside_json(one) for one in beside[name]]}
           for name, of in checks.items()},
    }  # fmt: skip
    text = "\n\n".join(f"{_check_text(name, of)}\n\n{_beside_text(beside[name])}" for name, of in checks.items())
    show(arguments, facts, "\n\n".join([f"{_title(judge)} against {arguments.check}", text, *cost_lines]))
    return 0


def _others(arguments: argparse.Namespace, judge: Judge, cases: Sequence[Case]) -> dict[str, list[Verdict]]:
    """What the judge has to beat besides guesses: the rule; and of a trained judge the model that it was made of."""
    from hedge_tasks.adjudication import judge_from, keep_labels
    from hedge_tasks.adjudication.config import ENVIRONMENT, parse_spec

    found: dict[str, list[Verdict]] = {}
    if judge.name != "rule":
        found["rule"] = judge_from("rule").judge(cases)
    [spec, *more] = parse_spec(arguments.judge or os.environ.get(ENVIRONMENT, "").strip())
    if not more and spec.get("peft"):
        untrained = judge_from({key: value for key, value in spec.items() if key != "peft"})
        keep_labels(untrained, arguments.labels)
        found[f"{_title(untrained)}, untrained"] = untrained.judge(cases)
    return found


def _beside(
    name: str, human: Sequence[HumanLabel], about: Sequence[Facet], said: Mapping[str, Sequence[Verdict]]
) -> list[Beside]:
    """The judge, the others and the guesses, by labels or by categories."""
    from hedge_tasks.adjudication.baselines import BY_KIND, MAJORITY, majority, majority_by, stand_beside
    from hedge_tasks.adjudication.check import LABELS

    def of(label: int | None, category: str | None) -> str | None:
        return category if name == "categories" else None if label is None else LABELS[label]

    wanted = [of(h.label, h.category) for h in human]
    kept = [i for i, label in enumerate(wanted) if label is not None]
    people = [str(wanted[i]) for i in kept]
    labels: dict[str, list[str | None]] = {
        who: [of(verdicts[i].label, verdicts[i].category) for i in kept] for who, verdicts in said.items()
    }
    # The rule knows no categories.
    labels = {who: own for who, own in labels.items() if who != "rule" or any(own)}
    guesses = {MAJORITY: majority(people), BY_KIND: majority_by(people, [about[i].kind for i in kept])}
    return stand_beside(people, {**labels, **guesses}, [about[i].group for i in kept])


def _beside_json(one: Beside) -> dict[str, Any]:
    ahead = one.ahead
    return {
        "name": one.name,
        "judged": one.judged,
        "agreement": one.agreement.value,
        "interval": one.interval,
        "n": one.agreement.n,
        "groups": one.agreement.n_groups,
        "judge_ahead": None if ahead is None else ahead.value,
        "judge_ahead_interval": one.ahead_interval,
    }


def _beside_text(found: Sequence[Beside]) -> str:
    rows = [
        [
            one.name,
            str(one.judged),
            estimate_text({"value": one.agreement.value, "interval": one.interval}),
            "" if one.ahead is None else estimate_text({"value": one.ahead.value, "interval": one.ahead_interval}),
        ]
        for one in found
    ]
    n, groups = found[0].agreement.n, found[0].agreement.n_groups
    note = f"Of all {n} answers, with what got no label as wrong; intervals over {groups} images or questions."
    return f"{table(['who', 'judged', 'agreement', 'the judge is ahead by'], rows)}\n{note}"


def _title(judge: Judge) -> str:
    return str(getattr(judge, "title", judge.name))


def _pair(text: str) -> tuple[str, str]:
    from hedge_tasks.errors import ConfigError

    key, equals, column = text.partition("=")
    if not equals or not column:
        raise ConfigError(f"--column: expected KEY=COLUMN, such as reference=ground_truth, got {text!r}")
    return key, column


def _check_json(found: Check) -> dict[str, Any]:
    shares = {"recall": "recall", "recall_of_all": "recall_of_all", "precision": "precision"}
    classes = {
        name: {**asdict(of), **{key: getattr(of, attribute) for key, attribute in shares.items()}}
        for name, of in found.recall.items()
    }
    return {
        "n": found.n,
        "judged": found.judged,
        "coverage": found.coverage,
        "accuracy": found.accuracy,
        "kappa": asdict(found.kappa),
        "agreement": asdict(found.agreement),
        "question_types": {name: _check_json(of) for name, of in found.of_type.items()},
        "classes": classes,
        "confusion": {
            people: dict(zip((*found.classes, "not judged"), row, strict=True))
            for people, row in zip(found.classes, found.confusion, strict=True)
        },
    }


def _check_text(name: str, found: Check) -> str:
    kappa = estimate_text(asdict(found.kappa))
    why = f" ({found.kappa.reason})" if found.kappa.value is None else ""
    lines = [
        f"{name}: {found.n} answers, {found.judged} judged",
        f"coverage {number(found.coverage, 3)}, accuracy of the judged {number(found.accuracy, 3)}, "
        f"Cohen's kappa {kappa}{why}",
        "",
        table(
            ["questions", "n", "not judged", "agreement", "kappa"],
            [
                [
                    kind,
                    str(of.n),
                    number(1 - of.judged / of.n, 3),
                    estimate_text(asdict(of.agreement)),
                    estimate_text(asdict(of.kappa)),
                ]
                for kind, of in found.of_type.items()
            ],
        ),
        "",
        table(
            ["class", "n", "recall", "of all", "precision"],
            [
                [key, str(of.n), number(of.recall, 3), number(of.recall_of_all, 3), number(of.precision, 3)]
                for key, of in found.recall.items()
            ],
        ),
        "",
        table(
            ["people \\ judge", *found.classes, "not judged"],
            [[c, *map(str, row)] for c, row in zip(found.classes, found.confusion, strict=True)],
        ),
    ]
    return "\n".join(lines)


def _wrong(case: Case, people: str, verdict: Verdict) -> dict[str, Any]:
    texts = {key: getattr(case, key) for key in ("question", "reference", "answer")}
    return {"line": case.id, **texts, "human": people, "verdict": verdict.to_dict()}


def write_lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    import json

    from hedge_tasks.io.files import write_whole

    write_whole(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def estimate_text(estimate: Mapping[str, Any]) -> str:
    if estimate["value"] is None:
        return "undefined"
    bounds = estimate.get("interval")
    return number(estimate["value"], 3) + (f" [{bounds[0]:.3f}, {bounds[1]:.3f}]" if bounds else "")
