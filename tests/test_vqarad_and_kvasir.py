"""Both medical data sets: four prompts each, closed and open questions apart, and rows that are none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from datasets import Dataset

from hedge_tasks.lmms.catalogue import task_folder
from hedge_tasks.runs.trust import read_task
from hedge_tasks.sampling.prompts import load_prompt
from hedge_tasks.suites.vqarad import documents as vqarad
from hedge_tasks.suites.vqarad.paper import PROMPTS


@pytest.mark.parametrize("data", ["vqarad", "kvasirvqa_x1"])
def test_the_prompts_are_the_only_difference(data: str) -> None:
    names = [f"hedge_{data}{'' if p == 'default' else f'_{p}'}".replace("-", "_") for p in PROMPTS]
    tasks = [read_task(task_folder() / f"hedge_{data}" / f"{name}.yaml") for name in names]
    assert [task.pop("task") for task in tasks] == names
    prompts = [task.pop("hedge_overrides", {"prompt": task["hedge"]["prompt"]}) for task in tasks]
    assert prompts == [{"prompt": f"medical_vqa/{prompt}"} for prompt in PROMPTS]
    assert tasks == tasks[:1] * 4
    read = [load_prompt(prompt["prompt"]) for prompt in prompts]
    assert len({(prompt.system, prompt.user) for prompt in read}) == 4


# --- closed and open --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "kind"),
    [("yes", "closed"), ("No ", "closed"), ("not seen here", "open"), ("nodular opacities", "open"), ("Left", "open")],
)
def test_an_answer_is_closed_when_it_is_yes_or_no(answer: str, kind: str) -> None:
    assert vqarad.process_docs(Dataset.from_dict({"answer": [answer] * 2}))["answer_type"][:] == [kind] * 2


def test_the_official_split_has_251_closed_and_200_open_questions(shared_data: Path) -> None:
    """Its own annotation calls 21 more closed: choices such as "left or right"."""
    rows = json.loads((shared_data / "vqa_rad_test.json").read_text("utf-8"))
    types = [(vqarad.answer_type(str(row["answer"])), row["answer_type"]) for row in rows]
    counts = {kind: sum(found == kind for found, _ in types) for kind in ("closed", "open")}
    assert counts == vqarad.OFFICIAL == {"closed": 251, "open": 200}
    assert types.count(("open", "CLOSED")) == 21
    assert types.count(("closed", "OPEN")) == 0


# --- real answers -----------------------------------------------------------------------------------------------------
