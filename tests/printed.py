"""What a command prints, for tests of its numbers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hedge_tasks.cli import main


def json_of(capsys: pytest.CaptureFixture[str], call: list[str]) -> Any:
    """The facts of a command with `--json` that succeeds."""
    capsys.readouterr()  # what came before is not its own
    assert main(call) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)
