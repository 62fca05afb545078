"""How far the judges of a run agree: the votes behind its verdicts, and other runs with the same answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from hedge_tasks.numbers import PERCENT, Cell, Column, Table
from hedge_tasks.runs.run_files import Run
from hedge_tasks.statistics import cohen_kappa

Labels = Mapping[str, int | None]


def labels_by_judge(run: Run, others: Sequence[Run] = ()) -> dict[str, Labels]:
    """Return labels of every judge known for this run's answers, by judge and document.

    Args:
        others: runs of which those of the same task and model count, on documents with the same baseline answer.
    """
    judges: dict[str, dict[str, int | None]] = {_judge_of(run): {a.id: a.label for a in run.answer_sets}}
    for id, verdict in run.verdicts.items():
        votes = verdict.get("votes")
        for vote in votes if isinstance(votes, (list, tuple)) else ():
            if isinstance(vote, Mapping) and vote.get("label") in (0, 1, None):
                name = " ".join(str(vote[key]) for key in ("judge", "version") if vote.get(key))
                judges.setdefault(name or "unnamed", {})[id] = vote.get("label")
    own_answers = {a.id: a.baseline.text for a in run.answer_sets}
    for candidate in others:
        if (candidate.task, candidate.model) == (run.task, run.model) and _judge_of(candidate) not in judges:
            shared_labels = {a.id: a.label for a in candidate.answer_sets if own_answers.get(a.id) == a.baseline.text}
            if shared_labels:
                judges[_judge_of(candidate)] = shared_labels
    return dict(judges)


def agreements(judges: Mapping[str, Labels]) -> Table | None:
    """Return every two judges on the answers that both decided: share of equal labels, Cohen's kappa; None without."""
    rows: list[dict[str, Cell]] = []
    for a, b in combinations(judges, 2):
        pairs = [(x, judges[b].get(id)) for id, x in judges[a].items()]
        decided = [(x, y) for x, y in pairs if x is not None and y is not None]
        if decided:
            share = sum(x == y for x, y in decided) / len(decided)
            kappa = cohen_kappa(*zip(*decided, strict=True))
            rows.append({"judge": a, "second": b, "both": len(decided), "agree": share, "kappa": kappa})
    names = [Column("judge"), Column("second", "second judge"), Column("both", "both decided")]
    columns = [*names, Column("agree", format=PERCENT), Column("kappa", "Cohen's κ", interval=True)]
    return Table(columns, rows) if rows else None


def _judge_of(run: Run) -> str:
    names = {str(verdict["judge"]) for verdict in run.verdicts.values() if verdict.get("judge")}
    return ", ".join(sorted(names)) or "labels of the file"
