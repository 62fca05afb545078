"""Reading replies: the corpus, what older readers lost or misread, the papers' readers, and whatever text there is."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable

import pytest
from linear import is_linear, sizes

from hedge_tasks.replies import official, read_free, read_option, read_verdict, read_yes_no
from hedge_tasks.replies.declining import unanswered
from hedge_tasks.replies.forms import likeliest, ticked
from hedge_tasks.replies.labels import bounded, outcome_of, read_judgement
from hedge_tasks.replies.text import body, is_foreign

DOG = "Is there a dog in the image?"
FRUIT = {"A": "a pear", "B": "a plum", "C": "a peach plum", "D": "a fig"}


# --- the corpus -------------------------------------------------------------------------------------------------------


# --- what older readers lost or misread -------------------------------------------------------------------------------


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


# --- whatever text there is -------------------------------------------------------------------------------------------


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
    "line breaks": lambda n: "x" + "\n" * n + "y",
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


# --- forms, and bounds ------------------------------------------------------------------------------------------------


def nested(depth: int, key: str, value: object) -> str:
    for _ in range(depth):
        value = {key: value}
    return json.dumps(value)


@pytest.mark.parametrize(
    ("reply", "read"),
    [
        ("[x] Yes\n[ ] No", "yes (form)"), ("[x] Yes\n[x] No", "unreadable: contradiction"),
        ("Yes: 12%\nNo: 88%", "no (form)"), ("Yes: 50%\nNo: 50%", "unreadable: contradiction"),
        ('{"yes": 0.1, "no": 0.9}', "no (json)"), ('{"answer": "yes"}\nNo.', "unreadable: contradiction"),
        ('{"answer": "yes"} Wait.', "unreadable: contradiction"), ('{"answer": ["yes"]}', "yes (json)"),
        ('{"answer": ["yes", "no"]}', "unreadable: no answer"), ('{"object": "dog", "present": true}', "yes (json)"),
        (nested(4, "a", {"answer": "yes"}), "yes (json)"),
        (nested(5, "a", {"answer": "yes"}), "unreadable: no answer"), (nested(5, "answer", "yes"), "yes (json)"),
        (nested(6, "answer", "yes"), "unreadable: no answer"), ("Are the lungs clear? Yes.", "yes (leading)"),
        ("Are the dogs clear? Yes.", "yes (line)"), ("Yes. Wait, no.", "no (leading)"),
        ("Yes, if toys count.", "yes (leading)"), ("✓", "yes (line)"), ("❌", "no (line)"),
        ('{"answer": {"x": 1}}', "unreadable: no answer"), ("It is too small to identify.", "unreadable: doubt"),
        ("None of the above", "unreadable: not offered"), ('{"dog": "yes"}', "yes (json)"),
        ('{"dog": true, "cat": false}', "yes (json)"), ('{"dog": 3}', "unreadable: no answer"),
        ('{"the": false}', "unreadable: no answer"), ('{"a dog": false}', "no (json)"),
        ('{"present": true}', "yes (json)"), ('{"present": true, "object": "cat"}', "unreadable: no answer"),
        ("There is no friendly dog.", "no (statement)"), ("A dog is not there.", "no (said back)"),
        ("He wants to buy a dog.", "unreadable: no answer"), ("He goes to a dog.", "yes (said back)"),
        ("A head of a dog.", "unreadable: no answer"), ("A picture of the dog.", "yes (said back)"),
        ("The dog is not.", "no (said back)"), ("It is not the dog.", "no (said back)"),
        ("I was able to see a dog.", "yes (said back)"),
    ],
)  # fmt: skip
def test_a_form_says_one_answer_or_none(reply: str, read: str) -> None:
    assert str(read_yes_no(reply, DOG)) == read


@pytest.mark.parametrize(
    ("numbers", "answer"),
    [
        ((0.5, 0.5), (True, None)), ((0.51, 0.49), (True, "a")), ((0.6, 0.429), (True, "a")),
        ((0.6, 0.432), (True, None)), ((0.6, 0.369), (True, None)), ((60, 38), (True, "a")),
        ((0.4, 0.3, 0.3), (True, None)), ((0, 1), (True, None)), ((1, 1), (True, None)), ((1,), (False, None)),
    ],
)  # fmt: skip
def test_shares_are_of_a_whole_and_one_has_more_than_half(numbers: tuple[float, ...], answer: object) -> None:
    assert likeliest(dict(zip("abc", numbers, strict=False)), str) == answer
    assert likeliest({**dict(zip("abc", numbers, strict=False)), "x": 0}, {"a": "a"}.get) == (False, None)


def test_a_list_is_ticked_where_each_item_is_there_once() -> None:
    def named(text: str) -> str | None:
        return text if text in ("red", "blue") else None

    texts = (
        "[x] A. red\n[ ] B. blue",
        "[x] red",
        "[ ] red\n[x] blue\n[ ] red",
        "[x] red\n[ ] green",
        "[x] blue\n[x] red",
    )
    assert [ticked(text, named) for text in texts] == [{"red"}, set(), set(), set(), {"red", "blue"}]


def test_what_is_long_is_read_and_kept_in_part() -> None:
    for n, whole in ((8000, True), (8001, False)):
        assert ("\n" not in str(body("y" * n))) == whole
        assert str(body("y" * n)).count("y") == 8000
    for n in (2000, 2001):
        assert bounded("a" * n) == ("a" * 2000 if n == 2000 else "a" * 1495 + " ... " + "a" * 500)
        reason = read_judgement(f'{{"verdict": "s", "reason": "{"a" * (n - 1700)}"}}', {"s": "s"}, "verdict").reason
        assert reason == ("a" * 300 if n == 2000 else "a" * 299 + "…")
    values = {"3": "three", "supported": "s"}
    assert [outcome_of(v, values) for v in (3, 3.0, 3.5, "3", " Supported ", None)] == [
        "three",
        "three",
        None,
        "three",
        "s",
        None,
    ]
    offered = {"A": "a" * 30, "B": "b"}
    echo = f"{offered['A']} b".ljust(2000)
    assert [str(read_option(text, offered)) for text in (echo, f"A {offered['A']} B b", "b")][:2] == [
        "unreadable: echo"
    ] * 2
    assert read_option(echo + " ", offered).basis != "echo"
    assert read_option("the third option", offered).basis == "not offered"


@pytest.mark.parametrize(
    ("reply", "read"),
    [
        ('{"label": NaN}', "unreadable: contradiction"), ('{"label": null}', "unreadable: no answer"),
        ('{"label": 1.0}', "1 (json)"), ('{"label": 1.5}', "unreadable: no answer"),
        ('{"score": 0.77, "label": 1}', "1 (json)"), ('{"supported": false, "hallucinated": true}', "1 (json)"),
        ("0: 0.2\n1: 0.8", "1 (form)"), ("1 if wrong, 0 if right", "unreadable: empty"),
        ("A candidate answer is hallucinated where it differs.", "unreadable: no answer"),
        ("The candidate answer is hallucinated where it differs.", "1 (said back)"),
        ("Some claims are hallucinated.", "unreadable: no answer"),
        *((text, "unreadable: no answer") for text in ("1 out of 5", "1/2", "1%", "10")),
    ],
)  # fmt: skip
def test_a_digit_is_a_label_where_it_is_nothing_else(reply: str, read: str) -> None:
    assert str(read_verdict(reply)) == read


def test_a_text_of_many_letters_that_are_not_latin_is_foreign_whatever_its_words() -> None:
    """At 3 of 10 the English words around them decide, above it the letters."""
    assert [is_foreign(text) for text in ("the ééé is no", "the ééééé is not it a")] == [False, True]


@pytest.mark.parametrize(
    ("question", "reply", "value"),
    [
        *(("Is the liver enlarged?", f"It is not {word}.", no) for word, no in (("enlarged", "no"), ("green", None))),
        ("Is it large?", "It is not green.", None), ("Is the liver enlarged?", "The liver is normal.", "no"),
        ("Is this a CT?", "This is an MRI.", "no"), ("Is the dog brown?", '{"dog": true}', "yes"),
        ("Is the dog brown?", '{"brown dog": true}', "yes"), ("Is the dog brown?", '{"present": true}', None),
        ("Isn't there a dog?", '{"dog": true}', None),
        ('"Is there a dog?"', '{"present": true}', "yes"),
        ("Is the lesion in the lung on the left?", "The lesion is on the right.", "no"),
    ],
)  # fmt: skip
def test_what_is_said_of_something_is_said_of_what_was_asked_about_or_of_nothing(
    question: str, reply: str, value: str | None
) -> None:
    assert read_yes_no(reply, question).value == value


@pytest.mark.parametrize(
    ("reply", "read"),
    [
        ('{"A": "no", "B": "yes"}', "B (json)"), ('{"A": "true", "B": 3}', "A (json)"),
        ('{"a plum": "correct"}', "B (json)"), ('{"B": "likely"}', "unreadable: no answer"),
        ("A: not this one", "unreadable: no answer"), ("A: not so ripe pear", "A (opening)"),
        ("B is tempting. C", "C (line)"), ("B is less likely than C", "unreadable: no answer"),
        ("B, a plum", "B (line)"), ("(B) a pear", "unreadable: contradiction"),
        ("A. The final answer: B.", "B (stated)"), ("A or B", "unreadable: contradiction"),
        ("A or B. I choose A or B. The answer is A.", "A (stated)"),
        ("A: ✗", "unreadable: no answer"), ("(A) ✗, (B) ✓", "unreadable: no answer"),
    ],
)  # fmt: skip
def test_an_option_is_taken_or_not(reply: str, read: str) -> None:
    assert str(read_option(reply, FRUIT)) == read


def test_a_free_answer_counts_as_far_as_it_is_whole() -> None:
    assert str(read_free('{"answer": 3, "final_answer": "liver"}')) == "liver (json)"
    cut = [read_free(text, cut=True).readable for text in ("The liver is large. And the", "The liver is")]
    assert cut == [True, False]
    assert [unanswered(f"© 2016 The Authors{more}") for more in ("", "\nA cyst.")] == ["copyright line", None]


def test_a_judge_is_read_by_its_own_field_letters_and_words() -> None:
    values = {"supported": "s", "hallucinated": "h", "a": "s", "b": "h"}

    def read(reply: str, field: str = "verdict", judged: str = "") -> str | None:
        return read_judgement(reply, values, field, judged).reading.value

    assert [read(reply) for reply in ("B", "A. It is right.", "C", "Bx")] == ["h", "s", None, None]
    assert [read('{"reading": "supported"}', field) for field in ("reading", "verdict")] == ["s", None]
    assert [read(f'{{"verdict": "supported", "reason": "{why}"}}') for why in ("...", "<why>", "so")] == [
        None,
        None,
        "s",
    ]
    quoted = "verdict: supported"
    assert [read(f'It says "{quoted}", which is no reason.', judged=judged) for judged in (quoted, "")] == [None, "s"]
