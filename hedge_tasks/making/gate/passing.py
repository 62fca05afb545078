"""A whole set at the gate: which of its rows may stay, and whether its verifiers can be believed."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any

from hedge_tasks.making.gate.controls import TRUTHS
from hedge_tasks.making.gate.refuse import MOST_FALLBACKS, Written, repeated
from hedge_tasks.making.production import Production

Row = Mapping[str, Any]


def passing_rows(
    production: Production, written_text: Callable[[Row], Written], *, most_fallbacks: float = MOST_FALLBACKS
) -> Production:
    """A making without rows that repeat one text or frame, and without more fallbacks than a set may have.

    Args:
        written_text: The made text of a row, beside what it was made for.
        most_fallbacks: Share of the kept rows; the most similar ones stay.

    Raises:
        DataError: A verifier cannot be believed.
    """
    TRUTHS.check(production.steps)
    repeats = repeated([written_text(row) for row in production.rows])
    rejected = Counter(production.rejected)
    rejected.update(repeats.values())
    rows = [row for place, row in enumerate(production.rows) if place not in repeats]
    fallbacks = sorted(
        (row for row in rows if row.get("Fallback")), key=lambda row: (-(row["Similarity"] or 0), row["Id"])
    )
    most = len(fallbacks)
    if most_fallbacks < 1:
        most = int(most_fallbacks / (1 - most_fallbacks) * (len(rows) - len(fallbacks)) + 1e-9)
    surplus = {row["Id"] for row in fallbacks[most:]}
    if surplus:
        rejected["one fallback too many"] += len(surplus)
    remaining = [row for row in rows if row.get("Id") not in surplus]
    return dataclasses.replace(production, rows=remaining, rejected=dict(rejected))


def without_rows(production: Production, ids: Collection[str]) -> Production:
    """A making without the rows that people say are not wrong."""
    rows = [row for row in production.rows if row["Id"] not in ids]
    rejected = Counter(production.rejected)
    if len(rows) < len(production.rows):
        rejected["not wrong, people say"] += len(production.rows) - len(rows)
    return dataclasses.replace(production, rows=rows, rejected=dict(rejected))
