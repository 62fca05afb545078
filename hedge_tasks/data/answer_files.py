"""Files of sampled answers as answer sets: this package's own and those of other tools, for `hedge score` and `import`.

A line in this package's shape is `{"id", "baseline", "clean": [...], "noisy"?: [...], "question"?, "reference"?,
"label"?, "group"?, "question_type"?, "claims"?}`, or has `answers` in place of `clean`: where no `baseline` is beside
them, the first of them is it. An answer is a text, or an object with `text` and either `mean_logprob`, or `logprobs`,
those of its tokens, or `tokens`, a list of [text, log-probability]. Other tools' columns are in
`hedge_tasks.data.forms`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from loguru import logger

from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.data.foreign import inspect_logs, polygraph
from hedge_tasks.data.forms import LISTS, AnswerRows, content_of, documents
from hedge_tasks.data.placeholders import PLACEHOLDER, extremes, without_placeholders
from hedge_tasks.data.roles import ColumnSettings
from hedge_tasks.data.tables import STDIN, read_rows, read_table, table_of
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
    lost, requests = Counter[str](), {}
    if questions is not None:
        with _as_its_tool_writes(questions):
            requests = dict(map(_request, (row for _, row in read_rows(questions))))
    read = [_read_file(file, columns or ColumnSettings(), requests) for file in files]
    forms, models = dict.fromkeys(file.form for file in read), dict.fromkeys(f.model for f in read if f.model)
    if len(forms) > 1 or len(models) > 1:
        raise ConfigError(f"the files are of several tools or models: {', '.join([*forms, *models])}")
    rows = _joined(read, lost)
    answer_sets = _cleaned([AnswerSet.read(row, where) for where, row in rows], str(files[0]))
    if not answer_sets:
        raise DataError(f"{files[0]}: no answers in it")
    # A run with a single draw has none anywhere; a hole in a file of samples is a slip.
    holes = [where for (where, _), a in zip(rows, answer_sets, strict=True) if not a.clean]
    if 0 < len(holes) < len(answer_sets):
        raise DataError(f"{holes[0]}: clean: there is none, and other documents have some; leave this one out")
    judges = dict.fromkeys(file.judge for file in read if file.judge)
    notes = tuple(_notes(read, lost, answer_sets))
    return ReadAnswers(next(iter(forms)), tuple(answer_sets), next(iter(models), ""), ", ".join(judges), notes)


def _read_file(file: Path, columns: ColumnSettings, requests: Mapping[str, str]) -> AnswerRows:
    if file != STDIN and not file.exists():
        raise DataError(f"cannot read {file}: there is no such file")
    ending, form = file.suffix.lower(), None
    is_log = ending == ".eval" or (ending == ".json" and inspect_logs.is_log(file))
    with _as_its_tool_writes(file):
        if is_log or ending in (".man", ".pt", ".pth"):
            form, rows = (inspect_logs if is_log else polygraph).read(file)
            table = table_of(str(file), rows, file.parent)
        else:
            table = read_table(file)
        return documents(table, columns, form, requests)


@contextmanager
def _as_its_tool_writes(file: Path) -> Iterator[None]:
    try:
        yield
    except (AttributeError, KeyError, TypeError) as error:
        raise DataError(f"{file}: not as its tool writes it ({type(error).__name__}: {error})") from None


def read_answer_set(fields: Mapping[str, Any], where: str) -> AnswerSet:
    """An answer set in the shape of a line of this module; thoughts are taken away.

    Raises:
        DataError: names the place and the field.
    """
    return AnswerSet.read(_normal_row(fields, where, Counter()), where)


def _request(row: Mapping[str, Any]) -> tuple[str, str]:
    """The id and the question of a request of a batch: the texts of the last turn."""
    turns = (row.get("body") or {}).get("messages") or [{}]
    return str(row.get("custom_id")), content_of(turns[-1].get("content"))[0]


def _notes(read: Sequence[AnswerRows], lost: Counter[str], answer_sets: Sequence[AnswerSet]) -> Iterable[str]:
    yield from dict.fromkeys(note for file in read for note in file.notes)
    yield from (f"lost: {what} of {n} answers" for what, n in lost.items())
    if n_first := sum("answers" in row and row.get("baseline") is None for file in read for _, row in file.rows):
        yield f"baseline: of {n_first} documents the first answer, for nothing says which it is"
    total = sum(len(a.answers) for a in answer_sets)
    if without := sum(answer.mean_logprob is None for a in answer_sets for answer in a.answers):
        yield f"{without} of {total} answers have no log-probability"
    if not any(a.clean or a.noisy for a in answer_sets):
        yield "a single answer a document: detectors that draw have nothing to go by; give the other files as well"


def _joined(read: Sequence[AnswerRows], lost: Counter[str]) -> list[Row]:
    """The rows of files, those of one id joined; what is lost of thoughts is counted."""
    joined: dict[str, Row] = {}
    for file in read:
        once: dict[str, Row] = {}
        for where, row in file.rows:
            first, earlier = once.setdefault(str(row.get("id")), (where, row))
            if earlier != row:
                shown = outside.shown(row.get("id"))
                raise DataError(
                    f"{where}: another row has the id {shown} and differs: {first}. All answers to a question stand in "
                    "its row, in a list or a column each"
                )
        for id, (where, row) in once.items():
            normal = (where, _normal_row(row, where, lost))
            joined[id] = _join(joined[id], normal) if id in joined else normal
    return list(joined.values())


def _join(earlier: Row, row: Row) -> Row:
    (where, first), (at, later) = earlier, row
    if first.get("question") and later.get("question") and first["question"] != later["question"]:
        raise DataError(f"{at}: the id {outside.shown(first['id'])} is of another question at {where}")
    clean = [*first["clean"], later["baseline"], *later["clean"]]
    return where, {**first, "clean": clean, "noisy": [*(first.get("noisy") or ()), *(later.get("noisy") or ())]}


# --- one line ---------------------------------------------------------------------------------------------------------


def _normal_row(row: Mapping[str, Any], where: str, lost: Counter[str]) -> Mapping[str, Any]:
    """A line in the shape of this module as the fields that `AnswerSet.read` reads, answers with their means.

    Args:
        lost: counts what is lost of thoughts, which answers are freed of.
    """
    normal = dict(row)
    if row.get("baseline") is not None:
        normal["baseline"] = _answer(row["baseline"], f"{where}: baseline", lost)
    for name in LISTS:
        if isinstance(row.get(name), list):
            normal[name] = [_answer(value, f"{where}: {name}[{i}]", lost) for i, value in enumerate(row[name])]
    if isinstance(row.get("follow_ups"), list):
        normal["follow_ups"] = [
            _normal_row(inner, f"{where}: follow_ups[{i}]", lost) if isinstance(inner, Mapping) else inner
            for i, inner in enumerate(row["follow_ups"])
        ]
    if "answers" in row:
        answers = normal.pop("answers")
        if row.get("clean"):
            raise DataError(f"{where}: answers says what clean does; give one of them")
        if not isinstance(answers, list) or not (answers or "baseline" in normal):
            raise DataError(f"{where}: answers: expected a list of at least one answer, got {outside.shown(answers)}")
        normal |= {"clean": answers} if normal.get("baseline") else {"baseline": answers[0], "clean": answers[1:]}
    return normal


def _answer(value: Any, where: str, lost: Counter[str]) -> Any:
    """An answer with `mean_logprob` and `n_tokens`; what is no answer at all is left to `Answer.read`."""
    value = _without_thought(value if isinstance(value, Mapping) else {"text": value}, lost)
    fields = {key: item for key, item in value.items() if key not in _PARTS}
    if finish := value.get("finish_reason"):
        fields["finish"] = _FINISHES.get(str(finish))
    known = {"mean_logprob", "n_tokens"} & {key for key, item in fields.items() if item is not None}
    if (tokens := value.get("logprobs")) is not None:
        if known:
            raise DataError(f"{where}: logprobs say what mean_logprob and n_tokens do; give one of them")
        return {**fields, **_means(tokens, f"{where}.logprobs")}
    if isinstance(pairs := value.get("tokens"), list) and "mean_logprob" not in known:
        logprobs = [pair[-1] if isinstance(pair, list) and pair else pair for pair in pairs]
        return {**fields, **_means(logprobs, f"{where}.tokens")}
    return fields


def _without_thought(fields: Mapping[str, Any], lost: Counter[str]) -> Mapping[str, Any]:
    """An answer without its thought; log-probabilities of both together are of neither."""
    text = fields.get("text")
    if not isinstance(text, str) or not (fields.get("reasoning") or has_thought(text)):
        return fields
    lost["the thought"] += 1
    if fields.get("logprobs") or fields.get("mean_logprob"):
        lost["log-probabilities of thought and answer together,"] += 1
    after_thought, is_open = without_thoughts(text)
    finish = {key: fields[key] for key in ("finish", "finish_reason") if key in fields}
    return {**finish, "text": "" if is_open else after_thought.strip()}


def _means(tokens: object, where: str) -> Mapping[str, Any]:
    """Return what is kept of the log-probabilities of an answer's tokens."""
    if not isinstance(tokens, list) or not tokens:
        raise DataError(f"{where}: expected a list of numbers, got {outside.shown(tokens)}")
    plain = [token.get("logprob") if isinstance(token, Mapping) else token for token in tokens]
    numbers = [outside.log_probability(token, f"{where}[{i}]") for i, token in enumerate(plain)]
    return {"mean_logprob": math.fsum(numbers) / len(numbers), "n_tokens": len(numbers), **extremes(numbers)}


# --- all of them ------------------------------------------------------------------------------------------------------


def _cleaned(answer_sets: Sequence[AnswerSet], name: str) -> list[AnswerSet]:
    """Answer sets without tokens of chat templates around their answers and without placeholders among their
    log-probabilities, with a warning that begins with a name where there were some.
    """

    def bare(answer: Answer) -> Answer:
        text = without_template_tokens(answer.text)
        return answer if text == answer.text else replace(answer, text=text)

    usable = without_placeholders(answer_sets)
    cleaned = [a.with_answers(bare) for a in usable]
    for before, after, what in (
        (answer_sets, usable, f"lose their log-probability: {PLACEHOLDER}"),
        (usable, cleaned, "have tokens of a chat template around them, which are taken away"),
    ):
        pairs = [pair for a, b in zip(before, after, strict=True) for pair in zip(a.answers, b.answers, strict=True)]
        if changed := [answer.text for answer, now in pairs if answer is not now]:
            logger.warning(
                "{}: {} of {} answers, {!r} first, {}", name, len(changed), len(pairs), changed[0][:80], what
            )
    return cleaned
