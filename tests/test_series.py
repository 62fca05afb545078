"""Clean draws in one request: the same seeds, and so the same answers, as one by one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai_server import Script, completion, error, serve
from test_hedge_openai import PICTURE, adapter, draws, sample

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.sampling.hook import generate_samples
from hedge_tasks.sampling.series import LONGEST, SEEDS, request_seed, series

pytestmark = pytest.mark.framework


def one(body: dict[str, Any], i: int = 0) -> dict[str, Any]:
    """The answer that a seed draws, which is another one at another temperature."""
    return completion(said := f"seed {body['seed'] + i} T {body['temperature']}", [(said, -0.5), ("</s>", -2.0)])


def vllm(body: dict[str, Any]) -> dict[str, Any]:
    """As vLLM: child i is drawn with the seed plus i."""
    choices = [{**one(body, i)["choices"][0], "index": i} for i in range(body.get("n", 1))]
    return {**one(body), "choices": choices[::-1]}


def without_n(body: dict[str, Any]) -> dict[str, Any]:
    return one(body)


def refusing_n(body: dict[str, Any]) -> Any:
    return error(400, "Unknown parameter: 'n'.") if "n" in body else one(body)


# --- which draws go together ------------------------------------------------------------------------------------------


@settings(max_examples=50)
@given(st.sets(st.integers(0, 90)), st.integers(1, 70), st.integers(0, 3))
def test_every_draw_is_in_one_group_and_has_its_own_seed_there(left: set[int], longest: int, noisy: int) -> None:
    every = draws(91, noisy=noisy)
    chosen = [draw for draw in every if draw.draw.condition != "clean" or draw.draw.index in left]
    groups = series(chosen, longest)
    assert sorted(i for group in groups for i in group) == list(range(len(chosen)))
    for group in groups:
        assert len(group) <= longest
        seeds = [request_seed(chosen[i]) for i in group]
        assert seeds == [seeds[0] + i for i in range(len(seeds))]
        assert 0 <= seeds[0] <= seeds[-1] < SEEDS
        assert len({(chosen[i].draw.condition, chosen[i].prompt_key) for i in group}) == 1
    assert len({request_seed(draw) for draw in every}) == len(every)
    if left == set(range(91)) and longest >= LONGEST:
        assert len(groups) == 1 + noisy + 2


# --- servers ----------------------------------------------------------------------------------------------------------


def answered(reply: Any, n: int = 5, **arguments: Any) -> tuple[list[Any], list[dict[str, Any]]]:
    script = Script(reply)
    listed = {"models": ["tiny"], "owner": arguments.pop("owner", "vllm")}
    with serve(script, **listed) as url:
        return sample(adapter(url, num_concurrent=1, **arguments), draws(n, noisy=2)), script.bodies


def test_one_request_for_all_clean_draws_where_the_server_is_vllm() -> None:
    answers, bodies = answered(vllm)
    assert [body.get("n") for body in bodies] == [None, 5, None, None]
    assert [answer.text for answer in answers] == [
        f"seed {request_seed(draw)} T {draw.draw.temperature}" for draw in draws(5, noisy=2)
    ]
    assert all((answer.mean_logprob, answer.end_logprob) == (-0.5, -2.0) for answer in answers)


@pytest.mark.parametrize(
    ("reply", "arguments", "expected"),
    [
        (vllm, {"draws_per_request": 1}, [None] * 8),
        (vllm, {"draws_per_request": 2}, [None, 2, 2, None, None, None]),
        (vllm, {"owner": "someone"}, [None] * 8),
        (without_n, {}, [None, 5, None, None, None, None, None, None]),
        (refusing_n, {}, [None, 5, *[None] * 7]),
    ],
    ids=["one", "two", "nobody knows", "ignores n", "refuses n"],
)
def test_the_same_answers_whatever_a_server_makes_of_n(reply: Any, arguments: dict[str, Any], expected: Any) -> None:
    answers, bodies = answered(reply, **arguments)
    assert answers == answered(vllm)[0]
    assert [body.get("n") for body in bodies] == expected


def test_what_is_missing_is_asked_for_with_its_own_seed(tmp_path: Path) -> None:
    def reply(body: dict[str, Any]) -> dict[str, Any]:
        whole = vllm(body)
        if body.get("n", 1) > 1:
            for choice in whole["choices"]:
                if choice["index"] in (1, 2, 4):
                    choice["message"] = {"role": "assistant", "content": None}
        return whole

    request = replace(draws(6)[0].request, store=tmp_path)
    rows = [SimpleNamespace(args=("text", {}, request, 0, "task", "test"))]
    script = Script(reply)
    with serve(script, models=["tiny"], owner="vllm") as url:
        model = adapter(url, num_concurrent=1)
        model.task_dict = {"task": {"test": [{"image": PICTURE}]}}
        [line] = generate_samples(model, rows)
        more = replace(request, plan=request.plan.replaced(n=9))
        rows = [SimpleNamespace(args=("text", {}, more, 0, "task", "test"))]
        [longer] = generate_samples(model, rows)
    # All; what was missing of them: 1 and 2 together, and 4; 2 once more. Then three more: of these 7 and 8; and 8.
    assert [body.get("n") for body in script.bodies] == [None, 6, 2, None, None, 3, 2, None]
    expected = [f"seed {request_seed(draw)} T {draw.draw.temperature}" for draw in draws(9)]
    assert [answer.text for answer in AnswerSet.from_json(longer).answers] == expected
    assert AnswerSet.from_json(line).texts == expected[:7]
