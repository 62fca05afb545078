"""`hedge judge --check`: a judge against labels that people gave, beside what it has to beat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.cli.printing import Details
from hedge_tasks.errors import ConfigError
from hedge_tasks.judging import NO_ANSWER, judge_from
from hedge_tasks.judging.baselines import MAJORITY, majority, stand_beside
from hedge_tasks.judging.check import LABELS, check, check_categories, facets, read_checked
from hedge_tasks.llm import account

if TYPE_CHECKING:
    from hedge_tasks.judging import Judge, Verdict
    from hedge_tasks.judging.check import Facet, JudgeCheck
    from hedge_tasks.judging.label_files import HumanLabel


def run_check(file: Path, judge: Judge, **options: Any) -> dict[str, Any]:
    """Return facts of a judge against labels that people gave, beside the rule and a guess.

    Args:
        file: A case and its label a row.
        options: Of `hedge_tasks.judging.check.read_checked`.

    Raises:
        ConfigError: It judged none of them.
    """
    cases, human = read_checked(file, **options)
    case_facets = facets(cases, human, options["columns"])
    verdicts, scheme = judge.judge(cases), options["scheme"]
    if all(verdict.label is None and verdict.category is None for verdict in verdicts):
        raise ConfigError(f"{judge.name}: it judged none of {len(cases)} answers, so there is nothing to compare")
    checks = {"labels": check(cases, human, verdicts, case_facets)}
    if scheme and any(v.category not in (None, NO_ANSWER) for v in verdicts):
        checks["categories"] = check_categories(cases, human, verdicts, scheme, case_facets)
    judges: dict[str, Sequence[Verdict]] = {str(getattr(judge, "title", judge.name)): verdicts}
    if judge.name != "rule":
        judges["rule"] = judge_from("rule").judge(cases)
    cost, notes = account.asked(judge)
    facts: dict[str, Any] = {"file": file, "judge": judge.settings(), **cost, "notes": notes}
    for name, result in checks.items():
        facts[name] = {**_facts(result), "beside": _beside(name, human, case_facets, judges)}
    texts = ("question", "reference", "answer")
    wrong = [
        {"line": case.id, **{key: getattr(case, key) for key in texts}, "human": people, "verdict": verdict}
        for case, people, verdict in checks["labels"].wrong
    ]
    return {**facts, "wrong": Details(wrong)}


def _beside(
    name: str, human: Sequence[HumanLabel], case_facets: Sequence[Facet], judges: Mapping[str, Sequence[Verdict]]
) -> list[dict[str, Any]]:
    """Return the judge, the rule and the majority, by labels or by categories, of all answers.

    What got no label counts as wrong; intervals are over images or questions.
    """

    read = attrgetter("category" if name == "categories" else "label")
    outcomes = {i: LABELS.get(key, key) for i, label in enumerate(human) if (key := read(label)) is not None}
    by_judge = {who: [LABELS.get(key := read(own[i]), key) for i in outcomes] for who, own in judges.items()}
    # The rule knows no categories.
    by_judge = {who: own for who, own in by_judge.items() if who != "rule" or any(own)}
    people = list(outcomes.values())
    rivals = stand_beside(people, {**by_judge, MAJORITY: [*majority(people)]}, [case_facets[i].group for i in outcomes])
    return [{"name": r.name, "judged": r.judged, "agreement": r.agreement, "judge_ahead": r.ahead} for r in rivals]


def _facts(result: JudgeCheck) -> dict[str, Any]:
    shares = ("recall", "recall_of_all", "precision")
    headings = (*result.classes, "not judged")
    return {
        **{key: getattr(result, key) for key in ("n", "judged", "coverage", "accuracy", "kappa", "agreement")},
        "question_types": {name: _facts(part) for name, part in result.of_type.items()},
        "classes": {
            name: {**vars(recall), **{key: getattr(recall, key) for key in shares}}
            for name, recall in result.recall.items()
        },
        "confusion": {
            name: dict(zip(headings, row, strict=True))
            for name, row in zip(result.classes, result.confusion, strict=True)
        },
    }
