"""The offline demo of each suite: the command of its README, its numbers by hand, and the suite's own metrics."""

from __future__ import annotations

import html
import re
import shlex
from fractions import Fraction
from pathlib import Path

import pytest
from conftest import REPOSITORY
from demo_pictures import pictures
from evaluation import Run, evaluate
from PIL import Image

from hedge_tasks.cli import main
from hedge_tasks.measures.run_measures import numbers_of_run
from hedge_tasks.report.paper_section import paper_sections
from hedge_tasks.runs.run_files import load_run

SUITES = ("medhallu", "medhallmark", "shale", "vope")

BY_HAND: dict[str, dict[str, Fraction]] = {
    # True negatives 6, false negatives 3, false positives 2, true positives 5.
    "medhallu": {
        "f1": Fraction(2 * 5, 2 * 5 + 2 + 3),
        "accuracy": Fraction(11, 16),
        "precision": Fraction(5, 7),
        "recall": Fraction(5, 8),
    },
    # Correct 4 times, then attribute 0.4, critical 0.2, minor 0.8, catastrophic 0.
    "medhallmark": {
        "medihall": (4 + Fraction(4 + 2 + 8, 10)) / 8,
        "accuracy": Fraction(4, 8),
        "share_correct": Fraction(4, 8),
    },
    # Clean: a, b, c right, e wrong. CRP: of these only c; TXT: a and b; PFX: c.
    "shale": {
        "accuracy_clean": Fraction(3, 4),
        "resistance_crp": Fraction(1, 3),
        "resistance_txt": Fraction(2, 3),
        "resistance_pfx": Fraction(1, 3),
        "resistance_rate": (Fraction(1, 3) + Fraction(2, 3) + Fraction(1, 3)) / 3,
    },
    # Affirmed: stop sign, traffic light, car, clock, kite, surfboard, book; denied: tv, cat, dog; clock not read.
    "vope": {
        "hal_d": Fraction(2, 7),
        "hal_i": Fraction(1, 3),
        "exp": Fraction(3, 10),
        "chair_i": Fraction(4, 11),
        "chair_s": Fraction(3, 4),
    },
}


def readme(suite: str) -> str:
    text = (REPOSITORY / "tasks" / f"hedge_{suite}" / "README.md").read_text("utf-8")
    return text.split("\n## Demo\n")[1].split("\n## ")[0]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """Each command as its README has it, but for where it writes."""
    found = {}
    for suite in SUITES:
        [command] = re.findall(r"```bash\n(lmms-eval .*?)```", readme(suite), re.DOTALL)
        words = shlex.split(command.replace("\\\n", " "))
        at = words.index("--output_path")
        found[suite] = evaluate(tmp_path_factory.mktemp(suite) / "demo", *words[1:at], *words[at + 2 :])
    return found


def cells(run: Run, suite: str) -> dict[str, object]:
    values = run.values(f"hedge_{suite}_demo")
    return {key.partition(",")[0]: value for key, value in values.items() if "_stderr" not in key}


@pytest.mark.slow
@pytest.mark.framework
@pytest.mark.parametrize("suite", SUITES)
def test_the_table_is_what_follows_by_hand_and_what_the_run_file_says(runs: dict[str, Run], suite: str) -> None:
    found = cells(runs[suite], suite)
    assert {name: found[name] for name in BY_HAND[suite]} == pytest.approx(
        {name: float(value) for name, value in BY_HAND[suite].items()}, abs=1e-12
    )
    own = numbers_of_run(load_run(runs[suite].output))
    assert len(own) >= 4
    assert {metric.name: m.value for metric, m in own} == {metric.name: found[metric.name] for metric, _ in own}
    for metric, m in own:
        assert m.interval is not None, metric.name
        assert m.value is not None
        assert 0 <= m.interval[0] <= m.value <= m.interval[1] <= 1
        [stderr] = [
            v for key, v in runs[suite].values(f"hedge_{suite}_demo").items() if key.startswith(f"{metric.name}_stderr")
        ]
        # Nothing varies among answers that are all right: the table has what the interval says in place of 0.
        half = (m.interval[1] - m.interval[0]) / 2 / 1.959963984540054
        assert stderr == pytest.approx(m.stderr or half, rel=1e-9)


@pytest.mark.parametrize("suite", SUITES)
def test_the_readme_has_these_numbers(suite: str) -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| ([\d.]+) \|", readme(suite), re.MULTILINE))
    assert rows == {name: f"{float(value):.4f}" for name, value in BY_HAND[suite].items()}


@pytest.mark.slow
@pytest.mark.framework
@pytest.mark.parametrize("suite", SUITES)
def test_a_report_has_the_tables_of_the_suites_command(
    runs: dict[str, Run], suite: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = runs[suite].output
    [section] = paper_sections([load_run(folder)])
    assert main(["paper", suite, str(folder)]) == 0
    said = capsys.readouterr().out.split()
    assert section.tables
    for table in section.tables:
        words = table.to_text().split()
        assert any(said[i : i + 12] == words[:12] for i in range(len(said))), table.title
    assert main(["report", str(folder), "--no-curves", "--out", str(tmp_path / "report.html")]) == 0
    page = (tmp_path / "report.html").read_text("utf-8")
    assert f'id="paper-{suite}"' in page
    assert all(html.escape(table.title) in page for table in section.tables)


@pytest.mark.parametrize("file", pictures())
def test_the_drawings_are_drawn_by_code(file: str) -> None:
    with Image.open(Path(REPOSITORY, "tasks", file)) as shipped:
        assert shipped.convert("RGB").tobytes() == pictures()[file].tobytes()
