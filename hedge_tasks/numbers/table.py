"""Tables: columns of text, counts and numbers. The only thing that prints rows, in whatever form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, Literal

from hedge_tasks.io.tables import as_csv
from hedge_tasks.numbers.formats import (
    MISSING,
    THREE_DIGITS,
    Format,
    format_interval,
    format_number,
    format_p,
    format_value,
)
from hedge_tasks.numbers.number import Number

if TYPE_CHECKING:
    import pandas

Cell = Number | float | int | str | bool | None
"""Entry of a table; None where there is nothing to show."""

Kind = Literal["value", "stderr", "interval", "p", "n", "n_groups", "n_rarer"]


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        key: of the column in JSON and CSV, and of the cell in a row.
        title: in text and HTML; empty for the key with blanks for underscores.
        format: of its numbers.
        stderr: whether the standard error stands behind the value.
        interval: whether the interval stands behind the value.
        show: which part of a number is shown: value, error, interval or counts; "p" for a float that is a p-value.
        of: key of the cell that `show` looks at, for a second column about the same number; empty for its own.
    """

    key: str
    title: str = ""
    format: Format = THREE_DIGITS
    stderr: bool = False
    interval: bool = False
    show: Kind = "value"
    of: str = ""

    @property
    def heading(self) -> str:
        return self.title or self.key.replace("_", " ")

    @property
    def source(self) -> str:
        """Key of the cell that is shown."""
        return self.of or self.key

    def text(self, cell: Cell) -> str:
        """Return a cell as it is printed."""
        if self.show == "p":
            return format_p(None if cell is None or isinstance(cell, str | Number) else float(cell))
        if isinstance(cell, Number):
            return self._text_of(cell)
        if cell is None:
            return MISSING
        if self.show != "value" and isinstance(cell, float):
            return ""  # a published value has no counts
        return format_value(cell, self.format) if isinstance(cell, float) else str(cell)

    def _text_of(self, number: Number) -> str:
        if self.show == "value":
            return format_number(number, self.format, stderr=self.stderr, interval=self.interval)
        if self.show == "interval":
            return format_interval(number.interval, self.format)
        if self.show == "stderr":
            return format_value(number.stderr, self.format)
        count = getattr(number, self.show)
        return MISSING if count is None else str(count)


@dataclass(frozen=True)
class Table:
    """Rows of numbers under columns.

    Attributes:
        columns: in their order.
        rows: key of a column -> cell; a missing key is an empty cell.
        title: above the table.
        notes: below it, a line each.

    Example:
        >>> table = Table([Column("name"), Column("auroc", "ROC-AUC", interval=True)],
        ...               [{"name": "se", "auroc": Number(0.75, interval=(0.6, 0.86))}])
        >>> print(table.to_text())
        name               ROC-AUC
        se    0.750 [0.600, 0.860]
    """

    columns: Sequence[Column]
    rows: Sequence[Mapping[str, Cell]]
    title: str = ""
    notes: Sequence[str] = field(default=())

    @classmethod
    def of(cls, headings: Sequence[str], rows: Iterable[Sequence[Cell]], **about: Any) -> Table:
        """Return a table of rows in the order of their columns, each of which is called what stands above it.

        Args:
            about: `title` and `notes`.
        """
        keys = [name if name not in headings[:i] else f"{name} {i + 1}" for i, name in enumerate(headings)]
        columns = [Column(key, name or " ") for key, name in zip(keys, headings, strict=True)]
        return cls(columns, [dict(zip(keys, row, strict=True)) for row in rows], **about)

    def __str__(self) -> str:
        return self.to_text()

    def to_text(self) -> str:
        """Return the table for a terminal: texts flush left, numbers flush right, reasons of what is undefined below.

        An empty table is its title and notes.
        """
        texts = [[column.text(row.get(column.source)) for column in self.columns] for row in self.rows]
        lines = [self.title] if self.title else []
        if texts:
            lines += _aligned([column.heading for column in self.columns], texts, self._textual())
        return "\n".join([*lines, *self.notes, *self.reasons()])

    def reasons(self) -> list[str]:
        """Return a line for every reason why numbers are undefined, with the rows or columns that it is of."""
        missing = [
            (row, key, cell.reason)
            for row in self.rows
            for key, cell in row.items()
            if isinstance(cell, Number) and cell.value is None and cell.reason
        ]
        times = Counter((key, reason) for _, key, reason in missing)
        everywhere = {place for place, n in times.items() if n == len(self.rows) > 1}
        return reason_lines(
            "undefined",
            (
                (self._heading(key) if (key, reason) in everywhere else self._name_of(row, key), reason)
                for row, key, reason in missing
            ),
        )

    def to_records(self) -> list[dict[str, Any]]:
        """Return one mapping a row, fit for JSON; a number is its `to_dict`."""
        return [
            {key: cell.to_dict() if isinstance(cell, Number) else cell for key, cell in row.items()}
            for row in self.rows
        ]

    def to_csv(self) -> str:
        """Return comma-separated values: a number has columns for value, error, bounds, counts and reason."""
        records = self.flat_records()
        header = list(dict.fromkeys(key for record in records for key in record))
        return as_csv([header, *([record.get(key) for key in header] for record in records)]) if header else ""

    def flat_records(self) -> list[dict[str, Any]]:
        """Return one flat mapping a row: the tidy form of CSV and data frames."""
        return [dict(_flat(row)) for row in self.rows]

    def to_html(self) -> str:
        """Return an HTML table; every text is escaped."""
        heads = "".join(f"<th>{escape(column.heading)}</th>" for column in self.columns)
        body = "".join(
            "<tr>"
            + "".join(f"<td>{escape(column.text(row.get(column.source)))}</td>" for column in self.columns)
            + "</tr>"
            for row in self.rows
        )
        caption = f"<caption>{escape(self.title)}</caption>" if self.title else ""
        return f"<table>{caption}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"

    def to_pandas(self) -> pandas.DataFrame:
        """Return a tidy data frame, one row a row.

        Raises:
            ImportError: pandas is not installed.
        """
        import pandas

        return pandas.DataFrame.from_records(self.flat_records())

    def _repr_html_(self) -> str:
        return self.to_html()

    def _textual(self) -> list[bool]:
        """Return whether a column is text, which is flush left."""
        return [
            i == 0 or all(isinstance(row.get(column.source), str | None) for row in self.rows)
            for i, column in enumerate(self.columns)
        ]

    def _heading(self, key: str) -> str:
        return next((column.heading for column in self.columns if column.source == key), key)

    def _name_of(self, row: Mapping[str, Cell], key: str) -> str:
        label = self.columns[0].source if self.columns else ""
        first = row.get(label)
        parts = [str(first)] if label != key and isinstance(first, str) and first else []
        numbers = [name for name, cell in row.items() if isinstance(cell, Number)]
        return ", ".join([*parts, *([self._heading(key)] if len(numbers) > 1 or not parts else [])])


def reason_lines(word: str, reasons: Iterable[tuple[str, str]]) -> list[str]:
    """Return a line for every reason, with the names that it is given for.

    Args:
        word: in front of the names, such as "left out".
        reasons: pairs of name and reason.

    Example:
        >>> reason_lines("undefined", [("se", "no labels"), ("kle", "no NLI"), ("vase", "no labels")])
        ['undefined: se, vase: no labels', 'undefined: kle: no NLI']
    """
    by_reason: dict[str, dict[str, None]] = {}
    for name, reason in reasons:
        by_reason.setdefault(reason, {})[name] = None
    return [f"{word}: {', '.join(names)}: {reason}" for reason, names in by_reason.items()]


def _flat(row: Mapping[str, Cell]) -> Iterator[tuple[str, Any]]:
    for key, cell in row.items():
        if not isinstance(cell, Number):
            yield key, cell
            continue
        yield key, cell.value
        yield f"{key}_stderr", cell.stderr
        yield f"{key}_low", cell.low
        yield f"{key}_high", cell.high
        yield f"{key}_n", cell.n
        yield f"{key}_n_rarer", cell.n_rarer
        yield f"{key}_reason", cell.reason


def _aligned(header: Sequence[str], rows: Iterable[Sequence[str]], textual: Sequence[bool]) -> list[str]:
    rows = list(rows)
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.ljust(width) if text else cell.rjust(width)
            for cell, width, text in zip(cells, widths, textual, strict=True)
        ]
        return "  ".join(padded).rstrip()

    return [line(header), *map(line, rows)]
