"""Tables of answers, this package's own and those of other tools: which column is what, and the documents in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile, zip_longest
from string import ascii_uppercase
from typing import Any

from hedge_tasks.data import cells
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.data.choices import OptionColumns
from hedge_tasks.data.roles import NONE, ColumnSettings, check_columns, not_told, obvious
from hedge_tasks.data.tables import StoredTable
from hedge_tasks.errors import DataError
from hedge_tasks.io.json_lines import Row

LISTS = ("answers", "clean", "noisy")
"""Keys of this package's lines with lists of answers."""

RIGHT = ("correct", "hit")
"""Columns of labels in which true is a right answer."""

_FAILED = re.compile(
    r"\s*(?:|\[LMMS_EVAL_(?:REQUEST_FAILED|BUDGET_EXCEEDED)\b.*|Failed to obtain answer via API\.?)\s*", re.DOTALL
)
"""Texts that adapters of lmms-eval and VLMEvalKit put in the place of an answer that they did not get."""

_ROLES = frozenset({"id", "question", "reference", "label", "group", "question_type"})
_WRITTEN = ("verdict", "scores", "sampled", "store", "crc32")
"""Keys that lines of this package have besides; nobody has to be told that they are not used."""

Fields = Mapping[str, Any]


@dataclass(frozen=True)
class Form:
    """The table of a tool.

    Attributes:
        needs: columns by which it is known.
        columns: which of its columns is what; `reply` has the baseline, or all answers, first.
        logprobs: of a column of replies, the one with the log-probabilities of their tokens.
        in_words: whether a text may stand for a request that failed, and in tables of texts for a list.
        notes: on how the tool's file became a table.
    """

    name: str
    columns: ColumnSettings
    needs: frozenset[str] = frozenset()
    logprobs: Mapping[str, str] = field(default_factory=dict)
    in_words: bool = True
    notes: tuple[str, ...] = ()


_OWN = Form("answer sets", ColumnSettings(answers=("reference",)), frozenset({"baseline", "clean"}))
_FORMS = (
    Form("OpenAI batch", ColumnSettings(id="custom_id", reply=("response",)), frozenset({"custom_id", "response"})),
    Form(
        "lmms-eval",
        ColumnSettings(id="doc_id", question="input", answers=("target",), reply=("resps",)),
        frozenset({"doc_id", "resps"}),
    ),
    Form(
        "uqlm",
        ColumnSettings(question="prompt", reply=("response", "sampled_responses")),
        frozenset({"response", "sampled_responses"}),
        {"response": "logprob", "sampled_responses": "multiple_logprob"},
    ),
    Form(
        "VLMEvalKit",
        ColumnSettings(id="index", reply=("prediction",), label="hit", question_type="category"),
        frozenset({"index", "prediction"}),
    ),
)
_NAMED = Form("columns of replies", ColumnSettings())


@dataclass(frozen=True)
class AnswerRows:
    """The documents in a file of answers.

    Attributes:
        rows: places and fields, as `hedge_tasks.data.answer_files.read_answer_set` reads them.
        model: as the file names it; empty where it does not.
        judge: who has labelled the answers; empty without labels.
    """

    form: str
    rows: Sequence[Row]
    model: str
    judge: str
    notes: tuple[str, ...]


def documents(
    table: StoredTable, chosen: ColumnSettings, form: Form | None = None, requests: Mapping[str, str] | None = None
) -> AnswerRows:
    """The documents of a table, by the columns that it has, or by those that the user names.

    Args:
        form: of the table; None is told by its columns.
        requests: the question of each request of a batch, by its id.

    Raises:
        ConfigError: nothing says which columns hold the model's replies; says what to type.
        DataError: a row cannot be read, or rows are of several models; names the place.
    """
    check_columns(table, chosen)
    form = form or _form_of(table, chosen)
    columns, rows = _columns(table, form, chosen), list(table.rows(None))
    items = partial(_items, in_words=form.in_words and table.in_words)
    read, failed = list[Row](), list[str]()
    for number, (where, row) in enumerate(rows):
        if row.get("filter") != rows[0][1].get("filter"):
            continue
        fields = _document(row, columns, str(number), where)
        fields |= (
            _own_answers(row) if form is _OWN else _replies(row, columns, form, items, where, failed, fields["id"])
        )
        if question := (requests or {}).get(fields["id"]):
            fields["question"] = question
        if form is _OWN or fields["answers"] or "baseline" in fields:
            read.append((where, fields))
    lost = [f"lost: {len(failed)} requests that failed, such as {failed[0]!r}"] if failed else []
    labelled = any("label" in fields for _, fields in read)
    judge = "given" if form in (_OWN, _NAMED) else f"{form.name}: {columns.label}"
    notes = (*form.notes, *_notes(table, columns, form), *lost)
    return AnswerRows(form.name, read, _model(table.name, rows), judge if labelled else "", notes)


def _form_of(table: StoredTable, chosen: ColumnSettings) -> Form:
    columns = {*table.columns}
    if chosen.reply:
        return _NAMED
    if (columns >= _OWN.needs or columns >= {"id", "answers"}) and not obvious(table, "reply"):
        return _OWN
    return next((form for form in _FORMS if form.needs <= columns), _NAMED)


def _columns(table: StoredTable, form: Form, chosen: ColumnSettings) -> ColumnSettings:
    """Which column is what: as the user says, else as the tool has them, else by an obvious name; None for none.

    Raises:
        ConfigError: none or several columns may hold the replies, or several the labels, which need not agree.
    """
    own = tuple(name for name in form.columns.reply if name in table.columns)
    reply = chosen.reply or own or tuple(obvious(table, "reply"))
    labels = obvious(table, "label", reply)
    if form is _NAMED and not chosen.reply and len(reply) != 1:
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


def _notes(table: StoredTable, columns: ColumnSettings, form: Form) -> list[str]:
    """Notes on where right answers come from, and on every column that is not used."""
    used = {*columns.named(), *form.logprobs.values(), *(ascii_uppercase if {"A", "B"} <= {*table.columns} else ())}
    used |= {"model", *((*AnswerSet.__dataclass_fields__, *LISTS, *_WRITTEN) if form is _OWN else ())}
    unused = [column for column in table.columns if column not in used]
    sources = [f"right answers come from column {column!r}" for column in columns.answers]
    return [*sources, *([f"not used: {', '.join(map(repr, unused))}"] if unused else [])]


def _model(name: str, rows: Sequence[Row]) -> str:
    """The model that the rows, or the replies of a batch, name.

    Raises:
        DataError: they name several.
    """
    bodies = [reply.get("body") for _, row in rows if isinstance(reply := row.get("response"), Mapping)]
    named = [fields.get("model") for fields in (*(row for _, row in rows), *bodies) if isinstance(fields, Mapping)]
    models = sorted({str(model) for model in named if not cells.is_missing(model)})
    if len(models) > 1:
        raise DataError(f"{name}: answers of several models ({', '.join(models[:5])}); one file a model")
    return models[0] if models else ""


Items = Callable[[Any], list[Any] | None]
"""Gives the list that a cell holds; None where it is one text."""


# --- one row ----------------------------------------------------------------------------------------------------------


def _document(row: Fields, columns: ColumnSettings, number: str, where: str) -> dict[str, Any]:
    """The fields of a document besides its answers; those that are empty are left out."""
    texts = {role: getattr(columns, role) for role in ("question", "group", "question_type")}
    fields: dict[str, Any] = {
        "id": cells.required(row.get(columns.id), f"{where}: {columns.id}") if columns.id else number,
        "reference": cells.references([row.get(column) for column in columns.answers]),
        **{role: cells.text(row.get(column), f"{where}: {column}") for role, column in texts.items() if column},
    }
    if columns.label:
        # in a column "label" true may be either
        right = cells.plain_name(columns.label) in RIGHT or (None if columns.label == "label" else False)
        fields["label"] = cells.label(row.get(columns.label), f"{where}: {columns.label}", right=right)
    if fields.get("question"):
        fields["question"] = _with_options(row, fields["question"])
    return {name: value for name, value in fields.items() if value not in (None, "")}


def _with_options(row: Fields, question: str) -> str:
    """The question with the options in the columns A, B, ...; an open one among others has none."""
    letters = tuple(takewhile(row.__contains__, ascii_uppercase))
    if len(letters) < 2 or cells.is_empty(row[letters[0]]):
        return question
    options = OptionColumns(letters)
    return options.with_options(question, options.options_of(row))


def _own_answers(row: Fields) -> dict[str, Any]:
    """The keys of a line of this package's own besides roles; in CSV files lists are texts."""
    lists = {key: cells.as_list(row[key]) or row[key] for key in LISTS if isinstance(row.get(key), str)}
    return {**{key: value for key, value in row.items() if key not in _ROLES}, **lists}


def _replies(
    row: Fields, columns: ColumnSettings, form: Form, items: Items, where: str, failed: list[str], id: str
) -> dict[str, Any]:
    """The answers of a row; of several columns the first holds the baseline. `failed` gets the id for each lost one."""
    replies = [list(_answers(row, column, form, items, where)) for column in columns.reply]
    whole = [[a for a in answers if not (form.in_words and _FAILED.fullmatch(str(a["text"])))] for answers in replies]
    failed += [id] * (sum(len(answers) or 1 for answers in replies) - sum(map(len, whole)))
    answers = [answer for of_column in whole for answer in of_column]
    if len(whole) == 1:
        return {"answers": answers}
    return {"baseline": answers[0], "answers": answers[1:]} if whole[0] else {"answers": []}


def _items(cell: Any, *, in_words: bool) -> list[Any] | None:
    """The list in a cell, also of the choices of a completion; None for one text."""
    if isinstance(cell, Mapping) and "body" in cell:
        cell = list((cell["body"] or {}).get("choices") or ())
    if isinstance(cell, str) and not in_words:
        return None
    return cells.as_list([] if cell is None else cell)


def _answers(row: Fields, column: str, form: Form, items: Items, where: str) -> Iterator[Fields]:
    """The answers in a cell: one, a list, repeats in lists, or the choices of a completion."""
    cell, logprobs = row.get(column), cells.as_list(row.get(form.logprobs.get(column, ""))) or []
    several = items(cell)
    texts, tokens = ([cell], [logprobs]) if several is None else (_flat(several), logprobs)
    for item, known in zip_longest(texts, tokens[: len(texts)]):
        if isinstance(item, str) and item.lstrip().startswith('{"id"'):
            raise DataError(f"{where}: a sample of a task of this package; its run file holds more (hedge_runs/)")
        fields = item if isinstance(item, Mapping) else {"text": cells.text(item, where)}
        if "text" not in fields or isinstance(fields.get("logprobs"), Mapping):
            fields = _choice(fields)
        yield {**fields, "logprobs": known} if known else fields


def _flat(value: Any) -> list[Any]:
    return [inner for item in value for inner in _flat(item)] if isinstance(value, list) else [value]


def _choice(choice: Fields) -> Fields:
    """A choice of a completion, of a chat or without, as an answer."""
    message, logprobs = choice.get("message") or {}, choice.get("logprobs") or {}
    # Completions without a chat have them in a column.
    tokens = [token["logprob"] for token in logprobs.get("content") or []] or logprobs.get("token_logprobs") or None
    text, reasoning = content_of(message.get("content") or choice.get("text"))
    return {
        "text": text,
        "logprobs": tokens,
        "finish_reason": choice.get("finish_reason") or choice.get("stop_reason"),
        "reasoning": message.get("reasoning_content") or message.get("reasoning") or reasoning,
    }


def content_of(content: Any) -> tuple[str, str]:
    """The text and the thought of a chat's message, which is a text or a list of parts."""
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    texts = [str(part.get("text") or "") for part in parts if part.get("type") == "text"]
    return "\n".join(texts), "".join(str(part.get("reasoning") or "") for part in parts)
