"""What the README and docs/running.md say is run: its commands, its Python, its JSON, and the numbers it shows."""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import REPOSITORY
from once import programs
from PIL import Image

from hedge_tasks.cli import main
from hedge_tasks.data.answer_files import read_answers

PAGES = {place: (REPOSITORY / place).read_text("utf-8") for place in ("README.md", "docs/running.md")}
README = "\n".join(PAGES.values())

NEEDS = (
    "the repository's address",
    "the repository as its folder",
    "a GPU and network",
    "a chat server",
    "a browser",
    "a run of hedge_vqarad",
    "a run of hedge_vope",
    "its file",
)
"""Why a command is not run here, as its comment says; whoever adds another reason adds it here."""

EXIT_CODES = {"hedge calibrate": (0, 1)}
"""Of commands that may say no."""

TINY_NLI = "package://hedge_tasks.models.tiny/nli"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def commands(block: str) -> Iterator[tuple[str, str]]:
    """(command, its comment); a command that ends in a backslash goes on."""
    for line in block.replace("\\\n", " ").splitlines():
        command, _, comment = line.partition("#")
        if command.strip():
            yield " ".join(command.split()), comment.strip()


def every_command() -> list[tuple[str, str]]:
    return [entry for block in blocks("bash") for entry in commands(block)]


def runnable(prefix: str) -> list[str]:
    return [command for command, comment in every_command() if command.startswith(prefix) and "needs " not in comment]


@pytest.mark.slow
def test_every_command_is_run_or_says_what_it_needs() -> None:
    found = every_command()
    assert len(found) > 25
    reasons = [comment.partition("needs ")[2] for _, comment in found if "needs " in comment]
    assert all(reason.startswith(NEEDS) for reason in reasons), reasons
    assert {reason for reason in NEEDS if not any(r.startswith(reason) for r in reasons)} == set(), (
        "no command needs it"
    )
    run = [command for command, comment in found if "needs " not in comment]
    assert [command for command in run if not command.startswith(("hedge ", "lmms-eval ", "make "))] == []
    for command, _ in found:
        if command.startswith("hedge "):  # whatever it needs, there is such a command
            with pytest.raises(SystemExit, match="0"):
                main([shlex.split(command)[1], "--help"])


def test_make_does_what_it_is_said_to_do() -> None:
    said = [command for command, _ in every_command() if command.startswith("make ")]
    assert said == ["make demo", "make test"]
    [demo] = [command for command in runnable("hedge run") if "hedge_demo" in command]
    for command in said:
        call = [*command.split(), "--dry-run", "--always-make"]
        done = subprocess.run(call, cwd=REPOSITORY, capture_output=True, text=True, check=True)
        assert (demo if command == "make demo" else "pytest") in done.stdout
        assert "venv .venv" in done.stdout


def test_links_lead_somewhere() -> None:
    for place, text in PAGES.items():
        targets = re.findall(r"\]\((?!https?:)([^)#]+)", text)
        assert len(targets) > 5
        assert [target for target in targets if not ((REPOSITORY / place).parent / target).exists()] == []


def test_the_first_page_is_short_and_contributors_find_every_room() -> None:
    assert PAGES["README.md"].count("\n") < 120
    rooms = {path.name for path in (REPOSITORY / "hedge_tasks").iterdir() if (path / "__init__.py").exists()}
    text = (REPOSITORY / "CONTRIBUTING.md").read_text("utf-8")
    table = "".join(re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", text.partition("## Conventions")[0], re.MULTILINE))
    assert set(re.findall(r"`(\w+)`", table)) - {"registry", "evaluation", "errors"} == rooms


def test_the_example_of_a_line_is_one_line(tmp_path: Path) -> None:
    [example] = blocks("json")
    assert example.count("\n") == 1
    (tmp_path / "answers.jsonl").write_text(example)
    [asked] = read_answers([tmp_path / "answers.jsonl"]).answer_sets
    assert (asked.id, asked.label, len(asked.clean), len(asked.noisy)) == ("q1", 1, 2, 1)


def test_the_python_does_what_its_comment_says() -> None:
    [example] = blocks("python")
    [(expression, told)] = re.findall(r"^(\S.*?)\s+# ([\d.]+) nats$", example, re.MULTILINE)
    names: dict[str, object] = {}
    exec(example, names)
    assert eval(expression, names) == pytest.approx(float(told), abs=5e-5)


# --- run for real -----------------------------------------------------------------------------------------------------


def shell(command: str, folder: Path) -> str:
    """A command as it stands there, its programs as forks of the fork server."""
    path = f"{programs()}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "HEDGE_MODELS": f"nli={TINY_NLI}"}
    done = subprocess.run(
        command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=900
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder where the README's demo was run, and what that printed."""
    folder = tmp_path_factory.mktemp("readme")
    [command] = [command for command in runnable("hedge run") if "hedge_demo" in command]
    return folder, shell(command, folder)


def cells(text: str) -> dict[tuple[str, str], tuple[float, float | None]]:
    """(filter, metric) -> value and standard error."""
    found = {}
    for line in text.splitlines():
        if line.startswith("|hedge_demo|"):
            _, name, _, metric, _, value, _, error = [cell.strip() for cell in line.strip("|").split("|")]
            found[name, metric] = (float(value), None if error == "N/A" else float(error))
    return found


@pytest.mark.slow
@pytest.mark.docs
@pytest.mark.framework
def test_the_demo_prints_the_table_that_is_shown(demo: tuple[Path, str]) -> None:
    shown, printed = cells(README), cells(demo[1])
    assert shown.keys() == printed.keys()
    assert len(shown) == 8
    for key, (value, error) in shown.items():
        assert printed[key][0] == pytest.approx(value, abs=0.002), key
        assert (printed[key][1] is None) == (error is None)
        assert error is None or printed[key][1] == pytest.approx(error, abs=0.002), key
    assert "report: results/report.html" in demo[1].splitlines()
    finding = " ".join(re.findall(r"^> (.*)$", PAGES["README.md"], re.MULTILINE))
    assert f"Finding: {finding}" in demo[1].splitlines()


@pytest.mark.slow
@pytest.mark.docs
@pytest.mark.framework
def test_what_is_done_after_a_run_works(
    demo: tuple[Path, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(demo[0])
    monkeypatch.setenv("HEDGE_MODELS", f"nli={TINY_NLI}")
    for name in ("results_a", "results_b"):
        if not Path(name).exists():
            Path(name).symlink_to("results", target_is_directory=True)
    after = [command for command in runnable("hedge ") if " results" in command]
    assert len(after) > 15
    for command in after:
        code = main(shlex.split(command)[1:])
        said = capsys.readouterr()
        assert code in EXIT_CODES.get(" ".join(command.split()[:2]), (0,)), f"{command}: {said.err}"
        assert said.out.strip(), command
    written = {"report.html", "p.json"}
    assert {name for name in written if not Path(name).is_file()} <= {"p.json"}  # no promise could be made
    assert list(Path("figures").glob("*-roc.pdf"))


@pytest.mark.slow
@pytest.mark.docs
@pytest.mark.framework
def test_one_s_own_answers_and_one_s_own_questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "answers.jsonl").write_text(blocks("json")[0])
    with (tmp_path / "data.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["image", "question", "answer"])
        for i in range(4):
            Image.new("L", (64, 64), 40 * i).save(tmp_path / f"{i}.png")
            writer.writerow([f"{i}.png", "is it bright?", "yes" if i > 1 else "no"])
    [score] = runnable("hedge score")
    shell(score, tmp_path)
    [row] = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text().splitlines()]
    assert row["id"] == "q1"
    own = [
        *runnable("hedge init"),
        *(c for c in runnable("lmms-eval") if "mytask" in c),
        *runnable("hedge report mine"),
    ]
    assert len(own) == 3
    for command in own:
        shell(command, tmp_path)
    assert (tmp_path / "mine.html").read_text("utf-8").count("data:image/jpeg") == 4
