"""Does a test notice it when an estimator of the audits is wrong?

    python benchmarks/audit_mutants.py [--only TEXT] [--timeout 300]

Each mutant is one wrong line: a weight dropped, folds that are not by group, joint inclusion probabilities ignored. It
is made in a copy of the package, never in the package itself, and the tests of audits run there until the first fails.
Prints a table of mutants with the test that kills each; ends with 1 if one survives.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGE = "hedge_tasks"
TESTS = ("tests/test_statistics_verified.py", "tests/test_guard_by_experts.py", "tests/test_audit.py")
VERIFIED, DESIGNS = "statistics/verified.py", "statistics/designs.py"


@dataclass(frozen=True)
class Mutant:
    """One wrong line.

    Attributes:
        name: what is wrong with it.
        path: of the module, below the package.
        right: the line's text as it stands, once in the module.
        wrong: what stands there instead.
    """

    name: str
    path: str
    right: str
    wrong: str


MUTANTS = (
    Mutant("weights dropped", VERIFIED, "(y - m) / pi, 0.0)", "(y - m), 0.0)"),
    Mutant("folds not by group", VERIFIED, "labels.groups % FOLDS", "np.arange(len(judged)) % FOLDS"),
    Mutant("no folds", VERIFIED, "(design.drawn & (folds != fold))", "(design.drawn)"),
    Mutant("training without weights", VERIFIED, "weights = train / design.probabilities", "weights = train.copy()"),
    Mutant(
        "joint inclusion probabilities ignored",
        VERIFIED,
        "return ordered + more_ordered, pairs + more_pairs",
        "return ordered, pairs",
    ),
    Mutant(
        "pairs of one image drawn as if apart",
        VERIFIED,
        "np.where(units[:, None] == units[None], alone, factor) - 1.0",
        "np.full((len(here), len(here)), factor) - 1.0",
    ),
    Mutant("a document is a pair with itself", VERIFIED, "own = float((positive * negative).sum())", "own = 0.0"),
    Mutant(
        "ties count whole",
        VERIFIED,
        "np.sign(levels[:, None] - levels[None]) / 2 + 0.5",
        "1.0 * (levels[:, None] >= levels[None])",
    ),
    Mutant(
        "AUPRC: squares of pseudo-labels",
        VERIFIED,
        "labels[0] - labels[0] ** 2, self.n_levels)",
        "0 * labels[0], self.n_levels)",
    ),
    Mutant(
        "AUPRC: joint inclusion probabilities ignored",
        VERIFIED,
        "            total += float((weight * higher",
        "            total += 0 * float((weight * higher",
    ),
    Mutant("AURC: ties not spread", VERIFIED, "+ self.shares * at[self.level_of]", "+ at[self.level_of]"),
    Mutant(
        "logit dropped",
        VERIFIED,
        "return logit_interval(value, stderr, confidence, max(1, math.floor(degrees)))",
        "return tuple(value + s * _quantile(confidence, degrees) * stderr for s in (-1, 1))",
    ),
    Mutant(
        "Student's quantile dropped",
        VERIFIED,
        "stderr, confidence, max(1, math.floor(degrees)))",
        "stderr, confidence, 10**9)",
    ),
    Mutant("weight of the predictions not tuned", VERIFIED, "if statistic.tuned else 1.0", "if False else 1.0"),
    Mutant(
        "least variance dropped",
        DESIGNS,
        "spread = np.maximum(spread, np.bincount",
        "spread = np.maximum(spread, 0 * np.bincount",
    ),
    Mutant(
        "least variance without its factor", VERIFIED, "return variances * _factor(labels, judged)", "return variances"
    ),
    Mutant("finite population forgotten", DESIGNS, "sizes**2 * (1 - n_drawn / sizes) * spread", "sizes**2 * spread"),
    Mutant(
        "strata forgotten in the variance",
        DESIGNS,
        "(totals - means[stratum_of_unit])[chosen] ** 2",
        "totals[chosen] ** 2",
    ),
    Mutant("noise of the labels counted twice", VERIFIED, "max(spread - noise, least)", "max(spread, least)"),
    Mutant(
        "documents like these: groups ignored",
        VERIFIED,
        "np.bincount(labels.groups, own + left / pi)",
        "np.bincount(np.arange(len(pi)), own + left / pi)",
    ),
    Mutant(
        "documents like these: the labels' error alone", VERIFIED, "    total = run + like_these", "    total = run"
    ),
    Mutant(
        "bounds of the labels dropped",
        VERIFIED,
        "return max(0.0, min(low, value - half)), min(1.0, max(high, value + half))",
        "return value - half, value + half",
    ),
    Mutant(
        "answers without one count as supported",
        VERIFIED,
        "(1 - share) * answered_share, design",
        "(1 - share) * design.drawn, design",
    ),
    Mutant(
        "detectors: not paired",
        VERIFIED,
        "effects = first.effects[0] - second.effects[0]",
        "effects = first.effects[0] + second.effects[0]",
    ),
    Mutant("runs: not paired by group", VERIFIED, "first.sums - second.sums", "first.sums + second.sums"),
    Mutant("runs: the second audit has no error", VERIFIED, "run = first.run + second.run", "run = first.run"),
    Mutant(
        "two experts: the first is right",
        "judging/designed.py",
        "return sum(map(counts, meanings)) / len(meanings)",
        "return sum(map(counts, meanings[:1])) / 1",
    ),
    Mutant(
        "images labelled in part count as drawn",
        "judging/designed.py",
        "() if unit in in_part else meanings for",
        "meanings for",
    ),
    Mutant("a plan's floor dropped", "judging/strata.py", "0.5) if floor is None", "0.0) if floor is None"),
    Mutant(
        "policy: a plan not in proportion",
        "judging/strata.py",
        '(1.0 if purpose == "policy" else 0.5) if floor',
        "0.5 if floor",
    ),
    Mutant("policy: labels not thinned", "guard/by_experts.py", "left += share * sizes[h]", "left += len(labelled[h])"),
    Mutant(
        "policy: disagreement counts as supported",
        "guard/by_experts.py",
        "return int(MEANINGS[0] in ratings)",
        "return int(ratings[0] == MEANINGS[0])",
    ),
    Mutant("worth: as many as there are labels", VERIFIED, "alone / (variance + alone / n)", "float(labels.n_labels)"),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="mutants whose name has this text")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds that a mutant's tests may take")
    arguments = parser.parse_args()
    print("| mutant | module | killed by |\n|---|---|---|", flush=True)
    survivors = 0
    for mutant in MUTANTS:
        if arguments.only in mutant.name:
            killer = killed_by(mutant, arguments.timeout)
            survivors += killer is None
            print(f"| {mutant.name} | {mutant.path} | {killer or '**survives**'} |", flush=True)
    return 1 if survivors else 0


def killed_by(mutant: Mutant, timeout: float) -> str | None:
    """Return the first test that fails with a mutant; None if all pass."""
    with tempfile.TemporaryDirectory(prefix="audit-mutant-") as name:
        folder = Path(name)
        copied(folder, mutant)
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not slow", *TESTS]
        environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=timeout)
        except subprocess.TimeoutExpired:
            return f"no end within {timeout:g} s"
    if done.returncode == 0:
        return None
    failed = re.findall(r"^(?:FAILED|ERROR) tests/(.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
    if not failed:
        raise SystemExit(
            f"{mutant.name}: pytest ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    return f"`{failed[0]}`"


def copied(folder: Path, mutant: Mutant) -> None:
    """Make a repository of links, with a copy of the mutant's room."""
    room = mutant.path.split("/")[0]
    for path in REPOSITORY.iterdir():
        if path.name not in (PACKAGE, ".git", ".venv"):
            (folder / path.name).symlink_to(path)
    (folder / PACKAGE).mkdir()
    for path in (REPOSITORY / PACKAGE).iterdir():
        if path.name != room:
            (folder / PACKAGE / path.name).symlink_to(path)
    shutil.copytree(REPOSITORY / PACKAGE / room, folder / PACKAGE / room)
    file = folder / PACKAGE / mutant.path
    text = file.read_text("utf-8")
    if text.count(mutant.right) != 1:
        raise SystemExit(
            f"{mutant.name}: {mutant.path} has {mutant.right!r} {text.count(mutant.right)} times, not once"
        )
    file.write_text(text.replace(mutant.right, mutant.wrong), "utf-8")


if __name__ == "__main__":
    sys.exit(main())
