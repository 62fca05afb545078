"""`hedge audit`: the plan and its page, the tables that come back, and the numbers against experts."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from finished_runs import finished_run
from printed import json_of
from scipy.stats import norm

from hedge_tasks.cli import main
from hedge_tasks.errors import DataError
from hedge_tasks.judging.designed import (
    CANNOT_TELL,
    MEANINGS,
    AuditPlan,
    ExpertAudit,
    ExpertSaid,
    plan_at_random,
    put_together,
    read_plan,
)
from hedge_tasks.judging.strata import strata_of
from hedge_tasks.measures.audit_plan import make_plan, write_plan
from hedge_tasks.measures.audited import audited_differences, audited_numbers
from hedge_tasks.numbers import Number
from hedge_tasks.runs.audit_files import ENDING, audit_of
from hedge_tasks.runs.run_files import Run, load_run, save_run
from hedge_tasks.runs.scorers import scorer_of
from hedge_tasks.statistics import auroc, estimate_auroc, estimate_mean, estimate_rate
from hedge_tasks.statistics.base import wilson
from hedge_tasks.statistics.experts import audited_rate, difference_of

WORDS = {1: "hallucinated", 0: "supported", None: "no answer"}


def misjudged(n: int = 240, wrong: float = 0.15) -> tuple[Run, dict[str, int]]:
    """A run whose judge errs, and what experts would say."""
    run = finished_run(n)
    chance = random.Random(5)
    truth = {a.id: int(a.label or 0) for a in run.answer_sets}
    sets = tuple(
        a.with_label(None if i % 30 == 7 else truth[a.id] ^ (chance.random() < wrong))
        for i, a in enumerate(run.answer_sets)
    )
    return replace(run, answer_sets=sets), truth


def scores_of(run: Run) -> Any:
    return scorer_of(run, None).with_detectors(("se", "radflag")).score(run.answer_sets)


def answers_of(plan: AuditPlan, truth: dict[str, int], rater: str = "labels") -> list[ExpertSaid]:
    return [ExpertSaid("here", code, rater, WORDS[truth[id]]) for code, id in plan.codes.items()]


def census(run: Run, truth: dict[str, int]) -> ExpertAudit:
    ids = [a.id for a in run.answer_sets]
    return put_together(plan_at_random(ids), [ExpertSaid("", id, "x", WORDS[truth[id]]) for id in ids])


# --- the plan ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("none", "strata"), [(19, 2), (20, 3)])
def test_a_stratum_stands_alone_from_five_labels_on(none: int, strata: int) -> None:
    judged = [1] * 60 + [0] * (140 - none) + [None] * none
    found = strata_of(judged, 50)
    assert len(found.take) == len(found.titles) == strata
    assert sum(found.take) == 50
    sizes = np.bincount(found.stratum)
    assert all(abs(take - 50 * size / 200) < 1 for take, size in zip(found.take, sizes, strict=True))


def test_a_plan_tells_people_nothing(tmp_path: Path) -> None:
    run, _ = misjudged()
    plan = make_plan(run, n=60)
    assert sum(s.take for s in plan.strata) == len(set(plan.codes.values())) == 60
    counts = [sum(plan.documents[id] == h for id in plan.codes.values()) for h in range(len(plan.strata))]
    assert counts == [s.take for s in plan.strata]
    files = write_plan(plan, run, tmp_path / "audit", {})
    assert [file.name for file in files] == ["plan.json", "page.html", "labels.csv"]
    assert read_plan(files[0]) == plan
    for page in files[1:]:
        for blinded in (run.model, run.task, "exact", "judged", "radflag"):
            assert blinded not in page.read_text(), blinded
        assert not any(f'"{a.id}"' in page.read_text() for a in run.answer_sets)
    assert make_plan(run, n=60) == plan != make_plan(run, n=60, seed=1)
    group = {a.id: a.group for a in run.answer_sets}
    order = [group[id] for id in plan.codes.values()]
    assert 1 + sum(a != b for a, b in pairwise(order)) == len(set(order)), "questions on one image stand together"


# --- tables -----------------------------------------------------------------------------------------------------------


def test_codes_and_people_are_checked() -> None:
    run, truth = misjudged(60)
    plan = make_plan(run, n=20)
    said = answers_of(plan, truth)
    with pytest.raises(DataError, match="code of the plan"):
        put_together(plan, [said[0]._replace(code=f"{said[0].code}x")])
    with pytest.raises(DataError, match="a second time"):
        put_together(plan, [*said, said[0]])


def test_most_people_decide_and_who_disagree_do_not() -> None:
    run, truth = misjudged(60)
    plan = make_plan(run, n=20)
    first = answers_of(plan, truth, "a")
    other = {MEANINGS[0]: MEANINGS[1], MEANINGS[1]: MEANINGS[0]}
    second = [e._replace(rater="b", meaning=other[e.meaning] if i < 1 else e.meaning) for i, e in enumerate(first)]
    audit = put_together(plan, [*first, *second])
    assert (audit.n_labels, audit.missing, audit.raters) == (19, 1, 2)
    assert audit.kappa is not None
    assert audit.kappa.n == 20
    third = [e._replace(rater="c") for e in first]
    audit = put_together(plan, [*first, *second, *third])
    assert (audit.n_labels, audit.missing) == (20, 0)
    assert all(audit.verdicts[id] == WORDS[truth[id]] for id in plan.codes.values())


@pytest.mark.parametrize("unsure", [False, True])
def test_where_more_is_missing_than_one_in_twenty_or_a_whole_stratum_no_number_follows(unsure: bool) -> None:
    """Blank or "cannot tell": what people leave is not like the rest."""
    run, truth = misjudged(240)
    plan = make_plan(run, n=100)
    said = answers_of(plan, truth)

    def left(out: list[ExpertSaid]) -> ExpertAudit:
        rest = [e for e in said if e not in out]
        return put_together(plan, [*rest, *(e._replace(meaning=CANNOT_TELL) for e in out if unsure)])

    assert (left(said[:5]).n_labels, left(said[:5]).missing) == (95, 5)
    wrong = sum(e.meaning == MEANINGS[0] for e in said[6:])
    with pytest.raises(DataError, match=rf"^6 of 100 answers .* no number follows: {wrong} to {wrong + 6} are hall"):
        left(said[:6])
    few = replace(run, answer_sets=tuple(a.with_label(int(i < 12)) for i, a in enumerate(run.answer_sets)))
    plan = make_plan(few, n=100)
    said = answers_of(plan, truth)
    judged = [e for e in said if plan.documents[plan.codes[e.code]] == 1]
    assert len(judged) == 5
    with pytest.raises(DataError, match=r"labels of 95 of 95 judged supported, 0 of 5 judged hallucinated"):
        left(judged)


# --- numbers ----------------------------------------------------------------------------------------------------------


def test_by_labels_of_all_the_numbers_are_the_experts() -> None:
    run, truth = misjudged()
    scores, audit = scores_of(run), census(run, truth)
    numbers = {number.name: number for number in audited_numbers(run, scores, ["se", "radflag"], audit)}
    y = [truth[a.id] for a in run.answer_sets]
    groups = [a.group for a in run.answer_sets]
    plain = estimate_auroc([float(s["se"] or 0) for s in scores], y, groups=groups)
    assert numbers["se_auroc"].experts.value == pytest.approx(plain.value)
    assert numbers["se_auroc"].experts.interval == pytest.approx(plain.interval)
    assert numbers["se_auroc"].judge.value != pytest.approx(plain.value)
    assert numbers["hallucination_rate"].experts.value == pytest.approx(np.mean(y))
    [difference] = audited_differences(scores, ["se", "radflag"], "se", audit)
    areas = [auroc([float(s[name] or 0) for s in scores], y) for name in ("radflag", "se")]
    assert difference.experts.difference == pytest.approx(areas[0] - areas[1])


def test_a_number_of_a_sample_is_that_of_the_labelled_documents() -> None:
    run, truth = misjudged()
    plan = make_plan(run, n=60)
    audit = put_together(plan, answers_of(plan, truth))
    labelled = [a for a in run.answer_sets if a.id in audit.verdicts]
    plain = estimate_rate([truth[a.id] for a in labelled])
    [rate] = [n for n in audited_numbers(run, scores_of(run), ["se"], audit) if n.name == "hallucination_rate"]
    assert rate.experts.value == pytest.approx(plain.value, abs=0.02)
    assert rate.experts.n_effective > 60, "the judge's labels of the others shorten it"


def test_a_stratified_share_by_hand() -> None:
    strata = np.array([0] * 10 + [1] * 10)
    rate = audited_rate([1] * 9 + [0] + [0] * 10, strata, np.array([60, 140]))
    assert rate.value == pytest.approx(0.3 * 0.9)
    between = (0.3 * 0.63**2 + 0.7 * 0.27**2) / 200
    assert rate.stderr**2 == pytest.approx(0.09 * 0.09 / 10 + between)
    [low, high] = rate.interval
    assert high - rate.value > rate.value - low, "no label of ten is no certainty that there is none"
    limits = [np.array(wilson(p, 10, 0.95)) for p in (0.9, 0.0)]
    apart = np.abs(np.array([0.9, 0.0])[:, None] - np.array(limits)) * [[0.3], [0.7]]
    half = np.sqrt((apart**2).sum(axis=0) + between * norm.ppf(0.975) ** 2)
    assert rate.interval == pytest.approx((0.27 - half[0], 0.27 + half[1]))
    alone = wilson(rate.value, 20, 0.95)
    assert rate.n_effective == pytest.approx(20 * ((alone[1] - alone[0]) / sum(half)) ** 2)
    values, groups = [1] * 6 + [0] * 4 + [1] * 2 + [0] * 8, [i // 2 for i in range(20)]
    wider = audited_rate(values, strata, np.array([60, 140]), groups=groups)
    effect = (estimate_mean(values, groups).stderr or 0.0) ** 2 * 20 / 0.24
    between = (0.3 * (0.6 - wider.value) ** 2 + 0.7 * (0.2 - wider.value) ** 2) / 200
    assert effect > 1.5
    assert wider.stderr**2 == pytest.approx((0.09 * 0.024 + 0.49 * 0.016) * effect + between)
    alone = wilson(wider.value, 20 / effect, 0.95)
    worth = 20 * ((alone[1] - alone[0]) / (wider.interval[1] - wider.interval[0])) ** 2
    assert wider.n_effective == pytest.approx(worth)
    with pytest.raises(ValueError, match="no label"):
        audited_rate([1, 0], np.array([0, 0]), np.array([2, 2]))


def test_a_difference_of_two_audits_adds_both_errors() -> None:
    a, b = Number(0.8, 0.03, (0.7, 0.85), n=50), Number(0.5, 0.04, (0.45, 0.6), n=60)
    found = difference_of(a, b)
    assert (found.difference, found.stderr) == pytest.approx((0.3, 0.05))
    assert found.interval == pytest.approx((0.3 - np.hypot(0.1, 0.1), 0.3 + np.hypot(0.05, 0.05)))
    back = difference_of(b, a)
    assert back.interval == pytest.approx((-found.interval[1], -found.interval[0]))
    assert difference_of(Number.undefined("few"), b).reason == "a: few"


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_from_plan_to_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, truth = misjudged()
    path = save_run(run, tmp_path / "runs")
    folder = tmp_path / "audit"
    assert main(["audit", "plan", str(path), "--budget", "60", "--out", str(folder)]) == 0
    assert "60 of 240" in capsys.readouterr().out
    plan = read_plan(folder / "plan.json")
    table = pd.read_csv(folder / "labels.csv", dtype=str, keep_default_na=False)
    table["label"] = [WORDS[truth[plan.codes[code]]] for code in table["code"]]
    files = [str(folder / f"labels-{i}.csv") for i in (1, 2)]
    for file in files:
        table.to_csv(file, index=False)
    shifted = table.assign(code=np.roll(table["code"], 1))
    for columns in (["question"], ["answer"], []):  # as a spreadsheet does where one column is sorted alone
        shifted.drop(columns=columns).to_csv(folder / "shifted.csv", index=False)
        assert main(["audit", "apply", str(path), str(folder / "shifted.csv")]) == 2
        assert re.search(r"shifted\.csv:\d+: .* is not the (question|answer) of a", capsys.readouterr().err)
    half = table.assign(label=table["label"].where(table["label"] == "supported", ""))
    half.to_csv(folder / "half.csv", index=False)
    assert main(["audit", "apply", str(path), str(folder / "half.csv")]) == 2
    assert "no number follows" in capsys.readouterr().err
    facts = json_of(capsys, ["audit", "apply", str(path), *files, "--detectors", "se,radflag", "--json"])
    numbers = {row["number"]: row for row in facts["numbers"]}
    assert numbers["se_auroc"]["experts"]["n_labels"] == 60
    assert main(["audit", "apply", str(path), *files, "--detectors", "se,radflag"]) == 0
    capsys.readouterr()
    # Kept beside the run, without names.
    kept = load_run(path)
    assert "labels-1" not in kept.path.with_suffix(ENDING).read_text()
    again = audit_of(kept)
    assert again is not None
    assert again.n_labels == 60
    assert audit_of(replace(kept, path=None)) is None
    (tmp_path / "runs" / kept.path.with_suffix(ENDING).name).write_text("{}")
    assert main(["rescore", str(path)]) == 2
    assert "plan" in capsys.readouterr().err
    page = tmp_path / "page.html"
    assert main(["report", str(path), str(path), "--no-curves", "--out", str(page)]) == 0, "it says so and goes on"
    assert "the audit" in page.read_text()
