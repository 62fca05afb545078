"""The wheel holds everything and works from anywhere."""

from __future__ import annotations

import configparser
import importlib.util
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from conftest import REPOSITORY

NOT_PACKAGED = ("__pycache__", ".pyc", "benchmarks/training")
"""What stays out of the wheel: `make demo-models` needs the training of the embedded models, no user does."""

FOLDERS = {"hedge_tasks": "hedge_tasks", "tasks": "hedge_tasks/tasks", "models": "hedge_tasks/models"}
"""Folder of the repository -> folder of the wheel."""


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


def packages_on_disk() -> set[str]:
    """Every folder with Python files that belongs into the wheel, as a package's name."""
    files = {name for folder, package in FOLDERS.items() for name in expected(folder, package) if name.endswith(".py")}
    return {name.rpartition("/")[0].replace("/", ".") for name in files}


@pytest.fixture
def options() -> configparser.ConfigParser:
    settings = configparser.ConfigParser()
    settings.read(REPOSITORY / "setup.cfg", "utf-8")
    return settings


def test_setup_cfg_lists_every_package_on_disk(options: configparser.ConfigParser) -> None:
    """The list is kept by hand, because setuptools does not find packages under a mapping of folders."""
    assert options["options"]["packages"].split() == sorted(packages_on_disk())


def test_setup_cfg_lists_every_file_of_data(options: configparser.ConfigParser) -> None:
    roots = {package.replace("/", "."): folder for folder, package in FOLDERS.items()}
    listed = set()
    for package, patterns in options["options.package_data"].items():
        root = max((root for root in roots if f"{package}.".startswith(f"{root}.")), key=len)
        folder = REPOSITORY / roots[root] / package.removeprefix(root).strip(".").replace(".", "/")
        for pattern in patterns.split():
            listed |= {f"{package.replace('.', '/')}/{p.relative_to(folder).as_posix()}" for p in folder.glob(pattern)}
    files = {name for folder, package in FOLDERS.items() for name in expected(folder, package)}
    assert sorted(name for name in files - listed if not name.endswith(".py")) == [], "missing in setup.cfg"
    assert {f"{package.replace('.', '/')}/__init__.py" for package in packages_on_disk()} <= files


@pytest.mark.docs
def test_the_package_page_has_no_link_that_leads_nowhere(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        page = archive.read(name).decode()
    assert "Description-Content-Type: text/markdown" in page
    assert "# Does your vision-language model know when it is making things up?\n" in page
    assert [target for target in re.findall(r"\]\(([^)]*)\)", page) if not target.startswith("https://")] == []


def test_links_are_absolute_where_the_repository_has_an_address() -> None:
    spec = importlib.util.spec_from_file_location("setup_py", REPOSITORY / "setup.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    readme = "[`a`](docs/a.md#b), [c [d]](e.md), [web](https://x.org/y), [here](#top)"
    assert module.page(readme, None) == "`a`, c [d], [web](https://x.org/y), [here](#top)"
    at = "https://example.org/us/hedge/"
    assert module.page(readme.partition(",")[0], at) == "[`a`](https://example.org/us/hedge/blob/HEAD/docs/a.md#b)"


@pytest.mark.docs
def test_every_file_is_in_the_wheel_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert packed == set().union(*(expected(folder, package) for folder, package in FOLDERS.items()))


@pytest.mark.docs
def test_everybody_may_read_the_weights(installed: Path) -> None:
    weights = list(installed.rglob("*.safetensors"))
    assert len(weights) == 4
    assert all(path.stat().st_mode & stat.S_IROTH for path in weights)
    assert sum(path.stat().st_size for path in weights) < 4_000_000


@pytest.mark.docs
def test_hedge_list_works_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    done = run(sys.executable, "-m", "hedge_tasks.cli", "list", "--json", cwd=tmp_path, python_path=installed)
    tasks = json.loads(done.stdout)
    assert {"hedge_demo", "hedge_vqarad"} <= {task["task"] for task in tasks}
    assert all(task["yaml"].startswith(str(installed)) and task["about"] for task in tasks)


@pytest.mark.docs
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
