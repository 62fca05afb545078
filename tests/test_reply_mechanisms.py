"""Replies that look like an answer and are none, answers that are taken back, and judges in other languages.

Each mechanism with the reply that showed it, others of its kind, and neighbours that must go on being read.
"""

from __future__ import annotations

import pytest

from hedge_tasks.judging.base import Case
from hedge_tasks.judging.options import OptionJudge
from hedge_tasks.replies import read_option, read_verdict, read_yes_no
from hedge_tasks.replies.declining import unanswered
from hedge_tasks.replies.labels import read_judgement
from hedge_tasks.replies.reading import LINE, REFUSAL, SOFT
from hedge_tasks.suites.medhallu.judge import MedHalluJudge
from hedge_tasks.suites.shale.judge import ShaleJudge
from hedge_tasks.suites.vope.judge import VopeJudge

COLOURS = {"A": "red", "B": "blue", "C": "green", "D": "dark blue"}
BAGS = {"A": "A suitcase", "B": "A backpack", "C": "A handbag", "D": "A shopping bag"}
OUTCOMES = {"supported": "supported", "hallucinated": "hallucinated"}


@pytest.mark.parametrize(
    ("question", "reply", "value"),
    [
        ("Does the patient have cirrhosis?", "Cirrhosis is a late stage of scarring of the liver.", None),
        ("Does the patient have cirrhosis?", "Cirrhosis is often caused by alcohol.", None),
        ("Is there a fracture?", "A fracture is any break in a bone.", None),
        ("Is there a fracture?", "Fractures are usually painful.", None),
        ("Is there a fracture?", "A fracture is visible.", "yes"),
        ("Is there a fracture?", "There is a fracture.", "yes"),
        ("Is the person in the photo smiling?", "The person in the photo is a woman.", None),
        ("Is the person in the photo smiling?", "The person is smiling.", "yes"),
        ("Is there hydronephrosis in the left kidney?", "Right kidney: no hydronephrosis.\nLeft kidney: mild.", None),
        ("Is there hydronephrosis in the right kidney?", "There is no hydronephrosis in the right kidney.", "no"),
        ("Is there a bird on the wire?", "there isnt bird on wire", "no"),
        ("Is there a dog?", "I dont see a dog.", "no"),
        ("Is this an AP view?", "This is a PA view.", "no"),
        ("Are mitotic figures present?", "Absent.", "no"),
        ("Are there any surgical clips?", "None are seen.", "no"),
        ("Are there any surgical clips?", "None are excluded.", None),
    ],
)
def test_what_a_sentence_says_of_what_was_asked(question: str, reply: str, value: str | None) -> None:
    assert read_yes_no(reply, question).value == value


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("A: Yes\nB: No\n\nPlease select one of the options above.", None),
        ("Please answer: A. Yes B. No", None),
        ("1. Yes\n2. No", None),
        ("A: Yes", "yes"),
        ("No... Espera, mirando mejor, se distingue uno. Entonces sí, lo hay.", None),
        ("Nein, also ja", None),
        ("Non, hélas oui", None),
        ("Non, il n'y en a pas. Oui, il y en a un.", None),
        ("Nein, keines. Ja, das Bild ist etwas unscharf, aber es ist keines da.", "no"),
        ("Sí, sin duda.", "yes"),
        ("Sim, não há dúvida.", "yes"),
        ("Non. Aucune anomalie n'est visible.", "no"),
    ],
)
def test_lists_and_answers_that_are_taken_back(reply: str, value: str | None) -> None:
    assert read_yes_no(reply, "Is there a dog in the image?").value == value


@pytest.mark.parametrize(("reply", "value"), [("1", "yes"), ("Answer: 0", "no"), ("1.5", None), ("10", None)])
def test_digits_for_yes_and_no(reply: str, value: str | None) -> None:
    assert read_yes_no(reply, "Is there a bottle? Answer with 1 for yes and 0 for no.").value == value


@pytest.mark.parametrize(
    "reply",
    ["I can't identify or comment on people in images.", "I cannot name, rate or describe and discuss anybody here."],
)
def test_what_a_model_will_not_do_is_declined(reply: str) -> None:
    assert read_yes_no(reply, "Is the person in the photo smiling?").basis == REFUSAL


@pytest.mark.parametrize(
    ("options", "reply", "value"),
    [
        (BAGS, "It cannot be A or C. Nor is there any shopping bag. It has to be the second option.", "B"),
        (COLOURS, "It cannot be the first option.", None),
        (COLOURS, "I would not choose the second option", None),
        (COLOURS, "The first option is wrong, the second option is right.", "B"),
        (COLOURS, "It is not the red or the blue. It looks green.", "C"),
        (COLOURS, "No red, blue or dark blue is visible.", None),
        (COLOURS, "Impression: not red.", None),
        (COLOURS, "Some of it is red, some blue.\nImpression: green", "C"),
        (COLOURS, "So it seems to be green. Option C it is.", "C"),
        ({"A": "rot", "B": "blau"}, "Das Auto ist nicht rot, sondern blau.", "B"),
        ({"A": "rot", "B": "blau"}, "Das Auto ist nicht nur rot, sondern auch blau.", None),
        ({"A": "left lung", "B": "right lung"}, "The left lung is clear, the right one is not.", None),
        ({"A": "книга", "B": "яблоко"}, "На столе лежит яблоко.", "B"),
        ({"A": "книга", "B": "яблоко"}, "На столе лежит не яблоко.", None),
        ({"A": "أحمر", "B": "أصفر"}, "لون الزهرة أصفر.", "B"),
        ({"A": "أحمر", "B": "أصفر"}, "لون الزهرة ليس أصفر.", None),
        ({"A": "left", "B": "right"}, "따라서 정답은 B (오른쪽)이며 왼쪽입니다.", None),
        ({"A": "left", "B": "right"}, "따라서 정답은 B (오른쪽)입니다.", "B"),
    ],
)
def test_options_that_are_denied_named_by_their_place_or_concluded(
    options: dict[str, str], reply: str, value: str | None
) -> None:
    assert read_option(reply, options).value == value


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("An answer is factual when it agrees with the source.", None),
        ("I would not label it 1.", None),
        ("I wouldn't give it a 1.", None),
        ("I'd label it 0.", "0"),
        ("Reply: 1 — hallucinated.", "1"),
        ("1 - factual", None),
        ("0. Hold on, that is wrong. So I change my reply to 1.", "1"),
        ("Die Antwort ist halluziniert, denn auf dem Bild ist kein Erguss zu sehen.", None),
    ],
)
def test_verdicts(reply: str, value: str | None) -> None:
    assert read_verdict(reply, offered="01").value == value


def test_a_verdict_said_twice_is_one() -> None:
    read = read_verdict("1 - hallucinated", offered="01")
    assert (read.value, read.basis) == ("1", LINE)


JUDGED = [
    ("An answer is called supported if all of its claims follow, and hallucinated if one does not. First,", None),
    ("An answer that contradicts the reference is hallucinated.", None),
    ("The label should be supported when all claims are entailed.", None),
    ("Every claim must be supported.", None),
    ("Every claim is supported.", "supported"),
    ("Overall: supported claims are few.", None),
    ("Overall: hallucinated content is absent.", None),
    ("**Overall: Hallucinated** (the size is off)", "hallucinated"),
    ("Wrong side → **hallucinated**", "hallucinated"),
    ("If the side is wrong → hallucinated", None),
    ("match → supported, mismatch → hallucinated", None),
    ("I find nothing hallucinated here.", "supported"),
    ("Die Antwort ist halluziniert.", None),  # in other languages only the outcome's own word is a verdict
    ("Eine Antwort ist gestützt, wenn die Referenz sie bestätigt.", None),
    ("Halluzination: keine", None),
    ("La réponse est insuffisamment étayée par la référence.", None),
    ("该回答缺乏参考答案的支持。", None),
]


@pytest.mark.parametrize(("reply", "value"), JUDGED)
def test_judges(reply: str, value: str | None) -> None:
    found = read_judgement(reply, OUTCOMES, "verdict").reading
    assert found.value == value
    assert found.basis not in SOFT


@pytest.mark.parametrize("name", ["a dog", "Are there skis in the image?"])
@pytest.mark.parametrize(
    ("reply", "reference", "label"),
    [
        ("Yes, I can see it on the left.", "yes", 0),
        ("There is one in the background.", "yes", 0),
        ("There's a small one by the door.", "no", 1),
        ("There is none.", "no", 0),
        ("I don't see one in this image.", "yes", 1),
        ("It shows a cat.", "yes", None),
        ("There is a cat. I can see it.", "yes", None),
        ("There might be one.", "yes", None),
    ],
)
def test_what_stands_for_the_one_object_asked_about(name: str, reply: str, reference: str, label: int | None) -> None:
    [vope] = VopeJudge().judge([Case("1", name, reference, reply)])
    [shale] = ShaleJudge().judge([Case("1", name, reference.capitalize(), reply)])
    assert (vope.label is None) == (shale.label is None) == (label is None)
    assert label is None or shale.label == label


@pytest.mark.parametrize(
    ("question", "reply"),
    [
        ("Is the tube above the carina?", "The carina is above the tube."),
        ("Is the tube above the carina?", "Yes, the carina is above the tube."),
        ("Is the dog chasing the cat?", "The cat is chasing the dog."),
        ("¿Es el gato más grande que el perro?", "El perro es más grande que el gato."),
        ("Are both lungs clear?", "Yes on the left, no on the right."),
        ("Is there a pneumothorax?", "Are the lungs expanded? Yes."),
        ("Is there a dog on the sofa?", "There is one on the floor."),
        ("Are there two dogs?", "There is one."),
    ],
)
def test_nothing_is_firm_where_the_reply_says_something_else(question: str, reply: str) -> None:
    [verdict] = ShaleJudge().judge([Case("1", question, "Yes", reply)])
    assert verdict.label is None


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        ("I can't determine whether the answer is factual.", "not_sure"),
        ("0: factual\n1: hallucinated\n2: not sure", None),
        ("It is unclear from the abstract whether the effect was significant.", None),
    ],
)
def test_not_sure_is_the_doubt_of_who_speaks(reply: str, label: str | None) -> None:
    [verdict] = MedHalluJudge(not_sure=True).judge([Case("1", "Does it help?", "0", reply)])
    assert verdict.category == label


REVIEW = "A. Liver: the liver looks normal, so this is not the answer.\nB. Spleen: this is unlikely.\nC. Kidney: no."


@pytest.mark.parametrize("length", [20, 45, 60, 80, 100, len(REVIEW)])
@pytest.mark.parametrize("begins", ["", "Let me look at each option:\n\n", "Option "])
def test_a_cut_list_of_options_takes_none(begins: str, length: int) -> None:
    question = "Which organ?\nA. Liver\nB. Spleen\nC. Kidney"
    [verdict] = OptionJudge().judge([Case("1", question, "A", (begins + REVIEW)[:length], cut=True)])
    assert verdict.category is None


@pytest.mark.parametrize(
    "answer",
    [
        "N/A",
        "The label is not legible.",
        "I'd rather not guess.",
        "Ich weiß es nicht.",
        "无法确定。",
        "Je ne sais pas.",
    ],
)
def test_declines_without_a_refusal_in_english(answer: str) -> None:
    assert unanswered(answer)


@pytest.mark.parametrize(
    "answer", ['It says "N/A, I cannot help".', "No se identifican fracturas.", "无法排除骨折。", "Lake"]
)
def test_answers_that_look_like_declines(answer: str) -> None:
    assert unanswered(answer) is None
