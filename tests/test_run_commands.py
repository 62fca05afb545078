"""`hedge rescore`, `show`, `sweep`: numbers from a finished run, without the model."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from finished_runs import finished_run
from sampling_process import SeededModel, requests

from hedge_tasks.cli import main
from hedge_tasks.cli.choices import printable
from hedge_tasks.cli.sweep import parse_sizes
from hedge_tasks.clustering import build_backend
from hedge_tasks.detectors.pipeline import SCORE_NAMES, cluster_answer_sets, score_clustered
from hedge_tasks.errors import ConfigError
from hedge_tasks.judging import build_judge
from hedge_tasks.judging.rule import RuleJudge
from hedge_tasks.runs.from_store import run_from_store
from hedge_tasks.runs.relabel import relabel
from hedge_tasks.runs.run_files import Run, load_run, save_run
from hedge_tasks.sampling import Answer, AnswerSet
from hedge_tasks.sampling.hook import generate_samples
from hedge_tasks.statistics import auroc

N = 6


def answer_sets(seed: int = 0, documents: int = 40) -> tuple[AnswerSet, ...]:
    """Answers that vary more where the label is 1."""
    dice = random.Random(seed)

    def answer(wide: int) -> Answer:
        return Answer(dice.choice("abcd"[: 2 + 2 * wide]), -dice.random())

    sets = []
    for i in range(documents):
        label = dice.randrange(2)
        wide = label if dice.random() < 0.7 else 1 - label
        answers = [tuple(answer(wide) for _ in range(N)) for _ in range(2)]
        sets.append(AnswerSet(f"q{i}", answer(wide), *answers, "what?", "a", label, f"image{i // 2}"))
    return tuple(sets)


FILTERS = {"exact": {"with_question": False, "backend": "exact", "alpha": 1.0}}


def save(folder: Path, seed: int = 0, **fields: Any) -> Run:
    run = Run("hedge_demo", f"m{seed}", answer_sets(seed), settings={"filters": FILTERS, **fields}, created="2026")
    save_run(run, folder / "hedge_runs")
    return run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    save(tmp_path)
    return tmp_path


@pytest.fixture
def hedge(capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """A command with --json: what it printed."""

    def call(*arguments: object) -> Any:
        assert main([*map(str, arguments), "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return call


def reference(sets: tuple[AnswerSet, ...], name: str, alpha: float = 1.0) -> float:
    clustered = cluster_answer_sets(sets, build_backend("exact"))
    scores = [score_clustered(answers, alpha=alpha) for answers in clustered]
    return auroc([s[name] for s in scores], [s.label for s in scores])


def test_rescore_gives_the_numbers_of_the_runs_own_filters(run: Path, hedge: Callable[..., Any]) -> None:
    filters = hedge("rescore", run)["filters"]
    assert list(filters) == ["exact"]
    for name in SCORE_NAMES:
        assert filters["exact"]["auroc"][name]["value"] == pytest.approx(reference(answer_sets(), name))


def test_rescore_with_another_alpha_changes_vase_alone(run: Path, hedge: Callable[..., Any], tmp_path: Path) -> None:
    out = tmp_path / "scores.jsonl"
    changed = hedge("rescore", run, "--alpha", "3", "--out", out)["filters"]["exact"]
    assert changed["auroc"]["vase"]["value"] == pytest.approx(reference(answer_sets(), "vase", 3.0))
    assert reference(answer_sets(), "vase", 3.0) != reference(answer_sets(), "vase")
    assert changed["auroc"]["se"]["value"] == pytest.approx(reference(answer_sets(), "se"))
    assert len(out.read_text().splitlines()) == 40


def test_rescore_of_a_store_labels_the_answers(tmp_path: Path, hedge: Callable[..., Any]) -> None:
    generate_samples(SeededModel(0), requests(tmp_path / "hedge_answers", 2))  # type: ignore[arg-type]
    facts = hedge("rescore", tmp_path, "--clustering", "exact")
    assert (facts["task"], facts["filters"]["exact"]["n"]) == ("task", 12)


def test_a_run_from_a_store_names_its_judge_with_the_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generate_samples(SeededModel(0), requests(tmp_path / "hedge_answers", 2))  # type: ignore[arg-type]
    first = run_from_store(tmp_path, None, "rule")
    edition = RuleJudge.version
    assert {(v["judge"], v["version"]) for v in first.verdicts.values()} == {(f"rule {edition}", edition)}
    assert first.settings["documents"]["judge"] == build_judge("rule").settings()
    assert len(first.verdicts) == len(first.answer_sets) == 12
    again, _ = relabel(first, build_judge("rule"))
    assert {(v["judge"], v["version"]) for v in again.verdicts.values()} == {(f"rule {edition}", edition)}
    monkeypatch.setattr(RuleJudge, "version", "of tomorrow")
    later = run_from_store(tmp_path, None, "rule")
    assert {v["judge"] for v in later.verdicts.values()} == {"rule of tomorrow"}


@pytest.mark.slow
def test_sweep_gives_at_every_n_what_a_run_of_that_size_gives(
    run: Path, hedge: Callable[..., Any], tmp_path: Path
) -> None:
    out, plot = tmp_path / "sweep.csv", tmp_path / "sweep.svg"
    points = hedge("sweep", run, "--n", "1,2,...,6", "--out", out, "--plot", plot)["points"]
    assert [(p["n"], p["score"]) for p in points] == [(n, name) for n in range(1, N + 1) for name in SCORE_NAMES]
    for point in points:
        n = point["n"]
        cut = tuple(
            AnswerSet(**{**{f: getattr(a, f) for f in a.__slots__}, "clean": a.clean[:n], "noisy": a.noisy[:n]})
            for a in answer_sets()
        )
        if (n, point["score"]) == (1, "se"):
            assert point["estimate"]["reason"] == "every document has the same score"
        else:
            assert point["estimate"]["value"] == pytest.approx(reference(cut, point["score"]))
    rows = list(csv.DictReader(out.open()))
    told = [p["estimate"]["value"] for p in points if p["estimate"]["value"] is not None]
    assert [float(row["auroc"]) for row in rows if row["auroc"]] == [pytest.approx(value) for value in told]
    assert len(told) == len(points) - 1
    assert all(float(row["low"]) <= float(row["auroc"]) <= float(row["high"]) for row in rows if row["low"])
    assert plot.read_text().startswith("<?xml")


@pytest.mark.slow
def test_sweep_of_many_detectors_has_a_row_each(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sweep = ["sweep", str(run), "--by", "draws", "--n", "2,4", "--detectors"]
    assert main([*sweep, "se,radflag,vase"]) == 0
    header = capsys.readouterr().out.splitlines()[3]
    rarer = ["rarer", "class"]
    assert header.split() == ["at", "most", "draws", "se", *rarer, "draws", "radflag", *rarer, "draws", "vase", *rarer]
    assert main([*sweep, "se,radflag,vase,msp,lexical,kle", "--json"]) == 0
    [vase] = [p for p in json.loads(capsys.readouterr().out)["points"] if (p["score"], p["n"]) == ("vase", 4)]
    assert main([*sweep, "se,radflag,vase,msp,lexical,kle"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(len(line) for line in lines if not line.startswith(("undefined: ", "An interval ", "Labels: "))) < 100
    [told, _] = [line.split() for line in lines if line.startswith("vase")]  # its row, and the share of its draws
    labels = [answers.label for answers in answer_sets()]
    fewest = min(labels.count(0), labels.count(1))
    assert told[4:] == [f"{vase['estimate']['value']:.4f}", "(4;", f"{fewest})"]
    assert any(line.startswith("undefined: ") and "kle" in line for line in lines)


def test_sweep_of_one_answer_has_no_entropy_to_tell_by(run: Path, hedge: Callable[..., Any]) -> None:
    [se] = [p for p in hedge("sweep", run, "--n", "1")["points"] if p["score"] == "se"]
    # Every entropy is 0. HEDGE's Table 3 has the 0.5 of its definition in the first column.
    assert (se["estimate"]["value"], se["estimate"]["reason"]) == (None, "every document has the same score")


@pytest.mark.slow
def test_a_figure_is_the_same_file_every_time(run: Path, tmp_path: Path) -> None:
    for name in ("one.svg", "two.svg"):
        assert main(["sweep", str(run), "--plot", str(tmp_path / name)]) == 0
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("1,2,...,6", [1, 2, 3, 4, 5, 6]),
        ("1,2,…,4,8", [1, 2, 3, 4, 8]),
        ("3", [3]),
        ("2-4, 9", [2, 3, 4, 9]),
        ("5,5", [5]),
    ],
)
def test_sizes_are_read(text: str, sizes: list[int]) -> None:
    assert parse_sizes(text) == sizes


@pytest.mark.parametrize("text", ["", "a", "1,,2", "1-", "-3", "1.5", "...", "1-999999999999", "1,...", "3-1"])
def test_sizes_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--n"):
        parse_sizes(text)


def test_show_marks_where_every_answer_comes_from(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(run), "--id", "q3"]) == 0
    printed = capsys.readouterr().out
    answers = answer_sets()[3]
    for mark, texts in (("baseline", [answers.baseline]), ("clean", answers.clean), ("noisy", answers.noisy)):
        found = sorted(line.split()[-1] for line in printed.splitlines() if line.split()[1:2] == [mark])
        assert found == sorted(answer.text for answer in texts)


def test_show_says_how_it_was_decoded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    finished = finished_run()
    decoding = {"asked": "pure", "temperature": 1.0, "sent": {"top_p": 1.0, "top_k": 0}}
    first, *rest = finished.answer_sets
    cut = replace(first, baseline=Answer("a long sto", finish="length"))
    sampled = {**finished.settings, "sampled": {"decoding": decoding}}
    save_run(replace(finished, answer_sets=(cut, *rest), settings=sampled), tmp_path)
    assert main(["show", str(tmp_path), "--id", first.id]) == 0
    printed = capsys.readouterr().out
    # Its log-probabilities are made up: in many documents they add up to more than 1.
    assert "pure, T 1.0; contradicted: temperature, top_k, top_p, min_p, penalties, " in printed
    assert "length  a long sto\n" in printed


def test_show_as_json_has_clusters_and_scores(run: Path, hedge: Callable[..., Any]) -> None:
    facts = hedge("show", run, "--id", "q3", "--clustering", "exact")
    [clustered] = cluster_answer_sets([answer_sets()[3]], build_backend("exact"))
    assert facts["cluster_ids"] == list(clustered.cluster_ids or ())
    assert facts["scores"] == json.loads(json.dumps(dict(score_clustered(clustered))))


def test_what_a_terminal_would_obey_is_escaped() -> None:
    assert printable("a\x1b[31m\u202eb\nc\x00é") == "a\\x1b[31m\\u202eb\\nc\\x00é"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rescore", "nowhere"], "no such file or folder"),
        (["rescore", "RUN", "--clustering", "exakt"], "did you mean 'exact'"),
        (["rescore", "RUN", "--clustering", "exact:rule=strict"], "unknown option of clustering backend 'exact'"),
        (["rescore", "RUN", "--task", "hedge_dem"], "did you mean 'hedge_demo'"),
        (["sweep", "RUN", "--n", "7"], "there are 1 to 6 clean answers"),
        (["sweep", "RUN", "--plot", "x.bmp"], "must end with .png, .svg, .pdf"),
        (["sweep", "RUN", "--plot", "nowhere/x.png"], "cannot write nowhere/x.png"),
        (["show", "RUN", "--id", "q99"], "unknown question"),
    ],
)
def test_wrong_arguments_give_one_line_and_exit_code_2(
    arguments: list[str], message: str, run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(run)
    assert main([str(run) if a == "RUN" else a for a in arguments]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert (captured.err.count("\n"), captured.out) == (1, "")


def test_two_runs_in_a_folder_need_a_choice(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(run, seed=1)
    assert main(["rescore", str(run)]) == 2
    assert "holds 2 runs, choose one by its task or file" in capsys.readouterr().err
    assert load_run(sorted(run.rglob("run-*.jsonl"))[0]).task == "hedge_demo"


@pytest.mark.slow
def test_tune_shows_every_way_of_choosing(tmp_path: Path, hedge: Callable[..., Any]) -> None:
    save(tmp_path, filters={"embed": {"with_question": False, "backend": "embed", "threshold": 0.9, "alpha": 1.0}})
    out = tmp_path / "curve.csv"
    facts = hedge("tune", tmp_path, "--search", "exact", "--low", "0.2", "--out", out)
    assert set(facts["ways"]) == {"tuned", "cross-fit", "label-free", "oracle"}
    assert facts["ways"]["oracle"]["auroc"]["value"] == pytest.approx(facts["best"]["auroc"])
    gap = facts["ways"]["oracle"]["auroc"]["value"] - facts["ways"]["cross-fit"]["auroc"]["value"]
    assert facts["overstatement"] == pytest.approx(gap)
    assert facts["ways"]["tuned"]["auroc"]["n"] == 40 - facts["ways"]["tuned"]["held_out"]
    assert max(auroc for _, _, auroc in facts["curve"]) == facts["best"]["auroc"]
    assert len(out.read_text().splitlines()) == 1 + len(facts["curve"])


def test_tune_needs_embeddings(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", str(run)]) == 2
    assert "only the clustering 'embed' has a threshold to tune" in capsys.readouterr().err


@pytest.mark.slow
def test_rescore_with_both_kinds_of_evidence(run: Path, hedge: Callable[..., Any]) -> None:
    tiny = "package://hedge_tasks.models.tiny/nli"
    facts = hedge("rescore", run, "--clustering", f"hybrid:nli_model={tiny},threshold=0.8")["filters"]["hybrid"]
    assert (facts["clustering"]["nli_model"], facts["clustering"]["threshold"]) == (tiny, 0.8)
    assert facts["auroc"]["se"]["value"] is not None
