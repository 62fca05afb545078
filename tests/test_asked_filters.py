"""HEDGE_FILTERS: only the filter pipelines that one can run, and the error that names it."""

from __future__ import annotations

from typing import Any

import pytest

from hedge_tasks.detectors.registry import get, names
from hedge_tasks.errors import ConfigError
from hedge_tasks.lmms.filters import HedgeFilter, check_models, chosen_detectors, chosen_filters

PIPELINES: list[dict[str, Any]] = [{"name": name} for name in ("nli", "embed", "embed_qa")]


def test_all_filters_run_unless_some_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEDGE_FILTERS", raising=False)
    assert chosen_filters(PIPELINES) == PIPELINES
    monkeypatch.setenv("HEDGE_FILTERS", "embed_qa, embed")
    assert [pipeline["name"] for pipeline in chosen_filters(PIPELINES)] == ["embed", "embed_qa"]
    monkeypatch.setenv("HEDGE_FILTERS", "embd")
    with pytest.raises(ConfigError, match="did you mean 'embed'"):
        chosen_filters(PIPELINES)


def test_a_missing_model_names_the_filters_that_can_run(tmp_path: Any) -> None:
    missing = HedgeFilter("nli", model=str(tmp_path / "none"), device="cpu")
    with pytest.raises(Exception, match="HEDGE_FILTERS=exact"):
        check_models({"nli": missing, "exact": HedgeFilter("exact")})


def test_all_detectors_can_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEDGE_DETECTORS", "p_true, all")
    assert {*chosen_detectors()} == {*(n for n in names() if not get(n).experimental), "p_true"}
    monkeypatch.setenv("HEDGE_DETECTORS", " ,")
    assert chosen_detectors() == []
    monkeypatch.setenv("HEDGE_DETECTORS", "radflg")
    with pytest.raises(ConfigError, match=r"HEDGE_DETECTORS: .*did you mean 'radflag'"):
        chosen_detectors()
