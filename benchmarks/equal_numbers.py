"""Two versions of this package give equal numbers: every offline run of every suite in each, every number compared.

    python benchmarks/equal_numbers.py BEFORE AFTER --out FOLDER [--only vope] [--tolerance 1e-9]

BEFORE and AFTER are checkouts with an environment in `.venv`. In each, the demonstration of every suite is run as its
README says, and `hedge detectors`, `health`, `compare`, `paper` and `claims` are called on it.
Compared are all numbers in lmms-eval's results, in each document's scores (`--log_samples`), in what the commands print
as JSON, by their place. Places that only one version has are counted, not compared: formats may
change. Exit code 1 where a number differs. What FOLDER has already is not made again.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

RUNS = {
    "hedge": ["--model", "hedge_tiny", "--tasks", "hedge_demo"],
    "overconfident": ["--model", "hedge_tiny", "--tasks", "hedge_demo_overconfident"],
    "reports": ["--model", "hedge_tiny", "--model_args", "writes=reports", "--tasks", "hedge_demo_reports"],
}
"""Runs of the embedded model; those of the scripted suites are in their README."""

SUITES = ("medhallu", "medhallmark", "shale", "vope")

COMMANDS = {
    "detectors": ["detectors", "RUN", "--detectors", "all", "--json"],
    "health": ["health", "RUN", "--json"],
    "compare": ["compare", "RUN", "--json"],
    "sweep": ["detectors", "RUN", "--sweep", "n", "--json"],
    "claims": ["claims", "RUN", "--json"],
    "paper": ["paper", "SUITE", "RUN", "--json"],
}

ONLY = {"claims": ("reports",), "paper": SUITES}

NAMING = ("name", "id", "clustering", "detector", "score", "what", "a", "b", "measure", "n", "draws")
"""Keys by which an entry of a list is found, wherever it stands."""

PASSING = frozenset(
    [
        "date",
        "time",
        "seconds",
        "created",
        "path",
        "version",
        "hash",
        "digest",
        "sha256",
        "git",
        "commit",
        "duration",
        "peak",
        "memory",
        "host",
        "python",
    ]
)
"""Words of keys whose values differ from run to run, or say which version made them."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, metavar="BEFORE")
    parser.add_argument("after", type=Path, metavar="AFTER")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--only", help="runs whose name has this in it")
    parser.add_argument("--tolerance", type=float, default=1e-9, help="largest relative difference (default: 1e-9)")
    parser.add_argument("--show", type=int, default=5, metavar="N", help="differing numbers of a file that are listed")
    arguments = parser.parse_args()
    sides = [arguments.out / "before", arguments.out / "after"]
    for tree, side in zip((arguments.before, arguments.after), sides, strict=True):
        for name in (*RUNS, *SUITES):
            if (arguments.only or "") in name:
                make(tree.resolve(), name, (side / name).resolve())
    differing = 0
    print("| run | numbers of | equal | differ | only before | only after |\n|---|---|--:|--:|--:|--:|")
    for run, what, *numbers in compared(*sides):
        before, after = numbers
        common = sorted(before.keys() & after.keys())
        off = [place for place in common if not alike(before[place], after[place], arguments.tolerance)]
        counts = (
            len(common) - len(off),
            len(off),
            len(before.keys() - after.keys()),
            len(after.keys() - before.keys()),
        )
        print(f"| {run} | {what} | {' | '.join(map(str, counts))} |")
        for place in off[: arguments.show]:
            print(f"<!-- {place}: {before[place]} and {after[place]} -->")
        differing += len(off)
    return 1 if differing else 0


def make(tree: Path, name: str, out: Path) -> None:
    """The run of one suite in one version, and what each command says of it."""
    results = out / "results"
    if not list(results.rglob("*_results.json")):
        command = [*(RUNS.get(name) or of_readme(tree, name)), "--output_path", str(results), "--log_samples"]
        call(tree, out / "lmms-eval.log", "lmms-eval", *command)
    for what, words in COMMANDS.items():
        told, words = out / f"{what}.json", list(words)
        if told.exists() or name not in ONLY.get(what, (name,)):
            continue
        places = {"RUN": str(results), "SUITE": name}
        said = call(tree, out / f"{what}.log", "hedge", *(places.get(word, word) for word in words))
        told.write_text(said, "utf-8")


def of_readme(tree: Path, suite: str) -> list[str]:
    """The words of its demonstration, but for where it writes."""
    text = (tree / "tasks" / f"hedge_{suite}" / "README.md").read_text("utf-8")
    [command] = re.findall(r"```bash\n(lmms-eval [^`]*hedge_\w+_demo[^`]*?)```", text)
    words = shlex.split(command.replace("\\\n", " "))[1:]
    at = words.index("--output_path")
    return words[:at] + words[at + 2 :]


def call(tree: Path, log: Path, program: str, *words: str) -> str:
    """Standard output of a program of a version's environment; what failed is told, and is a place less."""
    log.parent.mkdir(parents=True, exist_ok=True)
    programs = tree / ".venv" / "bin"
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("HEDGE_")} | {"PATH": path}
    done = subprocess.run(
        [str(programs / program), *words], cwd=log.parent, env=environment, capture_output=True, text=True, check=False
    )
    log.write_text(done.stdout + done.stderr, "utf-8")
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:] or [""]
        print(f"<!-- {tree.name}: {program} {' '.join(words[:2])}: code {done.returncode}: {last[0][:160]} -->")
    return done.stdout


def compared(before: Path, after: Path) -> Iterator[tuple[str, str, dict[str, float], dict[str, float]]]:
    """Of each run and kind of file the numbers of both versions by their places."""
    for folder in sorted(path for path in before.iterdir() if path.is_dir()):
        for what, pattern in (
            ("lmms-eval's results", "results/**/*_results.json"),
            ("documents", "results/**/*_samples_*.jsonl"),
            *((name, f"{name}.json") for name in COMMANDS),
        ):
            found = [of_files(sorted((side / folder.name).glob(pattern))) for side in (before, after)]
            if any(found):
                yield folder.name, what, found[0], found[1]


def of_files(files: list[Path]) -> dict[str, float]:
    """All numbers of some files."""
    found: dict[str, float] = {}
    for file in files:
        task = re.sub(r"^.*_samples_|\.jsonl$|^\d{8}_\d{6}_?|\.json$", "", file.name)
        lines = file.read_text("utf-8").splitlines() if file.suffix == ".jsonl" else [file.read_text("utf-8")]
        for line in filter(str.strip, lines):
            value = json.loads(line)
            value = value.get("results", value) if file.name.endswith("_results.json") else value
            name = f"{task}:{value.get('doc_id', '')}" if file.suffix == ".jsonl" else ""
            found.update(numbers(value, name))
    return found


def numbers(value: Any, place: str) -> Iterator[tuple[str, float]]:
    """Places and values of all numbers of a JSON value; entries of a list that have a name are found by it."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if PASSING.isdisjoint(re.split(r"[^a-z0-9]+", str(key).lower())):
                yield from numbers(inner, f"{place}/{key}")
    elif isinstance(value, list):
        names = [told_by(inner) for inner in value]
        times = Counter(names)
        for i, (inner, name) in enumerate(zip(value, names, strict=True)):
            yield from numbers(inner, f"{place}/{name if name and times[name] == 1 else i}")
    elif isinstance(value, str) and value.startswith("{"):
        with suppress(ValueError):
            yield from numbers(json.loads(value), place)
    elif isinstance(value, (int, float)) or (isinstance(value, str) and re.fullmatch(r"-?\d+\.\d+", value)):
        yield place, float(value)


def told_by(entry: Any) -> str:
    """Names and sizes that tell an entry of a list from the others; nothing where it has none."""
    found = (entry.get(key) for key in NAMING) if isinstance(entry, Mapping) else ()
    return " ".join(str(one) for one in found if isinstance(one, (str, int)))


def alike(one: float, other: float, tolerance: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other)) or math.isclose(one, other, rel_tol=tolerance)


if __name__ == "__main__":
    sys.exit(main())
