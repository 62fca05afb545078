"""The rule judge: what each rule decides, what it declines, and that hostile text neither breaks nor slows it."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from linear import is_linear, sizes

from hedge_tasks.judging import Case, Judge, Verdict, build_judge, judge_names, register_judge
from hedge_tasks.judging.base import JUDGES
from hedge_tasks.judging.outcomes import outcome_of
from hedge_tasks.judging.rule import RuleJudge
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
        (PNEUMOTHORAX, "Yes.", "yes"),
        (PNEUMOTHORAX, "YES", "yes"),
        (PNEUMOTHORAX, "Yes, there is a large pneumothorax on the left.", "yes"),
        (PNEUMOTHORAX, "Answer: yes", "yes"),
        (PNEUMOTHORAX, "The answer is no.", "no"),
        (PNEUMOTHORAX, "Based on the image, no, there is none.", "no"),
        (PNEUMOTHORAX, "There is no pneumothorax.", "no"),
        (PNEUMOTHORAX, "There isn’t a pneumothorax", "no"),
        (PNEUMOTHORAX, "No evidence of pneumothorax", "no"),
        (PNEUMOTHORAX, "A pneumothorax cannot be seen here; it is absent.", "no"),
        (PNEUMOTHORAX, "I cannot see a pneumothorax.", "no"),
        (PNEUMOTHORAX, "The X-ray shows a pneumothorax.", "yes"),
        (PNEUMOTHORAX, "The heart is large. So, yes.", "yes"),
        (PNEUMOTHORAX, "false", "no"),
        ("Are the lateral ventricles visible?", "Not visible", "no"),
        ("Is the scan normal?", "the scan looks normal", "yes"),
        ("Is the scan normal?", "the scan is not normal", "no"),
        ("Is the scan normal?", "It is abnormal.", "no"),
        ("Is there any abnormality?", "The image is unremarkable.", "no"),
        ("Is there any abnormality?", "There is an abnormality.", "yes"),
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
        "It is not clear whether there is a pneumothorax.",
        "100 %",
        "What is a pneumothorax, and how is it treated?",
        "Please choose from the following two options: [yes, no]",
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


@pytest.mark.parametrize("answer", ["© 2017 The Board of Regents. All rights reserved.", "2020-01-12 12:15:00"])
def test_output_about_nothing_is_declined(answer: str) -> None:
    for reference in ("yes", "no"):
        got = verdict(PNEUMOTHORAX, reference, answer)
        assert (got.label, got.category, outcome_of(got)) == (None, "no_answer", "declined")
    assert label("Which organ is it?", "liver", answer) == (None if "©" in answer else 1)


@pytest.mark.parametrize("answer", ["92", "three", "5"])
def test_a_number_is_a_wrong_answer_where_yes_or_no_was_asked_for(answer: str) -> None:
    assert [label(PNEUMOTHORAX, reference, answer) for reference in ("yes", "no")] == [1, 1]


@pytest.mark.parametrize(
    ("answer", "by"),
    [
        ("", "empty-answer"),
        ("What is the most likely diagnosis?", "empty-answer"),
        ("Human: I have a cough and a fever.", "empty-answer"),
        ("I'd like to see an axial image.", "empty-answer"),
        ("I cannot see the image.", "declined"),
        ("It is difficult to determine the location.", "declined"),
    ],
)
def test_an_answer_that_claims_nothing_is_a_verdict_without_a_label(answer: str, by: str) -> None:
    got = verdict("Where is the cavitary lesion?", "right upper lobe", answer)
    assert (got.label, got.category, got.undecided) == (None, "no_answer", False)
    assert got.reason.startswith(f"{by}: ")


def test_what_the_judge_cannot_tell_is_no_silence() -> None:
    got = verdict("Where is it?", "right upper lobe", "right lobe")
    assert (got.label, got.category, got.undecided) == (None, None, True)


def test_an_answer_in_the_first_person_is_an_answer() -> None:
    assert label("Is this a CT?", "yes", "Yes, I have a CT here.") == 0
    assert label("Which organ is it?", "liver", "I think it is the spleen.") == 1


@pytest.mark.parametrize(
    ("question", "answer", "expected", "by"),
    [
        ("Name one organ that is captured by this image.", "The bladder, a hollow organ.", None, "one-of-many"),
        ("Point out the specific organ visible in the provided image.", "the bladder", None, "one-of-many"),
        ("What structures are visible in this image?", "a tooth and the sinuses", None, "one-of-many"),
        ("Name one organ that is captured by this image.", "the intestine", 0, "equal"),
        ("Name one organ that is captured by this image.", "2019-01-18", 1, "different"),
        ("Name one organ that is captured by this image.", "Yes", 1, "wrong-type"),
        ("Which organ is affected in this image?", "the bladder", 1, "different"),  # singles one out
        ("What organ system is shown?", "the bladder", 1, "different"),
        ("Which organ is it?", "the bladder", 1, "different"),
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
        ("The polyp is >20mm in size.", "It measures 25 mm.", None),
        ("5 to 10 mm", "8 mm", None),
        ("3 cm", "29 mm", None),
        ("3 cm", "8 mm", 1),
        ("11-20mm and >20mm", "11-20mm", 1),
        ("6.5 x 6.4 cm", "2 x 2 cm", 1),
    ],
)
def test_sizes_have_bounds_and_units(reference: str, answer: str, expected: int | None) -> None:
    assert label("How large is it?", reference, answer) == expected


@pytest.mark.parametrize(
    ("reference", "answer", "expected"),
    [
        ("No polyps are present.", "The colon is polyp-free.", 0),
        ("Normal, with no polyps detected.", "The colon is polyp-free.", 0),
        ("No findings were detected.", "The examination shows no findings.", 0),
        ("The colon is polyp-free.", "There is a polyp in the colon.", 1),
        ("The abnormality is pink and red.", "The abnormality is pink, red, and white.", 1),
        ("The abnormality has a pink and red colour.", "The color is red and pink.", 0),
        ("pinkish-red", "pink and red", 0),
        ("A medical tube", "a tube", 0),
        ("The image contains the z-line.", "The z-line is visible.", 0),
        ("upper-right and center-right positions", "in the upper-right and center-right of the image", 0),
    ],
)
def test_words_around_a_thing_colours_and_denials(reference: str, answer: str, expected: int) -> None:
    assert label("What does the abnormality look like?", reference, answer) == expected


@pytest.mark.parametrize(
    "answer", ["yes and no", "Yes or no", "yes/no", "Yes. No.", "yes, no", "Yes, there is no pneumothorax"]
)
def test_an_answer_that_says_both_is_not_judged(answer: str) -> None:
    got = verdict(PNEUMOTHORAX, "yes", answer)
    assert (got.label, got.basis, outcome_of(got)) == (None, CONTRADICTION, "unread")


def test_a_normal_organ_is_not_an_absent_organ() -> None:
    assert label("Are the lateral ventricles visible?", "yes", "The lateral ventricles are normal.") != 1
    assert label("Is there a kidney in this scan?", "yes", "The scan looks normal.") is None


def test_the_options_that_a_model_repeats_do_not_count() -> None:
    answer = "No, this is not axial. Please choose from the following two options: [yes, no]"
    assert label("Is this the axial plane?", "yes", answer) == 1
    assert rule("Is this the axial plane?", "no", answer) == "polar"
    assert label("Is this the axial plane?", "no", answer) == 0


def test_a_negated_question_is_only_read_from_a_clear_yes_or_no() -> None:
    question = "Is there no pneumothorax?"
    assert label(question, "yes", "Yes, there is none.") == 0
    assert label(question, "yes", "A pneumothorax is visible.") is None


@pytest.mark.parametrize("reference", ["no", "No.", "n, o", "NO", "n", "No, there is no pneumothorax."])
def test_a_no_is_recognised_however_it_is_spelled(reference: str) -> None:
    assert label(PNEUMOTHORAX, reference, "Yes, there is.") == 1
    assert label(PNEUMOTHORAX, reference, "no, there is not") == 0


# --- counts -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reference", "answer", "expected"),
    [
        ("2", "There are two lesions.", 0),
        ("two", "2", 0),
        ("two", "I can see 3 lesions in two lobes", 1),
        ("one", "a single lesion", 0),
        ("0", "no lesions", 0),
        ("zero", "none", 0),
        ("one", "There are several lesions", 1),
        ("four", "There are several lesions", None),
        ("two", "one or two", 1),
        ("two", "The lesions are in the liver", None),
    ],
)
def test_counts(reference: str, answer: str, expected: int | None) -> None:
    assert label("How many lesions are there?", reference, answer) == expected


# --- labels -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "reference", "answer"),
    [
        ("Where is the lesion?", "left frontal lobe", "the lesion is in the left frontal lobe"),
        ("Where is the lesion?", "left frontal lobe", "Frontal lobe, on the left hand side"),
        ("Where is the lesion?", "R frontal lobe", "the right frontal lobe"),
        ("What modality was used?", "chest x-ray", "a chest radiograph"),
        ("What modality was used?", "X ray", "This is an Xray."),
        ("What modality was used?", "xr", "plain film"),
        ("What modality was used?", "CT", "a CAT scan"),
        ("What modality was used?", "Computed Tomography", "ct"),
        ("What modality was used?", "mri", "Magnetic resonance imaging was used."),
        ("What plane is this?", "axial plane", "Axial"),
        ("Where is the mass?", "head of the pancreas", "The mass is in the pancreatic head."),
        ("Which organs are shown?", "liver, spleen", "The spleen and the liver are shown."),
        ("Which organ is it?", "liver or spleen", "the spleen"),
        ("Which side is abnormal?", "both", "the left and the right side"),
        ("Which side is abnormal?", "right side", "the right lung"),
        ("Which lung is clearer?", "left", "The left lung appears clearer compared to the right lung."),
        ("How large is it?", "3.4 cm", "about 3.4cm"),
        ("What is it?", "gallstones", "a gallstone"),
        ("What is it?", "4th ventricle", "the fourth ventricle"),
        ("Where is it?", "maxillary sinuses", "the maxillary sinus"),
        ("Is this a CT or an MRI?", "MRI", "Yes, an MRI was used. It is a common method."),
        ("What is shown?", "hemorrhage", "haemorrhage"),
        ("What is shown?", "ｏｅｄｅｍａ", "Edema"),
    ],
)
def test_supported_labels(question: str, reference: str, answer: str) -> None:
    assert label(question, reference, answer) == 0


@pytest.mark.parametrize(
    ("question", "reference", "answer", "by"),
    [
        ("Where is the lesion?", "left frontal lobe", "the lesion is in the right frontal lobe", "conflict"),
        ("Where is the lesion?", "left", "left and right", "conflict"),
        ("Where is the lesion?", "left", "on the left and on the right", "conflict"),
        ("Where is the lesion?", "upper left", "lower left", "conflict"),
        ("What modality was used?", "MRI", "This is a CT scan of the head.", "conflict"),
        ("Is this a CT or an MRI?", "MRI", "This is a CT scan.", "conflict"),
        ("What is the sex?", "female", "The patient is male.", "conflict"),
        ("Which organ is it?", "liver", "spleen", "different"),
        ("Which organ is it?", "liver", "It is not the liver.", "negated"),
        ("Which organ is it?", "left kidney", "left thalamus", "different"),
        ("Which organ is it?", "liver or spleen", "the heart", "different"),
    ],
)
def test_hallucinated_labels(question: str, reference: str, answer: str, by: str) -> None:
    assert label(question, reference, answer) == 1
    assert rule(question, reference, answer) == by


@pytest.mark.parametrize(
    ("question", "reference", "answer", "by"),
    [
        ("What is wrong?", "", "a lesion", "no-reference"),
        ("What is wrong?", " ?! ", "a lesion", "no-reference"),
        ("What is wrong?", "lesion", "", "empty-answer"),
        ("What is wrong?", "lesion", " \n\t …", "empty-answer"),
        ("What is wrong?", "lesion", "Human: What is the most likely diagnosis?", "empty-answer"),
        ("What is wrong?", "lesion", "I'm sorry, I can't see the image.", "declined"),
        ("Where is the kidney?", "Not seen here", "in the pelvis", "open-reference"),
        ("Where is it?", "right upper lobe", "right lobe", "partial"),
        ("Is the spleen present?", "on the left", "Yes, the spleen is present.", "undecided"),
        ("How large is it?", "5 mm", "about 5.4 mm", "measure"),
        ("What is it similar to?", "fat", "similar to bone or fat", "contains"),
    ],
)
def test_what_is_not_judged_says_why(question: str, reference: str, answer: str, by: str) -> None:
    got = verdict(question, reference, answer)
    assert got.reason.startswith(f"{by}: ")
    assert len(got.reason) > len(by) + 5
    assert got.label is None


def test_a_reference_named_only_in_passing_is_not_support() -> None:
    answer = "It is likely a hematoma. A hematoma is a collection of blood outside of blood vessels."
    assert label("What is the dense mass?", "blood vessel", answer) is None


@pytest.mark.parametrize("finding", ["pneumonia", "nodule", "cardiomegaly"])
def test_what_may_deny_the_reference_never_supports_it_nor_contradicts_its_denial(finding: str) -> None:
    answers = (
        "{} is not seen.|{} has resolved.|{}: no.|Rather than {}, it is edema.|It is wrong to speak of {}.|{} (-)|"
        "There was {}, which has resolved.|Nothing here suggests {}.|0 {}|{}: unlikely.|Previously treated {}."
    )
    for answer in answers.format(*[finding] * answers.count("{}")).split("|"):
        assert label(FINDING, finding, answer) != 0, answer
        assert label(FINDING, f"no {finding}", answer) != 1, answer
    for answer in (f"There is {finding}.", f"The image shows {finding} on the left, without edema."):
        assert label(FINDING, finding, answer) == 0, answer


def test_words_of_the_question_given_back_are_no_declined_answer() -> None:
    got = verdict("Name a four-letter word for a lake that begins with T.", "tarn", "Lake")
    assert (got.label, outcome_of(got)) == (None, "undecided")


@pytest.mark.parametrize(
    ("question", "reference", "answer", "expected", "by"),
    [
        ("Where is the lesion?", "left frontal lobe", "Yes", 1, "wrong-type"),
        ("What is seen?", "pneumothorax", "No, there is not.", 1, "wrong-type"),
        ("Where is the lesion?", "left frontal lobe", "Yes, it is in the left frontal lobe.", 0, "equal"),
        ("Which lung is abnormal?", "right lung", "right", 0, "contains"),
        ("Which lung is abnormal?", "right lung", "left", 1, "conflict"),
        ("Which plane is this?", "axial", "This is a transverse image.", 0, "equal"),
        ("Which modality is this?", "plain film", "an x-ray", 0, "equal"),
        ("What is seen?", "calcified atherosclerosis", "atherosclerotic calcification", 0, "contains"),
        ("Is this axial, coronal, or sagittal?", "sagittal", "It is a coronal view.", 1, "conflict"),
        ("Is this axial, coronal or sagittal?", "sagittal", "It is a sagittal view.", 0, "equal"),
        ("Is this a CT, MRI, or PET?", "PET", "This is an MRI.", 1, "conflict"),
        ("Is this a CT, MRI, or PET?", "PET", "This is a PET image.", 0, "equal"),
        ("Which organs?", "liver, spleen", "the liver", 1, "partial"),
        ("How large is it?", "5 mm", "about 8 mm", 1, "measure"),
        ("How large is it?", "5 mm", "quite large", 1, "measure"),
        ("What is wrong?", "diverticulitis", "A perforated ulcer of the stomach, which let acid leak.", 1, "different"),
        ("Anything?", "There are no polyps in the image.", "There are no polyps.", 0, "sentence"),
        ("Anything?", "There are no polyps in the image.", "There are two polyps.", 1, "sentence"),
        ("Where is it?", "center, upper-left, lower-right", "the center, lower-right and upper-left", 0, "equal"),
        ("Where is it?", "center, upper-left, lower-right", "the center, upper-right and lower-left", 1, "sentence"),
    ],
)
def test_what_the_second_edition_knows(question: str, reference: str, answer: str, expected: int, by: str) -> None:
    assert (label(question, reference, answer), rule(question, reference, answer)) == (expected, by)


# --- other names, kinds and typed checks ------------------------------------------------------------------------

FINDING = "What is the abnormality?"

SAME = [
    ("cardiomegaly", "enlarged heart"),
    ("cholelithiasis", "gallstones"),
    ("gall bladder stones", "gallstones"),
    ("stroke", "CVA"),
    ("cerebral infarct", "a stroke"),
    ("femur", "thigh bone"),
    ("right lower lobe", "RLL"),
    ("abdominal aortic aneurysm", "AAA"),
    ("pneumothorax", "collapsed lung"),
    ("pleural effusion", "fluid around the lung"),
    ("lymphadenopathy", "enlarged lymph nodes"),
    ("appendicitis", "The appendix is inflamed."),
    ("renal calculi", "a kidney stone"),
]


@pytest.mark.parametrize("names", SAME)
def test_two_names_of_one_thing_are_the_same_either_way_round(names: tuple[str, str]) -> None:
    assert label(FINDING, *names) == label(FINDING, *names[::-1]) == 0


@pytest.mark.parametrize(
    ("reference", "answer", "expected", "by"),
    [
        ("pneumothorax", "an odd frobnication", None, "unknown-words"),
        ("Reidel anomaly xyz", "pneumonia", None, "unknown-words"),
        ("hyperintense", "bright", None, "unknown-words"),
        ("pulmonary embolism", "PE", None, "unknown-words"),
        ("pneumonia", "tuberculosis", 1, "different"),
        ("splenomegaly", "hepatomegaly", 1, "partial"),
        ("glioblastoma", "a brain tumor", None, "hypernym"),
        ("brain tumor", "a glioblastoma", 0, "contains"),
        ("glioblastoma", "no tumor", 1, "negated"),
        ("liver and spleen", "the liver, the spleen and the pancreas", None, "extra"),
        ("liver", "the liver and the spleen", None, "extra"),
        ("edema", "The consolidation makes edema unlikely.", 1, "negated"),
        ("consolidation", "The consolidation makes edema unlikely.", 0, "contains"),
        ("edema", "It is unlikely to be edema.", 1, "negated"),
        ("edema", "The film rules out edema.", 1, "negated"),
        ("5 mm", "0.5 cm", 0, "measure"),
        ("0.5 cm", "It is 5 mm", 0, "measure"),
        ("5 mm", "5 cm", 1, "measure"),
        ("left side of the image", "on the left side of the image", 0, "equal"),
        ("upper left", "in the upper left of the image", 0, "equal"),
    ],
)
def test_kinds_lists_doubts_units_and_sides(reference: str, answer: str, expected: int | None, by: str) -> None:
    assert (label(FINDING, reference, answer), rule(FINDING, reference, answer)) == (expected, by)


@pytest.mark.parametrize(
    ("question", "reference", "answer", "expected", "by"),
    [
        ("Who discovered it?", "Phil Mickelson", "Phil Mickleson", None, "unknown-words"),
        ("Who discovered it?", "Wilhelm Roentgen", "Wilhelm C. Röntgen", None, "unknown-words"),
        ("Who discovered it?", "Katherine Mickelson", "Sir Phil Mickleson", None, "unknown-words"),
        ("Who is it?", "Charles Mountbatten", "The Prince of Wales", None, "unknown-words"),
        ("What is the real name of the singer?", "Elton John", "Reginald Dwight", None, "unknown-words"),
        ("What is the tumour called?", "Ewing Sarcoma", "Wilms Tumor", 1, "different"),
        ("What is the sign called?", "Hampton Hump", "Westermark Sign", None, "unknown-words"),
        ("Which city?", "Malmö", "Malmo", 0, "equal"),
        ("What is the allergy called?", "hay fever", "Hayfever.", 0, "equal"),
        ("Which hero?", "Flash (Gordon)", "Flash", None, "partial"),
        ("Which country is it?", "Nepal", "China", 1, "different"),
        ("Which country is it?", "Netherlands", "Holland", 0, "equal"),
        ("What is on the plate?", "carrot", "a potato", 1, "different"),
        ("What is on the plate?", "vegetable", "a potato", 0, "contains"),
        ("What is on the plate?", "carrot", "a vegetable", None, "hypernym"),
        ("Which animal is it?", "bird", "an eagle", 0, "contains"),
        ("Which ball is it?", "a football", "a basketball", 1, "different"),
    ],
)
def test_people_spellings_and_everyday_kinds(
    question: str, reference: str, answer: str, expected: int | None, by: str
) -> None:
    assert (label(question, reference, answer), rule(question, reference, answer)) == (expected, by)


# --- the interface ----------------------------------------------------------------------------------------------


def test_a_verdict_tells_who_judged_and_which_rule() -> None:
    got = verdict(PNEUMOTHORAX, "yes", "no")
    assert (got.judge, got.version, got.category, got.raw) == ("rule", RuleJudge.version, None, None)
    assert (got.reason, got.basis) == ("polar: the answer says no (line); the reference is yes", "line")
    with pytest.raises(dataclasses.FrozenInstanceError):
        got.label = 0  # type: ignore[misc]
    with pytest.raises(ValueError, match="1, 0 or None"):
        Verdict(label=2, reason="", judge="x", version="1")


def test_verdicts_come_in_the_order_of_the_cases_and_do_not_depend_on_each_other() -> None:
    cases = [Case(id=str(i), question=PNEUMOTHORAX, reference="yes", answer=("yes", "no")[i % 2]) for i in range(6)]
    together = RuleJudge().judge(cases)
    assert [v.label for v in together] == [0, 1, 0, 1, 0, 1]
    assert together == [RuleJudge().judge([case])[0] for case in cases]
    assert RuleJudge().judge([]) == []


def test_build_judge_names_the_nearest_valid_name() -> None:
    judge = build_judge("rule")
    assert isinstance(judge, Judge)
    assert judge.settings() == {"judge": "rule", "version": RuleJudge.version}
    assert json.loads(json.dumps(judge.settings())) == judge.settings()
    with pytest.raises(ValueError, match="did you mean 'rule'"):
        build_judge("rules")
    with pytest.raises(ValueError, match="did you mean 'fallback'"):
        build_judge("rule", fallbak="llm")


def test_another_judge_can_be_registered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(JUDGES, "_entries", dict(JUDGES._entries))

    class Constant:
        name, version = "constant", "1"

        def judge(self, cases: Any) -> list[Verdict]:
            return [Verdict(label=1, reason="always", judge=self.name, version=self.version) for _ in cases]

        def settings(self) -> dict[str, Any]:
            return {}

    register_judge("constant", Constant)
    assert "constant" in judge_names()
    assert isinstance(build_judge("constant"), Judge)
    with pytest.raises(ValueError, match="already registered"):
        register_judge("rule", Constant)


@pytest.mark.slow
def test_importing_the_room_is_light() -> None:
    code = (
        "import sys, hedge_tasks.judging.rule; "
        "sys.exit(bool({'torch', 'lmms_eval', 'transformers', 'numpy'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=60).returncode == 0


# --- hostile and random text ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [
        "yes ",
        "no, ",
        "a",
        "'",
        "1.1.",
        "9",
        "\ufdfa",
        "not ",
        "x ray ",
        "or liver ",
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


def test_invisible_and_right_to_left_characters_do_not_hide_an_answer() -> None:
    assert label(PNEUMOTHORAX, "yes", "\u202eye\u200bs\u202c") == 0
    assert label(PNEUMOTHORAX, "yes", "\x00\x1b[31mno\x07") != 0
    assert label(PNEUMOTHORAX, "no", "\ufeffno\u200f.") == 0
    assert label("מה זה?", "כבד", "זה כבד") == 0
    assert rule("ما هذا؟", "الكبد", "الطحال") == "unknown-words"


VOCABULARY = (
    "yes no not there is a lesion left right upper the scan looks normal CT MRI x-ray two 2 or and , . ? ! : please "
    "3.4cm can't I'm none \n abnormal"
)
WORDS = st.sampled_from(VOCABULARY.split(" "))
TEXT = st.one_of(st.text(max_size=80), st.lists(WORDS, max_size=14).map(" ".join))


@pytest.mark.slow
@given(question=TEXT, reference=TEXT, answer=TEXT)
@settings(max_examples=300, deadline=None)
def test_any_text_gets_a_verdict_with_a_known_rule(question: str, reference: str, answer: str) -> None:
    got = verdict(question, reference, answer)
    assert got.label in (0, 1, None)
    assert ": " in got.reason
    assert verdict(question, reference, answer) == got


@pytest.mark.slow
@given(answer=st.lists(WORDS, min_size=1, max_size=10).map(" ".join))
@example(answer="yes ?")
@example(answer=". yes \n ,")
@settings(max_examples=150, deadline=None)
def test_an_answer_never_supports_both_yes_and_no(answer: str) -> None:
    labels = [label(PNEUMOTHORAX, reference, answer) for reference in ("yes", "no")]
    assert labels != [0, 0]
    assert (labels[0] is None) == (labels[1] is None)


@given(reference=st.sampled_from(["liver", "upper left", "CT", "two", "right frontal lobe", "cystic"]))
def test_case_punctuation_and_articles_do_not_matter(reference: str) -> None:
    for answer in (reference, reference.upper(), f"  {reference}.", f"The {reference}!"):
        assert label("What is it?", reference, answer) == 0


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
