from __future__ import annotations

from hedge_tasks.detectors import Evidence, clean_draws, register


@register("colours_said", title="Different answers", needs=("clean",), draws=clean_draws)
def colours_said(evidence: Evidence) -> float:
    return len(set(evidence.texts[evidence.clean])) / evidence.n_clean
