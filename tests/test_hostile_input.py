"""The door for what comes from outside, and the answers, labels and settings that users write themselves."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hostile import attempt
from hypothesis import given, settings
from hypothesis import strategies as st
from printed import json_of

from hedge_tasks.cli import main
from hedge_tasks.data.answer_files import read_answers
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.io.json_lines import seal, unseal
from hedge_tasks.io.outside import DEEPEST, MOST_DIGITS, clean, number, parse_json
from hedge_tasks.judging.label_files import by_id, label_rows
from hedge_tasks.sampling import Answer, AnswerSet

any_text = st.text(st.characters(codec=None, exclude_categories=()))  # lone surrogates included
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats(allow_nan=False) | any_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(any_text, inner, max_size=4),
    max_leaves=20,
)


def is_sound(value: Any) -> bool:
    if isinstance(value, str):
        return value == clean(value) and bool(value.encode() or True)
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(is_sound(key) and is_sound(item) for key, item in value.items())
    return not isinstance(value, list) or all(map(is_sound, value))


# --- the door ---------------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(json_values, st.booleans())
def test_what_passes_the_door_is_sound_and_otherwise_what_was_sent(value: Any, ensure_ascii: bool) -> None:
    text = json.dumps(value, ensure_ascii=ensure_ascii)
    read, error = attempt(lambda: parse_json(text, "x", constants=False))
    assert not error or "Infinity" in text
    assert is_sound(read)
    if is_sound(value):
        assert read == value


@given(st.binary(max_size=200) | any_text)
def test_any_bytes_are_read_or_refused_with_their_place(data: bytes | str) -> None:
    read, error = attempt(lambda: parse_json(data, "file:3", constants=False))
    assert is_sound(read)
    assert not error or error.startswith("file:3: ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1" * (MOST_DIGITS + 1), r"a number of 41 digits"),
        ("1e400", "too large"),
        ('{"a": 1, "b": 2, "a": 1}', "the key 'a' is given twice"),
        ('[{"a": {"b": 1, "b": 1}}]', "the key 'b' is given twice"),
        ("[" * (DEEPEST + 1) + "]" * (DEEPEST + 1), "nested deeper than 40 levels"),
        ("[" * 1_000_000, "nested deeper than 40 levels"),
        ("NaN", "NaN is no JSON number"),
        ("{} {}", "Extra data"),
        (b"\xff\xfe", "not UTF-8"),
        ("", "Expecting value"),
    ],
)
def test_what_is_not_sound_is_refused(text: str | bytes, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        parse_json(text, "f:7", constants=False)
    assert str(caught.value).startswith("f:7: ")
    assert len(str(caught.value)) < 300


def test_the_deepest_value_that_is_allowed_passes() -> None:
    assert parse_json("[" * DEEPEST + "]" * DEEPEST, "x")
    assert parse_json('"' + "[" * 1000 + '"', "x") == "[" * 1000


@given(any_text)
def test_clean_texts_can_be_written_and_change_nothing_else(text: str) -> None:
    cleaned = clean(text)
    cleaned.encode()
    assert len(cleaned) == len(text)
    assert "\x00" not in cleaned
    assert all(a in (b, "\ufffd") for a, b in zip(cleaned, text, strict=True))


@pytest.mark.parametrize("value", [True, None, "1", math.nan, math.inf, 10**400, [1]])
def test_a_number_is_a_finite_number(value: object) -> None:
    with pytest.raises(DataError, match="x: expected a"):
        number(value, "x")


@settings(max_examples=40)
@given(st.dictionaries(st.text(min_size=1), json_values, min_size=1, max_size=3), st.data())
def test_a_sealed_line_is_json_and_no_bit_of_it_changes_unseen(record: dict[str, Any], data: st.DataObject) -> None:
    line = seal(record)
    assert line.count(b"\n") == 1
    assert "crc32" in json.loads(line)
    bit = data.draw(st.integers(0, 8 * (len(line) - 1) - 1))
    damaged = bytearray(line)
    damaged[bit // 8] ^= 1 << bit % 8
    with pytest.raises(DataError):
        unseal(bytes(damaged))


# --- answers ----------------------------------------------------------------------------------------------------------


@given(any_text, any_text)
def test_an_answer_never_holds_what_no_file_can(text: str, question: str) -> None:
    answer = Answer(text, -0.5, 2)
    answer_set = AnswerSet("q" + text, answer, (answer,), question=question, reference=text, group=text)
    line = answer_set.to_json()
    line.encode()
    assert AnswerSet.from_json(line) == answer_set


LINE = {"id": "q1", "baseline": {"text": "a"}, "clean": [{"text": "a"}, {"text": "b"}], "label": 1}


def written(folder: Path, content: Any, name: str = "answers.jsonl") -> Path:
    file = folder / name
    file.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return file


def test_a_slip_of_the_pen_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, {**LINE, "lable": 1})
    assert main(["score", str(file), "--clustering", "exact"]) == 0
    assert "not used: 'lable'" in capsys.readouterr().out


def test_token_logprobs_become_their_mean(tmp_path: Path) -> None:
    answer = {"text": "a", "logprobs": [-0.5, -1.5, 0]}
    [answers] = read_answers([written(tmp_path, {**LINE, "baseline": answer, "clean": [answer]})]).answer_sets
    assert answers.baseline == Answer("a", -2 / 3, 3)
    assert (answers.baseline.least_logprob, answers.baseline.n_zero) == (-1.5, 1)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"text": "a", "logprobs": [-1], "mean_logprob": -1}, "give one of them"),
        ({"text": "a", "logprobs": [-1], "n_tokens": 1}, "give one of them"),
        ({"text": "a", "logprobs": []}, "expected a list of numbers"),
        ({"text": "a", "logprobs": [-1, 0.5]}, r"logprobs\[1\]: 0.5 is no log-probability"),
        ({"text": "a", "logprobs": [-1, None]}, r"logprobs\[1\]: expected a number, got None"),
        ({"text": "a", "logprobs": [True]}, r"logprobs\[0\]: expected a number, got True"),
        ({"text": "a", "mean_logprob": True}, "mean_logprob: expected a number"),
    ],
)
def test_token_logprobs_that_are_none(tmp_path: Path, answer: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_answers([written(tmp_path, {**LINE, "clean": [answer]})])


def test_plain_answers_have_their_baseline_first_or_named(tmp_path: Path) -> None:
    rows = [
        {"id": "1", "answers": ["a", "b", {"text": "c", "mean_logprob": -1}], "label": 1.0},
        {"id": "2", "answers": ["a", "b"], "baseline": "x"},
    ]
    first, second = read_answers([written(tmp_path, "\n".join(map(json.dumps, rows)))]).answer_sets
    assert (first.baseline.text, [a.text for a in first.clean], first.label) == ("a", ["b", "c"], 1)
    assert (second.baseline.text, [a.text for a in second.clean]) == ("x", ["a", "b"])
    with pytest.raises(DataError, match="answers says what clean does; give one of them"):
        read_answers([written(tmp_path, {**LINE, "answers": ["z", "z"]})])
    alone = read_answers([written(tmp_path, {"id": "1", "answers": ["a"]})])
    assert any("a single answer a document" in note for note in alone.notes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,txt\n1,a\n", r"import answers`\? Say --reply COLUMN; there are id \('1'\), txt"),
        ("id,response\n,a\n", "x.csv:2: id: expected a text"),
        ("id,response,label\n1,a,0.5\n", "label is '0.5'; expected 1"),
        ("id,id\n1,a\n", "names a column twice"),
    ],
)
def test_tables_that_are_none(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises((ConfigError, DataError), match=message):
        read_answers([written(tmp_path, text, "x.csv")])


def test_score_reads_the_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(LINE).encode())))
    assert json_of(capsys, ["score", "-", "--clustering", "exact", "--json"])["n_labelled"] in (1, 2)


# --- labels -----------------------------------------------------------------------------------------------------------


def test_ids_are_trimmed_and_labels_of_pandas_are_labels(tmp_path: Path) -> None:
    file = written(tmp_path, "id,label\n q1 ,1.0\nq2,0.0\nq3,\nq4,n/a\n", "labels.csv")
    labels = by_id(label_rows(file), "id", "label", None)
    assert {id: label.label for id, label in labels.items()} == {"q1": 1, "q2": 0, "q3": None, "q4": None}
    rows = '{"id": "q1", "label": 1.0}\n{"id": "q2", "label": null}'
    labels = by_id(label_rows(written(tmp_path, rows)), "id", "label", None)
    assert [label.label for label in labels.values()] == [1, None]
    assert AnswerSet.read({**LINE, "label": 1.0}).label == 1


def test_a_label_that_is_nan_is_refused_with_its_row(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"labels\.csv:3: label is NaN"):
        by_id(label_rows(written(tmp_path, "id,label\nq1,1\nq2,nan\n", "labels.csv")), "id", "label", None)
    right = written(tmp_path, "id,correct\nq1,1\nq2,0\nq3,true\n", "right.csv")
    assert [label.label for label in by_id(label_rows(right), "id", "correct", None).values()] == [0, 1, 0]
    with pytest.raises(DataError, match=r"label: expected 0 .*, got nan"):
        AnswerSet.read({**LINE, "label": math.nan})


# --- numbers ----------------------------------------------------------------------------------------------------------


def test_a_huge_number_in_memory_is_no_log_probability() -> None:
    for value in (-(10**400), 10**400):
        with pytest.raises(DataError, match="mean_logprob: expected a number, got an integer of more than"):
            AnswerSet.read({**LINE, "clean": [{"text": "a", "mean_logprob": value}]})
