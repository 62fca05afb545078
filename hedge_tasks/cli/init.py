"""`hedge init`: a task of lmms-eval out of one's own questions, answers and pictures."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.cli.choices import ColumnChoice
from hedge_tasks.cli.printing import Details
from hedge_tasks.errors import DataError
from hedge_tasks.io.commands import say

if TYPE_CHECKING:
    from hedge_tasks.data.roles import Roles
    from hedge_tasks.data.tables import StoredTable


def init(
    task: str,
    data: str,
    columns: ColumnChoice,
    *,
    split: str | None = None,
    image: str | None = None,
    options: tuple[str, ...] = (),
    images: Path | None = None,
    prompt: str | None = None,
    drop: bool = False,
    out: Path | None = None,
) -> dict[str, Any]:
    """Make a task of your own data, check it, and say how to run it.

    DATA is one of these:
      a table, a question a row      CSV (commas, semicolons or tabs), JSON lines, JSON, parquet, Excel
      a folder with one of these     and the pictures beside it, or one a split: train.csv, test/, ...
    Columns are named by options, else taken by an obvious name (question, answer, image, ...); what nobody named is
    asked. Pictures are names of files (from the table's folder), https:// addresses, the bytes of files, base64,
    {bytes, path} as pandas and datasets write them, or lists of these. Options stand in a list or in columns A, B, C,
    ...; the right one is named by letter or text. Several right answers are a list or columns (--answer again);
    of the answers of eight people or more those count that three gave. VQAv2's two files in a folder are joined.

    examples:
      hedge init chest_xray xrays/questions.csv
      hedge init polyps polyps.parquet --answer reference --group patient_id
      hedge init trivia trivia.jsonl --image none
      hedge init unlabelled scans/ --answer none

    Args:
        task: Name of the task.
        data: File or folder.
        split: Of the data; the only one, or test, if not given.
        image: Column with pictures; none.
        options: Column with options; again for one each; none.
        images: Folder that names of pictures count from.
        prompt: FILE/VARIANT; plain/question if not given, plain/options with options.
        drop: Leave out rows without a question, answer or picture.
        out: Folder of the task, which must not exist; TASK-task if not given.
    """
    from hedge_tasks.data.own_data import write_data
    from hedge_tasks.data.picture_files import PictureFiles
    from hedge_tasks.data.roles import find_roles
    from hedge_tasks.data.tables import read_table
    from hedge_tasks.lmms.own_task.files import DATA, OwnTask, check_name, commands, previewed, prompt_of, write_yaml
    from hedge_tasks.lmms.own_task.names import check_free
    from hedge_tasks.numbers import Table
    from hedge_tasks.sampling.prompts import load_prompt

    check_name(task)
    # lmms-eval takes --tasks NAME for the folder NAME where the working directory has one.
    folder = out or Path(f"{task}-task")
    if folder.exists():
        raise DataError(f"{folder} is there already; remove it, or make another folder with --out DIR")
    check_free(task)
    table = read_table(data, split=split)
    files = PictureFiles(images or table.folder)
    roles = find_roles(table, columns.settings(image=image, options=options), files)
    load_prompt(prompt := prompt or prompt_of(roles))
    facts = _facts(table, roles)
    say("\n".join([f"{table.name}: {table.n_rows} rows; becomes {folder}/", *facts]), sys.stderr)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as parent:
        building = Path(parent) / folder.name
        building.mkdir()
        left_out = _left_out(write_data(table, roles, files, building / DATA), table, drop=drop)
        own = OwnTask(task, roles, prompt, (table.name, *facts))
        write_yaml(building, own)
        previews = previewed(building, own)
        shutil.move(building, folder)
    return {
        **{"task": task, "documents": table.n_rows - len(left_out), "roles": Details(roles), "facts": Details(facts)},
        "folder": folder,
        "left_out": [row + 1 for row in left_out],
        "first": Table.of(("text", "pictures", "reference"), previews, title="what a model is shown"),
        "notes": ["Run it with:", *commands(task, str(folder))],
    }


def _left_out(faults: Mapping[int, str], table: StoredTable, *, drop: bool) -> list[int]:
    from loguru import logger

    from hedge_tasks.data.own_data import describe

    if not faults:
        return []
    described = describe(faults, table.n_rows)
    if not drop or len(faults) == table.n_rows:
        raise DataError(f"{table.name}: {described}. Mend them; where others stay, --drop leaves such rows out")
    logger.warning(f"Left out: {described}")
    return list(faults)


def _facts(table: StoredTable, roles: Roles) -> list[str]:
    """Return how each column is taken, a line each."""
    from hedge_tasks.lmms.own_task.files import judge_of

    def columns(names: tuple[str | None, ...], otherwise: str) -> str:
        return f"column {', '.join(repr(name) for name in names if name)}" if any(names) else otherwise

    shares = "questions that show the same" if roles.image else "questions in the same words"
    lines = {
        "right answers": columns(roles.answers, "none, so that nothing is labelled (`hedge audit` asks people)"),
        "judge": judge if isinstance(judge := judge_of(roles), str) else judge["name"],
        "question": columns((roles.question,), ""),
        **({"options": columns(roles.options, "")} if roles.options else {}),
        "pictures": columns((roles.image,), "none"),
        "group": columns((roles.group,), shares),
        "id": columns((roles.id,), "the number of the row, from 0"),
        "question type": columns((roles.question_type,), "none"),
        "not used, and not seen by the model": columns(tuple(roles.unused(table)), "none"),
    }
    return [*table.notes, *(f"{name}: {text}" for name, text in lines.items())]
