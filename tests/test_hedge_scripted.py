"""hedge_scripted: every reply is the script's, and what a script cannot be is named."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hedge_tasks.data.answers import Draw
from hedge_tasks.errors import ConfigError, DataError, HedgeError
from hedge_tasks.models.hedge_scripted import HedgeScripted

pytestmark = pytest.mark.framework


def model(folder: Path, script: Any) -> HedgeScripted:
    (folder / "replies.json").write_text(json.dumps(script), "utf-8")
    return HedgeScripted(script=str(folder / "replies.json"))


def draw(id: str, condition: Any, index: int = 0) -> Any:
    return SimpleNamespace(request=SimpleNamespace(id=id), draw=Draw(condition, index, 1.0, 0))


def test_draws_take_the_texts_in_turn_and_the_baseline_where_there_are_none(tmp_path: Path) -> None:
    scripted = model(tmp_path, {"a": "yes", "b": {"baseline": "no", "clean": ["1", "2"]}})
    asked = [("a", "noisy", 3), ("b", "baseline", 0), ("b", "clean", 0), ("b", "clean", 1), ("b", "clean", 2)]
    [pairs] = scripted.generate_draws([draw(*one) for one in [*asked, ("b", "noisy", 0)]])
    assert [place for place, _ in pairs] == list(range(6))
    assert [answer.text for _, answer in pairs] == ["yes", "no", "1", "2", "1", "no"]
    assert {answer.mean_logprob for _, answer in pairs} == {None}


def test_a_document_that_it_lacks_is_named_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="unknown document of the script 'street/cat', did you mean 'street/car'"):
        list(model(tmp_path, {"street": "x", "street/car": "y"}).generate_draws([draw("street/cat", "baseline")]))


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ([], "replies.json: expected"),
        ({}, "replies.json: expected"),
        ({"a": {"clean": ["1"]}}, "a.baseline: missing"),
        ({"a": {"baseline": "1", "claen": ["1"]}}, "did you mean 'clean'"),
        ({"a": {"baseline": []}}, "a.baseline: expected"),
        ({"a": {"baseline": ["1", 2]}}, r"a.baseline\[1\]: expected a text"),
    ],
)
def test_a_script_of_another_form_is_refused(tmp_path: Path, script: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        model(tmp_path, script)


def test_it_needs_a_script_and_answers_nothing_else(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="script is missing"):
        HedgeScripted()
    with pytest.raises(ConfigError, match="did you mean 'script'"):
        HedgeScripted(script="x", scirpt="y")
    with pytest.raises(DataError, match="no such file in an installed package"):
        HedgeScripted(script="package://hedge_tasks.tasks/nowhere/replies.json")
    with pytest.raises(HedgeError, match="HEDGE tasks only"):
        model(tmp_path, {"a": "b"}).generate_until([])
