"""`hedge compare`: is the difference between two runs, or between detectors of one run, more than chance?"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loguru import logger

from hedge_tasks.cli.choices import (
    RUN_HELP,
    add_budget,
    add_scorer,
    add_task,
    add_trust,
    chosen_run,
    chosen_scorer,
    chosen_scorers,
)
from hedge_tasks.io.commands import Parser, command, show

if TYPE_CHECKING:
    from hedge_tasks.detectors.scorer import Scorer
    from hedge_tasks.measures.comparisons import Overlap
    from hedge_tasks.measures.measure import Measure
    from hedge_tasks.measures.priced_scores import PricedScores
    from hedge_tasks.numbers import Cell, Table
    from hedge_tasks.runs.run_files import Run
    from hedge_tasks.statistics import Comparison

_RATE = "hallucination_rate"


def add(commands: Parser) -> None:
    parser = command(commands, "compare", run, "compare two runs on the same questions, or the detectors of one run")
    parser.add_argument("run", type=Path, metavar="RUN_A", help=RUN_HELP)
    parser.add_argument(
        "other", type=Path, metavar="RUN_B", nargs="?", help="the run to compare with; none: all detectors of RUN_A"
    )
    parser.add_argument(
        "--metric",
        action="append",
        metavar="NAME",
        help="se_auroc, radflag_auroc, vase_auroc, hallucination_rate, or a number of the runs' suite: f1, medihall, "
        "resistance, hal_d, ...; may be repeated (default: these four and the suite's leading ones; within one run the "
        "first three, and with --against or --against-filter all detectors of the run's table)",
    )
    parser.add_argument("--against", metavar="NAME", help="within one run: the metric to compare --metric with")
    parser.add_argument("--against-filter", metavar="NAME", help="within one run: the filter to compare --filter with")
    add_budget(parser)
    add_trust(parser)
    add_task(parser)
    add_scorer(parser)


def run(arguments: argparse.Namespace) -> int:
    from hedge_tasks.measures.headline import headline
    from hedge_tasks.runs.run_files import load_run

    first = chosen_run(arguments)
    seeds = _same_but_seed(first, arguments)
    if arguments.other is None:
        heading, rows, facts = _within(first, arguments)
        finding = headline(first)
        heading = "\n".join([*finding.lines(), heading, *(["p: exploratory, each of one test"] if rows else [])])
        facts |= finding.to_dict()
    else:
        heading, rows, facts = _between(
            first, load_run(arguments.other, arguments.task, trust=arguments.trust_run), arguments
        )
    seed_table = _seed_table(first, seeds, arguments) if len(seeds) > 1 else None
    table = _table(rows, heading, adjust=arguments.other is not None)
    facts |= {"comparisons": table} | ({"seeds": seed_table} if seed_table else {})
    show(arguments, facts, seed_table or "", table)
    return 0


def _same_but_seed(first: Run, arguments: argparse.Namespace) -> dict[int, Run]:
    """Return the first run, and those at the given paths that differ from it in the seed alone, by seed."""
    from hedge_tasks.measures.run_variants import by_seed
    from hedge_tasks.runs.run_files import read_run, run_paths

    paths = [path for path in (arguments.run, arguments.other) if path is not None]
    files = dict.fromkeys(file for path in paths for file in run_paths(path))
    return by_seed(first, (replace(read_run(file), trusted=arguments.trust_run) for file in files))


def _seed_table(first: Run, runs: Mapping[int, Run], arguments: argparse.Namespace) -> Table:
    """Runs that differ in the seed alone, as one: the spread of every number over the seeds."""
    from hedge_tasks.detectors.pipeline import SCORE_NAMES
    from hedge_tasks.measures.audited import whose_labels
    from hedge_tasks.measures.run_measures import Document, estimate_of
    from hedge_tasks.measures.seed_spread import spread_of, spread_table, spreads
    from hedge_tasks.measures.standard_measures import HALLUCINATION_RATE
    from hedge_tasks.runs.scorers import scorers_of

    own = _suite(first)
    named = [_metric(name, own) for name in arguments.metric or SCORE_NAMES]
    detectors = [name for name in named if name != _RATE and name not in own]
    scores = {
        seed: {name: s.with_detectors(detectors).score(run.answer_sets) for name, s in scorers_of(run).items()}
        for seed, run in runs.items()
    }
    documents = {
        seed: [Document(a.id, a.group, {"value": a.label}) for a in run.answer_sets] for seed, run in runs.items()
    }
    rate = spread_of(_RATE, {seed: estimate_of(HALLUCINATION_RATE, rows) for seed, rows in documents.items()})
    numbers = [*spreads(scores, detectors), *([rate] if rate is not None else [])]
    return spread_table(numbers, list(runs), first.title, whose_labels(first, None))


_Rows = list[tuple[str, "Comparison | None"]]
_Comparisons = tuple[str, _Rows, dict[str, Any]]
"""Heading, comparisons (by experts where there is an audit, else by the judge), and facts for JSON."""


def _between(first: Run, second: Run, arguments: argparse.Namespace) -> _Comparisons:
    from hedge_tasks.detectors.pipeline import SCORE_NAMES
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.measures.audited import compare_rates_by_experts, compare_runs_by_experts
    from hedge_tasks.measures.comparisons import check_same_documents, compare_hallucination_rates, compare_two_runs
    from hedge_tasks.measures.headline import headline
    from hedge_tasks.measures.run_measures import compare_documents, documents_of
    from hedge_tasks.runs.audit_files import audit_of

    for option in ("against", "against_filter"):
        if getattr(arguments, option) is not None:
            raise ConfigError(f"--{option.replace('_', '-')} compares within one run; give one run")
    own = _shared_suite(first, second)
    leads = [name for name, measure in own.items() if measure.leads]
    usual = [*leads, *SCORE_NAMES, _RATE]
    names = list(dict.fromkeys(_metric(name, own) for name in arguments.metric or usual))
    overlap = check_same_documents(first, second)
    detectors = [name for name in names if name != _RATE and name not in own]
    scorers = [chosen_scorer(arguments, run).with_detectors(detectors) for run in (first, second) if detectors]
    _warn_of_differences(first, second, scorers)
    columns = [_priced(s, e, detectors, arguments.budget) for s, e in zip(scorers, (first, second), strict=False)]
    rows: _Rows = []
    audits = audit_of(first), audit_of(second)
    silent = (
        [] if arguments.metric else [name for name in detectors if any(_is_silent(scores, name) for scores in columns)]
    )
    for name in names:
        if name in silent:
            continue
        if name == _RATE:
            if audits[0] is not None and audits[1] is not None:
                compared = compare_rates_by_experts(first.answer_sets, audits[0], second.answer_sets, audits[1])
            else:
                compared = compare_hallucination_rates(first.answer_sets, second.answer_sets)
            rows.append((name, compared))
        elif name in own:
            sides = (documents_of(run, own[name]) for run in (first, second))
            rows.append((name, compare_documents(own[name], *sides)))
        else:
            a, b = (scores[name] for scores in columns)
            if audits[0] is not None and audits[1] is not None:
                compared = compare_runs_by_experts(a.scores, audits[0], b.scores, audits[1], name)
            else:
                compared = compare_two_runs(a.scores, b.scores, name)
            rows.append((f"{name}_auroc" + _at(a, arguments.budget), compared))
    clustered = f"filter {scorers[0].name}; " if scorers else ""
    heading = [
        f"a: {first.title}",
        f"b: {second.title}",
        f"{clustered}{overlap.both} documents in both" + _partly(overlap),
        *_silence(silent),
    ]
    if rows:
        heading += [f"{side}: {text}" for side, run in (("a", first), ("b", second)) for text in headline(run).lines()]
    facts = {
        "a": _facts(first, scorers[0] if scorers else None),
        "b": _facts(second, scorers[1] if scorers else None),
        "documents": overlap,
    }
    return "\n".join(heading), rows, facts


def _shared_suite(first: Run, second: Run) -> dict[str, Measure]:
    """Return the suite's own measures that both runs have, by name."""
    theirs = _suite(second)
    return {name: measure for name, measure in _suite(first).items() if name in theirs}


def _suite(run: Run) -> dict[str, Measure]:
    from hedge_tasks.measures.measure import by_name
    from hedge_tasks.measures.run_measures import measures_of

    return by_name(measures_of(run.settings))


def _within(run: Run, arguments: argparse.Namespace) -> _Comparisons:
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.measures.headline import compare_by
    from hedge_tasks.runs.audit_files import audit_of
    from hedge_tasks.runs.scorers import scorer_of

    if arguments.against is None and arguments.against_filter is None:
        return _all_detectors(run, arguments)
    names, against = _detectors_within(run, arguments)
    scorers = [chosen_scorer(arguments, run).with_detectors((*names, *against))]
    if arguments.against_filter is None:
        scorers *= 2
    else:
        further = scorer_of(run, arguments.against_filter).with_detectors((*names, *against))
        scorers.append(further if arguments.alpha is None else replace(further, alpha=arguments.alpha))
    detectors = tuple(dict.fromkeys((*names, *against)))
    first = _priced(scorers[0], run, detectors, arguments.budget)
    second = first if arguments.against_filter is None else _priced(scorers[1], run, detectors, arguments.budget)
    rows: _Rows = []
    audit = audit_of(run)
    pairs = list(zip(names, against, strict=True))
    silent = [] if arguments.metric else [a for a, b in pairs if _is_silent(first, a) or _is_silent(second, b)]
    for name, reference in pairs:
        if name in silent:
            continue
        if name == reference and scorers[0] == scorers[1]:
            raise ConfigError(f"{name}_auroc compared with itself; choose another with --against")
        sides = ((name, first), (reference, second))
        a, b = (f"{detector}_auroc{_at(columns[detector], arguments.budget)}" for detector, columns in sides)
        compared = compare_by(first[name].scores, name, second[reference].scores, reference, audit)
        rows.append((a if name == reference else f"{a} - {b}", compared))
    filters = scorers[0].name if scorers[0] == scorers[1] else f"{scorers[0].name} (a) and {scorers[1].name} (b)"
    facts = {"a": _facts(run, scorers[0]), "b": _facts(run, scorers[1])}
    heading = "\n".join([f"{run.title}; filter {filters}", *_silence(silent)])
    return heading, rows, facts


def _detectors_within(run: Run, arguments: argparse.Namespace) -> tuple[list[str], list[str]]:
    """Return the detectors of each row, a and b; without `--metric` all of the run's table but that of `--against`."""
    reference = _metric_within(arguments.against, run) if arguments.against else None
    if arguments.metric:
        names = [_metric_within(name, run) for name in arguments.metric]
    else:
        names = [name for name in _detectors_of_table(run) if name != reference or arguments.against_filter is not None]
    return names, [reference] * len(names) if reference is not None else names


def _detectors_of_table(run: Run) -> list[str]:
    """Return the detectors of answers in the run's table; SE, RadFlag and VASE where it names none."""
    from hedge_tasks.detectors.pipeline import SCORE_NAMES
    from hedge_tasks.detectors.registry import names
    from hedge_tasks.measures.run_measures import METRICS

    rows, detectors = run.settings.get(METRICS), names()
    listed = [row.removesuffix("_auroc") for row in rows if isinstance(row, str)] if isinstance(rows, list) else []
    return [name for name in listed if name in detectors] or list(SCORE_NAMES)


def _is_silent(columns: Mapping[str, PricedScores], name: str) -> bool:
    """Whether no document has this score, as none has one of samples where one draw a document was made."""
    return all(scores[name] is None for scores in columns[name].scores)


def _silence(names: Sequence[str]) -> list[str]:
    return [f"no document has a score of {', '.join(dict.fromkeys(names))}: left out"] if names else []


def _priced(scorer: Scorer, run: Run, names: Sequence[str], budget: int | None) -> Mapping[str, PricedScores]:
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


def _at(column: PricedScores, budget: int | None) -> str:
    return "" if budget is None else f" ({column.draws} draws)"


def _all_detectors(run: Run, arguments: argparse.Namespace) -> _Comparisons:
    """Compare every two detectors of a run that differ in one thing: in the score, or in the clustering."""
    from hedge_tasks.detectors.pipeline import SCORE_NAMES
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.measures.headline import compare_by
    from hedge_tasks.runs.audit_files import audit_of

    names = list(dict.fromkeys(_metric_within(name, run) for name in arguments.metric or SCORE_NAMES))
    scorers = chosen_scorers(arguments, run)
    columns = {
        name: _priced(scorer.with_detectors(names), run, names, arguments.budget) for name, scorer in scorers.items()
    }
    silent = [] if arguments.metric else [n for n in names if all(_is_silent(scores, n) for scores in columns.values())]
    detectors = [(name, score) for name in scorers for score in names if score not in silent]
    pairs = [(a, b) for i, a in enumerate(detectors) for b in detectors[i + 1 :] if (a[0] == b[0]) != (a[1] == b[1])]
    if not pairs and not silent:
        raise ConfigError("there is only one detector; give a second run, or another --metric")
    rows: _Rows = []
    audit = audit_of(run)
    for pair in pairs:
        a, b = (columns[clustering][score] for clustering, score in pair)
        first, second = (
            f"{clustering} {score}{_at(column, arguments.budget)}"
            for (clustering, score), column in zip(pair, (a, b), strict=True)
        )
        compared = compare_by(a.scores, pair[0][1], b.scores, pair[1][1], audit)
        rows.append((f"{first} - {second}", compared))
    heading = f"{run.title}; {len(detectors)} detectors, pairs that differ in the score or in the clustering"
    settings = {name: scorer.settings() for name, scorer in scorers.items()}
    return "\n".join([heading, *_silence(silent)]), rows, {"detectors": settings}


def _metric(name: str, own: Mapping[str, Measure] = {}) -> str:
    """Name of a detector, with or without its ending, of the hallucination rate, or of a suite's own metric.

    Args:
        own: the suite's metrics that can be compared, by name.
    """
    from hedge_tasks.detectors.registry import names
    from hedge_tasks.errors import unknown
    from hedge_tasks.measures.run_measures import by_any_name

    suite_metrics = by_any_name(own.values())
    if name in suite_metrics:
        return suite_metrics[name].name
    detector, detectors = name.removesuffix("_auroc"), names()
    if detector not in (*detectors, _RATE):
        raise unknown("metric", name, [*suite_metrics, *(f"{known}_auroc" for known in detectors), _RATE])
    return detector


def _metric_within(name: str, run: Run) -> str:
    """Name of a detector; what is the same for all clusterings of a run is refused.

    Raises:
        ConfigError: it is the hallucination rate or a number of the suite, or no metric at all.
    """
    from hedge_tasks.errors import ConfigError

    own = _suite(run)
    metric = _metric(name, own)
    if metric == _RATE or metric in own:
        raise ConfigError(f"{metric} is the same for all clusterings of a run; compare it between two runs")
    return metric


def _partly(overlap: Overlap) -> str:
    if not overlap.only_a + overlap.only_b:
        return ""
    return f" (partial: {overlap.only_a} only in a, {overlap.only_b} only in b)"


def _warn_of_differences(first: Run, second: Run, scorers: Sequence[Scorer]) -> None:
    """Warn where the two runs differ in more than the model: then the difference is not only about that."""
    if scorers:
        _warn("the clusterings", *(scorer.settings() for scorer in scorers))
    judges = [{str(verdict.get("judge")) for verdict in run.verdicts.values()} for run in (first, second)]
    if judges[0] != judges[1]:
        logger.warning("the labels come from different judges: {} (a) and {} (b)", *(sorted(j) for j in judges))
    _warn("the sampling", *(dict(run.settings.get("sampling") or {}) for run in (first, second)))


def _warn(what: str, a: dict[str, Any], b: dict[str, Any]) -> None:
    different = [key for key in {**a, **b} if a.get(key) != b.get(key)]
    if different:
        parts = "; ".join(f"{key} {a.get(key)!r} (a) and {b.get(key)!r} (b)" for key in different)
        logger.warning("{} of the two runs differ: {}", what, parts)


def _facts(run: Run, scorer: Scorer | None) -> dict[str, Any]:
    clustering = {"clustering": scorer.settings()} if scorer is not None else {}
    return {"task": run.task, "model": run.model, "created": run.created, **clustering}


def _table(rows: _Rows, heading: str, *, adjust: bool) -> Table:
    """Return every comparison with its difference, p-value and, where there are several, the adjusted one.

    Args:
        adjust: whether the table is a family of its own: between two runs. Those of one run are in its headline.
    """
    from hedge_tasks.numbers import FOUR_DIGITS, SIGNED_FOUR, Column, Number, Table
    from hedge_tasks.statistics import max_t

    comparisons = [comparison for _, comparison in rows]
    adjusted = max_t(comparisons) if adjust else [None] * len(rows)
    records: list[dict[str, Cell]] = []
    notes = []
    for (name, compared), p in zip(rows, adjusted, strict=True):
        if compared is None:
            missing = Number.undefined("no labelled document has this score on both sides")
            records.append({"metric": name, "difference": missing})
            continue
        values: dict[str, Cell] = {"a": compared.a, "b": compared.b, "difference": compared.number}
        records.append({"metric": name, **values, "p_value": compared.p_value, "p_adjusted": p})
        if compared.difference is not None:
            notes.append(f"{name}: {compared.reason or compared.method}")
    several = sum(p is not None for p in adjusted) > 1
    has_classes = any(compared is not None and compared.n_positive is not None for _, compared in rows)
    columns = [
        Column("metric"),
        Column("a", format=FOUR_DIGITS),
        Column("b", format=FOUR_DIGITS),
        Column("difference", "a - b", format=SIGNED_FOUR),
        Column("interval", "95 % interval", format=SIGNED_FOUR, show="interval", of="difference"),
        Column("p_value", "p", show="p"),
        *([Column("p_adjusted", "p (max-T)", show="p")] if several else []),
        *([Column("rarer", "rarer class", show="n_rarer", of="difference")] if has_classes else []),
        Column("documents", show="n", of="difference"),
    ]
    return Table(columns, records, f"{heading}\n" if rows else heading, ["", *notes] if notes else [])
