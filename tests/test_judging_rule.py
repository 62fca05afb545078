"""The rule judge: what each rule decides, what it declines, and that hostile text neither breaks nor slows it."""

from __future__ import annotations

import hashlib
import json
import random
import unicodedata
from collections import Counter
from collections.abc import Iterator
from itertools import starmap
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from linear import is_linear, sizes

from hedge_tasks.judging import Case, Verdict
from hedge_tasks.judging.rule import RuleJudge
from hedge_tasks.judging.rule.measure import single_count
from hedge_tasks.replies.reading import NOTHING, SOFT

ROOT = Path(__file__).resolve().parents[1]


def verdict(question: str, reference: str, answer: str) -> Verdict:
    return RuleJudge().judge([Case(id="1", question=question, reference=reference, answer=answer)])[0]


def label(question: str, reference: str, answer: str) -> int | None:
    return verdict(question, reference, answer).label


def rule(question: str, reference: str, answer: str) -> str:
    return verdict(question, reference, answer).reason.partition(":")[0]


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


# --- an edition -------------------------------------------------------------------------------------------------

EDITION = ROOT / "tests" / "golden" / "rule_judge.json"


def cases_by_chance(n: int) -> Iterator[tuple[str, str, str]]:
    """Questions, references, and answers that repeat, deny, bend or miss them, of the words that the rules know."""
    chance, vocabulary = random.Random(0), json.loads((ROOT / "hedge_tasks/judging/rule/words.json").read_text("utf-8"))
    lines = (ROOT / "hedge_tasks/judging/rule/synonyms.tsv").read_text("utf-8").splitlines()[2:]
    table = [[name for cell in line.split("\t") for name in cell.split("|") if name] for line in lines]
    sizes, frames = "2|three|3 cm|25 mm|5 to 10 mm|less than 5mm|>20 mm|2 x 3 cm|no", "{}.|It is {}.|There is {}, "
    frames += "but no {}.|No {}.|{} is not seen.|The image shows {} and {}.|not {} but {}|{} or {}|{}: no|probably {}"
    asked = (
        "What is the {}?|Where is the {}?|How many {}s are there?|How large is the {}?|Is there a {}?|Which organ is "
    )
    asked += (
        "it?|Is it {} or {}?|Name one organ that is captured by this image.|What colour is the {}?|Is the {} normal?"
    )

    def thing() -> str:
        kinds = [chance.choice(vocabulary[k].split()) for k in ("qualifiers", "colors", "anatomy", "many")]
        names = chance.choice(table)
        of = [
            names[0],
            chance.choice(names),
            f"{kinds[0]} {names[0]}",
            f"{kinds[1]} {kinds[2]}",
            f"{names[0]} of {kinds[2]}",
        ]
        return chance.choice([*of, kinds[2], f"{kinds[3]} {names[0]}s", chance.choice(sizes.split("|")), "normal"])

    for _ in range(n):
        wanted, names = chance.choice([thing(), f"{thing()} and {thing()}", "yes", "no"]), chance.choice(table)
        near = chance.choice(
            [wanted, wanted, thing(), f"{wanted} {thing()}", wanted.split()[-1], "yes", "no", names[-1]]
        )
        question = chance.choice(asked.split("|")).replace("{}", wanted.split()[-1], 1).replace("{}", thing())
        answer = chance.choice(frames.split("|")).replace("{}", near, 1).replace("{}", chance.choice([thing(), wanted]))
        yield (
            question,
            chance.choice([wanted, wanted, f"no {wanted}", f"The {wanted} is seen in the {thing()}."]),
            answer,
        )


def edition() -> dict[str, Any]:
    """How often each rule decides what, and a digest of each decision in its place."""
    decisions = [f"{v.reason.partition(':')[0]}: {v.label}" for v in starmap(verdict, cases_by_chance(1200))]
    digest = hashlib.sha256("\n".join(decisions).encode()).hexdigest()
    return {"version": RuleJudge.version, "decisions": dict(sorted(Counter(decisions).items())), "digest": digest}


def test_another_decision_is_another_edition() -> None:
    """After a change that is meant: a new version, and `python tests/test_judging_rule.py`."""
    assert edition() == json.loads(EDITION.read_text())


if __name__ == "__main__":
    EDITION.write_text(json.dumps(edition(), indent=1) + "\n")
