"""A command is a function: options from its signature, help from its docstring, a table or facts as its result.

    def health(run: RunChoice, *, strict: bool = False) -> list[dict[str, Any]]:
        '''Check runs for technical problems.

        Args:
            strict: Remarks count, too.
        '''

Parameters before the `*` are arguments, those behind it options: a `bool` is a switch, a list or tuple may be given
again, a `Literal` is a choice, and what has no default is required. A data class stands for the options of its fields,
with the help of its `Attributes`: an option that several commands take is declared there, once. A docstring's text
below the first line is printed below the help. Annotations are resolved: their names are imported, not only for type
checking. `words: Words` takes all that is unknown.

What is returned is printed by `hedge_tasks.cli.printing`: a table, facts by name, or a list of such; a pair of this and
an exit code, where that is not 0.
"""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from hedge_tasks.errors import ConfigError
from hedge_tasks.io.commands import Parser, command
from hedge_tasks.io.places import Place, local, place

_OF_LMMS_EVAL = frozenset({"model_args"})
"""Options that are spelled as in lmms-eval."""

_SECTION = re.compile(r"\n(?=(?:Args|Attributes|Raises|Returns|Example):\n)")
_ENTRY = re.compile(r"\n    (?=\S)")


class Words(tuple[str, ...]):
    """Words of a command line that the command does not know, and passes on to another program."""


def add(commands: Parser, name: str, target: Any) -> None:
    """Add a command to a group: a function, or a mapping of further names ("": its own, which is first)."""
    functions = target if isinstance(target, dict) else {"": target}
    for part, function in functions.items():
        group = commands.commands[name] if part else commands
        summary, details, _ = documented(function)
        parser = command(group, part or name, partial(_call, function), summary)
        parser.add_argument("--csv", action="store_true", help="print the tables as CSV")
        parser.add_argument("--latex", action="store_true", help="print the tables for LaTeX (booktabs)")
        parser.formatter_class, parser.epilog = argparse.RawDescriptionHelpFormatter, details
        _add_all(parser, function)


def _add_all(parser: Parser, source: Any) -> None:
    """Add the parameters of a function, or the fields of a data class; one without default is an argument."""
    hints, (_, _, helps) = get_type_hints(source), documented(source)
    for key, parameter in inspect.signature(source).parameters.items():
        if is_dataclass(hints[key]):
            _add_all(parser, hints[key])
        elif hints[key] is Words:
            parser.passes_on = True
        else:
            is_field = is_dataclass(source) and parameter.default is not parameter.empty
            is_argument = parameter.kind is not parameter.KEYWORD_ONLY and not is_field
            _add(parser, parameter, hints[key], helps.get(key, ""), is_argument=is_argument)


def documented(thing: object) -> tuple[str, str, dict[str, str]]:
    """Return first line and further text of a docstring, and what it says of each argument or attribute."""
    text, *sections = _SECTION.split("\n" + (inspect.getdoc(thing) or ""))
    helps: dict[str, str] = {}
    for section in sections:
        if section.startswith(("Args", "Attributes")):
            for entry in _ENTRY.split(section)[1:]:
                names, _, words = entry.partition(":")
                helps.update(dict.fromkeys(names.split(", "), " ".join(words.split())))
    summary, _, details = text.strip().partition("\n")
    return summary, details.strip(), helps


def _located(find: Callable[[str, str], Place], text: str) -> Place:
    try:
        return find(text, "place")
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def number(text: str) -> float:
    """Return a number, which may be written as a percentage. Its name is in the errors."""
    return float(text[:-1]) / 100 if text.endswith("%") else float(text)


_READ: dict[Any, Any] = {Place: partial(_located, place), Path: partial(_located, local), float: number}

_METAVAR = {int: "N", Path: "PATH"}


def _add(parser: Parser, parameter: inspect.Parameter, hint: Any, text: str, *, is_argument: bool) -> None:
    """Add an argument or an option: `X | None` is an X that may be left out, a list or tuple several."""
    several = False
    while hint not in _READ and get_origin(hint) is not Literal and get_args(hint):
        several |= get_origin(hint) in (list, tuple)
        hint = get_args(hint)[0]
    is_optional, word = parameter.default is not parameter.empty, parameter.name.rstrip("_")
    if is_optional and parameter.default not in (None, False, "", ()):
        text += f" (default: {parameter.default})"
    text = text.replace("%", "%%")
    options: dict[str, Any] = {"help": text, "type": _READ.get(hint, hint), "metavar": word.upper()}
    if is_optional:
        options["default"] = list(parameter.default) if several else parameter.default
    if get_origin(hint) is Literal:
        options |= {"choices": get_args(hint), "type": str, "metavar": "|".join(get_args(hint))}
    if is_argument:
        nargs = {(True, True): "*", (True, False): "+", (False, True): "?"}.get((several, is_optional))
        parser.add_argument(parameter.name, nargs=nargs, **options)
        return
    if hint is bool:
        options = {"help": text, "action": "store_true"}
    else:
        options |= {"required": not is_optional, "action": "append" if several else "store"}
        options["metavar"] = _METAVAR.get(hint, options["metavar"])
    option = word if word in _OF_LMMS_EVAL else word.replace("_", "-")
    parser.add_argument(f"--{option}", dest=parameter.name, **options)


def _call(function: Callable[..., Any], arguments: argparse.Namespace) -> int:
    from hedge_tasks.cli.printing import print_as

    values, hints, taken = vars(arguments), get_type_hints(function), dict[str, Any]()
    for key in inspect.signature(function).parameters:
        taken[key] = values.get(key)
        if is_dataclass(hints[key]):
            taken[key] = hints[key](**{field.name: values[field.name] for field in fields(hints[key])})
    result = function(**taken)
    result, code = result if isinstance(result, tuple) else (result, 0)
    print_as(result, next((form for form in ("json", "csv", "latex") if values[form]), "text"))
    return code
