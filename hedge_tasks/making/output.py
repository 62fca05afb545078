"""Output of a making: the set as Parquet with a card, a report, a queue for people to look through."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from hedge_tasks import __version__
from hedge_tasks.errors import DataError
from hedge_tasks.io.files import write_whole
from hedge_tasks.llm.account import Account
from hedge_tasks.making.croissant import CROISSANT, croissant_of
from hedge_tasks.making.gate.attack import FLOOR_TITLE, Attack, check_floors, floor_rows, floors_by_stratum
from hedge_tasks.making.production import Production
from hedge_tasks.numbers import Table

DATA, REPORT, CARD, REVIEW, LEDGER = "data/train.parquet", "report.json", "README.md", "review.html", "ledger"
"""Names in the folder of a making."""


def canary_of(title: str) -> str:
    """A string by which a model tells that it was trained on a set: its own, and the same in every making of it."""
    return f"hedge_tasks canary {uuid.uuid5(uuid.NAMESPACE_URL, f'hedge_tasks/{title}')}"


@dataclass(frozen=True)
class CardText:
    """Text of the card besides numbers.

    Attributes:
        title: Of the set.
        licence: Identifier of the hub (`mit`, `cc-by-4.0`, ...); None where it is not known.
        summary: What it is made of and how, in a paragraph.
        settings: Models, seeds and thresholds.
        warnings: What a reader has to know, such as shortcuts that are open.
        attacks: What solvers without skill get right of it; every made set is attacked.
        tables: What is in it, by title: header and rows.
        writers: Models that wrote texts of it.
    """

    title: str
    licence: str | None
    summary: str
    settings: Mapping[str, Any]
    attacks: Sequence[Attack]
    warnings: Sequence[str] = ()
    tables: Mapping[str, tuple[Sequence[str], Sequence[Sequence[str]]]] = field(default_factory=dict)
    writers: Sequence[str] = ()


def write_set(folder: Path, production: Production, card: CardText) -> Path:
    """Write the rows of a making with their card and report.

    Args:
        folder: Of the making; existing files of these names are replaced.

    Returns:
        The Parquet file.

    Raises:
        DataError: There are no rows, a solver without skill is above its bound, or the folder cannot be written.
    """
    from datasets import Dataset

    check_floors(card.attacks)
    if not production.rows:
        raise DataError(f"no record was accepted ({_reasons(production)}); nothing is written")
    path = folder / DATA
    part = path.with_name(f"{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        Dataset.from_list([dict(row) for row in production.rows]).to_parquet(part)
        part.replace(path)
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror or error}") from error
    describe_set(folder, production.report(), card, {"train": DATA})
    return path


def describe_set(folder: Path, report: Mapping[str, Any], card: CardText, splits: Mapping[str, str]) -> None:
    """Write the card, the report and Croissant metadata of a set whose files are there.

    Args:
        report: As `Production.report`.
        splits: Names of files in the folder, by split.

    Raises:
        DataError: The folder cannot be written, or a file is not there.
    """
    try:
        checksums = {file: hashlib.sha256((folder / file).read_bytes()).hexdigest() for file in splits.values()}
    except OSError as error:
        raise DataError(f"{folder}: {error.strerror or error}") from error
    # Asked now or known from before: a making that was killed and went on has the same files.
    replies = {
        name: {
            "replies": counts["requests"] + counts["cached"],
            "prompt tokens": counts["all_prompt_tokens"],
            "completion tokens": counts["all_completion_tokens"],
        }
        for name, counts in sorted(report["asked"]["stages"].items())
    }
    facts = {name: value for name, value in report.items() if name != "asked"}
    whole = {
        **facts,
        "replies": replies,
        "settings": dict(card.settings),
        "floors": floors_by_stratum(card.attacks),
        "warnings": list(card.warnings),
        "sha256": checksums,
    }
    write_whole(folder / REPORT, json.dumps(whole, indent=2, ensure_ascii=False, default=str) + "\n")
    write_whole(folder / CARD, _card(report, replies, card, splits, checksums))
    metadata = croissant_of(folder, splits, checksums, title=card.title, licence=card.licence, description=card.summary)
    write_whole(folder / CROISSANT, json.dumps(metadata, indent=2, ensure_ascii=False) + "\n")


def cost_lines(account: Account) -> list[str]:
    """Return what the asking of a making cost, by stage and in all; nothing where nothing was asked."""
    if not account.stages:
        return []
    rows = [
        [stage, *(f"{count:,}" for count in (counts.requests, counts.cached, counts.unreadable))]
        for stage, counts in sorted(account.stages.items())
    ]
    table = Table.of(["stage", "requests", "cached", "unreadable"], rows)
    return ["", str(table), f"asked: {account}"]


def push_set(folder: Path, repository: str, *, files: Sequence[str] = (DATA,), private: bool = True) -> str:
    """Upload a written set to the Hugging Face hub.

    Args:
        files: Of the set; card, report and metadata go with them.
        repository: `owner/name`; made where it is not there.

    Returns:
        Its address.

    Raises:
        DataError: There is no set in the folder, or the hub refuses.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

    if missing := [file for file in files if not (folder / file).is_file()]:
        raise DataError(f"{folder}: there is no {missing[0]} to upload")
    hub = HfApi()
    try:
        hub.create_repo(repository, repo_type="dataset", private=private, exist_ok=True)
        hub.upload_folder(
            folder_path=folder,
            repo_id=repository,
            repo_type="dataset",
            allow_patterns=[*files, REPORT, CARD, CROISSANT],
            commit_message="Upload a data set made by hedge make",
        )
    except (HfHubHTTPError, OSError, ValueError) as error:
        raise DataError(f"the hub did not take {repository}: {error}") from error
    return f"{hub.endpoint}/datasets/{repository}"


def _reasons(production: Production) -> str:
    reasons = [f"{count} × {reason}" for reason, count in sorted(production.rejected.items())]
    return ", ".join([*reasons, f"{len(production.unfinished)} unfinished"] if production.unfinished else reasons)


def _card(
    report: Mapping[str, Any],
    replies: Mapping[str, Mapping[str, int]],
    texts: CardText,
    splits: Mapping[str, str],
    checksums: Mapping[str, str],
) -> str:
    from huggingface_hub import DatasetCard, DatasetCardData

    files = [{"split": split, "path": file} for split, file in splits.items()]
    data = DatasetCardData(
        license=texts.licence or "other",
        pretty_name=texts.title,
        configs=[{"config_name": "default", "data_files": files}],
        tags=["hallucination", "synthetic"],
    )
    template = resources.files("hedge_tasks.making") / "templates" / "card.md.jinja"
    card = DatasetCard.from_template(
        data,
        template_str=template.read_text("utf-8"),
        title=texts.title,
        licence=texts.licence,
        summary=texts.summary,
        warnings=list(texts.warnings),
        writers=", ".join(texts.writers),
        settings=json.dumps(texts.settings, indent=2, ensure_ascii=False, default=str),
        report=report,
        replies=dict(replies),
        tables={
            title: [list(header), *map(list, rows)]
            for title, (header, rows) in {FLOOR_TITLE: floor_rows(texts.attacks), **texts.tables}.items()
        },
        canary=canary_of(texts.title),
        checksums=dict(checksums),
        version=__version__,
    )
    return str(card)
