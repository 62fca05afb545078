"""The answers that a policy looks at."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.guard.seen import columns

EXACT = Scorer.build("exact", "exact", {})


def answers(*clean: str, noisy: tuple[str, ...] = ()) -> AnswerSet:
    return AnswerSet("q", Answer("a"), tuple(map(Answer, clean)), tuple(map(Answer, noisy)))


def test_a_policy_looks_at_no_draw_that_is_not_made_for_it() -> None:
    """Noisy answers can join clusters of clean ones, and a question that is asked for RadFlag has none."""

    def encode(texts: list[str]) -> np.ndarray:
        return np.array([{"a": (1, 0), "b": (0, 1), "between": (1, 1)}[text] for text in texts], float)

    scorer = Scorer.build("embed", "embed", {"threshold": 0.7})
    scorer = replace(scorer, backend=replace(scorer.backend, encoder=encode))
    bridged = answers("b", "b", noisy=("between", "between"))
    assert scorer.with_detectors(["radflag"]).score([bridged])[0]["radflag"] == 0
    found = columns([bridged], scorer, ["radflag", "radflag_noisy", "n_clusters", "vase"])
    assert found["radflag"].values.tolist() == [1]
    assert found["radflag_noisy"].values.tolist() == [0]
    assert list(found) == ["radflag", "radflag_noisy", "n_clusters", "vase"]


def test_whether_a_score_depends_on_log_probabilities_is_noticed() -> None:
    def weighted(*logprobs: float | None) -> AnswerSet:
        clean = tuple(Answer(t, p, 1) for t, p in zip("aab", logprobs, strict=True))
        return AnswerSet("q", Answer("a", -1.0, 1), clean)

    with_them = columns([weighted(-1.0, -2.0, -0.1)] * 3, EXACT, ["se", "radflag"])
    assert (with_them["se"].weighting, with_them["radflag"].weighting) == ("logprob", None)
    assert columns([weighted(-1.0, None, -0.1)], EXACT, ["se"])["se"].weighting is None
