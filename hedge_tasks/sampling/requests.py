"""Requests on their way from the task to the models: one a document, and the draws that it becomes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from PIL import Image

from hedge_tasks.data.answers import AnswerSet, Draw
from hedge_tasks.data.pictures import UNREADABLE_ERRORS, at_most, to_rgb8, whole_pictures
from hedge_tasks.errors import DataError, HedgeError
from hedge_tasks.io.places import Place
from hedge_tasks.perturb import Wording
from hedge_tasks.perturb.workers import PictureJob, PictureWorkers
from hedge_tasks.sampling.conversations import Conversation
from hedge_tasks.sampling.plan import SamplingPlan, SecondStage
from hedge_tasks.sampling.prompts import Prompt

_PICTURE_ERRORS = (*UNREADABLE_ERRORS, Image.DecompressionBombError)


class UnreadablePicture(DataError):
    """A document's picture cannot be read, now or ever: the document is left out where the plan allows for that.

    Attributes:
        key: of the request that asked for it.
    """

    def __init__(self, message: str, key: str) -> None:
        super().__init__(message)
        self.key = key


@dataclass(frozen=True)
class SampleRequest:
    """The request that lmms-eval carries from the task to the hook for one document.

    Attributes:
        id: the document's id, as users know it.
        key: hash of the document's content; see `hedge_tasks.data.splits.DocumentContents`.
        question, reference, group, question_type: copied into the answer set.
        context: what is given to read with the question; part of what `key` is made of.
        distractor: a wrong answer for perturbations that mislead; likewise.
        prompt: rendered with the question for every draw.
        plan: what to sample.
        load_images: the document (a row of the data set) -> its images, as they are stored.
        model: what identifies the model that answers, None where the command line does not tell.
        store: folder of the answer store, None to keep answers in memory only.
        second_stage: what is asked about the same document when all documents have answered; None for nothing.
        forced: names of the forced passes about the baseline answer; see `hedge_tasks.sampling.forced`.
        choices: the only texts that the model may write (`guided: true`); none leaves it free.
        options: the answers that the question offers, for the forced pass `options`; the model is free all the same.
        unsettled: whether words leave open what the baseline reply says, so that the model is asked what it meant (the
            forced pass `self_reading`); None where nobody reads it so.
        conversation: chat messages that another task has written, in place of the prompt's; None for the prompt's.
        other_media: whether `load_images` gives more than pictures (video, sound), which adapters get as it is.
    """

    id: str
    key: str
    question: str
    prompt: Prompt
    plan: SamplingPlan
    load_images: Callable[[Mapping[str, Any]], list[Any]]
    reference: str | None = None
    group: str | None = None
    question_type: str | None = None
    model: str | None = None
    store: Place | None = None
    context: str = ""
    distractor: str = ""
    second_stage: SecondStage | None = None
    forced: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    unsettled: Callable[[AnswerSet], bool] | None = None
    conversation: Conversation | None = None
    other_media: bool = False

    @property
    def wording(self) -> Wording:
        return Wording(self.question, self.context, self.distractor, self.reference or "")

    @cached_property
    def text(self) -> str:
        """All texts that the model is shown before any perturbation."""
        turns = self.prompt.messages(self.wording, ()) if self.conversation is None else self.conversation.turns
        return "\n".join(part["text"] for turn in turns for part in turn["content"] if part["type"] == "text")


@dataclass(frozen=True)
class DrawRequest:
    """One draw to be made: what an adapter's `generate_draws` receives.

    Attributes:
        request: the document it belongs to.
        draw: condition, temperature, seed.
        document: the row of the data set, fetched when the images are needed.
        row: (task, split, index) of that row, as lmms-eval's adapters want it.
        seeded: whether the seed is told; a probe leaves it out to see what a server does then.
        patient: whether a failed request is made again. Not where the failure is an answer, as to a probe of a setting.
    """

    request: SampleRequest
    draw: Draw
    document: Callable[[], Mapping[str, Any]]
    row: tuple[str, str, int]
    seeded: bool = True
    patient: bool = True

    @property
    def alternatives(self) -> int | None:
        """How many likeliest tokens are to be kept for each token of this answer; None keeps no tokens."""
        return self.request.plan.alternatives if self.draw.condition == "baseline" else None

    @property
    def prompt_key(self) -> Hashable:
        """Key of the prompt, text and picture that the draw reads; the clean draws of one request share it."""
        request = self.request
        shared = (request.key, request.prompt, request.wording, request.plan.max_image_side)
        if self.draw.condition != "noisy":
            return shared
        plan = request.plan
        return (*shared, repr(plan.perturbation), plan.strength, plan.perturb_at, self.draw.seed)

    def wording(self) -> Wording:
        """The text of this draw, perturbed when the draw is a noisy one."""
        request = self.request
        if self.draw.condition != "noisy":
            return request.wording
        return request.plan.noise.perturb_wording(request.wording, seed=self.draw.seed)

    def text(self) -> str:
        """System and user turn as one text, for adapters that know no roles."""
        return self.request.prompt.text(self.wording())

    def images(self) -> list[Any]:
        """The images of this draw, 8-bit RGB, perturbed when the draw is a noisy one."""
        return seen_images(self, clean_images(self.request, self.row_of_data()))

    def row_of_data(self) -> Mapping[str, Any]:
        """The row of the data set, whose images are decoded as it is read.

        Raises:
            UnreadablePicture: an image is damaged or a decompression bomb; names the document.
        """
        try:
            with whole_pictures():
                return self.document()
        except _PICTURE_ERRORS as error:
            raise _unreadable(self.request, error) from error

    def messages(self) -> list[dict[str, Any]]:
        return self.conversation(self.images())

    def conversation(self, images: list[Any]) -> list[dict[str, Any]]:
        """Chat messages of this draw, given its images."""
        request = self.request
        if request.conversation is not None:
            return request.conversation.messages(images, request.question, self.wording().question)
        return request.prompt.messages(self.wording(), images)


def clean_images(request: SampleRequest, document: Mapping[str, Any]) -> list[Any]:
    """The images of a document as its clean draws see them: 8-bit RGB, no larger than the plan says.

    Media of another kind are given as they are.

    Raises:
        UnreadablePicture: one is damaged or a decompression bomb; names the document.
    """
    try:
        with whole_pictures():
            images = request.load_images(document)
            if request.other_media:
                return images
            return [at_most(to_rgb8(image), request.plan.max_image_side) for image in images]
    except _PICTURE_ERRORS as error:
        raise _unreadable(request, error) from error


def seen_images(draw: DrawRequest, images: list[Any], workers: PictureWorkers | None = None) -> list[Any]:
    """The pictures of this draw where a clean one sees `images`: a noisy draw gets them perturbed.

    Args:
        workers: who perturbs large ones, in place of this thread.
    """
    if draw.draw.condition != "noisy":
        return images
    job = _noisy(draw)
    return job.done(images) if workers is None else workers.do(job, images)


def seen_urls(draw: DrawRequest, images: list[Any], workers: PictureWorkers) -> list[Any]:
    """As `seen_images`, as data URLs; media of another kind as they are."""
    request = draw.request
    if request.other_media:
        return seen_images(draw, images, workers)
    job = _noisy(draw) if draw.draw.condition == "noisy" else PictureJob(None, request.wording, draw.draw.seed)
    return workers.do(replace(job, encode=True), images)


def _noisy(draw: DrawRequest) -> PictureJob:
    plan = draw.request.plan
    return PictureJob(plan.noise, draw.request.wording, draw.draw.seed, perturb_at=plan.perturb_at)


def _unreadable(request: SampleRequest, error: Exception) -> Exception:
    if isinstance(error, HedgeError):
        return error
    reason = str(error).strip() or type(error).__name__
    return UnreadablePicture(f"document {request.id}: its picture cannot be read: {reason[:300]}", request.key)
