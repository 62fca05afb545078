"""Replies that are no sentences: boxes, tables, fields, shares; and what a form must not be read as."""

from __future__ import annotations

import pytest

from hedge_tasks.replies import read_option, read_verdict, read_yes_no
from hedge_tasks.replies.forms import fields, shares, table
from hedge_tasks.replies.reading import CONTRADICTION, ECHO, FORM, JSON, SOFT

DOG = "Is there a dog in the image?"
COLOURS = {"A": "red", "B": "blue", "C": "green"}


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("[x] Yes\n[ ] No", "yes"),
        ("- [ ] yes\n- [x] no", "no"),
        ("✓ Yes\n✗ No", "yes"),
        ("✅ No\n❌ Yes", "no"),
        ("[ ] Yes\n[ ] No", None),
        ("[x] Yes\n[x] No", None),
        ("Yes: 12%\nNo: 88%", "no"),
        ("| yes | no |\n|---|---|\n| 0.9 | 0.1 |", "yes"),
        ("Yes: 50%\nNo: 50%", None),
        ("Yes: 3\nNo: 5", None),
        ("| Object | Present? |\n|---|---|\n| dog | ✅ |\n| cat | ❌ |", "yes"),
        ("| Object | Present? |\n|---|---|\n| cat | Yes |\n| dog | No |", "no"),
        ("object: dog\nstatus: present", "yes"),
        ("object: cat\nstatus: present", None),
        ("yes no yes no yes no", None),
    ],
)
def test_forms_of_yes_and_no(reply: str, value: str | None) -> None:
    found = read_yes_no(reply, DOG)
    assert found.value == value
    assert found.basis not in SOFT


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("1. red\n2. **blue** ✅\n3. green", "B"),
        ("- [ ] red\n- [ ] blue\n- [x] green", "C"),
        ("red ❌\nblue ❌\ngreen ✔️", "C"),
        ('{"red": 0.05, "blue": 0.11, "green": 0.84}', "C"),
        ('{"red": 0.4, "blue": 0.4, "green": 0.2}', None),
        ("B (confidence: 0.64), A (0.21), C (0.15)", "B"),
        ("| Option | Match |\n|---|---|\n| red | no |\n| blue | yes |\n| green | no |", "B"),
        ('{"red": "no", "blue": "yes", "green": "no"}', "B"),
        ("Option 2", "B"),
        ("The 3rd one.", "C"),
        ("Option 4", None),
    ],
)
def test_forms_of_options(reply: str, value: str | None) -> None:
    found = read_option(reply, COLOURS)
    assert found.value == value
    assert found.basis not in SOFT


def test_the_list_of_the_options_is_no_answer() -> None:
    for reply in ("A. red B. blue C. green", "A. red\nB. blue\nC. green", "red, blue, green"):
        assert read_option(reply, COLOURS).value is None
    assert read_option("A. red B. blue C. green", COLOURS).basis == ECHO
    # "Option 2" where options are numbers is one of these.
    assert read_option("Option 2", {"A": "1", "B": "3", "C": "2"}).value != "B"


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ('{"factual": 0.05, "hallucinated": 0.95}', "1"),
        ("| factual | hallucinated |\n|---|---|\n| 0.86 | 0.14 |", "0"),
        ("B. hallucinated", "1"),
        ('{"verdict": "factual", "score": 0.92}', "0"),
        ('{"verdict": "factual", "reason": "The answer is completely made up and hallucinated."}', None),
        ('{"verdict": "factual", "reason": "The mass is in the wrong place for a cyst."}', "0"),
        ("Die Antwort ist halluziniert: Auf dem Tisch steht keine Vase.", None),
        ("Die Antwort ist nicht halluziniert.", None),
    ],
)
def test_forms_of_verdicts(reply: str, value: str | None) -> None:
    assert read_verdict(reply, offered="01").value == value


@pytest.mark.parametrize(
    ("question", "reply", "value"),
    [
        (f"{DOG}\nA) Yes\nB) No", "B", "no"),
        (f"{DOG} (1 = yes, 0 = no)", "0", "no"),
        (f"{DOG} (1 = yes, 0 = no)", "1", "yes"),
        (f"{DOG}\nA) Yes\nB) No", "A) No", None),
        (DOG, "B", None),
        (DOG, "Present.", "yes"),
        (DOG, "Absent.", "no"),
        ("Is this chest X-ray normal?", "Abnormal.", "no"),
        ("Is this chest X-ray normal?", "No acute cardiopulmonary abnormality.", "yes"),
        ("Does this chest X-ray look abnormal?", "No acute cardiopulmonary abnormality.", "no"),
        ("Is the liver normal?", '{"abnormal": false, "findings": []}', "yes"),
        (DOG, '{"object": "dog", "detected": true, "box": [1, 2, 3, 4]}', "yes"),
        (DOG, '{"object": "cat", "detected": true}', None),
        (DOG, '{"present": false, "confidence": 0.93}', "no"),
        (DOG, '{"question": "Is there a dog?", "prediction": "Yes", "score": 0.77}', "yes"),
        (DOG, "No hay ningún perro", "no"),
        (DOG, "Il n'y a pas que des chiens", None),
        ("N'y a-t-il pas de voiture ?", "Si, il y a une voiture garée.", None),
    ],
)
def test_what_a_question_gives_letters_to_and_other_short_answers(question: str, reply: str, value: str | None) -> None:
    assert read_yes_no(reply, question).value == value


def test_a_sentence_with_no_behind_an_answer_takes_nothing_back() -> None:
    options = {"A": "ulcer", "B": "polyp", "C": "bleeding"}
    assert read_option("Answer: C\nExplanation: Fresh blood. No ulcer or polyp is visible.", options).value == "C"
    assert read_option("C ... no, A", options).value == "A"


def test_a_share_is_firm_and_one_of_json_is_json() -> None:
    assert read_yes_no("Yes: 12%\nNo: 88%", DOG).basis == FORM
    assert read_yes_no('{"yes": 0.08, "no": 0.92}', DOG).basis == JSON
    assert read_yes_no('{"yes": 0.5, "no": 0.5}', DOG).basis == CONTRADICTION


def test_texts_of_another_form_have_no_fields() -> None:
    assert table("no table | at all\nand more") == []
    assert fields("There is a dog: brown") == {}
    assert shares("There are 2: a dog and a cat\nYes: 3 dogs") == {}
