"""Tokens of chat templates that a model or a harness left around an answer: `yes<|im_end|>` is the answer `yes`.

Left there they make of one answer two, so that sampled answers disagree with a baseline that says the same.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"<\|[A-Za-z0-9_]{1,40}\|>"  # <|im_end|>, <|endoftext|>, <|eot_id|>
    r"|<\uff5c[^\uff5c<>\s]{1,40}\uff5c>"  # DeepSeek's, with wide bars
    r"|</?s>|<(?:eos|bos|pad|end_of_turn|start_of_turn|end_of_utterance)>"
    r"|\[/?INST\]"
)
_ROLE = re.compile(r"(?:assistant|model)\b[ \t]*:?")
"""Who speaks, behind the token that begins a turn."""


def without_template_tokens(text: str) -> str:
    """Return the text without tokens of chat templates before and behind it; those within it stay.

    Example:
        >>> without_template_tokens("<|im_start|>assistant\\nyes <|im_end|></s>")
        'yes'
        >>> without_template_tokens("a <b>bold</b> claim, p <s> 5")
        'a <b>bold</b> claim, p <s> 5'
    """
    tokens = list(_TOKEN.finditer(text))
    if not tokens:
        return text
    start, end = 0, len(text)
    for token in tokens:
        if text[start : token.start()].strip():
            break
        start = token.end()
        if role := _ROLE.match(text, start):
            start = role.end()
    for token in reversed(tokens):
        if token.start() < start or text[token.end() : end].strip():
            break
        end = token.start()
    cleaned = text[start:end].strip()
    return cleaned if (start, end) != (0, len(text)) else text
