"""Reading replies: the corpus, what older readers lost or misread, the papers' readers, and whatever text there is."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linear import is_linear, sizes
from reply_corpus import corpus, is_held_out, ours, reading, vope_rechecked

from hedge_tasks.data.thoughts import without_thoughts
from hedge_tasks.replies import BASES, REASONS, official, read_free, read_option, read_verdict, read_yes_no, spoken_text

DOG = "Is there a dog in the image?"
COLOURS = {"A": "pink", "B": "red", "C": "dark red", "D": "blue"}
FRUIT = {"A": "a pear", "B": "a plum", "C": "a peach plum", "D": "a fig"}


# --- the corpus -------------------------------------------------------------------------------------------------------


def test_the_corpus_is_what_it_says() -> None:
    rows = corpus()
    assert len(rows) >= 500
    assert len({row["id"] for row in rows}) == len(rows)
    assert all(row["held_out"] == is_held_out(row) for row in rows)
    assert 0.17 < sum(row["held_out"] for row in rows) / len(rows) < 0.25
    kinds = Counter(row["kind"] for row in rows)
    assert set(kinds) == {"yes_no", "verdict", "options", "category", "free"}
    styles = {row["style"] for row in rows}
    wanted = [
        "terse",
        "explained",
        "hedged",
        "markdown",
        "json",
        "latex",
        "thinking",
        "refusal",
        "cut",
        "foreign",
        "list",
        "conflicting",
        "doubt",
    ]
    assert styles >= set(wanted)


DRESSED = {
    "bold": lambda reply: reply if "*" in reply or "\n" in reply or ":" in reply else f"**{reply}**",
    "a word before": "Okay, {}".format,
    "a thought": "<think>yes no 0 1 A (B) The answer is 1. Final answer: no.</think>{}".format,
    "a control token": "{}<|im_end|>".format,
    "a courtesy": "{}\n\nI hope this helps! Let me know if you have any other questions.".format,
    "an explanation": "{}\n\nExplanation: this follows from what is shown.".format,
    "a disclaimer": "{}\n\nNote that I may make mistakes.".format,
}
"""What chat models put around an answer, which changes nothing of its meaning."""


@pytest.mark.slow
@pytest.mark.parametrize("dress", DRESSED.values(), ids=DRESSED)
def test_what_stands_around_an_answer_changes_nothing(dress: Callable[[str], str]) -> None:
    kinds = ("yes_no", "verdict", "options")
    rows = [row for row in corpus() if row["kind"] in kinds and not row["held_out"] and not row.get("cut")]
    rows = [row for row in rows if row["reply"].strip() and "ASSISTANT" not in row["reply"]]
    assert len(rows) > 350
    changed = [(row["id"], row["reply"]) for row in rows if ours({**row, "reply": dress(row["reply"])}) != ours(row)]
    assert len(changed) <= 0.01 * len(rows), changed


@pytest.mark.slow
def test_a_reading_says_what_it_rests_on() -> None:
    for row in corpus():
        if row["kind"] != "category":
            found = reading(row)
            assert found.basis in (BASES if found.readable else REASONS), row


# --- what older readers lost or misread -------------------------------------------------------------------------------


@pytest.mark.slow
def test_where_two_readers_of_real_answers_say_something_they_say_the_same(shared_data: Path) -> None:
    """Ours and the first word alone, on real answers to VQA-RAD's yes-or-no questions."""
    files = sorted((shared_data / "vqa_rad" / "predictions").glob("*.jsonl"))
    if not files:
        pytest.skip("the answers to VQA-RAD are not here")
    both = 0
    for file in files:
        for row in map(json.loads, file.read_text("utf-8").splitlines()):
            truth = str(row.get("ground_truth") or row["answer"]).strip().lower()
            answer = row["prediction"] if "prediction" in row else row["clean"]
            if truth not in ("yes", "no"):
                continue
            first = next(iter(answer.lower().replace(",", " ").replace(".", " ").split()), "")
            mine = read_yes_no(answer, row["question"]).value
            if first in ("yes", "no") and mine is not None:
                both += 1
                assert mine == first, answer
    assert both > 350


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        *(("", "empty"), ("?!", "empty"), ("[LMMS_EVAL_REQUEST_FAILED after 3]", "failed request")),
        *(("<think>yes", "unfinished thought"), ("I can't view images.", "refusal"), ("No, I can't help.", "refusal")),
        *(("I'm not sure.", "doubt"), ("Yes and no.", "contradiction"), ("Yes. The answer is no.", "contradiction")),
        ("A nice picture.", "no answer"),
    ],
)
def test_an_unreadable_reply_says_why(reply: str, reason: str) -> None:
    found = read_yes_no(reply, DOG)
    assert (found.value, found.basis) == (None, reason)
    assert str(found) == f"unreadable: {reason}"


def test_thoughts_end_with_their_last_mark() -> None:
    assert without_thoughts("a</think>b<think>c</think>d") == ("d", False)
    assert without_thoughts("0<think>c") == ("", True)
    assert (
        read_free("<|channel|>analysis<|message|>x<|end|><|channel|>final<|message|>The liver.").value == "The liver."
    )


@pytest.mark.parametrize(
    ("reply", "spoken"),
    [
        ("A mass in the left lung.", "A mass in the left lung."),
        ("<think>left?</think>\n\nOn the right.<|im_end|>", "On the right."),
        ("<think>It is on the left.", ""),
        ("**Final answer:** the liver", "the liver"),
        ('{"answer": "liver"}', "liver"),
        ("I'm sorry, I can't help with that.", "I'm sorry, I can't help with that."),
        ("[LMMS_EVAL_REQUEST_FAILED after 3]", ""),
        ("Findings:\n- clear lungs\n- **no** effusion", "Findings:\n- clear lungs\n- **no** effusion"),
    ],
)
def test_of_a_free_answer_what_was_said_is_judged(reply: str, spoken: str) -> None:
    assert spoken_text(reply) == spoken


# --- the papers' readers ----------------------------------------------------------------------------------------------


def published_digit(reply: str) -> str:
    """The rules of MedHallu's reference code, as its description has them, in its own order."""
    low = reply.lower()
    if "1" in low or "not" in low or "non" in low:
        return "1"
    if "not sure" in low or "pass" in low or "skip" in low or "2" in low:
        return "2"
    return "0"


def test_the_official_digit_is_the_reference_codes_on_200_odd_replies() -> None:
    starts = ["", "0", "1", "2", "The answer is ", "NOT SURE", "pass", "Skip this", "I cannot", "None of it"]
    middles = ["", " factual", " because 12 mg", " note that", " it is Not factual", " compass", " twenty"]
    replies = [a + b + end for a, b, end in itertools.product(starts, middles, ["", ".", "\n0"])]
    drawn = random.Random(5).sample(replies, 200)
    digits = [official.medhallu(reply) for reply in drawn]
    assert digits == [published_digit(reply) for reply in drawn]
    assert all(digits.count(digit) >= 10 for digit in "012")


def published_yes_no(answer: str) -> str | None:
    """evaluate.py of SHALE, told by its description."""
    if "Yes" in answer or "yes" in answer or "是" in answer:
        return "yes"
    return "no" if "No" in answer or "no" in answer or "否" in answer else None


_PIECES = [
    "Yes",
    "yes",
    "YES",
    "No",
    "no",
    "know",
    "not",
    "(A)",
    "(B)",
    "(D)",
    "A",
    "B)",
    "是",
    "不是",
    "否",
    " ",
    ".",
    "x",
]


@given(st.lists(st.sampled_from(_PIECES), max_size=5).map("".join))
def test_the_official_answer_is_that_of_shales_code(reply: str) -> None:
    assert official.shale_yes_no(reply) == published_yes_no(reply)
    named = [letter for letter in "ABCD" if f"({letter})" in reply]
    assert official.shale_choice(reply) == (named[0] if named else None)


_PARTS = ["No", "no", "No.", "not", "n't", "cannot", "sound", "Yes", ",", " ", " ", "dog", ".", "isn't", "\n"]


@given(st.lists(st.sampled_from(_PARTS), max_size=8).map("".join))
def test_the_official_recheck_equals_its_description(reply: str) -> None:
    assert official.vope(reply) == vope_rechecked(reply)


# --- whatever text there is -------------------------------------------------------------------------------------------


@pytest.mark.slow
@given(st.text(max_size=120), st.text(max_size=40))
def test_any_text_is_read_as_something_that_was_offered_or_unreadable(reply: str, question: str) -> None:
    assert read_yes_no(reply, question).value in ("yes", "no", None)
    assert read_verdict(reply, offered="01").value in ("0", "1", None)
    assert read_option(reply, FRUIT).value in (*"ABCD", None)
    read_free(reply)


@pytest.mark.slow
@pytest.mark.parametrize("answer", ["yes", "no"])
@given(thought=st.text(max_size=60), ending=st.sampled_from(["", ".", "!", "</s>", "\n", "<|im_end|>"]))
def test_a_bare_answer_is_read_whatever_was_thought(answer: str, thought: str, ending: str) -> None:
    assert read_yes_no(f"<think>{thought}</think>{answer}{ending}", DOG).value == answer
    if "/" not in thought:
        assert read_yes_no(f"<think>{thought}", DOG).value is None


HOSTILE: dict[str, Callable[[int], str]] = {
    "braces": lambda n: "{" * n,
    "objects": lambda n: '{"a":' * (n // 5),
    "boxes": lambda n: "\\boxed{" * (n // 7),
    "tags": lambda n: "<answer>" * (n // 8),
    "thoughts": lambda n: "<think>" * (n // 7),
    "answers": lambda n: "the answer is yes. " * (n // 19),
    "blanks": lambda n: "the answer is" + " " * n + "yes",
    "quotes": lambda n: "'\"" * (n // 2),
    "letters": lambda n: "(A) " * (n // 4),
    "negations": lambda n: "not " * (n // 4),
    "no spaces": lambda n: "a" * n,
    "lines": lambda n: "1\n" * (n // 2),
}


@pytest.mark.slow
@pytest.mark.parametrize("shape", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_reply_is_read_in_linear_time(shape: Callable[[int], str]) -> None:
    def read(text: str) -> None:
        read_yes_no(text, DOG)
        read_verdict(text)
        read_option(text, FRUIT)
        read_free(text)

    assert is_linear(read, shape, sizes(16_000, 256_000))
