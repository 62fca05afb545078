"""`hedge make`: data sets by the papers' constructions."""

from __future__ import annotations

from hedge_tasks.evaluation import evaluation_commands
from hedge_tasks.io.commands import Parser


def add(commands: Parser) -> None:
    parts = commands.add_command("make", "make a data set by a paper's construction")
    for add_command in evaluation_commands("make"):
        add_command(parts)
