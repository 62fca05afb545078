"""lmms-eval's own adapter of a real family answers a task of ours and one of its own in one command."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import datasets
import pytest
import stock_data
import tiny_qwen
from evaluation import evaluate


@pytest.mark.slow
@pytest.mark.framework
def test_qwen_of_lmms_eval_answers_vqa_rad_beside_pope(
    shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = datasets.load_dataset

    def load_dataset(path: str, name: str | None = None, **options: Any) -> Any:
        return stock_data.load(path, name) if path.endswith("POPE") else original(path, name, **options)

    monkeypatch.setenv("HEDGE_DATA_DIR", str(shared_data / "hub"))
    monkeypatch.setenv("HEDGE_FILTERS", "nli")
    monkeypatch.setenv("HEDGE_MODELS", "nli=package://hedge_tasks.models.tiny/nli")
    if importlib.util.find_spec("decord") is None:  # the adapter reads videos with it, and has none here
        monkeypatch.setitem(sys.modules, "decord", ModuleType("decord"))
    weights = tiny_qwen.write(tmp_path / "weights")
    with patch("datasets.load_dataset", load_dataset):
        run = evaluate(
            tmp_path / "out",
            *("--model", "qwen2_5_vl", "--batch_size", "1", "--limit", "2"),
            *("--model_args", f"pretrained={weights},device=cpu,device_map=cpu,max_pixels=12544,min_pixels=784"),
            *("--tasks", "hedge_vqarad,pope", "--gen_kwargs", "n=2,max_new_tokens=4"),
        )
    assert len(run.samples("hedge_vqarad")) == 2
    assert {"se_auroc,nli", "radflag_auroc,nli", "vase_auroc,nli"} <= run.values("hedge_vqarad").keys()
    health = run.results["configs"]["hedge_vqarad"]["hedge"]["outcome"]["health"]
    assert {t["name"]: t.get("share", 0) for t in health["tests"]}["log-probabilities"] == 1
    assert 0 <= run.values("pope")["pope_accuracy,none"] <= 1
