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
from itertools import combinations, compress, permutations

import numpy as np

from hedge_tasks.clustering.model_outputs import COSINES, ModelOutputs, PairTable, Source
from hedge_tasks.clustering.relations import Pair
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
        return bool(self.rows)

    def outputs(self, answer_sets: Sequence[AnswerSet], where: str = "evidence") -> ModelOutputs:
        """Return the evidence as backends look it up. That of other texts than these is passed over.

        Raises:
            DataError: it is damaged; names the document.
        """
        outputs = ModelOutputs(from_run=bool(self))
        for answers in answer_sets:
            kept = self.rows.get(answers.id)
            if kept is None or kept.texts != _checksum(answers):
                continue
            try:
                for source, packed in zip(self.sources, kept.said, strict=True):
                    if packed is not None:
                        _unpack(packed, outputs.table(_model(source)), _pairs(source, answers))
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
        answers.id: RecordedEvidence(texts=_checksum(answers), said=tuple(said[i] for i in used))
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
        for id, row in part.rows.items():
            by_source = dict(zip(part.sources, row.said, strict=True))
            rows[id] = RecordedEvidence(texts=row.texts, said=tuple(map(by_source.get, sources)))
    return KeptEvidence(sources, rows)


def _distinct(answers: AnswerSet) -> list[str]:
    """The texts that models see, as the run file has them."""
    return [text for text in dict.fromkeys(map(outside.clean, answers.texts)) if text.strip()]


def _checksum(answers: AnswerSet) -> str:
    return f"{zlib.crc32(chr(0).join(_distinct(answers)).encode()):08x}"


def _pairs(source: EvidenceSource, answers: AnswerSet) -> list[Pair]:
    """The pairs of texts as the model is given them, in their order in the file."""
    question = f"{answers.question} " if source.with_question else ""
    texts = [f"{question}{text}" for text in _distinct(answers)]
    return list(combinations(texts, 2) if source.kind == COSINES else permutations(texts, 2))


def _packed(outputs: ModelOutputs, source: EvidenceSource, answers: AnswerSet) -> str | None:
    values, known = outputs.table(_model(source)).read(_pairs(source, answers))
    if not known.any():
        return None
    return base64.b64encode(np.packbits(known).tobytes() + values[known].astype("<f4").tobytes()).decode()


def _unpack(packed: str, table: PairTable, pairs: Sequence[Pair]) -> None:
    """Add to a table what is packed of pairs.

    Raises:
        ValueError: it is of another number of pairs.
    """
    data, n_bits = base64.b64decode(packed, validate=True), -(-len(pairs) // 8)
    known = np.unpackbits(np.frombuffer(data[:n_bits], np.uint8), count=len(pairs)) > 0
    table.add(list(compress(pairs, known)), np.frombuffer(data[n_bits:], "<f4").reshape(int(known.sum()), table.width))
