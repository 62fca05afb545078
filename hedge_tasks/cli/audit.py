"""`hedge audit`: have experts label a sample, and tell every number against them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.cli.choices import ClusteringChoice, RunChoice
from hedge_tasks.cli.printing import typed

if TYPE_CHECKING:
    from hedge_tasks.judging.designed import AuditPlan
    from hedge_tasks.runs.run_files import Run


def plan(
    run: RunChoice, *, budget: int, hide_reference: bool = False, seed: int = 0, out: Path | None = None
) -> dict[str, Any]:
    """Choose documents for experts; write a page and a CSV for them.

    Args:
        budget: Documents to label.
        hide_reference: Do not show the right answer of the data set.
        seed: Of the draw.
        out: A folder; audit-TASK if not given.
    """
    from hedge_tasks.measures.audit_plan import make_plan, write_plan
    from hedge_tasks.report.pictures import stored_documents

    finished = run.load()
    planned = make_plan(finished, n=budget, seed=seed)
    stored, note = stored_documents(finished)
    pictures = {document.id: document.files for document in stored}
    folder = out or Path(f"audit-{finished.task}")
    files = write_plan(planned, finished, folder, pictures, reference=not hide_reference)
    rows = [{"stratum": s.title, "documents": s.size, "to_label": s.take} for s in planned.strata]
    give = f"Give people {files[1]} (or the CSV beside it); plan.json says which documents they are."
    back = f"With the files that come back: {typed('audit', 'apply', run.run, files[2])}"
    notes = [*([note] if note else []), f"{give} {back}"]
    to_label = f"{len(planned.codes)} of {len(planned.documents)}"
    return {"files": files, "to_label": to_label, "strata": rows, "notes": notes}


def apply(
    run: RunChoice,
    labels: list[Path],
    clustering: ClusteringChoice,
    *,
    plan: Path | None = None,
    random: bool = False,
    by: str = "",
) -> dict[str, Any]:
    """Tell a run's numbers against the labels that came back.

    Args:
        labels: The page's CSV, or a table.
        plan: Of `hedge audit plan`; plan.json beside the labels if not given.
        random: No plan: the documents are a simple random sample of the run.
        by: Who labelled, in roles and numbers, such as "2 radiologists"; no names.
    """
    from hedge_tasks.judging.designed import digests_of, put_together, read_experts
    from hedge_tasks.measures import audited
    from hedge_tasks.runs.audit_files import keep_audit
    from hedge_tasks.runs.run_files import is_run_file

    finished = run.load()
    planned = _plan(finished, labels, plan, random=random).replaced(texts=digests_of(finished.answer_sets))
    read = [label for file in labels for label in read_experts(file)]
    audit = put_together(planned, read, by)
    kept = {}
    if finished.path is not None and is_run_file(finished.path):
        file = keep_audit(finished, planned, read, by)
        kept = {"written": file, "notes": ["Numbers of the run go by these labels until this file is deleted."]}
    scorer = clustering.scorer(finished)
    names, scores = scorer.detectors, scorer.score(finished.answer_sets)
    return {
        **{"task": finished.task, "model": finished.model, "filter": scorer.name},
        "numbers": audited.numbers_table(audited.audited_numbers(finished, scores, names, audit), audit),
        "differences": audited.differences_table(audited.audited_differences(scores, names, names[0], audit)),
        "judge": audited.judge_table(finished, audit),
        **kept,
    }


def _plan(finished: Run, labels: list[Path], file: Path | None, *, random: bool) -> AuditPlan:
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.judging.designed import plan_at_random, read_plan
    from hedge_tasks.runs.audit_files import check_plan

    if random and file is not None:
        raise ConfigError("choose one of --plan and --random")
    if random:
        return plan_at_random([answers.id for answers in finished.answer_sets])
    path = file or labels[0].with_name("plan.json")
    if not path.is_file():
        raise ConfigError(f"there is no plan {path}: name it with --plan; a simple random sample has --random instead")
    read = read_plan(path)
    check_plan(finished, read, path)
    return read


COMMANDS = {"plan": plan, "apply": apply}
