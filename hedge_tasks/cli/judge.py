"""`hedge judge`: label a finished run anew, or measure a judge against labels that people gave."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.cli.choices import add_scorer, add_task, chosen_scorer
from hedge_tasks.cli.question import printable
from hedge_tasks.io.commands import command, number, show, table

if TYPE_CHECKING:
    from hedge_tasks.adjudication import Case, Judge, Verdict
    from hedge_tasks.adjudication.check import Check
    from hedge_tasks.runs.run_files import Run

_NAMES = {1: "hallucinated", 0: "supported", None: "without a label"}
_LISTED = 20
"""Disagreeing cases in the text; --disagreements writes all."""


def add(commands: Any) -> None:
    parser = command(commands, "judge", run, "label a finished run anew, or check a judge against human labels")
    parser.add_argument(
        "run", type=Path, nargs="?", metavar="RUN", help="lmms-eval's output folder, a run file, or a file of answers"
    )
    parser.add_argument(
        "--judge",
        action="append",
        metavar="SPEC",
        help="name, name:key=value,... or JSON; several for a majority (default: HEDGE_JUDGE)",
    )
    parser.add_argument("--labels", type=Path, metavar="FOLDER", help="where labels are kept (default: beside the run)")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="where the new run file goes (default: beside it)")
    parser.add_argument("--limit", type=float, help="share of unlabelled answers that is taken (default: 0.05)")
    parser.add_argument(
        "--disagreements", type=Path, metavar="CASES.jsonl", help="write the cases that the judges label differently"
    )
    add_task(parser)
    group = parser.add_argument_group("against human labels")
    group.add_argument("--check", type=Path, metavar="LABELS.jsonl", help="question, reference, answer and label a row")
    group.add_argument("--label-field", default="label", metavar="COLUMN", help="column of the label (default: label)")
    group.add_argument("--scheme", metavar="PROMPT", help="whose outcomes the labels are, such as medhallmark")
    group.add_argument(
        "--column", action="append", default=[], metavar="KEY=COLUMN", help="such as reference=ground_truth"
    )
    group.add_argument("--wrong", type=Path, metavar="CASES.jsonl", help="write the cases that the judge got wrong")
    add_scorer(parser)


def run(arguments: argparse.Namespace) -> int:
    from hedge_tasks.errors import ConfigError

    if (arguments.run is None) == (arguments.check is None):
        raise ConfigError("give a RUN to label, or --check with human labels")
    judge = _judge(arguments)
    return _check(arguments, judge) if arguments.check else _relabel(arguments, judge)


def _judge(arguments: argparse.Namespace) -> Judge:
    from hedge_tasks.adjudication import check_judge, configured_judge, judge_from
    from hedge_tasks.adjudication.config import ENVIRONMENT
    from hedge_tasks.errors import ConfigError

    given = arguments.judge or []
    if not given and not os.environ.get(ENVIRONMENT, "").strip():
        raise ConfigError(f"name a judge: --judge rule, --judge llm:model=..., or {ENVIRONMENT}")
    # The command line is nearer to the user than the environment.
    judge = judge_from(given) if given else configured_judge("rule")
    check_judge(judge, cases_have_images=False)
    return judge


# --- a run ------------------------------------------------------------------------------------------------------------


def _relabel(arguments: argparse.Namespace, judge: Judge) -> int:
    from hedge_tasks.adjudication import keep_labels, reliability
    from hedge_tasks.adjudication.reliability import LIMIT
    from hedge_tasks.runs.relabel import changes, relabel
    from hedge_tasks.runs.run_files import load_run, save_run

    finished = load_run(arguments.run, arguments.task)
    out = _out(arguments, finished)
    limit = LIMIT if arguments.limit is None else arguments.limit
    reliability((), limit)  # a wrong limit is found before the asking
    keep_labels(judge, arguments.labels or _labels_folder(finished))
    judged, verdicts = relabel(finished, judge)
    path = save_run(judged, out)
    changed = changes(finished, judged)
    facts: dict[str, Any] = {
        "task": judged.task,
        "model": judged.model,
        "run": str(path),
        "judge": judge.settings(),
        **_counts(verdicts),
        "unreliable": reliability(verdicts, limit),
        "changed": [{"from": a, "to": b, "ids": ids} for (a, b), ids in changed.items()],
    }
    if getattr(judge, "judges", None):
        facts |= _compare(arguments, judged, verdicts)
    show(arguments, facts, _run_text(facts))
    return 0


def _out(arguments: argparse.Namespace, finished: Run) -> Path:
    from hedge_tasks.errors import ConfigError

    if arguments.out is not None:
        return Path(arguments.out)
    if finished.path is None or not finished.path.name.startswith("run-"):
        raise ConfigError(f"{arguments.run} is no run file; say with --out where the new one goes")
    return finished.path.parent


def _labels_folder(finished: Run) -> Path | None:
    from hedge_tasks.adjudication.config import LABELS
    from hedge_tasks.runs.run_files import FOLDER

    if finished.path is None:
        return None
    folder = finished.path.parent
    return (folder.parent if folder.name == FOLDER else folder) / LABELS


def _counts(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    categories: dict[str, int] = {}
    for verdict in verdicts:
        if verdict.category is not None:
            categories[verdict.category] = categories.get(verdict.category, 0) + 1
    labels = [verdict.label for verdict in verdicts]
    counts = {_NAMES[label].replace(" ", "_"): labels.count(label) for label in (1, 0, None)}
    return {"documents": len(verdicts), **counts, "categories": dict(sorted(categories.items()))}


def _compare(arguments: argparse.Namespace, judged: Run, verdicts: Sequence[Verdict]) -> dict[str, Any]:
    from hedge_tasks.runs.judge_comparison import agreement, disagreements, labels_by_judge
    from hedge_tasks.runs.relabel import cases_of

    found = [d.to_dict() for d in disagreements(cases_of(judged), verdicts)]
    if arguments.disagreements:
        _write_lines(arguments.disagreements, found)
    labels = labels_by_judge(verdicts)
    groups = [answer_set.group for answer_set in judged.answer_sets]
    return {
        "labels": {judge: {_NAMES[k]: of.count(k) for k in (1, 0, None)} for judge, of in labels.items()},
        "agreement": {name: asdict(of) for name, of in agreement(verdicts, groups).items()},
        "disagreements": found,
        "auroc": _auroc(arguments, judged, labels),
    }


def _auroc(
    arguments: argparse.Namespace, judged: Run, labels: Mapping[str, Sequence[int | None]]
) -> dict[str, Any] | str:
    """By judge and score; or why there is none. The labels are made and saved, whatever comes of this."""
    from hedge_tasks.errors import HedgeError
    from hedge_tasks.runs.judge_comparison import auroc_by_judge

    try:
        scorer = chosen_scorer(arguments, judged)
        scores = scorer.score(judged.answer_sets)
    except HedgeError as error:
        return str(error)
    by_id = {judge: {s.id: label for s, label in zip(scores, of, strict=True)} for judge, of in labels.items()}
    estimates = auroc_by_judge(scores, by_id)
    return {judge: {name: asdict(e) for name, e in of.items()} for judge, of in estimates.items()}


def _run_text(facts: Mapping[str, Any]) -> str:
    n = facts["documents"]
    lines = [
        f"{facts['task']} of {facts['model'] or 'an unknown model'}, judged anew: {facts['run']}",
        f"{n} answers: {facts['hallucinated']} hallucinated, {facts['supported']} supported, "
        f"{facts['without_a_label']} without a label",
    ]
    if facts["categories"]:
        lines.append("categories: " + ", ".join(f"{name} {count}" for name, count in facts["categories"].items()))
    if facts["unreliable"]:
        lines.append(facts["unreliable"])
    for change in facts["changed"]:
        lines.append(f"{len(change['ids'])} changed from {_NAMES[change['from']]} to {_NAMES[change['to']]}")
    if "agreement" in facts:
        lines += ["", *_panel_lines(facts)]
    return "\n".join(lines)


def _panel_lines(facts: Mapping[str, Any]) -> list[str]:
    counts = [[judge, *(str(of[_NAMES[k]]) for k in (1, 0, None))] for judge, of in facts["labels"].items()]
    lines = [table(["judge", *(_NAMES[k] for k in (1, 0, None))], counts), "", _agreement_table(facts["agreement"])]
    lines += ["", _auroc_table(facts["auroc"]), "", f"{len(facts['disagreements'])} cases labelled differently"]
    for case in facts["disagreements"][:_LISTED]:
        votes = ", ".join(f"{judge} {_NAMES[vote['label']]}" for judge, vote in case["votes"].items())
        texts = (f"{key}: {printable(case.get(key, '')[:200])}" for key in ("question", "reference", "answer"))
        lines += [f"  {case['id']}  {votes}", *(f"    {text}" for text in texts)]
    if len(facts["disagreements"]) > _LISTED:
        lines.append(f"  and {len(facts['disagreements']) - _LISTED} more (--disagreements writes all)")
    return lines


def _auroc_table(auroc: Mapping[str, Any] | str) -> str:
    if isinstance(auroc, str):
        return f"no AUROC: {auroc}"
    names = list(next(iter(auroc.values())))
    rows = [[judge, *(_estimate(of[name]) for name in names), str(of[names[0]]["n"])] for judge, of in auroc.items()]
    return table(["ROC-AUC under", *names, "n"], rows)


def _agreement_table(agreement: Mapping[str, Any]) -> str:
    rows = [[name, _estimate(estimate), str(estimate["n"])] for name, estimate in agreement.items()]
    return table(["agreement", "value", "n"], rows)


def _estimate(estimate: Mapping[str, Any]) -> str:
    if estimate["value"] is None:
        return "undefined"
    bounds = estimate.get("interval")
    return number(estimate["value"], 3) + (f" [{bounds[0]:.3f}, {bounds[1]:.3f}]" if bounds else "")


# --- human labels -----------------------------------------------------------------------------------------------------


def _check(arguments: argparse.Namespace, judge: Judge) -> int:
    from hedge_tasks.adjudication import NO_ANSWER, keep_labels
    from hedge_tasks.adjudication.check import check, check_categories, read_checked

    columns = dict(_pair(text) for text in arguments.column)
    cases, human = read_checked(
        arguments.check, label_field=arguments.label_field, scheme=arguments.scheme, columns=columns
    )
    keep_labels(judge, arguments.labels)
    verdicts = judge.judge(cases)
    checks = {"labels": check(cases, human, verdicts)}
    if arguments.scheme and any(v.category not in (None, NO_ANSWER) for v in verdicts):
        checks["categories"] = check_categories(cases, human, verdicts, arguments.scheme)
    if arguments.wrong:
        _write_lines(arguments.wrong, [_wrong(*row) for row in checks["labels"].wrong])
    facts = {
        "file": str(arguments.check),
        "judge": judge.settings(),
        **{name: _check_json(of) for name, of in checks.items()},
    }
    text = "\n\n".join(_check_text(name, of) for name, of in checks.items())
    show(arguments, facts, f"{_title(judge)} against {arguments.check}\n\n{text}")
    return 0


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
    kappa = _estimate(asdict(found.kappa))
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
                    _estimate(asdict(of.agreement)),
                    _estimate(asdict(of.kappa)),
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


def _write_lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    import json

    from hedge_tasks.io.files import write_whole

    write_whole(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
