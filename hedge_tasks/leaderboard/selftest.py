"""The board held against its attack corpus: every forgery must get its mark, and no honest entry lose its place."""

from __future__ import annotations

import copy
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hedge_tasks.leaderboard.board import SUPPORTED, auroc_measures, board_of, cell_of
from hedge_tasks.leaderboard.entries import ReadEntries, read_entries
from hedge_tasks.leaderboard.entry import Entry
from hedge_tasks.leaderboard.forgeries import FORGERIES, Forgery, Honest, Json, honest_board, sealed
from hedge_tasks.leaderboard.submission import write_submission
from hedge_tasks.leaderboard.validation import findings_of

FUZZED = "a file with one value changed at random"
_FORGED, _BEFORE = "forged-{}.json", "0-forged-{}.json"
"""Nothing is committed, so that names say which file was first; the honest ones begin with an a."""
_VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1,
    2**70,
    1e308,
    -1e-300,
    "",
    "x" * 600,
    "\u202e",
    [],
    {},
    [[]],
    {"a": 1},
)


@dataclass(frozen=True)
class ForgeryOutcome:
    """The end of a forgery.

    Attributes:
        name: of the forgery.
        mark: it got; "unmarked" where it is ranked as if nothing were the matter.
        why: the reason that the board gives.
        expected: whether that is a mark that it may get, and every honest entry kept its place.
    """

    name: str
    mark: str
    why: str
    expected: bool


def self_test(
    *,
    seconds: float = 60.0,
    seed: int = 0,
    chosen: Sequence[Forgery] = FORGERIES,
    progress: Callable[[str], None] = lambda text: None,
) -> Iterator[ForgeryOutcome]:
    """Yield what becomes of every forgery of the corpus, and then of files changed at random for as long as time lasts.

    Args:
        seconds: to spend; the corpus is tried once whatever it takes.
        seed: of the honest board and of the random changes.
        progress: is told the name of each forgery before it is tried.
    """
    start = time.monotonic()
    board = honest_board(seed)
    honest = [board.submission(model) for model in board.runs]
    with tempfile.TemporaryDirectory() as cache:
        for forgery in chosen:
            progress(forgery.name)
            yield _outcome(forgery, board, honest, Path(cache))
    dice, tried = random.Random(seed), 0
    while time.monotonic() - start < seconds:
        tried += 1
        changed, place = changed_at_random(honest[0], dice)
        try:
            findings_of(changed, **board.rules())
        except Exception as error:  # whatever it is, a stranger's file must not end the build
            yield ForgeryOutcome(FUZZED, f"{type(error).__name__}", f"{place}: {error}"[:300], expected=False)
    if tried:
        yield ForgeryOutcome(FUZZED, "read or refused", f"{tried} files", expected=True)


def changed_at_random(submission: Json, dice: random.Random) -> tuple[Json, str]:
    """A submission with one value replaced or left out, its digest made to match; and the value's place."""
    changed = copy.deepcopy(submission)
    inner: Any = changed
    place: list[str] = []
    while True:
        key = dice.choice(list(inner)) if isinstance(inner, dict) else dice.randrange(len(inner))
        place.append(str(key))
        deeper = inner[key]
        if not (isinstance(deeper, (dict, list)) and deeper) or dice.random() < 0.1:
            break
        inner = deeper
    if dice.random() < 0.2:
        del inner[key]
    else:
        inner[key] = dice.choice(_VALUES)
    return sealed(changed), ".".join(place)


def _outcome(forgery: Forgery, board: Honest, honest: Sequence[Json], cache: Path) -> ForgeryOutcome:
    forged, name = list(forgery.forge(board)), _BEFORE if forgery.first else _FORGED
    with tempfile.TemporaryDirectory() as folder:
        for i, submission in enumerate(honest):
            write_submission(Path(folder) / f"a{i}.json", submission)
        for i, submission in enumerate(forged):
            write_submission(Path(folder) / name.format(i), submission)
        built = read_entries(Path(folder), cache=cache, **board.rules())
    mark, why = mark_of(built, name.format(0))
    n_ranked = sum(entry.findings.ranked for entry in built.entries if entry.file.startswith("a"))
    if n_ranked < len(honest):
        return ForgeryOutcome(
            forgery.name, mark, f"{len(honest) - n_ranked} honest entries lost their place", expected=False
        )
    return ForgeryOutcome(forgery.name, mark, why, mark in forgery.marks)


def mark_of(built: ReadEntries, file: str) -> tuple[str, str]:
    """The mark that a file got on a board, and the reason that is given for it."""
    refused = {path.name: reason for path, reason in built.refused.items()}
    if file in refused:
        return "refused", refused[file]
    entry = next(entry for entry in built.entries if entry.file == file)
    if not entry.findings.ranked:
        return "not ranked", "; ".join(entry.findings.set_aside)
    supported = next(c for c in board_of(built.entries, SUPPORTED).cells if c.entry is entry)
    if supported.place is not None and supported.place.rank == supported.place.of > 1:
        return "behind", f"place {supported.place.interval} of {supported.place.of} by {SUPPORTED.title}"
    return _mark_of_cells(entry)


def _mark_of_cells(entry: Entry) -> tuple[str, str]:
    cells = [cell for measure in [SUPPORTED, *auroc_measures([entry])] if (cell := cell_of(entry, measure)) is not None]
    reported = {what: why for cell in cells for what, why in cell.reported}
    if reported:
        return "self-reported", "; ".join(f"{what}: {why}" for what, why in reported.items())
    if not entry.findings.answers.verified:
        return "not replayed", entry.findings.answers.reason
    return "unmarked", "replayed, and ranked"
