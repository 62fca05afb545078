"""The plan of an audit: which documents of a run experts label, in which order, and what width that buys."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.errors import ConfigError
from hedge_tasks.io.files import write_whole
from hedge_tasks.io.tables import as_csv
from hedge_tasks.judging.designed import FORMAT, MEANINGS, NO_ANSWER, AuditPlan, PlannedItem, PlannedStratum
from hedge_tasks.judging.outcomes import outcome_of
from hedge_tasks.judging.review import ReviewItem, ReviewKey, write_review
from hedge_tasks.judging.strata import Strata, expected_width, strata_of, strata_of_images
from hedge_tasks.replies.reading import SOFT
from hedge_tasks.runs.run_files import Run
from hedge_tasks.statistics.base import IntArray, codes_of
from hedge_tasks.statistics.designs import LEAST

KEYS = (
    ReviewKey("1", MEANINGS[0], "hallucinated"),
    ReviewKey("2", MEANINGS[1], "supported"),
    ReviewKey("3", NO_ANSWER, "no answer"),
)
CLAIM = (
    "Is the answer right? 1: it says something that is not so. 2: it is right. 3: it gives no answer. j: you cannot "
    "tell."
)

WIDTHS = (50, 100, 200)
"""Numbers of labels of which a plan says what they buy."""

_SHARED = 0.2
"""Share of the documents that two people label both."""

_CONTROLS = 0.05
"""Answers with a known label, as a share of the labels."""

_LONGEST = 20_000
"""Characters of a text that people read; spreadsheets take no more than some 30,000."""

_OPPOSITE = {"yes": "no", "no": "yes"}


class ShownItem(NamedTuple):
    """Fields of an item that a person sees; score, judge and model are hidden."""

    code: str
    question: str
    answer: str
    reference: str | None
    document: str


class Planned(NamedTuple):
    """A plan with what people see.

    Attributes:
        plan: as it is kept.
        shown_items: by code.
        widths: number of labels -> width of the 95 % interval to expect.
    """

    plan: AuditPlan
    shown_items: Mapping[str, ShownItem]
    widths: Mapping[int, float]


def make_plan(
    run: Run,
    scores: Sequence[Scores],
    *,
    detector: str,
    filter_name: str,
    n: int,
    purpose: str = "auroc",
    against: str | None = None,
    raters: int = 1,
    reference: bool = True,
    whole: bool = False,
    seed: int = 0,
) -> Planned:
    """Draw documents for experts.

    Args:
        run: with the judge's labels.
        scores: of its documents, in their order.
        detector: whose scores count.
        filter_name: the clustering that they are of.
        n: documents to label, controls not counted.
        purpose: see `hedge_tasks.judging.strata.PURPOSES`.
        against: the detector to compare with, for "compare".
        raters: one or two people.
        reference: whether they see the right answer of the data set.
        whole: whether images are drawn with all of their documents, so that fewer of them are looked at.
        seed: of the draw.

    Raises:
        ConfigError: the options make no sense.
    """
    if raters not in (1, 2):
        raise ConfigError(f"--raters is 1 or 2, got {raters}")
    if len(scores) != len(run.answer_sets) or not scores:
        raise ConfigError("there are no documents to label")
    chance = random.Random(seed)
    sets = run.answer_sets
    images = _images(sets) if whole else None
    strata, widths = _strata(run, scores, detector, n, purpose, against, images)
    units = np.arange(len(sets)) if images is None else images
    chosen_documents: list[int] = []
    for stratum, take in enumerate(strata.take):
        chosen = chance.sample(np.unique(units[strata.stratum == stratum]).tolist(), take)
        chosen_documents += np.flatnonzero(np.isin(units, chosen)).tolist() if whole else chosen
    controls = _controls(
        [a for i, a in enumerate(sets) if i not in set(chosen_documents)], math.ceil(_CONTROLS * n), chance
    )
    entries: list[tuple[AnswerSet, str | None, int | None]] = [
        *((sets[i], None, None) for i in chosen_documents),
        *((answers, text, label) for answers, text, label in controls),
    ]
    items, by_code = [], {}
    blocks: dict[str, int] = {}
    width = len(str(len(entries)))
    for i, (answers, text, label) in enumerate(_shuffled(entries, chance), start=1):
        code = f"a{i:0{width}d}"
        both = raters == 2 and (label is not None or chance.random() < _SHARED)
        # One person sees all questions on an image.
        block = blocks.setdefault(_block(answers), len(blocks))
        share = tuple(range(raters)) if both or raters == 1 else (block % 2,)
        items.append(PlannedItem(code=code, id=None if label is not None else answers.id, label=label, raters=share))
        text_shown = answers.baseline.text if text is None else text
        right = _cut(answers.reference) if reference and answers.reference else None
        by_code[code] = ShownItem(code, _cut(answers.question or ""), _cut(text_shown), right, answers.id)
    sizes = [len(np.unique(units[strata.stratum == stratum])) for stratum in range(len(strata.titles))]
    plan = AuditPlan(
        hedge_audit=FORMAT,
        task=run.task,
        model=run.model,
        created=run.created,
        purpose=purpose,
        detector=detector,
        filter=filter_name,
        seed=seed,
        strata=tuple(
            PlannedStratum(title=title, size=size, take=take)
            for title, size, take in zip(strata.titles, sizes, strata.take, strict=True)
        ),
        documents={answers.id: int(stratum) for answers, stratum in zip(sets, strata.stratum, strict=True)},
        units={} if images is None else {a.id: image for a, image in zip(sets, images.tolist(), strict=True)},
        items=tuple(items),
    )
    return Planned(plan, by_code, widths)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} [... {len(text) - _LONGEST} characters more]"


def basis_of(verdict: Mapping[str, object] | None) -> str:
    """Return what a label rests on: how the reply was read, or the judge's own rule."""
    fields = verdict or {}
    if fields.get("label") is None and fields.get("basis"):
        return outcome_of(fields)
    if fields.get("basis") in SOFT:
        return "read softly"
    rule, colon, _ = str(fields.get("reason") or "").partition(":")
    return rule if colon and rule.replace("-", "_").isidentifier() else ""


def _images(sets: Sequence[AnswerSet]) -> IntArray:
    """Number of the image of each document; one without an image stands for itself."""
    if all(answers.group is None for answers in sets):
        raise ConfigError("--whole: no two documents share an image or another group")
    return codes_of([_block(answers) for answers in sets], len(sets), "groups")


def _block(answers: AnswerSet) -> str:
    return f"document {answers.id}" if answers.group is None else f"group {answers.group}"


def _strata(
    run: Run,
    scores: Sequence[Scores],
    detector: str,
    n: int,
    purpose: str,
    against: str | None,
    images: IntArray | None,
) -> tuple[Strata, dict[int, float]]:
    """The strata of all documents; those without a score are one of their own, unless images are drawn whole."""
    values = [s[detector] for s in scores]
    others = [0.0 if against is None else s[against] for s in scores]
    has_score = np.array([a is not None and b is not None for a, b in zip(values, others, strict=True)])
    if not has_score.any():
        raise ConfigError(f"no document has a score of {detector}")
    if images is not None:
        return _strata_of_images(run, values, others if against is not None else None, has_score, images, n, purpose)
    n_without = int((~has_score).sum())
    of_rest = min(n_without, max(LEAST, round(0.5 * n * n_without / len(has_score)))) if n_without else 0
    places = np.flatnonzero(has_score).tolist()
    x, other_scores = (np.array([column[i] for i in places], dtype=np.float64) for column in (values, others))
    judged = [run.answer_sets[i].label for i in places]
    basis = [basis_of(run.verdicts.get(run.answer_sets[i].id)) for i in places]
    second = None if against is None else other_scores
    scored_strata = strata_of(x, judged, basis, n - of_rest, purpose=purpose, other=second)
    widths = {
        k: expected_width(x, judged, strata_of(x, judged, basis, k, purpose=purpose, other=second), purpose, second)
        for k in sorted({*WIDTHS, n})
        if k <= len(places)
    }
    column = np.full(len(has_score), len(scored_strata.titles), dtype=np.int64)
    column[has_score] = scored_strata.stratum
    if not n_without:
        return Strata(column, scored_strata.titles, scored_strata.take), widths
    return Strata(column, (*scored_strata.titles, "without a score"), (*scored_strata.take, of_rest)), widths


def _strata_of_images(
    run: Run,
    values: Sequence[float | None],
    others: Sequence[float | None] | None,
    there: np.ndarray,
    images: IntArray,
    n: int,
    purpose: str,
) -> tuple[Strata, dict[int, float]]:
    """The strata of all images; a document without a score counts as one in the middle."""

    def filled(of: Sequence[float | None]) -> np.ndarray:
        x = np.array([math.nan if value is None else value for value in of], dtype=np.float64)
        return np.where(there, x, np.median(x[there]))

    x, other_scores = filled(values), None if others is None else filled(others)
    judged = [answers.label for answers in run.answer_sets]
    widths = {}
    for k in sorted({*WIDTHS, n}):
        if k > len(judged):
            continue
        try:
            strata = strata_of_images(x, judged, images, k, purpose=purpose, other=other_scores)
        except ConfigError:
            if k == n:
                raise
            continue  # too few labels for whole images
        widths[k] = expected_width(x, judged, strata, purpose, other_scores, images)
    return strata_of_images(x, judged, images, n, purpose=purpose, other=other_scores), widths


def _controls(answers: Sequence[AnswerSet], n: int, chance: random.Random) -> list[tuple[AnswerSet, str, int]]:
    """Return answers with a certain label: the reference itself, or the opposite where it is yes or no."""
    answerable = [a for a in answers if a.reference and a.question]
    chosen = chance.sample(answerable, min(n, len(answerable)))
    controls = []
    for i, answer_set in enumerate(chosen):
        words = str(answer_set.reference).strip().rstrip(".").casefold()
        wrong = _OPPOSITE.get(words) if i % 2 else None
        controls.append((answer_set, str(answer_set.reference), 0) if wrong is None else (answer_set, wrong, 1))
    return controls


def _shuffled(
    entries: Sequence[tuple[AnswerSet, str | None, int | None]], chance: random.Random
) -> list[tuple[AnswerSet, str | None, int | None]]:
    """Return the entries in random order, questions on one image together."""
    groups: dict[str, list[tuple[AnswerSet, str | None, int | None]]] = {}
    for entry in entries:
        groups.setdefault(_block(entry[0]), []).append(entry)
    blocks = list(groups.values())
    chance.shuffle(blocks)
    for block in blocks:
        chance.shuffle(block)
    return [entry for block in blocks for entry in block]


def write_plan(planned: Planned, folder: Path, pictures: Mapping[str, Sequence[bytes]]) -> list[Path]:
    """Write the plan, and for each person a page and a CSV; return the files, the plan first.

    Args:
        folder: made if missing.
        pictures: of documents, as image files.

    Raises:
        DataError: a file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    plan = planned.plan
    files = [folder / "plan.json"]
    write_whole(files[0], plan.model_dump_json(indent=1) + "\n")
    for rater in sorted({rater for item in plan.items for rater in item.raters}):
        share = [planned.shown_items[item.code] for item in plan.items if rater in item.raters]
        name = f"labels-{rater + 1}"
        page, table = folder / f"page-{rater + 1}.html", folder / f"{name}.csv"
        # Of the run the title says nothing.
        share_of = f", share {rater + 1}" if max(item.raters[-1] for item in plan.items) else ""
        title = f"Audit {plan.seed}-{len(plan.items)}{share_of}"
        items = [
            ReviewItem(a.code, _texts(a), CLAIM, [_opened(file) for file in pictures.get(a.document, ())])
            for a in share
        ]
        write_review(page, title, items, KEYS, labels=f"{name}.csv", code="code")
        header = ["code", "question", "answer", "reference", "label"]
        write_whole(table, as_csv([header, *([a.code, a.question, a.answer, a.reference, ""] for a in share)]))
        files += [page, table]
    return files


def _texts(item: ShownItem) -> dict[str, str]:
    right = {} if item.reference is None else {"Right answer, by the data set": item.reference}
    return {"Question": item.question, "Answer to judge": item.answer, **right}


def _opened(file: bytes) -> object:
    from hedge_tasks.data.pictures import picture_of

    return picture_of(file)
