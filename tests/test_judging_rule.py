"""The rule judge: what each rule decides, what it declines, and that hostile text neither breaks nor slows it."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from linear import is_linear, sizes

from hedge_tasks.judging import Case, Verdict
from hedge_tasks.judging.outcomes import outcome_of
from hedge_tasks.judging.rule import RuleJudge
from hedge_tasks.judging.rule.measure import single_count
from hedge_tasks.replies.reading import CONTRADICTION, NOTHING, SOFT

ROOT = Path(__file__).resolve().parents[1]
JUDGED = ROOT.parent / "shared" / "data" / "judge"


def verdict(question: str, reference: str, answer: str) -> Verdict:
    return RuleJudge().judge([Case(id="1", question=question, reference=reference, answer=answer)])[0]


def label(question: str, reference: str, answer: str) -> int | None:
    return verdict(question, reference, answer).label


def rule(question: str, reference: str, answer: str) -> str:
    return verdict(question, reference, answer).reason.partition(":")[0]


# --- every question and phrasing of the drawn scans -------------------------------------------------------------

QUESTIONS = {
    "presence": ["is there a lesion in the image?", "does the scan show a lesion?"],
    "location": ["where is the lesion?", "in which quadrant is the lesion?"],
    "count": ["how many lesions are there?", "how many lesions can be seen?"],
    "shape": ["what is the shape of the lesion?", "what shape is the lesion?"],
    "size": ["how large is the lesion?", "is the lesion small or large?"],
    "modality": ["which modality is this?", "what type of scan is this?"],
}


def places(key: str) -> list[str]:
    vertical, side = key.split()
    return [
        key,
        f"{side} {vertical}",
        f"{key} quadrant",
        f"it is in the {key}",
        f"the lesion is in the {key} quadrant",
    ]


def modality(key: str) -> list[str]:
    shown = key if key == "x-ray" else key.upper()
    return [shown, f"{shown} scan", f"this is {'a' if key == 'ct' else 'an'} {shown}"]


ANSWERS: dict[str, dict[str, list[str]]] = {
    "presence": {
        "yes": ["yes", "yes, there is a lesion", "a lesion is present", "a lesion is visible"],
        "no": ["no", "no, there is no lesion", "no lesion is visible", "the scan looks normal"],
    },
    "location": {key: places(key) for key in ("upper left", "upper right", "lower left", "lower right")},
    "count": {
        "no": ["no lesions", "none", "there are no lesions"],
        "one": ["one", "one lesion", "there is one lesion"],
        "two": ["two", "two lesions", "there are two lesions"],
        "three": ["three", "three lesions", "there are three lesions"],
    },
    "shape": {
        key: [key, f"it is {key}", f"a {key} lesion", f"the lesion has a {key} shape"]
        for key in ("round", "irregular", "ring")
    },
    "size": {key: [key, f"it is {key}", f"a {key} lesion", f"the lesion is {key}"] for key in ("small", "large")},
    "modality": {key: modality(key) for key in ("ct", "mri", "x-ray")},
}


@pytest.mark.parametrize("kind", sorted(QUESTIONS))
def test_every_phrasing_of_the_drawn_scans_is_judged_right(kind: str) -> None:
    wrong = []
    for question in QUESTIONS[kind]:
        for reference in ANSWERS[kind]:
            for said, phrasings in ANSWERS[kind].items():
                for answer in phrasings:
                    got = verdict(question, reference, answer)
                    if got.label != int(said != reference):
                        wrong.append((question, reference, answer, got.label, got.reason))
    assert not wrong


# --- yes and no -------------------------------------------------------------------------------------------------

PNEUMOTHORAX = "Is there a pneumothorax?"


@pytest.mark.parametrize(
    ("question", "answer", "means"),
    [
        (PNEUMOTHORAX, "Answer: yes", "yes"),
        (PNEUMOTHORAX, "Based on the image, no, there is none.", "no"),
        (PNEUMOTHORAX, "There is no pneumothorax.", "no"),
        (PNEUMOTHORAX, "I cannot see a pneumothorax.", "no"),
        (PNEUMOTHORAX, "The X-ray shows a pneumothorax.", "yes"),
        (PNEUMOTHORAX, "The heart is large. So, yes.", "yes"),
        ("Are the lateral ventricles visible?", "Not visible", "no"),
        ("Is the scan normal?", "the scan is not normal", "no"),
        ("Is there any abnormality?", "The image is unremarkable.", "no"),
        ("Is the heart enlarged?", "The heart is enlarged.", "yes"),
    ],
)
def test_an_answer_to_a_yes_no_question_is_read(question: str, answer: str, means: str) -> None:
    assert label(question, means, answer) == 0
    assert label(question, {"yes": "no", "no": "yes"}[means], answer) == 1


@pytest.mark.parametrize(
    "answer",
    [
        "This is a chest X-ray.",
        "There may be a pneumothorax.",
        "I cannot see the image and therefore cannot determine this.",
        "100 %",
        "What is a pneumothorax, and how is it treated?",
        "The lungs, the heart and the ribs",
    ],
)
def test_an_answer_that_says_neither_yes_nor_no_is_not_judged(answer: str) -> None:
    assert label(PNEUMOTHORAX, "yes", answer) is None
    assert label(PNEUMOTHORAX, "no", answer) is None


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Is the lesion on the left?", "The lesion is on the right."),
        ("Is this a CT?", "This is an MRI of the brain."),
        (PNEUMOTHORAX, "Yes, it looks like one, but it is a skin fold."),
        (PNEUMOTHORAX, "The lungs are normal."),
    ],
)
def test_what_is_read_only_softly_or_by_knowledge_is_not_judged(question: str, answer: str) -> None:
    for reference in ("yes", "no"):
        got = verdict(question, reference, answer)
        assert (got.label, got.category) == (None, None)
        assert got.basis in (*SOFT, NOTHING)


@pytest.mark.parametrize("answer", ["92", "three", "5"])
def test_a_number_is_a_wrong_answer_where_yes_or_no_was_asked_for(answer: str) -> None:
    assert [label(PNEUMOTHORAX, reference, answer) for reference in ("yes", "no")] == [1, 1]


@pytest.mark.parametrize(
    ("answer", "by"),
    [
        ("", "empty-answer"),
        ("What is the most likely diagnosis?", "empty-answer"),
        ("I cannot see the image.", "declined"),
        ("Ich weiß es nicht.", "declined"),
        ("It is difficult to determine the location.", "declined"),
    ],
)
def test_an_answer_that_claims_nothing_is_a_verdict_without_a_label(answer: str, by: str) -> None:
    got = verdict("Where is the cavitary lesion?", "right upper lobe", answer)
    assert (got.label, got.category, got.undecided) == (None, "no_answer", False)
    assert got.reason.startswith(f"{by}: ")


@pytest.mark.parametrize(
    ("question", "answer", "expected", "by"),
    [
        ("Name one organ that is captured by this image.", "The bladder, a hollow organ.", None, "one-of-many"),
        ("What structures are visible in this image?", "a tooth and the sinuses", None, "one-of-many"),
        ("Name one organ that is captured by this image.", "the intestine", 0, "equal"),
        ("Name one organ that is captured by this image.", "Yes", 1, "wrong-type"),
        ("Which organ is affected in this image?", "the bladder", 1, "different"),  # singles one out
    ],
)
def test_a_reference_that_is_one_of_many_rules_nothing_out(
    question: str, answer: str, expected: int | None, by: str
) -> None:
    assert label(question, "intestines", answer) == expected
    assert rule(question, "intestines", answer) == by


@pytest.mark.parametrize(
    ("reference", "answer", "expected"),
    [
        ("The polyp is less than 5mm in size.", "The polyp is approximately 5-10mm in size.", 1),
        ("The polyp is greater than 20mm in size.", "The polyp is 11-20 mm in size.", 1),
        ("5 to 10 mm", "8 mm", None),
        ("3 cm", "29 mm", None),
        ("3 cm", "8 mm", 1),
        ("6.5 x 6.4 cm", "2 x 2 cm", 1),
    ],
)
def test_sizes_have_bounds_and_units(reference: str, answer: str, expected: int | None) -> None:
    assert label("How large is it?", reference, answer) == expected


@pytest.mark.parametrize(
    "answer", ["yes and no", "Yes or no", "yes/no", "Yes. No.", "yes, no", "Yes, there is no pneumothorax"]
)
def test_an_answer_that_says_both_is_not_judged(answer: str) -> None:
    got = verdict(PNEUMOTHORAX, "yes", answer)
    assert (got.label, got.basis, outcome_of(got)) == (None, CONTRADICTION, "unread")


# --- counts -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reference", "answer", "expected"),
    [
        ("2", "There are two lesions.", 0),
        ("two", "I can see 3 lesions in two lobes", 1),
        ("0", "no lesions", 0),
        ("one", "There are several lesions", 1),
        ("four", "There are several lesions", None),
        ("two", "one or two", 1),
    ],
)
def test_counts(reference: str, answer: str, expected: int | None) -> None:
    assert label("How many lesions are there?", reference, answer) == expected


@pytest.mark.parametrize(
    ("reference", "count"),
    [("2", 2), ("no lesions", 0), ("4 lesions", 4), ("2 3", None), ("no 2", None), ("2 cm", None)],
)
def test_a_count_is_one_number_without_a_unit(reference: str, count: int | None) -> None:
    assert single_count(reference.split()) == count


# --- labels -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "reference", "answer"),
    [
        ("Where is the lesion?", "left frontal lobe", "Frontal lobe, on the left hand side"),
        ("What modality was used?", "chest x-ray", "a chest radiograph"),
        ("What modality was used?", "Computed Tomography", "ct"),
        ("Where is the mass?", "head of the pancreas", "The mass is in the pancreatic head."),
        ("Which organ is it?", "liver or spleen", "the spleen"),
        ("Which side is abnormal?", "right side", "the right lung"),
        ("What is it?", "gallstones", "a gallstone"),
        ("What is it?", "4th ventricle", "the fourth ventricle"),
        ("Is this a CT or an MRI?", "MRI", "Yes, an MRI was used. It is a common method."),
    ],
)
def test_supported_labels(question: str, reference: str, answer: str) -> None:
    assert label(question, reference, answer) == 0


@pytest.mark.parametrize(
    ("question", "reference", "answer", "by"),
    [
        ("Where is the lesion?", "left frontal lobe", "the lesion is in the right frontal lobe", "conflict"),
        ("Where is the lesion?", "left", "left and right", "conflict"),
        ("Where is the lesion?", "upper left", "lower left", "conflict"),
        ("What modality was used?", "MRI", "This is a CT scan of the head.", "conflict"),
        ("Which organ is it?", "liver", "spleen", "different"),
        ("Which organ is it?", "left kidney", "left thalamus", "different"),
    ],
)
def test_hallucinated_labels(question: str, reference: str, answer: str, by: str) -> None:
    assert label(question, reference, answer) == 1
    assert rule(question, reference, answer) == by


@pytest.mark.parametrize("finding", ["pneumonia", "nodule", "cardiomegaly"])
def test_what_may_deny_the_reference_never_supports_it_nor_contradicts_its_denial(finding: str) -> None:
    answers = (
        "{} is not seen.|{} has resolved.|{}: no.|Rather than {}, it is edema.|It is wrong to speak of {}.|{} (-)|"
        "There was {}, which has resolved.|Nothing here suggests {}.|0 {}|{}: unlikely.|Previously treated {}.|"
        "I reject that there is {}.|No findings of {}.|There is no abnormality to suggest {}."
    )
    for answer in answers.format(*[finding] * answers.count("{}")).split("|"):
        assert label(FINDING, finding, answer) != 0, answer
        assert label(FINDING, f"no {finding}", answer) != 1, answer
    assert label(FINDING, f"no {finding}", "No, the image is normal.") != 1
    for answer in (f"There is {finding}.", f"The image shows {finding} on the left, without edema."):
        assert label(FINDING, finding, answer) == 0, answer


# --- other names, kinds and typed checks ------------------------------------------------------------------------

FINDING = "What is the abnormality?"

# --- hostile and random text ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [
        "no, ",
        "1.1.",
        "\ufdfa",
        "x ray ",
    ],  # U+FDFA normalises to 18 characters
)
def test_a_very_long_answer_is_judged_in_linear_time(unit: str) -> None:
    def judge(text: str) -> None:
        for question, reference in ((PNEUMOTHORAX, "yes"), ("How many?", "2"), ("Which organ?", "liver")):
            verdict(question, reference, text)
            verdict(text, reference, "yes")
            verdict(question, text, "yes")

    length = len(unicodedata.normalize("NFKD", unit))
    assert is_linear(judge, lambda n: unit * (n // length), sizes(1000, 16_000))
    verdict(PNEUMOTHORAX, "yes", unit * (1_000_000 // length))  # of which no more is read


VOCABULARY = (
    "yes no not there is a lesion left right upper the scan looks normal CT MRI x-ray two 2 or and , . ? ! : please "
    "3.4cm can't I'm none \n abnormal"
)
WORDS = st.sampled_from(VOCABULARY.split(" "))
TEXT = st.one_of(st.text(max_size=80), st.lists(WORDS, max_size=14).map(" ".join))


@given(question=TEXT, reference=TEXT, answer=TEXT)
@settings(max_examples=40, deadline=None)
def test_any_text_gets_a_verdict_with_a_known_rule(question: str, reference: str, answer: str) -> None:
    got = verdict(question, reference, answer)
    assert got.label in (0, 1, None)
    assert ": " in got.reason
    assert verdict(question, reference, answer) == got


@given(answer=st.lists(WORDS, min_size=1, max_size=10).map(" ".join))
@example(answer="yes ?")
@example(answer=". yes \n ,")
@settings(max_examples=40, deadline=None)
def test_an_answer_never_supports_both_yes_and_no(answer: str) -> None:
    labels = [label(PNEUMOTHORAX, reference, answer) for reference in ("yes", "no")]
    assert labels != [0, 0]
    assert (labels[0] is None) == (labels[1] is None)


# --- human labels -----------------------------------------------------------------------------------------------


def read(name: str) -> list[dict[str, Any]]:
    path = JUDGED / name
    if not path.exists():
        pytest.skip(f"no human labels at {path}")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("name", ["medhallmark_judged.jsonl", "halp_vlm_hallucinated_80.jsonl"])
def test_agrees_with_people_who_found_a_hallucination(name: str) -> None:
    rows = [row for row in read(name) if row["ground_truth"] and row.get("label_id") != 5]
    labels = [label(row["question"], row["ground_truth"], row["answer"]) for row in rows]
    judged = [one for one in labels if one is not None]
    assert len(judged) > 0.5 * len(rows)
    assert sum(judged) > 0.95 * len(judged)
