"""HEDGE for lmms-eval: how well can a model's hallucinations be detected from its own answers?

from hedge_tasks import load                                          # finished runs: what they found, as data frames
from hedge_tasks import AnswerSet, score_answers                      # one question
from hedge_tasks.detectors import semantic_entropy, radflag, vase     # arrays in, floats out
from hedge_tasks.clustering import cluster_by_nli, cluster_by_embedding
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hedge_tasks.detectors.pipeline import Scores, score_answers
    from hedge_tasks.report.loaded import LoadedRun, LoadedRuns, load
    from hedge_tasks.sampling import Answer, AnswerSet

try:
    __version__ = version("hedge-tasks")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"

__all__ = ["Answer", "AnswerSet", "LoadedRun", "LoadedRuns", "Scores", "__version__", "load", "score_answers"]

_ROOMS = {
    "Answer": "hedge_tasks.sampling",
    "AnswerSet": "hedge_tasks.sampling",
    "LoadedRun": "hedge_tasks.report.loaded",
    "LoadedRuns": "hedge_tasks.report.loaded",
    "load": "hedge_tasks.report.loaded",
    "Scores": "hedge_tasks.detectors.pipeline",
    "score_answers": "hedge_tasks.detectors.pipeline",
}


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    # Loaded on first use: lmms-eval imports this package in every evaluation, also those that do not use it.
    if name not in _ROOMS:
        raise AttributeError(f"module 'hedge_tasks' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_ROOMS[name]), name)
