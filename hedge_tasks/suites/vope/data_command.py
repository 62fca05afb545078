"""`hedge data vope`: VOPE's 5000 images out of its JSON file and your copies of the COCO images."""

from __future__ import annotations

import argparse
from pathlib import Path

from hedge_tasks.io.commands import PROBLEMS_FOUND, Parser, add_out, command, show


def add(commands: Parser) -> None:
    parser = command(commands, "vope", _build, "build VOPE from its JSON file and your copies of COCO's images")
    parser.add_argument(
        "--items", type=Path, metavar="FILE", required=True, help="coco_captioning.json (all three have the same items)"
    )
    parser.add_argument(
        "--images", type=Path, metavar="DIR", required=True, help="folder with val2014, searched with its folders"
    )
    add_out(parser, "folder that HEDGE_DATA_DIR will name", required=True)


def _build(arguments: argparse.Namespace) -> int:
    from hedge_tasks.suites.vope.building import build, image_reader, read_items

    built = build(read_items(arguments.items), image_reader(arguments.images), arguments.out)
    file = built.files.get("test")
    facts = {"file": str(file) if file else None, **built.facts()}
    lines = [f"{built.built} of {built.items} items have an image", *built.faults()]
    lines.append(f"Now set HEDGE_DATA_DIR={arguments.out}" if file else "Nothing was written.")
    show(arguments, facts, "\n".join(lines))
    return PROBLEMS_FOUND if built.built < built.items else 0
