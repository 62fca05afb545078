"""A model reads what the rules cannot, or read only softly: asked only where a reply says something, and counted apart.

By default it is the model that replied, where it tells how likely it finds each offered answer behind its own reply; in
its place a judge model may be named. Nobody asks about refusals, empty replies, unfinished thoughts and replies that
were cut off, which are no answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hedge_tasks.data.answers import READ, Answer, option_logprobs
from hedge_tasks.errors import ConfigError
from hedge_tasks.judging.base import Case, Judge, build_judge
from hedge_tasks.judging.config import Spec, parse_spec
from hedge_tasks.replies.reading import DISAGREED, DOUBT, ITSELF, MODEL, UNCONFIRMED, UNSETTLED, Reading, unreadable

SURE, HEARD = 0.8, 0.5
"""Where a model's reading of its own reply counts: the least share that it has of all offered readings, and the least
probability that these have together; below either the model leaves its reply open."""

_MARK = "READ_"
"""In front of every outcome of the prompts: no sentence begins with it, as "Yes, it says no." does with "yes"."""


class Fallback:
    """One judge model with a prompt for each kind of reply; or, without a specification, the model that replied.

    Args:
        spec: a judge that asks a model (`llm:model=...` or `hf:model=...`), without a prompt; None for none.
        prompts: names of the prompts; their outcomes are the answers and "none".

    Raises:
        ConfigError: the specification names several judges, a prompt, or one that asks no model.
    """

    def __init__(self, spec: Spec | None, prompts: Sequence[str]) -> None:
        named = [] if spec is None else parse_spec(spec)
        if len(named) > 1 or any("prompt" in judge or judge["name"] not in ("llm", "hf") for judge in named):
            raise ConfigError(f"fallback: expected one judge that asks a model (llm, hf), without prompt, got {spec!r}")
        self._judges: Mapping[str, Judge] = {p: build_judge(**judge, prompt=p) for judge in named for p in prompts}

    def settings(self) -> dict[str, Any]:
        """As part of the settings of the judge that it belongs to."""
        return {"fallback": {p: judge.settings() for p, judge in self._judges.items()}} if self._judges else {}

    @property
    def parts(self) -> list[Judge]:
        return list(self._judges.values())

    def read(self, replies: Sequence[tuple[Case, Reading, str]], named: Callable[[str], str] = str) -> list[Reading]:
        """Readings in place of those that the rules gave.

        Args:
            replies: for every reply its case, what the rules read, and the prompt for its kind.
            named: the rules' name for what the model says, such as "factual" for "0".

        Returns:
            What a judge model reads, on the basis `MODEL`, where the rules read nothing and the reply says something,
            or where they read the same softly; a soft reading that it does not confirm is none. Without a judge model
            what the model itself is sure of, on the basis `ITSELF`, where the rules leave it open. The rules' reading
            everywhere else, and where nobody read more.
        """
        if not self._judges:
            return [
                read if case.own is None or read.basis not in UNSETTLED else Reading(_named(case.own, named), ITSELF)
                for case, read, _ in replies
            ]
        readings = [reading for _, reading, _ in replies]
        for prompt, judge in self._judges.items():
            places = [
                i for i, (_, read, its) in enumerate(replies) if its == prompt and read.basis in UNSETTLED | {DOUBT}
            ]
            # The reference must not help the model to a reading.
            cases = [replace(replies[i][0], reference="", images=None) for i in places]
            for i, verdict in zip(places, judge.judge(cases) if cases else [], strict=True):
                readings[i] = _second(readings[i], verdict.category, named)
        return readings


def own_reading(forced: Mapping[str, Answer]) -> str | None:
    """The offered answer that a model takes its own reply for; None where it was not asked, or is not sure.

    It is sure where one offered answer has at least `SURE` of what they all have together, and that is at least
    `HEARD`: a model that would say something else leaves its reply open, however the rest is divided.

    Args:
        forced: passes about the reply, by name; see `hedge_tasks.sampling.forced`.

    Example:
        >>> own_reading({f"{READ}{text}": Answer(text, math.log(p), 1) for text, p in (("Yes", 0.5), ("No", 0.1))})
        'Yes'
    """
    logprobs = option_logprobs(forced, READ)
    total = sum(map(math.exp, logprobs.values()))
    sure = [option for option, value in logprobs.items() if math.exp(value) >= SURE * total]
    return sure[0] if len(logprobs) > 1 and total >= HEARD and sure else None


def _named(outcome: str, named: Callable[[str], str]) -> str:
    return named(outcome if len(outcome) == 1 else outcome.lower())


def _second(first: Reading, category: str | None, named: Callable[[str], str]) -> Reading:
    """The reading after a judge model's."""
    _, _, outcome = (category or "").partition(_MARK)
    if outcome.lower() in ("", "none"):
        return unreadable(UNCONFIRMED) if first.soft else first
    value = _named(outcome, named)
    return unreadable(DISAGREED) if first.soft and value != first.value else Reading(value, MODEL)
