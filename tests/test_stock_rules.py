"""How a stock task is named, how its metrics become verdicts, and what its messages look like: no evaluation."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
from loguru import logger
from PIL import Image

from hedge_tasks.errors import ConfigError
from hedge_tasks.judging.base import Case
from hedge_tasks.lmms.stock.names import StockName
from hedge_tasks.sampling.conversations import Conversation

pytestmark = pytest.mark.framework


def test_a_name_carries_its_options_without_a_sign_for_the_shell() -> None:
    name = StockName.parse("hedge:docvqa_val:judge=anls:at_least=0.5")
    assert (name.task, dict(name.options)) == ("docvqa_val", {"judge": "anls", "at_least": "0.5"})
    assert name.for_task("other") == "hedge:other:judge=anls:at_least=0.5"
    assert name.title == "hedge:docvqa_val"
    for wrong in ("hedge:", "hedge:x:judge", "hedge:x:n=1:n=2", "hedge:x:=2"):
        with pytest.raises(ConfigError):
            StockName.parse(wrong)


def test_options_are_checked() -> None:
    from hedge_tasks.lmms.stock.options import StockOptions

    given = {"judge": "anls", "at_least": "0.5", "n": "3", "perturbation": "mild", "as": "qwen_vl", "field": "x"}
    options = StockOptions.from_mapping(given, "hedge:x")
    assert (options.judge, options.at_least, options.model, options.record_key) == ("anls", 0.5, "qwen_vl", "x")
    assert options.plan == {"n": 3, "perturbation": "mild"}
    for wrong, said in (
        ({"jugde": "anls"}, "did you mean 'judge'"),
        ({"at_least": "0.5"}, "needs judge=METRIC"),
        ({"judge": "a", "at_least": "1", "at_most": "1"}, "not both"),
        ({"judge": "a", "at_least": "much"}, "expected a number"),
        ({"n": "-1"}, "n: "),
        ({"stability": "perhaps"}, "true or false"),
    ):
        with pytest.raises(ConfigError, match=said):
            StockOptions.from_mapping(wrong, "hedge:x")


def numbers_of(aggregations: dict[str, Any], **higher: bool) -> Any:
    from hedge_tasks.lmms.stock.numbers import Numbers

    return Numbers(SimpleNamespace(aggregation=lambda: aggregations, higher_is_better=lambda: higher))


def rule_of(probes: list[dict[str, Any]], aggregations: dict[str, Any], asked: dict[str, Any], **higher: bool) -> Any:
    from hedge_tasks.lmms.stock.options import StockOptions
    from hedge_tasks.lmms.stock.scoring import StockOutcome

    numbers = numbers_of(aggregations, **higher)
    return numbers.rule([StockOutcome(p) for p in probes], StockOptions.from_mapping(asked, "hedge:x"), "hedge:x")


def share_right(records: list[Any]) -> float:
    return sum(record["pred"] == record["gold"] for record in records) / len(records)


def printed(records: list[Any]) -> dict[str, Any]:
    return {"all": 1.0}


def write_submission(records: list[Any], args: Any) -> None:
    raise AssertionError("never called")


@pytest.mark.parametrize(
    ("probes", "aggregations", "asked", "expected"),
    [
        ([{"acc": 1}, {"acc": False}], {"acc": max}, {}, ("acc", "value")),
        # What says 1 of everything is about something else; what says 0 of all may be the one.
        ([{"form": 1, "acc": 1}, {"form": 1, "acc": 0}], {"form": max, "acc": max}, {}, ("acc", "value")),
        ([{"form": 1, "acc": 0}, {"form": 1, "acc": 0}], {"form": max, "acc": max}, {}, ("acc", "value")),
        ([{"a": {"is_correct": True}}, {"a": {"is_correct": False}}], {"a": max}, {}, ("a", "is_correct")),
        (
            [{"a": {"pred": "x", "gold": "x"}}, {"a": {"pred": "", "gold": "x"}}],
            {"a": share_right},
            {},
            ("a", "aggregation"),
        ),
        ([{"b": {"score": 1.0}}, {"c": {"score": 0.0}}], {"b": max, "c": max}, {}, (None, "score")),
        ([{"acc": 100.0}, {"acc": 0.0}], {"acc": max}, {}, ("acc", "value")),
        # A grade by its name is not taken, even where a few answers show only 0 and 1.
        ([{"anls": 1, "em": 1}, {"anls": 0, "em": 0}], {"anls": max, "em": max}, {}, ("em", "value")),
        ([{"anls": 0.7}], {"anls": max}, {"judge": "anls", "at_least": 0.5}, ("anls", "value")),
        ([{"m": {"iou": 0.2}}], {"m": max}, {"judge": "m", "field": "iou", "at_most": 0.1}, ("m", "iou")),
    ],
)
def test_which_number_of_a_document_is_the_judge(
    probes: list[dict[str, Any]], aggregations: dict[str, Any], asked: dict[str, Any], expected: tuple[Any, str]
) -> None:
    rule = rule_of(probes, aggregations, asked)
    assert (rule.metric, rule.how) == expected


@pytest.mark.parametrize(
    ("probes", "aggregations", "asked", "said"),
    [
        ([{"cider": 0.2}, {"cider": 3.1}], {"cider": max}, {}, r"cider: 0\.2, 3\.1\. .*judge=cider:at_least=0\.5"),
        ([{"acc": 0.25}, {"acc": 1}], {"acc": max}, {}, r"acc: 0\.25, 1"),
        ([{"acc": 0.25}], {"acc": max}, {"judge": "acc"}, r"acc: 0\.25"),
        ([{"a": {"pred": "x"}}], {"a": printed}, {}, "a: records with pred"),
        ([{"sent": {}}], {"sent": write_submission}, {}, "only sent"),
        ([{"acc": 1}, {"acc": 1}], {"acc": max}, {}, "acc: 1"),
        ([{"acc": 1}], {"acc": max}, {"judge": "ac"}, "did you mean 'acc'"),
    ],
)
def test_what_cannot_judge_is_refused_with_what_it_says(
    probes: list[dict[str, Any]], aggregations: dict[str, Any], asked: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        rule_of(probes, aggregations, asked)


def test_what_is_better_when_lower_is_only_taken_when_asked_for() -> None:
    probes, aggregations = [{"errors": 1}, {"errors": 0}], {"errors": max}
    with pytest.raises(ConfigError):
        rule_of(probes, aggregations, {}, errors=False)
    rule = rule_of(probes, aggregations, {"judge": "errors"}, errors=False)
    assert (rule.label(0), rule.label(1)) == (0, 1)


def test_labels_of_numbers() -> None:
    from hedge_tasks.lmms.stock.numbers import ReadingRule

    plain, graded, errors = (
        ReadingRule("m", "value"),
        ReadingRule("m", "value", at_least=0.5),
        ReadingRule("m", "value", at_most=0.1),
    )
    assert [plain.label(x) for x in (1, 100, 0, 0.3, -1)] == [0, 0, 1, None, None]
    assert [graded.label(x) for x in (0.5, 0.49, 3)] == [0, 1, 0]
    assert [errors.label(x) for x in (0.1, 0.2)] == [0, 1]


def test_a_missing_number_is_no_label() -> None:
    from hedge_tasks.lmms.stock.judge import StockJudge
    from hedge_tasks.lmms.stock.numbers import ReadingRule
    from hedge_tasks.lmms.stock.scoring import StockOutcome

    outcomes = {"a": StockOutcome({"acc": 1}), "b": StockOutcome({"acc": math.nan}), "c": StockOutcome({"other": 1})}
    judge = StockJudge(ReadingRule("acc", "value"), numbers_of({"acc": max}), {}, outcomes)
    verdicts = judge.judge([Case(id_, "q", "stop", "go") for id_ in "abcd"])
    assert [verdict.label for verdict in verdicts] == [0, None, None, None]
    assert "it gave other" in verdicts[2].reason
    judge.withdraw("the judge is gone")
    assert judge.verdict(outcomes["a"]).label is None


class Stock:
    """As much of a stock task as its scoring needs."""

    config = SimpleNamespace(task="stock")
    _filters = ()

    def process_results(self, document: Any, results: list[str]) -> Any:
        if results[0] == "dead":
            logger.error("connection refused")
        document["seen"].append(results[0])
        return {"right": float(document["seen"] == [results[0]])} if results[0] != "list" else []


def test_a_logged_error_is_a_fault_where_a_model_judges() -> None:
    from hedge_tasks.lmms.stock.scoring import StockScoring

    asked, plain = (StockScoring(Stock(), asks_a_model=asks) for asks in (True, False))
    assert "connection refused" in str(asked.score({"seen": []}, "dead").fault)
    assert asked.score({"seen": []}, "alive").fault is None
    assert plain.score({"seen": []}, "dead").fault is None
    assert "KeyError" in str(plain.score({}, "x").fault)
    assert "list instead of metrics" in str(plain.score({"seen": []}, "list").fault)


@pytest.mark.parametrize("workers", [1, 3])
def test_each_answer_gets_a_document_of_its_own(workers: int) -> None:
    from hedge_tasks.lmms.stock.scoring import StockScoring

    documents = [{"seen": []} for _ in range(7)]
    scored = StockScoring(Stock(), asks_a_model=False).score_all(documents, [["a", "b"]] * 7, workers)
    assert [[outcome.metrics["right"] for outcome in of_one] for of_one in scored] == [[1.0, 1.0]] * 7
    assert documents == [{"seen": []}] * 7


def _ask(client: Any) -> Any:
    return client.chat.completions.create()


def _judged(document: Any, results: Any) -> Any:
    return {"a": _ask(document)}


def _plain(document: Any, results: Any) -> Any:
    return {"a": share_right(results)}


def test_the_source_tells_whether_a_model_may_be_asked() -> None:
    from hedge_tasks.lmms.stock.source_scan import asks_a_model, writes_files

    assert asks_a_model([None, _judged]) == "client.chat in _ask"
    assert asks_a_model([_plain]) is None
    assert not writes_files(_plain)


def test_an_aggregation_that_fails_is_one_row_without_a_number(said: list[str]) -> None:
    import inspect

    from hedge_tasks.lmms.stock.aggregations import guarded

    def fails(items: Any, args: Any) -> float:
        raise ValueError("no server")

    aggregation = guarded(fails, "hedge:x, acc")
    assert "args" in inspect.signature(aggregation).parameters
    assert math.isnan(aggregation([1], args=None))
    assert any("no server" in line for line in said)
    assert guarded(max, "x")([1, 3]) == 3


def test_ids_are_unique_and_kinds_are_few() -> None:
    from datasets import Dataset

    from hedge_tasks.lmms.stock.columns import group_column, id_column, type_column

    rows = Dataset.from_dict(
        {"question_id": ["a", "a", "b", "c"], "id": [4, 3, 2, 1], "category": list("wxyz"), "subject": list("ppqq")}
    )
    assert id_column(rows, None, "x") == "id"  # question_id is shared
    assert id_column(rows, "none", "x") is None
    assert type_column(rows, None, "x") == "subject"  # each has a category of its own
    assert type_column(rows, "category", "x") == "category"
    assert group_column(rows, "subject", "x") == "subject"
    for choose, name in ((id_column, "ids"), (type_column, "subjects"), (id_column, "question_id")):
        with pytest.raises(ConfigError):
            choose(rows, name, "x")


def test_messages_are_refilled_with_other_pictures_and_words() -> None:
    clean, noisy = (Image.new("L", (4, 4), grey) for grey in (0, 200))
    messages = [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Look at"},
                {"type": "image", "url": clean},
                {"type": "text", "text": "What?"},
            ],
        },
    ]
    conversation, shown = Conversation.of(messages)
    assert shown == [clean]
    same = conversation.messages(shown, "Look at What?", "Look at What?")
    assert same[1] == messages[1]
    assert same[0]["content"] == [{"type": "text", "text": "Be brief."}]
    other = conversation.messages([noisy], "Look at What?", "Please: Look at What? Thanks")[1]["content"]
    assert [part.get("text", part.get("url")) for part in other] == ["Please: Look at", noisy, "What? Thanks"]
    # A wording that does not hold the clean text takes the place of the user's texts, once.
    rewritten = conversation.messages(shown, "Look at What?", "Which?")[1]["content"]
    assert [part.get("text", part.get("url")) for part in rewritten] == ["Which?", clean]
    assert conversation.messages(shown, "Look at What?", "Look at What?") == same


def test_what_a_document_shows_is_its_key() -> None:
    from hedge_tasks.lmms.stock.presentation import Presentation

    black, white = (Image.new("RGB", (4, 4), colour) for colour in ("black", "white"))

    def shown(*media: Any) -> Any:
        return Presentation(SimpleNamespace(doc_to_visual=lambda document: media or None), chat=False).present({})

    assert shown(black).key("q") == shown(black.copy()).key("q")
    keys = {shown(*m).key("q") for m in ((), (black,), (white,), (black, white), ("a.mp4",), ({"array": [1]},))}
    assert len(keys) == 6
    assert (shown().kind, shown(black).kind, shown(black, "a.mp4").kind) == ("text", "pictures", "other")
    assert shown().media_key() == ""


@pytest.mark.parametrize("key", ["doc_to_text", "doc_to_visual", "doc_to_target", "lmms_eval_specific_kwargs"])
def test_a_hedge_task_refuses_what_it_would_ignore(key: str) -> None:
    from hedge_tasks.lmms.task import HedgeTask

    config = {"task": "mine", "hedge": {"prompt": "medical_vqa/default"}, key: "SHOUTED {{question}}"}
    with pytest.raises(ConfigError, match=rf"mine: '{key}' .* hedge:TASK"):
        HedgeTask(config)


@pytest.mark.parametrize(
    ("reference", "answer", "outcome"),
    [
        *(("stop", "I cannot tell.", "declined"), ("", "I cannot tell.", "declined"), ("stop", "stop", "supported")),
        *(("unanswerable", "I cannot tell.", "supported"), ("unanswerable", "[LMMS_EVAL_REQUEST_FAILED]", "failed")),
    ],
)
def test_declining_is_right_only_where_the_reference_declines(reference: str, answer: str, outcome: str) -> None:
    from hedge_tasks.judging.outcomes import outcome_of
    from hedge_tasks.lmms.stock.judge import StockJudge
    from hedge_tasks.lmms.stock.numbers import ReadingRule
    from hedge_tasks.lmms.stock.scoring import StockOutcome

    judge = StockJudge(ReadingRule("acc", "value"), numbers_of({"acc": max}), {}, {"1": StockOutcome({"acc": 1})})
    [verdict] = judge.judge([Case("1", "What does the sign say?", reference, answer)])
    assert outcome_of(verdict) == outcome
