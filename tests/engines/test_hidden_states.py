"""vLLM's own extraction of hidden states gives those of a plain pass, pictures included."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from engines.servers import HERE, VLLM_VARIABLES, WEIGHTS, export_for_vllm, require
from hedge_tasks.lmms.catalogue import task_folder

pytestmark = pytest.mark.framework


def test_extracted_states_are_those_of_a_plain_pass(tmp_path: Path) -> None:
    export_for_vllm(tmp_path / "model")
    rows = pq.read_table(task_folder() / "hedge_demo" / "data" / "demo-test.parquet").slice(0, 8).to_pylist()
    asked = []
    for i, row in enumerate(rows):
        picture = tmp_path / f"{i}.png"
        picture.write_bytes(row["image"]["bytes"])
        asked.append({"question": row["question"], "answer": row["answer"], "image": str(picture)})
    (tmp_path / "rows.json").write_text(json.dumps(asked), "utf-8")
    paths = [str(path) for path in (tmp_path / "model", WEIGHTS, tmp_path / "rows.json", tmp_path / "found.json")]
    log = tmp_path / "log"
    more = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(HERE)}
    with log.open("wb") as output:
        done = subprocess.run(
            [str(require("vllm")), str(HERE / "hidden_states.py"), *paths],
            cwd=tmp_path,
            env={**os.environ, **VLLM_VARIABLES, **more},
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=900,
        )
    assert done.returncode == 0, log.read_text("utf-8", "replace")[-6000:]
    found = json.loads((tmp_path / "found.json").read_text("utf-8"))
    assert found["read"] == 8
    assert min(found["largest"]) > 1
    assert max(found["differences"]) < 1e-3
