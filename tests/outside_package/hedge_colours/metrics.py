from __future__ import annotations

from typing import Any

from hedge_tasks.lmms.metrics import RateMetric
from hedge_tasks.measures.suite import SuiteMetric


class Firmness(RateMetric):
    """Share of documents where the model, asked again, names the same colour."""

    higher_is_better = True

    def record(self, scores: Any, verdict: Any, document: Any) -> dict[str, Any]:
        return {"value": document["firm"], "group": scores.group}


METRICS = {"firmness": Firmness("firmness")}

SUITE = [SuiteMetric(METRICS["firmness"], "firmness", "Share of colours said twice.", columns=("firm",), leads=True)]
