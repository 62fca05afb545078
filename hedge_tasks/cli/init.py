"""`hedge init`: a task of lmms-eval out of one's own questions, answers and pictures."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hedge_tasks.io.commands import Parser, add_out, command, say, show
from hedge_tasks.numbers import count_of

if TYPE_CHECKING:
    from hedge_tasks.data.columns import Roles
    from hedge_tasks.data.own_data import RowFindings
    from hedge_tasks.data.tables import StoredTable
    from hedge_tasks.lmms.own_task.files import OwnTask
    from hedge_tasks.lmms.own_task.trial import Trial

_EXAMPLES = """\
DATA is a table with one question a row: CSV (commas, semicolons or tabs), JSON lines, a JSON list, parquet, or a folder
that holds one of these with the pictures. Pictures are names of files (from the table's folder), https:// addresses,
the bytes of files, or {bytes, path} as pandas and datasets write them.

examples:
  hedge init chest_xray xrays/questions.csv
  hedge init polyps polyps.parquet --answer reference --group patient_id
  hedge init trivia trivia.jsonl --image none
"""
TINY_NLI = "package://hedge_tasks.models.tiny/nli"
"""The NLI model inside this package."""

_LONGEST = 70
_MOST_VALUES = 4


def add(commands: Parser) -> None:
    parser = command(commands, "init", run, "make a task of your own data, check it, and say how to run it")
    parser.formatter_class, parser.epilog = argparse.RawDescriptionHelpFormatter, _EXAMPLES
    parser.add_argument("task", help="name of the task, and of the folder that is made")
    parser.add_argument("data", type=Path, metavar="DATA", help="file or folder")
    parser.add_argument("--question", metavar="COLUMN", help="column with the questions")
    parser.add_argument("--answer", metavar="COLUMN", help="column with the right answers")
    parser.add_argument(
        "--image", action="append", default=[], metavar="COLUMN", help="column with pictures; again for more; none"
    )
    parser.add_argument("--group", metavar="COLUMN", help="column that questions share that belong together; none")
    parser.add_argument("--id", metavar="COLUMN", help="column with ids; none numbers the rows")
    parser.add_argument("--question-type", metavar="COLUMN", help="column with the kind of question; none")
    parser.add_argument("--images", type=Path, metavar="DIR", help="folder that names of pictures count from")
    parser.add_argument("--prompt", default="plain/question", metavar="FILE/VARIANT", help="default: %(default)s")
    parser.add_argument("--drop", action="store_true", help="leave out rows without a question, answer or picture")
    add_out(parser, "folder of the task, which must not exist (default: the task's name)")


def run(arguments: argparse.Namespace) -> int:
    from hedge_tasks.data.columns import ColumnSettings, find_roles
    from hedge_tasks.data.own_data import look_at, write_data
    from hedge_tasks.data.tables import read_table
    from hedge_tasks.lmms.own_task.files import DATA, OwnTask, check_name, commands, write_files
    from hedge_tasks.sampling.prompts import load_prompt

    check_name(arguments.task)
    load_prompt(arguments.prompt)
    out = arguments.out or Path(arguments.task)
    _check_folder(out)
    table = read_table(arguments.data)
    roles = find_roles(
        table,
        ColumnSettings(
            arguments.question,
            arguments.answer,
            tuple(arguments.image),
            arguments.group,
            arguments.id,
            arguments.question_type,
        ),
    )
    folder = arguments.images or table.folder
    findings = look_at(table, roles, folder)
    facts = _facts(table, roles, findings)
    say(
        "\n".join([f"{table.name}: {count_of(table.n_rows, 'row')}, {table.read_as}", *(f"  {f}" for f in facts)]),
        sys.stderr,
    )
    left_out = _left_out(findings, table, arguments.drop)
    task = OwnTask(arguments.task, table.name, roles, arguments.prompt, tuple(facts), table.n_rows - len(left_out))
    say("Checking with lmms-eval (half a minute) ...", sys.stderr)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent) as parent:
        folder_of_task = Path(parent) / out.name
        folder_of_task.mkdir()
        write_data(table, roles, folder, left_out, folder_of_task / DATA)
        write_files(folder_of_task, task)
        trial = _tried(folder_of_task, task.name)
        shutil.move(folder_of_task, out)
    next_commands = commands(task.name, str(out))
    value = {
        "task": task.name,
        "folder": str(out),
        "documents": task.n_documents,
        "left_out": [row + 1 for row in left_out],
        "roles": roles,
        "facts": facts,
        "first": trial.shown,
        "judged": trial.judged,
        "missing_models": trial.missing,
        "commands": next_commands,
    }
    show(arguments, value, "\n".join(_report(task, out, trial, next_commands)))
    return 0


def _check_folder(out: Path) -> None:
    from hedge_tasks.errors import DataError

    if out.exists():
        raise DataError(f"{out} is there already; remove it, or make another folder with --out DIR")
    if not out.parent.is_dir():
        raise DataError(f"{out.parent} is not a folder")


def _left_out(findings: RowFindings, table: StoredTable, drop: bool) -> list[int]:
    from hedge_tasks.data.own_data import describe
    from hedge_tasks.errors import DataError

    if not findings.faults:
        return []
    faults = describe(findings.faults, table.n_rows)
    if len(findings.faults) == table.n_rows:
        raise DataError(f"{table.name}: {faults}")
    if not drop:
        raise DataError(f"{table.name}: {faults}. Mend them, or leave these rows out with --drop")
    say(f"Left out: {faults}", sys.stderr)
    return list(findings.faults)


def _facts(table: StoredTable, roles: Roles, findings: RowFindings) -> list[str]:
    """Return how each column was taken, a line each."""
    kinds = [f"question: column {roles.question!r}", f"answer: column {roles.answer!r}{_values(table, roles.answer)}"]
    columns = " and ".join(map(repr, roles.images))
    kinds.append(f"pictures: column {columns}, {findings.pictures} different" if roles.images else "pictures: none")
    if roles.group:
        kinds.append(f"group: column {roles.group!r}, {count_of(findings.groups, 'group')}")
    elif roles.images:
        kinds.append(f"group: questions that show the same, {count_of(findings.groups, 'group')}")
    else:
        kinds.append(f"group: questions in the same words, {count_of(findings.groups, 'group')}")
    kinds.append(f"id: column {roles.id!r}" if roles.id else "id: the number of the row, from 0")
    kind = f"column {roles.question_type!r}{_values(table, roles.question_type)}" if roles.question_type else "none"
    kinds.append(f"question type: {kind}")
    if unused := roles.unused(table):
        listed = ", ".join(f"{column!r}{_values(table, column)}" for column in unused)
        kinds.append(f"not used, and not seen by the model: {listed}")
    if findings.repeated:
        kinds.append(f"repeated: {count_of(findings.repeated, 'row')} with question and pictures of one before")
    return kinds


def _values(table: StoredTable, column: str | None) -> str:
    """A column's values in brackets where they are few."""
    from hedge_tasks.data import cells
    from hedge_tasks.errors import DataError

    try:
        values = list(dict.fromkeys(cells.text(value) for value in table.values(str(column))))
    except DataError:
        return ""
    shown = ", ".join(map(_short, values[:_MOST_VALUES]))
    more = f", ... {len(values)} different" if len(values) > _MOST_VALUES else ""
    return f" ({shown}{more})"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return repr(line if len(line) <= _LONGEST else f"{line[:_LONGEST]}...")


def _tried(folder: Path, name: str) -> Trial:
    from hedge_tasks.lmms.own_task.trial import check_free, try_task

    check_free(name)
    return try_task(folder, name)


def _report(task: OwnTask, out: Path, trial: Trial, next_commands: Sequence[str]) -> list[str]:
    judged = trial.judged
    lines = [
        f"{out}/ holds the task {task.name}, {count_of(task.n_documents, 'document')}. What a model is shown -> the "
        "reference, which it is not:"
    ]
    for document in trial.shown:
        pictures = f"[{', '.join(document.pictures)}] " if document.pictures else ""
        lines.append(f"  {pictures}{_short(document.text)} -> {_short(document.reference)}")
    lines.append(
        f"The rule judge calls {judged.right} of {judged.n} right answers right, and {judged.wrong} of {judged.n} "
        "answers to other questions wrong; what it cannot tell is unlabelled."
    )
    if min(judged.right, judged.wrong) < judged.n / 2:
        lines.append(
            "That is little: such answers need a reader, HEDGE_JUDGE=llm:model=NAME (a chat server), or people."
        )
    if trial.missing:
        lines.append(f"Before it can run here: {trial.missing}")
        lines.append(f"To try it without: HEDGE_NLI_MODEL={TINY_NLI} (a model of a few words)")
    return [*lines, "Run it with:", *(f"  {line}" for line in next_commands)]
