"""JSON whose questions lie deeper than its rows, or in two files."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from hedge_tasks.data.cells import is_question
from hedge_tasks.data.columns import ColumnSettings, find_roles
from hedge_tasks.data.media import PictureFiles
from hedge_tasks.data.nested import flat_rows, join_by_key
from hedge_tasks.data.own_data import inspect_rows, texts_of
from hedge_tasks.data.tables import read_table
from hedge_tasks.errors import ConfigError, DataError


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
    found = join_by_key(answers, QUESTIONS, is_question)
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
    assert join_by_key(QUESTIONS, answers, is_question) is None


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
    found = inspect_rows(table, roles, files)
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


def test_cocos_form_brings_each_question_its_image(tmp_path: Path) -> None:
    images = [{"id": i, "file_name": f"{i}.jpg"} for i in (7, 8)]
    annotations = [
        {"id": 1, "image_id": 8, "question": "a?", "answer": "x"},
        {"id": 2, "image_id": 7, "question": "b?"},
    ]
    file = tmp_path / "coco.json"
    file.write_text(json.dumps({"info": {}, "images": images, "annotations": annotations}))
    rows = list(read_table(file).rows(["id", "file_name", "question"]))
    assert rows == [
        {"id": 1, "file_name": "8.jpg", "question": "a?"},
        {"id": 2, "file_name": "7.jpg", "question": "b?"},
    ]
    file.write_text(json.dumps({"images": images[:1], "annotations": annotations}))
    with pytest.raises(DataError, match="expected a JSON list"):
        read_table(file)


def test_geminis_form_and_squads_answers(tmp_path: Path) -> None:
    picture = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}
    turns = [
        {"role": "user", "parts": [picture, {"text": "What is it?"}]},
        {"role": "model", "parts": [{"text": "a dog"}]},
    ]
    (tmp_path / "g.jsonl").write_text(json.dumps({"contents": turns}))
    [row] = read_table(tmp_path / "g.jsonl").rows(None)
    assert row == {"image": "data:image/png;base64,iVBORw0KGgo=", "question": "What is it?", "answer": "a dog"}
    (tmp_path / "s.json").write_text(
        json.dumps([{"question": "q?", "answers": {"text": ["x", "y"], "answer_start": [1]}}])
    )
    table = read_table(tmp_path / "s.json")
    roles = find_roles(table, ColumnSettings())
    assert [texts_of(row, roles)["answers"] for row in table.rows(None)] == ["x\ny"]


def test_the_right_option_by_its_index_and_options_with_their_letters(tmp_path: Path) -> None:
    rows = [{"question": "q?", "choices": ["a", "b", "c"], "correct_choice_idx": i % 3} for i in range(3)]
    (tmp_path / "okvqa.json").write_text(json.dumps(rows))
    table = read_table(tmp_path / "okvqa.json")
    roles = find_roles(table, ColumnSettings())
    assert [texts_of(row, roles)["correct_choice_idx"] for row in table.rows(None)] == ["A", "B", "C"]
    without = [{"question": "q?", "label": "cat"}]
    (tmp_path / "labels.json").write_text(json.dumps(without))
    with pytest.raises(ConfigError, match="right answers"):
        find_roles(read_table(tmp_path / "labels.json"), ColumnSettings())
    lettered = [{"Question": "q?", "Choice A": "A:red", "Choice B": "B:blue", "Answer": "B"}]
    (tmp_path / "pmc.json").write_text(json.dumps(lettered))
    table = read_table(tmp_path / "pmc.json")
    roles = find_roles(table, ColumnSettings())
    [texts] = [texts_of(row, roles) for row in table.rows(None)]
    assert texts == {"Question": "q?\nA. red\nB. blue", "Answer": "B"}


def test_names_in_the_two_forms_of_unicode_and_addresses_beside_files(tmp_path: Path) -> None:
    Image.new("RGB", (8, 8)).save(tmp_path / unicodedata.normalize("NFD", "é.png"))
    files = PictureFiles(tmp_path)
    assert files.path(unicodedata.normalize("NFC", "é.png")).is_file()
    row = {
        "question": "q?",
        "answer": "a",
        "url": "https://x.org/1.png",
        "image_path": unicodedata.normalize("NFC", "é.png"),
    }
    (tmp_path / "t.json").write_text(json.dumps([row]))
    table = read_table(tmp_path / "t.json")
    assert find_roles(table, ColumnSettings(), files).images == ("image_path",)
