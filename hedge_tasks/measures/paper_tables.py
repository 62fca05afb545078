"""Tables of a paper out of finished runs: rows of numbers by measure, the published values beside them, differences.

A suite chooses the runs of a row, the measures of the columns and the published values; this module lays them out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from hedge_tasks.measures.measure import Measure
from hedge_tasks.measures.published import Published
from hedge_tasks.measures.run_measures import documents_of, estimate_of
from hedge_tasks.numbers import MISSING, Column, Format, Number, Table, format_interval, format_number, format_value
from hedge_tasks.numbers.table import Cell
from hedge_tasks.runs.run_files import Run
from hedge_tasks.statistics import Comparison, max_t

PAPER, DIFFERENCE = "  paper", "  difference"
"""Names of the rows below one that the paper has as well."""


@dataclass(frozen=True)
class ModelNumbers:
    """Numbers of a model in one setting.

    Attributes:
        about: what names them: model, task, setting, ...
        numbers: by measure.
        published: the paper's numbers of the same, by measure.
        counts: further columns, such as how many documents there are.
        notes: for readers of these numbers.
    """

    about: Mapping[str, str]
    numbers: Mapping[str, Number]
    published: Mapping[str, Published] = field(default_factory=dict)
    counts: Mapping[str, Cell] = field(default_factory=dict)
    notes: Sequence[str] = ()

    def value(self, name: str) -> float | None:
        """Return a number's value."""
        return self.numbers[name].value

    def to_dict(self) -> dict[str, Any]:
        """Return them for JSON."""
        cells = {name: number.to_dict() for name, number in self.numbers.items()}
        published = {name: asdict(theirs) for name, theirs in self.published.items()}
        return {**self.about, **self.counts, "cells": cells, "published": published, "notes": list(self.notes)}


def numbers_in(run: Run, measures: Iterable[Measure]) -> dict[str, Number]:
    """Return what measures give for a run, by name.

    Raises:
        DataError: the run does not record what a measure needs.
    """
    return {measure.name: estimate_of(measure, documents_of(run, measure)) for measure in measures}


def wide_table(
    rows: Sequence[ModelNumbers],
    measures: Sequence[Measure],
    *,
    title: str = "",
    names: Mapping[str, str] | None = None,
    headings: Mapping[str, str] | None = None,
    stderr: bool = True,
    beside: Mapping[str, Mapping[str, float]] | None = None,
    counts: bool = False,
    notes: Sequence[str] = (),
) -> Table:
    """Return a table with a row a model and a column a measure.

    Below a row stand the paper's numbers of the same model, where there are any, and the differences to them.

    Args:
        names: short names of texts in `about`, such as models.
        headings: of measures, where not their own.
        stderr: whether standard errors stand behind values.
        beside: further rows of published values, by the name that they go by.
        counts: whether N, the units of a number, has a column behind it.
    """
    head = headings or {}
    about = list(dict.fromkeys(key for row in rows for key in (*row.about, *row.counts)))
    columns = [Column(key) for key in about]
    for m in measures:
        columns.append(Column(m.name, head.get(m.name, m.title), m.format, stderr=stderr))
        columns += [Column(f"{m.name}_n", "N", show="n", of=m.name)] if counts else []
    lines: list[dict[str, Cell]] = []
    blank: dict[str, Cell] = dict.fromkeys(about, "")
    for row in rows:
        ours = {m.name: row.numbers.get(m.name) for m in measures}
        lines.append({**_shortened(row.about, names), **row.counts, **ours})
        theirs = {m.name: row.published[m.name].value for m in measures if m.name in row.published}
        if theirs:
            lines.append({**blank, about[0]: PAPER, **theirs})
            less = {m.name: _less(row.numbers[m.name], theirs[m.name], m.format) for m in measures if m.name in theirs}
            lines.append({**blank, about[0]: DIFFERENCE, **less})
    for name, values in (beside or {}).items():
        if values_shown := {m.name: values[m.name] for m in measures if m.name in values}:
            lines.append({**blank, about[0]: name, **values_shown})
    return Table(columns, lines, title=title, notes=notes)


def tall_table(
    rows: Sequence[ModelNumbers],
    measures: Sequence[Measure],
    *,
    title: str = "",
    names: Mapping[str, str] | None = None,
    units: str = "",
    groups: str = "",
    paper: str = "",
    notes: Sequence[str] = (),
) -> Table:
    """Return a table with a line a number: ours, its interval, what it rests on, the paper's, and the difference.

    Args:
        names: short names of texts in `about`.
        units, groups: headings of their counts; empty for no such column.
        paper: heading of the published values; empty for a column that names the paper's model.
    """
    about = list(dict.fromkeys(key for row in rows for key in row.about))
    columns = [*map(Column, about), Column("measure", " "), Column("ours"), Column("95 %")]
    columns += [Column("n", units)] if units else []
    columns += [Column("n_groups", groups)] if groups else []
    columns += [Column("paper", paper), Column("difference")]
    columns += [] if paper else [Column("paper_model", "paper's model")]
    lines: list[dict[str, Cell]] = []
    for row in rows:
        for m in measures:
            if m.name not in row.numbers:
                continue
            number, theirs = row.numbers[m.name], row.published.get(m.name)
            lines.append(
                {
                    **_shortened(row.about, names),
                    "measure": m.title,
                    "ours": format_number(number, m.format),
                    "95 %": format_interval(number.interval, m.format, missing=""),
                    "n": number.n,
                    "n_groups": number.n_groups,
                    "paper": "" if theirs is None else m.format(theirs.value),
                    "difference": "" if theirs is None else _less(number, theirs.value, m.format),
                    "paper_model": "" if theirs is None else theirs.model,
                }
            )
    return Table(columns, lines, title=title, notes=notes)


def number_rows(rows: Sequence[ModelNumbers]) -> Table:
    """Return one row a number, with the paper's: what `--out` writes."""
    lines: list[dict[str, Cell]] = []
    for row in rows:
        for name, number in row.numbers.items():
            theirs = row.published.get(name)
            paper: dict[str, Cell] = dict.fromkeys(("paper", "difference", "source", "paper_model"))
            if theirs is not None:
                less = number.less(theirs.value).value
                source = {"source": theirs.table, "paper_model": theirs.model}
                paper = {"paper": theirs.value, "difference": less, **source}
            lines.append({**row.about, **row.counts, "measure": name, **_flat(number), **paper})
    return Table([], lines)


def published_by_model(published: Iterable[Published], prefix: str = "paper: ") -> dict[str, dict[str, float]]:
    """Return published values by model; where two of the paper's tables have one, the first counts."""
    values: dict[str, dict[str, float]] = {}
    for number in published:
        values.setdefault(f"{prefix}{number.model}", {}).setdefault(number.measure, number.value)
    return values


# --- differences ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Change:
    """A measure of two runs that differ in one thing, paired by document.

    Attributes:
        about: what names the pair: model, what differs, ...
        measure: that is compared.
        comparison: a, b and their difference.
        over: which documents, where not all that both have.
        p_adjusted: p-value adjusted for all differences that are shown together.
    """

    about: Mapping[str, str]
    measure: Measure
    comparison: Comparison
    over: str = ""
    p_adjusted: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        named = f"{self.measure.name}, {self.over}" if self.over else self.measure.name
        return {**self.about, "measure": named, "comparison": self.comparison.as_json(), "p_adjusted": self.p_adjusted}


def adjusted(changes: Sequence[Change]) -> list[Change]:
    """Return changes with p-values adjusted for their number (max-T)."""
    p_values = max_t([change.comparison for change in changes])
    return [replace(change, p_adjusted=p) for change, p in zip(changes, p_values, strict=True)]


def changes_table(
    changes: Sequence[Change],
    *,
    title: str,
    a: str,
    b: str,
    names: Mapping[str, str] | None = None,
    n: str = "documents",
) -> Table:
    """Return a table with a line a difference.

    Args:
        a, b: headings of both sides.
        names: short names of texts in `about`.
        n: heading of the number of documents.
    """
    about = list(dict.fromkeys(key for change in changes for key in change.about))
    columns = [*map(Column, about), Column("of"), Column("a", a), Column("b", b), Column("difference")]
    columns += [Column("95 % interval"), Column("p", show="p")]
    columns += [Column("p_adjusted", "p (max-T)", show="p")] if any(c.p_adjusted is not None for c in changes) else []
    lines: list[dict[str, Cell]] = []
    reasons: dict[str, None] = {}
    for change in changes:
        c, fmt = change.comparison, change.measure.format
        measure_name = change.measure.title + (f", {change.over}" if change.over else "")
        signed = replace(fmt, signed=True)
        values = {"a": format_value(c.a, fmt), "b": format_value(c.b, fmt)}
        values["difference"] = format_value(c.difference, signed)
        interval = format_interval(c.interval, signed)
        tests: dict[str, Cell] = {"p": c.p_value, "p_adjusted": change.p_adjusted, "n": c.n}
        row = {**_shortened(change.about, names), "of": measure_name, **values}
        lines.append({**row, "95 % interval": interval, **tests})
        if c.reason:
            reasons[f"{measure_name}: {c.reason}"] = None
    return Table([*columns, Column("n", n)], lines, title=title, notes=[*reasons])


def _shortened(about: Mapping[str, str], names: Mapping[str, str] | None) -> dict[str, Cell]:
    """Return what names a row, with short names where there are any."""
    return {key: (names or {}).get(text, text) for key, text in about.items()}


def _less(number: Number, theirs: float, fmt: Format) -> str:
    difference = number.less(theirs)
    return MISSING if difference.value is None else format_number(difference, replace(fmt, signed=True))


def _flat(number: Number) -> dict[str, Cell]:
    errors = {"stderr": number.stderr, "low": number.low, "high": number.high}
    return {"value": number.value, **errors, "n": number.n, "groups": number.n_groups, "reason": number.reason}
