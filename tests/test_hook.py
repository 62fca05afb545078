"""generate_samples on models of every kind: ours, foreign, failing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from requested import PICTURE, FakeModel, instances, request

from hedge_tasks.errors import ConfigError, DrawsFailed
from hedge_tasks.sampling import Answer, AnswerSet, SamplingPlan
from hedge_tasks.sampling.hook import MAX_ATTEMPTS, generate_samples
from hedge_tasks.sampling.plan import SecondStage
from hedge_tasks.sampling.prompts import load_prompt
from hedge_tasks.sampling.requests import DrawRequest


class ForeignModel:
    """The little of lmms-eval's interface that the hook uses; answers come from `reply(instance)`."""

    rank = 0

    def __init__(self, *, is_simple: bool, reply: Any = None) -> None:
        self.is_simple = is_simple
        self.reply = reply or (lambda instance, call: f"answer {call}")
        self.task_dict = {"task": {"test": [{"image": PICTURE}] * 3}}
        self.seen: list[Any] = []

    def generate_until(self, instances: Sequence[Any]) -> list[Any]:
        answers = []
        for instance in instances:
            self.seen.append(instance)
            answers.append(self.reply(instance, len(self.seen)))
        return answers

    def images(self, instance: Any) -> list[Any]:
        document = self.task_dict["task"]["test"][instance.args[3]]
        if self.is_simple:
            return instance.args[2](document)
        return [part["url"] for m in instance.args[1](document) for part in m["content"] if part["type"] == "image"]


def requests(
    n_documents: int = 1, store: Path | None = None, model: str | None = "m", **settings: Any
) -> list[SimpleNamespace]:
    about = {
        "prompt": load_prompt("medical_vqa/default"),
        "reference": "yes",
        "group": "g",
        "model": model,
        "store": store,
    }
    return instances(request(i, plan={"n": 2, **settings}, **about) for i in range(n_documents))


@pytest.mark.parametrize("is_simple", [True, False])
@pytest.mark.parametrize("coldest", [0.0, 0.1])
def test_a_foreign_model_gets_ordinary_requests(is_simple: bool, coldest: float) -> None:
    """`generate` divides by the temperature when it samples, so an adapter that is told to sample at 0 fails."""
    model = ForeignModel(is_simple=is_simple)
    [line] = generate_samples(model, requests(baseline_temperature=coldest))
    answer_set = AnswerSet.from_json(line)
    assert answer_set.texts == ["answer 1", "answer 2", "answer 3", "answer 4", "answer 5"]
    assert (answer_set.id, answer_set.question, answer_set.reference) == ("q0", "is it normal?", "yes")
    assert not answer_set.has_logprobs
    settings = [instance.args[1 if is_simple else 2] for instance in model.seen]
    assert [(s["temperature"], s["do_sample"]) for s in settings] == [(coldest, coldest > 0)] + [(1.0, True)] * 4
    assert settings[1] == settings[4]  # or the adapter could not batch them
    assert "n" not in settings[0]  # API adapters refuse it
    assert all(instance.args[0].startswith("You are a medical image analysis expert.") for instance in model.seen)
    pictures = [model.images(instance)[0].tobytes() for instance in model.seen]
    assert pictures[:3] == [PICTURE.tobytes()] * 3
    assert len({*pictures}) == 3  # noisy draws alone see a perturbed one


def test_failed_draws_of_own_adapters_are_asked_again_and_never_answers(tmp_path: Path) -> None:
    def answer(draw: DrawRequest) -> Answer | str:
        failed = len(model.asked) in (2, 5, 6)
        return "no answer within 9 s" if failed else Answer(f"{draw.draw.condition} {draw.draw.index}", -0.5, 2)

    model = FakeModel(answer)
    [line] = generate_samples(model, requests(store=tmp_path))
    found = AnswerSet.from_json(line)
    assert (found.texts, found.has_logprobs) == (["baseline 0", "clean 0", "clean 1", "noisy 0", "noisy 1"], True)
    assert len(model.asked) == 5 + 2 + 1


def test_failed_draws_are_asked_again() -> None:
    def reply(instance: Any, call: int) -> str:
        return "[LMMS_EVAL_REQUEST_FAILED after 5 retries] Error 429" if call in (2, 4) else f"answer {call}"

    model = ForeignModel(is_simple=True, reply=reply)
    [line] = generate_samples(model, requests())
    assert AnswerSet.from_json(line).texts == ["answer 1", "answer 6", "answer 3", "answer 7", "answer 5"]


def test_lasting_failures_stop_the_run_and_keep_the_rest(tmp_path: Path) -> None:
    broken = True

    def reply(instance: Any, call: int) -> str:
        failed = broken and instance.args[1]["temperature"] == 0.1
        return "[LMMS_EVAL_REQUEST_FAILED after 5 retries] Error 500" if failed else f"answer {call}"

    model = ForeignModel(is_simple=True, reply=reply)
    with pytest.raises(DrawsFailed) as caught:
        generate_samples(model, requests(2, tmp_path))
    assert str(caught.value).startswith("task: 2 of 10 draws failed, of 2 of 2 documents; max_failed allows")
    assert "First reason: [LMMS_EVAL_REQUEST_FAILED" in str(caught.value)
    assert len(model.seen) == 10 + 2 * (MAX_ATTEMPTS - 1)
    broken, model.seen = False, []
    assert len(generate_samples(model, requests(2, tmp_path))) == 2
    assert len(model.seen) == 2


def test_a_spent_budget_is_not_asked_again() -> None:
    model = ForeignModel(is_simple=True, reply=lambda instance, call: "[LMMS_EVAL_BUDGET_EXCEEDED]")
    with pytest.raises(DrawsFailed, match=r"5 of 5 draws failed.*BUDGET_EXCEEDED.*finished draws are lost"):
        generate_samples(model, requests())
    assert len(model.seen) == 5


def test_no_text_is_a_failure_but_empty_text_is_an_answer() -> None:
    model = ForeignModel(is_simple=True, reply=lambda instance, call: " ")
    assert set(AnswerSet.from_json(generate_samples(model, requests())[0]).texts) == {""}


def test_a_crash_loses_the_chunk_in_flight_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hedge_tasks.sampling.hook.CHUNK", 4)

    def reply(instance: Any, call: int) -> str:
        if call == 6:
            raise RuntimeError("CUDA out of memory")
        return "fine"

    model = ForeignModel(is_simple=True, reply=reply)
    with pytest.raises(RuntimeError, match="CUDA out of memory"):
        generate_samples(model, requests(2, tmp_path))
    model.seen = [None] * 100
    generate_samples(model, requests(2, tmp_path))
    assert len(model.seen) == 106


def test_stored_answers_are_used_for_the_same_draw_only(tmp_path: Path) -> None:
    def calls(**changes: Any) -> int:
        model = ForeignModel(is_simple=True)
        generate_samples(model, requests(store=tmp_path, **changes))
        return len(model.seen)

    assert calls() == 5
    assert calls() == 0
    assert calls(n=1) == 0
    assert calls(n=4) == 4
    assert calls(model="another") == 5
    assert calls(max_new_tokens=9) == 5
    assert calls(temperature=0.5) == 4
    assert calls(strength=0.5) == 2
    assert calls(seed=1) == 5


def test_the_global_random_state_is_left_alone_and_chunks_are_seeded() -> None:
    def reply(instance: Any, call: int) -> str:
        return str(torch.rand(1).item())

    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = generate_samples(ForeignModel(is_simple=True, reply=reply), requests())
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    assert generate_samples(ForeignModel(is_simple=True, reply=reply), requests()) == first


def test_an_unknown_second_stage_is_named() -> None:
    [row] = requests()
    stage = SecondStage("vope_recheck", SamplingPlan(n=1))
    row.args = (*row.args[:2], replace(row.args[2], second_stage=stage), *row.args[3:])
    with pytest.raises(ConfigError, match="unknown second stage 'vope_recheck', did you mean 'vope_rechecks'"):
        generate_samples(ForeignModel(is_simple=True), [row])
