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

from hedge_tasks.errors import DataError, unknown
from hedge_tasks.io import outside
from hedge_tasks.judging.designed import PlannedItem
from hedge_tasks.judging.review import ReviewKey
from hedge_tasks.making.gate.controls import surely_below
from hedge_tasks.making.gate.people import label_noise
from hedge_tasks.making.gate.queue import LEAST_RIGHT, QueueEntry, read_queue, write_pages
from hedge_tasks.making.shale.items import pictures_by_name
from hedge_tasks.making.shale.making import MadeSet
from hedge_tasks.numbers import Column, Number, Table
from hedge_tasks.numbers.table import Cell
from hedge_tasks.suites.shale.items import ShaleItem

FOLDER = "audit"
SAMPLE = 500
"""Pictures that the paper looks at."""

FITS, MINOR, MISFIT = "fits", "minor", "misfit"
KEYS = (
    ReviewKey("1", FITS, "fits: it shows this, and misleads nobody"),
    ReviewKey("2", MINOR, "minor: it fits, with distortions or artifacts"),
    ReviewKey("3", MISFIT, "does not fit: something is missing or wrong, or it may mislead to a wrong answer"),
)
CLAIM = "Does the picture fit its prompt, and are these answers right for it?"


def write_audit(folder: Path, made_set: MadeSet, *, n: int = SAMPLE, seed: int = 0) -> list[Path]:
    """Draw pictures of the set, a fifth as many controls among them, and write a page for each of two people.

    Args:
        folder: Of the pages; `queue.json` in it knows the controls and is kept away from the people.

    Returns:
        The files, the queue first.

    Raises:
        DataError: The set has fewer than two scenes, or a file cannot be written.
    """
    by_image: dict[str, list[ShaleItem]] = {}
    for item in made_set.items:
        by_image.setdefault(item.image, []).append(item)
    pictures = pictures_by_name(made_set.scenes)
    names = sorted(name for name in by_image if name in pictures)
    chance = random.Random(f"{seed}/{len(names)}")
    sampled = chance.sample(names, min(n, len(names)))
    pairs = [(name, name) for name in sampled]
    for name in chance.sample(sampled, max(1, len(sampled) // 5)) if sampled else ():
        if others := _other_scenes(name, names, by_image):
            pairs.append((name, chance.choice(others)))
    if len(pairs) == len(sampled):
        raise DataError("an audit needs scenes with different answers: there is no control among these")
    chance.shuffle(pairs)
    entries = []
    for image, described in pairs:
        scene_pictures, scenario = pictures[image]
        scene = pictures[described][0].scene
        questions = "\n\n".join(f"{item.question}\nRight answer: {item.answer}" for item in by_image[described])
        id_, label = (image, None) if image == described else (None, 1)
        texts = {"Prompt": scene.prompt, "Questions": questions}
        entries.append(QueueEntry(id_, label, texts, [scene_pictures.pictures[scenario].open()]))
    title = "SHALE: do these fit?"
    return write_pages(folder, title, entries, CLAIM, KEYS, prefix="p", size=len(names), seed=seed)


def _other_scenes(name: str, names: Sequence[str], by_image: Mapping[str, Sequence[ShaleItem]]) -> list[str]:
    """Pictures of other aspects with other right answers; of the same aspect where there is none."""
    mine, aspect = {item.answer for item in by_image[name]}, by_image[name][0].aspect
    others = [
        image for image in names if not mine & {i.answer for i in by_image[image] if i.task not in ("ynq", "mcq")}
    ]
    others = [
        image for image in others if {i.question for i in by_image[image]} != {i.question for i in by_image[name]}
    ]
    return [image for image in others if by_image[image][0].aspect != aspect] or others


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
    queue = read_queue(folder, "write it with --audit")
    by_code = {item.code: item for item in queue.items}
    by_picture: dict[str, list[str]] = {}
    controls: dict[str, tuple[int, int]] = {}
    for file in files:
        right = n = 0
        for code, label in _labels(file, by_code):
            if (name := by_code[code].id) is not None:
                by_picture.setdefault(name, []).append(label)
            else:
                right, n = right + (label == MISFIT), n + 1
        if surely_below(right, n, LEAST_RIGHT):
            raise DataError(f"{file}: {right} of {n} hidden controls are seen: these labels cannot be used")
        controls[file.name] = (right, n)
    misfit, minor = (_share(by_picture, bad, queue.size) for bad in ({MISFIT}, {MISFIT, MINOR}))
    misfits = frozenset(name for name, labels in by_picture.items() if set(labels) == {MISFIT})
    return PictureAudit(misfit, minor, controls, len(by_picture), misfits)


def _labels(file: Path, by_code: Mapping[str, PlannedItem]) -> list[tuple[str, str]]:
    labels: dict[str, str] = {}
    for number, row in enumerate(csv.DictReader(outside.read_text(file).splitlines()), start=2):
        code, label = str(row.get("code") or ""), str(row.get("label") or "")
        if code not in by_code:
            raise DataError(f"{file}:{number}: {code!r} is no picture of this audit")
        if code in labels:
            raise DataError(f"{file}:{number}: {code!r} is labelled twice")
        if label and label not in (FITS, MINOR, MISFIT):
            raise DataError(f"{file}:{number}: {unknown('label', label, (FITS, MINOR, MISFIT))}")
        if label:
            labels[code] = label
    return list(labels.items())


def _share(by_picture: Mapping[str, Sequence[str]], bad: set[str], size: int) -> Number:
    """Pictures that all who looked call bad, and half of those about which they disagree."""
    agreed = sum(set(labels) <= bad for labels in by_picture.values())
    disputed = sum(bool(set(labels) & bad) and not set(labels) <= bad for labels in by_picture.values())
    return label_noise(agreed, disputed, len(by_picture), size)


def audit_table(audit: PictureAudit) -> Table:
    """The audit beside what the paper says of its own."""
    columns = [Column("what", " "), Column("value", interval=True), Column("n", show="n", of="value"), Column("paper")]
    rows: list[dict[str, Cell]] = [
        {"what": "pictures that do not fit", "value": audit.misfit, "paper": "nearly all fit"},
        {"what": "with minor issues, or not fitting", "value": audit.minor, "paper": "fewer than 5 % minor issues"},
    ]
    notes = [f"{name}: {right} of {n} controls seen" for name, (right, n) in sorted(audit.controls.items())]
    return Table(columns, rows, title="Pictures of the set, as people see them", notes=notes)
