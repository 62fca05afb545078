"""Editions: how a task is run, as its YAML says. Nothing is written down but the hash that follows from it.

Answers can be compared where they were drawn alike. An edition's hash is that of all that decides them besides the
model: prompt, columns, draws with every setting, seed included. How answers are then labelled and clustered is kept
apart: whoever has the answers does that again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hedge_tasks.io.json_lines import canonical
from hedge_tasks.io.outside import clean

_NOT_OF_DRAWS = frozenset({"max_failed", "image_check", "hidden_states", "alternatives", "inside", "probe"})
"""Settings of the sampling that change neither an answer nor a label."""

_COLUMNS = ("question", "answer", "context", "distractor", "images", "options")

_WHEREABOUTS = frozenset({"source", "embedding_source", "normalisation", "chosen", "detectors"})
"""Settings of a clustering that do not decide its clusters: the model's origin, results, and further detectors."""


@dataclass(frozen=True)
class Edition:
    """How a task is run.

    Attributes:
        task: its name.
        answers: all that decides its answers besides the model: prompt, columns, sampling.
        measures: all that decides what its answers are worth: version, judge, clusterings.
    """

    task: str
    answers: Mapping[str, Any]
    measures: Mapping[str, Any]

    @property
    def hash(self) -> str:
        """Twelve hexadecimal digits that name how the answers are drawn."""
        return _hash({"task": self.task, **self.answers})

    @property
    def measures_hash(self) -> str:
        """Twelve hexadecimal digits that name how they are labelled and clustered."""
        return _hash(self.measures)


def edition_of(task: str, settings: Mapping[str, Any]) -> Edition:
    """Return the edition of a run with these settings.

    Args:
        settings: as a run file records them.
    """

    documents, prompt, sampling, metadata, filters = (
        settings.get(name) or {} for name in ("documents", "prompt", "sampling", "metadata", "filters")
    )
    answers = {
        "prompt": {key: prompt.get(key) for key in ("system", "user")},
        "columns": {key: documents[key] for key in _COLUMNS if documents.get(key) not in (None, {}, [], ())},
        "sampling": {key: value for key, value in sampling.items() if key not in _NOT_OF_DRAWS},
    }
    measures = {
        "version": metadata.get("version"),
        "judge": documents.get("judge"),
        "clusterings": {
            name: {key: value for key, value in clustering.items() if key not in _WHEREABOUTS}
            for name, clustering in filters.items()
        },
    }
    return Edition(task, _plain(answers), _plain(measures))


def differences(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    """Return in words how the answers of a run were drawn otherwise than an edition says."""
    edition, run = dict(_rules(ours)), dict(_rules(theirs))
    return [
        f"{place:.60} {run.get(place, 'nothing'):.80}, where the edition has {edition.get(place, 'nothing'):.80}"
        for place in dict.fromkeys((*edition, *run))
        if edition.get(place) != run.get(place)
    ]


def _rules(parts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the places of all rules, and these as texts."""
    for part, rules in parts.items():
        for key, value in rules.items() if isinstance(rules, Mapping) else [("", rules)]:
            yield clean(f"{part} {key}".strip()), clean(json.dumps(_plain(value)))


def _hash(content: Any) -> str:
    return hashlib.sha256(canonical(_plain(content))).hexdigest()[:12]


def _plain(value: Any) -> Any:
    """The value as JSON has it, with 1.0 as 1: YAML, JSON and command lines do not agree on which it is."""
    return json.loads(
        json.dumps(value, default=str), parse_float=lambda n: int(x) if (x := float(n)).is_integer() else x
    )
