"""`hedge import answers`: what other tools have sampled becomes a run, and what was lost is said."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from printed import json_of

from hedge_tasks.cli import main
from hedge_tasks.cli.choices import ColumnChoice
from hedge_tasks.data.answer_files import ReadAnswers, read_answers
from hedge_tasks.data.roles import ColumnSettings
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.runs.from_answers import run_from_answers
from hedge_tasks.runs.run_files import load_run

ANSWERS = {"a": ["red", "red", "blue"], "b": ["cat", "a dog", "cat"]}
QUESTIONS = {"a": "Which color?", "b": "Which animal?"}
TARGETS = {"a": "red", "b": "cow"}


def lines(file: Path, rows: list[Any]) -> Path:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def uqlm(folder: Path) -> list[Path]:
    frame = pd.DataFrame(
        {
            "prompt": list(QUESTIONS.values()),
            "response": [of[0] for of in ANSWERS.values()],
            "sampled_responses": [of[1:] for of in ANSWERS.values()],
            "semantic_negentropy": [0.5, 0.25],
            "id": list(ANSWERS),
            "reference": list(TARGETS.values()),
        }
    )
    frame.to_csv(folder / "a.csv")
    return [folder / "a.csv"]


def lmms_eval(folder: Path) -> list[Path]:
    rows = [
        {"doc_id": i, "input": QUESTIONS[i], "target": TARGETS[i], "resps": of, "filtered_resps": [of[0]], "exact": 1.0}
        for i, of in ANSWERS.items()
    ]
    return [lines(folder / "samples.jsonl", rows)]


def vlmevalkit(folder: Path) -> list[Path]:
    files = []
    for run in range(3):
        rows = [
            {"index": i, "question": QUESTIONS[i], "answer": TARGETS[i], "prediction": of[run]}
            for i, of in ANSWERS.items()
        ]
        files.append(folder / f"model_{run}.xlsx")
        pd.DataFrame(rows).to_excel(files[-1], index=False)
    return files


def inspect_json(folder: Path) -> list[Path]:
    file = folder / "log.json"
    file.write_text(
        json.dumps({"version": 2, "status": "success", "eval": {"model": "m"}, "samples": inspect_samples()})
    )
    return [file]


def inspect_samples(scores: bool = False) -> list[dict[str, Any]]:
    return [
        {"id": i, "epoch": epoch + 1, "input": [{"role": "user", "content": QUESTIONS[i]}], "target": TARGETS[i]}
        | {"output": {"choices": [{"message": {"content": text}, "stop_reason": "max_tokens"}]}}
        | ({"scores": {"match": {"value": "C" if text == TARGETS[i] else "I"}}} if scores else {})
        for epoch in (2, 0, 1)  # in any order
        for i, of in ANSWERS.items()
        for text in [of[epoch]]
    ]


def inspect_eval(folder: Path) -> list[Path]:
    with zipfile.ZipFile(folder / "log.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps({"eval": {"model": "m"}}))
        for s in inspect_samples():
            archive.writestr(f"samples/{s['id']}_epoch_{s['epoch']}.json", json.dumps(s))
    return [folder / "log.eval"]


def polygraph(folder: Path) -> list[Path]:
    """A manager as its user converts it: with the command that its refusal says."""
    stats = {
        "input_texts": list(QUESTIONS.values()),
        "target_texts": list(TARGETS.values()),
        "greedy_texts": [of[0] for of in ANSWERS.values()],
        "sample_texts": [of[1:] for of in ANSWERS.values()],
        "greedy_log_likelihoods": [np.array([-0.5, -0.25]), [-1.0]],
    }
    torch.save({"state": "done", "metrics": {("a", "b"): np.float64(0.5)}, "stats": stats}, folder / "m.man")
    with pytest.raises(DataError, match="a pickle runs code") as refusal:
        read_answers([folder / "m.man"])
    command = str(refusal.value).partition("python -c ")[2].strip('"')
    subprocess.run([sys.executable, "-c", command], cwd=folder, check=True)
    return [folder / "m.json"]


@pytest.mark.parametrize(
    "make",
    [uqlm, lmms_eval, vlmevalkit, inspect_json, inspect_eval, polygraph],
    ids=lambda make: make.__name__,
)
def test_the_answers_of_every_tool(tmp_path: Path, make: Callable[[Path], list[Path]]) -> None:
    read = read_answers(make(tmp_path))
    told = {(a.question, a.reference, a.baseline.text, *(answer.text for answer in a.clean)) for a in read.answer_sets}
    assert told == {(QUESTIONS[i], TARGETS[i], *of) for i, of in ANSWERS.items()}
    labels = {a.question: a.label for a in run_from_answers("t", "m", read.answer_sets, "rule").answer_sets}
    assert labels == {"Which color?": 0, "Which animal?": 1}
    lost = 2 if make is polygraph else 0
    assert any(f"{6 - lost} of 6 answers have no log-probability" in note for note in read.notes)


@pytest.mark.parametrize("make", [lmms_eval, vlmevalkit], ids=lambda make: make.__name__)
def test_the_columns_of_a_tool_go_before_those_with_an_obvious_name(
    tmp_path: Path, make: Callable[[Path], list[Path]]
) -> None:
    file = make(tmp_path)[0]
    frame = pd.read_excel(file) if make is vlmevalkit else pd.read_json(file, lines=True)
    plain = read_answers([lines(tmp_path / "plain.jsonl", frame.assign(hit=1).to_dict("records"))])
    extra = {"id": "same", "question_id": 1, "category": "c", **({"label": 1} if make is vlmevalkit else {})}
    about = {"question": "Other?", "answer": "other"} if make is lmms_eval else {}
    rows = frame.assign(hit=1, **extra, **about).to_dict("records")
    read = read_answers([lines(tmp_path / "more.jsonl", rows)])
    assert [replace(a, question_type=None) for a in read.answer_sets] == list(plain.answer_sets)
    assert "kinds of questions come from column 'category'" in read.notes
    chosen = ColumnChoice(question_type="none").settings()
    assert read_answers([tmp_path / "more.jsonl"], columns=chosen).answer_sets == plain.answer_sets


def test_the_reference_of_a_line_goes_before_an_answer_beside_it(tmp_path: Path) -> None:
    row = {"id": "a", "baseline": "red", "clean": ["blue"], "reference": "red", "answer": "other"}
    [answers] = read_answers([lines(tmp_path / "a.jsonl", [row])]).answer_sets
    assert answers.reference == "red"
    files = [lines(tmp_path / f"{name}.jsonl", [{**row, "question": name}]) for name in ("a", "b")]
    with pytest.raises(DataError, match=r"b.jsonl: the id 'a' is of another question in an earlier file"):
        read_answers(files)


def test_an_answer_in_a_column_keeps_its_numbers_and_a_lost_one_has_none(tmp_path: Path) -> None:
    reply = [{"text": "red", "mean_logprob": -0.5, "n_tokens": 2}, {"text": "blue", "tokens": [["blue", -0.25]]}]
    rows = [{"response": reply, "scores.mine": 0.7}]
    [answers] = read_answers([lines(tmp_path / "a.jsonl", rows)]).answer_sets
    assert [a.mean_logprob for a in answers.answers] == [-0.5, -0.25]
    row = {"prompt": "?", "response": "red", "sampled_responses": [None, "blue"], "multiple_logprob": [[-1.0], [-0.25]]}
    [answers] = read_answers([lines(tmp_path / "b.jsonl", [row])]).answer_sets
    assert [(a.text, a.mean_logprob) for a in answers.clean] == [("blue", -0.25)]


def test_a_text_in_brackets_is_one_answer(tmp_path: Path) -> None:
    row = {"greedy_texts": "[1, 2]", "sample_texts": ["['a', 'b']", "c"]}
    [read] = read_answers([lines(tmp_path / "m.jsonl", [row])]).answer_sets
    assert (read.baseline.text, *(answer.text for answer in read.clean)) == ("[1, 2]", "['a', 'b']", "c")


@pytest.mark.parametrize(("name", "n"), [("r.jsonl", 1), ("r.csv", 2)])
def test_a_text_in_brackets_is_a_list_in_tables_of_texts_alone(tmp_path: Path, name: str, n: int) -> None:
    frame = pd.DataFrame({"question": ["Where?", "Where?"], "response": ["[12, 40]", "[7, 9]"]})
    path = tmp_path / name
    frame.to_csv(path, index=False) if n == 2 else frame.to_json(path, orient="records", lines=True)
    columns = ColumnSettings(question="question", reply=("response",))
    assert {len(a.answers) for a in read_answers([path], columns=columns).answer_sets} == {n}


def batch(folder: Path) -> list[Path]:
    def choice(text: str) -> dict[str, Any]:
        return {
            "message": {"content": text, "reasoning_content": "hm" if text == "cow" else None},
            "logprobs": {"content": [{"token": text, "logprob": -0.5}, {"token": ".", "logprob": -0.25}]},
            "finish_reason": "length",
        }

    replies = {"a": ["red", "<think>so</think>blue"], "b": ["cow", "cat"]}
    rows = [
        {"id": f"batch_{i}", "custom_id": i, "response": {"body": {"model": "m", "choices": [*map(choice, of)]}}}
        for i, of in replies.items()
    ]
    red = rows[0]["response"]["body"]["choices"][0]
    del red["message"]  # a completion without a chat
    red |= {"text": "red", "logprobs": {"tokens": ["red", "."], "token_logprobs": [-0.5, -0.25]}}
    failed = {"c": None, "d": {"body": None}}
    rows += [{"custom_id": i, "response": response, "error": {"message": "no"}} for i, response in failed.items()]
    return [lines(folder / "out.jsonl", rows)]


def test_a_batch_keeps_log_probabilities_and_says_what_is_lost(tmp_path: Path) -> None:
    files = batch(tmp_path)
    asked = [{"custom_id": i, "body": {"messages": [{"role": "user", "content": q}]}} for i, q in QUESTIONS.items()]
    read = read_answers(files, lines(tmp_path / "in.jsonl", asked))
    first, second = read.answer_sets
    assert read.model == "m"
    assert (first.question, first.baseline.mean_logprob, first.baseline.n_tokens) == (QUESTIONS["a"], -0.375, 2)
    assert (first.baseline.finish, first.clean[0].text, first.clean[0].mean_logprob) == ("length", "blue", None)
    assert second.baseline.mean_logprob is None
    assert "lost: 2 empty cells or requests that failed, such as 'c'" in read.notes
    assert "lost: 2 thoughts, and log-probabilities of thought and answer together, such as of 'a'" in read.notes
    for body in ("text", {"messages": ["text"]}):
        with pytest.raises(DataError, match=r"in\.jsonl: not as its tool writes it"):
            read_answers(files, lines(tmp_path / "in.jsonl", [{"custom_id": "a", "body": body}]))
    assert "baseline: of 2 documents the first answer, for nothing says which it is" in read.notes


def labelled(scores: Any, folder: Path) -> ReadAnswers:
    (folder / "log.json").write_text(json.dumps({"version": 2, "status": "error", "eval": {}, "samples": scores}))
    return read_answers([folder / "log.json"])


@pytest.mark.parametrize("shape", ["a list of answers", "columns of replies"])
def test_labels_are_those_of_the_column_that_is_named_or_has_an_obvious_name(tmp_path: Path, shape: str) -> None:
    def labels(chosen: str | None, **about: list[Any]) -> list[int | None]:
        rows: list[dict[str, Any]] = []
        for i in range(2):
            of_document = {"id": str(i), **{name: values[i] for name, values in about.items()}}
            key = "answers" if shape == "a list of answers" else "response"
            rows.append({**of_document, key: ["a", "b", "c"]})
        file = tmp_path / "answers.jsonl"
        file.write_text("\n".join(map(json.dumps, rows)), "utf-8")
        return [a.label for a in read_answers([file], columns=ColumnSettings(label=chosen)).answer_sets]

    assert labels(None, label=[0, 1]) == labels(None, is_hallucination=[False, True]) == [0, 1]
    assert labels(None, correct=[True, False]) == labels(None, correct=[1, 0]) == [0, 1]
    assert labels("gold", gold=[0, 1], label=[1, 0]) == labels("correct", label=[1, 0], correct=[1, 0]) == [0, 1]
    assert labels("none", label=[0, 1]) == [None, None]
    with pytest.raises(ConfigError, match="which column holds the labels"):
        labels(None, label=[0, 1], correct=[0, 1])
    with pytest.raises(DataError, match="correct is 'yes'; expected true or 1 where the answer is right"):
        labels(None, correct=["yes", "no"])


def test_labels_of_a_scorer_stay_and_what_declines_has_none(tmp_path: Path) -> None:
    samples = inspect_samples(scores=True)
    read = labelled(samples, tmp_path)
    run = run_from_answers("t", "m", read.answer_sets, "rule", given_by=read.judge)
    assert {a.id: a.label for a in run.answer_sets} == {"a": 0, "b": 1}
    assert run.verdicts["b"]["judge"] == "inspect_ai: scores.match 1"
    for sample in samples:
        if sample["id"] == "b":
            sample["output"]["choices"][0]["message"]["content"] = "I cannot tell from this picture."
            sample["scores"]["match"]["value"] = "I"
    read = labelled(samples, tmp_path)
    run = run_from_answers("t", "m", read.answer_sets, "rule", given_by=read.judge)
    assert {a.id: a.label for a in run.answer_sets} == {"a": 0, "b": None}
    samples[0]["scores"]["other"] = {"value": "C"}
    with pytest.raises(ConfigError, match=r"the labels\? Say --label COLUMN; .* scores.match \(1\), scores.other"):
        labelled(samples, tmp_path)


def test_an_option_that_declines_is_no_hallucination(tmp_path: Path) -> None:
    row = {"index": 1, "question": "Which?", "A": "red", "B": "blue", "C": "I don't know", "answer": "A", "hit": 0}
    for said, label in (("C", None), ("B", 1)):
        pd.DataFrame([{**row, "prediction": said}]).to_excel(tmp_path / "a.xlsx", index=False)
        read = read_answers([tmp_path / "a.xlsx"])
        run = run_from_answers("t", "m", read.answer_sets, "rule", given_by=read.judge)
        assert run.answer_sets[0].label == label
        assert run.answer_sets[0].question == "Which?\nA. red\nB. blue\nC. I don't know"


def test_a_second_line_with_an_id_is_a_copy_or_refused(tmp_path: Path) -> None:
    """Another filter and a padded rank give no further draws; two answers under one id are nobody's."""
    rows = [json.loads(line) for line in lmms_eval(tmp_path)[0].read_text().splitlines()]
    filtered = [{**row, "filter": name, "filtered_resps": [name]} for row in rows for name in ("none", "first")]
    read = read_answers([lines(tmp_path / "b.jsonl", [*filtered, *filtered[-2:]])])
    assert [[a.text for a in answers.answers] for answers in read.answer_sets] == list(ANSWERS.values())
    with pytest.raises(DataError, match=r"b.jsonl:3: another row has the id 'a' and differs: .*b.jsonl:1"):
        read_answers([lines(tmp_path / "b.jsonl", [*rows, {**rows[0], "resps": ["green"]}])])


def test_a_failed_request_is_no_answer(tmp_path: Path) -> None:
    gone = ["", "Failed to obtain answer via API.", "[LMMS_EVAL_REQUEST_FAILED after 3 retries] Error 500"]
    rows = [json.loads(line) for line in lmms_eval(tmp_path)[0].read_text().splitlines()]
    rows[0]["resps"] = [gone[0], *ANSWERS["a"], *gone[1:]]
    read = read_answers([lines(tmp_path / "b.jsonl", [*rows, {**rows[0], "doc_id": "c", "resps": gone}])])
    assert [[a.text for a in answers.answers] for answers in read.answer_sets] == list(ANSWERS.values())
    assert "lost: 6 empty cells or requests that failed, such as 'a'" in read.notes
    files = vlmevalkit(tmp_path)
    frame = pd.read_excel(files[0])
    frame.loc[0, "prediction"] = gone[1]
    frame.loc[1, "prediction"] = None
    frame.to_excel(files[0], index=False)
    read = read_answers(files)
    assert [[a.text for a in answers.answers] for answers in read.answer_sets] == [of[1:] for of in ANSWERS.values()]
    assert "lost: 2 empty cells or requests that failed, such as 'a'" in read.notes


def test_the_parts_of_an_archive_have_one_budget(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each part is small, and all of them together are not."""
    monkeypatch.setattr("hedge_tasks.io.outside._UNPACKED", 1 << 20)
    sample = {**inspect_samples()[0], "events": "x" * 100_000}
    predictions = [f"{i:30000}" for i in range(60)]
    pd.DataFrame({"index": range(60), "prediction": predictions}).to_excel(tmp_path / "b.xlsx", index=False)
    for n, code in ((9, 0), (20, 2)):
        file = tmp_path / f"{n}.eval"
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("header.json", "{}")
            for i in range(n):
                archive.writestr(f"samples/{i}.json", json.dumps({**sample, "id": i}))
        call = ["import", "answers", str(file), "--out", str(tmp_path / "runs"), "--judge", "none"]
        assert main(call) == code, capsys.readouterr().err
    assert "20.eval: it unpacks to more than 1 MiB" in capsys.readouterr().err
    with pytest.raises(DataError, match=r"b.xlsx: it unpacks to more than 1 MiB"):
        read_answers([tmp_path / "b.xlsx"])


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"replies, for .*import answers`\? Say --reply COLUMN; there are said \('a'\)"
    ):
        read_answers([lines(tmp_path / "a.jsonl", [{"said": "a"}])])
    with pytest.raises(ConfigError, match="of several tools: uqlm, lmms-eval"):
        read_answers([*uqlm(tmp_path), *lmms_eval(tmp_path)])
    two = [{"response": "a", "model": model} for model in "mk"]
    with pytest.raises(DataError, match=r"answers of several models \(k, m\); one model at a time"):
        read_answers([lines(tmp_path / "two.jsonl", two)])
    (tmp_path / "b.eval").write_bytes(b"PK")
    with pytest.raises(DataError, match=r"`inspect log convert .* --to json"):
        read_answers([tmp_path / "b.eval"])
    for name in ("no.man", "no.eval", "no.json", "no.jsonl"):
        with pytest.raises(DataError, match=f"{name}: there is no such file"):
            read_answers([tmp_path / name])
    ours = [{"doc_id": 0, "resps": [['{"id": "1"}']], "target": "x"}]
    with pytest.raises(DataError, match="its run file holds more"):
        read_answers([lines(tmp_path / "o.jsonl", ours)])


def imported(folder: Path, files: list[Path], capsys: pytest.CaptureFixture[str], *more: str) -> tuple[dict, str]:
    """What the command says of a run as JSON, or of files that it refuses."""
    code = main(["import", "answers", *map(str, files), *more, "--out", str(folder / "runs"), "--json"])
    told = capsys.readouterr()
    assert code == 0 or not (folder / "runs").exists()
    return (json.loads(told.out) if code == 0 else {}), told.err


def test_copies_are_refused_and_later_labels_are_said_to_be_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"id": i, "response": of[0], "label": 1} for i, of in ANSWERS.items()]
    first, copy = (lines(tmp_path / name, rows) for name in ("a.jsonl", "copy.jsonl"))
    for files in ([first, first], [first, copy], [tmp_path, tmp_path]):
        _, error = imported(tmp_path, files, capsys)
        assert error.count(str(files[0])) == 2 - (files[1] == copy)
        assert str(files[1]) in error
        copy.unlink(missing_ok=True) if files[1] == copy else None
    later = lines(tmp_path / "b.jsonl", [{**rows[0], "label": 0}, {"id": "b", "response": "cat"}])
    told, _ = imported(tmp_path, [first, later], capsys)
    assert (told["draws"], told["hallucinated"]) == (2, 2)
    assert [note for note in told["notes"] if "1 labels" in note and "'a'" in note]


LISTS = ("['yes', 'no'", "['yes', __import__('os').getcwd()]", '["yes", no]', "['yes' 'no']")


@pytest.mark.parametrize("cell", LISTS)
def test_what_begins_like_a_list_of_answers_is_one(
    tmp_path: Path, cell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = pd.DataFrame({"prompt": ["?", "?"], "response": ["yes", "no"], "sampled_responses": ["['no']", cell]})
    frame.to_csv(tmp_path / "u.csv", index=False)
    assert "u.csv:3: sampled_responses: " in imported(tmp_path, [tmp_path / "u.csv"], capsys)[1]
    frame["sampled_responses"] = ["[contrast] CT", "[yes"]
    frame.to_csv(tmp_path / "u.csv", index=False)
    assert imported(tmp_path, [tmp_path / "u.csv"], capsys)[0]["draws"] == 2


def test_the_choice_of_the_lowest_index_is_the_baseline_empty_or_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = [{"content": "blue"}, {"content": ""}, {"content": None, "refusal": "I can't assist"}]
    for first in (1, 2):
        choices = [{"index": (i - first) % 3, "message": message} for i, message in enumerate(said)]
        row = {"custom_id": "a", "response": {"body": {"choices": choices}}}
        [answers] = read_answers([lines(tmp_path / f"{first}.jsonl", [row])]).answer_sets
        assert answers.texts == [["blue", "", "I can't assist"][(first + i) % 3] for i in range(3)]
    row = {"custom_id": "a", "response": {"body": {"choices": ["abc"]}}}
    assert "b.jsonl: not as its tool writes it" in imported(tmp_path, [lines(tmp_path / "b.jsonl", [row])], capsys)[1]


def test_what_is_no_sampled_answer_or_of_other_data_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scored = lines(tmp_path / "l.jsonl", [{"doc_id": 0, "target": 0, "resps": [[[-1.2, True]], [[-3.0, False]]]}])
    assert "is the log-likelihood of an option" in imported(tmp_path, [scored], capsys)[1]
    rows = [{"doc_id": 7, "target": target, "resps": [[text]]} for target, text in (("yes", "yes"), ("dog", "cat"))]
    files = [lines(tmp_path / f"{i}.jsonl", [row]) for i, row in enumerate(rows)]
    assert "1.jsonl: the id '7' is of another reference in an earlier file" in imported(tmp_path, files, capsys)[1]


def test_copies_and_rows_that_may_be_copies_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = {"question": "?", "baseline": "a", "clean": ["a", "b"], "is_hallucination": 1}
    rows = [{"id": i, **row} for i in "xyz"]
    told, error = imported(
        tmp_path, [lines(tmp_path / "a.jsonl", [*rows, {**rows[0], "is_hallucination": 1.0}])], capsys
    )
    assert (told["documents"], "1 copies of other rows, such as of 'x'" in error) == (3, True)
    assert "2 rows repeat question and answers ('y')" in error
    assert "labels come from column 'is_hallucination': 1 = hallucinated" in told["notes"]
    _, error = imported(tmp_path, [lines(tmp_path / "b.jsonl", [{**row, "id": i, "group": "g"} for i in "xy"])], capsys)
    assert "repeat" not in error


@pytest.mark.parametrize(("column", "wrong"), [("is_correct", 1), ("correct", 0)])
def test_the_value_that_is_taken_for_hallucinated_is_said(
    tmp_path: Path, column: str, wrong: int, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"id": i, "baseline": "a", "clean": ["b"], column: i} for i in range(2)]
    file = lines(tmp_path / "a.jsonl", rows)
    [note] = [note for note in imported(tmp_path, [file], capsys, "--label", column)[0]["notes"] if "labels" in note]
    assert note.startswith(f"labels come from column {column!r}: {wrong} = hallucinated")
    assert ("call the column correct" in note) is (wrong == 1)


def test_a_log_that_was_cut_short_is_said_and_a_sample_that_failed_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    samples = inspect_samples(scores=True)
    for sample in samples[2:]:
        sample["output"]["choices"] *= sample["id"] == "a"
    log = {"version": 2, "status": "cancelled", "eval": {"model": "m"}, "samples": samples}
    (tmp_path / "log.json").write_text(json.dumps(log))
    told, error = imported(tmp_path, [tmp_path / "log.json"], capsys)
    assert "log.json: its status is 'cancelled', not success" in error
    assert "left out: 1 documents of one answer, where others have several, such as 'b'" in error
    assert (told["documents"], told["draws"]) == (1, 2)
    assert "labels come from column 'scores.match': 0 = hallucinated" in told["notes"]


def test_labels_are_of_one_judge_and_a_loop_of_links_is_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"id": i, "response": of[0], "reference": TARGETS[i]} for i, of in ANSWERS.items()]
    whole, partly = lines(tmp_path / "a.jsonl", rows), lines(tmp_path / "b.jsonl", [{**rows[0], "label": 1}, rows[1]])
    counts = [imported(tmp_path, [file], capsys)[0] for file in (whole, partly)]
    assert [(of["hallucinated"], of["supported"], of["unlabelled"]) for of in counts] == [(1, 1, 0), (1, 0, 1)]
    (tmp_path / "loop.jsonl").symlink_to("loop.jsonl")
    assert main(["import", "answers", str(tmp_path / "loop.jsonl")]) == 2
    told = capsys.readouterr().err
    assert "loop.jsonl" in told
    assert "unexpected" not in told


def test_requests_that_nobody_replied_to_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = lines(tmp_path / "in.jsonl", [{"custom_id": "x", "body": {"messages": [{"content": "Which?"}]}}])
    told, _ = imported(tmp_path, batch(tmp_path), capsys, "--questions", str(asked))
    assert [note for note in told["notes"] if "--questions" in note and " 2 documents" in note]


def test_the_command_writes_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told, _ = imported(tmp_path, uqlm(tmp_path), capsys, "--model-name", "m")
    assert (told["documents"], told["draws"], told["supported"], told["hallucinated"]) == (2, 4, 1, 1)
    run = load_run(Path(told["file"]))
    assert (run.task, run.model, len(run.answer_sets)) == ("a", "m", 2)
    capsys.readouterr()
    assert json_of(capsys, ["rescore", told["file"], "--clustering", "exact", "--json"])


def test_lines_without_ids_are_numbered_and_a_document_without_its_baseline_is_left_out(tmp_path: Path) -> None:
    own = [{"baseline": "a", "clean": ["b"]}, {"baseline": "c", "clean": ["d"]}]
    assert [a.id for a in read_answers([lines(tmp_path / "a.jsonl", own)]).answer_sets] == ["0", "1"]
    rows = [{"prompt": "?", "response": r, "sampled_responses": ["x", "y"]} for r in ("a", "")]
    read = read_answers([lines(tmp_path / "b.jsonl", rows)])
    assert [a.texts for a in read.answer_sets] == [["a", "x", "y"]]
    assert "lost: 1 empty cells or requests that failed, such as '1'" in read.notes
