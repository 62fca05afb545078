from __future__ import annotations

from typing import Any

from hedge_tasks.measures.measure import Rate


class Firmness(Rate):
    """Share of documents where the model, asked again, names the same colour."""

    def record(self, scores: Any, verdict: Any, document: Any) -> dict[str, Any]:
        return {"value": document["firm"], "group": scores.group}


MEASURES = [
    Firmness(
        name="firmness",
        about="Share of colours said twice.",
        higher_is_better=True,
        columns=("firm",),
        kept=True,
        leads=True,
    )
]
