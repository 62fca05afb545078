"""The finding about a run's claims in sentences, for its page, its report and the terminal."""

from __future__ import annotations

from hedge_tasks.measures.blind import beats
from hedge_tasks.measures.unit_table import UnitTable
from hedge_tasks.numbers import WHOLE_PERCENT, format_number


def claim_finding(table: UnitTable) -> str:
    """Return what was found about the claims, one thought a sentence."""
    return " ".join(filter(None, (_rate(table), *_lead(table))))


def _rate(table: UnitTable) -> str:
    wrong, total = table.counted.n_positive, table.n_labelled
    by = f" (labels: {table.scored.labelled_by})" if table.scored.labelled_by else ""
    first = f"{wrong} of {total} labelled claims are hallucinated{by}."
    if not table.coverage.partial:
        return first
    low, high = table.coverage.bounds(wrong)
    return f"{first} With the {table.coverage.missing} others it is {WHOLE_PERCENT.bare(low)} to {WHOLE_PERCENT(high)}."


def _lead(table: UnitTable) -> list[str]:
    best = next((row for row in table.rows if not row.blind), None)
    if best is None:
        return ["No detector of claims has a ROC-AUC."]
    share = format_number(best.estimate, WHOLE_PERCENT, interval=True)
    first = f"{best.title} finds them ({share})."
    if best.estimate.low is not None and best.estimate.low <= 0.5:
        first = f"No detector of them is better than chance for certain: the best is {best.title} ({share})."
    blind = {row.detector: row for row in table.rows if row.blind}
    name = table.against[0]
    if name not in blind:
        return [first]
    verb = "beats" if beats(best.difference, best.p_adjusted) else "does not beat"
    share = WHOLE_PERCENT(blind[name].estimate.value or 0.0)
    return [first, f"It {verb} the best blind baseline ({blind[name].title}, {share}), which does not see the picture."]
