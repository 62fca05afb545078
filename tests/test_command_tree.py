"""The command line as a whole: one tree, options of one meaning, nearest names, completion, progress."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hedge_tasks.cli import COMMANDS, main, whole_parser
from hedge_tasks.cli.completion import SCRIPTS, walk
from hedge_tasks.io import progress as progress_module
from hedge_tasks.io.commands import Parser, as_json
from hedge_tasks.io.progress import progress, show_progress
from hedge_tasks.numbers import Column, Number, Table

ROOT = whole_parser()
TREE = dict(walk(ROOT))
RUN = {words: parser for words, parser in TREE.items() if parser.runs}
"""Commands that do something, by their words."""

SHARED = {
    "--out": ("where the result is written: ", Path, "PATH"),
    "--labels": ("labels that people gave: ", None, "LABELS"),
    "--label-store": ("folder of the judge's kept replies: ", Path, "DIR"),
    "--filter": ("one of the run's filters", None, "NAME"),
    "--detectors": ("which detectors, ", None, "all|NAMES"),
    "--json": ("print JSON", None, None),
    "--verbose": ("say what is being done", None, None),
    "--traceback": ("show where an error came from", None, None),
    "--trust-run": ("load the models and data sets that the run names", None, None),
    "--trust-policy": ("load the models, functions and packages that the policy names", None, None),
    "--clustering": ("how answers are compared: ", None, "NAME"),
    "--rule": ("rule of nli and hybrid", None, None),
    "--with-question": ("put the question in front of each answer", None, None),
    "--label-field": ("column of the label", None, "COLUMN"),
    "--column": ("such as ", None, "KEY=COLUMN"),
    "--no-pictures": ("leave the questions' pictures out", None, None),
    "--no-curves": ("leave out the curves that cluster again", None, None),
    "--host": ("address to listen at", None, None),
    "--port": ("0 takes a free one", int, None),
    "--policy": ("of `hedge calibrate`", Path, "FILE"),
    "--at-once": ("all draws in one wave", None, None),
}
"""Options that mean one thing in all commands: start of the help, type, metavar."""


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as end:
        main(list(words))
    assert end.value.code == 2
    return capsys.readouterr().err.splitlines()[-1]


def test_every_command_stands_in_one_section() -> None:
    listed = [name for names in ROOT.sections.values() for name in names]
    assert sorted(listed) == sorted(set(listed)) == sorted(ROOT.commands)
    assert list(ROOT.sections) == list(COMMANDS)
    text = ROOT.format_help()
    for title, names in ROOT.sections.items():
        assert f"\n{title}:\n" in text
        assert all(f"\n  {name} " in text for name in names)


def test_every_command_has_a_plain_line() -> None:
    for words, parser in TREE.items():
        if parser is not ROOT:
            assert parser.summary[0].islower(), words
            assert not parser.summary.endswith("."), words
            assert len(parser.summary) <= 120, words


def test_every_command_has_json_and_verbose() -> None:
    assert len(RUN) > 40
    assert [words for words, parser in RUN.items() if not {"--json", "--verbose"} <= set(parser.options())] == []


@pytest.mark.parametrize("name", SHARED)
def test_an_option_means_one_thing_everywhere(name: str) -> None:
    start, kind, metavar = SHARED[name]
    found = {words: parser.options()[name] for words, parser in RUN.items() if name in parser.options()}
    assert found
    for words, action in found.items():
        assert (action.type, action.metavar, str(action.help).startswith(start)) == (kind, metavar, True), words


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["detctors", "x"], "hedge: error: unknown command 'detctors', did you mean 'detectors'? Valid: "),
        (
            ["paper", "medhalu"],
            "hedge paper: error: unknown command 'medhalu', did you mean 'medhallu'?",
        ),
        (["paper"], "hedge paper: error: a command is missing: hedge, medhallmark, medhallu, shale, vope"),
        (["compare", "a", "--filtr", "x"], "hedge compare: error: unknown option '--filtr', did you mean '--filter'?"),
        (["judge", "train", "x", "--bas=y"], "hedge judge train: error: the following arguments are required: --out"),
        (
            ["detectors", "x", "--sweep", "draw"],
            "hedge detectors: error: unknown --sweep 'draw', did you mean 'draws'? Valid: draws",
        ),
        (["plot", "rok", "x"], "hedge plot: error: unknown kind 'rok', did you mean 'roc'? Valid: "),
        (["path", "here"], "hedge path: error: unexpected argument 'here'"),
        ([], "hedge: error: a command is missing: init, "),
    ],
)
def test_what_is_unknown_names_the_nearest(capsys: pytest.CaptureFixture[str], words: list[str], message: str) -> None:
    assert refused(capsys, *words).startswith(message)


def test_commands_beside_arguments(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert set(TREE["hedge judge"].commands) == {"data", "train"}
    help_text = TREE["hedge judge"].format_help()
    assert "\ncommands:\n  data" in help_text
    assert "--judge" in help_text
    assert "--base" in refused(capsys, "judge", "train", "x", "--out", "y")
    # Only in the first place: elsewhere the word is a run.
    assert main(["judge", "--judge", "rule", str(tmp_path / "train")]) == 2
    assert "train" in capsys.readouterr().err


def test_options_of_the_group_come_before_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ROOT.parse_args(["--traceback", "path", "--json"])
    assert (arguments.traceback, arguments.json) == (True, True)
    assert ROOT.parse_args(["path"]).traceback is False
    assert ROOT.parse_args(["path", "--traceback"]).traceback is True


def test_json_of_values() -> None:
    table = Table([Column("a"), Column("b")], [{"a": "x", "b": Number(0.5, n=4)}])
    value: Any = {"table": table, "path": Path("x"), "none": None, "far": float("inf"), "pair": (1, {2.5: "y"})}
    facts = json.loads(json.dumps(as_json(value)))
    assert facts["table"] == [{"a": "x", "b": {"value": 0.5, "n": 4, "unit": "document"}}]
    assert (facts["path"], facts["none"], facts["far"], facts["pair"]) == ("x", None, "inf", [1, {"2.5": "y"}])


# --- completion -------------------------------------------------------------------------------------------------------


def completed(script: Path, *words: str) -> list[str]:
    """Completions that bash offers for the last of the words."""
    line = f'source {script}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _hedge; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", line, "bash", "hedge", *words], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shell") / "hedge.bash"
    path.write_text(SCRIPTS["bash"](TREE))
    return path


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["comp"], {"compare", "completion"}),
        (["paper", ""], {"hedge", "medhallmark", "medhallu", "shale", "vope", "--help"}),
        (["judge", "t"], {"train"}),
        (["judge", "train", "--ba"], {"--base"}),
        (["detectors", "run", "--sweep", ""], {"n", "draws"}),
        (["plot", "r"], {"roc", "risk-coverage", "relevance"}),
        (["completion", ""], {"bash", "zsh", "fish"}),
    ],
)
def test_bash_completes(script: Path, words: list[str], expected: set[str]) -> None:
    assert expected <= set(completed(script, *words)) <= expected | {"--help", "--json", "--verbose", "--traceback"}


@pytest.mark.parametrize("shell", SCRIPTS)
def test_scripts_are_of_their_shell_and_have_every_command(shell: str, tmp_path: Path) -> None:
    text = SCRIPTS[shell](TREE)
    assert [words for words in TREE if words not in text] == []
    if (program := shutil.which(shell)) is not None:
        path = tmp_path / "script"
        path.write_text(text)
        subprocess.run([program, "--no-execute" if shell == "fish" else "-n", str(path)], check=True)


# --- progress ---------------------------------------------------------------------------------------------------------


def test_progress_is_shown_where_somebody_sees_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_module, "_DELAY_S", 0.0)
    monkeypatch.setattr(progress_module, "_asked_for", False)
    assert list(progress(range(3), name="Scoring", unit="point")) == [0, 1, 2]
    assert capsys.readouterr().err == ""  # no terminal, and nobody asked
    show_progress()
    assert list(progress(range(3), name="Scoring", unit="point")) == [0, 1, 2]
    shown = capsys.readouterr().err
    assert "Scoring" in shown
    assert "0/3" in shown
    assert "point/s" in shown


def test_a_parser_without_commands_is_an_ordinary_one() -> None:
    parser = Parser(prog="x")
    parser.add_argument("a")
    parser.set_defaults(execute=print)
    assert parser.parse_args(["b"]).a == "b"
    assert parser.format_usage().startswith("usage: x [-h] a")
