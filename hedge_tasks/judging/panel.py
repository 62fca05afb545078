"""Several judges: the majority decides, and every vote stays visible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypeVar

from hedge_tasks.errors import ConfigError
from hedge_tasks.judging.base import Case, Judge, Verdict
from hedge_tasks.judging.config import judge_from, parse_spec

_Value = TypeVar("_Value", bound=Hashable)


class Panel:
    """Judges that vote. A label needs more than half of the votes that are cast; otherwise there is none.

    A judge that cannot tell casts no vote.

    Args:
        judges: built ones, or specifications as `judge_from` takes them; at least two.

    Raises:
        ConfigError: a value makes no sense, or the same judge is there twice.
    """

    name = "panel"
    version = "1"

    def __init__(self, judges: Sequence[Any]) -> None:
        self.judges = [built for entry in _as_list(judges) for built in _build(entry)]
        if len(self.judges) < 2:
            raise ConfigError("judge 'panel': at least two judges are needed")
        settings = self.settings()["judges"]
        if any(own_settings in settings[:i] for i, own_settings in enumerate(settings)):
            raise ConfigError("judge 'panel': the same judge is there twice")

    def settings(self) -> dict[str, Any]:
        members = [judge.settings() for judge in self.judges]
        return {"judge": self.name, "version": self.version, "judges": members}

    @property
    def parts(self) -> Sequence[Judge]:
        return self.judges

    def judge(self, cases: Sequence[Case]) -> list[Verdict]:
        """Majority verdicts; `votes` has those of the judges, in their order."""
        ballots = zip(*(judge.judge(cases) for judge in self.judges), strict=True)
        return [self._count(votes) for votes in ballots] if cases else []

    def _count(self, votes: tuple[Verdict, ...]) -> Verdict:
        cast = [vote.label for vote in votes if vote.label is not None]
        label = majority(cast)
        # The kind of hallucination is a matter for those who found one, and likewise the reason.
        agreeing = [vote for vote in votes if vote.label == label and not vote.undecided]
        category = majority([vote.category for vote in agreeing if vote.category is not None])
        tally = Counter(cast)
        reason = f"{tally[1]} hallucinated, {tally[0]} supported, {len(votes) - len(cast)} without a label"
        return Verdict(label, reason, self.name, self.version, category=category, votes=votes)


def majority(values: Sequence[_Value]) -> _Value | None:
    """The value that more than half of them have, or None.

    Example:
        >>> majority([1, 0, 1]), majority([1, 0]), majority([])
        (1, None, None)
    """
    if not values:
        return None
    value, most = Counter(values).most_common(1)[0]
    return value if 2 * most > len(values) else None


def _as_list(judges: Any) -> list[Any]:
    if isinstance(judges, (str, Mapping)) or not isinstance(judges, Sequence):
        raise ConfigError(f"judge 'panel': 'judges' is a list, got {judges!r}")
    return list(judges)


def _build(entry: Any) -> list[Judge]:
    if isinstance(entry, (str, Mapping, Sequence)):
        return [judge_from(settings) for settings in parse_spec(entry)]
    return [entry]
