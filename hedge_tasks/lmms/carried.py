"""Findings in lmms-eval's result file, and so wherever lmms-eval sends it: the Hub, Weights & Biases.

lmms-eval's own rows have a standard error and no interval, and where a number is undefined its reason is a text.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from loguru import logger

if TYPE_CHECKING:
    from hedge_tasks.measures.headline import Headline

KEY = "hedge"
"""Of the result file."""

TABLE = "evaluation/hedge"
"""In Weights & Biases, beside lmms-eval's own table."""

COLUMNS = ("task", "model", "clustering", "detector", "value", "low", "high", "answers", "hallucinated", "reason")


def findings_in_results(findings: Sequence[Headline]) -> dict[str, Any]:
    """Return the findings by task: sentences, state of trust, rate and every ROC-AUC with its 95 % interval."""
    by_task: dict[str, Any] = {}
    for finding in findings:
        numbers = [dict(zip(COLUMNS[2:], row[2:], strict=True)) for row in rows_of(finding)]
        by_task[finding.run.task] = {**finding.to_dict(), "roc_auc": numbers}
    return by_task


def rows_of(finding: Headline) -> list[tuple[Any, ...]]:
    """Return a row of `COLUMNS` for each ROC-AUC."""
    rows = []
    for (detector, clustering), number in finding.estimates.items():
        labels = (finding.run.task, finding.run.model, clustering, detector)
        rows.append((*labels, number.value, number.low, number.high, number.n, number.n_positive, number.reason or ""))
    return rows


def send_to_wandb(findings: Sequence[Headline]) -> None:
    """Log the findings to the run of Weights & Biases that lmms-eval has begun; nothing where it has begun none."""
    wandb = sys.modules.get("wandb")
    run = getattr(wandb, "run", None)
    if wandb is None or run is None or not findings:
        return
    try:
        rows = [list(row) for finding in findings for row in rows_of(finding)]
        run.log({TABLE: wandb.Table(columns=list(COLUMNS), data=rows)})
        for finding in findings:
            run.summary[f"{finding.run.task}/finding"] = finding.text
            run.summary[f"{finding.run.task}/trust"] = finding.trust.short
            if finding.run.path is not None:
                # All answers and settings: `hedge report` makes its page of it, anywhere.
                artifact = wandb.Artifact(f"hedge-{finding.run.task}", type="hedge_run")
                artifact.add_file(str(finding.run.path))
                run.log_artifact(artifact)
    except Exception as error:  # an evaluation that is done must not fail because of a service
        logger.warning("the findings were not logged to Weights & Biases: {}", error)


def add_to_results(results: Mapping[str, Any], findings: Sequence[Headline]) -> None:
    """Put the findings into the results that lmms-eval is about to write."""
    of_results = [finding for finding in findings if finding.run.task in results.get("results", {})]
    if of_results and isinstance(results, dict):
        results[KEY] = findings_in_results(of_results)
