"""Runs from a model's weights of the options of multiple-choice questions, in place of sampled answers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hedge_tasks import __version__
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.data.option_files import OptionQuestion
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.errors import check_names
from hedge_tasks.judging.outcomes import of_unanswered
from hedge_tasks.replies.declining import declining_option
from hedge_tasks.replies.reading import REFUSAL
from hedge_tasks.runs.run_files import Run, now
from hedge_tasks.sampling.option_draws import OptionSampling, draw_options

JUDGE, JUDGE_VERSION = "options", "2"
"""Who says what is hallucinated: the right option is known."""


def run_from_options(
    task: str,
    model: str,
    questions: Sequence[OptionQuestion],
    sampling: OptionSampling,
    source: str = "",
    declining: Collection[str] = (),
) -> Run:
    """Return a run whose draws are simulated from option weights.

    It has no noisy answers. Its filter is exact clustering of a closed set of answers: different options contradict
    each other, so that detectors over NLI relations work without a model.

    Args:
        task, model: names of the run.
        questions: with the model's weights.
        sampling: numbers, temperatures and seed of the draws.
        source: name of the file that the weights are from, for the record.
        declining: labels of options that decline where they are not right, besides those whose text says so.

    Raises:
        ConfigError: no question offers one of `declining`.

    Example:
        >>> question = OptionQuestion("q1", "B", {"A": 0.0, "B": 50.0})
        >>> run_from_options("set", "model", [question], OptionSampling(n=1)).answer_sets[0].label
        0
    """
    offered = {label for question in questions for label in question.logits}
    check_names("option that declines", declining, offered)
    draws = [(question, draw_options(question, sampling, model)) for question in questions]
    declined = {a.id: why for question, a in draws if (why := _why_declined(question, a, declining)) is not None}
    answer_sets = tuple(replace(a, label=None) if a.id in declined else a for _, a in draws)
    scorer = Scorer.build("exact", "exact", {"closed": True})
    settings: dict[str, Any] = {
        "version": __version__,
        "documents": {"judge": {"judge": JUDGE, "version": JUDGE_VERSION}},
        "sampling": {**sampling.model_dump(), "n_noisy": 0, "simulated": "from the model's own weights of the options"},
        "filters": {scorer.name: scorer.settings()},
        "source": source,
    }
    return Run(task, model, answer_sets, {a.id: _verdict(a, declined.get(a.id)) for a in answer_sets}, settings, now())


def _why_declined(question: OptionQuestion, answers: AnswerSet, declining: Collection[str]) -> str | None:
    """Why the option that was taken is no answer; None where it is one, or where it is the right one."""
    option = answers.baseline.text
    if option == question.answer:
        return None
    return REFUSAL if option in declining else declining_option(question.options.get(option, option))


def _verdict(answers: AnswerSet, declined: str | None) -> Mapping[str, Any]:
    if declined is not None:
        verdict = of_unanswered(declined, f"{JUDGE} {JUDGE_VERSION}", JUDGE_VERSION)
        return {**verdict.to_dict(), "reason": f"option {answers.baseline.text} declines: {declined}"}
    option, right = answers.baseline.text, answers.reference
    reason = f"option {option} is right" if answers.label == 0 else f"option {option}, the right one is {right}"
    return {"label": answers.label, "reason": reason, "judge": f"{JUDGE} {JUDGE_VERSION}", "version": JUDGE_VERSION}
