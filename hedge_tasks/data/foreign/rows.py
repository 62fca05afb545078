"""Answers of other tools in tables: plain generations, uqlm, lmms-eval's samples, VLMEvalKit, batches of vLLM."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from hedge_tasks.data import cells
from hedge_tasks.data.choices import find_choices
from hedge_tasks.data.foreign.record import FINISHES, ForeignAnswers, ForeignFile, RawAnswer, choice_logprobs
from hedge_tasks.data.tables import StoredTable, read_table
from hedge_tasks.errors import DataError, unknown

PLAIN, UQLM, LMMS_EVAL, VLMEVALKIT, BATCH = "plain generations", "uqlm", "lmms-eval", "VLMEvalKit", "OpenAI batch"

_IDS = ("id", "question_id", "qid", "index", "idx", "doc_id")
_QUESTIONS = ("question", "prompt", "query", "input")
_REFERENCES = ("reference", "references", "answer", "answers", "target", "ground_truth", "gold", "label_text")
_GENERATIONS = ("generations", "samples", "responses", "completions", "draws")
_BASELINES = ("baseline", "greedy", "most_likely_generation", "greedy_text", "response", "prediction", "output")


_FAILED = re.compile(
    r"\s*(?:|\[LMMS_EVAL_(?:REQUEST_FAILED|BUDGET_EXCEEDED)\b.*|Failed to obtain answer via API\.?)\s*", re.DOTALL
)
"""Texts that adapters of lmms-eval and VLMEvalKit put in the place of an answer that they did not get."""


def read(table: StoredTable, questions: Path | None) -> ForeignFile:
    """The answers of a table, by the columns that it has.

    Raises:
        DataError: no tool is known that writes such columns.
    """
    columns = set(table.columns)
    if {"custom_id", "response"} <= columns:
        return _read_batch(table, _requests(questions))
    if "doc_id" in columns and columns & {"resps", "filtered_resps"}:
        return _read_lmms_eval(table)
    if "sampled_responses" in columns:
        return _read_generations(table, UQLM, ("sampled_responses",), ("response",))
    if {"prediction", "index"} <= columns:
        return _read_vlmevalkit(table)
    if columns & set(_GENERATIONS):
        return _read_generations(table, PLAIN, _GENERATIONS, _BASELINES)
    raise DataError(
        f"{table.name}: "
        + str(
            unknown("column of answers", next(iter(table.columns)), [*_GENERATIONS, "sampled_responses", "prediction"])
        )
    )


def _read_generations(table: StoredTable, form: str, draws: Sequence[str], baselines: Sequence[str]) -> ForeignFile:
    def document(number: int, row: Mapping[str, Any]) -> ForeignAnswers:
        where = f"{table.name}: row {number + 1}"
        sampled = _list_in_cell(_first_present(row, draws), where)
        own = _first_present(row, baselines)
        baseline = None if own is None else _answer(own, where, row.get("logprob") if form == UQLM else None)
        all_logprobs = row.get("multiple_logprob") if form == UQLM else None
        logprobs = _list_in_cell(all_logprobs, where) if all_logprobs is not None else [None] * len(sampled)
        answers = [_answer(*pair) for pair in zip(sampled, [where] * len(sampled), logprobs, strict=False)]
        label = cells.label(row.get("label"), where) if form == PLAIN else None
        return _plain_document(row, number, tuple(answers), baseline, label)

    return ForeignFile(form, _documents(table, document), _model(table), "given" if "label" in table.columns else "")


def _read_lmms_eval(table: StoredTable) -> ForeignFile:
    failed: list[str] = []
    chosen = next(iter(table.values("filter", 1)), None) if "filter" in table.columns else None

    def document(number: int, row: Mapping[str, Any]) -> ForeignAnswers | None:
        if row.get("filter") != chosen:  # the same answers, read in another way
            return None
        where = f"{table.name}: row {number + 1}"
        raw = row.get("resps") if row.get("resps") is not None else row.get("filtered_resps")
        answers = [_answer(text, where) for text in _flat(raw)]
        if any(str(answer["text"]).lstrip().startswith('{"id"') for answer in answers):
            raise DataError(f"{table.name}: samples of a task of this package; its run file holds more (hedge_runs/)")
        question, id = row["input"] if isinstance(row.get("input"), str) else "", str(row["doc_id"])
        draws = _answered(id, answers, failed)
        return ForeignAnswers(id, draws, question=question, reference=str(row.get("target") or "")) if draws else None

    documents = _documents(table, document)
    notes = "answers: as the model wrote them (resps); what the task's filters made of them is left"
    return ForeignFile(LMMS_EVAL, documents, notes=(notes, *_lost(failed)))


def _read_vlmevalkit(table: StoredTable) -> ForeignFile:
    choices = find_choices(table, list(table.columns), (), None)
    failed: list[str] = []

    def document(number: int, row: Mapping[str, Any]) -> ForeignAnswers | None:
        where = f"{table.name}: row {number + 1}"
        question, reference = cells.text(row.get("question"), where), cells.text(row.get("answer"), where)
        if choices is not None:
            with suppress(DataError):  # an open question among others
                question = choices.with_options(question, choices.options_of(row, question))
        kind = row.get("category") or row.get("l2-category")
        id = cells.required(row["index"], where)
        answers = _answered(id, [_answer("" if row["prediction"] is None else row["prediction"], where)], failed)
        if not answers:
            return None
        label = None if row.get("hit") is None else 1 - int(bool(cells.whole_number(row["hit"], where)))
        return ForeignAnswers(id, (), answers[0], question, reference, label, question_type=str(kind) if kind else None)

    judge = "VLMEvalKit: hit" if "hit" in table.columns else ""
    documents = _documents(table, document)
    return ForeignFile(VLMEVALKIT, documents, judge=judge, notes=_lost(failed))


def _read_batch(table: StoredTable, questions: Mapping[str, str]) -> ForeignFile:
    failed: list[str] = []
    models: dict[str, None] = {}

    def document(number: int, row: Mapping[str, Any]) -> ForeignAnswers | None:
        id = str(row["custom_id"])
        body = (row.get("response") or {}).get("body") or {}
        choices = body.get("choices") if isinstance(body, Mapping) else None
        if not choices:
            failed.append(id)
            return None
        models.setdefault(str(body.get("model") or ""))
        return ForeignAnswers(id, tuple(_choice_answer(choice) for choice in choices), question=questions.get(id, ""))

    documents = _documents(table, document)
    notes = [*_lost(failed)]
    if not questions:
        notes.append("questions: not in the replies; --questions FILE names the file of requests")
    return ForeignFile(BATCH, documents, next(iter(models), ""), notes=tuple(notes))


def _answered(id: str, answers: Sequence[RawAnswer], failed: list[str]) -> tuple[RawAnswer, ...]:
    """Those that are answers; the id joins `failed` once for every other one."""
    answered = tuple(answer for answer in answers if not _FAILED.fullmatch(str(answer["text"])))
    failed += [id] * (len(answers) - len(answered))
    return answered


def _lost(failed: Sequence[str]) -> tuple[str, ...]:
    return (f"lost: {len(failed)} requests that failed, such as {failed[0]!r}",) if failed else ()


def _choice_answer(choice: Mapping[str, Any]) -> RawAnswer:
    message = choice.get("message") or {}
    return {
        "text": str(message.get("content") or choice.get("text") or ""),
        "logprobs": choice_logprobs(choice),
        "finish": FINISHES.get(str(choice.get("finish_reason"))),
        "reasoning": message.get("reasoning_content") or message.get("reasoning"),
    }


def _requests(file: Path | None) -> dict[str, str]:
    """The question of each request, by its id: the texts of the last turn."""
    if file is None:
        return {}
    questions = {}
    for row in read_table(file).rows(None):
        messages = (row.get("body") or {}).get("messages") or []
        content = messages[-1].get("content") if messages else ""
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
        questions[str(row.get("custom_id"))] = "\n".join(str(p.get("text")) for p in parts if p.get("type") == "text")
    return questions


def _documents(
    table: StoredTable, document: Callable[[int, Mapping[str, Any]], ForeignAnswers | None]
) -> tuple[ForeignAnswers, ...]:
    documents = (document(number, row) for number, row in enumerate(table.rows(None)))
    return tuple(item for item in documents if item is not None)


def _plain_document(
    row: Mapping[str, Any], number: int, draws: tuple[RawAnswer, ...], baseline: RawAnswer | None, label: int | None
) -> ForeignAnswers:
    id, question, reference = (_first_present(row, names) for names in (_IDS, _QUESTIONS, _REFERENCES))
    several = reference if isinstance(reference, (list, tuple)) else [reference]
    return ForeignAnswers(
        str(number) if id is None else cells.text(id),
        draws,
        baseline,
        "" if question is None else cells.text(question),
        "\n".join(cells.text(text) for text in several if text is not None),
        label,
        *(None if cells.is_missing(row.get(key)) else cells.text(row[key]) for key in ("group", "question_type")),
    )


def _answer(value: Any, where: str, logprobs: Any = None) -> RawAnswer:
    """An answer in a cell: a text, or a record with its text."""
    if isinstance(value, Mapping):
        text = _first_present(value, ("text", "generation", "content", "response"))
        token_logprobs = value.get("logprobs") or value.get("token_logprobs") or value.get("token_log_likelihoods")
        if text is None:
            raise DataError(f"{where}: an answer without a text; there are {', '.join(map(str, value))}")
        numbers = {key: value[key] for key in ("mean_logprob", "n_tokens") if value.get(key) is not None}
        finish = FINISHES.get(str(value.get("finish_reason") or value.get("finish")))
        return {"text": str(text), **numbers, "logprobs": _numbers(token_logprobs), "finish": finish}
    if isinstance(value, (list, tuple)) or value is None:
        raise DataError(f"{where}: expected an answer, got {type(value).__name__}")
    return {"text": value if isinstance(value, str) else cells.text(value, where), "logprobs": _numbers(logprobs)}


def _numbers(tokens: Any) -> list[Any] | None:
    """Log-probabilities of tokens, numbers or records with one; what is none is refused as in every other file."""
    if not isinstance(tokens, (list, tuple)) or not tokens:
        return None
    return [token.get("logprob") if isinstance(token, Mapping) else token for token in tokens]


def _list_in_cell(value: Any, where: str) -> list[Any]:
    """A list in a cell, also as a CSV file has it."""
    if isinstance(value, str) and value.strip().startswith("["):
        try:
            value = ast.literal_eval(value.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            raise DataError(f"{where}: a list that cannot be read") from None
    if not isinstance(value, (list, tuple)):
        raise DataError(f"{where}: expected a list of answers, got {type(value).__name__}")
    return list(value)


def _flat(value: Any) -> list[Any]:
    return [inner for item in value for inner in _flat(item)] if isinstance(value, list) else [value]


def _first_present(row: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((row[name] for name in names if row.get(name) is not None), None)


def _model(table: StoredTable) -> str:
    named = {str(value) for value in table.values("model")} if "model" in table.columns else set()
    if len(named) > 1:
        raise DataError(f"{table.name}: answers of several models ({', '.join(sorted(named)[:5])}); one file a model")
    return next(iter(named), "")
