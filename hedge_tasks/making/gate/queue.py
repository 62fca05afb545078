"""A blinded queue for two people: a page for each, in an order of its own, with hidden controls."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from hedge_tasks.errors import DataError
from hedge_tasks.io.files import write_whole
from hedge_tasks.io.outside import read_json
from hedge_tasks.io.records import Count, Items, Record
from hedge_tasks.io.tables import as_csv
from hedge_tasks.judging.designed import PlannedItem
from hedge_tasks.judging.review import ReviewItem, ReviewKey, write_review

QUEUE = "queue.json"
RATERS = 2
LEAST_RIGHT = 0.8
"""Share of controls that a person has to get right to be heard."""


class ReviewQueue(Record):
    """The queue as it is kept, away from the people.

    Attributes:
        size: Rows of the set.
        items: In the order of their codes; a control has a label and no row.
    """

    hedge_review: Literal[1]
    size: Count
    items: Items[PlannedItem]


class QueueEntry(NamedTuple):
    """An item of the queue: what people are shown under one code.

    Attributes:
        id: Of the row; None of a control.
        label: Of a control; None of a row.
        texts: What is shown, by caption.
        images: PIL images.
    """

    id: str | None
    label: int | None
    texts: Mapping[str, str]
    images: Sequence[Any] = ()


def write_pages(
    folder: Path,
    title: str,
    entries: Sequence[QueueEntry],
    claim: str,
    keys: Sequence[ReviewKey],
    *,
    prefix: str,
    size: int,
    seed: int,
    columns: Sequence[str] = (),
) -> list[Path]:
    """Write the queue, and a page for each of two people.

    Args:
        claim: What the keys answer.
        prefix: Letter in front of the numbers that are the codes.
        size: Rows of the set.
        seed: Of the orders.
        columns: Names of the texts in a CSV beside each page; without them there is none.

    Returns:
        The files, the queue first.

    Raises:
        DataError: A file cannot be written.
    """
    width = len(str(len(entries)))
    raters = tuple(range(RATERS))
    planned, review_items = [], []
    for number, entry in enumerate(entries, start=1):
        code = f"{prefix}{number:0{width}d}"
        planned.append(PlannedItem(code=code, id=entry.id, label=entry.label, raters=raters))
        review_items.append(ReviewItem(code, entry.texts, claim, entry.images))
    files = [folder / QUEUE]
    queue = ReviewQueue(hedge_review=1, size=size, items=tuple(planned))
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(files[0], queue.model_dump_json(indent=1) + "\n")
    for rater in raters:
        items = list(review_items)
        random.Random(f"{seed}/{rater}").shuffle(items)
        page, labels = folder / f"page-{rater + 1}.html", f"labels-{rater + 1}.csv"
        write_review(page, f"{title}, {rater + 1}", items, keys, labels=labels, code="code")
        files.append(page)
        if columns:
            rows = ([item.id, *item.texts.values(), ""] for item in items)
            write_whole(folder / labels, as_csv([["code", *columns, "label"], *rows]))
            files.append(folder / labels)
    return files


def read_queue(folder: Path, hint: str) -> ReviewQueue:
    """Read the queue of a folder.

    Args:
        hint: How it is written, for the error.

    Raises:
        DataError: There is none, or it is damaged.
    """
    path = folder / QUEUE
    if not path.is_file():
        raise DataError(f"there is no queue {path}: {hint}")
    return ReviewQueue.read(read_json(path), str(path))
