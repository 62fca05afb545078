"""What defines an answer, and that stores of earlier versions keep their answers."""

from __future__ import annotations

import json

import pytest

from hedge_tasks.errors import DataError
from hedge_tasks.sampling import SamplingPlan
from hedge_tasks.sampling.definition import Definition
from hedge_tasks.sampling.prompts import Prompt

PROMPT = Prompt("test/p", "<image>{question}", "sys")

# Keys as stores hold them. If one changes, no stored answer is found again: that must be meant.
KEYS = {
    SamplingPlan(n=1): [
        "0084851cc3d2b7c6d13437bc77646c4a5345c595",
        "21b6cbeff29ad57b58db7136bb7795cde7f8600c",
        "06e6683e672b80ed208316683d6c5a41a2861c74",
    ],
    SamplingPlan(n=1, perturbation="vase", strength=0.5, top_p=0.9, until=("\n",), seed=3): [
        "e0371c8f5cbec2df1740d111a5491d5f926c72b4",
        "87d5722ab958e1211e287fdedadf0f6bb2d20297",
        "241424838cf128c4fae4a46cb8e9066fd9b79d60",
    ],
}


@pytest.mark.parametrize("plan", KEYS)
def test_keys_stay(plan: SamplingPlan) -> None:
    definition = Definition.of("own", "task", PROMPT, plan)
    assert [definition.key("key0", "is it normal?", draw) for draw in plan.draws("key0")] == KEYS[plan]


@pytest.mark.parametrize("plan", KEYS)
def test_a_definition_read_from_disk_gives_the_same_draws_and_keys(plan: SamplingPlan) -> None:
    definition = Definition.of("own", "task", PROMPT, plan, "0.1")
    again = Definition.read(json.loads(json.dumps(definition.model_dump())))
    draws = again.plan(1, 1).draws("key0")
    assert draws == plan.draws("key0")
    assert [again.key("key0", "is it normal?", draw) for draw in draws] == KEYS[plan]
    assert again.id == definition.id


def test_neither_the_number_of_answers_nor_the_package_version_makes_another_definition() -> None:
    one = Definition.of("own", "task", PROMPT, SamplingPlan(n=3), "0.1")
    assert one.id == Definition.of("own", "task", PROMPT, SamplingPlan(n=30, n_noisy=0), "0.2").id


@pytest.mark.parametrize("change", [{"temperature": 0.9}, {"strength": 0.5}, {"seed": 1}, {"max_new_tokens": 9}])
def test_what_shapes_an_answer_makes_another_definition(change: dict[str, float]) -> None:
    one = Definition.of("own", "task", PROMPT, SamplingPlan())
    assert one.id != Definition.of("own", "task", PROMPT, SamplingPlan(**change)).id


WHOLE = Definition.of("m", "t", PROMPT, SamplingPlan(), "1").model_dump()


@pytest.mark.parametrize(
    "fields",
    [
        *(None, [], {}, {"model": "m", "task": "t", "prompt": {}, "sampling": {}}, {"model": 1, "sampling": {"x": 1}}),
        *({**WHOLE, "sampling": 5}, {**WHOLE, "prompt": {"user": 5}}, {**WHOLE, "extra": 1}),
        *({**WHOLE, "sampling": {**WHOLE["sampling"], name: "x"}} for name in ("perturbation", "temperature")),
    ],
)
def test_what_is_no_definition_is_refused(fields: object) -> None:
    with pytest.raises(DataError, match=r"^here: "):
        Definition.read(fields, "here")
    assert Definition.read(WHOLE).model_dump() == WHOLE
