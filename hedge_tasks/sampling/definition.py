"""The definition of an answer: the model, the prompt and the sampling, and with a document and a draw its key."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from functools import cached_property
from typing import Any, Self

from pydantic import model_validator

from hedge_tasks.data.answers import Draw
from hedge_tasks.io.records import Objects, Record
from hedge_tasks.sampling.plan import NOT_OF_THE_ANSWER, SamplingPlan
from hedge_tasks.sampling.prompts import Prompt

FORMAT = 2
"""Part of every key: raise it when the same definition would no longer give the same answer."""

_OF_DRAW = tuple(field.name for field in fields(Draw))

_SAMPLING = ("temperature", "baseline_temperature", "seed", "perturbation")
"""Settings of a plan that every definition has."""


def draw_key(definition: Mapping[str, Any]) -> str:
    """Hash of a draw's definition (anything JSON can hold), independent of the order of its fields."""
    return _hash({"format": FORMAT, **definition})


class Definition(Record):
    """All that a task's answers have in common, whatever their number. Holds no secrets.

    Attributes:
        model: what identifies the model, or None: then nobody can tell whose answers they are, and none are kept.
        task: name of the task.
        prompt: name, system and user text.
        sampling: settings of `SamplingPlan` but for the numbers of answers.
        version: version of this package that made the first answers; not part of any key.
    """

    model: str | None
    task: str
    prompt: Objects[str | None]
    sampling: Objects[Any]
    version: str = ""

    @classmethod
    def of(cls, model: str | None, task: str, prompt: Prompt, plan: SamplingPlan, version: str = "") -> Definition:
        sampling = {key: value for key, value in plan.settings().items() if key not in NOT_OF_THE_ANSWER}
        return cls(model=model, task=task, prompt=asdict(prompt), sampling=sampling, version=version)

    @model_validator(mode="after")
    def _makes_draws(self) -> Self:
        if self.prompt.get("user") is None:
            raise ValueError("prompt.user: missing")
        if missing := [name for name in _SAMPLING if name not in self.sampling]:
            raise ValueError(f"sampling.{missing[0]}: missing")
        self.plan(1, 1).draws("")
        return self

    @cached_property
    def id(self) -> str:
        """Twelve hexadecimal digits that stand for the definition, whichever version of this package wrote it."""
        return _hash({**self.model_dump(), "version": None})[:12]

    def plan(self, n: int, n_noisy: int) -> SamplingPlan:
        """The plan with these numbers of answers."""
        if (n, n_noisy) not in self._plans:
            kwargs = {**self.sampling, "n": n, "n_noisy": n_noisy}
            self._plans[n, n_noisy] = SamplingPlan.from_generation_kwargs(kwargs)
        return self._plans[n, n_noisy]

    @cached_property
    def _plans(self) -> dict[tuple[int, int], SamplingPlan]:
        return {}

    @cached_property
    def _shared(self) -> dict[str, Any]:
        """The part of a key that all draws have in common."""
        plan = self.plan(1, 0)
        size = {} if plan.max_image_side is None else {"max_image_side": plan.max_image_side}
        return {
            **size,
            "model": self.model,
            "prompt": {"system": self.prompt.get("system"), "user": self.prompt["user"]},
            "noise": plan.noise.settings(),
            "limits": plan.limits(),
        }

    def key(self, document: str, question: str, draw: Draw) -> str:
        """Key of one draw for the document with this content key (`hedge_tasks.data.splits.DocumentContents`)."""
        shared = self._shared
        noise = shared["noise"] if draw.condition == "noisy" else None
        # Only the baseline answer is another record with its tokens; its draws stay what they are.
        n_alternatives = self.sampling.get("alternatives") if draw.condition == "baseline" else None
        tokens = {} if n_alternatives is None else {"alternatives": n_alternatives}
        side = self.sampling.get("perturb_at") if draw.condition == "noisy" else None
        perturbed = {} if side is None else {"perturb_at": side}
        fields = {**shared, **tokens, **perturbed, "noise": noise, "document": document, "question": question}
        return draw_key({**fields, "draw": {name: getattr(draw, name) for name in _OF_DRAW}})

    def forced_key(self, document: str, question: str, pass_fields: Mapping[str, str], prompt: Prompt | None) -> str:
        """Key of a forced pass (`hedge_tasks.sampling.forced`).

        Args:
            pass_fields: name of the pass, the baseline answer, and the words that are forced.
            prompt: where it is another one than the definition's.
        """
        shared = {**self._shared, "noise": None}
        if prompt is not None:
            shared["prompt"] = {"system": prompt.system, "user": prompt.user}
        return draw_key({**shared, "document": document, "question": question, "forced": pass_fields})


def _hash(record: Mapping[str, Any]) -> str:
    canonical = json.dumps(record, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:40]
