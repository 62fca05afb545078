"""Outputs of models for a run's answers, kept with the run, so that scoring it again needs no model.

In the header of a run file `evidence` lists the models: `{"kind": "cosines" | "relations", "model", "revision",
"dtype", "with_question"}`. In each document's line it is `{"texts": CHECKSUM, "said": [TEXT or null, ...]}`, an entry
for each of these: base64 of bits that say which pairs of the document's distinct answers are known (in their order of
first appearance; of cosines the pairs i < j, of relations all i != j, row by row), and of little-endian float32 numbers
of those: the cosine, or the probabilities of contradiction, neutral and entailment. The checksum is that of the
answers, so that evidence is never taken for that of other texts.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hedge_tasks.clustering.model_outputs import COSINES, WIDTHS, ModelOutputs, Source
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.errors import DataError
from hedge_tasks.io import outside
from hedge_tasks.runs.run_settings import RunHeader, RunRow

FIELD = "evidence"
"""Of a run file's header and lines."""

_ROUNDING = 1e-3
"""By how much a cosine or a sum of probabilities may be off: half precision is rough."""


@dataclass(frozen=True)
class EvidenceSource:
    """A model, and the form of the texts that it was given.

    Attributes:
        source: the model.
        with_question: whether each answer has the question in front of it.
    """

    source: Source
    with_question: bool


@dataclass(frozen=True)
class KeptEvidence:
    """The evidence of a run as its file has it, checked when it is looked at.

    Attributes:
        sources: the models.
        rows: id of the document -> checksum of its texts, and the packed output of each model, None where it has none.
    """

    sources: tuple[EvidenceSource, ...] = ()
    rows: Mapping[str, tuple[str, Sequence[str | None]]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.sources and self.rows)

    def header(self) -> list[dict[str, Any]]:
        """Return what stands in the header of the run file."""
        return [{**t.source._asdict(), "with_question": t.with_question} for t in self.sources]

    def line(self, id: str) -> dict[str, Any] | None:
        """Return what stands in the line of a document."""
        if id not in self.rows:
            return None
        checksum, packed = self.rows[id]
        return {"texts": checksum, "said": list(packed)}

    def outputs(self, answer_sets: Sequence[AnswerSet], where: str = "evidence") -> ModelOutputs:
        """Return the evidence as backends look it up. That of other texts than these is passed over.

        Raises:
            DataError: it is damaged; names the document.
        """
        outputs = ModelOutputs(from_run=bool(self))
        for answers in answer_sets:
            if answers.id not in self.rows:
                continue
            checksum, packed = self.rows[answers.id]
            texts = _distinct(answers)
            if checksum != _checksum(texts):
                continue
            for source, text in zip(self.sources, packed, strict=True):
                if text is not None:
                    model_texts = _model_texts(texts, answers, source.with_question)
                    values, known = _unpacked(text, len(texts), source.source.kind, f"{where}: {answers.id}")
                    outputs.table(source.source).add_matrix(model_texts, values, known)
        return outputs


def pack_outputs(outputs: ModelOutputs, answer_sets: Sequence[AnswerSet]) -> KeptEvidence:
    """Return the outputs for these answers, with the question in front of them and without."""
    sources = [EvidenceSource(source, form) for source in outputs for form in (False, True)]
    rows: dict[str, tuple[str, Sequence[str | None]]] = {}
    for answers in answer_sets:
        texts = _distinct(answers)
        packed = [_packed(outputs, source, _model_texts(texts, answers, source.with_question)) for source in sources]
        if any(part is not None for part in packed):
            rows[answers.id] = (_checksum(texts), packed)
    used_sources = [i for i in range(len(sources)) if any(row[i] is not None for _, row in rows.values())]
    used_rows = {id: (checksum, [row[i] for i in used_sources]) for id, (checksum, row) in rows.items()}
    return KeptEvidence(tuple(sources[i] for i in used_sources), used_rows)


class DocumentOutputs(NamedTuple):
    """Outputs of one model for the pairs of a document's different answers.

    Attributes:
        source: the model.
        texts: the answers, in their order of first appearance.
        values: cosines, shape `(u, u, 1)`, or probabilities of contradiction, neutral and entailment, `(u, u, 3)`.
        known: mask of the pairs with an output, shape `(u, u)`.
    """

    source: EvidenceSource
    texts: Sequence[str]
    values: npt.NDArray[np.float32]
    known: npt.NDArray[np.bool_]


def document_outputs(outputs: ModelOutputs, answers: AnswerSet) -> Iterator[DocumentOutputs]:
    """Yield the outputs of each model for the pairs of a document's answers, for people to look at."""
    texts = _distinct(answers)
    if len(texts) < 2:
        return
    for source in outputs:
        for with_question in (False, True) if answers.question is not None else (False,):
            values, known = outputs.table(source).matrix(_model_texts(texts, answers, with_question))
            if known.any():
                yield DocumentOutputs(EvidenceSource(source, with_question), texts, values, known)


def incomplete_sources(
    outputs: ModelOutputs, sources: Sequence[Source], answer_sets: Sequence[AnswerSet]
) -> dict[str, Source]:
    """Return by kind the models that still have to be asked about some pairs of answers."""
    return {
        source.kind: source
        for source in sources
        if not all(_all_pairs(outputs, source, _distinct(answers)) for answers in answer_sets)
    }


def _all_pairs(outputs: ModelOutputs, source: Source, texts: Sequence[str]) -> bool:
    _, known = outputs.table(source).matrix(texts)
    return bool((known | np.eye(len(texts), dtype=np.bool_)).all())


def join_evidence(parts: Sequence[KeptEvidence]) -> KeptEvidence:
    """Return the evidence of several processes, each with documents of its own, as one."""
    sources = tuple(dict.fromkeys(source for part in parts for source in part.sources))
    rows: dict[str, tuple[str, Sequence[str | None]]] = {}
    for part in parts:
        place = {source: i for i, source in enumerate(part.sources)}
        for id, (checksum, packed) in part.rows.items():
            rows[id] = (checksum, [packed[place[t]] if t in place else None for t in sources])
    return KeptEvidence(sources, rows)


def read_evidence(header: RunHeader, rows: Mapping[str, RunRow], at: str) -> KeptEvidence:
    """The evidence of a run file.

    Args:
        header: of the file.
        rows: of its documents, by id.
        at: place of the header.

    Raises:
        DataError: a document has more or less than the header names.
    """
    sources = tuple(
        EvidenceSource(Source(t.kind, t.model, t.revision, t.dtype), t.with_question) for t in header.evidence
    )
    packed_by_id = {id: (row.evidence.texts, row.evidence.said) for id, row in rows.items() if row.evidence is not None}
    for id, (_, packed) in packed_by_id.items():
        if len(packed) != len(sources):
            raise DataError(
                f"{at}: document {id}: {FIELD}.said: expected {len(sources)} texts or null, got {len(packed)}"
            )
    return KeptEvidence(sources, packed_by_id) if sources else KeptEvidence()


def _distinct(answers: AnswerSet) -> list[str]:
    """The texts that models see, as the run file has them."""
    return [text for text in dict.fromkeys(map(outside.clean, answers.texts)) if text.strip()]


def _model_texts(texts: Sequence[str], answers: AnswerSet, with_question: bool) -> list[str]:
    """The texts as the model is given them: with the question in front where `with_question` says so."""
    return [f"{answers.question} {text}" for text in texts] if with_question else list(texts)


def _checksum(texts: Sequence[str]) -> str:
    return f"{zlib.crc32(chr(0).join(texts).encode()):08x}"


def _places(u: int, kind: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Rows and columns of the pairs in their order in the file."""
    first, second = np.triu_indices(u, 1) if kind == COSINES else np.nonzero(~np.eye(u, dtype=np.bool_))
    return first, second


def _packed(outputs: ModelOutputs, source: EvidenceSource, texts: Sequence[str]) -> str | None:
    kind = source.source.kind
    if len(texts) < 2:
        return None
    values, known = outputs.table(source.source).matrix(texts)
    first, second = _places(len(texts), kind)
    is_known = known[first, second]
    if not is_known.any():
        return None
    numbers = values[first[is_known], second[is_known]].astype("<f4")
    return base64.b64encode(np.packbits(is_known).tobytes() + numbers.tobytes()).decode()


def _unpacked(text: str, u: int, kind: str, where: str) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
    """Numbers of all pairs, shape `(u, u, width)`, and which of them are known."""
    first, second = _places(u, kind)
    n_bits, width = -(-len(first) // 8), WIDTHS[kind]
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise DataError(f"{where}: the kept {kind} are no base64") from None
    is_known = np.unpackbits(np.frombuffer(data[:n_bits], np.uint8), count=min(len(first), 8 * len(data[:n_bits]))) > 0
    if len(is_known) != len(first) or len(data) != n_bits + 4 * width * int(is_known.sum()):
        raise DataError(f"{where}: the kept {kind} are not those of {u} different answers")
    numbers = np.frombuffer(data[n_bits:], "<f4").reshape(-1, width)
    if not _plausible(numbers, kind):
        raise DataError(f"{where}: the kept {kind} have numbers that no model says")
    values = np.zeros((u, u, width), dtype=np.float32)
    mask = np.zeros((u, u), dtype=np.bool_)
    values[first[is_known], second[is_known]], mask[first, second] = numbers, is_known
    return values, mask


def _plausible(numbers: npt.NDArray[np.float32], kind: str) -> bool:
    if kind == COSINES:
        return bool((np.abs(numbers) <= 1 + _ROUNDING).all())  # NaN is not
    sums = numbers.sum(axis=1)
    return bool((numbers >= 0).all() and (np.abs(sums - 1) <= _ROUNDING).all())
