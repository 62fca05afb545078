"""The documents of tasks: their manifests, and those whose picture cannot be shown."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset, Features, Value
from datasets import Image as ImageFeature
from PIL import Image
from requested import FakeModel
from test_task_results import EXACT, demo_config

from hedge_tasks.data.answers import Answer, AnswerSet, FailedDocument, read_response
from hedge_tasks.errors import DataError
from hedge_tasks.lmms.task import HedgeTask

pytestmark = pytest.mark.framework


def file_of(kind: str, colour: tuple[int, int, int]) -> bytes:
    made = io.BytesIO()
    Image.effect_noise((64, 64), 50).convert("RGB").point(lambda v: (v + colour[0]) % 256).save(made, kind)
    return made.getvalue()


@pytest.fixture
def four(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A task of twenty documents, the second with no picture and the last with one that is cut off."""
    files: list[bytes | None] = [file_of("JPEG", (i, 0, 0)) for i in range(20)]
    files[1] = None
    files[19] = file_of("JPEG", (0, 0, 0))[:1200]  # behind those that are decoded at the start
    rows = {"question": [f"which {i}?" for i in range(20)], "answer": ["left"] * 20}
    images = [file and {"bytes": file, "path": None} for file in files]
    features = Features({"question": Value("string"), "answer": Value("string"), "image": ImageFeature()})
    (tmp_path / "org__four").mkdir()
    Dataset.from_dict({**rows, "image": images}, features=features).to_parquet(tmp_path / "org__four" / "test.parquet")
    monkeypatch.setenv("HEDGE_DATA_DIR", str(tmp_path))

    def load(max_failed: int) -> Any:
        plan = {"n": 2, "perturbation": "none", "probe": False, "max_failed": max_failed}
        about = {"task": "hedge_four", "dataset_path": "org/four", "test_split": "test"}
        columns = {"hedge_overrides": {"question_type": None, "id": None, "group": None}}
        return HedgeTask({**demo_config(), **about, **columns, "filter_list": EXACT, "generation_kwargs": plan})

    return load


def test_documents_whose_picture_cannot_be_shown_are_left_out_as_far_as_the_plan_allows(
    four: Any, said: list[str]
) -> None:
    from hedge_tasks.sampling.hook import generate_samples

    with pytest.raises(DataError, match=r"hedge_four \(org/four, test\): 1 of 20 rows cannot .* row 2: no image"):
        four(0).build_all_requests()
    task = four(2)
    task.build_all_requests()
    assert any("1 of 20 rows cannot be shown: row 2: no image; they are left out" in line for line in said)
    model = FakeModel(lambda draw: Answer("left", -0.5, 1), {"hedge_four": task.dataset})
    read = [read_response(line) for line in generate_samples(model, task.instances)]
    failed = {r.id: r.reason for r in read if isinstance(r, FailedDocument)}
    assert failed.keys() == {"1", "19"}
    assert failed["1"].endswith("its picture cannot be read: the document has no image")
    assert "its picture cannot be read: " in failed["19"]
    assert sum(isinstance(r, AnswerSet) for r in read) == 18
