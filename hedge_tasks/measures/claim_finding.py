"""The finding about a run's claims in sentences, for its page, its report and the terminal."""

from __future__ import annotations

from hedge_tasks.measures.unit_table import UnitTable
from hedge_tasks.numbers import WHOLE_PERCENT, Number, format_interval

_LEVEL = 0.05


def claim_finding(table: UnitTable) -> str:
    """Return what was found about the claims, one thought a sentence."""
    return " ".join(filter(None, (_rate(table), *_lead(table))))


def _rate(table: UnitTable) -> str:
    wrong, total = table.counted.n_positive, table.n_labelled
    by = f" (labels: {table.scored.labelled_by})" if table.scored.labelled_by else ""
    return f"{wrong} of {total} labelled claims are hallucinated{by}."


def _lead(table: UnitTable) -> list[str]:
    seeing = [row for row in table.rows if not row.blind and row.estimate.value is not None]
    if not seeing:
        return ["No detector of claims has a ROC-AUC."]
    best = max(seeing, key=lambda row: row.estimate.value or 0.0)
    value, number = WHOLE_PERCENT(best.estimate.value or 0.0), best.estimate
    compared = f"a hallucinated claim has a higher {best.title} than a supported one {value} of the time"
    if number.low is not None and number.low <= 0.5:
        first = f"The best detector cannot be told from chance: {compared}{_bounds(number)}."
    else:
        many = f" (the highest of {len(seeing)} ROC-AUCs)" if len(seeing) > 1 else ""
        first = f"{compared[0].upper()}{compared[1:]}{_bounds(number)}{many}."
    blind = {row.detector: row for row in table.rows if row.blind}
    name = table.best_blind[0]
    if name not in blind or blind[name].estimate.value is None:
        return [first]
    gained, p = best.difference, best.p_adjusted
    beats = gained is not None and (gained.difference or 0.0) > 0 and p is not None and p < _LEVEL
    verb = "beats" if beats else "does not beat"
    share = WHOLE_PERCENT(blind[name].estimate.value or 0.0)
    return [first, f"It {verb} the best blind baseline ({blind[name].title}, {share}), which does not see the picture."]


def _bounds(number: Number) -> str:
    return "" if number.interval is None else f" {format_interval(number.interval, WHOLE_PERCENT)}"
