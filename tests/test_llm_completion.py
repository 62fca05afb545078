"""Reading what a server sent back: the answer, its log-probabilities, and what is wrong with it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from openai_server import completion
from thinking_replies import REPLIES, ThinkingReply

from hedge_tasks.data.answers import Answer, Served, Thought
from hedge_tasks.data.thoughts import OTHER_TOKENS
from hedge_tasks.llm.completion import Completion, is_control, read_choices
from hedge_tasks.llm.failures import RequestFailed


def read_completion(body: Any, until: Sequence[str] = ()) -> Completion:
    outcome = read_choices(body, until)[0]
    if isinstance(outcome, RequestFailed):
        raise outcome
    return outcome


LEFT = [("le", -0.2), ("ft", -0.4)]
ENDS = ("<|im_end|>", "</s>", "<eos>", "<end_of_turn>", "<｜end▁of▁sentence｜>", "[|endofturn|]", "")


@pytest.mark.parametrize(
    ("text", "tokens", "finish", "expected"),
    [
        *((" left\n", [*LEFT, (end, -5.0)], "stop", (-0.3, 2, -5.0)) for end in ENDS),
        *(("left", LEFT, finish, (-0.3, 2, None)) for finish in ("stop", "length")),
        *(("left", tokens, "stop", (None, None, None)) for tokens in ([], None)),
        # What looks like a control token is one where the text lacks it.
        ("<b>left <[1]", [("<b>", -0.2), ("left", -0.4), (" <", -0.6), ("[1]", -0.8)], "stop", (-0.5, 4, None)),
        ("left", [("<box>", -0.8), ("left", -0.4), ("</box>", -0.8), ("</s>", -0.6)], "stop", (-0.4, 1, -0.6)),
        # A token spelled as nothing is the end, or part of a character.
        ("left", [LEFT[0], ("", -0.9), LEFT[1], ("", -5.0)], "stop", (-0.5, 3, -5.0)),
        ("left", [*LEFT, ("", -0.6)], "length", (-0.4, 3, None)),
        ("", [("<|im_end|>", -1.5)], "stop", (-1.5, 0, -1.5)),
    ],
)
def test_the_mean_is_that_of_the_answers_tokens_and_the_end_has_its_own(
    text: str, tokens: Any, finish: str, expected: Any
) -> None:
    answer = read_completion(completion(text, tokens, finish_reason=finish)).answer
    assert answer.text == text.strip()
    assert (answer.mean_logprob, answer.n_tokens, answer.end_logprob) == pytest.approx(expected)


@pytest.mark.parametrize("entry", [{"token": "x"}, {"token": "x", "logprob": math.nan}, {"logprob": -1.0}, "x"])
def test_log_probabilities_in_another_form_are_none(entry: Any) -> None:
    body = completion("x", [])
    body["choices"][0]["logprobs"]["content"] = [entry]
    assert read_completion(body).answer == Answer("x", finish="stop")


def test_texts_that_end_an_answer_are_cut_where_the_server_left_them_in() -> None:
    assert read_completion(completion("left.\nBecause"), ["\n", "."]).text == "left"


def test_a_refusal_is_an_answer_and_so_is_an_empty_text() -> None:
    assert read_completion(completion(None, refusal="I cannot help.")).text == "I cannot help."
    assert read_completion(completion("")).text == ""
    parts: Any = [{"type": "image"}, {"text": "le"}, "x", {"text": 3}, {"text": "ft"}]
    assert read_completion(completion(parts)).text == "left"


def test_why_it_ended_and_what_it_cost_are_read_where_they_are_told() -> None:
    answer = read_completion(completion("left", finish_reason="length"))
    assert (answer.answer.finish, answer.usage) == ("length", {"prompt_tokens": 1, "completion_tokens": 1})
    for usage in (None, [], {"prompt_tokens": "many", "completion_tokens": None}):
        assert read_completion({**completion("left"), "usage": usage}).usage == {}


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ([], "garbled"), ({"choices": []}, "garbled"), ({"choices": [{"index": 0}]}, "garbled"),
        ({"error": {"message": "backend down"}}, "garbled"), (completion(None), "empty"),
        (completion(None, finish_reason="content_filter"), "empty"),
        (completion("left", finish_reason="error"), "empty"), (completion(None, finish_reason="length"), "cut"),
    ],
)  # fmt: skip
def test_a_body_without_an_answer_is_a_failure_of_its_kind(body: Any, kind: str) -> None:
    with pytest.raises(RequestFailed) as caught:
        read_completion(body)
    assert caught.value.kind == kind
    assert not caught.value.unreachable


# --- thoughts ---------------------------------------------------------------------------------------------------------


def _reads_as(reply: ThinkingReply, answer: Answer) -> None:
    assert answer.text == reply.said
    assert (answer.mean_logprob, answer.n_tokens, answer.end_logprob) == (-0.25, len(reply.answer), -4.0)
    likely = [logprob for _, logprob in reply.tokens[: len(reply.thought)]]
    assert answer.thought == Thought(len(likely), pytest.approx(sum(likely) / len(likely)))
    assert answer.no_logprob is None


@pytest.mark.parametrize("name", REPLIES)
@pytest.mark.parametrize("parsed", [True, False])
def test_a_thought_that_the_server_takes_out_has_left_its_tokens(name: str, parsed: bool) -> None:
    reply = REPLIES[name]
    fields = {"reasoning_content": reply.reasoning} if parsed else {}
    _reads_as(reply, read_completion(completion(reply.said, reply.tokens, **fields)).answer)


def test_tokens_without_marks_are_told_apart_by_the_reasoning() -> None:
    tokens = [("It", -3.0), (" may", -3.0), ("upper", -0.2), (" left", -0.4), ("</s>", -1.0)]
    found = read_completion(completion("upper left", tokens, reasoning_content="It may")).answer
    assert (found.mean_logprob, found.n_tokens, found.thought) == (pytest.approx(-0.3), 2, Thought(2, -3.0))
    found = read_completion(completion("upper left", tokens, reasoning_content="Another one")).answer
    assert (found.mean_logprob, found.no_logprob) == (None, OTHER_TOKENS)


def test_a_thought_of_which_only_the_length_is_told() -> None:
    body = completion("left", [("left", -0.5)])
    body["usage"]["completion_tokens_details"] = {"reasoning_tokens": 64}
    assert read_completion(body).answer == Answer("left", -0.5, 1, "stop", (("left", -0.5),), thought=Thought(64))


# --- whose tokens are they? -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "tokens",
    [
        [("upper", -0.2)],
        [("upper", -0.2), (" left", -0.4), (" lung", -0.1)],
        [("It", -3.0), (" may", -3.0), ("</think>", -0.1)],
        [("\ufffd", -0.2), ("\ufffd", -0.2), ("\ufffd", -0.2)],
    ],
    ids=["one of two", "more", "only the thought", "unreadable"],
)
def test_log_probabilities_of_other_tokens_are_none(tokens: Any) -> None:
    found = read_completion(completion("upper left", tokens))
    assert (found.answer.mean_logprob, found.answer.n_tokens, found.answer.tokens) == (None, None, None)
    assert (found.spelled, found.answer.no_logprob) == (False, OTHER_TOKENS)


def _entry(token: str, spelled: bytes | None) -> dict[str, Any]:
    return {"token": token, "logprob": -0.5, "bytes": None if spelled is None else list(spelled)}


@pytest.mark.parametrize(
    "entries",
    [
        [_entry("5 ", None), _entry("\ufffd", b"\xc2"), _entry("\ufffd", b"\xb5"), _entry("m …", None)],
        [_entry("5 ", None), _entry("\ufffd", None), _entry("\ufffd", None), _entry("m …", None)],
        [_entry("5 ", None), _entry("", b""), _entry("µ", None), _entry("m …", None)],
        [_entry("▁5", None), _entry("<0xC2>", None), _entry("<0xB5>", None), _entry("m▁…", None)],
        [_entry("5 µm ", None), _entry("", "…".encode())],
        [_entry("5\u00a0", None), _entry("µm", None), _entry("\n", None), _entry("…<|im_end|>"[:1], None)],
    ],
    ids=["bytes", "no bytes", "empty piece", "byte fallback", "nameless", "blanks"],
)
def test_however_a_server_writes_its_tokens_they_are_known(entries: list[dict[str, Any]]) -> None:
    body = completion("5 µm …", [])
    body["choices"][0]["logprobs"]["content"] = entries
    found = read_completion(body)
    assert (found.spelled, found.answer.mean_logprob, found.answer.n_tokens) == (True, -0.5, len(entries))


def test_who_answered_is_kept() -> None:
    body = {**completion("left"), "provider": "A", "system_fingerprint": "fp_1"}
    assert read_completion(body).answer.served == Served("local", "A", "fp_1")
    for path in ("/home/me/models/Qwen@main", "C:\\models\\Qwen@main", "./Qwen@main"):
        assert read_completion({**body, "model": path}).answer.served == Served("Qwen@main", "A", "fp_1")
    assert read_completion({**body, "model": "org/name", "provider": 3}).answer.served == Served(
        "org/name", None, "fp_1"
    )
    assert read_completion({"choices": completion("left")["choices"]}).answer.served is None


# --- bounds -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "known"), [(64, True), (1, True), (0, False), (-1, False), (True, False), ("3", False)]
)
def test_only_a_number_of_tokens_is_a_thought(count: Any, known: bool) -> None:
    body = completion("left")
    body["usage"]["completion_tokens_details"] = {"reasoning_tokens": count}
    assert read_completion(body).answer.thought == (Thought(count) if known else None)
    assert read_completion({**body, "choices": body["choices"] * 2}).answer.thought is None


def test_what_a_server_sends_is_bounded() -> None:
    body = completion("left", [("left", -0.5)])
    others = [{"token": f"t{i}", "logprob": -1.0 - i} for i in range(25)]
    body["choices"][0]["logprobs"]["content"][0]["top_logprobs"] = [{"token": "<|im_end|>", "logprob": -0.1}, *others]
    body |= {"provider": "x" * 300, "system_fingerprint": ""}
    answer = read_completion(body).answer
    assert answer.alternatives == (tuple((f"t{i}", -1.0 - i) for i in range(20)),)
    assert answer.served == Served("local", "x" * 200, None)
    assert [is_control(text) for text in ("<|im_end|>", "</s>", "<box>", "left", "<5 mm")] == [True] * 3 + [False] * 2


@pytest.mark.parametrize("wrong", [{}, {"decoded_token": 3, "logprob": -1.0}, {"decoded_token": "b", "logprob": "x"}])
def test_the_prompt_is_known_from_its_last_gap_on_or_not_at_all(wrong: Any) -> None:
    def entry(number: str, text: str) -> dict[str, Any]:
        return {number: {"decoded_token": text, "logprob": -1.0}}

    good = [None, entry("5", "x"), None, entry("7", "a"), entry("8", "b")]
    tokens = read_completion({**completion("left"), "prompt_logprobs": good}).prompt
    assert [tuple(token) for token in tokens] == [(7, "a", -1.0), (8, "b", -1.0)]
    for table in ([*good, {"9": wrong}], [*good, entry("-1", "c")], "x"):
        assert read_completion({**completion("left"), "prompt_logprobs": table}).prompt == ()
