"""Which column of a table is what. Told by names and values, never between two that both could be: then it is asked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hedge_tasks.data import cells
from hedge_tasks.data.pictures import PICTURE_FILES, UNREADABLE_ERRORS, picture_of
from hedge_tasks.data.tables import StoredTable
from hedge_tasks.errors import ConfigError, DataError, unknown
from hedge_tasks.io.outside import shown

NONE = "none"
"""What a user says for "no such column"."""

QUESTIONS = ("question", "query", "prompt", "instruction", "problem", "question_text")
ANSWERS = (
    "answer",
    "reference",
    "ground_truth",
    "gt",
    "gold",
    "target",
    "correct_answer",
    "gt_answer",
    "reference_answer",
)
"""Names of columns with questions, and with right answers. The first one counts most, the others where there is one."""

GROUPS = (
    "group",
    "patient_id",
    "patient",
    "subject_id",
    "study_id",
    "case_id",
    "image_id",
    "img_id",
    "video_id",
    "scene_id",
)
"""Names of columns that say which questions belong together, where some share a value."""

IDS = ("question_id", "id", "qid", "questionId", "questionID", "index", "idx")
"""Names of columns that are ids where no two documents share one."""

QUESTION_TYPES = (
    "question_type",
    "category",
    "subject",
    "type",
    "answer_type",
    "task",
    "task_type",
    "sub_task",
    "topic",
    "subfield",
)
"""Names of columns with the kind of question, where they hold a few values."""

MOST_TYPES = 50
"""More kinds than this are no kinds: too few questions of each could be compared."""

_LOOKED_AT = 50


@dataclass(frozen=True)
class ColumnSettings:
    """Columns as the user names them; None is for us to find out, "none" for no such column.

    Attributes:
        images: the columns with pictures; an empty one is for us to find out.
    """

    question: str | None = None
    answer: str | None = None
    images: tuple[str, ...] = ()
    group: str | None = None
    id: str | None = None
    question_type: str | None = None


@dataclass(frozen=True)
class Roles:
    """Which column is what; None where there is none of the kind."""

    question: str
    answer: str
    images: tuple[str, ...]
    group: str | None
    id: str | None
    question_type: str | None

    def texts(self) -> list[str]:
        """All columns but those of pictures, each once."""
        columns = (self.id, self.question, self.answer, self.group, self.question_type)
        return list(dict.fromkeys(column for column in columns if column))

    def unused(self, table: StoredTable) -> list[str]:
        return [column for column in table.columns if column not in (*self.texts(), *self.images)]


def find_roles(table: StoredTable, asked: ColumnSettings) -> Roles:
    """Which column is what: as the user says, else by names and values.

    Raises:
        ConfigError: the user names a column that is not there, or several or no columns could be it; says which option
            answers that.
    """
    for name in (asked.question, asked.answer, asked.group, asked.id, asked.question_type, *asked.images):
        if name not in (None, NONE, *table.columns):
            raise unknown(f"column of {table.name}", str(name), table.columns)
    images = _images(table, asked.images)
    texts = [column for column in table.columns if column not in images]
    question = asked.question or _by_name(table, texts, QUESTIONS, "questions", "--question")
    answer = asked.answer or _by_name(table, [c for c in texts if c != question], ANSWERS, "right answers", "--answer")
    for role, column in (("question", question), ("answer", answer)):
        if column == NONE:
            raise ConfigError(f"--{role}: a task needs one; answers that are labelled already are for `hedge score`")
    if question == answer:
        raise ConfigError(f"--question and --answer are both {question!r}")
    rest = [column for column in texts if column not in (question, answer)]
    id_ = asked.id or next((c for c in rest if c in IDS and _distinct(table, c) == table.n_rows), None)
    group = asked.group or _group(table, [column for column in rest if column != id_])
    kind = asked.question_type or next((c for c in rest if c not in (id_, group) and _is_kind(table, c)), None)
    if id_ not in (None, NONE) and _distinct(table, str(id_)) < table.n_rows:
        raise ConfigError(f"--id {id_}: rows share a value of it, or have none; --id none numbers them")
    return Roles(question, answer, images, *(None if column == NONE else column for column in (group, id_, kind)))


def _images(table: StoredTable, asked: Sequence[str]) -> tuple[str, ...]:
    if NONE in asked:
        return ()
    if asked:
        return tuple(dict.fromkeys(asked))
    found = [column for column in table.columns if _holds_pictures(table.values(column, _LOOKED_AT))]
    if len(found) > 1:
        both = " ".join(f"--image {column}" for column in found)
        raise ConfigError(
            f"{table.name}: the columns {_listed(found)} all hold pictures. Which are shown? --image {found[0]}, or "
            f"several: {both}; or --image none"
        )
    return tuple(found)


def _holds_pictures(values: Iterable[object]) -> bool:
    there = [value for value in values if value]
    return bool(there) and all(map(_is_picture, there))


def _is_picture(value: object) -> bool:
    """Whether a value is a picture: bytes are looked into, a name has to end like one."""
    if isinstance(value, Mapping):
        value = value.get("bytes") or value.get("path")
    if isinstance(value, str):
        return value.lower().split("?")[0].endswith(PICTURE_FILES)
    if not isinstance(value, (bytes, bytearray)):
        return False
    try:
        with picture_of(value):
            return True
    except UNREADABLE_ERRORS:
        return False


def _by_name(table: StoredTable, columns: Sequence[str], names: Sequence[str], what: str, option: str) -> str:
    found = [column for column in columns if plain_name(column) in names]
    first = [column for column in found if plain_name(column) == names[0]]
    if len(first or found) == 1:
        return (first or found)[0]
    if found:
        raise ConfigError(f"{table.name}: which column holds the {what}, {_listed(found, 'or')}? Say {option} COLUMN")
    raise ConfigError(f"{table.name}: which column holds the {what}? Say {option} COLUMN; there are {_examples(table)}")


def _group(table: StoredTable, columns: Sequence[str]) -> str | None:
    found = [c for c in columns if plain_name(c) in GROUPS and 1 < _distinct(table, c) < table.n_rows]
    if len(found) > 1:
        raise ConfigError(
            f"{table.name}: which questions belong together, those that share {_listed(found, 'or')}? Say --group "
            "COLUMN (the larger groups, such as patients, where both do), or --group none"
        )
    return found[0] if found else None


def _is_kind(table: StoredTable, column: str) -> bool:
    if column not in QUESTION_TYPES:
        return False
    n = _distinct(table, column)
    return 2 <= n <= min(MOST_TYPES, max(2, table.n_rows // 2))


def _distinct(table: StoredTable, column: str) -> int:
    """Number of different values; 0 where a row has none, or a value that is no text."""
    try:
        values = {cells.text(value) for value in table.values(column)}
    except DataError:
        return 0
    return 0 if "" in values else len(values)


def plain_name(name: str) -> str:
    """Return the name of a column in lower case with underscores: `patientID` and `Patient Id` are `patient_id`."""
    return re.sub(r"[^0-9a-z]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()).strip("_")


def _listed(names: Sequence[str], word: str = "and") -> str:
    return f" {word} ".join([", ".join(map(repr, names[:-1])), repr(names[-1])])


def _examples(table: StoredTable) -> str:
    """Every column with its first value."""
    first = next(iter(table.rows(None)))
    return ", ".join(f"{column} ({shown(first[column])})" for column in table.columns)
