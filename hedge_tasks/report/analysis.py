"""The numbers of a run's report: one pass over its answers under each of its clusterings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations

from hedge_tasks.detectors.pipeline import Scores, main_detectors, name_of
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.errors import HedgeError
from hedge_tasks.judging.designed import ExpertAudit
from hedge_tasks.measures.audited import labels_by
from hedge_tasks.measures.comparisons import compare_two_runs
from hedge_tasks.measures.curves import within_strata
from hedge_tasks.measures.headline import Headline, auroc_by, compare_by, headline, readable_audit
from hedge_tasks.measures.measure import Measure
from hedge_tasks.measures.run_measures import documents_of, numbers_of_run, scored_documents
from hedge_tasks.measures.standard_measures import HALLUCINATION_RATE, detector_auroc
from hedge_tasks.numbers import SIGNED, Column, Number, Table
from hedge_tasks.runs.run_files import Run
from hedge_tasks.runs.scorers import scorers_or_exact
from hedge_tasks.statistics import Comparison, StratifiedAuroc, max_t

_BY_JUDGE = ", by the judge"

MOST_DRAWN = 6
"""Lines of a chart: as many as there are colours."""


@dataclass(frozen=True)
class Analysis:
    """A run with the scores of all its detectors.

    Attributes:
        run: as it was read, with its answers.
        scorers: by name; those that could be applied.
        scores: of every document, by scorer.
        estimates: ROC-AUC by scorer and score, by experts where there is an audit.
        within: the same within question types, where there are any, and no audit.
        left_out: scorer -> why it could not be applied.
        suite: the suite's own numbers; empty for a task of none.
        audit: labels of experts, which then are those of all numbers; None where there are none.
        named: detectors that were asked for, in place of those of the run.
    """

    run: Run
    scorers: Mapping[str, Scorer]
    scores: Mapping[str, Sequence[Scores]]
    estimates: Mapping[str, Mapping[str, Number]]
    within: Mapping[str, Mapping[str, StratifiedAuroc]]
    left_out: Mapping[str, str] = field(default_factory=dict)
    suite: Sequence[tuple[Measure, Number]] = ()
    audit: ExpertAudit | None = None
    named: tuple[str, ...] = ()

    @property
    def detectors(self) -> list[str]:
        """Detectors that the answers were scored with, under any clustering."""
        return list(dict.fromkeys(name for by_detector in self.estimates.values() for name in by_detector))

    @property
    def shown(self) -> tuple[str, ...]:
        """Detectors that are compared and drawn: without the simple baselines, where there are samples."""
        return self.named or main_detectors(name for name in self.detectors if self.n or self.has_number(name))

    @property
    def leading(self) -> str | None:
        """The clustering whose figures are drawn: that of the best detector which samples, else the first."""
        sampling = self.finding.sampling
        return sampling.clustering if sampling else next(iter(self.scores), None)

    @property
    def n(self) -> int:
        """Clean answers that every question has."""
        return min((len(a.clean) for a in self.run.answer_sets), default=0)

    @cached_property
    def labels(self) -> Mapping[str, int | None]:
        """Labels of the answers by id: of experts where there is an audit, else of the judge."""
        return labels_by(self.run.answer_sets, self.audit)

    @cached_property
    def finding(self) -> Headline:
        """The headline of the run, and how far it can be trusted."""
        return headline(self.run, self.scores, scorers=self.scorers, left_out=self.left_out)

    def has_number(self, detector: str) -> bool:
        """Return whether a detector has a ROC-AUC under any clustering."""
        return any(detector in numbers and numbers[detector].defined for numbers in self.estimates.values())

    def drawn(self, clustering: str) -> tuple[str, ...]:
        """Return the detectors of a chart with a line each: of many the best ones, in their order in `shown`."""
        estimates = self.estimates[clustering]
        candidates = [name for name in self.shown if name in estimates]
        best = sorted(candidates, key=lambda name: -1.0 if (v := estimates[name].value) is None else v, reverse=True)
        return tuple(name for name in candidates if name in best[:MOST_DRAWN])


def analyse(
    runs: Sequence[Run],
    *,
    detectors: Sequence[str] | None = None,
    scorers: Callable[[Run], dict[str, Scorer]] = scorers_or_exact,
    progress: Callable[[str], None] = lambda text: None,
) -> list[Analysis]:
    """Cluster and score every run with each of its own scorers; runs that record none get exact matching.

    A scorer whose model cannot be had is left out with the reason.

    Args:
        detectors: names of those that score; by default those of each run.
        scorers: of a run; by default its own.
        progress: called with what is being done, in words.
    """
    backends: dict[str, Scorer] = {}
    analyses = []
    for run in runs:
        shared = _shared(run, scorers(run), backends)
        if detectors:
            shared = {name: replace(scorer, detectors=tuple(detectors)) for name, scorer in shared.items()}
        analyses.append(replace(_analyse(run, shared, progress), named=tuple(detectors or ())))
    return analyses


def _analyse(run: Run, scorers: Mapping[str, Scorer], progress: Callable[[str], None]) -> Analysis:
    scores: dict[str, Sequence[Scores]] = {}
    left_out: dict[str, str] = {}
    for name, scorer in scorers.items():
        progress(f"{run.task}: {name}")
        try:
            scores[name] = scorer.score(run.answer_sets)
        except HedgeError as error:
            left_out[name] = str(error)
    applied = {name: scorers[name] for name in scores}
    audit, _ = readable_audit(run)
    estimates = {
        name: {detector: auroc_by(s, detector, audit) for detector in scorers[name].detectors}
        for name, s in scores.items()
    }
    within = {
        name: {score: w for score in scorers[name].detectors if (w := within_strata(s, score)) is not None}
        for name, s in scores.items()
        if audit is None
    }
    return Analysis(run, applied, scores, estimates, within, left_out, numbers_of_run(run, audit), audit)


def _shared(run: Run, scorers: dict[str, Scorer], backends: dict[str, Scorer]) -> dict[str, Scorer]:
    """Return the scorers with equal backends of all runs as one, so that a text is embedded only once.

    Each looks up its own run's evidence.
    """
    shared = {}
    for name, scorer in scorers.items():
        settings = {
            key: value for key, value in scorer.settings().items() if key not in ("with_question", "alpha", "detectors")
        }
        first = backends.setdefault(repr(sorted(settings.items())), scorer)
        shared[name] = replace(scorer, backend=first.backend).with_outputs(run.outputs)
    return shared


@dataclass(frozen=True)
class Pair:
    """Two things compared on the same documents, by name.

    Attributes:
        topic: what several pairs have in common: the task, or the kind of things that are compared.
        number: name of what is compared.
        a, b: the two.
        comparison: their difference.
        p_adjusted: p-value adjusted for all pairs of a family; None for those of none.
    """

    topic: str
    number: str
    a: str
    b: str
    comparison: Comparison
    p_adjusted: float | None = None

    @property
    def p(self) -> float | None:
        """The p-value that is shown."""
        return self.comparison.p_value if self.p_adjusted is None else self.p_adjusted

    @property
    def values(self) -> dict[str, float | Number | None]:
        """The values of both, and their difference."""
        return {"value_a": self.comparison.a, "value_b": self.comparison.b, "difference": self.comparison.number}


def compare_within(analysis: Analysis) -> list[Pair]:
    """Compare the scores of each clustering with each other, and each score between the clusterings.

    By experts where there is an audit. These are exploratory, without an adjusted p-value: the run's family of
    comparisons is in its headline.
    """
    scores, audit = analysis.scores, analysis.audit
    columns = [(name, score) for name in scores for score in analysis.named or analysis.drawn(name)]
    detectors, clusterings = [], []
    for (x, a), (y, b) in combinations(columns, 2):
        if (x == y) != (a == b) and (comparison := compare_by(scores[x], a, scores[y], b, audit)):
            if x == y:
                detectors.append(Pair("Detectors, under each clustering", x, name_of(a), name_of(b), comparison))
            else:
                clusterings.append(Pair("Clusterings, by each detector", name_of(a), x, y, comparison))
    return [*detectors, *clusterings]


def compare_between(analyses: Sequence[Analysis], names: Mapping[int, str]) -> list[Pair]:
    """Compare runs of one task with each other, all of them as one family.

    Args:
        names: what each run is called, by its place in `analyses`.
    """
    both = [(i, k) for i, k in combinations(range(len(analyses)), 2) if analyses[i].run.task == analyses[k].run.task]
    return one_family([p for i, k in both for p in compare_two(analyses[i], analyses[k], names[i], names[k])])


def compare_two(first: Analysis, second: Analysis, a: str, b: str) -> list[Pair]:
    """Compare two runs: the suite's leading numbers, the hallucination rates, all detectors that both have.

    By experts where audits stand beside both; by the judge, and saying so, where one stands beside one of them.

    Args:
        a, b: what the runs are called.
    """
    compared = (*_of_suites(first, second), *_of_labels(first, second))
    by = _BY_JUDGE if (first.audit is None) != (second.audit is None) else ""
    return [Pair(first.run.task, f"{title}{by}", a, b, c) for title, c in compared if c is not None]


def one_family(pairs: Sequence[Pair]) -> list[Pair]:
    """Return comparisons with p-values that hold for all of them together."""
    adjusted = max_t([pair.comparison for pair in pairs])
    return [replace(pair, p_adjusted=p) for pair, p in zip(pairs, adjusted, strict=True)]


def _of_suites(first: Analysis, second: Analysis) -> Iterator[tuple[str, Comparison | None]]:
    """Compare two runs by the leading numbers of their suite that both have."""
    theirs = {measure.name for measure, number in second.suite if number.defined}
    for measure, number in first.suite:
        if measure.leads and number.defined and measure.name in theirs:
            sides = [documents_of(analysis.run, measure) for analysis in (first, second)]
            yield measure.title, compare_two_runs(measure, sides, (first.audit, second.audit))


def _of_labels(first: Analysis, second: Analysis) -> Iterator[tuple[str, Comparison | None]]:
    """Compare two runs by what their labels say: the hallucination rate, and the detectors that both have."""
    sides = (first, second)
    audits = [side.audit for side in sides]
    rates = [documents_of(side.run, HALLUCINATION_RATE) for side in sides]
    yield HALLUCINATION_RATE.title, compare_two_runs(HALLUCINATION_RATE, rates, audits)
    for name in first.scores:
        for score in (s for s in first.shown if s in second.estimates.get(name, ())):
            measure = detector_auroc(score)
            scored = [scored_documents(side.scores[name], measure) for side in sides]
            yield f"{name}, {name_of(score)}", compare_two_runs(measure, scored, audits)


def table_of(pairs: Sequence[Pair]) -> Table:
    """Return comparisons as a table; a difference is of the first less the second, on the documents that both have."""
    adjusted = any(pair.p_adjusted is not None for pair in pairs)
    sides = {(pair.topic, pair.a, pair.b) for pair in pairs}
    notes = [f"{topic}: a is {a}, b is {b}." for topic, a, b in sides if len(sides) == 1 and (a, b) != ("a", "b")]
    if any(pair.number.endswith(_BY_JUDGE) for pair in pairs):
        notes.append("By the judge, because experts labelled answers of one of two runs alone.")
    columns = [
        *map(Column, ("what",) if len(sides) == 1 else ("of", "what", "a", "b")),
        *map(Column, ("value_a", "value_b")),
        Column("difference", "a - b", format=SIGNED, interval=True),
        Column("p", "p (max-T)" if adjusted else "p (exploratory)", show="p"),
        Column("pairs", "paired", show="n", of="difference"),
        Column("rarer", "rarer class", show="n_rarer", of="difference"),
    ]
    rows = [
        {"of": pair.topic, "what": pair.number, "a": pair.a, "b": pair.b, **pair.values, "p": pair.p} for pair in pairs
    ]
    return Table(columns, rows, "Paired differences, on the same answers", notes)
