"""Med-HallMark's construction on scripted models, against counts made by hand."""

from __future__ import annotations

import csv
import json
import random
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from making import asked_of
from medhallmark_making import VERIFIERS, as_json, make, play, rows, slowly, vqa_rows, write_images
from once import python
from openai_server import serve, texts_of

from hedge_tasks.cli import main
from hedge_tasks.errors import DataError
from hedge_tasks.judging.prompt import load_judge_prompt
from hedge_tasks.llm.models import ServedModel
from hedge_tasks.making.medhallmark.checks import gives_away, no_question, no_response
from hedge_tasks.making.medhallmark.output import (
    PassedSet,
    attacks_on,
    attacks_on_premises,
    passing_items,
    reviewed_rows,
    warnings_of_set,
)
from hedge_tasks.making.medhallmark.pipeline import CONVENTIONAL, COUNTERFACTUAL, MadeItem, full_question
from hedge_tasks.making.medhallmark.reports import clean_report, even_sample, why_removed
from hedge_tasks.making.medhallmark.sources import (
    DIMENSIONS,
    WORDING,
    ReportRow,
    VqaRow,
    read_reports,
    read_vqa,
    sections,
)
from hedge_tasks.perturb.text import QUESTION, load_templates
from hedge_tasks.suites.medhallmark.released import MedHallMarkItem, split_prefix

V = VERIFIERS


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_images(tmp_path_factory.mktemp("medhallmark") / "images", 14)


# --- the construction -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_every_stage_has_the_counts_of_a_calculation_by_hand(tmp_path: Path, images: Path) -> None:
    """Questions 0 to 12; the dimension of 12 is not said. By n % 4 a question has 3, 1, 1 or no rewrites (see
    `rewrites_of`), by n % 3 it has 2, 1 or no counterfactual ones (`pairs_of`), which are rewritten by n % 4 as well.
    """
    with serve(play) as url:
        made = make(url, tmp_path, images, 13)
    rewrites = [(3, 1, 1, 0)[n % 4] for n in range(13)]
    pairs = [(2, 1, 0)[n % 3] for n in range(13)]
    unreadable = sum(n % 4 == 3 for n in range(13)) + sum(pairs[n] for n in range(13) if n % 4 == 3)
    calls = 13 + sum(pairs)
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
        "rewrites unreadable": unreadable,
        "counterfactual": sum(pairs),
        "counterfactual refused: premise supported": 4,  # n = 1, 4, 7, 10
        "counterfactual refused: echo": 4,  # n = 2, 5, 8, 11: the prompt's own example
        "counterfactual refused: marker": 4,
        **{f"changed question told by verifier-{k}": sum(rewrites) + seconds for k in range(V)},
        **{f"truth supported by verifier-{k}": 9 for k in range(V)},
    }
    compared = sum(3 * (n % 4 == 0) + (n % 4 == 1) + 2 * (n % 4 == 2) for n in range(13)) + sum(
        pairs[n] * (0, 1, 2, 0)[n % 4] + 3 * pairs[n] * (n % 4 == 0) for n in range(13)
    )
    assert made.account.of("requests") == {
        "dimension": 1,
        "rewrite": calls - unreadable + 3 * unreadable,  # three tries each
        "same": V * compared,
        "same_control": V * (calls - unreadable),  # once a question
        "counterfactual": 13,
        # Two pairs of premise and response; of n % 3 == 1 the second premise is all that is read.
        "verify": V * (4 * 5 + 3 * 4),
        "control": V * 9,  # a truth once a verifier
    }
    assert made.account.of("cached") == {
        "same_control": V * (sum(rewrites) + seconds - (calls - unreadable)),
        "control": V * (sum(pairs) - 9),
    }
    found = passing_items(made)
    assert found.refused == {}
    parts = Counter(one.part for one in found.items)
    right = 13 + sum(rewrites)
    assert parts == {"conventional": right, "confidence": right, "counterfactual": sum(pairs) + seconds}
    assert len({one.item.id for one in found.items}) == len(found.items)
    # Confidence-weakening: the same questions and references behind one of the ten prefixes.
    by_part = {part: [one.item for one in found.items if one.part == part] for part in parts}
    weakened = Counter((item.question, item.reference) for item in by_part["confidence"])
    assert weakened == Counter((item.question, item.reference) for item in by_part["conventional"])
    assert all(split_prefix(full_question(item)) == (item.prefix, item.question) for item in by_part["confidence"])
    assert {item.prefix for item in by_part["confidence"]} <= set(load_templates("confidence_weakening"))
    assert all(item.prefix.count(QUESTION) == 1 for item in by_part["confidence"])
    assert all("incorrect" in item.reference for item in by_part["counterfactual"])
    assert len(reviewed_rows(found)) == sum(pairs)  # premises, without their rewrites


@pytest.mark.slow
def test_a_twin_has_the_form_of_a_false_premise_and_a_true_one(tmp_path: Path, images: Path) -> None:
    with serve(play) as url:
        made = make(url, tmp_path, images, 12, rewrites=False, twins=True)
    # Counterfactual ones: two of 0, 3, 6, 9, one of 1, 4, 7, 10; the twins of 0 and 3 are refused.
    assert {step: n for step, n in made.steps.items() if "twin" in step} == {
        "twin with a true premise": 2 * 2 + 4,
        "twin refused: premise not supported": 2,
        "twin refused: response not supported": 2,
    }
    assert made.account.of("requests")["twin"] == 12
    found = passing_items(made)
    twins = [one for one in found.items if one.twin]
    assert {one.item.id for one in twins} == {
        *(f"counterfactual-q-{n}-{k}-true" for n in (6, 9) for k in (1, 2)),
        *(f"counterfactual-q-{n}-1-true" for n in (1, 4, 7, 10)),
    }
    assert all("left" in one.item.question for one in twins)
    assert len(reviewed_rows(found)) == 12  # false premises alone
    [one] = attacks_on_premises(found)
    assert one.n == 12 + 8  # true and false ones of one form, without conventional questions


def test_another_dimension_is_left_out_and_none_is_asked_for(tmp_path: Path, images: Path) -> None:
    from hedge_tasks.data.local_data import ImageFolder
    from hedge_tasks.llm.log import ReplyLog
    from hedge_tasks.making.medhallmark.pipeline import MedHallMark
    from hedge_tasks.making.production import produce

    sources = [VqaRow("a", "img0.png", "Which colour?", "Red.", "other"), VqaRow("b", "img1.png", "Is it CT?", "No.")]
    with ReplyLog(tmp_path) as log:
        made = produce(sources, MedHallMark(ImageFolder(images).read), log)
    assert made.rejected == {"about none of the dimensions": 1}
    assert [one.part for one in passing_items(made).items] == ["conventional", "confidence"]
    assert not made.account.stages  # no model, nothing asked


@pytest.mark.slow
def test_what_a_model_gets_wrong_goes_no_further_and_has_a_level(tmp_path: Path, images: Path) -> None:
    with serve(play) as url:
        models = {name: ServedModel(name, url, max_retries=0) for name in ("answerer", "judge")}
        prompt = load_judge_prompt("medhallmark")
        made = make(url, tmp_path, images, 12, **models, judge_prompt=prompt, rewrites=False, counterfactuals=False)
    # By n % 4: right, wrong, beside the point, no answer.
    assert {step: n for step, n in made.steps.items() if "answer" in step} == {
        "answer supported": 3,
        "answer contradicted": 3,
        "answer undecided": 3,
        "no answer": 3,
    }
    assert made.account.of("requests")["answer"] == 12
    assert made.account.of("requests")["level"] == 3
    items = passing_items(made).items
    answered = {one.item.id: (one.item.answer, one.item.category) for one in items if one.item.answer}
    assert answered == {
        **{f"conventional-q-{n}": (f"agreed about organ {n}", "correct") for n in (0, 4, 8)},
        **{f"conventional-q-{n}": (f"Organ {n} lies right.", "attribute") for n in (1, 5, 9)},
    }
    assert [one.item.id for one in items if one.part == "confidence"] == [f"confidence-q-{n}" for n in (0, 4, 8)]
    assert {row.wrong for row in reviewed_rows(passing_items(made))} == {f"Organ {n} lies right." for n in (1, 5, 9)}


@pytest.mark.slow
def test_killed_again_and_again_it_ends_where_it_would_have(tmp_path: Path, images: Path) -> None:
    program = "import sys, medhallmark_making as p; p.run_killed(*sys.argv[1:4], 4, 6)"
    with serve(slowly) as url:
        arguments = [python(), "-c", program, url, str(tmp_path / "killed"), str(images)]
        ran = subprocess.run(arguments, cwd=Path(__file__).parent, capture_output=True, text=True, timeout=400)
        assert ran.returncode == 0, ran.stderr
        whole = make(url, tmp_path / "whole", images, 4)
    assert int(ran.stdout) > 0
    assert json.loads((tmp_path / "killed" / "rows.json").read_text()) == as_json(whole)


# --- adversaries ------------------------------------------------------------------------------------------------------


def gullible(body: dict[str, Any]) -> str:
    """Verifiers that find every question the same."""
    return '{"same": true}' if '"other_question"' in "\n".join(texts_of(body)) else play(body)


@pytest.mark.slow
def test_verifiers_that_take_everything_for_the_same_end_the_making(tmp_path: Path, images: Path) -> None:
    with serve(gullible) as url:
        made = make(url, tmp_path, images, 13)
    with pytest.raises(DataError, match=r"takes (\d+) of \1 questions with a word turned into its contrary"):
        passing_items(made)


@pytest.mark.slow
def test_one_text_for_all_questions_is_refused_over_the_set(tmp_path: Path, images: Path) -> None:
    def reply(body: dict[str, Any]) -> str:
        text = "\n".join(texts_of(body))
        if "3 new question" in text:
            return json.dumps({"questions": ["Doctor, where does this organ lie: left?"] * 3})
        if "other_question" in text:  # goes by the side alone
            fields = asked_of(body)
            return json.dumps({"same": ("left" in fields["question"]) == ("left" in fields["other_question"])})
        return play(body)

    with serve(reply) as url:
        found = passing_items(made := make(url, tmp_path, images, 12, counterfactuals=False))
    assert made.steps["rewrite of conventional"] == 12
    assert made.steps["rewrite refused: said twice"] == 24
    assert found.refused == {"conventional: stock phrase": 12, "confidence: stock phrase": 12}
    assert Counter(one.part for one in found.items) == {"conventional": 12, "confidence": 12}


@pytest.mark.slow
def test_questions_of_one_wording_about_many_pictures_are_rewritten_alike(tmp_path: Path, images: Path) -> None:
    from medhallmark_making import making

    from hedge_tasks.llm.log import ReplyLog
    from hedge_tasks.making.production import produce

    same = [VqaRow(f"q-{n}", f"img{n}.png", "Is organ 1 on the left side?", "Yes, left.", "organ") for n in range(5)]
    with serve(play) as url, ReplyLog(tmp_path) as log:
        made = produce(same, making(url, images, counterfactuals=False), log)
    found = passing_items(made)
    assert found.refused == {}
    assert Counter(one.item.question for one in found.items if one.part == "conventional").most_common()[-1][1] == 5


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("What does the scan show on the left?", None),
        ("Describe the area of the body featured in the visual representation.", None),
        ("Is the lesion on the left?", "echo"),
        ("is the LESION on the left", "echo"),
        ("I'm sorry, but I can't help with that.", "refusal"),
        ("As an AI language model, I can rewrite it.", "refusal"),
        ("[HALLUCINATED] Is it left?", "marker"),
        ("The lesion is on the left, isn't it?", "rhetorical"),
        ("The lesion is on the left, right?", "rhetorical"),
        ("The lesion is on the left.", "no question"),
        ("...", "empty"),
    ],
)
def test_what_is_no_question_is_refused(text: str, why: str | None) -> None:
    assert no_question(text, "Is the lesion on the left?", "") == why


def test_the_papers_own_questions_and_responses_pass(shared_data: Path) -> None:
    paper = shared_data.parent / "papers" / "medhallmark.txt"
    if not paper.is_file():
        pytest.skip("the paper is not here")
    text = paper.read_text("utf-8")
    questions = re.findall(r'Q: "(.*?)"', text)
    assert len(questions) == 24
    assert [no_question(each, "another one", "") for each in questions] == [None] * 24
    responses = re.findall(r'Ideal Response:\n "(.*?)"', text)
    assert len(responses) == 2
    assert [no_response(each, "Given that, what?", "") for each in responses] == [None] * 2
    plain = " ".join(text.split())
    for prompt, figure in (("counterfactual", "Figure 5"), ("rewrite", "Figure 8")):
        file = Path(__file__).parents[1] / "hedge_tasks/making/medhallmark/prompts" / f"{prompt}.json"
        lines = [line for part in json.loads(file.read_text())["turns"] for line in part["text"]]
        theirs = [line for line in lines if line.strip() and "{" not in line and "JSON" not in line]
        assert [line for line in theirs if " ".join(line.split()) not in plain] == [], figure
    assert all(instruction in plain for instruction in WORDING["instructions"])


def test_a_question_that_says_its_answer_gives_it_away() -> None:
    assert gives_away("Is the bladder at the bottom?", "What is at the bottom?", "Bladder.")
    assert not gives_away("Which organ lies lowest?", "What is at the bottom?", "Bladder.")
    assert not gives_away("Is it so, yes?", "Is it?", "Yes")


def test_yes_or_no_by_heart_is_a_floor(tmp_path: Path) -> None:
    from hedge_tasks.llm.log import ReplyLog
    from hedge_tasks.making.medhallmark.pipeline import MedHallMark
    from hedge_tasks.making.production import produce

    always = [VqaRow(f"q-{n}", f"img{n}.png", f"Is it {n}?", "Yes, it is.", "organ") for n in range(40)]
    with ReplyLog(tmp_path) as log:
        found = passing_items(produce(always, MedHallMark(lambda name: None), log))
    [one, other] = attacks_on(found)
    assert {one.stratum, other.stratum} == {"yes/no, conventional", "yes/no, confidence"}
    assert one.scores["prior"].value == 1
    assert one.open
    assert not attacks_on_premises(found)  # there is no counterfactual question


def test_the_wording_of_a_false_premise_is_said_to_tell_it() -> None:
    items = []
    for n in range(40):
        for part, question in ((CONVENTIONAL, f"Is organ {n} left?"), (COUNTERFACTUAL, f"Given that {n} is, why?")):
            items.append(MadeItem(part, MedHallMarkItem(f"{part}-{n}", question, "It is.", f"img{n}.png")))
    [one] = attacks_on_premises(PassedSet(items, {}))
    assert one.floor is not None
    assert one.floor[1].value == 1
    [warning] = warnings_of_set(PassedSet(items, {}))
    assert "tells counterfactual questions from others" in warning


# --- sources ----------------------------------------------------------------------------------------------------------


def test_types_of_vqa_rad_and_slake_are_dimensions(tmp_path: Path) -> None:
    path = tmp_path / "vqa.jsonl"
    types = ["PRES, POS", "MODALITY", "Position", "Color", "ABN", "COUNT", "Plane", None]
    lines = [{"image": "a.png", "question": "q?", "answer": "a", "question_type": kind} for kind in types]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = [row.dimension for row in read_vqa(path).rows]
    assert found == ["pathology", "modality", "location", "other", "pathology", "other", "plane", None]
    assert len(DIMENSIONS) == 7  # the paper counts six
    path.write_text(json.dumps({"image": "a.png", "question": "q?"}) + "\n")
    with pytest.raises(DataError, match=r"vqa\.jsonl:1: no column answer or"):
        read_vqa(path)


@pytest.mark.parametrize(
    ("sentence", "why"),
    [
        ("Heart size is normal.", None),
        ("There is no pleural effusion or pneumothorax.", None),
        ("Lung volumes are low.", None),
        ("There is a 12 mm nodule in the right upper lobe.", None),
        ("Compared to the prior study, the effusion is larger.", "compares with the past"),
        ("The cardiac silhouette is unchanged.", "compares with the past"),
        ("Interval removal of the tube.", "compares with the past"),
        ("Findings were discussed with Dr. Smith at 3:45 pm.", "names a person or a place"),
        ("Notified by telephone.", "names a person or a place"),
        ("This is a 65-year-old man.", "tells of the patient or the visit"),
        ("Patient is a 43 year old.", "tells of the patient or the visit"),
        ("Tube seen at ___ cm.", "has a mask, a date or a time"),
        ("XXXX opacity in the left base.", "has a mask, a date or a time"),
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
    path = tmp_path / "reports.jsonl"
    path.write_text(
        json.dumps({"image": "a.png", "report": text, "patient": 7, "year": 2012})
        + "\n"
        + json.dumps({"image": "b.png", "findings": "Clear.", "impression": None})
    )
    assert read_reports(path).rows == [
        ReportRow("reports-1", "a.png", **sections(text), patient="7", year="2012"),
        ReportRow("reports-2", "b.png", "Clear.", ""),
    ]


@pytest.mark.parametrize("n", [0, 1, 7, 20, 45, 60, 99])
def test_reports_are_sampled_evenly_over_years_and_patients(n: int) -> None:
    chance = random.Random(1)
    all_rows = [
        ReportRow(
            f"r{k}", "i", "x", "", str(chance.randint(1, 9)), str(chance.choice([2011, 2012, 2012, 2013, 2013, 2013]))
        )
        for k in range(60)
    ]
    found = even_sample(all_rows, n, seed=3)
    assert len(found) == min(n, 60)
    assert [row.id for row in found] == [row.id for row in all_rows if row in found]
    supply, taken = (Counter(row.year for row in each) for each in (all_rows, found))
    for year in supply:  # a year that has more left than is taken is at most one behind the others
        if taken[year] < supply[year]:
            assert taken[year] >= max(taken.values(), default=0) - 1
    for year in supply:
        patients = Counter(row.patient for row in all_rows if row.year == year)
        chosen = Counter(row.patient for row in found if row.year == year)
        for patient in patients:
            if chosen[patient] < patients[patient]:
                assert chosen[patient] >= max(chosen.values(), default=0) - 1
    shuffled = random.Random(2).sample(all_rows, 60)
    assert {row.id for row in even_sample(shuffled, n, seed=3)} == {row.id for row in found}


# --- the command ------------------------------------------------------------------------------------------------------


def write_sources(folder: Path, count: int) -> tuple[Path, Path]:
    vqa, reports = folder / "vqa.jsonl", folder / "reports.jsonl"
    extra = [{"image": "img13.png", "question": "Which colour?", "answer": "red", "dimension": "color"}]
    extra.append({"image": "img1.png", "question": None, "answer": "Yes.", "dimension": "organ"})
    extra.append({"image": "gone.png", "question": "Is organ 1 left?", "answer": "Yes.", "dimension": "organ"})
    vqa.write_text("".join(json.dumps(row) + "\n" for row in [*rows(count), *extra]))
    lines = [
        {"image": "img1.png", "findings": "The heart is normal. The effusion is unchanged.", "impression": "No edema."},
        {"image": "img2.png", "findings": "Unchanged.", "impression": ""},
    ]
    reports.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return vqa, reports


def command(url: str, folder: Path, images: Path, out: Path, *more: str) -> list[str]:
    vqa, reports = folder / "vqa.jsonl", folder / "reports.jsonl"
    models = ["--writer", f"model=writer,url={url}"]
    models += [part for n in range(V) for part in ("--verifier", f"model=verifier-{n},url={url}")]
    return [
        *("make", "medhallmark", str(vqa), "--reports", str(reports), "--images", str(images), "--out", str(out)),
        *(*models, "--floor", "1", *more),
    ]


@pytest.mark.slow
def test_the_command_writes_a_set_that_the_tasks_read(
    tmp_path: Path, images: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from datasets import Dataset

    write_sources(tmp_path, 13)
    out = tmp_path / "out"
    with serve(play) as url:
        assert main([*command(url, tmp_path, images, out), "--json"]) == 1  # a picture is missing
        facts = json.loads(capsys.readouterr().out)
        for worker in ("1/2", "2/2"):
            assert main(command(url, tmp_path, images, tmp_path / "shared", "--worker", worker)) == 1
        capsys.readouterr()
        assert main([*command(url, tmp_path, images, tmp_path / "shared"), "--json"]) == 1
        shared = json.loads(capsys.readouterr().out)
    assert shared["asked"]["requests"] == 0
    assert facts["items"] == {"conventional": 31, "confidence": 31, "counterfactual": 35, "irg": 1}
    assert facts["rejected"] == {
        "about none of the dimensions": 1,
        "nothing is left of the report": 1,
        "image missing": 1,
        "an empty cell in the source": 1,
    }
    assert facts["records"] == 13 + 2 + 2 + 1
    assert facts["steps"]["sentence removed: compares with the past"] == 2
    assert len(facts["files"]) == 4
    for file in facts["files"]:
        assert (out / file).read_bytes() == (tmp_path / "shared" / file).read_bytes()
    [report] = Dataset.from_parquet(str(out / "ydk122024__Med-HallMark/irg/test.parquet"), keep_in_memory=True)
    assert report["reference"] == "The heart is normal. The impression suggests that No edema."
    assert report["question"] in WORDING["instructions"]
    assert report["image"].size == (40, 41)
    card = (out / "README.md").read_text()
    assert "| conventional |" in card
    assert "yes/no, conventional" in card
    assert "What tells a false premise without the picture" in card
    assert url not in card + (out / "report.json").read_text()
    pages = (out / "review" / "page-1.html").read_text()
    assert pages.count("<article") == 2 * 14  # every premise, and as many controls
    # The queue comes back: two people find the premises of question 0 right.
    truths, labels = {row["answer"] for row in rows(13)}, []
    for rater in (1, 2):
        with (out / "review" / f"labels-{rater}.csv").open(newline="") as file:
            shown = list(csv.DictReader(file))
        wrong = [row["answer"] not in truths and "Given that organ 0 " not in row["answer"] for row in shown]
        path = tmp_path / f"people-{rater}.csv"
        lines = (f"{row['code']},{int(label)}\n" for row, label in zip(shown, wrong, strict=True))
        path.write_text("code,label\n" + "".join(lines))
        labels += ["--labels", str(path)]
    with serve(play) as url:
        assert main([*command(url, tmp_path, images, out), *labels, "--json"]) == 1
    again = json.loads(capsys.readouterr().out)
    assert again["asked"]["requests"] == 0
    assert again["items"] == {**facts["items"], "counterfactual": 35 - 2 - 6}  # with what they were rewritten to
    assert again["refused over the set"] == {"not wrong, people say": 8}
    assert "| of these not wrong, and left out | 2 |" in (out / "README.md").read_text()


def test_a_dry_run_says_what_it_costs_and_asks_nothing(
    tmp_path: Path, images: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_sources(tmp_path, 13)
    arguments = command("http://localhost:1/v1", tmp_path, images, tmp_path / "out", "--dry-run", "--json")
    assert main(arguments) == 0
    stages = json.loads(capsys.readouterr().out)["stages"]
    assert stages == {
        "dimension": [1, 1],
        "rewrite": [12, 3 * 13],
        "same": [0, 3 * V * 3 * 13],
        "same_control": [0, V * 3 * 13],
        "counterfactual": [12, 13],
        "verify": [0, 4 * V * 13],
        "control": [0, 3 * V * 13],
    }
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        (["--judge", "model=a"], "--judge goes with --answerer"),
        (["--review", "0"], "--review: expected an integer of at least 1"),
        (["--worker", "3/2"], "--worker: expected K/N"),
    ],
)
def test_a_wrong_option_is_named(
    tmp_path: Path, images: Path, capsys: pytest.CaptureFixture[str], more: list[str], complaint: str
) -> None:
    write_sources(tmp_path, 1)
    assert main(command("http://localhost:1/v1", tmp_path, images, tmp_path / "out", *more)) == 2
    assert complaint in capsys.readouterr().err


def test_without_a_model_questions_prefixes_and_reports_are_made(
    tmp_path: Path, images: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_sources(tmp_path, 4)
    arguments = ["make", "medhallmark", str(tmp_path / "vqa.jsonl"), "--reports", str(tmp_path / "reports.jsonl")]
    assert main([*arguments, "--images", str(images), "--out", str(tmp_path / "out"), "--json"]) == 1
    facts = json.loads(capsys.readouterr().out)
    assert facts["items"] == {"conventional": 4, "confidence": 4, "counterfactual": 0, "irg": 1}
    assert facts["asked"]["requests"] == 0


def test_the_rows_of_the_script_are_those_of_the_file(tmp_path: Path) -> None:
    write_sources(tmp_path, 13)
    read = read_vqa(tmp_path / "vqa.jsonl").rows
    assert [(r.question, r.answer, r.dimension) for r in read[:13]] == [
        (r.question, r.answer, r.dimension) for r in vqa_rows(13)
    ]
