"""Files of sampled answers."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from loguru import logger

from hedge_tasks.data.answer_rows import normal_rows, rows_of_table
from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.data.placeholders import PLACEHOLDER, without_placeholders
from hedge_tasks.data.tables import kind_of, read_rows
from hedge_tasks.data.template_tokens import without_template_tokens
from hedge_tasks.errors import DataError
from hedge_tasks.io.outside import shown


def read_answer_sets(path: Path, *, table: bool | None = None, allow_unknown: bool = False) -> list[AnswerSet]:
    """Read a user's answers, in any of the shapes that `hedge_tasks.data.answer_rows` describes.

    Args:
        path: a file (`hedge_tasks.data.tables.KINDS`), or `-` for the standard input.
        table: whether it is CSV, or else JSON lines; None goes by the ending.
        allow_unknown: pass over keys that no shape has, instead of taking them for a slip of the pen.

    Raises:
        DataError: names the file, the line and the field.
    """
    kind = kind_of(path) if table is None else "CSV" if table else "JSON lines"
    rows = read_rows(path, kind)
    one_a_row = kind != "JSON lines" and not (rows and rows[0][1].keys() & {"baseline", "answers"})
    rows = (rows_of_table if one_a_row else normal_rows)(rows, allow_unknown=allow_unknown)
    answer_sets = parse_answer_sets(rows)
    if not answer_sets:
        raise DataError(f"{path}: no answers in it")
    return clean_answer_sets(answer_sets, str(path))


def clean_answer_sets(answer_sets: Sequence[AnswerSet], name: str) -> list[AnswerSet]:
    """Return answer sets without tokens of chat templates around their answers and without placeholders among their
    log-probabilities, with a warning where there were some.

    Args:
        name: where they are from, for the warning.
    """
    changed: list[str] = []

    def clean(answer: Answer) -> Answer:
        text = without_template_tokens(answer.text)
        if text == answer.text:
            return answer
        changed.append(answer.text)
        return replace(answer, text=text)

    result = []
    usable = without_placeholders(answer_sets)
    for a in usable:
        baseline, clean_draws, noisy = clean(a.baseline), tuple(map(clean, a.clean)), tuple(map(clean, a.noisy))
        unchanged = baseline is a.baseline and all(map(operator.is_, (*clean_draws, *noisy), (*a.clean, *a.noisy)))
        result.append(a if unchanged else replace(a, baseline=baseline, clean=clean_draws, noisy=noisy))
    total = sum(len(a.answers) for a in answer_sets)
    lost = [answer for a, own in zip(usable, answer_sets, strict=True) if a is not own for answer in a.answers]
    if n_lost := sum(answer.no_logprob == PLACEHOLDER for answer in lost):
        logger.warning("{}: {} of {} answers lose their log-probability: {}", name, n_lost, total, PLACEHOLDER)
    if changed:
        logger.warning(
            "{}: {} of {} answers have tokens of a chat template around them, such as {}; they are taken away",
            *(name, len(changed), total, shown(changed[0])),
        )
    return result


def parse_answer_sets(rows: Iterable[tuple[str, Mapping[str, Any]]]) -> list[AnswerSet]:
    """Answer sets from parsed lines, each with its place.

    Raises:
        DataError: names the place and the field; also where two lines have the same id, or a document has no clean
            answer and others have some.
    """
    sets: dict[str, tuple[str, AnswerSet]] = {}
    for where, row in rows:
        answer_set = AnswerSet.read(row, where)
        if answer_set.id in sets:
            first = sets[answer_set.id][0].rpartition(":")[2]
            raise DataError(f"{where}: id {answer_set.id!r} is already on line {first}")
        sets[answer_set.id] = (where, answer_set)
    # A run with a single draw has none anywhere; a hole in a file of samples is a slip.
    if any(answer_set.clean for _, answer_set in sets.values()):
        for where, answer_set in sets.values():
            if not answer_set.clean:
                raise DataError(f"{where}: clean: at least one answer is needed, as the other documents have")
    return [answer_set for _, answer_set in sets.values()]
