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
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

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
            kept, texts = self.rows.get(answers.id), _distinct(answers)
            if kept is None or kept.texts != _checksum(texts):
                continue
            try:
                for source, text in zip(self.sources, kept.said, strict=True):
                    if text is not None:
                        table, values = outputs.table(_model(source)), _unpacked(text, len(texts), source.kind)
                        table.add_matrix(_model_texts(texts, answers, source.with_question), *values)
            except (ValueError, IndexError) as error:
                raise DataError(f"{where}: {answers.id}: evidence: not outputs for its answers ({error})") from None
        return outputs


def _model(source: EvidenceSource) -> Source:
    return Source(source.kind, source.model, source.revision, source.dtype)


def pack_outputs(outputs: ModelOutputs, answer_sets: Sequence[AnswerSet]) -> KeptEvidence:
    """Return the outputs for these answers, with the question in front of them and without."""
    forms = [EvidenceSource(**s._asdict(), with_question=form) for s in outputs for form in (False, True)]
    packed = {answers.id: [_packed(outputs, form, answers) for form in forms] for answers in answer_sets}
    used = [i for i in range(len(forms)) if any(said[i] is not None for said in packed.values())]
    rows = {
        answers.id: RecordedEvidence(texts=_checksum(_distinct(answers)), said=tuple(said[i] for i in used))
        for answers, said in zip(answer_sets, packed.values(), strict=True)
        if any(part is not None for part in said)
    }
    return KeptEvidence(tuple(forms[i] for i in used), rows)


def incomplete_sources(
    outputs: ModelOutputs, sources: Sequence[Source], answer_sets: Sequence[AnswerSet]
) -> dict[str, Source]:
    """Return by kind the models that still have to be asked about some pairs of answers."""
    matrices = {
        source: [outputs.table(source).matrix(_distinct(answers))[1] for answers in answer_sets] for source in sources
    }
    # A text is not paired with itself.
    return {s.kind: s for s, known in matrices.items() if any((~k).sum() > len(k) for k in known)}


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


def _packed(outputs: ModelOutputs, source: EvidenceSource, answers: AnswerSet) -> str | None:
    texts = _distinct(answers)
    values, known = outputs.table(_model(source)).matrix(_model_texts(texts, answers, source.with_question))
    first, second = _places(len(texts), source.kind)
    is_known = known[first, second]
    if not is_known.any():
        return None
    numbers = values[first[is_known], second[is_known]].astype("<f4")
    return base64.b64encode(np.packbits(is_known).tobytes() + numbers.tobytes()).decode()


def _unpacked(text: str, u: int, kind: str) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
    """Numbers of all pairs, shape `(u, u, width)`, and which of them are known.

    Raises:
        ValueError, IndexError: the text is of another number of pairs.
    """
    first, second = _places(u, kind)
    n_bits, width = -(-len(first) // 8), WIDTHS[kind]
    data = base64.b64decode(text, validate=True)
    is_known = np.unpackbits(np.frombuffer(data[:n_bits], np.uint8), count=len(first)) > 0
    values, mask = np.zeros((u, u, width), dtype=np.float32), np.zeros((u, u), dtype=np.bool_)
    numbers = np.frombuffer(data[n_bits:], "<f4").reshape(int(is_known.sum()), width)
    values[first[is_known], second[is_known]], mask[first, second] = numbers, is_known
    return values, mask
