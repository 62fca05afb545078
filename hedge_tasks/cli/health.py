"""`hedge health`: whether a run's numbers can be relied on."""

from __future__ import annotations

from typing import Any

from hedge_tasks.cli.choices import RunChoice
from hedge_tasks.io.commands import PROBLEMS_FOUND


def health(run: RunChoice) -> tuple[list[dict[str, Any]], int]:
    """Check runs for technical problems: greedy servers, cut answers, missing labels."""
    from hedge_tasks.measures.headline import headline
    from hedge_tasks.runs.from_store import runs_so_far
    from hedge_tasks.runs.health import Health, health_of
    from hedge_tasks.runs.setting_tests import mitigation_line

    def notes(health: Health, trust: str) -> list[str]:
        lines = [f"decoded with: {line}" for line in [mitigation_line(health.decoding)] if line]
        return [*lines, *(test.line() for test in health.tests), "", trust]

    facts, problems = [], False
    for finished in runs_so_far(run.run, run.task, trust=run.trust_run):
        health, trust = health_of(finished), headline(finished).trust
        about = {"task": finished.task, "model": finished.model, **health.to_dict(), "trust": trust.to_dict()}
        facts.append({**about, "notes": notes(health, trust.text)})
        problems = problems or bool(health.unreliable)
    return facts, PROBLEMS_FOUND if problems else 0
