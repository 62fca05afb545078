"""Rows of VQA data sets (VQA-RAD, SLAKE and their like) and of reports (MIMIC-CXR, OpenI), as they come in."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from hedge_tasks.data import cells
from hedge_tasks.data.sentences import split_sentences
from hedge_tasks.data.tables import read_rows
from hedge_tasks.making.stages import ReadRows

WORDING: Mapping[str, Any] = json.loads((resources.files(__package__) / "wording.json").read_text("utf-8"))
DIMENSIONS: tuple[str, ...] = tuple(WORDING["dimensions"])
OTHER = "other"
"""Dimension of a question about nothing that the paper asks about, such as colours and counts."""

RULES: Mapping[str, Any] = json.loads((resources.files(__package__) / "reports.json").read_text("utf-8"))
"""Rules for reports: headings, and what is removed."""

_BY_TYPE = {name: dimension for dimension, names in WORDING["dimensions"].items() for name in names}
_TYPE = ("dimension", "content_type", "question_type", "qtype")
_ANSWER = ("answer", "reference", "ground_truth")
_IMAGE = ("image_name", "image", "img_name", "image_id")
_REPORT = ("report", "text")
_SECTION = {name: section for section, names in RULES["sections"].items() for name in names}
_HEADING = re.compile(
    rf"(?:^|(?<=[.\n]))\s*({'|'.join(sorted(map(re.escape, _SECTION), key=len, reverse=True))})\s*:", re.IGNORECASE
)


@dataclass(frozen=True)
class VqaRow:
    """A question about an image with its true answer.

    Attributes:
        id: Unique among all rows.
        image: Name of its file.
        dimension: One of `DIMENSIONS`, or `OTHER`; None where the row does not say.
    """

    id: str
    image: str
    question: str
    answer: str
    dimension: str | None = None


@dataclass(frozen=True)
class ReportRow:
    """A report about an image.

    Attributes:
        findings, impression: As they are written; either may be empty.
    """

    id: str
    image: str
    findings: str
    impression: str


Row = TypeVar("Row", VqaRow, ReportRow)


def read_vqa(paths: Sequence[Path]) -> ReadRows[VqaRow]:
    """Rows with image, question and answer, and the type of the question where there is one.

    Raises:
        DataError: A column is not there; names the row.
    """

    def read(id_: str, row: Mapping[str, Any], where: str) -> VqaRow | None:
        question = cells.first_of(row, ("question",), where, "question")
        answer, image = cells.first_of(row, _ANSWER, where, "answer"), cells.first_of(row, _IMAGE, where, "image")
        return VqaRow(id_, image, question, answer, _dimension(row)) if question and answer and image else None

    return _read(paths, read)


def _read(paths: Sequence[Path], read: Callable[[str, Mapping[str, Any], str], Row | None]) -> ReadRows[Row]:
    """Rows of files.

    Args:
        read: Id, cells and place of a row -> the row; None where a cell that is needed is empty.
    """
    rows: list[Row] = []
    left_out: list[str] = []
    for path in paths:
        for number, (where, columns) in enumerate(read_rows(path), start=1):
            if (row := read(f"{path.stem}-{number}", columns, where)) is None:
                left_out.append(where)
            else:
                rows.append(row)
    return ReadRows(rows, left_out)


def _dimension(row: Mapping[str, Any]) -> str | None:
    """Dimension by the first type that is one of the paper's: VQA-RAD names several, as in "PRES, POS"."""
    value = next((str(row[name]) for name in _TYPE if not cells.is_missing(row.get(name))), None)
    if value is None:
        return None
    kinds = [_BY_TYPE.get(part.strip().casefold()) for part in value.replace("/", ",").split(",")]
    return next((kind for kind in kinds if kind is not None), OTHER)


def read_reports(paths: Sequence[Path]) -> ReadRows[ReportRow]:
    """Rows with an image and a report: in columns `findings` and `impression`, or one text with headings.

    Raises:
        DataError: A column is not there; names the row.
    """

    def read(id_: str, row: Mapping[str, Any], where: str) -> ReportRow | None:
        image = cells.first_of(row, _IMAGE, where, "image")
        texts = {name: cells.text(row.get(name), where) for name in ("findings", "impression")}
        if not any(name in row for name in ("findings", "impression")):
            texts |= sections(cells.first_of(row, _REPORT, where, "report"))
        return ReportRow(id_, image, **texts) if image and (texts["findings"] or texts["impression"]) else None

    return _read(paths, read)


def sections(report: str) -> dict[str, str]:
    """Findings and impression of a report with headings; all of it is findings where there are none.

    Example:
        >>> sections("INDICATION: Cough. FINDINGS: Clear lungs. IMPRESSION: Normal.")
        {'findings': 'Clear lungs.', 'impression': 'Normal.'}
    """
    texts = {"findings": "", "impression": "", "other": ""}
    places = list(_HEADING.finditer(report))
    if not places:
        return {"findings": report.strip(), "impression": ""}
    ends = [*(place.start() for place in places[1:]), len(report)]
    for place, end in zip(places, ends, strict=True):
        section = _SECTION[place[1].casefold()]
        texts[section] = " ".join(filter(None, (texts[section], report[place.end() : end].strip())))
    return {name: texts[name] for name in ("findings", "impression")}


# --- ground truth of reports ------------------------------------------------------------------------------------------


_REMOVED = {reason: re.compile("|".join(patterns), re.IGNORECASE) for reason, patterns in RULES["removed"].items()}
_NUMBERED = re.compile(r"^\s*\(?\d{1,2}[.)]\s*")


def why_removed(sentence: str) -> str | None:
    """Why a sentence may not stand in the ground truth of one image; None where it may.

    Example:
        >>> why_removed("Heart size is unchanged."), why_removed("Heart size is normal.")
        ('compares with the past', None)
    """
    return next((reason for reason, pattern in _REMOVED.items() if pattern.search(sentence)), None)


def clean_report(row: ReportRow) -> tuple[str, list[str]]:
    """The ground truth of a report, empty where nothing is left, and why sentences were removed, one by one."""
    reasons: list[str] = []
    parts = [_clean_text(text, reasons) for text in (row.findings, row.impression)]
    if all(parts):
        return f"{parts[0]} {RULES['joined']} {parts[1]}", reasons
    return parts[0] or parts[1], reasons


def _clean_text(text: str, reasons: list[str]) -> str:
    sentences = []
    for sentence in split_sentences(" ".join(text.split())):
        why = why_removed(sentence)
        if why is not None:
            reasons.append(why)
        elif bare := _NUMBERED.sub("", sentence).strip():
            sentences.append(bare)
    return " ".join(sentences)
