"""Presentation of a document by a stock task: its text, and pictures or other media, as lmms-eval hands them on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from PIL import Image

from hedge_tasks.data.pictures import PICTURE_FILES, picture_of, to_rgb8
from hedge_tasks.sampling.conversations import Conversation

Kind = Literal["pictures", "text", "other"]
"""Kind of a document: it shows pictures, nothing but its text, or other media such as video and sound."""


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


class Presentation:
    """How a stock task presents its documents to one kind of model.

    Only what that kind gets is called: some tasks' functions for one kind change what those for the other give later.

    Args:
        stock: lmms-eval's task.
        chat: whether the model takes messages.
    """

    def __init__(self, stock: Any, *, chat: bool) -> None:
        self._stock, self._chat = stock, chat

    def present(self, document: Mapping[str, Any]) -> PresentedDocument:
        if self._chat:
            conversation, media = Conversation.of(self._stock.doc_to_messages(document))
            return PresentedDocument(conversation, tuple(map(_opened, media)))
        return PresentedDocument(None, tuple(map(_opened, self._stock.doc_to_visual(document) or ())))

    def media(self, document: Mapping[str, Any]) -> list[Any]:
        """Return what `SampleRequest.load_images` is: everything that the document shows."""
        return list(self.present(document).media)

    def texts(self, document: Mapping[str, Any]) -> list[str]:
        """Return the texts that a document is asked with: of a chat model's messages one a part."""
        if not self._chat:
            text = self._stock.doc_to_text(document)
            return [text] if isinstance(text, str) else []
        conversation = self.present(document).conversation
        turns = conversation.turns if conversation is not None else ()
        return [part["text"] for turn in turns for part in turn["content"] if part["type"] == "text"]

    def kind(self, documents: Iterable[Mapping[str, Any]]) -> Kind:
        """Kind of the documents: "other" where one shows more than pictures, "text" where none shows anything."""
        kinds = {self.present(document).kind for document in documents}
        return "other" if "other" in kinds else "pictures" if "pictures" in kinds else "text"


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
