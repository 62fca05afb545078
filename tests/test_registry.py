"""Names of our own and of other packages in one registry."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from hedge_tasks import evaluation
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


def test_every_registry_names_its_kind_and_its_entry_points() -> None:
    root = Path(evaluation.__file__).parent
    paths = [path for path in root.rglob("*.py") if "] = Registry(" in path.read_text("utf-8")]
    names = [".".join(("hedge_tasks", *path.with_suffix("").relative_to(root).parts)) for path in paths]
    modules = [importlib.import_module(name.removesuffix(".__init__")) for name in names]
    found = [value for module in modules for value in vars(module).values() if isinstance(value, Registry)]
    assert len(found) >= len(modules) > 5
    for registry in found:
        assert registry.group.startswith("hedge_tasks."), registry.group
        assert registry.kind.replace(" ", "").isalpha(), registry.kind


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
    for own in (Registration("no_such:Circle").checked, Registration("no_such:Circle").tried):
        with pytest.raises(ModuleNotFoundError):  # what is wrong with ours is ours
            own("circle")


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


# --- evaluations of other packages ------------------------------------------------------------------------------------

SUITES = """
from pathlib import Path
from hedge_tasks.evaluation import Evaluation
mine = Evaluation("mine", Path("/mine"), judges={"mine": "some_suites:judge"}, measures=("some_suites:MEASURES",),
                  commands={"data": ("some_suites:fetch", "some_suites:gone")})
several = lambda: [Evaluation("lost", Path("/lost"), measures=("nowhere:X",)), Evaluation("shale", Path("/shale"))]
neither = [mine, 3]
MEASURES = ("a measure",)
def fetch(): ...
"""


def test_evaluations_of_another_package_stand_beside_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warnings: list[str]
) -> None:
    (tmp_path / "some_suites.py").write_text(SUITES)
    package = tmp_path / "some_suites-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: some-suites\nVersion: 1.0\n")
    points = [f"{name} = some_suites:{name}" for name in ("mine", "several", "neither", "gone")]
    (package / "entry_points.txt").write_text("\n".join([f"[{evaluation.GROUP}]", *points]))
    monkeypatch.syspath_prepend(str(tmp_path))
    evaluation.evaluations.cache_clear()
    try:
        installed = evaluation.evaluations()
        assert {name: source for name, (_, source) in installed.items() if source != "hedge_tasks"} == {
            "mine": "some-suites",
            "lost": "some-suites",
        }
        assert evaluation.evaluation_measures("mine") == evaluation.installed_measures("mine") == ["a measure"]
        assert evaluation.installed_measures("lost") == evaluation.installed_measures("nowhere") == []
        with pytest.raises(ConfigError, match="unknown evaluation 'mien', did you mean 'mine'"):
            evaluation.evaluation_measures("mien")
        judges = dict(evaluation.from_evaluations("judges")())
        assert judges["mine"] == Registration("some_suites:judge", "some-suites")
        assert "fetch" in [command.__name__ for command in evaluation.evaluation_commands("data")]
        assert evaluation.task_folders()[1:] == [Path("/mine"), Path("/lost")]
    finally:
        evaluation.evaluations.cache_clear()
    said = [
        *("evaluation 'gone' of some-suites cannot be loaded: AttributeError", "expected an Evaluation, got int"),
        "evaluation 'shale' of some-suites is left out: hedge_tasks has it",
        *("measures of lost of some-suites cannot be loaded", "a command of mine of some-suites cannot be loaded"),
    ]
    assert [text for text in said if not any(text in warning for warning in warnings)] == []
