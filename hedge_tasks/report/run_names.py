"""Names of runs side by side: task and model, and of those that share both, what differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hedge_tasks.numbers import MISSING, Table
from hedge_tasks.report.texts import clean, flat_settings
from hedge_tasks.runs.model_names import short_names
from hedge_tasks.runs.run_files import Run

_WORDS = {
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
"""Sections of the settings whose other keys may distinguish runs as well: the setup, not the outcome."""

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
            for i, difference in zip(places, what_differs([runs[i] for i in places]), strict=True):
                names[i] = " · ".join([alike, *([difference] if difference else [])])
    return [name if names.count(name) == 1 else f"{name} ({i + 1})" for i, name in enumerate(names)]


def what_differs(runs: Sequence[Run]) -> list[str]:
    """Return the settings that distinguish each run from the others, such as "seed 1"; "" where none does."""
    settings = [dict(_settings_of(run)) for run in runs]
    keys = dict.fromkeys(key for run_settings in settings for key in run_settings)
    order = [*(key for key in _WORDS if key in keys), *(key for key in keys if key not in _WORDS)]
    taken: list[str] = []
    n_apart = 1
    for key in order:
        n_distinct = len({tuple(run_settings.get(k) for k in (*taken, key)) for run_settings in settings})
        if n_distinct > n_apart:
            taken, n_apart = [*taken, key], n_distinct
        if n_apart == len(runs) or len(taken) == _MOST:
            break
    differences = [", ".join(_in_words(key, run_settings.get(key)) for key in taken) for run_settings in settings]
    return differences if n_apart == len(runs) else _with_times(runs, differences)


def differences(runs: Sequence[Run], names: Sequence[str]) -> tuple[Table | None, Table | None]:
    """Return the settings in which runs differ, a row each: those that have a name, and all others.

    Args:
        names: what the runs are called, no two the same.
    """
    settings = [{"task": run.task, "model": run.model, **dict(_settings_of(run))} for run in runs]
    words = {"task": "task", "model": "model", "questions": "questions", **_WORDS}
    others = dict.fromkeys(key for of_run in settings for key in of_run if key not in words)
    return _differing(settings, words, names), _differing(settings, {key: key for key in others}, names)


def _differing(settings: Sequence[Mapping[str, str]], words: Mapping[str, str], names: Sequence[str]) -> Table | None:
    rows = []
    for key, word in words.items():
        values = [of_run.get(key) for of_run in settings]
        if len(set(values)) > 1:
            rows.append([clean(word, 100), *(MISSING if value is None else clean(value, 100) for value in values)])
    return Table.of(["setting", *names], rows) if rows else None


def _with_times(runs: Sequence[Run], differences: Sequence[str]) -> list[str]:
    """Add when the runs were written, as finely as it takes."""
    length = next((n for n in (_MINUTE, _SECOND) if len({run.created[:n] for run in runs}) == len(runs)), _MINUTE)
    times = [run.created[:length].replace("T", " ") for run in runs]
    return [", ".join(filter(None, both)) for both in zip(differences, times, strict=True)]


def _settings_of(run: Run) -> Iterator[tuple[str, str]]:
    yield from flat_settings(
        {key: run.settings[key] for key in ("version", *_PROTOCOL, "metadata") if key in run.settings}
    )
    yield "questions", str(len(run.answer_sets))


def _in_words(key: str, value: str | None) -> str:
    if key == "questions":
        return f"{value} questions"
    return f"{clean(_WORDS.get(key, key.rpartition('.')[2].replace('_', ' ')), _LONGEST)} {clean(str(value), _LONGEST)}"
