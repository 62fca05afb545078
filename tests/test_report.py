"""The report: its numbers are the pipeline's, its warnings are deserved, and nothing in a run can break the page."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from finished_runs import EXACT, HOSTILE, finished_run, hostile_run, suite_run
from hypothesis import given
from hypothesis import strategies as st

from hedge_tasks.cli import main
from hedge_tasks.data.splits import load_split
from hedge_tasks.detectors.units import detection_auroc
from hedge_tasks.errors import DataError
from hedge_tasks.measures.curves import hallucination_rate
from hedge_tasks.measures.run_measures import compare_documents, documents_of, numbers_of_run, sums_of
from hedge_tasks.measures.sweep import usual_sizes
from hedge_tasks.numbers import PERCENT
from hedge_tasks.report import ReportOptions, build_report, result_files
from hedge_tasks.report.agreement import agreements, labels_by_judge
from hedge_tasks.report.analysis import Analysis, analyse, compare_between
from hedge_tasks.report.explorer import explorer_data
from hedge_tasks.report.lead import tiles
from hedge_tasks.report.page import SCRIPTS
from hedge_tasks.report.pictures import NONE, shrink, thumbnails
from hedge_tasks.report.results import newest_rows, read_results
from hedge_tasks.report.svg import nice_ticks, picture
from hedge_tasks.report.texts import clean, flat_settings, script_json
from hedge_tasks.runs.health import health_of
from hedge_tasks.runs.run_files import Run, save_run
from hedge_tasks.runs.scorers import scorer_of

QUICK = ReportOptions(pictures=False, curves=False)
RUN = finished_run(60)


def warnings_of(analysis: Analysis) -> list[str]:
    return [reason.text for reason in analysis.finding.trust.reasons]


class Page(HTMLParser):
    """What a browser would make of a page: elements, their attributes, the text of scripts and of everything else."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text = ""
        self._in: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._in = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._in = None

    def handle_data(self, data: str) -> None:
        if self._in == "script":
            self.scripts[-1] += data
        elif self._in != "style":
            self.text += data


def data_of(page: str) -> Any:
    [data] = [script for script in Page(page).scripts if script.startswith('{"clusterings"')]
    return json.loads(data)


@pytest.mark.slow
def test_the_metric_table_has_the_numbers_of_the_pipeline() -> None:
    page = build_report([RUN], options=QUICK)
    scores = scorer_of(RUN, None).score(RUN.answer_sets)
    table = re.search(r'<table class="sortable metrics">.*?</table>', page, re.DOTALL)
    assert table
    for name in ("se", "radflag", "vase", "lexical"):
        estimate = detection_auroc(scores, name)
        assert estimate.interval
        low, high = estimate.interval
        assert f"{estimate.value:.3f}<small>[{low:.3f}, {high:.3f}]</small>" in table[0]


def lead_of(page: str) -> str:
    """The first screen of the only run, without the links of its terms."""
    return re.sub(
        r'<a class="term"[^>]*>([^<]*)</a>',
        r"\1",
        re.split("<h3>(?:The suite|ROC-AUC)", page.split('class="run">')[1])[0],
    )


@pytest.mark.slow
def test_the_first_screen_leads_with_the_suites_number_the_rate_and_the_detectors_in_order() -> None:
    run = suite_run(60, wrong=0.3, mute=0.03)
    page = build_report([run], options=QUICK)
    lead = lead_of(page)
    names = re.findall(r"<dt>([^<]*)</dt>", lead)
    terms = names[names.index("F1 ↑") :]
    assert terms[:5] == ["F1 ↑", "accuracy ↑", "hallucination rate ↓", "Task", "Model"]
    [(_, f1), *_] = numbers_of_run(run)
    assert f1.interval
    assert f"<dd>{f1.value:.3f}<small>{f1.interval[0]:.3f} to {f1.interval[1]:.3f}; " in lead
    rate = hallucination_rate(run.answer_sets)
    assert rate is not None
    assert f"<dd>{PERCENT(rate.value)}<small>{PERCENT(rate.interval[0])} to {PERCENT(rate.interval[1])}; " in lead
    assert "highest ROC-AUC" not in page
    scores = scorer_of(run, None).score(run.answer_sets)
    found = {name: detection_auroc(scores, name) for name in ("se", "radflag", "vase")}
    order = sorted(found, key=lambda name: -(found[name].value or 0))
    rows = re.findall(r'<div class="row"><span>(\w+)</span><span class="draws">(\d+)</span>', lead)
    assert rows == [({"se": "SE", "radflag": "RadFlag", "vase": "VASE"}[n], "6" if n == "vase" else "3") for n in order]
    lowest = min(map(float, re.findall(r"<small>\[([\d.]+), ", lead)))
    start = 0.4 if lowest >= 0.4 else int(10 * lowest) / 10
    for estimate in found.values():
        low, value, high = (
            round(100 * ((v or 0.0) - start) / (1 - start), 2) for v in (estimate.low, estimate.value, estimate.high)
        )
        assert f'x1="{low}%" x2="{high}%"' in lead
        assert f'cx="{value}%"' in lead
    table = page.split('<table class="sortable suite">')[1].split("</table>")[0]
    assert table.count("<tr>") == 1 + 6


@pytest.mark.slow
def test_a_perfect_model_is_told_its_number_and_that_there_is_nothing_to_find() -> None:
    lead = lead_of(build_report([suite_run(20, wrong=0.0)], options=QUICK))
    assert "<dd>1.000<small>" in lead
    assert "None of 20 answers are wrong, so detectors have nothing to tell apart." in lead
    assert "no document is labelled" not in lead
    assert "Only 0 answers" not in lead
    lead = lead_of(build_report([suite_run(20, wrong=1.0)], options=QUICK))
    assert "All of 20 answers are wrong" in lead


def test_a_run_with_one_draw_a_document_is_told_why_it_has_no_detectors() -> None:
    run = suite_run(20)
    single = replace(run, answer_sets=tuple(replace(a, clean=(), noisy=()) for a in run.answer_sets))
    analysis = Analysis(single, {}, {}, {}, {}, suite=numbers_of_run(single))
    assert [tile["name"] for tile in tiles(analysis)] == ["F1 ↑", "accuracy ↑", "hallucination rate ↓"]


@pytest.mark.slow
@pytest.mark.parametrize(("mute", "state"), [(0.0, "not checked"), (0.4, "red")])
def test_the_first_screen_says_how_healthy_the_run_is(mute: float, state: str) -> None:
    run = suite_run(60, wrong=0.5, mute=mute)
    lead = lead_of(build_report([run], options=QUICK))
    assert f'class="trust {state}"' in lead
    assert ("are unreliable" in lead) == (health_of(run).unreliable is not None) == (state == "red")


@pytest.mark.slow
def test_runs_of_a_suite_stand_side_by_side_by_its_numbers_first() -> None:
    runs = [suite_run(40, seed=seed, wrong=seed / 10, model=f"m{seed}") for seed in (1, 3)]
    page = build_report(runs, options=QUICK)
    side = page.split('id="side-by-side"')[1].split("</section>")[0]
    heads = re.findall(r"<th>(?:<[^>]*>)*([\w ]+)", side.split('<table class="sortable heat">')[1].split("</thead>")[0])
    assert [head.strip() for head in heads][:5] == ["model", "F1", "accuracy", "hallucination rate", "SE"]
    documents = [documents_of(run, sums_of(run.settings)[0]) for run in runs]
    expected = compare_documents(sums_of(runs[0].settings)[0], *documents)
    assert expected is not None
    [row] = re.findall(r"<td>F1</td>.*?</tr>", side, re.DOTALL)
    assert f"{expected.difference:+.3f}" in row


@pytest.mark.slow
def test_all_settings_and_what_it_took_are_told() -> None:
    run = replace(RUN, settings={**RUN.settings, "sampling": {"n": 6, "seed": [3, 4]}, "outcome": {"failed draws": 2}})
    text = Page(build_report([run], options=QUICK)).text
    assert re.search(r"sampling\.seed\s*3, 4", text)
    assert re.search(r"filters\.exact\.alpha\s*1\.0", text)
    assert re.search(r"failed draws\s*2", text)
    assert re.search(rf"tokens generated\s*{3 * 13 * 60:,}", text)


@pytest.mark.slow
def test_a_page_loads_nothing_and_runs_only_its_own_scripts() -> None:
    page = Page(build_report([RUN], options=QUICK))
    for tag, attributes in page.elements:
        assert tag not in ("link", "iframe", "object", "embed", "base", "form")
        assert not any(name.startswith("on") for name in attributes)
        for name in ("src", "href", "action", "xlink:href"):
            assert (attributes.get(name) or "#").startswith("#")
    policy = next(a["content"] or "" for tag, a in page.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; script-src 'sha256-")


@pytest.mark.slow
def test_hostile_texts_end_neither_their_place_nor_the_page() -> None:
    run = hostile_run()
    text = build_report([run], options=QUICK)
    page = Page(text)
    own = [attributes for tag, attributes in page.elements if tag == "script"]
    assert len([a for a in own if "type" not in a]) == len(SCRIPTS)
    assert all(tag != "img" for tag, _ in page.elements)
    assert not any(
        "javascript:" in (value or "") for _, a in page.elements for name, value in a.items() if name == "href"
    )
    assert "73441" not in page.text.split("Single questions")[0].split("template")[0]
    assert not set(text) & {"\x00", "\x1b", "\u2028", "\ud800"} - {"\u2028"}
    assert "\u2028" not in "".join(page.scripts)
    text.encode("utf-8")
    questions = data_of(text)["questions"]
    assert len(questions) == len(run.answer_sets)
    assert questions[0]["texts"][questions[0]["answers"][0]] == HOSTILE["script"]


@pytest.mark.slow
def test_a_megabyte_in_an_answer_is_cut_with_a_note() -> None:
    text = build_report([hostile_run()], options=QUICK)
    assert len(text) < 2_000_000
    long = next(t for q in data_of(text)["questions"] for t in q["texts"] if t.startswith("palaver"))
    assert long.endswith(f"… ({len(HOSTILE['long']) - 2000:,} more characters)")


@given(st.text())
def test_cleaned_texts_have_no_control_characters_and_fit(text: str) -> None:
    cleaned = clean(text, 20)
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]", cleaned)
    assert len(cleaned.partition(" … (")[0]) <= 20
    assert clean(cleaned) == cleaned


def test_stacks_of_accents_are_cut_and_words_with_accents_are_not() -> None:
    assert len(clean("Z" + "\u0335" * 400)) == 5
    assert clean("Việt Nam, e\u0301te\u0301, नमस्ते, שָׁלוֹם") == "Việt Nam, e\u0301te\u0301, नमस्ते, שָׁלוֹם"


@pytest.mark.slow
@given(
    st.recursive(
        st.text() | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_json_in_a_script_comes_back_and_cannot_end_it(value: Any) -> None:
    text = script_json(value)
    assert json.loads(text) == value
    assert not set(text) & set("<>&\u2028\u2029")


def test_the_explorer_has_clusters_scores_and_verdicts_of_every_question() -> None:
    [analysis] = analyse([RUN], curves=False)
    data = explorer_data(analysis, NONE)
    for question, answers, scores in zip(data["questions"], RUN.answer_sets, analysis.scores["exact"], strict=True):
        assert [question["texts"][i] for i in question["answers"]] == answers.texts
        assert question["clusters"]["exact"] == list(scores.cluster_ids)
        assert question["scores"]["exact"]["vase"] == pytest.approx(scores["vase"], abs=1e-5)
        assert (question["label"], question["n_clean"]) == (answers.label, len(answers.clean))
        assert question["reason"] == "equal: the same words"
    assert explorer_data(analysis, NONE, most=10)["left_out"] == 50


def test_the_longer_the_answers_the_shorter_they_are_cut() -> None:
    sets = tuple(
        replace(a, clean=tuple(replace(c, text=c.text * 3000 + str(i)) for i, c in enumerate(a.clean)))
        for a in RUN.answer_sets
    )
    [analysis] = analyse([replace(RUN, answer_sets=sets)], curves=False)
    size = len(json.dumps(explorer_data(analysis, NONE, budget=50_000)))
    assert size < 50_000 + 60 * 2500


def explained_by_kind() -> Run:
    """Open questions have diverse answers and are mostly wrong, closed ones neither; within a kind there is nothing."""
    sets = []
    for i, answers in enumerate(finished_run(200).answer_sets):
        is_open = i % 2 == 0
        texts = ["a", "b", "c", "d", "e", "f"] if is_open else ["a"] * 6
        clean_answers = tuple(
            replace(c, text=text, mean_logprob=None) for c, text in zip(answers.clean, texts, strict=True)
        )
        label = int(i % 20 != 0) if is_open else int(i % 20 == 1)
        sets.append(
            replace(
                answers,
                clean=clean_answers,
                noisy=clean_answers,
                label=label,
                group=None,
                baseline=replace(answers.baseline, text="a"),
            )
        )
    return replace(RUN, answer_sets=tuple(sets))


@pytest.mark.slow
def test_a_pooled_number_that_is_the_kind_of_question_gets_a_warning() -> None:
    [analysis] = analyse([explained_by_kind()], curves=False)
    assert analysis.estimates["exact"]["se"].value == pytest.approx(0.9)
    assert analysis.within["exact"]["se"].value == pytest.approx(0.5)
    [warning] = [text for text in warnings_of(analysis) if "may come from the question type" in text]
    assert warning.startswith("All of the lead's ROC-AUC")


@pytest.mark.slow
def test_an_honest_run_gets_no_warning_about_kinds() -> None:
    [analysis] = analyse([finished_run(200)], curves=False)
    assert not any("question type" in text for text in warnings_of(analysis))


def test_few_and_missing_labels_and_log_probabilities_are_warned_about() -> None:
    sets = [a.with_label(None if i % 2 else a.label) for i, a in enumerate(RUN.answer_sets)]
    sets[0] = replace(sets[0], clean=tuple(replace(c, mean_logprob=None) for c in sets[0].clean), noisy=())
    [analysis] = analyse([replace(RUN, answer_sets=tuple(sets))], curves=False)
    text = "\n".join(warnings_of(analysis))
    for part in (
        "Only ",
        "30 of 60 answers (50.0 %) have no label",
        "draws have no log-probability",
    ):
        assert part in text
    [unlabelled] = analyse([replace(RUN, answer_sets=tuple(a.with_label(None) for a in RUN.answer_sets))], curves=False)
    assert "No answer has a label" in "\n".join(warnings_of(unlabelled))
    assert "no document has a label" in build_report([unlabelled.run], options=QUICK)


@pytest.mark.slow
def test_a_method_whose_model_is_missing_is_left_out_with_the_reason(tmp_path: Path) -> None:
    lost = {"with_question": False, "backend": "nli", "model": str(tmp_path / "nowhere"), "alpha": 1.0}
    run = replace(RUN, settings={"filters": {**EXACT, "nli": lost}})
    [analysis] = analyse([run], curves=False)
    assert list(analysis.scores) == ["exact"]
    assert "Left out is the clustering nli" in Page(build_report([run], options=QUICK)).text


def test_the_curves_end_at_the_table() -> None:
    [analysis] = analyse([RUN], sizes=[1, 6])
    last = [series.y[-1] for series in analysis.sweeps["exact"].series]
    assert last == [analysis.estimates["exact"][name].value for name in ("se", "radflag", "vase")]
    assert usual_sizes(0) == []


@pytest.mark.slow
def test_runs_stand_side_by_side_with_paired_differences() -> None:
    runs = [finished_run(60, seed=i, model=f"model {i}") for i in range(3)]
    page = build_report(runs, options=QUICK)
    assert "Side by side" in page
    analyses = analyse(runs, curves=False)
    pairs = compare_between(analyses, {0: "a", 1: "b", 2: "c"})
    assert [(p.a, p.b) for p in pairs[::4]] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert [p.number for p in pairs[:4]] == ["hallucination rate", "exact, SE", "exact, RadFlag", "exact, VASE"]
    rate = hallucination_rate(analyses[0].run.answer_sets)
    assert rate is not None
    assert pairs[0].comparison.a == rate.value
    assert pairs[1].comparison.a == analyses[0].estimates["exact"]["se"].value
    assert f"{pairs[0].comparison.difference:+.3f}" in page
    raw = [pair.comparison.p_value for pair in pairs]
    known = [p for p in raw if p is not None]
    assert len(known) > 1
    adjusted = [pair.p_adjusted for pair in pairs if pair.p_adjusted is not None]
    for p, one in zip(known, adjusted, strict=True):
        assert p <= one <= min(1, len(known) * p) + 0.005
    assert sum(known) < sum(adjusted)
    assert f"for all {len(pairs)} comparisons" in page


def test_judges_are_compared_on_what_both_decided() -> None:
    labels = [1, 1, 0, 0, 1, None]
    votes = [1, 0, 0, 0, 1, 1]
    sets = tuple(a.with_label(label) for a, label in zip(RUN.answer_sets, labels, strict=False))
    verdicts = {
        a.id: {"judge": "panel 1", "votes": [{"judge": "llm", "version": "2", "label": vote}]}
        for a, vote in zip(sets, votes, strict=True)
    }
    [pair] = agreements(labels_by_judge(replace(RUN, answer_sets=sets, verdicts=verdicts)))
    assert (pair.a, pair.b, pair.n, pair.share) == ("panel 1", "llm 2", 5, 0.8)
    assert pair.kappa.value == pytest.approx((0.8 - 0.48) / (1 - 0.48))


def test_the_same_answers_with_other_labels_are_another_judge() -> None:
    other = replace(RUN, verdicts={a.id: {"judge": "llm 1"} for a in RUN.answer_sets})
    changed = replace(
        other,
        answer_sets=(
            replace(RUN.answer_sets[0], baseline=replace(RUN.answer_sets[0].baseline, text="new")),
            *other.answer_sets[1:],
        ),
    )
    judges = labels_by_judge(RUN, [changed, replace(changed, model="another")])
    assert list(judges) == ["rule 1", "llm 1"]
    assert len(judges["llm 1"]) == 59
    assert agreements(judges)[0].share == 1


DEMO = "package://hedge_tasks.tasks/hedge_demo/data"
COLUMNS = {"id": "question_id", "question": "question", "images": ["image"]}


def demo_run(n: int = 6) -> Run:
    rows = load_split(DEMO, None, "demo-test").select(range(n)).remove_columns("image")
    sets = [
        replace(a, id=row["question_id"], question=row["question"])
        for a, row in zip(finished_run(n).answer_sets, rows, strict=True)
    ]
    return replace(RUN, task="hedge_demo", answer_sets=tuple(sets), settings={"filters": EXACT, "documents": COLUMNS})


@pytest.mark.slow
def test_questions_get_their_pictures_from_the_data_set() -> None:
    from PIL import Image, ImageChops

    run = demo_run()
    found = thumbnails(run)
    assert found.note == ""
    row = load_split(DEMO, None, "demo-test")[3]
    [place] = found.of_document[row["question_id"]]
    import base64

    shown = Image.open(io.BytesIO(base64.b64decode(found.addresses[place].partition(",")[2])))
    original = row["image"].convert("RGB").resize(shown.size)
    histogram = ImageChops.difference(shown, original).convert("L").histogram()
    assert sum(level * count for level, count in enumerate(histogram)) / sum(histogram) < 8


def test_a_question_that_the_data_set_asks_otherwise_gets_no_picture() -> None:
    run = demo_run()
    other = replace(run, answer_sets=(replace(run.answer_sets[0], question="something else?"), *run.answer_sets[1:]))
    found = thumbnails(other)
    assert run.answer_sets[0].id not in found.of_document
    assert found.note == "1 of 6 questions are shown without a picture."


def test_pictures_that_cannot_be_had_are_left_out_with_the_reason() -> None:
    assert "not installed" in thumbnails(replace(demo_run(), task="somebody_elses")).note
    gone = thumbnails(demo_run(), {"dataset_path": "package://hedge_tasks.tasks/nowhere", "test_split": "test"})
    assert "Pictures are left out" in gone.note
    columns = {"filters": EXACT, "documents": {**COLUMNS, "images": ["x-ray"]}}
    assert "no column 'x-ray'" in thumbnails(replace(demo_run(), settings=columns)).note


@pytest.mark.slow
def test_pictures_stay_within_their_budget() -> None:
    from PIL import Image

    noise = io.BytesIO()
    Image.effect_noise((1200, 900), 80).save(noise, "PNG")
    full, small = shrink(noise.getvalue(), 1_000_000), shrink(noise.getvalue(), 6_000)
    assert full is not None
    assert small is not None
    assert len(small) <= 6_000 < len(full)
    assert shrink(noise.getvalue(), 100) is None
    assert shrink(b"GIF89a broken", 10_000) is None
    everything = thumbnails(demo_run(), budget=9_000)
    assert sum(map(len, everything.addresses)) <= 9_000


def results_file(folder: Path, name: str = "20260101_000000_results.json", **changes: Any) -> Path:
    content = {
        "results": {
            "hedge_x": {"alias": "x", "se_auroc,exact": 0.75, "se_auroc_stderr,exact": 0.05},
            "pope": {
                "alias": "pope",
                "pope_f1_score,none": 0.875,
                "pope_f1_score_stderr,none": "N/A",
                "odd,none": "undefined: one class",
            },
        },
        "higher_is_better": {"pope": {"pope_f1_score": True}},
        "n-samples": {"pope": {"original": 9000, "effective": 500}},
        "configs": {"hedge_x": {}, "pope": {}},
        "model_source": "hedge_hf",
        "total_evaluation_time_seconds": "12.5",
        **changes,
    }
    path = folder / name
    path.write_text(json.dumps(content), "utf-8")
    return path


@pytest.mark.slow
def test_other_benchmarks_of_the_same_evaluation_stand_beside_ours(tmp_path: Path) -> None:
    results_file(tmp_path)
    save_run(RUN, tmp_path / "hedge_runs")
    rows = {row.metric: row for row in newest_rows(result_files([tmp_path]))}
    pope = rows["pope_f1_score"]
    assert (pope.value, pope.stderr, pope.n, pope.higher_is_better) == (0.875, None, 500, True)
    assert rows["se_auroc"].stderr == 0.05
    assert rows["odd"].value == "undefined: one class"
    text = Page(build_report([RUN], result_files([tmp_path]), QUICK)).text
    assert "0.8750" in text
    assert "12 s" in text


def test_of_several_result_files_the_newest_counts_for_each_task(tmp_path: Path) -> None:
    results_file(tmp_path)
    results_file(tmp_path, "20260102_000000_results.json", results={"pope": {"pope_f1_score,none": 0.5}})
    (tmp_path / "20260103_000000_results.json").write_text("{broken", "utf-8")
    values = {(row.task, row.metric): row.value for row in newest_rows(result_files([tmp_path, tmp_path]))}
    assert values["pope", "pope_f1_score"] == 0.5
    assert values["hedge_x", "se_auroc"] == 0.75
    assert read_results(tmp_path / "20260103_000000_results.json") is None


def test_settings_are_laid_out_as_lines() -> None:
    assert flat_settings({"a": {"b": [1, 2], "c": None}, "d": True}) == [
        ("a.b", "1, 2"),
        ("a.c", "none"),
        ("d", "True"),
    ]


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_ticks_are_within_bounds_and_few(low: float, width: float) -> None:
    high = low + width
    if high > low:
        ticks = nice_ticks(low, high)
        room = 1e-8 * max(abs(low), abs(high), width)
        assert len(ticks) <= 7
        assert all(low - room - width * 1e-6 <= tick <= high + room + width * 1e-6 for tick in ticks)


def test_marks_of_a_chart_are_inside_its_axes() -> None:
    [analysis] = analyse([RUN], sizes=[1, 3, 6])
    drawn = picture(analysis.sweeps["exact"])
    for series in drawn.series:
        for mark in series.marks:
            assert drawn.left <= mark.x <= drawn.right
            assert drawn.top <= mark.y <= drawn.bottom


@pytest.mark.slow
def test_hedge_report_writes_one_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [str(save_run(finished_run(20, seed=i, model=f"m{i}"), tmp_path / f"in{i}")) for i in range(2)]
    out = tmp_path / "report.html"
    assert main(["report", *runs, "--out", str(out), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["bytes"] == out.stat().st_size
    assert len(said["runs"]) == 2
    assert main(["report", str(tmp_path / "nowhere"), "--out", str(out)]) == 2
    assert main(["report", *runs, "--out", str(out), "--questions", "-1"]) == 2


def test_a_report_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no runs"):
        build_report([])


def embedding_run(threshold: str | float) -> Run:
    settings = {"backend": "embed", "threshold": threshold, "with_question": False, "alpha": 1.0}
    return finished_run(120, filters={"embed": settings, **EXACT})


@pytest.mark.slow
@pytest.mark.parametrize("threshold", ["oracle", "cross-fit", "tuned", 0.9])
def test_only_a_threshold_tuned_on_the_reported_documents_gets_the_oracle_warning(threshold: str | float) -> None:
    [analysis] = analyse([embedding_run(threshold)], curves=False)
    said = [text for text in warnings_of(analysis) if "tuned on the reported documents" in text]
    expected = "The threshold of embed was tuned on the reported documents, which is optimistic."
    assert said == ([expected] if threshold == "oracle" else [])


@pytest.mark.slow
def test_the_row_within_kinds_has_the_numbers_within() -> None:
    [analysis] = analyse([finished_run(200)], curves=False)
    page = Page(build_report([analysis.run], options=QUICK)).text
    [(pooled, inside)] = re.findall(r"all, pooled(.*?)all, within question types(.*?)(?:open|closed)", page, re.DOTALL)
    for score in ("se", "radflag", "vase"):
        estimates = (analysis.estimates["exact"][score], analysis.within["exact"][score])
        texts = [f"{e.value:.3f}[{e.interval[0]:.3f}, {e.interval[1]:.3f}]" for e in estimates]
        assert texts[0] != texts[1]
        assert texts[0] in pooled
        assert texts[1] in inside
