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
        "a4d13aca22c91d87fd989a759b20dec11737e4ca",
        "b87f87dfbe2f38c38a2afe1bc7318e653c1dfcb7",
        "3deb7115e802678fcfcecb59ab6e77c2fbf97051",
    ],
    SamplingPlan(n=1, perturbation="vase", strength=0.5, top_p=0.9, until=("\n",), seed=3): [
        "119ea2f5805b02db3c76489667702de9ddd43103",
        "e367b09cf8053e471e8bc4b86cb36bac2dd59d32",
        "9896e6563b085383a232090c3107d8640bf80d1a",
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


@pytest.mark.parametrize(
    "fields",
    [None, [], {}, {"model": "m", "task": "t", "prompt": {}, "sampling": {}}, {"model": 1, "sampling": {"x": 1}}],
)
def test_what_is_no_definition_is_refused(fields: object) -> None:
    with pytest.raises(DataError, match=r"^here: "):
        Definition.read(fields, "here")
