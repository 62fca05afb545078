"""The one renderer of papers' tables: finished runs, of whatever model, beside what a paper prints.

A suite says in Python which numbers a run gives (`Paper.rows`). What the paper's tables are made of stands in two files
of its package: `tables.yaml` (tables with their columns; names of the paper's models on the hub) and `published.csv`
(a line a model and setting, a column a measure; what the paper prints, misprints included, and no number of ours).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import resources
from typing import Any

import yaml
from pydantic import TypeAdapter

from hedge_tasks.errors import ConfigError, DataError, unknown
from hedge_tasks.io.tables import parse_csv
from hedge_tasks.measures.measure import Measure
from hedge_tasks.measures.run_measures import documents_of, estimate_of
from hedge_tasks.numbers import Cell, Column, Number, Table, format_number
from hedge_tasks.runs.model_names import short_names
from hedge_tasks.runs.run_files import Run

PAPER, DIFFERENCE = "  paper", "  difference"
"""Names of the rows below one that the paper has as well."""

# What makes another model of a name: the 3B of "DeepSeek-VL2-Tiny" is not "DeepSeek-VL2".
_SMALLER = ("tiny", "small", "mini", "nano")

_KEYS = ("table", "model", "setting")


@dataclass(frozen=True)
class Published:
    """The numbers that a paper prints of one model in one setting.

    Attributes:
        table: where they stand, such as "Table 6" or "section 5.2".
        model: as the paper calls it.
        setting: which of a model's rows, in words of the suite; "" where there is one.
        values: by measure, on our scale.
    """

    table: str
    model: str
    setting: str
    values: Mapping[str, float]


@dataclass(frozen=True)
class PaperRow:
    """One row of a paper's tables, as runs fill it.

    Attributes:
        model: of the runs.
        setting: as in `Published`.
        numbers: by measure.
        about: further texts that name the row, by the heading of their column.
        counts: further columns, such as how many documents there are.
        notes: for readers of these numbers.
    """

    model: str
    setting: str
    numbers: Mapping[str, Number]
    about: Mapping[str, str] = field(default_factory=dict)
    counts: Mapping[str, Cell] = field(default_factory=dict)
    notes: Sequence[str] = ()

    @property
    def texts(self) -> dict[str, Cell]:
        """Return the cells that stand before the numbers."""
        return {"model": self.model, **self.about, **self.counts}


@dataclass(frozen=True)
class TableLayout:
    """One table of `tables.yaml`.

    Attributes:
        title: above it.
        columns: names of measures.
        settings: of the rows that belong here; empty for all.
        needs: measure without which a row is left out; empty where any of the columns will do.
        notes: below it.
    """

    title: str
    columns: tuple[str, ...]
    settings: tuple[str, ...] = ()
    needs: str = ""
    notes: tuple[str, ...] = ()

    def holds(self, row: PaperRow) -> bool:
        """Whether a row belongs here, and has something to say."""
        needed = (self.needs,) if self.needs else self.columns
        return (not self.settings or row.setting in self.settings) and any(_has(row, name) for name in needed)


_LAYOUT = TypeAdapter(TableLayout)


@dataclass(frozen=True)
class Paper:
    """A paper whose tables finished runs are laid out as.

    Attributes:
        name: in `hedge paper NAME`.
        package: where `tables.yaml` and `published.csv` are.
        rows: runs of any kind -> the rows that those of this paper give, in their order.
        measures: that the columns are named after; the first one of a name counts.
        leads: setting and measure of the number that other benchmarks are correlated with; empty for none.
    """

    name: str
    package: str
    rows: Callable[[Sequence[Run]], Iterable[PaperRow]]
    measures: Sequence[Measure]
    leads: tuple[str, ...] = ()

    @cached_property
    def published(self) -> tuple[Published, ...]:
        """Return the paper's numbers in the order of their file."""
        lines = parse_csv(self._text("published.csv"), f"{self.package}/published.csv")
        return tuple(
            Published(
                line["table"],
                line["model"],
                line["setting"],
                {name: float(cell) for name, cell in line.items() if cell and name not in _KEYS},
            )
            for _, line in lines
        )

    @cached_property
    def layouts(self) -> tuple[TableLayout, ...]:
        """Return the tables in the order of their file."""
        return tuple(map(_LAYOUT.validate_python, self._file["tables"]))

    def rows_of(self, runs: Sequence[Run], names: Mapping[str, str] | None = None) -> list[tuple[PaperRow, str | None]]:
        """Return all rows, each with the paper's model that it is of; None where it is of another one.

        Args:
            names: the paper's model -> text in the name of a user's copy, which counts before what `tables.yaml` has.

        Raises:
            DataError: there is no run of this paper.
        """
        rows = list(self.rows(runs))
        if not rows:
            raise DataError(f"no run of the paper {self.name!r} among {', '.join(run.title for run in runs) or 'none'}")
        return [(row, self._model_of(row.model, names or {})) for row in rows]

    def names_given(self, entries: Iterable[str]) -> dict[str, str]:
        """Read the entries of `--name MODEL=TEXT`: text by the paper's model.

        Raises:
            ConfigError: an entry is of another form, or the paper has no such model; names the nearest one.
        """
        names = {}
        models = dict.fromkeys(entry.model for entry in self.published)
        for entry in entries:
            model, _, text = entry.partition("=")
            if not text:
                raise ConfigError(f"--name: expected MODEL=TEXT, such as {next(iter(models))}=my-copy, got {entry!r}")
            if model not in models:
                raise unknown("model of the paper", model, models)
            names[model] = text
        return names

    def tables(self, rows: Sequence[tuple[PaperRow, str | None]]) -> list[Table]:
        """Lay rows of `rows_of` out as the paper's tables; a table that no number is in is left out."""
        short = short_names([row.model for row, _ in rows])
        tables: list[Table] = []
        noted: dict[str, None] = {}
        for layout in self.layouts:
            held = [(replace(row, model=short[row.model]), model) for row, model in rows if layout.holds(row)]
            if held:
                notes = {f"{row.model}: {note}": None for row, _ in held for note in row.notes}
                new = [*layout.notes, *(note for note in notes if note not in noted)]
                tables.append(replace(self._table(layout, held), title=layout.title, notes=new))
                noted |= notes
        return tables

    def records(self, rows: Sequence[tuple[PaperRow, str | None]]) -> Table:
        """Return one row a number, with the paper's: what `--out` and `--json` give."""
        lines: list[dict[str, Cell]] = []
        for row, model in rows:
            theirs = self._theirs(row.setting, model)
            for name, number in row.numbers.items():
                cells: dict[str, Cell] = {**row.texts, "setting": row.setting, "measure": name, **_flat(number)}
                paper = theirs.get(name)
                less = None if paper is None else number.less(paper).value
                lines.append({**cells, "paper": paper, "difference": less, "paper_model": model or ""})
        return Table([], lines)

    def _table(self, layout: TableLayout, rows: Sequence[tuple[PaperRow, str | None]]) -> Table:
        """A line a row; below, the paper's numbers of the same model, or those of all its models in that setting."""
        texts = list(dict.fromkeys(key for row, _ in rows for key in row.texts))
        measures = [self._measure(name) for name in layout.columns]
        columns = [*map(Column, texts), *(Column(m.name, m.title, m.format, stderr=True) for m in measures)]
        lines: list[Mapping[str, Cell]] = []
        for setting in dict.fromkeys(row.setting for row, _ in rows):
            of_setting = [(row, model) for row, model in rows if row.setting == setting]
            for row, model in of_setting:
                lines.append({**row.texts, **{name: row.numbers.get(name) for name in layout.columns}})
                lines += self._below(row, self._theirs(setting, model), measures)
            matched = {model for _, model in of_setting}
            lines += self._unmatched(setting, layout.columns, matched)
        blank: dict[str, Cell] = dict.fromkeys(texts, "")
        return Table(columns, [{**blank, **line} for line in lines])

    def _below(self, row: PaperRow, theirs: Mapping[str, float], measures: Sequence[Measure]) -> list[dict[str, Cell]]:
        shared = [m for m in measures if m.name in theirs and m.name in row.numbers]
        if not shared:
            return []
        paper: dict[str, Cell] = {m.name: theirs[m.name] for m in shared}
        less: dict[str, Cell] = {m.name: _less(row.numbers[m.name], theirs[m.name], m) for m in shared}
        return [{"model": PAPER, **paper}, {"model": DIFFERENCE, **less}]

    def _unmatched(
        self, setting: str, names: Sequence[str], matched: Iterable[str | None]
    ) -> Iterator[Mapping[str, Cell]]:
        """Yield a line for each of the paper's models in a setting that no run is of."""
        models = [entry.model for entry in self.published if entry.setting == setting]
        for model in dict.fromkeys(name for name in models if name not in matched):
            values = self._theirs(setting, model)
            if shown := {name: values[name] for name in names if name in values}:
                yield {"model": f"paper: {model}", **shown}

    def _theirs(self, setting: str, model: str | None) -> dict[str, float]:
        """Return the paper's numbers of a model in a setting; where two of its tables have one, the first counts."""
        values: dict[str, float] = {}
        for entry in self.published:
            if (entry.setting, entry.model) == (setting, model):
                values = {**entry.values, **values}
        return values

    def _model_of(self, model: str, names: Mapping[str, str]) -> str | None:
        """Return the paper's model that a run's model is; None where it is none, or may be several."""
        own = [paper_model for paper_model, text in names.items() if text.lower() in model.lower()]
        patterns: Mapping[str, str] | None = self._file.get("models")
        if own or patterns is None:
            return own[0] if len(own) == 1 else named_like(model, [entry.model for entry in self.published])
        hub = [name for name, pattern in patterns.items() if re.search(pattern, model, re.I) and name not in names]
        return hub[0] if len(hub) == 1 else None

    def _measure(self, name: str) -> Measure:
        return next(measure for measure in self.measures if measure.name == name)

    @cached_property
    def _file(self) -> Mapping[str, Any]:
        content: Mapping[str, Any] = yaml.safe_load(self._text("tables.yaml"))
        return content

    def _text(self, name: str) -> str:
        return (resources.files(self.package) / name).read_text("utf-8")


def numbers_in(run: Run, measures: Iterable[Measure]) -> dict[str, Number]:
    """Return what measures give for a run, by name; one that the run does not record is undefined with the reason."""
    numbers = {}
    for measure in measures:
        try:
            numbers[measure.name] = estimate_of(measure, documents_of(run, measure))
        except DataError as error:
            numbers[measure.name] = Number.undefined(str(error), unit=measure.unit)
    return numbers


def judge_settings(run: Run) -> Mapping[str, Any]:
    """Return the settings of a run's judge, as its file has them; empty where it has none."""
    documents = run.settings.get("documents")
    judge = documents.get("judge") if isinstance(documents, Mapping) else None
    return judge if isinstance(judge, Mapping) else {}


def _has(row: PaperRow, name: str) -> bool:
    """Whether a row has something to say of a measure: a value, or why units that were asked give none."""
    number = row.numbers.get(name)
    return number is not None and (number.defined or number.n > 0)


def _less(number: Number, theirs: float, measure: Measure) -> str:
    return format_number(number.less(theirs), replace(measure.format, signed=True))


def _flat(number: Number) -> dict[str, Cell]:
    errors = {"stderr": number.stderr, "low": number.low, "high": number.high}
    return {"value": number.value, **errors, "n": number.n, "groups": number.n_groups, "reason": number.reason}


def named_like(model: str, names: Iterable[str]) -> str | None:
    """The longest of some names that stands in a run's model, letters and digits alone; None where there is none.

    Example:
        >>> named_like("hedge_hf|pretrained=llava-hf/llava-1.5-7b-hf", ["LLaVA-1.5-7B", "LLaVA-1.5-13B"])
        'LLaVA-1.5-7B'
        >>> named_like("hedge_openai|model=gpt-4o-mini", ["GPT-4o"])
    """
    letters = _letters(model)
    return max((name for name in names if _is_in_name(_letters(name), letters)), key=len, default=None)


def _is_in_name(name: str, model: str) -> bool:
    _, match, after = model.partition(name)
    return bool(match) and not after.startswith(_SMALLER)


def _letters(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())
