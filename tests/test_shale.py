"""SHALE: items of the released files, how replies are read, and the data set that is built."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from requested import png

from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.judging import Case, build_judge
from hedge_tasks.replies.parsing import PARSINGS
from hedge_tasks.suites.shale.building import image_folder
from hedge_tasks.suites.shale.items import SCENARIOS, options_of
from hedge_tasks.suites.shale.judge import read
from hedge_tasks.suites.shale.released import read_released

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


# --- items ------------------------------------------------------------------------------------------------------------


def test_options_are_found_and_a_lone_letter_is_none() -> None:
    assert options_of(FRUIT) == {"A": "a pear", "B": "a plum", "C": "a peach plum", "D": "a fig"}
    assert options_of("Which?\n(A) Up.\n(B) Down.") == {"A": "Up", "B": "Down"}
    assert options_of("Is the sign (A) red?") == {}
    assert options_of("(A) x (A) y") == {}


# --- a folder of query files ------------------------------------------------------------------------------------------


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
    items, faults = read_released(folder)
    ids = {s: [item.id for item in items if item.scenario == s] for s in SCENARIOS}
    assert (ids["clean"], ids["sty"], ids["crp"], ids["adv"]) == (["1", "2"], ["2", "1"], ["2"], ["2"])
    # Another aspect is another question, and an id that no clean item has is nobody's: neither may count as a pair.
    assert ids["txt"] == ["1-unpaired", "77-unpaired"]
    assert faults == [
        "no query file for: syn, pfx, sty_p, crp_p, adv_p and 1 more (--json lists all)",
        "files whose name is no scenario's: notes.json",
        "txt: no clean item for: 1, 77",
    ]


def test_names_that_lead_out_of_the_folder_are_no_images(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out.png").write_bytes(png(0))
    (tmp_path / "in" / "a.png").write_bytes(png(0))
    read = image_folder(tmp_path / "in")
    assert read("a.png") == png(0)
    assert (
        read("../out.png")
        is read(str(tmp_path / "out.png"))
        is read("b.png")
        is read("x\0y.png")
        is read("x" * 5000)
        is None
    )


# --- replies ----------------------------------------------------------------------------------------------------------


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
