"""`hedge verify`: is a run file as it was written, and what can be saved of it if not?"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.io.commands import PROBLEMS_FOUND, command, show

if TYPE_CHECKING:
    from hedge_tasks.runs.integrity import Inspection

_LISTED = 20


def add(commands: Any) -> None:
    parser = command(
        commands, "verify", run, "check that run files are as they were written; exit code 1 if one is damaged"
    )
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="run files, or output folders of lmms-eval")
    parser.add_argument(
        "--repair",
        action="store_true",
        help="keep what is sound of a damaged file (the damaged one stays beside it as RUN.damaged)",
    )


def run(arguments: argparse.Namespace) -> int:
    from hedge_tasks.runs.run_files import run_paths

    files = [file for path in arguments.runs for file in run_paths(path)]
    facts = {str(file): _facts(file, arguments.repair) for file in files}
    show(arguments, facts, "\n".join(_text(file, about) for file, about in facts.items()))
    return PROBLEMS_FOUND if any(about["problems"] for about in facts.values()) else 0


def _facts(file: Path, repair: bool) -> dict[str, Any]:
    from hedge_tasks.errors import DataError
    from hedge_tasks.runs.integrity import inspect, is_run_file
    from hedge_tasks.runs.run_files import read_run

    try:
        if not is_run_file(file):
            return {"problems": [f"{file}: this is no run file, so there is nothing to check it against"]}
        found = inspect(file)
        if found.problems:
            return _damaged(found, repair)
        read = read_run(file)
    except DataError as error:
        return {"problems": [str(error)]}
    return {"documents": len(read.answer_sets), "sha256": found.digest, "problems": []}


def _damaged(found: Inspection, repair: bool) -> dict[str, Any]:
    from hedge_tasks.runs.run_files import repair_run

    facts = {"documents": len(found.rows), "problems": list(found.problems)}
    if not repair:
        return facts
    repaired = repair_run(found)
    about = {"documents": len(repaired.run.answer_sets), "lost": repaired.n_lost, "lost_ids": list(repaired.lost)}
    return {**facts, **about, "original": str(repaired.original)}


def _text(file: str, about: dict[str, Any]) -> str:
    if not about["problems"]:
        return f"{file}: sound, {about['documents']} documents, sha256:{about['sha256']}"
    problems = about["problems"]
    more = [f"  and {len(problems) - _LISTED} more"] if len(problems) > _LISTED else []
    lines = [f"{file}: damaged", *(f"  {problem}" for problem in problems[:_LISTED]), *more]
    if "original" in about:
        lost = "an unknown number of" if about["lost"] is None else about["lost"]
        ids = about["lost_ids"][:_LISTED]
        named = f": {', '.join(ids)}" + (", ..." if len(about["lost_ids"]) > _LISTED else "") if ids else ""
        lines.append(f"  repaired: {about['documents']} documents are kept, {lost} are gone{named}")
        lines.append(f"  the damaged file is {about['original']}")
    elif "documents" in about:
        lines.append(f"  {about['documents']} documents are sound; --repair keeps them")
    return "\n".join(lines)
