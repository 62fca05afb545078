"""`hedge compare`: is the difference between two runs, or between detectors of one run, more than chance?"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loguru import logger

from hedge_tasks.cli.choices import (
    RUN_HELP,
    add_budget,
    add_csv,
    add_scorer,
    add_task,
    add_trust,
    chosen_run,
    chosen_scorer,
    chosen_scorers,
    show_table,
)
from hedge_tasks.io.commands import Parser, command

if TYPE_CHECKING:
    from hedge_tasks.measures.measure import Measure
    from hedge_tasks.measures.priced_scores import PricedScores
    from hedge_tasks.numbers import Table
    from hedge_tasks.runs.run_files import Run
    from hedge_tasks.statistics import Comparison

_RATE = "hallucination_rate"


def add(commands: Parser) -> None:
    parser = command(commands, "compare", run, "compare two runs on the same questions, or the detectors of one run")
    parser.add_argument("run", type=Path, metavar="RUN_A", help=RUN_HELP)
    parser.add_argument(
        "other", type=Path, metavar="RUN_B", nargs="?", help="the run to compare with; none: the detectors of RUN_A"
    )
    metrics = (
        "a detector, hallucination_rate or a number of the runs' suite; may be repeated (default: SE, RadFlag, VASE"
    )
    parser.add_argument("--metric", action="append", metavar="NAME", help=f"{metrics}, and of two runs what they lead)")
    parser.add_argument("--against", metavar="NAME", help="within one run: the detector to compare --metric with")
    add_budget(parser)
    add_trust(parser)
    add_task(parser)
    add_scorer(parser)
    add_csv(parser)


def run(arguments: argparse.Namespace) -> int:
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.measures.headline import headline
    from hedge_tasks.runs.run_files import load_run

    runs = [chosen_run(arguments)]
    if arguments.other is not None:
        runs.append(load_run(arguments.other, arguments.task, trust=arguments.trust_run))
    if len(runs) > 1 and arguments.against:
        raise ConfigError("--against compares within one run; give one run")
    pairs = [*(_between(runs[0], runs[1], arguments) if len(runs) > 1 else _within(runs[0], arguments))]
    if not pairs:
        raise ConfigError("there is nothing to compare; give a second run, or another --metric")
    findings = [headline(r) for r in runs]
    title = "\n".join(
        line
        for side, r, finding in zip("ab", runs, findings, strict=False)
        for line in (f"{side}: {r.title}", *finding.lines(), finding.labels)
    )
    table = comparison_table(pairs, title, one_family=len(runs) > 1)
    facts: dict[str, Any] = {
        side: {"task": r.task, "model": r.model, "created": r.created} for side, r in zip("ab", runs, strict=False)
    }
    facts |= {"comparisons": table} | (findings[0].to_dict() if len(runs) == 1 else {})
    show_table(arguments, table, facts)
    return 0


_Pair = tuple[str, "Comparison | None"]
"""A row: by experts' labels where audits stand beside the runs, else by the judge's."""


def _between(first: Run, second: Run, arguments: argparse.Namespace) -> Iterator[_Pair]:
    from hedge_tasks.detectors.pipeline import SCORE_NAMES
    from hedge_tasks.measures.audited import compare_rates_by_experts, compare_runs_by_experts
    from hedge_tasks.measures.comparisons import check_same_documents, compare_hallucination_rates, compare_two_runs
    from hedge_tasks.measures.run_measures import compare_documents, documents_of
    from hedge_tasks.runs.audit_files import audit_of

    check_same_documents(first, second)
    theirs = _suite(second)
    own = {name: measure for name, measure in _suite(first).items() if name in theirs}
    usual = [*(name for name, measure in own.items() if measure.leads), *SCORE_NAMES, _RATE]
    names = list(dict.fromkeys(_metric(name, own) for name in arguments.metric or usual))
    detectors = [name for name in names if name != _RATE and name not in own]
    scorers = [chosen_scorer(arguments, run) for run in (first, second)] if detectors else []
    _warn_of_differences((first, second), [scorer.settings() for scorer in scorers])
    columns = [_priced(s, r, detectors, arguments.budget) for s, r in zip(scorers, (first, second), strict=False)]
    a, b = audit_of(first), audit_of(second)
    for name in names:
        if name == _RATE:
            sets = first.answer_sets, second.answer_sets
            if a is None or b is None:
                yield name, compare_hallucination_rates(*sets)
            else:
                yield name, compare_rates_by_experts(sets[0], a, sets[1], b)
        elif name in own:
            yield name, compare_documents(own[name], *(documents_of(r, own[name]) for r in (first, second)))
        elif arguments.metric or not any(_is_silent(of_run[name], name) for of_run in columns):
            x, y = (of_run[name].scores for of_run in columns)
            if a is None or b is None:
                yield f"{name}_auroc", compare_two_runs(x, y, name)
            else:
                yield f"{name}_auroc", compare_runs_by_experts(x, a, y, b, name)


def _within(run: Run, arguments: argparse.Namespace) -> Iterator[_Pair]:
    """Compare detectors that differ in one thing, in the score or in the clustering; or all with one of them."""
    from hedge_tasks.detectors.pipeline import SCORE_NAMES
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.measures.headline import compare_by
    from hedge_tasks.runs.audit_files import audit_of

    own, against = _suite(run), arguments.against
    names = [_metric(name, own) for name in (*(arguments.metric or SCORE_NAMES), *([against] if against else []))]
    for name in names:
        if name == _RATE or name in own:
            raise ConfigError(f"{name} is the same for all clusterings of a run; compare it between two runs")
    columns = {
        (clustering, name): column
        for clustering, scorer in chosen_scorers(arguments, run).items()
        for name, column in _priced(scorer, run, list(dict.fromkeys(names)), arguments.budget).items()
        if arguments.metric or not _is_silent(column, name)
    }
    if against:
        pairs = [((k, name), (k, names[-1])) for k, name in columns if name != names[-1] and (k, names[-1]) in columns]
    else:
        pairs = [(x, y) for x, y in combinations(columns, 2) if (x[0] == y[0]) != (x[1] == y[1])]
    audit = audit_of(run)
    for x, y in pairs:
        a, b = columns[x], columns[y]
        sides = (a.scores, x[1], b.scores, y[1])
        draws = ("", "") if arguments.budget is None else (f" ({a.draws} draws)", f" ({b.draws} draws)")
        title = f"{' '.join(x)}{draws[0]} - {' '.join(y)}{draws[1]}"
        yield title, compare_by(*sides, audit)


def _suite(run: Run) -> dict[str, Measure]:
    from hedge_tasks.measures.measure import by_name
    from hedge_tasks.measures.run_measures import measures_of

    return by_name(measures_of(run.settings))


def _metric(name: str, own: Mapping[str, Measure]) -> str:
    """Name of a detector, with or without its ending, of the hallucination rate, or of a suite's own metric."""
    from hedge_tasks.detectors.registry import names
    from hedge_tasks.errors import unknown
    from hedge_tasks.measures.run_measures import by_any_name

    suite = by_any_name(own.values())
    detector, detectors = name.removesuffix("_auroc"), names()
    if name not in suite and detector not in (*detectors, _RATE):
        raise unknown("metric", name, [*suite, *(f"{known}_auroc" for known in detectors), _RATE])
    return suite[name].name if name in suite else detector


def _priced(scorer: Any, run: Run, names: Sequence[str], budget: int | None) -> Mapping[str, PricedScores]:
    """Return the scores of each detector, with all answers or those that it can pay.

    Raises:
        ConfigError: a detector costs more than the budget.
    """
    from hedge_tasks.detectors.registry import get
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.measures.priced_scores import priced_columns

    columns, left_out = priced_columns(run.answer_sets, scorer, {name: get(name) for name in names}, budget)
    for name, reason in left_out.items():
        raise ConfigError(f"{name} cannot be compared: {reason}")
    return columns


def _is_silent(column: PricedScores, name: str) -> bool:
    """Whether no document has this score, as none has one of samples where one draw a document was made."""
    return all(scores[name] is None for scores in column.scores)


def _warn_of_differences(runs: Sequence[Run], clusterings: Sequence[Mapping[str, Any]]) -> None:
    """Warn where two runs differ in more than the model: then the difference is not only about that."""
    settings = {
        "clustering": clusterings,
        "sampling": [dict(run.settings.get("sampling") or {}) for run in runs],
        "labels": [{"judges": sorted({str(v.get("judge")) for v in run.verdicts.values()})} for run in runs],
    }
    for what, sides in settings.items():
        for key in dict.fromkeys(key for side in sides for key in side):
            a, b = (side.get(key) for side in sides)
            if a != b:
                logger.warning("{}: {} is {!r} in a and {!r} in b", what, key, a, b)


def comparison_table(rows: Sequence[_Pair], title: str, *, one_family: bool = True) -> Table:
    """Return every comparison with its difference and p-value, and the one corrected for all of them.

    Args:
        one_family: whether the table is a family of its own: between two runs. Those of one run are exploratory.
    """
    from hedge_tasks.numbers import FOUR_DIGITS, SIGNED_FOUR, Cell, Column, Number, Table
    from hedge_tasks.statistics import max_t

    adjusted = max_t([compared for _, compared in rows]) if one_family else [None] * len(rows)
    records: list[dict[str, Cell]] = []
    for (name, compared), p in zip(rows, adjusted, strict=True):
        if compared is None:
            reason = "no labelled document has this score on both sides"
            records.append({"metric": name, "difference": Number.undefined(reason)})
            continue
        values: dict[str, Cell] = {"a": compared.a, "b": compared.b, "difference": compared.number}
        records.append({"metric": name, **values, "p_value": compared.p_value, "p_adjusted": p})
    columns = [
        *(Column("metric"), Column("a", format=FOUR_DIGITS), Column("b", format=FOUR_DIGITS)),
        Column("difference", "a - b", format=SIGNED_FOUR),
        Column("interval", "95 %", format=SIGNED_FOUR, show="interval", of="difference"),
        Column("p_value", "p", show="p"),
        *([Column("p_adjusted", "p (max-T)", show="p")] if one_family else []),
        Column("documents", "n", show="n", of="difference"),
    ]
    methods = dict.fromkeys(pair.method for _, pair in rows if pair is not None and pair.difference is not None)
    notes = [f"method: {', '.join(methods)}"] if methods else []
    return Table(columns, records, title, [*notes, *([] if one_family else ["p: exploratory, each of one test"])])
