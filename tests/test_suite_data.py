"""The suites' data: from a download, or rows of the hub, to the questions that are asked, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas
import pytest
from datasets import Dataset
from test_kvasir_choice import rows as kvasir_rows
from test_medhallu import rows as medhallu_rows
from test_shale import FRUIT, folder_with, png, row
from test_vope import story

from hedge_tasks.data.splits import load_split
from hedge_tasks.errors import DataError, HedgeError
from hedge_tasks.judging import build_judge
from hedge_tasks.suites import documents
from hedge_tasks.suites.correlation import correlation_table, read_scores
from hedge_tasks.suites.importing import ImportChoice
from hedge_tasks.suites.kvasirvqa_x1 import documents as kvasir
from hedge_tasks.suites.medhallu import documents as medhallu
from hedge_tasks.suites.shale import building as shale
from hedge_tasks.suites.shale.items import read_item
from hedge_tasks.suites.shale.released import read_released
from hedge_tasks.suites.shale.task import process_docs as shale_docs
from hedge_tasks.suites.vope import building as vope
from hedge_tasks.suites.vope.documents import process_docs as vope_docs
from hedge_tasks.suites.vope.judge import relevance_judges
from hedge_tasks.suites.vope.objects import recheck_records
from hedge_tasks.suites.vqarad import documents as vqarad


def test_shale_keeps_the_scenarios_of_an_item_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    about = {"image_prompt": "A red  pan", "facts": ["Pans", "fry."]}
    noisy = [row(2, images=["4.jpg"]), row(1, images=["3.jpg"])]
    lost = [row(3, images=["gone.jpg"]), row(4, images=["no.jpg"])]
    clean = [row(1, **about), row(2, image_prompt="a RED pan"), *lost]
    folder = folder_with(tmp_path, Clean=clean, Corruption=noisy)
    (folder / "no.jpg").write_bytes(b"no image")
    (folder / "Image").mkdir()
    for number in range(1, 4):
        (folder / "Image" / f"{number}.jpg").write_bytes(png(number))
    (folder / "4.jpg").write_bytes(png(4)), (folder / "3.jpg").write_bytes(png(3))
    facts, code = shale.shale(folder, ImportChoice(out=tmp_path / "hub"))
    found = facts["SHALE"]
    assert (code, found["items"], found["rows"]) == (1, 6, {"ynq": 4})
    assert (found["missing"], found["unreadable"]) == (("gone.jpg",), ("no.jpg",))
    monkeypatch.setenv("HEDGE_DATA_DIR", str(tmp_path / "hub"))
    whole = load_split(shale.DATASET, None, "discriminative")
    assert whole["id"][:] == ["1-clean", "1-crp", "2-clean", "2-crp"]
    assert len(set(whole["group"])) == 1, "pictures of one description are of one scene"
    assert whole[0]["known"] == "A red  pan Pans fry."
    assert shale_docs(whole, scenarios=["crp"], aspects=["type"])["pair"][:] == ["1", "2"]
    assert shale_docs(whole).to_list() == whole.to_list()


def test_vope_has_the_objects_of_its_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    items = [{"id": i, "images": [f"COCO_val2014_{i}.jpg"], "truth": ["puppy", "dog", "car"][i:]} for i in range(2)]
    (tmp_path / "coco.json").write_text(json.dumps(items), "utf-8")
    for name in ("0.jpg", "COCO_val2014_1.jpg"):
        (tmp_path / name).write_bytes(png(1))
    facts, code = vope.vope(tmp_path / "coco.json", ImportChoice(out=tmp_path / "hub"))
    assert (code, facts["test"]["items"]) == (0, 2)
    monkeypatch.setenv("HEDGE_DATA_DIR", str(tmp_path / "hub"))
    asked = vope_docs(load_split(vope.DATASET, None, "test"))
    assert asked.remove_columns("image").to_list() == [
        {"id": f"{i}", "asked": "this image", "truth": "car, dog"} for i in range(2)
    ]


def test_kvasirvqa_x1_has_ids_kinds_and_what_its_questions_are_made_of() -> None:
    levels = {"complexity": [1, 2, 1, 1], "question": ["q?"] * 4, "img_id": ["i", "i", "i", "j"]}
    found = kvasir.process_docs(kvasir_rows(["b", "b", "a", "a"], **levels), size=3)
    assert found["question_kind"][:] == ["b", "a", "a"]
    first, second, third = found["question_id"]
    assert second == f"{first}.1"
    assert first.startswith("i-")
    assert third == first.replace("i-", "j-")
    assert found["description"][:] == ["Any polyps? no"] * 3
    assert [kvasir.atomic_pairs(text) for text in ("no JSON", '[{"q": 1}]', "3")] == [""] * 3
    assert [kvasir.question_kind(classes) for classes in ("x", ["b", "a"], None)] == ["x", "a + b", ""]
    assert kvasir.process_docs(kvasir_rows(["a"] * 9, complexity=[3] * 9), complexity=None, size=None).num_rows == 9


def test_knowledge_of_medhallu_is_a_text_or_paragraphs() -> None:
    texts = [
        medhallu.process_docs(medhallu_rows(1).remove_columns("Knowledge").add_column("Knowledge", [k]))
        for k in ("One.", ["One.", "Two."])
    ]
    assert [text["knowledge"][0] for text in texts] == ["One.", "One.\nTwo."]
    assert [medhallu.short_category(name) for name in ("Incomplete Information", " Other ")] == ["incomplete", "other"]


def test_benchmarks_are_correlated_over_common_models(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("model,A,B\nx,1,3\ny,2,1\nz,3,\nw,4,4\n")
    found = {
        r["pair"]: (r["models"], r["r"])
        for r in correlation_table("us", {"x": 3, "y": 2, "z": 1}, read_scores(path)).rows
    }
    assert found["us / A"] == (3, pytest.approx(-1))
    assert found["us / B"] == (2, None)
    assert found["A / B"] == (3, pytest.approx(pandas.Series([1, 2, 4]).corr(pandas.Series([3, 1, 4]))))
    for text, words in (("model,A\nx,1\nx,2\n", "there twice"), ("model,A\nx,one\n", "expected a column")):
        path.write_text(text)
        with pytest.raises(DataError, match=words):
            read_scores(path)
    with pytest.raises(DataError, match="no model of the runs"):
        correlation_table("us", {"q": 1.0}, pandas.DataFrame({"A": [1.0]}, index=["x"]))


def of(rows: Dataset, **columns: Any) -> Dataset:
    return Dataset.from_dict({**rows.to_dict(), **{name: [value] for name, value in columns.items()}})


def asked_of(**options: Any) -> Dataset:
    return shale_docs(Dataset.from_dict({"scenario": ["clean"], "aspect": ["type"]}), **options)


def written(folder: Path, content: Any, name: str = "x.json") -> Path:
    (folder / name).write_text(json.dumps(content), "utf-8")
    return folder / name


MCQ = {"task": "MCQ", "instruction": FRUIT, "ground_truth": None}
ITEM = {"id": 1, "images": ["a.jpg"], "truth": ["dog"]}
REFUSED: list[tuple[Callable[[Path], object], str]] = [
    (lambda at: medhallu.process_docs(medhallu_rows(1), show="bot"), "value of 'show' 'bot', did you mean 'both'"),
    (lambda at: medhallu.process_docs(medhallu_rows(1), seed=True), "seed must be an integer, got True"),
    (lambda at: medhallu.process_docs(medhallu_rows(1).remove_columns("Question")), "no column Question"),
    (lambda at: medhallu.process_docs(of(medhallu_rows(1), Question=" ")), "row 0 has no question"),
    (lambda at: medhallu.process_docs(of(medhallu_rows(1), Knowledge=" ")), "row 0: Knowledge is"),
    (lambda at: medhallu.process_docs(of(medhallu_rows(1), Knowledge=[])), "row 0: Knowledge is"),
    (lambda at: medhallu.read_groups(written(at, {"q": "?"})), "expected a JSON object"),
    (lambda at: medhallu.read_groups(written(at, ["q"])), "expected a JSON object"),
    (lambda at: kvasir.process_docs(kvasir_rows(["a"]), sizes=3), "'dataset_kwargs' 'sizes', did you mean 'size'"),
    (lambda at: kvasir.process_docs(kvasir_rows(["a"]), size=0), "size: .* of at least 1, got 0"),
    (lambda at: kvasir.process_docs(kvasir_rows(["a"]), size="5"), "size: .* of at least 1, got '5'"),  # type: ignore[arg-type]
    (
        lambda at: kvasir.process_docs(kvasir_rows(["a"]), seed=True),
        "seed: .* of at least 0, got True",
    ),
    (lambda at: kvasir.process_docs(kvasir_rows(["a"]), seed=-1), "seed: .* of at least 0, got -1"),
    (
        lambda at: vqarad.process_docs(Dataset.from_dict({"answer": ["yes", None, "no", " "]})),
        r"2 rows .*\(rows 1, 3\)",
    ),
    (lambda at: read_item(row(ground_truth=None), "clean", "x"), "^x: 'ground_truth' is missing"),
    (lambda at: read_item(row(ground_truth="maybe"), "clean", "x"), "^x: .*'maybe'"),
    (lambda at: read_item(row(images=["a.jpg", "b.jpg"]), "clean", "x"), "^x: expected one image"),
    (
        lambda at: read_item(row(**MCQ, **{"Ground Truth Option": "E"}), "clean", "x"),
        "^x: .* .E. is none",
    ),
    (lambda at: read_item(row(**{**MCQ, "ground_truth": "a kiwi"}), "clean", "x"), "^x: .*'a kiwi' is none"),
    (lambda at: kvasir.process_docs(kvasir_rows(["a"]), complexity=2), r"no question of complexity 2; there are \[1\]"),
    (lambda at: documents.read_items(written(at, [])), "expected a list of items"),
    (lambda at: vope.read_items(written(at, [ITEM, ITEM])), "item 2: the id 1 is there twice"),
    (lambda at: vope.read_items(written(at, [{**ITEM, "truth": "dog"}])), "item 1: expected a list of objects"),
    (lambda at: vope.read_items(written(at, [{**ITEM, "truth": ["dgo"]}])), "did you mean 'dog'"),
    (lambda at: vope.read_items(written(at, [{**ITEM, "images": []}])), "item 1"),
    (lambda at: relevance_judges("rule"), "does not rate relevance"),
    (lambda at: recheck_records(story("A dog", dog=("maybe", "Yes")), build_judge("vope")), "expected the reference"),
    (lambda at: asked_of(scenarios="clean"), "a list"),
    (lambda at: asked_of(scenarios=["cln"]), "'clean'"),
    (lambda at: asked_of(scenarios=["crp"]), "no item"),
    (lambda at: read_released(at), "no query file of the clean scenario"),
    (lambda at: read_released(written(at, [])), "is not a folder"),
    (lambda at: read_released(written(at, {}, "Clean.json").parent), "expected a list of items, got dict"),
    (lambda at: read_released(folder_with(at, Clean=[], Style=[], Sty=[])), "are both of the scenario 'sty'"),
    (lambda at: shale.build(read_released(folder_with(at, Clean=[row()]))[0], {}.get, at), "none of the 1 images"),
]


@pytest.mark.parametrize(("read", "words"), REFUSED)
def test_what_is_none_of_a_suites_data_is_refused(read: Callable[[Path], object], words: str, tmp_path: Path) -> None:
    with pytest.raises(HedgeError, match=words):
        read(tmp_path)
