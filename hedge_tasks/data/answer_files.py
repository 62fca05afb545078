"""Files of sampled answers as answer sets: this package's own and those of other tools, for `hedge score` and `import`.

A line in this package's shape is `{"id", "baseline", "clean": [...], "noisy"?: [...], "question"?, "reference"?,
"label"?, "group"?, "question_type"?, "claims"?}`, or has `answers` in place of `clean`: where no `baseline` is beside
them, the first of them is it. An answer is a text, or an object with `text` and either `mean_logprob`, or `logprobs`,
those of its tokens, or `tokens`, a list of [text, log-probability]. Other tools' columns are in
`hedge_tasks.data.forms`.
"""

from __future__ import annotations

import filecmp
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations, islice, takewhile, zip_longest
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from loguru import logger

from hedge_tasks.data import cells, choices
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.data.forms import LISTS, OWN, columns_of, form_of, notes_of
from hedge_tasks.data.placeholders import PLACEHOLDER, extremes, known_by
from hedge_tasks.data.roles import ColumnSettings
from hedge_tasks.data.tables import is_large, read_rows, read_table, readable
from hedge_tasks.data.template_tokens import without_template_tokens
from hedge_tasks.data.thoughts import has_thought, without_thoughts
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.io import outside

_FINISHES = {
    **{"stop": "stop", "eos": "stop", "length": "length", "max_tokens": "length"},
    **{"content_filter": "filtered", "filtered": "filtered"},
}
"""Why a model stopped, in the words of other tools -> in ours."""

_FAILED = re.compile(
    r"\s*(?:|\[LMMS_EVAL_(?:REQUEST_FAILED|BUDGET_EXCEEDED)\b.*|Failed to obtain answer via API\.?)\s*", re.DOTALL
)
"""Texts that adapters of lmms-eval and VLMEvalKit put in the place of an answer that they did not get."""

_FIRST = "baseline: of {n} documents the first answer, for nothing says which it is"
_REQUESTS = "lost: {n} empty cells or requests that failed, such as {first!r}"
_COPIES = "left out: {n} copies of other rows, such as of {first!r}"
_REPEATS = "{n} rows repeat question and answers ({first!r}): if copies, intervals, promises are too narrow (--group)"
_THOUGHTS = "lost: {n} thoughts, and log-probabilities of thought and answer together, such as of {first!r}"
_TEMPLATE = "taken away: tokens of a chat template around {n} answers, such as {first!r}"
_PLACEHOLDERS = f"lost: {{n}} log-probabilities, such as of {{first!r}}: {PLACEHOLDER}"

_LABELS = "lost: {n} labels of later files, such as of {first!r}: a label is of a baseline, and theirs became draws"
_NOT_ASKED = "--questions: no request of {n} documents is in it, such as of {first!r}"

_WITHOUT = "{n} of {total} answers have no log-probability"
_SINGLE = "a single answer a document: detectors that draw have nothing to go by; give the other files as well"

_HOLE = "left out: {n} documents of one answer, where others have several, such as {first!r}"

_READ = {*AnswerSet.__dataclass_fields__, *LISTS} - {"id", "question", "reference", "label", "group", "question_type"}
"""Keys of this package's lines that are no column of `_roles`."""

Fields = Mapping[str, Any]


@dataclass
class Notes:
    """Notes of files, each with how many cases it is about and the first one's id or text; models, and who labels."""

    models: set[str] = field(default_factory=set)
    judges: dict[str, None] = field(default_factory=dict)
    cases: dict[str, tuple[int, str]] = field(default_factory=dict)
    n_answers: int = 0
    has_draws: bool = False

    def add(self, note: str, first: str, n: int = 1) -> None:
        before, first = self.cases.get(note, (0, first))
        self.cases[note] = before + n, first


@dataclass(frozen=True)
class ReadAnswers:
    """Answers of files.

    Attributes:
        form: the tool whose files they are from.
        answer_sets: a tuple of `AnswerSet`, or what was made of them.
        model: as the files name it; empty where they do not.
        judge: who has labelled them; empty without labels.
        notes: what was taken for what, what was done and what was lost, a line each.
    """

    form: str
    answer_sets: Any
    model: str
    judge: str
    notes: tuple[str, ...]


def read_answers(
    files: Sequence[Path],
    questions: Path | None = None,
    columns: ColumnSettings | None = None,
    use: Callable[[Iterator[AnswerSet]], Any] = tuple,
) -> ReadAnswers:
    """The answers in files of one tool, or what is made of them. Those of a large file are read twice; none is held.

    Several files hold answers to the same questions and are joined by id; a label is the first file's, whose baseline
    stays one. Within a file an id is one question's: equal copies of its line, such as a padded rank leaves, are one.

    Args:
        questions: the requests of a batch, whose replies alone do not say what was asked.
        columns: as the user names them.
        use: makes something of the answers; by default they are returned.

    Raises:
        ConfigError: the files are of several tools, or nothing says which column holds the answers.
        DataError: a file cannot be read, is a copy of another one, has two different lines with one id, or answers of
            several models; names the place.
    """
    record, requests = Notes(), _requests(questions) if questions else {}
    read = [_AnswerFile(file, columns or ColumnSettings(), requests, record) for file in files]
    if len(forms := dict.fromkeys(source.form.name for source in read)) > 1:
        raise ConfigError(f"the files are of several tools: {', '.join(forms)}")
    _check_copies(files)
    answer_sets: Iterable[AnswerSet] = read[0]
    if len(files) > 1 or not is_large(files[0]):
        answer_sets = _joined(((source.file, answers) for source in read for answers in source), record)
    of_files = dict(record.cases)
    known = known_by(_checked(answer_sets, files[0], record))
    record.cases = of_files
    result = use(_checked(map(known, answer_sets), files[0], record))
    cases = {note: note.format(n=n, first=first, total=record.n_answers) for note, (n, first) in record.cases.items()}
    for note in (_COPIES, _HOLE, _REPEATS):  # as a warning: whoever reads a file as a run drops the notes
        if note in cases:
            logger.warning("{}: {}", files[0], cases.pop(note))
    notes = dict.fromkeys([*(note for source in read for note in source.notes), *cases.values()])
    return ReadAnswers(read[0].form.name, result, "".join(record.models), ", ".join(record.judges), tuple(notes))


def _check_copies(files: Sequence[Path]) -> None:
    for file, copy in combinations(files, 2):
        if file == copy or (copy.is_file() and filecmp.cmp(file, copy, shallow=False)):
            raise DataError(f"{copy}: a copy of {file}, whose answers would count twice; leave it out")


def _checked(answer_sets: Iterable[AnswerSet], file: Path, record: Notes) -> Iterator[AnswerSet]:
    n = record.n_answers = 0
    seen = set[int]()
    for answers in answer_sets:
        # A run with a single draw has none anywhere; a hole in a file of samples, as the first pass tells, is a slip.
        if record.has_draws and not answers.clean:
            record.add(_HOLE, answers.id)
            continue
        record.has_draws |= bool(answers.clean)
        n += 1
        record.n_answers += len(answers.answers)
        digest = hash((answers.question, answers.reference, answers.label, answers.answers))
        if answers.question and answers.group is None and digest in seen:
            record.add(_REPEATS, answers.id)
        seen.add(digest)
        for answer in answers.answers:
            if answer.no_logprob == PLACEHOLDER:
                record.add(_PLACEHOLDERS, answer.text)
            if answer.mean_logprob is None:
                record.add(_WITHOUT, "")
        yield answers
    if not n:
        raise DataError(f"{file}: no answers in it")
    if record.n_answers == n:
        record.add(_SINGLE, "")


def _requests(questions: Path) -> dict[str, str]:
    """The question of each request of a batch by its id: the texts of the last turn."""
    with readable(questions):
        turns = {
            str(row.get("custom_id")): ((row.get("body") or {}).get("messages") or [{}])[-1]
            for _, row in read_rows(questions)
        }
        return {id: cells.content_of(turn.get("content"))[0] for id, turn in turns.items()}


def _joined(read: Iterable[tuple[Path, AnswerSet]], record: Notes) -> list[AnswerSet]:
    """The answers of several files to one question as one set."""
    joined: dict[str, AnswerSet] = {}
    for file, later in read:
        first = joined.setdefault(later.id, later)
        if first is later:
            continue
        for name in ("question", "reference"):
            ours, theirs = getattr(first, name), getattr(later, name)
            if ours and theirs and ours != theirs:
                raise DataError(f"{file}: the id {outside.shown(first.id)} is of another {name} in an earlier file")
        if later.label is not None:
            record.add(_LABELS, first.id)
        clean = (*first.clean, later.baseline, *later.clean)
        joined[later.id] = replace(first, clean=clean, noisy=(*first.noisy, *later.noisy), cluster_ids=None)
    return [*joined.values()]


class _AnswerFile:
    """The answers in a file, which is read on every pass."""

    def __init__(self, file: Path, chosen: ColumnSettings, requests: Mapping[str, str], record: Notes) -> None:
        self.file, self.requests, self.record = file, requests, record
        with readable(file):
            self.table = read_table(file)
            self.form = form_of(self.table, chosen)
            self.columns = columns_of(self.table, self.form, chosen)
            self.notes = notes_of(self.table, self.form, self.columns)

    def __iter__(self) -> Iterator[AnswerSet]:
        judge = f"{self.form.name}: {self.columns.label}" if self.form.reply else "given"
        once: dict[str, tuple[int, int]] = {}
        with readable(self.file):
            for number, (where, line) in enumerate(self._lines()):
                digest = hash(json.dumps(line, sort_keys=True, default=repr))  # of a million lines no more is held
                first, same = once.setdefault(line["id"], (number, digest))
                if same != digest:
                    place, _ = next(islice(self._lines(), first, None))
                    raise DataError(
                        f"{where}: another row has the id {outside.shown(line['id'])} and differs: {place}. All "
                        "answers to a question stand in its row, in a list or a column each"
                    )
                if first == number:
                    self.record.judges |= {judge: None} if "label" in line else {}
                    yield _answer_set(line, where, self.record)
                else:
                    self.record.add(_COPIES, line["id"])
        if len(self.record.models) > 1:
            models = ", ".join(sorted(self.record.models)[:5])
            raise DataError(f"{self.file}: answers of several models ({models}); one model at a time")

    def _lines(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The rows in the shape of a line of this module, but for those whose requests all failed."""
        filters = list[Any]()
        for number, (where, row) in enumerate(self.table.rows(None)):
            self.record.models |= _models_of(row)
            filters = filters or [row.get("filter")]
            if row.get("filter") not in filters:
                continue
            line = _roles(row, self.columns, str(number), where)
            if self.form is OWN:
                yield where, {key: value for key, value in row.items() if key in _READ} | line
            elif replies := self._replies(row, where, line["id"]):
                if self.requests and line["id"] not in self.requests:
                    self.record.add(_NOT_ASKED, line["id"])
                question = self.requests.get(line["id"]) or line.get("question")
                yield where, {**line, "question": question, **replies}

    def _replies(self, row: Fields, where: str, id: str) -> dict[str, Any]:
        """The answers of a row, of several columns the first has the baseline; nothing where that is lost."""
        whole = list[list[Fields]]()
        for column, logprobs in zip_longest(self.columns.reply, self.form.logprobs[: len(self.columns.reply)]):
            cell = _in_cell(row.get(column), row.get(logprobs), self.table.in_words, f"{where}: {column}")
            whole.append([a for a in cell if a and not (self.form.fails and _FAILED.fullmatch(str(a["text"])))])
            if n_failed := (len(cell) or 1) - len(whole[-1]):
                self.record.add(_REQUESTS, id, n_failed)
        first, *others = whole
        if not others:
            return {"answers": first} if first else {}
        return {"baseline": first[0], "answers": [*first[1:], *chain(*others)]} if first else {}


def _models_of(row: Fields) -> set[str]:
    """The model that a row, or the reply of a batch in it, names."""
    response = row.get("response")
    both = (row, response.get("body") if isinstance(response, Mapping) else None)
    named = [fields.get("model") for fields in both if isinstance(fields, Mapping)]
    return {str(model) for model in named if not cells.is_missing(model)}


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
        right = cells.says_right(columns.label) or (None if columns.label == "label" else False)
        fields["label"] = cells.label(row.get(columns.label), f"{where}: {columns.label}", right=right)
    letters = tuple(takewhile(row.__contains__, ascii_uppercase))
    # an open question among others has none
    if fields.get("question") and len(letters) > 1 and not cells.is_empty(row["A"]):
        fields["question"] = choices.with_options(fields["question"], choices.options_of(row, letters))
    return {name: value for name, value in fields.items() if value not in (None, "")}


def _in_cell(cell: Any, logprobs: Any, in_words: bool, where: str) -> list[dict[str, Any]]:
    """The answers in a cell: one, a list, repeats in lists, or the choices of a completion; empty for a failed one."""
    if isinstance(cell, Mapping) and "body" in cell:
        cell = sorted((cell["body"] or {}).get("choices") or (), key=lambda choice: choice.get("index", 0))
    several = None if isinstance(cell, str) and not in_words else cells.as_list([] if cell is None else cell, where)
    answers = [_reply(item, where) for item in ([cell] if several is None else _flat(several, where))]
    tokens = cells.as_list(logprobs) or []
    for answer, known in zip(answers, [tokens] if several is None else tokens, strict=False):
        answer.update({"logprobs": known} if known and answer else {})
    return answers


def _flat(value: Any, where: str) -> list[Any]:
    if isinstance(value, list) and [*map(type, value)] == [float, bool]:
        raise DataError(f"{where}: {value} is the log-likelihood of an option that was offered, and no sampled answer")
    return [inner for item in value for inner in _flat(item, where)] if isinstance(value, list) else [value]


def _reply(item: Any, where: str) -> dict[str, Any]:
    """A text, or a choice of a completion, of a chat or without, as an answer."""
    if not isinstance(item, Mapping):
        if isinstance(item, str) and item.lstrip().startswith('{"id"'):
            raise DataError(f"{where}: a sample of a task of this package; its run file holds more (hedge_runs/)")
        return {} if item is None else {"text": cells.text(item, where)}
    logprobs = item.get("logprobs")
    if "text" in item and not isinstance(logprobs, Mapping):
        return dict(item)
    message, logprobs = item if "text" in item else item["message"] or {}, logprobs or {}
    text, reasoning = cells.content_of(message.get("content") or message.get("refusal") or item.get("text"))
    return {
        "text": text,
        "logprobs": next((logprobs[k] for k in ("content", "refusal", "token_logprobs") if logprobs.get(k)), None),
        "finish_reason": item.get("finish_reason") or item.get("stop_reason"),
        "reasoning": next(filter(None, map(message.get, ("reasoning_content", "reasoning"))), reasoning),
    }


# --- one line in this package's shape ---------------------------------------------------------------------------------


def read_answer_set(fields: Fields, where: str) -> AnswerSet:
    """An answer set in the shape of a line of this module; thoughts are taken away.

    Raises:
        DataError: names the place and the field.
    """
    return _answer_set(fields, where, Notes())


def _answer_set(line: Fields, where: str, record: Notes) -> AnswerSet:
    """The answer set of a line, with answers as `_answer` makes them; in CSV files lists are texts."""
    fields, id = dict(line), str(line.get("id"))
    if fields.get("baseline") is not None:
        fields["baseline"] = _answer(fields["baseline"], f"{where}: baseline", record, id)
    for name in LISTS:
        if (items := cells.as_list(fields.get(name), f"{where}: {name}")) is not None:
            fields[name] = [_answer(item, f"{where}: {name}[{i}]", record, id) for i, item in enumerate(items)]
    if "answers" in fields:
        answers = fields.pop("answers")
        if fields.get("clean"):
            raise DataError(f"{where}: answers says what clean does; give one of them")
        if not isinstance(answers, list) or not (answers or fields.get("baseline")):
            raise DataError(f"{where}: answers: expected a list of at least one answer, got {outside.shown(answers)}")
        if not fields.get("baseline"):
            record.add(_FIRST, id)
            fields["baseline"], *answers = answers
        fields["clean"] = answers
    return AnswerSet.read(fields, where)


def _answer(value: Any, where: str, record: Notes, id: str) -> Any:
    """The fields of `Answer`; what is no answer at all is left to `Answer.read`."""
    fields = _bare(value if isinstance(value, Mapping) else {"text": value}, record, id)
    tokens, finish = fields.pop("logprobs", None), fields.pop("finish_reason", None)
    if finish:
        fields["finish"] = _FINISHES.get(str(finish))
    known = [name for name in ("mean_logprob", "n_tokens") if fields.get(name) is not None]
    if tokens is not None and known:
        raise DataError(f"{where}: logprobs say what mean_logprob and n_tokens do; give one of them")
    if tokens is None and "mean_logprob" not in known and isinstance(fields.get("tokens"), list):
        tokens = fields["tokens"]
    return fields if tokens is None else fields | _means(tokens, f"{where}.logprobs")


def _bare(value: Fields, record: Notes, id: str) -> dict[str, Any]:
    """An answer without its thought and tokens of chat templates; log-probabilities of thought and answer together are
    of neither.
    """
    fields = {key: item for key, item in value.items() if key != "reasoning"}
    if not isinstance(text := fields.get("text"), str):
        return fields
    if value.get("reasoning") or has_thought(text):
        record.add(_THOUGHTS, id)
        text = without_thoughts(text)[0].strip()
        fields = {key: fields[key] for key in ("finish", "finish_reason") if key in fields}
    if (bare := without_template_tokens(text)) != text:
        record.add(_TEMPLATE, text[:80])
    return {**fields, "text": bare}


def _means(tokens: object, where: str) -> dict[str, Any]:
    """Numbers of an answer from the log-probabilities of its tokens: plain ones, in objects, or last in pairs."""
    if not isinstance(tokens, list) or not tokens:
        raise DataError(f"{where}: expected a list of numbers, got {outside.shown(tokens)}")
    plain = [token.get("logprob") if isinstance(token, dict) else token for token in tokens]
    last = [token[-1] if isinstance(token, list) and token else token for token in plain]
    numbers = [outside.log_probability(token, f"{where}[{i}]") for i, token in enumerate(last)]
    return {"mean_logprob": math.fsum(numbers) / len(numbers), "n_tokens": len(numbers), **extremes(numbers)}
