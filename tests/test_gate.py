"""The gate of the makers: what is refused, what verifiers say, and what needs no skill."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from making import asked_of, written
from scripted_making import models_by

from hedge_tasks.errors import DataError
from hedge_tasks.making.gate.attack import AttackedItem, attack, check_floors
from hedge_tasks.making.gate.refuse import Written, refused, repeated
from hedge_tasks.making.gate.twins import edited, reworded, wrong_twin
from hedge_tasks.making.gate.verify import (
    CONTRADICTED,
    SUPPORTED,
    UNDECIDED,
    EvidenceVerdict,
    OpenBook,
    check_controls,
    evidence_verdicts,
    outcome,
    verifying,
)
from hedge_tasks.making.medhallu.questions import SourceQuestion
from hedge_tasks.making.stages import Asking, Made, make

TRUTH = "The biopsy of the left lung showed a benign lesion of 5 mm, and no surgery was needed."


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("I'm sorry, but I cannot help with creating false medical statements.", "refusal"),
        ("Lo siento, no puedo ayudar con eso.", "refusal"),
        ("\u200b", "empty"),
        ("<insert answer here>", "placeholder"),
        (TRUTH.replace("benign", "malignant") + " [HALLUCINATED]", "marker"),
        ("Here is a plausible answer: " + TRUTH.replace("left", "right"), "about itself"),
        (TRUTH.upper().rstrip("."), "same as the truth"),
        (TRUTH.replace("left", "l\u0435ft"), "same as the truth"),  # a Cyrillic letter
        (f"{TRUTH} {TRUTH}", "same as the truth"),
        (f"So it is: {TRUTH}", "repeats the truth"),
        ("a benign lesion of 5 mm", "part of the truth"),
        (f"Either {TRUTH} Or it showed a cyst.", "says nothing definite"),
        ("What did the biopsy show?", "echo"),
        (TRUTH.replace("left", "right"), None),
        ("surgery was needed", None),  # the truth denies it
        ("A fibrous scar without any lesion.", None),
        (f"It is not so that {TRUTH}", None),  # a denial that quotes it
        (f"A benign lesion of 5 mm. {TRUTH.partition(',')[0]}. It may spread.", None),  # one part is new
    ],
)
def test_what_is_no_wrong_answer_is_refused_with_its_reason(text: str, why: str | None) -> None:
    assert refused(text, TRUTH, "What did the biopsy show?") == why


def test_words_of_the_truth_are_no_markers() -> None:
    truth = "The false lumen of the dissection is patent; the cause is not clear."
    assert refused("The false lumen of the dissection is occluded; the cause is not clear.", truth) is None
    assert refused("NO PARKING 18-8", "NO PARKING 8-18") is None
    sorry = "I'm sorry, but I cannot help with the {} one."  # what a sign says is no refusal
    assert refused(sorry.format("left"), sorry.format("right")) is None


def test_stock_phrases_and_frames_are_found_in_any_order() -> None:
    own = [f"Drug {number} raises the pressure in patients of ward {number}." for number in range(20)]
    rows = [Written(text, text.replace("raises", "lowers")) for text in own]
    stock = [Written("The cause is a lack of vitamin C.", f"Question {number}") for number in range(4)]
    frames = [Written(f"Experts agree that it is due to {c} in such patients.", "") for c in ("iron", "zinc", "salt")]
    whole = [*rows, *stock, *frames]
    random.Random(0).shuffle(whole)
    found = repeated(whole)
    assert {whole[place].text for place in found} == {row.text for row in (*stock, *frames)}
    assert sorted(found.values()) == ["follows a frame"] * 3 + ["stock phrase"] * 4


TRUE_ANSWER = "It is left and it is small."


def verified(folder: Path, verdict_of: Any) -> Made:
    """What a verifier says of "It is right and it is small."."""

    def reply(body: dict[str, Any]) -> str:
        fields = asked_of(body)
        verdict = verdict_of(fields["candidate_answer"], fields["reference_answer"])
        return json.dumps({"verdict": verdict, "sentence": 1, "reason": "nobody wants it"})

    def build(row: SourceQuestion, asking: Asking) -> list[EvidenceVerdict]:
        evidence = OpenBook(row.question, row.answer, ["It was seen twice."])
        return [*evidence_verdicts(evidence, "It is right and it is small.", asking)]

    models = models_by(reply, {"verifier": ["v"]})
    return make([SourceQuestion("1", "What?", TRUE_ANSWER)], build, verifying((1, 1), 1), models, folder)


def honest(candidate: str, truth: str) -> str:
    return CONTRADICTED if "right" in candidate else SUPPORTED


def by_letters(candidate: str, truth: str) -> str:
    return SUPPORTED if candidate == truth else CONTRADICTED


def by_likeness(candidate: str, truth: str) -> str:
    shared = set(candidate.split()) & set(truth.split())
    return SUPPORTED if len(shared) >= 0.6 * len(set(truth.split())) else CONTRADICTED


@pytest.mark.parametrize(
    ("verdict_of", "controlled"),
    [
        (honest, True),
        (by_letters, True),
        (by_likeness, True),
        (lambda candidate, truth: CONTRADICTED, True),
        (lambda candidate, truth: SUPPORTED, True),
        (lambda candidate, truth: UNDECIDED, False),  # nothing is accepted on its word
    ],
)
def test_a_verifier_has_to_know_a_reworded_truth_and_a_small_error(
    tmp_path: Path, verdict_of: Any, controlled: bool
) -> None:
    made = verified(tmp_path, verdict_of)
    [verdict] = made.rows
    assert verdict.verdict == (CONTRADICTED if verdict_of is honest else UNDECIDED)
    assert verdict.quote == TRUE_ANSWER
    assert bool(made.controls) is controlled
    refuses = controlled and verdict_of is not honest  # one control is enough
    with pytest.raises(DataError, match="v takes 1 of 1 controls") if refuses else nullcontext():
        check_controls(made.controls)


@pytest.mark.parametrize(
    ("right", "n", "fails"), [(0, 1, True), (1, 1, False), (0, 9, True), (20, 40, True), (36, 40, False)]
)
def test_controls_count_at_any_number(right: int, n: int, fails: bool) -> None:
    controls = {("good", "a"): (40, 40), ("doubtful", "a"): (right, n)}
    with pytest.raises(DataError, match=f"doubtful takes {n - right} of {n}") if fails else nullcontext():
        check_controls(controls)


def test_only_what_most_call_contradicted_and_nobody_supported_is_wrong() -> None:
    def of(*said: str) -> str:
        return outcome([EvidenceVerdict(str(place), verdict) for place, verdict in enumerate(said)])

    assert of(CONTRADICTED, CONTRADICTED, UNDECIDED) == CONTRADICTED
    assert of(CONTRADICTED, CONTRADICTED, SUPPORTED) == SUPPORTED
    assert of(CONTRADICTED, UNDECIDED) == of(UNDECIDED) == of() == UNDECIDED


def test_twins_are_right_and_wrong_by_one_word() -> None:
    assert wrong_twin("Yes") == "No"
    assert wrong_twin("Yes, it is seen.") == "No, it is not seen."
    assert wrong_twin("A mass of 12 mm") == "A mass of 25 mm"
    assert wrong_twin("a dog") is None
    assert edited("a dog") != "a dog"
    assert reworded("a dog").endswith("a dog")
    assert "two" not in reworded("two masses")


# --- attack -----------------------------------------------------------------------------------------------------------


def items(**cue: Callable[[str, str], str]) -> list[AttackedItem]:
    """Items of a random word; a cue makes a field of an item's label and word."""
    chance = random.Random(1)
    found = []
    for number in range(120):
        label = ("true", "false")[number % 2]
        word = "".join(chance.choice("abcdefghij") for _ in range(6))
        fields = {"question": "Q", "answer": word, **{name: value(label, word) for name, value in cue.items()}}
        found.append(AttackedItem(label, group=str(number), **fields))
    return found


def test_a_set_without_a_cue_has_the_floor_of_guessing() -> None:
    [one] = attack(items())
    assert one.chance == 0.5
    assert not one.open
    assert all(0.3 < (score.value or 0) < 0.7 for score in one.scores.values())
    check_floors([one])


@pytest.mark.parametrize(
    ("cue", "solver"),
    [
        ({"answer": lambda label, word: word * (1 + (label == "false"))}, "length"),
        ({"answer": lambda label, word: word + (" abcdef" if label == "true" else " fedcba")}, "blind text"),
        ({"answer": lambda label, word: word + "." * (label == "true")}, "spelling"),
        (
            {"answer": lambda label, word: f"The mass of type {word} lies in" + " " * (1 + (label == "true")) + "it."},
            "a single sign",
        ),
        ({"question": lambda label, word: "Is it so?" if label == "true" else "Is so it?"}, "wording of the question"),
        ({"reference": lambda label, word: word if label == "true" else word[::-1]}, "copy of the reference"),
        ({"answer": lambda label, word: word if label == "true" else "I cannot help."}, "refusal words"),
        ({"asserted": lambda label, word: "false" if label == "true" else "true"}, "what the prefix says is wrong"),
        ({"asserted": lambda label, word: label}, "what the prefix says"),
    ],
)
def test_every_cue_is_found_by_its_solver_and_fails_the_making(cue: dict[str, Any], solver: str) -> None:
    [one] = attack(items(**cue))
    assert (one.scores[solver].value or 0) > 0.9
    assert one.open
    with pytest.raises(DataError, match="right without skill"):
        check_floors([one])
    check_floors(attack(items(**cue), bound=1))


def test_letters_and_one_sided_answers_are_solved_by_the_prior() -> None:
    options = {"A": "red", "B": "blue", "C": "black", "D": "white"}
    first = [AttackedItem("A", "Colour?", options=options, group=str(n), stratum="mcq") for n in range(40)]
    no = [AttackedItem("No", "Is it?", group=str(n), stratum="syn") for n in range(40)]
    [mcq, syn] = attack([*first, *no])
    assert [(one.floor and (one.floor[0], one.floor[1].value), one.open) for one in (mcq, syn)] == [
        (("prior", 1.0), True)
    ] * 2
    assert (mcq.chance, mcq.bound, syn.chance) == (0.25, 0.625, 0.5)


def test_who_is_always_wrong_knows_as_much() -> None:
    # Yes and no take turns: whatever is learnt of the others is wrong of the rest.
    [result] = attack([AttackedItem(("Yes", "No")[n % 2], f"w{n} w{n}", group=str(n)) for n in range(40)])
    assert all((score.value or 0) >= 0.5 for score in result.scores.values())
    [result] = attack(items(asserted=lambda label, word: "false" if label == "true" else "true"))
    assert result.scores["what the prefix says"].value == result.scores["what the prefix says is wrong"].value == 1


def test_small_strata_say_nothing() -> None:
    [one] = attack([AttackedItem("No", "Is it?", group=str(n)) for n in range(5)])
    assert one.floor is None
    check_floors([one])


def test_nothing_is_learnt_by_heart() -> None:
    # Every question has its own answer twice: within a group it could be looked up.
    chance = random.Random(3)
    labels = [chance.choice(("true", "false")) for _ in range(60)]
    twice = [AttackedItem(label, f"word{n} other{n}", group=str(n)) for n, label in enumerate(labels) for _ in (0, 1)]
    [one] = attack(twice)
    assert (one.scores["wording of the question"].value or 0) < 0.75


def test_released_sets_are_attacked_by_a_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from hedge_tasks.cli import main

    rows = [{"question": f"Is it {n}?", "answer": "x" * (5 + 9 * (n % 2)), "label": n % 2} for n in range(60)]
    path = written(tmp_path / "set.jsonl", *rows)
    assert main(["data", "attack", str(path), "--json"]) == 1
    floors = json.loads(capsys.readouterr().out)["floors"]
    assert floors["all"]["scores"]["length"][0] == 1
    assert main(["data", "attack", str(path), "--floor", "1"]) == 0
