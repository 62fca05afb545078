"""Sweeps: detectors at equal price, and nothing scored twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from finished_runs import finished_run

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.detectors.scorer import Scorer
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
    assert [next(iter(sweep(RUN.answer_sets, SCORER, (n,), ("se",)))).n for n in (1, 6)] == [1, 6]
    for n in (0, 7):
        with pytest.raises(ConfigError, match="there are 1 to 6"):
            list(sweep(RUN.answer_sets, SCORER, (n,), ("se",)))


def test_a_sweep_takes_the_scores_of_all_answers_where_they_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = SCORER.score(RUN.answer_sets)
    expected = list(sweep(RUN.answer_sets, SCORER, (3, 6), ("se",)))
    sizes: list[int] = []
    score = type(SCORER).score

    def counted(self: Scorer, sets: Sequence[AnswerSet]) -> list[Scores]:
        sizes.append(len(sets[0].clean))
        return score(self, sets)

    monkeypatch.setattr(type(SCORER), "score", counted)
    assert list(sweep(RUN.answer_sets, SCORER, (3, 6), ("se",), whole=whole)) == expected
    assert sizes == [3]
