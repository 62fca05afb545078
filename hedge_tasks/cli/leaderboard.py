"""`hedge leaderboard`: submissions from runs, their validation, and a static site made of them."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from hedge_tasks.cli.choices import add_run, add_task, chosen_run
from hedge_tasks.io.commands import PROBLEMS_FOUND, command, say, show


def add(commands: Any) -> None:
    text = "make, check and show leaderboard submissions"
    parser = commands.add_parser("leaderboard", help=text, description=text[0].upper() + text[1:] + ".")
    actions = parser.add_subparsers(title="actions", required=True, metavar="ACTION")
    making = command(actions, "submit", submit, "write a run as a submission")
    add_run(making)
    making.add_argument("--out", type=Path, default=Path("submission.json"), help="(default: %(default)s)")
    making.add_argument("--name", help="of the entry (default: the model)")
    making.add_argument("--url", help="of a page about it, beginning with https://")
    making.add_argument("--note", help="a few words about it")
    making.add_argument("--texts", action="store_true", help="put questions, references and answers into it")
    add_task(making)
    checking = command(
        actions, "validate", validate, "compute every number of submissions again; exit code 1 if any is wrong"
    )
    checking.add_argument("submissions", type=Path, nargs="+", metavar="SUBMISSION.json")
    building = command(actions, "build", build, "make a static site from a folder of submissions")
    building.add_argument("folder", type=Path, metavar="DIR", help="folder with *.json")
    building.add_argument("--out", type=Path, default=Path("site"), help="folder of the site (default: %(default)s)")
    building.add_argument(
        "--thorough", action="store_true", help="compute scores again from cluster ids, too, as validate does"
    )
    command(actions, "schema", schema, "print the JSON Schema of submissions")


def submit(arguments: argparse.Namespace) -> int:
    from hedge_tasks.leaderboard import make_submission, write_submission

    run = chosen_run(arguments)
    about = {key: getattr(arguments, key) for key in ("name", "url", "note", "texts")}
    submission = make_submission(run, **about)
    write_submission(arguments.out, submission)
    facts = {"submission": str(arguments.out), "digest": submission["digest"], **submission["summary"]}
    show(arguments, facts, f"{arguments.out}: {run.title}, {len(run.answer_sets)} documents, {submission['digest']}")
    return 0


def validate(arguments: argparse.Namespace) -> int:
    from hedge_tasks.errors import DataError
    from hedge_tasks.leaderboard import problems, read_submission

    found: dict[str, list[str]] = {}
    for path in arguments.submissions:
        try:
            found[str(path)] = problems(read_submission(path))
        except DataError as error:
            found[str(path)] = [str(error)]
    lines = [f"{path}: {text}" for path, texts in found.items() for text in texts or ["valid"]]
    show(arguments, {path: {"valid": not texts, "problems": texts} for path, texts in found.items()}, "\n".join(lines))
    return PROBLEMS_FOUND if any(found.values()) else 0


def build(arguments: argparse.Namespace) -> int:
    from hedge_tasks.leaderboard import build_site, read_entries

    built = read_entries(arguments.folder, recompute_scores=arguments.thorough)
    files = build_site(built, arguments.out)
    for path, reason in built.refused.items():
        say(f"refused {path}: {reason}", sys.stderr)
    refused = {str(path): reason for path, reason in built.refused.items()}
    facts = {"site": str(arguments.out), "pages": len(files), "entries": len(built.entries), "refused": refused}
    show(arguments, facts, f"{arguments.out}: {len(built.entries)} entries, {len(files)} pages, {len(refused)} refused")
    return PROBLEMS_FOUND if refused else 0


def schema(arguments: argparse.Namespace) -> int:
    import json

    from hedge_tasks.leaderboard import submission_schema

    say(json.dumps(submission_schema(), indent=2, ensure_ascii=False))
    return 0
