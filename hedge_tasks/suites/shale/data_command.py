"""`hedge data shale`: SHALE out of its download."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.io.commands import PROBLEMS_FOUND, Parser, add_out, command, show
from hedge_tasks.numbers import Cell, Table

if TYPE_CHECKING:
    from hedge_tasks.data.local_data import BuiltSet
    from hedge_tasks.suites.shale.released import Released


def add(commands: Parser) -> None:
    parser = command(commands, "shale", _check, "check your download of SHALE, and build the data set from it")
    parser.add_argument(
        "--dir", type=Path, metavar="DIR", required=True, help="folder with Query/*.json (or query_json/) and Image/"
    )
    add_out(parser, "folder that HEDGE_DATA_DIR will name; without it there is only the check")


def _check(arguments: argparse.Namespace) -> int:
    from hedge_tasks.data.local_data import look_at_images
    from hedge_tasks.suites.shale.building import build, image_folder
    from hedge_tasks.suites.shale.released import counts, read_released

    released = read_released(arguments.dir)
    read_image = image_folder(arguments.dir)
    built = None if arguments.out is None else build(released.items, read_image, arguments.out)
    images = built or look_at_images(released.items, read_image)
    facts = {
        "items": counts(released.items),
        "missing_scenarios": list(released.missing),
        "other_files": list(released.other_files),
        "unpaired": {scenario: list(ids) for scenario, ids in released.unpaired.items()},
        "problems": list(released.problems),
        "missing_images": list(images.missing),
        "unreadable_images": list(images.unreadable),
        "unknown_aspects": _unknown_aspects(released),
        **_files(built),
    }
    lines = [_counts(facts["items"]), *_reports(facts)]
    if built is not None:
        lines.append(f"Now set HEDGE_DATA_DIR={arguments.out}")
    elif len(lines) == 1:
        lines.append("Complete: all items are paired and all images are there.")
    show(arguments, facts, "\n".join(lines))
    wrong = ("missing_scenarios", "unpaired", "problems", "missing_images", "unreadable_images")
    return PROBLEMS_FOUND if any(facts[key] for key in wrong) else 0


def _unknown_aspects(released: Released) -> list[str]:
    from hedge_tasks.suites.shale.items import ASPECTS

    return sorted({item.aspect for item in released.items} - set(ASPECTS))


def _reports(facts: dict[str, Any]) -> list[str]:
    """One line for everything that is not as it should be."""
    from hedge_tasks.data.local_data import listed

    names = {
        "missing_scenarios": "no query file for",
        "other_files": "files whose name is no scenario's",
        "problems": "left out",
        "missing_images": "images missing",
        "unreadable_images": "images unreadable",
        "unknown_aspects": "aspects that are in no row of the table",
    }
    lines = [f"{text}: {listed(facts[key])}" for key, text in names.items() if facts[key]]
    return lines + [f"{scenario}: no clean item for {listed(ids)}" for scenario, ids in facts["unpaired"].items()]


def _counts(items: dict[str, dict[str, int]]) -> str:
    from hedge_tasks.suites.shale.items import TASKS

    rows: list[list[Cell]] = [
        [scenario, *(by_task.get(task, 0) for task in TASKS)] for scenario, by_task in items.items()
    ]
    return str(Table.of(["scenario", *TASKS], rows))


def _files(built: BuiltSet | None) -> dict[str, Any]:
    if built is None:
        return {}
    return {"files": {task: str(file) for task, file in built.files.items()}, "rows": dict(built.rows)}
