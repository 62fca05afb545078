"""What a judge said, read from whatever it wrote around it.

A reply counts only where it says exactly one thing. One that says two different things, or none, is `Unreadable`: it is
asked for again, and at last recorded as not labelled. Nothing here ever falls back to a default.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hedge_tasks.adjudication.prompt import LONGEST_FIELD, JudgePrompt, Outcome, normalise

LONGEST_RAW = 2000
"""Characters of a reply that are kept with its verdict."""

_LONGEST_READ = 50_000
_LONGEST_REASON = 300
_MOST_OBJECTS = 200

_THOUGHT_BEGIN = re.compile(r"<(?:think|thinking|reasoning)>", re.IGNORECASE)
_THOUGHT_END = re.compile(r"</(?:think|thinking|reasoning)>", re.IGNORECASE)
_FENCE = "```"

# What takes back the outcome that it follows: `supported: false`, `supported = 0`, `"supported"? No`, and further on in
# the same clause "supported by nothing". A clause ends where an explanation begins: "hallucinated because nothing ...".
_NEGATIVE = r"(?:false|no|not|none|nothing|never|neither|nor|nowhere|nobody|without|hardly|barely|n/a)"
_DENIED = re.compile(
    rf"""
    [\s"'`*_)\]]* (?: [:=] | \? | -+> ) [\s"'`*_(\[]* (?: (?:false|no|not|none|never|n/a|wrong|incorrect)\b | [01]\b )
    | (?: (?!\b(?:because|since|as|for|but|while|although)\b) [^\n.,;:(/\u2013\u2014-] )*?
      \b (?: {_NEGATIVE}\b | \w+n't\b )
    """,
    re.IGNORECASE | re.VERBOSE,
)


class Unreadable(ValueError):
    """A reply from which no single outcome can be read; the message says why."""


@dataclass(frozen=True)
class Said:
    """The outcome that a judge named, and its reason on one line."""

    outcome: Outcome
    reason: str


def read_reply(text: str, prompt: JudgePrompt, judged: str = "") -> Said:
    """Read a reply.

    Args:
        text: all that the judge wrote.
        judged: the answer that it judged. A verdict that stands in there is no verdict of the judge's where it quotes
            it in running text.

    Raises:
        Unreadable: there is no outcome in it, or more than one.
    """
    # Before thoughts are looked for, or an answer that makes a judge quote their mark could cut a verdict off.
    text = text[:_LONGEST_READ].strip()
    whole = _whole_object(text)
    if whole is None:
        text = _without_thoughts(text)
        whole = _whole_object(text)
    if not text:
        raise Unreadable("the reply is empty")
    if whole is not None:
        return _one([whole], prompt)
    judged = normalise(judged[:LONGEST_FIELD])
    objects, rest = _objects_in(text)
    own = [o for source, o in objects if prompt.answer_field in o and not _quoted(source, judged)]
    if own:
        said = _one(own, prompt)
        if any(o is not said.outcome for o in _spoken(rest, prompt, judged)):
            raise Unreadable("the reply contradicts itself: its text says something else than its JSON")
        return said
    if objects and not rest.strip():
        raise Unreadable(f"no field {prompt.answer_field!r} in the reply's JSON")
    spoken = list(dict.fromkeys(_spoken(text, prompt, judged, alone=True)))
    if len(spoken) == 1:
        return Said(spoken[0], _line(text))
    raise Unreadable("the reply contradicts itself" if spoken else "no verdict in the reply")


def bounded(text: str) -> str:
    """A reply for the record: its beginning and end where it is long, and nothing that cannot be written."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    if len(text) <= LONGEST_RAW:
        return text
    tail = LONGEST_RAW // 4
    return f"{text[: LONGEST_RAW - tail - 5]} ... {text[-tail:]}"


def _without_thoughts(text: str) -> str:
    """What stands behind the last thought. Templates may put the opening mark into the prompt.

    A reply that was cut off while thinking has no closing mark, and nothing behind it.
    """
    ends = [found.end() for found in _THOUGHT_END.finditer(text)]
    text = text[ends[-1] :] if ends else text
    begin = _THOUGHT_BEGIN.search(text)
    return (text[: begin.start()] if begin else text).strip()


class _Twice(dict[str, Any]):
    """A JSON object that names the same key with different values."""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    same = all(found[key] == value and type(found[key]) is type(value) for key, value in pairs)
    return found if same else _Twice(found)


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, strict=False)


def _whole_object(text: str) -> dict[str, Any] | None:
    """The object that the reply consists of, be it fenced, in a list of one, or a string of JSON."""
    if text.startswith(_FENCE) and text.endswith(_FENCE) and len(text) > 2 * len(_FENCE):
        text = text[len(_FENCE) : -len(_FENCE)].removeprefix("json")
    value: Any = text.strip()
    for _ in range(3):
        if isinstance(value, str):
            try:
                value = _DECODER.decode(value)
            except (ValueError, RecursionError):
                return None
        elif isinstance(value, list) and len(value) == 1:
            [value] = value
        else:
            break
    return value if isinstance(value, dict) else None


def _objects_in(text: str) -> tuple[list[tuple[str, dict[str, Any]]], str]:
    """The JSON objects in running text with their source, and the text between them."""
    objects, between, at, tried = [], [], 0, 0
    while (start := text.find("{", at)) >= 0 and tried < _MOST_OBJECTS:
        tried += 1
        try:
            value, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            between.append(text[at : start + 1])
            at = start + 1
            continue
        between.append(text[at:start])
        objects.append((text[start:end], value))
        at = end
    return objects, " ".join([*between, text[at:]])


def _one(objects: list[dict[str, Any]], prompt: JudgePrompt) -> Said:
    """The outcome that all the objects name."""
    said: dict[Outcome, str] = {}
    for found in objects:
        if prompt.answer_field not in found:
            raise Unreadable(f"no field {prompt.answer_field!r} in the reply's JSON")
        if isinstance(found, _Twice):
            raise Unreadable("the reply contradicts itself: a field is given twice")
        outcome = prompt.outcome(found[prompt.answer_field])
        if outcome is None:
            shown = json.dumps(found[prompt.answer_field], ensure_ascii=False)[:80]
            raise Unreadable(f"{prompt.answer_field} is {shown}, which is none of the outcomes")
        reason = found.get("reason")
        said.setdefault(outcome, reason if isinstance(reason, str) else "")
    if len(said) > 1:
        raise Unreadable(f"the reply contradicts itself: {' and '.join(o.key for o in said)}")
    [(outcome, reason)] = said.items()
    return Said(outcome, _line(reason))


def _spoken(text: str, prompt: JudgePrompt, judged: str, *, alone: bool = False) -> Iterator[Outcome]:
    """Outcomes named in running text: after the field's name, and with `alone` at the front of a line.

    A bare outcome word somewhere in a sentence is no verdict: "nothing that is hallucinated".

    Raises:
        Unreadable: an outcome is named and denied at once: "supported: false", "supported by nothing".
    """
    spellings = prompt.spelled()
    words = "|".join(r"[\W_]+".join(map(re.escape, s.split())) for s in sorted(spellings, key=len, reverse=True))
    # Neither half of a number nor one of several choices.
    end = rf"(?![.,]\d)(?!\s*(?:or|and|[/|,])\s*(?:{words})\b)"
    field = rf"\b(?:{re.escape(prompt.answer_field)}|verdict)\b(?:\s+is)?[\W_]{{1,10}}({words})\b{end}"
    patterns = [field]
    if alone:
        # `A. 3`, `Supported.`, `With Hallucination, because`, `**hallucinated**`
        patterns.append(rf"(?m)^\W{{0,6}}(?:A\W{{1,3}})?({words})\b{end}\s*\W{{0,4}}(?:$|[,.;:\n])")
    for pattern in patterns:
        for found in re.finditer(pattern, text, re.IGNORECASE):
            if _quoted(found[0], judged):
                continue
            if _DENIED.match(text, found.end(1)):
                raise Unreadable(f"the reply names {found[1]!r} and denies it")
            yield spellings[normalise(found[1])]


def _quoted(source: str, judged: str) -> bool:
    """Whether a piece of the reply stands in the answer that was judged, which comes normalised."""
    piece = normalise(source)
    # A judged answer "supported" must not take the word away from the judge.
    return " " in piece and piece in judged


def _line(text: str) -> str:
    line = " ".join(text.encode("utf-8", "replace").decode("utf-8").split())
    return line if len(line) <= _LONGEST_REASON else line[: _LONGEST_REASON - 1] + "…"
