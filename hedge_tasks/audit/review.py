"""A page for people who check made records: two keys, a picture beside the text, and labels as CSV in the end."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from hedge_tasks.io.files import write_whole

_LONGEST_SIDE = 768


@dataclass(frozen=True)
class ReviewItem:
    """One record to look at.

    Attributes:
        id: That the label is stored under.
        texts: What is shown, by caption.
        claim: What the two keys answer.
        images: PIL images.
    """

    id: str
    texts: Mapping[str, str]
    claim: str
    images: Sequence[Any] = field(default=())


def write_review(
    path: Path, title: str, items: Iterable[ReviewItem], keys: tuple[str, str] = ("supported", "hallucinated")
) -> None:
    """Write the queue as one HTML file that loads nothing.

    The labels are kept in the browser, and saved as CSV with the columns `id,label`, which the judge `labels` reads.

    Args:
        keys: What label 0 and label 1 mean, on their buttons.

    Raises:
        DataError: The file cannot be written.
    """
    import jinja2

    source = (resources.files("hedge_tasks.audit") / "templates" / "review.html").read_text("utf-8")
    template = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(source)
    shown = [
        {"id": i.id, "claim": i.claim, "texts": dict(i.texts), "images": [_data_url(image) for image in i.images]}
        for i in items
    ]
    write_whole(path, template.render(title=title, items=shown, keys=keys))


def _data_url(image: Any) -> str:
    picture = image.convert("RGB")
    picture.thumbnail((_LONGEST_SIDE, _LONGEST_SIDE))
    content = io.BytesIO()
    picture.save(content, format="JPEG", quality=88)
    return f"data:image/jpeg;base64,{base64.b64encode(content.getvalue()).decode()}"
