"""Each Python that the metadata names: do the requirements resolve, and does the package run there?

    python tests/pythons.py FOLDER [--full] [VERSION ...]

Resolving needs no interpreter of the version. Where there is one, the package is installed into FOLDER/VERSION with the
few requirements that scoring a file needs, and a file is scored; with --full with all of them (some gigabytes), and
three documents of the demo are evaluated. A version without an interpreter is said to be untested, and is no failure.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
CONSTRAINTS = REPOSITORY / "constraints.txt"

LIGHT = ("pyyaml", "loguru", "numpy", "pillow", "scipy", "tqdm")
"""What `hedge score --clustering exact` imports."""

ANSWERS = {"id": "q1", "baseline": "left", "clean": ["left", "left", "right"]}
ENTROPY = 0.6365141682948128
"""Of two answers against one, in nats."""

DEMO = ("--model", "hedge_tiny", "--tasks", "hedge_demo", "--limit", "3", "--gen_kwargs", "n=2", "--output_path", "out")
_TAIL = 1500
_SAY_VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"
_COMPILE = """
import sys
from pathlib import Path
for folder in sys.argv[1:]:
    for path in Path(folder).rglob("*.py"):
        compile(path.read_text("utf-8"), str(path), "exec")
"""


class Failed(Exception):
    """A step failed; the message is the end of what it said."""


@dataclass(frozen=True)
class Outcome:
    """What is known of one Python; None where a step was not taken."""

    version: str
    steps: tuple[str, ...]
    fault: str | None = None


def versions() -> list[str]:
    """The Pythons that pyproject.toml names in its classifiers."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    found = [line.rpartition(" ")[2] for line in project["classifiers"] if "Language :: Python :: 3." in line]
    return sorted(found, key=lambda version: [int(part) for part in version.split(".")])


def uv(*arguments: str) -> str:
    return _run([sys.executable, "-m", "uv", *arguments])


def resolve(version: str) -> int:
    """The number of packages that an installation under the constraints has."""
    lines = uv(
        *("pip", "compile", str(REPOSITORY / "pyproject.toml"), "--constraint", str(CONSTRAINTS)),
        *("--python-version", version, "--no-python-downloads", "--quiet", "--no-annotate", "--no-header"),
    )
    return len(lines.splitlines())


def interpreter(version: str) -> str | None:
    """An installed Python of the version, on the path or of pyenv; none is downloaded."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    for python in (shutil.which(f"python{version}"), *sorted(pyenv.glob(f"{version}.*/bin/python"))):
        try:
            if python and _run([str(python), "-c", _SAY_VERSION]).strip() == version:
                return str(python)
        except Failed:  # pyenv's stand-in for a version that is not chosen
            continue
    return None


def install(python: str, folder: Path, *, full: bool) -> Path:
    """An environment with the package; returns its folder of programs."""
    uv("venv", "--quiet", "--clear", "--python", python, str(folder))
    programs = folder / "bin"
    into = ("--quiet", "--python", str(programs / "python"), "--constraint", str(CONSTRAINTS))
    if full:
        uv("pip", "install", *into, f"{REPOSITORY}[offline]")
    else:
        uv("pip", "install", *into, *LIGHT)
        uv("pip", "install", *into, "--no-deps", str(REPOSITORY))
    return programs


def score(programs: Path, folder: Path) -> None:
    """Compile every module, import the package, and score a file.

    Raises:
        Failed: a step fails, or the number is another one.
    """
    sources = [str(REPOSITORY / name) for name in ("hedge_tasks", "models", "tasks")]
    _run([str(programs / "python"), "-c", _COMPILE, *sources])
    answers, scores = folder / "answers.jsonl", folder / "scores.jsonl"
    answers.write_text(json.dumps(ANSWERS), "utf-8")
    _run([str(programs / "hedge"), "score", str(answers), "--clustering", "exact", "--out", str(scores)])
    found = json.loads(scores.read_text("utf-8"))["se"]
    if abs(found - ENTROPY) > 1e-9:
        raise Failed(f"semantic entropy {found}, expected {ENTROPY}")


def evaluate(programs: Path, folder: Path) -> None:
    said = _run([str(programs / "lmms-eval"), *DEMO], cwd=folder)
    if "|hedge_demo|nli " not in said:
        raise Failed(said[-_TAIL:])


def check(version: str, folder: Path, *, full: bool) -> Outcome:
    """All steps that can be taken for one Python."""
    steps: list[str] = []
    try:
        steps.append(f"resolves to {resolve(version)} packages")
        python = interpreter(version)
        if python is None:
            return Outcome(version, (*steps, "not run: there is no such interpreter here"))
        programs = install(python, folder, full=full)
        steps.append("installs" if full else "installs (what scoring needs)")
        score(programs, folder)
        steps.append("imports and scores a file")
        if full:
            evaluate(programs, folder)
            steps.append("evaluates the demo")
    except Failed as error:
        return Outcome(version, tuple(steps), str(error))
    return Outcome(version, tuple(steps))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("versions", nargs="*", metavar="VERSION")
    parser.add_argument("--full", action="store_true")
    given = parser.parse_args(arguments)
    given.folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    for version in given.versions or versions():
        outcome = check(version, given.folder.resolve() / version, full=given.full)
        print(f"Python {outcome.version}: {'; '.join(outcome.steps)}", flush=True)
        if outcome.fault is not None:
            failed += 1
            print(f"Python {outcome.version} FAILED: {outcome.fault}", file=sys.stderr)
    return 1 if failed else 0


def _run(command: Sequence[str], cwd: Path | None = None) -> str:
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": "", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed((done.stdout + done.stderr)[-_TAIL:])
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
