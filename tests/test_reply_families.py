"""Families of replies that readers took for something else, with variants of each; and readers linear in time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hedge_tasks.judging.base import Case, build_judge
from hedge_tasks.judging.outcomes import outcome_of
from hedge_tasks.judging.prompt import load_judge_prompt, prompt_files
from hedge_tasks.judging.rule import RuleJudge
from hedge_tasks.replies import Reading, read_option, read_verdict, read_yes_no
from hedge_tasks.replies.reading import BASES, SOFT, STATED

DOG = "Is there a dog in the image?"
COLOURS = {"A": "pink", "B": "red", "C": "dark red", "D": "blue"}
SIZES = {"A": "2 cm", "B": "0.5 cm", "C": "5 mm", "D": "10 cm"}

RIGHT = ("correct", "accurate", "true", "factual", "supported")
LEADS = ("The answer is", "The provided answer is", "This answer is", "I believe the answer is", "It is")


def verdict(reply: str) -> Reading:
    return read_verdict(reply, offered="01")


def colour(reply: str) -> Reading:
    return read_option(reply, COLOURS)


def dog(reply: str) -> Reading:
    return read_yes_no(reply, DOG)


# --- verdicts by the sign of their words ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "denial", ["not", "far from", "anything but", "by no means", "never", "hardly", "not entirely"]
)
@pytest.mark.parametrize("lead", LEADS)
def test_a_denial_turns_a_verdict_round(denial: str, lead: str) -> None:
    for word in RIGHT:
        assert verdict(f"{lead} {denial} {word}.").value == "1", word
    assert verdict(f"{lead} not wrong.").value == "0"


# --- numbers and phrases ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reply", ["1-2 cm", "12 cm", "< 2 cm", "20.5 mm", "5-10 cm", "2.5 cm", "3.5 mm"])
def test_a_range_a_bound_and_a_longer_number_are_not_the_option(reply: str) -> None:
    assert read_option(reply, SIZES).value is None
    assert read_option(f"The answer is {reply}.", SIZES).value is None


# --- firm and soft ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "tail",
    [
        *(", but it might be a wolf", ", although it looks like a cat", ". However, it is a statue."),
        *(", if you count toys", ". I am not sure."),
    ],
)
def test_a_beginning_that_is_put_in_question_is_never_firm(tail: str) -> None:
    for word in ("Yes", "No"):
        assert dog(f"{word}{tail}").basis not in set(BASES) - SOFT
    assert dog("Yes, it is brown.").basis == "opening"
    assert colour("B. The car is red.").basis == "opening"
    assert colour("The answer is B if it is red.").basis != STATED


# --- judges -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(prompt_files()))
def test_a_judge_that_copies_the_form_says_nothing(name: str) -> None:
    prompt = load_judge_prompt(name)
    keys = [outcome.key for outcome in prompt.outcomes]
    forms = [
        f'"{prompt.answer_field}": ' + " | ".join(f'"{key}"' for key in keys),
        f"{prompt.answer_field}: " + " | ".join(keys),
        f"{prompt.answer_field}: " + "/".join(keys),
        f"**{prompt.answer_field}**: " + " or ".join(f"`{key}`" for key in keys),
        *([] if prompt.turns else [prompt.system.splitlines()[-1]]),
    ]
    assert [prompt.outcome_in(form)[0] for form in forms] == [None] * len(forms)


# --- declined ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        *((None, "undecided"), ({"label": 1}, "hallucinated"), ({"label": 0, "basis": "line"}, "supported")),
        *(({"label": None, "basis": "leading"}, "unconfirmed"), ({"label": None, "basis": "refusal"}, "declined")),
        *(({"label": None, "category": "no_answer"}, "declined"), ({"label": None, "basis": "no answer"}, "unread")),
        *(({"label": None, "basis": "judge unread"}, "judge unread"), ({"label": None, "category": "no"}, "undecided")),
        ({"label": None, "votes": [{"label": None, "basis": "empty"}] * 2}, "unread"),
        *(({"label": None, "basis": "failed request"}, "failed"), ({"label": None, "basis": "cut off"}, "cut off")),
        *(({"label": None, "basis": "unfinished thought", "category": "unclear"}, "cut off"),),
        ({"label": None, "votes": [{"basis": "cut off"}, {"basis": "empty"}]}, "undecided"),
        ({"label": None, "votes": [{"label": 1}] * 2}, "undecided"),
    ],
)
def test_every_verdict_has_one_outcome(fields: dict[str, object] | None, outcome: str) -> None:
    assert outcome_of(fields) == outcome


FAILURE = "[LMMS_EVAL_REQUEST_FAILED after 3 retries: timeout]"


@pytest.mark.parametrize(
    ("answer", "outcome"), [(FAILURE, "failed"), ("<think>Is it", "cut off"), ("I cannot help with that.", "declined")]
)
def test_a_failed_request_and_a_cut_thought_are_no_decision_of_the_model(answer: str, outcome: str) -> None:
    case = Case("1", "Is there a mass?", "no", answer)
    for judge in (RuleJudge(), build_judge("llm", model="never asked")):
        [verdict] = judge.judge([case])
        assert (verdict.label, outcome_of(verdict)) == (None, outcome), judge.name
        assert verdict.category == ("no_answer" if outcome == "declined" else None)


# --- plain answers in many forms --------------------------------------------------------------------------------------

MODALITIES = {"A": "CT", "B": "MRI", "C": "X-ray", "D": "Ultrasound"}
VARIANTS = [json.loads(line) for line in (Path(__file__).parent / "replies" / "variants.jsonl").open(encoding="utf-8")]


def variant(row: dict[str, str]) -> Reading:
    if row["kind"] == "judge":
        outcome, _ = load_judge_prompt("hedge_binary").outcome_in(row["reply"])
        return Reading(outcome.key if outcome else None, STATED)
    if row["kind"] == "option":
        return read_option(row["reply"], MODALITIES)
    return read_verdict(row["reply"]) if row["kind"] == "verdict" else read_yes_no(row["reply"], row["question"])


@pytest.mark.parametrize("kind", ["yes_no", "verdict", "option", "judge"])
def test_plain_answers_in_many_forms_are_read_and_never_as_something_else(kind: str) -> None:
    read = [(row, variant(row)) for row in VARIANTS if row["kind"] == kind]
    assert not [(row, one) for row, one in read if one.value not in (None, row["meaning"])]
    said = [one.readable for row, one in read if row["meaning"] is not None]
    assert len(said) > 30
    assert sum(said) >= 0.9 * len(said)
