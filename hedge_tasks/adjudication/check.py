"""A judge against labels that people gave: accuracy, recall of each class, kappa and the confusion matrix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.adjudication.base import Case, Verdict
from hedge_tasks.adjudication.label_files import HumanLabel, first_of, read_label, read_rows
from hedge_tasks.adjudication.prompt import load_judge_prompt
from hedge_tasks.adjudication.rule import question_type
from hedge_tasks.errors import ConfigError, DataError, unknown

if TYPE_CHECKING:
    from hedge_tasks.statistics.agreement import Agreement

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "question": ("question", "instruction"),
    "reference": ("reference", "reference_answer", "ground_truth", "true_answer", "target"),
    "answer": ("answer", "baseline", "prediction", "generated_answer"),
    "description": ("description", "image_prompt"),
}
"""What the columns of a file of human labels may be called."""


@dataclass(frozen=True)
class Recall:
    """How much of one class the judge found.

    Attributes:
        n: answers that people put into the class.
        judged: those that the judge put into any.
        found: those that it put into this one.
        given: answers of any class that it put into this one.
    """

    n: int
    judged: int
    found: int
    given: int

    @property
    def recall(self) -> float | None:
        """Share found among the judged."""
        return _share(self.found, self.judged)

    @property
    def recall_of_all(self) -> float | None:
        """Share found among all, in which an answer that was not judged is one that was not found."""
        return _share(self.found, self.n)

    @property
    def precision(self) -> float | None:
        return _share(self.found, self.given)


@dataclass(frozen=True)
class Check:
    """What a judge's verdicts have in common with people's.

    Attributes:
        classes: in the order of the confusion matrix.
        confusion: rows are people's classes, columns the judge's, and a last column for what it did not judge.
        kappa: Cohen's kappa over the judged. Its interval is a bootstrap over questions, for answers to one question
            (copies above all) are judged alike.
        agreement: share of the judged that agree, with an interval of the same kind.
        of_type: the same by question type (closed: the reference is yes or no, or the question offers options; else
            open), with the share left unlabelled; empty for a part of a check.
        wrong: cases whose verdict is another than the human one, each with both.
    """

    n: int
    judged: int
    correct: int
    classes: tuple[str, ...]
    recall: Mapping[str, Recall]
    confusion: tuple[tuple[int, ...], ...]
    kappa: Agreement
    agreement: Agreement
    of_type: Mapping[str, Check] = field(default_factory=dict)
    wrong: tuple[tuple[Case, str, Verdict], ...] = field(repr=False, default=())

    @property
    def coverage(self) -> float | None:
        return _share(self.judged, self.n)

    @property
    def accuracy(self) -> float | None:
        """Share of the judged that agree."""
        return _share(self.correct, self.judged)


LABELS = {0: "supported", 1: "hallucinated"}


def read_checked(
    path: Path,
    *,
    label_field: str = "label",
    scheme: str | None = None,
    columns: Mapping[str, str] | None = None,
) -> tuple[list[Case], list[HumanLabel]]:
    """The cases of a file of human labels, and the labels. Rows without a label are left out.

    Args:
        columns: names of the columns, where they are not among `COLUMNS`; keys as there.

    Raises:
        DataError: names the line and what is wrong with it.
        ConfigError: a key of `columns` is none.
    """
    for key in columns or {}:
        if key not in COLUMNS:
            raise unknown("column", key, COLUMNS)
    cases, labels = [], []
    for where, row in read_rows(path):
        label = read_label(where, row, label_field, scheme)
        if label.label is None and label.category is None:
            continue
        cases.append(_case(where, row, columns or {}))
        labels.append(label)
    if not cases:
        raise DataError(f"{path}: no row has a label")
    return cases, labels


def check(cases: Sequence[Case], human: Sequence[HumanLabel], verdicts: Sequence[Verdict]) -> Check:
    """Compare labels: hallucinated and supported. Cases that people gave no label (only a category) are left out."""
    rows = [
        (c, LABELS[h.label], None if v.label is None else LABELS[v.label], v)
        for c, h, v in zip(cases, human, verdicts, strict=True)
        if h.label is not None
    ]
    return _compare(rows, [LABELS[1], LABELS[0]])


def check_categories(
    cases: Sequence[Case], human: Sequence[HumanLabel], verdicts: Sequence[Verdict], scheme: str
) -> Check:
    """Compare categories, those of a scheme such as `medhallmark`."""
    rows = [
        (c, h.category, v.category, v) for c, h, v in zip(cases, human, verdicts, strict=True) if h.category is not None
    ]
    classes = [outcome.key for outcome in load_judge_prompt(scheme).outcomes]
    if strange := {judged for _, _, judged, _ in rows if judged is not None} - set(classes):
        raise ConfigError(f"the judge says {', '.join(sorted(strange))}; the labels are {', '.join(classes)}")
    return _compare(rows, classes)


def _compare(rows: Sequence[tuple[Case, str, str | None, Verdict]], classes: Sequence[str]) -> Check:
    types: dict[str, list[tuple[Case, str, str | None, Verdict]]] = {}
    for row in rows:
        types.setdefault(question_type(row[0].question, row[0].reference), []).append(row)
    return replace(_compared(rows, classes), of_type={name: _compared(types[name], classes) for name in sorted(types)})


def _compared(rows: Sequence[tuple[Case, str, str | None, Verdict]], classes: Sequence[str]) -> Check:
    counts = Counter((people, judged) for _, people, judged, _ in rows)
    recall = {
        of: Recall(
            n=sum(counts[of, judged] for judged in (*classes, None)),
            judged=sum(counts[of, judged] for judged in classes),
            found=counts[of, of],
            given=sum(counts[people, of] for people in classes),
        )
        for of in classes
    }
    pairs = [(people, judged) for _, people, judged, _ in rows if judged is not None]
    questions = [case.question.strip().casefold() for case, _, judged, _ in rows if judged is not None]
    return Check(
        n=len(rows),
        judged=len(pairs),
        correct=sum(one == other for one, other in pairs),
        classes=tuple(classes),
        recall=recall,
        confusion=tuple(tuple(counts[people, judged] for judged in (*classes, None)) for people in classes),
        kappa=_kappa(pairs, questions),
        agreement=_agreement(pairs, questions),
        wrong=tuple((c, people, v) for c, people, judged, v in rows if judged is not None and judged != people),
    )


def _case(where: str, row: Mapping[str, Any], columns: Mapping[str, str]) -> Case:
    def text(key: str) -> str:
        names = (columns[key],) if key in columns else COLUMNS[key]
        return first_of(row, names, where, key)

    described = "description" in columns or any(name in row for name in COLUMNS["description"])
    description = text("description") if described else None
    # By its line: ids of such files need not be unique, and nothing is joined here.
    return Case(where.rpartition(":")[2], text("question"), text("reference"), text("answer"), description)


def _agreement(pairs: Sequence[tuple[str, str]], questions: Sequence[str]) -> Agreement:
    from hedge_tasks.statistics.agreement import Agreement, percent_agreement

    if not pairs:
        return Agreement(None, None, 0, 2, "no answer is judged")
    return percent_agreement([[one for one, _ in pairs], [other for _, other in pairs]], groups=questions)


def _kappa(pairs: Sequence[tuple[str, str]], questions: Sequence[str]) -> Agreement:
    from hedge_tasks.statistics.agreement import Agreement, cohen_kappa

    people = [one for one, _ in pairs]
    if len(set(people)) == 1:
        # It would be 0 however good the judge is.
        return Agreement(None, None, len(pairs), 2, f"people put every judged answer into one class ({people[0]})")
    return cohen_kappa(people, [judged for _, judged in pairs], groups=questions)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
