"""Which of two entries stands, where only one can."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hedge_tasks.leaderboard.entry import Entry
from hedge_tasks.runs.signed_runs import SignedRun


@dataclass(frozen=True)
class Precedence:
    """Which of two entries stands, where only one can: the one order for copies, names and places.

    Replayed before others, ranked before what is set aside or partial, recomputed before self-reported, and then who
    was first on the main line of the repository.

    Attributes:
        merged: places of files in the history.
        announced: signed announcements, with theirs.
        known_signers: statements of replays are signed by somebody known; others are anybody's word.
    """

    merged: Mapping[str, float]
    announced: Sequence[tuple[float, SignedRun]]
    known_signers: bool

    def of_models(self, entry: Entry) -> tuple[object, ...]:
        """Sorting key of entries whose answers differ."""
        return (*self._standing(entry), not entry.recomputed, *self._first(entry))

    def of_copies(self, entry: Entry) -> tuple[object, ...]:
        """Sorting key of entries with equal answers, where it says nothing that one is recomputed: who sees another's
        numbers can write texts that fit them."""
        return (*self._standing(entry), *self._first(entry))

    def came_first(self, entry: Entry, second: Entry) -> bool:
        """Whether an entry came into the history before another, whatever counts of them."""
        return self._first(entry) < self._first(second)

    def _standing(self, entry: Entry) -> tuple[bool, bool]:
        ranked = entry.findings.ranked
        return not ranked, not (ranked and self.known_signers and entry.findings.answers.verified)

    def _first(self, entry: Entry) -> tuple[float, bool, str, str]:
        """The history of the repository decides: when the entry came into it, or before that an announcement that the
        same key has signed for these very answers. Times that are signed are their signers' to write, and decide only
        where the history has no order; there, too, a signed entry goes before an unsigned one."""
        place, signed = self.merged.get(entry.file, math.inf), entry.signed
        if signed is None:
            return place, True, "", entry.file
        # Answers without texts and log-probabilities can be guessed, and so can what is signed of them.
        if any(mark.startswith(("n:", "t:")) for mark in entry.answers):
            place = min([place, *(earlier for earlier, announcement in self.announced if announcement == signed)])
        return place, False, signed.start.created, entry.file
