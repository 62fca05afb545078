"""Texts from outside, made safe for prompts: they cannot begin or end a turn of the conversation."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from hedge_tasks.io.outside import clean

# Words by which chat templates begin and end turns, where they are not between angle brackets: [INST], [/TOOL_CALLS],
# [gMASK]. Any single word counts: an escaped bracket reads the same.
_TEMPLATE_WORD = re.compile(r"\[(?=/?\w+\])")

# And where they are: <|im_end|>, </think>, <start_of_turn>, <｜User｜>; not "<5 mm".
_TEMPLATE_MARK = re.compile(r"(<)(?=[/|\w\uff5c])(?!\d)")


def harmless(text: str) -> str:
    """Return the text with the marks of chat templates taken apart; any other text as it is."""
    return _TEMPLATE_WORD.sub("[ ", _TEMPLATE_MARK.sub(r"\1 ", clean(text)))


def escaped_json(fields: Mapping[str, Any]) -> str:
    """A JSON object in which no chat template finds a control token, and no text ends the string that it is in."""
    # A lone surrogate cannot be sent.
    sound = {key: clean(value) if isinstance(value, str) else value for key, value in fields.items()}
    text = clean(json.dumps(sound, ensure_ascii=False)).replace("<", "\\u003c").replace(">", "\\u003e")
    return _TEMPLATE_WORD.sub(r"\\u005b", text)
