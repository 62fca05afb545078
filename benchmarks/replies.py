"""How often each reader of replies is right, on a corpus of replies with known meaning.

    python benchmarks/replies.py [FILE.jsonl ...] [--show]

Without a file: ours, the papers' published code and lmms-eval's parser of MMMU, on the part of the corpus that ours was
made with and on the part that was held out. Right: the reader's value is the reply's meaning, or both are none.
Misread: it gives a value that the reply does not mean. `--show` lists what our reader gets wrong, of the first part
only.

With files: our reader alone on the replies in them, right, wrong and unread by kind and by basis, with exact 95 %
limits (Clopper and Pearson). A line is a JSON object:

    {"kind": "yes_no" | "verdict" | "options" | "category" | "free", "reply": "...", "truth": "..." or null,
     "question": "...", "options": {"A": "..."}, "offered": "012", "prompt": "hedge", "outcomes": ["..."], "cut": false,
     "group": "..."}

`truth` is what the reply means, null where it means nothing that counts: "yes" or "no", a digit, a letter, an outcome
of the judge prompt, the answer in words. `question` is for yes_no, `options` (or a question that has them) for options,
`offered` for verdict, `prompt` for category, or `outcomes`: where a reply means an outcome that its prompt does not
know, those that any reply with this prompt means are the outcomes. `group`, where there is one, such as a language or a
model family, makes
rows of its own.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from scipy.stats import binomtest

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from reply_corpus import OFFICIAL, Row, corpus, ours, reading

from hedge_tasks.judging.prompt import load_judge_prompt
from hedge_tasks.replies.reading import Reading
from hedge_tasks.suites.shale.items import options_of

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


def lines_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines() if line.strip()]


def row_of(line: dict[str, Any]) -> dict[str, Any]:
    """A line of a file as a row of the corpus."""
    row = {"offered": "012", "prompt": "hedge", **line, "asked": line.get("question") or line.get("asked") or ""}
    if line["kind"] == "options" and isinstance(line.get("options"), dict):
        row["asked"] += "".join(f"\n({letter}) {text}" for letter, text in line["options"].items())
    return row | {"meaning": line["truth"] if "truth" in line else line["meaning"]}


def with_outcomes(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of judges with the outcomes that were offered, where these are not those of the prompt that they name."""
    meant: dict[str, set[str]] = {}
    for row in rows:
        if row["kind"] == "category" and row["meaning"] is not None:
            meant.setdefault(row["prompt"], set()).add(row["meaning"])
    other = {name for name, found in meant.items() if found - {one.key for one in load_judge_prompt(name).outcomes}}
    offered = {name: sorted(meant[name]) for name in other}
    own = [row["kind"] == "category" and row["prompt"] in offered for row in rows]
    return [{"outcomes": offered[row["prompt"]], **row} if mine else row for row, mine in zip(rows, own, strict=True)]


def by_kind_and_basis(rows: Sequence[Row], *, show: bool) -> None:
    """Right, wrong, unread: a soft reading is unread until somebody confirms it, and has rows of its own."""
    judged = [(row, reading(row)) for row in rows]
    keys: dict[str, Callable[[Row, Reading], str]] = {
        "kind": lambda row, _: TITLES[row["kind"]],
        "basis": basis,
        "firmness": lambda _, read: "soft" if read.soft else "firm" if read.readable else "(nothing read)",
        "group": lambda row, _: str(row.get("group", "")),
    }
    for title, key in keys.items():
        parts: dict[str, list[tuple[Row, Reading]]] = {"all": judged} if title == "kind" else {}
        for row, read in judged:
            parts.setdefault(key(row, read), []).append((row, read))
        if title != "group" or len(parts) > 1:
            print_parts(title, parts)
    for row, read in judged if show else ():
        if read.value != row["meaning"]:
            what = "unread" if read.value is None else "WRONG"
            print(f"{what} {row['kind']} {row['reply'][:160]!r} means {row['meaning']}, read: {read}")


def print_parts(title: str, parts: Mapping[str, list[tuple[Row, Reading]]]) -> None:
    print(f"\n| {title} | n | right | wrong, 95 % limits | unread though it answers | read of what answers |")
    print("|---|--:|--:|---|--:|--:|")
    for name, part in sorted(parts.items(), key=lambda item: (item[0] != "all", -len(item[1]))):
        right = sum(read.value == row["meaning"] for row, read in part)
        wrong = sum(read.value not in (None, row["meaning"]) for row, read in part)
        says = [read for row, read in part if row["meaning"] is not None]
        unread = sum(read.value is None for read in says)
        share = f"{1 - unread / len(says):.1%}" if says else "-"
        print(f"| {name} | {len(part)} | {right} | {wrong} {limits(wrong, len(part))} | {unread} | {share} |")


def basis(row: Row, read: Reading) -> str:
    if not read.readable:
        return "(nothing read)"
    return "judge" if row["kind"] == "category" else read.basis


def limits(k: int, n: int) -> str:
    """A share with its exact 95 % limits."""
    low, high = binomtest(k, n).proportion_ci(method="exact")
    return f"({k / n:.1%} [{low:.1%}, {high:.1%}])"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, help="replies with their meaning, in JSON lines")
    parser.add_argument("--show", action="store_true", help="list what ours gets wrong")
    arguments = parser.parse_args()
    show = arguments.show
    if arguments.files:
        by_kind_and_basis(
            with_outcomes([row_of(line) for file in arguments.files for line in lines_of(file)]), show=show
        )
        return
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
