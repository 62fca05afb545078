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
    from hedge_tasks.data.own_data import RowFindings
    from hedge_tasks.data.roles import ColumnSettings, Roles
    from hedge_tasks.data.tables import StoredTable
    from hedge_tasks.lmms.own_task.files import OwnTask
    from hedge_tasks.lmms.own_task.trial import Trial

_EXAMPLES = """\
DATA is one of these:
  a table, a question a row      CSV (commas, semicolons or tabs), JSON lines, JSON, parquet, Excel; texts as .gz, too
  a folder with one of these     and the pictures beside it, or one a split: train.csv, test/, data/test-00000-of-...
Columns are named by options, else taken by an obvious name (question, answer, image, ...); what nobody named is asked.
Pictures are names of files (from the table's folder), https:// addresses, the bytes of files, base64, {bytes, path} as
pandas and datasets write them, or lists of these. Options stand in a list, in columns A, B, C, ... or in the question;
the right one is named by letter, number or text. Several right answers are a list, columns (--answer again), or in a
cell with --separator; of the answers of eight people or more those count that three of them gave. VQAv2's two files in
a folder are joined. Conversations are columns, such as messages.user and messages.assistant.

examples:
  hedge init chest_xray xrays/questions.csv
  hedge init polyps polyps.parquet --answer reference --group patient_id
  hedge init trivia trivia.jsonl --image none
  hedge init unlabelled scans/ --answer none
"""
_LONGEST = 70
_MOST_VALUES = 4
_FEW = 10
_REPEATED = {
    "answer": "right answers; again for more references",
    "image": "pictures; again for more",
    "options": "options; again for one each",
}


def add(commands: Parser) -> None:
    parser = command(commands, "init", run, "make a task of your own data, check it, and say how to run it")
    parser.formatter_class, parser.epilog = argparse.RawDescriptionHelpFormatter, _EXAMPLES
    parser.add_argument("task", help="name of the task")
    parser.add_argument("data", metavar="DATA", help="file or folder")
    parser.add_argument("--split", metavar="NAME", help="split of the data (default: the only one, or test)")
    parser.add_argument("--question", metavar="COLUMN", help="column with the questions")
    for name, what in _REPEATED.items():
        parser.add_argument(
            f"--{name}", action="append", default=[], metavar="COLUMN", help=f"column with {what}; none"
        )
    parser.add_argument(
        "--first-option", choices=("0", "1", "none"), help="number of the first option; none: numbers are their texts"
    )
    parser.add_argument("--separator", metavar="TEXT", help="between several right answers in a cell; none")
    parser.add_argument("--group", metavar="COLUMN", help="column that questions share that belong together; none")
    parser.add_argument("--id", metavar="COLUMN", help="column with ids; none numbers the rows")
    parser.add_argument("--question-type", metavar="COLUMN", help="column with the kind of question; none")
    parser.add_argument("--images", type=Path, metavar="DIR", help="folder that names of pictures count from")
    parser.add_argument("--outside", action="store_true", help="names of pictures may lead out of that folder")
    parser.add_argument("--prompt", metavar="FILE/VARIANT", help="default: plain/question; plain/options with options")
    parser.add_argument("--drop", action="store_true", help="leave out rows without a question, answer or picture")
    parser.add_argument("--dry-run", action="store_true", help="say what would be made, and make nothing")
    add_out(parser, "folder of the task, which must not exist (default: TASK-task)")


def run(arguments: argparse.Namespace) -> int:
    from hedge_tasks.data.own_data import inspect_rows, write_data
    from hedge_tasks.data.picture_files import PictureFiles
    from hedge_tasks.data.roles import find_roles
    from hedge_tasks.data.tables import read_table
    from hedge_tasks.lmms.own_task.files import DATA, OwnTask, check_name, commands, prompt_of, write_files
    from hedge_tasks.lmms.own_task.names import check_free
    from hedge_tasks.lmms.own_task.trial import try_task
    from hedge_tasks.sampling.prompts import load_prompt

    check_name(arguments.task)
    # lmms-eval takes --tasks NAME for the folder NAME where the working directory has one.
    out = arguments.out or Path(f"{arguments.task}-task")
    _check_folder(out)
    check_free(arguments.task)
    table = read_table(arguments.data, split=arguments.split)
    files = PictureFiles(arguments.images or table.folder, outside=arguments.outside)
    roles = find_roles(table, _settings(arguments), files)
    prompt = arguments.prompt or prompt_of(roles)
    load_prompt(prompt)
    say("\n".join(_plan(table, roles, arguments.task, out)), sys.stderr)
    findings = inspect_rows(table, roles, files)
    facts = [*_facts(table, roles), *_counts(table, roles, findings)]
    say("\n".join(f"  {fact}" for fact in _counts(table, roles, findings)), sys.stderr)
    left_out = _left_out(findings, table, arguments.drop)
    task = OwnTask(arguments.task, table.name, roles, prompt, tuple(facts), table.n_rows - len(left_out))
    if arguments.dry_run:
        show(arguments, {"task": task.name, "documents": task.n_documents, "roles": roles, "facts": facts}, "")
        return 0
    with tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent) as parent:
        folder_of_task = Path(parent) / out.name
        folder_of_task.mkdir()
        write_data(table, roles, files, left_out, folder_of_task / DATA)
        write_files(folder_of_task, task)
        trial = try_task(folder_of_task, task)
        shutil.move(folder_of_task, out)
    next_commands = commands(task.name, str(out))
    value = {
        "task": task.name,
        "folder": str(out),
        "documents": task.n_documents,
        "left_out": [row + 1 for row in left_out],
        "roles": roles,
        "facts": facts,
        "first": trial.previews,
        "judged": trial.judged,
        "commands": next_commands,
    }
    show(arguments, value, "\n".join(_report(task, out, trial, next_commands)))
    return 0


def _settings(arguments: argparse.Namespace) -> ColumnSettings:
    from hedge_tasks.data.roles import ColumnSettings

    return ColumnSettings(
        question=arguments.question,
        answers=tuple(arguments.answer),
        images=tuple(arguments.image),
        group=arguments.group,
        id=arguments.id,
        question_type=arguments.question_type,
        options=tuple(arguments.options),
        first_option=arguments.first_option,
        separator=arguments.separator,
    )


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


def _plan(table: StoredTable, roles: Roles, name: str, out: Path) -> list[str]:
    """Return the plan of what will be made, before all rows and pictures are read."""
    head = f"{table.name}: {count_of(table.n_rows, 'row')}, {table.read_as}"
    first, *facts = _facts(table, roles)
    return [f"{first[0].upper()}{first[1:]}", head, f"Becomes the task {name} in {out}/:", *(f"  {f}" for f in facts)]


def _facts(table: StoredTable, roles: Roles) -> list[str]:
    """Return how each column is taken, a line each."""
    kinds = [_answer_fact(table, roles), *table.notes, f"question: column {roles.question!r}"]
    if roles.choices:
        kinds.append(f"options: {_options_fact(roles)}, shown behind letters")
    columns = ", ".join(map(repr, roles.images))
    how_many = "several a question, in this order" if roles.listed else "one a question"
    kinds.append(f"pictures: column {columns}, {how_many}" if roles.images else "pictures: none")
    if roles.group:
        kinds.append(f"group: column {roles.group!r}")
    else:
        kinds.append("group: questions that show the same" if roles.images else "group: questions in the same words")
    kinds.append(f"id: column {roles.id!r}" if roles.id else "id: the number of the row, from 0")
    kind = f"column {roles.question_type!r}{_values(table, roles.question_type)}" if roles.question_type else "none"
    kinds.append(f"question type: {kind}")
    if unused := roles.unused(table):
        listed = ", ".join(f"{column!r}{_values(table, column)}" for column in unused)
        kinds.append(f"not used, and not seen by the model: {listed}")
    return kinds


def _options_fact(roles: Roles) -> str:
    columns = ", ".join(map(repr, roles.choices.columns)) if roles.choices else ""
    return f"column {columns}" if columns else "they stand in the question"


def _answer_fact(table: StoredTable, roles: Roles) -> str:
    from hedge_tasks.data.own_data import MANY_PEOPLE
    from hedge_tasks.lmms.own_task.files import judge_of

    if roles.answer is None:
        return "right answers: none, so that nothing is labelled (`hedge audit` asks people, HEDGE_JUDGE names a judge)"
    how = ""
    if roles.choices:
        first = f", counted from {roles.choices.first}" if roles.choices.naming == "number" else ""
        how = f", the {roles.choices.naming} of the right option{first}"
    elif roles.several:
        people = "" if roles.separator else f" (of {MANY_PEOPLE} or more those that three people gave)"
        how = f", several references a question{f' between {roles.separator!r}' if roles.separator else people}"
    judge = judge_of(roles)
    judge = judge if isinstance(judge, str) else judge["name"]
    columns = " and ".join(f"{column!r}{_values(table, column)}" for column in roles.answers)
    return f"right answers come from column {columns}{how}; judge: {judge}"


def _counts(table: StoredTable, roles: Roles, findings: RowFindings) -> list[str]:
    """Return what was counted in all rows, a line each."""
    counts = [f"different pictures: {findings.pictures}"] if roles.images else []
    counts.append(f"groups: {findings.groups}")
    if findings.repeated:
        counts.append(f"repeated: {count_of(findings.repeated, 'row')} with question and pictures of one before")
    return counts


def _values(table: StoredTable, column: str | None) -> str:
    """Return a column's values in brackets where they are few."""
    from hedge_tasks.data import cells
    from hedge_tasks.errors import DataError

    try:
        values = list(dict.fromkeys(cells.text(value) for value in table.values(str(column))))
    except DataError:
        return ""
    first_values = ", ".join(map(_short, values[:_MOST_VALUES]))
    end = f", ... {len(values)} different" if len(values) > _MOST_VALUES else ""
    return f" ({first_values}{end})"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return repr(line if len(line) <= _LONGEST else f"{line[:_LONGEST]}...")


def _report(task: OwnTask, out: Path, trial: Trial, next_commands: Sequence[str]) -> list[str]:
    judged = trial.judged
    arrow = " -> the reference, which it is not" if task.roles.answer else ""
    lines = [
        f"{out}/ holds the task {task.name}, {count_of(task.n_documents, 'document')}. What a model is shown{arrow}:"
    ]
    for document in trial.previews:
        pictures = f"[{', '.join(document.pictures)}] " if document.pictures else ""
        reference = f" -> {_short(document.reference)}" if task.roles.answer else ""
        lines.append(f"  {pictures}{_short(document.text)}{reference}")
    if judged is not None:
        lines.append(
            f"The judge calls {judged.right} of {judged.n} right answers right, and {judged.wrong} of {judged.n} "
            "wrong ones wrong; what it cannot tell is unlabelled."
        )
        if min(judged.right, judged.wrong) < judged.n / 2:
            lines.append(
                "That is little: such answers need a reader, HEDGE_JUDGE=llm:model=NAME (a chat server), or people."
            )
    if task.n_documents < _FEW:
        lines.append(f"{count_of(task.n_documents, 'document')}: too few for any number to mean something.")
    if Path(task.name).is_dir():
        lines.append(
            f"lmms-eval takes --tasks {task.name} for the folder {task.name}/ that is here: run it in another folder."
        )
    return [*lines, "Run it with:", *(f"  {line}" for line in next_commands)]
