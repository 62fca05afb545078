"""The tables of the HEDGE paper (Gautam, Riegler, Halvorsen): detectors by data set, prompt and clustering.

Table 3 of the paper does not say whether the question was put in front of the answers. Its column n = 10 is Table 2's
answer-only half, rounded, in all 24 rows, so that is what it is filed under.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.detectors.units import detection_auroc
from hedge_tasks.measures.measure import Measure
from hedge_tasks.measures.priced_scores import truncated
from hedge_tasks.numbers import Cell, Number
from hedge_tasks.runs.run_files import Run
from hedge_tasks.runs.scorers import scorers_of
from hedge_tasks.suites.papers import Paper, PaperRow, judge_settings

DATASETS = {"VQA-RAD": "hedge_vqarad", "KvasirVQA-x1": "hedge_kvasirvqa_x1"}
"""The task of each data set; the prompt variants but the default have their name behind it."""

PROMPTS = ("minimal-label", "clinical-phrase", "default", "one-sentence")

SCORES = {"SE": "se", "RadFlag": "radflag", "VASE": "vase"}
"""The paper's name of each score, and ours."""

FILTERS = {"nli_qa": "A+Q NLI", "embed_qa": "A+Q Embed", "nli": "AO NLI", "embed": "AO Embed"}
"""Filters of our tasks, and the paper's columns: question and answer, or the answer alone, by clustering."""

SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30)
"""Clean and noisy answers each, of Table 3."""

MOST = 10
"""The same of Table 2. A run with fewer still belongs there."""


def task_name(dataset: str, prompt: str) -> str:
    """Return the task of a data set and a prompt variant of the paper.

    Example:
        >>> task_name("VQA-RAD", "one-sentence"), task_name("KvasirVQA-x1", "default")
        ('hedge_vqarad_one_sentence', 'hedge_kvasirvqa_x1')
    """
    return DATASETS[dataset] if prompt == "default" else f"{DATASETS[dataset]}_{prompt.replace('-', '_')}"


def rows_of(runs: Sequence[Run]) -> Iterator[PaperRow]:
    """Yield the rows of every model, each a score of its answers to one data set with one prompt.

    Of several runs of one model and task the newest counts. Every number of answers is clustered by itself from a
    prefix of each question's answers, as a run with fewer would have had them.

    Raises:
        ConfigError: a run records no clustering.
        DataError: answers that no score can be made of; names the question.
        ModelUnavailableError: a clustering model cannot be had.
    """
    newest = {(run.model, run.task): run for run in sorted(runs, key=lambda run: run.created)}
    for model in sorted({model for model, _ in newest}):
        for dataset in DATASETS:
            for prompt in PROMPTS:
                if run := newest.get((model, task_name(dataset, prompt))):
                    yield from _rows(run, dataset, prompt)


def _rows(run: Run, dataset: str, prompt: str) -> Iterator[PaperRow]:
    scorers = scorers_of(run)
    most = min((len(answers.clean) for answers in run.answer_sets), default=0)
    judge = judge_settings(run)
    about = {"data set": dataset, "prompt": prompt, "protocol": run.settings["documents"].get("protocol") or "ours"}
    counts: dict[str, Cell] = {
        "judge": str(judge.get("judge") or judge.get("name") or "unknown"),
        "n": min(most, MOST),
        "questions": len(run.answer_sets),
        "hallucinated": sum(answers.label == 1 for answers in run.answer_sets),
    }
    by_filter = {name: _numbers(run, scorers[name], min(most, MOST)) for name in FILTERS if name in scorers}
    for score in SCORES:
        numbers = {name: of_filter[score] for name, of_filter in by_filter.items()}
        yield PaperRow(run.model, f"{dataset}, {prompt}, {score}", numbers, {**about, "score": score}, counts)
    if dataset != "VQA-RAD":
        return
    for clustering, name in (("Embed", "embed"), ("NLI", "nli")):
        if name in scorers:
            by_size = {f"n{n}": _numbers(run, scorers[name], n) for n in SIZES if n <= most}
            for score in SCORES:
                numbers = {size: of_size[score] for size, of_size in by_size.items()}
                setting = f"{dataset}, {prompt}, {score}, {clustering}"
                yield PaperRow(run.model, setting, numbers, {"prompt": prompt, "score": score, "clusters": clustering})


def _numbers(run: Run, scorer: Scorer, n: int) -> Mapping[str, Number]:
    """Return the ROC-AUC of each of the paper's scores with n clean and n noisy answers a question."""
    scores = scorer.score([truncated(answers, n) for answers in run.answer_sets])
    return {name: detection_auroc(scores, detector) for name, detector in SCORES.items()}


_COLUMNS = {**FILTERS, **{f"n{n}": str(n) for n in SIZES}}

PAPER = Paper("hedge", __package__, rows_of, [Measure(name=name, title=title) for name, title in _COLUMNS.items()])
