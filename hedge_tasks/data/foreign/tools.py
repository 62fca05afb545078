"""Columns of the tables that tools write answers to, as the fields of `hedge_tasks.data.answer_files`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile, zip_longest
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from hedge_tasks.data import cells
from hedge_tasks.data.choices import OptionColumns
from hedge_tasks.data.roles import NONE, ColumnSettings, check_columns, not_told, obvious
from hedge_tasks.data.tables import StoredTable, memory_table, read_rows, with_turns
from hedge_tasks.errors import DataError, unknown
from hedge_tasks.io.json_lines import Row
from hedge_tasks.io.outside import shown

OWN, NAMED, ROWS = "answer sets", "columns of replies", "an answer a row"

_FAILED = re.compile(
    r"\s*(?:|\[LMMS_EVAL_(?:REQUEST_FAILED|BUDGET_EXCEEDED)\b.*|Failed to obtain answer via API\.?)\s*", re.DOTALL
)
"""Texts that adapters of lmms-eval and VLMEvalKit put in the place of an answer that they did not get."""

_CONDITIONS = ("baseline", "clean", "noisy")
_OF_ROWS = ("text", "condition", "mean_logprob", "n_tokens")
"""Columns of an answer a row."""

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
        ignored: columns that say nothing of a document.
    """

    needs: frozenset[str]
    columns: ColumnSettings
    logprobs: Mapping[str, str] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()


_FORMS = {
    "OpenAI batch": Form(
        frozenset({"custom_id", "response"}),
        ColumnSettings(id="custom_id", reply=("response",)),
        ignored=("id", "error"),
    ),
    "lmms-eval": Form(
        frozenset({"doc_id", "resps"}),
        ColumnSettings(id="doc_id", question="input", answers=("target",), reply=("resps",)),
        ignored=("filtered_resps", "filter", "doc_hash"),
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
    table = with_turns(memory_table(str(file), "", [row for _, row in rows], file.parent))
    check_columns(table, chosen)
    placed = list(zip([where for where, _ in rows], table.rows(None), strict=True))
    columns, is_own = set(table.columns), not chosen.reply and not obvious(table, "reply")
    if is_own and ({"baseline", "clean"} <= columns or {"id", "answers"} <= columns):
        own = replace(chosen, label=_label_column(table, chosen, _FORMS[NAMED]))
        documents = [(where, _own(row, own, where)) for (where, _), (_, row) in zip(placed, rows, strict=True)]
        return _labelled(OWN, documents, ["not used: 'label'"] if own.label != "label" and "label" in columns else [])
    if is_own and {"id", "text"} <= columns:
        about = _columns(table, Form(frozenset(), ColumnSettings(id="id", answers=("reference",))), chosen, _OF_ROWS)
        return _labelled(ROWS, list(_joined_rows(placed, about)), _notes(table, about, {*about.named(), "model"}))
    name = NAMED if chosen.reply else next(name for name, form in _FORMS.items() if form.needs <= columns)
    return _read_form(name, table, placed, chosen, _requests(questions))


def _labelled(form: str, documents: Sequence[Row], notes: Sequence[str]) -> ForeignFile:
    """A file whose labels, where it has any, came with its answers."""
    judge = "given" if any(row.get("label") is not None for _, row in documents) else ""
    return ForeignFile(form, documents, judge=judge, notes=tuple(notes))


def _own(row: Fields, chosen: ColumnSettings, where: str) -> Fields:
    """One of this package's lines, or a plain list of answers, and what the user names; in CSV files lists are texts.

    Args:
        chosen: none but those that the user names, and the column of labels.
    """
    texts = (key for key in ("answers", "clean", "noisy") if isinstance(row.get(key), str))
    lists = {key: cells.as_list(row[key]) or row[key] for key in texts}
    about = _document(row, chosen, "", where)
    rest = {key: value for key, value in row.items() if key not in {*chosen.named(), "label"}}
    return {**rest, **({"label": None} if chosen.label else {}), **lists, **about}


def _joined_rows(rows: Sequence[Row], columns: ColumnSettings) -> Iterator[Row]:
    """Documents of rows of an answer each: those of one id belong together, and say what is the document's alike."""
    documents: dict[str, tuple[str, dict[str, Any]]] = {}
    for where, row in rows:
        about = _document(row, columns, "", where)
        id = cells.required(about.get("id"), f"{where}: id")
        _, fields = documents.setdefault(id, (where, {"answers": [], "clean": [], "noisy": []}))
        for name, value in about.items():
            if fields.setdefault(name, value) != value:
                raise DataError(f"{where}: another {name} than in an earlier row of the id {id!r}")
        numbers = {key: cells.number(row.get(key), f"{where}: {key}") for key in ("mean_logprob", "n_tokens")}
        answer = {"text": cells.required(row["text"], f"{where}: text"), **numbers}
        if answer["n_tokens"] is not None:
            answer["n_tokens"] = int(answer["n_tokens"])
        condition = cells.text(row.get("condition")).lower() or "answers"
        if condition == "baseline" and "baseline" not in fields:
            fields["baseline"] = answer
        elif condition in ("answers", "clean", "noisy"):
            fields[condition].append(answer)
        else:
            raise DataError(f"{where}: a second baseline, or {unknown('condition', condition, _CONDITIONS)}")
    for where, fields in documents.values():
        yield where, {key: value for key, value in fields.items() if value != []}


def _read_form(
    name: str, table: StoredTable, rows: Sequence[Row], chosen: ColumnSettings, requests: Mapping[str, str]
) -> ForeignFile:
    form = _FORMS[name]
    likely = obvious(table, "reply")
    reply = chosen.reply or form.columns.reply or tuple(likely)
    if not reply or (reply == tuple(likely) and len(likely) > 1):
        raise not_told(table, ["reply"])
    columns = _columns(table, form, chosen, reply)
    letters = tuple(takewhile(table.columns.__contains__, ascii_uppercase))
    documents, lost = list[Row](), list[str]()
    for number, (where, row) in enumerate(rows):
        if row.get("filter") != rows[0][1].get("filter"):
            continue  # rows of another filter say the same answers again
        fields = _document(row, columns, str(number), where)
        question = requests.get(fields["id"]) or _with_options(row, fields.get("question"), letters)
        answers = [answer for column in columns.reply for answer in _answers(row, column, form, where)]
        whole = [answer for answer in answers if not _FAILED.fullmatch(answer["text"])]
        lost += [fields["id"]] * (len(answers) - len(whole) or int(not answers))
        if whole:
            named_first = len(columns.reply) > 1  # of several columns the first holds the baseline
            replies = {"baseline": whole[0], "answers": whole[1:]} if named_first else {"answers": whole}
            documents.append((where, {**fields, **({"question": question} if question else {}), **replies}))
    notes = _notes(table, columns, {*columns.named(), *letters, *form.logprobs.values(), *form.ignored, "model"})
    notes += [f"lost: {len(lost)} requests that failed, such as {lost[0]!r}"] if lost else []
    who = "given" if name == NAMED else f"{name}: {columns.label}"
    judge = who if any("label" in row for _, row in documents) else ""
    return ForeignFile(name, documents, _model(table, rows), judge, tuple(notes))


def _notes(table: StoredTable, columns: ColumnSettings, used: Collection[str | None]) -> list[str]:
    """Notes on where right answers come from, and on every column that is not used."""
    unused = [column for column in table.columns if column not in used]
    sources = [f"right answers come from column {column!r}" for column in columns.answers]
    return [*table.notes, *sources, *([f"not used: {', '.join(map(repr, unused))}"] if unused else [])]


def _document(row: Fields, columns: ColumnSettings, number: str, where: str) -> dict[str, Any]:
    """The fields of a document besides its answers; those that are empty are left out."""
    texts = {role: getattr(columns, role) for role in ("question", "group", "question_type")}
    answers = [column for column in columns.answers if column != NONE]
    fields = {
        "id": cells.required(row[columns.id], f"{where}: {columns.id}") if columns.id not in (None, NONE) else number,
        "reference": "\n".join(filter(None, (reference_text(row[column]) for column in answers))),
        "label": _label(row, columns.label, where) if columns.label else None,
        **{
            role: cells.text(row[column], f"{where}: {column}")
            for role, column in texts.items()
            if column not in (None, NONE)
        },
    }
    return {name: value for name, value in fields.items() if value not in (None, "")}


def _label_column(table: StoredTable, chosen: ColumnSettings, form: Form, reply: Sequence[str] = ()) -> str | None:
    """The column of labels; None for none.

    Raises:
        ConfigError: several may be it, which need not agree.
    """
    likely = obvious(table, "label", reply)
    named = next((name for name in (chosen.label, form.columns.label) if name in (NONE, *table.columns)), None)
    if named is None and len(likely) > 1:
        raise not_told(table, ["label"])
    name = named or next(iter(likely), None)
    return None if name == NONE else name


def _columns(table: StoredTable, form: Form, chosen: ColumnSettings, reply: tuple[str, ...]) -> ColumnSettings:
    """Which column is what: as the user says, else as the tool has them, else by an obvious name; None for none.

    Args:
        reply: the columns of answers.
    """
    own = form.columns

    def column(role: str, names: Sequence[str]) -> str | None:
        named = (getattr(chosen, role), getattr(own, role), *names)
        name = next((name for name in named if name in (NONE, *table.columns)), None)
        return None if name == NONE else name

    answers = chosen.answers or own.answers or tuple(obvious(table, "answer", reply)[:1])
    return ColumnSettings(
        question=column("question", obvious(table, "question", reply)),
        answers=tuple(name for name in answers if name in table.columns),
        group=column("group", ["group"]),
        id=column("id", obvious(table, "id", reply)),
        question_type=column("question_type", ["question_type"]),
        reply=reply,
        label=_label_column(table, chosen, form, reply),
    )


def _answers(row: Fields, column: str, form: Form, where: str) -> list[Fields]:
    """The answers in a cell: one, a list, repeats in lists, or the choices of a completion."""
    cell, logprobs = row[column], row.get(form.logprobs.get(column, ""))
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


def _label(row: Fields, column: str, where: str) -> int | None:
    """1 for a hallucinated baseline answer; of a column of right answers the contrary."""
    value, flips = row.get(column), cells.plain_name(column) in _RIGHT
    if isinstance(value, bool) and column != "label":
        value = int(value)
    elif column != "label" and str(value).strip().lower() in ("true", "false"):
        value = int(str(value).strip().lower() == "true")
    try:
        label = cells.label(value, f"{where}: {column}")
    except DataError:
        if not flips:
            raise
        expected = "true or 1 where the answer is right, false or 0 where it is not, or nothing"
        raise DataError(f"{where}: {column} is {shown(value)}; expected {expected}") from None
    return 1 - label if flips and label is not None else label


def _with_options(row: Fields, question: str | None, letters: Sequence[str]) -> str | None:
    """The question with the options in the columns A, B, ...; an open one among others has none."""
    if question is None or len(letters) < 2 or cells.is_empty(row[letters[0]]):
        return question
    options = OptionColumns(tuple(letters))
    return options.with_options(question, options.options_of(row, question))


def _model(table: StoredTable, rows: Sequence[Row]) -> str:
    """The model that the rows, or the replies of a batch, name.

    Raises:
        DataError: they name several.
    """
    responses = [row["response"] for _, row in rows if isinstance(row.get("response"), Mapping)]
    named = [row.get("model") for _, row in rows] + [(reply.get("body") or {}).get("model") for reply in responses]
    models = sorted({str(name) for name in named if not cells.is_missing(name)})
    if len(models) > 1:
        raise DataError(f"{table.name}: answers of several models ({', '.join(models[:5])}); one file a model")
    return models[0] if models else ""


def choice_answer(choice: Fields) -> Fields:
    """A choice of a completion, of a chat or without, as an answer."""
    message, logprobs = choice.get("message") or {}, choice.get("logprobs") or {}
    # Together and llama-cpp-python have them in a column, as completions without a chat.
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


def _flat(value: Any) -> list[Any]:
    return [inner for item in value for inner in _flat(item)] if isinstance(value, list) else [value]
