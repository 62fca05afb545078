"""The report: its numbers are the pipeline's, and nothing in a run can break the page."""

from __future__ import annotations

import base64
import io
import json
import math
import re
from collections import Counter
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from tempfile import NamedTemporaryFile
from threading import Thread
from types import SimpleNamespace
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from finished_runs import EXACT, HOSTILE, finished_run, hostile_run, suite_run
from hypothesis import given
from hypothesis import strategies as st
from printed import json_of

from hedge_tasks.cli import main
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.data.splits import load_split
from hedge_tasks.detectors.units import detection_auroc
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.measures.audited import rate_by
from hedge_tasks.measures.blind import LENGTH
from hedge_tasks.measures.run_measures import numbers_of_run
from hedge_tasks.numbers import PERCENT, Number
from hedge_tasks.report import ReportOptions, build_report, result_files
from hedge_tasks.report.agreement import agreements, labels_by_judge
from hedge_tasks.report.analysis import Analysis, analyse
from hedge_tasks.report.explorer import explorer_data
from hedge_tasks.report.first_screen import wrong_answers
from hedge_tasks.report.lead import axis_ticks, detector_rows, tiles
from hedge_tasks.report.page import SCRIPTS
from hedge_tasks.report.pictures import NONE, Thumbnails, shrink, thumbnails
from hedge_tasks.report.results import read_results, results_table
from hedge_tasks.report.serve import ReportServer
from hedge_tasks.report.texts import clean, script_json
from hedge_tasks.runs.run_files import Run, save_run
from hedge_tasks.runs.scorers import scorer_of

QUICK = ReportOptions(pictures=False, curves=False)
RUN = finished_run(60)


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


@pytest.fixture(scope="module")
def page() -> str:
    """The whole page of a run, with its figures."""
    settings = {**RUN.settings, "sampling": {"n": 6, "seed": [3, 4]}, "outcome": {"failed draws": 2}}
    return build_report([replace(RUN, settings=settings)], options=ReportOptions(pictures=False))


def test_every_shown_number_is_the_pipelines(page: str) -> None:
    """Finding, figure and table of detectors, question types and rate say what scoring, curves and headline say."""
    [analysis] = analyse([RUN])
    text = unescape(page)
    assert analysis.finding.text.replace(" %", "\N{NO-BREAK SPACE}%") in text
    scores = scorer_of(RUN, None).score(RUN.answer_sets)
    figure, table = page.split('class="forest"')[1].split("<figcaption")[0], page.split("sortable metrics")[1]
    for name in ("se", "radflag", "vase"):
        estimate = detection_auroc(scores, name)
        assert estimate.interval
        low, high = estimate.interval
        assert f"{estimate.value:.3f} <small>[{low:.3f}, {high:.3f}]</small>" in figure
        assert f"<td>{estimate.value:.3f} [{low:.3f}, {high:.3f}]</td>" in table
        inside = analysis.within["exact"][name]
        assert f"{inside.value:.3f}" in page.split("all, within question types")[1].split("</tr>")[0]
    rate = rate_by(RUN)
    assert rate.value is not None
    assert f"<dd>{PERCENT(rate.value)}<small>" in page
    assert text.count('<img src="data:image/svg+xml;base64,') == 3


def test_the_figure_places_values_and_intervals_in_per_cent_of_its_axis() -> None:
    [analysis] = analyse([RUN])
    rows = detector_rows(analysis)
    values = [row.bars[0].estimate.value or 0.0 for row in rows if not row.note]
    assert values == sorted(values, reverse=True)
    lowest = min(bar.estimate.low or 1.0 for row in rows for bar in row.bars)
    start = min(0.4, int(10 * lowest) / 10)
    for bar in (bar for row in rows for bar in row.bars):
        expected = ((v or 0.0) - start for v in (bar.estimate.low, bar.estimate.value, bar.estimate.high))
        assert (bar.low, bar.at, bar.high) == pytest.approx([100 * v / (1 - start) for v in expected], abs=0.006)
    assert {text: at for at, text in axis_ticks(rows)}["chance"] == pytest.approx(
        100 * (0.5 - start) / (1 - start), abs=0.01
    )


def test_a_page_loads_nothing_and_runs_only_its_own_scripts(page: str) -> None:
    parsed = Page(page)
    for tag, attributes in parsed.elements:
        assert tag not in ("link", "iframe", "object", "embed", "base", "form")
        assert not any(name.startswith("on") for name in attributes)
        for name in ("src", "href", "action", "xlink:href"):
            assert (attributes.get(name) or "#").startswith(("#", "data:image/svg+xml;base64,"))
    policy = next(a["content"] or "" for tag, a in parsed.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; script-src 'sha256-")


def test_hostile_texts_end_neither_their_place_nor_the_page() -> None:
    run = hostile_run()
    run = replace(run, answer_sets=run.answer_sets[: len(HOSTILE)])  # megabytes take their time in the run's health
    text = build_report([run], options=QUICK)
    parsed = Page(text)
    scripts = [attributes for tag, attributes in parsed.elements if tag == "script"]
    assert len([a for a in scripts if "type" not in a]) == len(SCRIPTS)
    assert all(tag != "img" for tag, _ in parsed.elements)
    assert not any("javascript:" in (a.get("href") or "") for _, a in parsed.elements)
    assert not set(text) & {"\x00", "\x1b", "\ud800"}
    assert "\u2028" not in "".join(parsed.scripts)
    assert len(text) < 2_000_000
    [data] = [json.loads(script) for script in parsed.scripts if script.startswith('{"task"')]
    questions = data["questions"]
    assert len(questions) == len(run.answer_sets)
    assert questions[0]["texts"][questions[0]["answers"][0]] == HOSTILE["script"]
    long = next(t for q in questions for t in q["texts"] if t.startswith("palaver"))
    assert long.endswith(f"… ({len(HOSTILE['long']) - 2000:,} more characters)")


@given(st.text(min_size=18, max_size=22) | st.text())
def test_cleaned_texts_have_no_control_characters_and_fit(text: str) -> None:
    cleaned = clean(text, 20)
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]", cleaned)
    assert len(cleaned.partition(" … (")[0]) <= 20
    assert cleaned.endswith(" more characters)") == (len(text) > 20)
    assert clean(cleaned) == cleaned


def test_stacks_of_accents_are_cut_and_words_with_accents_are_not() -> None:
    assert len(clean("Z" + "\u0335" * 400)) == 5
    assert clean("Việt Nam, e\u0301te\u0301, नमस्ते, שָׁלוֹם") == "Việt Nam, e\u0301te\u0301, नमस्ते, שָׁלוֹם"


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
    [analysis] = analyse([RUN])
    data = explorer_data(analysis, NONE)
    for question, answers, scores in zip(data["questions"], RUN.answer_sets, analysis.scores["exact"], strict=True):
        assert [question["texts"][i] for i in question["answers"]] == answers.texts
        assert question["clusters"]["exact"] == list(scores.cluster_ids)
        assert question["scores"]["exact"]["vase"] == pytest.approx(scores["vase"], abs=1e-5)
        assert (question["label"], question["n_clean"]) == (answers.label, len(answers.clean))
        assert (question["reason"], question["uniform"]) == ("equal: the same words", False)
    assert explorer_data(analysis, NONE, most=10)["left_out"] == 50
    json.dumps(data, allow_nan=False)


def check_clusters(clusters: list[dict[str, Any]], answers: AnswerSet) -> None:
    """The largest clusters of equal answers, and the others together."""
    sizes = Counter(answer.text for answer in answers.clean)
    rest = {"text": f"{len(sizes) - 4} more", "size": sum(n for _, n in sizes.most_common()[4:]), "own": False}
    expected = [{"text": text, "size": n, "own": text == answers.baseline.text} for text, n in sizes.most_common(4)] + [
        rest
    ] * (len(sizes) > 4)
    shares = [cluster.pop("share") for cluster in clusters]
    assert clusters == expected
    assert shares == pytest.approx([100 * cluster["size"] / 6 for cluster in clusters], abs=0.05)


@pytest.mark.parametrize("pictured", [False, True])
def test_the_first_screen_has_what_the_best_detector_points_at_and_what_it_misses(pictured: bool) -> None:
    [analysis] = analyse([RUN])
    # The length of an answer leads, and is no score that the page has.
    se = SimpleNamespace(detector="se", clustering="exact", name="SE")
    lead: Any = SimpleNamespace(sampling=se, lead=SimpleNamespace(detector=LENGTH))
    values = {s.id: round(s["se"] or 0.0, 5) for s in analysis.scores["exact"]}
    wrong = sorted((values[a.id], i) for i, a in enumerate(RUN.answer_sets) if a.label)
    ids = [RUN.answer_sets[i].id for _, i in wrong]
    pictures = Thumbnails(("small",), {ids[4]: (0,)}) if pictured else NONE
    shown = wrong_answers(explorer_data(analysis, pictures), lead)
    assert shown is not None
    worst = [(value, id) for (value, _), id in zip(wrong, ids, strict=True)]
    assert [(entry["value"], entry["id"]) for entry in shown["worst"]] == worst[: len(shown["worst"])]
    example, expected = shown["example"], RUN.answer_sets[wrong[4 if pictured else -1][1]]
    assert (example["id"], example["answer"], example["reference"]) == (expected.id, expected.baseline.text, "a")
    assert (example["value"], example["picture"]) == (values[expected.id], "small" if pictured else "")
    check_clusters(example["clusters"], expected)
    assert wrong_answers({**explorer_data(analysis, NONE), "questions": []}, lead) is None


def test_the_first_screen_is_about_the_detector_of_the_finding() -> None:
    msp = SimpleNamespace(detector="msp", clustering="", name="the log-probability")
    finding: Any = SimpleNamespace(sampling=SimpleNamespace(detector="se", clustering="exact", name="SE"), lead=msp)
    shown = wrong_answers(explorer_data(analyse([RUN])[0], NONE), finding) or {}
    assert shown["detector"] == "the log-probability"
    assert shown["example"]["clusters"]


def test_the_longer_the_answers_the_shorter_they_are_cut() -> None:
    sets = tuple(
        replace(a, clean=tuple(replace(c, text=c.text * 3000 + str(i)) for i, c in enumerate(a.clean)))
        for a in RUN.answer_sets
    )
    [analysis] = analyse([replace(RUN, answer_sets=sets)])
    texts = [t for q in explorer_data(analysis, NONE, budget=50_000)["questions"] for t in q["texts"]]
    assert 25_000 < sum(len(text.partition(" … (")[0]) for text in texts) <= 50_000


def test_the_votes_behind_a_verdict_and_a_judges_reply_are_there() -> None:
    vote = {"judge": "llm", "label": 1, "reason": "says left", "raw": "Verdict: <b>wrong</b>", "category": "place"}
    verdict = {"judge": "panel 1", "reason": "2 of 3", "raw": "1\n0", "votes": [vote, "no vote", {"label": "x"}]}
    [analysis] = analyse([replace(finished_run(3), verdicts={"q1": verdict})])
    question = explorer_data(analysis, NONE)["questions"][1]
    assert (question["judge"], question["raw"]) == ("panel 1", "1\n0")
    assert question["votes"] == [vote, {"label": None}]


def test_the_suite_leads_and_a_perfect_model_is_told_that_there_is_nothing_to_find() -> None:
    run = suite_run(20, wrong=0.0)
    text = build_report([run], options=QUICK)
    assert re.findall(r'<div class="tile"><dt>([^<]*)</dt>', text) == ["F1 ↑", "accuracy ↑", "hallucination rate ↓"]
    assert "None of 20 answers are wrong, so detectors have nothing to tell apart." in text
    assert text.split("sortable suite")[1].split("</table>")[0].count("<tr>") == 1 + 6
    assert "All of 20 answers are wrong" in build_report([suite_run(20, wrong=1.0)], options=QUICK)


def test_a_run_with_one_draw_a_document_has_its_numbers_all_the_same() -> None:
    run = suite_run(20)
    single = replace(run, answer_sets=tuple(replace(a, clean=(), noisy=()) for a in run.answer_sets))
    [greedy] = analyse([replace(RUN, answer_sets=tuple(replace(a, clean=(), noisy=()) for a in RUN.answer_sets))])
    assert "baseline_nll" in greedy.shown
    assert all(map(greedy.has_number, greedy.shown))
    analysis = Analysis(single, {}, {}, {}, {}, suite=numbers_of_run(single))
    assert [tile["name"] for tile in tiles(analysis)] == ["F1 ↑", "accuracy ↑", "hallucination rate ↓"]
    assert detector_rows(analysis) == []


def test_a_clustering_whose_model_is_missing_is_left_out_with_the_reason(tmp_path: Path) -> None:
    lost = {"with_question": False, "backend": "nli", "model": str(tmp_path / "nowhere"), "alpha": 1.0}
    run = replace(RUN, settings={"filters": {**EXACT, "nli": lost}})
    [analysis] = analyse([run])
    assert list(analysis.scores) == ["exact"]
    assert "Left out is the clustering nli" in Page(build_report([run], options=QUICK)).text


def test_judges_are_compared_on_what_both_decided() -> None:
    labels, votes = [1, 1, 0, 0, 1, None], [1, 0, 0, 0, 1, 1]
    sets = tuple(a.with_label(label) for a, label in zip(RUN.answer_sets, labels, strict=False))
    verdicts = {
        a.id: {"judge": "panel 1", "votes": [{"judge": "llm", "version": "2", "label": vote}]}
        for a, vote in zip(sets, votes, strict=True)
    }
    table = agreements(labels_by_judge(replace(RUN, answer_sets=sets, verdicts=verdicts)))
    assert table is not None
    [row] = table.rows
    assert [row[key] for key in ("judge", "second", "both", "agree")] == ["panel 1", "llm 2", 5, 0.8]
    assert row["kappa"].value == pytest.approx((0.8 - 0.48) / (1 - 0.48))  # type: ignore[union-attr]


def test_the_same_answers_with_other_labels_are_another_judge() -> None:
    first = RUN.answer_sets[0]
    other = replace(RUN, verdicts={a.id: {"judge": "llm 1"} for a in RUN.answer_sets})
    changed = replace(
        other, answer_sets=(replace(first, baseline=replace(first.baseline, text="new")), *other.answer_sets[1:])
    )
    judges = labels_by_judge(RUN, [changed, replace(changed, model="another")])
    assert {name: len(labels) for name, labels in judges.items()} == {"rule 1": 60, "llm 1": 59}


DEMO = "package://hedge_tasks.tasks/hedge_demo/data"
COLUMNS = {"id": "question_id", "question": "question", "images": ["image"]}


def demo_run(n: int = 6) -> Run:
    """A run of as many questions of the demo's data set."""
    rows = load_split(DEMO, None, "demo-test").select(range(n)).remove_columns("image")
    sets = [
        replace(a, id=row["question_id"], question=row["question"])
        for a, row in zip(finished_run(n).answer_sets, rows, strict=True)
    ]
    return replace(RUN, task="hedge_demo", answer_sets=tuple(sets), settings={"filters": EXACT, "documents": COLUMNS})


def test_questions_get_their_pictures_from_the_data_set() -> None:
    from PIL import Image, ImageChops

    run = demo_run()
    small = thumbnails(run)
    assert small.note == ""
    row = load_split(DEMO, None, "demo-test")[3]
    [place] = small.of_document[row["question_id"]]
    shown = Image.open(io.BytesIO(base64.b64decode(small.addresses[place].partition(",")[2])))
    histogram = ImageChops.difference(shown, row["image"].convert("RGB").resize(shown.size)).convert("L").histogram()
    assert sum(level * count for level, count in enumerate(histogram)) / sum(histogram) < 8
    other = replace(run, answer_sets=(replace(run.answer_sets[0], question="something else?"), *run.answer_sets[1:]))
    assert run.answer_sets[0].id not in thumbnails(other).of_document
    assert thumbnails(other).note == "1 of 6 questions are shown without a picture."


def test_pictures_that_cannot_be_had_are_left_out_with_the_reason() -> None:
    assert "not installed" in thumbnails(replace(demo_run(), task="somebody_elses")).note
    gone = thumbnails(demo_run(), {"dataset_path": "package://hedge_tasks.tasks/nowhere", "test_split": "test"})
    assert "Pictures are left out" in gone.note
    columns = {"filters": EXACT, "documents": {**COLUMNS, "images": ["x-ray"]}}
    assert "no column 'x-ray'" in thumbnails(replace(demo_run(), settings=columns)).note


def test_pictures_stay_within_their_budget() -> None:
    from PIL import Image

    noise = io.BytesIO()
    Image.effect_noise((1200, 900), 80).save(noise, "PNG")
    full, small = (shrink(noise.getvalue(), most) for most in (1_000_000, 6_000))
    assert len(small or "") <= 6_000 < len(full or "")
    assert Image.open(io.BytesIO(base64.b64decode((full or "").partition(",")[2]))).size == (320, 240)
    assert shrink(noise.getvalue(), len(small or "")) == small
    assert shrink(noise.getvalue(), 100) is None
    assert shrink(b"GIF89a broken", 10_000) is None
    assert sum(map(len, thumbnails(demo_run(), budget=9_000).addresses)) <= 9_000


KEYS = ("f1,none", "f1_stderr,none", "f1", "acc,exact,1", "acc_stderr,exact,1", "em,")
VALUES = st.sampled_from([0.5, 3, True, "0.25", "x", "", None, [], [1], "nan", "N/A"])


@given(st.dictionaries(st.sampled_from(KEYS), VALUES))
def test_a_row_of_a_result_file_is_a_cell_that_says_something(metrics: dict[str, Any]) -> None:
    def number(value: Any) -> float | None:
        try:
            found = float(value) if not isinstance(value, (bool, list)) else math.inf
        except (TypeError, ValueError):
            return None
        return found if math.isfinite(found) else None

    with NamedTemporaryFile("w", suffix="results.json") as file:
        json.dump({"results": {"t": metrics}, "model_source": "m", "n-samples": {"t": {"effective": "5"}}}, file)
        file.flush()
        read = read_results(Path(file.name))
    assert read is not None
    cells = {f"{row['metric']},{row['filter']}": row["value"] for row in read.rows}
    assert cells.keys() == {
        k for k, v in metrics.items() if "," in k and "_stderr" not in k and v not in ("", None, [])
    }
    for key, cell in cells.items():
        error = number(metrics.get(key.replace(",", "_stderr,", 1)))
        value = number(metrics[key])
        assert cell == (str(metrics[key])[:200] if value is None else Number(value, error))
    assert all((row["model"], row["documents"]) == ("m", None) for row in read.rows)


def test_other_benchmarks_of_the_same_evaluation_stand_beside_ours(tmp_path: Path) -> None:
    first = {"hedge_x": {"alias": "x", "se_auroc,exact": 0.75}, "pope": {"f1,none": 0.875, "odd,none": "undefined"}}
    about = {
        "n-samples": {"pope": {"effective": 500}},
        "configs": {"hedge_x": {}},
        "total_evaluation_time_seconds": "12.5",
    }
    contents = [json.dumps({"results": of, **about}) for of in (first, {"pope": {"f1,none": 0.5}})]
    for day, content in enumerate([contents[0], contents[1], "{broken"]):
        (tmp_path / f"2026010{day}_results.json").write_text(content, "utf-8")
    old, new = result_files([tmp_path, tmp_path])
    table = results_table([old, new])
    assert table is not None
    rows = [(row["task"], row["metric"], row["value"].value, row["documents"]) for row in table.rows]  # type: ignore[union-attr]
    assert rows == [("hedge_x", "se_auroc", 0.75, None), ("pope", "f1", 0.5, 500)]
    text = Page(build_report([RUN], [old, new], QUICK)).text
    assert "0.7500" in text
    assert "12 s" in text


def test_hedge_report_writes_one_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [str(save_run(finished_run(20, seed=i, model=f"m{i}"), tmp_path / f"in{i}")) for i in range(2)]
    out = tmp_path / "report.html"
    facts = json_of(capsys, ["report", *runs, "--no-curves", "--out", str(out), "--json"])
    assert facts["bytes"] == out.stat().st_size
    assert len(facts["runs"]) == 2
    assert main(["report", str(tmp_path / "nowhere"), "--out", str(out)]) == 2
    assert main(["report", *runs, "--out", str(out), "--questions", "-1"]) == 2
    assert main(["report", *runs, "--serve"]) == 2
    with pytest.raises(DataError, match="no runs"):
        build_report([])


def test_a_folder_is_served_to_this_machine_and_made_again_for_a_new_run(tmp_path: Path) -> None:
    save_run(RUN, tmp_path)
    made: list[str] = []

    def build() -> str:
        made.append(f"page {len(made)}")
        if len(made) == 3:
            raise DataError("it cannot be read")
        return made[-1]

    def ask(path: str = "", **head: str) -> tuple[int, str]:
        try:
            with urlopen(Request(server.url + path, headers=head), timeout=10) as reply:
                assert (reply.headers["Content-Type"], reply.headers["X-Content-Type-Options"]) == (
                    "text/html; charset=utf-8", "nosniff",
                )  # fmt: skip
                return reply.status, reply.read().decode()
        except HTTPError as error:
            return error.code, error.read().decode()

    with ReportServer(tmp_path, build, 0) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        assert [ask(), ask()] == [(200, "page 0")] * 2
        save_run(finished_run(20, model="another"), tmp_path)
        assert ask() == (200, "page 1")
        assert ask("../etc/passwd")[0] == ask("", Host="elsewhere.example")[0] == 404
        save_run(finished_run(20, model="a third"), tmp_path)
        assert ask() == (500, "it cannot be read")
        with pytest.raises(ConfigError, match="cannot listen"):
            ReportServer(tmp_path, build, server.server_address[1])
        server.shutdown()
