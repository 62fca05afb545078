"""Whose left and right a text means: the patient's, or those of who looks at the picture."""

from __future__ import annotations

import re

from hedge_tasks.judging.rule.reading import Text
from hedge_tasks.judging.rule.vocabulary import POSITIONS

_PICTURE = r"(?:image|picture|photo|photograph|screen|frame|x-?ray|scan|film|radiograph|slice)"
_SIDE = r"(?:left|right)(?:[ -]hand)?(?:[ -]side(?:d)?|[ -](?:half|part|portion|edge|margin))?"
_OBSERVER = re.compile(
    rf"\b{_SIDE} of (?:the |this )?{_PICTURE}\b|\b{_PICTURE}[ -]{_SIDE}\b|\b(?:viewer|observer|reader)'?s?'? {_SIDE}\b"
    rf"|\b{_SIDE} (?:of|to) the (?:viewer|observer|reader)\b"
)
_ASKED = re.compile(rf"\b(?:side|half|part|corner|quadrant|where)\b.{{0,30}}\b(?:of|in|on) (?:the |this )?{_PICTURE}\b")
_ROWS, _COLUMNS = POSITIONS


def other_observer(question: str, reference: str, answer: str, reference_words: Text) -> bool:
    """Does one of reference and answer tell a side as seen in the picture, and the other does not say whose it is?

    In most views the patient's left is on the picture's right. A place with a row ("upper left") is the picture's.
    """
    words = set(reference_words.words)
    if _ASKED.search(question.casefold()) or _ROWS & words or not {"left", "right"} & words:
        return False
    return bool(_OBSERVER.search(reference.casefold())) != bool(_OBSERVER.search(answer.casefold()))
