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
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hedge_tasks.clustering.model_outputs import COSINES, WIDTHS, ModelOutputs, Source
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.errors import DataError
from hedge_tasks.io import outside
from hedge_tasks.runs.run_records import EvidenceSource, RecordedEvidence


@dataclass(frozen=True)
class KeptEvidence:
    """The evidence of a run as its file has it, checked when it is looked at.

    Attributes:
        sources: the models.
        rows: by id of the document.
    """

    sources: tuple[EvidenceSource, ...] = ()
    rows: Mapping[str, RecordedEvidence] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.sources and self.rows)

    def outputs(self, answer_sets: Sequence[AnswerSet], where: str = "evidence") -> ModelOutputs:
        """Return the evidence as backends look it up. That of other texts than these is passed over.

        Raises:
            DataError: it is damaged; names the document.
        """
        outputs = ModelOutputs(from_run=bool(self))
        for answers in answer_sets:
            kept = self.rows.get(answers.id)
            texts = _distinct(answers)
            if kept is None or kept.texts != _checksum(texts):
                continue
            if len(kept.said) != len(self.sources):
                n = len(self.sources)
                raise DataError(
                    f"{where}: {answers.id}: evidence.said: expected {n} texts or null, got {len(kept.said)}"
                )
            for source, text in zip(self.sources, kept.said, strict=True):
                if text is not None:
                    model_texts = _model_texts(texts, answers, source.with_question)
                    values, known = _unpacked(text, len(texts), source.kind, f"{where}: {answers.id}")
                    outputs.table(_model(source)).add_matrix(model_texts, values, known)
        return outputs


def _model(source: EvidenceSource) -> Source:
    return Source(source.kind, source.model, source.revision, source.dtype)


def pack_outputs(outputs: ModelOutputs, answer_sets: Sequence[AnswerSet]) -> KeptEvidence:
    """Return the outputs for these answers, with the question in front of them and without."""
    forms = [EvidenceSource(**s._asdict(), with_question=form) for s in outputs for form in (False, True)]
    packed = {answers.id: _packed_by(forms, outputs, answers) for answers in answer_sets}
    used = [i for i in range(len(forms)) if any(said[i] is not None for _, said in packed.values())]
    rows = {
        id: RecordedEvidence(texts=checksum, said=tuple(said[i] for i in used))
        for id, (checksum, said) in packed.items()
        if any(part is not None for part in said)
    }
    return KeptEvidence(tuple(forms[i] for i in used), rows)


def _packed_by(
    forms: Sequence[EvidenceSource], outputs: ModelOutputs, answers: AnswerSet
) -> tuple[str, list[str | None]]:
    texts = _distinct(answers)
    return _checksum(texts), [_packed(outputs, s, _model_texts(texts, answers, s.with_question)) for s in forms]


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
                form = EvidenceSource(**source._asdict(), with_question=with_question)
                yield DocumentOutputs(form, texts, values, known)


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
    rows: dict[str, RecordedEvidence] = {}
    for part in parts:
        for id, kept in part.rows.items():
            said = dict(zip(part.sources, kept.said, strict=True))
            rows[id] = RecordedEvidence(texts=kept.texts, said=tuple(said.get(source) for source in sources))
    return KeptEvidence(sources, rows)


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
    if len(texts) < 2:
        return None
    values, known = outputs.table(_model(source)).matrix(texts)
    first, second = _places(len(texts), source.kind)
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
    values = np.zeros((u, u, width), dtype=np.float32)
    mask = np.zeros((u, u), dtype=np.bool_)
    values[first[is_known], second[is_known]], mask[first, second] = numbers, is_known
    return values, mask
