"""The doors for people outside: a package that is no part of ours brings one of each thing, and all of it works.

The package is in `tests/outside_package`. It is installed into a folder of its own, and everything runs in processes
that have this folder on their path, as a user's would.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from once import python

pytestmark = [pytest.mark.slow, pytest.mark.framework]

PACKAGE = Path(__file__).parent / "outside_package"


class Outside:
    """A folder with the package in it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.site = folder, folder / "site"

    def run(self, *command: str, interpreter: str = "") -> subprocess.CompletedProcess[str]:
        paths = os.pathsep.join(filter(None, (str(self.site), os.environ.get("PYTHONPATH"))))
        environment = {**os.environ, "PYTHONPATH": paths, "HEDGE_DATA_DIR": str(self.folder / "data")}
        return subprocess.run(
            [interpreter or python(), *command],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )

    def hedge(self, *arguments: str) -> str:
        done = self.run("-m", "hedge_tasks.cli", *arguments)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return done.stdout


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Outside:
    """The package, its data built and its evaluation run."""
    found = Outside(tmp_path_factory.mktemp("outside"))
    source = found.folder / "source"
    subprocess.run(["cp", "-r", str(PACKAGE), str(source)], check=True)  # setuptools builds beside the sources
    quiet = ("--quiet", "--no-deps", "--no-build-isolation", "--no-index")
    done = found.run("-m", "pip", "install", *quiet, "--target", str(found.site), str(source))
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(found.hedge("data", "colours", "--out", str(found.folder / "data"), "--json"))["rows"] == 24
    command = ("--model", "colour_dice", "--tasks", "colours", "--output_path", "out", "--log_samples")
    # A real process: lmms-eval reads the entry points of models as it is imported.
    done = found.run("-m", "lmms_eval", *command, interpreter=sys.executable)
    (found.folder / "log").write_text(done.stdout + done.stderr)
    assert len(list(found.folder.rglob("*_results.json"))) == 1, done.stdout[-3000:] + done.stderr[-3000:]
    return found


def values(outside: Outside) -> dict[str, float]:
    [file] = outside.folder.rglob("*_results.json")
    cells = json.loads(file.read_text("utf-8"))["results"]["colours"]
    return {key.partition(",")[0]: value for key, value in cells.items() if key.endswith(",initial")}


def test_its_evaluation_runs_with_its_judge_clustering_perturbation_and_model(outside: Outside) -> None:
    [file] = outside.folder.rglob("out/hedge_runs/*.json*")
    [results] = outside.folder.rglob("*_results.json")
    settings = json.loads(results.read_text("utf-8"))["configs"]["colours"]["hedge"]
    assert settings["documents"]["judge"] == {"judge": "first_colour", "version": "1"}
    assert settings["sampling"]["perturbation"] == {"kind": "shouting", "marks": 3}
    assert settings["filters"]["initial"] == {
        "with_question": False,
        "backend": "initial",
        "letters": 2,
        "alpha": 1.0,
        "detectors": ["colours_said", "kle"],
    }
    assert file.stat().st_size > 0
    cells = values(outside)
    assert cells["unlabelled_rate"] == 0
    assert 0 < cells["hallucination_rate"] < 1
    assert 0 < cells["firmness"] <= 1
    assert isinstance(cells["se_auroc"], float)
    assert isinstance(cells["colours_said_auroc"], float)
    # What its clustering cannot give is told, not guessed.
    assert "there are no NLI probabilities of all pairs of answers" in cells["kle_auroc"]


def test_its_run_is_scored_again(outside: Outside) -> None:
    assert "colours" in [task["task"] for task in json.loads(outside.hedge("list", "--json"))]
    assert "initial" in outside.hedge("rescore", "out", "--clustering", "initial", "--json")


def test_its_detector_stands_beside_ours(outside: Outside) -> None:
    [of_run] = json.loads(outside.hedge("detectors", "out", "--all", "--json"))
    rows = {row["detector"]: row for row in of_run["detectors"]}
    assert rows["colours_said"]["estimate"]["value"] == pytest.approx(values(outside)["colours_said_auroc"])
    assert (rows["colours_said"]["draws"], rows["vase"]["draws"]) == (4, 8)
    assert "kle" in of_run["left_out"]
    swept = json.loads(outside.hedge("detectors", "out", "--sweep", "n", "--detectors", "colours_said", "--json"))
    last = swept["points"][-1]["estimate"]["value"]
    assert last == pytest.approx(rows["colours_said"]["estimate"]["value"])


def test_its_run_has_a_report_that_its_own_number_leads(outside: Outside) -> None:
    outside.hedge("report", "out", "--out", "report.html", "--figures", "figures")
    for kind in ("roc", "risk-coverage", "n-*"):
        [figure] = (outside.folder / "figures").glob(f"*-{kind}.csv")
        assert "Different answers" in figure.read_text("utf-8")
    text = (outside.folder / "report.html").read_text("utf-8")
    # In its figure, in its table, and with each question.
    assert text.count("Different answers") >= 3
    assert all(name in text for name in ("first_colour", "initial", '"colours_said"'))
    firm = values(outside)["firmness"]
    assert text.split("<dt>firmness ↑</dt>")[1].startswith(f"<dd>{firm:.3f}<small>")
    rows = json.loads(outside.hedge("compare", "out", "out", "--json"))["comparisons"]
    assert [(row["value_a"], row["p_max_t"]) for row in rows if row["what"] == "firmness"] == [(firm, 1.0)]


def test_its_run_has_a_place_on_a_board(outside: Outside) -> None:
    outside.hedge("leaderboard", "submit", "out", "--out", "board")
    outside.hedge("leaderboard", "check", *map(str, (outside.folder / "board").glob("*.json")))


def test_its_table_command_is_one_of_ours(outside: Outside) -> None:
    counts = json.loads(outside.hedge("paper", "colours", "out", "--json"))
    assert sum(counts.values()) == 24
    assert set(counts) <= {"red", "green", "blue"}


def test_its_broken_parts_are_named_and_break_nothing(outside: Outside) -> None:
    log = (outside.folder / "log").read_text("utf-8")
    assert "evaluation 'no_such' of hedge-colours cannot be loaded: ModuleNotFoundError" in log
    for name, told in (("no_such", "cannot be loaded: ModuleNotFoundError"), ("first_color", "'first_colour'?")):
        done = outside.run("-m", "hedge_tasks.cli", "judge", "out", "--judge", name)
        assert (done.returncode, told in done.stderr) == (2, True)
