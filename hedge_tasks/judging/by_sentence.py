"""The judge of reports: another judge is asked about each sentence of a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hedge_tasks.data.sentences import split_sentences
from hedge_tasks.judging.base import HALLUCINATED, SUPPORTED, Case, Judge, Verdict
from hedge_tasks.replies import Reading, read_free

SENTENCES = "sentences of "
"""How the name of a judge begins whose votes are the verdicts on the sentences of a report."""


class SentenceJudge:
    """A report is hallucinated where a sentence is, and supported where all sentences are; else it has no label.

    The verdict's `votes` are those of the sentences, in order; `raw` shows each with its category.

    Args:
        judge: asked about every sentence as the answer, with the report's question and reference.
    """

    def __init__(self, judge: Judge) -> None:
        self.judge_of_sentences = judge
        self.name = f"{SENTENCES}{judge.name}"
        self.version = judge.version

    def settings(self) -> dict[str, Any]:
        return {**self.judge_of_sentences.settings(), "unit": "sentence"}

    @property
    def parts(self) -> tuple[Judge]:
        return (self.judge_of_sentences,)

    def judge(self, cases: Sequence[Case]) -> list[Verdict]:
        """One verdict a report. All sentences of all reports are asked about at once.

        Nobody is asked about the sentences of a refusal: "Please see a doctor." would be a correct one.
        """
        read = [read_free(case.answer) for case in cases]
        split = [split_sentences(case.answer) if r.readable else [] for case, r in zip(cases, read, strict=True)]
        sentences = [
            replace(case, id=f"{case.id}#{number}", answer=sentence, cut=case.cut and number == len(parts) - 1)
            for case, parts in zip(cases, split, strict=True)
            for number, sentence in enumerate(parts)
        ]
        verdicts = iter(self.judge_of_sentences.judge(sentences))
        return [
            self._combined(parts, [next(verdicts) for _ in parts], reading)
            for parts, reading in zip(split, read, strict=True)
        ]

    def _combined(self, sentences: Sequence[str], votes: Sequence[Verdict], read: Reading) -> Verdict:
        labels = [vote.label for vote in votes]
        if not votes:
            why = "the report has no sentence" if read.readable else str(read)
            return Verdict(None, why, self.name, self.version, basis=None if read.readable else read.basis)
        label = SUPPORTED if set(labels) == {SUPPORTED} else HALLUCINATED if HALLUCINATED in labels else None
        bad, unjudged = labels.count(HALLUCINATED), labels.count(None)
        counted = f"{len(votes)} sentences, {bad} hallucinated, {unjudged} not judged"
        raw = "\n".join(f"[{vote.category or vote.label}] {text}" for text, vote in zip(sentences, votes, strict=True))
        return Verdict(label, counted, self.name, self.version, raw=raw, votes=tuple(votes))
