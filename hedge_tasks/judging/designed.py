"""Labels of experts on a sample: the plan that says what was drawn, and the tables that come back.

Tables are the review page's CSV, or one's own (CSV, JSON lines). They name documents by the codes of the plan, or by
the run's own ids. Several people may label one document; the label of most of them counts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field

from hedge_tasks.data import cells
from hedge_tasks.data.tables import read_rows
from hedge_tasks.errors import DataError, unknown
from hedge_tasks.io import outside
from hedge_tasks.io.json_lines import Row
from hedge_tasks.io.records import AtLeastOne, Count, Items, Objects, Record, Text
from hedge_tasks.statistics.agreement import Agreement, cohen_kappa
from hedge_tasks.statistics.base import IntArray

FORMAT = 2
NO_ANSWER = "no answer"
MEANINGS = ("hallucinated", "supported", NO_ANSWER)
"""Experts' verdicts on an answer."""

CANNOT_TELL = "cannot tell"
"""An expert's word in place of a verdict."""

_CODE_COLUMNS = ("code", "id")
_LABEL_COLUMNS = ("label", "verdict", "choice")
_RATER_COLUMNS = ("rater", "annotator")
_DECLINED = frozenset({NO_ANSWER, "declined", "refusal", "refused", "no label"})


class PlannedStratum(Record):
    """A part of the run's documents.

    Attributes:
        title: for people.
        size: documents in it.
        take: of these, how many to label.
    """

    title: Text
    size: AtLeastOne
    take: Count


class AuditPlan(Record):
    """Which documents of a run experts label.

    Attributes:
        hedge_audit: format.
        task, model, created: of the run.
        seed: of the draw.
        strata: with their sizes; labels are in proportion to these.
        documents: all of the run, by id -> stratum.
        codes: what is asked: code under which people know it -> id of the document.
    """

    hedge_audit: Annotated[int, Field(ge=FORMAT, le=FORMAT)] = FORMAT
    task: Text = ""
    model: Text = ""
    created: Text = ""
    seed: int = 0
    strata: Items[PlannedStratum]
    documents: Objects[Annotated[int, Field(ge=0)]]
    codes: Objects[Text]


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
    return plan


def read_experts(path: Path) -> list[ExpertSaid]:
    """Read labels of experts; rows without one are left out.

    Raises:
        DataError: names the file, the row and what is wrong.
    """
    labels = [label for row in read_rows(path) if (label := _label_in_row(row, path.stem)) is not None]
    if not labels:
        raise DataError(f"{path}: no row has a label")
    return labels


def _label_in_row(row: Row, name: str) -> ExpertSaid | None:
    where, fields = row
    code, label = (next((c for c in names if c in fields), None) for names in (_CODE_COLUMNS, _LABEL_COLUMNS))
    if code is None or label is None:
        missing = "code" if code is None else "label"
        raise DataError(f"{where}: {unknown('column', missing, map(str, fields))}")
    meaning = _meaning(fields[label], f"{where}: {label}")
    rater = next((str(fields[c]) for c in _RATER_COLUMNS if not cells.is_missing(fields.get(c))), name)
    if meaning is None:
        return None
    return ExpertSaid(where, cells.required(fields[code], f"{where}: {code}"), rater, meaning)


def _meaning(value: object, where: str) -> str | None:
    word = str(value).strip().casefold().replace("_", " ")
    if word == CANNOT_TELL:
        return CANNOT_TELL
    if word in _DECLINED:
        return NO_ANSWER
    try:
        label = cells.label(value, where)
    except DataError as error:
        raise DataError(f"{error}, {NO_ANSWER!r} or {CANNOT_TELL!r}") from None
    return None if label is None else MEANINGS[0] if label else MEANINGS[1]


# --- together ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ExpertAudit:
    """Experts' verdicts on a run's documents, and how these were drawn.

    Attributes:
        strata: titles.
        of: document -> stratum, for all documents of the run.
        verdicts: document -> what most people said, in `MEANINGS`.
        raters: how many people there were.
        kappa: Cohen's, of the two people who share most; None where no two share any.
        lost: documents that were drawn and have no label.
        undecided: documents of which most people cannot tell, or as many say one thing as another; without a verdict.
        by: who labelled, in roles and numbers such as "2 radiologists"; empty where nobody says.
    """

    strata: tuple[str, ...]
    of: Mapping[str, int]
    verdicts: Mapping[str, str]
    raters: int = 1
    kappa: Agreement | None = None
    lost: int = 0
    undecided: int = 0
    by: str = ""

    @property
    def n_labels(self) -> int:
        return len(self.verdicts)

    def on(self, ids: Sequence[str]) -> ExpertLabels:
        """Return the labels of documents, in this order.

        Raises:
            DataError: the plan does not know one of them.
        """
        if strange := [id for id in ids if id not in self.of]:
            raise DataError(f"the audit is of another run: it does not know the document {strange[0]!r}")
        strata = np.array([self.of[id] for id in ids], dtype=np.int64)
        return ExpertLabels(strata, tuple(self.verdicts.get(id) for id in ids))


@dataclass(frozen=True)
class ExpertLabels:
    """Labels of experts beside records, in their order.

    Attributes:
        strata: of each record's document, shape `(n,)`.
        verdicts: what most people said of it; None where it has no label.
    """

    strata: IntArray
    verdicts: tuple[str | None, ...]

    def some(self, places: Sequence[int]) -> ExpertLabels:
        """Return the labels of some of the records, by their places."""
        return ExpertLabels(self.strata[list(places)], tuple(self.verdicts[i] for i in places))

    @property
    def places(self) -> list[int]:
        """Places of the records that have a verdict."""
        return [i for i, verdict in enumerate(self.verdicts) if verdict is not None]

    def label(self, place: int) -> int | None:
        """Return 1 (hallucinated), 0 (supported), or None where people find no answer."""
        return {MEANINGS[0]: 1, MEANINGS[1]: 0}.get(str(self.verdicts[place]))


def put_together(plan: AuditPlan, labels: Sequence[ExpertSaid], by: str = "") -> ExpertAudit:
    """Join a plan and what experts said.

    Args:
        by: who labelled, in roles and numbers.

    Raises:
        DataError: a code is unknown, or one person labelled a document twice.
    """
    ids = {**plan.codes, **{id: id for id in plan.codes.values()}}
    by_document: dict[str, dict[str, str]] = defaultdict(dict)
    for label in labels:
        if label.code not in ids:
            raise DataError(f"{label.where}: {unknown('code of the plan', label.code, plan.codes)}")
        mine = by_document[ids[label.code]]
        if label.rater in mine:
            raise DataError(f"{label.where}: {label.rater} labels {label.code} a second time")
        mine[label.rater] = label.meaning
    verdicts = {id: verdict for id, said in by_document.items() if (verdict := _most(said.values())) is not None}
    return ExpertAudit(
        tuple(stratum.title for stratum in plan.strata),
        plan.documents,
        verdicts,
        len({label.rater for label in labels}),
        _kappa(list(by_document.values())),
        max(0, sum(stratum.take for stratum in plan.strata) - len(by_document)),
        len(by_document) - len(verdicts),
        by,
    )


def _most(meanings: Iterable[str]) -> str | None:
    """The verdict of most people; None where there is none, or they cannot tell."""
    (meaning, n), *others = Counter(meanings).most_common(2)
    return None if meaning == CANNOT_TELL or (others and others[0][1] == n) else meaning


def plan_at_random(ids: Sequence[str]) -> AuditPlan:
    """Return the plan of a simple random sample that was drawn without one: every document might have been asked."""
    stratum = PlannedStratum(title="all documents", size=max(len(ids), 1), take=0)
    return AuditPlan(strata=(stratum,), documents=dict.fromkeys(ids, 0), codes={id: id for id in ids})


def _kappa(documents: Sequence[Mapping[str, str]]) -> Agreement | None:
    """Of the two people who labelled most documents together."""
    pairs = Counter(tuple(sorted(said)[:2]) for said in documents if len(said) > 1)
    if not pairs:
        return None
    [((first, second), _)] = pairs.most_common(1)
    both = [(said[first], said[second]) for said in documents if first in said and second in said]
    return cohen_kappa([a for a, _ in both], [b for _, b in both])
