"""The share card: its size, its text, and runs that have little to show."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from finished_runs import HOSTILE, finished_run
from PIL import Image

from hedge_tasks.cli import main
from hedge_tasks.measures.headline import headline
from hedge_tasks.report.card import HEIGHT, WIDTH, share_card
from hedge_tasks.report.pictures import stored_documents
from hedge_tasks.runs.run_files import load_run, save_run


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
    assert headline(run).text in said
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


def test_pictures_of_an_own_task_are_found_by_the_result_file_beside_the_run(tmp_path: Path) -> None:
    run = finished_run(4, task="mine", documents={"images": ["image"], "question": "question", "id": "id"})
    written = io.BytesIO()
    Image.new("RGB", (8, 8)).save(written, "PNG")
    picture = {"bytes": written.getvalue(), "path": None}
    rows = [{"id": a.id, "question": a.question, "image": picture} for a in run.answer_sets]
    pd.DataFrame(rows).to_parquet(tmp_path / "test.parquet")
    path = save_run(run, tmp_path / "results" / "hedge_runs")
    assert "not installed" in stored_documents(load_run(path, trust=True))[1]
    files = {"data_files": {"test": str(tmp_path / "test.parquet")}}
    config = {"dataset_path": "parquet", "dataset_kwargs": files, "test_split": "test"}
    results = {"results": {"mine": {}}, "configs": {"mine": config}}
    (tmp_path / "results" / "20260101_000000_results.json").write_text(json.dumps(results))
    found, note = stored_documents(load_run(path, trust=True))
    assert (note, [one.id for one in found]) == ("", [a.id for a in run.answer_sets])
    assert "--trust-run loads it" in stored_documents(load_run(path))[1]
