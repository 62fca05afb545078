"""The panel of risk and coverage: its thresholds are the best ones there are, and it promises nothing."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import pytest
from finished_runs import finished_run
from hypothesis import given
from hypothesis import strategies as st

from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.report import ReportOptions, build_report
from hedge_tasks.report.analysis import analyse
from hedge_tasks.report.risk import RISKS, ThresholdRule, best_thresholds, risk_panel, rules_of
from hedge_tasks.report.texts import script_json

QUICK = ReportOptions(pictures=False, curves=False)


def most_accepted(pairs: list[tuple[int, int]], risk: float) -> int:
    """By trying every threshold."""
    found = 0
    for threshold, _ in pairs:
        taken = [label for score, label in pairs if score <= threshold]
        if sum(taken) <= risk * len(taken) + 1e-9:
            found = max(found, len(taken))
    return found


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 1)), min_size=1, max_size=40), st.integers(0, 1000))
def test_no_threshold_accepts_more_at_that_risk(pairs: list[tuple[int, int]], thousandths: int) -> None:
    risk = thousandths / 1000
    scores, labels = zip(*pairs, strict=True)
    rule = ThresholdRule(
        "c", "d", "D", len(pairs), sum(labels), sum(labels) / max(len(labels), 1), best_thresholds(scores, labels)
    )
    point = rule.at(risk)
    assert (point.n if point else 0) == most_accepted(pairs, risk)
    if point:
        taken = [label for score, label in pairs if score <= point.threshold]
        assert (point.n, point.n_wrong) == (len(taken), sum(taken))


def test_points_are_few_and_end_at_everything() -> None:
    assert best_thresholds([], []) == ()
    n = 20_000
    points = best_thresholds(range(n), [i % 7 == 0 and i > 40 for i in range(n)])
    assert len(points) <= 1001
    assert [p.n for p in points] == sorted({p.n for p in points})
    everything = best_thresholds([1, 2, 2, 3], [0, 0, 1, 1])[-1]
    assert (everything.threshold, everything.n, everything.n_wrong) == (3, 4, 2)


def test_documents_that_a_threshold_was_tuned_on_and_those_without_label_do_not_count() -> None:
    run = finished_run(60)
    sets = tuple(a.with_label(None) if i < 10 else a for i, a in enumerate(run.answer_sets))
    [analysis] = analyse([replace(run, answer_sets=sets)], curves=False)
    [first, *_] = rules_of(analysis)
    assert (first.n, first.n_wrong) == (50, sum(a.label or 0 for a in sets))
    held = [replace(s, held_out=i < 30) for i, s in enumerate(analysis.scores["exact"])]
    [first, *_] = rules_of(replace(analysis, scores={"exact": held}))
    assert first.n == 30


def test_an_infinite_score_is_a_threshold_like_any_other() -> None:
    [analysis] = analyse([finished_run(40)], curves=False)
    scores = [
        replace(s, numbers={**s.numbers, "se": math.inf if i < 20 else s["se"]})
        for i, s in enumerate(analysis.scores["exact"])
    ]
    panel = risk_panel(replace(analysis, scores={"exact": scores}))
    assert panel is not None
    [rule] = [json.loads(script_json(rule)) for rule in panel["rules"] if rule["detector"] == "se"]
    assert rule["points"][-1][0] == "inf"
    assert rule["points"][-1][1] == 40


def test_there_is_no_panel_without_two_kinds_of_labels() -> None:
    run = finished_run(30)
    [analysis] = analyse([replace(run, answer_sets=tuple(a.with_label(0) for a in run.answer_sets))], curves=False)
    assert risk_panel(analysis) is None
    assert 'class="risk"' not in build_report([analysis.run], options=QUICK)


@pytest.mark.slow
def test_the_table_is_there_without_script_and_the_page_promises_nothing() -> None:
    run = finished_run(80)
    page = build_report([run], options=QUICK)
    panel = page.split('<div class="risk"')[1].split("</table>")[0]
    assert "This is no promise." in panel
    assert "hedge calibrate RUN --risk 0.1 --detectors se --clustering exact --out policy.json" in panel
    [analysis] = analyse([run], curves=False)
    rows = re.findall(r"<tr><td>(.*?)</td>(.*?)</tr>", panel)
    for rule, (name, cells) in zip(rules_of(analysis), rows, strict=True):
        assert name == f"{rule.name} (exact)"
        for risk, cell in zip(RISKS, re.findall(r"<td.*?</td>", cells), strict=True):
            point = rule.at(risk)
            assert (f"{100 * point.n / rule.n:.1f} %" if point else ">none<") in cell


def test_a_declined_answer_is_kept_at_no_threshold() -> None:
    from hedge_tasks.measures.curves import labelled, risk_coverage
    from hedge_tasks.report.plots import risk_coverage_chart

    scores = [Scores(str(i), i % 2, None, None, {"se": i / 4}, "uniform", ()) for i in range(4)]
    data = labelled(scores, "se")
    whole, with_declined = risk_coverage(data), risk_coverage(data, 4)
    assert with_declined.x.tolist() == [x / 2 for x in whole.x.tolist()]
    assert with_declined.y.tolist() == whole.y.tolist()
    [series] = risk_coverage_chart(scores, ["se"], declined=4).series
    assert max(series.x) == 0.5
