"""All detectors on one run: which there are, what they cost, how they compare, and at one price."""

from __future__ import annotations

from dataclasses import replace

import pytest
from finished_runs import finished_run

from hedge_tasks.detectors.pipeline import score_clustered
from hedge_tasks.detectors.registry import names
from hedge_tasks.detectors.scorer import score_all
from hedge_tasks.detectors.units import detection_auroc
from hedge_tasks.errors import ConfigError
from hedge_tasks.measures.detector_table import detector_table
from hedge_tasks.runs.scorers import scorer_of

RUN = finished_run(60)
SCORER = scorer_of(RUN, None)


def test_a_mapping_of_what_was_asked_with_the_reason_where_there_is_no_number() -> None:
    [answers] = SCORER.cluster(RUN.answer_sets[:1])
    scores = score_clustered(replace(answers, noisy=(), cluster_ids=answers.cluster_ids[:7]), detectors=("vase", "se"))
    assert list(scores) == ["vase", "se"]
    assert scores["vase"] is None
    assert scores.left_out == {"vase": "there are no answers sampled on perturbed images"}
    with pytest.raises(KeyError):
        scores["radflag"]
    with pytest.raises(ConfigError, match="did you mean 'radflag'"):
        score_clustered(answers, detectors=("radflg",))


def test_alpha_reaches_every_detector_that_has_it_and_no_other() -> None:
    clustered = SCORER.cluster(RUN.answer_sets)
    ones, threes = (score_all(clustered, None, names(), alpha=alpha) for alpha in (1.0, 3.0))
    changed = {name for one, three in zip(ones, threes, strict=True) for name in one if one[name] != three[name]}
    assert changed == {"vase", "vase_linear"}


def test_at_one_price_everybody_gets_what_it_can_pay() -> None:
    table = detector_table(RUN, SCORER, ("se", "vase", "msp", "radflag_noisy", "lexical"), budget=5, blind=False)
    rows = {row.detector: row for row in table.rows}
    assert {name: row.draws for name, row in rows.items()} == {
        "se": 5,
        "vase": 4,
        "msp": 0,
        "radflag_noisy": 5,
        "lexical": 5,
    }

    def of(clean: int, noisy: int, name: str) -> float | None:
        cut = [replace(a, clean=a.clean[:clean], noisy=a.noisy[:noisy]) for a in RUN.answer_sets]
        return detection_auroc(replace(SCORER, detectors=(name,)).score(cut), name).value

    assert rows["se"].estimate.value == of(5, 0, "se")
    assert rows["vase"].estimate.value == of(2, 2, "vase")
    assert rows["radflag_noisy"].estimate.value == of(0, 5, "radflag_noisy")
    poor = detector_table(RUN, SCORER, ("se", "vase", "msp"), budget=1)
    assert [row.detector for row in poor.rows if row.detector == "vase"] == []
    assert poor.left_out["vase"] == "costs more than 1 draws"
    with pytest.raises(ConfigError, match="--draws"):
        detector_table(RUN, SCORER, ("se",), budget=-1)
