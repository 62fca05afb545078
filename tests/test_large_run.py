"""A document that the server refuses for good does not end a run: the benchmark of ten thousand, with one hundred."""

from __future__ import annotations

import re
import runpy
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from evaluation import evaluate

from hedge_tasks.cli import main
from hedge_tasks.errors import DrawsFailed
from hedge_tasks.runs.run_files import load_run

pytestmark = [pytest.mark.framework, pytest.mark.slow]

large = SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[1] / "benchmarks" / "large_run.py")))
DOCUMENTS, REFUSED = 100, 7


@pytest.fixture
def url() -> Any:
    large._Handler.refused = REFUSED
    server = large._Server(("127.0.0.1", 0), large._Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


def test_one_refused_document_of_many_is_left_out_and_said_everywhere(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks, data = large.prepare(tmp_path, DOCUMENTS)
    monkeypatch.setenv("HEDGE_DATA_DIR", str(data))
    command = ["--model", "hedge_openai", "--tasks", large.TASK, "--include_path", str(tasks)]
    command += ["--model_args", f"model=scripted,base_url={url}", "--gen_kwargs"]
    with pytest.raises(DrawsFailed, match="max_failed allows to leave out 0"):
        evaluate(tmp_path / "strict", *command, "n=2,n_noisy=0")
    run = evaluate(tmp_path / "out", *command, "n=2,n_noisy=0,max_failed=1")
    values = run.values(large.TASK)
    assert values["failed_rate,exact"] == 1 / DOCUMENTS
    assert values["auroc_documents,exact"] == DOCUMENTS - 1
    assert "an AUROC needs 5 of each class" in values["se_auroc,exact"]

    kept = load_run(tmp_path / "out")
    assert len(kept.answer_sets) == DOCUMENTS - 1
    [failed] = kept.settings["failed"]
    assert failed["id"] == f"q{REFUSED}"
    assert "this picture cannot be read" in failed["reason"]
    assert main(["health", str(tmp_path / "out")]) == 0
    assert re.search(r"^failed +1$", capsys.readouterr().out, re.MULTILINE)
    assert main(["report", str(tmp_path / "out"), "--out", str(tmp_path / "report.html")]) == 0
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "1.0 % of the documents failed and are left out" in page
    assert "failed and are left out" in page.partition("<h2")[0]  # at its head
