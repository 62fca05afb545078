"""Lines of a run file, checked as they are read, so that no other module has to."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, WrapValidator

from hedge_tasks.io.records import Count, Items, Objects, OpenRecord, Record, Share
from hedge_tasks.runs.support import Supported, SupportSource
from hedge_tasks.sampling.probe import ProbeReport

# A data set's numbers may be NaN: pandas writes that where there is none.
Single = bool | int | Annotated[float, Field(allow_inf_nan=True)] | str


_AsWritten = WrapValidator(lambda value, check: check(value) and value)
"""Of what is checked, and read as the file has it: a record of it would have the declared keys alone."""


class _Filter(OpenRecord):
    backend: str | None = None
    model: str | None = None
    revision: str | None = None
    with_question: bool = False
    question_position: Literal["before", "after"] = "before"
    alpha: float = 1.0


class _Documents(OpenRecord):
    id: str | None = None
    question: str | None = None
    revision: str | None = None
    images: Items[str] | None = None
    grouping: Objects[int] | None = None
    judge: Objects[Any] | None = None


class _Sent(OpenRecord):
    refused: Items[str] | None = None


class _Decoding(OpenRecord):
    asked: str | None = None
    temperature: float | None = None
    baseline_temperature: float | None = None
    method: Objects[Any] | None = None
    sent: _Sent | None = None


class _Server(OpenRecord):
    other_models: Items[str] | None = None


class _Sampled(OpenRecord):
    decoding: _Decoding | None = None
    probe: ProbeReport | None = None
    server: _Server | None = None
    image_use: Objects[int] | None = None


class _Outcome(OpenRecord):
    zero_entropy: Objects[Share | None] | None = None


class RunSettings(OpenRecord):
    """The settings of a run, as far as other modules rely on their form; a task and a judge add what they like."""

    filters: Objects[_Filter] = Field(default_factory=dict)
    documents: _Documents | None = None
    claims: Objects[Objects[Any]] | None = None
    metrics: Items[str] | None = None
    sampling: _Decoding | None = None
    prompt: Objects[Any] | None = None
    sampled: _Sampled | None = None
    failed: Items[Any] | None = None
    outcome: _Outcome | None = None
    metadata: Objects[Any] | None = None


class RecordedVerdict(OpenRecord):
    """The verdict on a baseline answer. Judges add what they like."""

    judge: str | None = None
    reason: str | None = None
    category: str | None = None
    description: str | None = None
    image_key: str | None = None
    document: Objects[Any] | None = None
    objects: Items[Any] | None = None


class EvidenceSource(Record):
    """A model whose outputs for the answers are kept, and the form of the texts that it was given.

    Attributes:
        kind, model, revision, dtype: see `hedge_tasks.clustering.model_outputs.Source`.
        with_question: whether each answer has the question in front of it.
    """

    kind: Literal["cosines", "relations"]
    model: str
    revision: str | None = None
    dtype: str | None = None
    with_question: bool


class RecordedEvidence(Record):
    """Outputs of models for one document's answers; see `hedge_tasks.runs.evidence`.

    Attributes:
        texts: checksum of the answers.
        said: by each model in the header, packed; None where it has said nothing.
    """

    texts: str
    said: Items[str | None]


class RunHeader(OpenRecord):
    """The first line of a run file."""

    hedge_run: Literal[2]
    task: str
    model: str
    created: str
    settings: Annotated[RunSettings, _AsWritten]
    documents: Count | None = None
    evidence: Items[EvidenceSource] = ()
    support: SupportSource | None = None


class RunRow(OpenRecord):
    """Content of a document's line besides its answers."""

    verdict: Annotated[RecordedVerdict | None, _AsWritten] = None
    columns: Objects[Single | Items[Single | None] | None] | None = None
    evidence: RecordedEvidence | None = None
    support: Supported | None = None
