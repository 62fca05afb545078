"""Noisy pictures made again: pixel for pixel those of the draws, or none and the reason."""

from __future__ import annotations

import base64
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from finished_runs import EXACT, finished_run
from PIL import Image
from test_report import COLUMNS, DEMO

from hedge_tasks.data.answers import Drawn
from hedge_tasks.data.splits import document_keys, load_split
from hedge_tasks.report import noisy
from hedge_tasks.report.noisy import noisy_pictures, not_asked_for
from hedge_tasks.report.pictures import Stored, address_of, stored_documents
from hedge_tasks.runs.run_files import Run
from hedge_tasks.sampling.plan import SamplingPlan
from hedge_tasks.sampling.prompts import Prompt
from hedge_tasks.sampling.requests import DrawRequest, SampleRequest

PLAN = SamplingPlan(n=6, seed=11, strength=0.5, max_image_side=48)
ROLES = {**COLUMNS, "answer": "answer"}


def demo_run(n: int = 3, plan: SamplingPlan = PLAN) -> Run:
    """A run of the demo's questions whose documents have the keys that they are sampled under."""
    rows = load_split(DEMO, None, "demo-test")
    keys = document_keys(rows, ["question", "answer"], ["image"])
    sets = [
        replace(a, id=row["question_id"], question=row["question"], drawn=Drawn("d", key, "s"))
        for a, row, key in zip(finished_run(n).answer_sets, rows, keys, strict=False)
    ]
    settings = {"filters": EXACT, "documents": ROLES, "sampling": plan.settings()}
    return replace(finished_run(n), task="hedge_demo", answer_sets=tuple(sets), settings=settings)


@pytest.fixture(scope="module")
def stored() -> list[Stored]:
    found, note = stored_documents(demo_run(), texts=True)
    assert note == ""
    return found


def made(run: Run, stored: list[Stored], most: int = 2, **options: Any) -> noisy.PictureAddresses:
    return noisy_pictures(run, stored, [a.id for a in run.answer_sets], most, **options)


@pytest.mark.slow
def test_they_are_the_pictures_that_the_draws_see(stored: list[Stored]) -> None:
    run = demo_run()
    found = made(run, stored)
    assert list(found.of_document) == [a.id for a in run.answer_sets[:2]]
    rows = load_split(DEMO, None, "demo-test")
    for place, answers in enumerate(run.answer_sets[:2]):
        assert answers.drawn
        key = answers.drawn.document
        prompt = Prompt("p", "<image>{question}")
        request = SampleRequest(answers.id, key, rows[place]["question"], prompt, PLAN, lambda row: [row["image"]])
        seen = found.of_document[answers.id]
        by_condition = {"clean": [seen.clean] * 6, "noisy": list(seen.noisy)}
        for draw in PLAN.draws(key)[1:]:
            asked = DrawRequest(request, draw, lambda place=place: rows[place], ("hedge_demo", "demo-test", place))
            [expected] = asked.images()
            [shown] = by_condition[draw.condition][draw.index]
            assert found.addresses[shown] == address_of(expected, 30_000)
    pictures = [Image.open(io.BytesIO(base64.b64decode(a.partition(",")[2]))) for a in found.addresses]
    assert max(max(p.size) for p in pictures) < 100  # the plan's largest side, and what the frame grows by


@pytest.mark.slow
def test_a_document_of_another_key_is_left_out_with_the_reason(stored: list[Stored]) -> None:
    run = demo_run()
    first, second, third = run.answer_sets
    assert second.drawn
    other = replace(second, drawn=replace(second.drawn, document="0" * 32))
    found = made(replace(run, answer_sets=(replace(first, drawn=None), other, third)), stored, 3)
    assert list(found.of_document) == [third.id]
    assert "Those of 1 question are left out: the run keeps no key" in found.note
    assert "others than those that were asked about" in found.note
    changed = [replace(d, texts={**d.texts, "answer": "another"}) for d in stored]
    assert not made(run, changed).of_document


def test_what_cannot_be_made_again_is_said(stored: list[Stored], monkeypatch: pytest.MonkeyPatch) -> None:
    run = demo_run()
    assert "does not say how" in made(replace(run, settings={**run.settings, "sampling": {}}), stored).note
    newer = {**PLAN.settings(), "perturbation": {**PLAN.settings()["perturbation"], "pipeline": 99}}
    assert "pipeline 99" in made(replace(run, settings={**run.settings, "sampling": newer}), stored).note
    assert made(run, []) == noisy.NONE
    monkeypatch.setattr(noisy, "SECONDS", -1.0)
    assert "more than -1 seconds" in made(run, stored).note


@pytest.mark.parametrize("perturbation", [{"kind": "induction"}, {"transforms": [{"class": "GaussianBlur"}]}])
def test_a_file_from_outside_names_no_code_to_load(perturbation: dict[str, Any], stored: list[Stored]) -> None:
    sampling = {**PLAN.settings(), "perturbation": perturbation}
    run = replace(demo_run(), path=Path("run.jsonl"), settings={**demo_run().settings, "sampling": sampling})
    found = made(run, stored)
    assert not found.addresses
    assert "--trust-run" in found.note


@pytest.mark.slow
def test_they_stay_within_their_budget(stored: list[Stored]) -> None:
    found = made(demo_run(), stored, budget=14 * 2000)
    assert found.addresses
    assert max(map(len, found.addresses)) <= 2000
    too_little = made(demo_run(), stored, budget=14 * 100)
    assert not too_little.addresses
    assert "do not fit into the page" in too_little.note


def test_a_page_without_them_says_how_to_have_them() -> None:
    assert "--noisy-pictures" in not_asked_for(demo_run())
    assert not_asked_for(finished_run(3)) == ""
