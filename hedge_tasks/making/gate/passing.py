"""A whole set at the gate: what of its rows may stay, whether its verifiers can be believed, and what the card says."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from hedge_tasks.making.gate.refuse import MOST_FALLBACKS, Written, repeated
from hedge_tasks.making.gate.verify import EvidenceVerdict, check_controls
from hedge_tasks.making.production import Production

Row = Mapping[str, Any]

RIGHT, WRONG = "truth supported by ", "truth not supported by "
"""Steps of a making, in front of the name of a verifier."""


def kept_rows(
    made: Production, written: Callable[[Row], Written], *, most_fallbacks: float = MOST_FALLBACKS
) -> Production:
    """A making without rows that repeat one text or frame, and without more fallbacks than a set may have.

    Args:
        written: The made text of a row, beside what it was made for.
        most_fallbacks: Share of the kept rows; the most similar ones stay.

    Raises:
        DataError: A verifier cannot be believed.
    """
    check_controls(controls_of(made.steps))
    found = repeated([written(row) for row in made.rows])
    rejected = Counter(made.rejected)
    rejected.update(found.values())
    rows = [row for place, row in enumerate(made.rows) if place not in found]
    fallbacks = sorted(
        (row for row in rows if row.get("Fallback")), key=lambda row: (-(row["Similarity"] or 0), row["Id"])
    )
    most = len(fallbacks)
    if most_fallbacks < 1:
        most = int(most_fallbacks / (1 - most_fallbacks) * (len(rows) - len(fallbacks)) + 1e-9)
    surplus = {row["Id"] for row in fallbacks[most:]}
    if surplus:
        rejected["one fallback too many"] += len(surplus)
    kept = [row for row in rows if row.get("Id") not in surplus]
    return dataclasses.replace(made, rows=kept, rejected=dict(rejected))


def control_steps(found: Iterable[EvidenceVerdict]) -> list[str]:
    """Steps of one question: which verifiers that were shown its truth found it supported, each verifier once."""
    shown = sorted({(each.verifier, each.control) for each in found if each.control is not None})
    return [f"{RIGHT if right else WRONG}{name}" for name, right in shown]


def controls_of(steps: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Truths that each verifier found supported, and all that it was shown."""
    names = {step.removeprefix(RIGHT).removeprefix(WRONG) for step in steps if step.startswith((RIGHT, WRONG))}
    counts = {name: (steps.get(RIGHT + name, 0), steps.get(WRONG + name, 0)) for name in names}
    return {name: (right, right + wrong) for name, (right, wrong) in counts.items()}


def without(made: Production, ids: Collection[str]) -> Production:
    """A making without the rows that people say are not wrong."""
    rows = [row for row in made.rows if row["Id"] not in ids]
    rejected = Counter(made.rejected)
    if len(rows) < len(made.rows):
        rejected["not wrong, people say"] += len(made.rows) - len(rows)
    return dataclasses.replace(made, rows=rows, rejected=dict(rejected))
