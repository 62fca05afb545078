"""Sweeps: detectors at equal price."""

from __future__ import annotations

from dataclasses import replace

import pytest
from finished_runs import finished_run

from hedge_tasks.detectors.units import detection_auroc
from hedge_tasks.errors import ConfigError
from hedge_tasks.measures.priced_scores import truncated
from hedge_tasks.measures.sweep import sweep, sweep_draws, sweep_table
from hedge_tasks.runs.scorers import scorer_of

RUN = finished_run(60)
SCORER = scorer_of(RUN, None)


def test_a_sweep_over_draws_gives_everybody_what_it_can_pay() -> None:
    points = {(p.n, p.score): p for p in sweep_draws(RUN.answer_sets, SCORER, (0, 1, 4, 5, 12), ("se", "vase", "msp"))}
    assert {key: p.draws for key, p in points.items()} == {
        (0, "msp"): 0,
        **{(n, "msp"): 0 for n in (1, 4, 5, 12)},
        **{(n, "se"): min(n, 6) for n in (1, 4, 5, 12)},
        **{(n, "vase"): 2 * (n // 2) for n in (4, 5, 12)},
    }
    by_hand = SCORER.score([replace(truncated(a, 2), cluster_ids=None) for a in RUN.answer_sets])
    assert points[4, "vase"].estimate == detection_auroc(by_hand, "vase")
    by_hand = SCORER.score([replace(a, clean=a.clean[:4], noisy=(), cluster_ids=None) for a in RUN.answer_sets])
    assert points[4, "se"].estimate == detection_auroc(by_hand, "se")
    table = sweep_table(list(points.values()), "draws")
    assert [{column.source for column in table.columns} - row.keys() for row in table.rows] == [set()] * len(points)
    whole = SCORER.score(RUN.answer_sets)
    known, anew = (list(sweep(RUN.answer_sets, SCORER, (3, 6), ("se",), whole=scores)) for scores in (whole, None))
    assert known == anew
    assert [next(iter(sweep(RUN.answer_sets, SCORER, (n,), ("se",)))).n for n in (1, 6)] == [1, 6]
    for n in (0, 7):
        with pytest.raises(ConfigError, match="there are 1 to 6"):
            list(sweep(RUN.answer_sets, SCORER, (n,), ("se",)))
