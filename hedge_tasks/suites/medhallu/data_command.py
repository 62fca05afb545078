"""`hedge data medhallu`: MeSH groups of its questions, out of your own copies of NLM's trees and PubMedQA's terms."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any


def medhallu(pubmedqa: list[Path], *, trees: Path, out: Path, among: str = "") -> dict[str, Any]:
    """Make the MeSH groups of MedHallu's questions.

    Args:
        pubmedqa: Parquet files of qiaojin/PubMedQA.
        trees: NLM's tree numbers, such as mtrees2025.bin.
        out: File of the groups (.json).
        among: Letters of the trees that count, such as CDEFN; all sixteen if not given.
    """
    from hedge_tasks.io.files import write_whole
    from hedge_tasks.numbers import Table
    from hedge_tasks.suites.medhallu.mesh import PAPER_SHARES, TREES, group_questions, read_terms, read_trees

    terms = {question: names for file in pubmedqa for question, names in read_terms(file).items()}
    groups = group_questions(terms, read_trees(trees), among.upper() or "".join(TREES))
    write_whole(out, json.dumps(groups, ensure_ascii=False, indent=0, sort_keys=True) + "\n")
    shares = {letter: count / len(groups) for letter, count in Counter(groups.values()).most_common()}
    rows = [[f"{letter} {TREES[letter]}", share, PAPER_SHARES.get(letter)] for letter, share in shares.items()]
    notes = [f"Now set dataset_kwargs: {{mesh: {out}}} in a task that includes ours"]
    table = Table.of(["group", "share", "paper"], rows)
    return {"groups": len(groups), "questions": len(terms), "shares": table, "notes": notes}
