"""MedHallu: which answer is shown."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from datasets import Dataset

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
