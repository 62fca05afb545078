"""Tokens of chat templates that a model or a harness left around an answer: `yes<|im_end|>` is the answer `yes`.

Left there they make of one answer two, so that sampled answers disagree with a baseline that says the same.
"""

from __future__ import annotations

import re

_TOKEN = (
    r"(?:<\|[A-Za-z0-9_]{1,40}\|>"  # <|im_end|>, <|endoftext|>, <|eot_id|>
    r"|<\uff5c[^\uff5c<>\s]{1,40}\uff5c>"  # DeepSeek's, with wide bars
    r"|</?s>|<(?:eos|bos|pad|end_of_turn|start_of_turn|end_of_utterance)>"
    r"|\[/?INST\])"
)
_BEFORE = re.compile(rf"\s*(?:{_TOKEN}(?:(?:assistant|model)\b[ \t]*:?)?\s*)+")
"""Tokens at the begin, and who speaks behind one."""

_RUN = re.compile(rf"(?:{_TOKEN}\s*)+")


def without_template_tokens(text: str) -> str:
    """Return the text without tokens of chat templates before and behind it; those within it stay.

    Example:
        >>> without_template_tokens("<|im_start|>assistant\\nyes <|im_end|></s>")
        'yes'
        >>> without_template_tokens("a <b>bold</b> claim, p <s> 5")
        'a <b>bold</b> claim, p <s> 5'
    """
    start = match.end() if (match := _BEFORE.match(text)) else 0
    ends = [run.start() for run in _RUN.finditer(text, start) if run.end() == len(text)]
    return text[start : ends[0] if ends else None].strip() if match or ends else text
