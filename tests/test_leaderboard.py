"""Submissions: valid as written, refused when a digit is changed; the site that is made of them."""

from __future__ import annotations

import copy
import json
import math
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from finished_runs import HOSTILE, board_rules, finished_run, hostile_run, on_board

from hedge_tasks.cli import main
from hedge_tasks.data.answers import Answer, AnswerSet, Served
from hedge_tasks.detectors.pipeline import USUAL, Scores, detection_auroc, score_clustered
from hedge_tasks.detectors.registry import names
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.leaderboard import (
    build_site,
    check,
    make_submission,
    problems,
    read_entries,
    read_submission,
    submission_schema,
    write_submission,
)
from hedge_tasks.leaderboard.columns import number_of
from hedge_tasks.leaderboard.comparison import LabelledScores, Pairs, auroc_pairs
from hedge_tasks.leaderboard.schema import schema_fault
from hedge_tasks.leaderboard.submission import (
    aggregates_of,
    digest_of,
    follows_from_numbers,
    stored_scores,
    texts_licence,
)
from hedge_tasks.measures.comparisons import compare_two_runs
from hedge_tasks.runs.run_files import Run, save_run
from hedge_tasks.runs.scorers import scorer_of

RUN = finished_run(30)
SUBMISSION = make_submission(RUN)
WITH_TEXTS = make_submission(RUN, texts=True)


def with_digest(submission: dict[str, Any]) -> dict[str, Any]:
    return {**submission, "digest": digest_of(submission)}


def numbers(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Places of all numbers in a JSON value."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from numbers(inner, (*path, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from numbers(inner, (*path, i))
    elif isinstance(value, (int, float)):
        yield path


def changed_in_one_digit(number: float, chance: random.Random) -> float:
    """The number with one of its digits raised by one (9 becomes 0), as it is written in the file."""
    text = json.dumps(number)
    digits = [m.start() for m in re.finditer(r"\d(?!\d*$)|\d", text.partition("e")[0])]
    # A change in the last digits of a full-precision score is below what a machine may round differently.
    at = chance.choice(digits[:8])
    new = str((int(text[at]) + 1) % 10)
    return float(text[:at] + new + text[at + 1 :]) if "." in text else int(text[:at] + new + text[at + 1 :])


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    changed = copy.deepcopy(value)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = new
    return changed


def look_up(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def test_a_submission_is_valid_and_survives_the_disk(tmp_path: Path) -> None:
    write_submission(tmp_path / "s.json", SUBMISSION)
    assert read_submission(tmp_path / "s.json") == SUBMISSION
    assert problems(SUBMISSION) == []


def test_its_aggregates_are_those_of_the_pipeline() -> None:
    scores = scorer_of(RUN, None).score(RUN.answer_sets)
    for name in USUAL:
        stated = SUBMISSION["clusterings"]["exact"]["aggregates"][name]
        expected = detection_auroc(scores, name)
        assert stated["auroc"] == pytest.approx(expected.value, abs=1e-6)
        assert (stated["low"], stated["high"]) == pytest.approx(expected.interval, abs=1e-6)  # the report's
    assert SUBMISSION["summary"]["hallucinated"] == sum(a.label or 0 for a in RUN.answer_sets)


def test_texts_are_left_out_unless_asked_for() -> None:
    assert "question 3?" not in json.dumps(SUBMISSION)
    assert problems(WITH_TEXTS) == []
    assert WITH_TEXTS["documents"][3]["texts"]["question"] == "question 3?"


def _statements() -> list[tuple[Any, ...]]:
    """Places of all numbers that the submission states about the model: aggregates, and scores and labels of documents.

    The answers' log-probabilities and cluster ids are what the scores are computed from; a change there shows in the
    scores or makes no difference to anything.
    """
    some_documents = {**WITH_TEXTS, "documents": WITH_TEXTS["documents"][:6]}
    stated = ("summary", "aggregates", "scores", "label", "n_clean")
    return [path for path in numbers(some_documents) if set(stated) & {*path} and path[0] != "settings"]


@pytest.mark.slow
def test_a_submission_tampered_in_one_digit_is_refused_even_with_a_new_digest() -> None:
    chance = random.Random(0)
    places = _statements()
    assert len(places) > 90
    for path in places:
        old = look_up(WITH_TEXTS, path)
        new = changed_in_one_digit(old, chance)
        assert problems(with_digest(put(WITH_TEXTS, path, new))), f"{path}: {old} became {new}"


def test_cluster_ids_and_log_probabilities_that_give_other_scores_are_refused() -> None:
    document = SUBMISSION["documents"][0]
    clusters = document["clusterings"]["exact"]["clusters"]
    split = [max(clusters) + 1, *clusters[1:]]
    for path, new in [
        (("documents", 0, "clusterings", "exact", "clusters"), split),
        (("documents", 0, "logprobs", 0), document["logprobs"][0] - 0.001),
    ]:
        assert any("scores." in text for text in problems(with_digest(put(SUBMISSION, path, new))))


@pytest.mark.slow
def test_any_change_breaks_the_digest() -> None:
    for path, new in [
        (("settings", "filters", "exact", "alpha"), 2.0),
        (("entry", "name"), "better"),
        (("versions", "python"), "3"),
        (("documents", 0, "question_type"), "other"),
    ]:
        assert any("digest" in text for text in problems(put(SUBMISSION, path, new)))
        look_up(SUBMISSION, path)


def test_scores_are_trusted_only_where_that_is_asked_for() -> None:
    path = ("documents", 0, "clusterings", "exact", "scores", "discrete_se")
    tampered = put(SUBMISSION, path, look_up(SUBMISSION, path) + 1e-6)
    assert any("discrete_se: stated" in text for text in problems(with_digest(tampered)))


def test_impossible_answers_and_missing_log_probabilities_are_submitted() -> None:
    first, second, *others = RUN.answer_sets
    impossible = replace(first, baseline=replace(first.baseline, mean_logprob=-math.inf))
    without = replace(second, clean=tuple(replace(a, mean_logprob=None) for a in second.clean))
    submission = make_submission(replace(RUN, answer_sets=(impossible, without, *others)))
    assert submission["documents"][0]["logprobs"][0] == "-inf"
    assert problems(submission) == []


def test_one_class_of_labels_is_submitted_as_undefined() -> None:
    supported = tuple(answer_set.with_label(0) for answer_set in RUN.answer_sets)
    submission = make_submission(replace(RUN, answer_sets=supported))
    aggregate = submission["clusterings"]["exact"]["aggregates"]["se"]
    assert aggregate["auroc"] is None
    assert "no document is labelled hallucinated" in aggregate["reason"]
    assert problems(submission) == []


def _tuned() -> dict[str, Any]:
    settings = {"backend": "embed", "threshold": "tuned", "with_question": False, "alpha": 1.0}
    settings["tuning"] = {"per_class": 2}
    return make_submission(finished_run(120, filters={"embed": settings}))


@pytest.mark.slow
def test_documents_that_a_threshold_was_tuned_on_are_not_counted() -> None:
    submission = _tuned()
    assert problems(submission) == []
    held_out = sum(d["clusterings"]["embed"].get("held_out", False) for d in submission["documents"])
    assert 20 <= held_out <= 30  # a fifth of the documents, in whole groups
    aggregates = submission["clusterings"]["embed"]["aggregates"]
    assert {a["n"] for a in aggregates.values()} == {120 - held_out}


@pytest.mark.slow
def test_nobody_chooses_which_documents_are_not_counted() -> None:
    submission = _tuned()
    i = next(i for i, d in enumerate(submission["documents"]) if "held_out" not in d["clusterings"]["embed"])
    more = put(submission, ("documents", i, "clusterings", "embed", "held_out"), True)
    scores = stored_scores(more, "embed")
    more["clusterings"]["embed"]["aggregates"] = aggregates_of(scores)
    assert any("differ from the settings' split" in problem for problem in problems(with_digest(more)))
    fixed = put(more, ("clusterings", "embed", "settings", "threshold"), 0.9)
    assert any("is not tuned on held-out documents" in problem for problem in problems(with_digest(fixed)))
    none = copy.deepcopy(submission)
    for document in none["documents"]:
        document["clusterings"]["embed"].pop("held_out", None)
    none["clusterings"]["embed"]["aggregates"] = aggregates_of(stored_scores(none, "embed"))
    assert any("differ from the settings' split" in problem for problem in problems(with_digest(none)))


@pytest.mark.slow
def test_the_schema_check_agrees_with_the_jsonschema_library() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(submission_schema())
    chance = random.Random(1)
    some = {**SUBMISSION, "documents": SUBMISSION["documents"][:2]}
    assert schema_fault(some) is None
    replacements = [
        None,
        True,
        -1,
        0,
        1,
        1.5,
        "",
        "x",
        "-inf",
        "y" * 3000,
        [],
        [1],
        {},
        {"a": 1},
        "https://x",
        "http://x",
    ]
    for _ in range(400):
        path = chance.choice(list(_every_place(some)))
        changed = put(some, path, chance.choice(replacements))
        assert (schema_fault(changed) is None) == validator.is_valid(changed), (path, look_up(changed, path))
        renamed = copy.deepcopy(some)
        place = look_up(renamed, path[:-1])
        if isinstance(place, dict):  # another name, or none: detectors' and metrics' names have a form
            value = place.pop(path[-1])
            place |= chance.choice([{}, {"Other name": value}, {"other": value}])
            assert (schema_fault(renamed) is None) == validator.is_valid(renamed), path


def _every_place(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from _every_place(inner, (*path, key))


def test_the_schema_is_valid_json_schema() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator.check_schema(submission_schema())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda s: s["entry"].update(url="javascript:alert(1)"), "entry.url"),
        (lambda s: s["entry"].update(url="https://x' onclick='y"), "entry.url"),
        (lambda s: s.update(hedge_submission=1), "hedge_submission"),
        (lambda s: s.update(extra=1), "unknown key 'extra'"),
        (lambda s: s.pop("summary"), "summary: missing"),
        (lambda s: s["documents"][1].update(label=2), "documents[1].label"),
        (lambda s: s["documents"][1].update(id="q0"), "the id 'q0' occurs 2 times"),
        (lambda s: s["documents"][1]["logprobs"].pop(), "cluster"),
        (lambda s: s["documents"][1]["clusterings"].pop("exact"), "not the clusterings"),
        (lambda s: s["documents"][1].update(n_clean=99), "logprobs"),
        (lambda s: s["clusterings"]["exact"]["aggregates"].pop("se"), "aggregates.se: is missing"),
        (
            lambda s: s["clusterings"]["exact"]["aggregates"].update(
                best=s["clusterings"]["exact"]["aggregates"]["se"]
            ),
            "no such number",
        ),
    ],
)
def test_a_wrong_submission_is_refused_with_the_place(change: Any, said: str) -> None:
    submission = copy.deepcopy(SUBMISSION)
    change(submission)
    assert any(said in text for text in problems(with_digest(submission)))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1]",
        '{"a": NaN}',
        '{"a": 1, "a": 2}',
        "[" * 100_000,
        '{"a":' * 60 + "1" + "}" * 60,
        '{"a": "\xff"}',
    ],
)
def test_a_file_that_is_no_submission_is_one_clear_error(text: str, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(text, "latin-1")
    with pytest.raises(DataError, match=r"s\.json"):
        read_submission(tmp_path / "s.json")


def test_a_submission_needs_answers_methods_and_an_honest_address() -> None:
    with pytest.raises(DataError, match="no answers"):
        make_submission(replace(RUN, answer_sets=()))
    with pytest.raises(ConfigError, match="no filters are recorded"):
        make_submission(replace(RUN, settings={}))
    with pytest.raises(ConfigError, match=r"entry\.url"):
        make_submission(RUN, url="javascript:alert(1)")


def scores_of(seed: int, n: int = 300) -> list[Scores]:
    run = finished_run(n, seed=seed)
    return scorer_of(run, None).score(run.answer_sets)


def compared(*entries: list[Scores]) -> Pairs:
    """By SE, as the site compares entries."""
    columns = []
    for scores in entries:
        ids = np.array([number_of(s.id) for s in scores])
        order = np.argsort(ids)
        groups = np.array([number_of(s.group or s.id) for s in scores])
        values, labels = np.array([s["se"] for s in scores]), np.array([s.label == 1 for s in scores])
        grouped = all(s.group is not None for s in scores)
        columns.append(LabelledScores(ids[order], values[order], labels[order], groups[order], grouped))
    return auroc_pairs(columns)


@pytest.mark.parametrize("grouped", [True, False])
def test_entries_are_compared_as_runs_are(grouped: bool) -> None:
    runs = [scores_of(1, 100), scores_of(2, 80), scores_of(3, 100)]
    if not grouped:
        runs = [[replace(s, group=None) for s in scores] for scores in runs]
    found = compared(*runs)
    expected = compare_two_runs(runs[0], runs[2], "se")
    assert expected is not None
    assert expected.interval is not None
    assert found.difference[0, 2] == pytest.approx(expected.difference)
    assert found.stderr[0, 2] == pytest.approx(expected.stderr)
    assert found.p_values[0, 2] == pytest.approx(expected.p_value)
    assert expected.interval[1] == pytest.approx(found.difference[0, 2] + found.half_widths[0, 2])
    assert found.n.tolist() == [[100, 80, 100], [80, 80, 80], [100, 80, 100]]
    assert np.array_equal(found.difference, -found.difference.T)
    again = compared(*(random.Random(0).sample(scores, len(scores)) for scores in runs))
    assert again.stderr == pytest.approx(found.stderr, nan_ok=True)


@pytest.mark.slow
def test_a_document_that_one_entry_has_not_labelled_varies_the_other_alone() -> None:
    a, b = scores_of(1, 300), scores_of(2, 300)[:240]
    found = compared(a, b)
    values = [detection_auroc(scores, "se").value or 0.0 for scores in (a, b)]
    assert found.difference[0, 1] == pytest.approx(values[0] - values[1])
    left = []
    for group in dict.fromkeys(s.group for s in a):
        one, other = ([s for s in scores if s.group != group] for scores in (a, b))
        left.append((detection_auroc(one, "se").value or 0.0) - (detection_auroc(other, "se").value or 0.0))
    n = len(left)
    jackknife = math.sqrt((n - 1) / n * sum((value - sum(left) / n) ** 2 for value in left))
    assert found.stderr[0, 1] == pytest.approx(jackknife, rel=0.03)
    assert found.n[0, 1] == 240


def test_entries_with_nothing_in_common_are_independent_and_equal_ones_not_compared() -> None:
    a = scores_of(1, 60)
    strangers = [replace(s, id=f"other {s.id}", group=f"other {s.group}") for s in scores_of(2, 60)]
    found = compared(a, strangers, a)
    alone = [detection_auroc(scores, "se").stderr or 0.0 for scores in (a, strangers)]
    assert found.stderr[0, 1] == pytest.approx(math.hypot(*alone), rel=0.05)
    assert found.n[0, 1] == 0
    assert found.difference[0, 2] == 0
    assert np.isnan(found.p_values[0, 2])


def submissions(folder: Path, n: int, **about: Any) -> Path:
    folder.mkdir(exist_ok=True)
    for i in range(n):
        run = on_board(finished_run(24, seed=i, task=f"hedge_{i % 2}", model=f"model {i}"))
        write_submission(folder / f"s{i}.json", make_submission(run, **about))
    return folder


@pytest.mark.slow
def test_the_site_has_a_page_for_each_task_and_entry(tmp_path: Path) -> None:
    folder = submissions(tmp_path / "in", 4, url="https://example.org/x")
    first = read_submission(folder / "s0.json")
    built = read_entries(folder, **board_rules(first))
    files = build_site(built, tmp_path / "site")
    kinds = {p.name.split("-")[0].removesuffix(".html") for p in files}
    assert kinds == {"entry", "index", "models", "task", "detectors"}
    assert sum(p.name.startswith("entry-") for p in files) == 4
    pages = {p.name: p.read_text("utf-8") for p in files}
    for name, text in pages.items():
        links = {link.split("#")[0] or name for link in re.findall(r'href="([^"]+)"', text)}
        assert {link for link in links if not link.startswith("https://example.org/")} <= set(pages), name
    board = next(text for name, text in pages.items() if name.startswith("task-") and "-auroc-exact-se-" in name)
    value = built.entries[0].content["clusterings"]["exact"]["aggregates"]["se"]["auroc"]
    assert f"{value:.3f}" in board
    assert (">self-reported</span> <small>labels" in board) is (f">{first['entry']['task']}</h1>" in board)
    other = read_entries(folder, editions=lambda task: None).entries
    assert all("no manifest of this task is known" in entry.findings.set_aside[0] for entry in other)
    assert all("no edition of this task is known" in entry.findings.set_aside[1] for entry in other)


@pytest.mark.slow
def test_tampered_damaged_and_repeated_submissions_are_not_shown(tmp_path: Path) -> None:
    folder = submissions(tmp_path / "in", 3)
    tampered = read_submission(folder / "s0.json")
    tampered["clusterings"]["exact"]["aggregates"]["se"]["auroc"] = 0.999
    write_submission(folder / "s0.json", with_digest(tampered))
    (folder / "s1.json").write_text("{", "utf-8")
    write_submission(folder / "s9.json", read_submission(folder / "s2.json"))
    built = read_entries(folder)
    assert [entry.name for entry in built.entries] == ["model 2"]
    reasons = {path.name: reason for path, reason in built.refused.items()}
    assert reasons["s9.json"] == "the same file as s2.json"
    assert "auroc: stated 0.999" in reasons["s0.json"]
    assert "not valid JSON" in reasons["s1.json"]


def test_a_build_computes_the_scores_again(tmp_path: Path) -> None:
    folder = submissions(tmp_path / "in", 1)
    tampered = read_submission(folder / "s0.json")
    for document in tampered["documents"]:
        document["clusterings"]["exact"]["scores"]["se"] += 1.0  # the order, and so every AUROC, stays
    write_submission(folder / "s0.json", with_digest(tampered))
    assert read_entries(folder).refused


@pytest.mark.slow
def test_a_submission_carries_every_detector_of_the_run_with_its_price() -> None:
    scorer = scorer_of(RUN, None).with_detectors(["se_sum", "clean_noisy_divergence"])
    submission = make_submission(RUN, scorers={"exact": scorer})
    of = submission["clusterings"]["exact"]
    assert of["detectors"]["se_sum"]["draws"] == 6
    assert of["detectors"]["clean_noisy_divergence"]["draws"] == 12
    scores = scorer.score(RUN.answer_sets)
    expected = detection_auroc(scores, "se_sum").value
    assert of["aggregates"]["se_sum"]["auroc"] == pytest.approx(expected, abs=1e-6)
    findings = check(submission)
    assert findings.problems == ()
    # Without texts no draw is held against its log-probability.
    unverified = {name for name, part in findings.detectors["exact"].items() if not part.verified}
    assert {name for name, part in findings.detectors["exact"].items() if part.verified} == {
        *("radflag", "discrete_se", "n_clusters", "clean_noisy_divergence")
    }
    assert {"lexical", "se", "se_sum", "vase"} <= unverified


def test_the_choice_of_a_threshold_is_in_the_error_of_a_submission_as_in_the_runs() -> None:
    scorer = scorer_of(RUN, None)
    errors = {"se": 0.1}
    scores = [replace(s, choice_errors=errors) for s in scorer.score(RUN.answer_sets)]
    plain, wider = (aggregates_of(of)["se"]["stderr"] for of in (scorer.score(RUN.answer_sets), scores))
    assert wider == pytest.approx(math.hypot(plain, 0.1), abs=1e-5)


def test_detectors_that_are_said_to_need_no_texts_need_none() -> None:
    wanted = [name for name in names() if follows_from_numbers(name)]
    assert len(wanted) >= 15
    assert "lexical" not in wanted
    some = [a.with_clusters(range(len(a.answers))) for a in RUN.answer_sets[:3]]
    blank = [
        replace(
            a,
            question=None,
            baseline=replace(a.baseline, text=""),
            clean=tuple(replace(b, text="") for b in a.clean),
            noisy=tuple(replace(b, text="") for b in a.noisy),
        )
        for a in some
    ]
    for with_texts, without in zip(some, blank, strict=True):
        found, bare = (dict(score_clustered(a, detectors=wanted)) for a in (with_texts, without))
        assert found == bare
        assert None not in found.values()


@pytest.mark.slow
def test_a_run_that_is_unreliable_is_shown_and_not_ranked(tmp_path: Path) -> None:
    same = tuple(replace(a, clean=tuple(replace(b, text="a") for b in a.clean)) for a in RUN.answer_sets)
    submission = make_submission(replace(RUN, answer_sets=same), texts=True)
    assert "decode greedily" in submission["health"]["unreliable"]
    findings = check(submission)
    assert findings.problems == ()
    assert not findings.ranked
    quiet = put(put(submission, ("health", "unreliable"), None), ("health", "findings"), [])
    assert any("health.unreliable: stated null" in text for text in problems(with_digest(quiet)))
    (tmp_path / "in").mkdir()
    write_submission(tmp_path / "in" / "s.json", submission)
    files = build_site(read_entries(tmp_path / "in"), tmp_path / "site")
    pages = {path.name[:5]: path.read_text("utf-8") for path in files}
    assert "decode greedily" in pages["task-"].partition("Not ranked")[2]
    assert "decode greedily" in pages["index"].partition("Not ranked")[2]
    assert "decode greedily" in pages["entry"]


def test_texts_are_in_it_where_the_tasks_licence_allows_it() -> None:
    assert texts_licence("hedge_vqarad_minimal_label") == "CC0-1.0"
    assert texts_licence("hedge_kvasirvqa_x1") is None
    assert texts_licence("hedge_medhallmark_irg") is None
    assert "texts" in make_submission(replace(RUN, task="hedge_demo"))["documents"][0]
    assert "texts" not in make_submission(replace(RUN, task="hedge_demo"), texts=False)["documents"][0]


@pytest.mark.slow
def test_hostile_names_neither_break_pages_nor_choose_where_they_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    monkeypatch.setattr("hedge_tasks.leaderboard.validation.name_faults", lambda submission: ())
    submission = make_submission(
        hostile_run(), name="../../etc/passwd " + HOSTILE["script"], note=HOSTILE["link"][:500]
    )
    write_submission(tmp_path / "in" / "s.json", submission)
    built = read_entries(tmp_path / "in")
    assert built.entries
    files = build_site(built, tmp_path / "site")
    assert {path.parent for path in files} == {tmp_path / "site"}
    for path in files:
        text = path.read_text("utf-8")
        assert "<script>window.hacked" not in text
        assert "<img" not in text
        assert not re.search(r'href="(?!https://|[\w.-]+\.html[#"]|#)', text)
        assert "\x00" not in text


@pytest.mark.slow
def test_hedge_leaderboard_submits_validates_and_builds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = save_run(RUN, tmp_path)
    folder = tmp_path / "in"
    folder.mkdir()
    out = folder / "s.json"
    assert main(["leaderboard", "submit", str(run), "--out", str(out), "--name", "ours"]) == 0
    assert main(["leaderboard", "validate", str(out)]) == 0
    assert main(["leaderboard", "build", str(folder), "--out", str(tmp_path / "site")]) == 0
    capsys.readouterr()
    out.write_text(out.read_text("utf-8").replace('"ours"', '"0urs"'), "utf-8")
    assert main(["leaderboard", "validate", str(out), "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert not said[str(out)]["valid"]
    assert main(["leaderboard", "build", str(folder), "--out", str(tmp_path / "site")]) == 1
    assert main(["leaderboard", "build", str(tmp_path / "nowhere")]) == 2
    out.write_text(out.read_text("utf-8").replace('"0urs"', '"ours"'), "utf-8")
    (folder / "t.json").write_bytes(out.read_bytes())
    built = ["leaderboard", "build", str(folder), "--out", str(tmp_path / "site")]
    assert main(built) == 0  # two that were merged side by side keep no site from being built
    assert "a copy" in (said := capsys.readouterr().err)
    assert "the same file as s.json" in said
    assert main([*built, "--strict"]) == 1
    capsys.readouterr()
    assert main(["leaderboard", "build", str(tmp_path / "nowhere")]) == 2
    assert main(["leaderboard", "schema"]) == 0
    assert "no such folder" in capsys.readouterr().err


# --- settings of the sampling -----------------------------------------------------------------------------------------


def sampled_run(**changes: Any) -> Run:
    """A run whose draws come as their log-probabilities say, through a server that tells who it is."""
    chance = np.random.default_rng(3)
    served, sets = Served("m", None, "fp_1"), []
    for i in range(40):
        p = chance.dirichlet(np.full(5, 0.6))
        drawn = [Answer(f"word {k}", math.log(p[k]), 1, "stop", end_logprob=0.0) for k in chance.choice(5, 11, p=p)]
        answers = [replace(answer, **{"served": served, **changes}) for answer in drawn]
        sets.append(AnswerSet(f"q{i}", answers[0], tuple(answers[1:]), (), "where?", "word 0", label=i % 2))
    decoding = {"asked": "pure", "temperature": 1.0, "sent": {"top_k": -1}}
    verdicts = {a.id: {"judge": "rule 1", "reason": ""} for a in sets}
    settings = {**RUN.settings, "sampled": {"decoding": decoding, "probe": {"varied": True, "seeds_repeat": True}}}
    return replace(RUN, answer_sets=tuple(sets), verdicts=verdicts, settings=settings)


def stated_settings(submission: dict[str, Any]) -> dict[str, str]:
    return {one["setting"]: one["state"] for one in submission["health"]["settings"]}


@pytest.mark.slow
@pytest.mark.parametrize("texts", [True, False])
def test_a_submission_states_the_verdict_on_each_setting(texts: bool) -> None:
    submission = make_submission(sampled_run(), texts=texts)
    assert problems(submission) == []
    stated = stated_settings(submission)
    assert (stated["temperature"], stated["one model"], stated["seed"]) == (
        *("not contradicted", "not contradicted"),
        "verified",
    )
    assert submission["documents"][0]["answered_by"] == [[11, {"model": "m", "system_fingerprint": "fp_1"}]]
    assert submission["documents"][0]["end_logprobs"] == [0.0] * 11
    [temperature] = [one for one in submission["health"]["settings"] if one["setting"] == "temperature"]
    assert 0 < temperature["power"]["T 0.7"] <= 1


@pytest.mark.slow
@pytest.mark.parametrize("texts", [True, False])
def test_who_answered_is_not_verifiable_where_it_is_dropped(texts: bool) -> None:
    submission = copy.deepcopy(make_submission(sampled_run(), texts=texts))
    for document in submission["documents"]:
        del document["answered_by"]
    [problem] = problems(with_digest(submission))
    assert problem == "health.settings: one model: stated 'not contradicted', computed 'not verifiable'"
    assert stated_settings(make_submission(sampled_run(served=None), texts=texts))["one model"] == "not verifiable"


@pytest.mark.slow
def test_without_end_tokens_the_test_is_one_sided_and_says_so() -> None:
    submission = make_submission(sampled_run(end_logprob=None), texts=True)
    assert "end_logprobs" not in submission["documents"][0]
    [temperature] = [one for one in submission["health"]["settings"] if one["setting"] == "temperature"]
    assert "end tokens are not known" in temperature["evidence"]
    assert problems(submission) == []


@pytest.mark.slow
def test_a_contradiction_that_is_hidden_is_found() -> None:
    run = sampled_run(mean_logprob=-4.0)
    submission = copy.deepcopy(make_submission(run, texts=True))
    assert stated_settings(submission)["temperature"] == "contradicted"
    for one in submission["health"]["settings"]:
        one["state"] = "not contradicted"
    submission["health"]["unreliable"] = None
    found = problems(with_digest(submission))
    assert any(problem.startswith("health.unreliable: stated null") for problem in found)
    assert "health.settings: temperature: stated 'not contradicted', computed 'contradicted'" in found


@pytest.mark.slow
def test_a_contradicted_setting_marks_the_cells_of_its_entry(tmp_path: Path) -> None:
    run = on_board(sampled_run(served=None))
    first, *rest = run.answer_sets
    moved = replace(first, clean=tuple(replace(a, served=Served("m", None, "fp_2")) for a in first.clean))
    told = tuple(replace(a, clean=tuple(replace(b, served=Served("m", None, "fp_1")) for b in a.clean)) for a in rest)
    submission = make_submission(replace(run, answer_sets=(moved, *told)), texts=True)
    assert stated_settings(submission)["one model"] == "contradicted"
    (tmp_path / "in").mkdir()
    write_submission(tmp_path / "in" / "s.json", submission)
    build_site(read_entries(tmp_path / "in"), tmp_path / "site")
    pages = {path.name: path.read_text("utf-8") for path in (tmp_path / "site").glob("*.html")}
    marked = [name for name, text in pages.items() if "contradicted: <span" in text]
    assert any(name.startswith("task-") for name in marked)
    [entry] = read_entries(tmp_path / "in", **board_rules(submission)).entries
    assert "the draws contradict the one model" in entry.findings.set_aside[0]
    assert any(name.startswith("task-") for name in marked)
    assert any("Sampled as asked for?" in text for text in pages.values())
