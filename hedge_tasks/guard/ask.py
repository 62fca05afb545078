"""Questions now: the model's answer to each, how risky it is, and whether a policy lets it through."""

from __future__ import annotations

import asyncio
import hashlib
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotInTime
from contextlib import closing, nullcontext
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

from PIL import Image

from hedge_tasks.data.answers import Answer, AnswerSet, Draw
from hedge_tasks.data.pictures import open_picture, to_rgb8
from hedge_tasks.detectors.registry import get
from hedge_tasks.detectors.scorer import score_all
from hedge_tasks.errors import ConfigError, DataError, DrawsFailed, HedgeError
from hedge_tasks.guard.models import SERVER, adapter_for
from hedge_tasks.guard.monitoring import Monitor, StopOn
from hedge_tasks.guard.policy import Policy, load_policy
from hedge_tasks.guard.seen import UNASKED, pays_for
from hedge_tasks.guard.verdict import GuardVerdict, State, clusters_of
from hedge_tasks.replies.declining import unanswered
from hedge_tasks.sampling.hook import outcomes
from hedge_tasks.sampling.plan import SamplingPlan
from hedge_tasks.sampling.prompts import CONTEXT, Prompt
from hedge_tasks.sampling.requests import DrawRequest, SampleRequest
from hedge_tasks.sampling.store import AnswerStore

Picture = Image.Image | str | Path
Pictures = Picture | Sequence[Picture] | None

_TASK, _SPLIT = "guard", "ask"
_NOWHERE = AnswerStore(None)


@dataclass(eq=False)
class PendingQuestion:
    """A question on its way to a verdict."""

    number: int
    request: SampleRequest
    pictures: list[Image.Image]
    seed: int | None = None
    start: float = field(default_factory=time.monotonic)
    stopped: threading.Event = field(default_factory=threading.Event)
    answers: dict[tuple[str, int], Answer] = field(default_factory=dict)
    clustered: AnswerSet | None = None

    def missing(self, clean: int, noisy: int) -> dict[str, Draw]:
        """Draws that have not been made; the baseline answer by the very seed that was asked for."""
        baseline, *others = self.request.plan.draws(self.request.key)
        draws = [baseline if self.seed is None else replace(baseline, seed=self.seed), *others]
        numbers = {"baseline": 1, "clean": clean, "noisy": noisy}
        return {
            f"{draw.condition} {draw.index}": draw
            for draw in draws
            if draw.index < numbers[draw.condition] and (draw.condition, draw.index) not in self.answers
        }

    def answer_set(self, clean: int, noisy: int) -> AnswerSet:
        """The baseline answer and the first so many draws."""
        cleans, noisies = (
            tuple(self.answers[name, i] for i in range(number)) for name, number in (("clean", clean), ("noisy", noisy))
        )
        return AnswerSet("question", self.answers["baseline", 0], cleans, noisies, question=self.request.question)


class Guard:
    """Answers questions under a policy. Threads may share it.

    The clustering's models are loaded once and stay, and what they have said of answers is remembered. Draws are
    seeded by the question and its pictures: the same question gets the same verdict from a model whose seeds hold.

    Args:
        policy: see `hedge_tasks.guard.policy.load_policy`.
        model: an adapter of this package, such as `HedgeOpenAI(model=..., base_url=...)`.
        within: seconds after which a question is undecided; None waits for the model.
        concurrency: questions under way at a time, the others wait. A model in this process is asked one at a time.
        stop_on: after which alarm nothing is accepted any more; see `hedge_tasks.guard.monitoring.Monitor`.

    Raises:
        ConfigError: the policy's prompt, sampling or detector is none that can be asked here.

    Example:
        guard = Guard.load("policy.json", endpoint="http://localhost:8000/v1")
        verdict = guard.ask("scan.png", "Is there a fracture?")
        print(verdict.answer if verdict.accepted else verdict.words)
    """

    def __init__(
        self,
        policy: Policy,
        model: Any,
        *,
        within: float | None = None,
        concurrency: int = 16,
        stop_on: StopOn = "any",
    ) -> None:
        if within is not None and not within > 0:
            raise ConfigError(f"within: expected a number of seconds above 0, got {within!r}")
        if concurrency < 1:
            raise ConfigError(f"concurrency: expected 1 or more, got {concurrency!r}")
        if get(policy.detector).needs & UNASKED:
            raise ConfigError(
                f"{policy.detector} needs forced passes or looks inside the model, which a guard does not ask for"
            )
        self.policy, self.model, self.within = policy, model, within
        self.plan, self.prompt = plan_of(policy), prompt_of(policy)
        clean, noisy = pays_for(policy.detector)
        self._n, self._noisy = (self.plan.n if clean else 0), (self.plan.noisy_count if noisy else 0)
        self._scorer = policy.scorer()
        self._rows: dict[int, Mapping[str, Any]] = {}
        model.task_dict = {_TASK: {_SPLIT: self._rows}}  # where adapters look for a document's pictures
        self._numbers = count()
        threads = getattr(model, "takes_threads", False)
        self._asking: Any = nullcontext() if threads else threading.Lock()
        self._clustering = threading.Lock()  # a model that two threads load at a time is loaded twice
        self.monitor = Monitor(policy.promise, stop_on)
        self._pool = ThreadPoolExecutor(concurrency if threads else 1, thread_name_prefix="hedge-guard")

    @classmethod
    def load(
        cls,
        policy: Policy | str | Path,
        *,
        endpoint: str | None = None,
        model: str = SERVER,
        model_args: str = "",
        trust: bool = False,
        **options: Any,
    ) -> Guard:
        """A guard with the policy's own model.

        Args:
            policy: or its file.
            endpoint: address of the server that has the model, such as `http://localhost:8000/v1`. Its key is in the
                environment (OPENAI_API_KEY).
            model, model_args: an adapter and its arguments as for lmms-eval, for a model in this process or for what
                an address does not say.
            trust: whether what the file names may be loaded; see `hedge_tasks.guard.trust`.
            options: as for the class.

        Raises:
            ConfigError: it is another model than the policy's, or options make no sense.
            DataError: the policy cannot be read.
        """
        loaded = policy if isinstance(policy, Policy) else load_policy(Path(policy), trust=trust)
        return cls(loaded, adapter_for(loaded, model, model_args, endpoint=endpoint), **options)

    def __enter__(self) -> Guard:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Ask no more. Requests under way come to their end by themselves."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def warm(self) -> None:
        """Load the clustering's models now rather than with the first question."""
        self._cluster([AnswerSet("warm", Answer("yes"), (Answer("no"),), question="is it?")])

    def ask(self, image: Pictures, question: str, *, seed: int | None = None) -> GuardVerdict:
        """Ask the model, and decide.

        Args:
            image: a picture or its file; None for none; or several, in the order in which the model sees them.
            question: what is put into the policy's prompt.
            seed: of the answer, and what the draws are seeded with; by default the calibration's.

        Raises:
            DrawsFailed: the model did not answer. Nothing is ever let through unjudged.
            DataError: a picture cannot be read, or there is none where the policy's questions have one, or the reverse.
        """
        pending = self.question(image, question, seed)
        future = self.submit(pending)
        try:
            return future.result(timeout=self.within)
        except NotInTime:
            return self.undecided(pending)

    def ask_many(self, questions: Sequence[tuple[Pictures, str]]) -> list[GuardVerdict | HedgeError]:
        """Ask many questions, several at a time.

        Args:
            questions: pairs of picture (as for `ask`) and question.

        Returns:
            The verdicts in the order of the questions; where one could not be had the error that says why.
        """

        def verdict(image: Pictures, text: str) -> GuardVerdict | HedgeError:
            try:
                return self._judge(self.question(image, text))
            except HedgeError as error:
                return error

        return list(self._pool.map(verdict, *zip(*questions, strict=True))) if questions else []

    # --- for the proxy, which must know when a question has let go of its threads -----------------------------------

    def question(self, image: Pictures, question: str, seed: int | None = None) -> PendingQuestion:
        """A question to be submitted. Reads the pictures."""
        images = [image] if isinstance(image, (Image.Image, str, Path)) else list(image or ())
        check_pictures(self.policy, len(images))
        pictures = [to_rgb8(im if isinstance(im, Image.Image) else open_picture(Path(im))) for im in images]
        plan = self.plan.replaced(n=max(self._n, 1), n_noisy=self._noisy)
        request = SampleRequest(
            id="question",
            key=_key(question, pictures),
            question=question,
            prompt=self.prompt,
            plan=plan if seed is None else plan.replaced(seed=seed),
            load_images=lambda document: list(document["images"]),
        )
        return PendingQuestion(next(self._numbers), request, pictures, seed)

    def submit(self, pending: PendingQuestion) -> Future[GuardVerdict]:
        """Begin with a question, or put it into the queue."""
        return self._pool.submit(self._judge, pending)

    async def answered(self, pending: PendingQuestion, future: Future[GuardVerdict]) -> GuardVerdict:
        """The verdict of a submitted question, undecided where it takes too long."""
        left = None if self.within is None else max(self.within - (time.monotonic() - pending.start), 0.0)
        try:
            return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(future)), left)
        except TimeoutError:
            return self.undecided(pending)
        except asyncio.CancelledError:
            pending.stopped.set()
            raise

    def undecided(self, pending: PendingQuestion) -> GuardVerdict:
        """The verdict on a question whose time is over; nothing more is drawn for it."""
        pending.stopped.set()
        return self._verdict(pending, "undecided", f"no verdict within {self.within or 0:g} s")

    # --- the way to a verdict -------------------------------------------------------------------------------------

    def _judge(self, pending: PendingQuestion) -> GuardVerdict:
        self._rows[pending.number] = {"images": pending.pictures}
        try:
            if (stopped := self.monitor.reason) is not None:  # further draws would change nothing
                self._draw(pending, 0)
                return self._verdict(pending, "rejected", stopped)
            self._draw(pending, self._n)
            return self.undecided(pending) if self._over(pending) else self._decide(pending)
        finally:
            del self._rows[pending.number]

    def _over(self, pending: PendingQuestion) -> bool:
        late = self.within is not None and time.monotonic() - pending.start > self.within
        return late or pending.stopped.is_set()

    def _draw(self, pending: PendingQuestion, clean: int) -> None:
        """Make the draws that are missing, so many clean ones."""
        draws = pending.missing(clean, self._noisy)
        place = (_TASK, _SPLIT, pending.number)
        requests = {
            key: (DrawRequest(pending.request, draw, lambda: self._rows[pending.number], place), _NOWHERE)
            for key, draw in draws.items()
        }
        if self._over(pending):
            return
        with self._asking, closing(outcomes(self.model, requests)) as batches:
            for batch in batches:
                for key, answer in batch:
                    if not isinstance(answer, Answer):
                        raise DrawsFailed(f"the model did not answer: {answer}")
                    pending.answers[draws[key].condition, draws[key].index] = answer
                if self._over(pending):
                    return

    def _decide(self, pending: PendingQuestion) -> GuardVerdict:
        """Cluster what has been drawn, and score it."""
        facts: Mapping[str, Any] = getattr(self.model, "sampling_facts", dict)()
        others = {*facts.get("other_models", ())}.difference(self.policy.calibration.answered_as)
        if any(answer.served and answer.served.model in others for answer in pending.answers.values()):
            raise DrawsFailed("the server answered as another model than the policy is about")
        [clustered] = self._cluster([pending.answer_set(self._n, self._noisy)])
        pending.clustered = clustered
        score = self._score(clustered)
        accepted = score <= self.policy.threshold
        where = "at most" if accepted else "above"
        reason = f"{self.policy.detector} is {score:.4g}, {where} {self.policy.threshold:.4g}"
        if (why := unanswered(clustered.baseline.text)) is not None:
            accepted, reason = False, f"it is no answer ({why}): there is nothing to let through"
        self.monitor.judged(accepted=accepted)
        if accepted and (stopped := self.monitor.reason) is not None:
            accepted, reason = False, stopped
        return self._verdict(pending, "accepted" if accepted else "rejected", reason, score)

    def _score(self, clustered: AnswerSet) -> float:
        name, weighting = self.policy.detector, self.policy.calibration.weighting
        with self._clustering:
            [scores] = score_all([clustered], self._scorer.backend, (name,), alpha=self._scorer.alpha)
        if weighting is not None and scores.weighting != weighting:
            raise DrawsFailed(f"the answers came without log-probabilities, which {name} had when it was calibrated")
        score = scores[name]
        if score is None:
            raise DrawsFailed(f"{name} has no score: {scores.left_out[name]}")
        return score

    def _verdict(self, pending: PendingQuestion, state: State, reason: str, score: float | None = None) -> GuardVerdict:
        baseline, promise = pending.answers.get(("baseline", 0)), self.policy.promise
        return GuardVerdict(
            answer=baseline.text if baseline else None,
            state=state,
            reason=reason,
            promised_risk=promise.risk if state == "accepted" else None,
            confidence=promise.confidence,
            score=score,
            threshold=self.policy.threshold,
            clusters=clusters_of(pending.clustered) if pending.clustered else (),
            draws=len(pending.answers) - (baseline is not None),
            seconds=time.monotonic() - pending.start,
            finish=baseline.finish if baseline else None,
        )

    def _cluster(self, sets: Sequence[AnswerSet]) -> list[AnswerSet]:
        with self._clustering:
            return self._scorer.cluster(sets)


def plan_of(policy: Policy) -> SamplingPlan:
    """How a policy's questions are sampled.

    Raises:
        ConfigError: its run does not say.
    """
    sampling = policy.circumstances.sampling
    if not sampling:
        raise ConfigError("the policy's run records no sampling settings, so its questions cannot be asked again")
    # The recorded perturbation has its strength in it.
    return SamplingPlan.from_generation_kwargs({**sampling, "strength": 1.0, "probe": False})


def prompt_of(policy: Policy) -> Prompt:
    """The prompt that a policy's questions are put into.

    Raises:
        ConfigError: its run does not say, or it has more in it than a question.
    """
    prompt = policy.circumstances.prompt
    if not isinstance(prompt.get("user"), str):
        raise ConfigError("the policy's run records no prompt, so its questions cannot be asked again")
    if CONTEXT in prompt["user"]:
        raise ConfigError("the policy's questions were asked with a context, which a guard does not give")
    return Prompt(str(prompt.get("name", "policy")), prompt["user"], prompt.get("system"))


def check_pictures(policy: Policy, number: int) -> None:
    """Raise DataError where a question has a picture and those of the policy had none, or the other way round."""
    if policy.circumstances.pictured != (number > 0):
        words = "without a picture" if number else "on a picture"
        raise DataError(f"the policy is about questions {words}, and promises nothing about others")


def _key(question: str, pictures: Sequence[Image.Image]) -> str:
    digest = hashlib.sha256(question.encode())
    for picture in pictures:
        digest.update(repr(picture.size).encode() + picture.tobytes())
    return digest.hexdigest()
