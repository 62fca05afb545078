"""Med-HallMark's construction on scripted models, against counts made by hand."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from making import asked_of, written
from medhallmark_making import play, rows, vqa_rows, write_images
from openai_server import serve, texts_of
from printed import json_of
from scripted_making import counted, models_by

from hedge_tasks.cli import main
from hedge_tasks.data.local_data import image_reader
from hedge_tasks.errors import DataError
from hedge_tasks.judging.prompt import load_judge_prompt
from hedge_tasks.making.gate.accept import accept
from hedge_tasks.making.medhallmark.command import attacked_items, written_text
from hedge_tasks.making.medhallmark.construction import MedHallMark, gives_away, no_question, stages_of
from hedge_tasks.making.medhallmark.sources import (
    DIMENSIONS,
    WORDING,
    ReportRow,
    clean_report,
    read_reports,
    read_vqa,
    sections,
    why_removed,
)
from hedge_tasks.making.stages import Made, make
from hedge_tasks.perturb.text import QUESTION, load_templates

V = 3
ROLES = {"writer": ["writer"], "verifier": [f"verifier-{k}" for k in range(V)], "answerer": [], "judge": []}


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_images(tmp_path_factory.mktemp("medhallmark") / "images", 14)


def made_by(reply: Any, folder: Path, images: Path, sources: Any, roles: Any = ROLES, **options: Any) -> Made:
    models = models_by(reply, roles)
    prompt = load_judge_prompt("medhallmark")
    build = MedHallMark(image_reader(images), prompt, **options)
    return make(sources, build, stages_of(models, prompt), models, folder, concurrency=2)


def accepted(made: Made) -> Made:
    return accept(made, written_text, attacked_items, frames=False, bound=1).made


# --- the construction -------------------------------------------------------------------------------------------------


def test_every_stage_has_the_counts_of_a_calculation_by_hand(tmp_path: Path, images: Path) -> None:
    """Questions 0 to 12; the dimension of 12 is not said. By n % 4 a question has 3, 1, 1 or no rewrites (see
    `rewrites_of`), by n % 3 it has 2, 1 or no counterfactual ones (`pairs_of`), which are rewritten by n % 4 as well.
    """
    made = made_by(play, tmp_path, images, vqa_rows(13))
    rewrites = [(3, 1, 1, 0)[n % 4] for n in range(13)]
    pairs = [(2, 1, 0)[n % 3] for n in range(13)]
    unreadable = sum(n % 4 == 3 for n in range(13)) + sum(pairs[n] for n in range(13) if n % 4 == 3)
    seconds = sum(pairs[n] * rewrites[n] for n in range(13))
    by_kind = [sum(1 + pairs[n] for n in range(13) if n % 4 == kind) for kind in range(4)]  # questions put to rewriting
    assert (sum(rewrites), sum(pairs), seconds, unreadable, by_kind) == (18, 14, 21, 6, [9, 6, 6, 6])
    assert made.steps == {
        "rewrite of conventional": sum(rewrites),
        "rewrite of counterfactual": seconds,
        "rewrite refused: echo": by_kind[1],
        "rewrite refused: rhetorical": by_kind[1],
        "rewrite refused: refusal": by_kind[2],
        "rewrite refused: another question": by_kind[2],
        "rewrite: unreadable": unreadable,
        "counterfactual": sum(pairs),
        "counterfactual refused: premise supported": 4,  # n = 1, 4, 7, 10
        "counterfactual refused: echo": 4,  # n = 2, 5, 8, 11: the prompt's own example
        "counterfactual refused: marker": 4,
    }
    assert all(right == n > 0 for right, n in made.controls.values())
    assert len(made.controls) == 4 * V
    found = accepted(made)
    parts = Counter(entry.part for entry in found.rows)
    right = 13 + sum(rewrites)
    assert parts == {"conventional": right, "confidence": right, "counterfactual": sum(pairs) + seconds}
    assert len({entry.item.id for entry in found.rows}) == len(found.rows)
    # Confidence-weakening: the same questions and references behind one of the ten prefixes.
    by_part = {part: [entry.item for entry in found.rows if entry.part == part] for part in parts}
    weakened = Counter((item.question, item.reference) for item in by_part["confidence"])
    assert weakened == Counter((item.question, item.reference) for item in by_part["conventional"])
    assert {item.prefix for item in by_part["confidence"]} <= set(load_templates("confidence_weakening"))
    assert all(item.prefix.count(QUESTION) == 1 for item in by_part["confidence"])
    assert all("incorrect" in item.reference for item in by_part["counterfactual"])


def test_what_a_model_gets_wrong_goes_no_further_and_has_a_level(tmp_path: Path, images: Path) -> None:
    roles = {**ROLES, "answerer": ["answerer"], "judge": ["judge"]}
    made = made_by(play, tmp_path, images, vqa_rows(12), roles)
    # By n % 4: right, wrong, beside the point, no answer.
    assert {step: n for step, n in made.steps.items() if step.startswith(("answer ", "no answer"))} == {
        "answer supported": 3,
        "answer contradicted": 3,
        "answer undecided": 3,
        "no answer": 3,
    }
    assert counted(made.account, "requests")["level"] == 3
    answered = {entry.item.id: (entry.item.answer, entry.item.category) for entry in made.rows if entry.item.answer}
    assert answered == {
        **{f"conventional-q-{n}": (f"agreed about organ {n}", "correct") for n in (0, 4, 8)},
        **{f"conventional-q-{n}": (f"Organ {n} lies right.", "attribute") for n in (1, 5, 9)},
    }
    weakened = [entry.item.id for entry in made.rows if entry.part == "confidence" and not entry.written]
    assert weakened == [f"confidence-q-{n}" for n in (0, 4, 8)]


# --- adversaries ------------------------------------------------------------------------------------------------------


def test_a_judge_of_levels_that_does_not_know_the_truth_has_no_say(tmp_path: Path, images: Path) -> None:
    def one_level(body: dict[str, Any]) -> str:
        return '{"reason": "", "category": "critical"}' if body["model"] == "judge" else play(body)

    made = made_by(one_level, tmp_path, images, vqa_rows(12), {**ROLES, "answerer": ["answerer"], "judge": ["judge"]})
    assert {entry.item.category for entry in made.rows if entry.item.answer} == {"correct", None}
    with pytest.raises(DataError, match=r"judge takes 3 of 3 controls \(truth in other words\)"):
        accepted(made)


def test_one_text_for_all_questions_is_refused_over_the_set(tmp_path: Path, images: Path) -> None:
    def reply(body: dict[str, Any]) -> str:
        text = "\n".join(texts_of(body))
        if "3 new question" in text:
            return json.dumps({"questions": ["Doctor, where does this organ lie: left?"] * 3})
        if "other_question" in text:  # goes by the side alone
            fields = asked_of(body)
            return json.dumps({"same": ("left" in fields["question"]) == ("left" in fields["other_question"])})
        return "none" if "misleading" in text else play(body)

    made = made_by(reply, tmp_path, images, vqa_rows(12))
    assert made.steps["rewrite of conventional"] == 12
    assert made.steps["rewrite refused: written twice"] == 24
    found = accepted(made)
    assert found.rejected == {"stock phrase": 24}
    assert Counter(entry.part for entry in found.rows) == {"conventional": 12, "confidence": 12}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("What does the scan show on the left?", None),
        ("Describe the area of the body featured in the visual representation.", None),
        ("Is the lesion on the left?", "echo"),
        ("The lesion is on the left, isn't it?", "rhetorical"),
        ("The lesion is on the left.", "no question"),
    ],
)
def test_what_is_no_question_is_refused(text: str, why: str | None) -> None:
    assert no_question(text, "Is the lesion on the left?", "") == why


def test_a_question_that_says_its_answer_gives_it_away() -> None:
    assert gives_away("Is the bladder at the bottom?", "What is at the bottom?", "Bladder.")
    assert not gives_away("Which organ lies lowest?", "What is at the bottom?", "Bladder.")
    assert not gives_away("Is it so, yes?", "Is it?", "Yes")


# --- sources ----------------------------------------------------------------------------------------------------------


def test_types_of_vqa_rad_and_slake_are_dimensions(tmp_path: Path) -> None:
    types = ["PRES, POS", "MODALITY", "Position", "Color", "ABN", "COUNT", "Plane", None]
    lines = [{"image": "a.png", "question": "q?", "answer": "a", "question_type": kind} for kind in types]
    path = written(tmp_path / "vqa.jsonl", *lines)
    found = [row.dimension for row in read_vqa([path]).rows]
    assert found == ["pathology", "modality", "location", "other", "pathology", "other", "plane", None]
    assert len(DIMENSIONS) == 7  # the paper counts six
    written(path, {"image": "a.png", "question": "q?"})
    with pytest.raises(DataError, match=r"vqa\.jsonl:1: unknown answer column"):
        read_vqa([path])
    written(path, {**lines[0], "image": {"bytes": "iVBO", "path": "a.png"}})
    with pytest.raises(DataError, match=r"vqa\.jsonl:1: image: expected a text"):
        read_vqa([path])


@pytest.mark.parametrize(
    ("sentence", "why"),
    [
        ("Heart size is normal.", None),
        ("There is a 12 mm nodule in the right upper lobe.", None),
        ("Compared to the prior study, the effusion is larger.", "compares with the past"),
        ("The cardiac silhouette is unchanged.", "compares with the past"),
        ("Findings were discussed with Dr. Smith at 3:45 pm.", "names a person or a place"),
        ("This is a 65-year-old man.", "tells of the patient or the visit"),
        ("Tube seen at ___ cm.", "has a mask, a date or a time"),
        ("Study of 03/04/2012.", "has a mask, a date or a time"),
    ],
)
def test_sentences_that_one_image_cannot_bear_out_are_removed(sentence: str, why: str | None) -> None:
    assert why_removed(sentence) == why


def test_a_report_is_its_findings_and_impression_cleaned(tmp_path: Path) -> None:
    text = (
        "EXAMINATION: CHEST. INDICATION: ___ year old woman. COMPARISON: None. FINDINGS: Lung volumes are low. "
        "The heart is unchanged. There is no effusion. IMPRESSION: 1. Mild edema. 2. Discussed with Dr. Jones."
    )
    assert sections(text) == {
        "findings": "Lung volumes are low. The heart is unchanged. There is no effusion.",
        "impression": "1. Mild edema. 2. Discussed with Dr. Jones.",
    }
    row = ReportRow("r", "i", **sections(text))
    found, reasons = clean_report(row)
    assert found == "Lung volumes are low. There is no effusion. The impression suggests that Mild edema."
    assert reasons == ["compares with the past", "names a person or a place"]
    assert clean_report(ReportRow("r", "i", "No change.", "")) == ("", ["compares with the past"])
    assert clean_report(ReportRow("r", "i", "", "Clear lungs."))[0] == "Clear lungs."
    assert clean_report(ReportRow("r", "i", **sections("Clear lungs. No effusion.")))[0] == "Clear lungs. No effusion."
    second = {"image": "b.png", "findings": "Clear.", "impression": None}
    path = written(tmp_path / "reports.jsonl", {"image": "a.png", "report": text}, second)
    assert read_reports([path]).rows == [
        ReportRow("reports-1", "a.png", **sections(text)),
        ReportRow("reports-2", "b.png", "Clear.", ""),
    ]


# --- the command ------------------------------------------------------------------------------------------------------


def command(folder: Path, images: Path, count: int) -> list[str]:
    """The making, without a model, of sources that are written into a folder."""
    extra = [{"image": "img13.png", "question": "Which colour?", "answer": "red", "dimension": "color"}]
    extra.append({"image": "img1.png", "question": None, "answer": "Yes.", "dimension": "organ"})
    extra.append({"image": "gone.png", "question": "Is organ 1 left?", "answer": "Yes.", "dimension": "organ"})
    vqa = written(folder / "vqa.jsonl", *rows(count), *extra)
    lines = [
        {"image": "img1.png", "findings": "The heart is normal. The effusion is unchanged.", "impression": "No edema."},
        {"image": "img2.png", "findings": "Unchanged.", "impression": ""},
    ]
    reports = written(folder / "reports.jsonl", *lines)
    sources = [str(vqa), "--reports", str(reports), "--images", str(images)]
    return ["make", "medhallmark", *sources, "--out", str(folder / "out")]


def writing(url: str) -> list[str]:
    """Options of the models that write and verify."""
    verifiers = [part for n in range(V) for part in ("--verifier", f"model=verifier-{n},url={url}")]
    return ["--writer", f"model=writer,url={url}", *verifiers, "--floor", "1"]


@pytest.mark.slow
def test_the_command_writes_a_set_that_the_tasks_read(
    tmp_path: Path, images: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from datasets import Dataset

    out, part = tmp_path / "out", "ydk122024__Med-HallMark/irg/test.parquet"
    with serve(play) as url:
        call = [*command(tmp_path, images, 13), *writing(url), "--json"]
        facts = json_of(capsys, call)
        before = (out / part).read_bytes()
        again = json_of(capsys, call)
        labels = tmp_path / "labels.csv"  # somebody finds a premise of question 0 right
        labels.write_text("id,label\ncounterfactual-vqa-1-1,0\ncounterfactual-vqa-1-2,1\n")
        looked_at = json_of(capsys, [*call, "--labels", str(labels)])
    assert again["asked"]["requests"] == 0
    assert facts["rejected"] == {
        "about none of the dimensions": 1,
        "nothing is left of the report": 1,
        "image missing": 1,
        "an empty cell in the source": 1,
    }
    assert (facts["records"], facts["accepted"]) == (13 + 2 + 2 + 1, 14)
    assert looked_at["rejected"]["not wrong, people say"] == 1 + 3  # with what it was rewritten to
    assert len(facts["files"]) == 4
    assert (out / part).read_bytes() == before
    [report] = Dataset.from_parquet(str(out / part), keep_in_memory=True)
    assert report["reference"] == "The heart is normal. The impression suggests that No edema."
    assert report["question"] in WORDING["instructions"]
    assert report["image"].size == (40, 41)
    card = (out / "README.md").read_text()
    assert "yes/no, conventional" in card
    assert "tells that its premise is false" in card
    assert url not in card + (out / "report.json").read_text()
    assert (out / "review.html").read_text().count("<article") == 14  # every premise


def test_a_judge_needs_an_answerer(tmp_path: Path, images: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command(tmp_path, images, 1), *writing("http://localhost:1/v1"), "--judge", "model=a"]) == 2
    assert "--judge goes with --answerer" in capsys.readouterr().err


def test_without_a_model_questions_prefixes_and_reports_are_made(
    tmp_path: Path, images: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = json_of(capsys, [*command(tmp_path, images, 4), "--json"])
    assert len(facts["files"]) == 3
    assert facts["asked"]["requests"] == 0
