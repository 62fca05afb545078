"""Spans of a text that people, or rules, have labelled: which part of a long answer is hallucinated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from hedge_tasks.errors import DataError
from hedge_tasks.io.outside import shown
from hedge_tasks.io.records import Label, Record

SILENT = "silent"
"""Label where the reference says nothing of what the span claims."""

SEVERITIES = ("minor", "major")


@dataclass(frozen=True, slots=True)
class LabelledSpan:
    """A part of a baseline answer with its label.

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
        values = {**asdict(self), "label": SILENT if self.silent else self.label}
        return {key: value for key, value in values.items() if value is not None and key != "silent"}


def spans_as_json(spans: Sequence[LabelledSpan]) -> list[dict[str, Any]]:
    """Spans for JSON, as `read_spans` reads them."""
    return [span.to_dict() for span in spans]


class _Span(Record):
    """A span as files have it; see `read_spans`."""

    text: Annotated[str, Field(min_length=1)] | None = None
    start: int | None = None
    end: int | None = None
    label: Label | Literal["silent"] | None = None
    severity: Literal["minor", "major"] | None = None
    correction: str | None = None

    @model_validator(mode="after")
    def _has_a_place(self) -> Self:
        if self.severity is not None and self.label != 1:
            raise DataError("severity: only what is hallucinated (label 1) has one")
        if (self.start is None) != (self.end is None) or (self.text is None and self.start is None):
            raise DataError("expected a text, or start and end")
        return self

    def within(self, answer: str, after: int, where: str) -> LabelledSpan:
        """The span in a text; one that is quoted is looked for behind a place, or from the beginning."""
        start, end = self.start, self.end
        if start is None or end is None:
            quoted = str(self.text)
            start = at if (at := answer.find(quoted, after)) >= 0 else answer.find(quoted)
            end = start + len(quoted)
            if start < 0 or not quoted.strip():
                raise DataError(f"{where}.text: {shown(quoted)} does not stand in the baseline answer")
        if not 0 <= start < end <= len(answer):
            raise DataError(f"{where}: {start} to {end} is no span of an answer of {len(answer)} characters")
        if self.text not in (None, answer[start:end]):
            raise DataError(f"{where}.text: {start} to {end} of the baseline answer is {shown(answer[start:end])}")
        label = self.label if isinstance(self.label, int) else None
        return LabelledSpan(start, end, label, self.label == SILENT, self.severity, self.correction)


def read_spans(value: object, text: str, where: str = "") -> tuple[LabelledSpan, ...]:
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
    if not isinstance(value, (list, tuple, type(None))):
        raise DataError(f"{where}: expected a list of spans, got {shown(value)}".removeprefix(": "))
    spans: list[LabelledSpan] = []
    for i, fields in enumerate(value or ()):
        at = f"{where}[{i}]"
        spans.append(_Span.read(fields, at).within(text, spans[-1].end if spans else 0, at))
    return tuple(spans)


def joined_label(spans: Sequence[LabelledSpan]) -> LabelledSpan | None:
    """Return what several spans say together of what lies over them; None where there are none.

    Hallucinated where one of them is (of the worst severity); supported where all labelled ones are; silent where one
    is silent and none is hallucinated.
    """
    if not spans:
        return None
    start, end = min(span.start for span in spans), max(span.end for span in spans)
    if wrong := [span for span in spans if span.label == 1]:
        severity = max((span.severity for span in wrong if span.severity), key=SEVERITIES.index, default=None)
        correction = next((span.correction for span in wrong if span.correction is not None), None)
        return LabelledSpan(start, end, 1, False, severity, correction)
    silent = any(span.silent for span in spans)
    return LabelledSpan(start, end, 0 if all(span.label == 0 for span in spans) and not silent else None, silent)
