"""The role of each column of a table: as the user names it, else by an obvious name. Nothing is taken from values.

One vocabulary for `hedge init`, `score` and `import`. Where no column or several have an obvious name, one error lists
all columns with an example each, and says what to type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import takewhile
from string import ascii_uppercase

from hedge_tasks.data import cells
from hedge_tasks.data.picture_files import PictureFiles, content_of, is_picture
from hedge_tasks.data.tables import StoredTable
from hedge_tasks.errors import ConfigError, DataError, check_names
from hedge_tasks.io.outside import shown

NONE = "none"
"""A user's word for "no such column"."""

NAMES: Mapping[str, tuple[str, ...]] = {
    "question": ("question", "prompt", "query", "instruction", "input"),
    "answers": ("answer", "answers", "reference", "ground_truth", "target"),
    "reply": ("response", "prediction", "generation", "completion", "output"),
    "image": ("image", "images", "image_path", "image_name", "img_name", "file_name", "image_id", "img_id"),
    "id": ("id", "question_id", "qid", "index", "doc_id", "custom_id"),
    "group": ("group", "patient_id", "study_id", "image_id", "img_id"),
    "question_type": ("question_type", "category", "answer_type"),
    "options": ("options", "choices"),
    "label": ("label", "is_hallucination", "correct", "hit"),
}
"""Role -> obvious names of its columns, in lower case with underscores (`hedge_tasks.data.cells.plain_name`)."""

MOST_TYPES = 50
"""More kinds than this are no kinds: too few questions of each could be compared."""

_LOOKED_AT = 20
"""Pictures of a column that are tried, until one can be had."""

_WHAT = {
    "answers": "right answers",
    "reply": "model's replies, for `hedge score` or `hedge import answers`",
    "question": "questions",
    "label": "labels",
}
_OPTIONS = {"answers": "answer", "question_type": "question-type"}
"""Roles whose option has another name."""


@dataclass(frozen=True)
class ColumnSettings:
    """Columns as the user names them; None or empty is for us to find out, "none" for no such column.

    Attributes:
        answers: one a reference.
        image: with the picture of each question, or a list of its pictures in the order in which they are shown.
        options: one with all of them, or one each.
        reply: a model's own answers, the baseline first.
    """

    question: str | None = None
    answers: tuple[str, ...] = ()
    image: str | None = None
    group: str | None = None
    id: str | None = None
    question_type: str | None = None
    options: tuple[str, ...] = ()
    reply: tuple[str, ...] = ()
    label: str | None = None

    def named(self) -> dict[str, str]:
        """The columns that are named, each with the option that names it."""
        values = {role.name: getattr(self, role.name) for role in fields(ColumnSettings)}
        columns = {role: (value,) if isinstance(value, str) else value or () for role, value in values.items()}
        return {name: _OPTIONS.get(role, role) for role, names in columns.items() for name in names if name != NONE}


@dataclass(frozen=True)
class Roles(ColumnSettings):
    """Which column is what; None, and nothing in lists, where there is none of the kind.

    Attributes:
        several: whether a document may have several references.
        listed: whether documents show lists of pictures.
    """

    question: str = ""
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


def obvious(table: StoredTable, role: str, without: Sequence[str | None] = ()) -> list[str]:
    """The columns with an obvious name of a role, in the order of `NAMES`."""
    named = {cells.plain_name(column): column for column in reversed(table.columns) if column not in without}
    return [named[name] for name in NAMES[role] if name in named]


def columns_for(
    table: StoredTable, chosen: ColumnSettings, role: str, without: Sequence[str | None] = (), own: str | None = None
) -> tuple[str, ...]:
    """The columns of a role: the user's, none for "none"; else its tool's own; else those with an obvious name."""
    if columns := getattr(chosen, role):
        return tuple(name for name in ((columns,) if isinstance(columns, str) else columns) if name != NONE)
    return (own,) if own in table.columns else tuple(obvious(table, role, without))


def check_columns(table: StoredTable, chosen: ColumnSettings) -> None:
    """Refuse columns that the table has not.

    Raises:
        ConfigError: names the option and the nearest column.
    """
    for column, option in chosen.named().items():
        check_names(f"column (--{option})", [column], table.columns)


def not_told(table: StoredTable, roles: Sequence[str]) -> ConfigError:
    """The error about roles that no column or several may have: lists the columns, and says what to type."""
    which = " and which ".join(f"the {_WHAT[role]}" for role in roles)
    options = " ".join(f"--{_OPTIONS.get(role, role)} COLUMN" for role in roles)
    also = " (--answer none: nobody judges)" if "answers" in roles else ""
    _, first = next(iter(table.rows(None)))
    there = ", ".join(f"{column} ({shown(first.get(column))})" for column in table.columns)
    return ConfigError(f"{table.name}: which column holds {which}? Say {options}{also}; there are {there}")


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
    image = _image(table, chosen, files or PictureFiles(table.folder))
    question, answers = _asked(table, chosen, image)
    letters = tuple(takewhile(table.columns.__contains__, ascii_uppercase))
    options = columns_for(table, chosen, "options")
    options = options if chosen.options else options[:1] or letters * (len(letters) > 1)
    listed = not options and any(cells.as_list(v) is not None for column in answers[:1] for v in table.values(column))
    return Roles(
        question=question,
        answers=answers,
        image=image,
        options=options,
        several=len(answers) > 1 or listed,
        listed=image is not None and any(isinstance(value, list) for value in table.filled(image, 1)),
        **{
            role: _declared(table, chosen, role, (image, question, *answers, *options))  # type: ignore[arg-type]
            for role in ("group", "id", "question_type")
        },
    )


def _asked(table: StoredTable, chosen: ColumnSettings, image: str | None) -> tuple[str, tuple[str, ...]]:
    """The columns of questions and of right answers.

    Raises:
        ConfigError: it takes the user to say which.
    """
    questions, answers = (columns_for(table, chosen, role, (image,)) for role in ("question", "answers"))
    unclear = [*(["question"] * (len(questions) != 1)), *(["answers"] * (len(answers) != 1 and not chosen.answers))]
    if unclear:
        raise not_told(table, unclear)
    if questions[0] in answers:
        raise ConfigError(f"--question {questions[0]}: it is the column of answers, too; say another one")
    return questions[0], answers


def _declared(table: StoredTable, chosen: ColumnSettings, role: str, taken: Sequence[str | None]) -> str | None:
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


def _image(table: StoredTable, chosen: ColumnSettings, files: PictureFiles) -> str | None:
    """The column with pictures: the user's, else the first of an obvious name of which a picture can be had.

    Raises:
        ConfigError: other columns hold pictures, there are pictures beside the table that no column names, or those
            that are named are not there.
    """
    if chosen.image:
        return None if chosen.image == NONE else chosen.image
    reasons = list[str]()
    for column, value in [(c, value) for c in obvious(table, "image") for value in table.filled(c, _LOOKED_AT)]:
        try:
            content_of(value[0] if isinstance(value, list) else value, files)
        except DataError as error:
            reasons.append(f"column {column!r}: {error}. Say --images FOLDER")
        else:
            return column
    pictured = [c for c in table.columns if any(map(is_picture, table.filled(c, 1)))]
    if pictured or (table.in_folder and files.any()):
        which = f"--image {' or '.join(pictured) or 'COLUMN'}, which may hold lists"
        reasons.append(f"there are pictures, and no column names them by its own name. Say {which}")
    if reasons:
        raise ConfigError(f"{table.name}: {reasons[0]}, or --image none for a task that shows nothing")
    return None
