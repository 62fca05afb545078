"""Replies that look like an answer and are none, answers that are taken back, and judges in other languages.

Each mechanism with the reply that showed it, others of its kind, and neighbours that must go on being read.
"""

from __future__ import annotations

import pytest

from hedge_tasks.replies import read_option, read_verdict, read_yes_no
from hedge_tasks.replies.judgement import read_judgement
from hedge_tasks.replies.reading import LINE, REFUSAL, SOFT

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
        ("Die Antwort ist halluziniert, denn auf dem Bild ist kein Erguss zu sehen.", "1"),
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
    ("Die Antwort ist halluziniert.", "hallucinated"),
    ("Die Antwort wird von der Referenz gestützt.", "supported"),
    ("Die Antwort wird von der Referenz nicht gestützt.", None),
    ("Die Antwort wird gestützt, aber nur zum Teil.", None),
    ("Eine Antwort ist gestützt, wenn die Referenz sie bestätigt.", None),
    ("Ist die Antwort halluziniert?", None),
    ("Halluzination: keine", None),
    ("La réponse est étayée par la référence.", "supported"),
    ("La réponse est insuffisamment étayée par la référence.", None),
    ("Alucinada: la referencia dice que el corazón es normal.", "hallucinated"),
    ("La respuesta está apenas respaldada por la referencia.", None),
    ("A resposta é apoiada pela referência.", "supported"),
    ("La risposta è supportata dal riferimento.", "supported"),
    ("Het antwoord wordt door de referentie ondersteund.", "supported"),
    ("该回答得到参考答案的支持。", "supported"),
    ("该回答缺乏参考答案的支持。", None),
    ("这个回答是幻觉", "hallucinated"),
    ("幻觉：无", None),
]


@pytest.mark.parametrize(("reply", "value"), JUDGED)
def test_judges(reply: str, value: str | None) -> None:
    found = read_judgement(reply, OUTCOMES, "verdict").reading
    assert found.value == value
    assert found.basis not in SOFT
