"""Audits beside their runs: what experts said, without their names, in a file that every command finds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field

from hedge_tasks.adjudication.designed import AuditPlan, ExpertAudit, ExpertSaid, put_together
from hedge_tasks.errors import DataError
from hedge_tasks.io import outside
from hedge_tasks.io.files import write_whole
from hedge_tasks.io.records import Count, Items, Name, Pair, Record, Text
from hedge_tasks.runs.run_files import Run, file_of

ENDING = ".audit.json"
CHECK = ".check.json"


class KeptLabel(Record):
    """One label: the item, who (a number) and what."""

    code: Name
    rater: Annotated[int, Field(ge=1)]
    label: Text


class KeptAudit(Record):
    """A plan with the labels that came back, and who gave them, in roles and numbers."""

    plan: AuditPlan
    labels: Items[KeptLabel]
    by: Annotated[str, Field(max_length=100)] = ""


def audit_file(run: Run) -> Path:
    """Return the file of a run's audit, whether there is one or not.

    Raises:
        DataError: the run was not read from a run file.
    """
    path = file_of(run)
    return path.with_name(path.stem + ENDING)


def keep_audit(run: Run, plan: AuditPlan, said: Sequence[ExpertSaid], by: str = "") -> Path:
    """Write an audit beside its run; people become numbers.

    Args:
        by: who labelled, in roles and numbers.

    Raises:
        DataError: the run was not read from a run file, or the file cannot be written.
    """
    numbers = {name: i for i, name in enumerate(dict.fromkeys(each.rater for each in said), start=1)}
    labels = tuple(KeptLabel(code=each.code, rater=numbers[each.rater], label=each.meaning) for each in said)
    path = audit_file(run)
    write_whole(path, KeptAudit(plan=plan, labels=labels, by=by).model_dump_json() + "\n")
    return path


def audit_of(run: Run) -> ExpertAudit | None:
    """Return the audit that stands beside a run; None where there is none.

    Raises:
        DataError: it is damaged, or of another run.
    """
    if run.path is None:
        return None
    path = run.path.with_name(run.path.stem + ENDING)
    if not path.is_file():
        return None
    kept = KeptAudit.read(outside.parse_json(outside.read_text(path), str(path)), str(path))
    check_plan(run, kept.plan, path)
    said = [ExpertSaid(str(path), label.code, str(label.rater), label.label) for label in kept.labels]
    return put_together(kept.plan, said, kept.by)


def check_plan(run: Run, plan: AuditPlan, path: Path) -> None:
    """Refuse a plan of another run.

    Raises:
        DataError: it is.
    """
    if set(plan.documents) != {answers.id for answers in run.answer_sets}:
        raise DataError(f"{path}: the plan is of other documents than the run {run.title}")
    if plan.created and (plan.task, plan.created) != (run.task, run.created):
        raise DataError(f"{path}: the plan is of another run ({plan.task}, {plan.created}); its answers are others")


class KeptCheck(Record):
    """Findings of `hedge judge RUN --check` about the judge that labelled a run.

    Attributes:
        judge: its name.
        sensitivity, specificity: right ones, and of how many.
    """

    judge: Text
    sensitivity: Pair[Count]
    specificity: Pair[Count]


def keep_check(run: Run, check: KeptCheck) -> Path:
    """Write a check of the judge beside a run that it labelled.

    Raises:
        DataError: the run was not read from a run file, or the file cannot be written.
    """
    path = file_of(run)
    path = path.with_name(path.stem + CHECK)
    write_whole(path, check.model_dump_json() + "\n")
    return path


def check_of(run: Run) -> KeptCheck | None:
    """Return the check of the judge that stands beside a run; None where there is none.

    Raises:
        DataError: it is damaged.
    """
    if run.path is None:
        return None
    path = run.path.with_name(run.path.stem + CHECK)
    return KeptCheck.read(outside.parse_json(outside.read_text(path), str(path)), str(path)) if path.is_file() else None
