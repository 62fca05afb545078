"""Finished runs as cells of the paper's tables: which run belongs where, and what it gives there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from hedge_tasks.clustering import ClusteringBackend
from hedge_tasks.detectors.pipeline import detection_auroc
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.errors import ConfigError, unknown
from hedge_tasks.measures.hedge_paper.published import (
    MODELS,
    PROMPTS,
    SCORES,
    Key,
    PublishedNumber,
    filter_name,
    published,
)
from hedge_tasks.measures.priced_scores import truncated
from hedge_tasks.numbers import Number
from hedge_tasks.runs.run_files import Run
from hedge_tasks.runs.scorers import scorers_of

TASKS = {"VQA-RAD": "hedge_vqarad", "KvasirVQA-x1": "hedge_kvasirvqa_x1"}
"""The task of each data set; the prompt variants but the default have their name behind it."""

# As the weights are called on the hub, which is how a run names its model. Another size or version is not the paper's
# model.
_MODEL_NAMES = {
    "LLaVA-Med": r"llava-?med-v?1\.5",
    "Med-Gemma": r"med-?gemma-4b-it",
    "Qwen2.5-VL": r"qwen2\.5-vl-7b-instruct",
}


def task_name(dataset: str, prompt: str) -> str:
    """Return the task of a data set and a prompt variant of the paper.

    Example:
        >>> task_name("VQA-RAD", "one-sentence"), task_name("KvasirVQA-x1", "default")
        ('hedge_vqarad_one_sentence', 'hedge_kvasirvqa_x1')
    """
    return TASKS[dataset] if prompt == "default" else f"{TASKS[dataset]}_{prompt.replace('-', '_')}"


@dataclass(frozen=True)
class Placed:
    """Runs by their place in the paper, and what was left out with the reason."""

    runs: Mapping[Key, Run]
    left_out: Sequence[str]


def place_runs(runs: Iterable[Run], names: Mapping[str, str] | None = None) -> Placed:
    """Find the place of each run: data set and prompt by its task, model by its name.

    Of several runs for one place the newest counts.

    Args:
        names: for a model of the paper, a text that a run's model must have in its name (in any case) instead of the
            name on the hub: `{"Qwen2.5-VL": "my-copy-of-qwen"}`.

    Raises:
        ConfigError: `names` has a model that the paper has not; names the nearest one.
    """
    patterns = dict(_MODEL_NAMES)
    for model, text in (names or {}).items():
        if model not in patterns:
            raise unknown("model of the paper", model, MODELS)
        patterns[model] = re.escape(text)
    tasks = {task_name(dataset, prompt): (dataset, prompt) for dataset in TASKS for prompt in PROMPTS}
    placed: dict[Key, Run] = {}
    left_out = []
    for run in sorted(runs, key=lambda run: run.created):
        models = [model for model, pattern in patterns.items() if re.search(pattern, run.model, re.IGNORECASE)]
        if run.task not in tasks:
            left_out.append(f"{run.title}: no task of the paper's tables")
        elif len(models) != 1:
            left_out.append(f"{run.title}: {'more than one' if models else 'no'} model of the paper has that name")
        else:
            key = Key(*tasks[run.task], models[0])
            if key in placed:
                left_out.append(f"{placed[key].title}: there is a newer run of it")
            placed[key] = run
    return Placed(placed, left_out)


@dataclass(frozen=True)
class CellResult:
    """One cell: the paper's number and ours.

    Attributes:
        cell: its place.
        published: the paper's ROC-AUC.
        estimate: ours; None where it is missing.
        n: clean answers that ours rests on. In Table 2 fewer than the paper's 10 where the run has fewer.
        missing: why there is none, or "".
    """

    cell: PublishedNumber
    published: float
    estimate: Number | None = None
    n: int | None = None
    missing: str = ""

    @property
    def ours(self) -> float | None:
        return None if self.estimate is None else self.estimate.value

    @property
    def difference(self) -> float | None:
        """Ours less the paper's."""
        return None if self.ours is None else self.ours - self.published

    @property
    def reason(self) -> str:
        """Why there is no number of ours, or ""."""
        return self.missing or ("" if self.estimate is None else self.estimate.reason or "")


@dataclass(frozen=True)
class EqualDraws:
    """VASE less another score of Table 3 where both cost as many draws: VASE at n costs 2n, the others n.

    Attributes:
        clustering, prompt: of the row.
        score: what VASE is compared with, "SE" or "RadFlag".
        draws: answers a question besides the baseline answer.
        published: the paper's difference in ROC-AUC.
        ours: the same of our cells; None where one of them is missing.
    """

    clustering: str
    prompt: str
    score: str
    draws: int
    published: float
    ours: float | None


def at_equal_draws(results: Iterable[CellResult]) -> list[EqualDraws]:
    """Read Table 3 at one price instead of at one n, for every number of draws that both scores have."""
    by_cell = {result.cell: result for result in results if result.cell.table == 3}
    pairs = []
    for cell, vase in by_cell.items():
        for score in ("SE", "RadFlag") if cell.score == "VASE" else ():
            compared = by_cell.get(cell._replace(score=score, n=2 * cell.n))
            if compared is None:
                continue
            ours = None if vase.ours is None or compared.ours is None else vase.ours - compared.ours
            difference = round(vase.published - compared.published, 6)
            pairs.append(EqualDraws(cell.clustering, cell.prompt, score, 2 * cell.n, difference, ours))
    return pairs


def score_cells(
    cells: Sequence[PublishedNumber],
    runs: Mapping[Key, Run],
    scorers: Callable[[Run], Mapping[str, Scorer]] | None = None,
) -> Iterator[CellResult]:
    """Cluster and score the runs' answers for every cell; yields them as they are finished, run after run.

    Every number of answers is clustered by itself from a prefix of each question's answers, as a run with fewer would
    have had them.

    Args:
        cells: places in the paper, such as `published_cells(2)`.
        runs: as `place_runs` gives them.
        scorers: what stands for each of the paper's columns in a run, by the names nli, embed, nli_qa, embed_qa; a name
            that is not there is missing. None takes the clusterings that each run was evaluated with.

    Raises:
        DataError: answers that no score can be made of; names the question.
        ModelUnavailableError: a clustering model cannot be had.
    """
    shared: list[ClusteringBackend] = []
    for key, of_run in groupby(sorted(cells, key=lambda cell: cell.key), key=lambda cell: cell.key):
        run = runs.get(key)
        if run is None:
            yield from (_missing(cell, f"no run of {task_name(key.dataset, key.prompt)}") for cell in of_run)
            continue
        mine = _shared(_own_scorers(run) if scorers is None else scorers(run), shared)
        yield from _score_run(list(of_run), run, mine)


def _score_run(cells: Sequence[PublishedNumber], run: Run, scorers: Mapping[str, Scorer]) -> Iterator[CellResult]:
    most = min((len(answer_set.clean) for answer_set in run.answer_sets), default=0)

    def column(cell: PublishedNumber) -> tuple[str, int]:
        # Table 2 is about one n, and a run with another still belongs there; Table 3 is about n itself.
        return filter_name(cell), min(cell.n, most) if cell.table == 2 else cell.n

    for (name, n), of_column in groupby(sorted(cells, key=column), key=column):
        if name not in scorers:
            yield from (_missing(cell, f"the run has no filter {name}") for cell in of_column)
        elif not 0 < n <= most:
            yield from (_missing(cell, f"the run has {most} clean answers a question") for cell in of_column)
        else:
            yield from _score_column(of_column, run, scorers[name], n)


def _score_column(cells: Iterable[PublishedNumber], run: Run, scorer: Scorer, n: int) -> Iterator[CellResult]:
    scores = scorer.score([truncated(answer_set, n) for answer_set in run.answer_sets])
    for cell in cells:
        estimate = detection_auroc(scores, SCORES[cell.score])
        yield CellResult(cell, published(cell.table)[cell], estimate, n)


def _missing(cell: PublishedNumber, reason: str) -> CellResult:
    return CellResult(cell, published(cell.table)[cell], missing=reason)


def _own_scorers(run: Run) -> dict[str, Scorer]:
    try:
        return scorers_of(run)
    except ConfigError:
        return {}


def _shared(own: Mapping[str, Scorer], shared: list[ClusteringBackend]) -> dict[str, Scorer]:
    """Return the scorers with equal backends of all runs as one object, so that a model is loaded only once."""
    scorers = {}
    for name, scorer in own.items():
        equal = [backend for backend in shared if backend == scorer.backend]
        if not equal:
            shared.append(scorer.backend)
        scorers[name] = replace(scorer, backend=(equal or [scorer.backend])[0])
    return scorers
