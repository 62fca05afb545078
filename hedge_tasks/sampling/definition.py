"""What defines an answer: the model, the task's prompt and the sampling, and with a document and a draw its key."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from hedge_tasks.data.answers import Draw
from hedge_tasks.errors import DataError
from hedge_tasks.sampling.plan import NOT_OF_THE_ANSWER, SamplingPlan
from hedge_tasks.sampling.prompts import Prompt

FORMAT = 2
"""Part of every key: raise it when the same definition would no longer give the same answer."""


_SAMPLING = frozenset({"temperature", "baseline_temperature", "seed", "perturbation"})
"""Settings of a plan that every definition has."""


def draw_key(definition: Mapping[str, Any]) -> str:
    """Hash of a draw's definition (anything JSON can hold), independent of the order of its fields."""
    return _hash({"format": FORMAT, **definition})


@dataclass(frozen=True)
class Definition:
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
    prompt: Mapping[str, Any]
    sampling: Mapping[str, Any]
    version: str = ""

    @classmethod
    def of(cls, model: str | None, task: str, prompt: Prompt, plan: SamplingPlan, version: str = "") -> Definition:
        sampling = {key: value for key, value in plan.settings().items() if key not in NOT_OF_THE_ANSWER}
        return cls(model, task, asdict(prompt), sampling, version)

    @classmethod
    def from_dict(cls, fields: object, where: str = "definition") -> Definition:
        """Check and build. Raises DataError that names `where`."""
        try:
            assert isinstance(fields, Mapping)
            definition = cls(**fields)
            definition._check()
        except (AssertionError, AttributeError, TypeError, KeyError, ValueError) as error:
            reason = f" ({error})" if str(error) else ""
            raise DataError(f"{where}: this is no definition of answers{reason}") from error
        return definition

    def _check(self) -> None:
        texts = (self.task, self.version, self.prompt["user"], self.prompt.get("name", ""))
        if not all(isinstance(text, str) for text in texts) or not isinstance(self.model, (str, type(None))):
            raise TypeError("model, task, prompt and version are texts")
        if not isinstance(self.sampling, Mapping):
            raise TypeError("sampling is no object")
        if missing := _SAMPLING - self.sampling.keys():
            raise ValueError(f"its sampling lacks {', '.join(sorted(missing))}")
        if not isinstance(self.sampling["perturbation"], Mapping):
            raise TypeError("its perturbation is no object")
        self.plan(1, 1).draws("")

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @cached_property
    def id(self) -> str:
        """Twelve hexadecimal digits that stand for the definition, whichever version of this package wrote it."""
        return _hash({**self.to_dict(), "version": None})[:12]

    def plan(self, n: int, n_noisy: int) -> SamplingPlan:
        """The plan with these numbers of answers."""
        return SamplingPlan.from_generation_kwargs({**self.sampling, "n": n, "n_noisy": n_noisy})

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
        """Key of one draw for the document with this content key (`hedge_tasks.data.splits.document_keys`)."""
        shared = self._shared
        noise = shared["noise"] if draw.condition == "noisy" else None
        # Only the baseline answer is another record with its tokens; its draws stay what they are.
        kept = self.sampling.get("alternatives") if draw.condition == "baseline" else None
        tokens = {} if kept is None else {"alternatives": kept}
        about = {**shared, **tokens, "noise": noise, "document": document, "question": question}
        return draw_key({**about, "draw": asdict(draw)})

    def forced_key(self, document: str, question: str, about: Mapping[str, str], prompt: Prompt | None) -> str:
        """Key of a forced pass (`hedge_tasks.sampling.forced`).

        Args:
            about: name of the pass, the baseline answer, and the words that are forced.
            prompt: where it is another one than the definition's.
        """
        shared = {**self._shared, "noise": None}
        if prompt is not None:
            shared["prompt"] = {"system": prompt.system, "user": prompt.user}
        return draw_key({**shared, "document": document, "question": question, "forced": about})


def _hash(fields: Mapping[str, Any]) -> str:
    canonical = json.dumps(fields, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:40]
