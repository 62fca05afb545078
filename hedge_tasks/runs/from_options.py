"""Runs from a model's weights of the options of multiple-choice questions, in place of sampled answers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.data.option_files import OptionQuestion
from hedge_tasks.errors import check_names
from hedge_tasks.judging import Verdict
from hedge_tasks.judging.outcomes import of_unanswered
from hedge_tasks.replies.declining import declining_option
from hedge_tasks.replies.reading import REFUSAL
from hedge_tasks.runs.from_answers import imported_run
from hedge_tasks.runs.run_files import Run
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
    check_names("option that declines", declining, {label for question in questions for label in question.logits})
    answer_sets = [draw_options(question, sampling, model) for question in questions]
    verdicts = [_verdict(question, a, declining) for question, a in zip(questions, answer_sets, strict=True)]
    drawn = {**sampling.model_dump(), "n_noisy": 0, "simulated": "from the model's own weights of the options"}
    judge = {"judge": JUDGE, "version": JUDGE_VERSION}
    return imported_run(task, model, answer_sets, verdicts, judge, drawn, source, closed=True)


def _verdict(question: OptionQuestion, answers: AnswerSet, declining: Collection[str]) -> Verdict:
    """The right option is supported; another one is hallucinated, or no answer where it declines."""
    option = answers.baseline.text
    if option == question.answer:
        return Verdict(0, f"option {option} is right", JUDGE, JUDGE_VERSION)
    why = REFUSAL if option in declining else declining_option(question.options.get(option, option))
    if why is not None:
        return replace(of_unanswered(why, JUDGE, JUDGE_VERSION), reason=f"option {option} declines: {why}")
    return Verdict(1, f"option {option}, the right one is {question.answer}", JUDGE, JUDGE_VERSION)
