"""The command line as a whole: one tree, options of one meaning, nearest names, progress."""

from __future__ import annotations

import json
import re
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from golden.make_wording import FILE, walk, wording

from hedge_tasks.cli import COMMANDS, main, whole_parser
from hedge_tasks.cli.printing import print_as
from hedge_tasks.io import progress as progress_module
from hedge_tasks.io.commands import as_json
from hedge_tasks.io.progress import progress
from hedge_tasks.numbers import Column, Number, Table

ROOT = whole_parser()
TREE = dict(walk(ROOT))
RUN = {words: parser for words, parser in TREE.items() if parser.runs}
"""Commands that do something, by their words."""


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as end:
        main(list(words))
    assert end.value.code == 2
    return capsys.readouterr().err.splitlines()[-1]


def test_every_command_stands_in_one_section() -> None:
    listed = [name for names in ROOT.sections.values() for name in names]
    assert sorted(listed) == sorted(set(listed)) == sorted(ROOT.commands)
    assert list(ROOT.sections) == list(COMMANDS)


def test_every_command_has_a_plain_line() -> None:
    for words, parser in TREE.items():
        if parser is not ROOT:
            assert re.fullmatch(r"[A-Z].{,119}\.", str(parser.description)), words


def test_every_command_has_json_and_verbose() -> None:
    assert len(RUN) > 30
    assert [words for words, parser in RUN.items() if not {"--json", "--verbose"} <= set(parser.options())] == []


@pytest.mark.parametrize("name", ["--model", "--clustering", "--trust-run", "--alpha"])
def test_an_option_means_one_thing_everywhere(name: str) -> None:
    old = ("hedge paper", "hedge make", "hedge data")
    options = [p.options()[name] for words, p in RUN.items() if name in p.options() and not words.startswith(old)]
    assert len(options) > 1
    assert len({(action.type, action.metavar, action.help.partition("(")[0].strip()) for action in options}) == 1


@pytest.mark.slow
def test_the_wording_is_that_of_the_snapshot() -> None:
    assert wording() == FILE.read_text("utf-8"), "if it is meant: python tests/golden/make_wording.py"


def test_commands_beside_arguments(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert set(TREE["hedge judge"].commands) == {"data", "train"}
    assert "--base" in refused(capsys, "judge", "train", "x", "--out", "y")
    # Only in the first place: elsewhere the word is a run.
    assert main(["judge", "--judge", "rule", str(tmp_path / "train")]) == 2
    assert "train" in capsys.readouterr().err


def test_options_of_the_group_come_before_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ROOT.parse_args(["--traceback", "list", "--json"])
    assert (arguments.traceback, arguments.json) == (True, True)
    assert ROOT.parse_args(["list"]).traceback is False
    assert ROOT.parse_args(["list", "--traceback"]).traceback is True


def test_an_interruption_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("hedge_tasks.runs.run_files.load_run", lambda *words, **options: signal.raise_signal(2))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background ignores it
    for words in (["judge", "x", "--judge", "rule"], ["show", "x", "--id", "1"]):
        assert main(words) == 130
        assert capsys.readouterr().err.count("\n") == 1
    signal.signal(signal.SIGINT, before)


def test_lists_are_whole_in_csv_and_cut_in_text(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"id": i, "votes": {"rule": {"label": 1, "reason": "x" * 99}}, "why": "y" * 99} for i in range(30)]
    for form, n_lines, is_whole in (("csv", 31, True), ("text", 23, False)):
        print_as({"rows": rows}, form)
        printed = capsys.readouterr().out
        assert (len(printed.splitlines()), "x" * 99 in printed) == (n_lines, is_whole)


def test_csv_is_the_table_alone_with_what_is_undefined_last(capsys: pytest.CaptureFixture[str]) -> None:
    print_as({"fact": 1, "auroc": {"a": Number.undefined("none"), "b": Number(0.5)}}, "csv")
    assert [line.split(",")[0] for line in capsys.readouterr().out.splitlines()] == ["auroc", "b", "a"]


def test_json_of_values() -> None:
    table = Table([Column("a"), Column("b")], [{"a": "x", "b": Number(0.5, n=4)}])
    value: Any = {"table": table, "path": Path("x"), "none": None, "far": float("inf"), "pair": (1, {2.5: "y"})}
    facts = json.loads(json.dumps(as_json(value)))
    assert facts["table"] == [{"a": "x", "b": {"value": 0.5, "n": 4, "unit": "document"}}]
    assert (facts["path"], facts["none"], facts["far"], facts["pair"]) == ("x", None, "inf", [1, {"2.5": "y"}])


# --- progress ---------------------------------------------------------------------------------------------------------


def test_progress_is_shown_where_somebody_sees_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, said: list[str]
) -> None:
    monkeypatch.setattr(progress_module, "_DELAY_S", 0.0)
    assert list(progress(range(3), name="Scoring", unit="point")) == [0, 1, 2]
    assert capsys.readouterr().err == ""  # no terminal
    assert "Scoring: point 1 of 3" in said[-1]
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert list(progress(range(3), name="Scoring", unit="point")) == [0, 1, 2]
    shown = capsys.readouterr().err
    assert "Scoring" in shown
    assert "0/3" in shown
    assert "point/s" in shown
