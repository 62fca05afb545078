"""`hedge health`: whether a run's numbers can be relied on."""

from __future__ import annotations

from typing import Any

from hedge_tasks.cli.choices import RunChoice
from hedge_tasks.cli.printing import Details
from hedge_tasks.io.commands import PROBLEMS_FOUND


def health(run: RunChoice) -> tuple[list[dict[str, Any]], int]:
    """Check runs for technical problems: greedy servers, cut answers, missing labels."""
    from hedge_tasks.measures.headline import headline
    from hedge_tasks.runs.from_store import runs_so_far
    from hedge_tasks.runs.health import health_of, mitigation_line

    facts, problems = [], False
    for finished in runs_so_far(run.run, run.task, trust=run.trust_run):
        health, trust = health_of(finished), headline(finished).trust
        about = {"task": finished.task, "model": finished.model, **health.to_dict(), "trust": Details(trust)}
        mitigated = mitigation_line(health.decoding)
        notes = [f"decoded with: {mitigated}"] if mitigated else []
        notes += [] if health.documents else ["There is no document with all its answers: nothing could be checked."]
        facts.append({**about, "notes": [*notes, trust.text]})
        problems = problems or bool(health.unreliable) or not health.documents
    return facts, PROBLEMS_FOUND if problems else 0
