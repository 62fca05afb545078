"""Check whether a model's answers depend on the picture: the baseline once more on a blank one and on another's.

A model that answers from the question alone gives the same answers to clean and perturbed pictures, and no score that
compares its samples can see that it never looked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from PIL import Image

from hedge_tasks.data.answers import Answer
from hedge_tasks.sampling.jobs import Job
from hedge_tasks.sampling.requests import DrawRequest, SampleRequest

GREY = (128, 128, 128)
_PICTURES = ("blank", "other")


@dataclass(frozen=True)
class ImageCheck:
    """The further draws of one document.

    Attributes:
        baseline: key of its baseline draw.
        draws: by kind of picture ("blank", "other"): key and draw. The seed is the baseline's, so that nothing but the
            picture is different.
    """

    job: Job
    baseline: str
    draws: Mapping[str, tuple[str, DrawRequest]]


def plan_checks(jobs: Sequence[Job]) -> list[ImageCheck]:
    """The checks that the jobs' plans ask for: of each task the first documents that show a picture."""
    checks: list[ImageCheck] = []
    done = Counter[str]()
    for job in jobs:
        task = job.definition.task
        if done[task] >= job.request.plan.image_check:
            continue
        key, baseline = next(iter(job.draws.items()))  # `SamplingPlan.draws`: baseline first
        peers = (o for o in jobs if o.definition.task == task and o.request.key != job.request.key)
        peer = next((o for o in peers if o.request.group is None or o.request.group != job.request.group), None)
        if peer is None or not job.request.load_images(baseline.row_of_data()):
            continue
        pictures = {"blank": blank_images(job.request), "other": _images_of(peer)}
        draws = {}
        for kind in _PICTURES:
            request = replace(job.request, key=f"{job.request.key}/{kind}", load_images=pictures[kind])
            draw = replace(baseline, request=request)
            draws[kind] = (job.definition.key(request.key, request.question, draw.draw), draw)
        checks.append(ImageCheck(job, key, draws))
        done[task] += 1
    return checks


def summary(checks: Sequence[ImageCheck], task: str) -> dict[str, int]:
    """Count the documents of a task that were checked with each picture, and the answers that stayed the same.

    Two answers are the same if they are but for case, punctuation and blanks.
    """
    counts: dict[str, int] = {}
    for kind in _PICTURES:
        pairs = [
            (check.job.store.get(check.baseline), check.job.store.get(check.draws[kind][0]))
            for check in checks
            if check.job.definition.task == task
        ]
        answered = [(a, b) for a, b in pairs if a is not None and b is not None]
        counts |= {kind: len(answered), f"{kind}_same": sum(_plain_text(a) == _plain_text(b) for a, b in answered)}
    return counts


def blank_images(request: SampleRequest) -> Callable[[Mapping[str, Any]], list[Any]]:
    """Return a function in place of `request.load_images` that gives grey pictures of the same number and sizes."""
    return lambda document: [Image.new("RGB", image.size, GREY) for image in request.load_images(document)]


def _images_of(job: Job) -> Callable[[Mapping[str, Any]], list[Any]]:
    fetch = next(iter(job.draws.values())).document
    return lambda document: job.request.load_images(fetch())


def _plain_text(answer: Answer) -> str:
    return " ".join("".join(c if c.isalnum() else " " for c in answer.text.casefold()).split())
