"""Rows of a user's file of answers, in the shapes that are accepted, as the fields that `AnswerSet.read` reads.

- An answer set: `{"id", "baseline", "clean", "noisy"?, ...}`.
- Plain answers: `{"id", "answers": [...], ...}`. Nothing says which of them is the baseline answer: where there is a
  `baseline` beside them, all of them are clean samples; otherwise the first is the baseline and the others are clean.
- A table: one answer a row, with the columns `id`, `text` and any of `condition` (baseline, clean or noisy),
  `mean_logprob`, `n_tokens`, and those of the document (`question`, `label`, ...), which need to stand in one row only.
  Rows of one id belong together, in their order; without `condition` they are plain answers.

`claims` are labelled parts of the baseline answer (`hedge_tasks.data.spans`).

An answer is a text, or an object with `text` and either `mean_logprob`, or `logprobs`, those of its tokens, or
`tokens`, a list of [text, log-probability], for scores of its parts.

A key that no shape has is an error with the nearest one that it has: `lable` would otherwise be a file without labels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hedge_tasks.data import cells
from hedge_tasks.data.placeholders import extremes
from hedge_tasks.errors import DataError, unknown
from hedge_tasks.io import outside
from hedge_tasks.io.json_lines import Row

_DOCUMENT = ("id", "question", "reference", "label", "group", "question_type")
_SET = (*_DOCUMENT, "claims", "baseline", "clean", "noisy", "cluster_ids", "held_out", "follow_ups", "forced")
_PLAIN = (*_DOCUMENT, "claims", "baseline", "answers")
_OURS = ("store", "verdict", "scores", "sampled", "drawn", "crc32")
"""Further fields of lines that this package wrote."""

_ANSWER = (
    *("text", "mean_logprob", "n_tokens", "logprobs", "tokens", "alternatives", "finish"),
    *("end_logprob", "thought", "no_logprob", "least_logprob", "n_zero", "served"),
)
_COLUMNS = (*_DOCUMENT, "condition", "text", "mean_logprob", "n_tokens")
_CONDITIONS = ("baseline", "clean", "noisy")


def normal_rows(rows: Iterable[Row], *, allow_unknown: bool = False) -> list[Row]:
    """Rows of a JSONL file in the shape of answer sets.

    Args:
        allow_unknown: pass over keys that no shape has.

    Raises:
        DataError: names the place and the field.
    """
    return [(where, _normal_row(row, where, allow_unknown)) for where, row in rows]


def rows_of_table(rows: Sequence[Row], *, allow_unknown: bool = False) -> list[Row]:
    """Rows of a table, one answer each, in the shape of answer sets.

    Raises:
        DataError: names the place and the column.
    """
    if rows:
        where, first = rows[0]
        _check_keys(first, _COLUMNS, where, "column", allow_unknown)
        for column in ("id", "text"):
            if column not in first:
                raise DataError(f"{where}: no column {column!r}; there are {', '.join(map(outside.shown, first))}")
    documents: dict[str, list[Row]] = {}
    for where, row in rows:
        if not (id := cells.text(row["id"], f"{where}: id")):
            raise DataError(f"{where}: there is no id")
        documents.setdefault(id, []).append((where, row))
    return [(rows_of_id[0][0], _document(id, rows_of_id)) for id, rows_of_id in documents.items()]


def _normal_row(row: Mapping[str, Any], where: str, allow_unknown: bool) -> Mapping[str, Any]:
    if "answers" in row:
        _check_keys(row, _PLAIN, where, "key", allow_unknown)
        return _plain_answers(row, where, allow_unknown)
    _check_keys(row, (*_SET, *_OURS), where, "key", allow_unknown)
    normal = dict(row)
    if "baseline" in row:
        normal["baseline"] = _answer(row["baseline"], f"{where}: baseline", allow_unknown)
    for name in ("clean", "noisy"):
        if isinstance(row.get(name), list):
            normal[name] = _answers(row[name], f"{where}: {name}", allow_unknown)
    if isinstance(row.get("follow_ups"), list):
        normal["follow_ups"] = [
            _normal_row(inner, f"{where}: follow_ups[{i}]", allow_unknown) if isinstance(inner, Mapping) else inner
            for i, inner in enumerate(row["follow_ups"])
        ]
    return normal


def _plain_answers(row: Mapping[str, Any], where: str, allow_unknown: bool) -> Mapping[str, Any]:
    if not isinstance(row["answers"], list):
        raise DataError(f"{where}: answers: expected a list, got {outside.shown(row['answers'])}")
    document = {key: row[key] for key in (*_DOCUMENT, "claims") if key in row}
    answers = _answers(row["answers"], f"{where}: answers", allow_unknown)
    if "baseline" in row:
        return {**document, "baseline": _answer(row["baseline"], f"{where}: baseline", allow_unknown), "clean": answers}
    return {**document, **_first_is_baseline(answers, where)}


def _first_is_baseline(answers: Sequence[Any], where: str) -> dict[str, Any]:
    if len(answers) < 2:
        raise DataError(
            f"{where}: the first answer counts as the baseline, so at least two are needed, got {len(answers)}"
        )
    return {"baseline": answers[0], "clean": list(answers[1:])}


def _answers(values: Sequence[Any], where: str, allow_unknown: bool) -> list[Any]:
    return [_answer(value, f"{where}[{i}]", allow_unknown) for i, value in enumerate(values)]


def _answer(value: Any, where: str, allow_unknown: bool) -> Any:
    """An answer with `mean_logprob` and `n_tokens`; what is no answer at all is left to `Answer.read`."""
    if isinstance(value, str):
        return {"text": value}
    if not isinstance(value, Mapping):
        return value
    _check_keys(value, _ANSWER, where, "key", allow_unknown)
    if value.get("logprobs") is None:
        if value.get("tokens") is not None:
            return _with_token_mean(value, where)
        return {key: item for key, item in value.items() if key != "logprobs"}
    for key in ("mean_logprob", "n_tokens"):
        if value.get(key) is not None:
            raise DataError(f"{where}: {key} and logprobs say the same thing; give one of them")
    tokens = value["logprobs"]
    if not isinstance(tokens, list) or not tokens:
        raise DataError(f"{where}.logprobs: expected a list of numbers, got {outside.shown(tokens)}")
    numbers = [outside.log_probability(token, f"{where}.logprobs[{i}]") for i, token in enumerate(tokens)]
    others = {key: item for key, item in value.items() if key != "logprobs"}
    return {**others, "mean_logprob": math.fsum(numbers) / len(numbers), "n_tokens": len(numbers), **extremes(numbers)}


def _with_token_mean(value: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """`tokens` as `Answer.read` checks them, with the mean over them where nothing says it."""
    if value.get("mean_logprob") is not None or not isinstance(value["tokens"], list):
        return value
    pairs = value["tokens"]
    if not pairs or not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise DataError(f"{where}.tokens: expected a list of [text, log-probability]")
    logprobs = {"logprobs": [logprob for _, logprob in pairs]}
    others = {key: item for key, item in value.items() if key not in ("tokens", "mean_logprob", "n_tokens")}
    return {**_answer({**others, **logprobs}, where, False), "tokens": pairs}


def _document(id: str, rows: Sequence[Row]) -> Mapping[str, Any]:
    where = rows[0][0]
    fields: dict[str, Any] = {"id": id}
    for column in _DOCUMENT[1:]:
        read = cells.label if column == "label" else cells.text
        values = {read(row[column], f"{at}: {column}"): at for at, row in rows if cells.text(row.get(column))}
        if len(values) > 1:
            at = list(values.values())[1]
            raise DataError(f"{at}: another {column} than in an earlier row of the id {id!r}")
        if values:
            fields[column] = next(iter(values))
    answers = [_cell_answer(row, at) for at, row in rows]
    if "condition" not in rows[0][1]:
        return {**fields, **_first_is_baseline(answers, where)}
    by_condition: dict[str, list[Any]] = {name: [] for name in _CONDITIONS}
    for (at, row), answer in zip(rows, answers, strict=True):
        condition = cells.text(row["condition"]).lower()
        if condition not in by_condition:
            raise DataError(f"{at}: {unknown('condition', condition, _CONDITIONS)}")
        by_condition[condition].append(answer)
    if len(by_condition["baseline"]) != 1:
        raise DataError(f"{where}: the id {id!r} has {len(by_condition['baseline'])} baseline answers, expected one")
    return {
        **fields,
        "baseline": by_condition["baseline"][0],
        "clean": by_condition["clean"],
        "noisy": by_condition["noisy"],
    }


def _cell_answer(row: Mapping[str, Any], where: str) -> dict[str, Any]:
    mean = cells.number(row.get("mean_logprob"), f"{where}: mean_logprob")
    n_tokens = cells.whole_number(row.get("n_tokens"), f"{where}: n_tokens")
    text = row["text"] if isinstance(row["text"], str) else cells.text(row["text"], f"{where}: text")
    if not text.strip():
        raise DataError(f"{where}: text: the cell is empty, which is no answer (JSON lines can hold an empty one)")
    return {"text": text, "mean_logprob": mean, "n_tokens": n_tokens}


def _check_keys(fields: Mapping[str, Any], valid: Sequence[str], where: str, kind: str, allow_unknown: bool) -> None:
    if allow_unknown:
        return
    for key in fields:
        if key not in valid:
            hint = "; hedge score --allow-unknown passes over such keys"
            raise DataError(f"{where}: {unknown(kind, str(key)[:100], set(valid) - set(_OURS))}{hint}")
