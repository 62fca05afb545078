"""The tables of the HEDGE paper as data, and finished runs laid out like them.

from hedge_tasks.measures.hedge_paper import place_runs, published_cells, score_cells

placed = place_runs(load_runs(Path("results")))
cells = score_cells(published_cells(2), placed.runs)
"""

from __future__ import annotations

from hedge_tasks.measures.hedge_paper.cells import (
    CellResult,
    EqualDraws,
    Placed,
    at_equal_draws,
    place_runs,
    score_cells,
)
from hedge_tasks.measures.hedge_paper.published import Key, PublishedNumber, filter_name, published, published_cells

__all__ = [
    "PublishedNumber",
    "CellResult",
    "EqualDraws",
    "Key",
    "Placed",
    "at_equal_draws",
    "filter_name",
    "place_runs",
    "published",
    "published_cells",
    "score_cells",
]
