"""A model reads what the rules cannot, or read only softly: asked only where a reply says something, and counted apart.

Nobody asks it about refusals, empty replies, unfinished thoughts and replies that were cut off, which are no answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hedge_tasks.errors import ConfigError
from hedge_tasks.judging.base import Case, Judge, build_judge
from hedge_tasks.judging.config import Spec, parse_spec
from hedge_tasks.replies.reading import (
    CONTRADICTION,
    DISAGREED,
    DOUBT,
    MODEL,
    NOTHING,
    UNCONFIRMED,
    Reading,
    unreadable,
)

_ASKED = (NOTHING, CONTRADICTION, DOUBT)
_MARK = "READ_"
"""In front of every outcome of the prompts: no sentence begins with it, as "Yes, it says no." does with "yes"."""

_NONE = "none"


class Fallback:
    """One judge model with a prompt for each kind of reply.

    Args:
        spec: a judge that asks a model (`llm:model=...` or `hf:model=...`), without a prompt.
        prompts: names of the prompts; their outcomes are the answers and "none".

    Raises:
        ConfigError: the specification names several judges, a prompt, or one that asks no model.
    """

    def __init__(self, spec: Spec, prompts: Sequence[str]) -> None:
        settings = parse_spec(spec)
        if len(settings) != 1:
            raise ConfigError("fallback: expected one judge, got several")
        options = dict(settings[0])
        name = options.pop("name")
        if "prompt" in options:
            raise ConfigError("fallback: 'prompt' does not belong here, the kind of reply decides which it is")
        if name not in ("llm", "hf"):
            raise ConfigError(f"fallback: judge {name!r} asks no model; llm and hf do")
        self._judges: Mapping[str, Judge] = {p: build_judge(name, **options, prompt=p) for p in prompts}

    def settings(self) -> dict[str, Any]:
        return {prompt: judge.settings() for prompt, judge in self._judges.items()}

    @property
    def parts(self) -> list[Judge]:
        return list(self._judges.values())

    def read(self, replies: Sequence[tuple[Case, Reading, str]], named: Callable[[str], str] = str) -> list[Reading]:
        """Readings in place of those that the rules gave.

        Args:
            replies: for every reply its case, what the rules read, and the prompt for its kind.
            named: the rules' name for what the model says, such as "factual" for "0".

        Returns:
            What the model reads, on the basis `MODEL`, where the rules read nothing and the reply says something, or
            where they read the same softly; a soft reading that the model does not confirm is none. The rules' reading
            everywhere else, and where both read nothing.
        """
        readings = [reading for _, reading, _ in replies]
        for prompt, judge in self._judges.items():
            places = [
                i for i, (_, read, its) in enumerate(replies) if its == prompt and (read.soft or read.basis in _ASKED)
            ]
            # The reference must not help the model to a reading.
            cases = [replace(replies[i][0], reference="", images=None) for i in places]
            for i, verdict in zip(places, judge.judge(cases) if cases else [], strict=True):
                readings[i] = _second(readings[i], verdict.category, named)
        return readings


def _second(first: Reading, category: str | None, named: Callable[[str], str]) -> Reading:
    """The reading after a second one."""
    outcome = category.removeprefix(_MARK) if category is not None and category.startswith(_MARK) else _NONE
    value = named(outcome if len(outcome) == 1 else outcome.lower()) if outcome.lower() != _NONE else None
    if value is None:
        return unreadable(UNCONFIRMED) if first.soft else first
    return unreadable(DISAGREED) if first.soft and value != first.value else Reading(value, MODEL)
