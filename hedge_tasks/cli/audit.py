"""`hedge audit`: experts label a designed sample, and every number is told against them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hedge_tasks.cli.choices import add_detectors, add_scored_run, chosen_detectors, chosen_run, chosen_scorer
from hedge_tasks.io.commands import Parser, add_out, command, show

if TYPE_CHECKING:
    from hedge_tasks.judging.designed import AuditPlan, ExpertAudit
    from hedge_tasks.measures.audit_plan import Planned
    from hedge_tasks.numbers import Table
    from hedge_tasks.runs.run_files import Run

_LONGEST = 100
"""Characters that say who labelled."""

_PURPOSES = ("auroc", "compare", "policy", "rate")


def add(commands: Parser) -> None:
    parts = commands.add_command("audit", "have experts label a sample, and tell every number against them")

    plan = command(parts, "plan", _plan, "choose documents for experts; write a page and a CSV for them")
    add_scored_run(plan)
    plan.add_argument("--budget", type=int, required=True, metavar="N", help="documents to label")
    plan.add_argument(
        "--for", dest="purpose", choices=_PURPOSES, default="auroc", help="number that matters (default: auroc)"
    )
    plan.add_argument("--detector", default="se", metavar="NAME", help="detector whose AUROC matters (default: se)")
    plan.add_argument("--against", metavar="NAME", help="with --for compare: the detector to compare with")
    plan.add_argument("--raters", type=int, default=1, help="people, 1 or 2 (default: 1)")
    plan.add_argument(
        "--whole",
        action="store_true",
        help="draw images (or other groups) with all of their documents: fewer to look at",
    )
    plan.add_argument("--hide-reference", action="store_true", help="do not show the right answer of the data set")
    plan.add_argument("--seed", type=int, default=0, help="seed of the draw (default: 0)")
    add_out(plan, "a folder (default: audit-TASK)")

    apply = command(parts, "apply", _apply, "tell a run's numbers against the labels that came back")
    add_scored_run(apply)
    apply.add_argument(
        "files", type=Path, nargs="+", metavar="LABELS", help="the page's CSV, a table, or Label Studio's JSON"
    )
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
    from hedge_tasks.detectors.registry import named
    from hedge_tasks.measures.audit_plan import make_plan, write_plan
    from hedge_tasks.report.pictures import stored_documents

    run = chosen_run(arguments)
    detectors = named(",".join(name for name in (arguments.detector, arguments.against) if name))
    scorer = chosen_scorer(arguments, run).with_detectors(detectors)
    planned = make_plan(
        run,
        scorer.score(run.answer_sets),
        detector=arguments.detector,
        filter_name=scorer.name,
        n=arguments.budget,
        purpose=arguments.purpose,
        against=arguments.against,
        raters=arguments.raters,
        reference=not arguments.hide_reference,
        whole=arguments.whole,
        seed=arguments.seed,
    )
    stored, note = stored_documents(run)
    folder = arguments.out or Path(f"audit-{run.task}")
    files = write_plan(planned, folder, {document.id: document.files for document in stored})
    facts = {"plan": planned.plan.model_dump(), "widths": planned.widths, "files": files}
    notes = [text for text in (_scarce(run, arguments.budget), note) if text]
    show(arguments, facts, *_planned(planned), *notes, _next(files))
    return 0


def _scarce(run: Run, n: int) -> str:
    """Return a note where labels of the rarer kind will be few."""
    from hedge_tasks.judging.strata import SCARCE, expected_rarer
    from hedge_tasks.numbers import WHOLE

    rarer = expected_rarer([answers.label for answers in run.answer_sets], n)
    if rarer >= SCARCE:
        return ""
    return (
        f"Of {n} labels at random about {WHOLE(rarer)} would be of the rarer kind, which is few: the interval will be "
        "on the long side, and by such labels alone there may be none. More labels help most."
    )


def _planned(planned: Planned) -> list[Table]:
    from hedge_tasks.numbers import Column, Table

    plan = planned.plan
    n = sum(item.id is not None for item in plan.items)
    images = f", all of {sum(stratum.take for stratum in plan.strata)} images" if plan.units else ""
    strata = Table(
        [
            Column("stratum"),
            Column("documents", "images" if images else "documents"),
            Column("to_label"),
            Column("probability"),
        ],
        [
            {"stratum": s.title, "documents": s.size, "to_label": s.take, "probability": s.take / s.size}
            for s in plan.strata
        ],
        title=f"{plan.task}: {n} of {len(plan.documents)} documents{images}, and {len(plan.items) - n} hidden controls",
    )
    widths = Table(
        [Column("labels"), Column("width", "width of the 95 % interval")],
        [{"labels": k, "width": width} for k, width in planned.widths.items()],
        notes=[
            f"Of the {plan.purpose} of {plan.detector} on this run, if the judge is wrong in 10 % of what it calls "
            "supported and 40 % of what it calls hallucinated. The labels will tell."
        ],
    )
    return [strata, widths]


def _next(files: Sequence[Path]) -> str:
    pages = ", ".join(str(file) for file in files if file.suffix == ".html")
    return (
        f"Give people {pages} (or the CSV beside it). Keep {files[0].name} from them: it knows the controls. "
        f"Then, with the files that come back: hedge audit apply RUN LABELS... --plan {files[0]}"
    )


def _apply(arguments: argparse.Namespace) -> int:
    from hedge_tasks.measures.audit_plan import basis_of
    from hedge_tasks.measures.audited import (
        audited_curves,
        audited_differences,
        audited_numbers,
        differences_table,
        judge_by_experts,
        numbers_table,
        quality_table,
        readings_by_experts,
        readings_table,
    )

    run = chosen_run(arguments)
    audit = _audit(arguments, run)
    scorer = chosen_scorer(arguments, run)
    scorer = scorer.with_detectors(chosen_detectors(arguments, scorer.detectors))
    detectors = list(scorer.detectors)
    scores = scorer.score(run.answer_sets)
    estimates = [*audited_numbers(run, scores, detectors, audit), *audited_curves(scores, detectors, audit)]
    numbers = numbers_table(estimates, audit)
    differences = differences_table(audited_differences(scores, detectors, detectors[0], audit))
    quality = quality_table(judge_by_experts(run, audit, basis_of))
    tables = {"numbers": numbers, "differences": differences, "judge": quality}
    if by_reading := readings_by_experts(run, audit):
        tables["readings"] = readings_table(by_reading)
    facts = {"task": run.task, "model": run.model, **tables}
    show(arguments, facts, f"{run.title}; filter {scorer.name}", *tables.values())
    return 0


def _audit(arguments: argparse.Namespace, run: Run) -> ExpertAudit:
    """Return the labels of the files, and keep them beside the run."""
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.judging.designed import plan_at_random, put_together, read_experts, read_plan
    from hedge_tasks.runs.audit_files import check_plan, keep_audit
    from hedge_tasks.runs.integrity import is_run_file

    plan: AuditPlan
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
