"""Trial of a task: its documents as a model sees them, and its judge on answers that are known to be right or wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from hedge_tasks.data.own_data import picture_columns
from hedge_tasks.data.pictures import picture_of
from hedge_tasks.data.roles import Roles
from hedge_tasks.data.tables import StoredTable, read_table
from hedge_tasks.judging import Case, judge_from
from hedge_tasks.judging.options import options_of
from hedge_tasks.judging.references import references_of
from hedge_tasks.lmms.own_task.files import DATA, OwnTask, judge_of
from hedge_tasks.perturb import Wording
from hedge_tasks.sampling.prompts import load_prompt

N_DOCUMENTS = 3

_JUDGED = 200


@dataclass(frozen=True)
class DocumentPreview:
    """One document as a model sees it."""

    text: str
    pictures: tuple[str, ...]
    reference: str


@dataclass(frozen=True)
class JudgeTrial:
    """Verdicts of the task's judge on answers that are known to be right or wrong.

    Attributes:
        n: documents that were tried.
        right: how many references it calls supported, as answers to their own question.
        wrong: how many of as many answers to other questions, or of other options, it calls hallucinated.
    """

    n: int
    right: int
    wrong: int


@dataclass(frozen=True)
class Trial:
    """Outcome of a trial.

    Attributes:
        judged: None where nobody judges.
    """

    previews: tuple[DocumentPreview, ...]
    judged: JudgeTrial | None


def try_task(folder: Path, task: OwnTask) -> Trial:
    """Read the data that was written, and try prompt and judge on it. lmms-eval is not started.

    Args:
        folder: of its YAML.

    Raises:
        HedgeError: it does not work; says why.
    """
    table, roles, prompt = read_table(folder / DATA), task.roles, load_prompt(task.prompt)
    previews = tuple(
        DocumentPreview(
            prompt.text(Wording(str(row[roles.question]))),
            tuple(_size(picture) for column in picture_columns(roles) for picture in _as_list(row[column])),
            " | ".join(references_of(str(row[roles.answer]))) if roles.answer else "",
        )
        for row in islice(table.rows(None), N_DOCUMENTS)
    )
    return Trial(previews, _judged(table, roles.question, roles.answer, roles) if roles.answer else None)


def _as_list(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def _size(value: object) -> str:
    with picture_of(value) as picture:
        return f"{picture.width} x {picture.height}"


def _judged(table: StoredTable, question: str, answer: str, roles: Roles) -> JudgeTrial:
    """Return the judge on each reference, and on another document's reference, or another option, in its place."""
    step, rows = max(1, table.n_rows // _JUDGED), table.rows([question, answer])
    chosen = [row for number, row in enumerate(rows) if number % step == 0][:_JUDGED]
    questions = [str(row[question]) for row in chosen]
    references = [str(row[answer]) for row in chosen]
    right_answers = [(references_of(reference) or [reference])[0] for reference in references]
    wrong_answers = [
        _another_option(question, reference) if roles.choices else _another(right_answers, row)
        for row, (question, reference) in enumerate(zip(questions, references, strict=True))
    ]
    judge = judge_from(judge_of(roles))

    def labels(answers: Sequence[str]) -> list[int | None]:
        cases = [Case(str(i), *case) for i, case in enumerate(zip(questions, references, answers, strict=True))]
        return [verdict.label for verdict in judge.judge(cases)]

    right, wrong = (
        sum(label == value for label in labels(tried)) for tried, value in ((right_answers, 0), (wrong_answers, 1))
    )
    return JudgeTrial(len(chosen), right, wrong)


def _another_option(question: str, reference: str) -> str:
    return next(letter for letter in options_of(question) if letter != reference)


def _another(references: Sequence[str], row: int) -> str:
    """Another reference, of as many words where there is one: beside "yes", "no" tells more than "in the left lung"."""
    own = references[row].lower()
    after = [reference for reference in (*references[row + 1 :], *references[:row]) if reference.lower() != own]
    alike = [reference for reference in after if len(reference.split()) == len(own.split())]
    return next(iter(alike or after), references[row])
