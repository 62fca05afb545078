"""Forecast of a stock task's scoring, read from its source before it does it: ask a language model, write files.

A scan says what can be called, not what will be: some tasks ask a model only for answers that they cannot read.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

_ASKS_A_MODEL = re.compile(
    r"llm_judge|get_server\(|ServerConfig|get_judge|judge_server|_server\.evaluate|client\.chat|chat\.completions|"
    r"requests\.post|get_chat_response|get_eval\(|openai\.|OpenAI\(|anthropic|get_llm_output|call_gpt|OpenAIVerifier|"
    r"VerificationPipeline|evaluate_binary|evaluate_comparative|evaluate_with_rubric|\bgpt_eval|query_gpt|ask_gpt|"
    r"litellm|genai\."
)
_WRITES = re.compile(
    r"generate_submission_file|json\.dump\(|\.to_csv\(|\.to_excel\(|\.to_json\(|open\([^)]*[\"'][wa]b?[\"']"
)

_MOST_FUNCTIONS = 400


def asks_a_model(functions: Iterable[Any]) -> str | None:
    """Where a language model may be asked to judge: `call in function`; None where nothing looks like it."""
    for name, source in sources(functions).items():
        if match := _ASKS_A_MODEL.search(source):
            return f"{match[0].rstrip('(')} in {name}"
    return None


def writes_files(function: Any) -> bool:
    return any(_WRITES.search(source) for source in sources([function]).values())


def sources(functions: Iterable[Any]) -> dict[str, str]:
    """Name and source of functions, and of everything that they call in the code of tasks."""
    seen: dict[Any, str] = {}
    for function in functions:
        _collect(function, seen)
    return {qualified.__qualname__: source for qualified, source in seen.items()}


def _collect(function: Any, seen: dict[Any, str]) -> None:
    function = _bare(function)
    if function in seen or len(seen) >= _MOST_FUNCTIONS or not isinstance(function, (FunctionType, type)):
        return
    try:
        source = textwrap.dedent(inspect.getsource(function))
        tree = ast.parse(source)
    except (OSError, TypeError, SyntaxError):
        return
    seen[function] = source
    for callee in _named(tree, function):
        _collect(callee, seen)


def _bare(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.unwrap(function) if isinstance(function, Callable) else function  # type: ignore[arg-type]


def _named(tree: ast.AST, function: Any) -> Iterator[Any]:
    """Functions and classes of task code that the source names."""
    names = getattr(function, "__globals__", None) or vars(inspect.getmodule(function) or ModuleType("none"))
    home = _folder(function)
    for node in ast.walk(tree):
        value: Any = None
        if isinstance(node, ast.Name):
            value = names.get(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = names.get(node.value.id)
            value = getattr(owner, node.attr, None) if isinstance(owner, ModuleType) else owner
        if value is not None and not isinstance(value, (FunctionType, type, ModuleType)):
            value = type(value)  # of a global object all methods count
        if isinstance(value, (FunctionType, type)) and _of_tasks(value, home):
            yield value


def _of_tasks(value: Any, home: Path | None) -> bool:
    folder = _folder(value)
    return folder is not None and (folder == home or "lmms_eval/tasks" in folder.as_posix())


def _folder(value: Any) -> Path | None:
    try:
        return Path(inspect.getfile(value)).parent
    except (OSError, TypeError):
        return None
