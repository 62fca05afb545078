"""Scores as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.io.files import write_whole


def write_scores(path: Path, scores: Sequence[Scores]) -> None:
    """Write one line a question: id, se, radflag, vase, n_clusters, cluster_ids.

    The file appears as a whole or not at all.
    """
    rows = [
        {
            "id": s.id,
            "se": s.se,
            "radflag": s.radflag,
            "vase": s.vase,
            "n_clusters": s.n_clusters,
            "cluster_ids": list(s.cluster_ids),
        }
        for s in scores
    ]
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    write_whole(path, text)
