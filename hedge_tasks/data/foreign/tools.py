"""Columns of the tables that tools write answers to, as the fields of `hedge_tasks.data.answer_files`."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile, zip_longest
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from hedge_tasks.data import cells
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.data.choices import OptionColumns
from hedge_tasks.data.roles import NONE, ColumnSettings, check_columns, not_told, obvious
from hedge_tasks.data.tables import StoredTable, memory_table, read_rows
from hedge_tasks.errors import DataError
from hedge_tasks.io.json_lines import Row
from hedge_tasks.io.outside import shown

OWN, NAMED = "answer sets", "columns of replies"
LISTS = ("answers", "clean", "noisy")
"""Keys of this package's lines with lists of answers."""

_FAILED = re.compile(
    r"\s*(?:|\[LMMS_EVAL_(?:REQUEST_FAILED|BUDGET_EXCEEDED)\b.*|Failed to obtain answer via API\.?)\s*", re.DOTALL
)
"""Texts that adapters of lmms-eval and VLMEvalKit put in the place of an answer that they did not get."""

_WRITTEN = ("verdict", "scores", "sampled", "store", "crc32")
"""Keys that lines of this package have besides; nobody has to be told that they are not used."""

_OWN_KEYS = (
    *(
        {*AnswerSet.__dataclass_fields__, "answers"}
        - {"id", "question", "reference", "label", "group", "question_type"}
    ),
)
"""Keys of this package's lines that are taken as they are."""

_RIGHT = ("correct", "hit")
"""Columns of labels in which true is a right answer."""

Fields = Mapping[str, Any]


@dataclass(frozen=True)
class Form:
    """The table of a tool.

    Attributes:
        needs: columns by which it is known.
        columns: which of its columns is what; `reply` has the baseline, or all answers, first.
        logprobs: of a column of replies, the one with the log-probabilities of their tokens.
    """

    needs: frozenset[str]
    columns: ColumnSettings
    logprobs: Mapping[str, str] = field(default_factory=dict)


_FORMS = {
    "OpenAI batch": Form(frozenset({"custom_id", "response"}), ColumnSettings(id="custom_id", reply=("response",))),
    "lmms-eval": Form(
        frozenset({"doc_id", "resps"}),
        ColumnSettings(id="doc_id", question="input", answers=("target",), reply=("resps",)),
    ),
    "uqlm": Form(
        frozenset({"response", "sampled_responses"}),
        ColumnSettings(question="prompt", reply=("response", "sampled_responses")),
        {"response": "logprob", "sampled_responses": "multiple_logprob"},
    ),
    "VLMEvalKit": Form(
        frozenset({"index", "prediction"}),
        ColumnSettings(id="index", reply=("prediction",), label="hit", question_type="category"),
    ),
    NAMED: Form(frozenset(), ColumnSettings()),
}
"""Tools -> their tables; the last is any table."""


@dataclass(frozen=True)
class ForeignFile:
    """A file of answers.

    Attributes:
        rows: places and fields, as `hedge_tasks.data.answer_files.normal_rows` reads them.
        judge: who has labelled the answers; empty without labels.
    """

    form: str
    rows: Sequence[Row]
    model: str = ""
    judge: str = ""
    notes: tuple[str, ...] = ()


def read_table_of_answers(file: Path, questions: Path | None, chosen: ColumnSettings) -> ForeignFile:
    """The answers of a table, by the columns that it has, or by those that the user names.

    Args:
        questions: the requests of a batch.

    Raises:
        ConfigError: nothing says which columns hold the model's replies; says what to type.
        DataError: the file cannot be read; names the place.
    """
    rows = read_rows(file)
    if not rows:
        raise DataError(f"{file}: no answers in it")
    table = memory_table(str(file), [row for _, row in rows], file.parent)
    check_columns(table, chosen)
    if _is_own(table, chosen):
        return _own_file(table, rows, chosen)
    name = NAMED if chosen.reply else next(n for n, form in _FORMS.items() if form.needs <= {*table.columns})
    form = _FORMS[name]
    columns = _columns(table, form, chosen)
    of_filter = [(where, row) for where, row in rows if row.get("filter") == rows[0][1].get("filter")]
    documents, lost = _documents(of_filter, columns, form, _requests(questions))
    notes = _notes(table, columns, form.logprobs.values())
    notes += [f"lost: {len(lost)} requests that failed, such as {lost[0]!r}"] if lost else []
    judge = "given" if name == NAMED else f"{name}: {columns.label}"
    return ForeignFile(name, documents, _model(file, rows), judge if _labelled(documents) else "", tuple(notes))


def _documents(
    rows: Sequence[Row], columns: ColumnSettings, form: Form, requests: Mapping[str, str]
) -> tuple[list[Row], list[str]]:
    """The rows that have an answer, and for each request that failed the id of its document."""
    documents, lost = list[Row](), list[str]()
    for number, (where, row) in enumerate(rows):
        fields = _document(row, columns, str(number), where)
        answers = [answer for column in columns.reply for answer in _answers(row, column, form, where)]
        whole = [answer for answer in answers if not _FAILED.fullmatch(answer["text"])]
        lost += [fields["id"]] * (len(answers) - len(whole) or int(not answers))
        if whole:
            # of several columns the first holds the baseline
            replies = {"baseline": whole.pop(0)} if len(columns.reply) > 1 else {}
            fields["question"] = requests.get(fields["id"]) or _with_options(row, fields.get("question"))
            documents.append((where, {**fields, **replies, "answers": whole}))
    return documents, lost


def _is_own(table: StoredTable, chosen: ColumnSettings) -> bool:
    """Whether its lines are this package's, or plain lists of answers."""
    columns = {*table.columns}
    shaped = {"baseline", "clean"} <= columns or {"id", "answers"} <= columns
    return shaped and not chosen.reply and not obvious(table, "reply")


def _own_file(table: StoredTable, rows: Sequence[Row], chosen: ColumnSettings) -> ForeignFile:
    """The lines as they are, but for columns that the user names and that of labels; in CSV files lists are texts."""
    columns = _columns(table, Form(frozenset({"id"}), ColumnSettings(answers=("reference",))), chosen)
    documents = []
    for where, row in rows:
        texts = {key: cells.as_list(row[key]) or row[key] for key in LISTS if isinstance(row.get(key), str)}
        rest = {key: row[key] for key in _OWN_KEYS if key in row}
        documents.append((where, {**rest, **texts, **_document(row, columns, "", where)}))
    notes = _notes(table, columns, (*_OWN_KEYS, *_WRITTEN))
    return ForeignFile(OWN, documents, judge="given" if _labelled(documents) else "", notes=tuple(notes))


def _labelled(documents: Sequence[Row]) -> bool:
    return any("label" in row for _, row in documents)


def _notes(table: StoredTable, columns: ColumnSettings, used: Collection[str]) -> list[str]:
    """Notes on where right answers come from, and on every column that is not used."""
    options = ascii_uppercase if {"A", "B"} <= {*table.columns} else ""
    unused = [column for column in table.columns if column not in {*columns.named(), *used, *options, "model"}]
    sources = [f"right answers come from column {column!r}" for column in columns.answers]
    return [*sources, *([f"not used: {', '.join(map(repr, unused))}"] if unused else [])]


def _columns(table: StoredTable, form: Form, chosen: ColumnSettings) -> ColumnSettings:
    """Which column is what: as the user says, else as the tool has them, else by an obvious name; None for none.

    Raises:
        ConfigError: none or several columns may hold the replies, or several the labels, which need not agree.
    """
    reply = chosen.reply or form.columns.reply or tuple(obvious(table, "reply"))
    labels = obvious(table, "label", reply)
    if len(reply) != 1 and not chosen.reply and not form.needs:
        raise not_told(table, ["reply"])
    if len(labels) > 1 and not {chosen.label, form.columns.label} & {NONE, *table.columns}:
        raise not_told(table, ["label"])

    def column(role: str, names: Sequence[str]) -> str | None:
        named = (getattr(chosen, role), getattr(form.columns, role), *names)
        name = next((name for name in named if name in (NONE, *table.columns)), None)
        return None if name == NONE else name

    answers = chosen.answers or form.columns.answers or tuple(obvious(table, "answer", reply)[:1])
    return ColumnSettings(
        question=column("question", obvious(table, "question", reply)),
        answers=tuple(name for name in answers if name in table.columns),
        group=column("group", ["group"]),
        id=column("id", obvious(table, "id", reply)),
        question_type=column("question_type", ["question_type"]),
        reply=reply,
        label=column("label", labels),
    )


# --- one row ----------------------------------------------------------------------------------------------------------


def _document(row: Fields, columns: ColumnSettings, number: str, where: str) -> dict[str, Any]:
    """The fields of a document besides its answers; those that are empty are left out."""
    texts = {role: getattr(columns, role) for role in ("question", "group", "question_type")}
    references = [reference_text(row.get(column)) for column in columns.answers]
    fields = {
        "id": cells.required(row.get(columns.id), f"{where}: {columns.id}") if columns.id else number,
        "reference": "\n".join(filter(None, references)),
        "label": _label(row.get(columns.label), columns.label, where) if columns.label else None,
        **{role: cells.text(row.get(column), f"{where}: {column}") for role, column in texts.items() if column},
    }
    return {name: value for name, value in fields.items() if value not in (None, "")}


def _answers(row: Fields, column: str, form: Form, where: str) -> list[Fields]:
    """The answers in a cell: one, a list, repeats in lists, or the choices of a completion."""
    cell, logprobs = row.get(column), row.get(form.logprobs.get(column, ""))
    if isinstance(cell, Mapping) and "body" in cell:
        return [choice_answer(choice) for choice in (cell["body"] or {}).get("choices") or ()]
    items = cells.as_list(cell)
    texts = [cell] if items is None else _flat(items)
    tokens = cells.as_list(logprobs) or []
    tokens = [tokens] if items is None else tokens[: len(texts)]
    answers = []
    for text, known in zip_longest(texts, tokens):
        if isinstance(text, str) and text.lstrip().startswith('{"id"'):
            raise DataError(f"{where}: a sample of a task of this package; its run file holds more (hedge_runs/)")
        fields = text if isinstance(text, Mapping) else {"text": cells.text(text, where)}
        answers.append({**fields, "logprobs": known} if known else fields)
    return answers


def _flat(value: Any) -> list[Any]:
    return [inner for item in value for inner in _flat(item)] if isinstance(value, list) else [value]


def _label(value: object, column: str, where: str) -> int | None:
    """1 for a hallucinated baseline answer; of a column of right answers the contrary."""
    flips, word = cells.plain_name(column) in _RIGHT, str(value).strip().lower()
    if column != "label" and word in ("true", "false"):
        value = int(word == "true")
    try:
        label = cells.label(value, f"{where}: {column}")
    except DataError:
        if not flips:
            raise
        expected = "true or 1 where the answer is right, false or 0 where it is not, or nothing"
        raise DataError(f"{where}: {column} is {shown(value)}; expected {expected}") from None
    return 1 - label if flips and label is not None else label


def _with_options(row: Fields, question: str | None) -> str | None:
    """The question with the options in the columns A, B, ...; an open one among others has none."""
    letters = tuple(takewhile(row.__contains__, ascii_uppercase))
    if question is None or len(letters) < 2 or cells.is_empty(row[letters[0]]):
        return question
    options = OptionColumns(letters)
    return options.with_options(question, options.options_of(row))


def _model(file: Path, rows: Sequence[Row]) -> str:
    """The model that the rows, or the replies of a batch, name.

    Raises:
        DataError: they name several.
    """
    bodies = [reply.get("body") or {} for _, row in rows if isinstance(reply := row.get("response"), Mapping)]
    named = [fields.get("model") for fields in (*(row for _, row in rows), *bodies)]
    models = sorted({str(name) for name in named if not cells.is_missing(name)})
    if len(models) > 1:
        raise DataError(f"{file}: answers of several models ({', '.join(models[:5])}); one file a model")
    return models[0] if models else ""


def choice_answer(choice: Fields) -> Fields:
    """A choice of a completion, of a chat or without, as an answer."""
    message, logprobs = choice.get("message") or {}, choice.get("logprobs") or {}
    # Completions without a chat have them in a column.
    tokens = [token["logprob"] for token in logprobs.get("content") or []] or logprobs.get("token_logprobs") or None
    return {
        "text": str(message.get("content") or choice.get("text") or ""),
        "logprobs": tokens,
        "finish_reason": choice.get("finish_reason"),
        "reasoning": message.get("reasoning_content") or message.get("reasoning"),
    }


def reference_text(value: object) -> str:
    """The references in a cell that holds one or a list of them, one a line."""
    items = cells.as_list(value)
    return "\n".join(cells.text(item) for item in ([value] if items is None else items))


def _requests(file: Path | None) -> dict[str, str]:
    """The question of each request, by its id: the texts of the last turn."""
    questions = {}
    for _, row in read_rows(file) if file else ():
        content = ([*((row.get("body") or {}).get("messages") or ())] or [{}])[-1].get("content") or ""
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
        questions[str(row.get("custom_id"))] = "\n".join(str(p.get("text")) for p in parts if p.get("type") == "text")
    return questions
