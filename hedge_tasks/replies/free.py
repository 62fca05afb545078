"""Free answers: what is left of a reply once thoughts, control tokens and labels are gone."""

from __future__ import annotations

import re

from hedge_tasks.io.json_objects import whole_object
from hedge_tasks.replies.declining import declines
from hedge_tasks.replies.reading import CUT, JSON, REFUSAL, STATED, STATEMENT, Reading, unreadable
from hedge_tasks.replies.statements import is_answer_field
from hedge_tasks.replies.text import body, plain

_FINAL = re.compile(r"(?im)^\s*(?:(?:the )?final answer|answer)\s*(?:is\b|:)+\s*(.+)$")
_SENTENCE_END = re.compile(r"[.!?。！？](?=\s|\Z)")
_MARKED = re.compile(r"\\boxed|<(?:answer|final_answer|final|output)>", re.IGNORECASE)


def read_free(reply: str, *, cut: bool = False) -> Reading:
    """The answer in words, or why there is none: a refusal, an unfinished thought, nothing.

    An answer that is boxed, tagged, the only answer field of a JSON object or labelled ("Final answer: ...") is that;
    otherwise it is all that was written. One that was cut off counts where it has a whole sentence.

    Example:
        >>> read_free("<think>dark</think>**Answer:** the liver").value
        'the liver'
    """
    text = body(reply, cut=cut)
    if isinstance(text, Reading):
        return text
    fields = whole_object(text)
    if fields is not None:
        values = [value for key, value in fields.items() if is_answer_field(key) and isinstance(value, str)]
        if len(values) == 1:
            return Reading(values[0].strip(), JSON)
    final_answers = _FINAL.findall(plain(text))
    if final_answers and (_MARKED.search(text) or len(set(final_answers)) == 1):
        return Reading(final_answers[-1].strip(), STATED)
    if declines(text):
        return unreadable(REFUSAL)
    if cut and not _SENTENCE_END.search(text):
        return unreadable(CUT)
    return Reading(text, STATEMENT)


def spoken_text(reply: str) -> str:
    """The text of a free answer as it is judged and compared: what `read_free` reads.

    A refusal stays what it is, for whoever judges to call it something; an unfinished thought is nothing.

    Example:
        >>> spoken_text("<think>left?</think>On the right.</s>"), spoken_text("<think>left?"), spoken_text("No idea.")
        ('On the right.', '', 'No idea.')
    """
    read = read_free(reply)
    if read.value is not None:
        return read.value
    text = body(reply)
    return "" if isinstance(text, Reading) else text
