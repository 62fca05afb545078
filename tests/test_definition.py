"""What defines an answer, and that stores of earlier versions keep their answers."""

from __future__ import annotations

import json

import pytest

from hedge_tasks.errors import DataError
from hedge_tasks.sampling import SamplingPlan
from hedge_tasks.sampling.definition import Definition
from hedge_tasks.sampling.prompts import Prompt

PROMPT = Prompt("test/p", "<image>{question}", "sys")

# Keys that the first version of the store wrote. If one changes, every answer that users have is lost: raise FORMAT.
KEYS = {
    SamplingPlan(n=1): [
        "ed22b954d6cd5f1f155b44daf2d345cf6b7efd83",
        "cfe60daf29baa8504a7b5107950534ac6a29e2c1",
        "1217480b346a6e6b5fff165e36debfe98e560ebd",
    ],
    SamplingPlan(n=1, perturbation="vase", strength=0.5, top_p=0.9, until=("\n",), seed=3): [
        "8405239f70a777d289f544e396f556a20d271173",
        "9ca932c3b34aab3f2f2b7c26b1556a6379eb1f0c",
        "56cb73d5dd5800ea3c7c4d51a14119f1431c8734",
    ],
}


@pytest.mark.parametrize("plan", KEYS)
def test_keys_are_those_of_earlier_stores(plan: SamplingPlan) -> None:
    definition = Definition.of("own", "task", PROMPT, plan)
    assert [definition.key("key0", "is it normal?", draw) for draw in plan.draws("key0")] == KEYS[plan]


@pytest.mark.parametrize("plan", KEYS)
def test_a_definition_read_from_disk_gives_the_same_draws_and_keys(plan: SamplingPlan) -> None:
    definition = Definition.of("own", "task", PROMPT, plan, "0.1")
    again = Definition.from_dict(json.loads(json.dumps(definition.to_dict())))
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


@pytest.mark.parametrize(
    "fields",
    [None, [], {}, {"model": "m", "task": "t", "prompt": {}, "sampling": {}}, {"model": 1, "sampling": {"x": 1}}],
)
def test_what_is_no_definition_is_refused(fields: object) -> None:
    with pytest.raises(DataError, match=r"here: this is no definition"):
        Definition.from_dict(fields, "here")
