"""`hedge data`: local data sets out of what a user has downloaded, and checks of it. Nothing is downloaded here."""

from __future__ import annotations

from typing import Any

from hedge_tasks.evaluation import brought_commands


def add(commands: Any) -> None:
    """Each evaluation brings the commands that build its data."""
    parser = commands.add_parser(
        "data", help="build and check local data sets", description="Local data sets, from what you have downloaded."
    )
    parts = parser.add_subparsers(title="data sets", required=True, metavar="DATA")
    for add_command in brought_commands("data"):
        add_command(parts)
