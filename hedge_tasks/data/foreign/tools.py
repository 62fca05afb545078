"""Columns of the tables that tools write answers to, as the fields of `hedge_tasks.data.answer_files`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import takewhile, zip_longest
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from hedge_tasks.data import cells
from hedge_tasks.data.choices import OptionColumns
from hedge_tasks.data.roles import ColumnSettings, check_columns, not_told, obvious
from hedge_tasks.data.tables import StoredTable, read_rows
from hedge_tasks.data.turns import with_turns
from hedge_tasks.errors import DataError, unknown
from hedge_tasks.io.json_lines import Row
from hedge_tasks.io.outside import shown

OWN, NAMED, ROWS = "answer sets", "columns of replies", "an answer a row"

FINISHES = {
    **{"stop": "stop", "eos": "stop", "length": "length", "max_tokens": "length"},
    **{"content_filter": "filtered", "filtered": "filtered"},
}
"""Why a model stopped, in the words of other tools -> in ours."""

_FAILED = re.compile(
    r"\s*(?:|\[LMMS_EVAL_(?:REQUEST_FAILED|BUDGET_EXCEEDED)\b.*|Failed to obtain answer via API\.?)\s*", re.DOTALL
)
"""Texts that adapters of lmms-eval and VLMEvalKit put in the place of an answer that they did not get."""

_GENERATIONS = ("generations", "samples", "responses", "completions")
_CONDITIONS = ("baseline", "clean", "noisy")

Fields = Mapping[str, Any]


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


@dataclass
class _Reading:
    """A file as it is read.

    Attributes:
        used: columns that were read.
        failed: ids of requests that have no answer.
        requests: id -> what was asked, where another file says it.
    """

    table: StoredTable
    rows: Sequence[Row]
    columns: ColumnSettings
    requests: Mapping[str, str] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    failed: list[str] = field(default_factory=list)
    models: set[str] = field(default_factory=set)
    judge: str = ""

    def column(self, role: str) -> str | None:
        """The column of a role: the user's, else the first obvious one; marked as used."""
        chosen: str | None = getattr(self.columns, role, None)
        name = chosen or next(iter(obvious(self.table, role, list(self.columns.reply))), None)
        self.used |= {name} if name else set()
        return None if name == "none" else name

    def document(self, row: Fields, number: int, where: str) -> dict[str, Any]:
        """The fields of a document besides its answers, by roles."""
        id, question = (self.column(role) for role in ("id", "question"))
        references = self.columns.answers or [c for c in [self.column("answer")] if c]
        self.used |= {*references}
        fields: dict[str, Any] = {
            "id": str(number) if id is None else cells.required(row.get(id), f"{where}: {id}"),
            "question": cells.text(row.get(question)) if question else None,
            "reference": "\n".join(reference_text(row.get(column)) for column in references),
            "label": self.label(row, where),
        }
        for role in ("group", "question_type"):
            column = self.columns.group if role == "group" and self.columns.group else role
            self.used |= {column}
            fields[role] = None if cells.is_missing(row.get(column)) else cells.text(row.get(column))
        return {name: value for name, value in fields.items() if value not in (None, "")}

    def label(self, row: Fields, where: str) -> int | None:
        """1 for a hallucinated baseline answer; of a column `correct` the contrary."""
        if (column := self.column("label")) is None:
            return None
        value, flips = row.get(column), cells.plain_name(column) == "correct"
        if cells.plain_name(column) != "label" and str(value).strip().lower() in ("true", "false"):
            value = int(str(value).strip().lower() == "true")
        label = cells.label(value, f"{where}: {column}")
        self.judge = "given" if label is not None else self.judge
        return label if label is None or not flips else 1 - label

    def answered(self, id: str, answers: Sequence[Any]) -> list[Any]:
        """Those that are answers; the id joins `failed` once for every other one."""
        texts = [answer["text"] if isinstance(answer, Mapping) else answer for answer in answers]
        whole = [a for a, text in zip(answers, texts, strict=True) if text and not _FAILED.fullmatch(str(text))]
        self.failed += [id] * (len(answers) - len(whole))
        return whole


def read_table_of_answers(file: Path, questions: Path | None, columns: ColumnSettings) -> ForeignFile:
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
    table, rows, notes = _opened(file, rows)
    check_columns(table, columns)
    reading = _Reading(table, rows, columns, _requests(questions))
    form, read = _form_of(reading)
    documents = [(where, fields) for where, fields in read(reading) if fields is not None]
    models = reading.models | {str(row.get("model")) for _, row in rows if row.get("model")}
    if len(models) > 1:
        raise DataError(f"{file}: answers of several models ({', '.join(sorted(models)[:5])}); one file a model")
    unused = [c for c in table.columns if c not in reading.used | {"model"}]
    told = reading.columns.answers or obvious(table, "answer")
    notes += [f"right answers come from column {column!r}" for column in told if column in reading.used]
    notes += [f"not used: {', '.join(map(repr, unused))}"] if unused else []
    if reading.failed:
        notes.append(f"lost: {len(reading.failed)} requests that failed, such as {reading.failed[0]!r}")
    return ForeignFile(form, documents, next(iter(models), ""), reading.judge, tuple(notes))


def _opened(file: Path, rows: Sequence[Row]) -> tuple[StoredTable, list[Row], list[str]]:
    """The table of rows with conversations opened, and its rows with their places."""
    names = tuple(name for name in dict.fromkeys(name for _, row in rows for name in row) if name)

    def read(selected: Sequence[str] | None = None) -> Iterator[Fields]:
        return ({name: row.get(name) for name in selected} if selected else row for _, row in rows)

    columns, opened, notes = with_turns(names, lambda selected: (dict.fromkeys(names) | dict(r) for r in read()))
    if columns == names:
        opened = read
    places = [where for where, _ in rows]
    table = StoredTable(str(file), "", columns, len(rows), file.parent, opened)
    return table, list(zip(places, opened(None), strict=True)), notes


def _form_of(reading: _Reading) -> tuple[str, Callable[[_Reading], Iterator[tuple[str, Fields | None]]]]:
    """The tool that writes such columns, and the map of them."""
    columns = set(reading.table.columns)
    if reading.columns.reply:
        return NAMED, _named
    replies = obvious(reading.table, "reply")
    for name, needed, read in _FORMS:
        # beside a reply, answers are references
        if all(columns & set(any_of) for any_of in needed) and not (read is _own and replies):
            return name, read
    if len(replies) == 1:
        reading.columns = replace(reading.columns, reply=tuple(replies))
        return NAMED, _named
    raise not_told(reading.table, ["reply"])


def _own(reading: _Reading) -> Iterator[tuple[str, Fields]]:
    """This package's lines, and plain lists of answers."""
    from_names = (*_CONDITIONS, "answers", "claims", "cluster_ids", "held_out", "follow_ups", "forced", "drawn")
    stored = ("verdict", "scores", "sampled", "store", "crc32")
    reading.used |= {*from_names, *stored, "id", "question", "reference", "group", "question_type"}
    for where, row in reading.rows:
        label = reading.label(row, where)
        lists = {
            key: cells.as_list(row[key]) or row[key]
            for key in ("answers", "clean", "noisy")
            if isinstance(row.get(key), str)
        }
        yield where, {**row, **lists, **({"label": label} if label is not None or "label" in row else {})}


def _answer_rows(reading: _Reading) -> Iterator[tuple[str, Fields]]:
    """One answer a row: rows of one id belong together, and what is the document's stands in one of them at least."""
    id_column = reading.column("id")
    reading.used |= {"text", "condition", "mean_logprob", "n_tokens"}
    by_id: dict[str, list[Row]] = {}
    for where, row in reading.rows:
        if id_column is None or not (id := cells.text(row.get(id_column), f"{where}: id")):
            raise DataError(f"{where}: there is no id")
        by_id.setdefault(id, []).append((where, row))
    for id, rows in by_id.items():
        fields: dict[str, Any] = {}
        answers: dict[str, list[Any]] = {name: [] for name in (*_CONDITIONS, "")}
        for where, row in rows:
            for name, value in reading.document(row, 0, where).items():
                if fields.setdefault(name, value) != value:
                    raise DataError(f"{where}: another {name} than in an earlier row of the id {id!r}")
            condition = cells.text(row.get("condition")).lower()
            if condition not in answers or (not condition and "condition" in row):
                raise DataError(f"{where}: {unknown('condition', condition, _CONDITIONS)}")
            answers[condition].append(_cell_answer(row, where))
        if answers[""]:
            yield rows[0][0], {**fields, "answers": answers[""]}
        elif len(answers["baseline"]) == 1:
            yield rows[0][0], {**fields, **answers, "baseline": answers["baseline"][0]}
        else:
            n = len(answers["baseline"])
            raise DataError(f"{rows[0][0]}: the id {id!r} has {n} baseline answers, expected one")


def _cell_answer(row: Fields, where: str) -> Fields:
    cell = row.get("text")
    text = cell if isinstance(cell, str) else cells.text(cell, f"{where}: text")
    if not text or not text.strip():
        raise DataError(f"{where}: text: the cell is empty, which is no answer (JSON lines can hold an empty one)")
    mean = cells.number(row.get("mean_logprob"), f"{where}: mean_logprob")
    return {
        "text": text,
        "mean_logprob": mean,
        "n_tokens": cells.whole_number(row.get("n_tokens"), f"{where}: n_tokens"),
    }


def _named(reading: _Reading) -> Iterator[tuple[str, Fields | None]]:
    """Columns of replies that the user names, or the only one with an obvious name."""
    reading.used |= {*reading.columns.reply}
    for number, (where, row) in enumerate(reading.rows):
        fields = reading.document(row, number, where)
        answers = [item for c in reading.columns.reply for item in cells.as_list(row.get(c)) or [row.get(c)]]
        answers = [answer if isinstance(answer, Mapping) else cells.text(answer, where) for answer in answers]
        whole = reading.answered(fields["id"], answers)
        yield where, {**fields, "answers": whole} if whole else None


def _generations(reading: _Reading) -> Iterator[tuple[str, Fields]]:
    """Plain generations: a list of draws, and perhaps the greedy answer beside it."""
    draws = next(name for name in _GENERATIONS if name in reading.table.columns)
    names = ("baseline", "greedy", "most_likely_generation", "greedy_text", "response")
    greedy = next((name for name in names if name in reading.table.columns), None)
    reading.used |= {draws, *([greedy] if greedy else [])}
    for number, (where, row) in enumerate(reading.rows):
        baseline = {"baseline": row.get(greedy)} if greedy and row.get(greedy) is not None else {}
        yield where, {**reading.document(row, number, where), **baseline, "answers": _list(row.get(draws), where)}


def _uqlm(reading: _Reading) -> Iterator[tuple[str, Fields]]:
    """Data frames of uqlm: prompt, response, sampled_responses, and the log-probabilities of both."""
    reading.used |= {"prompt", "response", "sampled_responses", "logprob", "multiple_logprob"}
    for number, (where, row) in enumerate(reading.rows):
        sampled = _list(row.get("sampled_responses"), where)
        logprobs = cells.as_list(row.get("multiple_logprob")) or []
        answers = [{"text": t, "logprobs": p or None} for t, p in zip_longest(sampled, logprobs[: len(sampled)])]
        baseline = {"text": row.get("response"), "logprobs": cells.as_list(row.get("logprob")) or None}
        yield where, {**reading.document(row, number, where), "baseline": baseline, "answers": answers}


def _lmms_eval(reading: _Reading) -> Iterator[tuple[str, Fields | None]]:
    """Samples of lmms-eval (`--log_samples`); repeats are draws. Of several filters the first one's rows are read."""
    reading.used |= {"doc_id", "input", "target", "resps", "filtered_resps", "filter", "doc_hash"}
    first = reading.rows[0][1].get("filter")
    for where, row in reading.rows:
        answers = _flat(row.get("resps") if row.get("resps") is not None else row.get("filtered_resps"))
        if any(str(answer).lstrip().startswith('{"id"') for answer in answers):
            raise DataError(f"{where}: a sample of a task of this package; its run file holds more (hedge_runs/)")
        id, question = str(row.get("doc_id")), row.get("input") if isinstance(row.get("input"), str) else None
        whole = reading.answered(id, answers) if row.get("filter") == first else []
        fields = {"id": id, "question": question, "reference": reference_text(row.get("target")), "answers": whole}
        yield where, fields if whole else None


def _vlmevalkit(reading: _Reading) -> Iterator[tuple[str, Fields | None]]:
    """VLMEvalKit: index, question, options A, B, ..., answer, prediction; `hit` is the label."""
    letters = tuple(takewhile(reading.table.columns.__contains__, ascii_uppercase))
    reading.used |= {"index", "question", "answer", "prediction", "category", "l2-category", "hit", *letters}
    reading.judge = "VLMEvalKit: hit" if "hit" in reading.table.columns else ""
    for where, row in reading.rows:
        id, question = cells.required(row.get("index"), where), cells.text(row.get("question"), where)
        with suppress(DataError):  # an open question among others
            options = OptionColumns(letters)
            question = options.with_options(question, options.options_of(row, question)) if letters else question
        whole = reading.answered(id, [cells.text(row.get("prediction"), where)])
        hit, kind = cells.whole_number(row.get("hit"), where), row.get("category") or row.get("l2-category")
        fields = {"id": id, "question": question, "reference": reference_text(row.get("answer")), "answers": whole}
        more = {"label": None if hit is None else 1 - int(bool(hit)), "question_type": kind and str(kind)}
        yield where, {**fields, **more} if whole else None


def _batch(reading: _Reading) -> Iterator[tuple[str, Fields | None]]:
    """Replies of a batch of OpenAI or vLLM, by `custom_id`; its choices are draws."""
    reading.used |= {"custom_id", "response", "id", "error"}
    for where, row in reading.rows:
        id, body = str(row.get("custom_id")), (row.get("response") or {}).get("body") or {}
        answers = [choice_answer(choice) for choice in body.get("choices") or ()]
        reading.failed += [] if answers else [id]
        reading.models |= {str(body["model"])} if body.get("model") else set()
        yield where, {"id": id, "question": reading.requests.get(id), "answers": answers} if answers else None


_FORMS: tuple[tuple[str, tuple[tuple[str, ...], ...], Callable[[_Reading], Iterator[tuple[str, Any]]]], ...] = (
    ("OpenAI batch", (("custom_id",), ("response",)), _batch),
    ("lmms-eval", (("doc_id",), ("resps", "filtered_resps")), _lmms_eval),
    ("uqlm", (("sampled_responses",), ("response",)), _uqlm),
    ("VLMEvalKit", (("prediction",), ("index",)), _vlmevalkit),
    (OWN, (("clean",), ("baseline",)), _own),
    ("lists of answers", (("answers",), ("id",)), _own),
    ("plain generations", (_GENERATIONS,), _generations),
    (ROWS, (("text",), ("id",)), _answer_rows),
)
"""Tools -> a column of each of these is in their tables -> the map of them."""


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


def _list(value: Any, where: str) -> list[Any]:
    items = cells.as_list(value)
    if items is None:
        raise DataError(f"{where}: expected a list of answers, got {shown(value)}")
    return items


def _flat(value: Any) -> list[Any]:
    return [inner for item in value for inner in _flat(item)] if isinstance(value, list) else [value]
