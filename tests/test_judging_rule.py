"""The rule judge: what each rule decides, what it declines, and that hostile text neither breaks nor slows it."""

from __future__ import annotations

import hashlib
import json
import math
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
from hedge_tasks.judging.reliability import is_undecided
from hedge_tasks.judging.rule import RuleJudge
from hedge_tasks.judging.rule.labels import comparable, is_list, items
from hedge_tasks.judging.rule.measure import counted_nouns, sizes_in
from hedge_tasks.judging.rule.names import names, singular, split, stem
from hedge_tasks.judging.rule.reading import affirmed_and_denied, read_text
from hedge_tasks.judging.rule.vocabulary import named

ROOT = Path(__file__).resolve().parents[1]


def verdict(question: str, reference: str, answer: str) -> Verdict:
    return RuleJudge().judge([Case(id="1", question=question, reference=reference, answer=answer)])[0]


def label(question: str, reference: str, answer: str) -> int | None:
    return verdict(question, reference, answer).label


def rule(question: str, reference: str, answer: str) -> str:
    return verdict(question, reference, answer).reason.partition(":")[0]


# --- yes and no -------------------------------------------------------------------------------------------------

PNEUMOTHORAX, FINDING = "Is there a pneumothorax?", "What is the abnormality?"


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


# --- borders ----------------------------------------------------------------------------------------------------


THINGS = "mass lung heart liver kidney spleen"
TEN = "alpha bravo charlie delta eagle foxtrot golf hotel india juliett"
ONE = "Name one organ that is captured by this image."
DECISIONS = f"""
    undecided None | Which organ? | liver | No mass. Liver.
    partial None | Where is it? | upper left | upper
    declined None | Which organ is it? | liver | I want to know.
    extra None | What is it? | {THINGS} | {THINGS} brain
    sentence 0 | What is it? | {THINGS} stomach | brain stomach {THINGS}
    sentence None | What is it? | {THINGS} stomach | I reject that there is stomach {THINGS}
    sentence None | What is seen? | {TEN} | alpha bravo charlie delta eagle foxtrot
    sentence 1 | What is seen? | {TEN} | alpha bravo charlie delta eagle
    undecided None | Liver? | liver | one two three four five six liver
    polar 0 | Is there a mass? | yes | {{"answer": "yes"}}
    polar 0 | Is there a mass? | yes | Answer: yes
    polar 0 | Is there a mass? | no | Based on the image, no, there is none.
    polar 0 | Is there a mass? | no | There is no mass.
    polar 0 | Is there a mass? | yes | The X-ray shows a mass.
    polar 1 | Is there a mass? | no | The heart is large. So, yes.
    polar 0 | Are the lateral ventricles visible? | no | Not visible
    polar 1 | Is the scan normal? | yes | the scan is not normal
    polar 0 | Is there any abnormality? | no | The image is unremarkable.
    polar 0 | Is the heart enlarged? | yes | The heart is enlarged.
    polar None | Is the lesion on the left? | no | The lesion is on the right.
    polar None | Is the lesion on the left side? | no | Right.
    polar None | Is this a CT? | no | This is an MRI of the brain.
    polar None | Is there a mass? | no | Yes, it looks like one, but it is a skin fold.
    polar None | Is there a mass? | no | The lungs are normal.
    contains 0 | Which side? | bilateral | Left, right.
    sentence 1 | Where are they? | upper left and lower right | lower left and upper right
    number None | How many lesions are there? | 1 | several lesions
    conflict 1 | Where is it? | left | right {THINGS}
    hypernym None | What is it? | glioblastoma | brain tumor
    negated None | What is it? | found | found foobar
    contains 0 | Which organ? | liver | normal liver
    negated None | Which organ? | liver | normal of liver
    contains 0 | What is it? | CT | CT without contrast
    negated None | What is it? | CT | CT is without contrast
    contains 0 | What is it? | CT | The foobar is CT.
    negated None | What is it? | CT | The foobar that is CT.
    contains 0 | Where is it? | left | left foobar
    equal 0 | Where is it? | left frontal lobe | Frontal lobe, on the left hand side
    contains 0 | Which organ is it? | liver or spleen | the spleen
    equal 0 | Which organ is it? | colon | the large bowel
    equal 0 | What is it? | aortic dissection | dissection of the aorta
    contains 0 | Is this a CT or an MRI? | MRI | Yes, an MRI was used. It is a common method.
    equal 0 | What is it? | 4th ventricle | the fourth ventricle
    conflict 1 | Where is it? | left | left and right
    conflict 1 | What modality was used? | MRI | This is a CT scan of the head.
    different 1 | Which organ is it? | left kidney | left thalamus
    one-of-many None | {ONE} | intestines | The bladder, a hollow organ.
    equal 0 | {ONE} | intestines | the intestine
    wrong-type 1 | {ONE} | intestines | Yes
    different 1 | Which organ is affected in this image? | intestines | the bladder
    wrong-type 1 | Is there a mass? | no | three
    unread None | Where is it? | left |
    declined None | Where is it? | left | What is the most likely diagnosis?
    declined None | Where is it? | left | I cannot see the image.
    declined None | Where is it? | left | It is difficult to determine the location.
    number None | How many are there? | 2 3 | 2
"""


@pytest.mark.parametrize("line", DECISIONS.strip().splitlines())
def test_each_rule_decides_on_its_own_side_of_its_border(line: str) -> None:
    wanted, *case = (part.strip() for part in line.split("|"))
    got = verdict(*case)
    assert f"{got.reason.partition(':')[0]} {got.label}" == wanted
    assert (got.category == "no_answer") == (wanted.split()[0] == "declined")


@pytest.mark.parametrize("reference", ["right upper lobe", "yes", "3"])
def test_what_is_empty_or_cut_off_is_no_decision_of_the_model(reference: str) -> None:
    replies = [("", False), ("", True), ("<think>It is", False), ("<think>It is", True)]
    cases = [Case("1", "Where is it?", reference, text, cut=cut) for text, cut in replies]
    verdicts = RuleJudge().judge(cases)
    assert [v.reason for v in verdicts] == ["unread: empty", "cut off: cut off", *["cut off: unfinished thought"] * 2]
    assert all(map(is_undecided, verdicts))


# --- numbers ----------------------------------------------------------------------------------------------------

COUNT, LARGE, SIZE = "How many nodules are visible?", "How large is it?", "How large is the cyst in mm?"
SIDE, IS, NO = "Which side is affected?", PNEUMOTHORAX, None
HELP = "Yes, I can help with that! Please upload the image."


@pytest.mark.parametrize(
    ("question", "reference", "expected", "answers"),
    [
        (COUNT, "4", 0, "four|4.0|**4**|There are 4 nodules.|A total of 4|Four, the largest measuring 9 mm.|Four (4)"),
        (COUNT, "4", 1, "5|I can see five nodules.|forty|at least 7|No nodules.|none|There are 14"),
        (COUNT, "0", 0, "zero|none|No nodules.|There are no visible nodules."), (COUNT, "12", 0, "a dozen"),
        (SIZE, "8", 0, "8.00|8 mm|0.8 cm|The cyst measures 8 mm"), (SIZE, "8", 1, "8 cm|8 inches|more than 12"),
        (LARGE, "3 cm", 0, "30 mm|It is about 3 cm."), (LARGE, "3 cm", 1, "3 mm|5-9 mm"), ("Age?", "60", 0, "60 years"),
        (LARGE, "5-10 mm", 0, "5 to 10 mm"), (LARGE, "5-10 mm", 1, ">20 mm|3 mm|<5 mm"), (LARGE, "3 cm", NO, "3"),
        (COUNT, "4", NO, "-4|twenty-four|not 4|It isn't 4.|It may be 4.|4 or 5|3-5|over 4|fewer than 4|4 or more|1, 4"),
        (COUNT, "4", NO, "4 mm|4%|4th|2 + 2|4 (not 5)|once 6, then 4|Nodule 4 is large.|I see no image.|a few"),
        (COUNT, "1", NO, "one hundred|One of the lobes is grey.|The largest one is grey.|no way to know"),
        (COUNT, "0", NO, "no number can be told|Nothing is certain.|None of these can be counted"),
        (LARGE, "2.5 cm", NO, "2,5 cm|25,0 mm|1'200 mm"),
        (SIZE, "8", NO, "6-8 mm|8 x 9 mm|8%|8 ml|not 8 mm"), (SIDE, "both", NO, "bilateral, or only the left"),
        (SIDE, "right", NO, "The left is normal, the right is not.|left or right"), (IS, "yes", NO, f"Yes No|{HELP}"),
    ],
)  # fmt: skip
def test_one_number_and_one_side_are_judged(question: str, reference: str, expected: int | None, answers: str) -> None:
    got = {answer: label(question, reference, answer) for answer in answers.split("|")}
    assert got == dict.fromkeys(got, expected)


def test_sixty_words_lead_and_a_question_of_more_than_three_is_none() -> None:
    leads = [read_text(text).lead.words for text in ("a. " + "b " * 59, "a. " + "b " * 60, "b " * 70 + ". c.")]
    assert [len(lead) for lead in leads] == [60, 1, 70]
    assert [len(read_text(f"{text}?", statements_only=True).words) for text in ("a b c", "a b c d")] == [3, 0]
    assert len(read_text("x" * 30_000).words[0]) == 20_000


@pytest.mark.parametrize(
    ("text", "affirmed", "denied"),
    [
        ("Clearer than the right lung", {"clearer"}, set()),
        ("It may be an edema without a mass.", {"it", "may", "be", "an", "edema"}, {"a", "mass"}),
        ("edema is possible", {"edema", "is", "possible"}, set()), ("edema: not seen", {"edema"}, {"seen"}),
        ("No mass. Mass is absent. A mass", {"a", "mass"}, {"is"}), ("Mass is absent", set(), {"mass", "is"}),
    ],
)  # fmt: skip
def test_a_word_is_affirmed_or_denied(text: str, affirmed: set[str], denied: set[str]) -> None:
    assert affirmed_and_denied(read_text(text)) == (affirmed, denied)


def test_a_size_is_a_range() -> None:
    sizes = {
        **{
            "about 5 mm": (4.5, 5.5, "mm"),
            "5 to 10 mm": (5, 10, "mm"),
            "5\u201310 mm": (5, 10, "mm"),
            "2 m": (1800, 2200),
        },
        **{"less than 5 mm": (0, 5, "mm"), "more than 5": (5, math.inf, ""), "more than about 5": (5, math.inf, "")},
        **{"up to 5": (0, 5, ""), "10 - 5 mm": (5, 10, "mm"), "2 large mm": (1.5, 2.5, ""), "2 m": (1800, 2200, "mm")},
    }
    for text, size in sizes.items():
        [read] = sizes_in(read_text(text)) or ()
        assert (round(read.low, 3), round(read.high, 3), read.unit) == size, text
    numbers = [len(sizes_in(read_text(text)) or ()) for text in ("3 x 4 cm", "-5 mm", "T2", "3, 3.0", "not 3")]
    assert numbers == [2, 0, 0, 1, 0]


def test_a_reference_that_is_a_number_has_few_words_besides() -> None:
    questions = ("How many large round pink dogs are there?", "What number of dogs?", "Which?", "")
    asked = [{"large", "round", "pink"}, {"dog"}, None, None]
    assert [counted_nouns(read_text(question)) for question in questions] == asked
    references = {"two nodules": "number", "two red nodules": "number", "two large red nodules": "partial"}
    assert {reference: rule(COUNT, reference, "2 nodules") for reference in references} == references


def test_words_are_cut_where_enough_is_left() -> None:
    words = ["gas", "ies", "dies", "biopsies", "boxes", "bus", "lungs"]
    assert list(map(singular, words)) == ["gas", "ies", "die", "biopsy", "box", "bus", "lung"]
    assert [stem(word) for word in ("abcding", "abcing", "abc1ing")] == ["abcd", "abcing", "abc1ing"]
    assert [split(piece) for piece in ("5mm", "5x", "dog's")] == [["5", "mm"], ["5x"], ["dog"]]
    pairs = {("gal lbad", "gallbad"): "equal", ("abc def", "abcdef"): "equal", ("abc de", "abcde"): "unknown-words"}
    assert {pair: rule("What is it?", pair[1], pair[0]) for pair in pairs} == pairs


def test_a_name_of_the_table_is_its_preferred_name_whatever_it_is_built_of() -> None:
    table = (ROOT / "hedge_tasks/judging/rule/synonyms.tsv").read_text("utf-8").splitlines()[2:]
    every = {name for line in table for cell in line.split("\t")[:2] for name in cell.split("|") if name}
    canonical = {name: names().canonical(name.split()) for name in every}
    assert {name: names().canonical(one) for name, one in canonical.items()} == canonical
    assert all(names().canonical([word]) == (word,) for word in named()), "what has a rule stands for itself"


def test_a_date_is_no_number() -> None:
    dates = {"12/03/2016": "declined", "2016": "declined", "1899": "wrong-type", "2016x": "wrong-type"}
    assert {answer: rule(PNEUMOTHORAX, "yes", answer) for answer in dates} == dates


def test_lists_places_and_what_can_be_compared() -> None:
    texts = ("a cyst and a mass", "and mass", "mass and", "a, mass", "cyst, mass")
    assert [is_list(read_text(text)) for text in texts] == [True, False, False, False, True]
    topic = items(read_text("the upper left lobe; left upper; left right; upper lower"))
    assert topic == {"left-upper", "lobe", "left", "right", "upper", "lower"}
    sides = (({"liver"}, {"foo"}), ({"foo"}, {"liver"}), (set(), {"liver"}), ({"liver"}, set()), ({"foo"}, set()))
    assert [comparable(*pair) for pair in sides] == [False, False, True, True, False]


# --- hostile and random text ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["no, ", "1.1.", "\ufdfa"])  # U+FDFA normalises to 18 characters
def test_a_very_long_answer_is_judged_in_linear_time(unit: str) -> None:
    def judge(text: str) -> None:
        for question, reference in ((PNEUMOTHORAX, "yes"), ("How many?", "2"), ("Which organ?", "liver")):
            verdict(question, reference, text)
            verdict(text, reference, "yes")
            verdict(question, text, "yes")

    length = len(unicodedata.normalize("NFKD", unit))
    assert is_linear(judge, lambda n: unit * (n // length), sizes(500, 8000))
    verdict(PNEUMOTHORAX, "yes", unit * (200_000 // length))  # of which no more is read


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
    asked = "What is the {}?|Where is the {}?|How many {}s are there?|How large is the {}?|Is there a {}?|Which organ "
    asked += "is it?|Is it {} or {}?|Name one organ that is captured by this image.|What colour is the {}?|Is the {} "
    asked += "normal?"

    def thing() -> str:
        kinds = [chance.choice(vocabulary[k].split()) for k in ("qualifiers", "colors", "anatomy", "many")]
        names = chance.choice(table)
        own = [names[0], chance.choice(names), f"{kinds[0]} {names[0]}", f"{kinds[1]} {kinds[2]}"]
        own += [f"{names[0]} of {kinds[2]}", kinds[2], f"{kinds[3]} {names[0]}s", chance.choice(sizes.split("|"))]
        return chance.choice([*own, "normal"])

    for _ in range(n):
        wanted, names = chance.choice([thing(), f"{thing()} and {thing()}", "yes", "no"]), chance.choice(table)
        last = wanted.split()[-1]
        near = chance.choice([wanted, wanted, thing(), f"{wanted} {thing()}", last, "yes", "no", names[-1]])
        question = chance.choice(asked.split("|")).replace("{}", last, 1).replace("{}", thing())
        answer = chance.choice(frames.split("|")).replace("{}", near, 1).replace("{}", chance.choice([thing(), wanted]))
        reference = chance.choice([wanted, wanted, f"no {wanted}", f"The {wanted} is seen in the {thing()}."])
        yield question, reference, answer


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
