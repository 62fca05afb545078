"""`hedge data vope`: VOPE's 5000 images out of its JSON file and your copies of the COCO images."""

from __future__ import annotations

import argparse
from pathlib import Path

from hedge_tasks.io.commands import PROBLEMS_FOUND, Parser, add_out, command, show

_LISTED = 5


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
    from hedge_tasks.evaluations.vope.building import build, image_reader, read_items

    built = build(read_items(arguments.items), image_reader(arguments.images), arguments.out)
    facts = {
        "file": str(built.file) if built.file else None,
        "items": built.items,
        "built": built.built,
        "missing_images": list(built.missing),
        "unreadable_images": list(built.unreadable),
    }
    lines = [f"{built.built} of {built.items} items have an image"]
    for kind, names in (("missing", built.missing), ("unreadable", built.unreadable)):
        if names:
            more = f" and {len(names) - _LISTED} more (--json lists all)" if len(names) > _LISTED else ""
            lines.append(f"{kind}: {', '.join(names[:_LISTED])}{more}")
    lines.append(f"Now set HEDGE_DATA_DIR={arguments.out}" if built.file else "Nothing was written.")
    show(arguments, facts, "\n".join(lines))
    return PROBLEMS_FOUND if built.built < built.items else 0
