"""One document's share of a run: its draws by key, and the store that keeps their answers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hedge_tasks import __version__
from hedge_tasks.data.answers import Answer, AnswerSet, Drawn
from hedge_tasks.io.places import Place
from hedge_tasks.sampling.definition import Definition
from hedge_tasks.sampling.requests import DrawRequest, SampleRequest
from hedge_tasks.sampling.second_stage import further_requests
from hedge_tasks.sampling.store import AnswerStore, StoredDocument


class Stores:
    """The answer stores and definitions of one call: a store a folder, closed together."""

    def __init__(self) -> None:
        self._open: dict[Place | None, AnswerStore] = {}
        self._definitions: dict[Any, Definition] = {}

    def __enter__(self) -> Stores:
        return self

    def __exit__(self, *error: object) -> None:
        for store in self._open.values():
            store.close()

    def at(self, folder: Place | None) -> AnswerStore:
        if folder not in self._open:
            self._open[folder] = AnswerStore(folder, lazy=True)
        return self._open[folder]

    def definition(self, identity: str | None, task: str, request: SampleRequest) -> Definition:
        """One object for all documents of a task: it remembers what their keys have in common."""
        # The request holds on to its plan for the whole call, so the plan's id cannot become another one's.
        shared = (identity, task, request.prompt, id(request.plan))
        if shared not in self._definitions:
            self._definitions[shared] = Definition.of(identity, task, request.prompt, request.plan, __version__)
        return self._definitions[shared]


@dataclass(frozen=True)
class Job:
    """One document: what it is part of, its draws by key, and where their answers are."""

    request: SampleRequest
    definition: Definition
    store: AnswerStore
    draws: Mapping[str, DrawRequest]

    @classmethod
    def of(cls, model: Any, request: SampleRequest, place: tuple[int, str, str], stores: Stores) -> Job:
        """The job of a request.

        Args:
            place: (index, task, split) of the document's row, in lmms-eval's order.
        """
        index, task, split = place
        row = (task, split, index)
        identity = getattr(model, "answer_identity", None) or request.model
        # A model that nobody can name must not leave answers behind that another one would be given.
        store = stores.at(request.store if identity else None)
        definition = stores.definition(identity, row[0], request)
        fetch = _fetch(model, row)
        draws = {
            definition.key(request.key, request.question, draw): DrawRequest(request, draw, fetch, row)
            for draw in request.plan.draws(request.key)
        }
        return cls(request, definition, store, draws)

    def further(self, model: Any, answers: AnswerSet, stores: Stores) -> list[Job]:
        """The jobs of the second stage, given the answers of the first."""
        task, split, index = next(iter(self.draws.values())).row
        requests = further_requests(self.request, answers)
        return [Job.of(model, request, (index, task, split), stores) for request in requests]

    def missing(self) -> list[tuple[str, DrawRequest]]:
        """Draws that the store has no answer for."""
        return [(key, draw) for key, draw in self.draws.items() if self.store.get(key) is None]

    def document(self) -> StoredDocument:
        request = self.request
        return StoredDocument(
            definition=self.definition.id,
            key=request.key,
            id=request.id,
            question=request.question,
            reference=request.reference,
            group=request.group,
            question_type=request.question_type,
            n=request.plan.n,
            n_noisy=request.plan.noisy_count,
            options=request.options,
        )

    def answer_set(self) -> AnswerSet:
        """The answers to all draws, all of which must be in the store by now."""
        by_condition: dict[str, list[tuple[str, Answer]]] = {"baseline": [], "clean": [], "noisy": []}
        for key, draw in self.draws.items():
            by_condition[draw.draw.condition].append((key, self.store[key]))
        # Of a store in memory nothing is left that anybody could compare with.
        return answer_set_of(self.document(), by_condition, durable=self.store.folder is not None)


def answer_set_of(
    document: StoredDocument,
    answers: Mapping[str, Sequence[tuple[str, Answer]]],
    forced: Mapping[str, Answer] | None = None,
    *,
    durable: bool = True,
) -> AnswerSet:
    """A stored document with its answers by condition, each with its key, and its forced passes by name.

    Args:
        durable: whether the store outlasts the process, so that the set should say where it came from.
    """
    order = [keyed for condition in ("baseline", "clean", "noisy") for keyed in answers[condition]]
    texts = {condition: [answer for _, answer in keyed_answers] for condition, keyed_answers in answers.items()}
    return AnswerSet(
        id=document.id,
        baseline=texts["baseline"][0],
        clean=tuple(texts["clean"]),
        noisy=tuple(texts["noisy"]),
        drawn=Drawn(document.definition, document.key, draws_digest(order)) if durable else None,
        question=document.question,
        reference=document.reference,
        group=document.group,
        question_type=document.question_type,
        forced=dict(forced or {}),
    )


def draws_digest(draws: Sequence[tuple[str, Answer]]) -> str:
    """SHA-256 of draws' keys and answers, in their order."""
    text = json.dumps([[key, answer.to_dict()] for key, answer in draws], sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def load_documents(jobs: Sequence[Job]) -> None:
    """Read what the stores have of these documents."""
    for store, store_jobs in _by_store(jobs):
        store.load(job.request.key for job in store_jobs)


def keep_documents(jobs: Sequence[Job]) -> None:
    """Write down what is asked for before the first draw, so that a killed run can be read without lmms-eval."""
    for store, store_jobs in _by_store(jobs):
        store.put_documents((job.definition for job in store_jobs), (job.document() for job in store_jobs))


def _by_store(jobs: Sequence[Job]) -> list[tuple[AnswerStore, list[Job]]]:
    stores = {id(job.store): job.store for job in jobs}
    return [(store, [job for job in jobs if job.store is store]) for store in stores.values()]


def _fetch(model: Any, row: tuple[str, str, int]) -> Callable[[], Mapping[str, Any]]:
    task, split, index = row
    return lambda: model.task_dict[task][split][index]
