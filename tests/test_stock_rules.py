"""How a stock task is named, how its metrics become verdicts, and what its messages look like: no evaluation."""

from __future__ import annotations

import math
import socket
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from PIL import Image

from hedge_tasks.errors import ConfigError
from hedge_tasks.judging.base import Case
from hedge_tasks.lmms.stock.names import StockName
from hedge_tasks.sampling.conversations import Conversation

pytestmark = pytest.mark.framework


def test_a_name_carries_its_options_without_a_sign_for_the_shell() -> None:
    name = StockName.parse("hedge:docvqa_val:judge=anls:threshold=0.5")
    assert (name.task, dict(name.options)) == ("docvqa_val", {"judge": "anls", "threshold": "0.5"})
    assert name.for_task("other") == "hedge:other:judge=anls:threshold=0.5"
    assert name.title == "hedge:docvqa_val"
    for wrong in ("hedge:", "hedge:x:judge", "hedge:x:n=1:n=2", "hedge:x:=2"):
        with pytest.raises(ConfigError):
            StockName.parse(wrong)


class Manager:
    """lmms-eval's, of two tasks, a tag and a group; loads a name as its config, and of `bad` nothing but a reason."""

    model_name = "m"
    task_index: ClassVar[dict[str, Any]] = {
        **{name: {"type": "task"} for name in ("pope", "poppy", "bad")},
        "tagged": {"type": "tag", "task": ["pope", "poppy"]},
        "group": {"type": "group", "task": ["pope", {"task": "poppy", "n": 1}, {"group": "in", "task": ["pope"]}]},
    }
    all_tasks: ClassVar[list[str]] = [*task_index]
    all_subtasks: ClassVar[list[str]] = ["pope", "poppy", "bad"]

    def _get_config(self, name: str) -> dict[str, Any]:
        return {"group": name, **self.task_index[name]}

    def _load_individual_task_or_group(self, asked: Any, task_type: str = "", update_config: Any = None) -> Any:
        return {str(asked): (asked, task_type, update_config)}


def test_names_patterns_tags_and_groups_behind_hedge() -> None:
    from hedge_tasks.lmms.stock.loading import load_individual_task_or_group, match_tasks

    def match(names: Any) -> list[str]:
        return match_tasks(lambda manager, others: [f"own {other}" for other in others], Manager(), names)

    assert match("hedge:pope") == match(["hedge:pope", "hedge:pope"]) == ["hedge:pope"]
    assert match(["x", "hedge:pop*:judge=acc", "hedge:tagged"]) == [
        *("own x", "hedge:pope:judge=acc", "hedge:poppy:judge=acc", "hedge:tagged")
    ]
    with pytest.raises(ConfigError, match="did you mean 'pope'"):
        match("hedge:popee")

    def load(asked: Any, update: Any = None) -> Any:
        return load_individual_task_or_group(lambda *given: given[1:], Manager(), asked, "chat", None, update)

    assert load("pope") == ("pope", "chat", None, None)
    assert load({"task": "hedge:tagged:judge=acc", "n": 2}, {"limit": 3}) == {
        name: (name, "chat", {"n": 2, "limit": 3}) for name in ("hedge:pope:judge=acc", "hedge:poppy:judge=acc")
    }
    assert load("hedge:tagged")["hedge:pope"] == ("hedge:pope", "chat", None)
    [(group, kind, update)] = load("hedge:group:judge=acc", {"limit": 3}).values()
    inner = {"group": "hedge:in", "task": ["hedge:pope:judge=acc"]}
    members = ["hedge:pope:judge=acc", {"task": "hedge:poppy:judge=acc", "n": 1}, inner]
    assert group == {"group": "hedge:group", "type": "group", "task": members, "limit": 3}
    assert (kind, update) == ("chat", None)


def test_refused_tasks_are_left_out_unless_none_is_left_or_others_must_agree(
    monkeypatch: pytest.MonkeyPatch, said: list[str]
) -> None:
    from hedge_tasks.lmms.stock.loading import load_individual_task_or_group, load_task_or_group

    def load(*names: str) -> Any:
        manager: Any = Manager()

        def original(_: Any, asked: Any, *more: Any) -> Any:
            loaded = {name: {"member": 1} for name in asked if "bad" not in name}
            refused = (load_individual_task_or_group(None, manager, name) for name in asked if "bad" in name)
            return {**loaded, **{"group": {}}, **{key: of for one in refused for key, of in one.items()}}

        return load_task_or_group(original, manager, list(names))

    assert load("hedge:pope") == {"hedge:pope": {"member": 1}, "group": {}}
    assert load("hedge:pope", "hedge:bad") == {"hedge:pope": {"member": 1}}
    assert sum("hedge:bad is left out of this run" in line for line in said) == 1
    with pytest.raises(ConfigError, match="hedge:bad"):
        load("hedge:bad")
    with pytest.raises(ConfigError, match="asked for 2 times"):
        load("hedge:pope", "hedge:pope:judge=none")
    for processes, fails in (("1", False), ("2", True)):
        monkeypatch.setenv("WORLD_SIZE", processes)
        with pytest.raises(ConfigError) if fails else nullcontext():
            load("hedge:pope", "hedge:bad")


@pytest.mark.parametrize(
    ("written", "limits", "left"),
    [
        (None, {}, []),
        ({"temperature": 0, "do_sample": False, "num_beams": 1, "top_p": None, "top_k": 2}, {}, []),
        ({"max_gen_toks": "9", "max_tokens": 3}, {"max_new_tokens": 9}, []),
        ({"max_gen_toks": 9, "max_new_tokens": 4, "until": "x"}, {"max_new_tokens": 4, "until": ["x"]}, []),
        ({"until": ["", "\n"], "seed": 1, "best_of": 2}, {"until": ["\n"]}, ["best_of, seed"]),
    ],
)
def test_what_a_plan_takes_over_of_a_stock_tasks_settings(
    written: Any, limits: dict[str, Any], left: list[str], warnings: list[str]
) -> None:
    from hedge_tasks.lmms.stock.task import _limits

    assert _limits(written, "x") == limits
    assert [line.partition("generation settings ")[2].partition(" are not")[0] for line in warnings] == left


def options_of(**written: str) -> Any:
    from hedge_tasks.lmms.stock.names import StockOptions

    return StockOptions.of(StockName("x", written))


def test_options_are_checked() -> None:
    options = options_of(judge="anls", threshold="0.5", **{"as": "qwen_vl", "field": "x"})
    assert (options.judge, options.threshold, options.model, options.record_key) == ("anls", 0.5, "qwen_vl", "x")
    for wrong, message in (
        ({"jugde": "anls"}, "did you mean 'judge'"),
        ({"threshold": "0.5"}, "need judge=METRIC"),
        ({"judge": "a", "threshold": "much"}, "expected a number"),
        ({"n": "1"}, "unknown key 'n'"),
    ):
        with pytest.raises(ConfigError, match=message):
            options_of(**wrong)


def share_right(records: list[Any]) -> float:
    return sum(record["pred"] == record["gold"] for record in records) / len(records)


def write_here(records: list[Any]) -> float:
    Path("submission.json").write_text("[]")
    return share_right(records)


class Metrics:
    """A stock task whose reference is "right" and whose metrics say what a function does of an answer."""

    _filters = (SimpleNamespace(name="none", apply=lambda instances, documents: [_unfiltered(i) for i in instances]),)
    config = SimpleNamespace(task="stock", doc_to_choice=None)

    def __init__(self, of_answer: Any, aggregations: dict[str, Any], higher: dict[str, bool] | None = None) -> None:
        self._of_answer, self._aggregations, self._higher = of_answer, aggregations, higher or {}

    def process_results(self, document: Any, results: list[str]) -> Any:
        return self._of_answer(results[0])

    def aggregation(self) -> dict[str, Any]:
        return self._aggregations

    def higher_is_better(self) -> dict[str, bool]:
        return self._higher

    def doc_to_target(self, document: Any) -> str:
        return "right"


def _unfiltered(instance: Any) -> None:
    instance.filtered_resps["none"] = instance.resps[0]


def rule_of(stock: Metrics, **written: str) -> Any:
    from datasets import Dataset

    from hedge_tasks.lmms.stock.judge import find_rule
    from hedge_tasks.lmms.stock.scoring import StockScoring

    documents = Dataset.from_dict({"row": range(3)})
    return find_rule(stock, StockScoring(stock), documents, options_of(**written), "hedge:x")


def connect() -> bool:
    socket.create_connection(("127.0.0.1", 9), timeout=0.1)
    return True


def graded(answer: str) -> float:
    return len(answer) / len("right")


@pytest.mark.parametrize(
    ("of_answer", "aggregations", "written", "expected"),
    [
        (lambda a: {"acc": a == "right"}, {"acc": max}, {}, ("acc", "value")),
        # What says 1, or 0, of everything is about something else.
        (lambda a: {"one": 1, "no": 0, "acc": a == "right"}, {"one": max, "no": max, "acc": max}, {}, ("acc", "value")),
        (lambda a: {"a": {"gold": 1, "hit": a == "right"}}, {"a": max}, {}, ("a", "hit")),
        (lambda a: {"a": {"pred": a, "gold": "right"}}, {"a": share_right}, {}, ("a", "aggregation")),
        (lambda a: {"bc"[a == "right"]: {"score": float(a == "right")}}, {"b": max, "c": max}, {}, (None, "score")),
        (lambda a: {"acc": 100.0 * (a == "right")}, {"acc": max}, {}, ("acc", "value")),
        (lambda a: {"anls": graded(a), "em": a == "right"}, {"anls": max, "em": max}, {}, ("em", "value")),
        (lambda a: {"anls": graded(a)}, {"anls": max}, {"judge": "anls", "threshold": "0.5"}, ("anls", "value")),
        (lambda a: {"m": {"x": graded(a)}}, {"m": max}, {"judge": "m", "field": "x", "threshold": "0.1"}, ("m", "x")),
        # Named, it may call its own references wrong: they need not have the form of an answer.
        (lambda a: {"acc": 0}, {"acc": max}, {"judge": "acc"}, ("acc", "value")),
    ],
)
def test_which_number_of_a_document_is_the_judge(
    of_answer: Any, aggregations: dict[str, Any], written: dict[str, str], expected: tuple[Any, str]
) -> None:
    rule = rule_of(Metrics(of_answer, aggregations), **written)
    assert (rule.metric, rule.how) == expected


@pytest.mark.parametrize(
    ("of_answer", "aggregations", "written", "message"),
    [
        (lambda a: {"cider": graded(a)}, {"cider": max}, {}, r"cider: 0, 0\.6, 1.*judge=cider, with :threshold=0\.5"),
        (lambda a: {"acc": graded(a)}, {"acc": max}, {"judge": "acc"}, r"acc: 0, 0\.6, 1"),
        (lambda a: {"acc": 1}, {"acc": max}, {}, "acc: 1"),
        (lambda a: {"acc": 1}, {"acc": max}, {"judge": "ac"}, "did you mean 'acc'"),
        (lambda a: 1 / 0, {"acc": max}, {}, "ZeroDivisionError"),
        (lambda a: [], {"acc": max}, {}, "list instead of metrics"),
        # It asks a model only where the answer is not the reference: those answers would have no label.
        (lambda a: {"acc": a == "right" or connect()}, {"acc": max}, {"judge": "acc"}, "connects to 127.0.0.1"),
    ],
)
def test_what_cannot_judge_is_refused_with_what_it_says(
    of_answer: Any, aggregations: dict[str, Any], written: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        rule_of(Metrics(of_answer, aggregations), **written)


def test_an_aggregation_that_writes_is_not_asked_about_one_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="nothing that is a number"):
        rule_of(Metrics(lambda a: {"a": {"pred": a, "gold": "right"}}, {"a": write_here}))
    assert list(tmp_path.iterdir()) == []
    assert write_here([{"pred": 1, "gold": 1}]) == 1  # nobody is kept from it otherwise
    assert list(tmp_path.iterdir()) == [tmp_path / "submission.json"]


def test_labels_of_numbers() -> None:
    from hedge_tasks.lmms.stock.judge import ReadingRule

    plain, graded, errors = (ReadingRule("m", "value", {}, *limits) for limits in ((), (0.5,), (0.1, False)))
    assert [plain.label(x) for x in (1, 100, 0, 0.3, -1)] == [0, 0, 1, None, None]
    assert [graded.label(x) for x in (0.5, 0.49, 3)] == [0, 1, 0]
    assert [errors.label(x) for x in (0.1, 0.2)] == [0, 1]


def judge_of(**outcomes: dict[str, Any]) -> Any:
    from hedge_tasks.lmms.stock.judge import ReadingRule, StockJudge
    from hedge_tasks.lmms.stock.scoring import StockOutcome

    judge = StockJudge(ReadingRule("acc", "value", {"acc": max}), "none")
    judge.outcomes |= {id_: StockOutcome(metrics) for id_, metrics in outcomes.items()}
    return judge


def test_a_missing_number_is_no_label() -> None:
    judge = judge_of(a={"acc": 1}, b={"acc": math.nan}, c={"other": 1})
    cases = [Case(id_, "q", "stop", "go") for id_ in "abc"]
    verdicts = judge.judge(cases)
    assert [verdict.label for verdict in verdicts] == [0, None, None]
    assert "but other" in verdicts[2].reason


def test_each_answer_gets_a_document_of_its_own() -> None:
    from hedge_tasks.lmms.stock.scoring import StockScoring

    class Takes(Metrics):
        """Changes the document that it is given, as some do."""

        def process_results(self, document: Any, results: list[str]) -> Any:
            return {"taken": document["parts"].pop()}

    documents = [{"parts": [1]}] * 7
    scored = StockScoring(Takes(None, {})).score_all(documents, ["x"] * 7)
    assert [outcome.metrics for _, outcome in scored["none"]] == [{"taken": 1}] * 7
    assert documents == [{"parts": [1]}] * 7


def test_an_aggregation_that_fails_or_connects_is_one_row_without_a_number(said: list[str]) -> None:
    import inspect

    from hedge_tasks.lmms.stock.scoring import StockScoring

    scoring = StockScoring(Metrics(None, {}))
    aggregation = scoring.guarded(lambda items, args: connect(), "hedge:x, acc")
    assert "args" in inspect.signature(aggregation).parameters
    assert math.isnan(aggregation([1], args=None))
    assert any("Connects: 127.0.0.1" in line for line in said)
    assert math.isnan(scoring.guarded(max, "x")([]))
    assert scoring.guarded(max, "x")([1, 3]) == 3


def test_messages_are_refilled_with_other_pictures_and_words() -> None:
    def text(words: str) -> dict[str, str]:
        return {"type": "text", "text": words}

    clean, noisy = (Image.new("L", (4, 4), grey) for grey in (0, 200))
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [text("Look at"), {"type": "image", "url": clean}, text("What?")]},
    ]
    conversation, shown = Conversation.of(messages)
    assert shown == [clean]
    same = conversation.messages(shown, "Look at What?", "Look at What?")
    assert same[1] == messages[1]
    assert same[0]["content"] == [text("Be brief.")]
    other = conversation.messages([noisy], "Look at What?", "Please: Look at What? Thanks")[1]["content"]
    assert [part.get("text", part.get("url")) for part in other] == ["Please: Look at", noisy, "What? Thanks"]
    # A wording that does not hold the clean text takes the place of the user's texts, once.
    rewritten = conversation.messages(shown, "Look at What?", "Which?")[1]["content"]
    assert [part.get("text", part.get("url")) for part in rewritten] == ["Which?", clean]
    assert conversation.messages(shown, "Look at What?", "Look at What?") == same


def test_what_a_document_shows_is_its_key() -> None:
    from hedge_tasks.lmms.stock.presentation import present

    black, white = (Image.new("RGB", (4, 4), colour) for colour in ("black", "white"))

    def shown(*media: Any) -> Any:
        return present(SimpleNamespace(doc_to_visual=lambda document: media or None), {}, chat=False)

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

    [verdict] = judge_of(**{"1": {"acc": 1}}).judge([Case("1", "What does the sign say?", reference, answer)])
    assert outcome_of(verdict) == outcome
