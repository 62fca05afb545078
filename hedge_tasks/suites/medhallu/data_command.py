"""`hedge data medhallu`: MeSH groups of its questions, out of your own copies of NLM's trees and PubMedQA's terms."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

from hedge_tasks.io.commands import Parser, add_out, command, show
from hedge_tasks.numbers import Table


def add(commands: Parser) -> None:
    parser = command(commands, "medhallu", _make, "make the MeSH groups of MedHallu's questions")
    parser.add_argument("--trees", type=Path, metavar="mtrees2025.bin", required=True, help="NLM's tree numbers")
    text = "parquet files of qiaojin/PubMedQA"
    parser.add_argument("--pubmedqa", type=Path, nargs="+", metavar="FILE", required=True, help=text)
    text = "letters of the trees that count (default: all sixteen)"
    parser.add_argument("--among", default="", metavar="CDEFN", help=text)
    add_out(parser, "file of the groups (.json)", required=True)


def _make(arguments: argparse.Namespace) -> int:
    from hedge_tasks.io.files import write_whole
    from hedge_tasks.suites.medhallu.mesh import PAPER_SHARES, TREES, group_questions, read_terms, read_trees

    terms = {question: names for file in arguments.pubmedqa for question, names in read_terms(file).items()}
    groups = group_questions(terms, read_trees(arguments.trees), arguments.among.upper() or "".join(TREES))
    write_whole(arguments.out, json.dumps(groups, ensure_ascii=False, indent=0, sort_keys=True) + "\n")
    shares = {letter: count / len(groups) for letter, count in Counter(groups.values()).most_common()}
    rows = [[f"{letter} {TREES[letter]}", share, PAPER_SHARES.get(letter)] for letter, share in shares.items()]
    title = f"{len(groups)} of {len(terms)} questions have a group"
    table = Table.of(["group", "share", "paper"], rows, title=title)
    facts = {"groups": len(groups), "questions": len(terms), "shares": shares}
    show(arguments, facts, table, f"Now set dataset_kwargs: {{mesh: {arguments.out}}} in a task that includes ours")
    return 0
