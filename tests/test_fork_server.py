"""Programs of the fork server behave as those of a fresh interpreter do."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from once import programs

pytestmark = pytest.mark.slow
both = pytest.mark.parametrize("python", ["real", "forked"])


def call(python: str, *arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([interpreter(python), *arguments], capture_output=True, text=True, **options)  # type: ignore[call-overload,no-any-return]


def interpreter(python: str) -> str:
    return sys.executable if python == "real" else str(programs() / "python")


@both
@pytest.mark.parametrize(
    ("end", "status", "error"),
    [
        ("", 0, ""),
        ("sys.exit(3)", 3, ""),
        ("sys.exit('no')", 1, "no"),
        ("1 / 0", 1, "ZeroDivisionError: division by zero"),
        ("os.kill(os.getpid(), 15)", -15, ""),
        ("os.kill(os.getpid(), 9)", -9, ""),
        ("os._exit(7)", 7, ""),
    ],
)
def test_status_and_streams(python: str, end: str, status: int, error: str) -> None:
    done = call(python, "-c", f"import os, sys; print(sys.stdin.read(), flush=True); {end}", input="said")
    assert (done.returncode, done.stdout) == (status, "said\n")
    assert done.stderr.strip().splitlines()[-1:] == ([error] if error else [])


@both
@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGKILL])
def test_a_program_that_is_killed_is_gone(python: str, sent: signal.Signals) -> None:
    program = "import os, time; print(os.getpid(), flush=True); time.sleep(3600)"
    process = subprocess.Popen([interpreter(python), "-c", program], stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stdout is not None
        number = int(process.stdout.readline())
        process.send_signal(sent)
        assert process.stdout.read() == "", "the pipe ends with the last that holds it"
    assert process.returncode == -sent
    if python == "real":
        assert number == process.pid


def test_a_run_that_leaves_a_process_behind_fails_and_names_the_test(tmp_path: Path) -> None:
    tests = "import subprocess\ndef test_it():\n    subprocess.Popen(['sleep', '3600'])\ndef test_other():\n    pass\n"
    (tmp_path / "test_leak.py").write_text(tests)
    call = [sys.executable, "-m", "pytest", "-q", "-p", "conftest", "-p", "no:cacheprovider", "test_leak.py"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    run = {"cwd": tmp_path, "env": environment, "capture_output": True, "text": True}
    done = subprocess.run(call, **run)  # type: ignore[call-overload]
    assert "2 passed" in done.stdout
    assert done.returncode == 1
    assert re.search(r"left a process behind: \d+ sleep 3600 +\(of test_leak.py::test_it", done.stderr), done.stderr
    assert subprocess.run([*call, "-k", "other"], **run).returncode == 0  # type: ignore[call-overload]


def test_a_program_killed_while_its_bar_moves_stops_no_other() -> None:
    program = (
        "import os, signal\n"
        "from tqdm.auto import tqdm\n"
        "if not (moving := os.fork()):\n"
        "    tqdm.get_lock().acquire()\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "os.waitpid(moving, 0)\n"
        "print(sum(tqdm(range(3))))"
    )
    assert call("forked", "-c", program, timeout=60).stdout == "3\n"
