"""A judge model that reads what the rules cannot."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai_server import serve, texts_of

from hedge_tasks.adjudication import Case, build_judge
from hedge_tasks.adjudication.fallback import Fallback
from hedge_tasks.errors import ConfigError
from hedge_tasks.measures.known import ReadByModelRate

pytestmark = pytest.mark.framework

ODD = "The claim would make any pharmacologist laugh."


def reader(body: dict[str, Any]) -> str:
    """Says hallucinated of the odd reply, and none of all others."""
    shown = json.loads(texts_of(body)[-1])
    return json.dumps({"reason": "r", "reading": "1" if shown["reply"] == ODD else "none"})


def test_only_replies_that_say_something_unreadable_are_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    asked: list[dict[str, Any]] = []

    def seen(body: dict[str, Any]) -> str:
        asked.append(json.loads(texts_of(body)[-1]))
        return reader(body)

    replies = ["1", ODD, "I'm sorry, I can't help with that.", "<think>1", "", "A strange text."]
    with serve(seen) as url:
        judge = build_judge("medhallu", fallback={"name": "llm", "model": "tiny", "url": url, "max_retries": 0})
        verdicts = judge.judge([Case(str(i), "q", "1", reply) for i, reply in enumerate(replies)])
    assert [v.category for v in verdicts] == ["hallucinated", "hallucinated", None, None, None, None]
    assert [v.label for v in verdicts] == [0, 0, None, None, None, None]
    assert verdicts[1].reason == "right: hallucinated (model)"
    assert [vote.category for vote in verdicts[1].votes] == [None, "factual"], "the rules' own readings stay"
    assert {case["reply"] for case in asked} == {ODD, "A strange text."}
    assert all(set(case) == {"question", "reply"} for case in asked), "the truth is not shown"
    metric = ReadByModelRate(name="read_by_model_rate")
    by_model = [metric.record(_Scores(), verdict.to_dict(), {})["value"] for verdict in verdicts]
    assert by_model == [0, 1, 0, 0, 0, 0]


class _Scores(dict[str, float]):
    group = None


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("rule", "asks no model"),
        ("llm:model=a,prompt=hedge", "'prompt' does not belong here"),
        (["llm:model=a", "llm:model=b"], "expected one judge"),
    ],
)
def test_a_fallback_that_makes_no_sense_is_refused(spec: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Fallback(spec, ["reply_yes_no"])


@pytest.mark.parametrize("name", ["medhallu", "shale", "vope"])
def test_the_settings_say_who_reads(name: str) -> None:
    assert "fallback" not in build_judge(name).settings()
    settings = build_judge(name, fallback="llm:model=a").settings()["fallback"]
    assert {prompt["model"] for prompt in settings.values()} == {"a"}
    assert all(prompt.startswith("reply_") for prompt in settings)
