"""Constrained decoding (`guided: true`): only what a question offers is written."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from requested import draw_requests, instances, request, sample
from rows import rows_of

from hedge_tasks.data.answers import Draw
from hedge_tasks.errors import ConfigError
from hedge_tasks.models.token_sampling import Continuations
from hedge_tasks.sampling.hook import generate_samples
from hedge_tasks.sampling.requests import DrawRequest, SampleRequest
from hedge_tasks.suites.medhallu.measures import MEASURES, hallucinated_probability

pytestmark = pytest.mark.framework


def guided(choices: tuple[str, ...]) -> SampleRequest:
    return request(plan={"max_new_tokens": 12, "guided": True}, question="where is the lesion?", choices=choices)


def draws(choices: tuple[str, ...], n: int, temperature: float = 1.0) -> list[DrawRequest]:
    return draw_requests(guided(choices), [Draw("clean", i, temperature, i) for i in range(n)])


@pytest.fixture(scope="module")
def model() -> Any:
    from hedge_tasks.models.hedge_tiny import HedgeTiny

    return HedgeTiny()


def test_the_mask_lets_through_what_may_follow_and_the_end_of_a_whole_answer() -> None:
    tokens = {"ab": [1, 2], "ac": [1, 3], "a": [1]}
    tokenizer = SimpleNamespace(encode=lambda text, add_special_tokens: tokens.get(text, []))
    allowed = Continuations(tokenizer, ["ab", "ac", "a"], {9, 8})
    assert allowed.after([]) == [1]
    assert allowed.after([1]) == [2, 3, 8, 9]
    assert allowed.after([1, 2]) == allowed.after([1, 2, 9]) == [8, 9]
    with pytest.raises(ConfigError, match="no tokens"):
        Continuations(tokenizer, ["ab", "?"], {9})


@pytest.mark.parametrize("share_prefill", [True, False])
def test_a_local_model_writes_one_of_the_answers_in_both_ways_of_decoding(model: Any, share_prefill: bool) -> None:
    choices = ("upper left", "lower right", "upper")
    model.share_prefill = share_prefill
    try:
        said = Counter(answer.text for answer in sample(model, draws(choices, 24, temperature=3.0)))
        free = sample(model, [replace(d, request=replace(d.request, choices=())) for d in draws(choices, 4)])
    finally:
        model.share_prefill = None
    assert set(said) <= set(choices)
    assert len(said) > 1
    assert any(answer.text not in choices for answer in free)


def test_a_model_that_cannot_be_constrained_is_refused() -> None:
    with pytest.raises(ConfigError, match="cannot be kept to given answers"):
        generate_samples(SimpleNamespace(), instances([guided(("0", "1"))]))


def test_the_probability_of_a_verdict_is_that_of_its_forced_digits() -> None:
    assert hallucinated_probability({"1": math.log(0.5), "0": math.log(0.125), "2": -0.1}) == pytest.approx(0.8)
    # Digits that hold little of the first token's mass: what was not said is no evidence for the other digit.
    assert hallucinated_probability({"0": math.log(0.08), "1": math.log(0.02)}) == pytest.approx(0.2)
    assert hallucinated_probability({"0": -2000.0, "1": -1.0}) == 1.0
    assert hallucinated_probability({"0": -1.0, "1": -2000.0}) == pytest.approx(0.0, abs=1e-300)
    assert hallucinated_probability({"1": -0.5}) is None
    assert hallucinated_probability({"0": -math.inf, "1": -math.inf}) is None
    measure = rows_of(MEASURES)["hallucinated_probability_auroc"]
    documents = [
        {"truth": str(i % 2), "row": str(i), "digits": {"1": math.log(0.9 if i % 2 else 0.2), "0": math.log(0.05)}}
        for i in range(10)
    ]
    records = [measure.record(SimpleNamespace(), {}, document) for document in documents]  # type: ignore[arg-type]
    assert measure(records) == 1.0
