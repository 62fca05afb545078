"""The detectors of several runs on one page: a leaderboard of detectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from hedge_tasks import __version__
from hedge_tasks.detectors.pipeline import name_of
from hedge_tasks.detectors.registry import get
from hedge_tasks.errors import DataError
from hedge_tasks.measures.detector_table import DetectorTable, Rank
from hedge_tasks.measures.headline import Headline
from hedge_tasks.measures.unit_table import KeptNumbers
from hedge_tasks.report.pages import WITH_FIGURES, View, asset, render
from hedge_tasks.report.plots.charts import Chart
from hedge_tasks.report.plots.figures import detectors_chart, price_chart, ranks_chart
from hedge_tasks.report.run_names import names_of_runs
from hedge_tasks.report.svg import picture
from hedge_tasks.runs.run_files import now

T = TypeVar("T")


def build_detector_page(
    tables: Sequence[DetectorTable],
    ranks: Sequence[Rank],
    *,
    budget: int | None = None,
    findings: Sequence[Headline | None] = (),
    claims: Sequence[KeptNumbers | None] = (),
    views: Sequence[View] = (),
) -> str:
    """Return the page as HTML.

    Args:
        tables: of the runs; see `hedge_tasks.measures.detector_table`.
        ranks: mean ranks over them; none for a single run.
        budget: that they were made for.
        findings: of the runs, in their order.
        claims: of the runs, in their order, where claims are kept with them.
        views: other pages about the runs.

    Raises:
        DataError: there is no run.
    """
    if not tables:
        raise DataError("there are no runs to compare detectors on")
    names = names_of_runs([table.run for table in tables])
    beside = [_padded(items, len(tables)) for items in (findings, claims)]
    return render(
        "detectors.html.j2",
        scripts=[*map(asset, WITH_FIGURES)],
        views=views,
        title="Detectors" if len(tables) > 1 else f"Detectors on {names[0]}",
        version=__version__,
        written=now()[:16].replace("T", " ") + " UTC",
        budget=budget,
        ranks=[_rank(rank, tables) for rank in ranks],
        rank_chart=picture(ranks_chart(ranks)),
        runs=[_run(*parts) for parts in zip(names, tables, *beside, strict=True)],
    )


def _padded(items: Sequence[T | None], n: int) -> list[T | None]:
    """Return an item for each of n runs; None for the runs behind the last item."""
    return [*items, *[None] * (n - len(items))]


def _rank(rank: Rank, tables: Sequence[DetectorTable]) -> dict[str, Any]:
    rows = [row for table in tables for row in table.rows if row.detector == rank.detector]
    prices = sorted({row.draws for row in rows})
    values = [row.estimate.value or 0.0 for row in rows]
    return {
        "rank": rank,
        "title": name_of(rank.detector),
        "source": get(rank.detector).source,
        "draws": str(prices[0]) if len(prices) == 1 else f"{prices[0]} to {prices[-1]}",
        "mean": sum(values) / len(values),
        "by_run": values,
    }


def _run(name: str, table: DetectorTable, finding: Headline | None, claims: KeptNumbers | None) -> dict[str, Any]:
    first = table.rows[0].estimate if table.rows else None
    rows = [{**vars(row), "label": name_of(row.detector)} for row in table.rows]
    return {
        "name": name,
        "finding": finding,
        "clustering": table.scorer.name,
        "against": name_of(str(table.against[0])),
        "n": first.n if first else 0,
        "n_positive": first.n_positive if first else 0,
        "pictures": [picture(chart) for chart in _charts(table)],
        "rows": rows,
        "experts": any(row.experts for row in table.rows),
        "left_out": list(_by_reason(table.left_out).items()),
        "claims": claims,
    }


def _charts(table: DetectorTable) -> list[Chart]:
    priced = [(row.detector, row.draws, row.estimate) for row in table.rows]
    return [detectors_chart({table.scorer.name: {name: e for name, _, e in priced}}), price_chart(priced)]


def _by_reason(left_out: Mapping[str, str]) -> dict[str, list[str]]:
    reasons: dict[str, list[str]] = {}
    for name, reason in left_out.items():
        reasons.setdefault(reason, []).append(name_of(name))
    return reasons
