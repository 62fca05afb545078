"""Rows that hold a conversation (LLaVA's `conversations`, chat `messages`) as rows with a question and an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hedge_tasks.errors import DataError

COLUMNS = ("conversations", "conversation", "messages", "turns", "dialog", "dialogue", "contents")
"""Names of columns that hold turns."""

_ASKING = ("human", "user")
_ANSWERING = ("gpt", "assistant", "model", "bot")
_MARK = "<image>"


def flatten_conversations(rows: Sequence[Mapping[str, Any]], name: str) -> tuple[list[Mapping[str, Any]], bool]:
    """The rows with columns `question`, `answer` and perhaps `image` in place of their conversation; else as they are.

    Args:
        name: of the table, for errors.

    Raises:
        DataError: a conversation has more than one question and one answer; names the row.
    """
    column = next((c for c in COLUMNS if rows and all(_is_conversation(row.get(c)) for row in rows)), None)
    if column is None or any({"question", "answer"} & row.keys() for row in rows):
        return list(rows), False
    flat: list[Mapping[str, Any]] = []
    for number, row in enumerate(rows, start=1):
        turns = [turn for turn in row[column] if _role(turn) != "system"]
        if [_kind(turn) for turn in turns] != ["asks", "answers"]:
            raise DataError(
                f"{name}: row {number}: the column {column!r} holds {len(turns)} turns, and only one question with one "
                "answer makes a document. Which turn is meant? Write a table with the columns question and answer"
            )
        question, pictures = _content(turns[0], f"{name}: row {number}")
        answer, _ = _content(turns[1], f"{name}: row {number}")
        others = {key: value for key, value in row.items() if key != column}
        images = {"image": pictures[0] if len(pictures) == 1 else pictures} if pictures else {}
        flat.append({**others, **images, "question": question, "answer": answer})
    return flat, True


def without_mark(text: str) -> str:
    """A question without the mark for the place of a single picture at its begin or end.

    Example:
        >>> without_mark("<image>\\nWhich color?"), without_mark("What is <image 1>?")
        ('Which color?', 'What is <image 1>?')
    """
    return text.strip().removeprefix(_MARK).removesuffix(_MARK).strip()


def _is_conversation(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(turn, Mapping) and _role(turn) for turn in value)


def _role(turn: Mapping[str, Any]) -> str:
    return str(turn.get("from") or turn.get("role") or "").lower()


def _kind(turn: Mapping[str, Any]) -> str:
    role = _role(turn)
    return "asks" if role in _ASKING else "answers" if role in _ANSWERING else role


def _content(turn: Mapping[str, Any], where: str) -> tuple[str, list[str]]:
    """The text of a turn, and the addresses of its pictures."""
    content = next((turn[key] for key in ("value", "content", "parts") if key in turn), None)
    if isinstance(content, str):
        return without_mark(content), []
    texts, pictures = [], []
    for part in content if isinstance(content, list) else ():
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind is None and (plain := _gemini(part)) is not None:
            kind, part = plain
        if kind == "text":
            texts.append(str(part.get("text", "")))
        elif kind in ("image_url", "image"):
            address = part.get("image_url", part.get("image", part.get("url")))
            pictures.append(str(address.get("url") if isinstance(address, Mapping) else address))
        else:
            raise DataError(f"{where}: a part of the conversation of type {kind!r} is not read")
    return without_mark("\n".join(texts)), pictures


def _gemini(part: object) -> tuple[str, Mapping[str, Any]] | None:
    """A part as Gemini writes it, `{"text"}` or `{"inlineData": {"mimeType", "data"}}`, with its type."""
    if not isinstance(part, Mapping):
        return None
    data = next((part[key] for key in ("inlineData", "inline_data") if isinstance(part.get(key), Mapping)), None)
    if data is not None:
        kind = data.get("mimeType", data.get("mime_type", "image/png"))
        return "image", {"image": f"data:{kind};base64,{data.get('data')}"}
    return ("text", part) if isinstance(part.get("text"), str) else None
