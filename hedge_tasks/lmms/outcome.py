"""Outcome of a task once all answers are judged: warnings, facts for the results file, and the run file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from loguru import logger

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.judging.base import Judge
from hedge_tasks.judging.outcomes import DECLINED, OUTCOMES, outcome_of
from hedge_tasks.runs.health import health_of
from hedge_tasks.runs.run_files import Run, now

Everything = Sequence[tuple[int, AnswerSet, dict[str, Any]]]
"""(number of the document, its answers, the record of its verdict) of all processes, in the order of the documents."""


def report_outcome(
    task: str, judge: Judge, everything: Everything, sampled: Mapping[str, Any], n_failed: int
) -> dict[str, Any]:
    """Say in the log, and as facts for the results, where numbers rest on less than they seem to.

    Args:
        sampled: how the model behaved (decoding sent, findings of the probe, use of the picture).
        n_failed: documents left out.
    """
    answer_sets = [answers for _, answers, _ in everything]
    unlabelled = sum(answers.label is None for answers in answer_sets)
    without = sum(not answers.has_logprobs for answers in answer_sets)
    outcome: dict[str, Any] = {"documents": len(answer_sets), "unlabelled": unlabelled, "without_logprobs": without}
    came = Counter(outcome_of(verdict) for _, _, verdict in everything)
    outcome["outcomes"] = {name: came[name] for name in OUTCOMES if came[name]}
    declined = came[DECLINED]
    if unlabelled:
        logger.warning(
            "{}: judge {!r} gave no label to {} of {} baseline answers{}; they are left out of every AUROC",
            *(task, judge.name, unlabelled, len(answer_sets)),
            f" ({declined} of them are declined)" if declined else "",
        )
    if without:
        logger.warning(
            "{}: no log-probabilities for {} of {} documents; their answers weigh the same (discrete entropy)",
            *(task, without, len(answer_sets)),
        )
    health = health_of(run_of(task, "", everything, {"sampled": sampled, "failed": [None] * n_failed}))
    for finding in health.findings:
        if not finding.unreliable:
            logger.warning("{}: {}", task, finding.text)
    if health.unreliable:
        outcome["unreliable"] = health.unreliable
        logger.warning("{}: the metrics are UNRELIABLE: {}", task, health.unreliable)
    return {**outcome, "health": health.to_dict()}


def run_of(task: str, model: str, everything: Everything, settings: Mapping[str, Any]) -> Run:
    """Answers, labels and settings as a run, made now."""
    return Run(
        task=task,
        model=model,
        answer_sets=tuple(answers for _, answers, _ in everything),
        verdicts={answers.id: verdict for _, answers, verdict in everything},
        settings=dict(settings),
        created=now(),
    )
