from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class InitialClustering:
    """Answers are the same where they begin with the same letters."""

    name = "initial"

    def __init__(self, letters: int = 1) -> None:
        self.letters = letters

    def cluster(self, answer_sets: Sequence[Sequence[str]], questions: Sequence[str] | None = None) -> list[list[int]]:
        return [self._cluster([text[: self.letters] for text in texts]) for texts in answer_sets]

    def _cluster(self, initials: list[str]) -> list[int]:
        ids = {initial: number for number, initial in enumerate(dict.fromkeys(initials))}
        return [ids[initial] for initial in initials]

    def check(self) -> None:
        """Nothing can be missing."""

    def settings(self) -> dict[str, Any]:
        return {"backend": self.name, "letters": self.letters}
