"""How far the evaluations of a folder are: draws done and planned for, their rate, the time left, the health so far."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.runs.health import Health, health_of
from hedge_tasks.runs.run_files import Run
from hedge_tasks.sampling import archive
from hedge_tasks.sampling.definition import Definition
from hedge_tasks.sampling.store import KIND, AnswerStore, StoredDocument

WINDOW_S = 600.0
"""The rate is that of these last seconds: the first batches of a model are slow, and servers come and go."""

QUIET_S = 180.0
"""An evaluation without a new answer for so long may have ended, or waits for its server."""

SAMPLING, QUIET, COMPLETE = "sampling", "stalled", "complete"
STATES = (SAMPLING, QUIET, COMPLETE)


@dataclass(frozen=True)
class Sampling:
    """How far the answers of one definition (task, model, prompt, settings) are.

    Attributes:
        task, model, prompt: names.
        folder: of the store.
        documents: planned for.
        complete: of them, how many have all their answers.
        done, planned: draws.
        rate: draws a second of the last minutes; None where nothing has been seen to come yet.
        left_s: seconds for what is missing, at this rate; None without one.
        quiet_s: seconds since the last answer.
        state: "sampling", "stalled" (nothing came for `QUIET_S`) or "complete".
        health: of the complete documents; None where there is none.
        dropped: damaged records.
    """

    task: str
    model: str
    prompt: str
    folder: Path
    documents: int
    complete: int
    done: int
    planned: int
    rate: float | None
    left_s: float | None
    quiet_s: float
    state: str
    health: Health | None
    dropped: int = 0


class Watch:
    """Follows an answer store that others write into; what has been read is not read again.

    Args:
        folder: of the store.
        clock: seconds, for the rate.
        wall: seconds since the epoch, as the modification times of files are.
    """

    def __init__(
        self,
        folder: Path,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._folder = folder
        self._store = AnswerStore(folder, watched=True)
        self._clock, self._wall = clock, wall
        self._followed: dict[str, _Followed] = {}

    def look(self) -> list[Sampling]:
        """Read what is new, and say how far each definition is; the ones under way first.

        Raises:
            DataError: a file cannot be read.
        """
        self._store.refresh()
        now, quiet_s = self._clock(), self._quiet()
        samplings = []
        for name, definition in self._store.definitions.items():
            followed = self._followed.setdefault(name, _Followed(definition, now - quiet_s))
            followed.take(self._store, now)
            if followed.documents:
                samplings.append(self._sampling(followed, now))
        return sorted(samplings, key=lambda sampling: (STATES.index(sampling.state), sampling.task, sampling.model))

    def _quiet(self) -> float:
        times = [file.stat().st_mtime for file in self._folder.glob(f"{KIND}-*.*")]
        return max(0.0, self._wall() - max(times)) if times else 0.0

    def _sampling(self, followed: _Followed, now: float) -> Sampling:
        rate, quiet_s = followed.rate(now), max(0.0, now - followed.last)
        missing = followed.planned - followed.done
        state = COMPLETE if not missing else QUIET if quiet_s > QUIET_S else SAMPLING
        definition, sets = followed.definition, followed.answer_sets
        run = Run("", "", tuple(sets), settings={"sampled": self._store.reports.get(definition.id)})
        return Sampling(
            task=definition.task,
            model=definition.model or "",
            prompt=str(definition.prompt.get("name") or ""),
            folder=self._folder,
            documents=len(followed.documents),
            complete=len(sets),
            done=followed.done,
            planned=followed.planned,
            rate=rate if state == SAMPLING else None,
            left_s=missing / rate if rate and state == SAMPLING else None,
            quiet_s=quiet_s,
            state=state,
            health=health_of(run) if sets else None,
            dropped=len(self._store.dropped),
        )


class _Followed:
    """The draws of one definition: those that are there, and those that are awaited."""

    def __init__(self, definition: Definition, last: float) -> None:
        """Args: last: when something last came into the store, as far as files tell."""
        self.definition = definition
        self.last = last
        self.documents: dict[str, StoredDocument] = {}
        self._finished: dict[str, AnswerSet] = {}
        self._keys: dict[str, list[str]] = {}
        self._done: dict[str, int] = {}
        self._seen: deque[tuple[float, int]] = deque()

    @property
    def answer_sets(self) -> Sequence[AnswerSet]:
        """Of the documents that have all their answers."""
        return list(self._finished.values())

    @property
    def done(self) -> int:
        return sum(self._done.values())

    @property
    def planned(self) -> int:
        return sum(map(len, self._keys.values()))

    def take(self, store: AnswerStore, now: float) -> None:
        """Count what the store has by now. A document that is complete is not looked at again."""
        before = self.done if self._seen else None
        for document in archive.documents_of(store, self.definition).values():
            if self.documents.get(document.id) != document:
                self.documents[document.id] = document
                self._keys[document.id] = [key for key, _ in self._draws(store, document)]
                self._finished.pop(document.id, None)
        for name, keys in self._keys.items():
            if name not in self._finished:
                answers = [store.get(key) for key in keys]
                self._done[name] = sum(answer is not None for answer in answers)
                if self._done[name] == len(keys):
                    self._finished[name] = _answer_set(self.documents[name], [a for a in answers if a is not None])
        if before is not None and self.done > before:  # another evaluation may be writing into the same store
            self.last = now

    def rate(self, now: float) -> float | None:
        """Draws a second since the oldest look of the window; None before a second look, or where nothing came."""
        self._seen.append((now, self.done))
        while len(self._seen) > 2 and self._seen[1][0] <= now - WINDOW_S:
            self._seen.popleft()
        (then, before), (_, done) = self._seen[0], self._seen[-1]
        return (done - before) / (now - then) if done > before and now > then else None

    def _draws(self, store: AnswerStore, document: StoredDocument) -> Iterator[tuple[str, Answer | None]]:
        yield from archive.keyed_answers(store, self.definition, document, document.n, document.n_noisy)


def _answer_set(document: StoredDocument, answers: Sequence[Answer]) -> AnswerSet:
    n_clean = len(answers) - 1 - document.n_noisy
    return AnswerSet(document.id, answers[0], tuple(answers[1 : 1 + n_clean]), tuple(answers[1 + n_clean :]))
