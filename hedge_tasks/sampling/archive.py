"""Answer stores as a whole: what is in them, and the answer sets of their documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.errors import DataError, unknown
from hedge_tasks.io.keyed_log import files_of
from hedge_tasks.io.places import Place
from hedge_tasks.sampling.definition import Definition
from hedge_tasks.sampling.forced import complete_passes, forced_keys
from hedge_tasks.sampling.jobs import answer_set_of
from hedge_tasks.sampling.segments import SUFFIX, read_segment
from hedge_tasks.sampling.store import KIND, AnswerStore, StoredDocument

FOLDER = "hedge_answers"
"""Of the answer store in lmms-eval's output folder."""


@dataclass(frozen=True)
class CompleteSets:
    """The answer sets of one definition that have all their answers.

    Attributes:
        answer_sets: one a document.
        incomplete: ids of the documents left out because answers are missing.
    """

    answer_sets: tuple[AnswerSet, ...]
    incomplete: tuple[str, ...]


def open_store(folder: Place) -> AnswerStore:
    """Open a store that must exist.

    Args:
        folder: the store's folder, or lmms-eval's output folder with `hedge_answers` in it.

    Raises:
        DataError: there is no answer store.
    """
    return AnswerStore(store_place(folder))


def store_place(folder: Place) -> Place:
    """Return the folder of a store: this one, or `hedge_answers` in it.

    Raises:
        DataError: there is none.
    """
    for place in (folder, folder / FOLDER):
        if files_of(place, KIND, ".jsonl") or files_of(place, KIND, SUFFIX):
            return place
    raise DataError(f"{folder}: no answer store (answers-*.jsonl or .parquet, here or in {FOLDER}/)")


def matching_definition(
    folder: Place | None, definitions: Mapping[str, Definition], chosen: str | None = None
) -> Definition:
    """The definition whose id starts with `chosen`; without it the only one.

    Raises:
        DataError: there is none, or there are several and the choice is open; the message lists them.
        ConfigError: no id starts so; names the nearest one.
    """
    if not definitions:
        raise DataError(
            f"{folder}: nothing in the store says what its answers belong to; "
            "running the same lmms-eval command again adds that without asking the model"
        )
    matching = [d for d in definitions.values() if chosen is None or d.id.startswith(chosen)]
    if not matching:
        raise unknown("definition", str(chosen), definitions)
    if len(matching) > 1:
        listing = "; ".join(f"{d.id} ({d.task}, {d.model})" for d in matching)
        raise DataError(f"{folder}: choose one of {len(matching)} definitions with --definition: {listing}")
    return matching[0]


def documents_of(store: AnswerStore, definition: Definition) -> dict[str, StoredDocument]:
    """The documents of a definition by id, each as it was last asked for."""
    return {d.id: d for d in store.documents if d.definition == definition.id}


def complete_sets(store: AnswerStore, definition: Definition, requested: tuple[int, int] | None = None) -> CompleteSets:
    """The answer sets of all documents that have all their answers.

    Args:
        requested: clean and noisy answers asked for, where the store in memory is a block of a larger one.
    """
    n, n_noisy = requested or requested_numbers(store, definition)
    answer_sets, incomplete = [], []
    for document in documents_of(store, definition).values():
        keyed = keyed_answers(store, definition, document, n, n_noisy)
        known = [(key, answer) for key, answer in keyed if answer is not None]
        if len(known) == len(keyed):
            present = {"baseline": known[:1], "clean": known[1 : n + 1], "noisy": known[n + 1 :]}
            baseline = known[0][1]
            arguments = (document.question, baseline, document.options, document.n_noisy)
            keys = forced_keys(definition, document.key, *arguments)
            forced = complete_passes({name: store.get(key) for name, key in keys.items()})
            answer_sets.append(answer_set_of(document, present, forced))
        else:
            incomplete.append(document.id)
    return CompleteSets(tuple(answer_sets), tuple(incomplete))


def records_of(source: Place) -> Iterator[Mapping[str, Any]]:
    """The records of a store, or of one that was exported as Parquet.

    Raises:
        DataError: it is neither, or is damaged.
    """
    if not source.name.endswith(SUFFIX):
        yield from AnswerStore(store_place(source), lazy=True).records()
        return
    try:
        yield from (record for _, record in read_segment(source))
    except FileNotFoundError:
        raise DataError(f"{source}: no such file") from None


def keyed_answers(
    store: AnswerStore, definition: Definition, document: StoredDocument, n: int, n_noisy: int
) -> list[tuple[str, Answer | None]]:
    """The first answers to a document with their keys: baseline, n clean and n_noisy noisy ones; None where missing."""
    draws = definition.plan(max(n, 1), n_noisy).draws(document.key)
    # With n = 0 there is a baseline answer and nothing else.
    wanted = [draw for draw in draws if draw.condition != "clean" or draw.index < n]
    return [(key := definition.key(document.key, document.question, draw), store.get(key)) for draw in wanted]


def requested_numbers(store: AnswerStore, definition: Definition) -> tuple[int, int]:
    """The largest numbers of clean and noisy answers that a document was asked for."""
    # Of all records, not of the last one: a rerun with a smaller n does not shrink the store.
    documents = [d for d in store.documents if d.definition == definition.id]
    return max((d.n for d in documents), default=0), max((d.n_noisy for d in documents), default=0)
