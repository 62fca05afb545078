"""Scores of a run part by part: in this process, or by workers on a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from loguru import logger

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors import registry
from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.errors import ConfigError
from hedge_tasks.io.progress import progress
from hedge_tasks.io.ray_cluster import RayOptions, map_on_cluster
from hedge_tasks.runs.from_store import StoredBlock
from hedge_tasks.runs.run_files import Run

Part = tuple[AnswerSet, ...] | StoredBlock
"""Documents that are scored together."""

_AT_A_TIME = 512
"""Documents of a run that a worker is handed."""


def score_parts(parts: Sequence[Part], scorer: Scorer) -> Sequence[Scores]:
    """Score parts one after the other, in this process."""
    return _gathered(score_part(scorer, part) for part in progress(parts, name="Blocks", unit="block"))


def score_on_ray(parts: Sequence[Part], make: Callable[[], Scorer], options: RayOptions) -> Sequence[Scores]:
    """Score parts by workers on a Ray cluster; the numbers are those of one process.

    Args:
        make: makes a worker's scorer, with its models, in the worker.

    Raises:
        ConfigError: Ray is not installed, or a part alone does not tell the scores.
    """
    scorer = make()
    if scorer.choice is not None:
        raise ConfigError(
            "--ray: a threshold is chosen on all documents, in one process; give --clustering embed:threshold=NUMBER"
        )
    if of_claims := [name for name in scorer.detectors if "claims" in registry.get(name).needs]:
        raise ConfigError(f"--ray: {of_claims[0]} needs the claims of all answers; leave it out of --detectors")
    results = map_on_cluster(lambda: partial(score_part, make()), parts, options, "--ray")
    return _gathered(progress(results, total=len(parts), name="Parts", unit="part"))


def parts_of(run: Run) -> list[Part]:
    """Return the documents of a run in the parts that workers are handed."""
    return [run.answer_sets[i : i + _AT_A_TIME] for i in range(0, len(run.answer_sets), _AT_A_TIME)]


def header_of(run: Run) -> Run:
    """Return a run without its documents, for workers that are handed these."""
    return replace(run, answer_sets=(), verdicts={})


def score_part(scorer: Scorer, part: Part) -> tuple[Sequence[Scores], int]:
    """Load, label and score a part; with the number of its documents that lack answers."""
    if isinstance(part, StoredBlock):
        run, n_incomplete = part.load()
        return scorer.score(run.answer_sets), n_incomplete
    return scorer.score(part), 0


def _gathered(scored: Iterable[tuple[Sequence[Scores], int]]) -> list[Scores]:
    parts = list(scored)
    incomplete = sum(n for _, n in parts)
    if incomplete:
        logger.warning("partial: {} documents have not all their answers yet and are left out", incomplete)
    return [scores for of_part, _ in parts for scores in of_part]
