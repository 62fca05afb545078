"""Replies whose meaning is known because they are made: form x lead x answer x tail x wrapping, and what denies."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from printed import json_of
from reply_corpus import corpus, reading

from hedge_tasks.replies import Reading, read_option, read_verdict, read_yes_no
from hedge_tasks.replies.reading import SOFT
from hedge_tasks.runs.run_files import read_run

DOG = "Is there a dog in the image?"
PLANES = {"A": "axial", "B": "sagittal", "C": "coronal"}
SWAPPED = {"A": "coronal", "B": "sagittal", "C": "axial"}

READERS: dict[str, tuple[Callable[[str], Reading], dict[str, str]]] = {
    "yes or no": (lambda reply: read_yes_no(reply, DOG), {"Yes": "yes", "No": "no"}),
    "digit": (read_verdict, {"0": "0", "1": "1", "2": "2"}),
    "letter": (lambda reply: read_option(reply, PLANES), {"A": "A", "B": "B", "C": "C"}),
    "text": (lambda reply: read_option(reply, PLANES), {text: letter for letter, text in PLANES.items()}),
}
LEADS = ("{a}", "{a}.", "The answer is {a}.", "Answer: {a}", "Sure! {a}.", "I would say {a}.", "Final answer: {a}")
TAILS = ("", "\nThe image was taken in 2019.", "\n\nI hope this helps!")
WRAPPINGS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "bold": lambda text: f"**{text}**" if "\n" not in text else text,
    "thought": lambda text: f"<think>No, A, or 1? Yes, B, or 0.</think>\n{text}",
    "control": lambda text: f"{text}<|im_end|>",
    "blanks": lambda text: f"\n\n  {text}  \n",
}


@pytest.mark.parametrize("wrapping", WRAPPINGS.values(), ids=WRAPPINGS)
@pytest.mark.parametrize("kind", READERS)
def test_a_stated_answer_is_read_firmly_whatever_stands_around_it(kind: str, wrapping: Callable[[str], str]) -> None:
    read, answers = READERS[kind]
    for (spelled, value), lead, tail in itertools.product(answers.items(), LEADS, TAILS):
        reply = wrapping(lead.format(a=spelled) + tail)
        result = read(reply)
        assert (result.value, result.soft) == (value, False), reply


@pytest.mark.parametrize("kind", READERS)
def test_two_different_answers_are_none(kind: str) -> None:
    read, answers = READERS[kind]
    for first, second in itertools.permutations(answers, 2):
        for form in (
            "{a} or {b}",
            "The answer is {a}.\nThe answer is {b}.",
            '{{"answer": "{a}"}}\n{{"answer": "{b}"}}',
        ):
            assert read(form.format(a=first, b=second)).value is None, (form, first, second)


@pytest.mark.parametrize(
    "form", ["{a}", "The answer is {a}.", "Answer: {a}\nAs the slice shows.", "It shows the {a} plane."]
)
def test_swapping_the_options_texts_swaps_the_answer(form: str) -> None:
    for text in PLANES.values():
        before, after = read_option(form.format(a=text), PLANES), read_option(form.format(a=text), SWAPPED)
        assert before.value is not None
        assert after.value is not None
        assert PLANES[before.value] == SWAPPED[after.value] == text


DENIALS = (
    *("There is no {x}.", "No {x} is seen.", "I do not see a {x}.", "The {x} is absent.", "A {x} is not present."),
    *("No evidence of a {x}.", "The image is free of any {x}.", "{x}: absent", "There is no cat, bird or {x}."),
    *("It is not true that there is a {x}.", "I could not find a {x} in it.", "Not a {x}, only a cat."),
    *("There's a cat on the sofa, but no {x}.", "Nobody is wearing a {x}.", "The room has neither a cat nor a {x}."),
)
STATEMENTS = (
    *("There is a {x}.", "A {x} is visible.", "I can see a {x} in it.", "The image shows a {x}."),
    *("It would be wrong to say that there is no {x}.", "A {x} dominates the upper part."),
    "There is a {x} behind a nurse who does not face the camera.",
    *("Two old {x}s stand there.", "A man is riding a {x}.", "There is no cat, but I see a {x}.", "Not only a {x}."),
)
NEITHER = (
    *("There may be a {x}.", "A {x} cannot be excluded.", "It is unclear whether there is a {x}.", "Is there a {x}?"),
    *("It resembles a {x}.", "There is a {x} house.", "There is room for a {x}.", "A cat or a {x} is there."),
    "A statue of a {x} stands there.",
    *("There is nothing on the {x}.", "The {x} is not tall.", "Nobody looks at the {x}.", "No cat is near a {x}."),
    *("They want to build a {x}.", 'The sign says "Beware of the {x}".', "The {x} isn't on the sofa."),
)
THINGS = st.sampled_from(["dog", "tie", "fracture", "bicycle", "truck", "polyp"])


@given(THINGS)
def test_a_sentence_that_denies_is_a_firm_no_and_one_that_states_a_firm_yes(thing: str) -> None:
    question = f"Is there a {thing} in the image?"
    for forms, value in ((DENIALS, "no"), (STATEMENTS, "yes"), (NEITHER, None)):
        for form in forms:
            reply = form.format(x=thing)
            read = read_yes_no(reply, question)
            assert (read.value, read.soft) == (value, False), reply


@given(THINGS, THINGS)
def test_a_sentence_about_something_else_says_nothing(thing: str, another: str) -> None:
    if thing != another:
        for form in (*DENIALS[:6], *STATEMENTS[:4]):
            assert read_yes_no(form.format(x=another), f"Is there a {thing}?").value is None, form


def test_firm_replies_alone_get_labels_through_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels = {"A dog barks.": 0, "I couldn't see a dog.": 1, "No, but maybe a dog.": None, "A dog house.": None}
    rows = [{"id": reply, "question": DOG, "reference": "yes", "baseline": reply, "clean": ["x"]} for reply in labels]
    file = tmp_path / "answers.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    command = ["import", "answers", str(file), "--judge", "rule", "--model-name", "m", "--json"]
    run = read_run(Path(json_of(capsys, [*command, "--out", str(tmp_path / "runs")])["file"]))
    assert {answers.id: answers.label for answers in run.answer_sets} == labels


def test_a_relation_said_the_other_way_round_is_never_a_yes() -> None:
    for relation in ("larger than", "above", "to the left of", "in front of"):
        question = f"Is the red cup {relation} the blue book?"
        assert read_yes_no(f"The red cup is {relation} the blue book.", question).value == "yes"
        assert read_yes_no(f"The blue book is {relation} the red cup.", question).value != "yes"
        for things in (("A", "B"), ("the left lung", "the right lung")):
            question = "Is {} {} {}?".format(things[0], relation.replace("left", "side"), things[1])
            assert (
                read_yes_no("{1} is {2} {0}.".format(*things, relation.replace("left", "side")), question).value
                != "yes"
            )


@pytest.mark.parametrize(
    ("question", "reply"),
    [
        ("Are both present?", "Yes for the first, no for the second."),
        ("Is the abnormality on the left?", "Right-sided."),
        ("Is there a ski in the image?", "He's on a snowboard, not skis."),
    ],
)
def test_what_says_the_opposite_or_something_else_is_never_a_firm_yes(question: str, reply: str) -> None:
    """Of half an answer, a word that begins another one, and a person in the place of what was asked about."""
    read = read_yes_no(reply, question)
    assert read.soft or not read.readable
    assert read_yes_no("No—there is no such thing.", question).value == "no"


@pytest.mark.parametrize(
    ("kind", "least"), [("yes_no", 0.85), ("verdict", 0.85), ("options", 0.85), ("category", 0.85)]
)
def test_the_corpus_is_read_and_hardly_ever_as_something_else(kind: str, least: float) -> None:
    rows = [(row, reading(row)) for row in corpus() if row["kind"] == kind]
    right = sum(read.value == row["meaning"] for row, read in rows)
    wrong = [(row["reply"], read) for row, read in rows if read.value not in (None, row["meaning"])]
    firm = [case for case in wrong if case[1].basis not in SOFT]
    assert right >= least * len(rows)
    assert len(wrong) <= 0.05 * len(rows), wrong
    assert kind == "category" or not firm


# --- every decision ---------------------------------------------------------------------------------------------------

READINGS = Path(__file__).parent / "golden" / "readings.json"


def all_readings() -> dict[str, Any]:
    """By kind of reply the bases of its readings: whole, cut off, and by the readers of other kinds; and a digest."""
    every: dict[str, list[Reading]] = {}
    for i, row in enumerate(corpus()):
        readings = every.setdefault(row["kind"], [])
        readings.append(reading(row))
        if i % 3 == 0:
            readings.append(reading({**row, "reply": row["reply"][: 2 * len(row["reply"]) // 3], "cut": True}))
            readings += [read(row["reply"]) for read, _ in list(READERS.values())[:3]]
    return {
        kind: {
            "bases": dict(sorted(Counter(read.basis for read in readings).items())),
            "digest": hashlib.sha256("\n".join(map(str, readings)).encode()).hexdigest(),
        }
        for kind, readings in every.items()
    }


def test_every_reading_rests_on_what_it_rested_on() -> None:
    """After a change that is meant: `python tests/test_reply_grammar.py`, and look which bases have changed."""
    assert all_readings() == json.loads(READINGS.read_text())


if __name__ == "__main__":
    READINGS.write_text(json.dumps(all_readings(), indent=1) + "\n")
