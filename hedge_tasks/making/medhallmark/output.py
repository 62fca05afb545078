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
from hedge_tasks.evaluations.medhallmark.building import build_items
from hedge_tasks.evaluations.medhallmark.released import CATEGORIES, PARTS
from hedge_tasks.making.gate.attack import Attack, AttackedItem, attack, check_floors, floor_rows
from hedge_tasks.making.gate.passing import controls_of
from hedge_tasks.making.gate.people import FOLDER, PeopleSaid, ReviewedRow, people_rows, write_queue
from hedge_tasks.making.gate.refuse import STOCK_PHRASE, Written, repeated
from hedge_tasks.making.gate.verify import check_controls
from hedge_tasks.making.medhallmark.checks import check_changed
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
        """The same without the items whose premise or answer people call right, and what was made of them."""
        kept = [one for one in self.items if not any(_is_of(one.item.id, id_) for id_ in ids)]
        left_out = len(self.items) - len(kept)
        return PassedSet(kept, {**self.refused, **({"not wrong, people say": left_out} if left_out else {})})


def _is_of(id_: str, source: str) -> bool:
    """Whether an item is this one, or was rewritten from it."""
    return re.fullmatch(rf"{re.escape(source)}(?:-r\d+)?", id_) is not None


def passed(made: Production) -> PassedSet:
    """The items of a making without texts that repeat over the set.

    Raises:
        DataError: A verifier cannot be believed.
    """
    check_controls(controls_of(made.steps))
    check_changed(made.steps)
    items = [one for row in made.rows for one in row["items"]]
    # The same question about another picture is rewritten alike: a text counts once for what it was made from.
    texts: dict[tuple[str, str, str], Written] = {}
    for one in items:
        if _is_written(one):
            key = (one.origin, one.truth, one.item.question)
            texts.setdefault(key, Written(one.item.question, f"{one.origin} {one.truth}"))
    # Many questions are put in the same form, which tells nothing of their answers; one text for all is another matter.
    found = {place for place, why in repeated(list(texts.values())).items() if why == STOCK_PHRASE}
    reasons = {key: STOCK_PHRASE for place, key in enumerate(texts) if place in found}
    refused = Counter[str]()
    kept = []
    for one in items:
        why = reasons.get((one.origin, one.truth, one.item.question)) if _is_written(one) else None
        if why is None:
            kept.append(one)
        else:
            refused[f"{one.part}: {why}"] += 1
    return PassedSet(kept, dict(refused))


def _is_written(one: MadeItem) -> bool:
    """Whether a model wrote the question."""
    return one.part != IRG and one.item.question != one.origin


def attacks_on(found: PassedSet, bound: float | None = None) -> list[Attack]:
    """Attack questions that are answered with yes or no, part by part."""
    closed = [
        AttackedItem(said[1].capitalize(), full_question(one.item), group=one.item.image, stratum=f"yes/no, {one.part}")
        for one in found.items
        if one.part not in (COUNTERFACTUAL, IRG) and (said := _CLOSED.match(one.item.reference))
    ]
    return attack(closed, bound=bound)


def attacks_on_premises(found: PassedSet) -> list[Attack]:
    """Attack the premises: solvers that tell counterfactual questions from the others without a picture.

    The paper's construction has no true premise in the form of a false one, so that the wording tells: the card says
    so. Where there are twins, these are what false premises are to be told from.
    """
    twins = any(one.twin for one in found.items)
    items = [
        AttackedItem(
            FALSE if one.part == COUNTERFACTUAL and not one.twin else HOLDS, one.item.question, group=one.item.image
        )
        for one in found.items
        if (one.part == COUNTERFACTUAL if twins else one.part in (CONVENTIONAL, COUNTERFACTUAL))
    ]
    return attack(items) if any(item.label == FALSE for item in items) else []


def reviewed_rows(found: PassedSet) -> list[ReviewedRow]:
    """Rows that people look at: premises that are to be false, and answers that are to be wrong, among true ones."""
    rows = []
    for one in found.items:
        item = one.item
        if one.part == COUNTERFACTUAL and not one.rewritten and not one.twin:
            rows.append(ReviewedRow(item.id, one.origin, one.truth, item.question, one.truth))
        elif item.answer is not None and item.category != "correct":
            rows.append(ReviewedRow(item.id, item.question, one.truth, item.answer, one.truth))
    return rows


def write_review_pages(folder: Path, found: PassedSet, *, n: int, seed: int) -> bool:
    """Write the queue of a made set; whether there is anything to look at."""
    rows = reviewed_rows(found)
    if rows:
        write_queue(folder / FOLDER, "Medical questions", rows, n=n, seed=seed)
    return bool(rows)


def tables_of_set(found: PassedSet, made: Production) -> dict[str, tuple[Sequence[str], list[list[str]]]]:
    """Return the composition of the set: header and rows by title."""
    parts = [part for part in PARTS if any(one.part == part for one in found.items)]
    kinds = [*DIMENSIONS, ""]
    pairs = Counter((one.part, one.dimension) for one in found.items)
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
    levels = Counter(one.item.category for one in found.items if one.item.answer is not None)
    prefixes = Counter(one.item.prefix for one in found.items if one.item.prefix)
    removed = {step: n for step, n in made.steps.items() if step.startswith("sentence removed: ")}
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
    if premises := attacks_on_premises(found):
        tables["What tells a false premise without the picture"] = floor_rows(premises)
    return tables


def warnings_of_set(found: PassedSet) -> list[str]:
    """Return what a user has to know."""
    warnings = []
    for one in attacks_on_premises(found):
        if one.open and one.floor is not None:
            warnings.append(
                f"the wording alone ({one.floor[0]}) tells counterfactual questions from others: a model that corrects "
                "whatever is worded like one needs no picture there (--twins adds true premises of the same form)"
            )
    levels = sum(one.item.answer is not None and one.item.category is None for one in found.items)
    if levels:
        warnings.append(f"{levels} wrong answers have no level: give --judge, or let people say it")
    return warnings


def write_medhallmark(
    folder: Path,
    making: MedHallMark,
    made: Production,
    found: PassedSet,
    *,
    licence: str | None,
    sources: Sequence[str],
    bound: float | None = None,
    people: PeopleSaid | None = None,
) -> BuiltSet:
    """Write the data set, its card and its report.

    Raises:
        DataError: Nothing was accepted, a solver without skill is above its bound, or the folder cannot be written.
    """
    attacks = attacks_on(found, bound)
    check_floors(attacks)
    if not found.items:
        reasons = ", ".join(f"{n} × {why}" for why, n in sorted({**made.rejected, **found.refused}.items()))
        raise DataError(f"no row was accepted ({reasons or 'there is none'}); nothing is written")
    by_part = {part: [one.item for one in found.items if one.part == part] for part in PARTS}
    built = build_items({part: items for part, items in by_part.items() if items}, making.read_image, folder)
    files = {name: str(file.relative_to(folder)) for one in built.values() for name, file in one.files.items()}
    tables = tables_of_set(found, made) | ({} if people is None else {"What people say": people_rows(people)})
    settings = {**making.settings(), "sources": list(sources)}
    writers = [] if making.writer is None else [making.writer.name]
    about = CardText(
        "Med-HallMark, made again", licence, _SUMMARY, settings, attacks, warnings_of_set(found), tables, writers
    )
    describe_set(folder, report_of(made, found), about, {name.partition("/")[0]: file for name, file in files.items()})
    return BuiltSet(
        {name: folder / file for name, file in files.items()},
        {name: n for one in built.values() for name, n in one.rows.items()},
        len(found.items),
        sum(one.built for one in built.values()),
        (),
        (),
    )


def report_of(made: Production, found: PassedSet) -> dict[str, Any]:
    """The report of a making, with what the gate left out over the whole set."""
    report = made.report()
    parts = Counter(one.part for one in found.items)
    return {**report, "items": {part: parts[part] for part in PARTS}, "refused over the set": dict(found.refused)}


def with_images(rows: Sequence[Row], fault: Callable[[str], str | None]) -> tuple[list[Row], dict[str, int]]:
    """Rows whose image can be read, and how many cannot, by reason.

    Args:
        fault: Name of an image -> what is wrong with it; None for nothing.
    """
    faults = {name: fault(name) for name in dict.fromkeys(row.image for row in rows)}
    counts = Counter(why for row in rows if (why := faults[row.image]) is not None)
    return [row for row in rows if faults[row.image] is None], dict(sorted(counts.items()))
