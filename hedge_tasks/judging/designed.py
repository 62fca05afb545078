"""Labels of experts on a sample: the plan that says what was drawn, and the tables that come back.

Tables are the review page's CSV, or one's own (CSV, JSON lines). They name documents by the codes of the plan, or by
the run's own ids. Several people may label one document; the label of most of them counts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field

from hedge_tasks.data import cells
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.data.manifests import text_digest
from hedge_tasks.data.tables import read_rows
from hedge_tasks.errors import DataError, unknown
from hedge_tasks.io import outside
from hedge_tasks.io.records import AtLeastOne, Count, Items, Objects, Record, Text
from hedge_tasks.io.tables import safe_cell
from hedge_tasks.judging.panel import majority
from hedge_tasks.judging.reliability import LIMIT
from hedge_tasks.statistics.agreement import Agreement, cohen_kappa
from hedge_tasks.statistics.base import IntArray

FORMAT = 2
NO_ANSWER = "no answer"
MEANINGS = ("hallucinated", "supported", NO_ANSWER)
"""Experts' verdicts on an answer."""

LABELS = {MEANINGS[0]: 1, MEANINGS[1]: 0}
"""The label that a verdict is."""

CANNOT_TELL = "cannot tell"
"""An expert's word in place of a verdict."""

_WORDS = {CANNOT_TELL: CANNOT_TELL, **dict.fromkeys((NO_ANSWER, "declined", "refusal", "refused"), NO_ANSWER)}


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
        texts: what the run's questions and answers were, by `digests_of`; empty where the plan does not say.
    """

    hedge_audit: Annotated[int, Field(ge=FORMAT, le=FORMAT)] = FORMAT
    task: Text = ""
    model: Text = ""
    created: Text = ""
    seed: int = 0
    strata: Items[PlannedStratum]
    documents: Objects[Annotated[int, Field(ge=0)]]
    codes: Objects[Text]
    texts: Objects[Objects[Text]] = Field(default_factory=dict)


def digests_of(answer_sets: Sequence[AnswerSet]) -> dict[str, dict[str, str]]:
    """Return by what texts are known again: column of people's table -> document -> digest."""
    questions = {answers.id: _digest(answers.question or "") for answers in answer_sets}
    return {"question": questions, "answer": {a.id: _digest(a.baseline.text) for a in answer_sets}}


def _digest(text: str) -> str:
    """Digest of a text as a table has it, safe and not cut so far; white space is apart."""
    return text_digest(" ".join(safe_cell(text).split())[:10_000]) or ""


class ExpertSaid(NamedTuple):
    """One person on one item, and the row that says so."""

    where: str
    code: str
    rater: str
    meaning: str
    row: Mapping[str, object] = {}


def read_plan(path: Path) -> AuditPlan:
    """Read a plan.

    Raises:
        DataError: it is none, or damaged.
    """
    plan = AuditPlan.read(outside.read_json(path), str(path))
    if strange := [id for id, stratum in plan.documents.items() if stratum >= len(plan.strata)]:
        raise DataError(f"{path}: documents.{strange[0]}: there is no such stratum")
    return plan


def read_experts(path: Path) -> list[ExpertSaid]:
    """Read labels of experts; rows without one are left out.

    Raises:
        DataError: names the file, the row and what is wrong.
    """
    labels = []
    for where, row in read_rows(path):
        code = "id" if "id" in row and "code" not in row else "code"
        for column in (code, "label"):
            if column not in row:
                raise DataError(f"{where}: {unknown('column', column, map(str, row))}")
        if (meaning := _meaning(row["label"], f"{where}: label")) is not None:
            rater = cells.text(row.get("rater"), f"{where}: rater") or path.stem
            labels.append(ExpertSaid(where, cells.required(row[code], f"{where}: {code}"), rater, meaning, row))
    if not labels:
        raise DataError(f"{path}: no row has a label")
    return labels


def _meaning(value: object, where: str) -> str | None:
    word = str(value).strip().casefold().replace("_", " ")
    if word in _WORDS:
        return _WORDS[word]
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
        of: document -> stratum, for all documents of the run.
        verdicts: document -> what most people said, in `MEANINGS`.
        raters: how many people there were.
        kappa: Cohen's, of the two people who share most; None where no two share any.
        missing: documents that were drawn and have no verdict: nobody labelled them, people cannot tell, or as many say
            one thing as another.
        by: who labelled, in roles and numbers such as "2 radiologists"; empty where nobody says.
    """

    of: Mapping[str, int]
    verdicts: Mapping[str, str]
    raters: int = 1
    kappa: Agreement | None = None
    missing: int = 0
    by: str = ""

    @property
    def n_labels(self) -> int:
        return len(self.verdicts)

    def on(self, ids: Sequence[str]) -> ExpertLabels:
        """Return the labels of documents of the run, in this order."""
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
        return LABELS.get(str(self.verdicts[place]))


def put_together(plan: AuditPlan, labels: Sequence[ExpertSaid], by: str = "") -> ExpertAudit:
    """Join a plan and what experts said.

    Args:
        by: who labelled, in roles and numbers.

    Raises:
        DataError: a code is unknown, a label is of another answer, one person labelled a document twice, or so much of
            what was drawn has no verdict that the others are no sample.
    """
    drawn = {*plan.codes.values()}
    by_document: dict[str, dict[str, str]] = defaultdict(dict)
    for label in labels:
        id = plan.codes.get(label.code, label.code)
        if id not in drawn:
            raise DataError(f"{label.where}: {unknown('code of the plan', label.code, plan.codes)}")
        _check_texts(plan, label, id)
        if label.rater in by_document[id]:
            raise DataError(f"{label.where}: {label.rater} labels {label.code} a second time")
        by_document[id][label.rater] = label.meaning
    most = {id: majority([*said.values()]) for id, said in by_document.items()}
    verdicts = {id: word for id, word in most.items() if word is not None and word != CANNOT_TELL}
    missing = _missing(plan, verdicts, len(by_document))
    people = len({label.rater for label in labels})
    return ExpertAudit(plan.documents, verdicts, people, _kappa([*by_document.values()]), missing, by)


def _missing(plan: AuditPlan, verdicts: Mapping[str, str], n_labelled: int) -> int:
    """Count drawn documents without a verdict; so many that the others are no sample, or a whole stratum, are refused.

    Args:
        n_labelled: documents with any label: of a plan that was made afterwards all that were drawn.
    """
    labelled = Counter(plan.strata[plan.documents[id]].title for id in verdicts)
    drawn = {stratum.title: stratum.take or n_labelled for stratum in plan.strata}
    n = sum(drawn.values())
    missing = n - len(verdicts)
    if missing > LIMIT * n or len(labelled) < len(drawn):
        parts = ", ".join(f"{labelled[title]} of {take} {title}" for title, take in drawn.items())
        wrong = [*verdicts.values()].count(MEANINGS[0])
        raise DataError(
            f"{missing} of {n} answers that were drawn have no label (there are labels of {parts}). What is missing is "
            f"not like the rest, so no number follows: {wrong} to {wrong + missing} are hallucinated"
        )
    return missing


def _check_texts(plan: AuditPlan, label: ExpertSaid, id: str) -> None:
    """Refuse a label that stands beside another question or answer than what was drawn, as after one column moved."""
    for column, digests in plan.texts.items():
        if column in label.row and _digest(text := cells.text(label.row[column], label.where)) != digests[id]:
            words = f"{outside.shown(text)} is not the {column} of {label.code}"
            raise DataError(f"{label.where}: {words}: labels of other answers than those that were drawn")


def plan_at_random(ids: Sequence[str]) -> AuditPlan:
    """Return the plan of a simple random sample that was drawn without one: every document might have been asked."""
    stratum = PlannedStratum(title="all documents", size=max(len(ids), 1), take=0)
    return AuditPlan(strata=(stratum,), documents=dict.fromkeys(ids, 0), codes={id: id for id in ids})


def _kappa(documents: Sequence[Mapping[str, str]]) -> Agreement | None:
    """Of the two people who labelled most documents together."""
    pairs = Counter(pair for said in documents for pair in combinations(sorted(said), 2))
    for pair, _ in pairs.most_common(1):
        both = [[said[name] for name in pair] for said in documents if said.keys() >= {*pair}]
        return cohen_kappa(*zip(*both, strict=True))
    return None
