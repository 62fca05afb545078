"""Names of runs side by side: task and model, and of those that share both, what differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hedge_tasks.report.texts import clean
from hedge_tasks.runs.model_names import short_names
from hedge_tasks.runs.run_files import Run

_SAID = {
    "sampling.seed": "seed",
    "prompt.name": "prompt",
    "sampling.n": "n",
    "sampling.n_noisy": "noisy",
    "sampling.temperature": "temperature",
    "sampling.decoding": "decoding",
    "sampling.perturbation.name": "perturbation",
    "sampling.strength": "strength",
    "documents.judge.judge": "judge",
    "documents.judge.version": "judge version",
    "documents.revision": "data revision",
    "metadata.version": "task version",
    "version": "hedge-tasks",
}
"""Settings that tell runs apart, in the order in which a reader would ask; in words."""

_PROTOCOL = ("sampling", "prompt", "documents")
"""Sections of the settings whose other keys may tell runs apart as well: what was asked, not what came of it."""

_LONGEST = 40
_MOST = 3
"""Settings that a name has at most."""

_MINUTE, _SECOND = 16, 19


def names_of_runs(runs: Sequence[Run]) -> list[str]:
    """Return what the runs are called where they stand together, no two the same: task, model, and what differs.

    Example: "hedge_demo · hedge_tiny · seed 1". Runs of the same settings are told apart by when they were written.
    """
    models = short_names([clean(run.model, 200) for run in runs])
    short = [f"{clean(run.task, 200)} · {models[clean(run.model, 200)]}" for run in runs]
    names = list(short)
    for alike in set(short):
        places = [i for i, name in enumerate(short) if name == alike]
        if len(places) > 1:
            for i, told in zip(places, what_differs([runs[i] for i in places]), strict=True):
                names[i] = " · ".join([alike, *([told] if told else [])])
    return [name if names.count(name) == 1 else f"{name} ({i + 1})" for i, name in enumerate(names)]


def what_differs(runs: Sequence[Run]) -> list[str]:
    """Return of each run what tells it from the others, such as "seed 1"; "" where nothing does."""
    settings = [dict(_told(run)) for run in runs]
    known = dict.fromkeys(key for of in settings for key in of)
    order = [*(key for key in _SAID if key in known), *(key for key in known if key not in _SAID)]
    taken: list[str] = []
    apart = 1
    for key in order:
        found = len({tuple(of.get(k) for k in (*taken, key)) for of in settings})
        if found > apart:
            taken, apart = [*taken, key], found
        if apart == len(runs) or len(taken) == _MOST:
            break
    told = [", ".join(_in_words(key, of.get(key)) for key in taken) for of in settings]
    return told if apart == len(runs) else _with_times(runs, told)


def _with_times(runs: Sequence[Run], told: Sequence[str]) -> list[str]:
    """Add when the runs were written, as finely as it takes."""
    length = next((n for n in (_MINUTE, _SECOND) if len({run.created[:n] for run in runs}) == len(runs)), _MINUTE)
    times = [run.created[:length].replace("T", " ") for run in runs]
    return [", ".join(filter(None, both)) for both in zip(told, times, strict=True)]


def _told(run: Run) -> Iterator[tuple[str, str]]:
    yield from _flat({key: run.settings[key] for key in ("version", *_PROTOCOL, "metadata") if key in run.settings})
    yield "questions", str(len(run.answer_sets))


def _flat(value: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(inner, f"{prefix}.{key}" if prefix else str(key))
    else:
        yield prefix, "none" if value is None else str(value)


def _in_words(key: str, value: str | None) -> str:
    if key == "questions":
        return f"{value} questions"
    return f"{clean(_SAID.get(key, key.rpartition('.')[2].replace('_', ' ')), _LONGEST)} {clean(str(value), _LONGEST)}"
