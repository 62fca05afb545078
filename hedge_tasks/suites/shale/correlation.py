"""Figure 5 of the SHALE paper as a table: whether models that do well here do well elsewhere (appendix B.1)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np

from hedge_tasks.data.tables import read_rows
from hedge_tasks.errors import DataError
from hedge_tasks.numbers import Cell, Column, Table
from hedge_tasks.suites.shale.items import PERCEPTION
from hedge_tasks.suites.shale.tables import ModelTables

FAITHFULNESS = "SHALE"
"""The name of our column: the share of right answers to clean questions about perception."""

LEAST_MODELS = 3
"""Two points always lie on a line."""

Scores = Mapping[str, Mapping[str, float]]
"""Benchmark -> model -> score."""


def faithfulness(tables: ModelTables) -> float | None:
    """Share of right answers over all clean items about perception; None where none was asked."""
    numbers = [tables.tables[6].numbers[aspect] for aspect in PERCEPTION]
    n_asked = sum(number.n for number in numbers if number.defined)
    return sum((number.value or 0.0) * number.n for number in numbers) / n_asked if n_asked else None


def read_scores(path: Path) -> dict[str, dict[str, float]]:
    """Scores of other benchmarks: CSV with the column `model` and one a benchmark; an empty cell is no score.

    Raises:
        DataError: It cannot be read, names no model, or a cell is no number; names the place.
    """
    by_benchmark: dict[str, dict[str, float]] = {}
    for where, row in read_rows(path, "CSV"):
        model = str(row.get("model") or "").strip()
        if not model:
            raise DataError(f"{where}: no model; there are {', '.join(map(str, row))}")
        for name, cell in row.items():
            text = str(cell or "").strip()
            if name == "model" or not text:
                continue
            try:
                score = float(text)
            except ValueError:
                score = math.nan
            if not math.isfinite(score):
                raise DataError(f"{where}: {name} of {model} is no number: {text[:40]!r}")
            if model in by_benchmark.setdefault(str(name), {}):
                raise DataError(f"{where}: {model} is there twice")
            by_benchmark[str(name)][model] = score
    return by_benchmark


def correlations(scores: Scores) -> list[tuple[str, str, int, float | None]]:
    r"""Pearson's correlation of every two benchmarks, over the models that both have.

    .. math::
        r = \frac{\sum_i (x_i - \bar x)(y_i - \bar y)}{\sqrt{\sum_i (x_i - \bar x)^2 \sum_i (y_i - \bar y)^2}}

    Returns:
        Two benchmarks, number of models, and r; None with fewer than three, or where all have one score.
    """
    pairs = []
    for first, second in combinations(scores, 2):
        models = [model for model in scores[first] if model in scores[second]]
        pair = np.array([[scores[name][model] for model in models] for name in (first, second)], dtype=float)
        pairs.append((first, second, len(models), _pearson(pair) if len(models) >= LEAST_MODELS else None))
    return pairs


def correlation_table(pairs: Sequence[tuple[str, str, int, float | None]]) -> Table:
    """Return the correlations of `correlations` as a table."""
    rows: list[dict[str, Cell]] = [{"pair": f"{a} / {b}", "models": models, "r": r} for a, b, models, r in pairs]
    columns = [Column("pair", " "), Column("models"), Column("r")]
    return Table(columns, rows, title="Figure 5, Pearson's r between benchmarks")


def _pearson(pair: np.ndarray) -> float | None:
    centred = pair - pair.mean(axis=1, keepdims=True)
    scale = math.sqrt(float((centred[0] ** 2).sum()) * float((centred[1] ** 2).sum()))
    return float(centred[0] @ centred[1]) / scale if scale > 1e-12 else None


def beside(tables: Sequence[ModelTables], others: Scores) -> Scores:
    """Our scores in front of those of other benchmarks.

    Raises:
        DataError: No model of the runs is among theirs.
    """
    own = {of_model.model: score for of_model in tables if (score := faithfulness(of_model)) is not None}
    if others and not any(model in scores for scores in others.values() for model in own):
        models = sorted({model for scores in others.values() for model in scores})
        raise DataError(f"--scores: no model of the runs ({', '.join(own) or 'none'}) is among {', '.join(models[:5])}")
    return {FAITHFULNESS: own, **others}
