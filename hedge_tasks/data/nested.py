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
        row_parts = tuple(_open_record(row, (), asks, ways, _DEEPEST))
        if not row_parts:
            return list(rows), ""
        opened.append(row_parts)
    paths = list(dict.fromkeys(path for parts in opened for part in parts for path in part))
    if not any(asks(path[-1]) for path in paths) or not ways:
        return list(rows), ""
    times = Counter(path[-1] for path in paths)
    names = {path: path[-1] if times[path[-1]] == 1 else ".".join(path) for path in paths}
    flat: list[Row] = [{names[path]: value for path, value in part.items()} for parts in opened for part in parts]
    return flat, f"rows were opened along {', '.join(ways)}: {len(flat)} questions out of {len(rows)} records"


def _open_record(
    row: Row, way: tuple[str, ...], asks: Callable[[str], bool], ways: dict[str, None], depth: int
) -> Iterator[dict[tuple[str, ...], Any]]:
    """The rows in a record: its plain cells beside those of the records it leads to; none where it leads two ways."""
    plain: dict[tuple[str, ...], Any] = {}
    lists = []
    for key, value in row.items():
        path = (*way, key)
        if _is_record(value) and depth:
            inner = list(_open_record(value, path, asks, {}, depth - 1))
            if len(inner) != 1:
                return
            plain |= inner[0]
            ways[".".join(path)] = None
        elif _are_records(value) and depth and _leads_to_questions(value, asks, depth):
            lists.append((path, value))
        else:
            plain[path] = value
    if not lists:
        yield plain
        return
    if len(lists) > 1:
        return
    [(path, records)] = lists
    ways[f"{'.'.join(path)}[]"] = None
    for record in records:
        for inner_row in _open_record(record, path, asks, ways, depth - 1):
            yield {**plain, **inner_row}


def _leads_to_questions(records: Sequence[Row], asks: Callable[[str], bool], depth: int) -> bool:
    """Whether questions are found in records or deeper."""
    first = records[0]
    if any(asks(key) for key in first):
        return True
    lists = [value if isinstance(value, list) else [value] for value in first.values()]
    return depth > 0 and any(_are_records(values) and _leads_to_questions(values, asks, depth - 1) for values in lists)


def _is_record(value: object) -> bool:
    # A file is a cell; so are options by letter.
    if not isinstance(value, Mapping) or not value or {"bytes", "path"} >= value.keys():
        return False
    return not all(len(str(key)) == 1 for key in value)


def _are_records(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_record, value))


def join_by_key(left: Sequence[Row], right: Sequence[Row], asks: Callable[[str], bool]) -> tuple[list[Row], str] | None:
    """Two tables as one, questions first: by the only column whose values name the same rows in both.

    None where the questions are not in one of them alone, or no column or several could join them.
    """
    with_question = [any(asks(key) for key in rows[0]) for rows in (left, right) if rows]
    if with_question not in ([True, False], [False, True]):
        return None
    first, second = (left, right) if with_question[0] else (right, left)
    keys = [key for key in first[0] if key in second[0] and _same_rows(first, second, key)]
    if len(keys) != 1:
        return None
    [key] = keys
    beside = {row[key]: row for row in second}
    return [{**beside[row[key]], **row} for row in first], f"two files, joined by {key!r}"


def _same_rows(left: Sequence[Row], right: Sequence[Row], key: str) -> bool:
    values = [[row.get(key) for row in rows] for rows in (left, right)]
    if any(not isinstance(value, (str, int)) for column in values for value in column):
        return False
    return len(set(values[0])) == len(left) == len(right) and set(values[0]) == set(values[1])


def with_coco_images(lists: Sequence[list[dict[str, Any]]], asks: Callable[[str], bool]) -> list[dict[str, Any]] | None:
    """COCO's form: records with questions that name an image by `image_id`, with its record beside them.

    None where there are not one list of each, or an image is not there.
    """
    asking = [records for records in lists if any(map(asks, records[0]))]
    images = [records for records in lists if "id" in records[0] and {"file_name", "image", "path"} & records[0].keys()]
    if len(asking) != 1 or len(images) != 1 or asking[0] is images[0]:
        return None
    by_id = {image.get("id"): image for image in images[0]}
    if len(by_id) < len(images[0]) or any(row.get("image_id") not in by_id for row in asking[0]):
        return None
    return [{**{k: v for k, v in by_id[row["image_id"]].items() if k != "id"}, **row} for row in asking[0]]
