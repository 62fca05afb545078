"""`hedge health`: whether a run's numbers can be relied on."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from hedge_tasks.cli.choices import add_run, add_task
from hedge_tasks.io.commands import PROBLEMS_FOUND, Parser, command, show

if TYPE_CHECKING:
    from hedge_tasks.measures.trust_state import TrustState
    from hedge_tasks.runs.health import Health
    from hedge_tasks.runs.run_files import Run


def add(commands: Parser) -> None:
    parser = command(
        commands, "health", run, "check runs for technical problems: greedy servers, cut answers, missing labels"
    )
    add_run(parser)
    add_task(parser)


def run(arguments: argparse.Namespace) -> int:
    from hedge_tasks.measures.headline import headline
    from hedge_tasks.runs.from_store import runs_so_far
    from hedge_tasks.runs.health import health_of

    runs = runs_so_far(arguments.run, arguments.task, trust=arguments.trust_run)
    results = [(run, health_of(run), headline(run).trust) for run in runs]
    rows = [
        {"task": run.task, "model": run.model, **health.to_dict(), "trust": trust.to_dict()}
        for run, health, trust in results
    ]
    show(arguments, rows, "\n\n".join(_text(run, health, trust) for run, health, trust in results))
    return PROBLEMS_FOUND if any(health.unreliable for _, health, _ in results) else 0


def _groups(health: Health) -> dict[str, object]:
    """Rows of the table, where documents share groups."""
    from hedge_tasks.numbers import Format, format_value

    independence = health.independence
    if independence is None or independence.groups == health.documents:
        return {}
    return {
        "groups": independence.groups,
        "effective number of groups": format_value(independence.effective, Format(digits=1)),
        "largest group": independence.largest,
        "design effect": format_value(independence.design_effect, Format(digits=2)),
        "repeated questions": independence.repeated,
    }


def _text(run: Run, health: Health, trust: TrustState) -> str:
    from hedge_tasks.judging.outcomes import readings_line
    from hedge_tasks.numbers import PERCENT, Format, format_value
    from hedge_tasks.runs.health import draws_line
    from hedge_tasks.runs.setting_verdicts import mitigation_line

    shares = ("same_clean", "cut", "empty", "filtered", "without_logprob", "unlabelled", "unreadable", "unread_replies")
    values: dict[str, object] = {
        "documents": health.documents,
        **_groups(health),
        "failed and left out": health.failed,
        "draws": health.draws,
        "distinct clean answers a document": format_value(health.distinct_clean, Format(digits=2)),
        **{name.replace("_", " "): format_value(getattr(health, name), PERCENT) for name in shares},
        **{f"outcome: {name}": n for name, n in health.outcomes.items()},
        **{f"zero entropy, {name}": format_value(share, PERCENT) for name, share in health.zero_entropy.items()},
        **{f"picture check: {key.replace('_', ' ')}": value for key, value in health.image_use.items()},
    }
    width = max(map(len, values))
    rows = [f"{name:<{width}}  {value!s:>10}" for name, value in values.items()]
    # Below the table: they are long, and would push the numbers off the screen.
    decoding = []
    if name := health.decoding.get("asked"):
        decoding.append(f"decoding: {name}, T {health.decoding.get('temperature')}")
    if method := mitigation_line(health.decoding):
        decoding.append(f"decoded with: {method}")
    decoding += [f"  {verdict.line()}" for verdict in health.setting_verdicts]
    if readings := readings_line(health.readings):
        decoding.append(f"readings: {readings}")
    if health.draws_verdict is not None:
        decoding.append(f"draws against their own log-probabilities: {draws_line(health.draws_verdict)}")
    decoding += [f"{check.name}: {check.state}" for check in health.checks]
    return "\n".join([run.title, *rows, *decoding, "", trust.text])
