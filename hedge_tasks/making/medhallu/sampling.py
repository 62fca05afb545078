"""Many candidates of a wrong answer to each question, kept whether they pass or fail (MedHallu, section 4.3)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hedge_tasks.asking.models import Model
from hedge_tasks.asking.template import load_template
from hedge_tasks.errors import ConfigError
from hedge_tasks.io.files import write_whole
from hedge_tasks.making.asking import Asking
from hedge_tasks.making.gate.refuse import refused
from hedge_tasks.making.medhallu.candidates import FILE
from hedge_tasks.making.medhallu.checks import allowed_length, votes_on
from hedge_tasks.making.medhallu.pipeline import COOLEST, HOTTEST, LEAST_JUDGES
from hedge_tasks.making.medhallu.questions import SourceQuestion
from hedge_tasks.making.medhallu.refining import generate
from hedge_tasks.making.production import Made


@dataclass(frozen=True)
class CandidateSampling:
    """Writes candidates and lets judges tell each from the truth. Nothing is refused: what a check says is kept.

    Attributes:
        generator: Writes wrong answers, at temperatures evenly between those of the paper.
        judges: At least three; a candidate deceives where one of them prefers it in both orders.
        count: Candidates a question (the paper: 50).

    Raises:
        ConfigError: There are too few judges.
    """

    generator: Model
    judges: Sequence[Model]
    count: int

    def __post_init__(self) -> None:
        if len(self.judges) < LEAST_JUDGES:
            raise ConfigError(f"judges: expected at least {LEAST_JUDGES} models, got {len(self.judges)}")

    def __call__(self, question: SourceQuestion, asking: Asking) -> Made:
        """Return what becomes of one question."""
        found: list[dict[str, Any]] = []
        steps: list[str] = []
        for number in range(self.count):
            temperature = COOLEST + (HOTTEST - COOLEST) * number / max(1, self.count - 1)
            written = generate(
                question, self.generator, number=f"of {number}", temperature=round(temperature, 6), asking=asking
            )
            if written is None or not written.answer:
                steps.append("unreadable")
                continue
            votes = votes_on(question, written.answer, self.judges, asking)
            read = [vote for vote in votes if None not in vote.picked]
            fooled = any(vote.fooled for vote in read) if read else None
            check = self._check(question, written.answer)
            steps.append(check or "passes the checks without a model")
            steps.append({True: "deceives", False: "deceives nobody", None: "no vote could be read"}[fooled])
            found.append(
                {"answer": written.answer, "fooled": fooled, "category": written.category, "check": check or None}
            )
        if not found:
            return Made(None, tuple(steps), "nothing that could be read")
        about = {"id": question.id, "question": question.question, "truth": question.answer}
        return Made({**about, "candidates": found}, tuple(steps))

    def requests(self, n_questions: int) -> dict[str, tuple[int, int]]:
        """Fewest and most requests by stage, where every reply can be read; fewest: all candidates are the same."""
        n = self.count * n_questions
        votes = 2 * len(self.judges)
        return {"candidate": (n, n), "judge": (votes * n_questions, votes * n)}

    def _check(self, question: SourceQuestion, answer: str) -> str | None:
        instructions = load_template("hedge_tasks.making.medhallu", "candidate").system
        if why := refused(answer, question.answer, question.question, instructions):
            return why
        least, most = allowed_length(question.answer)
        return "too short" if len(answer) < least else "too long" if len(answer) > most else None


def write_candidates(folder: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write what `hedge paper medhallu candidates` reads.

    Raises:
        DataError: The folder cannot be written.
    """
    path = folder / FILE
    write_whole(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return path
