"""Cells of a user's table, whichever program wrote it: as texts, lists, numbers and labels."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from hedge_tasks.errors import DataError, unknown
from hedge_tasks.io.outside import clean, shown

_MISSING = frozenset({"", "none", "null", "nan", "n/a", "na", "-"})
NOTHING = frozenset({"", "nan", "n/a", "#n/a", "null", "<na>"})
"""Texts that are no question and no answer. "None" may be an answer."""

MANY_PEOPLE = 8
"""Answers in a list, from which on they are taken for those of as many people."""

_AGREEING = 3
_LABELS = {
    **dict.fromkeys(("1", "hallucinated", "hallucination", "not supported", "unsupported"), 1),
    **dict.fromkeys(("0", "supported", "not hallucinated", "no hallucination"), 0),
}
_TRUTH = {"true": 1, "false": 0}
SCORES = "scores."
"""Begin of the names of columns with what a scorer of inspect_ai says: 1 where an answer is right, 0 where not."""

_WHOLE = re.compile(r"([0-9]{1,3})\.0+")
_LISTED = re.compile(r"""\[[\s\[]*['"]""")
_SIDE_BY_SIDE = re.compile(r"""(['"])\s+(['"])""")
"""Texts as NumPy prints them, `['yes' 'yep']`, which Python would read as one."""


def is_missing(value: object) -> bool:
    """Whether a cell says that there is nothing: null, NaN, empty, or a word for that."""
    if isinstance(value, str):
        return value.strip().casefold() in _MISSING
    return value is None or value != value


def is_empty(value: object) -> bool:
    """Whether a cell is null, blank, or a record or list of nothing else."""
    if isinstance(value, (Mapping, list, tuple)):
        return all(map(is_empty, value.values() if isinstance(value, Mapping) else value))
    return value is None or value != value or (isinstance(value, str) and not value.strip())


def text(value: object, where: str = "") -> str:
    """Return a cell as text: empty for none, whole numbers without a point, yes and no for truth values.

    Raises:
        DataError: it is a list or a record.
    """
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if not isinstance(value, (str, int, float)):
        raise DataError(f"{where}: expected a text, got {shown(value)}".removeprefix(": "))
    return clean(str(value)).strip()


def required(value: object, where: str = "") -> str:
    """Return the text of a cell that must not be empty, such as an id.

    Raises:
        DataError: there is nothing, or no text.
    """
    if isinstance(value, bool) or not (name := text(value, where)):
        raise DataError(f"{where}: expected a text, got {shown(value)}".removeprefix(": "))
    return name


def as_list(value: object, where: str = "") -> list[Any] | None:
    """Return the list in a cell, also one that a CSV file holds as text; None for other cells.

    Raises:
        DataError: it begins like a list of texts and is none, or as NumPy prints it, which does not tell them apart.

    Example:
        >>> as_list("['yes', 'yep']"), as_list("[contrast] CT")
        (['yes', 'yep'], None)
    """
    if isinstance(value, (list, tuple)):
        return list(value)
    items, written = None, value.strip() if isinstance(value, str) else ""
    if written.startswith("[") and written.endswith("]"):
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            items = ast.literal_eval(written)
    if isinstance(items, list) and not _SIDE_BY_SIDE.search(written):
        return items
    if not _LISTED.match(written):
        return None
    why = "begins like a list and is none: one of NumPy needs column.map(list), and a text like that a list around it"
    raise DataError(f"{where}: {shown(value)} {why}".removeprefix(": "))


def references(values: Sequence[object]) -> str:
    """The references in cells that hold one or a list of them, each once, one a line.

    Of many people's answers those that three of them gave, which is what VQA accuracy calls right (Antol et al. 2015),
    or else the commonest ones.

    Example:
        >>> references(["['a cat', 'cat']", "cat", "n/a"])
        'a cat\\ncat'
    """
    read = list[str]()
    for value in values:
        items = as_list(value)
        # VQAv2 has a record of each person's answer
        cells = [value] if items is None else [i.get("answer", i) if isinstance(i, Mapping) else i for i in items]
        texts = [text(cell) if items is None and len(values) == 1 else " ".join(text(cell).split()) for cell in cells]
        times = Counter(answer for answer in texts if answer.lower() not in NOTHING)
        least = min(_AGREEING, max(times.values(), default=0)) if times.total() >= MANY_PEOPLE else 1
        read += [answer for answer, n in times.items() if n >= least]
    return "\n".join(dict.fromkeys(read))


WHERE_RIGHT = "where 1 or true is right, call the column correct"
_HALLUCINATED = f"expected 1 (hallucinated), 0 (supported) or null; {WHERE_RIGHT}"
_RIGHT = "expected true or 1 where the answer is right, false or 0 where it is not, or nothing"


def says_right(column: str) -> bool:
    """Whether true and 1 in a column of labels say that the answer is right; in others they say hallucinated."""
    return column.startswith(SCORES) or plain_name(column) in ("correct", "hit")


def label(value: object, where: str, *, right: bool | None = None) -> int | None:
    """1 for 1, "hallucinated" and their like; 0 for 0, "supported", ...; None where there is none.

    Args:
        right: what true and 1 say, where true and false are labels: that the answer is right, or hallucinated.

    Raises:
        DataError: it is something else. NaN is: what a computation could not tell is not what nobody has judged.
    """
    if value != value or (isinstance(value, str) and value.strip().casefold() == "nan"):
        raise DataError(f"{where} is NaN; expected 1 (hallucinated), 0 (supported), or nothing where there is no label")
    if is_missing(value):
        return None
    plain = without_decimals(value)
    words = " ".join(re.findall(r"\w+", str(plain).replace("_", " ").casefold()))
    is_label = isinstance(plain, (str, int)) and not str(plain).strip().startswith("-")
    known = {"1": 1, "0": 0, **_TRUTH} if right else {**_LABELS, **({} if right is None else _TRUTH)}
    if words not in known or not is_label:
        raise DataError(f"{where} is {shown(value)}; {_RIGHT if right else _HALLUCINATED}")
    return 1 - known[words] if right else known[words]


def without_decimals(value: object) -> object:
    """Return 1 for 1.0 and "1.0": pandas makes floats of a column of labels where one is missing."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and (match := _WHOLE.fullmatch(value.strip())):
        return match[1]
    return value


def first_of(row: Mapping[str, object], names: Sequence[str], where: str, what: str) -> str:
    """The text of the first of some columns that a row has; empty where it is null.

    Raises:
        DataError: it has none of them, or no text in it.
    """
    for name in (name for name in names if name in row):
        value = row[name]
        # An answer set's baseline answer; a picture, whose bytes are in such a cell, has no text.
        return text(value["text"] if isinstance(value, Mapping) and "text" in value else value, f"{where}: {name}")
    raise DataError(f"{where}: {unknown(f'{what} column', names[0], map(str, row))}")


def plain_name(name: str) -> str:
    """Return the name of a column in lower case with underscores: `patientID` and `Patient Id` are `patient_id`."""
    return re.sub(r"[\W_]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()).strip("_")


def content_of(content: Any) -> tuple[str, str]:
    """The text and the thought of a chat's message, which is a text or a list of parts."""
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    texts = [str(part.get("text") or "") for part in parts if part.get("type") == "text"]
    return "\n".join(texts), "".join(str(part.get("reasoning") or "") for part in parts)
