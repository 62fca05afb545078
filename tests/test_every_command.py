"""Every command on a finished run, in every form: exit codes, numbers as the package has them, commands that parse."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from finished_runs import EXACT, finished_run

from hedge_tasks.cli import main, printing, whole_parser
from hedge_tasks.cli.printing import as_latex
from hedge_tasks.detectors.units import detection_auroc
from hedge_tasks.numbers import Column, Number, Table
from hedge_tasks.runs.run_files import load_run, save_run
from hedge_tasks.runs.scorers import scorers_of

ROOT = Path(__file__).parents[1]
FOLDERS = ("docs", "tasks", "models", "hedge_tasks", "benchmarks")
FORMS = ("text", "json", "csv", "latex")
PRINT = printing.print_as
PARSER = whole_parser()

COMMANDS = {
    "list": 0,
    "health RUN": 0,
    "rescore RUN": 0,
    "rescore RUN --clustering exact --alpha .5 --detectors se,vase": 0,
    "show RUN --id ID": 0,
    "judge RUN --judge rule --out OUT": 0,
    "calibrate RUN --risk .9 --confidence .5 --out OUT/policy.json": 0,
    "calibrate RUN --risk .001": 1,
    "leaderboard submit RUN --out OUT --model-name org/m": 0,
    "leaderboard check RUN": 1,
    "report RUN --no-curves --no-pictures --out OUT/r.html": 0,
    "rescore RUN --clustering exakt": 2,
    "health nowhere": 2,
}
"""Words of a command -> its exit code."""


@pytest.fixture(scope="module")
def run_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    return save_run(finished_run(40, filters=EXACT, task="hedge_demo"), folder / "run")


def called(words: str, run: Path, form: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    out = run.parents[1] / "out"
    out.mkdir(exist_ok=True)
    names = {"RUN": str(run), "OUT": str(out), "ID": load_run(run).answer_sets[0].id}
    for name, value in names.items():
        words = re.sub(rf"\b{name}\b", value, words)
    code = main([*words.split(), *([] if form == "text" else [f"--{form}"])])
    return code, capsys.readouterr().out


@pytest.mark.parametrize("words", COMMANDS)
def test_a_command_has_every_form(
    words: str, run_file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The forms are of one result, so that a command runs once for all of them."""
    results: list[Any] = []
    monkeypatch.setattr(printing, "print_as", lambda value, form: results.append(value))
    code, _ = called(words, run_file, "text", capsys)
    assert (code, len(results)) == (COMMANDS[words], int(code != 2))
    for result in results:
        texts = {}
        for form in FORMS:
            PRINT(result, form)
            texts[form] = capsys.readouterr().out
        assert all(text.strip() for text in texts.values())
        json.loads(texts["json"])
        assert list(csv.reader(io.StringIO(texts["csv"])))
        assert texts["latex"].count(r"\begin{tabular}") == texts["latex"].count(r"\end{tabular}") > 0
        for line in printed_commands(texts["text"]):
            parsed(line)


def test_json_has_the_numbers_of_the_package(run_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = load_run(run_file)
    filters = json.loads(called("rescore RUN", run_file, "json", capsys)[1])["filters"]
    for name, scorer in scorers_of(run).items():
        scores = scorer.score(run.answer_sets)
        for detector, number in filters[name]["auroc"].items():
            assert number == json.loads(json.dumps(detection_auroc(scores, detector).to_dict()))


def printed_commands(text: str) -> Iterator[str]:
    """Commands between backticks, and on lines of their own."""
    yield from re.findall(r"`(hedge [^`]+)`", text)
    yield from re.findall(r"^ *(hedge [a-z].*)$", text, re.MULTILINE)


def parsed(line: str) -> Any:
    words = shlex.split(line.replace("...", ""), comments=True)[1:]
    parser: Any = PARSER
    while words and words[0] in parser.commands:
        parser = parser.commands[words.pop(0)]
    # What a sentence names without its arguments is not typed as it stands.
    return parser.parse_args(words) if words else None


def test_the_commands_of_the_documents_can_be_typed() -> None:
    """Of every page: lines of blocks, fenced or indented, that begin with `hedge`; options in brackets are given."""
    pages = [*ROOT.glob("*.md"), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.md"))]
    lines = [
        re.sub(r"[\[\]]|\.\.\.| (\||2?>|&&).*", "", line)
        for page in pages
        for line in re.findall(r"^ *(hedge [a-z].*)$", page.read_text("utf-8").replace("\\\n", " "), re.MULTILINE)
        if not line.startswith("hedge run ")  # its options are lmms-eval's
    ]
    assert len(lines) > 80
    for line in lines:
        parsed(line)


def test_latex_escapes_what_latex_reads() -> None:
    table = Table([Column("a_b"), Column("n")], [{"a_b": "50 % & more", "n": Number(0.5)}])
    assert r"50 \% \& more & 0.500 \\" in as_latex(table)
