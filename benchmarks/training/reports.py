"""Reports of three to five sentences on phantom scans, in which every sentence is true.

What a sentence says, and what follows from it, is `hedge_tasks.suites.demo_reports.statements`; here is what is
written of a scan.
"""

import numpy as np

from hedge_tasks.suites.demo_reports.statements import COUNTS, QUADRANTS, SENTENCES, Statement, World, worded
from training import phantom

REQUESTS = ("Describe the scan.", "What does the scan show?")
"""Wordings of what is asked for; the first is that of the task."""

_LENGTHS = (3, 4, 5)
_LENGTH_PROBABILITIES = (0.2, 0.3, 0.5)


def world_of(scan: phantom.Scan) -> World:
    """Return the truth about a scan."""
    if not scan.quadrants:
        return World(scan.modality, frozenset())
    tone = "bright" if scan.brighter else "dark"
    return World(scan.modality, frozenset(scan.quadrants), scan.shape, scan.size, tone)


def draw_report(world: World, rng: np.random.Generator, *, in_order: bool = False) -> list[str]:
    """Three to five true sentences, no two with the same statement.

    Args:
        in_order: of their topics, as a radiologist's template has it; else in random order.
    """
    all_statements = statements(world, rng)
    n = int(rng.choice(_LENGTHS, p=_LENGTH_PROBABILITIES))
    places = rng.permutation(len(all_statements))[:n]
    chosen = [all_statements[i] for i in (sorted(places) if in_order else places)]
    n_lesions = len(world.quadrants)
    return [worded(statement, n_lesions, int(rng.integers(len(SENTENCES[statement])))) for statement in chosen]


def statements(world: World, rng: np.random.Generator) -> list[Statement]:
    """Return a report of a world: one statement of every topic, of places one with and one without a lesion."""
    full = [quadrant for quadrant in QUADRANTS if quadrant in world.quadrants]
    empty = [quadrant for quadrant in QUADRANTS if quadrant not in world.quadrants]
    chosen = [Statement("modality", world.modality), Statement("count", COUNTS[len(full)])]
    if not full:
        return chosen + [Statement("clear", empty[i]) for i in rng.permutation(len(empty))[:3]]
    chosen.append(Statement("place", full[rng.integers(len(full))]))
    if empty:
        chosen.append(Statement("clear", empty[rng.integers(len(empty))]))
    return chosen + [Statement(topic, getattr(world, topic)) for topic in ("shape", "size", "tone")]
