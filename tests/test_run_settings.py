"""Settings of a run file: whatever one of them is replaced by, a command ends in words."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from finished_runs import finished_run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hedge_tasks.cli import main
from hedge_tasks.runs.run_files import save_run

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


def outcome(folder: Path, command: str, changed: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    for old in folder.glob("*"):
        old.unlink()
    path = save_run(finished_run(4, samples=2, **changed), folder)
    options = {"report": ["--no-curves", "--out", str(folder / "page.html")]}
    return main([command, str(path), *options.get(command, [])]), capsys.readouterr().err


@pytest.mark.parametrize("command", ["health", "detectors", "report"])
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    place=st.sampled_from(list(places(SETTINGS))),
    value=st.sampled_from(["x", 5, [1], ["a"], {"a": 1}, {}, None, math.nan, True]),
)
def test_a_setting_of_any_type_ends_in_words(
    place: tuple[Any, ...], value: object, command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = copy.deepcopy(SETTINGS)
    inner: Any = changed
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    code, complaint = outcome(folder, command, changed, capsys)
    assert code in (0, 1, 2)  # 1 of health: there are problems
    assert "unexpected" not in complaint, complaint


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"sampling": {"baseline_temperature": "x"}}, "settings.sampling.baseline_temperature: expected a number"),
        ({"sampled": {"decoding": {"temperature": "hot"}}}, "settings.sampled.decoding.temperature: expected a number"),
        (
            {"sampled": {"decoding": {"sent": {"refused": 5}}}},
            "settings.sampled.decoding.sent.refused: expected a list",
        ),
        ({"sampled": {"probe": {"behaviour": [1]}}}, "settings.sampled.probe.behaviour: expected an object"),
        ({"sampled": {"probe": {"draws": "x"}}}, "settings.sampled.probe.draws: expected an integer"),
        ({"sampled": {"server": {"other_models": 5}}}, "settings.sampled.server.other_models: expected a list"),
        ({"filters": {"nli": {"model": math.nan}}}, "settings.filters.nli.model: expected a text"),
        ({"filters": {"nli": {"revision": ["a"]}}}, "settings.filters.nli.revision: expected a text"),
        ({"claims": {"labels": None}}, "settings.claims.labels: expected an object"),
    ],
)
def test_a_setting_of_a_wrong_type_is_named(
    changed: dict[str, Any], words: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, complaint = outcome(folder, "health", changed, capsys)
    assert code == 2
    assert words in complaint
