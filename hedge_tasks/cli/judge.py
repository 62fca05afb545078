"""`hedge judge`: label a finished run anew, or measure a judge against labels that people gave."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.cli import judge_training
from hedge_tasks.cli.choices import add_label_columns, add_scorer, add_task, chosen_scorer, label_store_of
from hedge_tasks.cli.judge_check import run_check, write_lines
from hedge_tasks.cli.question import printable
from hedge_tasks.io.commands import Parser, add_label_store, add_out, command, show
from hedge_tasks.numbers import count_of

if TYPE_CHECKING:
    from hedge_tasks.judging import Judge, Verdict
    from hedge_tasks.numbers import Number, Table
    from hedge_tasks.runs.run_files import Run

_NAMES = {1: "hallucinated", 0: "supported", None: "without a label"}
_LISTED = 20
"""Disagreeing cases in the text; --disagreements writes all."""


def add(commands: Parser) -> None:
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
    add_label_store(parser, "what is there is not asked again (default: beside the run)")
    add_out(parser, "folder of the new run file (default: beside RUN)")
    parser.add_argument("--limit", type=float, help="share of unlabelled answers that is taken (default: 0.05)")
    parser.add_argument(
        "--disagreements", type=Path, metavar="CASES.jsonl", help="write the cases that the judges label differently"
    )
    add_task(parser)
    group = parser.add_argument_group("against human labels")
    group.add_argument(
        "--check",
        type=Path,
        metavar="LABELS.jsonl",
        help="question, reference, answer and label a row; kept with RUN, if one is given",
    )
    group.add_argument("--scheme", metavar="PROMPT", help="whose outcomes the labels are, such as medhallmark")
    add_label_columns(group, "reference=ground_truth")
    group.add_argument("--wrong", type=Path, metavar="CASES.jsonl", help="write the cases that the judge got wrong")
    add_scorer(parser)
    judge_training.add(parser)


def run(arguments: argparse.Namespace) -> int:
    from hedge_tasks.errors import ConfigError

    if (arguments.run is None) == (arguments.check is None):
        raise ConfigError("give a RUN to label, or --check with human labels, not both")
    judge = _judge(arguments)
    return run_check(arguments, judge) if arguments.check else _relabel(arguments, judge)


def _judge(arguments: argparse.Namespace) -> Judge:
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.judging import check_judge, configured_judge, judge_from
    from hedge_tasks.judging.config import ENVIRONMENT

    specs = arguments.judge or []
    if not specs and not os.environ.get(ENVIRONMENT, "").strip():
        raise ConfigError(f"name a judge: --judge rule, --judge llm:model=..., or {ENVIRONMENT}")
    # The command line is nearer to the user than the environment.
    judge = judge_from(specs) if specs else configured_judge("rule")
    check_judge(judge, cases_have_images=arguments.images is not None)
    return judge


# --- a run ------------------------------------------------------------------------------------------------------------


def _relabel(arguments: argparse.Namespace, judge: Judge) -> int:
    from hedge_tasks.judging import keep_labels, reliability
    from hedge_tasks.judging.reliability import LIMIT
    from hedge_tasks.llm.account import asked
    from hedge_tasks.runs.relabel import changes, relabel
    from hedge_tasks.runs.run_files import load_run, save_run

    finished = load_run(arguments.run, arguments.task)
    out = _out(arguments, finished)
    limit = LIMIT if arguments.limit is None else arguments.limit
    reliability((), limit)  # a wrong limit is found before the asking
    keep_labels(judge, arguments.label_store or label_store_of(finished))
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
        **asked(judge)[0],
        "changed": [{"from": a, "to": b, "ids": ids} for (a, b), ids in changed.items()],
    }
    if getattr(judge, "judges", None):
        facts |= _compare(arguments, judged, verdicts)
    show(arguments, facts, "\n".join([_run_text(facts), *asked(judge)[1]]))
    return 0


def _out(arguments: argparse.Namespace, finished: Run) -> Path:
    from hedge_tasks.errors import ConfigError

    if arguments.out is not None:
        return Path(arguments.out)
    if finished.path is None or not finished.path.name.startswith("run-"):
        raise ConfigError(f"{arguments.run} is no run file; say with --out where the new one goes")
    return finished.path.parent


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

    cases = [d.to_dict() for d in disagreements(cases_of(judged), verdicts)]
    if arguments.disagreements:
        write_lines(arguments.disagreements, cases)
    labels = labels_by_judge(verdicts)
    groups = [answer_set.group for answer_set in judged.answer_sets]
    return {
        "labels": [
            {"judge": judge, **{name: judged_so.count(label) for label, name in _NAMES.items()}}
            for judge, judged_so in labels.items()
        ],
        "agreement": agreement(verdicts, groups),
        "disagreements": cases,
        "auroc": _auroc(arguments, judged, labels),
    }


def _auroc(
    arguments: argparse.Namespace, judged: Run, labels: Mapping[str, Sequence[int | None]]
) -> Mapping[str, Mapping[str, Number]] | str:
    """Return the AUROC by judge and score, or why there is none. The labels are saved in either case."""
    from hedge_tasks.errors import HedgeError
    from hedge_tasks.runs.judge_comparison import auroc_by_judge

    try:
        scorer = chosen_scorer(arguments, judged)
        scores = scorer.score(judged.answer_sets)
    except HedgeError as error:
        return str(error)
    ids = [score.id for score in scores]
    by_id = {judge: dict(zip(ids, judge_labels, strict=True)) for judge, judge_labels in labels.items()}
    return auroc_by_judge(scores, by_id)


def _run_text(facts: Mapping[str, Any]) -> str:
    n = facts["documents"]
    lines = [
        f"{facts['task']} of {facts['model'] or 'an unknown model'}, judged anew: {facts['run']}",
        f"{count_of(n, 'answer')}: {facts['hallucinated']} hallucinated, {facts['supported']} supported, "
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
    from hedge_tasks.numbers import Column, Table

    counts = Table([Column("judge"), *map(Column, _NAMES.values())], facts["labels"])
    lines = [str(counts), "", str(_agreement_table(facts["agreement"])), "", str(_auroc_table(facts["auroc"]))]
    lines += ["", f"{len(facts['disagreements'])} cases labelled differently"]
    for case in facts["disagreements"][:_LISTED]:
        votes = ", ".join(f"{judge} {_NAMES[vote['label']]}" for judge, vote in case["votes"].items())
        texts = (f"{key}: {printable(case.get(key, '')[:200])}" for key in ("question", "reference", "answer"))
        lines += [f"  {case['id']}  {votes}", *(f"    {text}" for text in texts)]
    if len(facts["disagreements"]) > _LISTED:
        lines.append(f"  and {len(facts['disagreements']) - _LISTED} more (--disagreements writes all)")
    return lines


def _auroc_table(auroc: Mapping[str, Mapping[str, Number]] | str) -> Table | str:
    from hedge_tasks.numbers import Column, Table

    if isinstance(auroc, str):
        return f"no AUROC: {auroc}"
    names = list(next(iter(auroc.values())))
    columns = [Column("judge", "ROC-AUC under"), *(Column(name, name, interval=True) for name in names)]
    columns.append(Column("n", show="n", of=names[0]))
    return Table(columns, [{"judge": judge, **numbers} for judge, numbers in auroc.items()])


def _agreement_table(agreement: Mapping[str, Number]) -> Table:
    from hedge_tasks.numbers import Column, Table

    columns = [Column("agreement"), Column("value", interval=True), Column("n", show="n", of="value")]
    return Table(columns, [{"agreement": name, "value": number} for name, number in agreement.items()])
