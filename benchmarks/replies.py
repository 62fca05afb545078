"""How often each reader of replies is right, on a corpus of replies with known meaning.

    python benchmarks/replies.py [--show]

Ours, the papers' published code and lmms-eval's parser of MMMU, on the part of the corpus that ours was made with and
on the part that was held out. Right: the reader's value is the reply's meaning, or both are none. Misread: it gives a
value that the reply does not mean. `--show` lists what our reader gets wrong, of the first part only.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from reply_corpus import OFFICIAL, Row, corpus, ours, reading

from hedge_tasks.evaluations.shale.items import options_of

Reader = Callable[[Row], "str | None"]

KINDS = ("yes_no", "verdict", "options", "category", "free")
TITLES = {
    "yes_no": "yes or no",
    "verdict": "digit 0, 1 (2)",
    "options": "options",
    "category": "judges",
    "free": "free answers",
}


def mmmu(row: Row) -> str | None:
    """lmms-eval's parser of multiple-choice replies; where it finds nothing it draws a letter."""
    from lmms_eval.tasks.mmmu.utils import parse_multi_choice_response

    options = options_of(row["asked"])
    random.seed(0)
    return str(parse_multi_choice_response(row["reply"], list(options), options))


def readers(kind: str) -> dict[str, Reader]:
    found: dict[str, Reader] = {"ours": ours}
    for name, reader in OFFICIAL.get(kind, {}).items():
        found[name] = lambda row, reader=reader: reader(row["reply"])  # type: ignore[misc]
    if kind == "options":
        found["lmms-eval's MMMU parser"] = mmmu
    return found


def cell(rows: Sequence[Row], reader: Reader) -> str:
    said = [(reader(row), row["meaning"]) for row in rows]
    right = sum(one == other for one, other in said)
    misread = sum(one is not None and one != other for one, other in said)
    return f"{right / len(rows):.1%} ({right}/{len(rows)}) | {misread / len(rows):.1%} ({misread})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="list what ours gets wrong in the first part")
    show = parser.parse_args().show
    rows = corpus()
    parts = [[row for row in rows if row["held_out"] == side] for side in (False, True)]
    print("| replies | reader | right | misread | held out: right | misread |")
    print("|---|---|---|---|---|---|")
    for kind in KINDS:
        for name, reader in readers(kind).items():
            cells = " | ".join(cell([row for row in part if row["kind"] == kind], reader) for part in parts)
            print(f"| {TITLES[kind]} | {name} | {cells} |")
    print(f"| all | ours | {' | '.join(cell(part, ours) for part in parts)} |")
    for row in parts[0] if show else ():
        if ours(row) != row["meaning"]:
            print(f"{row['id']}: {row['reply'][:120]!r} means {row['meaning']}, read: {reading(row)}")


if __name__ == "__main__":
    main()
