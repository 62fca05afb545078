"""Chat messages that another task has written, with numbers in place of what they show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Conversation:
    """Turns in lmms-eval's form whose pictures are numbers: the same words are shown with clean or perturbed ones.

    Attributes:
        turns: each with `role` and `content`, a list of parts; a part that shows something has its number as `url`.
    """

    turns: tuple[Mapping[str, Any], ...]

    @classmethod
    def of(cls, messages: Sequence[Mapping[str, Any]]) -> tuple[Conversation, list[Any]]:
        """Take messages apart: the conversation, and what it shows in the order of the numbers."""
        media: list[Any] = []
        turns = []
        for message in messages:
            content = message["content"]
            parts = []
            for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
                if part["type"] != "text" and "url" in part:
                    parts.append({**part, "url": len(media)})
                    media.append(part["url"])
                else:
                    parts.append(dict(part))
            turns.append({**message, "content": parts})
        return cls(tuple(turns)), media

    def messages(self, media: Sequence[Any], question: str, wording: str) -> list[dict[str, Any]]:
        """The messages with these pictures, and with this wording.

        Args:
            media: pictures and the like, in the order of their numbers.
            question: the clean text.
            wording: the text of this draw. What it has before and after the clean one goes before and after the user's
                texts; where it does not hold the clean text as a whole, it takes the place of the user's texts.
        """
        turns = [{**turn, "content": [_fill(part, media) for part in turn["content"]]} for turn in self.turns]
        if wording == question:
            return turns
        texts = [p for turn in turns if turn["role"] == "user" for p in turn["content"] if p["type"] == "text"]
        if not texts:
            return turns
        before, clean_text, after = wording.partition(question) if question else ("", "", "")
        if clean_text:
            texts[0]["text"] = before + texts[0]["text"]
            texts[-1]["text"] += after
            return turns
        texts[0]["text"] = wording
        dropped = {id(part) for part in texts[1:]}
        return [{**turn, "content": [p for p in turn["content"] if id(p) not in dropped]} for turn in turns]

    def reworded(self, question: str, wording: str) -> Conversation:
        """The conversation in other words, with the same numbers; arguments as for `messages`."""
        numbers = range(sum(len(turn["content"]) for turn in self.turns))
        return Conversation(tuple(self.messages(numbers, question, wording)))


def _fill(part: Mapping[str, Any], media: Sequence[Any]) -> dict[str, Any]:
    is_number = part["type"] != "text" and isinstance(part.get("url"), int)
    return {**part, "url": media[part["url"]]} if is_number else dict(part)
