"""`hedge audit`: the plan and its page, the files that come back, and the numbers against experts."""

from __future__ import annotations

import csv
import json
import random
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from finished_runs import finished_run, hostile_run, suite_run
from scipy.stats import binomtest

from hedge_tasks.cli import main
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.evaluation import installed_measures
from hedge_tasks.judging.designed import (
    MEANINGS,
    NO_ANSWER,
    ExpertLabels,
    ExpertSaid,
    plan_at_random,
    put_together,
    read_experts,
    read_plan,
)
from hedge_tasks.measures.audit_plan import basis_of, make_plan, write_plan
from hedge_tasks.measures.audited import (
    audited_curves,
    audited_differences,
    audited_numbers,
    compare_rates_by_experts,
    judge_by_experts,
    readings_by_experts,
    readings_table,
)
from hedge_tasks.measures.run_measures import scored_documents
from hedge_tasks.measures.standard_measures import HALLUCINATION_RATE, UnlabelledRate, detector_auroc
from hedge_tasks.runs.audit_files import audit_file, audit_of
from hedge_tasks.runs.run_files import Run, load_run, save_run
from hedge_tasks.runs.scorers import scorer_of
from hedge_tasks.statistics.curves import area_under_risk_coverage, average_precision

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


def planned(run: Run, n: int = 60, **options: Any) -> Any:
    return make_plan(run, scores_of(run), detector="se", filter_name="exact", n=n, **options)


def answers_of(plan: Any, truth: dict[str, int], rater: str = "labels-1") -> list[ExpertSaid]:
    said = []
    for item in plan.items:
        label = item.label if item.id is None else truth[item.id]
        said.append(ExpertSaid("here", item.code, rater, WORDS[label]))
    return said


# --- the plan ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_plan_draws_what_it_says_and_tells_nothing(tmp_path: Path) -> None:
    run, _ = misjudged()
    found = planned(run, raters=2)
    plan = found.plan
    assert sum(s.take for s in plan.strata) == 60
    drawn = [item.id for item in plan.items if item.id is not None]
    assert len(set(drawn)) == 60
    counts = [sum(plan.documents[id] == h for id in drawn) for h in range(len(plan.strata))]
    assert counts == [s.take for s in plan.strata]
    assert set(plan.documents) == {a.id for a in run.answer_sets}
    controls = [item for item in plan.items if item.id is None]
    assert len(controls) == 3
    assert all(item.raters == (0, 1) for item in controls)
    assert 0 < sum(item.raters == (0, 1) for item in plan.items if item.id) < 30
    assert {item.raters for item in plan.items} == {(0,), (1,), (0, 1)}
    assert found.widths[50] > found.widths[100] > found.widths[200]
    files = write_plan(found, tmp_path / "audit", {})
    assert [file.name for file in files] == ["plan.json", "page-1.html", "labels-1.csv", "page-2.html", "labels-2.csv"]
    assert read_plan(files[0]) == plan
    for page in files[1:]:
        text = page.read_text()
        for blinded in (run.model, run.task, "exact", "judged", "rule 1", "radflag"):
            assert blinded not in text, blinded
        assert not any(f'"{a.id}"' in text for a in run.answer_sets)
    assert planned(run, raters=2).plan == plan
    assert planned(run, seed=1).plan != plan


def test_questions_on_one_image_stand_together() -> None:
    run, _ = misjudged()
    found = planned(run, n=120)
    group = {a.id: a.group for a in run.answer_sets}
    order = [group[found.shown_items[item.code].document] for item in found.plan.items]
    blocks = 1 + sum(a != b for a, b in pairwise(order))
    assert blocks == len(set(order))


def test_controls_are_known() -> None:
    run, _ = misjudged()
    closed = replace(run, answer_sets=tuple(replace(a, reference="Yes.") for a in run.answer_sets))
    found = planned(closed, n=80)
    controls = {found.shown_items[item.code].answer: item.label for item in found.plan.items if item.id is None}
    assert controls == {"Yes.": 0, "no": 1}


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


@pytest.mark.slow
def test_hostile_texts_stay_texts(tmp_path: Path) -> None:
    run = hostile_run()
    run = replace(run, answer_sets=tuple(a.with_label(i % 2) for i, a in enumerate(run.answer_sets)))
    files = write_plan(planned(run, n=len(run.answer_sets)), tmp_path, {})
    page = files[1].read_text("utf-8")
    tags = Tags()
    tags.feed(page)
    assert sum(tag == "script" for tag, _ in tags.found) == 1
    assert not [tag for tag, attrs in tags.found if tag in ("a", "img", "link", "iframe") or "onerror" in attrs]
    assert "default-src 'none'" in page
    cells = [cell for row in csv.reader(files[2].open(encoding="utf-8", newline="")) for cell in row]
    assert not [cell for cell in cells if cell.startswith("=")]


@pytest.mark.slow
def test_wrong_plans_are_refused() -> None:
    run, _ = misjudged()
    with pytest.raises(ConfigError, match="1 or 2"):
        planned(run, raters=3)
    with pytest.raises(ConfigError, match="--against"):
        planned(run, purpose="compare")
    with pytest.raises(ConfigError, match="--budget 2"):
        planned(run, n=2)
    assert planned(run, purpose="compare", against="radflag").plan.purpose == "compare"
    for purpose in ("policy", "rate"):
        assert planned(run, purpose=purpose).widths[50] > 0


def test_the_basis_of_a_label() -> None:
    assert basis_of({"label": 1, "reason": "different: other words"}) == "different"
    assert basis_of({"label": 1, "reason": "wrong-type: yes"}) == "wrong-type"
    assert basis_of({"label": 0, "reason": "a sentence, and: more"}) == ""
    assert basis_of(None) == ""


# --- what comes back --------------------------------------------------------------------------------------------------


def test_files_of_three_kinds_say_the_same(tmp_path: Path) -> None:
    page = tmp_path / "labels-1.csv"
    page.write_text("code,label\na1,hallucinated\na2,supported\na3,no answer\na4,\n")
    own = tmp_path / "own.jsonl"
    own.write_text('{"id": "a1", "label": 1}\n{"id": "a2", "label": "0"}\n{"id": "a3", "label": "Declined"}\n')
    tasks = [
        {
            "id": 7,
            "data": {"code": code},
            "annotations": [
                {
                    "completed_by": {"id": 3, "email": "x@example.org"},
                    "was_cancelled": False,
                    "result": [{"type": "choices", "from_name": "label", "value": {"choices": [label]}}],
                },
                {"completed_by": 4, "was_cancelled": True, "result": []},
            ],
        }
        for code, label in (("a1", "Hallucinated"), ("a2", "supported"), ("a3", "no answer"))
    ]
    studio = tmp_path / "studio.json"
    studio.write_text(json.dumps([*tasks, {"id": 8, "data": {"code": "a4"}, "annotations": []}]))
    wanted = [("a1", "hallucinated"), ("a2", "supported"), ("a3", "no answer")]
    for file, rater in ((page, "labels-1"), (own, "own"), (studio, "annotator 3")):
        said = read_experts(file)
        assert [(each.code, each.meaning) for each in said] == wanted
        assert {each.rater for each in said} == {rater}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("code,label\na1,maybe\n", "maybe.*no answer"),
        ("code,verdikt\na1,1\n", "label"),
        ("code,label\na1,\n", "no row has a label"),
        ("", "no labels"),
    ],
)
def test_wrong_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "labels.csv"
    file.write_text(text)
    with pytest.raises((DataError, ConfigError), match=message):
        read_experts(file)


def test_codes_and_people_are_checked() -> None:
    run, truth = misjudged()
    plan = planned(run).plan
    said = answers_of(plan, truth)
    with pytest.raises((DataError, ConfigError), match="did you mean"):
        put_together(plan, [said[0]._replace(code=f"{said[0].code}x")])
    with pytest.raises(DataError, match="a second time"):
        put_together(plan, [*said, said[0]])


def test_two_people_and_controls() -> None:
    run, truth = misjudged()
    plan = planned(run).plan
    first, second = answers_of(plan, truth, "one"), answers_of(plan, truth, "two")
    second = [s._replace(meaning="supported") if i % 5 == 0 else s for i, s in enumerate(second)]
    audit = put_together(plan, [*first, *second])
    assert audit.raters == 2
    assert audit.kappa is not None
    assert audit.kappa.value is not None
    assert 0.3 < audit.kappa.value < 1
    assert audit.controls[0] == 6
    some = put_together(plan, first[:20])
    assert some.lost == 60 - some.n_labels


# --- numbers ----------------------------------------------------------------------------------------------------------


def test_people_who_disagree_count_in_parts() -> None:
    hallucinated, supported, none = MEANINGS
    said = ((hallucinated, supported), (supported, hallucinated, supported), (none, supported), (none,))
    labels = ExpertLabels((0,) * 4, said).verified(range(4), [1, 1, 0, 0], range(4))
    assert labels.hallucinated.tolist() == pytest.approx([1 / 2, 1 / 3, 0, 0])
    assert labels.supported.tolist() == pytest.approx([1 / 2, 2 / 3, 1 / 2, 0])


@pytest.mark.slow
def test_with_every_label_the_numbers_are_the_experts() -> None:
    run, truth = misjudged()
    ids = [a.id for a in run.answer_sets]
    audit = put_together(plan_at_random(ids), [ExpertSaid("", id, "x", WORDS[truth[id]]) for id in ids])
    right = replace(run, answer_sets=tuple(a.with_label(truth[a.id]) for a in run.answer_sets))
    wanted = {s.name: s.judge for s in audited_numbers(right, scores_of(right), ["se", "radflag"], audit)}
    found = audited_numbers(run, scores_of(run), ["se", "radflag"], audit)
    for each in found:
        assert each.experts.value == pytest.approx(wanted[each.name].value), each.name
    assert abs(found[0].judge.value - found[0].experts.value) > 0.01  # type: ignore[operator]
    assert found[0].experts.run_interval == pytest.approx((found[0].experts.value,) * 2)  # type: ignore[attr-defined]
    [difference] = audited_differences(scores_of(run), ["se", "radflag"], "se", audit)
    [same] = audited_differences(scores_of(right), ["se", "radflag"], "se", audit)
    assert difference.experts.difference == pytest.approx(same.judge.difference)
    quality = judge_by_experts(run, audit, basis_of)[0]
    judged = [(a.label, truth[a.id]) for a in run.answer_sets if a.label is not None]
    of = [j for j, y in judged if y]
    assert quality.sensitivity.value == pytest.approx(sum(of) / len(of))
    of = [1 - j for j, y in judged if not y]
    assert quality.specificity.value == pytest.approx(sum(of) / len(of))


@pytest.mark.slow
def test_a_sample_says_it_with_its_error() -> None:
    run, truth = misjudged(600)
    right = replace(run, answer_sets=tuple(a.with_label(truth[a.id]) for a in run.answer_sets))
    plan = planned(run, n=150).plan
    audit = put_together(plan, answers_of(plan, truth))
    for each in audited_numbers(run, scores_of(run), ["se"], audit):
        wanted = {s.name: s.judge for s in audited_numbers(right, scores_of(right), ["se"], audit)}[each.name]
        if each.name == "declined_share":
            continue
        low, high = each.experts.interval  # type: ignore[misc]
        assert low <= wanted.value <= high, each.name  # type: ignore[operator]


def test_what_experts_cannot_correct_says_so() -> None:
    run, truth = misjudged()
    ids = [a.id for a in run.answer_sets]
    audit = put_together(plan_at_random(ids), [ExpertSaid("", id, "x", WORDS[truth[id]]) for id in ids[:40]])
    scores = scores_of(run)
    for measure in (UnlabelledRate(name="unlabelled_rate"), detector_auroc("se", within=True)):
        records = [d.record for d in scored_documents(scores, measure)]
        number = measure.estimate(records, None, audit.on(ids))
        assert not number.defined
        assert "experts" in str(number.reason)
    records = [HALLUCINATION_RATE.record(s, {"label": s.label}, {}) for s in scores]
    assert HALLUCINATION_RATE.estimate(records, None, audit.on(ids)).defined
    with pytest.raises(DataError, match="another run"):
        audit.on(["strange"])


def test_a_held_out_document_counts_for_no_auroc() -> None:
    run, truth = misjudged()
    ids = [a.id for a in run.answer_sets]
    audit = put_together(plan_at_random(ids), [ExpertSaid("", id, "x", WORDS[truth[id]]) for id in ids])
    measure = detector_auroc("se")
    scores = [replace(s, held_out=i < 100) for i, s in enumerate(scores_of(run))]
    records = [d.record for d in scored_documents(scores, measure)]
    assert measure.estimate(records, None, audit.on(ids)).n == len(ids) - 100


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_from_plan_to_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, truth = misjudged()
    path = save_run(run, tmp_path / "runs")
    folder = tmp_path / "audit"
    assert main(["audit", "plan", str(path), "--budget", "60", "--out", str(folder), "--raters", "2"]) == 0
    out = capsys.readouterr().out
    assert "60 of 240 documents, and 3 hidden controls" in out
    assert "width of the 95 % interval" in out
    plan = read_plan(folder / "plan.json")
    for rater in (0, 1):
        rows = [
            f"{item.code},{WORDS[item.label if item.id is None else truth[item.id]]}"
            for item in plan.items
            if rater in item.raters
        ]
        (folder / f"labels-{rater + 1}.csv").write_text("\n".join(["code,label", *rows]))
    files = [str(folder / f"labels-{i}.csv") for i in (1, 2)]
    assert main(["audit", "apply", str(path), *files, "--detectors", "se,radflag", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    numbers = {row["number"]: row for row in facts["numbers"]}
    assert numbers["se_auroc"]["experts"]["n_labels"] == 60
    assert main(["audit", "apply", str(path), *files, "--detectors", "se,radflag"]) == 0
    out = capsys.readouterr().out
    assert "60 labels by 2 people" in out
    assert "Of 6 hidden controls 6 were labelled right." in out
    assert "against experts" in out
    # Kept beside the run, without names.
    kept = load_run(path)
    assert "labels-1" not in audit_file(kept).read_text()
    again = audit_of(kept)
    assert again is not None
    assert again.n_labels == 60
    assert audit_of(replace(kept, path=None)) is None
    # Every table of the run has both columns now.
    for command in (["rescore", str(path)], ["detectors", str(path), "--detectors", "se,radflag"]):
        assert main(command) == 0
        out = capsys.readouterr().out
        assert "against experts" in out, command
    for command in (["--metric", "radflag", "--against", "se"], ["--metric", "se", "--metric", "radflag"], [str(path)]):
        assert main(["compare", str(path), *command]) == 0
        assert "60 labels of experts, paired by document" in capsys.readouterr().out, command
    (tmp_path / "runs" / audit_file(kept).name).write_text("{}")
    assert main(["rescore", str(path)]) == 2
    assert "plan" in capsys.readouterr().err


@pytest.mark.slow
def test_wrong_uses_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, truth = misjudged()
    path = save_run(run, tmp_path / "runs")
    labels = tmp_path / "labels.csv"
    labels.write_text("id,label\n" + "".join(f"{id},{label}\n" for id, label in list(truth.items())[:50]))
    assert main(["audit", "apply", str(path), str(labels)]) == 2
    assert "--random" in capsys.readouterr().err
    assert main(["audit", "apply", str(path), str(labels), "--random"]) == 0
    assert "50 labels by 1 person" in capsys.readouterr().out
    other = save_run(replace(run, created="2027-01-01T00:00:00+00:00"), tmp_path / "others")
    assert main(["audit", "plan", str(other), "--budget", "40", "--out", str(tmp_path / "audit")]) == 0
    plan = str(tmp_path / "audit" / "plan.json")
    assert main(["audit", "apply", str(path), str(labels), "--plan", plan]) == 2
    assert "another run" in capsys.readouterr().err


@pytest.mark.slow
def test_the_report_tells_both(tmp_path: Path) -> None:
    from hedge_tasks.report.analysis import analyse
    from hedge_tasks.report.truth import truth_of
    from hedge_tasks.runs.audit_files import keep_audit

    run, truth = misjudged()
    path = save_run(run, tmp_path)
    [before] = analyse([load_run(path)], curves=False)
    rows = dict(truth_of(before))
    assert "its errors are in every number" in rows["labels"]
    assert "sees neither picture nor draws" in rows["blind baselines, exact"]
    plan = planned(run, n=80).plan
    keep_audit(load_run(path), plan, answers_of(plan, truth))
    [after] = analyse([load_run(path)], curves=False)
    rows = dict(truth_of(after))
    assert "80 labels of experts" in rows["labels"]
    assert "against experts" in rows["se_auroc, exact"]
    assert "against the judge" in rows["hallucination_rate"]


# --- F1, AUPRC, AURC, rates of two runs -------------------------------------------------------------------------------


def test_the_f1_of_a_misread_suite_is_that_of_the_experts() -> None:
    """Experts who label every answer leave nothing of the readings."""
    chance = random.Random(2)
    [f1] = [measure for measure in installed_measures("medhallu") if measure.name == "f1"]
    records, said = [], []
    for i in range(60):
        truth, right = chance.randrange(2), chance.random() < 0.7
        read = truth if right else 1 - truth
        label = (not right) if i % 4 else right  # every fourth was misread
        records.append({"said": read, "truth": truth, "row": i // 2})
        said.append((MEANINGS[0 if label else 1],))
    said[7] = (NO_ANSWER,)
    corrected = [
        {**r, "said": None if of == (NO_ANSWER,) else r["truth"] ^ (of == (MEANINGS[0],))}
        for r, of in zip(records, said, strict=True)
    ]
    found = f1.estimate(records, None, ExpertLabels((0,) * 60, tuple(said)))
    assert found.value == pytest.approx(f1.estimate(corrected).value)
    assert found.value != pytest.approx(f1.estimate(records).value)
    parts = {measure.name: measure for measure in installed_measures("medhallu")}
    by_level = next(measure for name, measure in parts.items() if name.startswith("f1_easy"))
    assert not by_level.estimate(records, None, ExpertLabels((0,) * 60, tuple(said))).defined


def test_errors_of_readings_have_exact_limits() -> None:
    """Of a census: the plain share by what the reply was read from, with the limits that SciPy has."""
    run, truth = misjudged()
    bases = {a.id: "json" if i % 3 else "mention" for i, a in enumerate(run.answer_sets)}
    run = replace(run, verdicts={id: {"label": 0, "basis": basis} for id, basis in bases.items()})
    audit = put_together(plan_at_random(list(bases)), [ExpertSaid("", id, "x", WORDS[truth[id]]) for id in bases])
    found = readings_by_experts(run, audit)
    assert [each.basis for each in found] == ["json", "mention"]
    for each in found:
        wrong = [a.label != truth[a.id] for a in run.answer_sets if bases[a.id] == each.basis and a.label is not None]
        assert (each.labels, each.wrong) == (len(wrong), sum(wrong))
        exact = binomtest(sum(wrong), len(wrong)).proportion_ci()
        assert each.share.interval == pytest.approx((exact.low, exact.high))
    assert readings_table(found).rows[0]["basis"] == "json"
    assert readings_by_experts(replace(run, verdicts={}), audit) == []


def test_curves_and_rates_are_told_against_experts(tmp_path: Path) -> None:
    run, truth = misjudged()
    scores = scores_of(run)
    plan = planned(run, n=len(run.answer_sets)).plan
    audit = put_together(plan, answers_of(plan, truth))
    by_name = {each.name: each for each in audited_curves(scores, ["se"], audit)}
    x = [float(s["se"]) for s in scores]
    y = [float(truth[s.id]) for s in scores]
    assert by_name["se_auprc"].experts.value == pytest.approx(average_precision(x, y))
    assert by_name["se_aurc"].experts.value == pytest.approx(area_under_risk_coverage(x, [1 - v for v in y]))
    assert by_name["se_auprc"].judge.value != pytest.approx(by_name["se_auprc"].experts.value)
    found = compare_rates_by_experts(run.answer_sets, audit, run.answer_sets, audit)
    assert found is not None
    assert found.a == pytest.approx(sum(y) / len(y))
    assert found.difference == 0


@pytest.mark.slow
def test_a_plan_says_where_labels_are_too_few(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, _ = misjudged()
    path = save_run(run, tmp_path / "run")
    for n, said in ((20, True), (120, False)):
        assert main(["audit", "plan", str(path), "--budget", str(n), "--out", str(tmp_path / f"audit{n}")]) == 0
        assert ("on the long side" in " ".join(capsys.readouterr().out.split())) is said


def test_a_plan_for_a_policy_is_in_proportion() -> None:
    run, _ = misjudged()
    plan = planned(run, n=120, purpose="policy").plan
    shares = [s.take / s.size for s in plan.strata]
    assert all(share >= 0.5 - 1.01 / s.size for share, s in zip(shares, plan.strata, strict=True))
    assert max(shares) < 0.75


def test_shares_of_outcomes_use_the_judge() -> None:
    """Where nobody declines, the supported share is nearly as sure as the hallucination rate, which it leaves to 1."""
    run, truth = misjudged(wrong=0.05)
    labels = [truth[a.id] if a.label is None else a.label for a in run.answer_sets]
    sets = tuple(a.with_label(label) for a, label in zip(run.answer_sets, labels, strict=True))
    run = replace(run, answer_sets=sets)
    plan = planned(run, n=60).plan
    audit = put_together(plan, answers_of(plan, truth))
    found = {each.name: each.experts for each in audited_numbers(run, scores_of(run), [], audit)}
    rate, share, declined = (found[name] for name in ("hallucination_rate", "supported_share", "declined_share"))
    assert share.value == pytest.approx(1 - (rate.value or 0.0), abs=0.01)
    widths = [(n.interval[1] - n.interval[0]) if n.interval else 1.0 for n in (rate, share)]
    assert widths[1] < 1.6 * widths[0]  # that nobody declines is not sure either
    assert declined.value == pytest.approx(0.0, abs=0.01)


# --- whole images -----------------------------------------------------------------------------------------------------


def in_groups(n: int = 240) -> tuple[Run, dict[str, int]]:
    """A run of images with one to five questions."""
    run, truth = misjudged(n)
    chance, groups = random.Random(3), []
    while len(groups) < n:
        groups += [f"image {len(groups)}"] * chance.randint(1, 5)
    return replace(
        run, answer_sets=tuple(replace(a, group=g) for a, g in zip(run.answer_sets, groups, strict=False))
    ), truth


def test_whole_images_are_drawn_with_all_their_questions() -> None:
    run, truth = in_groups()
    plan = planned(run, n=60, whole=True).plan
    drawn = {item.id for item in plan.items if item.id is not None}
    groups = {a.id: a.group for a in run.answer_sets}
    images = {groups[id] for id in drawn}
    assert drawn == {id for id, group in groups.items() if group in images}
    assert sum(stratum.take for stratum in plan.strata) == len(images)
    assert 50 <= len(drawn) <= 70
    audit = put_together(plan, answers_of(plan, truth))
    assert audit.lost == 0
    numbers = {each.name: each for each in audited_numbers(run, scores_of(run), ["se"], audit)}
    ids = [a.id for a in run.answer_sets]
    design = audit.on(ids).verified(range(len(ids)), [a.label for a in run.answer_sets], ids).design
    assert len(design.drawn_units) == len({*groups.values()})  # the variance is between images
    some = audit.on(ids).some([3, 4, 5])
    assert some.units == tuple(plan.units[id] for id in ids[3:6])
    found = numbers["se_auroc"].experts
    true = sum(truth.values()) / len(truth)
    rate = numbers["hallucination_rate"].experts
    assert found.n_labels == len(drawn)
    assert rate.interval[0] <= true <= rate.interval[1]


def test_one_person_sees_all_questions_on_an_image() -> None:
    run, _ = in_groups()
    plan = planned(run, n=60, whole=True, raters=2).plan
    groups = {a.id: a.group for a in run.answer_sets}
    alone = {(groups[item.id], item.raters) for item in plan.items if item.id is not None and len(item.raters) == 1}
    assert len(alone) == len({group for group, _ in alone})
    assert {raters for _, raters in alone} == {(0,), (1,)}


def test_an_image_that_is_labelled_in_part_counts_as_not_drawn() -> None:
    run, truth = in_groups()
    plan = planned(run, n=60, whole=True).plan
    sizes = [sum(unit == other for other in plan.units.values()) for unit in plan.units.values()]
    large = next(
        item.code
        for item in plan.items
        if item.id is not None and dict(zip(plan.units, sizes, strict=True))[item.id] > 1
    )
    audit = put_together(plan, [one for one in answers_of(plan, truth) if one.code != large])
    assert audit.lost == 1
    ids = [a.id for a in run.answer_sets]
    whole = put_together(plan, answers_of(plan, truth))
    labels = [
        one.on(ids).verified(range(len(ids)), [a.label for a in run.answer_sets], ids).n_labels
        for one in (whole, audit)
    ]
    unit = plan.units[next(item.id for item in plan.items if item.code == large)]
    assert labels[0] - labels[1] == sum(each == unit for each in plan.units.values())


@pytest.mark.slow
def test_whole_images_have_the_probabilities_that_are_said() -> None:
    run, _ = in_groups(60)
    plans = [planned(run, n=30, whole=True, seed=seed).plan for seed in range(300)]
    first = plans[0]
    for id, stratum in first.documents.items():
        said = first.strata[stratum].take / first.strata[stratum].size
        counted = sum(any(item.id == id for item in plan.items) for plan in plans) / len(plans)
        assert abs(counted - said) < 0.13, id


def test_whole_images_need_images() -> None:
    run, _ = misjudged()
    alone = replace(run, answer_sets=tuple(replace(a, group=None) for a in run.answer_sets))
    with pytest.raises(ConfigError, match="no two documents share an image"):
        planned(alone, whole=True)
    with pytest.raises(ConfigError, match="labels are needed here, where images"):
        planned(in_groups()[0], n=3, whole=True)


# --- the suites -------------------------------------------------------------------------------------------------------


def suite_of(name: str) -> dict[str, Any]:
    return {measure.name: measure for measure in installed_measures(name)}


def by_all(records: Any, truth: list[int | None]) -> ExpertLabels:
    return ExpertLabels((0,) * len(records), tuple((WORDS[label],) for label in truth))


def test_accuracy_of_shale_is_that_of_the_experts() -> None:
    """Of all questions that were judged; an answer in which experts find none is wrong, as an unread one is."""
    measures, chance = suite_of("shale"), random.Random(4)
    average = next(m for m in measures.values() if type(m).__name__ == "Average")
    shares = [m for m in measures.values() if type(m).__name__ == "RightShare"]
    assert len(shares) > 5
    truth = [chance.choice([0, 0, 1, None]) for _ in range(40)]
    judged = [chance.choice([0, 1, None]) for _ in range(40)]
    names = [part.name for part in average.parts]
    for measure in (average, *shares[:3]):
        records, wanted = [], []
        for i, (label, true) in enumerate(zip(judged, truth, strict=True)):
            right = None if label is None else 1 - label
            known = None if label is None else int(true == 0)
            if measure is average:
                mine = names[i % len(names)]
                records.append({n: {"right": right if n == mine else None, "group": i} for n in names})
                wanted.append({n: {"right": known if n == mine else None, "group": i} for n in names})
            else:
                records.append({"right": right, "group": i})
                wanted.append({"right": known, "group": i})
        found = measure.estimate(records, None, by_all(records, truth))
        assert found.value == pytest.approx(measure.estimate(wanted).value), measure.name
        assert found.value != pytest.approx(measure.estimate(records).value), measure.name


def test_accuracy_of_medhallmark_is_that_of_the_experts() -> None:
    measure, chance = suite_of("medhallmark")["accuracy"], random.Random(6)
    judged = [chance.choice([0, 1, None]) for _ in range(40)]
    truth = [chance.choice([0, 1]) for _ in range(40)]
    records = [{"value": None if label is None else float(label == 0), "group": None} for label in judged]
    wanted = [{**r, "value": float(label == 0)} for r, label in zip(records, truth, strict=True)]
    found = measure.estimate(records, None, by_all(records, truth))
    assert found.value == pytest.approx(measure.estimate(wanted).value)


@pytest.mark.parametrize(
    ("suite", "name", "why"),
    [
        ("medhallmark", "medihall", "categories"),
        ("shale", "resistance_rate", "pairs of answers"),
        ("vope", "hal_d", "objects"),
        ("medhallu", "f1_easy", "a part of the documents"),
    ],
)
def test_numbers_that_experts_do_not_correct_say_why(suite: str, name: str, why: str) -> None:
    measures = suite_of(suite)
    measure = next(m for key, m in measures.items() if key.startswith(name))
    records = [{"said": 1, "truth": 1, "row": 1, "value": 1.0, "right": 1, "group": 1}]
    number = measure.estimate(records, None, by_all(records, [0]))
    assert not number.defined
    assert str(number.reason).startswith("not corrected by experts: ")
    assert why in str(number.reason)


def test_the_command_tells_a_suites_numbers_and_names_those_it_leaves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = suite_run(60)
    path = save_run(run, tmp_path / "run")
    table = tmp_path / "labels.csv"
    table.write_text("id,label\n" + "".join(f"{a.id},{a.label}\n" for a in run.answer_sets))
    assert main(["audit", "apply", str(path), str(table), "--random"]) == 0
    told = capsys.readouterr().out
    rows = [line.split()[0] for line in told.splitlines() if line.split()]
    assert {"f1", "accuracy", "precision", "recall"} <= set(rows)
    assert "f1_easy" not in rows
    flat = " ".join(told.split())
    assert "Not corrected by experts: of a part of the documents, or of another reading of the replies (f1_easy" in flat
