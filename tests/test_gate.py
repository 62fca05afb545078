"""The gate of the makers: what is refused, what verifiers say, and what needs no skill."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path
from typing import Any

import pytest
from making import asked_of
from openai_server import serve

from hedge_tasks.errors import DataError
from hedge_tasks.judging.designed import ExpertSaid
from hedge_tasks.llm.account import Account
from hedge_tasks.llm.log import ReplyLog
from hedge_tasks.llm.models import ServedModel
from hedge_tasks.making.asking import Asking
from hedge_tasks.making.gate.attack import AttackedItem, attack, check_floors
from hedge_tasks.making.gate.controls import TRUTHS
from hedge_tasks.making.gate.passing import passing_rows
from hedge_tasks.making.gate.people import (
    ReviewedRow,
    combine_labels,
    label_noise,
    read_people,
    write_queue,
)
from hedge_tasks.making.gate.queue import ReviewQueue
from hedge_tasks.making.gate.refuse import Written, refused, repeated
from hedge_tasks.making.gate.sets import shale_items
from hedge_tasks.making.gate.twins import right_twin, wrong_twin
from hedge_tasks.making.gate.verify import (
    CONTRADICTED,
    SUPPORTED,
    UNDECIDED,
    EvidenceVerdict,
    evidence_verdicts,
    outcome,
)
from hedge_tasks.making.production import Production

TRUTH = "The biopsy of the left lung showed a benign lesion of 5 mm, and no surgery was needed."


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("I'm sorry, but I cannot help with creating false medical statements.", "refusal"),
        ("Lo siento, no puedo ayudar con eso.", "refusal"),
        ("N/A", "empty"),
        ("\u200b", "empty"),
        ("<insert answer here>", "placeholder"),
        (TRUTH.replace("benign", "malignant") + " [HALLUCINATED]", "marker"),
        ("Here is a plausible answer: " + TRUTH.replace("left", "right"), "about itself"),
        (TRUTH, "same as the truth"),
        (TRUTH.upper().rstrip("."), "same as the truth"),
        (TRUTH.replace("5 mm", "0.5 cm"), "same as the truth"),
        (TRUTH.replace("left", "l\u0435ft"), "same as the truth"),  # a Cyrillic letter
        (f"{TRUTH} {TRUTH}", "same as the truth"),
        (f"It is not so that {TRUTH}", "repeats the truth"),
        ("a benign lesion of 5 mm", "part of the truth"),
        (f"Either {TRUTH} Or it showed a cyst.", "says nothing definite"),
        ("What did the biopsy show?", "echo"),
    ],
)
def test_what_is_no_wrong_answer_is_refused_with_its_reason(text: str, why: str) -> None:
    assert refused(text, TRUTH, "What did the biopsy show?") == why


@pytest.mark.parametrize(
    "text",
    [
        TRUTH.replace("left", "right"),
        TRUTH.replace("5 mm", "5 cm"),
        TRUTH.replace("benign", "malignant"),
        "surgery was needed",  # the truth denies it
        "A fibrous scar without any lesion.",
    ],
)
def test_wrong_answers_pass(text: str) -> None:
    assert refused(text, TRUTH, "What did the biopsy show?") is None


def test_words_of_the_truth_are_no_markers() -> None:
    truth = "The false lumen of the dissection is patent; the cause is not clear."
    assert refused("The false lumen of the dissection is occluded; the cause is not clear.", truth) is None
    assert refused("NO PARKING 18-8", "NO PARKING 8-18") is None
    assert refused("A then B", "B then A") == "same as the truth"
    assert refused("A before B", "B before A") is None


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


def verdicts(folder: Path, reply: Any) -> tuple[EvidenceVerdict, ...]:
    import threading

    with serve(lambda body: json.dumps(reply(asked_of(body)))) as url, ReplyLog(folder) as log:
        asking = Asking(log, Account(), "r", 0, threading.Event())
        model = ServedModel("v", url, max_retries=0)
        return evidence_verdicts(
            "What?", "It is left. It is small.", ["It was seen twice."], "It is right.", [model], asking
        )


def test_a_verifier_quotes_the_sentence_and_knows_the_truth(tmp_path: Path) -> None:
    def honest(fields: dict[str, Any]) -> dict[str, Any]:
        wrong = fields["candidate_answer"] == "It is right."
        return {"verdict": "contradicted" if wrong else "supported", "sentence": 1}

    assert fields_of(verdicts(tmp_path / "a", honest)) == (CONTRADICTED, "It is left.", True)
    always = {"verdict": "contradicted", "sentence": 1}
    assert fields_of(verdicts(tmp_path / "b", lambda fields: always)) == (UNDECIDED, "It is left.", False)
    nowhere = {"verdict": "contradicted", "sentence": 9}
    assert fields_of(verdicts(tmp_path / "c", lambda f: {**honest(f), "sentence": 9}))[0] == UNDECIDED, nowhere


def fields_of(found: tuple[EvidenceVerdict, ...]) -> tuple[str, str, bool | None]:
    [finding] = found
    return finding.verdict, finding.quote, finding.control


def test_only_what_most_call_contradicted_and_nobody_supported_is_wrong() -> None:
    def of(*said: str) -> str:
        return outcome([EvidenceVerdict(str(place), verdict) for place, verdict in enumerate(said)])

    assert of(CONTRADICTED, CONTRADICTED, UNDECIDED) == CONTRADICTED
    assert of(CONTRADICTED, CONTRADICTED, SUPPORTED) == SUPPORTED
    assert of(CONTRADICTED, UNDECIDED) == of(UNDECIDED) == of() == UNDECIDED


def test_a_verifier_that_tosses_coins_ends_the_making() -> None:
    def steps(**controls: tuple[int, int]) -> dict[str, int]:
        return {
            TRUTHS.step(name, right=right): counts[not right]
            for name, counts in controls.items()
            for right in (True, False)
        }

    TRUTHS.check(steps(good=(40, 0), few=(1, 4)))
    with pytest.raises(DataError, match="verifier coin finds 20 of 40"):
        TRUTHS.check(steps(good=(40, 0), coin=(20, 20)))


def test_controls_of_rejected_candidates_count_as_well() -> None:
    steps = {"truth supported by coin": 20, "truth not supported by coin": 20, "written": 40}
    with pytest.raises(DataError, match="verifier coin finds 20 of 40"):
        passing_rows(Production([], steps, {}, {}, Account(), 40), lambda row: Written("", ""))


def test_fallbacks_have_a_cap() -> None:
    rows = [{"Id": str(n), "Fallback": n >= 8, "Similarity": n / 20, "Text": f"w{n} x{n} y{n} z{n}"} for n in range(14)]
    made = Production(rows, {}, {"too long": 1}, {}, Account(), 15)
    kept = passing_rows(made, lambda row: Written(row["Text"], ""))
    assert [row["Id"] for row in kept.rows] == ["0", "1", "2", "3", "4", "5", "6", "7", "12", "13"]
    assert kept.rejected == {"too long": 1, "one fallback too many": 4}


# --- attack -----------------------------------------------------------------------------------------------------------


def floors(items: list[AttackedItem]) -> dict[str, tuple[str, float]]:
    found = {}
    for one in attack(items):
        assert one.floor is not None
        found[one.stratum] = (one.floor[0], one.floor[1].value or 0.0)
    return found


def items(*, answer: Any = None, question: Any = None, **more: Any) -> list[AttackedItem]:
    chance = random.Random(1)
    found = []
    for number in range(120):
        label = ("true", "false")[number % 2]
        word = "".join(chance.choice("abcdefghij") for _ in range(6))
        said = answer(label, word) if answer else word
        asked = question(label, word) if question else "Q"
        fields = {name: value(label, word) for name, value in more.items()}
        found.append(AttackedItem(label, asked, said, group=str(number), **fields))
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
    found = floors([*first, *no])
    assert found["mcq"] == ("prior", 1.0)
    assert found["syn"][1] == 1.0
    [mcq, syn] = attack([*first, *no])
    assert (mcq.chance, mcq.bound, syn.chance) == (0.25, 0.625, 0.5)
    assert mcq.open
    assert syn.open


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


def test_twins_are_right_and_wrong_by_one_word() -> None:
    assert wrong_twin("Yes") == "No"
    assert wrong_twin("A mass of 12 mm") == "A mass of 25 mm"
    assert wrong_twin("a dog") is None
    assert right_twin("a dog") in ("It is a dog.", "The answer is a dog.", "This shows a dog.", "One sees a dog here.")
    assert right_twin("yes") == "yes"


def test_shale_items_are_told_apart_by_type_and_scenario() -> None:
    from hedge_tasks.suites.shale.items import ShaleItem

    def item(task: str, question: str, answer: str, scenario: str = "clean") -> ShaleItem:
        return ShaleItem("1", scenario, task, "faithfulness", "color", "object", "Image/1.png", question, answer)

    found = shale_items(
        [
            item("ynq", "Is it red?", "No", "syn"),
            item("mcq", "What? (A) red (B) blue", "(B) blue"),
            item("ic", "?", "x"),
        ]
    )
    assert [(one.stratum, one.label) for one in found] == [("ynq, syn", "No"), ("mcq, clean", "B")]
    assert found[1].options == {"A": "red", "B": "blue"}


# --- people -----------------------------------------------------------------------------------------------------------


def reviewed(count: int) -> list[ReviewedRow]:
    return [
        ReviewedRow(f"q{n}", f"What of {n}?", f"It is left, {n} mm.", f"It is right, {n} mm.", f"It is left, {n} mm.")
        for n in range(count)
    ]


def labels_of(folder: Path, rater: int, say: Any) -> Path:
    """What a person says who sees only the CSV; `say(code, evidence, answer)` is the label."""
    path = folder / f"labels-{rater}.csv"
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["label"] = say(row["code"], row["evidence"], row["answer"])
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    return path


def careful(code: str, evidence: str, answer: str) -> str:
    return "supported" if answer == evidence else "hallucinated"


def test_planted_errors_are_found_and_controls_are_hidden(tmp_path: Path) -> None:
    rows = [row._replace(wrong=row.truth) if row.id in ("q3", "q7") else row for row in reviewed(40)]
    files = write_queue(tmp_path, "A set", rows, n=40)
    page = (tmp_path / "page-1.html").read_text()
    queue = json.loads(files[0].read_text())
    assert len(queue["items"]) == 80
    assert not any(f'"{row.id}"' in page or f">{row.id}<" in page for row in rows)
    said = read_people(tmp_path, [labels_of(tmp_path, rater, careful) for rater in (1, 2)])
    assert said.not_wrong == {"q3", "q7"}
    assert not said.disputed
    assert set(said.controls.values()) == {(40, 40)}
    assert said.agreement == 1
    assert said.noise.value == 2 / 40
    # Every row was looked at; that both err on the same two is not excluded by 20 controls of which none was missed.
    assert said.noise.interval == (0, 2 / 40)


def test_controls_that_both_miss_say_how_often_both_err() -> None:
    """With no controls known, or with many and none missed, what both say is taken for true; else it is not."""
    alone = label_noise(9, 0, 300, 3000).interval
    known = label_noise(9, 0, 300, 3000, missed=(0, 50000)).interval
    doubted = label_noise(9, 0, 300, 3000, missed=(4, 150)).interval
    assert alone is not None
    assert known == alone
    assert doubted == (0.0, alone[1])


def test_people_who_disagree_widen_the_interval_and_guessers_are_not_heard(tmp_path: Path) -> None:
    write_queue(tmp_path, "A set", reviewed(200), n=40)
    codes = [item["code"] for item in json.loads((tmp_path / "queue.json").read_text())["items"] if item["id"]][:4]
    one = labels_of(tmp_path, 1, careful)
    other = labels_of(tmp_path, 2, lambda code, *texts: "supported" if code in codes else careful(code, *texts))
    said = read_people(tmp_path, [one, other])
    assert len(said.disputed) == 4
    assert said.noise.interval is not None
    assert said.noise.interval[0] == 0
    assert said.noise.interval[1] > 0.2
    with pytest.raises(DataError, match="hidden controls right"):
        read_people(tmp_path, [one, labels_of(tmp_path, 2, lambda *of: "hallucinated")])
    with pytest.raises(DataError, match="no item of this queue"):
        combine_labels(ReviewQueue(hedge_review=1, size=1, items=()), [ExpertSaid("row 1", "r9", "me", "hallucinated")])


def test_the_interval_of_label_noise_is_exact() -> None:
    # By hand, 5 of 10 looked at and none mislabelled: that has a chance of C(6,5)/C(10,5) = 6/252 with 4 of them,
    # which is below .025, and of 21/252 with 3.
    assert label_noise(0, 0, 5, 10).interval == (0, 0.3)
    assert label_noise(5, 0, 5, 10).interval == (0.7, 1)
    assert label_noise(0, 0, 0, 10).value is None


def test_the_interval_of_label_noise_covers() -> None:
    chance = random.Random(0)
    hits = 0
    for _ in range(100):
        drawn = sum(place < 30 for place in chance.sample(range(300), 60))
        interval = label_noise(drawn, 0, 60, 300).interval
        assert interval is not None
        hits += interval[0] <= 0.1 <= interval[1]
    assert hits >= 90


def test_released_sets_are_attacked_by_a_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from hedge_tasks.cli import main

    path = tmp_path / "set.jsonl"
    rows = [{"question": f"Is it {n}?", "answer": "x" * (5 + 9 * (n % 2)), "label": n % 2} for n in range(60)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["data", "attack", str(path), "--json"]) == 1
    floors = json.loads(capsys.readouterr().out)["floors"]
    assert floors["all"]["scores"]["length"][0] == 1
    assert main(["data", "attack", str(path), "--floor", "1"]) == 0
