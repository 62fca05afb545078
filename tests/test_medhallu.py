"""MedHallu: which answer is shown, how replies are read, the paper's metrics, and a whole run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset
from evaluation import Run, evaluate
from openai_server import serve, texts_of

from hedge_tasks.suites.medhallu.documents import coin, process_docs

LEVELS = ("easy", "medium", "hard")
KINDS = [
    "Misinterpretation of #Question#",
    "Incomplete Information",
    "Mechanism and Pathway Misattribution",
    "Methodological and Evidence Fabrication",
]


def rows(n: int = 12) -> Dataset:
    return Dataset.from_list(
        [
            {
                "Question": f"Does drug {i} work?",
                "Knowledge": [f"Fact {i}.", "Another. And one more."],
                "Ground Truth": f"true answer {i} " + "long " * 8,
                "Difficulty Level": LEVELS[i % 3],
                "Hallucinated Answer": f"made up {i} " + "x" * i,
                "Category of Hallucination": KINDS[i % 4],
            }
            for i in range(n)
        ]
    )


# --- documents --------------------------------------------------------------------------------------------------------


def test_one_of_the_two_answers_is_shown_and_both_on_demand() -> None:
    once, both = process_docs(rows()), process_docs(rows(), show="both")
    assert (len(once), len(both)) == (12, 24)
    assert set(once["id"]) < set(both["id"])
    assert both["truth"][:] == ["0", "1"] * 12
    assert both["id"][:4] == ["0-t", "0-h", "1-t", "1-h"]
    for row in both:
        shown = "made up" if row["truth"] == "1" else "true answer"
        assert row["asked"].startswith(f"Question: Does drug {row['row']} work?\nAnswer: {shown} {row['row']} ")
    assert set(process_docs(rows(), show="true")["truth"]) == {"0"}
    assert set(process_docs(rows(), show="hallucinated")["truth"]) == {"1"}


def test_the_coin_depends_on_seed_and_question_and_not_on_the_order() -> None:
    backwards = process_docs(rows().select(range(11, -1, -1)))
    shown = {row["asked"] for row in process_docs(rows())}
    assert {row["asked"] for row in backwards} == shown
    assert {row["asked"] for row in process_docs(rows(), seed=1)} != shown
    heads = [coin(7, f"question {i}") for i in range(2000)]
    assert abs(np.mean(heads) - 0.5) < 4 * 0.5 / 2000**0.5


def test_mesh_groups_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "groups.json"
    file.write_text(json.dumps({"Does drug 0 work?": "C", "Does drug 1 work?": "J"}), "utf-8")
    assert process_docs(rows(3), mesh=str(file))["mesh"][:] == ["C", "J", None]


# --- prompts and whole runs -------------------------------------------------------------------------------------------


def scripted(body: dict[str, Any]) -> str:
    """Right on true answers, in several spellings; hesitates where a prefix weakens its confidence."""
    [text] = texts_of(body)
    truth = "1" if "made up" in text else "0"
    if body.get("temperature", 1.0) < 0.5:
        drug = int(text.partition("Does drug ")[2].partition(" ")[0])
        return {0: "0", 1: truth, 2: f"**{truth}**", 3: f"Answer: {truth}\n\nNote it."}[drug % 4]
    return "1" if "limited" in text else truth


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    root = tmp_path_factory.mktemp("medhallu")
    folder = root / "hub" / "UTAustin-AIHealth__MedHallu"
    for config in ("pqa_labeled", "pqa_artificial"):
        (folder / config).mkdir(parents=True)
        rows(8).to_parquet(folder / config / "train.parquet")
    with pytest.MonkeyPatch.context() as patch, serve(scripted) as url:
        patch.setenv("HEDGE_DATA_DIR", str(root / "hub"))
        patch.setenv("OPENAI_API_KEY", "none")
        patch.setenv("HEDGE_JUDGE", "rule")
        return evaluate(
            root / "out",
            *("--model", "hedge_openai", "--model_args", f"model=tiny,base_url={url}"),
            *("--tasks", "hedge_medhallu_both", "--gen_kwargs", "n=2"),
        )


@pytest.mark.slow
@pytest.mark.framework
def test_the_table_of_a_scripted_model_is_what_its_script_says(run: Run) -> None:
    cells = run.values("hedge_medhallu_both")
    # Drugs 0 and 4 are always called factual: 2 of 8 hallucinated answers are missed.
    assert cells["recall,verdict"] == 0.75
    assert cells["precision,verdict"] == 1.0
    assert cells["accuracy,verdict"] == 14 / 16
    assert cells["response_rate,verdict"] == 1.0
    assert cells["parsers_differ,verdict"] == pytest.approx(2 / 16)  # "Note" behind a 0 is read as a 1
    assert isinstance(cells["f1_stderr,verdict"], float)
