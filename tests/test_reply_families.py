"""Families of replies that readers took for something else, with variants of each; and readers linear in time."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linear import is_linear, sizes

from hedge_tasks.data.sentences import split_sentences
from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.io.outside import parse_json
from hedge_tasks.judging.base import Case, build_judge
from hedge_tasks.judging.outcomes import outcome_of
from hedge_tasks.judging.prompt import load_judge_prompt, prompt_files
from hedge_tasks.judging.rule import RuleJudge
from hedge_tasks.measures.standard_measures import known_measures
from hedge_tasks.replies import Reading, read_option, read_verdict, read_yes_no
from hedge_tasks.replies.declining import unanswered
from hedge_tasks.replies.reading import BASES, SOFT, STATED

DOG = "Is there a dog in the image?"
COLOURS = {"A": "pink", "B": "red", "C": "dark red", "D": "blue"}
SIZES = {"A": "2 cm", "B": "0.5 cm", "C": "5 mm", "D": "10 cm"}
FIELDS = {"A": "1.5 T", "B": "5 T", "C": "3 T", "D": "7 T"}
PLANES = {"A": "T1", "B": "T2", "C": "FLAIR", "D": "CT"}

WRONG = ("incorrect", "wrong", "inaccurate", "false", "hallucinated", "unsupported", "fabricated")
RIGHT = ("correct", "accurate", "true", "factual", "supported")
LEADS = (
    "The answer is",
    "The provided answer is",
    "This answer is",
    "I believe the answer is",
    "It is",
    "The statement is",
)
TAILS = (".", ", because the trial found otherwise.", " since aspirin is an NSAID.", "!")


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


@pytest.mark.slow
@given(
    st.integers(0, 99), st.integers(1, 9), st.sampled_from(["{}", "The answer is {}", "It measures {}.", "about {}"])
)
def test_an_option_is_in_no_longer_number(whole: int, tenths: int, phrase: str) -> None:
    for unit, options in (("cm", SIZES), ("mm", SIZES), ("T", FIELDS)):
        said = f"{whole}.{tenths} {unit}"
        wanted = next((letter for letter, text in options.items() if text == said), None)
        found = read_option(phrase.format(said), options)
        assert found.value in ((wanted,) if "about" not in phrase else (wanted, None)), said


@pytest.mark.parametrize("reply", ["1-2 cm", "12 cm", "< 2 cm", "20.5 mm", "5-10 cm", "2.5 cm", "3.5 mm"])
def test_a_range_a_bound_and_a_longer_number_are_not_the_option(reply: str) -> None:
    assert read_option(reply, SIZES).value is None
    assert read_option(f"The answer is {reply}.", SIZES).value is None


def test_an_option_within_another_phrase_is_not_taken() -> None:
    assert read_option("T1-weighted image with contrast", PLANES).value is None
    assert read_option("The answer is PET-CT", PLANES).value is None
    assert read_option("The answer is upper left.", {"A": "upper", "B": "upper left"}).value == "B"


# --- corrections and comparisons --------------------------------------------------------------------------------------


# --- plain replies that were not read ---------------------------------------------------------------------------------


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

SAYINGS = ("I think it is a cyst", "It is a cyst", "Yes", "The left lung shows a mass")
DISCLAIMERS = (
    *(", but please consult a radiologist", ". Please consult a doctor.", "; please note that I am an AI model."),
    *(". I am not a doctor, so please seek advice.", ". However, I cannot provide a diagnosis."),
    ". Is there anything else?",
)


@pytest.mark.parametrize("saying", SAYINGS)
@pytest.mark.parametrize("disclaimer", DISCLAIMERS)
def test_a_disclaimer_takes_no_answer_away(saying: str, disclaimer: str) -> None:
    assert unanswered(saying + disclaimer) is None


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        *(("", "empty"), ("?!", "empty"), ("© 2016 The Authors", "copyright line"), ("<think>a", "unfinished thought")),
        *(
            ("I'm sorry, but I can't help with that.", "refusal"),
            ("I cannot view images. Please describe it.", "refusal"),
        ),
        *(
            ("I don't know.", "doubt"),
            ("It cannot be determined.", "doubt"),
            ("Could you please send the image?", "echo"),
        ),
    ],
)
def test_what_is_no_answer_says_why(answer: str, why: str) -> None:
    assert unanswered(answer) == why


def shares(outcomes: list[str]) -> dict[str, float | None]:
    """The three parts, as tables have them."""
    labels = {"supported": 0, "hallucinated": 1}
    found = {}
    for name in ("supported", "hallucinated", "declined"):
        measure = known_measures()[f"{name}_share"]
        records = []
        for outcome in outcomes:
            label = labels.get(outcome)
            scores = Scores(outcome, label, None, None, {}, "uniform", ())
            basis = {"declined": "refusal", "cut off": "cut off", "failed": "failed request"}.get(outcome)
            records.append(measure.record(scores, {"label": label, "basis": basis}, {}))
        found[name] = measure.estimate(records).value
    return found


@pytest.mark.slow
@settings(max_examples=30)
@given(
    st.lists(st.sampled_from(["supported", "hallucinated", "declined", "cut off", "failed", "undecided"]), min_size=1)
)
def test_the_supported_part_never_grows_by_declining(outcomes: list[str]) -> None:
    counted = [outcome for outcome in outcomes if outcome in ("supported", "hallucinated", "declined")]
    before = shares(outcomes)
    assert before == {name: counted.count(name) / len(counted) if counted else None for name in before}
    for i, outcome in enumerate(outcomes):
        if outcome in ("supported", "hallucinated"):
            after = shares([*outcomes[:i], "declined", *outcomes[i + 1 :]])
            assert after["supported"] <= before["supported"]
            assert after["declined"] > before["declined"]


@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        *((None, "undecided"), ({"label": 1}, "hallucinated"), ({"label": 0, "basis": "line"}, "supported")),
        *(({"label": None, "basis": "leading"}, "unconfirmed"), ({"label": None, "basis": "refusal"}, "declined")),
        *(({"label": None, "category": "no_answer"}, "declined"), ({"label": None, "basis": "no answer"}, "unread")),
        *(({"label": None, "basis": "judge unread"}, "judge unread"), ({"label": None, "category": "no"}, "undecided")),
        ({"label": None, "votes": [{"label": None, "basis": "empty"}] * 2}, "declined"),
        *(({"label": None, "basis": "failed request"}, "failed"), ({"label": None, "basis": "cut off"}, "cut off")),
        *(({"label": None, "basis": "unfinished thought", "category": "unclear"}, "cut off"),),
        (
            {"label": None, "votes": [{"label": None, "basis": "cut off"}, {"label": None, "basis": "empty"}]},
            "undecided",
        ),
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


# --- time -------------------------------------------------------------------------------------------------------------

SHAPES: dict[str, Callable[[int], str]] = {
    "dots": lambda n: "." * n,
    "letters": lambda n: "a" * n,
    "words": lambda n: "a dog " * (n // 6),
    "questions": lambda n: "is it? " * (n // 7),
    "commas": lambda n: "a, " * (n // 3),
    "quotes": lambda n: "'\"" * (n // 2),
    "items": lambda n: "1. a\n" * (n // 5),
    "answers": lambda n: "The answer is yes. " * (n // 19),
    "waits": lambda n: "Yes. Wait, " * (n // 11),
    "negations": lambda n: "not far from " * (n // 13),
    "ticks": lambda n: "A ✓ " * (n // 4),
    "stops": lambda n: ".!? " * (n // 4),
    "numbers": lambda n: "1.5-2," * (n // 6),
    "conclusions": lambda n: "Therefore, the car is red. " * (n // 27),
    "statements abroad": lambda n: "no hay un perro, " * (n // 17),
    "Chinese": lambda n: "没有狗，有狗" * (n // 6),
    "arrows": lambda n: "no -> " * (n // 6),
    "lines of marks": lambda n: "\n.- " * (n // 4),
    "denials abroad": lambda n: "nicht rot, " * (n // 11),
    "conclusions of reports": lambda n: "Conclusión: no hay\n" * (n // 19),
    "verdicts abroad": lambda n: "die Antwort ist halluziniert, " * (n // 30),
    "places": lambda n: "the second option or " * (n // 21),
    "verbs of a refusal": lambda n: "I cannot name, rate or " * (n // 23),
}
READERS: dict[str, Callable[[str], object]] = {
    "yes or no": dog,
    "yes or no abroad": lambda reply: (read_yes_no(reply, "¿Hay un perro?"), read_yes_no(reply, "有没有狗?")),
    "verdict": verdict,
    "option": colour,
    "judge": load_judge_prompt("hedge").outcome_in,
    "unanswered": unanswered,
    "sentences": split_sentences,
}


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_a_reader_is_linear(reader: Callable[[str], object], shape: Callable[[int], str]) -> None:
    assert is_linear(reader, shape, sizes(500, 7_900))  # of more than 8,000 characters the beginning is read


@pytest.mark.slow
def test_a_key_given_twice_in_a_large_object_is_found_in_linear_time() -> None:
    def read(text: str) -> None:
        with pytest.raises(Exception, match="given twice"):
            parse_json(text, "x")

    assert is_linear(read, lambda n: "{" + ",".join(f'"{i}":1' for i in range(n)) + ',"9":2}', sizes(1000, 20_000))


@pytest.mark.parametrize(
    "answer",
    [
        "I would suggest appendicitis.",
        "Hello, the organ is the liver",
        "I am sorry, it is a tumor",
        "Sorry, no",
        "As an AI language model, I think this shows pneumonia.",
        "As an AI model, I see a cyst",
        "Thanks for asking: there is a fracture of the femur.",
        "I hope this helps: the answer is the spleen",
        "I recommend surgery",
        "If you look at the left lung, there is a mass.",
        "The left lung shows a mass.\nCopyright 2021 The Regents",
        "The image shows a copyright watermark and a fracture",
    ],
)
def test_courtesy_around_an_answer_is_no_declining(answer: str) -> None:
    assert unanswered(answer) is None


@pytest.mark.parametrize(
    "answer",
    [
        "Thank you for your question.",
        "Hello!",
        "Hello, how can I help you today?",
        "I would recommend consulting a radiologist.",
        "Please consult a doctor.",
        "As an AI language model, I cannot interpret medical images.",
        "I'm sorry, but I cannot help with that.",
        "Sorry.",
        "© 2016 The Regents of the University of California. All Rights Reserved.",
        "Copyright 2019 by the authors",
        "",
    ],
)
def test_courtesy_alone_and_notices_say_nothing(answer: str) -> None:
    assert unanswered(answer) is not None
