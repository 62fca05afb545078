"""`hedge data`: local data sets out of what a user has downloaded, and checks of it. Nothing is downloaded here."""

from __future__ import annotations

from hedge_tasks.evaluation import brought_commands
from hedge_tasks.io.commands import Parser


def add(commands: Parser) -> None:
    """Each evaluation brings the commands that build its data."""
    parts = commands.add_command("data", "build and check local data sets, from what you have downloaded")
    for add_command in brought_commands("data"):
        add_command(parts)
