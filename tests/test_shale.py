"""SHALE: items of the released files, how replies are read, the metrics, and the data set that is built."""

from __future__ import annotations

import io
import itertools
import json
import random
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from rows import rows_of
from shale_set import small_set

from hedge_tasks.cli import main
from hedge_tasks.data.splits import load_split
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.judging import Case, build_judge
from hedge_tasks.replies.official import shale_choice, shale_yes_no
from hedge_tasks.replies.parsing import PARSINGS
from hedge_tasks.suites.shale.building import build, image_folder, scene_groups
from hedge_tasks.suites.shale.items import (
    DATASET,
    NOISY_SCENARIOS,
    SCENARIOS,
    ShaleItem,
    options_of,
    read_item,
)
from hedge_tasks.suites.shale.judge import read
from hedge_tasks.suites.shale.measures import MEASURES
from hedge_tasks.suites.shale.released import read_released, scenario_of
from hedge_tasks.suites.shale.task import process_docs

METRICS = rows_of(MEASURES)

FRUIT = "What is it? (A) a pear (B) a plum (C) a peach plum (D) a fig"


def row(number: int = 1, **changes: Any) -> dict[str, Any]:
    """A row in the spelling of the README."""
    fields = {
        "id": number,
        "task": "PosYNQ",
        "hallucination_type": "faithfulness",
        "evaluation_dimension": "type",
        "entity_type": "object",
        "images": [f"./Image/{number}.jpg"],
        "instruction": "Is the object in the image a pan?",
        "ground_truth": "Yes",
    }
    return {key: value for key, value in {**fields, **changes}.items() if value is not None}


MCQ = {"task": "MCQ", "instruction": FRUIT, "ground_truth": None}


# --- items ------------------------------------------------------------------------------------------------------------


def test_the_sample_of_the_readme_is_read(shared_data: Path) -> None:
    file = shared_data / "shale" / "readme_sample_row.json"
    if not file.is_file():
        pytest.skip("the sample row of SHALE is not here")
    [sample] = json.loads(file.read_text("utf-8"))
    item = read_item(sample, "clean", "sample")
    assert (item.task, item.aspect, item.image, item.answer) == ("ynq", "type", "Image/1.jpg", "Yes")
    assert (item.kind, item.entity, item.distractor) == ("faithfulness", "object", "No")


def test_both_spellings_of_the_fields_mean_the_same() -> None:
    code = {**row(), "Ground Truth": "yes"}
    del code["ground_truth"]
    assert read_item(code, "clean", "x") == read_item(row(), "clean", "x")
    by_letter = read_item(row(**MCQ, **{"Ground Truth Option": "(B)"}), "clean", "x")
    by_text = read_item(row(**{**MCQ, "ground_truth": "a plum"}), "clean", "x")
    assert by_letter == by_text
    assert by_letter.answer == "(B) a plum"
    assert by_letter.distractor == "a pear"
    open_item = read_item(
        row(task="OpenVQA", ground_truth="a pan", image_prompt="a pan", Facts=["Hot.", "Iron."]), "txt", "x"
    )
    assert (open_item.task, open_item.description, open_item.facts) == ("ffq", "a pan", "Hot. Iron.")
    assert read_item(row(task="Caption", ground_truth="a pan"), "txt", "x").task == "ic"
    assert read_item(row(evaluation_dimension="OCR"), "clean", "x").aspect == "scene_text"
    assert read_item(row(evaluation_dimension="Spatial Relation"), "clean", "x").aspect == "spatial_relation"


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"task": "Essay"}, "unknown task 'Essay'"),
        ({"ground_truth": None}, "'ground_truth' is missing"),
        ({"ground_truth": "maybe"}, "'maybe'"),
        ({"instruction": " "}, "'instruction' is missing"),
        ({"images": ["a.jpg", "b.jpg"]}, "expected one image"),
        ({"images": {"a": 1}}, "expected one image"),
        ({**MCQ, "Ground Truth Option": "(E)"}, "the right option 'E' is none"),
        ({**MCQ, "ground_truth": "a kiwi"}, "'a kiwi' is none"),
        ({**MCQ, "Ground Truth Option": "(A)", "instruction": "Which?"}, "is none of the question's"),
        ({"evaluation_dimension": True}, "'evaluation_dimension' is missing"),
    ],
)
def test_a_row_that_makes_no_sense_is_named(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(DataError) as caught:
        read_item(row(**changes), "clean", "Clean.json[7]")
    assert str(caught.value).startswith("Clean.json[7]: ")
    assert complaint in str(caught.value)


def test_zero_is_an_id() -> None:
    assert read_item(row(0), "clean", "x").id == read_item(row(7, clean_id=0), "crp", "x").id == "0"


def test_a_row_that_is_no_object_is_named() -> None:
    with pytest.raises(DataError, match=r"Clean.json\[0\]: expected an object, got list"):
        read_item([], "clean", "Clean.json[0]")  # type: ignore[arg-type]


def test_options_are_found_and_a_lone_letter_is_none() -> None:
    assert options_of(FRUIT) == {"A": "a pear", "B": "a plum", "C": "a peach plum", "D": "a fig"}
    assert options_of("Which?\n(A) Up.\n(B) Down.") == {"A": "Up", "B": "Down"}
    assert options_of("Is the sign (A) red?") == {}
    assert options_of("(A) x (A) y") == {}


@pytest.mark.parametrize(
    ("stem", "scenario"),
    [
        *(("Clean", "clean"), ("Style", "sty"), ("Corruption", "crp"), ("Adversarial", "adv"), ("SceneText", "txt")),
        *(("scene_text-P", "txt_p"), ("CRP-P", "crp_p"), ("StylePrefix", "sty_p"), ("adversarial_prefix", "adv_p")),
        *(("Synonyms", "syn"), ("PFX", "pfx"), ("Clean-P", None), ("readme", None), ("Syn-P", None)),
    ],
)
def test_the_names_of_query_files_mean_scenarios(stem: str, scenario: str | None) -> None:
    assert scenario_of(stem) == scenario


# --- a folder of query files ------------------------------------------------------------------------------------------


def png(shade: int = 0) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (8, 6), (shade, 9, 9)).save(buffer, "PNG")
    return buffer.getvalue()


def folder_with(root: Path, **files: Any) -> Path:
    (root / "query_json").mkdir()
    for name, rows in files.items():
        text = rows if isinstance(rows, str) else json.dumps(rows)
        (root / "query_json" / f"{name}.json").write_text(text, "utf-8")
    return root


def test_perturbed_items_belong_to_their_clean_ones_by_id(tmp_path: Path) -> None:
    folder = folder_with(
        tmp_path,
        Clean=[row(1), row(2, evaluation_dimension="color")],
        Style=[row(2, evaluation_dimension="color"), row(1)],
        Corruption=[row(2, evaluation_dimension="color")],
        Adversarial=[row(9, clean_id=2, evaluation_dimension="color")],
        SceneText=[row(1, evaluation_dimension="count"), row(77)],
        notes=[],
    )
    found = read_released(folder)
    ids = {s: [item.id for item in found.items if item.scenario == s] for s in SCENARIOS}
    assert (ids["clean"], ids["sty"], ids["crp"], ids["adv"]) == (["1", "2"], ["2", "1"], ["2"], ["2"])
    # Another aspect is another question, and an id that no clean item has is nobody's: neither may count as a pair.
    assert dict(found.unpaired) == {"txt": ("1", "77")}
    assert ids["txt"] == ["1-unpaired", "77-unpaired"]
    assert found.other_files == ("notes.json",)
    assert set(found.missing) == {"syn", "pfx", "sty_p", "crp_p", "adv_p", "txt_p"}
    assert found.problems == ()


def test_the_layout_of_the_readme_is_read(tmp_path: Path) -> None:
    """`./Query` and `./Image`; the code has `query_json`."""
    folder = folder_with(tmp_path, Clean=[row(1)], Style=[row(1)])
    (folder / "query_json").rename(folder / "Query")
    assert [item.scenario for item in read_released(folder).items] == ["clean", "sty"]
    (folder / "Query" / "Clean.json").rename(folder / "Query" / "questions.json")
    with pytest.raises(DataError, match=r"expected query_json/Clean.json or Query/Clean.json; there is questions.json"):
        read_released(folder)


def test_what_cannot_be_read_is_left_out_and_named(tmp_path: Path) -> None:
    found = read_released(folder_with(tmp_path, Clean=[row(1), row(2, task="?"), row(1), 5]))
    assert [item.id for item in found.items] == ["1"]
    assert [problem.split(":")[0] for problem in found.problems] == ["Clean.json[1]", "Clean.json[2]", "Clean.json[3]"]
    assert "the id '1' occurs twice" in found.problems[1]


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        ({"Style": []}, "no query file of the clean scenario"),
        ({"Clean": "[" * 5000}, "not valid JSON"),
        ({"Clean": {"a": 1}}, "expected a list of items, got dict"),
        ({"Clean": [], "clean": []}, "are both of the scenario 'clean'"),
        ({"Clean": "\udcff".encode("utf-8", "surrogatepass").decode("latin1")}, "not valid JSON"),
    ],
)
def test_a_damaged_folder_is_an_error(tmp_path: Path, files: dict[str, Any], complaint: str) -> None:
    with pytest.raises(DataError, match=complaint):
        read_released(folder_with(tmp_path, **files))


def test_names_that_lead_out_of_the_folder_are_no_images(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out.png").write_bytes(png())
    (tmp_path / "in" / "a.png").write_bytes(png())
    read = image_folder(tmp_path / "in")
    assert read("a.png") == png()
    assert (
        read("../out.png")
        is read(str(tmp_path / "out.png"))
        is read("b.png")
        is read("x\0y.png")
        is read("x" * 5000)
        is None
    )


# --- replies ----------------------------------------------------------------------------------------------------------


def test_the_official_parsing_is_that_of_the_published_code() -> None:
    for reply in ("Yes", "YES", "I know", "(B) or (A)", "B", ""):
        assert read("official", reply, "Is it?").value == shale_yes_no(reply)
        assert read("official", reply, FRUIT).value == shale_choice(reply)


@given(st.text(max_size=80), st.text(max_size=80))
def test_no_reply_breaks_a_reader(reply: str, question: str) -> None:
    for parsing in PARSINGS:
        assert read(parsing, reply, "Is it?").value in ("yes", "no", None)
        assert read(parsing, reply, FRUIT).value in (*"ABCD", None)
        read(parsing, reply, question)


def test_the_judge_keeps_both_readings() -> None:
    judge = build_judge("shale")
    right, wrong, mute = judge.judge(
        [
            Case("1", "Is it?", "No", "I do not think so. No."),
            Case("2", FRUIT, "(B) a plum", "(A)"),
            Case("3", "Is it?", "No", "I know nothing."),
        ]
    )
    assert [(v.label, v.category) for v in (right, wrong, mute)] == [(0, "no"), (1, "A"), (None, "unreadable")]
    # "know" contains a no.
    assert [vote.category for vote in mute.votes] == ["unreadable", "no"]
    assert build_judge("shale", parsing="official").judge([Case("3", "Is it?", "No", "I know it.")])[0].label == 0
    with pytest.raises(ConfigError, match="did you mean 'official'"):
        build_judge("shale", parsing="offical")
    with pytest.raises(DataError, match="4: '\\(E\\) x' is no answer"):
        judge.judge([Case("4", FRUIT, "(E) x", "B")])


# --- metrics ----------------------------------------------------------------------------------------------------------


def record(name: str, right: int | None, scenario: str = "clean", pair: str = "1", **document: Any) -> dict[str, Any]:
    """What a metric is given of one judged answer; None: not judged."""
    label = None if right is None else 1 - right
    fields = {"scenario": scenario, "pair": pair, "group": f"g{pair}", "aspect": "color", "task": "mcq", **document}
    scores = SimpleNamespace(
        label=label, reported_label=label, group=fields["group"], question_type=scenario, se=0, vase=0
    )
    return METRICS[name].record(scores, {"label": label, "category": None}, fields)  # type: ignore[arg-type]


def brute_force(answers: list[tuple[str, str, int | None]], scenarios: tuple[str, ...]) -> float | None:
    """The formula of section 3.3, scenario by scenario, and the mean of those that have one."""
    rates = []
    for scenario in scenarios:
        still, before = 0, 0
        for pair in {pair for pair, _, _ in answers}:
            clean = [r for p, s, r in answers if (p, s) == (pair, "clean")]
            noisy = [r for p, s, r in answers if (p, s) == (pair, scenario)]
            if clean == [1] and noisy and noisy[0] is not None:
                before += 1
                still += noisy[0]
        rates += [still / before] if before else []
    return sum(rates) / len(rates) if rates else None


_answers = st.lists(
    st.tuples(
        st.sampled_from("abcd"), st.sampled_from(["clean", "crp", "txt", "pfx", "crp_p"]), st.sampled_from([0, 1, None])
    ),
    max_size=20,
    unique_by=lambda answer: answer[:2],
)


@pytest.mark.slow
@given(_answers)
def test_the_resistance_rate_is_the_formula(answers: list[tuple[str, str, int | None]]) -> None:
    for name, scenarios in (("resistance_crp", ("crp",)), ("resistance_rate", NOISY_SCENARIOS)):
        value = METRICS[name]([record(name, right, scenario, pair) for pair, scenario, right in answers])
        expected = brute_force(answers, scenarios)
        if expected is None:
            assert str(value).startswith("undefined: no item is right when clean")
        else:
            assert value == pytest.approx(expected, abs=1e-12)


@pytest.mark.slow
def test_the_standard_error_of_resistance_is_that_of_pictures_resampled_whole() -> None:
    choice = random.Random(4)
    answers = [
        (f"{i}", s, int(choice.random() < p))
        for i in range(60)
        for s, p in (("clean", 0.8), ("crp", 0.6), ("txt", 0.3))
    ]
    made = [record("resistance_image", right, s, pair, group=f"g{int(pair) // 2}") for pair, s, right in answers]
    generator, drawn = np.random.default_rng(99), []
    groups = {g: [a for a in answers if int(a[0]) // 2 == g] for g in range(30)}
    for _ in range(200):
        sample = [
            (f"{copy}.{pair}", scenario, right)
            for copy, g in enumerate(generator.integers(0, 30, 30))
            for pair, scenario, right in groups[int(g)]
        ]
        drawn.append(brute_force(sample, ("crp", "txt")))
    stderr = METRICS["resistance_image"].stderr(made)
    assert stderr == pytest.approx(np.std(drawn), rel=0.2)
    assert METRICS["resistance_image"].stderr(made[::-1]) == pytest.approx(stderr, rel=1e-9)


def test_shares_count_their_own_scenario_or_clean_aspect_only() -> None:
    made = [
        *(("clean", "color", 1), ("clean", "color", 0), ("clean", "sports", 1)),
        *(("crp", "color", 0), ("crp", "sports", 0), ("crp", "color", None)),
    ]

    def value(name: str) -> Any:
        return METRICS[name]([record(name, r, s, str(i), aspect=a) for i, (s, a, r) in enumerate(made)])

    assert value("accuracy_clean") == pytest.approx(2 / 3)
    assert value("accuracy_crp") == 0
    assert (value("accuracy_perception"), value("accuracy_knowledge")) == (0.5, 1)
    assert value("accuracy_txt") == "undefined: no judged document is of scenario txt"


def test_unclear_is_not_free_of_hallucination_and_no_verdict_is_nothing() -> None:
    document = {"scenario": "clean", "aspect": "color", "group": "g", "pair": "1"}
    verdicts = [
        {"label": 0, "category": "without"},
        {"label": 1, "category": "with"},
        {"label": None, "category": "unclear"},
        {"label": None, "category": None},
    ]
    scores: Any = SimpleNamespace()
    for name, expected in (("non_hallucination_clean", 1 / 3), ("unclear_rate", 1 / 3)):
        made = [METRICS[name].record(scores, verdict, document) for verdict in verdicts]
        assert METRICS[name](made) == pytest.approx(expected)


def test_the_average_weighs_both_types_of_questions_the_same() -> None:
    made = [record("accuracy_average", r, task=t) for t, r in (("ynq", 1), ("ynq", 1), ("ynq", 1), ("mcq", 0))]
    assert METRICS["accuracy_average"](made) == 0.5
    only = [record("accuracy_average", 1, task="ynq")]
    assert METRICS["accuracy_average"](only) == "undefined: no judged document is of scenario clean, task mcq"
    assert METRICS["accuracy_average"].stderr(only) == "N/A"


def test_the_standard_error_of_the_average_keeps_a_picture_together() -> None:
    choice = random.Random(2)
    right = [int(choice.random() < 0.6) for _ in range(200)]
    # Both questions about a picture are right or wrong alike: as many values as pictures. Apart, twice as many.
    together = [record("accuracy_average", r, pair=str(i), task=t) for i, r in enumerate(right) for t in ("ynq", "mcq")]
    apart = [
        record("accuracy_average", r, pair=str(i), task=t, group=f"{t}{(i * 37) % 200 if t == 'ynq' else i}")
        for i, r in enumerate(right)
        for t in ("ynq", "mcq")
    ]
    p = sum(right) / 200
    stderr = METRICS["accuracy_average"].stderr
    assert stderr(together) == pytest.approx((p * (1 - p) / 200) ** 0.5, rel=0.1)
    assert stderr(apart) == pytest.approx((p * (1 - p) / 400) ** 0.5, rel=0.1)
    assert stderr(together) == pytest.approx(stderr(together[::-1]), rel=1e-9)


def test_gain_and_leakage_are_those_of_mmstar() -> None:
    right, blind, base = (1, 1, 1, 0), (1, 1, 0, 1), (0, 1, 0, 0)
    facts = [{"blind_right": b, "base_right": t} for b, t in zip(blind, base, strict=True)]

    def value(name: str, documents: list[dict[str, Any]] = facts) -> Any:
        made = [record(name, r, pair=str(i), **d) for i, (r, d) in enumerate(zip(right, documents, strict=True))]
        return METRICS[name](made)

    assert value("multimodal_gain") == pytest.approx(3 / 4 - 3 / 4)
    assert value("multimodal_leakage") == pytest.approx(3 / 4 - 1 / 4)
    assert value("accuracy_blind") == 3 / 4
    # What the language model knew before is no leakage, and there is no negative one.
    assert value("multimodal_leakage", [{"blind_right": 0, "base_right": 1}] * 4) == 0
    unknown = value("multimodal_leakage", [{"blind_right": 0, "base_right": None}] * 4)
    assert unknown.startswith("undefined: HEDGE_SHALE_BASE names no run")


def test_every_metric_of_the_yamls_exists_once() -> None:
    assert len(METRICS) == len(MEASURES)
    assert {f"accuracy_{name}" for name in SCENARIOS} <= METRICS.keys()
    assert {f"resistance_{name}" for name in NOISY_SCENARIOS} <= METRICS.keys()


# --- the data set -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_data_set_keeps_pairs_together_and_names_what_it_leaves_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = small_set()
    lost, broken = "Image/1-crp.png", "Image/2.png"
    contents: dict[str, bytes] = {**made.images, broken: b"no image"}
    del contents[lost]
    built = build(made.items, contents.get, tmp_path)
    assert (built.missing, built.unreadable) == ((lost,), (broken,))
    usable = [item for item in made.items if item.image not in (lost, broken)]
    assert built.rows == {task: sum(item.task == task for item in usable) for task in built.rows}
    monkeypatch.setenv("HEDGE_DATA_DIR", str(tmp_path))
    closed = load_split(DATASET, None, "discriminative")
    assert len(closed) == built.rows["ynq"] + built.rows["mcq"]
    first = load_split(DATASET, None, "discriminative-mcq").select(range(9))
    assert len(set(first["pair"])) == len(set(first["group"])) == 1
    assert first["scenario"] == [s for s in SCENARIOS if s not in ("crp", "crp_p")]
    assert first[0]["image"].size == (48, 48)
    flag = load_split(DATASET, None, "generative-ffq").filter(lambda r: r["aspect"] == "geography")[0]
    assert flag["known"].startswith(flag["description"] + " The capital of the country with")


@pytest.mark.slow
def test_copies_of_a_scene_are_one_group() -> None:
    """By picture or by description, whatever links them, and whatever the scenario."""
    base = ShaleItem("1", "clean", "ynq", "", "sports", "", "a.png", "?", "Yes")

    def item(id: str, image: str, description: str = "", scenario: str = "clean") -> ShaleItem:
        return replace(base, id=id, image=image, description=description, scenario=scenario)

    groups = scene_groups(
        [
            *(item("1", "a.png"), item("2", "a.png", "A football"), item("3", "b.png", "a  football")),
            *(item("4", "c.png", "a basketball"), item("5", "d.png"), item("5", "d-crp.png", scenario="crp")),
            *(item("6", "b.png"), item("7", "e.png", scenario="crp"), item("8", "e.png", "a basketball", "crp")),
        ]
    )
    assert groups == {**dict.fromkeys("1236", "a.png"), **dict.fromkeys("478", "c.png"), "5": "d.png"}
    made = small_set()
    of = scene_groups(made.items)
    by_group = {group: {item.description for item in made.items if of[item.id] == group} for group in of.values()}
    assert len(by_group) == len({item.description for item in made.items})
    assert all(len(descriptions) == 1 for descriptions in by_group.values())


@pytest.mark.slow
def test_without_any_image_there_is_no_data_set(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="none of the"):
        build(small_set().items, lambda name: None, tmp_path)


def test_scenarios_and_aspects_choose_what_is_asked() -> None:
    rows = [{"scenario": s, "aspect": a} for s, a in itertools.product(("clean", "crp"), ("color", "count"))]
    dataset = Dataset.from_list(rows)
    assert len(process_docs(dataset)) == 4
    assert list(process_docs(dataset, scenarios=["crp"], aspects=["count"])) == [{"scenario": "crp", "aspect": "count"}]
    with pytest.raises(ConfigError, match="did you mean 'crp'"):
        process_docs(dataset, scenarios=["cpr"])
    with pytest.raises(ConfigError, match="did you mean 'scenarios'"):
        process_docs(dataset, scenario=["crp"])
    with pytest.raises(ConfigError, match="must be a list"):
        process_docs(dataset, scenarios="crp")
    with pytest.raises(DataError, match="no item is of"):
        process_docs(dataset, scenarios=["txt"])


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command_reports_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = folder_with(
        tmp_path, Clean=[row(1), row(2), row(3, task="?")], Style=[row(1, images=["./Image/2.jpg"]), row(8)]
    )
    (tmp_path / "Image").mkdir()
    (tmp_path / "Image" / "1.jpg").write_bytes(png())
    (tmp_path / "Image" / "8.jpg").write_bytes(b"?")
    assert main(["data", "shale", str(folder), "--json"]) == 1
    facts = json.loads(capsys.readouterr().out)["SHALE"]
    assert (facts["items"], facts["missing"], facts["unreadable"]) == (4, ["Image/2.jpg"], ["Image/8.jpg"])
    assert any(line.startswith("no query file for: crp, adv") for line in facts["faults"])
    assert main(["data", "shale", str(folder), "--out", str(tmp_path / "out")]) == 1
    text = capsys.readouterr().out
    assert "left out: Clean.json[2]: unknown task '?'" in text
    assert "sty: no clean item for: 8" in text
    assert (tmp_path / "out" / "BeiiiY__SHALE" / "discriminative-ynq.parquet").is_file()


def test_sentences_about_measures_have_no_places_left_open() -> None:
    """The resistance rates were once described with a place that nobody filled."""
    sentences = {m.name: m.about for m in MEASURES}
    assert "when the image is perturbed; mean over scenarios" in sentences["resistance_image"]
    assert {name: about for name, about in sentences.items() if "{" in about} == {}
