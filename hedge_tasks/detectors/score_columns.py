"""Scores of very many questions as columns: a fifth of the memory that a `Scores` each takes."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import overload

from hedge_tasks.detectors.pipeline import Scores


class ScoreColumns(Sequence[Scores]):
    """A sequence of scores that makes each `Scores` when it is asked for. The units of answers (`parts`) are not kept.

    Example:
        >>> columns = ScoreColumns([Scores("q1", 1, None, None, {"se": 0.5}, "logprob", (0, 0, 1), n_clean=2)])
        >>> columns[0]["se"], len(columns)
        (0.5, 1)
    """

    def __init__(self, scores: Iterable[Scores] = ()) -> None:
        self._ids: list[str] = []
        self._labels = array("b")
        self._flags = array("B")
        self._n_clean = array("I")
        self._clusters: list[bytes | tuple[int, ...]] = []
        self._numbers: dict[str, array[float]] = {}
        # Few differ, or many documents share one: each is kept once, and a document has its number.
        self._texts: dict[str | None, int] = {}
        self._groups, self._types, self._weightings = array("I"), array("I"), array("I")
        self._notes: dict[tuple[tuple[tuple[str, str], ...], tuple[tuple[str, float], ...]], int] = {}
        self._note_of = array("I")
        self.extend(scores)

    def extend(self, scores: Iterable[Scores]) -> None:
        """Add scores behind those that are there."""
        for s in scores:
            before = len(self._ids)
            for name in [name for name in s if name not in self._numbers]:
                self._numbers[name] = array("d", [math.nan]) * before
            for name, column in self._numbers.items():
                value = s.get(name)
                column.append(math.nan if value is None else value)
            self._ids.append(s.id)
            self._labels.append(-1 if s.label is None else s.label)
            self._flags.append(s.held_out + 2 * s.lexical_sampled)
            self._n_clean.append(s.n_clean)
            small = all(0 <= cluster < 256 for cluster in s.cluster_ids)
            self._clusters.append(bytes(s.cluster_ids) if small else s.cluster_ids)
            self._groups.append(self._text(s.group))
            self._types.append(self._text(s.question_type))
            self._weightings.append(self._text(s.weighting))
            note = (tuple(s.left_out.items()), tuple(s.choice_errors.items()))
            self._note_of.append(self._notes.setdefault(note, len(self._notes)))

    def _text(self, text: str | None) -> int:
        return self._texts.setdefault(text, len(self._texts))

    def __len__(self) -> int:
        return len(self._ids)

    @overload
    def __getitem__(self, index: int) -> Scores: ...
    @overload
    def __getitem__(self, index: slice) -> list[Scores]: ...
    def __getitem__(self, index: int | slice) -> Scores | list[Scores]:
        chosen = range(len(self))[index]
        scores = self._scores([chosen] if isinstance(chosen, int) else chosen)
        return next(scores) if isinstance(chosen, int) else list(scores)

    def __iter__(self) -> Iterator[Scores]:
        return self._scores(range(len(self)))

    def _scores(self, rows: Iterable[int]) -> Iterator[Scores]:
        texts = list(self._texts)
        notes: list[tuple[Mapping[str, str], Mapping[str, float]]] = [(dict(a), dict(b)) for a, b in self._notes]
        columns = list(self._numbers.items())
        for i in rows:
            label, flags = self._labels[i], self._flags[i]
            left_out, choice_errors = notes[self._note_of[i]]
            numbers = {name: None if math.isnan(value := column[i]) else value for name, column in columns}
            yield Scores(
                id=self._ids[i],
                label=None if label < 0 else label,
                group=texts[self._groups[i]],
                question_type=texts[self._types[i]],
                numbers=numbers,
                weighting=texts[self._weightings[i]] or "",
                cluster_ids=tuple(self._clusters[i]),
                held_out=bool(flags & 1),
                choice_errors=choice_errors,
                lexical_sampled=bool(flags & 2),
                left_out=left_out,
                n_clean=self._n_clean[i],
            )
