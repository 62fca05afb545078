"""The declaration of an evaluation: where its YAML files are, and what it brings to the rooms below.

An evaluation is two places: a folder of lmms-eval tasks (YAML, README, prompts) and a package with its code, which
says in an `Evaluation` what it brings. The rooms below never import one: they read these declarations, our own and
those that other packages name in the entry-point group `hedge_tasks.suites`. Everything in a declaration is text
until it is used, so that reading all of them imports no code of an evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import resources
from pathlib import Path
from typing import Any

from loguru import logger

from hedge_tasks.errors import ConfigError, lookup
from hedge_tasks.io.sources import PACKAGE_SCHEME, inside_package
from hedge_tasks.registry import OWN, Registration, read_entry_points

GROUP = "hedge_tasks.suites"


TEMPLATE = "hedge_tasks"
"""The name of `TEMPLATE_FILE` in an `include`."""

TEMPLATE_FILE = "_hedge_template_yaml"
"""Beside our tasks: what all of them share."""


@dataclass(frozen=True)
class Evaluation:
    """A data set with its tasks, and all that they need besides this package.

    Attributes:
        name: of the evaluation, such as "shale"; tasks say it under `hedge.evaluation`.
        folder: of its YAML files, which lmms-eval is shown; `prompts.json` and `judge_prompts/` are looked for in it.
        judges: name -> `"module:attribute"` of a class or function that makes a judge from options.
        measures: `"module:attribute"` of sequences of `hedge_tasks.measures.measure.Measure`, the leading one first:
            what tasks of this evaluation may list, and what their runs are compared, reported and submitted by.
        papers: name in `hedge paper NAME` -> `"module:attribute"` of a `hedge_tasks.suites.papers.Paper`. A report of
            its runs shows the one that is called like the evaluation.
        second_stages: name -> `"module:attribute"` of a `hedge_tasks.sampling.second_stage.Stage`.
        decompositions, entailments: name -> `"module:attribute"` of what makes one; see `hedge_tasks.claims`.
        commands: a command of `hedge` that others stand under ("data", "make", "paper") -> `"module:attribute"` of
            functions that are commands (`hedge_tasks.cli.signatures`).
    """

    name: str
    folder: Path
    judges: Mapping[str, str] = field(default_factory=dict)
    measures: tuple[str, ...] = ()
    papers: Mapping[str, str] = field(default_factory=dict)
    second_stages: Mapping[str, str] = field(default_factory=dict)
    decompositions: Mapping[str, str] = field(default_factory=dict)
    entailments: Mapping[str, str] = field(default_factory=dict)
    commands: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def own_folder(name: str) -> Path:
    """A folder of this package's `tasks/`."""
    return Path(str(resources.files("hedge_tasks.tasks"))) / name


def included_file(path: str) -> str:
    """The file that an `include` of a task's YAML means.

    `hedge_tasks` is the template of this package's tasks, and `package://some.package/folder/file` a file of an
    installed package, on every machine and from every folder. Anything else is what it was.

    Args:
        path: as the YAML has it, or as lmms-eval has put the YAML's folder in front of it.

    Raises:
        ConfigError: no installed package has the file.
    """
    if Path(path).is_file():
        return path
    if Path(path).name == TEMPLATE:
        return str(own_folder(TEMPLATE_FILE))
    if PACKAGE_SCHEME not in path:
        return path
    address = path[path.rindex(PACKAGE_SCHEME) :]
    file = inside_package(address)
    if not (file and file.is_file()):
        raise ConfigError(f"include: {address}: there is no such file in an installed package")
    return str(file)


@cache
def evaluations() -> dict[str, tuple[Evaluation, str]]:
    """Every evaluation that is installed, with the package that brings it, by name.

    What cannot be loaded is warned about and left out.
    """
    by_name: dict[str, tuple[Evaluation, str]] = {}
    # Ours are no entry point: a source tree that was never installed has its evaluations, too.
    for name, entry in [(OWN, Registration("hedge_tasks.suites:own")), *read_entry_points(GROUP)]:
        for evaluation in entry.tried(f"evaluation {name!r}", partial(_declared, entry)) or ():
            taken, by = by_name.setdefault(evaluation.name, (evaluation, entry.source))
            if taken is not evaluation:
                logger.warning("evaluation {!r} of {} is left out: {} has it", evaluation.name, entry.source, by)
    return by_name


def _declared(entry: Registration) -> list[Evaluation]:
    """An entry point names an `Evaluation`, several, or a function that gives them."""
    target = entry.load()
    target = target() if callable(target) else target
    declared = list(target) if isinstance(target, Iterable) else [target]
    if others := [type(thing).__name__ for thing in declared if not isinstance(thing, Evaluation)]:
        raise TypeError(f"expected an Evaluation, got {others[0]}")
    return declared


def from_evaluations(what: str) -> Callable[[], list[tuple[str, Registration]]]:
    """Return a reader of the mapping `what` ("judges", "second_stages", ...) of every evaluation, for a `Registry`."""

    def read() -> list[tuple[str, Registration]]:
        entries = ((getattr(evaluation, what), source) for evaluation, source in evaluations().values())
        return [(name, Registration(thing, source)) for things, source in entries for name, thing in things.items()]

    return read


def evaluation_commands(parent: str) -> Iterator[Callable[..., Any]]:
    """The commands under `hedge PARENT`; one that cannot be loaded is warned about and left out."""
    for evaluation, source in evaluations().values():
        targets = (Registration(target, source) for target in evaluation.commands.get(parent, ()))
        yield from filter(None, (target.tried(f"a command of {evaluation.name}") for target in targets))


def evaluation_measures(name: str) -> list[Any]:
    """The measures of one evaluation (`hedge_tasks.measures.measure.Measure`), the leading one first.

    Raises:
        ConfigError: there is no such evaluation; names the nearest one.
    """
    evaluation, source = lookup("evaluation", name, evaluations())
    return [measure for target in evaluation.measures for measure in Registration(target, source).load()]


def installed_measures(name: str) -> list[Any]:
    """Return the measures of an evaluation that a file names; none where it is not installed or its code is broken."""
    if name not in evaluations():
        return []
    entry = Registration(name, evaluations()[name][1])
    return entry.tried(f"measures of {name}", partial(evaluation_measures, name)) or []


def task_folders() -> list[Path]:
    """Where YAML files of tasks are: this package's folder, then those of other packages."""
    root = own_folder("")
    others = [evaluation.folder for evaluation, source in evaluations().values() if source != OWN]
    return [root, *(folder for folder in others if root not in folder.parents)]


def prompt_files() -> dict[str, Path]:
    """How tasks ask, by name: files that all tasks share (in `tasks/_prompts`), and `prompts.json` of each evaluation.

    `NAME/variant` is a variant of the evaluation NAME.
    """
    shared = {path.stem: path for path in sorted(own_folder("_prompts").glob("*.json"))}
    files = {name: evaluation.folder / "prompts.json" for name, (evaluation, _) in evaluations().items()}
    return {name: path for name, path in files.items() if path.is_file()} | shared


def judge_prompt_files() -> dict[str, Path]:
    """Return the prompts of judges by name: files in `judge_prompts/` of evaluations; of one name the first counts."""
    folders = [evaluation.folder / "judge_prompts" for evaluation, _ in evaluations().values()]
    return {path.stem: path for folder in reversed(folders) for path in folder.glob("*.json")}
