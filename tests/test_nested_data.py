"""JSON whose questions lie deeper than its rows, or in two files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from hedge_tasks.data.cells import is_question
from hedge_tasks.data.columns import ColumnSettings, find_roles
from hedge_tasks.data.media import PictureFiles
from hedge_tasks.data.nested import flat_rows, joined
from hedge_tasks.data.own_data import look_at, texts_of
from hedge_tasks.data.tables import read_table
from hedge_tasks.errors import DataError


def test_records_beside_each_other_become_columns() -> None:
    rows = [{"qid": 1, "img": {"id": 7, "file": "a.png"}, "qa": {"id": 8, "question": "q?", "answer": "a"}}]
    flat, note = flat_rows(rows, is_question)
    assert flat == [{"qid": 1, "img.id": 7, "file": "a.png", "qa.id": 8, "question": "q?", "answer": "a"}]
    assert note == "rows were opened along img, qa: 1 questions out of 1 records"


def test_lists_of_records_become_rows() -> None:
    """SQuAD's form: data, paragraphs, questions."""
    row = {
        "title": "t",
        "paragraphs": [
            {"image": "a.png", "qas": [{"question": "1?", "answer": "x"}, {"question": "2?", "answer": "y"}]},
            {"image": "b.png", "qas": [{"question": "3?", "answer": "z"}]},
        ],
    }
    flat, _ = flat_rows([row], is_question)
    assert [(r["title"], r["image"], r["question"], r["answer"]) for r in flat] == [
        ("t", "a.png", "1?", "x"),
        ("t", "a.png", "2?", "y"),
        ("t", "b.png", "3?", "z"),
    ]


@pytest.mark.parametrize(
    "row",
    [
        {"question": "q?", "answer": {"text": "a"}},  # nothing has to be opened
        {"image": {"bytes": None, "path": "a.png"}, "caption": "c"},  # nothing asks
        {"easy": [{"question": "1?"}], "hard": [{"question": "2?"}]},  # two ways
        {"image": "a.png", "options": {"A": "x", "B": "y"}},
        {"objects": [{"name": "dog"}], "caption": "c"},
    ],
)
def test_nothing_is_opened_without_need_or_between_two_ways(row: dict[str, Any]) -> None:
    assert flat_rows([row], is_question) == ([row], "")


QUESTIONS = [{"question_id": i, "image_id": i // 2, "question": f"{i}?"} for i in range(4)]


def test_two_files_are_joined_by_the_one_column_that_names_the_rows() -> None:
    answers = [{"question_id": i, "image_id": i // 2, "answer": f"a{i}"} for i in (2, 0, 3, 1)]
    found = joined(answers, QUESTIONS, is_question)
    assert found is not None
    rows, note = found
    assert [(r["question"], r["answer"]) for r in rows] == [("0?", "a0"), ("1?", "a1"), ("2?", "a2"), ("3?", "a3")]
    assert note == "two files, joined by 'question_id'"


@pytest.mark.parametrize(
    "answers",
    [
        [{"question_id": i, "answer": "a"} for i in range(3)],  # one is missing
        [{"question_id": i % 2, "answer": "a"} for i in range(4)],  # no row is named
        [{"question_id": i, "question": "other", "answer": "a"} for i in range(4)],  # both ask
        [{"id": i, "answer": "a"} for i in range(4)],
        [],
    ],
)
def test_files_that_do_not_belong_together_are_not_joined(answers: list[dict[str, Any]]) -> None:
    assert joined(QUESTIONS, answers, is_question) is None


def test_vqav2s_two_files_and_numbers_of_pictures(tmp_path: Path) -> None:
    (tmp_path / "val2014").mkdir()
    for i in range(2):
        Image.new("RGB", (8, 8), (100 * i, 0, 0)).save(tmp_path / "val2014" / f"COCO_val2014_{i:012}.jpg")
    said = [["red"] * 5 + ["crimson"] * 3 + ["rose", "pink"], ["a", "b"] * 2 + list("cdefgh"), ["2"] * 10, ["no"] * 9]
    annotations = [
        {"question_id": i, "answers": [{"answer": text, "answer_id": n} for n, text in enumerate(of)]}
        for i, of in enumerate(said)
    ]
    (tmp_path / "questions.json").write_text(json.dumps({"info": {}, "questions": QUESTIONS}))
    (tmp_path / "annotations.json").write_text(json.dumps({"info": {}, "annotations": annotations[::-1]}))
    table = read_table(tmp_path)
    files = PictureFiles(tmp_path)
    roles = find_roles(table, ColumnSettings(), files)
    assert (roles.question, roles.answer, roles.images) == ("question", "answers", ("image_id",))
    found = look_at(table, roles, files)
    assert (found.faults, found.pictures, found.groups) == ({}, 2, 2)
    references = [texts_of(row, roles)["answers"].split("\n") for row in table.rows(None)]
    # VQA accuracy calls an answer right that three people gave; where no three agree, the commonest ones.
    assert references == [["red", "crimson"], ["a", "b"], ["2"], ["no"]]
    (tmp_path / "val2014" / "other_1.jpg").write_bytes(
        (tmp_path / "val2014" / "COCO_val2014_000000000001.jpg").read_bytes()
    )
    with pytest.raises(DataError, match="one of several"):
        PictureFiles(tmp_path).path("1")


def test_questions_by_their_ids(tmp_path: Path) -> None:
    asked = {f"q{i}": {"question": f"{i}?", "answer": "yes"} for i in range(3)}
    (tmp_path / "testdev.json").write_text(json.dumps(asked))
    assert list(read_table(tmp_path / "testdev.json").rows(["id", "question"])) == [
        {"id": f"q{i}", "question": f"{i}?"} for i in range(3)
    ]
