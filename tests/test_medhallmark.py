"""Med-HallMark: the released files, the data set built of them, common wording."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from requested import png

from hedge_tasks.data.splits import load_split
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.perturb.text import load_templates
from hedge_tasks.suites.importing import ImportChoice
from hedge_tasks.suites.medhallmark import wording
from hedge_tasks.suites.medhallmark.building import DATASET, medhallmark
from hedge_tasks.suites.medhallmark.released import PARTS, read_part, split_prefix
from hedge_tasks.suites.medhallmark.task import process_docs

PREFIX = load_templates("confidence_weakening")[8]


def judged(number: int, question: str, answer: str, reference: str | None, label: str, image: str) -> dict[str, Any]:
    truth = "" if reference is None else f"\nground-truth: {reference}"
    prompt = (
        f"Now you are ... Here is the question received by Med-VLM:\n\nquestion: {question}\nMed-VLM answer: {answer}"
    )
    turns = [prompt + f"{truth}\n\nPlease judge ...", label]
    sides = zip(("human", "gpt"), turns, strict=True)
    return {"id": number, "conversations": [{"from": who, "value": text} for who, text in sides], "image": image}


CONVENTIONAL = [
    judged(1, "Is it CT?", "No.", "yes", "Minor Hallucinations", "rad/synpic1.jpg"),
    judged(2, "Which organ?", "The bladder.", "intestines", "Correct Statements", "rad/synpic2.jpg"),
    judged(4, "Is a tube seen?", "Yes.", None, "Catastrophic Hallucinations", "rad/synpic1.jpg"),
    judged(5, "Which side?", "Left.\nOf course.", "right", "Attribute Hallucinations", "rad/synpic3.jpg"),
]
COUNTERFACTUAL = [
    judged(1, "Given the MRI, how?", "So.", "No MRI.", "Prompt-induced Hallucinations", "slake/x1/source.jpg")
]
CONFIDENCE = [
    {
        "conversations": [{"value": PREFIX.replace("{question}", f"Is it {i}?")}, {"value": f"It is {i}."}],
        "image": image,
    }
    for i, image in enumerate(["synpic1.jpg", "synpic2.jpg", "synpic2.jpg"])
]
IRG = [
    {
        "question": "Describe it.",
        "Med-VLM answer": "Clear.",
        "ground-truth": "The lungs are clear.",
        "image": f"m{i}.jpg",
    }
    for i in range(2)
]


# --- the released files -----------------------------------------------------------------------------------------------


@given(st.integers(0, 9), st.text(min_size=1).map(str.strip).filter(bool))
def test_a_prefix_is_taken_off_as_it_was_put_on(number: int, question: str) -> None:
    template = load_templates("confidence_weakening")[number]
    assert split_prefix(template.replace("{question}", question)) == (template, question)
    assert split_prefix("Is this " + question) == ("", "Is this " + question)


def released(root: Path) -> tuple[Path, Path]:
    """Write the released files and the images; returns their folders."""
    files, pictures = root / "json", root / "pictures"
    files.mkdir()
    (pictures / "x1").mkdir(parents=True)
    parts = {"conventional": CONVENTIONAL, "counterfactual": COUNTERFACTUAL, "irg": IRG[:1]}
    for name, rows in {**parts, "confidence_weakening": CONFIDENCE}.items():
        (files / f"{name}.json").write_text(json.dumps(rows), "utf-8")
    for i, name in enumerate(("synpic1", "synpic2", "synpic3", "m0", "x1/source")):
        (pictures / f"{name}.png").write_bytes(png(i, (24, 20)))
    return files, pictures


def test_released_files_become_questions_and_what_people_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, pictures = released(tmp_path)
    facts, code = medhallmark(files, ImportChoice(pictures, tmp_path / "hub"))
    assert (code, [facts[part]["items"] for part in PARTS]) == (0, [4, 3, 1, 1])
    judged = [json.loads(line) for line in (tmp_path / "hub" / "judged.jsonl").read_text("utf-8").splitlines()]
    assert [row["label"] for row in judged] == ["minor", "correct", "catastrophic", "attribute", "prompt_induced"]
    assert judged[3]["answer"] == "Left.\nOf course."
    monkeypatch.setenv("HEDGE_DATA_DIR", str(tmp_path / "hub"))
    prefixed = load_split(DATASET, "confidence", "test")
    both = process_docs(prefixed, prefixes="both")
    assert (both["pair"][:2], both["weakened"][:]) == (["confidence-1"] * 2, [False, True] * 3)
    assert both["asked"][:2] == ["Is it 0?", PREFIX.replace("{question}", "Is it 0?")]
    assert process_docs(prefixed)["id"][:] == ["confidence-1", "confidence-2", "confidence-3"]
    conventional = load_split(DATASET, "conventional", "test")
    assert process_docs(conventional)["pair"][:] == ["conventional-1", "conventional-2", "conventional-5"]
    with pytest.raises(ConfigError, match="value of 'prefixes' 'bot', did you mean 'both'"):
        process_docs(prefixed, prefixes="bot")
    with pytest.raises(DataError, match="no item has a reference"):
        process_docs(conventional.select([2]))
    (pictures / "m0.png").unlink()
    assert medhallmark(files, ImportChoice(pictures))[1] == 1
    for damaged in ([{**IRG[0], "question": " "}], [{**CONVENTIONAL[0], "conversations": []}], [], {}):
        (files / "irg.json").write_text(json.dumps(damaged), "utf-8")
        with pytest.raises(DataError, match=r"irg\.json"):
            read_part(files, "irg")
    (files / "Irg..json").write_text("[]", "utf-8")
    for folder, words in ((files, "found 2"), (pictures, "found 0"), (files / "irg.json", "is not a folder")):
        with pytest.raises(DataError, match=words):
            read_part(folder, "irg")


# --- wording ----------------------------------------------------------------------------------------------------------


def test_rouge_equals_its_definition() -> None:
    answer, reference = "The left lung is clear today.", "the LEFT lung, clear"
    # Unigrams: 4 of 6 and 4 of 4; bigrams "the left", "left lung": 2 of 5 and 2 of 3.
    parts = ("precision", "recall", "f1")
    assert [wording.rouge("rouge1", p, answer, reference) for p in parts] == pytest.approx([4 / 6, 1.0, 0.8])
    assert [wording.rouge("rouge2", p, answer, reference) for p in parts] == pytest.approx([0.4, 2 / 3, 0.5])
    assert [wording.rouge("rougeL", p, answer, reference) for p in parts] == pytest.approx([4 / 6, 1.0, 0.8])
    assert wording.rouge("rouge1", "f1", "", reference) == 0.0
