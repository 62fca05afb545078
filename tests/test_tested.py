"""What draws have tested: honest numbers stand on it, and what only one label's documents lack is self-reported."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from hedge_tasks.clustering.exact import ExactClustering
from hedge_tasks.data.answers import Answer, AnswerSet, Thought
from hedge_tasks.detectors.scorer import Scorer, score_all
from hedge_tasks.leaderboard.tested import NO_END, bare, repeated_evidence, rests_on, why_untested

DETECTORS = ("se", "vase", "baseline_nll", "radflag")
Change = Callable[[AnswerSet], AnswerSet]


def drawn(seed: int, documents: int = 120) -> list[AnswerSet]:
    """Answers of a model whose wrong answers are its unsure ones."""
    dice = random.Random(seed)
    words = [f"word {k}" for k in range(20)]

    def document(i: int) -> AnswerSet:
        hard = dice.betavariate(2, 2)
        shares = [hard / len(words) + (1 - hard) * (k == 0) for k in range(len(words))]

        def said(temperature: float = 1.0) -> Answer:
            [k] = dice.choices(range(len(words)), [share ** (1 / temperature) for share in shares])
            return Answer(words[k], math.log(shares[k]) / 2, 2, "stop", end_logprob=0.0)

        clean, noisy = (tuple(said() for _ in range(10)) for _ in range(2))
        return AnswerSet(f"q{i}", said(0.1), clean, noisy, "?", "!", int(dice.random() < 0.7 * hard))

    return [document(i) for i in range(documents)]


def unheard(answer: Answer, k: int = 0) -> Answer:
    return replace(answer, text=f"{answer.text} or {k}", mean_logprob=-2.0 - k / 10)


def marked(sets: list[AnswerSet]) -> dict[str, str]:
    """The detectors that are self-reported, with the reason."""
    scores = score_all(Scorer("exact", ExactClustering()).cluster(sets), None, DETECTORS)
    tested = repeated_evidence(sets)
    found: dict[str, str] = {}
    for detector in DETECTORS:
        parts = rests_on(detector, baseline=detector == "baseline_nll")
        why = why_untested(scores, detector, tested, parts, logprobs=detector != "radflag")
        found |= {} if why is None else {detector: why}
    return found


def of_wrong(change: Change) -> Change:
    return lambda answers: change(answers) if answers.label == 1 else answers


def thinking(answers: AnswerSet) -> AnswerSet:
    thought = [replace(a, thought=Thought(3)) for a in answers.answers]
    return replace(answers, baseline=thought[0], clean=tuple(thought[1:11]), noisy=tuple(thought[11:]))


def scattered(answers: AnswerSet) -> AnswerSet:
    return replace(answers, clean=tuple(unheard(a, k) for k, a in enumerate(answers.clean)))


def foreign(answers: AnswerSet) -> AnswerSet:
    return replace(answers, noisy=tuple(unheard(a, k) for k, a in enumerate(answers.noisy)))


def test_honest_numbers_are_seldom_called_self_reported() -> None:
    found = [set(marked(drawn(seed))) for seed in range(20)]
    assert sum(map(bool, found)) <= 3


@pytest.mark.parametrize(
    ("change", "detectors"),
    [
        (lambda a: replace(a, baseline=unheard(a.baseline)), {"baseline_nll"}),
        (thinking, {*DETECTORS}),
        (scattered, {"se", "vase", "radflag", "baseline_nll"}),
        (foreign, {"vase"}),
        (
            lambda a: replace(a, clean=tuple(replace(c, end_logprob=None) for c in a.clean)),
            {"se", "vase", "radflag", "baseline_nll"},
        ),
    ],
)
def test_what_only_wrong_documents_lack_is_the_submitters_word(change: Change, detectors: set[str]) -> None:
    found = marked(list(map(of_wrong(change), drawn(1))))
    assert set(found) == detectors
    assert all("goes with the label" in why for why in found.values())


def test_where_nothing_is_drawn_again_log_probabilities_are_the_submitters_word_and_draws_are_not_told() -> None:
    found = marked([replace(scattered(foreign(a)), baseline=unheard(a.baseline, 99)) for a in drawn(1)])
    assert found == dict.fromkeys(("se", "vase", "baseline_nll"), NO_END)


def test_a_number_that_untested_documents_make_is_told() -> None:
    """Two of each class, so that no test sees the label in them; but they are those that make the number."""
    sets = drawn(3)
    labels = np.array([a.label for a in sets], dtype=bool)
    dice = np.random.default_rng(0)
    values = dice.normal(size=len(sets))
    untested = np.concatenate([np.flatnonzero(labels)[:12], np.flatnonzero(~labels)[:20]])
    values[untested] = np.where(labels[untested], 9.0, -9.0)
    scores = score_all(Scorer("exact", ExactClustering()).cluster(sets), None, ["se"])
    forged = [replace(s, numbers={"se": float(value)}) for s, value in zip(scores, values, strict=True)]
    tested = repeated_evidence(sets)
    flags = np.ones(len(sets), dtype=bool)
    flags[untested] = False
    why = why_untested(forged, "se", replace(tested, clean=flags), ["clean"], logprobs=True)
    assert why is not None
    assert "of the documents whose evidence draws have tested" in why


def test_what_a_detector_rests_on() -> None:
    assert rests_on("baseline_nll", baseline=True) == ["baseline"]
    assert rests_on("se", baseline=False) == ["clean"]
    assert rests_on("vase", baseline=False) == ["clean", "noisy"]
    [answers] = bare(drawn(0, 1), baseline=True)
    assert answers.baseline.mean_logprob is None
    assert answers.clean[0].mean_logprob is not None
