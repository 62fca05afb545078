r"""Promises about hallucinations, and not about a judge: labels of experts, drawn by design, in place of the judge's.

The tests of `hedge_tasks.statistics.risk_control` hold for documents that are drawn alike. A plan draws more where a
label tells more, so labels are *thinned* to the stratum that got fewest for its size: every document of the run then
had the same probability. What is left is a sample in proportion to the strata, which is surer than one at random of the
same size. Labels that are left out still speak in the estimate of the risk beside the promise, which is asymptotic.
"""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hedge_tasks.judging.designed import MEANINGS, NO_ANSWER, ExpertAudit
from hedge_tasks.runs.run_files import Run


@dataclass(frozen=True)
class RunByExperts:
    """A run with labels of experts, of documents that were drawn alike.

    Attributes:
        run: all others have no label.
        labels: that experts gave.
        kept: that are left.
    """

    run: Run
    labels: int
    kept: int


def labelled_by_experts(run: Run, audit: ExpertAudit, seed: int = 0) -> RunByExperts:
    """Put labels of experts in place of a judge's.

    Experts who disagree count as hallucinated; an answer in which all find none has no label.

    Args:
        audit: of the run.
        seed: of the thinning.
    """
    ids = drawn_alike(audit, seed)
    sets = tuple(a.with_label(_label(audit.said[a.id]) if a.id in ids else None) for a in run.answer_sets)
    documents = {**(run.settings.get("documents") or {}), "judge": f"experts: {audit.by or 'who is not said'}"}
    return RunByExperts(
        replace(run, answer_sets=sets, settings={**run.settings, "documents": documents}), audit.n_labels, len(ids)
    )


def drawn_alike(audit: ExpertAudit, seed: int = 0) -> frozenset[str]:
    """Return labelled documents of which every document of the run had the same probability of being one.

    Images that were drawn whole are kept whole.
    """
    chance = random.Random(seed)
    units: dict[str, list[str]] = defaultdict(list)
    for id in sorted(audit.of):
        units[f"image {audit.units[id]}" if audit.units else id].append(id)
    labelled: dict[int, list[str]] = defaultdict(list)
    for unit, ids in units.items():
        if all(id in audit.said for id in ids):
            labelled[audit.of[ids[0]]].append(unit)
    sizes = Counter(audit.of[ids[0]] for ids in units.values())
    strata = sorted(sizes)
    if any(not labelled[h] for h in strata):
        return frozenset()
    share = min(_share(len(labelled[h]), sizes[h]) for h in strata)
    sampled: list[str] = []
    left = chance.random()  # systematic rounding: each stratum gets its whole number, on average its part
    for h in strata:
        left += share * sizes[h]
        take = math.floor(left)
        left -= take
        sampled += chance.sample(sorted(labelled[h]), min(take, len(labelled[h])))
    return frozenset(id for unit in sampled for id in units[unit])


def _share(labelled: int, size: int) -> float:
    """The largest share of a stratum whose size, rounded up, is labelled."""
    return 1.0 if labelled == size else (labelled - 1) / size if labelled > 1 else 1 / (2 * size)


def _label(ratings: Sequence[str]) -> int | None:
    if all(rating == NO_ANSWER for rating in ratings):
        return None
    return int(MEANINGS[0] in ratings)
