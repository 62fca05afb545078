"""Names of our own and of other packages in one registry."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hedge_tasks.errors import ConfigError
from hedge_tasks.registry import Registration, Registry

GROUP = "hedge_tasks.shapes"


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package on the path that brings a square, a broken circle and a list of its own."""
    package = tmp_path / "some_shapes-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: some-shapes\nVersion: 1.0\n")
    points = "square = some_shapes:Square\ncircle = some_shapes.no_such:Circle\nlist = some_shapes:Square\n"
    (package / "entry_points.txt").write_text(f"[{GROUP}]\n{points}")
    (tmp_path / "some_shapes.py").write_text("class Square:\n    def __init__(self, side):\n        self.side = side\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "some_shapes", raising=False)
    return tmp_path


def shapes() -> Registry:
    return Registry("shape", GROUP, {"list": "builtins:list", "empty": dict})


def test_another_package_adds_a_name(outside: Path) -> None:
    registry = shapes()
    assert registry.names() == ["list", "empty", "circle", "square"]
    assert registry.build("square", side=3).side == 3


def test_nothing_is_imported_before_it_is_asked_for(outside: Path) -> None:
    shapes().names()
    assert "some_shapes" not in sys.modules


def test_our_names_stay_ours(outside: Path, warnings: list[str]) -> None:
    assert shapes().build("list") == []
    [warning] = warnings
    assert "shape 'list' of some-shapes is not used: hedge_tasks has one of this name" in warning


def test_a_broken_package_breaks_nobody_else(outside: Path, warnings: list[str]) -> None:
    registry = shapes()
    with pytest.raises(ConfigError, match=r"shape 'circle' of some-shapes cannot be loaded: ModuleNotFoundError"):
        registry.get("circle")
    for _ in range(2):
        assert [name for name, _ in registry.each()] == ["list", "empty", "square"]
    assert sum("'circle'" in message for message in warnings) == 1


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("squre", {}, "unknown shape 'squre', did you mean 'square'"),
        ("square", {"sid": 3}, "unknown option of shape 'square' 'sid', did you mean 'side'"),
        ("square", {}, "shape 'square': missing a required argument: 'side'"),
    ],
)
def test_errors_name_what_is_wrong(outside: Path, name: str, options: dict[str, int], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        shapes().build(name, **options)


def test_a_name_can_be_registered_once() -> None:
    registry = shapes()
    registry.register("row", "builtins:tuple")
    registry.register("row", "builtins:tuple")
    assert registry.get("row") is tuple
    with pytest.raises(ValueError, match="already registered"):
        registry.register("row", list)


def test_more_entries_can_come_from_elsewhere() -> None:
    registry: Registry = Registry("shape", "no.such.group", {}, also=lambda: [("row", Registration("builtins:tuple"))])
    assert registry.names() == ["row"]
