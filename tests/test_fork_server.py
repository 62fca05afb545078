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
def test_folder_environment_arguments_and_path(python: str, tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text("import os, sys; print(os.getcwd(), sys.argv[1:], os.environ['NEW'], __name__)")
    other = tmp_path / "other"
    other.mkdir()
    (other / "elsewhere.py").write_text("")
    environment = {**os.environ, "NEW": "1", "PYTHONPATH": str(other)}
    for way in (
        ["-m", "module"],
        [str(tmp_path / "module.py")],
        ["-c", "import elsewhere, runpy; runpy.run_path('module.py', run_name='__main__')"],
    ):
        done = call(python, *way, "a", "b", cwd=tmp_path, env=environment)
        assert done.stdout == f"{tmp_path} ['a', 'b'] 1 __main__\n", done.stderr


@both
def test_what_is_to_be_done_at_exit_is_done(python: str) -> None:
    program = (
        "import atexit, threading, time\n"
        "atexit.register(print, 'exit')\n"
        "threading.Thread(target=lambda: (time.sleep(0.05), print('thread'))).start()"
    )
    assert call(python, "-c", program).stdout == "thread\nexit\n"


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


@both
def test_two_programs_do_not_know_each_other(python: str) -> None:
    program = (
        "import json, random, numpy as np\n"
        "print(hasattr(json, 'seen'), random.random(), np.random.rand()); json.seen = 1"
    )
    first, second = (call(python, "-c", program).stdout.split() for _ in range(2))
    assert first[0] == second[0] == "False"
    assert not {*first[1:]} & {*second[1:]}


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
