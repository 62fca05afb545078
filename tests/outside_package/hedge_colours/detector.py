from __future__ import annotations

from hedge_tasks.detectors import Evidence, register


@register("colours_said", "Different answers", needs=("clean",))
def colours_said(evidence: Evidence) -> float:
    return len(set(evidence.texts[evidence.clean])) / evidence.n_clean
