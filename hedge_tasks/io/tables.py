"""CSV from outside, and tables of texts from outside as CSV that no spreadsheet takes for formulas."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from hedge_tasks.errors import DataError
from hedge_tasks.io.outside import shown

# Spreadsheets run a cell that begins with one of these, blanks and invisible marks before it or not. The full-width
# forms count as well.
_FORMULA = re.compile(r"[\s\ufeff\u200b-\u200f\u202a-\u202e\u2060-\u2069]*[=+\-@＝＋－＠]|[\t\n]")
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


def as_csv(rows: Iterable[Sequence[object]]) -> str:
    """Rows as CSV. None is an empty field; texts are made harmless by `safe_cell`, numbers stay numbers."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in rows:
        writer.writerow(["" if cell is None else safe_cell(cell) if isinstance(cell, str) else cell for cell in row])
    return text.getvalue()


def safe_cell(text: str) -> str:
    """A text that a spreadsheet shows and does not run: control characters become U+FFFD, a formula gets a quote.

    Source: OWASP, CSV Injection.

    Example:
        >>> safe_cell("=1+1"), safe_cell("a\\x00b"), safe_cell("left")
        ("'=1+1", 'a\ufffdb', 'left')
    """
    # Python's writer does not quote a lone carriage return, and readers take it for the end of the line.
    clean = _CONTROLS.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))
    return f"'{clean}" if _FORMULA.match(clean) else clean


def parse_csv(text: str, name: str, separator: str = ",") -> list[tuple[str, Mapping[str, str]]]:
    """The rows of a CSV text by the names of its header, each with its place (`file:line`).

    Raises:
        DataError: it is no CSV, a row has more or fewer columns than the header, or the header names one twice.
    """
    return list(_rows(csv.DictReader(io.StringIO(text, newline=""), delimiter=separator, strict=True), name))


def check_header(names: Sequence[str], name: str) -> None:
    """Raise DataError where a table's columns do not all have names of their own."""
    if twice := [*Counter(names) - Counter({*names})]:
        raise DataError(f"{name}: the header names a column twice: {shown(twice[0])}")


def _rows(reader: csv.DictReader[str], name: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    try:
        names = list(reader.fieldnames or ())
        check_header(names, name)
        for row in reader:
            where = f"{name}:{reader.line_num}"
            if None in row or None in row.values():
                raise DataError(f"{where}: expected {len(names)} columns, as in the header")
            yield where, row
    except csv.Error as error:
        raise DataError(f"{name}:{reader.line_num}: not valid CSV ({error})") from None
