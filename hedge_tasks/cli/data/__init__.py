"""`hedge data`: local data sets out of what a user has downloaded, and checks of it. Nothing is downloaded here."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from hedge_tasks.cli.data import medhallmark, shale, vope

BUILDERS: tuple[ModuleType, ...] = (medhallmark, shale, vope)
"""Modules with a function `add(commands)`, in the order of `hedge data --help`."""


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "data", help="build and check local data sets", description="Local data sets, from what you have downloaded."
    )
    parts = parser.add_subparsers(title="data sets", required=True, metavar="DATA")
    for module in BUILDERS:
        module.add(parts)
