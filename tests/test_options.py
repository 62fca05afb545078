"""Runs out of option weights: what is read, what is drawn, and that a run of it is one like any other."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from making import written
from printed import json_of
from scipy.stats import chisquare

from hedge_tasks.cli import main
from hedge_tasks.clustering.exact import ExactClustering
from hedge_tasks.data.option_files import OptionQuestion, read_options
from hedge_tasks.detectors.units import detection_auroc
from hedge_tasks.errors import ConfigError
from hedge_tasks.measures.coverage import Coverage, parts_of
from hedge_tasks.runs.from_options import run_from_options
from hedge_tasks.runs.run_files import load_run, load_runs
from hedge_tasks.runs.scorers import scorer_of
from hedge_tasks.sampling.option_draws import OptionSampling, draw_options, option_logprobs

LOGITS = {"A": 1.0, "B": 0.5, "C": -2.0, "D": -math.inf}


def question(**changes) -> OptionQuestion:
    return replace(
        OptionQuestion("q1", "A", LOGITS, "Which?", dict.fromkeys(LOGITS, "a cat"), "kind", "image"), **changes
    )


# --- draws -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [1.0, 0.5, 2.0])
def test_draws_follow_the_distribution_and_know_their_log_probability(temperature: float) -> None:
    n = 6000
    answers = draw_options(question(), OptionSampling(n=n, temperature=temperature))
    counts = Counter(answer.text for answer in answers.clean)
    hot = np.exp(np.array([1.0, 0.5, -2.0]) / temperature)
    assert "D" not in counts
    assert chisquare([counts[label] for label in "ABC"], n * hot / hot.sum()).pvalue > 0.001
    plain = np.exp([1.0, 0.5, -2.0])
    for answer in answers.answers:
        expected = math.log(plain["ABC".index(answer.text)] / plain.sum())  # at temperature 1, whatever was drawn at
        assert answer.mean_logprob == pytest.approx(expected, abs=1e-12)
        assert answer.n_tokens == 1


def test_the_baseline_is_cool_and_its_option_decides_the_label() -> None:
    sure = [draw_options(question(id=str(i)), OptionSampling(n=1, baseline_temperature=0.0)) for i in range(20)]
    assert {(a.baseline.text, a.label) for a in sure} == {("A", 0)}
    assert {draw_options(question(answer="B"), OptionSampling(n=1, baseline_temperature=0.0)).label} == {1}
    # At T = 0.1 a difference of half a nat is five: e^-5 to one.
    cool = [draw_options(question(id=str(i)), OptionSampling(n=1)) for i in range(2000)]
    assert 2 <= sum(a.label or 0 for a in cool) <= 35
    tied = question(logits={"A": 3.0, "B": 3.0}, options={})
    assert draw_options(tied, OptionSampling(n=1, baseline_temperature=0.0)).baseline.text == "A"


# --- files -----------------------------------------------------------------------------------------------------------


def test_every_shape_says_the_same(tmp_path: Path) -> None:
    weights = {"A": 1.0, "B": 0.5, "C": -2.0}
    about = {"id": "q1", "answer": "B", "question": "Which?", "question_type": "kind", "group": "image"}
    options = {"A": "a cat", "B": "a dog", "C": "an eel"}
    log_sum = math.log(sum(math.exp(value) for value in weights.values()))
    normal = {label: value - log_sum for label, value in weights.items()}
    for shown, logits in ((options, weights), (options, normal), ([*options.values()], [1.0, 0.5, -2])):
        path = written(tmp_path / "options.jsonl", {**about, "options": shown, "logits": logits})
        [(model, [one])] = read_options(path).items()
        assert (model, one.answer, one.options) == ("", "B", options)
        assert option_logprobs(one.logits) == pytest.approx(normal)
        assert (one.question, one.question_type, one.group) == ("Which?", "kind", "image")


@pytest.mark.parametrize(
    ("share", "kind"),
    [
        *((lambda p: p, "probabilities"), (lambda p: round(100 * p), "percentages")),
        *((lambda p: -math.log(p), "losses"), (math.log, "")),
    ],
)
def test_probabilities_and_losses_are_no_logits(
    tmp_path: Path, share: Callable[[float], float], kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"id": str(p), "answer": "A", "logits": [share(p), share(1 - p)]} for p in (0.125, 0.5)]
    code = main(["import", "options", str(written(tmp_path / "o.jsonl", *rows)), "--out", str(tmp_path / "runs")])
    assert (code, f"these are {kind}" in capsys.readouterr().err) == ((2, True) if kind else (0, False))


# --- runs ------------------------------------------------------------------------------------------------------------


def made(n_questions: int = 80, n: int = 6):
    dice = random.Random(0)
    for i in range(n_questions):
        logits = {label: dice.gauss(0, 2) for label in "ABCD"}
        likely = max(logits, key=logits.get)
        answer = likely if dice.random() < 0.6 else dice.choice("ABCD")
        yield OptionQuestion(str(i), answer, logits, f"{i}?", {}, "ab"[i % 2], f"image {i // 2}")


def test_a_closed_set_has_relations_without_a_model() -> None:
    backend = ExactClustering(closed=True)
    assert backend.probabilities([("A", "a."), ("A", "B")]).tolist() == [[0, 0, 1], [1, 0, 0]]
    assert backend.probabilities([]).shape == (0, 3)
    assert not ExactClustering().knows_probabilities
    assert backend.settings() == {**ExactClustering().settings(), "closed": True}
    run = run_from_options("t", "m", list(made()), OptionSampling(n=6))
    scorer = scorer_of(run, None).with_detectors(["kle", "contradiction"])
    for scores in scorer.score(run.answer_sets):
        assert scores["contradiction"] == pytest.approx(scores["radflag"])
    assert detection_auroc(scorer.score(run.answer_sets), "kle").value is not None


@pytest.mark.slow
def test_the_commands_read_an_imported_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for model in "mk":
        rows = [
            {"id": q.id, "answer": q.answer, "logits": dict(q.logits), "question": q.question, "model": model}
            for q in made()
        ]
        file = written(tmp_path / f"{model}.jsonl", *rows)
        out = ["--out", str(tmp_path / model), "--task", "t", "--draws", "4"]
        assert main(["import", "options", str(file), *out]) == 0
    run = load_run(tmp_path / "m")
    assert (run.task, run.model, len(run.answer_sets), len(run.answer_sets[0].clean)) == ("t", "m", 80, 4)
    assert all(run.verdicts[a.id]["label"] == a.label == int(a.baseline.text != a.reference) for a in run.answer_sets)
    capsys.readouterr()
    [facts] = json_of(capsys, ["detectors", str(tmp_path / "m"), "--json"])
    rows = {row["detector"]: row for row in facts["detectors"]}
    assert rows["msp"]["draws"] == 0
    assert rows["msp"]["estimate"]["value"] == rows["baseline_nll"]["estimate"]["value"]
    assert "perturbed images" in facts["left_out"]["vase"]
    assert main(["compare", str(tmp_path / "m"), str(tmp_path / "k"), "--json"]) == 0
    assert main(["detectors", str(tmp_path / "m"), "--sweep", "n", "--json"]) == 0
    assert main(["health", str(tmp_path / "m")]) == 0
    assert main(["report", str(tmp_path / "m"), "--out", str(tmp_path / "page")]) == 0
    monkeypatch.chdir(tmp_path)
    assert main(["import", "options", str(file), "--draws", "1"]) == 0
    assert [run.model for run in load_runs(tmp_path)] == ["k"]
    assert main(["import", "options", str(file), "--out", str(tmp_path), "--model-name", "x"]) == 2
    assert "names its models itself" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "right", "outcome"),
    [
        *(("None of the above", "B", "declined"), ("I don't know.", "B", "declined"), ("Not sure", "A", "declined")),
        *(("None of the above", "C", "supported"), ("none", "B", "hallucinated"), ("A mass", "B", "hallucinated")),
    ],
)
def test_an_option_that_declines_is_declined_unless_it_is_right(text: str, right: str, outcome: str) -> None:
    from hedge_tasks.judging.outcomes import outcome_of
    from hedge_tasks.runs.from_options import run_from_options

    logits, options = {"A": 0.0, "B": 0.0, "C": 80.0}, {"A": "cyst", "B": "clip", "C": text}
    run = run_from_options("set", "model", [OptionQuestion("q", right, logits, options=options)], OptionSampling(n=1))
    assert outcome_of(run.verdicts["q"]) == outcome
    assert run.answer_sets[0].label == {"declined": None, "supported": 0, "hallucinated": 1}[outcome]


def test_options_without_texts_decline_where_it_is_said() -> None:
    questions = [
        OptionQuestion("a", "A", {"A": 0.0, "E": 50.0}),
        OptionQuestion("b", "E", {"A": 0.0, "E": 50.0}),
        OptionQuestion("c", "A", {"A": 0.0, "B": 50.0}),
    ]
    sampling = OptionSampling(n=1)
    assert [a.label for a in run_from_options("t", "m", questions, sampling).answer_sets] == [1, 0, 1]
    run = run_from_options("t", "m", questions, sampling, declining=("E",))
    assert [a.label for a in run.answer_sets] == [None, 0, 1]
    assert Coverage.of(parts_of(run).values()).declined == 1
    with pytest.raises(ConfigError, match="option that declines"):
        run_from_options("t", "m", questions, sampling, declining=("F",))
