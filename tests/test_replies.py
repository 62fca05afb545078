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


@pytest.mark.slow
def test_the_reader_reads_the_corpus() -> None:
    rows = corpus()
    for held_out in (False, True):
        part = [row for row in rows if row["held_out"] == held_out]
        wrong = sum(ours(row) != row["meaning"] for row in part)
        assert wrong <= 0.03 * len(part), f"{wrong} of {len(part)}, held out: {held_out}"
    misread = sum(ours(row) not in (None, row["meaning"]) for row in rows)
    assert misread < 0.005 * len(rows)


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
    assert changed == []


@pytest.mark.slow
def test_a_reading_says_what_it_rests_on() -> None:
    for row in corpus():
        if row["kind"] != "category":
            found = reading(row)
            assert found.basis in (BASES if found.readable else REASONS), row


# --- what older readers lost or misread -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("B. The car is red. (A) pink is close but not right.", "B"),
        ("The correct answer is (B) red. Options (A) pink, (C) dark red are incorrect.", "B"),
        (r"\boxed{B}", "B"),
        ("(B) is incorrect. (C) is correct.", "C"),
        ("A and C are wrong, so B", "B"),
        ("(A) pink (B) red (C) dark red (D) blue", None),
        ("(B) blue", None),
        ("A: no. B: yes. C: no.", None),
    ],
)
def test_an_option_is_the_one_that_is_taken(reply: str, letter: str | None) -> None:
    assert read_option(reply, COLOURS).value == letter


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        *(("It could be the plum.", None), ("A. or B.", None), ("A is possible, but B is likelier.", None)),
        *(
            ("It is A or maybe D.", None),
            ("It is located below the plum.", None),
            ("As shown in (A), it is small.", None),
        ),
        *(("Not A, B, or C.", None), ("Choose from (A), (B), (C), (D).", None), ("Vitamin D", None), ("I", None)),
        *(("I'd pick B over C.", "B"), ("a fig rather than a plum", "D"), ("Answer: not sure", None), ("(A)(B)", None)),
        *(("I don't think the answer is B.", None), ("C (a peach plum)", "C"), ("b. a plum", "B"), ("A: a plum", None)),
    ],
)
def test_what_is_possible_elsewhere_or_only_offered_is_not_taken(reply: str, letter: str | None) -> None:
    assert read_option(reply, FRUIT).value == letter


@pytest.mark.parametrize(
    ("reply", "digit"),
    [
        *(("I don't think the answer is hallucinated.", "0"), ("I doubt that the answer is factual.", "1")),
        *(("It is unlikely that the answer is hallucinated.", "0"), ("The answer may be hallucinated.", None)),
        ("There is no evidence that the answer is hallucinated.", "0"),
        *(("Answer: 1. Check the question.\n2. Check the evidence.", None), ("Hallucination: no", "0")),
        *(("The answer is not hallucinated.", "0"), ("making it hallucinated: it is hallucinated", "1"), ("1.0", "1")),
    ],
)
def test_a_denied_verdict_is_the_other_one(reply: str, digit: str | None) -> None:
    assert read_verdict(reply).value == digit


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        *(("I fail to see a dog", "no"), ("I doubt there is a dog", "no"), ("There are 0 dogs", "no")),
        *(("It's unlikely that there is a dog", "no"), ("I am unable to detect a dog in the image.", "no")),
        *(("There is a dog-shaped shadow", None), ("There used to be a cat", None), ("It does not sound so", "no")),
        *(("yes, but I can't see the image", None), ("Sorry, no.", "no"), ("I would not say yes.", None)),
        *(("There is no such thing.", "no"), ("The question asks whether there is a dog.", None), ("No one", None)),
    ],
)
def test_doubts_denials_and_look_alikes(reply: str, said: str | None) -> None:
    assert read_yes_no(reply, DOG).value == said


def test_an_options_text_needs_neither_article_nor_the_same_number_word() -> None:
    assert read_option("house", {"A": "a tree", "B": "a house"}).value == "B"
    assert read_option("2", {"A": "one", "B": "two"}).value == "B"
    assert read_option("two", {"A": "1", "B": "2"}).value == "B"


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        *(("(B)", "B"), ("B", "B"), ("B.", "B"), ("B) a plum", "B"), ("Answer: B", "B"), ("**(B)** a plum", "B")),
        *(("The answer is B", "B"), ("Option C", "C"), ("A plum.", "B"), ("It's a peach plum", "C"), ("(E)", None)),
        *(("(A) or (B)", None), ("A and B", None), ("a plum or a fig", None), ("I don't know", None), ("", None)),
        *(("It is a pear, not to be mistaken for a peach plum", "A"), ("An apple", None)),
    ],
)
def test_options_by_letter_or_text(reply: str, said: str | None) -> None:
    assert read_option(reply, FRUIT).value == said


@pytest.mark.parametrize(
    ("reply", "digit"),
    [
        ("1. The answer is hallucinated because the trial did not exist.", "1"),
        ("Therefore, the answer is 1", "1"),
        ("<answer>1</answer>", "1"),
        ("1</s>", "1"),
        ("<think>1", None),
        ("<think>\n0 is factual.\n\n1\n", None),
        ("Reply with 0 if the answer is factual and with 1 if it is hallucinated.", None),
        *(("0", "0"), (" 1\n", "1"), ("2.", "2"), ("**1**", "1"), ("Answer: 0", "0"), ("The final answer is: 1.", "1")),
        *(("1 (hallucinated)", "1"), ("0 - Factual", "0"), ("\\boxed{1}", "1"), ("Not sure.", "2"), ("１", "1")),
        *(("not-hallucinated", "0"), ("Non-factual", "1"), ("Let me think. It is 10 mg.\n\nVerdict: 0", "0")),
        ("1\n\nThe answer names 2 wrong pathways and is not factual.", "1"),
        *(("0 (hallucinated)", None), ("0\n1", None), ("1 or 0", None), ("10", None), ("0.5", None), ("note", None)),
        *(("I would not say so", None), ("", None), ("1" + " " * 300 + "1", None)),
        ("1. First, the answer is about mice\n2. Second, it is not", None),
        ("The answer is hallucinated. 0", None),
    ],
)
def test_a_verdict_is_the_digit_that_is_stated(reply: str, digit: str | None) -> None:
    assert read_verdict(reply).value == digit


def test_a_verdict_that_was_not_offered_is_none() -> None:
    assert read_verdict("2", offered="01").basis == "not offered"
    assert read_verdict("Not sure", offered="01").value is None
    assert read_verdict("1", offered="01").value == "1"


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        *(("I'm unable to see the image", None), ("I can't assist with that", None), ("There is a cat.", None)),
        *(("Yes", "yes"), ("yes.", "yes"), ("**No**", "no"), ("No, there is no boat.", "no"), ("NO", "no")),
        *(("The answer is yes.", "yes"), ("It is not. So no!", "no"), ("Yeah, it is", "yes"), ("是的", "yes")),
        *(("I do not know", None), ("I cannot tell.", None), ("Not sure", None), ("No idea.", None), ("", None)),
        *(("yes or no?", None), ("Yes and no", None), ("Is it yes? I would say no.", "no"), ("A pan", None)),
        *(("That is not correct.", "no"), ("That isn't true.", "no"), ("Correct, it is a dog.", "yes")),
        *(("There is a dog.", "yes"), ("There isn't a dog.", "no"), ("There are no dogs here.", "no")),
        *(("The dog is notable and known.", "yes"), ("It might be a dog.", None), ("None of them.", "no")),
        *(("Is there a dog? Let me look.", None), ("No, there is a dog", None), ("There is no dog, only a cat.", "no")),
        *(("The image does not contain a dog.", "no"), ("I cannot see a dog.", "no"), ("🤷", None), ("Dog", None)),
        *(("Yes, but it is not clearly visible.", "yes"), ("None.\nThe street is empty.", "no")),
        *(("Nothing of that kind is visible", "no"), ("I cannot confirm that there is a dog.", None)),
    ],
)
def test_yes_and_no(reply: str, said: str | None) -> None:
    assert read_yes_no(reply, DOG).value == said


def test_a_statement_is_about_what_was_asked_or_about_nothing() -> None:
    assert read_yes_no("There is a dog.", "a dog").value == "yes"
    assert read_yes_no("There is a dog.", "a cat").value is None
    assert read_yes_no("There is no dog.", "a cat").value is None
    assert read_yes_no("There is a dog.").value is None
    assert (
        read_yes_no("Human: Yes, there is free air in the thorax.", "Is there free air in the thorax?").value == "yes"
    )
    assert read_yes_no("The thorax is free of any air.", "Is there air in the thorax?").value == "no"
    assert read_yes_no("The man is wearing a blue hat.", "Is the man wearing a red hat?").value is None


@pytest.mark.parametrize(
    ("question", "reply", "said"),
    [
        ("Was the patient positioned without tilting?", "Yes, the patient was positioned without tilting.", "yes"),
        ("Is there a sign of a fracture?", "There is no clear indication of a fracture here.", "no"),
        ("Is there a mass in the liver?", "It shows a CT scan of the liver, displaying a large mass.", "yes"),
        ("Is the effort adequate?", "It appears that the effort is not adequate. this can be", "no"),
        ("Is the effort adequate?", "User: No, it is not.", "no"),
        ("Is there a mass in the liver?", "It shows a CT scan of the liver, displaying no mass.", "no"),
        ("Is there a mass in the liver?", "Is there a mass in the liver, or a cyst?", None),
    ],
)
def test_questions_of_other_forms(question: str, reply: str, said: str | None) -> None:
    assert read_yes_no(reply, question).value == said


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


def test_a_reply_that_was_cut_off_counts_where_it_had_said_its_answer() -> None:
    assert read_yes_no("Yes, there is a dog next to the", DOG, cut=True).value == "yes"
    assert read_yes_no("Final answer: no. The image shows", DOG, cut=True).value == "no"
    for reply in ("There is a dog", "The answer is no", "Let me see. There is no dog in the"):
        assert read_yes_no(reply, DOG, cut=True).basis == "cut off"
        assert read_yes_no(reply, DOG).readable
    assert read_verdict("1. The first claim, that", cut=True).value is None
    assert read_option("The answer is B", COLOURS, cut=True).basis == "cut off"


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


@pytest.mark.parametrize(
    ("reply", "basis"),
    [
        *(
            ('{"answer": "yes"}', "json"),
            ("The answer is yes, surely.", "stated"),
            ("Yes", "line"),
            ("Yes, it is", "opening"),
            ("Yes, it looks like one, but it is a cat.", "leading"),
        ),
        ("There is a dog.", "said back"),
        ("A girl walks a dog along the beach.", "statement"),
    ],
)
def test_a_reading_says_its_basis(reply: str, basis: str) -> None:
    assert read_yes_no(reply, DOG).basis == basis


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
