"""The wheel holds everything and works from anywhere."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from conftest import REPOSITORY

pytestmark = pytest.mark.slow

NOT_PACKAGED = ("__pycache__", ".pyc")


def run(*command: str, cwd: Path, python_path: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(python_path) if python_path else ""}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=600)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy of the files that git knows, as from a fresh clone."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    listed = run("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=REPOSITORY)
    for name in listed.stdout.splitlines():
        if (REPOSITORY / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / name, source / name)
    done = run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), ".", cwd=source)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    [built] = out.glob("hedge_tasks-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's content in a folder of its own, in front of the editable installation on the path."""
    folder = tmp_path_factory.mktemp("site")
    done = run(
        sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), str(wheel), cwd=folder
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return folder


def expected(folder: str, package: str) -> set[str]:
    files = (path for path in (REPOSITORY / folder).rglob("*") if path.is_file())
    return {
        f"{package}/{path.relative_to(REPOSITORY / folder).as_posix()}"
        for path in files
        if not any(part in str(path) for part in NOT_PACKAGED)
    }


@pytest.mark.parametrize(
    ("folder", "package"),
    [("hedge_tasks", "hedge_tasks"), ("tasks", "hedge_tasks/tasks"), ("models", "hedge_tasks/models")],
)
def test_every_file_is_in_the_wheel(wheel: Path, folder: str, package: str) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    wanted = expected(folder, package)
    assert any(name.endswith((".yaml", ".py", ".safetensors")) for name in wanted)
    assert wanted - packed == set()


def test_nothing_else_is_in_the_wheel(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.split("/")[0] for name in archive.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"hedge_tasks"}


def test_everybody_may_read_the_weights(installed: Path) -> None:
    weights = list(installed.rglob("*.safetensors"))
    assert len(weights) == 2
    assert all(path.stat().st_mode & stat.S_IROTH for path in weights)
    assert sum(path.stat().st_size for path in weights) < 4_000_000


def test_hedge_list_works_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    done = run(sys.executable, "-m", "hedge_tasks.cli", "list", "--json", cwd=tmp_path, python_path=installed)
    tasks = json.loads(done.stdout)
    assert {"hedge_demo", "hedge_vqarad"} <= {task["task"] for task in tasks}
    assert all(task["yaml"].startswith(str(installed)) and task["title"] for task in tasks)


@pytest.mark.framework
def test_hedge_demo_works_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    arguments = ("--model", "hedge_tiny", "--tasks", "hedge_demo", "--limit", "3", "--gen_kwargs", "n=1")
    done = run(
        sys.executable, "-m", "lmms_eval", *arguments, "--output_path", "out", cwd=tmp_path, python_path=installed
    )
    assert len(list(tmp_path.rglob("*_results.json"))) == 1, done.stdout[-2000:]
    assert "|hedge_demo|nli" in done.stdout
    where = "import hedge_tasks, hedge_tasks.models as m; print(hedge_tasks.__file__, m.__file__)"
    origin = run(sys.executable, "-c", where, cwd=tmp_path, python_path=installed).stdout.split()
    assert all(path.startswith(str(installed)) for path in origin), origin
