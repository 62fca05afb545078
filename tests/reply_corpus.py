"""The corpus of replies with their meaning: `tests/replies/corpus.jsonl`, and every reader on it.

A row has `kind` (how it is asked), `asked` (the question), what the kind needs besides (`offered` digits, `prompt` of a
judge), `reply`, `cut` where it was too long, and `meaning`: the answer, or null where the reply says none.

The rules by which meanings were given: a refusal, a doubt, an unfinished thought and a reply that ends before its
answer mean nothing; a reply that names something else than what was asked about means nothing; one that takes an answer
back means the last one; hedged answers ("probably yes") are answers.
Batch 1 was written before the reader, batch 2 after it, by the same author.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hedge_tasks.judging.prompt import load_judge_prompt
from hedge_tasks.replies import official, read_free, read_option, read_verdict, read_yes_no
from hedge_tasks.replies.reading import Reading
from hedge_tasks.suites.shale.items import options_of

Row = Mapping[str, Any]

CORPUS = Path(__file__).parent / "replies" / "corpus.jsonl"


def corpus() -> list[Row]:
    return [json.loads(line) for line in CORPUS.read_text("utf-8").splitlines()]


def ours(row: Row) -> str | None:
    return reading(row).value


def reading(row: Row) -> Reading:
    """Our reading of a row."""
    reply, cut = row["reply"], row.get("cut", False)
    if row["kind"] == "yes_no":
        return read_yes_no(reply, row["asked"], cut=cut)
    if row["kind"] == "verdict":
        return read_verdict(reply, offered=row["offered"], cut=cut)
    if row["kind"] == "options":
        return read_option(reply, options_of(row["asked"]), cut=cut)
    if row["kind"] == "category":
        outcome, reason = load_judge_prompt(row["prompt"]).outcome_in(reply)
        return Reading(None if outcome is None else outcome.key, reason)
    return read_free(reply, cut=cut)


OFFICIAL: Mapping[str, Mapping[str, Callable[[str], str | None]]] = {
    "yes_no": {"SHALE's evaluate.py": official.shale_yes_no, "VOPE's evaluation.py": official.vope},
    "verdict": {"MedHallu's Detection": official.medhallu},
    "options": {"SHALE's evaluate.py": official.shale_choice},
}
"""The papers' readers by the kind of reply that they are for."""


def vope_rechecked(reply: str) -> str | None:
    """The rule of VOPE's reference code once more, in other words."""
    text = reply
    for old, new in (("n't", " not"), ("cannot", "can not"), (",", "")):
        text = new.join(text.split(old))
    counts = Counter(text.split(" "))
    if counts["sound"]:
        return None
    return "no" if counts["No"] + counts["not"] + counts["no"] else "yes"
