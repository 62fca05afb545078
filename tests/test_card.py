"""The share card: its size, its text, and runs that have little to show."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from finished_runs import HOSTILE, finished_run
from PIL import Image

from hedge_tasks.cli import main
from hedge_tasks.measures.run_finding import finding_of
from hedge_tasks.report.card import HEIGHT, WIDTH, share_card
from hedge_tasks.runs.run_files import save_run


def opened(png: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(png))
    image.load()
    return image


@pytest.mark.slow
def test_the_card_has_its_size_and_carries_its_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = finished_run(60)
    path, card = save_run(run, tmp_path), tmp_path / "card.png"
    out = ["--out", str(tmp_path / "report.html"), "--no-curves"]
    assert main(["report", str(path), *out, "--card", str(card)]) == 0
    said = capsys.readouterr().out
    image = opened(card.read_bytes())
    assert image.size == (WIDTH, HEIGHT) == (1200, 630)
    assert finding_of(run).text in said
    assert image.info["Description"] in said
    assert len(set(image.convert("L").getdata())) > 50  # it is not an empty page
    assert main(["report", str(path), str(path), *out, "--card", str(card)]) == 2
    assert "--card shows one run" in capsys.readouterr().err
    assert main(["report", str(path), *out, "--card", "card.jpg"]) == 2
    assert "must end with .png" in capsys.readouterr().err


@pytest.mark.slow
def test_a_run_without_labels_and_hostile_texts_have_a_card() -> None:
    run = finished_run(12)
    for text in (HOSTILE["formula"], "$\\frac{1}{0}$ $", HOSTILE["stacked"], HOSTILE["right to left"]):
        sets = tuple(
            replace(a, label=None, question=text, baseline=replace(a.baseline, text=text)) for a in run.answer_sets
        )
        assert opened(share_card(replace(run, answer_sets=sets, task=text[:30]))[0]).size == (WIDTH, HEIGHT)
    wrong = tuple(replace(a, label=1, question="$x", reference="$\\y$") for a in run.answer_sets)
    assert opened(share_card(replace(run, answer_sets=wrong))[0]).size == (WIDTH, HEIGHT)
