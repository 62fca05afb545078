"""The plan of an audit: which documents of a run experts label, and the page and the table that they get."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.io.files import write_whole
from hedge_tasks.io.tables import as_csv
from hedge_tasks.judging.designed import CANNOT_TELL, MEANINGS, NO_ANSWER, AuditPlan, PlannedStratum, digests_of
from hedge_tasks.judging.review import ReviewItem, ReviewKey, write_review
from hedge_tasks.judging.strata import strata_of
from hedge_tasks.runs.run_files import Run

KEYS = (
    ReviewKey("1", MEANINGS[0], "hallucinated"),
    ReviewKey("2", MEANINGS[1], "supported"),
    ReviewKey("3", NO_ANSWER, "no answer"),
    ReviewKey("4", CANNOT_TELL, "cannot tell"),
)
CLAIM = "Is the answer right? 1: it says what is not so. 2: it is right. 3: it gives no answer. 4: you cannot tell."

_LONGEST = 20_000
"""Characters of a text that people read; spreadsheets take no more than some 30,000."""


def make_plan(run: Run, *, n: int, seed: int = 0) -> AuditPlan:
    """Draw documents for experts, in proportion to the judge's labels; questions on one image stand together.

    Args:
        run: with the judge's labels.
        n: documents to label.
        seed: of the draw.

    Raises:
        ConfigError: there is nothing to label.
    """
    chance, sets = random.Random(seed), run.answer_sets
    strata = strata_of([answers.label for answers in sets], n)
    drawn = [sets[i] for i in strata.drawn(chance)]
    place = {block: chance.random() for block in sorted({_block(answers) for answers in drawn})}
    chance.shuffle(drawn)
    drawn.sort(key=lambda answers: place[_block(answers)])
    width = len(str(len(drawn)))
    sizes = np.bincount(strata.stratum, minlength=len(strata.titles)).tolist()
    return AuditPlan(
        task=run.task,
        model=run.model,
        created=run.created,
        seed=seed,
        strata=tuple(
            PlannedStratum(title=title, size=size, take=take)
            for title, size, take in zip(strata.titles, sizes, strata.take, strict=True)
        ),
        documents={answers.id: stratum for answers, stratum in zip(sets, strata.stratum.tolist(), strict=True)},
        codes={f"a{i:0{width}d}": answers.id for i, answers in enumerate(drawn, start=1)},
        texts=digests_of(sets),
    )


def _block(answers: AnswerSet) -> str:
    return f"document {answers.id}" if answers.group is None else f"group {answers.group}"


def write_plan(
    plan: AuditPlan,
    run: Run,
    folder: Path,
    pictures: Mapping[str, Sequence[bytes]],
    *,
    reference: bool = True,
) -> list[Path]:
    """Write the plan, and a page and a CSV for people, which say nothing of judge, scores and model; return the files.

    Args:
        folder: made if missing.
        pictures: of documents, as image files.
        reference: whether people see the right answer of the data set.

    Raises:
        DataError: a file cannot be written.
    """
    from hedge_tasks.data.pictures import picture_of

    folder.mkdir(parents=True, exist_ok=True)
    by_id = {answers.id: answers for answers in run.answer_sets}
    files = [folder / name for name in ("plan.json", "page.html", "labels.csv")]
    items, rows = [], [["code", "question", "answer", "reference", "label"]]
    for code, id in plan.codes.items():
        answers = by_id[id]
        texts = (answers.question, answers.baseline.text, answers.reference if reference else None)
        question, answer, right = (_cut(text or "") for text in texts)
        shown = {"Question": question, "Answer to judge": answer}
        items.append(ReviewItem(code, shown, CLAIM, [picture_of(file) for file in pictures.get(id, ())], right))
        rows.append([code, question, answer, right, ""])
    write_whole(files[0], plan.model_dump_json(indent=1) + "\n")
    write_review(files[1], f"Audit of {len(items)} answers", items, KEYS, labels=files[2].name, code="code")
    write_whole(files[2], as_csv(rows))
    return files


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} [... {len(text) - _LONGEST} characters more]"
