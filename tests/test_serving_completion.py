"""Reading what a server sent back: the answer, its log-probabilities, and what is wrong with it."""

from __future__ import annotations

import math
from typing import Any

import pytest
from openai_server import completion

from hedge_tasks.data.answers import Answer
from hedge_tasks.serving.completion import Usage, read_completion
from hedge_tasks.serving.failures import RequestFailed


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ([("le", -0.2), ("ft", -0.4), ("<|im_end|>", -5.0)], (-0.3, 2)),
        ([("left", -0.2), ("</s>", -5.0)], (-0.2, 1)),
        ([("left", -0.2), ("<eos>", -5.0)], (-0.2, 1)),
        ([("left", -0.2), ("<end_of_turn>", -5.0)], (-0.2, 1)),
        ([("left", -0.2), ("<｜end▁of▁sentence｜>", -5.0)], (-0.2, 1)),
        ([("<b>", -0.2), ("left", -0.4), (" <", -0.6), ("[1]", -0.8)], (-0.5, 4)),  # text, however it looks
        ([("<|im_end|>", -1.5)], (-1.5, 0)),
        ([], (None, None)),
        (None, (None, None)),
        ([("left", -0.2), ("!", -9999.0)], (None, None)),
    ],
)
def test_the_mean_leaves_control_tokens_out(tokens: Any, expected: tuple[float | None, int | None]) -> None:
    answer = read_completion(completion(" left\n", tokens))
    assert answer.text == "left"
    assert answer.mean_logprob == (None if expected[0] is None else pytest.approx(expected[0]))
    assert answer.n_tokens == expected[1]


@pytest.mark.parametrize(
    ("tokens", "finish_reason", "expected"),
    [
        ([("le", -0.2), ("ft", -0.4), ("", -5.0)], "stop", (-0.3, 2)),
        ([("", -1.5)], "stop", (-1.5, 0)),
        ([("le", -0.2), ("", -0.9), ("ft", -0.4), ("", -5.0)], "stop", (-0.5, 3)),
        ([("le", -0.2), ("ft", -0.4), ("", -0.6)], "length", (-0.4, 3)),
    ],
    ids=["end token", "nothing else", "part of a character", "cut within a character"],
)
def test_an_end_token_spelled_as_nothing_is_left_out(tokens: Any, finish_reason: str, expected: Any) -> None:
    answer = read_completion(completion("left", tokens, finish_reason=finish_reason))
    assert (pytest.approx(answer.mean_logprob), answer.n_tokens) == expected


@pytest.mark.parametrize("entry", [{"token": "x"}, {"token": "x", "logprob": math.nan}, {"logprob": -1.0}, "x"])
def test_log_probabilities_in_another_form_are_none(entry: Any) -> None:
    body = completion("x", [])
    body["choices"][0]["logprobs"]["content"] = [entry]
    assert read_completion(body).answer == Answer("x", finish="stop")


def test_reasoning_is_no_part_of_the_answer_nor_of_its_log_probability() -> None:
    tokens = [("left", -9.0), ("?", -9.0), ("</think>", -9.0), ("le", -0.2), ("ft", -0.4), ("<|im_end|>", -5.0)]
    answer = read_completion(completion("\nleft", tokens, reasoning_content="left?"))
    assert (answer.text, answer.mean_logprob, answer.n_tokens) == ("left", pytest.approx(-0.3), 2)
    assert read_completion(completion("elsewhere", tokens, reasoning_content="left?")).answer == Answer(
        "elsewhere", finish="stop"
    )


@pytest.mark.parametrize(
    ("tokens", "until", "spelled"),
    [
        ([(" le", -0.2), ("ft", -0.4), ("<|im_end|>", -5.0)], (), True),
        ([("▁left", -0.2), ("", -5.0)], (), True),
        ([("left", -0.2), (" side", -0.4)], (), False),
        ([("right", -0.2)], (), False),
        ([("left", -0.2), (".", -0.4)], (".",), True),  # of what ended the answer the tokens stay
        ([("right", -0.2), (".", -0.4)], (".",), False),
        (None, (), None),
    ],
)
def test_whether_the_tokens_spell_the_answer(tokens: Any, until: Any, spelled: bool | None) -> None:
    assert read_completion(completion("left", tokens), until).spelled is spelled


def test_texts_that_end_an_answer_are_cut_where_the_server_left_them_in() -> None:
    assert read_completion(completion("left.\nBecause"), ["\n", "."]).text == "left"


def test_a_refusal_is_an_answer_and_so_is_an_empty_text() -> None:
    assert read_completion(completion(None, refusal="I cannot help.")).text == "I cannot help."
    assert read_completion(completion("")).text == ""


def test_why_it_ended_and_what_it_cost_are_read_where_they_are_told() -> None:
    answer = read_completion(completion("left", finish_reason="length"))
    assert (answer.finish, answer.usage) == ("length", Usage(1, 1))
    for usage in (None, [], {"prompt_tokens": "many", "completion_tokens": 1}):
        assert read_completion({**completion("left"), "usage": usage}).usage is None


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ([], "garbled"),
        ({"choices": []}, "garbled"),
        ({"choices": [{"index": 0}]}, "garbled"),
        ({"error": {"message": "backend down"}}, "garbled"),
        (completion(None), "empty"),
        (completion(None, finish_reason="content_filter"), "empty"),
        (completion(None, finish_reason="length"), "cut"),
    ],
)
def test_a_body_without_an_answer_is_a_failure_of_its_kind(body: Any, kind: str) -> None:
    with pytest.raises(RequestFailed) as caught:
        read_completion(body)
    assert caught.value.kind == kind
    assert not caught.value.unreachable
