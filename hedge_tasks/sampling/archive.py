"""Answer stores as a whole: contents, export and import of answer sets, merging of stores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hedge_tasks.data.answers import Answer, AnswerSet, Draw, option_logprobs
from hedge_tasks.errors import DataError, unknown
from hedge_tasks.io.keyed_log import files_of
from hedge_tasks.io.places import Place
from hedge_tasks.sampling.definition import Definition
from hedge_tasks.sampling.forced import CONDITION, complete_passes, forced_keys
from hedge_tasks.sampling.image_check import check_keys
from hedge_tasks.sampling.jobs import answer_set_of
from hedge_tasks.sampling.segments import SUFFIX, home
from hedge_tasks.sampling.store import KIND, AnswerStore, FinishedDraw, StoredDocument

FOLDER = "hedge_answers"
"""Of the answer store in lmms-eval's output folder."""

PROVENANCE = "store"
"""Field of an exported line: the definition and the key of the document, which an import needs."""


@dataclass(frozen=True)
class Progress:
    """How far a definition got.

    Attributes:
        documents: number of documents asked for.
        n, n_noisy: the largest numbers of clean and noisy answers asked for.
        answers: stored answers by condition, counted up to those numbers.
        complete: documents that have all of them.
    """

    documents: int
    n: int
    n_noisy: int
    answers: Mapping[str, int]
    complete: int


@dataclass(frozen=True)
class Export:
    """Complete answer sets of one definition.

    Attributes:
        lines: one JSON object a document: its answer set, and under `store` where it came from.
        n, n_noisy: number of clean and noisy answers in each.
        incomplete: ids of the documents left out because answers are missing.
    """

    lines: tuple[dict[str, Any], ...]
    n: int
    n_noisy: int
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


def choose_definition(store: AnswerStore, chosen: str | None) -> Definition:
    """The definition whose id starts with `chosen`; without it the only one of the store; see `matching_definition`."""
    return matching_definition(store.folder, store.definitions, chosen)


def matching_definition(folder: Place | None, definitions: Mapping[str, Definition], chosen: str | None) -> Definition:
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


def progress(store: AnswerStore, definition: Definition) -> Progress:
    """Count the documents and answers of a definition in a store."""
    n, n_noisy = _requested_numbers(store, definition)
    counts: Counter[str] = Counter(baseline=0, clean=0, noisy=0)
    complete = 0
    documents = documents_of(store, definition).values()
    for document in documents:
        answers = _answers_by_condition(store, definition, document, n, n_noisy)
        counts.update({condition: sum(a is not None for _, a in keyed) for condition, keyed in answers.items()})
        complete += _is_complete(answers)
    return Progress(len(documents), n, n_noisy, dict(counts), complete)


def export(
    store: AnswerStore, definition: Definition, n: int | None = None, *, requested: tuple[int, int] | None = None
) -> Export:
    """The answer sets of all documents that have all their answers.

    Args:
        n: only the first n clean and n noisy answers; None takes as many as were asked for. A set with fewer noisy
            answers than clean ones keeps what it has.
        requested: clean and noisy answers asked for, where the store in memory is a block of a larger one.

    Raises:
        DataError: n is not positive, or larger than what was ever asked for.
    """
    most, most_noisy = requested or _requested_numbers(store, definition)
    if n is not None and not 1 <= n <= max(most, 1):
        raise DataError(f"n must be from 1 to {most}, the number of clean answers asked for, got {n}")
    n_clean, n_noisy = (most, most_noisy) if n is None else (n, min(n, most_noisy))
    lines, incomplete = [], []
    for document in documents_of(store, definition).values():
        answers = _answers_by_condition(store, definition, document, n_clean, n_noisy)
        if _is_complete(answers):
            present = {condition: [(k, a) for k, a in keyed if a is not None] for condition, keyed in answers.items()}
            provenance = {"definition": definition.model_dump(), "document": document.key}
            keys = _forced_keys(definition, document, present["baseline"][0][1])
            forced = complete_passes({name: store.get(key) for name, key in keys.items()})
            lines.append({**answer_set_of(document, present, forced).to_dict(), PROVENANCE: provenance})
        else:
            incomplete.append(document.id)
    return Export(tuple(lines), n_clean, n_noisy, tuple(incomplete))


def keyed_answers(
    store: AnswerStore, definition: Definition, document: StoredDocument, n: int, n_noisy: int
) -> list[tuple[str, Answer | None]]:
    """The first answers to a document with their keys: baseline, n clean and n_noisy noisy ones; None where missing."""
    return [(key, store.get(key)) for key, _ in _draws(definition, document, n, n_noisy)]


def import_lines(store: AnswerStore, lines: Iterable[tuple[str, Mapping[str, Any]]]) -> tuple[int, int]:
    """Put exported lines into a store. An answer that the store has already is kept.

    Args:
        lines: (where, line) as `export` wrote them.

    Returns:
        Number of answers added, and of answers that differ from the ones the store has and were left out.

    Raises:
        DataError: a line is no exported one; nothing of the whole import is written then.
    """
    definitions: dict[str, Definition] = {}
    documents: list[StoredDocument] = []
    new: dict[str, FinishedDraw] = {}
    conflicts = 0
    for where, line in lines:
        definition, document, answer_set = _read_exported(where, line)
        definitions[definition.id] = definition
        documents.append(document)
        draws = definition.plan(document.n, document.n_noisy).draws(document.key)
        records = [
            FinishedDraw(
                definition.key(document.key, document.question, draw),
                *(answer, document.id, draw.condition, draw.index, home(document.key)),
            )
            for draw, answer in zip(draws, answer_set.answers, strict=True)
        ]
        keys = _forced_keys(definition, document, answer_set.baseline)
        records += [
            FinishedDraw(keys[name], answer, document.id, CONDITION, 0, home(document.key))
            for name, answer in answer_set.forced.items()
            if name in keys
        ]
        for record in records:
            stored = store.get(record.key) or (new[record.key].answer if record.key in new else None)
            conflicts += stored is not None and stored != record.answer
            if stored is None:
                new[record.key] = record
    store.put_documents(definitions.values(), documents)
    store.put(new.values())
    return len(new), conflicts


def merge_into(target: AnswerStore, sources: Sequence[AnswerStore]) -> tuple[int, int]:
    """Copy what the sources have and the target lacks.

    Returns:
        Number of answers added, and of answers that differ from the target's or an earlier source's and were left out.
    """
    added = conflicts = 0
    for source in sources:
        target.put_documents(source.definitions.values(), source.documents)
        places = _draw_places(source)
        new = []
        for key in source:
            stored = target.get(key)
            if stored is None:
                new.append(FinishedDraw(key, source[key], *places.get(key, ("", "", -1, ""))))
            conflicts += stored is not None and stored != source[key]
        target.put(new)
        added += len(new)
    return added, conflicts


def orphans(store: AnswerStore) -> int:
    """Number of stored answers that no definition of the store accounts for."""
    return len(set(store) - set(_draw_places(store)))


_Answers = dict[str, list[tuple[str, "Answer | None"]]]
"""(key, answer) by condition."""


def _requested_numbers(store: AnswerStore, definition: Definition) -> tuple[int, int]:
    # Of all records, not of the last one: a rerun with a smaller n does not shrink the store.
    documents = [d for d in store.documents if d.definition == definition.id]
    return max((d.n for d in documents), default=0), max((d.n_noisy for d in documents), default=0)


def _draws(definition: Definition, document: StoredDocument, n: int, n_noisy: int) -> Iterator[tuple[str, Draw]]:
    for draw in definition.plan(max(n, 1), n_noisy).draws(document.key):
        if draw.condition != "clean" or draw.index < n:  # n: 0 has a baseline answer and nothing else
            yield definition.key(document.key, document.question, draw), draw


def _answers_by_condition(
    store: AnswerStore, definition: Definition, document: StoredDocument, n: int, n_noisy: int
) -> _Answers:
    answers: _Answers = {"baseline": [], "clean": [], "noisy": []}
    for key, draw in _draws(definition, document, n, n_noisy):
        answers[draw.condition].append((key, store.get(key)))
    return answers


def _forced_keys(definition: Definition, document: StoredDocument, baseline: Answer) -> dict[str, str]:
    arguments = (document.question, baseline, document.options, document.n_noisy)
    return forced_keys(definition, document.key, *arguments)


def _is_complete(answers: _Answers) -> bool:
    return all(answer is not None for keyed in answers.values() for _, answer in keyed)


def _draw_places(store: AnswerStore) -> dict[str, tuple[str, str, int, str]]:
    """(document id, condition, index, home) of every draw that the definitions account for."""
    places: dict[str, tuple[str, str, int, str]] = {}
    for definition in store.definitions.values():
        n, n_noisy = _requested_numbers(store, definition)
        for document in documents_of(store, definition).values():
            document_home = home(document.key)
            for key, draw in _draws(definition, document, n, n_noisy):
                places[key] = (document.id, draw.condition, draw.index, document_home)
                if draw.condition == "baseline" and (baseline := store.get(key)) is not None:
                    for forced in _forced_keys(definition, document, baseline).values():
                        places[forced] = (document.id, CONDITION, 0, document_home)
                    for checked in check_keys(definition, document.key, document.question, draw):
                        places[checked] = (document.id, "image check", 0, document_home)
    return places


def _read_exported(where: str, line: Mapping[str, Any]) -> tuple[Definition, StoredDocument, AnswerSet]:
    provenance = line.get(PROVENANCE)
    if not isinstance(provenance, Mapping) or not isinstance(provenance.get("document"), str):
        raise DataError(f"{where}: no {PROVENANCE!r} with definition and document; only exported lines can be imported")
    definition = Definition.read(provenance.get("definition"), f"{where}: {PROVENANCE}.definition")
    answer_set = AnswerSet.read(line, where)
    document = StoredDocument(
        definition=definition.id,
        key=provenance["document"],
        id=answer_set.id,
        question=answer_set.question or "",
        reference=answer_set.reference,
        group=answer_set.group,
        question_type=answer_set.question_type,
        n=len(answer_set.clean),
        n_noisy=len(answer_set.noisy),
        options=tuple(option_logprobs(answer_set.forced)),
    )
    return definition, document, answer_set
