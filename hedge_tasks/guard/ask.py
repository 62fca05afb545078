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

from hedge_tasks.clustering.exact import ExactClustering
from hedge_tasks.data.answers import Answer, AnswerSet, Draw
from hedge_tasks.data.inside import Inside
from hedge_tasks.data.pictures import open_picture, to_rgb8
from hedge_tasks.detectors.evidence import INSIDE_ARRAYS
from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.detectors.registry import get
from hedge_tasks.detectors.scorer import score_all
from hedge_tasks.errors import ConfigError, DrawsFailed, HedgeError
from hedge_tasks.guard.curtailment import COUNTING, interim_analyses, needed, predicted, settled
from hedge_tasks.guard.fitted import looked_at_once
from hedge_tasks.guard.models import SERVER, adapter_for
from hedge_tasks.guard.monitoring import Monitor, StopOn
from hedge_tasks.guard.policy import Policy, load_policy
from hedge_tasks.guard.seen import FORCED, agreeing, pays_for
from hedge_tasks.guard.sentinels import EVERY_S, Sentinel, ServerWatch
from hedge_tasks.guard.verdict import GuardVerdict, clusters_of, reason_of
from hedge_tasks.llm.secrets import Redactor
from hedge_tasks.replies.declining import unanswered
from hedge_tasks.sampling.hook import outcomes, without_keys
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
    verdict: GuardVerdict | None = None
    error: HedgeError | None = None

    @property
    def open(self) -> bool:
        return self.verdict is None and self.error is None and not self.stopped.is_set()

    def draws(self) -> list[Draw]:
        """All that may be made; the baseline answer by the very seed that was asked for."""
        baseline, *others = self.request.plan.draws(self.request.key)
        return [baseline if self.seed is None else replace(baseline, seed=self.seed), *others]

    def answer_set(self, clean: int, noisy: int) -> AnswerSet:
        """The baseline answer and the first so many draws."""
        settings = {
            name: tuple(self.answers[name, i] for i in range(number))
            for name, number in (("clean", clean), ("noisy", noisy))
        }
        baseline = self.answers["baseline", 0]
        return AnswerSet("question", baseline, settings["clean"], settings["noisy"], question=self.request.question)


class Guard:
    """Answers questions under a policy. Threads may share it.

    The clustering's models are loaded once and stay, and what they have said of answers is remembered. Draws are
    seeded by the question and its pictures: the same question gets the same verdict from a model whose seeds hold.

    Args:
        policy: see `hedge_tasks.guard.policy.load_policy`.
        model: an adapter of this package, such as `HedgeOpenAI(model=..., base_url=...)`.
        within: seconds after which a question is undecided; None waits for the model.
        at_once: make all draws in one wave. The verdicts are the same; they cost more draws, and come sooner where the
            server has room.
        concurrency: questions under way at a time, the others wait. A model in this process is asked one at a time.
        check_every_s: seconds between two checks of the server with the policy's sentinel questions.
        stop_on: after which alarm nothing is accepted any more; see `hedge_tasks.guard.monitoring.Monitor`. Where the
            policy has no sentinels nobody else sees that the server is another one: audits then means any.

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
        at_once: bool = False,
        concurrency: int = 16,
        check_every_s: float = EVERY_S,
        stop_on: StopOn = "audits",
    ) -> None:
        _check_within(within)
        if concurrency < 1:
            raise ConfigError(f"concurrency: expected 1 or more, got {concurrency!r}")
        if get(policy.detector).needs & FORCED:
            raise ConfigError(f"{policy.detector} needs forced passes, which a guard does not ask for")
        if get(policy.detector).needs & INSIDE_ARRAYS.keys() and not (policy.fitted and hasattr(model, "inside")):
            raise ConfigError(f"{policy.detector} looks inside the model, which {type(model).__name__} does not allow")
        self.policy, self.model, self.within = policy, model, within
        self.plan, self.prompt = plan_of(policy), prompt_of(policy)
        clean, noisy = pays_for(policy.detector)
        self._n, self._noisy = (self.plan.n if clean else 0), (self.plan.noisy_count if noisy else 0)
        self._scorer = policy.scorer()
        self._waves, self._at_once = ([self._n] if at_once else self._interim_analyses()), at_once
        self._rows: dict[int, Mapping[str, Any]] = {}
        model.task_dict = {_TASK: {_SPLIT: self._rows}}  # where adapters look for a document's pictures
        self._numbers = count()
        threads = getattr(model, "takes_threads", False)
        self._asking: Any = nullcontext() if threads else threading.Lock()
        self._clustering = threading.Lock()  # a model that two threads load at a time is loaded twice
        unwatched = stop_on == "audits" and not policy.sentinels
        self.monitor = Monitor(policy.promise, "any" if unwatched else stop_on)
        self.watch = ServerWatch(policy.sentinels, self._ask_sentinels, every_s=check_every_s)
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
        within = options.get("within")
        _check_within(within)
        if within is not None and model == SERVER and "timeout=" not in model_args:
            # Nobody waits longer for a single draw either.
            model_args = ",".join(filter(None, [model_args, f"timeout={within:g}"]))
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
        texts = ("yes", "no")
        self._cluster([AnswerSet("warm", Answer(texts[0]), tuple(map(Answer, texts)), question="is it?")])

    def check_server(self) -> None:
        """Ask the sentinel questions now, rather than with the first question.

        Raises:
            HedgeError: the model does not answer.
        """
        self.watch.look()

    def ask(self, image: Pictures, question: str, *, seed: int | None = None) -> GuardVerdict:
        """Ask the model, and decide.

        Args:
            image: a picture or its file; None for none; or several, in the order in which the model sees them.
            question: what is put into the policy's prompt.
            seed: of the answer, and what the draws are seeded with; by default the calibration's.

        Raises:
            DrawsFailed: the model did not answer. Nothing is ever let through unjudged.
            DataError: a picture cannot be read.
        """
        pending = self.question(image, question, seed)
        if self.within is None:
            self._judge([pending])
            return _outcome(pending)
        future = self.submit(pending)
        try:
            future.result(timeout=max(self.within, 0.0))
        except NotInTime:
            return self.undecided(pending)
        return _outcome(pending)

    def ask_many(self, questions: Sequence[tuple[Pictures, str]]) -> list[GuardVerdict | HedgeError]:
        """Ask many questions, several at a time; a model in this process gets their draws as large batches.

        Args:
            questions: pairs of picture (as for `ask`) and question.

        Returns:
            The verdicts in the order of the questions; where one could not be had the error that says why.
        """
        outcomes: list[PendingQuestion | HedgeError] = []
        for image, text in questions:
            try:
                outcomes.append(self.question(image, text))
            except HedgeError as error:
                outcomes.append(error)
        pending = [item for item in outcomes if isinstance(item, PendingQuestion)]
        together = [[item] for item in pending] if getattr(self.model, "takes_threads", False) else [pending]
        for future in [self._pool.submit(self._judge, some) for some in together if some]:
            future.result()
        return [item if isinstance(item, HedgeError) else self._late(item) for item in outcomes]

    async def ask_async(self, image: Pictures, question: str, *, seed: int | None = None) -> GuardVerdict:
        """As `ask`, for programs with an event loop. One that is cancelled makes no further draws."""
        pending = await asyncio.to_thread(self.question, image, question, seed)
        return await self.answered(pending, self.submit(pending))

    # --- for the proxy, which must know when a question has let go of its threads -----------------------------------

    def question(self, image: Pictures, question: str, seed: int | None = None) -> PendingQuestion:
        """A question to be submitted. Reads the pictures."""
        images = [image] if isinstance(image, (Image.Image, str, Path)) else list(image or ())
        pictures = [to_rgb8(im if isinstance(im, Image.Image) else open_picture(Path(im))) for im in images]
        plan = replace(self.plan, n=max(self._n, 1), n_noisy=self._noisy)
        request = SampleRequest(
            id="question",
            key=_key(question, pictures),
            question=question,
            prompt=self.prompt,
            plan=plan if seed is None else replace(plan, seed=seed),
            load_images=lambda document: list(document["images"]),
        )
        return PendingQuestion(next(self._numbers), request, pictures, seed)

    def submit(self, pending: PendingQuestion) -> Future[None]:
        """Begin with a question, or put it into the queue."""
        return self._pool.submit(self._judge, [pending])

    async def answered(self, pending: PendingQuestion, future: Future[None]) -> GuardVerdict:
        """The verdict of a submitted question, undecided where it takes too long."""
        waiting = asyncio.wrap_future(future)
        left = None if self.within is None else max(self.within - (time.monotonic() - pending.start), 0.0)
        try:
            await asyncio.wait_for(asyncio.shield(waiting), left)
        except TimeoutError:
            return self.undecided(pending)
        except asyncio.CancelledError:
            pending.stopped.set()
            raise
        return _outcome(pending)

    def pass_on(self, conversation: list[dict[str, Any]], **settings: Any) -> Future[Answer]:
        """The model's answer to a conversation in lmms-eval's form, without any verdict.

        Args:
            settings: as for `hedge_tasks.models.base.ChatAdapter.answer_conversations`.
        """

        def answer() -> Answer:
            with self._asking:
                [answer] = self.model.answer_conversations([conversation], **settings)
            redacted = without_keys(answer, Redactor())
            assert isinstance(redacted, Answer)
            return redacted

        return self._pool.submit(answer)

    def undecided(self, pending: PendingQuestion) -> GuardVerdict:
        """The verdict on a question whose time is over; nothing more is drawn for it."""
        pending.stopped.set()
        return self._verdict(pending, "undecided", f"no verdict within {self.within:g} s")

    # --- the way to a verdict -------------------------------------------------------------------------------------

    def _judge(self, questions: Sequence[PendingQuestion]) -> None:
        try:
            self.watch.look()
        except HedgeError as error:
            for pending in questions:
                pending.error = error
            return
        stopped = self.watch.reason or self.monitor.reason
        for pending in questions:
            self._rows[pending.number] = {"images": pending.pictures}
        try:
            if stopped is not None:  # further draws would change nothing
                self._draw(questions, 0)
                for pending in [question for question in questions if self._in_time(question)]:
                    pending.verdict = self._verdict(pending, "rejected", stopped)
            for wave in self._waves if stopped is None else ():
                if some := [pending for pending in questions if self._in_time(pending)]:
                    self._draw(some, wave)
                if with_draws := [pending for pending in some if self._in_time(pending)]:
                    self._look(with_draws, wave)
        finally:
            for pending in questions:
                del self._rows[pending.number]

    def _in_time(self, pending: PendingQuestion) -> bool:
        if self.within is not None and time.monotonic() - pending.start > self.within:
            pending.stopped.set()
        return pending.open

    def _draw(self, questions: Sequence[PendingQuestion], clean: int) -> None:
        """Make the draws of a wave that are missing, of all questions together."""
        draws = {
            f"{question.number} {draw.condition} {draw.index}": (question, draw)
            for question in questions
            for draw in question.draws()
            if _wanted(draw, clean, self._noisy) and (draw.condition, draw.index) not in question.answers
        }
        requests = {key: (self._request(question, draw), _NOWHERE) for key, (question, draw) in draws.items()}
        try:
            with self._asking, closing(outcomes(self.model, requests)) as batches:
                for batch in batches:
                    for key, answer in batch:
                        question, draw = draws[key]
                        if isinstance(answer, Answer):
                            question.answers[draw.condition, draw.index] = answer
                        else:
                            self.watch.distrust()
                            question.error = question.error or DrawsFailed(f"the model did not answer: {answer}")
                    if not any(self._in_time(question) for question in questions):
                        return
        except HedgeError as error:  # of the model: nobody gets an answer
            self.watch.distrust()
            for question in questions:
                question.error = question.error or error

    def _ask_sentinels(self, sentinels: Sequence[Sentinel], seeds: Sequence[Sequence[int]]) -> list[list[Answer]]:
        """Draws on the sentinel questions, all of which must be answered."""
        questions = [self.question(list(sentinel.images()), sentinel.question) for sentinel in sentinels]
        hot = self.plan.temperature
        pending = {
            f"{i} {k}": (self._request(questions[i], Draw("clean", k, hot, seed)), _NOWHERE)
            for i, batch_seeds in enumerate(seeds)
            for k, seed in enumerate(batch_seeds)
        }
        self._rows.update({question.number: {"images": question.pictures} for question in questions})
        try:
            with self._asking, closing(outcomes(self.model, pending)) as batches:
                replies = dict(outcome for batch in batches for outcome in batch)
        finally:
            for question in questions:
                del self._rows[question.number]
        answers = [[replies.get(f"{i} {k}") for k in range(len(batch_seeds))] for i, batch_seeds in enumerate(seeds)]
        if failed := [a for batch_seeds in answers for a in batch_seeds if not isinstance(a, Answer)]:
            raise DrawsFailed(f"the model did not answer a sentinel question: {failed[0]}")
        return [[a for a in batch_seeds if isinstance(a, Answer)] for batch_seeds in answers]

    def _request(self, pending: PendingQuestion, draw: Draw) -> DrawRequest:
        return DrawRequest(pending.request, draw, lambda: self._rows[pending.number], (_TASK, _SPLIT, pending.number))

    def _look(self, questions: Sequence[PendingQuestion], clean: int) -> None:
        """Cluster what has been drawn, and decide where that can be done."""
        if self._others_answer():
            for pending in questions:
                pending.error = DrawsFailed("the server answered as another model than the policy is about")
            return
        for pending, clustered in zip(
            questions, self._cluster([pending.answer_set(clean, self._noisy) for pending in questions]), strict=True
        ):
            pending.clustered = clustered
            accepted = self._accepts(clustered)
            if accepted is not None or clean == self._n:
                self._decide(pending, clustered, accepted)

    def _accepts(self, clustered: AnswerSet) -> bool | None:
        """The verdict that the counts alone give, if they do."""
        policy, seen = self.policy, len(clustered.clean)
        if policy.detector != COUNTING:
            return None
        if not policy.epsilon:
            return settled(COUNTING, self._scorer.backend, agreeing(clustered), seen, self._n, policy.threshold)
        # The calibrated verdict is that of the first look that gives one, also where more is drawn by now.
        for at in [k for k in policy.looks if k < seen and self._at_once]:
            cut = self._cluster([replace(clustered, clean=clustered.clean[:at], cluster_ids=None)])[0]
            if (early := predicted(agreeing(cut), at, self._n, policy.threshold, policy.epsilon)) is not None:
                return early
        return predicted(agreeing(clustered), seen, self._n, policy.threshold, policy.epsilon)

    def _decide(self, pending: PendingQuestion, clustered: AnswerSet, accepted: bool | None) -> None:
        try:
            score = self._score(clustered, pending)
        except HedgeError as error:
            pending.error = error
            return
        accepted_now = score <= self.policy.threshold if accepted is None else accepted
        counting = self.policy.detector == COUNTING
        reason = reason_of(self.policy, clustered, score, self._n, accepted=accepted_now, counting=counting)
        if (why := unanswered(clustered.baseline.text)) is not None:
            accepted_now, reason = False, f"it is no answer ({why}): there is nothing to let through"
        if accepted_now:
            try:
                self.watch.look(answer.served for answer in pending.answers.values())
            except HedgeError as error:
                pending.error = error
                return
        if self.watch.reason is None:  # nobody asks for the answers of a server that is another one
            self.monitor.judged(accepted=accepted_now)
        if accepted_now and (why := self.watch.reason or self.monitor.reason) is not None:
            accepted_now, reason = False, why
        pending.verdict = self._verdict(pending, "accepted" if accepted_now else "rejected", reason, score)

    def _score(self, clustered: AnswerSet, pending: PendingQuestion) -> float:
        name, inside = self.policy.detector, self._inside(clustered, pending)
        with self._clustering:
            settings: dict[str, Any] = {"alpha": self._scorer.alpha, "inside": lambda names: {clustered.id: inside}}
            [scores] = score_all([clustered], self._scorer.backend, (name,), **settings)
        self._check_weighting(scores)
        score = scores[name]
        if score is None:
            raise DrawsFailed(f"{name} has no score: {scores.left_out[name]}")
        return score

    def _inside(self, clustered: AnswerSet, pending: PendingQuestion) -> Inside:
        """Arrays that a fitted detector looks at; none for others."""
        if self.policy.fitted is None or self.policy.fitted.of or not clustered.baseline.text.strip():
            return {}
        messages = self._request(pending, pending.draws()[0]).messages()
        with self._asking:
            return looked_at_once(self.model, self.policy.fitted, clustered, messages)

    def _check_weighting(self, scores: Scores) -> None:
        calibrated = self.policy.calibration.get("weighting")
        if calibrated is not None and scores.weighting != calibrated:
            raise DrawsFailed(
                f"the answers came without log-probabilities, which {self.policy.detector} had when it was calibrated"
            )

    def _verdict(self, pending: PendingQuestion, state: Any, reason: str, score: float | None = None) -> GuardVerdict:
        baseline, promise = pending.answers.get(("baseline", 0)), self.policy.promise
        return GuardVerdict(
            answer=baseline.text if baseline else None,
            state=state,
            reason=reason,
            risk=promise.risk if state == "accepted" else None,
            confidence=promise.confidence,
            score=score,
            threshold=self.policy.threshold,
            clusters=clusters_of(pending.clustered) if pending.clustered else (),
            draws=len(pending.answers) - (baseline is not None),
            all_draws=self._n + self._noisy,
            seconds=time.monotonic() - pending.start,
            finish=baseline.finish if baseline else None,
            n_tokens=baseline.n_tokens if baseline else None,
        )

    def _late(self, pending: PendingQuestion) -> GuardVerdict | HedgeError:
        if pending.error is None and pending.verdict is None:
            return self.undecided(pending)
        return pending.error or _outcome(pending)

    def _cluster(self, sets: Sequence[AnswerSet]) -> list[AnswerSet]:
        with self._clustering:
            return self._scorer.cluster(sets)

    def _others_answer(self) -> bool:
        """Whether the server has said that another model answered."""
        facts: Mapping[str, Any] = getattr(self.model, "sampling_facts", dict)()
        names = self.policy.calibration.get("answered_as") or ()
        return any(name not in names for name in facts.get("other_models", ()))

    def _interim_analyses(self) -> list[int]:
        """Numbers of clean draws after which to look."""
        policy, n = self.policy, self._n
        if policy.detector != COUNTING:
            return [n]
        if policy.epsilon:
            return list(policy.looks)
        # Acceptance needs so many that agree, and looking earlier finds nothing; rejection may be known at once.
        first = interim_analyses(n)[0]
        least = first if isinstance(self._scorer.backend, ExactClustering) else max(first, needed(n, policy.threshold))
        return sorted({*range(least, n, max(1, n // 5)), n})


def _check_within(within: float | None) -> None:
    if within is not None and not within > 0:
        raise ConfigError(f"within: expected a number of seconds above 0, got {within!r}")


def _outcome(pending: PendingQuestion) -> GuardVerdict:
    if pending.error is not None:
        raise pending.error
    assert pending.verdict is not None
    return pending.verdict


def _wanted(draw: Draw, clean: int, noisy: int) -> bool:
    return draw.index < {"baseline": 1, "clean": clean, "noisy": noisy}[draw.condition]


def plan_of(policy: Policy) -> SamplingPlan:
    """How a policy's questions are sampled.

    Raises:
        ConfigError: its run does not say.
    """
    sampling: Mapping[str, Any] = policy.circumstances.get("sampling") or {}
    if not sampling:
        raise ConfigError("the policy's run records no sampling settings, so its questions cannot be asked again")
    # The recorded perturbation has its strength in it.
    return SamplingPlan.from_generation_kwargs({**sampling, "strength": 1.0, "probe": False})


def prompt_of(policy: Policy) -> Prompt:
    """The prompt that a policy's questions are put into.

    Raises:
        ConfigError: its run does not say, or it has more in it than a question.
    """
    prompt = policy.circumstances.get("prompt") or {}
    if not isinstance(prompt.get("user"), str):
        raise ConfigError("the policy's run records no prompt, so its questions cannot be asked again")
    if CONTEXT in prompt["user"]:
        raise ConfigError("the policy's questions were asked with a context, which a guard does not give")
    return Prompt(str(prompt.get("name", "policy")), prompt["user"], prompt.get("system"))


def _key(question: str, pictures: Sequence[Image.Image]) -> str:
    digest = hashlib.sha256(question.encode())
    for picture in pictures:
        digest.update(repr(picture.size).encode() + picture.tobytes())
    return digest.hexdigest()
