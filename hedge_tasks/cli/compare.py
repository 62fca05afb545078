"""`hedge compare`: is the difference between two runs, or between detectors of one run, more than chance?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.cli.choices import ClusteringChoice, RunChoice
from hedge_tasks.cli.printing import Details
from hedge_tasks.errors import ConfigError

if TYPE_CHECKING:
    from hedge_tasks.detectors.pipeline import Scores
    from hedge_tasks.judging.designed import ExpertAudit
    from hedge_tasks.measures.measure import Measure
    from hedge_tasks.measures.run_measures import Document
    from hedge_tasks.numbers import Table
    from hedge_tasks.runs.run_files import Run
    from hedge_tasks.statistics import Comparison

_RATE = "hallucination_rate"

_Named = tuple[str, str]
"""Clustering and detector."""

_Pairs = dict[str, "Comparison | None"]
"""Name of a pair -> its comparison; None where no labelled document has it on both sides."""


def compare(
    run: RunChoice,
    clustering: ClusteringChoice,
    other: Path | None = None,
    *,
    metric: tuple[str, ...] = (),
    against: str | None = None,
) -> dict[str, Any]:
    """Compare two runs on the same questions, or the detectors of one run.

    Args:
        other: The run to compare with; none: the detectors of RUN.
        metric: A detector, hallucination_rate or a number of the runs' suite; may be given again; if not given SE,
            RadFlag, VASE, and of two runs what they lead.
        against: Within one run, the detector to compare --metric with.
    """
    from hedge_tasks.measures.headline import headline
    from hedge_tasks.runs.run_files import load_run

    runs = [run.load(), *([] if other is None else [load_run(other, run.task, trust=run.trust_run)])]
    if against and other:
        raise ConfigError("--against compares within one run; give one run")
    pairs = _between(runs, clustering, metric) if other else _within(runs[0], clustering, metric, against)
    if not pairs:
        raise ConfigError("there is nothing to compare; give a second run, or another --metric")
    findings = [headline(r) for r in runs]
    title = "\n".join(f"{side}: {r.title}" for side, r in zip("ab", runs, strict=False))
    return {
        "comparisons": comparison_table(pairs, title, one_family=len(runs) > 1),
        "finding": Details(findings[0].to_dict() if len(runs) == 1 else None),
        "notes": [line for finding in findings for line in (*finding.lines(), finding.labels)],
    }


def _between(runs: Sequence[Run], clustering: ClusteringChoice, metric: Sequence[str]) -> _Pairs:
    """Compare two runs by numbers of their suite, by detectors, and by the hallucination rate."""
    from hedge_tasks.detectors.pipeline import SCORE_NAMES
    from hedge_tasks.measures.comparisons import check_same_documents, compare_two_runs
    from hedge_tasks.measures.run_measures import compare_documents, documents_of
    from hedge_tasks.measures.standard_measures import HALLUCINATION_RATE
    from hedge_tasks.runs.audit_files import audit_of

    check_same_documents(*runs)
    audits = list(map(audit_of, runs))
    first, second = map(_suite, runs)
    own = {name: measure for name, measure in first.items() if name in second}
    names = _chosen(metric or [*(name for name, measure in own.items() if measure.leads), *SCORE_NAMES, _RATE], own)

    def documents(measure: Measure) -> list[list[Document]]:
        return [documents_of(run, measure) for run in runs]

    pairs: _Pairs = {name: compare_documents(own[name], *documents(own[name])) for name in own if name in names}
    detectors = [name for name in names if name != _RATE and name not in own]
    pairs |= _aurocs(runs, audits, clustering, detectors, everything=bool(metric))
    if _RATE in names:
        pairs[_RATE] = compare_two_runs(HALLUCINATION_RATE, documents(HALLUCINATION_RATE), audits)
    return pairs


def _aurocs(
    runs: Sequence[Run],
    audits: Sequence[ExpertAudit | None],
    clustering: ClusteringChoice,
    detectors: Sequence[str],
    *,
    everything: bool,
) -> _Pairs:
    """Compare detectors of two runs, where both have them; or all."""
    from hedge_tasks.measures.comparisons import compare_two_runs
    from hedge_tasks.measures.run_measures import scored_documents
    from hedge_tasks.measures.standard_measures import detector_auroc

    scorers = [clustering.scorer(run) for run in runs] if detectors else []
    _warn_of_differences(runs, [scorer.settings() for scorer in scorers])
    scores = [s.with_detectors(detectors).score(r.answer_sets) for r, s in zip(runs, scorers, strict=False)]
    shown = [name for name in detectors if everything or all(_is_there(name, side) for side in scores)]
    return {
        measure.name: compare_two_runs(measure, [scored_documents(side, measure) for side in scores], audits)
        for measure in map(detector_auroc, shown)
    }


def _within(run: Run, clustering: ClusteringChoice, metric: Sequence[str], against: str | None) -> _Pairs:
    """Compare detectors of one run, under one or several clusterings."""
    from hedge_tasks.detectors.pipeline import SCORE_NAMES
    from hedge_tasks.measures.headline import compare_by
    from hedge_tasks.runs.audit_files import audit_of

    own = _suite(run)
    end = _chosen([against], own)[0] if against else None
    names = _chosen([*(metric or SCORE_NAMES), *([end] if end else [])], own)
    if same := [name for name in names if name == _RATE or name in own]:
        raise ConfigError(f"{same[0]} is the same for all clusterings of a run; compare it between two runs")
    scores = {k: s.with_detectors(names).score(run.answer_sets) for k, s in clustering.scorers(run).items()}
    columns = [(k, name) for k in scores for name in names if metric or _is_there(name, scores[k])]
    audit = audit_of(run)
    return {
        f"{' '.join(x)} - {' '.join(y)}": compare_by(scores[x[0]], x[1], scores[y[0]], y[1], audit)
        for x, y in _pairs_of(columns, end)
    }


def _pairs_of(columns: Sequence[_Named], end: str | None) -> list[tuple[_Named, _Named]]:
    """Return pairs that differ in one thing, in the clustering or in the detector; or all with the detector `end`."""
    if end is not None:
        return [(x, (x[0], end)) for x in columns if x[1] != end and (x[0], end) in columns]
    return [(x, y) for x, y in combinations(columns, 2) if (x[0] == y[0]) != (x[1] == y[1])]


def _is_there(name: str, scores: Sequence[Scores]) -> bool:
    """Whether any document has this score: of samples none has one where one draw a document was made."""
    return any(score[name] is not None for score in scores)


def _suite(run: Run) -> dict[str, Measure]:
    from hedge_tasks.measures.measure import by_name
    from hedge_tasks.measures.run_measures import measures_of

    return by_name(measures_of(run.settings))


def _chosen(metrics: Sequence[str], own: Mapping[str, Measure]) -> list[str]:
    """Return metrics by their names: a detector's without its ending, the hallucination rate's, or a suite's own."""
    from hedge_tasks.detectors.registry import names
    from hedge_tasks.errors import check_names
    from hedge_tasks.measures.run_measures import by_any_name

    suite = {name: measure.name for name, measure in by_any_name(own.values()).items()}
    others = {_RATE: _RATE, **{f"{name}_auroc": name for name in names()}}
    valid = {**others, **{name: name for name in others.values()}, **suite}
    check_names("metric", [name for name in metrics if name not in valid], {**suite, **others})
    return list(dict.fromkeys(valid[name] for name in metrics))


def _warn_of_differences(runs: Sequence[Run], clusterings: Sequence[Mapping[str, Any]]) -> None:
    """Warn where two runs differ in more than the model: then the difference is not only about that."""
    from loguru import logger

    sampling = [dict(run.settings.get("sampling") or {}) for run in runs]
    judges = [{"judges": sorted({str(v.get("judge")) for v in run.verdicts.values()})} for run in runs]
    for about, sides in {"clustering": clusterings, "sampling": sampling, "labels": judges}.items():
        for key in dict.fromkeys(key for side in sides for key in side):
            a, b = (side.get(key) for side in sides)
            if a != b:
                logger.warning("{}: {} is {!r} in a and {!r} in b", about, key, a, b)


def comparison_table(pairs: Mapping[str, Comparison | None], title: str, *, one_family: bool = True) -> Table:
    """Return every comparison with its difference and p-value, and the one corrected for all of them.

    Args:
        one_family: Whether the table is a family of its own: between two runs. Those of one run are exploratory.
    """
    from hedge_tasks.numbers import FOUR_DIGITS, SIGNED_FOUR, Cell, Column, Number, Table
    from hedge_tasks.statistics import max_t

    adjusted = max_t([*pairs.values()]) if one_family else [None] * len(pairs)
    undefined = Number.undefined("no labelled document has this score on both sides")
    rows: list[dict[str, Cell]] = [
        {"metric": name, "difference": undefined}
        if c is None
        else {"metric": name, "difference": c.number, "a": c.a, "b": c.b, "p_value": c.p_value, "p_adjusted": p}
        for (name, c), p in zip(pairs.items(), adjusted, strict=True)
    ]
    columns = [
        *(Column("metric"), Column("a", format=FOUR_DIGITS), Column("b", format=FOUR_DIGITS)),
        Column("difference", "a - b", format=SIGNED_FOUR, interval=True),
        Column("p_value", "p", show="p"),
        *([Column("p_adjusted", "p (max-T)", show="p")] if one_family else []),
        Column("documents", "n", show="n", of="difference"),
    ]
    methods = dict.fromkeys(p.method for p in pairs.values() if p is not None and p.difference is not None)
    notes = [f"method: {', '.join(methods)}"] if methods else []
    return Table(columns, rows, title, [*notes, *([] if one_family else ["p: exploratory, each of one test"])])
