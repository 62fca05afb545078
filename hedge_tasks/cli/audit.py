"""`hedge audit`: experts label a sample, and every number is told against them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from hedge_tasks.cli.choices import add_detectors, add_scored_run, chosen_detectors, chosen_run, chosen_scorer
from hedge_tasks.io.commands import Parser, add_out, command, show

if TYPE_CHECKING:
    from hedge_tasks.judging.designed import ExpertAudit
    from hedge_tasks.runs.run_files import Run

_LONGEST = 100
"""Characters that say who labelled."""


def add(commands: Parser) -> None:
    parts = commands.add_command("audit", "have experts label a sample, and tell every number against them")

    plan = command(parts, "plan", _plan, "choose documents for experts; write a page and a CSV for them")
    add_scored_run(plan)
    plan.add_argument("--budget", type=int, required=True, metavar="N", help="documents to label")
    plan.add_argument("--hide-reference", action="store_true", help="do not show the right answer of the data set")
    plan.add_argument("--seed", type=int, default=0, help="seed of the draw (default: 0)")
    add_out(plan, "a folder (default: audit-TASK)")

    apply = command(parts, "apply", _apply, "tell a run's numbers against the labels that came back")
    add_scored_run(apply)
    apply.add_argument("files", type=Path, nargs="+", metavar="LABELS", help="the page's CSV, or a table")
    apply.add_argument("--plan", type=Path, metavar="plan.json", help="of `hedge audit plan` (default: beside LABELS)")
    apply.add_argument(
        "--random", action="store_true", help="no plan: the documents are a simple random sample of the run"
    )
    apply.add_argument(
        "--by",
        default="",
        metavar="TEXT",
        help='who labelled, in roles and numbers, such as "2 radiologists"; no names',
    )
    add_detectors(apply, "those of the run's table")


def _plan(arguments: argparse.Namespace) -> int:
    from hedge_tasks.measures.audit_plan import make_plan, write_plan
    from hedge_tasks.numbers import Column, Table
    from hedge_tasks.report.pictures import stored_documents

    run = chosen_run(arguments)
    plan = make_plan(run, n=arguments.budget, seed=arguments.seed)
    stored, note = stored_documents(run)
    pictures = {document.id: document.files for document in stored}
    folder = arguments.out or Path(f"audit-{run.task}")
    files = write_plan(plan, run, folder, pictures, reference=not arguments.hide_reference)
    strata = Table(
        [Column("stratum"), Column("documents"), Column("to_label")],
        [{"stratum": s.title, "documents": s.size, "to_label": s.take} for s in plan.strata],
        title=f"{plan.task}: {len(plan.codes)} of {len(plan.documents)} documents, in proportion to the judge's labels",
    )
    give = f"Give people {files[1]} (or the CSV beside it); plan.json says which documents they are."
    back = f"With the files that come back: hedge audit apply RUN LABELS... --plan {files[0]}"
    facts = {"plan": plan.model_dump(), "files": files}
    show(arguments, facts, strata, *([note] if note else []), f"{give} {back}")
    return 0


def _apply(arguments: argparse.Namespace) -> int:
    from hedge_tasks.measures.audited import (
        audited_differences,
        audited_numbers,
        differences_table,
        judge_table,
        numbers_table,
    )

    run = chosen_run(arguments)
    audit = _audit(arguments, run)
    scorer = chosen_scorer(arguments, run)
    scorer = scorer.with_detectors(chosen_detectors(arguments, scorer.detectors))
    detectors = list(scorer.detectors)
    scores = scorer.score(run.answer_sets)
    tables = {
        "numbers": numbers_table(audited_numbers(run, scores, detectors, audit), audit),
        "differences": differences_table(audited_differences(scores, detectors, detectors[0], audit)),
        "judge": judge_table(run, audit),
    }
    facts = {"task": run.task, "model": run.model, **tables}
    show(arguments, facts, f"{run.title}; filter {scorer.name}", *tables.values())
    return 0


def _audit(arguments: argparse.Namespace, run: Run) -> ExpertAudit:
    """Return the labels of the files, and keep them beside the run."""
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.judging.designed import plan_at_random, put_together, read_experts, read_plan
    from hedge_tasks.runs.audit_files import check_plan, keep_audit
    from hedge_tasks.runs.run_files import is_run_file

    if arguments.random:
        if arguments.plan is not None:
            raise ConfigError("choose one of --plan and --random")
        plan = plan_at_random([answers.id for answers in run.answer_sets])
    else:
        path = arguments.plan or arguments.files[0].with_name("plan.json")
        if not path.is_file():
            raise ConfigError(
                f"there is no plan {path}: name it with --plan; labels of a simple random sample need --random instead"
            )
        plan = read_plan(path)
        check_plan(run, plan, path)
    labels = [label for file in arguments.files for label in read_experts(file)]
    if len(arguments.by) > _LONGEST or not (arguments.by.isprintable()):
        raise ConfigError(f"--by: expected a text of at most {_LONGEST} characters on one line")
    audit = put_together(plan, labels, arguments.by)
    if run.path is not None and is_run_file(run.path):
        keep_audit(run, plan, labels, arguments.by)
    return audit
