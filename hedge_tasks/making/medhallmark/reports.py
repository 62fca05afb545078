"""Reports as ground truth: without sentences that a single image cannot bear out; and an even sample of them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hedge_tasks.data.sentences import split_sentences
from hedge_tasks.making.digests import choose, text_digest
from hedge_tasks.making.medhallmark.sources import RULES, ReportRow

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


def even_sample(rows: Sequence[ReportRow], n: int, seed: int = 0) -> list[ReportRow]:
    """Return n reports, evenly from the years, and within a year from the patients, by digests: no order matters.

    Returns:
        In the order of the rows.
    """
    years: dict[str, dict[str, list[ReportRow]]] = {}
    for row in sorted(rows, key=lambda row: text_digest(seed, row.id)):
        years.setdefault(row.year, {}).setdefault(row.patient or row.id, []).append(row)
    queues = [_in_turn(list(patients.values())) for _, patients in sorted(years.items())]
    chosen = {row.id for row in _in_turn(queues)[:n]}
    return [row for row in rows if row.id in chosen]


def _in_turn(queues: Sequence[Sequence[ReportRow]]) -> list[ReportRow]:
    """The first of each, then the second of each, and so on."""
    longest = max(map(len, queues), default=0)
    return [queue[place] for place in range(longest) for queue in queues if place < len(queue)]


def instruction(row: ReportRow, seed: int, instructions: Sequence[str]) -> str:
    """One of the instructions, by a digest of the row."""
    return choose(instructions, seed, f"instruction/{row.id}")
