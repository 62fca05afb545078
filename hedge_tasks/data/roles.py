"""The role of each column of a table: as the user names it, else by an obvious name. Nothing is taken from values.

One vocabulary for `hedge init`, `score` and `import`. Where no column or several have an obvious name, one error lists
all columns with an example each, and says what to type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches

from hedge_tasks.data import cells
from hedge_tasks.data.cells import plain_name
from hedge_tasks.data.choices import OptionColumns, find_choices
from hedge_tasks.data.picture_files import PictureFiles, content_of, is_picture
from hedge_tasks.data.tables import StoredTable
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.io.outside import shown

NONE = "none"
"""A user's word for "no such column"."""

NAMES: Mapping[str, tuple[str, ...]] = {
    "question": ("question", "prompt", "query", "instruction", "input"),
    "answer": ("answer", "answers", "reference", "ground_truth", "target"),
    "reply": ("response", "prediction", "generation", "completion", "output"),
    "image": ("image", "images", "image_path", "image_name", "img_name", "file_name", "image_id", "img_id"),
    "id": ("id", "question_id", "qid", "index", "doc_id", "custom_id"),
    "group": ("group", "patient_id", "study_id", "image_id", "img_id"),
    "question_type": ("question_type", "category", "answer_type"),
    "label": ("label", "is_hallucination", "correct", "hit"),
}
"""Role -> obvious names of its columns, in lower case with underscores (`hedge_tasks.data.cells.plain_name`)."""

MOST_TYPES = 50
"""More kinds than this are no kinds: too few questions of each could be compared."""

_LOOKED_AT = 20
"""Pictures of a column that are tried, until one can be had."""

_WHAT = {"answer": "right answers", "reply": "model's replies, for `hedge score` or `hedge import answers`"}
_OPTIONS = {"answers": "answer", "images": "image", "question_type": "question-type"}
"""Roles whose option has another name."""


@dataclass(frozen=True)
class ColumnSettings:
    """Columns as the user names them; None or empty is for us to find out, "none" for no such column.

    Attributes:
        answers: one a reference.
        images: in the order in which they are shown.
        options: one with all of them, or one each.
        first_option: number of the first option where the right one is given by its number, or "none" for its text.
        reply: a model's own answers, the baseline first.
    """

    question: str | None = None
    answers: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    group: str | None = None
    id: str | None = None
    question_type: str | None = None
    options: tuple[str, ...] = ()
    first_option: str | None = None
    reply: tuple[str, ...] = ()
    label: str | None = None

    def named(self) -> dict[str, str]:
        """The columns that are named, each with the option that names it."""
        values = {role.name: getattr(self, role.name) for role in fields(ColumnSettings) if role.name != "first_option"}
        columns = {role: (value,) if isinstance(value, str) else value or () for role, value in values.items()}
        return {name: _OPTIONS.get(role, role) for role, names in columns.items() for name in names if name != NONE}


@dataclass(frozen=True)
class Roles(ColumnSettings):
    """Which column is what; None, and nothing in lists, where there is none of the kind.

    Attributes:
        choices: options and how the answer names the right one; None for free answers.
        several: whether a document may have several references.
        listed: whether documents show several pictures, which are written as a list.
    """

    question: str = ""
    choices: OptionColumns | None = None
    several: bool = False
    listed: bool = False

    @property
    def answer(self) -> str | None:
        """The column in which references are written; None without."""
        return next(iter(self.answers), None)

    def texts(self) -> list[str]:
        """The columns of texts as they are written, each once."""
        columns = (self.id, self.question, self.answer, self.group, self.question_type)
        return list(dict.fromkeys(column for column in columns if column))

    def unused(self, table: StoredTable) -> list[str]:
        return [column for column in table.columns if column not in self.named()]


def obvious(table: StoredTable, role: str, without: Sequence[str] = ()) -> list[str]:
    """The columns with an obvious name of a role, in the order of `NAMES`."""
    named = {plain_name(column): column for column in reversed(table.columns) if column not in without}
    return [named[name] for name in NAMES[role] if name in named]


def check_columns(table: StoredTable, chosen: ColumnSettings) -> None:
    """Refuse columns that the table has not.

    Raises:
        ConfigError: names the option and the nearest column, and lists all columns.
    """
    for column, option in chosen.named().items():
        if column not in table.columns:
            nearest = "".join(f", did you mean {name!r}" for name in get_close_matches(column, table.columns, n=1))
            raise _asking(table, f"--{option} {column}: there is no such column{nearest}", f"--{option} COLUMN")


def not_told(table: StoredTable, roles: Sequence[str]) -> ConfigError:
    """The error about roles that no column or several may have: lists the columns, and says what to type."""
    which = " and which ".join(f"the {_WHAT.get(role, f'{role}s')}" for role in roles)
    options = " ".join(f"--{role} COLUMN" for role in roles)
    also = " (--answer none: nobody judges)" if "answer" in roles else ""
    return _asking(table, f"which column holds {which}", f"{options}{also}")


def _asking(table: StoredTable, what: str, say: str) -> ConfigError:
    _, first = next(iter(table.rows(None)))
    there = ", ".join(f"{column} ({shown(first.get(column))})" for column in table.columns)
    return ConfigError(f"{table.name}: {what}? Say {say}; there are {there}")


def find_roles(table: StoredTable, chosen: ColumnSettings, files: PictureFiles | None = None) -> Roles:
    """Return which column of a table of questions is what.

    Args:
        chosen: columns as the user names them.
        files: the pictures that names may mean; None for those of the table's folder.

    Raises:
        ConfigError: the user names a column that is not there, it takes the user to say which one is meant, or pictures
            that are named cannot be had; says which option answers that.
    """
    check_columns(table, chosen)
    images = _images(table, chosen, files or PictureFiles(table.folder))
    question, answers = _asked(table, chosen, images)
    answer = next(iter(answers), None)
    choices = None if NONE in chosen.options else find_choices(table, chosen.options, answer, chosen.first_option)
    options = choices.columns if choices else ()
    taken = (*images, question, *answers, *options)
    several = len(answers) > 1 or (
        answer is not None and choices is None and any(cells.as_list(v) is not None for v in table.values(answer))
    )
    return Roles(
        question=question,
        answers=answers,
        images=images,
        options=options,
        choices=choices,
        several=several,
        listed=len(images) > 1 or any(isinstance(value, list) for c in images for value in table.filled(c, 1)),
        **{role: _declared(table, chosen, role, taken) for role in ("group", "id", "question_type")},  # type: ignore[arg-type]
    )


def _asked(table: StoredTable, chosen: ColumnSettings, images: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """The columns of questions and of right answers.

    Raises:
        ConfigError: it takes the user to say which.
    """
    questions = [chosen.question] if chosen.question else obvious(table, "question", images)
    answers = chosen.answers or tuple(obvious(table, "answer", images))
    unclear = [*(["question"] * (len(questions) != 1)), *(["answer"] * (len(answers) != 1 and not chosen.answers))]
    if unclear:
        raise not_told(table, unclear)
    if questions[0] in (NONE, *answers):
        raise ConfigError(f"--question {questions[0]}: a task needs a column of questions, another one than --answer")
    return questions[0], () if NONE in answers else answers


def _declared(table: StoredTable, chosen: ColumnSettings, role: str, taken: Sequence[str]) -> str | None:
    """The column of groups, ids or kinds: the user's, else the first obvious one whose values can be that."""
    kinds = range(2, min(MOST_TYPES, max(2, table.n_rows // 2)) + 1)
    usable = {"group": range(2, table.n_rows), "id": [table.n_rows], "question_type": kinds}[role]
    column: str | None = getattr(chosen, role)
    if column is None:
        return next((c for c in obvious(table, role, taken) if _n_different(table, c) in usable), None)
    if role == "id" and column != NONE and _n_different(table, column) not in usable:
        raise ConfigError(f"--id {column}: rows share a value of it, or have none; --id none numbers them")
    return None if column == NONE else column


def _n_different(table: StoredTable, column: str) -> int:
    """Number of different values; 0 where a row has none, or a value that is no text."""
    try:
        values = {cells.text(value) for value in table.values(column)}
    except DataError:
        return 0
    return 0 if "" in values else len(values)


def _images(table: StoredTable, chosen: ColumnSettings, files: PictureFiles) -> tuple[str, ...]:
    """The columns with pictures: the user's, else the first of an obvious name of which a picture can be had.

    Raises:
        ConfigError: other columns hold pictures, there are pictures beside the table that no column names, or those
            that are named are not there.
    """
    if chosen.images:
        return () if NONE in chosen.images else tuple(dict.fromkeys(chosen.images))
    reasons = list[str]()
    for column, value in [(c, value) for c in obvious(table, "image") for value in table.filled(c, _LOOKED_AT)]:
        try:
            content_of(value[0] if isinstance(value, list) else value, files)
        except DataError as error:
            reasons.append(f"column {column!r}: {error}. Say --images FOLDER")
        else:
            return (column,)
    pictured = [c for c in table.columns if any(map(is_picture, table.filled(c, 1)))]
    if pictured or (table.in_folder and files.any()):
        options = " ".join(f"--image {column}" for column in pictured) or "--image COLUMN"
        reasons.append(f"there are pictures, and no column names them by its own name. Say {options}")
    if reasons:
        raise ConfigError(f"{table.name}: {reasons[0]}, or --image none for a task that shows nothing")
    return ()
