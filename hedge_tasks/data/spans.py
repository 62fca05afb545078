"""Spans of a text that people, or rules, have labelled: which part of a long answer is hallucinated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hedge_tasks.errors import DataError, unknown
from hedge_tasks.io import outside

SILENT = "silent"
"""Label where the reference says nothing of what the span claims."""

SEVERITIES = ("minor", "major")

_KEYS = ("text", "start", "end", "label", "severity", "correction")


@dataclass(frozen=True, slots=True)
class LabelledSpan:
    """A part of a baseline answer, and what is known of it.

    Attributes:
        start, end: of its characters in the text of the baseline answer, `0 <= start < end`.
        label: 1 = hallucinated, 0 = supported, None = not labelled, or the reference is silent.
        silent: whether the reference says nothing of it.
        severity: "minor" or "major", of a hallucinated one; None where nobody says.
        correction: what should stand there.
    """

    start: int
    end: int
    label: int | None = None
    silent: bool = False
    severity: str | None = None
    correction: str | None = None

    def to_dict(self) -> dict[str, Any]:
        fields: dict[str, Any] = {"start": self.start, "end": self.end}
        if self.silent or self.label is not None:
            fields["label"] = SILENT if self.silent else self.label
        more = {"severity": self.severity, "correction": self.correction}
        return fields | {key: value for key, value in more.items() if value is not None}


def read_spans(value: object, text: str, where: str) -> tuple[LabelledSpan, ...]:
    """Check and build from parsed JSON: a list of `{"start", "end"}` or `{"text"}`, each with `"label"?: 0 | 1 |
    "silent" | null`, `"severity"?: "minor" | "major"` and `"correction"?`.

    A span that is given by its text is looked for in the answer behind the one before it, or from the beginning where
    it does not stand there.

    Args:
        text: of the baseline answer.
        where: put in front of every error.

    Raises:
        DataError: names the place and what is wrong, such as a text that does not stand in the answer.
    """
    if value is None:
        return ()
    if not isinstance(value, list):
        raise DataError(f"{where}: expected a list of spans, got {outside.shown(value)}")
    found: list[LabelledSpan] = []
    for i, fields in enumerate(value):
        found.append(_span(fields, text, found[-1].end if found else 0, f"{where}[{i}]"))
    return tuple(found)


def joined_label(spans: Sequence[LabelledSpan]) -> LabelledSpan | None:
    """What several spans say together of what lies over them; None where there are none.

    Hallucinated where one of them is (of the worst severity); supported where all labelled ones are; silent where one
    is silent and none is hallucinated.
    """
    if not spans:
        return None
    start, end = min(span.start for span in spans), max(span.end for span in spans)
    wrong = [span for span in spans if span.label == 1]
    if wrong:
        named = [span.severity for span in wrong if span.severity is not None]
        severity = max(named, key=SEVERITIES.index) if named else None
        correction = next((span.correction for span in wrong if span.correction is not None), None)
        return LabelledSpan(start, end, 1, False, severity, correction)
    if any(span.silent for span in spans):
        return LabelledSpan(start, end, None, True)
    return LabelledSpan(start, end, 0 if all(span.label == 0 for span in spans) else None)


def _span(fields: object, text: str, after: int, where: str) -> LabelledSpan:
    if not isinstance(fields, Mapping):
        raise DataError(f"{where}: expected an object, got {outside.shown(fields)}")
    for key in fields:
        if key not in _KEYS:
            raise DataError(f"{where}: {unknown('key', str(key)[:100], _KEYS)}")
    start, end = _place(fields, text, after, where)
    label, severity, correction = fields.get("label"), fields.get("severity"), fields.get("correction")
    if isinstance(label, bool) or label not in (0, 1, SILENT, None):
        expected = '0 (supported), 1 (hallucinated), "silent" or null'
        raise DataError(f"{where}.label: expected {expected}, got {outside.shown(label)}")
    if severity not in (None, *SEVERITIES):
        raise DataError(f"{where}.severity: expected minor or major, got {outside.shown(severity)}")
    if severity is not None and label != 1:
        raise DataError(f"{where}.severity: only what is hallucinated (label 1) has one")
    if correction is not None and not isinstance(correction, str):
        raise DataError(f"{where}.correction: expected a text, got {outside.shown(correction)}")
    known = int(label) if isinstance(label, (int, float)) else None
    return LabelledSpan(start, end, known, label == SILENT, severity, correction)


def _place(fields: Mapping[str, Any], text: str, after: int, where: str) -> tuple[int, int]:
    quoted = fields.get("text")
    if quoted is not None and (not isinstance(quoted, str) or not quoted.strip()):
        raise DataError(f"{where}.text: expected a text, got {outside.shown(quoted)}")
    if "start" not in fields and "end" not in fields:
        if quoted is None:
            raise DataError(f"{where}: expected a text, or start and end")
        start = found if (found := text.find(quoted, after)) >= 0 else text.find(quoted)
        if start < 0:
            raise DataError(f"{where}.text: {outside.shown(quoted)} does not stand in the baseline answer")
        return start, start + len(quoted)
    first, last = fields.get("start"), fields.get("end")
    if isinstance(first, bool) or isinstance(last, bool) or not isinstance(first, int) or not isinstance(last, int):
        raise DataError(f"{where}: start and end must be whole numbers")
    start, end = first, last
    if not 0 <= start < end <= len(text):
        raise DataError(f"{where}: {start} to {end} is no span of an answer of {len(text)} characters")
    if quoted is not None and text[start:end] != quoted:
        raise DataError(f"{where}.text: {start} to {end} of the baseline answer is {outside.shown(text[start:end])}")
    return start, end
