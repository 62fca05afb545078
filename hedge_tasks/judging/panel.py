"""Several judges: the majority decides, and every vote stays visible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from loguru import logger

from hedge_tasks.errors import ConfigError
from hedge_tasks.judging.base import Case, Judge, Verdict
from hedge_tasks.judging.config import judge_from, parse_spec
from hedge_tasks.judging.reply_judge import reads_replies

_Value = TypeVar("_Value", bound=Hashable)

FEWEST_TEXTS = 10
"""Different replies of a judge by which it is known again: two that only ever say "1" or "0" are two."""


class Panel:
    """Judges that vote. A label needs more than half of the votes that are cast; otherwise there is none.

    A judge that cannot tell casts no vote. Judges that write the same about every case, word for word, are one server
    under several names: one judge with one vote, which bears all of them ("llm:a = llm:b").

    Args:
        judges: built ones, or specifications as `judge_from` takes them; at least two.

    Raises:
        ConfigError: a value makes no sense, or the same judge is there twice.
    """

    name = "panel"
    version = "1"

    def __init__(self, judges: Sequence[Any]) -> None:
        entries = judges if isinstance(judges, (list, tuple)) else [judges]
        built = ([entry] if isinstance(entry, Judge) else map(judge_from, parse_spec(entry)) for entry in entries)
        self.judges = [judge for part in built for judge in part]
        if len(self.judges) < 2:
            raise ConfigError("judge 'panel': at least two judges are needed")
        settings = self.settings()["judges"]
        if any(settings.count(member) > 1 for member in settings):
            raise ConfigError("judge 'panel': the same judge is there twice")

    def settings(self) -> dict[str, Any]:
        return {"judge": self.name, "version": self.version, "judges": [judge.settings() for judge in self.judges]}

    @property
    def parts(self) -> Sequence[Judge]:
        return self.judges

    def judge(self, cases: Sequence[Case]) -> list[Verdict]:
        """Majority verdicts; `votes` has those of the judges, in their order."""
        alike: dict[Hashable, list[Sequence[Verdict]]] = {}
        for judge in self.judges:
            votes = judge.judge(cases)
            replies = tuple((vote.raw, vote.label) for vote in votes)
            is_known = len({raw for raw, _ in replies} - {None}) >= FEWEST_TEXTS and not reads_replies(judge.settings())
            alike.setdefault(replies if is_known else id(judge), []).append(votes)
        return [self._count(votes) for votes in zip(*map(_as_one_judge, alike.values()), strict=True)]

    def _count(self, votes: tuple[Verdict, ...]) -> Verdict:
        cast = [vote.label for vote in votes if vote.label is not None]
        label = majority(cast)
        # The kind of hallucination is a matter for those who found one, and likewise the reason.
        kinds = [vote.category for vote in votes if vote.label == label and vote.category is not None]
        reason = f"{sum(cast)} hallucinated, {cast.count(0)} supported, {len(votes) - len(cast)} without a label"
        return Verdict(label, reason, self.name, self.version, category=majority(kinds), votes=votes)


def majority(values: Sequence[_Value]) -> _Value | None:
    """The value that more than half of them have, or None.

    Example:
        >>> majority([1, 0, 1]), majority([1, 0]), majority([])
        (1, None, None)
    """
    return next((value for value, n in Counter(values).items() if 2 * n > len(values)), None)


def _as_one_judge(members: Sequence[Sequence[Verdict]]) -> Sequence[Verdict]:
    """The votes of judges that all say the same, as those of one of them under all their names."""
    if len(members) == 1:
        return members[0]
    names = " = ".join(votes[0].judge for votes in members)
    logger.warning("{} say the same of every case, word for word: one judge, whose votes count once", names)
    return [replace(vote, judge=names) for vote in members[0]]
