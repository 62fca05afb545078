"""A judge against labels that people gave: accuracy, recall of each class, kappa and the confusion matrix."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hedge_tasks.data import cells
from hedge_tasks.errors import ConfigError, DataError, check_names
from hedge_tasks.judging.base import Case, Verdict
from hedge_tasks.judging.label_files import HumanLabel, label_rows, read_label
from hedge_tasks.judging.prompt import load_judge_prompt
from hedge_tasks.judging.rule.polar import question_type

if TYPE_CHECKING:
    from hedge_tasks.statistics.agreement import Agreement

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "question": ("question", "instruction"),
    "reference": ("reference", "reference_answer", "ground_truth", "true_answer", "target"),
    "answer": ("answer", "baseline", "prediction", "generated_answer"),
    "description": ("description", "image_prompt"),
    "image": ("image", "image_path", "img_name"),
    "kind": ("kind", "question_type"),
    "label": ("label",),
}
"""Names of the columns of a file of human labels."""


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
class JudgeCheck:
    """Agreement of a judge's verdicts with people's.

    Attributes:
        classes: in the order of the confusion matrix.
        confusion: rows are people's classes, columns the judge's, and a last column for what it did not judge.
        kappa: Cohen's kappa over the judged. Its interval is a bootstrap over images, or over questions where the file
            names no images: answers about one image, or to one question, are judged alike.
        agreement: share of the judged that agree, with an interval of the same kind.
        of_type: the same by kind of question, as the file says it (else closed: the reference is yes or no, or the
            question offers options; or open), with the share left unlabelled; empty for a part of a check.
        wrong: cases whose verdict is another than the human one, each with both.
    """

    n: int
    judged: int
    classes: tuple[str, ...]
    recall: Mapping[str, Recall]
    confusion: tuple[tuple[int, ...], ...]
    kappa: Agreement
    agreement: Agreement
    of_type: Mapping[str, JudgeCheck] = field(default_factory=dict)
    wrong: tuple[tuple[Case, str, Verdict], ...] = field(repr=False, default=())

    @property
    def coverage(self) -> float | None:
        return _share(self.judged, self.n)

    @property
    def accuracy(self) -> float | None:
        """Share of the judged that agree."""
        return self.agreement.value


LABELS: Mapping[int | None, str] = {0: "supported", 1: "hallucinated"}


def read_checked(
    path: Path,
    *,
    scheme: str | None = None,
    columns: Mapping[str, str] | None = None,
    images: Path | None = None,
) -> tuple[list[Case], list[HumanLabel]]:
    """The cases of a file of human labels, and the labels. Rows without a label are left out.

    Args:
        columns: names of the columns, where they are not among `COLUMNS`; keys as there.
        images: folder of the pictures that the column `image` names; None shows none.

    Raises:
        DataError: names the line and what is wrong with it, such as a picture that is not there.
        ConfigError: a key of `columns` is none.
    """
    columns = columns or {}
    check_names("column", columns, COLUMNS)
    cases, labels = [], []
    for where, row in label_rows(path):
        label = read_label(where, row, columns.get("label", "label"), scheme)
        if label.label is None and label.category is None:
            continue
        cases.append(_pictured(_case(where, row, columns), where, row, columns, images))
        labels.append(label)
    if not cases:
        raise DataError(f"{path}: no row has a label")
    return cases, labels


@dataclass(frozen=True)
class Facet:
    """The group of an answer.

    Attributes:
        group: its image, or else its question: what intervals are taken over.
        kind: of its question, as the file says it; else closed or open.
    """

    group: str
    kind: str


def facets(cases: Sequence[Case], human: Sequence[HumanLabel], columns: Mapping[str, str] | None = None) -> list[Facet]:
    """Group and kind of each answer of `read_checked`."""
    of_cases = []
    for case, label in zip(cases, human, strict=True):
        image, kind = (_optional(label.row, key, label.where, columns or {}) for key in ("image", "kind"))
        group = f"image {image}" if image else f"question {case.question.strip().casefold()}"
        of_cases.append(Facet(group, kind or question_type(case.question, case.reference)))
    return of_cases


def _optional(row: Mapping[str, Any], key: str, where: str, columns: Mapping[str, str]) -> str:
    """The text of a column that need not be there; empty where it is not."""
    if key in columns:
        return cells.first_of(row, (columns[key],), where, key)
    return next((row[name] for name in COLUMNS[key] if isinstance(row.get(name), str)), "")


def _pictured(case: Case, where: str, row: Mapping[str, Any], columns: Mapping[str, str], folder: Path | None) -> Case:
    if folder is None or not (name := _optional(row, "image", where, columns)):
        return case
    file = picture_below(folder, name, where)
    return replace(case, images=lambda: [file], image_key=hashlib.sha256(file.read_bytes()).hexdigest())


def picture_below(folder: Path, name: str, where: str) -> Path:
    """The file of a picture that a row names.

    Raises:
        DataError: there is no such file below the folder.
    """
    root = folder.resolve()
    for candidate in (root / name, root / Path(name).name):
        if candidate.is_file() and candidate.resolve().is_relative_to(root):
            return candidate
    raise DataError(f"{where}: there is no picture {name} below {folder}")


class _Row(NamedTuple):
    """One answer: people's class, the judge's or None, and what it stands together with."""

    case: Case
    people: str
    judged: str | None
    verdict: Verdict
    facet: Facet


def check(
    cases: Sequence[Case],
    human: Sequence[HumanLabel],
    verdicts: Sequence[Verdict],
    question_facets: Sequence[Facet],
) -> JudgeCheck:
    """Compare labels: hallucinated and supported. Cases that people gave no label (only a category) are left out.

    Args:
        question_facets: as `facets` gives them.
    """
    rows = zip(cases, human, verdicts, question_facets, strict=True)
    return _compare(rows, lambda labelled: LABELS.get(labelled.label), [LABELS[1], LABELS[0]])


def check_categories(
    cases: Sequence[Case],
    human: Sequence[HumanLabel],
    verdicts: Sequence[Verdict],
    scheme: str,
    question_facets: Sequence[Facet],
) -> JudgeCheck:
    """Compare categories, those of a scheme such as `medhallmark`."""
    classes = [outcome.key for outcome in load_judge_prompt(scheme).outcomes]
    return _compare(zip(cases, human, verdicts, question_facets, strict=True), attrgetter("category"), classes)


def _compare(
    answers: Iterable[tuple[Case, HumanLabel, Verdict, Facet]],
    read: Callable[[Any], str | None],
    classes: Sequence[str],
) -> JudgeCheck:
    """Compare what is read of both sides; answers without a class of people's are left out."""
    rows = [_Row(c, people, read(v), v, facet) for c, h, v, facet in answers if (people := read(h)) is not None]
    if strange := {row.judged for row in rows if row.judged is not None}.difference(classes):
        raise ConfigError(f"the judge says {', '.join(sorted(strange))}; the labels are {', '.join(classes)}")
    kinds = sorted({row.facet.kind for row in rows})
    of_type = {kind: _compared([row for row in rows if row.facet.kind == kind], classes) for kind in kinds}
    return replace(_compared(rows, classes), of_type=of_type)


def _compared(rows: Sequence[_Row], classes: Sequence[str]) -> JudgeCheck:
    counts = Counter((row.people, row.judged) for row in rows)
    recall = {
        label: Recall(
            n=sum(counts[label, judged] for judged in (*classes, None)),
            judged=sum(counts[label, judged] for judged in classes),
            found=counts[label, label],
            given=sum(counts[people, label] for people in classes),
        )
        for label in classes
    }
    pairs = [(row.people, row.judged) for row in rows if row.judged is not None]
    groups = [row.facet.group for row in rows if row.judged is not None]
    return JudgeCheck(
        n=len(rows),
        judged=len(pairs),
        classes=tuple(classes),
        recall=recall,
        confusion=tuple(tuple(counts[people, judged] for judged in (*classes, None)) for people in classes),
        kappa=_kappa(pairs, groups),
        agreement=_agreement(pairs, groups),
        wrong=tuple((row.case, row.people, row.verdict) for row in rows if row.judged not in (None, row.people)),
    )


def _case(where: str, row: Mapping[str, Any], columns: Mapping[str, str]) -> Case:
    def text(key: str) -> str:
        names = (columns[key],) if key in columns else COLUMNS[key]
        return cells.first_of(row, names, where, key)

    description = _optional(row, "description", where, columns) or None
    # By its line: ids of such files need not be unique, and nothing is joined here.
    return Case(where.rpartition(":")[2], text("question"), text("reference"), text("answer"), description)


def _agreement(pairs: Sequence[tuple[str, str]], groups: Sequence[str]) -> Agreement:
    from hedge_tasks.statistics.agreement import Agreement, percent_agreement

    if not pairs:
        return Agreement.undefined("no answer is judged", n_raters=2)
    return percent_agreement([*zip(*pairs, strict=True)], groups=groups)


def _kappa(pairs: Sequence[tuple[str, str]], groups: Sequence[str]) -> Agreement:
    from hedge_tasks.statistics.agreement import Agreement, cohen_kappa

    people = [human for human, _ in pairs]
    if len(set(people)) == 1:
        # It would be 0 however good the judge is.
        reason = f"people put every judged answer into one class ({people[0]})"
        return Agreement.undefined(reason, n=len(pairs), n_raters=2)
    return cohen_kappa(people, [judged for _, judged in pairs], groups=groups)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
