"""HEDGE for lmms-eval: how well can a model's hallucinations be detected from its own answers?

from hedge_tasks import load                                          # finished runs: what they found, as data frames
from hedge_tasks import AnswerSet, score_answers                      # one question
from hedge_tasks.detectors import semantic_entropy, radflag, vase     # arrays in, floats out
from hedge_tasks.clustering import cluster_by_nli, cluster_by_embedding
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hedge_tasks.detectors.pipeline import Scores, score_answers
    from hedge_tasks.report.loaded import LoadedRun, LoadedRuns, load
    from hedge_tasks.sampling import Answer, AnswerSet

    __version__: str

__all__ = ["Answer", "AnswerSet", "LoadedRun", "LoadedRuns", "Scores", "__version__", "load", "score_answers"]

_ROOMS = {
    "hedge_tasks.sampling": ("Answer", "AnswerSet"),
    "hedge_tasks.report.loaded": ("LoadedRun", "LoadedRuns", "load"),
    "hedge_tasks.detectors.pipeline": ("Scores", "score_answers"),
}


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    # Looked up on first use: lmms-eval imports this package in every evaluation, also those that do not use it.
    from importlib import import_module, metadata

    if name == "__version__":
        return metadata.version("hedge-tasks")
    for room, names in _ROOMS.items():
        if name in names:
            return getattr(import_module(room), name)
    raise AttributeError(f"module 'hedge_tasks' has no attribute {name!r}")
