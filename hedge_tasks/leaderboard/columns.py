"""The documents of a submission as arrays: all that tables of many entries need of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hedge_tasks.judging.designed import ExpertLabels
from hedge_tasks.leaderboard.audits import labels_of
from hedge_tasks.leaderboard.comparison import Counted, LabelledScores
from hedge_tasks.leaderboard.suite import documents_in, metrics_of
from hedge_tasks.statistics.base import BoolArray, FloatArray, IntArray

_UNLABELLED = -1
_DIGITS = 9
"""Of scores: what is stated may differ from what follows by less, and breaks no ties."""


@dataclass(frozen=True)
class EntryColumns:
    """Documents in ascending order of their numbers.

    Attributes:
        ids: a number for each id, the same in every entry, shape `(n,)`.
        keys: a number for id, question, reference, group and question type: what makes it the same document.
        labels: 1, 0, or -1 for none.
        groups: a number for each group; the document's own where it has none.
        grouped: whether every document has a group.
        held_out: by clustering, which documents its threshold was tuned on.
        scores: by clustering and detector, shape `(n,)`; nan where there is none.
        suite: by metric, what each document adds to its sums, and its group there.
        experts: what experts said of the documents; None without an audit.
    """

    ids: IntArray
    keys: IntArray
    labels: IntArray
    groups: IntArray
    grouped: bool
    held_out: Mapping[str, BoolArray]
    scores: Mapping[tuple[str, str], FloatArray]
    suite: Mapping[str, tuple[FloatArray, IntArray]]
    experts: ExpertLabels | None = None

    def labelled(self, clustering: str, detector: str) -> LabelledScores:
        """Return what the ROC-AUC of a detector is made of; nothing where the entry does not have it."""
        values = self.scores.get((clustering, detector))
        if values is None:
            values = np.full(len(self.ids), np.nan)
        held_out = self.held_out.get(clustering, np.zeros(len(self.ids), dtype=bool))
        use = (self.labels != _UNLABELLED) & ~held_out & ~np.isnan(values)
        return LabelledScores(self.ids[use], values[use], self.labels[use] == 1, self.groups[use], self.grouped)

    def counted(self, metric: str) -> Counted:
        """Return what a number of the suite is made of; nothing where the entry does not have it."""
        if metric not in self.suite:
            return Counted(np.zeros(0, dtype=np.int64), np.zeros((0, 2)), np.zeros(0, dtype=np.int64))
        parts, groups = self.suite[metric]
        return Counted(self.ids, parts, groups)

    def of_labels(self) -> Counted:
        """Return what the share of supported answers is made of: whether it is supported and one, of every document."""
        parts = np.stack([self.labels == 0, np.ones(len(self.labels))], axis=1).astype(np.float64)
        return Counted(self.ids, parts, self.groups)


def columns_of(submission: Mapping[str, Any]) -> EntryColumns:
    """The columns of a valid submission."""
    documents = submission["documents"]
    ids = np.array([number_of(document["id"]) for document in documents], dtype=np.int64)
    order = np.argsort(ids, kind="stable")
    labels = [_UNLABELLED if document["label"] is None else document["label"] for document in documents]
    scores = {}
    held_out = {}
    for name, clustering in submission["clusterings"].items():
        rows = [document["clusterings"][name] for document in documents]
        held_out[name] = np.array([bool(row.get("held_out")) for row in rows], dtype=bool)[order]
        for detector in clustering["detectors"]:
            values = [np.nan if (v := row["scores"][detector]) is None else v for row in rows]
            scores[name, detector] = np.round(np.array(values, dtype=np.float64)[order], _DIGITS)
    suite = {}
    for metric in metrics_of(submission):
        records = documents_in(submission, metric)
        if len(records) == len(documents):
            groups = np.array([number_of(document.group) for document in records], dtype=np.int64)
            suite[metric.name] = metric.counts([d.record for d in records])[order], groups[order]
    return EntryColumns(
        ids[order],
        np.array([_key(document) for document in documents], dtype=np.int64)[order],
        np.array(labels, dtype=np.int64)[order],
        np.array([_group(document) for document in documents], dtype=np.int64)[order],
        all(document["group"] is not None for document in documents),
        held_out,
        scores,
        suite,
        None if (experts := labels_of(submission)) is None else experts.some(order.tolist()),
    )


def number_of(value: Any) -> int:
    """A number for a JSON value, the same on every machine."""
    text = json.dumps(value, ensure_ascii=True, default=str)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big", signed=True)


def _key(document: Mapping[str, Any]) -> int:
    texts = [document["digests"][name] for name in ("question", "reference")]
    return number_of([document["id"], *texts, document["group"], document["question_type"]])


def _group(document: Mapping[str, Any]) -> int:
    group = document["group"]
    return number_of(["document", document["id"]] if group is None else ["group", group])
