"""Audits beside their runs: the labels of experts, without their names, in a file that every command finds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field, Strict

from hedge_tasks.errors import DataError
from hedge_tasks.io import outside
from hedge_tasks.io.files import write_whole
from hedge_tasks.io.records import AtLeastOne, Items, Name, Record, Text
from hedge_tasks.judging.designed import AuditPlan, ExpertAudit, ExpertSaid, digests_of, put_together
from hedge_tasks.runs.run_files import Run, file_of

ENDING = ".audit.json"


KeptLabel = Annotated[tuple[Name, AtLeastOne, Text], Strict(False)]
"""The item, the number of the rater, and the label."""


class KeptAudit(Record):
    """A plan with the labels that came back, and the people who gave them, in roles and numbers."""

    plan: AuditPlan
    labels: Items[KeptLabel]
    by: Annotated[str, Field(max_length=100)] = ""


def keep_audit(run: Run, plan: AuditPlan, expert_labels: Sequence[ExpertSaid], by: str = "") -> Path:
    """Write an audit beside its run; people become numbers.

    Args:
        expert_labels: the labels, with the names of their raters.
        by: who labelled, in roles and numbers.

    Raises:
        DataError: the run was not read from a run file, or the file cannot be written.
    """
    raters = [*dict.fromkeys(e.rater for e in expert_labels)]
    labels = tuple((e.code, 1 + raters.index(e.rater), e.meaning) for e in expert_labels)
    path = file_of(run).with_suffix(ENDING)
    write_whole(path, KeptAudit(plan=plan, labels=labels, by=by).model_dump_json() + "\n")
    return path


def audit_of(run: Run) -> ExpertAudit | None:
    """Return the audit that stands beside a run; None where there is none.

    Raises:
        DataError: it is damaged, or of another run.
    """
    if run.path is None or not (path := run.path.with_suffix(ENDING)).is_file():
        return None
    audit = KeptAudit.read(outside.read_json(path), str(path))
    check_plan(run, audit.plan, path)
    labels = [ExpertSaid(str(path), code, str(rater), label) for code, rater, label in audit.labels]
    return put_together(audit.plan, labels, audit.by)


def check_plan(run: Run, plan: AuditPlan, path: Path) -> None:
    """Refuse a plan of another run.

    Raises:
        DataError: it is.
    """
    now = digests_of(run.answer_sets)
    if plan.created not in ("", run.created) or plan.texts not in ({}, now) or {*plan.documents} != {*now["answer"]}:
        raise DataError(
            f"{path}: the plan is of another run ({plan.task}, {plan.created}), or of other documents or answers of it"
        )
