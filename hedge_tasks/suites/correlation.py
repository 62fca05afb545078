"""Whether models that do well on one benchmark do well on others (Figure 5 and appendix B.1 of the SHALE paper)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

import pandas

from hedge_tasks.errors import DataError
from hedge_tasks.numbers import Cell, Column, Table

LEAST_MODELS = 3
"""Two points always lie on a line."""


def read_scores(path: Path) -> pandas.DataFrame:
    """Read scores of other benchmarks: CSV with the column `model` and one a benchmark; an empty cell is no score.

    Returns:
        Numbers by model (rows) and benchmark (columns).

    Raises:
        DataError: it cannot be read, names no model or one twice, or a cell is no number.
    """
    try:
        frame = pandas.read_csv(path, index_col="model").astype(float)
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: expected a column model and a column of numbers a benchmark ({error})") from None
    if frame.index.hasnans or frame.index.has_duplicates:
        raise DataError(f"{path}: a line has no model, or a model is there twice")
    return frame


def correlation_table(name: str, ours: Mapping[str, float], others: pandas.DataFrame) -> Table:
    r"""Return Pearson's correlation of every two benchmarks, over the models that both have.

    .. math::
        r = \frac{\sum_i (x_i - \bar x)(y_i - \bar y)}{\sqrt{\sum_i (x_i - \bar x)^2 \sum_i (y_i - \bar y)^2}}

    It is missing with fewer than three models, or where all have one score.

    Args:
        name: of our benchmark.
        ours: its scores by model.
        others: as `read_scores` gives them.

    Raises:
        DataError: no model of ours is among theirs.
    """
    if not set(ours) & set(others.index):
        raise DataError(f"--scores: no model of the runs ({', '.join(ours)}) is among {', '.join(others.index[:5])}")
    scores = pandas.concat([pandas.Series(ours, name=name, dtype=float), others], axis=1)
    r = scores.corr(min_periods=LEAST_MODELS)
    rows: list[dict[str, Cell]] = []
    for first, second in combinations(scores.columns, 2):
        value = None if pandas.isna(r.loc[first, second]) else float(r.loc[first, second])
        shared = int(scores[[first, second]].notna().all(axis=1).sum())
        rows.append({"pair": f"{first} / {second}", "models": shared, "r": value})
    columns = [Column("pair", " "), Column("models"), Column("r")]
    return Table(columns, rows, title="Pearson's r between benchmarks")
