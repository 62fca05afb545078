"""SHALE's audit by people (appendix): pictures of the finished set, drawn at random, and whether they fit.

The paper looks at 500 pictures for two things: whether the content fits the prompt, and whether the picture may mislead
to wrong answers. Here two people do, who are not told which of the pictures are controls: shown with the prompt and
questions of another scene, these fit nothing. What the paper calls minor issues (less than 5 %) is its own key.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hedge_tasks.adjudication.designed import PlannedItem
from hedge_tasks.audit.review import ReviewItem, ReviewKey, write_review
from hedge_tasks.errors import DataError, unknown
from hedge_tasks.evaluations.shale.items import ShaleItem
from hedge_tasks.io import outside
from hedge_tasks.io.files import write_whole
from hedge_tasks.making.gate.people import LEAST_RIGHT, QUEUE, RATERS, ReviewQueue, label_noise
from hedge_tasks.making.shale.items import image_name
from hedge_tasks.making.shale.making import MadeSet
from hedge_tasks.numbers import Column, Number, Table
from hedge_tasks.numbers.table import Cell
from hedge_tasks.statistics.base import wilson

FOLDER = "audit"
SAMPLE = 500
"""Of the paper."""

FITS, MINOR, MISFIT = "fits", "minor", "misfit"
KEYS = (
    ReviewKey("1", FITS, "fits: it shows this, and misleads nobody"),
    ReviewKey("2", MINOR, "minor: it fits, with distortions or artifacts"),
    ReviewKey("3", MISFIT, "does not fit: something is missing or wrong, or it may mislead to a wrong answer"),
)
CLAIM = "Does the picture fit its prompt, and are these answers right for it?"


def write_audit(folder: Path, made: MadeSet, *, n: int = SAMPLE, seed: int = 0) -> list[Path]:
    """Draw pictures of the set, a fifth as many controls among them, and write a page for each of two people.

    Args:
        folder: Of the pages; `queue.json` in it knows the controls and is kept away from the people.

    Returns:
        The files, the queue first.

    Raises:
        DataError: The set has fewer than two scenes, or a file cannot be written.
    """
    asked: dict[str, list[ShaleItem]] = {}
    for item in made.items:
        asked.setdefault(item.image, []).append(item)
    places = {
        image_name(number, scenario): (number, scenario)
        for number, one in enumerate(made.shown)
        for scenario in one.pictures
    }
    names = sorted(name for name in asked if name in places)
    chance = random.Random(f"{seed}/{len(names)}")
    drawn = chance.sample(names, min(n, len(names)))
    shown = [(name, name) for name in drawn]
    for name in chance.sample(drawn, max(1, len(drawn) // 5)) if drawn else ():
        if others := _other_scenes(name, names, asked):
            shown.append((name, chance.choice(others)))
    if len(shown) == len(drawn):
        raise DataError("an audit needs scenes with different answers: there is no control among these")
    chance.shuffle(shown)
    width = len(str(len(shown)))
    codes = [f"p{number:0{width}d}" for number in range(1, len(shown) + 1)]
    items = tuple(
        PlannedItem(
            code=code,
            id=picture if picture == told else None,
            label=None if picture == told else 1,
            raters=tuple(range(RATERS)),
        )
        for code, (picture, told) in zip(codes, shown, strict=True)
    )
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / QUEUE]
    queue = ReviewQueue(hedge_review=1, size=len(names), items=items)
    write_whole(files[0], queue.model_dump_json(indent=1) + "\n")
    pages = []
    for code, (picture, told) in zip(codes, shown, strict=True):
        number, scenario = places[picture]
        scene = made.shown[places[told][0]].scene
        questions = "\n\n".join(f"{item.question}\nRight answer: {item.answer}" for item in asked[told])
        image = made.shown[number].pictures[scenario].open()
        pages.append(ReviewItem(code, {"Prompt": scene.prompt, "Questions": questions}, CLAIM, [image]))
    for rater in range(RATERS):
        order = list(pages)
        random.Random(f"{seed}/{rater}").shuffle(order)
        path = folder / f"page-{rater + 1}.html"
        write_review(
            path, f"SHALE: do these fit?, {rater + 1}", order, KEYS, labels=f"labels-{rater + 1}.csv", code="code"
        )
        files.append(path)
    return files


def _other_scenes(name: str, names: Sequence[str], asked: Mapping[str, Sequence[ShaleItem]]) -> list[str]:
    """Pictures of other aspects with other right answers; of the same aspect where there is none."""
    mine, aspect = {item.answer for item in asked[name]}, asked[name][0].aspect
    others = [other for other in names if not mine & {i.answer for i in asked[other] if i.task not in ("ynq", "mcq")}]
    others = [other for other in others if {i.question for i in asked[other]} != {i.question for i in asked[name]}]
    return [other for other in others if asked[other][0].aspect != aspect] or others


@dataclass(frozen=True)
class PictureAudit:
    """Verdicts of people on the pictures of a set.

    Attributes:
        misfit: Share of the set's pictures that do not fit, with an exact interval.
        minor: Share with minor issues or worse.
        controls: By person: controls called misfits, and all that were labelled.
        looked_at: Pictures with a label.
        misfits: Names of those that all who looked call misfits.
    """

    misfit: Number
    minor: Number
    controls: Mapping[str, tuple[int, int]]
    looked_at: int
    misfits: frozenset[str]

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "misfit": self.misfit.to_dict(),
            "minor": self.minor.to_dict(),
            "controls": {name: list(counts) for name, counts in self.controls.items()},
            "looked_at": self.looked_at,
            "misfits": sorted(self.misfits),
        }


def read_audit(folder: Path, files: Sequence[Path]) -> PictureAudit:
    """Labels that came back, one file a person, held against the queue.

    Raises:
        DataError: There is no queue, a code or a label is unknown, or a person is surely below `LEAST_RIGHT` of the
            controls.
    """
    path = folder / QUEUE
    if not path.is_file():
        raise DataError(f"there is no queue {path}: write it with --audit")
    queue = ReviewQueue.read(outside.parse_json(outside.read_text(path), str(path)), str(path))
    by_code = {item.code: item for item in queue.items}
    of_picture: dict[str, list[str]] = {}
    controls: dict[str, tuple[int, int]] = {}
    for file in files:
        right = n = 0
        for code, label in _labels(file, by_code):
            if (name := by_code[code].id) is not None:
                of_picture.setdefault(name, []).append(label)
            else:
                right, n = right + (label == MISFIT), n + 1
        if n and wilson(right / n, n, 0.95)[1] < LEAST_RIGHT:
            raise DataError(f"{file}: {right} of {n} hidden controls are seen: these labels cannot be used")
        controls[file.name] = (right, n)
    misfit, minor = (_share(of_picture, bad, queue.size) for bad in ({MISFIT}, {MISFIT, MINOR}))
    misfits = frozenset(name for name, said in of_picture.items() if set(said) == {MISFIT})
    return PictureAudit(misfit, minor, controls, len(of_picture), misfits)


def _labels(file: Path, known: Mapping[str, PlannedItem]) -> list[tuple[str, str]]:
    found: dict[str, str] = {}
    for number, row in enumerate(csv.DictReader(outside.read_text(file).splitlines()), start=2):
        code, label = str(row.get("code") or ""), str(row.get("label") or "")
        if code not in known:
            raise DataError(f"{file}:{number}: {code!r} is no picture of this audit")
        if code in found:
            raise DataError(f"{file}:{number}: {code!r} is labelled twice")
        if label and label not in (FITS, MINOR, MISFIT):
            raise DataError(f"{file}:{number}: {unknown('label', label, (FITS, MINOR, MISFIT))}")
        if label:
            found[code] = label
    return list(found.items())


def _share(said: Mapping[str, Sequence[str]], bad: set[str], size: int) -> Number:
    """Pictures that all who looked call bad, and half of those about which they disagree."""
    agreed = sum(set(labels) <= bad for labels in said.values())
    disputed = sum(bool(set(labels) & bad) and not set(labels) <= bad for labels in said.values())
    return label_noise(agreed, disputed, len(said), size)


def audit_table(found: PictureAudit) -> Table:
    """The audit beside what the paper says of its own."""
    columns = [Column("what", " "), Column("value", interval=True), Column("n", show="n", of="value"), Column("paper")]
    rows: list[dict[str, Cell]] = [
        {"what": "pictures that do not fit", "value": found.misfit, "paper": "nearly all fit"},
        {"what": "with minor issues, or not fitting", "value": found.minor, "paper": "fewer than 5 % minor issues"},
    ]
    notes = [f"{name}: {right} of {n} controls seen" for name, (right, n) in sorted(found.controls.items())]
    return Table(columns, rows, title="Pictures of the set, as people see them", notes=notes)
