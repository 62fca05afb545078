from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hedge_tasks.judging import Case, Verdict

COLOURS = ("red", "green", "blue")


def colour_in(text: str) -> str | None:
    return next((word for word in text.lower().split() if word in COLOURS), None)


class FirstColour:
    """Whether the first colour that an answer names is the right one."""

    name = "first_colour"
    version = "1"

    def judge(self, cases: Sequence[Case]) -> list[Verdict]:
        return [self._judge(case) for case in cases]

    def _judge(self, case: Case) -> Verdict:
        said = colour_in(case.answer)
        label = None if said is None else int(said != case.reference)
        return Verdict(label, f"said {said}", self.name, self.version, category=said)

    def settings(self) -> dict[str, Any]:
        return {"judge": self.name, "version": self.version}
