"""Settings of a run file: whatever one of them is replaced by, a command ends in words."""

from __future__ import annotations

import contextlib
import copy
import functools
import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from finished_runs import finished_run
from hostile import attempt
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hedge_tasks.cli import main
from hedge_tasks.runs.run_files import load_run, save_run

BEHAVIOUR = {name: {"draws": 4, "distinct": 1, "chance": 0.1} for name in ("temperature", "top_k", "no seed")}

SETTINGS: dict[str, Any] = {
    "documents": {"prompt": "plain/question", "judge": {"judge": "rule"}, "grouping": {"found": 2}},
    "filters": {"exact": {"backend": "exact", "with_question": False, "alpha": 1.0, "model": None, "revision": None}},
    "sampling": {"n": 6, "temperature": 1.0, "baseline_temperature": 0.1, "seed": 0, "perturbation": {"rotate": [2]}},
    "prompt": {"name": "plain", "user": "{question}", "system": None},
    "claims": {"asked": {"unit": "sentence"}, "labels": {"judge": None, "silent": "unlabelled", "errors": "all"}},
    "outcome": {"zero_entropy": {"exact": 0.25}},
    "metrics": ["se_auroc"],
    "failed": ["q9"],
    "sampled": {
        "decoding": {
            **{"asked": "pure", "temperature": 1.0, "baseline_temperature": 0.1, "sampled_here": False},
            **{"sent": {"top_p": 1.0, "refused": ["min_p"]}, "method": {"name": "vcd", "alpha": 1.0}},
        },
        "probe": {"draws": 13, "cut": 0, "varied": False, "certain": 0.5, "seeds_repeat": True, "behaviour": BEHAVIOUR},
        "server": {"other_models": ["m"], "answered_as": ["m"], "refused": {"top_k": "no"}},
        "image_use": {"blank": 6, "blank_same": 6},
        "untold": "no template",
    },
}


def places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place below a value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*above, key)
        yield from places(inner, (*above, key))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


OPTIONS = {"report": ["--no-curves", "--out", "page.html"], "rescore": ["--clustering", "exact"]}
VALUES = ("x", 5, [1], ["a"], {"a": 1}, {}, None, math.nan, True)
FREE = {("sampling", "perturbation"), ("sampled", "server", "refused")}
"""Places that may hold what is no object."""


def with_setting(place: tuple[Any, ...], value: object) -> dict[str, Any]:
    changed = copy.deepcopy(SETTINGS)
    inner: Any = changed
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return changed


@pytest.mark.parametrize("command", ["health", "detectors", "report", "rescore"])
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.sampled_from(list(places(SETTINGS))), value=st.sampled_from(VALUES))
def test_a_setting_of_any_type_ends_in_words(
    place: tuple[Any, ...], value: object, command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = save_run(finished_run(4, samples=2, **with_setting(place, value)), folder)
    with contextlib.chdir(folder):
        code, complaint = main([command, str(path), *OPTIONS.get(command, [])]), capsys.readouterr().err
    path.unlink()
    assert code in (0, 1, 2)  # 1 of health: there are problems
    assert "unexpected" not in complaint, complaint
    assert complaint.count("\n") == 1 or code < 2


def test_a_setting_of_a_wrong_type_is_named_with_its_place(folder: Path) -> None:
    for place, value in itertools.product(places(SETTINGS), VALUES):
        path = save_run(finished_run(1, samples=1, **with_setting(place, value)), folder)
        _, error = attempt(lambda path=path: load_run(path))
        path.unlink()
        named = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in place)
        assert not error or error.startswith(f"{path}:1: settings{named}"), (place, value)
        before = functools.reduce(lambda inner, key: inner[key], place, SETTINGS)
        if isinstance(before, dict) and place not in FREE:
            assert error or isinstance(value, dict | None), (place, value)
