"""Hidden states are the model's, and what is fitted on them has not seen what it scores."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.measures.probe_table import ProbeData, best_split, probe_table
from hedge_tasks.probes import linear, mahalanobis
from hedge_tasks.probes.base import FittedDetector, digest, load, save
from hedge_tasks.probes.crossfit import cross_fitted
from hedge_tasks.probes.registry import FITTED, fitted
from hedge_tasks.sampling import SamplingPlan
from hedge_tasks.sampling.hidden_states import PLACES, StateStore, state_key
from hedge_tasks.sampling.hook import generate_samples
from hedge_tasks.sampling.prompts import Prompt
from hedge_tasks.sampling.requests import SampleRequest
from hedge_tasks.statistics import auroc

# --- states ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tiny() -> Any:
    from hedge_tasks.models.hedge_tiny import HedgeTiny

    return HedgeTiny()


def conversation(question: str, colour: str) -> list[dict[str, Any]]:
    from PIL import Image

    image = {"type": "image", "url": Image.new("RGB", (64, 64), colour)}
    return [{"role": "user", "content": [image, {"type": "text", "text": question}]}]


@pytest.mark.framework
def test_states_are_those_of_a_plain_forward_pass_whatever_stands_beside_them(tiny: Any) -> None:
    import torch

    asked = [conversation("what is in the image?", "red"), conversation("is it large?", "blue")]
    texts = ["a red circle", "no"]
    together = tiny.hidden_states(asked, texts)
    for turns, text, found in zip(asked, texts, together, strict=True):
        [alone] = tiny.hidden_states([turns], [text])
        np.testing.assert_allclose(found.astype(float), alone.astype(float), atol=2e-3)
        inputs = tiny._inputs([turns])
        best = None
        for blank in ("", " "):
            tokens = torch.tensor([tiny._tokenizer(blank + text, add_special_tokens=False)["input_ids"]])
            whole = torch.cat([inputs["input_ids"], tokens], dim=1)
            more = {k: v for k, v in inputs.items() if k not in ("input_ids", "attention_mask")}
            with torch.inference_mode():
                output = tiny._model(
                    input_ids=whole, attention_mask=torch.ones_like(whole), output_hidden_states=True, **more
                )
            logprobs = output.logits[0, inputs["input_ids"].shape[1] - 1 : -1].log_softmax(-1)
            likely = float(logprobs.gather(1, tokens[0][:, None]).sum())
            if best is None or likely > best[0]:
                best = (likely, output.hidden_states, tokens.shape[1])
        assert best is not None
        _, states, n = best
        deepest = states[-1][0].float().numpy()
        expected = {
            "question": deepest[-n - 1],
            "first": deepest[-n],
            "last": deepest[-1],
            "mean": deepest[-n:].mean(0),
        }
        for place, of in expected.items():
            np.testing.assert_allclose(found[-1, PLACES.index(place)].astype(float), of, rtol=2e-3, atol=2e-3)


def test_states_come_back_and_damaged_ones_do_not(tmp_path: Path) -> None:
    states = np.random.default_rng(0).normal(size=(3, len(PLACES), 8)).astype(np.float16)
    with StateStore(tmp_path) as store:
        store.put({"a": states, "b": states + 1})
    with StateStore(tmp_path) as store:
        np.testing.assert_array_equal(store.get("a"), states)
        np.testing.assert_array_equal(store.get("b"), states + 1)
        assert store.get("c") is None
    [file] = tmp_path.glob("*.f16")
    content = bytearray(file.read_bytes())
    content[5] ^= 1
    file.write_bytes(content)
    with StateStore(tmp_path) as store:
        assert store.get("a") is None
        np.testing.assert_array_equal(store.get("b"), states + 1)
    file.write_bytes(content[:100])
    with StateStore(tmp_path) as store:
        assert store.get("b") is None


class TellsStates:
    """Answers with the number of the question, and holds it in mind."""

    rank, is_simple, answer_identity = 0, False, "teller"
    task_dict: dict[str, Any] = {"task": {"test": [{}] * 3}}  # noqa: RUF012
    asked = 0

    def generate_draws(self, draws: Any) -> Any:
        yield [(i, Answer(draw.request.question)) for i, draw in enumerate(draws)]

    def hidden_states(self, conversations: Any, texts: Any) -> list[Any]:
        self.asked += len(texts)
        return [
            "none of this one" if text == "2" else np.full((3, len(PLACES), 4), float(text), dtype=np.float16)
            for text in texts
        ]


def ask(model: Any, store: Path | None) -> None:
    plan = SamplingPlan(n=1, n_noisy=0, probe=False, hidden_states=True)
    requests = [
        SampleRequest(f"q{i}", f"key{i}", str(i), Prompt("p", "{question}"), plan, lambda _: [], store=store, model="m")
        for i in range(3)
    ]
    generate_samples(model, [SimpleNamespace(args=("t", {}, r, i, "task", "test")) for i, r in enumerate(requests)])


def test_states_are_kept_once_by_what_a_run_file_tells(tmp_path: Path) -> None:
    model = TellsStates()
    ask(model, tmp_path)
    ask(model, tmp_path)
    assert model.asked == 3 + 1  # the one without is asked for again
    with StateStore(tmp_path) as store:
        assert len(store) == 2
        found = store.get(state_key("task", "m", "q1", "1"))
    assert found is not None
    assert (found == 1).all()


def test_who_cannot_tell_or_keep_states_is_refused_before_anything_is_drawn(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no folder to keep them in"):
        ask(TellsStates(), None)
    silent = SimpleNamespace(**{k: getattr(TellsStates, k) for k in ("rank", "is_simple", "answer_identity")})
    with pytest.raises(ConfigError, match="hidden_states: SimpleNamespace does not tell them"):
        ask(silent, tmp_path)
    assert "hidden_states" not in SamplingPlan().settings()


# --- fitting --------------------------------------------------------------------------------------------------------


def test_no_document_is_scored_by_what_has_seen_its_image() -> None:
    seen: list[set[int]] = []

    def fit(states: Any, targets: Any, groups: Any) -> Any:
        seen.append(set(groups.tolist()))
        return {"of": states[:, 0, 0]}

    def score(arrays: Any, states: Any) -> Any:
        scored = set(states[:, 0, 0].tolist())
        assert not scored & set(arrays["of"].tolist())
        return states[:, 0, 0]

    groups = [f"image {i // 3}" for i in range(60)]
    states = np.repeat(np.arange(20.0), 3)[:, None, None]
    labels = np.arange(60) % 2
    detector = FittedDetector("n", "n", "last", "labels", fit, score, "")
    found = cross_fitted(detector, states, labels, labels, groups, repeats=3)
    assert len(seen) == 15
    assert all(len(of) == 16 for of in seen)
    assert ((found > 0) & (found < 1)).all()


def test_labels_that_follow_from_the_states_are_found_and_useless_states_are_worth_nothing() -> None:
    rng = np.random.default_rng(0)
    states = rng.normal(size=(120, 2, 16))
    groups = [str(i // 2) for i in range(120)]
    labels = (states[:, 1, 3] + 0.3 * rng.normal(size=120) > 0).astype(int)
    for name in ("linear_probe", "relative_mahalanobis"):
        one = fitted(name)
        # A distance from the supported tells classes of different place, not of a linear order.
        moved = states + 2.0 * labels[:, None, None] if name == "relative_mahalanobis" else states
        good = cross_fitted(one, moved, labels, labels, groups, repeats=1)
        assert auroc(good.tolist(), labels.tolist()) > 0.85
    areas = []
    for seed in range(20):
        labels = np.random.default_rng(seed).integers(0, 2, 120)
        areas.append(auroc(cross_fitted(fitted("linear_probe"), states, labels, labels, groups, repeats=1), labels))
    assert abs(np.mean(areas) - 0.5) < 3 * np.std(areas) / np.sqrt(20)


def test_the_depth_that_tells_is_taken() -> None:
    rng = np.random.default_rng(1)
    states = rng.normal(size=(150, 3, 8))
    labels = (states[:, 1, 0] > 0).astype(int)
    assert linear.fit(states, labels, np.arange(150))["layer"] == [1]
    with pytest.raises(DataError, match="both classes"):
        linear.fit(states, np.zeros(150, dtype=int), np.arange(150))


def test_a_relative_distance_is_what_its_formula_says() -> None:
    rng = np.random.default_rng(2)
    states = rng.normal(size=(80, 1, 5)) @ rng.normal(size=(5, 5))
    labels = rng.integers(0, 2, 80)
    arrays = mahalanobis.fit(states, labels, np.arange(80))
    x = (states[:, -1] - states[:, -1].mean(0)) @ arrays["axes"]
    np.testing.assert_allclose(arrays["axes"].T @ arrays["axes"], np.eye(5), atol=1e-12)
    from sklearn.covariance import LedoitWolf

    def squared(of: Any) -> Any:
        covariance = LedoitWolf().fit(of).covariance_
        return np.array([(v - of.mean(0)) @ np.linalg.solve(covariance, v - of.mean(0)) for v in x])

    np.testing.assert_allclose(mahalanobis.score(arrays, states), squared(x[labels == 0]) - squared(x), rtol=1e-8)


def test_the_best_split_has_the_least_squares_within() -> None:
    values = np.random.default_rng(3).exponential(size=40).round(2)

    def within(cut: float) -> float:
        return sum(((of - of.mean()) ** 2).sum() for of in (values[values <= cut], values[values > cut]) if len(of))

    assert within(best_split(values)) == min(within(cut) for cut in values[values < values.max()])
    with pytest.raises(DataError, match="same semantic entropy"):
        best_split(np.ones(4))


def test_what_was_learnt_is_saved_as_numbers_and_never_executed(tmp_path: Path) -> None:
    arrays = {"weights": np.arange(3.0), "bias": np.array([1.0])}
    path = tmp_path / "state.npz"
    assert save(arrays, path) == digest(arrays) == digest(load(path))
    assert digest(arrays) != digest({**arrays, "bias": np.array([1.1])})
    np.savez(tmp_path / "bad.npz", weights=np.array([print], dtype=object))
    with pytest.raises(DataError, match="no state of a fitted detector"):
        load(tmp_path / "bad.npz")
    (tmp_path / "text.npz").write_text("x")
    with pytest.raises(DataError, match="no state"):
        load(tmp_path / "text.npz")


def data(n: int = 80, width: int = 6, *, shift: float = 2.0) -> ProbeData:
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 2, n)
    states = rng.normal(size=(n, 3, len(PLACES), width)).astype(np.float16)
    states[:, 2, :, 0] += shift * labels[:, None]
    sets = [
        AnswerSet(str(i), Answer("yes", -0.1, 1), (Answer("no"),), question=f"q {i}", label=int(y), group=str(i // 2))
        for i, y in enumerate(labels)
    ]
    scores = [Scores(a.id, a.label, a.group, None, {"se": float(rng.random())}, "uniform", (0, 1)) for a in sets]
    return ProbeData.of(sets, scores, {a.id: s for a, s in zip(sets, states, strict=True) if a.id != "7"})


def test_the_table_has_controls_near_a_half_prices_and_blind_baselines() -> None:
    one = data()
    assert (one.missing, len(one.labels)) == (1, 79)
    found = probe_table(one, [fitted("linear_probe")], beside={"se": ("SE", 10)}, prices=True)
    assert [row.name for row in found.rows] == ["linear_probe", "se"]
    probe, se = found.rows
    assert probe.estimate.value is not None
    assert probe.estimate.value > 0.8
    assert probe.shuffled == pytest.approx(0.5, abs=0.12)
    assert probe.foreign == pytest.approx(0.5, abs=0.12)
    assert set(probe.prices) == {25, 50}
    assert (se.shuffled, se.labels, se.draws) == (None, 0, 10)
    assert found.blind is not None
    assert set(found.blind.differences) == {"linear_probe", "se"}


def test_a_probe_of_one_run_reads_another_of_the_same_shape_only() -> None:
    there, here = data(), data(60)
    found = probe_table(here, [fitted("linear_probe")], beside={}, fit_on=there, fitted_on="there")
    assert found.rows[0].estimate.value is not None
    assert found.rows[0].estimate.value > 0.8
    assert found.rows[0].labels == 79
    with pytest.raises(DataError, match="cannot read another's states"):
        probe_table(data(width=5), [fitted("linear_probe")], beside={}, fit_on=there)


def test_names_are_looked_up() -> None:
    assert set(FITTED) >= {"linear_probe", "question_probe", "entropy_probe", "relative_mahalanobis"}
    with pytest.raises(ConfigError, match="linear_probe"):
        fitted("linear_prob")


@pytest.mark.slow
@pytest.mark.framework
def test_an_evaluation_keeps_states_and_the_command_fits_on_them(tmp_path: Path, capsys: Any) -> None:
    from evaluation import evaluate

    from hedge_tasks.cli import main

    more = ["--gen_kwargs", "hidden_states=true,n=4,n_noisy=1", "--limit", "64"]
    run = evaluate(tmp_path / "a", "--model", "hedge_tiny", "--tasks", "hedge_demo", *more)
    capsys.readouterr()
    names = ["question_probe", "relative_mahalanobis"]
    asked = ["--probes", ",".join(names), "--no-controls", "--save", str(tmp_path / "saved")]
    assert main(["probes", str(run.output), "--json", *asked]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["documents"] == 64
    assert told["without_states"] == 0
    assert {row["detector"] for row in told["detectors"]} >= {"question_probe (fitted)", "se", "blind_text (blind)"}
    assert sorted(path.stem for path in (tmp_path / "saved").iterdir()) == names
    (tmp_path / "b").mkdir()
    [file] = (run.output / "hedge_runs").glob("*.jsonl")
    (tmp_path / "b" / file.name).write_bytes(file.read_bytes())
    assert main(["probes", str(tmp_path / "b" / file.name)]) != 0
    assert "hidden_states=true" in capsys.readouterr().err
