"""A judge model that reads what the rules cannot."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai_server import serve, texts_of

from hedge_tasks.judging import Case, build_judge
from hedge_tasks.judging.outcomes import outcome_of
from hedge_tasks.measures.standard_measures import ReadByModelRate

pytestmark = pytest.mark.framework

ODD = "The claim would make any pharmacologist laugh."
ODDER = "Nobody could read what a model says of this."
SOFT = "Hallucinated, if the abstract is to be believed."
SOFTLY_OTHER = "Factual, if the abstract is to be believed."
SOFTLY_NONE = "Factual, unless the abstract is wrong."


def reader(body: dict[str, Any]) -> str:
    """Says hallucinated of the odd reply and of what was read softly, and none of all others."""
    shown = json.loads(texts_of(body)[-1].splitlines()[0])
    if shown["reply"] == ODDER:
        return "?"
    return json.dumps(
        {"reason": "r", "reading": "READ_1" if shown["reply"] in (ODD, SOFT, SOFTLY_OTHER) else "READ_NONE"}
    )


def test_only_replies_that_say_something_unreadable_are_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    asked: list[dict[str, Any]] = []

    def seen(body: dict[str, Any]) -> str:
        asked.append(json.loads(texts_of(body)[-1].splitlines()[0]))
        return reader(body)

    silent = ["I'm sorry, I can't help with that.", "<think>1", ""]
    replies = ["1", ODD, *silent, "A strange text.", SOFT, SOFTLY_OTHER, SOFTLY_NONE, ODDER]
    with serve(seen) as url:
        judge = build_judge("medhallu", fallback={"name": "llm", "model": "tiny", "url": url, "max_retries": 0})
        verdicts = judge.judge(
            [Case(str(i), "q", "1", reply, images=lambda: ["a picture"]) for i, reply in enumerate(replies)]
        )
    categories = ["hallucinated", "hallucinated", *[None] * 4, "hallucinated", *[None] * 3]
    assert [v.category for v in verdicts] == categories
    assert [v.label for v in verdicts] == [0 if category == "hallucinated" else None for category in categories]
    assert [outcome_of(v) for v in verdicts[2:5]] == ["declined", "cut off", "unread"]
    bases = ["no answer", "model", "disagreement", "unconfirmed", "no answer"]
    assert [v.basis for v in verdicts[5:]] == bases
    outcomes = ["unread", "supported", "unconfirmed", "unconfirmed", "unread"]
    assert [outcome_of(v) for v in verdicts[5:]] == outcomes
    assert verdicts[1].reason == "right: hallucinated (model)"
    assert [vote.category for vote in verdicts[1].votes] == [None, "factual"], "the rules' own readings stay"
    assert {case["reply"] for case in asked} == {ODD, "A strange text.", SOFT, SOFTLY_OTHER, SOFTLY_NONE, ODDER}
    assert all(set(case) == {"question", "reply"} for case in asked), "the truth is not shown"
    metric = ReadByModelRate(name="read_by_model_rate")
    by_model = [metric.record(_Scores(), verdict.to_dict(), {})["value"] for verdict in verdicts]
    assert by_model == [int(v.basis == "model") for v in verdicts]


def test_without_a_second_reader_a_soft_reading_has_no_label() -> None:
    verdicts = build_judge("medhallu").judge([Case(str(i), "q", "1", reply) for i, reply in enumerate([SOFT, "1"])])
    assert [v.label for v in verdicts] == [None, 0]
    assert verdicts[0].reason == "unconfirmed: hallucinated (leading)"
    assert outcome_of(verdicts[0]) == "unconfirmed"
    [unsure] = build_judge("medhallu", not_sure=True).judge([Case("1", "q", "1", "2")])
    assert (unsure.label, unsure.category, outcome_of(unsure)) == (None, "not_sure", "undecided")


class _Scores(dict[str, float]):
    group = None
