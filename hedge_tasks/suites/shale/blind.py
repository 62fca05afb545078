"""The second stage of SHALE's multimodal gain: the same question without its image."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.sampling.plan import SecondStage
from hedge_tasks.sampling.requests import SampleRequest


def without_image(request: SampleRequest, answers: AnswerSet, stage: SecondStage) -> list[SampleRequest]:
    """Return the question alone, with a key of its own: a key stands for what a document shows."""
    alone = hashlib.sha256(f"{request.key}\0blind".encode()).hexdigest()[:32]
    return [replace(request, key=alone, plan=stage.plan, load_images=_no_images, second_stage=None)]


def _no_images(document: Mapping[str, Any]) -> list[Any]:
    return []
