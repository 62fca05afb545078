"""Files of sampled answers as answer sets: this package's own and those of other tools, for `hedge score` and `import`.

A line in this package's shape is `{"id", "baseline", "clean": [...], "noisy"?: [...], "question"?, "reference"?,
"label"?, "group"?, "question_type"?, "claims"?}`, or has `answers` in place of `clean`: where no `baseline` is beside
them, the first of them is it. An answer is a text, or an object with `text` and either `mean_logprob`, or `logprobs`,
those of its tokens, or `tokens`, a list of [text, log-probability]. Other tools' columns are in
`hedge_tasks.data.forms`.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from hedge_tasks.data import cells
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.data.choices import OptionColumns
from hedge_tasks.data.forms import LISTS, OWN, Form, columns_of, form_of, notes_of
from hedge_tasks.data.placeholders import PLACEHOLDER, extremes, without_placeholders
from hedge_tasks.data.roles import ColumnSettings
from hedge_tasks.data.tables import StoredTable, as_its_tool_writes, read_rows, read_table
from hedge_tasks.data.template_tokens import without_template_tokens
from hedge_tasks.data.thoughts import has_thought, without_thoughts
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.io import outside
from hedge_tasks.io.json_lines import Row

_FINISHES = {
    **{"stop": "stop", "eos": "stop", "length": "length", "max_tokens": "length"},
    **{"content_filter": "filtered", "filtered": "filtered"},
}
"""Why a model stopped, in the words of other tools -> in ours."""

_PARTS = ("logprobs", "finish_reason", "reasoning")
"""Keys of an answer besides those of `Answer`."""

RIGHT = ("correct", "hit")
"""Columns of labels in which true is a right answer."""

_FAILED = re.compile(
    r"\s*(?:|\[LMMS_EVAL_(?:REQUEST_FAILED|BUDGET_EXCEEDED)\b.*|Failed to obtain answer via API\.?)\s*", re.DOTALL
)
"""Texts that adapters of lmms-eval and VLMEvalKit put in the place of an answer that they did not get."""

_FIRST = "baseline: of {n} documents the first answer, for nothing says which it is"
_REQUESTS = "lost: {n} requests that failed, such as {first!r}"
_THOUGHTS = "lost: {n} thoughts, such as of {first!r}"
_LOGPROBS = "lost: {n} log-probabilities of thought and answer together, such as of {first!r}"
_TEMPLATE = "taken away: tokens of a chat template around {n} answers, such as {first!r}"
_PLACEHOLDERS = f"lost: {{n}} log-probabilities, such as of {{first!r}}: {PLACEHOLDER}"

_ROLES = frozenset({"id", "question", "reference", "label", "group", "question_type"})

Fields = Mapping[str, Any]
Cases = defaultdict[str, list[str]]
"""Of each note the ids or texts that it is about."""


@dataclass(frozen=True)
class ReadAnswers:
    """Answers of files.

    Attributes:
        form: the tool whose files they are from.
        model: as the files name it; empty where they do not.
        judge: who has labelled them; empty without labels.
        notes: what was taken for what, what was done and what was lost, a line each.
    """

    form: str
    answer_sets: tuple[AnswerSet, ...]
    model: str
    judge: str
    notes: tuple[str, ...]


def read_answers(
    files: Sequence[Path], questions: Path | None = None, columns: ColumnSettings | None = None
) -> ReadAnswers:
    """The answers in files of one tool. Several files hold answers to the same questions and are joined by id.

    Within a file an id is one question's: equal copies of its line, such as a padded rank leaves, are one.

    Args:
        questions: the requests of a batch, whose replies alone do not say what was asked.
        columns: as the user names them.

    Raises:
        ConfigError: the files are of several tools or models, or nothing says which column holds the answers.
        DataError: a file cannot be read, or has two different lines with one id; names the place.
    """
    requests, cases = _requests(questions) if questions else {}, Cases(list)
    read = [_read_file(file, columns or ColumnSettings(), requests, cases) for file in files]
    forms, models, judges = (
        [*dict.fromkeys(filter(None, (getattr(file, name) for file in read)))] for name in ("form", "model", "judge")
    )
    if len(forms) > 1 or len(models) > 1:
        raise ConfigError(f"the files are of several tools or models: {', '.join([*forms, *models])}")
    placed = [(file, answers) for file, one in zip(files, read, strict=True) for answers in one.answer_sets]
    answer_sets = without_placeholders(_joined(placed))
    if not answer_sets:
        raise DataError(f"{files[0]}: no answers in it")
    # A run with a single draw has none anywhere; a hole in a file of samples is a slip.
    holes = [outside.shown(answers.id) for answers in answer_sets if not answers.clean]
    if 0 < len(holes) < len(answer_sets):
        raise DataError(f"{files[0]}: {holes[0]} has one answer, and other documents have several; leave it out")
    notes = dict.fromkeys([*(note for file in read for note in file.notes), *_notes(answer_sets, cases)])
    return ReadAnswers(forms[0], tuple(answer_sets), "".join(models), ", ".join(judges), tuple(notes))


def _notes(answer_sets: Sequence[AnswerSet], cases: Cases) -> Iterator[str]:
    answers = [answer for of_document in answer_sets for answer in of_document.answers]
    cases[_PLACEHOLDERS] += [answer.text for answer in answers if answer.no_logprob == PLACEHOLDER]
    yield from (note.format(n=len(of_note), first=of_note[0]) for note, of_note in cases.items() if of_note)
    if without := sum(answer.mean_logprob is None for answer in answers):
        yield f"{without} of {len(answers)} answers have no log-probability"
    if len(answers) == len(answer_sets):
        yield "a single answer a document: detectors that draw have nothing to go by; give the other files as well"


def _requests(questions: Path) -> dict[str, str]:
    """The question of each request of a batch by its id: the texts of the last turn."""
    with as_its_tool_writes(questions):
        turns = {
            str(row.get("custom_id")): ((row.get("body") or {}).get("messages") or [{}])[-1]
            for _, row in read_rows(questions)
        }
        return {id: cells.content_of(turn.get("content"))[0] for id, turn in turns.items()}


def _joined(read: Iterable[tuple[Path, AnswerSet]]) -> list[AnswerSet]:
    """The answers of several files to one question as one set."""
    joined: dict[str, AnswerSet] = {}
    for file, later in read:
        first = joined.setdefault(later.id, later)
        if first is later:
            continue
        if first.question and later.question and first.question != later.question:
            raise DataError(f"{file}: the id {outside.shown(first.id)} is of another question in an earlier file")
        clean = (*first.clean, later.baseline, *later.clean)
        joined[later.id] = replace(first, clean=clean, noisy=(*first.noisy, *later.noisy), cluster_ids=None)
    return [*joined.values()]


def _read_file(file: Path, chosen: ColumnSettings, requests: Mapping[str, str], cases: Cases) -> ReadAnswers:
    with as_its_tool_writes(file):
        table = read_table(file)
        form = form_of(table, chosen)
        columns, rows = columns_of(table, form, chosen), list(table.rows(None))
        once: dict[str, Row] = {}
        for number, (where, row) in enumerate(rows):
            if row.get("filter") != rows[0][1].get("filter"):
                continue
            line = _roles(row, columns, str(number), where)
            line |= (
                _own(row) if form is OWN else _replies(row, columns, form, table, where, cases[_REQUESTS], line["id"])
            )
            if question := requests.get(line["id"]):
                line["question"] = question
            if form is not OWN and not line["answers"] and "baseline" not in line:
                continue
            first, earlier = once.setdefault(line["id"], (where, line))
            if earlier != line:
                raise DataError(
                    f"{where}: another row has the id {outside.shown(line['id'])} and differs: {first}. All answers to "
                    "a question stand in its row, in a list or a column each"
                )
        answer_sets = tuple(_answer_set(line, where, cases) for where, line in once.values())
        labelled = any("label" in line for _, line in once.values())
        judge = f"{form.name}: {columns.label}" if form.reply else "given"
        notes = tuple(notes_of(table, form, columns))
        return ReadAnswers(form.name, answer_sets, _model(table.name, rows), judge if labelled else "", notes)


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
    return "".join(models)


# --- one row ----------------------------------------------------------------------------------------------------------


def _roles(row: Fields, columns: ColumnSettings, number: str, where: str) -> dict[str, Any]:
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
    letters = tuple(takewhile(row.__contains__, ascii_uppercase))
    # an open question among others has none
    if fields.get("question") and len(letters) > 1 and not cells.is_empty(row["A"]):
        options = OptionColumns(letters)
        fields["question"] = options.with_options(fields["question"], options.options_of(row))
    return {name: value for name, value in fields.items() if value not in (None, "")}


def _own(row: Fields) -> dict[str, Any]:
    """The keys of a line of this package's own besides roles; in CSV files lists are texts."""
    lists = {key: cells.as_list(row[key]) or row[key] for key in LISTS if isinstance(row.get(key), str)}
    return {**{key: value for key, value in row.items() if key not in _ROLES}, **lists}


def _replies(
    row: Fields, columns: ColumnSettings, form: Form, table: StoredTable, where: str, failed: list[str], id: str
) -> dict[str, Any]:
    """The answers of a row; of several columns the first holds the baseline. `failed` gets the id for each lost one."""
    logprobs_of, whole = dict(zip(form.reply, form.logprobs, strict=False)), list[list[Fields]]()
    for column in columns.reply:
        cell = _in_cell(row.get(column), row.get(logprobs_of.get(column, "")), table.in_words, where)
        whole.append([a for a in cell if a and not (form.fails and _FAILED.fullmatch(str(a["text"])))])
        failed += [id] * ((len(cell) or 1) - len(whole[-1]))
    answers = [answer for of_column in whole for answer in of_column]
    if len(whole) == 1:
        return {"answers": answers}
    return {"baseline": answers[0], "answers": answers[1:]} if whole[0] else {"answers": []}


def _in_cell(cell: Any, logprobs: Any, in_words: bool, where: str) -> list[dict[str, Any]]:
    """The answers in a cell: one, a list, repeats in lists, or the choices of a completion; empty for a failed one."""
    if isinstance(cell, Mapping) and "body" in cell:
        cell = list((cell["body"] or {}).get("choices") or ())
    several = None if isinstance(cell, str) and not in_words else cells.as_list([] if cell is None else cell)
    answers = [_reply(item, where) for item in ([cell] if several is None else _flat(several))]
    tokens = cells.as_list(logprobs) or []
    for answer, known in zip(answers, [tokens] if several is None else tokens, strict=False):
        answer.update({"logprobs": known} if known and answer else {})
    return answers


def _flat(value: Any) -> list[Any]:
    return [inner for item in value for inner in _flat(item)] if isinstance(value, list) else [value]


def _reply(item: Any, where: str) -> dict[str, Any]:
    """A text, or a choice of a completion, of a chat or without, as an answer."""
    if not isinstance(item, Mapping):
        if isinstance(item, str) and item.lstrip().startswith('{"id"'):
            raise DataError(f"{where}: a sample of a task of this package; its run file holds more (hedge_runs/)")
        return {} if item is None else {"text": cells.text(item, where)}
    message, logprobs = item.get("message") or {}, item.get("logprobs")
    if "text" in item and not isinstance(logprobs, Mapping):
        return dict(item)
    logprobs = logprobs or {}
    text, reasoning = cells.content_of(message.get("content") or item.get("text"))
    return {
        "text": text,
        # Completions without a chat have them in a column.
        "logprobs": logprobs.get("content") or logprobs.get("token_logprobs") or None,
        "finish_reason": item.get("finish_reason") or item.get("stop_reason"),
        "reasoning": message.get("reasoning_content") or message.get("reasoning") or reasoning,
    }


# --- one line in this package's shape ---------------------------------------------------------------------------------


def read_answer_set(fields: Fields, where: str) -> AnswerSet:
    """An answer set in the shape of a line of this module; thoughts are taken away.

    Raises:
        DataError: names the place and the field.
    """
    return _answer_set(fields, where, Cases(list))


def _answer_set(line: Fields, where: str, cases: Cases) -> AnswerSet:
    return AnswerSet.read(_normal(line, where, cases), where)


def _normal(line: Fields, where: str, cases: Cases) -> Fields:
    """The fields that `AnswerSet.read` reads, with answers as `_answer` makes them."""
    normal, id = dict(line), str(line.get("id"))
    if line.get("baseline") is not None:
        normal["baseline"] = _answer(line["baseline"], f"{where}: baseline", cases, id)
    for name in LISTS:
        if isinstance(line.get(name), list):
            normal[name] = [_answer(value, f"{where}: {name}[{i}]", cases, id) for i, value in enumerate(line[name])]
    if "answers" in line:
        answers = normal.pop("answers")
        if line.get("clean"):
            raise DataError(f"{where}: answers says what clean does; give one of them")
        if not isinstance(answers, list) or not (answers or "baseline" in normal):
            raise DataError(f"{where}: answers: expected a list of at least one answer, got {outside.shown(answers)}")
        if not normal.get("baseline"):
            cases[_FIRST].append(id)
            normal["baseline"], *answers = answers
        normal["clean"] = answers
    return normal


def _answer(value: Any, where: str, cases: Cases, id: str) -> Any:
    """An answer with `mean_logprob` and `n_tokens`; what is no answer at all is left to `Answer.read`."""
    value = _bare(value if isinstance(value, Mapping) else {"text": value}, cases, id)
    fields = {key: item for key, item in value.items() if key not in _PARTS}
    if finish := value.get("finish_reason"):
        fields["finish"] = _FINISHES.get(str(finish))
    known = [name for name in ("mean_logprob", "n_tokens") if fields.get(name) is not None]
    if value.get("logprobs") is not None:
        if known:
            raise DataError(f"{where}: logprobs say what mean_logprob and n_tokens do; give one of them")
        return {**fields, **_means(value["logprobs"], f"{where}.logprobs")}
    if isinstance(value.get("tokens"), list) and "mean_logprob" not in known:
        return {**fields, **_means(value["tokens"], f"{where}.tokens")}
    return fields


def _bare(fields: Fields, cases: Cases, id: str) -> Fields:
    """An answer without its thought and tokens of chat templates; log-probabilities of thought and answer together are
    of neither.
    """
    if not isinstance(text := fields.get("text"), str):
        return fields
    if fields.get("reasoning") or has_thought(text):
        cases[_THOUGHTS].append(id)
        if fields.get("logprobs") or fields.get("mean_logprob"):
            cases[_LOGPROBS].append(id)
        after_thought, is_open = without_thoughts(text)
        text = "" if is_open else after_thought.strip()
        fields = {key: fields[key] for key in ("finish", "finish_reason") if key in fields}
    if (bare := without_template_tokens(text)) != text:
        cases[_TEMPLATE].append(text[:80])
    return {**fields, "text": bare}


def _means(tokens: object, where: str) -> Fields:
    """Numbers of an answer from the log-probabilities of its tokens: plain ones, in objects, or last in pairs."""
    if not isinstance(tokens, list) or not tokens:
        raise DataError(f"{where}: expected a list of numbers, got {outside.shown(tokens)}")
    plain = [token.get("logprob") if isinstance(token, Mapping) else token for token in tokens]
    last = [token[-1] if isinstance(token, list) and token else token for token in plain]
    numbers = [outside.log_probability(token, f"{where}[{i}]") for i, token in enumerate(last)]
    return {"mean_logprob": math.fsum(numbers) / len(numbers), "n_tokens": len(numbers), **extremes(numbers)}
