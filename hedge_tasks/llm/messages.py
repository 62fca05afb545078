"""Conversations in lmms-eval's form, turned into OpenAI's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hedge_tasks.data.pictures import picture_of, png_url, to_rgb8
from hedge_tasks.errors import HedgeError

BETWEEN_TEXTS = "\n"
"""Between the texts of a turn that has no pictures; the adapters in this process put the same."""


def to_openai(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Messages as a chat API takes them.

    Args:
        messages: Turns with `role` and `content`, a text or parts of the types `text` and `image`; the `url` of an
            image is a picture, a path or an address.

    Raises:
        HedgeError: A part is neither text nor image.
        OSError, ValueError: A picture cannot be read.
    """
    return [{"role": turn["role"], "content": _content(turn["content"])} for turn in messages]


def _content(content: Any) -> Any:
    """Parts, or where all are text one text: text-only servers know no parts."""
    if isinstance(content, str):
        return content
    parts = [_part(part) for part in content]
    texts = [part["text"] for part in parts if part["type"] == "text"]
    return BETWEEN_TEXTS.join(texts) if len(texts) == len(parts) else parts


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    if part["type"] == "text":
        return {"type": "text", "text": part["text"]}
    if part["type"] != "image":
        raise HedgeError(f"a chat API is shown text and images; this task has {part['type']}")
    image = part["url"]
    is_address = isinstance(image, str) and image.startswith(("http://", "https://", "data:"))
    url = image if is_address else png_url(to_rgb8(picture_of(image)))
    return {"type": "image_url", "image_url": {"url": url}}
