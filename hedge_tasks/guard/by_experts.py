r"""Promises about hallucinations, and not about a judge: labels of experts, drawn by design, in place of the judge's.

The tests of `hedge_tasks.statistics.risk_control` hold for documents that are drawn alike. A plan draws in proportion
to its strata, up to whole numbers and labels that people left out, so labels are *thinned* to the stratum that got
fewest for its size: every document of the run then had the same probability.
"""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from dataclasses import replace

from hedge_tasks.judging.base import NO_ANSWER
from hedge_tasks.judging.designed import LABELS, ExpertAudit
from hedge_tasks.runs.run_files import Run


def labelled_by_experts(run: Run, audit: ExpertAudit, seed: int = 0) -> Run:
    """A random sample of a run with labels of experts in place of a judge's: of documents that were drawn alike.

    An answer in which experts find none has no label.

    Args:
        audit: of the run.
        seed: of the thinning.
    """
    ids = drawn_alike(audit, seed)
    labels = {id: LABELS.get(audit.verdicts[id]) for id in ids}
    sets = tuple(a.with_label(labels[a.id]) for a in run.answer_sets if a.id in ids)
    who = f"experts: {audit.by or 'who is not said'}"
    verdicts = {
        id: {"judge": who, "label": label, "category": None if label is not None else NO_ANSWER}
        for id, label in labels.items()
    }
    return replace(run, answer_sets=sets, verdicts=verdicts, settings={**run.settings, "failed": ()})


def drawn_alike(audit: ExpertAudit, seed: int = 0) -> frozenset[str]:
    """Return labelled documents of which every document of the run had the same probability of being one."""
    chance = random.Random(seed)
    labelled: dict[int, list[str]] = defaultdict(list)
    for id in sorted(audit.verdicts):
        labelled[audit.of[id]].append(id)
    sizes = Counter(audit.of.values())
    strata = sorted(sizes)
    # The largest share of a stratum whose size, rounded up, is labelled.
    share = min(1.0 if len(labelled[h]) == sizes[h] else max(len(labelled[h]) - 1, 0) / sizes[h] for h in strata)
    sampled: list[str] = []
    left = chance.random()  # systematic rounding: each stratum gets its whole number, on average its part
    for h in strata:
        left += share * sizes[h]
        take = math.floor(left)
        left -= take
        sampled += chance.sample(labelled[h], min(take, len(labelled[h])))
    return frozenset(sampled)
