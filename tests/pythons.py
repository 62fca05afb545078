"""Each Python that the metadata names: do the requirements resolve, and does the package run there?

    python tests/pythons.py FOLDER [VERSION ...]

Resolving needs no interpreter of the version. Where there is one, the package is installed into FOLDER/VERSION with the
few requirements that scoring a file needs, and a file is scored. A version without an interpreter is said to be
untested, and is no failure.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
CONSTRAINED = ("--constraint", str(REPOSITORY / "constraints.txt"))

LIGHT = ("pyyaml", "loguru", "numpy", "pillow", "scipy", "tqdm")
"""What `hedge score --clustering exact` imports."""

ANSWERS = {"id": "q1", "baseline": "left", "clean": ["left", "left", "right"]}
ENTROPY = 0.6365141682948128
"""Of two answers against one, in nats."""


def run(*command: object, check: bool = True) -> str:
    """What a command prints; its errors are shown."""
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": "", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        list(map(str, command)), env=environment, stdout=subprocess.PIPE, text=True, check=check
    ).stdout


def uv(*arguments: object, check: bool = True) -> str:
    return run(sys.executable, "-m", "uv", *arguments, check=check)


def versions() -> list[str]:
    """The Pythons that pyproject.toml names in its classifiers."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    return [line.rpartition(" ")[2] for line in project["classifiers"] if "Language :: Python :: 3." in line]


def check(version: str, folder: Path) -> str:
    """Return what is known of one Python.

    Raises:
        CalledProcessError: a step fails.
    """
    options = ("--python-version", version, "--no-python-downloads", "--quiet")
    uv("pip", "compile", REPOSITORY / "pyproject.toml", *CONSTRAINED, *options)
    if not (python := uv("python", "find", "--system", "--no-python-downloads", version, check=False).strip()):
        return "resolves; there is no such interpreter here"
    uv("venv", "--quiet", "--clear", "--python", python, folder)
    into = ("--quiet", "--python", folder / "bin" / "python", *CONSTRAINED)
    uv("pip", "install", *into, *LIGHT)
    uv("pip", "install", *into, "--no-deps", REPOSITORY)
    run(folder / "bin" / "python", "-m", "compileall", "-q", *folder.glob("lib/*/site-packages/hedge_tasks"))
    score(folder / "bin", folder)
    return "resolves, installs, imports, and scores a file"


def score(programs: Path, folder: Path) -> None:
    """Score a file with the command of an installation.

    Raises:
        AssertionError: the number is another one.
    """
    answers, scores = folder / "answers.jsonl", folder / "scores.jsonl"
    answers.write_text(json.dumps(ANSWERS), "utf-8")
    run(programs / "hedge", "score", answers, "--clustering", "exact", "--out", scores)
    entropy = json.loads(scores.read_text("utf-8"))["se"]
    assert abs(entropy - ENTROPY) < 1e-9, entropy


if __name__ == "__main__":
    for wanted in sys.argv[2:] or versions():
        print(f"Python {wanted}: {check(wanted, Path(sys.argv[1]).resolve() / wanted)}", flush=True)
