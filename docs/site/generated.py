"""Pages that are made from registries, docstrings and YAML files at build time, as reStructuredText.

One page for each detector, judge, clustering, perturbation and adapter, an index of each kind, and the help of every
command. Whatever another installed package brings has its page, too.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from sphinx.ext.napoleon import Config, GoogleDocstring

from hedge_tasks.cli import whole_parser
from hedge_tasks.clustering import BACKENDS
from hedge_tasks.detectors import NEEDS, Detector, get, names
from hedge_tasks.detectors.base import KEPT_BY
from hedge_tasks.io.commands import Parser
from hedge_tasks.judging.base import JUDGES
from hedge_tasks.lmms.catalogue import list_tasks
from hedge_tasks.models import MODELS
from hedge_tasks.perturb.base import KINDS

Pages = dict[str, str]
"""Path without ending -> reStructuredText."""

_DRAWS = {7: "n clean", 11: "m noisy", 18: "n clean + m noisy"}
"""What a detector asks of 7 clean and 11 noisy draws -> its price."""


_INSIDE = "--gen_kwargs inside="
_EXPERIMENTAL = " (experimental: only where it is named)"


def all_pages(measured: Mapping[str, Sequence[str]]) -> Pages:
    """Every generated page.

    Args:
        measured: detector -> cells of the measured table in docs/detectors.md.
    """
    kinds = {
        "judges": ("Judges", "hedge judge RUN --judge NAME", JUDGES),
        "clusterings": ("Clusterings", "hedge score answers.jsonl --clustering NAME", BACKENDS),
        "perturbations": ("Perturbations", None, KINDS),
    }
    pages = detector_pages(measured)
    for folder, (title, usage, registry) in kinds.items():
        things = [Thing.of(name, found) for name, found in registry.each()]
        pages |= thing_pages(folder, title, usage, things)
    adapters = [Thing.unloaded(name, path) for name, path in MODELS.items()]
    pages |= thing_pages(
        "adapters", "Adapters", "lmms-eval --model NAME --model_args ... --tasks hedge_vqarad", adapters
    )
    return pages | command_pages()


# --- detectors --------------------------------------------------------------------------------------------------------


def detector_pages(measured: Mapping[str, Sequence[str]]) -> Pages:
    """A page a detector, and their index by price."""
    found = [get(name) for name in names()]
    pages = {f"detectors/{detector.name}": detector_page(detector, measured.get(detector.name)) for detector in found}
    rows = [
        (f":doc:`{d.name} </detectors/{d.name}>`", d.title, price(d, nothing="0"), ", ".join(sorted(d.needs)), d.source)
        for d in found
    ]
    pages["detectors/index"] = "\n".join(
        [
            *heading("Detectors"),
            "A detector turns the answers to one question into a number: the higher, the more likely the baseline "
            "answer is hallucinated. They are compared on the same answers at the same price, in draws. "
            "For which one to take see :doc:`/which_detector`.",
            "",
            *table(("name", "what", "draws", "needs", "source"), rows),
            *toctree([d.name for d in found], hidden=True),
        ]
    )
    return pages


def _sampling(detector: Detector) -> list[str]:
    """The run that keeps what the detector needs, and shows it where an evaluation can."""
    inside = sorted({KEPT_BY[need] for need in detector.needs if KEPT_BY.get(need, "").startswith(_INSIDE)})
    return [f"lmms-eval ... {option}" for option in inside] or [f"HEDGE_DETECTORS={detector.name} lmms-eval ..."]


def _as_metric(detector: Detector) -> str:
    if any(KEPT_BY.get(need, "").startswith(_INSIDE) for need in detector.needs):
        return "What it looks at lies beside the run, so that it is computed of finished runs only."
    return (
        f"In the YAML of a task ``- metric: {detector.name}_auroc``, and ``{detector.name}_auroc_within`` for "
        "questions of one type."
    )


def detector_page(detector: Detector, measured: Sequence[str] | None) -> str:
    """Formula, price, needs, source and use of one detector."""
    facts = [
        ("In options and files", f"``{detector.name}``" + (_EXPERIMENTAL if detector.experimental else "")),
        ("Price in draws", price(detector)),
        ("Needs", "; ".join(words for need, words in NEEDS.items() if need in detector.needs)),
        ("Unit", detector.unit or "none"),
        ("Source", detector.source),
        ("Measured over 13 real VLMs", _measured(measured)),
    ]
    use = [
        f"hedge score answers.jsonl --detectors {detector.name}",
        f"hedge detectors results --detectors {detector.name}",
        *_sampling(detector),
    ]
    return "\n".join(
        [
            *heading(f"{detector.name}: {detector.title}"),
            *table(None, facts),
            *described(
                "function", detector.name, options_of(detector.function), detector.explanation, first="evidence"
            ),
            *heading("Use", "-"),
            *code("bash", use),
            _as_metric(detector),
            "",
        ]
    )


def price(detector: Detector, nothing: str = "none beyond the baseline answer") -> str:
    """How many draws it costs besides the baseline answer, in words."""
    number = detector.draws(7, 11)
    return _DRAWS.get(number, f"{number} of 7 clean and 11 noisy") if number else nothing


def _measured(cells: Sequence[str] | None) -> str:
    if cells is None:
        return "not in the :doc:`table </docs/detectors>`"
    rank, _, draws, mmbench, _, oodcv, *_ = cells
    found = f"AUROC {mmbench} on MMBench, {oodcv} on OODCV at {draws} draws; mean rank {rank}"
    return f"{found} (:doc:`table </docs/detectors>`)"


_TABLE = "Leaderboard at 10 draws"


def measured_table(text: str) -> dict[str, list[str]]:
    """Detector -> cells of its row in the table of docs/detectors.md, whose text is given.

    Raises:
        ValueError: there is no such table.
    """
    section = text.partition(f"## {_TABLE}\n")[2].split("\n## ", 1)[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if "| `" in line]
    if not rows:
        raise ValueError(f"docs/detectors.md has no table under {_TABLE!r}")
    return {name: cells for cells in rows for name in re.findall(r"`([a-z0-9_]+)`", cells[1])}


def with_measured(text: str, table_text: str) -> str:
    """A text with AUROCs on MMBench and OODCV, as "0.823 and 0.696", in the place of `<auroc NAME>`.

    Raises:
        KeyError: the table has no such detector.
    """
    measured = measured_table(table_text)
    return re.sub(r"<auroc (\w+)>", lambda match: f"{measured[match[1]][3]} and {measured[match[1]][5]}", text)


# --- judges, clusterings, perturbations, adapters ---------------------------------------------------------------------


@dataclass(frozen=True)
class Thing:
    """Something chosen by name.

    Attributes:
        name: that users write.
        path: `module.Class` behind it.
        explanation: docstring.
        options: name and default, empty where there is none.
    """

    name: str
    path: str
    explanation: str
    options: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, name: str, found: Any) -> Thing:
        return cls(
            name, f"{found.__module__}.{found.__qualname__}", inspect.getdoc(found) or "", tuple(options_of(found))
        )

    @classmethod
    def unloaded(cls, name: str, path: str) -> Thing:
        """Read from the source: importing an adapter takes lmms-eval, and one of them vLLM."""
        module, _, attribute = path.rpartition(".")
        spec = importlib.util.find_spec(module)
        assert spec is not None
        assert spec.origin is not None
        tree = ast.parse(Path(spec.origin).read_text("utf-8"))
        [node] = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == attribute]
        makers = [n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"]
        return cls(name, path, ast.get_docstring(node) or "", tuple(_of_source(makers[0].args)) if makers else ())


def _of_source(arguments: ast.arguments) -> Iterator[tuple[str, str]]:
    plain = arguments.args[1:]
    defaults = [None] * (len(plain) - len(arguments.defaults)) + list(arguments.defaults)
    pairs = [*zip(plain, defaults, strict=True), *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    return ((argument.arg, "" if default is None else ast.unparse(default)) for argument, default in pairs)


def options_of(function: Any) -> Iterator[tuple[str, str]]:
    """Options of a class or a detector's function, with their defaults."""
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL) or name == "evidence":
            continue
        default = parameter.default
        shown = "" if default is parameter.empty else repr(default)
        yield name, "..." if shown.startswith("<") else shown


def thing_pages(folder: str, title: str, usage: str | None, things: Sequence[Thing]) -> Pages:
    """A page a thing, and their index."""
    rows = [(f":doc:`{t.name} </{folder}/{t.name}>`", _first_line(t.explanation), f"``{t.path}``") for t in things]
    pages = {f"{folder}/{thing.name}": thing_page(thing, usage) for thing in things}
    pages[f"{folder}/index"] = "\n".join(
        [
            *heading(title),
            *table(("name", "what", "class"), rows),
            *toctree([thing.name for thing in things], hidden=True),
        ]
    )
    return pages


def thing_page(thing: Thing, usage: str | None) -> str:
    """Docstring, options and use."""
    return "\n".join(
        [
            *heading(thing.name),
            *described("class", thing.path.rpartition(".")[2], thing.options, thing.explanation),
            *(code("bash", [usage.replace("NAME", thing.name)]) if usage else []),
            f"Class ``{thing.path}``.",
            "",
        ]
    )


# --- commands ---------------------------------------------------------------------------------------------------------


def command_pages() -> Pages:
    """The help of every command, on one page."""
    lines = heading("The hedge command")
    for name, parser in _commands(whole_parser(), "hedge"):
        lines += [*heading(name, "-"), *code("text", parser.format_help().splitlines())]
    return {"commands": "\n".join(lines)}


def _commands(parser: Parser, name: str) -> Iterator[tuple[str, Parser]]:
    if not parser.commands or parser.runs or name == "hedge":
        yield name, parser
    for word, inner in parser.commands.items():
        yield from _commands(inner, f"{name} {word}")


# --- suites -----------------------------------------------------------------------------------------------------------


def tasks_of_suites() -> dict[str, str]:
    """Folder of a suite -> Markdown table of its tasks, to stand at the end of its README."""
    rows: dict[str, list[str]] = {}
    for task in list_tasks():
        path = Path(task.yaml)
        config = yaml.load(path.read_text("utf-8"), Loader=_Loader)
        members = config.get("task")
        what = "group of " + ", ".join(f"`{member}`" for member in members) if isinstance(members, list) else ""
        rows.setdefault(path.parent.name, []).append(f"| `{task.task}` | {what or 'task'} | `{path.name}` |")
    head = "\n\n## All tasks of this folder\n\n| name | what | file |\n|---|---|---|\n"
    return {folder: head + "\n".join(lines) + "\n" for folder, lines in rows.items()}


class _Loader(yaml.SafeLoader):
    """Reads a task's YAML without running its !function tags."""


_Loader.add_constructor("!function", lambda loader, node: None)


# --- reStructuredText -------------------------------------------------------------------------------------------------


def heading(text: str, line: str = "=") -> list[str]:
    return [text, line * (len(text) + 1), ""]


def code(language: str, lines: Iterable[str]) -> list[str]:
    return [f".. code-block:: {language}", "", *(f"   {line}" for line in lines), ""]


def table(head: Sequence[str] | None, rows: Sequence[Sequence[str]]) -> list[str]:
    """A list table; without a head the first column is one."""
    lines = [".. list-table::", "   :header-rows: 1" if head else "   :stub-columns: 1", ""]
    for row in ([head] if head else []) + list(rows):
        for i, cell in enumerate(row):
            lines.append(f"   {'* -' if i == 0 else '  -'} {' '.join(cell.split())}")
    return [*lines, ""]


def toctree(names: Sequence[str], *, hidden: bool = False) -> list[str]:
    return [".. toctree::", *(["   :hidden:"] if hidden else []), "", *(f"   {name}" for name in names), ""]


def described(what: str, name: str, options: Iterable[tuple[str, str]], text: str, first: str = "") -> list[str]:
    """A function or class with its arguments and its Google-style docstring.

    Args:
        first: argument before the options, without a default.
    """
    config = Config(napoleon_google_docstring=True, napoleon_use_rtype=False, napoleon_use_ivar=True)
    lines = [str(line) for line in GoogleDocstring(text, config, what=what).lines()]
    arguments = [*filter(None, [first]), *(f"{key}={value}" if value else key for key, value in options)]
    return [
        f".. py:{what}:: {name}({', '.join(arguments)})",
        "   :no-index:",
        "",
        *(f"   {line}" for line in lines),
        "",
    ]


def _first_line(text: str) -> str:
    return text.partition("\n\n")[0].replace("\n", " ")
