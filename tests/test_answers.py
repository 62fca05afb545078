"""Answer sets: what is read, what is refused and how the error names the place."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from finished_runs import measure_health
from hypothesis import given, settings
from hypothesis import strategies as st

from hedge_tasks.data.answer_files import read_answers
from hedge_tasks.data.template_tokens import without_template_tokens
from hedge_tasks.errors import DataError
from hedge_tasks.sampling import Answer, AnswerSet

LINE = {"id": "q1", "baseline": {"text": "yes"}, "clean": [{"text": "yes", "mean_logprob": -0.5}, {"text": "no"}]}


def changed(**fields: object) -> dict:
    return {**LINE, **fields}


answers = st.builds(
    Answer,
    st.text(),
    st.none() | st.floats(-50, 0),
    st.none() | st.integers(0, 1000),
)
answer_sets = st.builds(
    AnswerSet,
    id=st.text(min_size=1),
    baseline=answers,
    clean=st.lists(answers, min_size=1, max_size=4).map(tuple),
    noisy=st.lists(answers, max_size=4).map(tuple),
    question=st.none() | st.text(),
    reference=st.none() | st.text(),
    label=st.sampled_from([None, 0, 1]),
    group=st.none() | st.text(),
    question_type=st.none() | st.text(),
)


@settings(max_examples=30)
@given(answer_sets)
def test_json_gives_back_what_went_in(answer_set: AnswerSet) -> None:
    line = answer_set.to_json()
    assert AnswerSet.from_json(line) == answer_set
    json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


def test_one_missing_logprob_means_no_weights() -> None:
    assert not AnswerSet.read(LINE).has_logprobs
    assert AnswerSet.read(changed(clean=[{"text": "yes", "mean_logprob": -0.5}])).has_logprobs


def test_without_samples_the_logprob_of_the_baseline_counts() -> None:
    alone = changed(clean=[], noisy=[], cluster_ids=None)
    for baseline, known in (({"text": "yes"}, False), ({"text": "yes", "mean_logprob": -0.5}, True)):
        assert AnswerSet.read({**alone, "baseline": baseline}).has_logprobs is known


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (changed(clean=[{"text": "yes"}, {}]), r"clean\[1\].text: missing"),
        (changed(noisy=[{"text": "a", "mean_logprob": math.nan}]), r"noisy\[0\].mean_logprob: .* finite"),
        (changed(noisy=[{"text": "a", "mean_logprob": 0.1}]), r"noisy\[0\].mean_logprob: .* at most 0"),
        (changed(noisy=[{"text": "a", "mean_logprob": math.inf}]), r"noisy\[0\].mean_logprob: .* finite"),
        (changed(noisy=[{"text": "a", "finish": "tired"}]), r"noisy\[0\].finish: .*'tired'"),
        (changed(label=2), "label: .* 0 .* 1 .* 2"),
        (changed(label=True), "label: .*True"),
        (changed(cluster_ids=[0, 1]), r"cluster_ids: 2 ids for .* = 3"),
        (changed(cluster_ids=[0, 1, "a"]), r"cluster_ids\[2\]: .*'a'"),
        ([1], "expected an object, got list"),
    ],
)
def test_error_names_place_and_field(fields: object, message: str) -> None:
    with pytest.raises(DataError, match=f"^answers.jsonl:7: {message}"):
        AnswerSet.read(fields, "answers.jsonl:7")
    with pytest.raises(DataError, match=r"answers.jsonl:3: not valid JSON"):
        AnswerSet.from_json('{"id": ', "answers.jsonl:3")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("yes<|im_end|>", "yes"),
        ("yes <|eot_id|>\n</s>", "yes"),
        ("<s>[INST] <|im_start|>assistant\na cyst<end_of_turn>", "a cyst"),
        ("\uff5c<\uff5cend\u2581of\u2581sentence\uff5c>", "\uff5c"),
        ("<|im_end|>", ""),
        ("p <|x|> 5", "p <|x|> 5"),
        ("a <s>bold</s> claim", "a <s>bold</s> claim"),
        ("<5 mm", "<5 mm"),
    ],
)
def test_tokens_of_templates_around_an_answer_are_no_part_of_it(text: str, answer: str) -> None:
    assert without_template_tokens(text) == answer
    assert without_template_tokens(answer) == answer


def test_imported_answers_are_cleaned_with_a_note_and_runs_with_a_finding(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(
        json.dumps({"id": "1", "answers": ["yes<|im_end|>", "<think>a</think> yes", "no</s>"]}) + "\n", "utf-8"
    )
    read = read_answers([file])
    [found] = read.answer_sets
    assert found.texts == ["yes", "yes", "no"]
    assert "taken away: tokens of a chat template around 2 answers, such as 'yes<|im_end|>'" in read.notes
    raw = AnswerSet("1", Answer("yes<|im_end|>"), (Answer("yes"),))
    [text] = [finding.text for finding in measure_health([raw], {}).findings if "template" in finding.text]
    assert text.startswith("50.0 % of the draws have tokens")
    assert not any("template" in finding.text for finding in measure_health([found], {}).findings)
