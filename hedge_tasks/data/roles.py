"""The role of each column of a table: as the user names it, else by an obvious name. Nothing is taken from values.

One vocabulary for `hedge init`, `score` and `import`. Where no column or several have an obvious name, one error lists
all columns with an example each, and says what to type.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hedge_tasks.data import cells
from hedge_tasks.data.cells import plain_name
from hedge_tasks.data.choices import OptionColumns, find_choices
from hedge_tasks.data.picture_files import PictureFiles, is_picture, names_picture
from hedge_tasks.data.tables import StoredTable
from hedge_tasks.errors import ConfigError, DataError, unknown
from hedge_tasks.io.outside import shown

NONE = "none"
"""A user's word for "no such column"."""

QUESTION_TYPES = ("question_type", "category", "subject", "type", "answer_type", "task_type", "topic")
"""Names of columns with the kind of question, where they hold a few values."""

IDS = ("id", "question_id", "qid", "index", "doc_id")
"""Names of columns that are ids where no two documents share one."""

NAMES: Mapping[str, tuple[str, ...]] = {
    "question": ("question", "prompt", "query", "instruction", "input"),
    "answer": ("answer", "answers", "reference", "ground_truth", "target"),
    "reply": ("response", "prediction", "generation", "completion", "output"),
    "image": ("image", "images", "image_path", "image_name", "file_name"),
    "id": IDS,
    "group": ("group", "patient_id", "study_id", "image_id", "img_id"),
    "question_type": QUESTION_TYPES,
    "label": ("label", "is_hallucination", "correct"),
}
"""Role -> obvious names of its columns, in lower case with underscores (`hedge_tasks.data.cells.plain_name`)."""

MOST_TYPES = 50
"""More kinds than this are no kinds: too few questions of each could be compared."""

_WHAT = {"question": "the questions", "answer": "the right answers", "reply": "the model's replies"}
_MAYBE_NAMES = ("image_id", "img_id")
_SAMPLE = 50


@dataclass(frozen=True)
class ColumnSettings:
    """Columns as the user names them; None or empty is for us to find out, "none" for no such column.

    Attributes:
        answers: one a reference.
        images: in the order in which they are shown.
        options: one with all of them, or one each.
        first_option: number of the first option where the right one is given by its number, or "none" for its text.
        separator: what stands between several references in a cell; "none" takes cells as they are.
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
    separator: str | None = None
    reply: tuple[str, ...] = ()
    label: str | None = None

    def named(self) -> Iterable[str | None]:
        """All columns that are named."""
        single = (self.question, self.group, self.id, self.question_type, self.label)
        return (*single, *self.answers, *self.images, *self.options, *self.reply)


@dataclass(frozen=True)
class Roles:
    """Which column is what; None where there is none of the kind.

    Attributes:
        answers: the columns of references; none: nobody judges.
        images: in the order in which they are shown.
        choices: options and how the answer names the right one; None for free answers.
        separator: what stands between several references in a cell; None for cells as they are.
        several: whether a document may have several references.
        listed: whether documents show several pictures, which are written as a list.
        optional: whether a document may lack some of its pictures.
    """

    question: str
    answers: tuple[str, ...]
    images: tuple[str, ...]
    group: str | None
    id: str | None
    question_type: str | None
    choices: OptionColumns | None = None
    separator: str | None = None
    several: bool = False
    listed: bool = False
    optional: bool = False

    @property
    def answer(self) -> str | None:
        """The column in which references are written; None without."""
        return next(iter(self.answers), None)

    def texts(self) -> list[str]:
        """The columns of texts as they are written, each once."""
        columns = (self.id, self.question, self.answer, self.group, self.question_type)
        return list(dict.fromkeys(column for column in columns if column))

    def used(self) -> list[str]:
        """All columns that are read, each once."""
        options = self.choices.columns if self.choices else ()
        return list(dict.fromkeys([*self.texts(), *self.answers, *self.images, *options]))

    def unused(self, table: StoredTable) -> list[str]:
        return [column for column in table.columns if column not in self.used()]


def check_columns(table: StoredTable, chosen: ColumnSettings) -> None:
    """Refuse names of columns that are not there.

    Raises:
        ConfigError: names the nearest one.
    """
    for name in chosen.named():
        if name not in (None, NONE, *table.columns):
            raise unknown(f"column of {table.name}", str(name), table.columns)


def obvious(table: StoredTable, role: str, without: Sequence[str] = ()) -> list[str]:
    """The columns with an obvious name of a role, in the order of `NAMES`."""
    named = {plain_name(column): column for column in reversed(table.columns) if column not in without}
    return [named[name] for name in NAMES[role] if name in named]


def not_told(table: StoredTable, roles: Sequence[str]) -> ConfigError:
    """The error about roles that no column or several may have: lists the columns, and says what to type."""
    which = " and which ".join(_WHAT[role] for role in roles)
    options = " ".join(f"--{role} COLUMN" for role in roles)
    also = " (--answer none: nobody judges)" if "answer" in roles else ""
    first = next(iter(table.rows(None)))
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
    images = _images(table, chosen, files or PictureFiles(table.folder))
    questions = [chosen.question] if chosen.question else obvious(table, "question", images)
    answers = list(chosen.answers) or obvious(table, "answer", images)
    is_one = {"question": len(questions) == 1, "answer": len(answers) == 1 or bool(chosen.answers)}
    if not all(is_one.values()):
        raise not_told(table, [role for role, told in is_one.items() if not told])
    if NONE in questions:
        raise ConfigError("--question: a task needs one; answers that are labelled already are for `hedge score`")
    if questions[0] in answers:
        raise ConfigError(f"--question and --answer are both {questions[0]!r}")
    answers = [] if NONE in answers else answers
    choices = None if NONE in chosen.options else find_choices(table, chosen.options, questions[0])
    if choices and answers:
        choices = choices.with_naming(table, answers[0], questions[0], chosen.first_option)
    taken = [*images, *questions, *answers, *(choices.columns if choices else ())]
    listed = len(images) > 1 or any(isinstance(v, list) for column in images for v in table.filled(column, _SAMPLE))
    roles = Roles(
        question=questions[0],
        answers=tuple(answers),
        images=images,
        group=_declared(table, chosen, "group", taken),
        id=_declared(table, chosen, "id", taken),
        question_type=_declared(table, chosen, "question_type", taken),
        choices=choices,
        separator=None if chosen.separator == NONE else chosen.separator,
        several=len(answers) > 1 or bool(chosen.separator and chosen.separator != NONE),
        listed=listed,
        optional=len(images) > 1 and _are_numbered(images),
    )
    if not answers or choices or roles.several:
        return roles
    return _with_references(table, roles, checked=chosen.separator is not None)


def _declared(table: StoredTable, chosen: ColumnSettings, role: str, taken: Sequence[str]) -> str | None:
    """The column of groups, ids or kinds: the user's, else the first obvious one whose values can be that."""
    most = min(MOST_TYPES, max(2, table.n_rows // 2))
    usable = {"group": range(2, table.n_rows), "id": [table.n_rows], "question_type": range(2, most + 1)}[role]
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


def _with_references(table: StoredTable, roles: Roles, *, checked: bool) -> Roles:
    """Return the roles with whether cells of the answers are lists.

    Raises:
        ConfigError: it cannot be told whether a cell holds several answers, or what 0 and 1 mean.
    """
    [answer] = roles.answers
    values = table.filled(answer, table.n_rows)
    several = any(cells.as_list(value) is not None for value in values)
    texts = [value.strip() for value in values if isinstance(value, str)]
    for separator in ("||", "|", ";") if not checked and not several else ():
        if sum(separator in text for text in texts) * 2 > len(values):
            raise ConfigError(
                f"{table.name}: most values of {answer!r} have {separator!r} in them ({shown(texts[0])}). Are these "
                f"several right answers? Say --separator '{separator}', or --separator none"
            )
    if len(values) > 1 and {cells.without_decimals(value) for value in values if not several} in _VERDICTS:
        raise ConfigError(
            f"{table.name}: {answer!r} holds 0 and 1 alone. Are they numbers, or verdicts? Write words, "
            "such as no and yes"
        )
    return replace(roles, several=several)


_VERDICTS = ({0, 1}, {"0", "1"})


def _images(table: StoredTable, chosen: ColumnSettings, files: PictureFiles) -> tuple[str, ...]:
    """The columns with pictures: those whose cells are files, or that name some by their own name."""
    if chosen.images:
        return () if NONE in chosen.images else tuple(dict.fromkeys(chosen.images))
    stored = [c for c in table.columns if any(is_picture(value) for value in table.filled(c, _SAMPLE))]
    images = stored or [c for c in table.columns if _stem(plain_name(c)) in NAMES["image"] and table.filled(c, 1)]
    if len(images) > 1 and not _are_numbered(images):
        both = " ".join(f"--image {column}" for column in images)
        raise ConfigError(
            f"{table.name}: the columns {', '.join(images)} all hold pictures. Which are shown, and in which order? "
            f"{both}, or one of them; or --image none"
        )
    named = images or [c for c in table.columns if plain_name(c) in _MAYBE_NAMES]
    if not named and table.in_folder and files.any():
        raise ConfigError(
            f"{table.name}: there are pictures beside the table, and no column names them by its own name. Say "
            "--image COLUMN, or --image none for a task that shows nothing"
        )
    for column in table.columns if not named else ():
        if (value := next(iter(table.filled(column, 1)), None)) is not None and names_picture(value):
            raise ConfigError(
                f"{table.name}: the column {column!r} ({shown(value)}) seems to name pictures. Say --image {column}, "
                "or --image none for a task that shows nothing"
            )
    first = [(column, value) for column in named for value in table.filled(column, 1)]
    if first and not any(is_picture(value) or files.has(value) for _, value in first):
        column, value = first[0]
        raise ConfigError(
            f"{table.name}: the column {column!r} ({shown(value)}) names pictures that are not in {files.folder}. Say "
            "--images FOLDER, or --image none for a task that shows nothing"
        )
    return tuple(sorted(named, key=_number_in) if len(images) > 1 else named[:1])


def _stem(name: str) -> str:
    return re.sub(r"_?\d+$", "", name)


def _are_numbered(columns: Sequence[str]) -> bool:
    """Whether columns differ by their numbers alone, such as image_1, image_2."""
    return len({_stem(plain_name(column)) for column in columns}) == 1


def _number_in(column: str) -> int:
    match = re.search(r"(\d+)$", column)
    return int(match[1]) if match else 0
