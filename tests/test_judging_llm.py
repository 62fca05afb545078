"""The judge `llm` against a local server that fails in every way, and the labels that outlive it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from openai_server import Response, Script, completion, error, rate_limited, serve, texts_of
from PIL import Image

from hedge_tasks.errors import HedgeError
from hedge_tasks.judging import Case, Verdict, judge_from, keep_labels
from hedge_tasks.judging.outcomes import outcome_of
from hedge_tasks.llm.log import ReplyLog

pytestmark = pytest.mark.framework

KEY = "sk-very-secret-0123456789"
GOOD = '{"reason": "left is not right", "verdict": "hallucinated"}'
AT_ONCE = {"retry-after": "0.001"}
CASE = Case("1", "which side?", "left", "right")


@pytest.fixture(autouse=True)
def _no_account(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_API_URL", "API_TYPE", "LLM_JUDGE_URL", "AZURE_API_KEY", "AZURE_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)


def judged(script: Callable[..., Any], cases: list[Case] | None = None, **options: Any) -> list[Verdict]:
    with serve(script) as url:
        judge = judge_from({"name": "llm", "model": "tiny", "url": url, "max_retries": 2, "concurrency": 1, **options})
        return judge.judge(cases or [CASE])


def answers(count: int) -> list[Case]:
    return [Case(str(i), "which side?", "left", f"answer {i}") for i in range(count)]


# --- what is sent, and what comes back ------------------------------------------------------------------------------


def test_a_case_is_one_greedy_request_with_examples_a_schema_and_the_case_as_json() -> None:
    script = Script(GOOD)
    [verdict] = judged(script, [Case("1", "which side?", "left", "right", description="a chest film")])
    assert verdict == Verdict(1, "left is not right", "llm:tiny", "hedge/1", raw=GOOD)
    [body] = script.bodies
    assert body["model"] == "tiny"
    assert body["temperature"] == 0
    assert body["response_format"]["json_schema"]["schema"]["properties"]["verdict"]["enum"][0] == "supported"
    roles = [message["role"] for message in body["messages"]]
    assert roles == ["system", *["user", "assistant"] * ((len(roles) - 2) // 2), "user"]
    assert len(roles) > 6
    fields = {"question": "which side?", "description": "a chest film", "reference_answer": "left"}
    assert json.loads(texts_of(body)[-1]) == {**fields, "answer_to_judge": "right"}


def test_equal_cases_are_asked_once_and_verdicts_keep_the_order_of_the_cases() -> None:
    def reply(body: dict[str, Any]) -> str:
        number = int(json.loads(texts_of(body)[-1])["answer_to_judge"].split()[1])
        time.sleep(0.02 * (5 - number))
        return json.dumps({"reason": f"no {number}", "verdict": "supported" if number % 2 else "hallucinated"})

    script = Script(reply)
    cases = answers(6)
    verdicts = judged(script, [*cases, *cases], concurrency=6)
    assert [v.reason for v in verdicts] == [f"no {i % 6}" for i in range(12)]
    assert [v.label for v in verdicts] == [1, 0, 1, 0, 1, 0] * 2
    assert len(script.bodies) == 6


@pytest.mark.parametrize(
    "answer", ["", "© 2016 The Authors", "I'm sorry, I can't help with that.", "Which side do you mean?"]
)
def test_nobody_is_asked_about_an_answer_that_is_none(answer: str) -> None:
    script = Script('{"reason": "", "verdict": "hallucinated"}')
    [verdict, _] = judged(script, [Case("1", "which side?", "left", answer), Case("2", "which side?", "left", "right")])
    assert (verdict.label, verdict.category, outcome_of(verdict)) == (None, "no_answer", "declined")
    assert [json.loads(texts_of(body)[-1])["answer_to_judge"] for body in script.bodies] == ["right"]


def test_a_case_whose_image_is_missing_is_not_asked_and_one_whose_image_cannot_be_read_is_unlabelled() -> None:
    def broken() -> list[Any]:
        raise OSError("truncated file")

    script = Script('{"reason": "", "score": 3}')
    picture = Image.new("RGB", (4, 4))
    images = {"none": None, "broken": broken, "good": lambda: [picture]}
    verdicts = judged(
        script, [Case(i, "", "", "dog", images=load) for i, load in images.items()], prompt="vope_relevance"
    )
    assert [v.reason for v in verdicts] == [
        "not asked: there is no image",
        "unlabelled: its images cannot be read (truncated file)",
        "",
    ]
    assert len(script.bodies) == 1


# --- replies that are none ------------------------------------------------------------------------------------------

UNREADABLE = {
    "prose": "I would say it is fine.",
    "no verdict": '{"reason": "x"}',
    "two verdicts": '{"verdict": "supported"} {"verdict": "hallucinated"}',
    "a refusal": Response(completion(None, refusal="I'm sorry, I can't help with that.")),
    "all tokens spent": Response(completion(None, finish_reason="length")),
}


@pytest.mark.parametrize("reply", UNREADABLE.values(), ids=UNREADABLE)
def test_what_cannot_be_read_is_asked_again_and_then_unlabelled(reply: Any, tmp_path: Path) -> None:
    script = Script(reply)
    with serve(script) as url:
        judge = judge_from({"name": "llm", "model": "tiny", "url": url})
        keep_labels(judge, tmp_path)
        [verdict] = judge.judge([CASE])
        again = judge.judge([CASE])
    assert verdict.label is None
    assert verdict.undecided
    assert verdict.reason.startswith("unlabelled: ")
    assert len(script.bodies) == 2, "asked twice, and not once more by the second call"
    assert again == [verdict]
    if isinstance(reply, str) and reply:
        assert verdict.raw == reply
    first, second = script.bodies
    assert texts_of(second)[-1] != texts_of(first)[-1], "the second time says that the first reply could not be read"
    assert second["max_tokens"] == 2 * first["max_tokens"]


# --- requests that fail ---------------------------------------------------------------------------------------------

PASSING = {
    "429": Response(rate_limited().body, 429, AT_ONCE),
    "500": Response(b"oops", 500, AT_ONCE),
    "a gateway's error with status 200": Response({"error": {"message": "upstream is gone"}}),
}


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING)
def test_a_request_that_keeps_failing_is_unlabelled_and_asked_anew_by_the_next_run(
    fault: Response, tmp_path: Path
) -> None:
    state = {"broken": True}

    def reply(body: dict[str, Any]) -> str | Response:
        return fault if state["broken"] and "answer 1" in texts_of(body)[-1] else GOOD

    with serve(reply) as url:
        judge = judge_from({"name": "llm", "model": "tiny", "url": url, "max_retries": 1})
        keep_labels(judge, tmp_path)
        assert [v.label for v in judge.judge(answers(3))] == [1, None, 1]
        state["broken"] = False
        assert [v.label for v in judge.judge(answers(3))] == [1, 1, 1]


def test_a_server_that_went_away_is_given_up_and_what_it_said_is_kept(tmp_path: Path) -> None:
    calls = []

    def reply(body: dict[str, Any]) -> str | Response:
        calls.append(body)
        return GOOD if len(calls) <= 5 else Response(hang_up=True)

    with serve(reply) as url:
        options = {"url": url, "max_retries": 0, "concurrency": 2}
        judge = judge_from({"name": "llm", "model": "tiny", **options})
        keep_labels(judge, tmp_path)
        with pytest.raises(HedgeError, match="is gone: 6 requests in a row"):
            judge.judge(answers(200))
    assert len(calls) < 30
    with ReplyLog(tmp_path) as store:
        assert len(store) == 5


# --- secrets --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500])
def test_a_key_that_the_server_quotes_stands_in_no_error_log_or_label(
    status: int, monkeypatch: pytest.MonkeyPatch, said: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    fault = error(status, f"Incorrect API key provided: {KEY}")
    with serve(Script(Response(fault.body, status, AT_ONCE))) as url:
        judge = judge_from({"name": "llm", "model": "tiny", "url": url, "max_retries": 1})
        keep_labels(judge, tmp_path)
        with pytest.raises(HedgeError, match=r"\[secret\]") as caught:
            judge.judge([CASE])
    out = capfd.readouterr()
    everything = [str(caught.value), repr(judge.settings()), out.out, out.err, *said]
    assert not any(KEY in text for text in everything)
    assert caught.value.__cause__ is None


# --- labels that last -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_nothing_is_asked_twice_and_everything_that_matters_makes_a_new_label(tmp_path: Path) -> None:
    script = Script(GOOD)

    def asked(case: Case = CASE, **options: Any) -> int:
        before = len(script.bodies)
        judge = judge_from({"name": "llm", "model": "tiny", "url": url, **options})
        keep_labels(judge, tmp_path)
        assert judge.judge([case])[0].label == 1
        return len(script.bodies) - before

    with serve(script) as url:
        assert asked() == 1
        assert asked() == 0
        assert asked(Case("another id", CASE.question, CASE.reference, CASE.answer)) == 0
        assert asked(concurrency=3, timeout=5, max_retries=0) == 0
        for change in (
            {"question": "where?"},
            {"reference": "both"},
            {"answer": "Right"},
            {"description": "a knee"},
        ):
            assert asked(replace(CASE, **change)) == 1
        options = ({"model": "other"}, {"temperature": 0.5}, {"thinking": True}, {"prompt": "hedge_binary"})
        for option in (*options, {"max_tokens": 99}):
            assert asked(**option) == 1
            assert asked(**option) == 0
