"""The judge `llm`: what it asks a server and what not, and the labels that outlive it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from openai_server import Response, Script, serve, texts_of
from PIL import Image

from hedge_tasks.errors import ConfigError
from hedge_tasks.judging import Case, Verdict, judge_from, keep_labels
from hedge_tasks.judging.outcomes import outcome_of
from hedge_tasks.llm.log import ReplyLog

pytestmark = pytest.mark.framework

GOOD = '{"reason": "left is not right", "verdict": "hallucinated"}'
CASE = Case("1", "which side?", "left", "right")


def judged(script: Callable[..., Any], cases: list[Case] | None = None, **options: Any) -> list[Verdict]:
    with serve(script) as url:
        judge = judge_from({"name": "llm", "model": "tiny", "url": url, "max_retries": 2, "concurrency": 1, **options})
        return judge.judge(cases or [CASE])


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


@pytest.mark.parametrize(
    "answer", ["", "© 2016 The Authors", "I'm sorry, I can't help with that.", "Which side do you mean?"]
)
def test_nobody_is_asked_about_an_answer_that_is_none(answer: str) -> None:
    script = Script('{"reason": "", "verdict": "hallucinated"}')
    [verdict, _] = judged(script, [Case("1", "which side?", "left", answer), Case("2", "which side?", "left", "right")])
    assert (verdict.label, outcome_of(verdict)) == (None, "declined" if answer else "unread")
    assert [json.loads(texts_of(body)[-1])["answer_to_judge"] for body in script.bodies] == ["right"]


def test_what_a_server_refuses_or_leaves_empty_is_told_apart(tmp_path: Path) -> None:
    said: dict[str, Any] = {"refuse": Response({"error": {"message": "policy"}}, 400), "empty": "", "odd": "?"}
    with serve(lambda body: said[json.loads(texts_of(body)[-1].splitlines()[0])["answer_to_judge"]]) as url:
        judge = judge_from(f"llm:model=m,url={url}")
        keep_labels(judge, tmp_path)
        verdicts = judge.judge([replace(CASE, answer=answer) for answer in said])
    assert "the server refused" in verdicts[0].reason
    assert all(verdict.reason.startswith("unlabelled: ") for verdict in verdicts)
    assert [(v.label, v.category, v.raw) for v in verdicts] == [(None, None, raw) for raw in (None, "", "?")]
    assert [v.basis for v in verdicts] == [None, "judge unread", "judge unread"]
    # What a server said is kept, be it nothing; what it refused is asked by the next run.
    assert [verdict.key is not None for verdict in verdicts] == [False, True, True]
    assert len(ReplyLog(tmp_path)) == 4


def test_an_answer_that_was_cut_before_its_first_sentence_ends_is_judged_by_nobody() -> None:
    cases = [replace(CASE, answer=answer, cut=cut) for answer in ("It is left", "Left. And") for cut in (True, False)]
    verdicts = judged(Script('{"reason": "", "category": "correct"}'), cases, prompt="medhallmark")
    assert [outcome_of(verdict) for verdict in verdicts] == ["cut off", "supported", "supported", "supported"]


def test_a_judge_of_pictures_is_refused_where_there_are_none() -> None:
    judge: Any = judge_from("llm:prompt=vope_relevance,url=http://h")
    judge.check(cases_have_images=True)
    with pytest.raises(ConfigError, match="looks at images, and there are none here"):
        judge.check(cases_have_images=False)


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


# --- labels that last -----------------------------------------------------------------------------------------------


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
        for change in ({"question": "where?"}, {"reference": "both"}, {"answer": "Right"}, {"description": "a knee"}):
            assert asked(replace(CASE, **change)) == 1
        options = ({"model": "other"}, {"temperature": 0.5}, {"thinking": True}, {"prompt": "hedge_binary"})
        for option in (*options, {"max_tokens": 99}):
            assert asked(**option) == 1
            assert asked(**option) == 0
