"""Is the baseline answer a hallucination? Imports nothing of lmms-eval; each judge is imported when it is built."""

from hedge_tasks.judging.base import NO_ANSWER, Case, Judge, Verdict, build_judge, judge_names, register_judge
from hedge_tasks.judging.config import (
    check_judge,
    configured_judge,
    judge_from,
    keep_labels,
    parse_spec,
    required_judge,
    verdict_record,
)
from hedge_tasks.judging.reliability import reliability

__all__ = [
    "NO_ANSWER",
    "Case",
    "Judge",
    "Verdict",
    "build_judge",
    "judge_names",
    "register_judge",
    "configured_judge",
    "judge_from",
    "parse_spec",
    "required_judge",
    "keep_labels",
    "check_judge",
    "verdict_record",
    "reliability",
]
