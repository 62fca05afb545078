"""Labels of experts on a designed sample: the plan that says what was drawn, and the files that come back.

Files of labels are the review page's CSV, a table of one's own (CSV, JSON lines) and a JSON export of Label Studio.
They name documents by the codes of the plan, or by the run's own ids. Several people may label one document; those who
disagree count as a share.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field

from hedge_tasks.data import cells
from hedge_tasks.data.tables import read_rows
from hedge_tasks.errors import DataError, unknown
from hedge_tasks.io import outside
from hedge_tasks.io.json_lines import Row
from hedge_tasks.io.records import AtLeastOne, Count, Items, Label, Name, Objects, Record, Text
from hedge_tasks.statistics.agreement import Agreement, cohen_kappa
from hedge_tasks.statistics.base import codes_of
from hedge_tasks.statistics.designs import Design
from hedge_tasks.statistics.verified import Verified, verified

FORMAT = 1
NO_ANSWER = "no answer"
MEANINGS = ("hallucinated", "supported", NO_ANSWER)
"""Experts' verdicts on an answer."""

_CODE_COLUMNS = ("code", "id")
_LABEL_COLUMNS = ("label", "verdict", "choice")
_RATER_COLUMNS = ("rater", "annotator", "completed_by")
_DECLINED = frozenset({"no answer", "no_answer", "declined", "refusal", "refused", "no label"})

Stratum = Annotated[int, Field(ge=0)]


class PlannedStratum(Record):
    """A part of the run's documents of which all have the same chance.

    Attributes:
        title: for people.
        size: documents in it; images, where these are drawn whole.
        take: of these, how many to label.
    """

    title: Text
    size: AtLeastOne
    take: Count


class PlannedItem(Record):
    """The question that people are asked.

    Attributes:
        code: under which they know it.
        id: of the document; None for a control.
        label: of a control: what a careful person says.
        raters: which shares it is in.
    """

    code: Name
    id: Text | None = None
    label: Label | None = None
    raters: Items[Count]


class AuditPlan(Record):
    """Which documents of a run experts label.

    Attributes:
        hedge_audit: format.
        task, model, created: of the run.
        purpose: number that the labels are chosen for.
        detector, filter: whose scores the strata go by.
        seed: of the draw.
        strata: with their sizes.
        documents: all of the run, by id -> stratum.
        units: by id -> number of the image with which a document is drawn; empty where documents are drawn one by one.
        items: what is asked.
    """

    hedge_audit: Annotated[int, Field(ge=FORMAT, le=FORMAT)]
    task: Text
    model: Text
    created: Text
    purpose: Text
    detector: Text
    filter: Text
    seed: int
    strata: Items[PlannedStratum]
    documents: Objects[Stratum]
    units: Objects[Count] = Field(default_factory=dict)
    items: Items[PlannedItem]


class ExpertSaid(NamedTuple):
    """One person on one item."""

    where: str
    code: str
    rater: str
    meaning: str


def read_plan(path: Path) -> AuditPlan:
    """Read a plan.

    Raises:
        DataError: it is none, or damaged.
    """
    plan = AuditPlan.read(outside.parse_json(outside.read_text(path), str(path)), str(path))
    if strange := [id for id, stratum in plan.documents.items() if stratum >= len(plan.strata)]:
        raise DataError(f"{path}: documents.{strange[0]}: there is no such stratum")
    if plan.units:
        if plan.units.keys() != plan.documents.keys():
            raise DataError(f"{path}: units: expected one for each document, or none at all")
        if len({*zip(plan.units.values(), map(plan.documents.get, plan.units), strict=True)}) > len(
            {*plan.units.values()}
        ):
            raise DataError(f"{path}: units: one is in two strata")
    return plan


def read_experts(path: Path) -> list[ExpertSaid]:
    """Read labels of experts; rows without one are left out.

    Raises:
        DataError: names the file, the row and what is wrong.
    """
    rows = read_rows(path)
    if not rows:
        raise DataError(f"{path}: no labels in it")
    labels = [label for row in rows for label in _labels_in_row(row, path.stem)]
    if not labels:
        raise DataError(f"{path}: no row has a label")
    return labels


def _labels_in_row(row: Row, name: str) -> list[ExpertSaid]:
    where, fields = row
    if "annotations" in fields:
        return _labels_of_label_studio(where, fields)
    if isinstance(fields.get("data"), Mapping):  # Label Studio's tasks that nobody labelled
        return []
    code = next((c for c in _CODE_COLUMNS if c in fields), None)
    label = next((c for c in _LABEL_COLUMNS if c in fields), None)
    if code is None or label is None:
        missing = "code" if code is None else "label"
        raise DataError(f"{where}: {unknown('column', missing, map(str, fields))}")
    meaning = _meaning(fields[label], f"{where}: {label}")
    if meaning is None:
        return []
    rater = next((str(fields[c]) for c in _RATER_COLUMNS if not cells.is_missing(fields.get(c))), name)
    return [ExpertSaid(where, cells.required(fields[code], f"{where}: {code}"), rater, meaning)]


def _labels_of_label_studio(where: str, task: Mapping[str, Any]) -> list[ExpertSaid]:
    """One task of Label Studio's JSON export; annotations that were skipped say nothing."""
    data, annotations = task.get("data"), task.get("annotations")
    if not isinstance(data, Mapping) or not isinstance(annotations, list):
        raise DataError(f"{where}: expected a task of Label Studio with data and annotations")
    code = next((data[c] for c in _CODE_COLUMNS if c in data), None)
    labels = []
    for annotation in annotations:
        if not isinstance(annotation, Mapping) or annotation.get("was_cancelled"):
            continue
        results = annotation.get("result")
        choices = [
            choice
            for result in (results if isinstance(results, list) else [])
            if isinstance(result, Mapping) and result.get("type") == "choices"
            for choice in (result.get("value") or {}).get("choices", [])
        ]
        if len(choices) > 1:
            raise DataError(f"{where}: an annotation has {len(choices)} choices, expected one")
        meaning = _meaning(choices[0], f"{where}: choice") if choices else None
        if meaning is not None:
            by = annotation.get("completed_by")
            rater = by.get("id") if isinstance(by, Mapping) else by
            labels.append(ExpertSaid(where, cells.required(code, f"{where}: data.code"), f"annotator {rater}", meaning))
    return labels


def _meaning(value: object, where: str) -> str | None:
    if isinstance(value, str) and value.strip().casefold() in _DECLINED:
        return NO_ANSWER
    try:
        label = cells.label(value, where)
    except DataError as error:
        raise DataError(f"{error}, or {NO_ANSWER!r}") from None
    return None if label is None else MEANINGS[0] if label else MEANINGS[1]


# --- together ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ExpertAudit:
    """Experts' verdicts on a run's documents, and how these were drawn.

    Attributes:
        strata: titles.
        of: document -> stratum, for all documents of the run.
        units: document -> number of the image with which it was drawn; empty where documents were drawn one by one.
        said: document -> what each person said, in `MEANINGS`.
        raters: how many people there were.
        kappa: Cohen's, of two people on what both labelled; None where there are not two.
        controls: answers whose label is known, and how many of them people got right.
        lost: documents (or images) that were drawn and have no label (or one of whose documents has none).
        by: who labelled, in roles and numbers such as "2 radiologists"; empty where nobody says.
    """

    strata: tuple[str, ...]
    of: Mapping[str, int]
    said: Mapping[str, tuple[str, ...]]
    raters: int = 1
    kappa: Agreement | None = None
    controls: tuple[int, int] = (0, 0)
    lost: int = 0
    by: str = ""
    units: Mapping[str, int] = field(default_factory=dict)

    @property
    def n_labels(self) -> int:
        return len(self.said)

    def on(self, ids: Sequence[str]) -> ExpertLabels:
        """Return the labels of documents, in this order.

        Raises:
            DataError: the plan does not know one of them.
        """
        if strange := [id for id in ids if id not in self.of]:
            raise DataError(f"the audit is of another run: it does not know the document {strange[0]!r}")
        units = tuple(self.units[id] for id in ids) if self.units else None
        return ExpertLabels(tuple(self.of[id] for id in ids), tuple(self.said.get(id, ()) for id in ids), units)


@dataclass(frozen=True)
class ExpertLabels:
    """Labels of experts beside records, in their order.

    Attributes:
        strata: of each record's document.
        said: what people said of it; nothing for what was not drawn.
        units: what each record's document was drawn with; None where documents were drawn one by one.
    """

    strata: tuple[int, ...]
    said: tuple[tuple[str, ...], ...]
    units: tuple[int, ...] | None = None

    def some(self, places: Sequence[int]) -> ExpertLabels:
        """Return the labels of some of the records, by their places."""
        units = None if self.units is None else tuple(self.units[i] for i in places)
        return ExpertLabels(tuple(self.strata[i] for i in places), tuple(self.said[i] for i in places), units)

    def verified(self, places: Sequence[int], judged: Sequence[int | None], groups: Sequence[Any]) -> Verified:
        """Return the labels of some of the records with the judge's.

        A stratum of which nothing was labelled, as people left it out, is drawn together with the nearest one.
        Of images that were drawn whole, those that people labelled in part count as not drawn.

        Args:
            places: of the records.
            judged, groups: of these.
        """
        strata = np.array([self.strata[i] for i in places], dtype=np.int64)
        verdicts = [self.said[i] for i in places]
        units = np.arange(len(places))
        if self.units is not None:
            units = codes_of([self.units[i] for i in places], len(places), "units")
            in_part = {unit for unit, meanings in zip(units.tolist(), verdicts, strict=True) if not meanings}
            verdicts = [
                () if unit in in_part else meanings for unit, meanings in zip(units.tolist(), verdicts, strict=True)
            ]
        is_labelled = np.array([bool(meanings) for meanings in verdicts], dtype=bool)
        labelled = np.unique(strata[is_labelled])
        if len(labelled):
            nearest = labelled[np.abs(strata[:, None] - labelled[None]).argmin(axis=1)]
            strata = np.where(np.isin(strata, labelled), strata, nearest)
        codes = codes_of(strata.tolist(), len(strata), "strata")
        design = Design(codes, units, is_labelled)
        answered = [_share(meanings, lambda m: m != NO_ANSWER) for meanings in verdicts]
        experts = [
            None if not meanings else 0.0 if not share else _share(meanings, lambda m: m == MEANINGS[0]) / share
            for meanings, share in zip(verdicts, answered, strict=True)
        ]
        return verified(judged, experts, design, groups=groups, answered=answered)


def _share(meanings: Sequence[str], counts: Any) -> float:
    return sum(map(counts, meanings)) / len(meanings) if meanings else 0.0


def put_together(plan: AuditPlan, labels: Sequence[ExpertSaid], by: str = "") -> ExpertAudit:
    """Join a plan and what experts said.

    Args:
        by: who labelled, in roles and numbers.

    Raises:
        DataError: a code is unknown, or one person labelled an item twice.
    """
    items = {item.code: item for item in plan.items}
    by_id = {item.id: item for item in plan.items if item.id is not None}
    by_item: dict[str, dict[str, str]] = defaultdict(dict)
    for label in labels:
        item = items.get(label.code) or by_id.get(label.code)
        if item is None:
            raise DataError(f"{label.where}: {unknown('code of the plan', label.code, items)}")
        if label.rater in by_item[item.code]:
            raise DataError(f"{label.where}: {label.rater} labels {label.code} a second time")
        by_item[item.code][label.rater] = label.meaning
    documents = {
        item.id: tuple(by_item[code].values())
        for code, item in items.items()
        if item.id is not None and code in by_item
    }
    controls = [
        meaning == MEANINGS[0 if items[code].label else 1]
        for code, by_rater in by_item.items()
        if items[code].id is None
        for meaning in by_rater.values()
    ]
    return ExpertAudit(
        tuple(stratum.title for stratum in plan.strata),
        plan.documents,
        documents,
        len({label.rater for label in labels}),
        _kappa([by_rater for code, by_rater in by_item.items() if items[code].id is not None]),
        (len(controls), sum(controls)),
        max(0, sum(stratum.take for stratum in plan.strata) - _complete(plan, documents)),
        by,
        plan.units,
    )


def _complete(plan: AuditPlan, documents: Mapping[str, object]) -> int:
    """How many documents, or images with all of theirs, have labels."""
    if not plan.units:
        return len(documents)
    return len({plan.units[id] for id in documents} - {unit for id, unit in plan.units.items() if id not in documents})


def plan_at_random(ids: Sequence[str]) -> AuditPlan:
    """Return the plan of a simple random sample that was drawn without one: every document might have been asked."""
    return AuditPlan(
        hedge_audit=FORMAT,
        task="",
        model="",
        created="",
        purpose="",
        detector="",
        filter="",
        seed=0,
        strata=(PlannedStratum(title="all documents", size=max(len(ids), 1), take=0),),
        documents=dict.fromkeys(ids, 0),
        items=tuple(PlannedItem(code=id, id=id, raters=(0,)) for id in ids),
    )


def _kappa(items: Sequence[Mapping[str, str]]) -> Agreement | None:
    """Of the two people who labelled most items together."""
    pairs = [tuple(sorted(by_rater)[:2]) for by_rater in items if len(by_rater) > 1]
    if not pairs:
        return None
    first, second = max(set(pairs), key=pairs.count)
    both = [(by_rater[first], by_rater[second]) for by_rater in items if first in by_rater and second in by_rater]
    return cohen_kappa([a for a, _ in both], [b for _, b in both])
