"""JSON whose questions lie deeper than its rows, or in two files, as plain rows.

Nothing is guessed: records are opened only where no row has a question, one list of records is followed, and two files
are joined only by a column whose values are the same in both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]

_DEEPEST = 4


def flat_rows(rows: Sequence[Row], asks: Callable[[str], bool]) -> tuple[list[Row], str]:
    """Rows with a question each, out of rows that hold it in a record or in a list of records; else as they are.

    A key that stands in one place keeps its name, another one has the way to it in front (`image.id`).

    Args:
        asks: whether a name is that of a column with questions.

    Returns:
        The rows, and in a few words what was opened; "" where nothing was.
    """
    if not rows or any(asks(key) for row in rows for key in row):
        return list(rows), ""
    opened: list[tuple[dict[tuple[str, ...], Any], ...]] = []
    ways: dict[str, None] = {}
    for row in rows:
        found = tuple(_opened(row, (), asks, ways, _DEEPEST))
        if not found:
            return list(rows), ""
        opened.append(found)
    paths = list(dict.fromkeys(path for of in opened for one in of for path in one))
    if not any(asks(path[-1]) for path in paths) or not ways:
        return list(rows), ""
    times = Counter(path[-1] for path in paths)
    names = {path: path[-1] if times[path[-1]] == 1 else ".".join(path) for path in paths}
    flat: list[Row] = [{names[path]: value for path, value in one.items()} for of in opened for one in of]
    return flat, f"rows were opened along {', '.join(ways)}: {len(flat)} questions out of {len(rows)} records"


def _opened(
    row: Row, way: tuple[str, ...], asks: Callable[[str], bool], ways: dict[str, None], depth: int
) -> Iterator[dict[tuple[str, ...], Any]]:
    """The rows in a record: its plain cells beside those of the records it leads to; none where it leads two ways."""
    plain: dict[tuple[str, ...], Any] = {}
    lists = []
    for key, value in row.items():
        here = (*way, key)
        if _is_record(value) and depth:
            inner = list(_opened(value, here, asks, {}, depth - 1))
            if len(inner) != 1:
                return
            plain |= inner[0]
            ways[".".join(here)] = None
        elif _are_records(value) and depth and _leads(value, asks, depth):
            lists.append((here, value))
        else:
            plain[here] = value
    if not lists:
        yield plain
        return
    if len(lists) > 1:
        return
    [(here, records)] = lists
    ways[f"{'.'.join(here)}[]"] = None
    for record in records:
        for inner_row in _opened(record, here, asks, ways, depth - 1):
            yield {**plain, **inner_row}


def _leads(records: Sequence[Row], asks: Callable[[str], bool], depth: int) -> bool:
    """Whether questions are found in records or deeper."""
    first = records[0]
    if any(asks(key) for key in first):
        return True
    lists = [value if isinstance(value, list) else [value] for value in first.values()]
    return depth > 0 and any(_are_records(of) and _leads(of, asks, depth - 1) for of in lists)


def _is_record(value: object) -> bool:
    # A file is a cell; so are options by letter.
    if not isinstance(value, Mapping) or not value or {"bytes", "path"} >= value.keys():
        return False
    return not all(len(str(key)) == 1 for key in value)


def _are_records(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_record, value))


def joined(one: Sequence[Row], other: Sequence[Row], asks: Callable[[str], bool]) -> tuple[list[Row], str] | None:
    """Two tables as one, questions first: by the only column whose values name the same rows in both.

    None where the questions are not in one of them alone, or no column or several could join them.
    """
    with_question = [any(asks(key) for key in rows[0]) for rows in (one, other) if rows]
    if with_question not in ([True, False], [False, True]):
        return None
    first, second = (one, other) if with_question[0] else (other, one)
    keys = [key for key in first[0] if key in second[0] and _same_rows(first, second, key)]
    if len(keys) != 1:
        return None
    [key] = keys
    beside = {row[key]: row for row in second}
    return [{**beside[row[key]], **row} for row in first], f"two files, joined by {key!r}"


def _same_rows(one: Sequence[Row], other: Sequence[Row], key: str) -> bool:
    values = [[row.get(key) for row in rows] for rows in (one, other)]
    if any(not isinstance(value, (str, int)) for of in values for value in of):
        return False
    return len(set(values[0])) == len(one) == len(other) and set(values[0]) == set(values[1])


def with_images(lists: Sequence[list[dict[str, Any]]], asks: Callable[[str], bool]) -> list[dict[str, Any]] | None:
    """COCO's form: records with questions that name an image by `image_id`, with its record beside them.

    None where there are not one list of each, or an image is not there.
    """
    asking = [of for of in lists if any(map(asks, of[0]))]
    images = [of for of in lists if "id" in of[0] and {"file_name", "image", "path"} & of[0].keys()]
    if len(asking) != 1 or len(images) != 1 or asking[0] is images[0]:
        return None
    by_id = {image.get("id"): image for image in images[0]}
    if len(by_id) < len(images[0]) or any(row.get("image_id") not in by_id for row in asking[0]):
        return None
    return [{**{k: v for k, v in by_id[row["image_id"]].items() if k != "id"}, **row} for row in asking[0]]
