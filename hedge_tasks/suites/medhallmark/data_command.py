"""`hedge data medhallmark`: Med-HallMark out of its JSON files and your copies of the images."""

from __future__ import annotations

import argparse
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PIL import Image

from hedge_tasks.io.commands import PROBLEMS_FOUND, Parser, add_out, command, show
from hedge_tasks.numbers import Cell, Column, Number, Table

if TYPE_CHECKING:
    from hedge_tasks.data.local_data import BuiltSet

_PARTS = ("conventional", "confidence", "counterfactual", "irg")
_PACKAGE = "hedge_tasks.suites.medhallmark"


def add(commands: Parser) -> None:
    parser = command(
        commands, "medhallmark", _build, "build Med-HallMark from its JSON files and your copies of its images"
    )
    parser.add_argument(
        "--json-files",
        type=Path,
        metavar="DIR",
        required=True,
        help="folder with Conventional..json, Counterfactual..json, Confidence_weakening.json and Irg.json",
    )
    parser.add_argument("--images", type=Path, metavar="DIR", help="folder with the images, searched with its folders")
    add_out(parser, "folder that HEDGE_DATA_DIR will name")
    parser.add_argument("--part", action="append", choices=_PARTS, help="only this part (repeat for several)")
    parser.add_argument(
        "--judged",
        type=Path,
        metavar="FILE.jsonl",
        help="write the answers that people judged, for hedge judge --check FILE --scheme medhallmark",
    )
    parser.add_argument(
        "--check-judge",
        metavar="SPEC",
        help="ask a judge for the categories of the judged answers, such as llm:model=MODEL,prompt=medhallmark",
    )
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="how often it is asked anew (default: 3)")


def _build(arguments: argparse.Namespace) -> int:
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.suites.medhallmark.building import SOURCES, build
    from hedge_tasks.suites.medhallmark.released import oddities, read_part

    parts = arguments.part or list(_PARTS)
    facts: dict[str, Any] = {}
    lines: list[str] = []
    incomplete = False
    if arguments.out is None and arguments.judged is None and arguments.check_judge is None:
        raise ConfigError("nothing to do: give --out for a data set, --judged for the judged answers, or --check-judge")
    if arguments.out is not None and arguments.images is None:
        raise ConfigError("a data set needs --images, too")
    if arguments.judged is not None:
        facts["labels"] = _write_labels(arguments.json_files, arguments.judged, parts)
        lines.append(f"{facts['labels']} judged answers written to {arguments.judged}")
    if arguments.check_judge is not None:
        facts["judge"], text = _check_judge(arguments, parts)
        lines.append(text)
    if arguments.out is not None:
        built = build(arguments.json_files, arguments.images, arguments.out, parts)
        odd = {part: oddities(part, read_part(arguments.json_files, part)) for part in parts}
        facts["parts"] = [_facts(part, built[part], odd[part]) for part in parts]
        lines.append(_text(built, odd, SOURCES))
        lines.append(
            f"Now set HEDGE_DATA_DIR={arguments.out}"
            if any(p.files for p in built.values())
            else "Nothing was written."
        )
        incomplete = any(part.built < part.items for part in built.values())
    show(arguments, facts, "\n".join(lines))
    return PROBLEMS_FOUND if incomplete else 0


def _check_judge(arguments: argparse.Namespace, parts: list[str]) -> tuple[dict[str, Any], str]:
    from hedge_tasks.data.local_data import ImageFolder
    from hedge_tasks.judging import judge_from
    from hedge_tasks.llm.account import asked
    from hedge_tasks.measures.published import read_published
    from hedge_tasks.suites.medhallmark.judge_quality import judge_quality
    from hedge_tasks.suites.medhallmark.released import CATEGORIES, MedHallMarkItem, read_part

    pictures = ImageFolder(arguments.images) if arguments.images is not None else None

    def load(item: MedHallMarkItem) -> list[Any]:
        content = pictures.read(item.image) if pictures is not None else None
        return [] if content is None else [Image.open(io.BytesIO(content))]

    items = [item for part in parts for item in read_part(arguments.json_files, part)]
    judge = judge_from(arguments.check_judge)
    quality = judge_quality(items, judge, rounds=arguments.rounds, images=None if pictures is None else load)
    detector = {p.measure: p.value for p in read_published(_PACKAGE) if p.model == "MediHallDetector"}
    rows: list[dict[str, Cell]] = [
        {"by": a.name, "judged": a.judged, "accuracy": a.accuracy, **a.recall}
        for a in (*quality.rounds, *quality.baselines)
    ]
    of_paper = {category: detector[f"acc_{category}"] for category in CATEGORIES}
    rows.append({"by": "paper: MediHallDetector", "judged": 300, "accuracy": None, **of_paper})
    cost, cost_lines = asked(judge)
    table = Table(
        [Column("by", "recall by category"), *map(Column, ("judged", "accuracy", *CATEGORIES))],
        rows,
        title=f"{quality.rounds[0].n} answers with a human category and a reference",
        notes=[
            "the paper's row: column ACC of its Table 5, over 300 other answers, with reports and images",
            *cost_lines,
        ],
    )
    numbers = {"consistency": quality.consistency, "seconds": seconds_a_reply(cost)}
    rounds = f"the same category in all {len(quality.rounds)} rounds"
    of_figure: list[dict[str, Cell]] = [
        {
            "what": rounds,
            "value": numbers["consistency"],
            "paper": f"{_CONSISTENCY}, three rounds of MediHallDetector",
        },
        {"what": "seconds a reply", "value": numbers["seconds"], "paper": "MediHallDetector is the fastest"},
    ]
    columns = [Column("what", " "), Column("value", interval=True), Column("n", show="n", of="value"), Column("paper")]
    figure = Table(columns, of_figure, title="Figure 2(b)")
    facts = {**asdict(quality), **{name: number.to_dict() for name, number in numbers.items()}}
    return {**facts, "paper": detector, **cost}, f"{table}\n\n{figure}"


_CONSISTENCY = 0.9388
"""Share of the paper's section 6.3."""


def seconds_a_reply(cost: Mapping[str, Any]) -> Number:
    """Mean time of the replies that were had now; undefined where all were kept from before, or nothing was asked."""
    requests = cost.get("asked") or {}
    if not (n := requests.get("requests", 0)):
        return Number.undefined("no reply was had now", unit="reply")
    return Number(requests.get("seconds", 0.0) / n, n=n, unit="reply")


def _facts(part: str, built: BuiltSet, oddities: Sequence[str]) -> dict[str, Any]:
    file = next(iter(built.files.values()), None)
    return {"part": part, "file": str(file) if file else None, **built.facts(), "oddities": list(oddities)}


def _text(built: Mapping[str, BuiltSet], odd: Mapping[str, Sequence[str]], sources: Mapping[str, str]) -> str:
    header = ["part", "items", "built", "images missing", "unreadable"]
    rows: list[list[Cell]] = [[n, b.items, b.built, len(b.missing), len(b.unreadable)] for n, b in built.items()]
    lines = [str(Table.of(header, rows))]
    for name, part in built.items():
        lines += [f"{name}: {line}; from {sources[name]}" for line in part.faults()]
        lines += [f"{name}: {line}" for line in odd[name]]
    return "\n".join(lines)


def _write_labels(folder: Path, out: Path, parts: list[str]) -> int:
    from hedge_tasks.io.files import write_whole
    from hedge_tasks.suites.medhallmark.released import read_part

    items = [item for part in parts for item in read_part(folder, part) if item.category is not None]
    rows = [
        {
            "id": item.id,
            "image": item.image,
            "question": item.question,
            "reference": item.reference or None,
            "answer": item.answer,
            "label": item.category,
            "suspect": item.suspect,
        }
        for item in items
    ]
    write_whole(out, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return len(rows)
