"""One question now: the model's answer, how risky it is, and whether a policy lets it through."""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from PIL import Image

from hedge_tasks.clustering.exact import ExactClustering
from hedge_tasks.data.answers import AnswerSet, read_response
from hedge_tasks.data.pictures import to_rgb8
from hedge_tasks.detectors.registry import get
from hedge_tasks.detectors.scorer import score_all
from hedge_tasks.errors import ConfigError, DrawsFailed
from hedge_tasks.guard.curtailment import COUNTING, settled
from hedge_tasks.guard.policy import Policy
from hedge_tasks.sampling.hook import generate_samples
from hedge_tasks.sampling.plan import SamplingPlan
from hedge_tasks.sampling.prompts import Prompt
from hedge_tasks.sampling.requests import SampleRequest

_TASK, _SPLIT = "guard", "ask"
_FIRST_WAVE = 0.4
"""Share of the clean draws that is made before the first look; what is settled then saves the rest."""


@dataclass(frozen=True)
class Verdict:
    """What became of a question.

    Attributes:
        answer: the model's baseline answer.
        accepted: whether the policy lets it through.
        score: of the policy's detector, after the draws that were made; the verdict is the one of all draws.
        threshold: a score of at most this is accepted.
        risk: largest share of hallucinated answers among those let through, as the policy promises it.
        confidence: that the promise holds.
        meanings: (an answer, share of the clean answers that mean the same), the most frequent first.
        draws: answers that were sampled besides the baseline answer.
        all_draws: answers that would have been sampled without an early end.
        seconds: that it took.
    """

    answer: str
    accepted: bool
    score: float
    threshold: float
    risk: float
    confidence: float
    meanings: tuple[tuple[str, float], ...]
    draws: int
    all_draws: int
    seconds: float

    @property
    def words(self) -> str:
        """The verdict as one line."""
        return f"let through (risk at most {self.risk:.1%})" if self.accepted else "not safe to use"


class Guard:
    """Answers questions under a policy.

    The clustering's models are loaded once and stay. Draws are seeded by the question and its pictures: the same
    question gets the same verdict from a model whose seeds hold.

    Args:
        policy: see `hedge_tasks.guard.policy.load_policy`.
        model: an adapter of this package, such as `HedgeOpenAI(model=..., base_url=...)`.

    Raises:
        ConfigError: the policy's prompt or sampling is none that can be asked here.
    """

    def __init__(self, policy: Policy, model: Any) -> None:
        self.policy = policy
        self._model = model
        self._scorer = policy.scorer()
        self._plan = _plan_of(policy)
        self._prompt = _prompt_of(policy)

    def ask(self, question: str, images: Sequence[Image.Image] = ()) -> Verdict:
        """Ask the model, and decide.

        Args:
            question: what is put into the policy's prompt.
            images: in the order in which the model sees them.

        Raises:
            DrawsFailed: the model did not answer. Nothing is ever let through unjudged.
        """
        start = time.monotonic()
        pictures = [to_rgb8(image) for image in images]
        n = self._plan.n
        with tempfile.TemporaryDirectory(prefix="hedge_ask_") as folder:
            for clean in self._waves():
                # Draws are nested and kept: a larger plan makes only what is missing.
                answers = self._sample(question, pictures, clean, Path(folder))
                [clustered] = self._scorer.cluster([answers])
                agreeing = _agreeing(clustered)
                known = settled(self.policy.detector, self._scorer.backend, agreeing, clean, n, self.policy.threshold)
                if known is not None:
                    break
        [scores] = score_all([clustered], self._scorer.backend, (self.policy.detector,), alpha=self._scorer.alpha)
        score = scores[self.policy.detector]
        if score is None:
            raise DrawsFailed(f"{self.policy.detector} has no score: {scores.left_out[self.policy.detector]}")
        accepted = score <= self.policy.threshold if known is None else known
        noisy = self._plan.noisy_count if self._looks_at_noise else 0
        promise = self.policy.promise
        return Verdict(
            answer=answers.baseline.text,
            accepted=accepted,
            score=score,
            threshold=self.policy.threshold,
            risk=promise.risk,
            confidence=promise.confidence,
            meanings=_meanings(clustered),
            draws=len(answers.clean) + len(answers.noisy),
            all_draws=n + noisy,
            seconds=time.monotonic() - start,
        )

    @property
    def _looks_at_noise(self) -> bool:
        detector = get(self.policy.detector)
        return detector.draws(1, 1) > detector.draws(1, 0)

    def _waves(self) -> list[int]:
        n = self._plan.n
        if self.policy.detector != COUNTING:
            return [n]
        first = max(1, round(_FIRST_WAVE * n))
        # Acceptance needs so many that agree, and looking earlier finds nothing; rejection may be known at once.
        needed = n - int(self.policy.threshold * n)
        least = first if isinstance(self._scorer.backend, ExactClustering) else max(first, needed)
        return sorted({*range(least, n, max(1, n // 5)), n})

    def _sample(self, question: str, pictures: list[Image.Image], clean: int, folder: Path) -> AnswerSet:
        noisy = self._plan.noisy_count if self._looks_at_noise else 0
        plan = SamplingPlan(**{**vars(self._plan), "n": clean, "n_noisy": noisy})
        request = SampleRequest(
            id="question",
            key=_key(question, pictures),
            question=question,
            prompt=self._prompt,
            plan=plan,
            load_images=lambda document: list(document["images"]),
            store=folder,
        )
        self._model.task_dict = {_TASK: {_SPLIT: [{"images": pictures}]}}
        [response] = generate_samples(self._model, [SimpleNamespace(args=("", {}, request, 0, _TASK, _SPLIT))])
        answers = read_response(response)
        if not isinstance(answers, AnswerSet):
            raise DrawsFailed(f"the model did not answer: {answers.reason}")
        return answers


def _plan_of(policy: Policy) -> SamplingPlan:
    sampling: Mapping[str, Any] = policy.circumstances.get("sampling") or {}
    if not sampling:
        raise ConfigError("the policy's run records no sampling settings, so its questions cannot be asked again")
    # The recorded perturbation has its strength in it.
    return SamplingPlan.from_generation_kwargs({**sampling, "strength": 1.0, "probe": False})


def _prompt_of(policy: Policy) -> Prompt:
    prompt = policy.circumstances.get("prompt") or {}
    if not isinstance(prompt.get("user"), str):
        raise ConfigError("the policy's run records no prompt, so its questions cannot be asked again")
    return Prompt(str(prompt.get("name", "policy")), prompt["user"], prompt.get("system"))


def _key(question: str, pictures: Sequence[Image.Image]) -> str:
    digest = hashlib.sha256(question.encode())
    for picture in pictures:
        digest.update(repr(picture.size).encode() + picture.tobytes())
    return digest.hexdigest()


def _agreeing(clustered: AnswerSet) -> int:
    ids = clustered.cluster_ids or ()
    return sum(i == ids[0] for i in ids[1 : 1 + len(clustered.clean)])


def _meanings(clustered: AnswerSet) -> tuple[tuple[str, float], ...]:
    ids = list(clustered.cluster_ids or ())[1 : 1 + len(clustered.clean)]
    texts = {i: answer.text for i, answer in reversed(list(zip(ids, clustered.clean, strict=True)))}
    return tuple((texts[i], count / len(ids)) for i, count in Counter(ids).most_common())
