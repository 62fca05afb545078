"""Many candidates of a wrong answer to each question, kept whether they pass or fail (MedHallu, section 4.3)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hedge_tasks.io.files import write_whole
from hedge_tasks.llm.models import Model
from hedge_tasks.making.asking import Asking
from hedge_tasks.making.medhallu.candidates import FILE
from hedge_tasks.making.medhallu.checks import check_judges, text_fault, votes_on
from hedge_tasks.making.medhallu.pipeline import COOLEST, HOTTEST
from hedge_tasks.making.medhallu.questions import SourceQuestion
from hedge_tasks.making.medhallu.refining import Attempt, generate
from hedge_tasks.making.production import MadeRecord


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
        check_judges(self.judges)

    def __call__(self, question: SourceQuestion, asking: Asking) -> MadeRecord:
        """Return the candidates of one question."""
        candidates: list[dict[str, Any]] = []
        steps: list[str] = []
        for number in range(self.count):
            temperature = COOLEST + (HOTTEST - COOLEST) * number / max(1, self.count - 1)
            attempt = Attempt(question, f"of {number}", round(temperature, 6), asking)
            candidate = generate(attempt, self.generator)
            if candidate is None or not candidate.answer:
                steps.append("unreadable")
                continue
            votes = votes_on(question, candidate.answer, self.judges, asking)
            readable = [vote for vote in votes if None not in vote.picked]
            fooled = any(vote.fooled for vote in readable) if readable else None
            fault = text_fault(question, candidate.answer)
            check = fault.step if fault else None
            steps.append(check or "passes the checks without a model")
            steps.append({True: "deceives", False: "deceives nobody", None: "no vote could be read"}[fooled])
            candidates.append(
                {"answer": candidate.answer, "fooled": fooled, "category": candidate.category, "check": check}
            )
        if not candidates:
            return MadeRecord(None, tuple(steps), "nothing that could be read")
        source = {"id": question.id, "question": question.question, "truth": question.answer}
        return MadeRecord({**source, "candidates": candidates}, tuple(steps))

    def requests(self, n_questions: int) -> dict[str, tuple[int, int]]:
        """Fewest and most requests by stage, where every reply can be read; fewest: all candidates are the same."""
        n = self.count * n_questions
        votes = 2 * len(self.judges)
        return {"candidate": (n, n), "judge": (votes * n_questions, votes * n)}


def write_candidates(folder: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write what `hedge paper medhallu candidates` reads.

    Raises:
        DataError: The folder cannot be written.
    """
    path = folder / FILE
    write_whole(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return path
