"""The made set: what of it passes the gate, the files that `hedge_medhallmark` reads, the card, people's queue."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hedge_tasks.data.local_data import BuiltSet
from hedge_tasks.errors import DataError
from hedge_tasks.making.gate.attack import Attack, AttackedItem, attack, check_floors, floor_rows
from hedge_tasks.making.gate.controls import CHANGED_QUESTIONS, TRUTHS
from hedge_tasks.making.gate.people import FOLDER, PeopleVerdicts, ReviewedRow, people_tables, write_queue
from hedge_tasks.making.gate.refuse import STOCK_PHRASE, Written, repeated
from hedge_tasks.making.medhallmark.pipeline import (
    CONVENTIONAL,
    COUNTERFACTUAL,
    IRG,
    MadeItem,
    MedHallMark,
    full_question,
)
from hedge_tasks.making.medhallmark.sources import DIMENSIONS, Row
from hedge_tasks.making.output import CardText, describe_set
from hedge_tasks.making.production import Production
from hedge_tasks.suites.medhallmark.building import build_items
from hedge_tasks.suites.medhallmark.released import CATEGORIES, PARTS

_SUMMARY = (
    "Questions about medical images with their true answers, the same behind prefixes that weaken confidence, "
    "counterfactual questions with responses that correct their premise, and cleaned reports, by the construction of "
    "Med-HallMark (section 3.4). Name this folder in HEDGE_DATA_DIR, and the tasks hedge_medhallmark read it. "
    "`judged_category` is what verifiers and a judge say, and not what doctors say. Images have licences of their own."
)
_CLOSED = re.compile(r"\s*(yes|no)\b", re.IGNORECASE)
_PUBLISHED = {"conventional": 2871, "confidence": 1350, "counterfactual": 1320, "irg": 1800}
"""Items of the paper's set (section 3.4)."""

HOLDS, FALSE = "premise holds", "premise is false"


@dataclass(frozen=True)
class PassedSet:
    """Items of a making that pass the gate.

    Attributes:
        items: In the order of the sources.
        refused: How many were left out over the whole set, by reason.
    """

    items: Sequence[MadeItem]
    refused: Mapping[str, int]

    def without(self, ids: frozenset[str]) -> PassedSet:
        """Return the set without the items whose premise or answer people call right, and what was made of them."""
        remaining = [entry for entry in self.items if not any(_derives_from(entry.item.id, id_) for id_ in ids)]
        left_out = len(self.items) - len(remaining)
        return PassedSet(remaining, {**self.refused, **({"not wrong, people say": left_out} if left_out else {})})


def _derives_from(id_: str, source: str) -> bool:
    """Whether an item is this one, or was rewritten from it."""
    return re.fullmatch(rf"{re.escape(source)}(?:-r\d+)?", id_) is not None


def passing_items(production: Production) -> PassedSet:
    """The items of a making without texts that repeat over the set.

    Raises:
        DataError: A verifier cannot be believed.
    """
    TRUTHS.check(production.steps)
    CHANGED_QUESTIONS.check(production.steps)
    items = [entry for row in production.rows for entry in row["items"]]
    # The same question about another picture is rewritten alike: a text counts once for what it was made from.
    texts: dict[tuple[str, str, str], Written] = {}
    for entry in items:
        if _is_written(entry):
            key = (entry.origin, entry.truth, entry.item.question)
            texts.setdefault(key, Written(entry.item.question, f"{entry.origin} {entry.truth}"))
    # Many questions are put in the same form, which tells nothing of their answers; one text for all is another matter.
    repeats = {place for place, why in repeated(list(texts.values())).items() if why == STOCK_PHRASE}
    reasons = {key: STOCK_PHRASE for place, key in enumerate(texts) if place in repeats}
    refused = Counter[str]()
    remaining = []
    for entry in items:
        why = reasons.get((entry.origin, entry.truth, entry.item.question)) if _is_written(entry) else None
        if why is None:
            remaining.append(entry)
        else:
            refused[f"{entry.part}: {why}"] += 1
    return PassedSet(remaining, dict(refused))


def _is_written(entry: MadeItem) -> bool:
    """Whether a model wrote the question."""
    return entry.part != IRG and entry.item.question != entry.origin


def attacks_on(passed_set: PassedSet, bound: float | None = None) -> list[Attack]:
    """Attack questions that are answered with yes or no, part by part."""
    closed = [
        AttackedItem(match[1].capitalize(), full_question(item), group=item.image, stratum=f"yes/no, {entry.part}")
        for entry in passed_set.items
        for item in [entry.item]
        if entry.part not in (COUNTERFACTUAL, IRG) and (match := _CLOSED.match(item.reference))
    ]
    return attack(closed, bound=bound)


def attacks_on_premises(passed_set: PassedSet) -> list[Attack]:
    """Attack the premises: solvers that tell counterfactual questions from the others without a picture.

    The paper's construction has no true premise in the form of a false one, so that the wording tells: the card says
    so. Where there are twins, these are what false premises are to be told from.
    """
    twins = any(entry.twin for entry in passed_set.items)
    items = [
        AttackedItem(
            FALSE if entry.part == COUNTERFACTUAL and not entry.twin else HOLDS,
            entry.item.question,
            group=entry.item.image,
        )
        for entry in passed_set.items
        if (entry.part == COUNTERFACTUAL if twins else entry.part in (CONVENTIONAL, COUNTERFACTUAL))
    ]
    return attack(items) if any(item.label == FALSE for item in items) else []


def reviewed_rows(passed_set: PassedSet) -> list[ReviewedRow]:
    """Rows that people look at: premises that are to be false, and answers that are to be wrong, among true ones."""
    rows = []
    for entry in passed_set.items:
        item = entry.item
        if entry.part == COUNTERFACTUAL and not entry.rewritten and not entry.twin:
            rows.append(ReviewedRow(item.id, entry.origin, entry.truth, item.question, entry.truth))
        elif item.answer is not None and item.category != "correct":
            rows.append(ReviewedRow(item.id, item.question, entry.truth, item.answer, entry.truth))
    return rows


def write_review_pages(folder: Path, passed_set: PassedSet, *, n: int, seed: int) -> bool:
    """Write the queue of a made set; whether there is anything to look at."""
    rows = reviewed_rows(passed_set)
    if rows:
        write_queue(folder / FOLDER, "Medical questions", rows, n=n, seed=seed)
    return bool(rows)


def tables_of_set(passed_set: PassedSet, production: Production) -> dict[str, tuple[Sequence[str], list[list[str]]]]:
    """Return the composition of the set: header and rows by title."""
    parts = [part for part in PARTS if any(entry.part == part for entry in passed_set.items)]
    kinds = [*DIMENSIONS, ""]
    pairs = Counter((entry.part, entry.dimension) for entry in passed_set.items)
    named = {"": "not said, or a report"}
    by_dimension = [
        [
            part,
            *(str(pairs[part, kind]) for kind in kinds),
            str(sum(pairs[part, kind] for kind in kinds)),
            f"{_PUBLISHED[part]:,}",
        ]
        for part in parts
    ]
    levels = Counter(entry.item.category for entry in passed_set.items if entry.item.answer is not None)
    prefixes = Counter(entry.item.prefix for entry in passed_set.items if entry.item.prefix)
    removed = {step: n for step, n in production.steps.items() if step.startswith("sentence removed: ")}
    tables: dict[str, tuple[Sequence[str], list[list[str]]]] = {
        "Items by part and dimension": (
            ("part", *(named.get(kind, kind) for kind in kinds), "all", "in the paper"),
            by_dimension,
        ),
        "Answers of the model by level": (
            ("level", "answers"),
            [[name or "left to people", str(levels[name])] for name in (*CATEGORIES, None)],
        ),
        "Prefixes": (("prefix", "items"), [[prefix, str(n)] for prefix, n in sorted(prefixes.items())]),
        "Sentences removed from reports": (
            ("why", "sentences"),
            [[step.removeprefix("sentence removed: "), str(n)] for step, n in sorted(removed.items())],
        ),
    }
    if premises := attacks_on_premises(passed_set):
        tables["What tells a false premise without the picture"] = floor_rows(premises)
    return tables


def warnings_of_set(passed_set: PassedSet) -> list[str]:
    """Return what a user has to know."""
    warnings = []
    for result in attacks_on_premises(passed_set):
        if result.open and result.floor is not None:
            warnings.append(
                f"the wording alone ({result.floor[0]}) tells counterfactual questions from others: a model that "
                "corrects whatever is worded like one needs no picture there (--twins adds true premises of the same "
                "form)"
            )
    levels = sum(entry.item.answer is not None and entry.item.category is None for entry in passed_set.items)
    if levels:
        warnings.append(f"{levels} wrong answers have no level: give --judge, or let people say it")
    return warnings


def write_medhallmark(
    folder: Path,
    making: MedHallMark,
    production: Production,
    passed_set: PassedSet,
    *,
    licence: str | None,
    sources: Sequence[str],
    bound: float | None = None,
    people: PeopleVerdicts | None = None,
) -> BuiltSet:
    """Write the data set, its card and its report.

    Raises:
        DataError: Nothing was accepted, a solver without skill is above its bound, or the folder cannot be written.
    """
    attacks = attacks_on(passed_set, bound)
    check_floors(attacks)
    if not passed_set.items:
        reasons = ", ".join(f"{n} × {why}" for why, n in sorted({**production.rejected, **passed_set.refused}.items()))
        raise DataError(f"no row was accepted ({reasons or 'there is none'}); nothing is written")
    by_part = {part: [entry.item for entry in passed_set.items if entry.part == part] for part in PARTS}
    built = build_items({part: items for part, items in by_part.items() if items}, making.read_image, folder)
    files = {name: str(file.relative_to(folder)) for part in built.values() for name, file in part.files.items()}
    tables = tables_of_set(passed_set, production) | people_tables(people)
    settings = {**making.settings(), "sources": list(sources)}
    writers = [] if making.writer is None else [making.writer.name]
    card = CardText(
        "Med-HallMark, made again", licence, _SUMMARY, settings, attacks, warnings_of_set(passed_set), tables, writers
    )
    describe_set(
        folder, report_of(production, passed_set), card, {name.partition("/")[0]: file for name, file in files.items()}
    )
    return BuiltSet(
        {name: folder / file for name, file in files.items()},
        {name: n for part in built.values() for name, n in part.rows.items()},
        len(passed_set.items),
        sum(part.built for part in built.values()),
        (),
        (),
    )


def report_of(production: Production, passed_set: PassedSet) -> dict[str, Any]:
    """The report of a making, with what the gate left out over the whole set."""
    report = production.report()
    parts = Counter(entry.part for entry in passed_set.items)
    return {**report, "items": {part: parts[part] for part in PARTS}, "refused over the set": dict(passed_set.refused)}


def with_images(rows: Sequence[Row], fault: Callable[[str], str | None]) -> tuple[list[Row], dict[str, int]]:
    """Rows whose image can be read, and how many cannot, by reason.

    Args:
        fault: Name of an image -> what is wrong with it; None for nothing.
    """
    faults = {name: fault(name) for name in dict.fromkeys(row.image for row in rows)}
    counts = Counter(why for row in rows if (why := faults[row.image]) is not None)
    return [row for row in rows if faults[row.image] is None], dict(sorted(counts.items()))
