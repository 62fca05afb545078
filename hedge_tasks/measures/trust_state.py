"""How far a run's numbers can be trusted: one state with its reasons, for every place that shows them.

Red: the numbers cannot be relied on. Yellow: something a reader must know before quoting them. Not checked: nothing was
found, and not everything could be tested. Green: everything was tested, and nothing was found. Notes say what is not
known or how a number came about; they change no colour.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.detectors.units import Labelled
from hedge_tasks.judging.designed import ExpertAudit
from hedge_tasks.measures.audited import labels_by
from hedge_tasks.measures.blind import SIGNIFICANT
from hedge_tasks.numbers import WHOLE_PERCENT, Format, Number, format_number, format_p
from hedge_tasks.runs.health import health_of
from hedge_tasks.runs.run_files import Run
from hedge_tasks.statistics.base import FEWEST_OF_A_CLASS, codes_of, two_sided_p
from hedge_tasks.statistics.placements import degrees_of_freedom, deleted_spread, whole_auroc, without_each_group

FEW = 20
"""With fewer answers of one class an AUROC says little."""

TrustLevel = Literal["green", "not checked", "yellow", "red"]
WORDS: Mapping[TrustLevel, str] = {
    "green": "no objection",
    "not checked": "no objection where something could be tested",
    "yellow": "with reservations",
    "red": "unreliable",
}
_ORDER = ("red", "yellow", "not checked", "note")


@dataclass(frozen=True)
class TrustReason:
    """One reason for a state of trust.

    Attributes:
        text: a sentence or two.
        level: that it calls for; a note calls for none.
    """

    text: str
    level: Literal["note", "not checked", "yellow", "red"] = "yellow"

    @property
    def head(self) -> str:
        """The reason in short: its first sentence where the others are details."""
        return (self.text if self.level == "red" else self.text.split(". ")[0]).rstrip(".")

    @property
    def rest(self) -> str:
        """The reason without its head."""
        return self.text[len(self.head) :].removeprefix(".").strip()


@dataclass(frozen=True)
class TrustState:
    """How far a run's numbers can be trusted.

    Attributes:
        reasons: the gravest first.
    """

    reasons: tuple[TrustReason, ...] = ()

    @property
    def level(self) -> TrustLevel:
        """The gravest level of any reason."""
        levels = {reason.level for reason in self.reasons}
        return next((level for level in ("red", "yellow", "not checked") if level in levels), "green")

    @property
    def grave(self) -> list[TrustReason]:
        """The reasons that are no notes."""
        return [reason for reason in self.reasons if reason.level != "note"]

    @property
    def objections(self) -> list[str]:
        """Texts of the reasons that are no notes."""
        return [reason.text for reason in self.grave]

    @property
    def notes(self) -> list[str]:
        return [reason.text for reason in self.reasons if reason.level == "note"]

    @property
    def short(self) -> str:
        """The state in a line: its colour, and the gravest reason."""
        others = len(self.grave) - 1
        more = f" (and {others} more, see hedge health)" if others > 0 else ""
        first = f": {self.reasons[0].head.removeprefix('Not checked: ')}" if self.grave else ""
        return f"{self.level}, {WORDS[self.level]}{first}{more}"

    @property
    def text(self) -> str:
        """The state and all its reasons, a line each."""
        reasons = [f"  {reason.level}: {reason.text}" for reason in self.reasons]
        return "\n".join([f"Trust: {self.level}, {WORDS[self.level]}", *reasons])

    def to_dict(self) -> dict[str, Any]:
        return {"level": self.level, "reasons": [asdict(reason) for reason in self.reasons]}


def trust_of(
    run: Run,
    scorers: Mapping[str, Scorer],
    left_out: Mapping[str, str],
    audit: ExpertAudit | None,
    lead: Labelled | None,
    both: Sequence[tuple[str, Number, Number]],
) -> TrustState:
    """Return how far a run's numbers can be trusted: by its health, classes, question types, labels and settings.

    Args:
        scorers: what the scores were made with, by clustering.
        left_out: clustering -> why there are no scores.
        audit: of the run's labels by experts, where there is one.
        lead: scores of the detector that the headline is about, with the judge's labels; None where it has none.
        both: the headline's numbers, by name, by the labels that it rests on, and by the judge's.
    """
    reasons = [
        *(_about_question_types(run, lead) if lead is not None and audit is None else ()),
        *_about_classes(run, audit),
        *_about_health(run),
        *_about_labels(run, audit, both),
        *(TrustReason(f"Left out is the clustering {name}: {why}") for name, why in left_out.items()),
        *_about_thresholds(run, scorers),
    ]
    return TrustState(tuple(sorted(dict.fromkeys(reasons), key=lambda reason: _ORDER.index(reason.level))))


def _about_health(run: Run) -> Iterator[TrustReason]:
    """Yield what could make every number of the run mean something else; see `hedge_tasks.runs.health`."""
    health = health_of(run)
    for finding in health.findings:
        text = f"{finding.text[0].upper()}{finding.text[1:]}."
        if finding.unreliable:
            yield TrustReason(f"The numbers of this run are unreliable. {text}", "red")
        else:
            yield TrustReason(text, "yellow")
    if health.unchecked:
        yield TrustReason(f"Not checked: {'; '.join(health.unchecked)}.", "not checked")


def _about_question_types(run: Run, column: Labelled) -> Iterator[TrustReason]:
    """Yield whether the kind of question explains part of the lead's ROC-AUC, by a test of pooled minus within.

    Questions in the same words are of one kind where nothing says their kinds.
    """
    if column.strata is None:
        questions = {a.id: a.question for a in run.answer_sets}
        column = replace(column, strata=tuple(map(questions.get, column.ids)))
    inside = column.within()
    if inside.value is None:
        kinds = column.strata or ()
        if len({*zip(kinds, column.labels, strict=True)}) == len({*kinds}) <= len(kinds) / FEW:
            yield TrustReason("The question alone tells right from wrong answers: those to one kind are all the same.")
        return
    pooled, difference, p = pooled_less_within(column)
    if p is not None and p < SIGNIFICANT and difference > 0:
        two, share = Format(digits=2), "All" if inside.low is not None and inside.low <= 0.5 else "Part"
        yield TrustReason(
            f"{share} of the lead's ROC-AUC may come from the question type. It is {two(pooled)} pooled, and "
            f"{two(inside.value)} among questions of the same type (p of the difference {format_p(p)})."
        )


def pooled_less_within(column: Labelled) -> tuple[float, float, float | None]:
    """Return the pooled ROC-AUC, how much higher it is than the one within strata, and the p-value of that.

    By the jackknife over groups of both at once; no p-value where without a group nothing is left to compare.
    """
    n, positive = len(column.values), column.labels == 1
    groups = codes_of(column.groups or range(n), n, "groups")
    strata = codes_of(column.strata or (None,) * n, n, "strata")
    pooled, within = (whole_auroc(column.values, positive, codes) for codes in (None, strata))
    left = [without_each_group(column.values, positive, groups, codes) for codes in (None, strata)]
    spread = deleted_spread(left[0] - left[1] - (pooled - within))
    degrees = degrees_of_freedom(positive, None if column.groups is None else groups)
    return pooled, pooled - within, two_sided_p((pooled - within) / spread, degrees) if spread > 0 else None


def _about_classes(run: Run, audit: ExpertAudit | None) -> Iterator[TrustReason]:
    labels = [label for label in labels_by(run.answer_sets, audit).values() if label is not None]
    rarer = min(sum(labels), len(labels) - sum(labels))
    if not labels:
        yield TrustReason("No answer has a label, so there is no ROC-AUC. Label the run with hedge judge.")
    elif rarer < FEW:
        yield TrustReason(
            f"Few labels of a class: {sum(labels)} hallucinated and {len(labels) - sum(labels)} supported. Below "
            f"{FEW} of a class intervals are wide and rankings uncertain, below {FEWEST_OF_A_CLASS} is no ROC-AUC."
        )


def _about_labels(
    run: Run, audit: ExpertAudit | None, both: Sequence[tuple[str, Number, Number]]
) -> Iterator[TrustReason]:
    names = {str(verdict.get("judge")) for verdict in run.verdicts.values()}
    models = sorted(name for name in names if name.startswith(("llm", "hf")))
    if audit is not None:
        for name, *numbers in both:
            intervals = [number.interval for number in numbers if number.interval]
            if len(intervals) == 2 and max(intervals)[0] > min(intervals)[1]:
                ours, judges = (format_number(number, WHOLE_PERCENT, interval=True) for number in numbers)
                yield TrustReason(
                    f"Experts contradict the judge: {name} is {ours} by their labels, and {judges} by the judge's.",
                    "red",
                )
    elif models:
        yield TrustReason(f"The labels are a model's ({', '.join(models[:2])}), and no expert has checked any of them.")
    elif run.verdicts:
        yield TrustReason("No expert has checked the labels: `hedge audit plan` chooses documents for them.", "note")


def _about_thresholds(run: Run, scorers: Mapping[str, Scorer]) -> Iterator[TrustReason]:
    for name, scorer in scorers.items():
        if scorer.choice is not None and scorer.choice.method == "oracle":
            yield TrustReason(f"The threshold of {name} was tuned on the reported documents, which is optimistic.")
    for name, outcome in run.settings.get("filters", {}).items():
        for reason in [part["reason"] for part in outcome.get("chosen", {}).get("parts", []) if part.get("reason")][:1]:
            yield TrustReason(f"The threshold of {name} could not be chosen ({reason}); a fixed one was used.")
