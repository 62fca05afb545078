"""Judges by configuration, human labels, panels, local models, and whether enough answers have a label."""

from __future__ import annotations

import base64
import io
import json
import random
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from importlib.resources import files
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from PIL import Image

from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.judging import Case, Verdict, check_judge, judge_from, reliability
from hedge_tasks.judging.baselines import majority as majority_of_all
from hedge_tasks.judging.baselines import stand_beside
from hedge_tasks.judging.by_sentence import SentenceJudge
from hedge_tasks.judging.check import Facet, check_categories, facets, picture_below, read_checked
from hedge_tasks.judging.config import parse_spec, required_judge
from hedge_tasks.judging.designed import plan_at_random, read_plan
from hedge_tasks.judging.fallback import Fallback
from hedge_tasks.judging.hf import HFJudge
from hedge_tasks.judging.label_files import HumanLabel, listing
from hedge_tasks.judging.labels import LabelsJudge
from hedge_tasks.judging.llm import LLMJudge
from hedge_tasks.judging.model_judge import title
from hedge_tasks.judging.options import OptionJudge
from hedge_tasks.judging.panel import Panel, majority
from hedge_tasks.judging.prompt import load_judge_prompt
from hedge_tasks.judging.references import AnyReference
from hedge_tasks.judging.reply_judge import reads_replies
from hedge_tasks.judging.review import ReviewItem, write_review
from hedge_tasks.judging.strata import strata_of
from hedge_tasks.llm.fingerprints import fingerprint


def cases(*answers: str) -> list[Case]:
    return [Case(str(i), "which side?", "left", answer) for i, answer in enumerate(answers)]


class Fixed:
    """A judge that says what it is told to say."""

    version = "1"

    def __init__(self, name: str, *labels: int | None, categories: Sequence[str | None] = ()) -> None:
        self.name, self._labels, self._categories = name, labels, categories

    def settings(self) -> dict[str, Any]:
        return {"judge": self.name}

    def judge(self, judged: Sequence[Case]) -> list[Verdict]:
        categories = self._categories or [None] * len(self._labels)
        pairs = zip(self._labels, categories, strict=True)
        return [Verdict(label, "why", self.name, "1", category=category) for label, category in pairs]


# --- configuration ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("ruel", "unknown judge 'ruel', did you mean 'rule'"),
        ("llm:modle=x", "unknown option of judge 'llm' 'modle', did you mean 'model'"),
        ("llm:model=a,model=b", "given twice"), ("llm:prompt=vope_relevance,images=false", "cannot do without"),
        ({"name": "panel", "judges": ["rule"]}, "at least two"),
        ({"name": "panel", "judges": ["rule", "rule"]}, "there twice"),
    ],
)  # fmt: skip
def test_a_wrong_setting_is_named_with_the_nearest_valid_one(spec: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        judge_from(spec)


@pytest.mark.parametrize("key", ["api_key", "API_KEY", "token", "secret", "password"])
def test_a_key_does_not_belong_into_a_configuration_and_is_not_quoted(key: str) -> None:
    for spec in (f"llm:{key}=sk-0123456789", {"name": "llm", key: "sk-0123456789"}, "llm:sk-0123456789abcdef"):
        with pytest.raises(ConfigError) as caught:
            judge_from(spec)
        assert "01234" not in str(caught.value)
        assert "environment" in str(caught.value) or "expected name:key=value" in str(caught.value)


# --- reliability ------------------------------------------------------------------------------------------------------


def verdicts(labelled: int, missing: int, unclear: int = 0) -> list[Verdict]:
    unsure = [Verdict(None, "", "j", "1", category="unclear")] * unclear
    return [Verdict(1, "", "j", "1")] * labelled + [Verdict(None, "", "j", "1")] * missing + unsure


@given(st.integers(0, 40), st.integers(0, 3), st.integers(0, 3), st.sampled_from([0.0, 0.05, 0.5, 1.0]))
@example(19, 1, 0, 0.05)
def test_above_the_limit_of_missing_labels_metrics_are_unreliable(
    labelled: int, missing: int, unclear: int, limit: float
) -> None:
    some, n = verdicts(labelled, missing, unclear), labelled + missing + unclear
    wanted = n > 0 and missing / n <= limit
    assert (reliability(some, limit) is None) == wanted == (reliability([v.to_dict() for v in some], limit) is None)
    assert reliability([None, *some], 0.0) is not None


@pytest.mark.parametrize("limit", [-0.1, 1.1, float("nan"), "5 %", True])
def test_a_limit_is_a_share_and_one_in_twenty_by_default(limit: Any) -> None:
    with pytest.raises(ConfigError, match="expected a share"):
        reliability(verdicts(1, 0), limit)
    assert [reliability(verdicts(n, 1)) is None for n in (18, 19)] == [False, True]


# --- labels -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def labelled(tmp_path: Path) -> Callable[..., Any]:
    def write(*rows: dict[str, Any] | str, name: str = "labels.jsonl", **options: Any) -> Any:
        path = tmp_path / name
        path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows), "utf-8")
        return judge_from({"name": "labels", "path": str(path), **options})

    return write


def test_human_labels_are_joined_by_the_documents_id_whatever_their_order(labelled: Callable[..., Any]) -> None:
    judge = labelled(
        {"id": 2, "label": None, "reason": "blurred"}, {"id": "0", "label": "Hallucinated"}, {"id": 1, "label": 0}
    )
    verdicts = judge.judge(cases("a", "b", "c"))
    assert [v.label for v in verdicts] == [1, 0, None]
    assert verdicts[2] == Verdict(None, "blurred", "labels:labels.jsonl", "1")


def test_ids_that_do_not_match_are_errors_that_name_them(labelled: Callable[..., Any]) -> None:
    judge = labelled({"id": 0, "label": 1}, {"id": "x", "label": 1})
    with pytest.raises(DataError, match=r"no label for '1'; no document for 'x'.*partial=true"):
        judge.judge(cases("a", "b"))
    judge = labelled({"id": 0, "label": 1}, {"id": "x", "label": 1})
    with pytest.raises(DataError, match=r"jsonl: no document for 'x'\. If"):
        judge.judge(cases("a"))
    judge = labelled({"id": 0, "label": 1}, {"id": "x", "label": 1}, partial=True)
    assert [v.label for v in judge.judge(cases("a", "b"))] == [1, None]
    judge = labelled({"id": "x", "label": 1}, partial=True)
    with pytest.raises(DataError, match="not one of 2 documents has a label"):
        judge.judge(cases("a", "b"))


def test_a_label_of_another_answer_is_an_error(labelled: Callable[..., Any]) -> None:
    for row in ({"answer": "left  side"}, {"baseline": {"text": "left side"}}):
        judge = labelled({"id": 0, "label": 0, **row})
        assert judge.judge(cases("left side"))[0].label == 0
        with pytest.raises(DataError, match=r"labels of other answers.*'0'"):
            judge.judge(cases("right side"))


@pytest.mark.parametrize(
    ("rows", "options", "words"),
    [
        (['{"id": 1, "label": 2}'], {}, ":1: label is 2; expected 1"),
        (['{"id": 1, "label": "maybe"}'], {}, "'maybe'"), (['{"id": 1}'], {}, "no 'label'; there are id"),
        (['{"id": 1, "label": "x"}'], {"scheme": "shale"}, "none of without, with, unclear"),
        ([], {}, "no labels in it"), (["id,id", "1,1"], {"name": "l.csv"}, "names a column twice"),
    ],
)  # fmt: skip
def test_a_damaged_file_of_labels_is_named_with_its_line(
    rows: list[str], options: dict[str, Any], words: str, labelled: Callable[..., Any]
) -> None:
    with pytest.raises(DataError, match=words):
        check_judge(labelled(*rows, **options))


# --- panels -----------------------------------------------------------------------------------------------------------


def test_the_majority_of_the_votes_cast_decides() -> None:
    for votes in product((0, 1, None), repeat=3):
        panel = Panel([Fixed(name, vote) for name, vote in zip("abc", votes, strict=True)])
        [verdict] = panel.judge(cases("x"))
        cast = [vote for vote in votes if vote is not None]
        more = sum(cast) - (len(cast) - sum(cast))
        assert verdict.label == (None if more == 0 else int(more > 0))
        assert [vote.label for vote in verdict.votes] == list(votes)


@pytest.mark.parametrize(("texts", "other", "n_votes"), [(10, 10, 1), (9, 9, 2), (10, 9, 2)])
def test_judges_that_write_ten_replies_alike_word_for_word_are_one(
    texts: int, other: int, n_votes: int, said: list[str]
) -> None:
    class Writes(Fixed):
        texts = 0

        def judge(self, judged: Sequence[Case]) -> list[Verdict]:
            return [replace(v, raw=f"{i % self.texts}") for i, v in enumerate(super().judge(judged))]

    members = [Writes(name, *[1] * 12) for name in "ab"]
    members[0].texts, members[1].texts = texts, other
    verdicts = Panel([*members, Fixed("c", *[0] * 12)]).judge(cases(*"x" * 12))
    assert [len(verdict.votes) for verdict in verdicts] == [1 + n_votes] * 12
    assert {verdict.label for verdict in verdicts} == {None if n_votes == 1 else 1}
    assert (verdicts[0].votes[0].judge == "a = b") == (n_votes == 1)
    assert ("- a = b say the same of every case" in "".join(said)) == (n_votes == 1)


def test_judges_that_keep_the_reply_they_read_are_as_many_as_they_are() -> None:
    answers = cases(*(f"{letter}, as I see it on picture {i}" for i, letter in enumerate("ABAB" * 3)))
    options = [replace(case, question="Which?\nA. left\nB. right", reference="A") for case in answers]
    verdicts = judge_from([{"name": "option"}, {"name": "option", "parsing": "official"}]).judge(options)
    assert {len(verdict.votes) for verdict in verdicts} == {2}


def test_of_a_report_that_was_cut_the_last_sentence_is() -> None:
    shown: list[Case] = []

    class Notes(Fixed):
        def judge(self, judged: Sequence[Case]) -> list[Verdict]:
            shown.extend(judged)
            return super().judge(judged)

    for cut in (True, False):
        SentenceJudge(Notes("x", 0, 1)).judge([replace(c, cut=cut) for c in cases("The heart is large. The lungs are")])
    assert [c.cut for c in shown] == [False, True, False, False]


@settings(max_examples=20)
@given(st.lists(st.sampled_from("abc")))
def test_a_majority_is_more_than_half(values: list[str]) -> None:
    winners = [value for value in set(values) if 2 * values.count(value) > len(values)]
    assert majority(values) == (winners[0] if winners else None)


# --- bounds and refusals ----------------------------------------------------------------------------------------------


def test_a_closed_question_is_judged_by_the_letter_read() -> None:
    case = Case("1", "Which side?\nA. left\nB. right", " b ", "The answer is (B). " + "x" * 30_000)
    official = judge_from({"name": "option", "parsing": "official"})
    for judge in (judge_from("option"), official):
        right, wrong = judge.judge([case, replace(case, reference="A")])
        assert (right.label, wrong.label, right.category, len(right.raw or "")) == (0, 1, "B", 20_000)
        assert [vote.judge for vote in right.votes] == ["option:hedge", "option:official"]
    assert official.judge([replace(case, answer="B")])[0].basis == "no answer"
    with pytest.raises(DataError, match=r"1: 'C' is no option of 'Which side\?"):
        official.judge([replace(case, reference="C")])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: parse_spec([]), r"expected a name, .* got \[\]"),
        (lambda: parse_spec(b"rule"), "expected a name"),  # type: ignore[arg-type]
        (lambda: parse_spec({"name": ""}), "'name' is missing"),
        (lambda: required_judge("none", OptionJudge, "t"), "t: the judge must be 'option', got 'none'"),
        (lambda: Fallback(["llm:model=a", "llm:model=b"], ()), "expected one judge"),
        (lambda: Fallback({"name": "llm", "prompt": "hedge"}, ()), "one judge that asks a model"),
        (lambda: Fallback("rule", ()), "one judge that asks a model"),
        (lambda: load_judge_prompt("hegde"), "unknown judge prompt 'hegde', did you mean 'hedge'"),
        (lambda: load_judge_prompt(3), "expected a name or a path, got 3"),  # type: ignore[arg-type]
        (lambda: HFJudge("m", dtype="float"), "unknown dtype 'float', did you mean 'float32'"),
        (lambda: judge_from("llm:images=true,prompt=reply_option"), "images: the prompt .* shows none"),
        (lambda: stand_beside(["h"], {}, ["1"]), "must be one an answer"),
        (lambda: stand_beside(["h"], {"a": ["h", "h"]}, ["1"]), "must be one an answer"),
        (lambda: strata_of([], 1), "nothing to label"),
        (lambda: strata_of([1], 0), "nothing to label"),
        (lambda: check_categories([Case("1", "q", "r", "a")], [HumanLabel("1", None, "with", {})],
            [Verdict(None, "", "j", "1", category="odd")], "shale", [Facet("g", "open")]), "the judge says odd"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(make: Callable[[], object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        make()


def test_a_verdict_is_one_of_three_and_judges_say_what_they_are(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="1, 0 or None, got 2"):
        Verdict(2, "", "j", "1")
    settings = HFJudge("org/m", peft="org/a").settings()
    assert {key: settings[key] for key in ("model", "peft", "asks", "max_tokens")} == {
        **{"model": "org/m", "peft": "org/a", "asks": 2, "max_tokens": 256}
    }
    packaged = HFJudge("package://hedge_tasks.judging/prompts").settings()["model"]
    assert packaged == f"prompts@{fingerprint(Path(str(files('hedge_tasks.judging'))) / 'prompts')}"
    settings = LLMJudge("m").settings()
    assert (settings["asks"], settings["max_tokens"], len(settings["prompt_digest"])) == (2, 512, 16)
    assert parse_spec(["rule", '["none", {"name": "hf"}]']) == [{"name": name} for name in ("rule", "none", "hf")]
    assert [reads_replies(said) for said in ({"parsing": "hedge"}, {"judge": "x"}, None)] == [True, False, False]
    assert (title("hf", f"{tmp_path}/"), title("hf", "org/m")) == (f"hf:{tmp_path.name}", "hf:org/m")


@pytest.mark.parametrize(("processes", "alone"), [(1, True), (2, False)])
def test_labels_of_others_documents_are_none_of_a_process_among_several(
    processes: int, alone: bool, labelled: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = {"is_available": True, "is_initialized": True, "get_world_size": processes}
    among = SimpleNamespace(**{name: lambda value=value: value for name, value in fields.items()})
    monkeypatch.setitem(sys.modules, "torch.distributed", among)  # type: ignore[arg-type]
    judge = labelled({"id": 0, "label": 1}, {"id": "x", "label": 1})
    with pytest.raises(DataError, match="no document for 'x'") if alone else nullcontext():
        assert judge.judge(cases("a"))[0].label == 1


def test_the_kind_is_that_of_most_judges_who_tell_one() -> None:
    unsure = [Fixed(name, None, categories=["unclear"]) for name in "ab"]
    kinds = [Panel([*unsure, Fixed("c", label)]).judge(cases("x"))[0].category for label in (None, 1)]
    assert kinds == ["unclear", None]


def test_one_of_several_references_is_enough() -> None:
    assert [verdict.label for verdict in judge_from("none").judge(cases("left", "right"))] == [None, None]
    references = {"left\nright": 0, "right\n": 1, "": None, "right\nfoobar": None}
    answered = [replace(case, reference=r) for r in references for case in cases("left")]
    verdicts = AnyReference().judge(answered)
    assert [(v.label, v.judge) for v in verdicts] == [(label, "any_of") for label in references.values()]


def test_ten_ids_are_listed(labelled: Callable[..., Any]) -> None:
    ids = [str(i) for i in range(11)]
    assert listing(ids[:10]).endswith("'8', '9'")
    assert listing([*ids, *ids]).endswith("'9' and 1 more")
    assert isinstance(judge := labelled({"id": 1, "label": 1}), LabelsJudge)
    assert (len(judge.settings()["digest"]), judge.settings()["file"]) == (16, "labels.jsonl")
    with pytest.raises(DataError, match=r"labels.jsonl: labelled more than once: '1'"):
        check_judge(labelled({"id": 1, "label": 1}, {"id": 1, "label": 1}))
    assert labelled({"id": 0, "label": None}, scheme="shale").judge(cases("a"))[0].label is None


def test_a_case_is_shown_in_part_where_it_is_long() -> None:
    prompt = load_judge_prompt("hedge")
    shown = [prompt.values(Case("1", "q", "r", "a" * n))["answer"] for n in (8000, 8001, 0)]
    assert shown == ["a" * 8000, "a" * 8000 + " [cut off here]", ""]
    assert prompt.values(Case("1", "q", "", "a", description=""))["description"] is None


def test_pictures_are_below_their_folder_and_shown_at_a_bounded_size(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for place in ("in/a.png", "out.png"):
        Image.new("RGB", (3072, 1000)).save(tmp_path / place)
    folder = tmp_path / "in"
    assert picture_below(folder, "elsewhere/a.png", "1") == picture_below(folder, "a.png", "1") == folder / "a.png"
    with pytest.raises(DataError, match=r"1: there is no picture ../out.png below"):
        picture_below(folder, "../out.png", "1")
    page = tmp_path / "page.html"
    write_review(page, "t", [ReviewItem("1", {}, "c", [Image.open(folder / "a.png")])])
    [url] = re.findall(r'src="data:image/jpeg;base64,([^"]+)"', page.read_text("utf-8"))
    assert Image.open(io.BytesIO(base64.b64decode(url))).size == (1536, 500)
    rows = tmp_path / "rows.jsonl"
    fields = {"question": "q", "reference": "r", "answer": "a", "label": 1}
    rows.write_text(
        "".join(json.dumps({**fields, **more}) + "\n" for more in ({}, {"image": "a.png"}, {"label": None}))
    )
    read, human = read_checked(rows, images=folder)
    assert [case.images is not None for case in read] == [False, True]
    assert [(f.group, f.kind) for f in facets(read, human)] == [("question q", "open"), ("image a.png", "open")]
    with pytest.raises(ConfigError, match="unknown column 'pictur'"):
        read_checked(rows, columns={"pictur": "image"})
    rows.write_text(json.dumps({**fields, "label": None}))
    with pytest.raises(DataError, match="no row has a label"):
        read_checked(rows)


def test_a_file_may_call_its_columns_as_it_likes(tmp_path: Path) -> None:
    row = {"question": "q", "reference": "r", "answer": "a", "description": "d", "kind": "k", "image": "i.png"}
    for prefix, known in (("", True), ("", False), ("my ", True)):
        columns = {name: f"{prefix}{name}" for name in (*row, "label")} if known else None
        (file := tmp_path / "rows.jsonl").write_text(
            json.dumps({f"{prefix}{name}": value for name, value in {**row, "label": "unclear"}.items()})
        )
        read, human = read_checked(file, scheme="shale", columns=columns)
        assert read == [Case("1", "q", "r", "a", "d")]
        assert [(label.label, label.category) for label in human] == [(None, "unclear")]
        assert facets(read, human, columns) == [Facet("image i.png", "k")]


@given(st.lists(st.sampled_from([0, 1, None]), min_size=1, max_size=60), st.integers(1, 70))
@example([1] * 25 + [0] * 75, 20)
def test_a_stratum_stands_alone_where_it_gets_five_labels_and_labels_are_in_proportion(
    judged: list[int | None], n: int
) -> None:
    found, n = strata_of(judged, n), min(n, len(judged))
    largest = max((1, 0, None), key=judged.count)
    together = [label if judged.count(label) * n / len(judged) >= 5 else largest for label in judged]
    pairs = set(zip(found.stratum.tolist(), together, strict=True))
    assert len(pairs) == len(set(together)) == len(found.take)
    sizes = [found.stratum.tolist().count(h) for h in range(len(found.take))]
    assert sum(found.take) == n
    assert all(abs(take - n * size / len(judged)) < 1 for take, size in zip(found.take, sizes, strict=True))
    drawn = found.drawn(random.Random(0))
    assert len(set(drawn)) == n
    assert [found.stratum[drawn].tolist().count(h) for h in range(len(sizes))] == list(found.take)


def test_a_plan_is_of_the_second_format(tmp_path: Path) -> None:
    plan = plan_at_random(["a", "b"])
    assert (plan.hedge_audit, plan.seed, plan.strata[0].size) == (2, 0, 2)
    for stratum, wrong in ((0, False), (1, True)):
        (tmp_path / "plan.json").write_text(plan.model_copy(update={"documents": {"a": stratum}}).model_dump_json())
        with pytest.raises(DataError, match=r"documents\.a: there is no such stratum") if wrong else nullcontext():
            read_plan(tmp_path / "plan.json")
    assert majority_of_all(["b", "a", "b", "a"]) == ["a"] * 4
