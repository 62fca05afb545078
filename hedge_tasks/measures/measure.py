"""A measure: a number that an evaluation is about, declared once.

lmms-eval's table, run files, `hedge compare`, the commands of suites, reports and leaderboards all work from one
declaration: what is recorded of a document, what number follows from all records, and how two runs are compared.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.detectors.units import Unit, detection_auroc, shared_groups
from hedge_tasks.errors import ConfigError
from hedge_tasks.judging.designed import ExpertLabels
from hedge_tasks.numbers import THREE_DIGITS, WHOLE, Format, Number
from hedge_tasks.numbers.number import Interval
from hedge_tasks.statistics import (
    Comparison,
    compare_rates,
    compare_runs,
    compare_sums,
    estimate_of_sums,
    estimate_rate,
    ratio,
)
from hedge_tasks.statistics.base import FloatArray
from hedge_tasks.statistics.experts import audited_rate, by_labels_alone
from hedge_tasks.statistics.sums import of_values

Record = Mapping[str, Any]
"""Facts of a document that a measure keeps, fit for JSON."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Measure:
    """A number over documents. Subclasses say how it follows from them.

    Attributes:
        name: of the row in lmms-eval's table, and wherever a measure is named.
        title: for people; by default the name with blanks.
        about: what it is, in one sentence, for readers who do not know the evaluation.
        higher_is_better: whether it is.
        unit: what is counted.
        bounds: least and greatest possible value.
        format: how a value is written for people.
        columns: of a document (or of `HedgeTask.facts`) that `record` reads. `baseline_answer` and `reference` are
            always there.
        kept: whether run files keep these columns, so that runs are compared by it; if it is a function of sums, it
            stands in reports and submissions, too.
        leads: whether it stands at the head of reports and boards, and is among what is compared of two runs.
        of_samples: whether it is about sampled answers, so that a run without samples has none.
        passes: forced passes that it rests on, such as "forced_options"; see `hedge_tasks.detectors.base.NEEDS`.
        beyond_experts: why labels of experts (whether an answer is hallucinated) do not correct it, where they do not.
    """

    name: str
    title: str = ""
    about: str = ""
    higher_is_better: bool = True
    unit: str = "document"
    bounds: Interval = (0.0, 1.0)
    format: Format = THREE_DIGITS
    columns: tuple[str, ...] = ()
    kept: bool = False
    leads: bool = False
    of_samples: bool = False
    passes: tuple[str, ...] = ()
    beyond_experts: str = "made of more than labels"

    def __post_init__(self) -> None:
        if not self.title:
            object.__setattr__(self, "title", self.name.replace("_", " "))

    @property
    def detectors(self) -> tuple[str, ...]:
        """Detectors that have to score the answers for it."""
        return ()

    @property
    def unit_detectors(self) -> tuple[str, ...]:
        """Detectors that have to score parts of the answers for it."""
        return ()

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        """Return what the number needs of one document, fit for JSON.

        Args:
            scores: of its answers, with id, label, group and question type.
            verdict: of the judge: `judge`, `reason` and its further fields.
            document: its row of the data set.
        """
        raise TypeError(f"{type(self).__name__} is abstract")

    def facts(self, answers: AnswerSet) -> Record:
        """Return columns that follow from the answers of a run file, where it does not keep them."""
        return {}

    def estimate(
        self,
        records: Sequence[Record],
        groups: Sequence[Hashable] | None = None,
        audit: ExpertLabels | None = None,
    ) -> Number:
        """Return the number with its standard error, or the reason why there is none.

        Args:
            records: of all documents.
            groups: of each record; None for those that the records name. Documents of a group vary together.
            audit: labels of experts on a sample of them, in their order: the number is then against experts; without,
                it is against the judge.
        """
        if audit is None:
            return self.by_judge(records, groups)
        return self.by_experts(records, groups, audit)

    def by_judge(self, records: Sequence[Record], groups: Sequence[Hashable] | None = None) -> Number:
        """Return the number by the labels of the records; see `estimate`."""
        raise TypeError(f"{type(self).__name__} is abstract")

    def by_experts(self, records: Sequence[Record], groups: Sequence[Hashable] | None, audit: ExpertLabels) -> Number:
        """Return the number by the labels of experts; see `estimate`."""
        return Number.undefined(f"not corrected by experts: {self.beyond_experts}", unit=self.unit)

    def compare(self, a: Sequence[Record], b: Sequence[Record], groups: Sequence[Hashable]) -> Comparison | None:
        """Return the difference of two runs, paired by document; None where no document counts in both.

        Args:
            a, b: records of the same documents, in one order.
            groups: of each document.
        """
        raise ConfigError(f"two runs cannot be compared by {self.name}")


@dataclass(frozen=True, eq=False, kw_only=True)
class SumsMeasure(Measure):
    """A function of sums over documents: a mean, a share of all objects, an F1.

    Standard error and interval are between groups of documents. A subclass says what each document adds to the sums,
    and what number they make.

    Attributes:
        nothing: why there is no number, where no document counts.
    """

    nothing: str = "no document counts for it"

    def counts(self, records: Sequence[Record]) -> FloatArray:
        """Return what each document adds to the sums, shape (n, ...); zeros where it does not count."""
        raise TypeError(f"{type(self).__name__} is abstract")

    def statistic(self, sums: FloatArray) -> FloatArray:
        """Return the number of each of m sums, shape (m, ...) -> (m,); nan where it is undefined."""
        return ratio(sums)

    def with_label(self, record: Record, label: int | None) -> Record:
        """Return the record as it were if the answer had this label; None: if it gave none.

        Raises:
            LookupError: it does not follow from the label.
        """
        raise LookupError(self.name)

    def by_experts(self, records: Sequence[Record], groups: Sequence[Hashable] | None, audit: ExpertLabels) -> Number:
        places = audit.places
        try:
            labelled = [self.with_label(records[i], audit.label(i)) for i in places]
        except LookupError:
            return super().by_experts(records, groups, audit)
        named = [self.group_of(record) for record in records] if groups is None else groups
        shared = separate_groups([named[i] for i in places])
        return self._of_labelled(labelled, shared, audit)

    def _of_labelled(self, labelled: Sequence[Record], groups: Sequence[Hashable], audit: ExpertLabels) -> Number:
        """Return the number of the documents that experts labelled, by their labels."""
        return by_labels_alone(self.by_judge(labelled, groups), len(labelled))

    def group_of(self, record: Record) -> Hashable:
        """Return the group that a record names; None where the document is alone."""
        group: Hashable = record.get("group")
        return group

    def why_undefined(self, records: Sequence[Record]) -> str:
        """Return why there is no number."""
        return self.nothing

    def by_judge(self, records: Sequence[Record], groups: Sequence[Hashable] | None = None) -> Number:
        shared = separate_groups([self.group_of(record) for record in records]) if groups is None else groups
        number = estimate_of_sums(self.counts(records), shared, self.statistic, bounds=self.bounds)
        reason = number.reason if number.defined else self.why_undefined(records)
        return replace(number, unit=self.unit, reason=reason)

    def compare(self, a: Sequence[Record], b: Sequence[Record], groups: Sequence[Hashable]) -> Comparison | None:
        return compare_sums(self.counts(a), self.counts(b), groups, self.statistic, bounds=self.bounds) if a else None


@dataclass(frozen=True, eq=False, kw_only=True)
class Mean(SumsMeasure):
    """Mean of `value` over the records in which it is not None."""

    def counts(self, records: Sequence[Record]) -> FloatArray:
        return of_values([record["value"] for record in records])

    def by_judge(self, records: Sequence[Record], groups: Sequence[Hashable] | None = None) -> Number:
        number = super().by_judge(records, groups)
        values, counted = self.counts(records).T
        # The same in every order: a mean of equal numbers is that number.
        return replace(number, value=float(math.fsum(values) / counted.sum())) if number.defined else number


@dataclass(frozen=True, eq=False, kw_only=True)
class Rate(Mean):
    """Share of documents with some property: `value` is 1, 0, or None where a document does not count.

    The standard error is a proportion's, between groups where records share them.
    """

    higher_is_better: bool = False
    nothing: str = "no document has a label"

    def under(self, label: int | None) -> int | None:
        """Return the value of a document whose answer has this label; None of an answer that gives none.

        Raises:
            LookupError: it does not follow from the label.
        """
        raise LookupError(self.name)

    def with_label(self, record: Record, label: int | None) -> Record:
        return {"value": self.under(label)}

    def _of_labelled(self, labelled: Sequence[Record], groups: Sequence[Hashable], audit: ExpertLabels) -> Number:
        """Return it with the judge's labels of all documents, where every one counts and every stratum has a label."""
        values = [record["value"] for record in labelled]
        strata = audit.strata[audit.places]
        if None in values or len(np.unique(strata)) < len(np.unique(audit.strata)):
            return super()._of_labelled(labelled, groups, audit)
        rate = audited_rate(values, strata, np.bincount(audit.strata), groups=shared_groups(groups))
        return replace(rate, unit=self.unit)

    def by_judge(self, records: Sequence[Record], groups: Sequence[Hashable] | None = None) -> Number:
        all_groups = [self.group_of(record) for record in records] if groups is None else groups
        labelled = [(record["value"], group) for record, group in zip(records, all_groups, strict=True)]
        labelled = [(value, group) for value, group in labelled if value is not None]
        if not labelled:
            return Number.undefined(self.why_undefined(records), unit=self.unit)
        rate = estimate_rate([value for value, _ in labelled], groups=shared_groups([group for _, group in labelled]))
        return replace(rate, unit=self.unit)

    def compare(self, a: Sequence[Record], b: Sequence[Record], groups: Sequence[Hashable]) -> Comparison | None:
        of_all = enumerate(zip(a, b, groups, strict=True))
        pairs = [(x["value"], y["value"], group, i) for i, (x, y, group) in of_all]
        pairs = [pair for pair in pairs if None not in pair[:2]]
        if not pairs:
            return None
        first, second, pair_groups, places = zip(*pairs, strict=True)
        return compare_rates(first, second, groups=shared_groups(pair_groups)).among(places, len(a))


@dataclass(frozen=True, eq=False, kw_only=True)
class Count(Measure):
    """Sum of `value`; a count has no standard error."""

    bounds: Interval = (0.0, float("inf"))
    format: Format = WHOLE

    def by_judge(self, records: Sequence[Record], groups: Sequence[Hashable] | None = None) -> Number:
        return Number(float(sum(record["value"] for record in records)), n=len(records), unit=self.unit)


@dataclass(frozen=True, eq=False, kw_only=True)
class Auroc(Measure):
    """ROC-AUC of a score against labels, over the cases (`unit`) of all documents.

    The standard error is DeLong's, by group where cases share groups (Obuchowski 1997).

    Attributes:
        within: whether only cases of one parent are compared: questions of the same type, claims of one answer.
    """

    within: bool = False

    def cases(self, record: Record) -> Sequence[Unit]:
        """Return what a record contributes; the number of this measure's name is the score."""
        raise TypeError(f"{type(self).__name__} is abstract")

    def by_judge(self, records: Sequence[Record], groups: Sequence[Hashable] | None = None) -> Number:
        units: list[Unit] = []
        for record in records:
            why = {self.name: record["left_out"]} if record.get("left_out") else {}
            units += [replace(unit, left_out=why) for unit in self.cases(record)]
        return replace(detection_auroc(units, self.name, within=self.within, unit=self.unit), unit=self.unit)

    def compare(self, a: Sequence[Record], b: Sequence[Record], groups: Sequence[Hashable]) -> Comparison | None:
        if self.within or any(len(self.cases(record)) != 1 for record in (*a, *b)):
            raise ConfigError(f"two runs cannot be compared by {self.name}")
        sides = [[self._point(record) for record in records] for records in (a, b)]
        both = [i for i, points in enumerate(zip(*sides, strict=True)) if None not in points]
        if not both:
            return None
        (scores_a, labels_a), (scores_b, labels_b) = (np.array([side[i] for i in both]).T for side in sides)
        shared = shared_groups([groups[i] for i in both])
        return compare_runs(scores_a, labels_a, scores_b, labels_b, groups=shared).among(both, len(a))

    def _point(self, record: Record) -> tuple[float, int] | None:
        """Return score and label of the one case of a document; None where it lacks one."""
        [unit] = self.cases(record)
        score, label = unit.numbers.get(self.name), unit.label
        return None if score is None or label is None else (score, label)


def by_name(measures: Iterable[Measure]) -> dict[str, Measure]:
    """Return measures by their names.

    Raises:
        ConfigError: two have one name.
    """
    named: dict[str, Measure] = {}
    for measure in measures:
        if named.setdefault(measure.name, measure) is not measure:
            raise ConfigError(f"two measures have the name {measure.name!r}")
    return named


def separate_groups(groups: Sequence[Hashable]) -> list[Hashable]:
    """Return groups in which a document without one (None) is alone."""
    return [("document", i) if group is None else ("group", group) for i, group in enumerate(groups)]
