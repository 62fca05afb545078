"""SHALE: items of the released files, how replies are read, the metrics, and the data set that is built."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rows import rows_of

from hedge_tasks.suites.shale.items import (
    read_item,
)
from hedge_tasks.suites.shale.measures import MEASURES

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


def test_sentences_about_measures_have_no_places_left_open() -> None:
    """The resistance rates were once described with a place that nobody filled."""
    sentences = {m.name: m.about for m in MEASURES}
    assert "when the image is perturbed; mean over scenarios" in sentences["resistance_image"]
    assert {name: about for name, about in sentences.items() if "{" in about} == {}
