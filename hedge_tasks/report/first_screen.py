"""The answers on the first screen of a run's section: a wrong one with its clusters, and the worst ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from hedge_tasks.measures.headline import Headline
from hedge_tasks.report.texts import clean

WORST = 3
"""Wrong answers that the detector is surest about."""

_MOST_CLUSTERS = 4
_LONGEST = 160


def wrong_answers(data: Mapping[str, Any], finding: Headline) -> dict[str, Any] | None:
    """Return the wrong answer that the finding's detector points at most, and the wrong ones that it misses most.

    Args:
        data: questions of the run, as `explorer_data` gives them.
        finding: of the run.

    Returns:
        `example`, `worst` (a list), `detector` and `missed` for the template; None where no answer is wrong.
    """
    # The length of an answer is no score that the page has.
    lead = next((x for x in (finding.lead, finding.sampling) if x and x.detector in data["scores"]), None)
    clustering, detector = (lead.clustering or data["leading"], lead.detector) if lead else ("", "")
    questions = enumerate(data["questions"])
    wrong = [(q["scores"].get(clustering, {}).get(detector), i, q) for i, q in questions if q["label"]]
    if not wrong:
        return None
    ranked = sorted(wrong, key=lambda entry: (entry[0] is None, entry[0] or 0.0, entry[1]))
    scored = [entry for entry in ranked if entry[0] is not None]
    pictured = [entry for entry in scored if entry[2].get("images")]
    value, _, example = (pictured or scored or ranked)[-1]
    return {
        "detector": lead.name if lead else "",
        "example": {**_question_entry(example, data), "value": value, "clusters": _clusters(example, clustering)},
        "worst": [{**_question_entry(q, data), "value": v} for v, _, q in ranked[:WORST]],
    }


def _question_entry(question: Mapping[str, Any], data: Mapping[str, Any]) -> dict[str, Any]:
    images = question.get("images") or []
    return {
        "id": question["id"],
        "question": clean(question.get("question") or question["id"], _LONGEST),
        "answer": clean(question["texts"][question["answers"][0]], _LONGEST),
        "reference": clean(question.get("reference") or "", _LONGEST),
        "picture": data["images"][images[0]] if images else "",
    }


def _clusters(question: Mapping[str, Any], clustering: str) -> list[dict[str, Any]]:
    """Return the clusters of the clean samples, the largest first: text of one, size, whether the answer is in it."""
    ids = question["clusters"].get(clustering)
    n = question["n_clean"]
    if not ids or not n:
        return []
    texts: dict[int, str] = {}
    for id, place in zip(ids[1 : n + 1], question["answers"][1 : n + 1], strict=True):
        texts.setdefault(id, question["texts"][place])
    counts = Counter(ids[1 : n + 1]).most_common()
    rows = [
        {"text": clean(texts[id], 80), "size": size, "share": round(100 * size / n, 1), "own": id == ids[0]}
        for id, size in counts[:_MOST_CLUSTERS]
    ]
    n_others = sum(size for _, size in counts[_MOST_CLUSTERS:])
    others = {
        "text": f"{len(counts) - _MOST_CLUSTERS} more",
        "size": n_others,
        "share": round(100 * n_others / n, 1),
        "own": False,
    }
    return [*rows, others] if n_others else rows
