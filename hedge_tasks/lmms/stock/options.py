"""Options of a stock task: who judges, which column is what, and how it is sampled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self

import yaml
from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from hedge_tasks.errors import ConfigError, unknown
from hedge_tasks.io.records import Name, Objects, Settings
from hedge_tasks.sampling.plan import SamplingPlan

NONE = "none"

_PLAN = tuple(SamplingPlan.model_fields)


_written = BeforeValidator(lambda value: yaml.safe_load(value) if isinstance(value, str) else value)


class StockOptions(Settings):
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

    model_config = ConfigDict(validate_by_name=False)

    judge: Name | None = None
    record_key: Name | None = Field(default=None, alias="field")
    filter: Name | None = None
    at_least: Annotated[float, _written] | None = None
    at_most: Annotated[float, _written] | None = None
    question_type: Name | None = None
    group: Name | None = None
    id: Name | None = None
    model: Name | None = Field(default=None, alias="as")
    stability: Annotated[bool, _written] = True
    plan: Objects[Annotated[Any, _written]] = Field(default_factory=dict)

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any], where: str) -> StockOptions:
        """Check and build.

        Args:
            values: as YAML reads them, or texts from a name.
            where: put in front of errors.

        Raises:
            ConfigError: an option is unknown (names the nearest one) or makes no sense.
        """
        own = {key: value for key, value in values.items() if key not in _PLAN}
        names = [field.alias or name for name, field in cls.model_fields.items() if name != "plan"]
        for key in own:
            if key not in names:
                raise unknown(f"option of {where}", key, [*names, *_PLAN])
        return cls.read({**own, "plan": {key: value for key, value in values.items() if key in _PLAN}}, where)

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        SamplingPlan.from_generation_kwargs(self.plan)
        if self.at_least is not None and self.at_most is not None:
            raise ConfigError("give at_least or at_most, not both")
        for key, value in (("at_least", self.at_least), ("at_most", self.at_most), ("field", self.record_key)):
            if value is not None and self.judge in (None, NONE):
                raise ConfigError(f"{key} needs judge=METRIC beside it")
        return self

    @property
    def threshold(self) -> str:
        """The rule in words, empty where the metric is 0 or 1."""
        if self.at_least is not None:
            return f"at least {self.at_least:g}"
        return "" if self.at_most is None else f"at most {self.at_most:g}"
