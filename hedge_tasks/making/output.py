"""Output of a making: the set as Parquet with a card and a report, and a page on which people look at a sample."""

from __future__ import annotations

import hashlib
import json
import random
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from hedge_tasks import __version__
from hedge_tasks.errors import DataError
from hedge_tasks.io.files import write_whole
from hedge_tasks.judging.label_files import by_id, label_rows
from hedge_tasks.judging.review import ReviewItem, two_keys, write_review
from hedge_tasks.making.gate.attack import Attack, floor_rows, floors_by_stratum
from hedge_tasks.making.stages import Made

DATA, REPORT, CARD, REVIEW = "data/train.parquet", "report.json", "README.md", "review.html"
"""Names in the folder of a making."""


@dataclass(frozen=True)
class CardText:
    """Text of the card besides numbers.

    Attributes:
        title: Of the set.
        licence: Identifier of the hub (`mit`, `cc-by-4.0`, ...); None where it is not known.
        summary: What it is made of and how, in a paragraph.
        settings: Models, seeds and thresholds.
        attacks: What solvers without skill get right of it.
        warnings: What a reader has to know.
        writers: Models that wrote texts of it.
    """

    title: str
    licence: str | None
    summary: str
    settings: Mapping[str, Any]
    attacks: Sequence[Attack]
    warnings: Sequence[str] = ()
    writers: Sequence[str] = ()


def write_rows(folder: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write the rows of a set as one Parquet file, in place of an earlier one.

    Raises:
        DataError: The folder cannot be written.
    """
    from datasets import Dataset

    path = folder / DATA
    part = path.with_name(f"{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        Dataset.from_list([dict(row) for row in rows]).to_parquet(part)
        part.replace(path)
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror or error}") from error
    return path


def describe_set(folder: Path, result: Made, card: CardText, files: Mapping[str, Path]) -> None:
    """Write the card and the report of a set whose files are there.

    Args:
        files: By split, in the folder.

    Raises:
        DataError: The folder cannot be written, or a file is not there.
    """
    splits = {split: str(file.relative_to(folder)) for split, file in files.items()}
    try:
        checksums = {splits[split]: hashlib.sha256(file.read_bytes()).hexdigest() for split, file in files.items()}
    except OSError as error:
        raise DataError(f"{folder}: {error.strerror or error}") from error
    report = result.report()
    # Had now or known from before: a making that was killed and went on has the same files.
    replies = {
        name: {
            "replies": counts["requests"] + counts["cached"],
            "prompt tokens": counts["all_prompt_tokens"],
            "completion tokens": counts["all_completion_tokens"],
        }
        for name, counts in sorted(report.pop("asked")["stages"].items())
    }
    whole = {
        **report,
        "replies": replies,
        "settings": dict(card.settings),
        "floors": floors_by_stratum(card.attacks),
        "warnings": list(card.warnings),
        "sha256": checksums,
    }
    write_whole(folder / REPORT, json.dumps(whole, indent=2, ensure_ascii=False, default=str) + "\n")
    write_whole(folder / CARD, _card(report, replies, card, splits, checksums))


def _card(
    report: Mapping[str, Any],
    replies: Mapping[str, Mapping[str, int]],
    texts: CardText,
    splits: Mapping[str, str],
    checksums: Mapping[str, str],
) -> str:
    from huggingface_hub import DatasetCard, DatasetCardData

    data = DatasetCardData(
        license=texts.licence or "other",
        pretty_name=texts.title,
        configs=[{"config_name": "default", "data_files": [{"split": k, "path": file} for k, file in splits.items()]}],
        tags=["hallucination", "synthetic"],
    )
    template = resources.files("hedge_tasks.making") / "templates" / "card.md.jinja"
    card = DatasetCard.from_template(
        data,
        template_str=template.read_text("utf-8"),
        texts=texts,
        settings=json.dumps(texts.settings, indent=2, ensure_ascii=False, default=str),
        report=report,
        replies=replies,
        floors=floor_rows(texts.attacks),
        # By this a model tells that it was trained on the set; it is the same in every making of it.
        canary=f"hedge_tasks canary {uuid.uuid5(uuid.NAMESPACE_URL, f'hedge_tasks/{texts.title}')}",
        checksums=checksums,
        version=__version__,
    )
    return str(card)


# --- people -----------------------------------------------------------------------------------------------------------


def write_page(
    folder: Path,
    title: str,
    items: Sequence[ReviewItem],
    *,
    n: int | None = None,
    seed: int = 0,
) -> None:
    """Write the page on which people label a random sample; its CSV comes back by --labels.

    Args:
        n: Items at most; None: all of them.
    """
    sampled = list(items) if n is None else random.Random(f"{seed}/{len(items)}").sample(items, min(n, len(items)))
    folder.mkdir(parents=True, exist_ok=True)
    write_review(folder / REVIEW, title, sampled, two_keys())


def read_labels(files: Sequence[Path]) -> dict[str, int]:
    """Labels of people, by the id of the row: 1, or 0 where all who labelled it say so.

    Raises:
        DataError: A file is none of labels; names the line.
    """
    labels: dict[str, int] = {}
    for file in files:
        for name, label in by_id(label_rows(file), "id", "label", None).items():
            if label.label is not None:
                labels[name] = max(label.label, labels.get(name, 0))
    return labels
