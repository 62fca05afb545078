"""The outcome of a question that was asked under a policy."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any, Literal

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.numbers import PERCENT, format_value

State = Literal["accepted", "rejected", "undecided"]


@dataclass(frozen=True)
class Cluster:
    """Answers that mean the same.

    Attributes:
        text: one of them; of the baseline answer's cluster the baseline answer.
        share: of the clean draws.
        baseline: whether the baseline answer is one of them.
    """

    text: str
    share: float
    baseline: bool


@dataclass(frozen=True)
class GuardVerdict:
    """The outcome of a question.

    Attributes:
        answer: the model's baseline answer; None where there was none in time.
        state: "accepted" (the policy lets it through), "rejected", or "undecided" (the time was over before).
        reason: why, in words.
        promised_risk: of an accepted answer what the policy promises: at most this share of all that it accepts is what
            the calibration's judge calls hallucinated. None for every other answer, about which nothing is promised.
        confidence: that the promise holds.
        score: of the policy's detector; None where there is none yet.
        threshold: a score of at most this is accepted.
        clusters: what the draws mean, the baseline answer's first, then by falling share; empty without draws.
        draws: answers that were sampled besides the baseline answer.
        seconds: that it took.
        finish: why the model stopped, as in `hedge_tasks.data.answers.Answer`.
    """

    answer: str | None
    state: State
    reason: str
    promised_risk: float | None
    confidence: float
    score: float | None
    threshold: float
    clusters: tuple[Cluster, ...]
    draws: int
    seconds: float
    finish: str | None = None

    @property
    def accepted(self) -> bool:
        """Whether the policy lets the answer through."""
        return self.state == "accepted"

    @property
    def words(self) -> str:
        """The verdict as one line."""
        if self.accepted:
            risk = format_value(self.promised_risk, PERCENT)
            return f"let through (of those let through, its judge calls at most {risk} hallucinated, as promised)"
        return "undecided, so not safe to use" if self.state == "undecided" else "not safe to use"

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "accepted": self.accepted}


def clusters_of(clustered: AnswerSet) -> tuple[Cluster, ...]:
    """The meanings of the clean draws, the baseline answer's first."""
    baseline, *ids = (clustered.cluster_ids or ())[: 1 + len(clustered.clean)]
    texts = {i: answer.text for i, answer in reversed(list(zip(ids, clustered.clean, strict=True)))}
    counts = Counter(ids)
    own = Cluster(clustered.baseline.text, counts.pop(baseline, 0) / max(len(ids), 1), True)
    return (own, *(Cluster(texts[i], count / len(ids), False) for i, count in counts.most_common()))
