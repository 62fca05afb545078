"""MedHallu's construction, question by question (paper: section 3 and algorithm 1; numbers: section 4).

A wrong answer is written; it is checked for being an answer at all (`gate.refuse`), for its length, that it does not
mean the same as the true answer, that the knowledge contradicts it (`gate.verify`), and that it deceives judges. What
fails is criticised and rewritten (TextGrad's feedback); what fails again is generated anew, five generations in all.
Where none passes, the candidate most like the true answer is taken and marked, if it fails nothing but to deceive.

The paper keeps an answer that deceives a majority (section 3), and one that deceives at least one judge (section 4),
without which nothing would be easy: here it is one. Where this differs from the paper: the length rule is a check (of
the released rows many break it); a judge counts as deceived where it prefers the wrong answer in both orders (the
reference always shows the wrong one second); what means the same as the true answer is never released as wrong.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

from hedge_tasks.errors import ConfigError
from hedge_tasks.llm.models import Model
from hedge_tasks.llm.template import load_template
from hedge_tasks.making.gate.refuse import Written, refused
from hedge_tasks.making.gate.verify import (
    CONTRADICTED,
    VERIFIER,
    EvidenceVerdict,
    OpenBook,
    evidence_verdicts,
    outcome,
    verifying,
)
from hedge_tasks.making.medhallu.questions import SourceQuestion
from hedge_tasks.making.stages import Asking, Made, MakingStage, Models, Rejected

NLI_MODEL = "microsoft/deberta-large-mnli"
"""The paper's NLI model (section 4)."""

TOLERANCE = 0.1
"""Share of the true answer's length by which a wrong one may be shorter or longer (section 4)."""

SAME_MEANING = 0.75
"""Entailment in both directions from which on two answers mean the same (sections 4 and 4.3)."""

COOLEST, HOTTEST = 0.3, 0.7
"""Temperatures of the first generation and the last; the others lie evenly between (paper: "between 0.3 and 0.7")."""

MOST_FALLBACKS = 0.2
"""Share of rows that deceived no judge from which on a set is not what it is called."""

LEAST_JUDGES = 3
OFF_TOPIC, BESIDE_NOTHING = "Most shops in town are closed on Sundays.", "truth beside an answer to nothing"
"""The wrong answer of a judge's control, and its kind: what is more accurate can be told without any knowledge."""

_TOP_P = 0.95
_SAYS_IN_VAIN = {
    "same meaning": "It means the same as the true answer: each entails the other.",
    "deceives nobody": "Every expert who saw it beside the true answer found it to be the wrong one.",
}
_ROOM = "hedge_tasks.making.medhallu"


def allowed_length(answer: str) -> tuple[int, int]:
    """Least and most characters of a wrong answer to stand beside a true one.

    Example:
        >>> allowed_length("x" * 100)
        (90, 110)
    """
    return math.ceil(len(answer) * (1 - TOLERANCE)), math.floor(len(answer) * (1 + TOLERANCE))


@dataclass(frozen=True)
class WrongAnswer:
    """A wrong answer with its kind of error; `refined` where another one was criticised and rewritten."""

    answer: str
    category: str
    error: str
    refined: bool = False


def _wrong_answer(reply: Mapping[str, str], *, refined: bool = False) -> WrongAnswer:
    return WrongAnswer(reply["hallucinated_answer"].strip(), reply["category"], reply["error"], refined)


def text_fault(candidate: WrongAnswer, values: Mapping[str, Any]) -> str:
    """Why a text is no wrong answer, or has the wrong length; empty where neither."""
    instructions = load_template(_ROOM, "candidate").system
    if reason := refused(candidate.answer, values["true_answer"], values["question"], instructions):
        return reason
    least, most = values["length"]["least"], values["length"]["most"]
    if least <= len(candidate.answer) <= most:
        return ""
    return "too short" if len(candidate.answer) < least else "too long"


def stages_of(n_judges: int, n_verifiers: int, attempts: int) -> dict[str, MakingStage]:
    """The stages of the construction by name."""
    sampling = {"top_p": _TOP_P}
    candidates = 2 * attempts  # each generation may be rewritten once
    verified = verifying((n_verifiers, n_verifiers * candidates), n_verifiers)
    judge = MakingStage(load_template(_ROOM, "judge"), "judge", lambda reply: reply["more_accurate"])
    return {
        "candidate": MakingStage(
            load_template(_ROOM, "candidate"), "generator", _wrong_answer, text_fault, (1, attempts), sampling
        ),
        **verified,
        "judge": replace(judge, times=(2 * n_judges, 2 * n_judges * candidates)),
        "judge_control": replace(judge, times=(0, 2 * n_judges)),
        "critique": MakingStage(
            load_template(_ROOM, "critique"), "critic", lambda reply: reply["feedback"], times=(0, attempts)
        ),
        "rewrite": MakingStage(
            load_template(_ROOM, "rewrite"),
            "generator",
            lambda reply: _wrong_answer(reply, refined=True),
            text_fault,
            (0, attempts),
            sampling,
        ),
    }


def sampling_stages(n_judges: int, count: int) -> dict[str, MakingStage]:
    """The stages of so many candidates a question."""
    stages = stages_of(n_judges, 0, count)
    return {
        "candidate": replace(stages["candidate"], times=(count, count)),
        "judge": replace(stages["judge"], times=(2 * n_judges, 2 * n_judges * count)),
        "judge_control": stages["judge_control"],
    }


class TextComparison(Protocol):
    """A measure of how alike two texts are."""

    def entailment(self, first: str, second: str) -> tuple[float, float]:
        """Probability that the first entails the second, and that the second entails the first."""

    def cosine(self, first: str, second: str) -> float:
        """Of their embeddings, between -1 and 1."""


class ModelComparison:
    """Entailment by an NLI model, and sentence embeddings; each pair is computed once.

    Args:
        nli, embedding: Models of transformers; None: the paper's, and all-MiniLM-L6-v2.
    """

    def __init__(self, nli: str | None = None, embedding: str | None = None) -> None:
        from hedge_tasks.clustering.nli_source import NliSource
        from hedge_tasks.llm.encoders import DEFAULT_MODEL

        self.nli, self.embedding = nli or NLI_MODEL, embedding or DEFAULT_MODEL
        self._source = NliSource(self.nli, None, None, "float32", batch_size=16)
        self._lock = threading.Lock()

    def entailment(self, first: str, second: str) -> tuple[float, float]:
        """As `TextComparison.entailment`."""
        with self._lock:
            forth, back = self._source.probabilities([(first, second), (second, first)])[:, 2].tolist()
        return forth, back

    def cosine(self, first: str, second: str) -> float:
        """As `TextComparison.cosine`."""
        from hedge_tasks.llm.encoders import load_encoder, unit_vectors
        from hedge_tasks.llm.loading import default_device

        with self._lock:
            vector_1, vector_2 = unit_vectors(load_encoder(self.embedding, None, default_device(None))([first, second]))
        return float(vector_1 @ vector_2)

    def load(self) -> None:
        """Load both, before anybody is paid for a reply. Raises HedgeError where a model cannot be had."""
        self.entailment("a", "a")
        self.cosine("a", "a")


@dataclass(frozen=True)
class Vote:
    """Vote of one judge, asked in both orders.

    Attributes:
        judge: Its name.
        picked_first, picked_second: Whether it took the wrong answer for the more accurate one: where that stood first,
            and where it stood second. None where its replies could not be read.
        fooled: Whether it was deceived in both orders and passes its control: a judge that goes by the place of an
            answer, or by nothing, does not count.
    """

    judge: str
    picked_first: bool | None
    picked_second: bool | None
    fooled: bool


def votes_on(question: SourceQuestion, wrong: str, asking: Asking) -> tuple[Vote, ...]:
    """Votes: which answer each judge takes for the more accurate one, asked in both orders and without the knowledge.

    Raises:
        Unfinished: A judge did not reply.
    """
    votes = []
    for judge in asking.models["judge"]:
        picked = _picked(question, (wrong, wrong), judge, asking, "judge")
        fooled = picked == [True, True] and _tells_apart(question, judge, asking)
        votes.append(Vote(judge.name, picked[0], picked[1], fooled))
    return tuple(votes)


def _picked(
    question: SourceQuestion, wrong: tuple[str, str], judge: Model, asking: Asking, stage: str
) -> list[bool | None]:
    """Whether a judge takes a wrong answer for the more accurate one, where it stands first and where second."""
    picked: list[bool | None] = []
    for place, answers in enumerate(((wrong[0], question.answer), (question.answer, wrong[1])), start=1):
        fields = {"question": question.question, "answer_1": answers[0], "answer_2": answers[1]}
        choice = asking.ask(stage, fields, model=judge)
        picked.append(None if choice is None else choice == place)
    return picked


def _tells_apart(question: SourceQuestion, judge: Model, asking: Asking) -> bool:
    """The control of a judge that says that it is deceived: who takes an answer to nothing for the true one is not.

    It is longer than the true one where it stands first, and shorter where second: nor does length tell them apart.
    """
    longer = " ".join([OFF_TOPIC] * (1 + len(question.answer) // len(OFF_TOPIC)))
    picked = _picked(question, (longer, OFF_TOPIC), judge, asking, "judge_control")
    return asking.control(judge, BESIDE_NOTHING, question.question, picked == [False, False])


def difficulty(votes: Sequence[Vote]) -> str | None:
    """hard where all judges were deceived, medium where several were, easy where one was; None where none was."""
    fooled = sum(vote.fooled for vote in votes)
    if fooled == 0:
        return None
    return "hard" if fooled == len(votes) else "medium" if fooled > 1 else "easy"


@dataclass(frozen=True)
class CheckedAnswer:
    """A candidate with what the checks said; those after the first that failed were not made.

    Attributes:
        fault: The check that it failed; empty where none.
    """

    candidate: WrongAnswer
    fault: str = ""
    entailment: tuple[float, float] = (0.0, 0.0)
    verdicts: tuple[EvidenceVerdict, ...] = ()
    votes: tuple[Vote, ...] = ()

    @property
    def sentence(self) -> str:
        """The tests that it failed, for the critic."""
        return _SAYS_IN_VAIN.get(self.fault, f"It is no wrong answer of the right length: {self.fault}.")


@dataclass(frozen=True)
class MedHallu:
    """The construction.

    Attributes:
        compares: Texts.
        attempts: Generations a question at most.
    """

    compares: TextComparison
    attempts: int = 5

    def __call__(self, question: SourceQuestion, asking: Asking) -> list[dict[str, Any]]:
        """Return the row of one question. Raises Rejected where there is none."""
        tried: list[CheckedAnswer] = []
        for number in range(self.attempts):
            candidate = _generated(question, number, self.attempts, asking)
            for refines in (False, True):
                if candidate is None:
                    break
                asking.steps.append("rewritten" if refines else "written")
                tried.append(checked := self._check(question, candidate, asking))
                if not checked.fault:
                    asking.steps.append(f"accepted at attempt {number + 1}")
                    return [_row(question, checked, number + 1, asking)]
                asking.steps.append(checked.fault)
                candidate = None if refines else _refined(question, checked, number, self.attempts, asking)
        return [self._nearest(question, tried, asking)]

    def _check(self, question: SourceQuestion, candidate: WrongAnswer, asking: Asking) -> CheckedAnswer:
        stage = asking.stages["rewrite" if candidate.refined else "candidate"]
        if fault := stage.passes(candidate, _values(question)):
            return CheckedAnswer(candidate, fault)
        entailment = self.compares.entailment(candidate.answer, question.answer)
        if min(entailment) >= SAME_MEANING:
            return CheckedAnswer(candidate, "same meaning", entailment)
        evidence = OpenBook(question.question, question.answer, question.knowledge)
        verdicts = evidence_verdicts(evidence, candidate.answer, asking)
        if (verdict := outcome(verdicts)) != CONTRADICTED:
            return CheckedAnswer(candidate, f"verified as {verdict}", entailment, verdicts)
        votes = votes_on(question, candidate.answer, asking)
        fault = "" if any(vote.fooled for vote in votes) else "deceives nobody"
        return CheckedAnswer(candidate, fault, entailment, verdicts, votes)

    def _nearest(self, question: SourceQuestion, tried: Sequence[CheckedAnswer], asking: Asking) -> dict[str, Any]:
        usable = [checked for checked in tried if checked.votes]
        if not usable:
            raise Rejected(f"every candidate fails: {tried[-1].fault}" if tried else "nothing that could be read")
        similar = [self.compares.cosine(checked.candidate.answer, question.answer) for checked in usable]
        best = similar.index(max(similar))
        asking.steps.append("fallback")
        return _row(question, usable[best], self.attempts, asking, similar[best])


def _values(question: SourceQuestion) -> dict[str, Any]:
    least, most = allowed_length(question.answer)
    return {
        "question": question.question,
        "true_answer": question.answer,
        "knowledge": list(question.knowledge) or None,
        "length": {"least": least, "most": most},
    }


def _temperature(number: int, count: int) -> float:
    return round(COOLEST + (HOTTEST - COOLEST) * number / max(1, count - 1), 6)


def _generated(question: SourceQuestion, number: int, count: int, asking: Asking) -> WrongAnswer | None:
    heat = _temperature(number, count)
    reply: WrongAnswer | None = asking.ask("candidate", _values(question), number=str(number), temperature=heat)
    return reply


def _refined(
    question: SourceQuestion, failed: CheckedAnswer, number: int, count: int, asking: Asking
) -> WrongAnswer | None:
    """A candidate as a critic would have it; None where nothing could be read."""
    fields = {
        "question": question.question,
        "true_answer": question.answer,
        "wrong_answer": failed.candidate.answer,
        "failed_checks": [failed.sentence],
    }
    feedback = asking.ask("critique", fields, number=str(number))
    if feedback is None:
        return None
    revision = {**_values(question), "earlier_answer": failed.candidate.answer, "feedback": feedback}
    reply: WrongAnswer | None = asking.ask(
        "rewrite", revision, number=str(number), temperature=_temperature(number, count)
    )
    return reply


def _row(
    question: SourceQuestion, checked: CheckedAnswer, attempts: int, asking: Asking, similarity: float | None = None
) -> dict[str, Any]:
    """The row in the columns of the released set, with votes and provenance after them."""
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
        "Findings": [asdict(verdict) for verdict in checked.verdicts],
        "Votes": [asdict(vote) for vote in checked.votes],
        "Generator": asking.models["generator"][0].name,
    }


def written_text(row: Mapping[str, Any]) -> Written:
    """The made text of a row beside what it was made for."""
    return Written(row["Hallucinated Answer"], " ".join([row["Question"], row["Ground Truth"], *row["Knowledge"]]))


def without_surplus(result: Made) -> Made:
    """A making without more fallbacks than `MOST_FALLBACKS` of its rows; the most similar ones stay."""
    places = [place for place, row in enumerate(result.rows) if row["Fallback"]]
    most = int(MOST_FALLBACKS / (1 - MOST_FALLBACKS) * (len(result.rows) - len(places)) + 1e-9)
    places.sort(key=lambda place: (-(result.rows[place]["Similarity"] or 0), result.rows[place]["Id"]))
    return result.without(dict.fromkeys(places[most:], "one fallback too many"), alone=True)


# --- candidates -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CandidateSampling:
    """Writes candidates and lets judges tell each from the truth (section 4.3). Nothing is refused.

    Attributes:
        count: Candidates a question (the paper: 50), at temperatures evenly between those of the paper.
    """

    count: int

    def __call__(self, question: SourceQuestion, asking: Asking) -> list[dict[str, Any]]:
        """Return the candidates of one question. Raises Rejected where none can be read."""
        candidates = [row for number in range(self.count) for row in self._candidate(question, number, asking)]
        if not candidates:
            raise Rejected("nothing that could be read")
        return [{"id": question.id, "question": question.question, "truth": question.answer, "candidates": candidates}]

    def _candidate(self, question: SourceQuestion, number: int, asking: Asking) -> list[dict[str, Any]]:
        candidate = _generated(question, number, self.count, asking)
        if candidate is None or not candidate.answer:
            return []
        readable = [
            v for v in votes_on(question, candidate.answer, asking) if None not in (v.picked_first, v.picked_second)
        ]
        fooled = any(vote.fooled for vote in readable) if readable else None
        check = text_fault(candidate, _values(question)) or None
        asking.steps.append(check or "passes the checks without a model")
        asking.steps.append({True: "deceives", False: "deceives nobody", None: "no vote could be read"}[fooled])
        return [{"answer": candidate.answer, "fooled": fooled, "category": candidate.category, "check": check}]


def models_of(generator: Model, judges: Sequence[Model], critic: Model | None, verifiers: Sequence[Model]) -> Models:
    """By role: the generator criticises and the judges verify where nobody else is named.

    Raises:
        ConfigError: There are too few judges, or two of them are the same.
    """
    if len(judges) < LEAST_JUDGES:
        raise ConfigError(f"judges: expected at least {LEAST_JUDGES} models, got {len(judges)}")
    if len({str(sorted(judge.identity.items())) for judge in judges}) < len(judges):
        raise ConfigError("judges: two of them are the same model; its vote would count twice")
    return {
        "generator": [generator],
        "judge": judges,
        "critic": [critic or generator],
        VERIFIER: verifiers or judges,
    }
