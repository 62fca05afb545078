"""A page for people who label: a key for each label, a picture beside the text, and labels as CSV in the end.

Made records and pictures are checked with it, and audits of the judge are labelled.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from hedge_tasks.io.files import write_whole

_LONGEST_SIDE = 1_536
"""Pixels: small findings are looked at closely."""


class ReviewKey(NamedTuple):
    """A label that people may give.

    Attributes:
        key: on the keyboard.
        value: in the CSV.
        meaning: on its button.
    """

    key: str
    value: str
    meaning: str


@dataclass(frozen=True)
class ReviewItem:
    """One record to look at.

    Attributes:
        id: That the label is stored under.
        texts: What is shown, by caption.
        claim: What the keys answer.
        images: PIL images.
        reference: A right answer, hidden until it is called for: who sees it first judges by it.
    """

    id: str
    texts: Mapping[str, str]
    claim: str
    images: Sequence[Any] = field(default=())
    reference: str = ""


def two_keys(supported: str = "supported", hallucinated: str = "hallucinated") -> tuple[ReviewKey, ReviewKey]:
    """Return the keys 1 and 0, which are what they stand for."""
    return ReviewKey("1", "1", hallucinated), ReviewKey("0", "0", supported)


def write_review(
    path: Path,
    title: str,
    items: Iterable[ReviewItem],
    keys: Sequence[ReviewKey] = two_keys(),
    *,
    labels: str = "labels.csv",
    code: str = "id",
) -> None:
    """Write the queue as one HTML file that loads nothing.

    The labels are kept in the browser, and saved as CSV with two columns, the code and `label`.

    Args:
        keys: the labels.
        labels: name of the CSV.
        code: name of its first column; the judge `labels` reads `id`.

    Raises:
        DataError: The file cannot be written.
    """
    import jinja2

    source = (resources.files("hedge_tasks.judging") / "templates" / "review.html").read_text("utf-8")
    template = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(source)
    records = [{**vars(item), "images": [_data_url(image) for image in item.images]} for item in items]
    # Browsers may keep the labels of all files in one place: these are of these records and of no others.
    identity = [title, *((item["id"], item["claim"], item["texts"], item["reference"]) for item in records)]
    store = hashlib.sha256(json.dumps(identity).encode()).hexdigest()
    write_whole(path, template.render(title=title, store=store, items=records, keys=keys, file=labels, code=code))


def _data_url(image: Any) -> str:
    picture = image.convert("RGB")
    picture.thumbnail((_LONGEST_SIDE, _LONGEST_SIDE))
    content = io.BytesIO()
    picture.save(content, format="JPEG", quality=88)
    return f"data:image/jpeg;base64,{base64.b64encode(content.getvalue()).decode()}"
