"""Form that is read without a rule for each sentence: what says back or denies, closed families, shared units; and
sentences of other languages, read where every word that could change them is known.
"""

from __future__ import annotations

import importlib
import pkgutil
import re

import pytest

import hedge_tasks.replies
from hedge_tasks.data.thoughts import without_thoughts
from hedge_tasks.replies import read_option, read_verdict, read_yes_no

PERRO, NEUMOTORAX = "¿Hay un perro en la imagen?", "¿Hay neumotórax?"
CHIEN, HUND = "Y a-t-il un chien ?", "Ist ein Hund im Bild?"
KIDNEYS = {"A": "Left kidney", "B": "Right kidney"}
SIZES = {"A": "1 mm", "B": "2 mm", "C": "35 mm"}
FRENCH = {"A": "Rouge", "B": "Vert", "C": "Bleu", "D": "Noir"}
SEQUENCES = {"A": "T1", "B": "T2", "C": "FLAIR"}
COUNTS = {"A": "1", "B": "2", "C": "3", "D": "4"}
TUMOURS = {"A": "Glioma", "B": "Meningioma"}
ANIMALS = {"A": "perro", "B": "gato"}
CHINESE = {"A": "CT", "B": "MRI", "C": "双侧"}
JAPANESE = {"A": "犬", "B": "猫"}


@pytest.mark.parametrize(
    ("question", "reply", "said"),
    [
        # What stands beside a statement denies something else.
        ("Is there a dog in the image?", "There is a dog without a leash.", "yes"),
        ("Is there a dog in the image?", "There is a house without a dog.", "no"),
        ("Is there a pneumothorax?", "The lungs are expanded without pneumothorax.", "no"),
        ("Is there a mass?", "There is a cyst with no mass.", "no"),
        ("Is there a pneumothorax?", "Impression: pneumothorax.", "yes"),
        ("Is there a pneumothorax?", "Diagnosis: pneumothorax ruled out.", None),
        ("Does this slide show a carcinoma?", "The cells are typical of a carcinoma.", "yes"),
        ("Is the dog asleep?", "It doesn't look like it.", "no"),
        # Of a closed family one is true, and the others are not.
        ("Is the traffic light red?", "The traffic light is green.", "no"),
        ("Is the traffic light red?", "The traffic light is not green.", None),
        ("Is the car red?", "The bus is green.", None),
        ("Is the car red or blue?", "The car is blue.", None),
        ("Is the car red?", "The car is parked. It is blue where the paint is damaged.", None),
        ("Is the liver brown?", "This is red wine.", None),
        ("Is the mass in the left lung?", "The mass is in the right lung.", "no"),
        ("Is the car to the left of the tree?", "The car is right next to the tree.", None),
        ("Is this a T2 weighted image?", "This MRI appears to be T1-weighted.", "no"),
        ("Is this a CT?", "This is an MRI.", "no"),
        ("Is this a CT?", "It is an MRI-guided biopsy.", None),
        ("Is this an axial CT?", "This is a CT.", None),
        ("Is this an axial CT?", "The image is coronal.", "no"),
    ],
)
def test_a_statement_about_what_was_asked(question: str, reply: str, said: str | None) -> None:
    read = read_yes_no(reply, question)
    assert (read.value, read.value is None or read.soft) == (said, True)


@pytest.mark.parametrize(
    ("question", "reply", "said"),
    [
        (PERRO, "En la imagen no aparece ningún perro; se ven dos gatos.", "no"),
        (PERRO, "Hay un perro en la imagen.", "yes"),
        (PERRO, "No hay un perro sino un gato.", None),
        (PERRO, "No solo hay un perro.", None),
        (PERRO, "No se ve bien si hay un perro.", None),
        (NEUMOTORAX, "Por lo tanto, no hay neumotórax.", "no"),
        (NEUMOTORAX, "No se puede descartar neumotórax.", None),
        (NEUMOTORAX, "No hay duda de que hay neumotórax.", None),
        (NEUMOTORAX, "No es que no hay neumotórax.", None),
        (CHIEN, "Il y a un chien.", "yes"),
        (CHIEN, "Il n'y a aucun chien.", "no"),
        (CHIEN, "Il n'y a pas que un chien.", None),
        (HUND, "Man sieht einen Hund nicht.", "no"),
        (HUND, "Es ist nicht kein Hund im Bild.", None),
        ("Ist das Herz vergrößert?", "Ob das Herz vergrößert ist, sieht man nicht.", None),
        ("Is there evidence of pneumothorax?", "Ein Pneumothorax ist auf der Aufnahme nicht zu erkennen.", "no"),
        ("È presente un versamento?", "Non è visibile se è presente un versamento.", None),
        ("Há um cão?", "Não há só um cão.", None),
        ("Czy serce jest powiększone?", "Tak, serce jest duże.", "yes"),
        ("肝脏是否正常？", "不正常，可见病灶。", "no"),
        ("肝脏是否正常？", "肝脏不太正常。", None),
        ("肝脏是否正常？", "肝脏不是不正常。", None),
        ("有没有骨折?", "未见明显骨折。", "no"),
        ("有没有骨折?", "有骨折", "yes"),
        ("有没有骨折?", "不是没有骨折", None),
        ("有没有骨折?", "无法判断有没有骨折", None),
        ("有没有骨折?", "图中未显示骨折部位", None),
    ],
)
def test_another_language_says_back_what_was_asked_or_nothing(question: str, reply: str, said: str | None) -> None:
    assert read_yes_no(reply, question).value == said


@pytest.mark.parametrize(
    ("options", "reply", "said"),
    [
        # A unit that all options share may be left out, and nothing else may stand in its place.
        (SIZES, "The answer is 2.", "B"),
        (SIZES, r"$\boxed{35}$", "C"),
        (SIZES, "The angle reads 35°.", "C"),
        (SIZES, "The answer is 2 cm.", None),
        (SIZES, "There are 2 masses.", None),
        (SIZES, "2.5", None),
        (KIDNEYS, "Left.", "A"),
        (KIDNEYS, "Right, so it is the left kidney.", "A"),
        # What a text comes to.
        (
            TUMOURS,
            "- **A. Glioma:** usual.\n- **B. Meningioma:** fits.\n\nTherefore, the most likely diagnosis is **B**.",
            "B",
        ),
        (TUMOURS, "Therefore, the most likely diagnosis is not glioma.", None),
        (TUMOURS, "Therefore, the least likely diagnosis is glioma.", None),
        (TUMOURS, "The diagnosis is glioma or meningioma.", None),
        (TUMOURS, "The initial diagnosis is glioma, but it is a meningioma.", None),
        (TUMOURS, "The wrong diagnosis is glioma.", None),
        (TUMOURS, "It is unlikely that the diagnosis is glioma.", None),
        (TUMOURS, "Nobody can be sure, but if I had to pick one I'd go with A.", "A"),
        (COUNTS, "There are three cars: one red, two blue.", "C"),
        (COUNTS, "There are 2 red cars and 1 blue car.", None),
        # Other languages.
        (FRENCH, "Le vélo est vert.", "B"),
        (FRENCH, "C'est le vert.", "B"),
        (FRENCH, "D'après l'image, c'est flou.", None),
        (FRENCH, "Le vélo n'est pas vert.", None),
        (FRENCH, "Le vélo est plutôt vert.", None),
        (FRENCH, "Impossible de dire que le vélo est vert.", None),
        (FRENCH, "Le vélo à côté du vélo vert est rouge.", None),
        (SEQUENCES, "Das Bild ist T1-gewichtet.", "A"),
        (SEQUENCES, "Ein T1-Bild wäre dunkler.", None),
        (SEQUENCES, "La respuesta correcta es la b) T2", "B"),
        (SEQUENCES, "सही उत्तर (B) T2 है।", "B"),
        (SEQUENCES, "คำตอบคือข้อ C", "C"),
        (SEQUENCES, "Odpowiedź B jest prawidłowa, bo tak.", "B"),
        (SEQUENCES, "Odpowiedź B nie jest prawidłowa.", None),
        (SEQUENCES, "見当たりません。よって「B」です。", "B"),
        (ANIMALS, "Se trata de un perro.", "A"),
        (ANIMALS, "Se trata de un perro o un gato.", None),
        (ANIMALS, "Es todo menos un perro.", None),
        (CHINESE, "这是一张腹部CT图像。", "A"),
        (CHINESE, "与CT相比更清晰。", None),
        (CHINESE, "这不是CT。", None),
        (JAPANESE, "これは犬です。", "A"),
        (JAPANESE, "これは犬ではありません。", None),
        (JAPANESE, "犬より小さい動物です。", None),
    ],
)
def test_options_are_named_or_not_taken(options: dict[str, str], reply: str, said: str | None) -> None:
    assert read_option(reply, options).value == said


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("I do not find any hallucination in the answer.", "0"),
        ("I would not call this hallucinated.", "0"),
        ("I would not call this accurate.", "1"),
        ("I give it a 1.", "1"),
        ("Rating: 0/1 → **0**", "0"),
        ("My first reaction was 1. Final: 0", "0"),
        ("Die Antwort ist halluziniert.", "1"),
        ("Die Antwort ist nicht halluziniert.", None),
        ("答案不正确", None),
    ],
)
def test_verdicts_in_words(reply: str, said: str | None) -> None:
    assert read_verdict(reply, offered="01").value == said


def test_a_channel_without_its_marks_is_a_thought() -> None:
    assert without_thoughts("analysisThe car is blue. D.assistantfinalD) Dark blue") == ("D) Dark blue", False)
    assert without_thoughts("analysisThe car") == ("", True)
    assert without_thoughts("Analysis: the car is blue.") == ("Analysis: the car is blue.", False)


def test_no_pattern_has_lost_its_counts() -> None:
    """`{1, 4}` in a formatted pattern is the text "(1, 4)", and never matches what it should."""
    patterns = [
        (module.name, name, value.pattern)
        for module in pkgutil.iter_modules(hedge_tasks.replies.__path__, "hedge_tasks.replies.")
        for name, value in vars(importlib.import_module(module.name)).items()
        if isinstance(value, re.Pattern)
    ]
    assert len(patterns) > 100
    assert [one for one in patterns if re.search(r"\(\d+, ?\d+\)|\{\d+, +\d*\}", one[2])] == []
