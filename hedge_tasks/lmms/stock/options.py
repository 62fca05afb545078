"""What may be said about a stock task: who judges, which column is what, and how it is sampled."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import yaml

from hedge_tasks.errors import ConfigError, unknown
from hedge_tasks.sampling.plan import SamplingPlan

NONE = "none"

_PLAN = tuple(f.name for f in fields(SamplingPlan))


@dataclass(frozen=True)
class StockOptions:
    """The options behind `hedge:TASK:`, and the keys of `hedge_ize` besides `task`.

    Attributes:
        judge: metric of the task that says which answers are right; None takes the first that is 0 or 1; "none" labels
            nothing. Naming one also allows a task that asks a language model to judge.
        record_key: key of that metric's records that holds the number (`field=`); None takes the usual ones.
        filter: the task's filter after which answers are judged; None takes its first.
        at_least, at_most: from where, or up to where, on a graded metric means right.
        question_type: column with the kind of question; None looks for one, "none" takes none.
        group: column that says which documents belong together; None takes their pictures.
        id: column with the document's id; None looks for a unique one, "none" takes the row.
        model: name by which the task's model-specific prompts and limits are looked up (`as=`); None takes `--model`.
        stability: whether lmms-eval's numbers of repeated answers are computed from the clean draws.
        plan: settings of `SamplingPlan`.
    """

    judge: str | None = None
    record_key: str | None = None
    filter: str | None = None
    at_least: float | None = None
    at_most: float | None = None
    question_type: str | None = None
    group: str | None = None
    id: str | None = None
    model: str | None = None
    stability: bool = True
    plan: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any], where: str) -> StockOptions:
        """Check and build.

        Args:
            given: values as YAML reads them, or texts from a name.
            where: put in front of errors.

        Raises:
            ConfigError: an option is unknown (names the nearest one) or makes no sense.
        """
        own: dict[str, Any] = {}
        plan: dict[str, Any] = {}
        for key, value in given.items():
            if key in _PLAN:
                plan[key] = _read(value)
            elif key in _NUMBERS:
                own[key] = _number(f"{where}: {key}", _read(value))
            elif key == "stability":
                own[key] = _flag(f"{where}: {key}", _read(value))
            elif key in _TEXTS:
                own[_TEXTS[key]] = _text(f"{where}: {key}", value)
            else:
                raise unknown(f"option of {where}", key, [*_TEXTS, *_NUMBERS, "stability", *_PLAN])
        options = cls(**own, plan=plan)
        options._check(where)
        return options

    def _check(self, where: str) -> None:
        SamplingPlan.from_generation_kwargs(self.plan)
        if self.at_least is not None and self.at_most is not None:
            raise ConfigError(f"{where}: give at_least or at_most, not both")
        for key, attribute in (("at_least", "at_least"), ("at_most", "at_most"), ("field", "record_key")):
            if getattr(self, attribute) is not None and self.judge in (None, NONE):
                raise ConfigError(f"{where}: {key} needs judge=METRIC beside it")

    @property
    def threshold(self) -> str:
        """The rule in words, empty where the metric is 0 or 1."""
        if self.at_least is not None:
            return f"at least {self.at_least:g}"
        return "" if self.at_most is None else f"at most {self.at_most:g}"


_TEXTS = {
    "judge": "judge",
    "field": "record_key",
    "filter": "filter",
    "question_type": "question_type",
    "group": "group",
    "id": "id",
    "as": "model",
}
_NUMBERS = ("at_least", "at_most")


def _read(value: Any) -> Any:
    return yaml.safe_load(value) if isinstance(value, str) else value


def _number(what: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ConfigError(f"{what}: expected a number, got {value!r}")
    return float(value)


def _flag(what: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(f"{what}: expected true or false, got {value!r}")
    return value


def _text(what: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{what}: expected a name, got {value!r}")
    return value
