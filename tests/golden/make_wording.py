"""Write `wording.txt`: the help of every command, what wrong ones are told, and what some say of a small run.

    python tests/golden/make_wording.py

Digits of results are 0 there: other tests are about numbers.
"""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).parents[1]))

from finished_runs import EXACT, finished_run

from hedge_tasks.cli import main, whole_parser
from hedge_tasks.io.commands import Parser
from hedge_tasks.runs.run_files import save_run

FILE = Path(__file__).with_name("wording.txt")

RIGHT = """
health one | detectors one | compare one | compare one two | rescore one | show one --id q3
calibrate one --risk 90% | judge one --judge rule --out out | score answers.jsonl --clustering exact
leaderboard check answers.jsonl
"""

WRONG = """
 | detctors one | list here | store | paper | leaderboard submitt | judge train x --bas=y | judge one
judge --judge rule | rescore nowhere | rescore both | rescore one --clustring x | rescore one --alpha 1 --alpha 2
rescore one --task hedge_dem | rescore one --clustering exakt | rescore one --clustering exact:rule=strict
detectors one --sweep draw | detectors one --thresholds | detectors one --sweep n --seeds
detectors one --detectors vas | show one --id q99 | compare one nowhere | compare one others
detectors one --detectors 'Semantic Entropy'
compare one --detectors se --clustering exact | calibrate one --risk few | calibrate one --risk 2 | calibrate one
score nowhere.jsonl | score answers.jsonl --clustering nil | score answers.jsonl --clustering embed:threshold=2
score answers.jsonl --clustering exact:threshold=0.5
score answers.jsonl --clustering exact --out no/such/folder/out.jsonl | score answers.jsonl --out answers.jsonl
"""
"""Words of commands, with a bar between two."""


def walk(parser: Parser) -> Iterator[tuple[str, Parser]]:
    """Every command and group by its words, `hedge` first."""
    yield parser.prog, parser
    for part in parser.commands.values():
        yield from walk(part)


def commands(text: str) -> list[str]:
    return [words.strip() for words in text.strip().replace("\n", "|").split("|")]


def said(words: str) -> str:
    """What a command prints on both streams."""
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(out):
        try:
            code: object = main(shlex.split(words))
        except SystemExit as end:
            code = end.code
    return f"{out.getvalue().strip()}\n(exit code {code})"


def wording() -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HEDGE_")}
    quick = mock.patch("hedge_tasks.cli.PATIENCE_S", 1e6)
    with quick, mock.patch.dict(os.environ, {**kept, "COLUMNS": "100"}, clear=True):
        return "\n".join(f"$ {words}\n{text}\n" for words, text in parts().items())


def parts() -> dict[str, str]:
    texts = {
        f"{words} --help": re.sub(r"\Ausage:.*?\n\n", "", parser.format_help(), flags=re.DOTALL)
        for words, parser in walk(whole_parser())
    }
    run = finished_run(40, filters=EXACT, task="hedge_demo")
    others = replace(run, answer_sets=tuple(replace(a, id=f"x{a.id}") for a in run.answer_sets))
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for name, saved in {"one": run, "two": finished_run(40, seed=1, task="hedge_demo"), "others": others}.items():
            save_run(saved, Path(name))
        for model in "ab":
            save_run(replace(run, model=model), Path("both"))
        Path("answers.jsonl").write_text('{"id": "q", "baseline": "a", "clean": ["a", "b"]}\n', "utf-8")
        texts |= {f"hedge {words}": re.sub(r"\d(?!\)$)", "0", said(words)) for words in commands(RIGHT)}
        texts |= {f"hedge {words}": said(words).replace(folder, ".") for words in commands(WRONG)}
        facts = json.loads(said("doctor --json").rpartition("\n")[0])["facts"]
    return texts | {"hedge doctor": "\n".join(f"{fact['about']}: {fact['name']}" for fact in facts)}


if __name__ == "__main__":
    FILE.write_text(wording(), "utf-8")
