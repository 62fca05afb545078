"""MedHallu's pipeline, question by question (paper: section 3 and algorithm 1; numbers: section 4).

A wrong answer is written; it is checked for being an answer at all (`gate.refuse`), for its length, that it does not
mean the same as the true answer, that the knowledge contradicts it (`gate.verify`), and that it deceives judges. What
fails is criticised and written again, five attempts in all. Where none passes, the candidate most like the true answer
is taken and marked, provided that it fails nothing but to deceive.

Where this differs from the paper: the length rule is a check (of the released rows many break it); a judge counts as
deceived where it prefers the wrong answer in both orders (the reference always shows the wrong one second); what means
the same as the true answer is never released as wrong, and cheap checks come before those that cost requests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hedge_tasks.errors import ConfigError
from hedge_tasks.llm.models import Model
from hedge_tasks.making.asking import Asking
from hedge_tasks.making.gate.verify import CONTRADICTED, EvidenceVerdict, control_steps, evidence_verdicts, outcome
from hedge_tasks.making.medhallu.checks import (
    SAME_MEANING,
    MutualEntailment,
    TextSimilarity,
    Vote,
    check_judges,
    difficulty,
    text_fault,
    votes_on,
)
from hedge_tasks.making.medhallu.questions import SourceQuestion
from hedge_tasks.making.medhallu.refining import REFINERS, Attempt, Refiner, WrongAnswer, generate
from hedge_tasks.making.production import MadeRecord

ATTEMPTS = 5
COOLEST, HOTTEST = 0.3, 0.7
"""Temperatures of the first attempt and the fifth; the others lie evenly between (paper: "between 0.3 and 0.7")."""


@dataclass(frozen=True)
class Checked:
    """A candidate with what the checks said; those after the first that failed were not made.

    Attributes:
        verdicts: Those of the verifiers.
        faults: What it failed, for people and for the critic.
        step: The same in two words, for counting.
    """

    candidate: WrongAnswer
    entailment: tuple[float, float] | None = None
    votes: tuple[Vote, ...] = ()
    faults: tuple[str, ...] = ()
    step: str = ""
    verdicts: tuple[EvidenceVerdict, ...] = ()

    @property
    def is_wrong(self) -> bool:
        """Whether it fails nothing but to deceive."""
        return bool(self.votes)


@dataclass(frozen=True)
class MedHallu:
    """The pipeline with its models.

    Attributes:
        generator: Writes wrong answers (the paper: Qwen2.5-14B).
        judges: At least three different models (GPT-4o mini, Gemma2-9B, Qwen2.5-7B).
        critic: Says what is wrong with an answer that failed (GPT-4o mini).
        entailment, similarity: Of texts.
        verifiers: Say with the knowledge before them whether it contradicts an answer; the judges where none is named.
        fallback: Whether an answer that deceives nobody is taken where there is no better one.
        refiner: Name of the way to a better answer.
        attempts: Candidates a question at most.

    Raises:
        ConfigError: There are fewer than three judges, or two of them are the same.
    """

    generator: Model
    judges: Sequence[Model]
    critic: Model
    entailment: MutualEntailment
    similarity: TextSimilarity
    refiner: str = "critique"
    attempts: int = ATTEMPTS
    verifiers: Sequence[Model] = ()
    fallback: bool = True
    _refine: Refiner = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_judges(self.judges)
        identities = [dict(judge.identity) for judge in self.judges]
        if any(identity in identities[:place] for place, identity in enumerate(identities)):
            raise ConfigError("judges: two of them are the same model; its vote would count twice")
        if self.attempts < 1:
            raise ConfigError(f"attempts: expected at least 1, got {self.attempts}")
        object.__setattr__(self, "_refine", REFINERS.build(self.refiner, critic=self.critic, generator=self.generator))

    def __call__(self, question: SourceQuestion, asking: Asking) -> MadeRecord:
        """Return the row of one question, or why there is none."""
        tried: list[Checked] = []
        record = self._first_passing(question, tried, asking)
        controls = control_steps(verdict for checked in tried for verdict in checked.verdicts)
        return replace(record, steps=(*record.steps, *controls))

    def _first_passing(self, question: SourceQuestion, tried: list[Checked], asking: Asking) -> MadeRecord:
        steps: list[str] = []
        for attempt in range(self.attempts):
            candidate = self._next(question, tried, attempt, asking)
            if candidate is None:
                steps.append("unreadable")
                continue
            steps.append("rewritten" if candidate.refined else "written")
            checked = self._check(question, candidate, asking)
            steps += [f"by place: {vote.judge}" for vote in checked.votes if vote.by_place]
            tried.append(checked)
            if not checked.faults:
                steps.append(f"accepted at attempt {attempt + 1}")
                return MadeRecord(self._row(question, checked, attempt + 1), tuple(steps))
            steps.append(checked.step)
        return self._nearest(question, tried, steps)

    def load(self) -> None:
        """Load what compares texts, before anybody is paid for a reply and before threads import what it needs.

        Raises:
            HedgeError: A model that was named cannot be had.
        """
        self.entailment.both_ways("a", "a")
        self.similarity.embed(["a"])

    def settings(self) -> dict[str, Any]:
        """Return what shapes the set, for its card."""
        return {
            "generator": dict(self.generator.identity),
            "judges": [dict(judge.identity) for judge in self.judges],
            "verifiers": [dict(verifier.identity) for verifier in self.active_verifiers],
            "critic": dict(self.critic.identity),
            "refiner": self.refiner,
            "attempts": self.attempts,
            "nli": getattr(self.entailment, "model", None),
            "embedding": getattr(self.similarity, "model", None),
        }

    def requests(self, n_questions: int) -> dict[str, tuple[int, int]]:
        """Fewest and most requests by stage, where every reply can be read.

        Fewest: every first candidate is accepted. Most: every candidate gets as far as the judges and deceives none.
        """
        votes, retries = 2 * len(self.judges), self.attempts - 1
        if self.refiner == "critique":
            rewritten = {"critique": (0, retries * n_questions), "rewrite": (0, retries * n_questions)}
            candidates = (n_questions, n_questions)
        else:
            rewritten, candidates = {}, (n_questions, self.attempts * n_questions)
        judged = (votes * n_questions, votes * self.attempts * n_questions)
        # The truth is shown once a question: the same words are asked once.
        once = len(self.active_verifiers) * n_questions
        verified = {"verify": (once, once * self.attempts), "control": (once, once)}
        return {"candidate": candidates, **verified, "judge": judged, **rewritten}

    @property
    def active_verifiers(self) -> Sequence[Model]:
        """The verifiers."""
        return self.verifiers or self.judges

    def _next(
        self, question: SourceQuestion, tried: Sequence[Checked], number: int, asking: Asking
    ) -> WrongAnswer | None:
        step = (HOTTEST - COOLEST) / max(1, ATTEMPTS - 1)
        attempt = Attempt(question, str(number), round(min(COOLEST + number * step, HOTTEST), 6), asking)
        if not tried:
            return generate(attempt, self.generator)
        return self._refine.refine(attempt, tried[-1].candidate, tried[-1].faults)

    def _check(self, question: SourceQuestion, candidate: WrongAnswer, asking: Asking) -> Checked:
        if fault := text_fault(question, candidate.answer):
            return Checked(candidate, faults=(fault.sentence,), step=fault.step)
        entailment = self.entailment.both_ways(candidate.answer, question.answer)
        if min(entailment) >= SAME_MEANING:
            equal = "It means the same as the true answer: each entails the other."
            return Checked(candidate, entailment, faults=(equal,), step="same meaning")
        verdicts = evidence_verdicts(
            question.question, question.answer, question.knowledge, candidate.answer, self.active_verifiers, asking
        )
        if (verdict := outcome(verdicts)) != CONTRADICTED:
            undecided = f"Nothing in the knowledge contradicts it: by those who read both it is {verdict}."
            return Checked(candidate, entailment, faults=(undecided,), step=f"verified as {verdict}", verdicts=verdicts)
        votes = votes_on(question, candidate.answer, self.judges, asking)
        if not any(vote.fooled for vote in votes):
            seen_through = "Every expert who saw it beside the true answer found it to be the wrong one."
            return Checked(candidate, entailment, votes, (seen_through,), "deceives nobody", verdicts)
        return Checked(candidate, entailment, votes, verdicts=verdicts)

    def _nearest(self, question: SourceQuestion, tried: Sequence[Checked], steps: list[str]) -> MadeRecord:
        usable = [checked for checked in tried if checked.is_wrong]
        if not usable or not self.fallback:
            reason = "nothing that could be read" if not tried else f"every candidate fails: {tried[-1].step}"
            return MadeRecord(None, tuple(steps), reason)
        similar = [self.similarity.cosine(checked.candidate.answer, question.answer) for checked in usable]
        best = max(range(len(usable)), key=lambda place: similar[place])  # the first of equals
        steps.append("fallback")
        return MadeRecord(self._row(question, usable[best], self.attempts, similar[best]), tuple(steps))

    def _row(
        self, question: SourceQuestion, checked: Checked, attempts: int, similarity: float | None = None
    ) -> Mapping[str, Any]:
        """The row in the columns of the released set, with votes and provenance after them."""
        assert checked.entailment is not None
        forth, back = checked.entailment
        return {
            "Question": question.question,
            "Knowledge": list(question.knowledge),
            "Ground Truth": question.answer,
            "Difficulty Level": difficulty(checked.votes) or "easy",
            "Hallucinated Answer": checked.candidate.answer,
            "Category of Hallucination": checked.candidate.category,
            "Id": question.id,
            "MeSH": list(question.mesh),
            "Source": question.source,
            "Fallback": not any(vote.fooled for vote in checked.votes),
            "Similarity": similarity,
            "Attempts": attempts,
            "Refined": checked.candidate.refined,
            "Error": checked.candidate.error,
            "Entailment": {"hallucinated_to_true": forth, "true_to_hallucinated": back},
            "Findings": [finding.to_dict() for finding in checked.verdicts],
            "Votes": [vote.to_dict() for vote in checked.votes],
            "Generator": self.generator.name,
        }
