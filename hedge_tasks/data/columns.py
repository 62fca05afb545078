"""The role of each column of a table, from names and values. Where two columns could be meant, the user is asked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hedge_tasks.data import cells
from hedge_tasks.data.cells import QUESTIONS, plain_name
from hedge_tasks.data.choices import OptionColumns, find_choices
from hedge_tasks.data.conversations import COLUMNS as CONVERSATIONS
from hedge_tasks.data.media import PictureFiles, medium_of
from hedge_tasks.data.tables import StoredTable
from hedge_tasks.errors import ConfigError, DataError, unknown
from hedge_tasks.io.outside import shown

NONE = "none"
"""A user's word for "no such column"."""

ANSWERS = (
    "answer",
    *("antwort", "答案", "回答", "respuesta", "réponse", "reponse", "risposta", "resposta", "ответ", "정답", "답변"),
    *(
        "answers",
        "reference",
        "references",
        "ground_truth",
        "gt",
        "gold",
        "target",
        "correct_answer",
        "correct_answers",
    ),
    *("الإجابة", "إجابة", "الجواب", "उत्तर", "cevap", "yanıt", "câu_trả_lời", "đáp_án", "răspuns", "απάντηση", "svar"),
    *("antwoord", "odpowiedź", "odpověď", "תשובה"),
    *("gt_answer", "gt_answers", "reference_answer", "reference_answers", "gold_answer", "richtige_antwort"),
)
"""Names of columns with right answers. The first one counts most, the others where there is one."""

WHICH_OPTION = ("correct_choice_idx", "correct_idx", "correct_index", "answer_idx", "answer_index", "label", "correct")
"""Names of columns that say which of the options is right, where there are options and no other column answers."""

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
    *("paciente", "paciente_id", "patienten_id", "患者", "病人", "患者id", "paziente"),
)
"""Names of columns that say which questions belong together, where some share a value."""

IDS = ("question_id", "id", "qid", "questionId", "questionID", "index", "idx", "Nr", "编号")
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

PICTURES = (
    *("image", "images", "img", "imgs", "picture", "pictures", "photo", "photos", "figure", "scan", "xray"),
    *("الصورة", "صورة", "चित्र", "görsel", "resim", "hình_ảnh", "ảnh", "εικόνα", "bilde", "obrázek", "zdjęcie", "תמונה"),
    *("bild", "bilder", "imagen", "imagenes", "imágenes", "foto", "fotos", "图片", "图像", "影像", "画像"),
    *("image_path", "image_paths", "img_path", "image_file", "picture_path", "image_url", "image_urls", "dicom", "dcm"),
)
"""Names of columns that can hold nothing but pictures, also where their values do not show it."""

MEDIA = {
    "video": "video",
    "videos": "video",
    "video_path": "video",
    "clip": "video",
    "audio": "audio",
    "sound": "audio",
}
"""Names of columns with what is not read -> what it is."""

MOST_TYPES = 50
"""More kinds than this are no kinds: too few questions of each could be compared."""

_SAMPLE = 50
_NAME_LIKE = re.compile(r"[^\s?][^\n?]{0,200}")
_MAYBE_NAMES = ("image_id", "img_id", "file_name", "filename", "file", "path", "image_name", "img_name")


@dataclass(frozen=True)
class ColumnSettings:
    """Columns as the user names them; None is for us to find out, "none" for no such column.

    Attributes:
        images: the columns with pictures; an empty one is for us to find out.
        options: the columns with options; an empty one is for us to find out.
        first_option: number of the first option where the right one is given by its number; None to find out.
        separator: what stands between several references in a cell; None refuses what looks like it, "none" takes
            cells as they are.
        ignore: columns that are left unread knowingly.
        frames: how many frames of a video are shown as pictures; None refuses videos.
    """

    question: str | None = None
    answer: str | None = None
    images: tuple[str, ...] = ()
    group: str | None = None
    id: str | None = None
    question_type: str | None = None
    options: tuple[str, ...] = ()
    first_option: int | None = None
    separator: str | None = None
    ignore: tuple[str, ...] = ()
    frames: int | None = None


@dataclass(frozen=True)
class Roles:
    """Which column is what; None where there is none of the kind.

    Attributes:
        images: in the order in which they are shown.
        choices: options and how the answer names the right one; None for free answers.
        separator: what stands between several references in a cell; None for cells as they are.
        several: whether a cell of the answers may be a list of references.
        listed: whether documents show several pictures, which are written as a list.
        optional: whether a document may lack some of its pictures.
        frames: how many frames stand for a video.
    """

    question: str
    answer: str | None
    images: tuple[str, ...]
    group: str | None
    id: str | None
    question_type: str | None
    choices: OptionColumns | None = None
    separator: str | None = None
    several: bool = False
    listed: bool = False
    optional: bool = False
    frames: int | None = None

    def texts(self) -> list[str]:
        """All columns but those of pictures and options, each once."""
        columns = (self.id, self.question, self.answer, self.group, self.question_type)
        return list(dict.fromkeys(column for column in columns if column))

    def used(self) -> list[str]:
        """All columns that are read, each once."""
        return list(dict.fromkeys([*self.texts(), *self.images, *(self.choices.columns if self.choices else ())]))

    def unused(self, table: StoredTable) -> list[str]:
        return [column for column in table.columns if column not in self.used()]


def find_roles(table: StoredTable, chosen: ColumnSettings, files: PictureFiles | None = None) -> Roles:
    """Return which column is what: as the user says, else by names and values.

    Args:
        chosen: columns as the user names them.
        files: the pictures that names may mean; None for those of the table's folder.

    Raises:
        ConfigError: the user names a column that is not there, several or no columns could be it, or a column of
            pictures, video, sound or options would stay unread; says which option answers that.
    """
    single = (chosen.question, chosen.answer, chosen.group, chosen.id, chosen.question_type)
    for name in (*single, *chosen.images, *chosen.options, *chosen.ignore):
        if name not in (None, NONE, *table.columns):
            raise unknown(f"column of {table.name}", str(name), table.columns)
    files = files or PictureFiles(table.folder)
    columns = [column for column in table.columns if column not in chosen.ignore]
    pictures = _images(table, columns, chosen, files)
    texts = [column for column in columns if column not in pictures]
    if (turns := next((c for c in texts if plain_name(c) in CONVERSATIONS), None)) and not chosen.question:
        raise ConfigError(
            f"{table.name}: the column {turns!r} holds conversations that are not all one question and one answer; "
            "write a table with the columns question and answer"
        )
    question = chosen.question or _find_column(table, texts, QUESTIONS, "questions", "--question")
    if question == NONE:
        raise ConfigError("--question: a task needs one; answers that are labelled already are for `hedge score`")
    others = [column for column in texts if column != question]
    options = None if NONE in chosen.options else find_choices(table, others, chosen.options, question)
    others = [column for column in others if not (options and column in options.columns)]
    has_answers = options is None or any(plain_name(column) in ANSWERS for column in others)
    names = ANSWERS if has_answers else (*ANSWERS, *WHICH_OPTION)
    hint = ", or --answer none (no labels)"
    answer = chosen.answer or _find_column(table, others, names, "right answers", "--answer", hint)
    if question == answer:
        raise ConfigError(f"--question and --answer are both {question!r}")
    answer_column = None if answer == NONE else answer
    choices = _with_answers(table, options, answer_column, question, chosen)
    others = [column for column in others if column != answer]
    id_ = chosen.id or next((c for c in others if c in IDS and _distinct(table, c) == table.n_rows), None)
    group = chosen.group or _group(table, [column for column in others if column != id_])
    kind = chosen.question_type or next((c for c in others if c not in (id_, group) and _is_type(table, c)), None)
    if id_ not in (None, NONE) and _distinct(table, str(id_)) < table.n_rows:
        raise ConfigError(f"--id {id_}: rows share a value of it, or have none; --id none numbers them")
    group, id_, kind = (None if column == NONE else column for column in (group, id_, kind))
    listed = len(pictures) > 1 or any(isinstance(v, list) for c in pictures for v in table.filled(c, _SAMPLE))
    optional = len(pictures) > 1 and _numbered(pictures)
    filmed = chosen.frames if any(_medium(table, column) == "video" for column in pictures) else None
    listed = listed or (filmed or 0) > 1
    shape = {"listed": listed, "optional": optional, "frames": filmed}
    roles = Roles(question, answer_column, pictures, group, id_, kind, choices, **shape)  # type: ignore[arg-type]
    return roles if answer_column is None or choices else _with_references(table, roles, chosen)


def _with_answers(
    table: StoredTable, options: OptionColumns | None, answer: str | None, question: str, chosen: ColumnSettings
) -> OptionColumns | None:
    if options is None or answer is None:
        return options
    if options.in_text and not options.fits(table, question, answer):
        return None
    return options.with_naming(table, answer, question, chosen.first_option)


def _with_references(table: StoredTable, roles: Roles, chosen: ColumnSettings) -> Roles:
    """Return the roles with the way in which references stand in the cells: one, a list, or several in one text."""
    answer = str(roles.answer)
    values = table.filled(answer, table.n_rows)
    if any(isinstance(value, (list, tuple)) for value in values):
        return replace(roles, several=True)
    if chosen.separator is not None:
        return roles if chosen.separator == NONE else replace(roles, separator=chosen.separator)
    texts = [str(value) for value in values]
    for separator in ("||", "|", ";"):
        if sum(separator in text for text in texts) * 2 > len(texts):
            raise ConfigError(
                f"{table.name}: most values of {answer!r} have {separator!r} in them ({shown(texts[0])}). Are these "
                f"several right answers? Say --separator '{separator}', or --separator none"
            )
    if (
        texts
        and {text.strip() for text in texts} <= {"0", "1", "0.0", "1.0"}
        and _asks_yes_or_no(table, roles.question)
    ):
        raise ConfigError(
            f"{table.name}: the values of {answer!r} are 0 and 1, and the questions ask for yes or no. Which is yes? "
            "Write yes and no in their place"
        )
    return roles


def _asks_yes_or_no(table: StoredTable, question: str) -> bool:
    first = [str(value).strip().lower().split(" ")[0] for value in table.filled(question, _SAMPLE)]
    polar = {"is", "are", "was", "were", "do", "does", "did", "can", "has", "have", "ist", "sind", "hat", "gibt", "any"}
    return sum(word in polar for word in first) * 2 > len(first)


def _images(table: StoredTable, columns: Sequence[str], chosen: ColumnSettings, files: PictureFiles) -> tuple[str, ...]:
    media = {column: medium for column in columns if (medium := _medium(table, column))}
    for column, medium in media.items():
        if medium != "pictures" and not (medium == "video" and chosen.frames):
            frames = "Show frames of it with --frames 8, or leave" if medium == "video" else "Leave"
            raise ConfigError(
                f"{table.name}: the column {column!r} holds {medium}, which is not read; a task without it would ask "
                f"about something that is not shown. {frames} it out knowingly with --ignore {column}"
            )
    images = list(media)
    if NONE in chosen.images:
        return ()
    if chosen.images:
        if left := [column for column in images if column not in chosen.images]:
            raise ConfigError(
                f"{table.name}: the column {left[0]!r} holds pictures as well; show it with --image {left[0]}, or "
                f"leave it out knowingly with --ignore {left[0]}"
            )
        return tuple(dict.fromkeys(chosen.images))
    if not images and (by_file := _column_of_file_names(table, columns, files)):
        images = [by_file]
    local = [column for column in images if not _are_addresses(table, column)]
    images = local if len(local) == 1 else images  # the others say where the same pictures were
    if len(images) > 1 and not _are_a_sequence(images):
        both = " ".join(f"--image {column}" for column in images)
        raise ConfigError(
            f"{table.name}: the columns {_listed(images)} all hold pictures. Which are shown, and in which "
            f"order? {both}, or one of them and --ignore for the others; or --image none"
        )
    return tuple(sorted(images, key=_number_in) if len(images) > 1 and _numbered(images) else images)


def _are_addresses(table: StoredTable, column: str) -> bool:
    return all(isinstance(value, str) and "://" in value for value in table.filled(column, _SAMPLE))


def _medium(table: StoredTable, column: str) -> str | None:
    """The kind of a column's cells that are no text; None for texts and numbers.

    Raises:
        ConfigError: some of its rows hold pictures and most do not, or its name says pictures and its values do not.
    """
    values = table.filled(column, _SAMPLE)
    kinds = [medium_of(value) for value in values]
    media = [kind for kind in kinds if kind]
    name = plain_name(column)
    by_name = re.sub(r"_?\d+$", "", name)
    if media and 2 * len(media) >= len(values):
        return max(media, key=media.count)
    if not values:
        return None
    if media and name not in (*QUESTIONS, *ANSWERS):
        raise ConfigError(
            f"{table.name}: the column {column!r} holds {media[0]} in {len(media)} of the first {len(values)} rows "
            f"that have something in it; show it with --image {column} once all do, or leave it out with "
            f"--ignore {column}"
        )
    if any(isinstance(value, (bytes, bytearray)) for value in values) or any(map(_is_file_record, values)):
        raise ConfigError(
            f"{table.name}: the column {column!r} holds files that are no pictures; leave it out with --ignore {column}"
        )
    if by_name in MEDIA:
        return MEDIA[by_name]
    if by_name in PICTURES:
        if all(isinstance(value, str) and _NAME_LIKE.fullmatch(value) for value in values):
            return "pictures"  # names without an ending, some of which may be missing: the rows will say
        raise ConfigError(
            f"{table.name}: by its name the column {column!r} holds pictures, and by its values ({shown(values[0])}) "
            f"it does not; leave it out with --ignore {column}"
        )
    return None


def _is_file_record(value: object) -> bool:
    return isinstance(value, Mapping) and {"bytes", "path"} <= value.keys()


def _column_of_file_names(table: StoredTable, columns: Sequence[str], files: PictureFiles) -> str | None:
    """The column that names the pictures of the folder without their endings.

    Raises:
        ConfigError: the folder holds pictures and no column names them for sure.
    """
    if not table.in_folder or not files.any():
        return None
    naming = [column for column in columns if _names_files(table.filled(column, _SAMPLE), files)]
    sure = [column for column in naming if plain_name(column) in _MAYBE_NAMES]
    if len(sure) == 1:
        return sure[0]
    which = f"{_listed(naming, 'or')} may name them" if naming else "no column names them"
    raise ConfigError(
        f"{table.name}: there are pictures (or video, or sound) beside the table, and {which}. Say --image COLUMN, or "
        "--image none for a task that shows nothing"
    )


def _names_files(values: Sequence[object], files: PictureFiles) -> bool:
    texts = [str(value) for value in values if isinstance(value, (str, int)) and not isinstance(value, bool)]
    return (
        bool(texts)
        and len(texts) == len(values)
        and all(_NAME_LIKE.fullmatch(text) and files.has(text) for text in texts)
    )


def _are_a_sequence(columns: Sequence[str]) -> bool:
    """Whether columns of pictures are meant to be shown together: numbered, or before and after."""
    names = [plain_name(column) for column in columns]
    return _numbered(columns) or names in (["before", "after"], ["prior", "current"])


def _numbered(columns: Sequence[str]) -> bool:
    stems = {re.sub(r"_?\d+$", "", plain_name(column)) for column in columns}
    return len(stems) == 1 and all(re.search(r"\d$", column) for column in columns)


def _number_in(column: str) -> int:
    match = re.search(r"(\d+)$", column)
    return int(match[1]) if match else 0


def _find_column(
    table: StoredTable, columns: Sequence[str], names: Sequence[str], what: str, option: str, also: str = ""
) -> str:
    named = [column for column in columns if plain_name(column) in names]
    first = [column for column in named if plain_name(column) == names[0]]
    if len(first or named) == 1:
        return (first or named)[0]
    if named:
        raise ConfigError(f"{table.name}: which column holds the {what}, {_listed(named, 'or')}? Say {option} COLUMN")
    raise ConfigError(
        f"{table.name}: which column holds the {what}? Say {option} COLUMN{also}; there are {_examples(table)}"
    )


def _group(table: StoredTable, columns: Sequence[str]) -> str | None:
    candidates = [c for c in columns if plain_name(c) in GROUPS and 1 < _distinct(table, c) < table.n_rows]
    if len(candidates) > 1:
        raise ConfigError(
            f"{table.name}: which questions belong together, those that share {_listed(candidates, 'or')}? Say --group "
            "COLUMN (the larger groups, such as patients, where both do), or --group none"
        )
    return candidates[0] if candidates else None


def _is_type(table: StoredTable, column: str) -> bool:
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


def _listed(names: Sequence[str], word: str = "and") -> str:
    return f" {word} ".join([", ".join(map(repr, names[:-1])), repr(names[-1])]) if len(names) > 1 else repr(names[0])


def _examples(table: StoredTable) -> str:
    """Every column with its first value."""
    first = next(iter(table.rows(None)))
    return ", ".join(f"{column} ({shown(first[column])})" for column in table.columns)
