"""Detectors as rows of a table: one list of columns, of whole answers and of their parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hedge_tasks.measures.detector_table import DetectorNumbers
from hedge_tasks.numbers import FOUR_DIGITS, SIGNED, SIGNED_FOUR, Cell, Column, Number, Table

_OF_FLAGGING = (
    Column("top"),
    Column("chance", "(chance)"),
    *(Column("flagged"), Column("precision"), Column("recall")),
)


def numbers_table(
    rows: Sequence[DetectorNumbers],
    *,
    against: str,
    within: str = "within",
    experts: Mapping[str, Number] | None = None,
    baselines: Sequence[Mapping[str, Cell]] = (),
    brief: bool = False,
    title: str = "",
    notes: Sequence[str] = (),
) -> Table:
    """Return a table of detectors, without the columns that no row has anything in.

    Args:
        against: what the differences are to.
        within: heading of the ROC-AUC within types or answers.
        experts: by detector, its ROC-AUC against experts' labels.
        baselines: further rows, below the others.
        brief: without the shares of the most suspicious and the flagged parts.
    """
    columns = [
        *(Column("detector"), Column("draws"), Column("passes"), Column("labels"), Column("seconds")),
        Column("estimate", "ROC-AUC", format=FOUR_DIGITS),
        Column("interval", "95 %", show="interval", of="estimate"),
        Column("rarer", "rarer class", show="n_rarer", of="estimate"),
        Column("experts", "against experts", format=FOUR_DIGITS, interval=True),
        Column("within", within, format=FOUR_DIGITS),
        Column("within_interval", "95 %", show="interval", of="within"),
        *(() if brief else _OF_FLAGGING),
    ]
    for key, p, heading in (
        ("difference", "p_adjusted", against),
        ("difference_within", "p_adjusted_within", f"{against} within"),
    ):
        columns.append(Column(key, f"- {heading}", format=SIGNED_FOUR))
        columns.append(Column(f"{key}_interval", "95 %", format=SIGNED, show="interval", of=key))
        columns.append(Column(p, "p (max-T)", show="p"))
    beside = {"experts": experts or {}}
    cells = [
        {
            **_cells(row, brief),
            **{key: numbers[row.detector] for key, numbers in beside.items() if row.detector in numbers},
        }
        for row in rows
    ]
    cells += [dict(baseline) for baseline in baselines]
    filled = [column for column in columns if any(row.get(column.source) is not None for row in cells)]
    return Table(filled, cells, title, notes)


def _kind(row: DetectorNumbers) -> str:
    return " (blind)" if row.blind else " (fitted)" if row.fitted else ""


def _cells(row: DetectorNumbers, brief: bool) -> dict[str, Cell]:
    cells: dict[str, Cell] = {
        "detector": row.detector + ("*" if row.reversed else "") + _kind(row),
        "title": row.title,
        "draws": row.draws,
        # Most detectors cost neither: the columns are there where one does.
        "passes": row.passes or None,
        "labels": row.labels or None,
        "seconds": row.seconds,
        "estimate": row.estimate,
        "within": row.within,
    }
    if row.top is not None and not brief:
        cells |= {"top": row.top.rate, "chance": row.top.chance}
    if row.flagged is not None and not brief:
        cells |= {"flagged": row.flagged.share, "precision": row.flagged.precision, "recall": row.flagged.recall}
    # A difference without a value has no reason here where the ROC-AUC has one.
    if (over_all := row.difference) is not None and row.estimate.defined:
        cells |= {"a": over_all.a, "b": over_all.b, "difference": over_all.number, "p_value": over_all.p_value}
    if row.difference_within is not None and row.within.defined:
        cells["difference_within"] = row.difference_within.number
    return {**cells, "p_adjusted": row.p_adjusted, "p_adjusted_within": row.p_adjusted_within}
