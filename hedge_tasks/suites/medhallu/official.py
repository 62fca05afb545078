"""The reference code's own prompts, out of a user's copy of it (github.com/MedHallu/MedHallu, MIT), as a prompt file.

The code is parsed and never run. What is looked for: texts that say what a judge is to do and functions that put
question, answer and knowledge into a text, each once without and once with the option to pass (2).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from hedge_tasks.errors import DataError
from hedge_tasks.io.outside import read_text

SCRIPT = "Detection/detection_vllm_notsurecase.py"
"""File of the reference code that has its prompts."""

LICENCE = "MIT, Copyright (c) the authors of MedHallu (github.com/MedHallu/MedHallu)"

VARIANTS = ("zero_shot", "knowledge", "notsure", "knowledge_notsure")

_ROLE = re.compile(r"judge|hallucinat", re.IGNORECASE)
_PASS = re.compile(r"(?<![\w.])2(?![\w.])")
_PARTS: Mapping[str, str] = {"question": "\0q", "answer": "\0a", "option1": "\0a", "knowledge": "\0k", "context": "\0k"}
_ASKED = re.compile(r"Question: \0q\s*\nAnswer: \0a")


def official_prompts(path: Path) -> dict[str, str]:
    """Return the user turns of the variants that the code has, with our places for question, answer and knowledge.

    Raises:
        DataError: it is no Python, or has no such prompts; says what is missing.
    """
    try:
        tree = ast.parse(read_text(path))
    except (SyntaxError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: no Python code ({error})") from None
    roles = {bool(_PASS.search(text)): text for text in _texts(tree) if _ROLE.search(text) and len(text) > 200}
    asks = {("\0k" in text, bool(_PASS.search(text))): text for text in _templates(tree)}
    prompts = {}
    for variant in VARIANTS:
        key = "knowledge" in variant, "notsure" in variant
        if key in asks and key[1] in roles:
            prompts[variant] = _joined(roles[key[1]], asks[key], path)
    if not prompts:
        raise DataError(f"{path}: no prompts of MedHallu's reference code in it ({SCRIPT} has them)")
    return prompts


def prompt_file(prompts: Mapping[str, str]) -> dict[str, object]:
    """Return a prompt file as tasks load it."""
    return {
        "source": f"The reference code of MedHallu, {SCRIPT}, word for word.",
        "licence": LICENCE,
        "prompts": {variant: {"user": text} for variant, text in prompts.items()},
    }


def task_files(prompts: Mapping[str, str], file: Path, shared: Path) -> dict[str, str]:
    """YAML files of tasks that ask with these prompts and read replies as the reference code does, by their names.

    Args:
        file: the prompt file.
        shared: folder of this evaluation's tasks.
    """
    files = {}
    for variant in prompts:
        name = "hedge_medhallu_official" + {"zero_shot": ""}.get(variant, f"_{variant}")
        not_sure = str("notsure" in variant).lower()
        lines = [
            f"include: {shared}/_hedge_medhallu_single_yaml",
            f"task: {name}",
            "dataset_kwargs: {show: random, seed: 0, knowledge: list}   # the code shows the list as Python prints it",
            "hedge_overrides:",
            f"  prompt: {file}/{variant}",
            *(["  context: knowledge"] if "knowledge" in variant else []),
            f"  judge: {{name: medhallu, parsing: official, not_sure: {not_sure}}}",
        ]
        files[f"{name}.yaml"] = "\n".join(lines) + "\n"
    return files


def _texts(tree: ast.AST) -> Iterator[str]:
    """Texts that are given a name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value.value


def _templates(tree: ast.AST) -> Iterator[str]:
    """F-strings with a question and an answer in them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            text = "".join(_piece(part) for part in node.values)
            if "\0q" in text and "\0a" in text and "\0?" not in text:
                yield text


def _piece(part: ast.expr) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    if isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.Name):
        return _PARTS.get(part.value.id, "\0?")
    return "\0?"


def _joined(role: str, ask: str, path: Path) -> str:
    """Role, then what is asked, in one user turn."""
    if not _ASKED.search(ask):
        raise DataError(f"{path}: its prompt has no 'Question: ...' followed by 'Answer: ...'")
    user_turn = _ASKED.sub("{question}", ask).replace("\0k", "{context}")
    return f"{role}\n{user_turn}"
