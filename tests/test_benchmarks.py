"""Every benchmark starts: its imports are there and its options are known; and those that can, do a small case."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import REPOSITORY

FOLDER = REPOSITORY / "benchmarks"
SMALL = {
    "audited_promise": "--splits 1",
    "audit_coverage": "--samples 2 --labels 150",
    "guarantee": "--cells --splits 1 --risks 0.2",
    "interval_coverage": "--samples 2",
    "noisy_draws": "DUMP TRUTH --n 2",
    "replies": "",
    "sizes": "",
    "spellings": "--from MEANS --figure FIGURE",
}
"""Options of a case of a few seconds, and less where little is drawn."""

NEEDS = {
    "a model": "gpu claims",
    "data that is not in the repository": "rule_judge vlm_options",
    "a finished run, or minutes": "mitigations equal_numbers mutants streamed_scores",
}
"""Why the others have none."""


@pytest.fixture(autouse=True)
def _environment() -> Iterator[None]:
    """A benchmark is a process of its own otherwise, and sets variables as it likes."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.mark.slow
@pytest.mark.framework
@pytest.mark.parametrize("name", " ".join(NEEDS.values()).split())
def test_a_benchmark_starts(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(FOLDER, f"{name}.py")
    monkeypatch.setattr(sys, "argv", [str(path), "--help"])
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(path), run_name="__main__")
    assert ended.value.code == 0
    assert "usage: " in capsys.readouterr().out


def dump(folder: Path) -> dict[str, str]:
    """Files that small cases ask for, by the word that stands for each."""
    draws = folder / "draws"
    draws.mkdir()
    for kind in ("", "negated_"):
        lines = [f"q_{i} {'AB'[i % 2]}" for i in range(24)]
        (draws / f"{kind}tiny_vanilla_vsr.txt").write_text("\n".join(lines) + "\n")
        more = [
            f"q_{i}_{how}1_sample{k} {'AB'[k * i % 2]}" for i in range(24) for how in ("bw", "blur") for k in (0, 1)
        ]
        (draws / f"{kind}tiny_perturb_sampling_vsr.txt").write_text("\n".join(more) + "\n")
    (folder / "truth.txt").write_text("".join(f"q_{i} ({i % 3 % 2})\n" for i in range(24)))
    (folder / "means.json").write_text('{"set": {"1": [0.8, 0.7, 0.7, 0.7], "2": [0.7, 0.7, 0.7, 0.7]}}')
    names = {"DUMP": "draws", "TRUTH": "truth.txt", "MEANS": "means.json", "FIGURE": "figure.svg"}
    return {word: str(folder / name) for word, name in names.items()}


def test_every_benchmark_has_a_small_case_or_a_reason() -> None:
    listed = [*SMALL, *(name for names in NEEDS.values() for name in names.split())]
    assert sorted(listed) == sorted(path.stem for path in FOLDER.glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_a_small_case_ends_with_numbers(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = dump(tmp_path)
    path = FOLDER / f"{name}.py"
    monkeypatch.setattr(sys, "argv", [str(path), *(files.get(word, word) for word in SMALL[name].split())])
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    runpy.run_path(str(path), run_name="__main__")
    figure = Path(files["FIGURE"])
    told = figure.read_text() if figure.exists() else capsys.readouterr().out
    assert sum(character.isdigit() for character in told) > 10
