"""`hedge run`: what is checked before, what is said, and a true exit code, with a stand-in for lmms-eval."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from finished_runs import finished_run

from hedge_tasks.cli import main
from hedge_tasks.cli import run as run_module
from hedge_tasks.runs.run_files import save_run

WORDS = ["run", "--model", "hedge_tiny", "--tasks", "hedge_demo", "--limit", "8"]


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Has a program run in place of lmms-eval; gives what it would have been started with."""
    started: list[list[str]] = []
    real = subprocess.Popen

    def use(code: str) -> list[list[str]]:
        def popen(words: list[str], **options: Any) -> Any:
            started.append(words)
            return real([sys.executable, "-c", code], **options)

        monkeypatch.setattr(run_module.subprocess, "Popen", popen)
        return started

    return use


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--model", "hedge_tini", "--tasks", "hedge_demo"], "unknown model 'hedge_tini', did you mean 'hedge_tiny'?"),
        (["--model", "hedge_tiny", "--tasks", "hedge_dem"], "unknown task 'hedge_dem', did you mean 'hedge_demo'?"),
        (["--model", "hedge_tiny", "--task", "pope"], "unknown option '--task', did you mean '--tasks'?"),
        (["--model", "hedge_tiny"], "--tasks: say which"),
        (["--tasks", "hedge_demo", "--gen_kwargs", "nn=3"], "--gen_kwargs: unknown key 'nn'"),
        (["--tasks", "hedge_demo", "--limit", "few"], "--limit: expected a number"),
    ],
)
def test_names_are_checked_before_anything_is_started(
    words: list[str], message: str, stand_in: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    started = stand_in("raise SystemExit(0)")
    assert main(["run", *words]) == 2
    assert message in capsys.readouterr().err
    assert started == []


def test_checking_loads_neither_torch_nor_lmms_eval(tmp_path: Path) -> None:
    code = (
        "import sys; from hedge_tasks.cli.run import _checked, _costs\n"
        "options = _checked(['--model', 'hedge_hf', '--tasks', 'hedge_demo,pope'])\n"
        "assert list(_costs(options, 1.0)); print({'torch', 'lmms_eval'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.stdout.strip() == "set()", done.stderr


def test_the_price_is_said_first(stand_in: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    started = stand_in("raise SystemExit(0)")
    words = [*WORDS, "--gen_kwargs", "n=2,max_new_tokens=10", "--output_path", str(tmp_path)]
    assert main([*words, "--price", "2"]) == 1
    assert "hedge_demo: 8 documents, 40 requests, at most 400 tokens" in capsys.readouterr().err
    assert started == [[sys.executable, "-m", "lmms_eval", *words[1:]]]


@pytest.mark.parametrize("code", [0, 3])
def test_no_results_are_a_failure_whatever_the_program_says(
    code: int, stand_in: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "old_results.json").write_text("{}")
    os.utime(tmp_path / "old_results.json", (0, 0))
    stand_in(f"raise SystemExit({code})")
    assert main([*WORDS, "--output_path", str(tmp_path)]) == 1
    assert "wrote no results" in capsys.readouterr().err


def test_results_end_with_the_finding_and_the_report(
    stand_in: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = save_run(finished_run(), tmp_path)
    stand_in(f"import os; open({str(tmp_path / 'x_results.json')!r}, 'w'); os.utime({str(path)!r})")
    assert main([*WORDS, "--output_path", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"report: {tmp_path / 'report.html'}"
    assert (tmp_path / "report.html").is_file()


def test_an_interruption_is_a_line_that_says_how_to_go_on(
    stand_in: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in(f"import os, signal, time; os.kill({os.getpid()}, signal.SIGINT); time.sleep(60)")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background ignores it
    assert main([*WORDS, "--output_path", str(tmp_path)]) == 130
    signal.signal(signal.SIGINT, before)
    [line] = [line for line in capsys.readouterr().err.splitlines() if "interrupted" in line]
    assert line.endswith(f"hedge run --model hedge_tiny --tasks hedge_demo --limit 8 --output_path {tmp_path}")
