"""Write constants.json: named numbers of the package's modules and classes, and numbers that arguments have by default.

python tests/golden/make_constants.py
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

FILE = Path(__file__).with_name("constants.json")
ROOT = FILE.parents[2]


def is_number(node: ast.AST | None) -> bool:
    """Whether a value is made of numbers alone."""
    leaves = [n for n in ast.walk(node) if isinstance(n, (ast.Constant, ast.Name, ast.Call))] if node else []
    return bool(leaves) and all(type(getattr(n, "value", None)) in (int, float) for n in leaves)


def values_of(node: ast.AST) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield what stands in a scope or a function's arguments, by "NAME", "Class.field" or "function(argument)"."""
    match node:
        case ast.Module(body) | ast.ClassDef(body=body):
            prefix = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
            for line in body:
                match line:
                    case ast.Assign([target], value) | ast.AnnAssign(target, value=value):
                        yield prefix + ast.unparse(target), value
        case ast.FunctionDef(name, ast.arguments() as given) | ast.AsyncFunctionDef(name, ast.arguments() as given):
            placed = zip(reversed([*given.posonlyargs, *given.args]), reversed(given.defaults), strict=False)
            for argument, value in [*placed, *zip(given.kwonlyargs, given.kw_defaults, strict=True)]:
                yield f"{name}({argument.arg})", value


def constants() -> dict[str, dict[str, str]]:
    """File -> name -> value as the code has it."""
    found = {}
    for file in sorted(file for top in ("hedge_tasks", "models") for file in (ROOT / top).rglob("*.py")):
        pairs = [pair for node in ast.walk(ast.parse(file.read_bytes())) for pair in values_of(node)]
        found[str(file.relative_to(ROOT))] = {name: ast.unparse(of) for name, of in pairs if of and is_number(of)}
    return {file: numbers for file, numbers in found.items() if numbers}


if __name__ == "__main__":
    rows = [f"{json.dumps(file)}: {json.dumps(some)}" for file, some in constants().items()]
    FILE.write_text("{\n" + ",\n".join(rows) + "\n}\n", "utf-8")
