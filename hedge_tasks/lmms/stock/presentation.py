"""Presentation of a document by a stock task: its text, and pictures or other media, as lmms-eval hands them on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from PIL import Image

from hedge_tasks.data.picture_files import PICTURE_FILES
from hedge_tasks.data.pictures import picture_of, to_rgb8
from hedge_tasks.sampling.conversations import Conversation

Kind = Literal["other", "pictures", "text"]
"""Kind of a document: it shows media such as video and sound, nothing but pictures, or nothing but its text."""

KINDS: tuple[Kind, ...] = get_args(Kind)
"""The kind of several documents is the first of these that there is among them."""


@dataclass(frozen=True)
class PresentedDocument:
    """One document as the model sees it.

    Attributes:
        conversation: for a chat model, whose messages have numbers in place of pictures; None for a simple one.
        media: pictures (PIL), or whatever else the task shows, in the order in which the model gets them.
    """

    conversation: Conversation | None
    media: tuple[Any, ...]

    @property
    def kind(self) -> Kind:
        if not self.media:
            return "text"
        return "pictures" if all(isinstance(item, Image.Image) for item in self.media) else "other"

    def media_key(self) -> str:
        """Return what tells these pictures from others; empty where there are none."""
        return _digest(self.media)[:16] if self.media else ""

    def key(self, text: str) -> str:
        """Return what tells this document, asked with this text, from others."""
        turns = None if self.conversation is None else self.conversation.turns
        return _digest([turns, text, self.media_key()])[:32]


def present(stock: Any, document: Mapping[str, Any], *, chat: bool) -> PresentedDocument:
    """Present a document to one kind of model.

    Only what that kind gets is called: some tasks' functions for one kind change what those for the other give later.

    Args:
        stock: lmms-eval's task.
        document: of it.
        chat: whether the model takes messages.
    """
    if chat:
        conversation, media = Conversation.of(stock.doc_to_messages(document))
        return PresentedDocument(conversation, tuple(map(_opened, media)))
    return PresentedDocument(None, tuple(map(_opened, stock.doc_to_visual(document) or ())))


def _opened(media: Any) -> Any:
    if isinstance(media, str) and media.lower().endswith(PICTURE_FILES) and Path(media).is_file():
        return picture_of(media)
    return media


def _digest(value: Any) -> str:
    """Return what is the same for equal content."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, default=_content)
    return hashlib.sha256(text.encode()).hexdigest()


def _content(value: Any) -> Any:
    """Return the content of what is not JSON; what has none to be seen counts by its type."""
    if isinstance(value, Image.Image):
        value = np.asarray(to_rgb8(value))
    if isinstance(value, np.ndarray):
        return [str(value.dtype), value.shape, _content(np.ascontiguousarray(value).tobytes())]
    if isinstance(value, (bytes, bytearray)):
        return hashlib.sha256(value).hexdigest()
    return value.tolist() if isinstance(value, np.generic) else f"<{type(value).__qualname__}>"
