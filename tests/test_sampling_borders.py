"""The borders of plans, of the probe, of what must repeat, of stores and of prompts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from at_border import at_border
from requested import FakeModel, draw_requests, request
from test_hook import requests

from hedge_tasks.data.answers import Answer, Refused, log_probability, read_report
from hedge_tasks.sampling import store
from hedge_tasks.sampling.behaviour import SettingTried, behaviour_of
from hedge_tasks.sampling.hook import generate_samples
from hedge_tasks.sampling.probe import DOCUMENTS, DRAWS, ProbeReport, probe
from hedge_tasks.sampling.requests import DrawRequest
from hedge_tasks.sampling.reread import Reread, reread
from hedge_tasks.sampling.store import AnswerStore, FinishedDraw


@pytest.mark.parametrize("plan", [{}, {"top_p": 0.9}, {"top_k": 5}, {"min_p": 0.1}, {"top_p": 1.0}])
def test_draws_that_leave_tokens_out_are_said_to_be_restricted(plan: dict[str, float]) -> None:
    report = read_report(generate_samples(FakeModel(lambda draw: Answer("a")), requests(**plan))[0])
    assert report is not None
    assert report["decoding"].get("restricted", False) is bool(plan)


# --- the probe --------------------------------------------------------------------------------------------------------


SURE = Answer("a", -0.1, 1, "stop", end_logprob=-0.05)


def probed(answer: Callable[[str, int], Answer | str], n_documents: int = 3) -> ProbeReport:
    """The probe of a model that answers so by the kind of draw (hot, cool, again) and its number."""
    documents = [request(i) for i in range(n_documents)]
    draws = [draw for one in documents for draw in draw_requests(one, one.plan.draws(one.key))]

    def make(asked: Mapping[str, DrawRequest]) -> Iterator[list[tuple[str, Answer | str]]]:
        parts = {key: key.split() for key in asked}
        yield [(key, answer(kind, int(*number or [0]))) for key, (kind, *number) in parts.items()]

    report = probe(draws, make)
    assert report is not None
    return report


def told(logprob: float | None, cool: float | None = None) -> Callable[[str, int], Answer]:
    """Two answers in turn that are as likely, when cool as well or so much."""
    return lambda kind, i: Answer("ab"[i % 2], cool if kind == "cool" and cool is not None else logprob, 1)


def test_log_probabilities_of_the_raw_distribution_stay_at_another_temperature() -> None:
    assert [probed(told(-1.0, -1 - gap)).raw_logprobs for gap in (0.0, 0.049, 0.051, 1.0)] == [True, True, False, False]
    assert probed(told(None)).raw_logprobs is None
    at_border(lambda p: probed(told(p)).raw_logprobs is not None, -0.1, "100")  # near certainty tells nothing


def test_the_probe_counts_what_varied_was_cut_and_failed() -> None:
    same = probed(lambda kind, i: SURE)
    assert (same.varied, same.documents) == (False, DOCUMENTS)
    chance = math.exp(log_probability(SURE) or 0.0)
    assert same.certain == pytest.approx(chance ** (DOCUMENTS * (DRAWS - 1)))
    last = probed(lambda kind, i: Answer("b" if (kind, i) == ("hot", DRAWS - 1) else "a", None, 1, "length"))
    assert (last.varied, last.documents, last.certain, last.logprobs) == (True, 1, None, False)
    assert last.cut == last.draws == DRAWS + 1 + DRAWS // 2
    assert (last.seeds_repeat, probed(lambda kind, i: Answer(f"{kind} {i}")).seeds_repeat) == (True, False)
    for reason, wholly in (("429", True), (Refused("400"), False)):
        report = probed(lambda kind, i, reason=reason: reason)
        assert (report.failed, report.reason, report.failed_wholly) == (DOCUMENTS * DRAWS, reason, wholly)
        assert (report.varied, report.draws) == (None, report.failed)
    assert not probed(lambda kind, i: "429" if kind == "again" else Answer("ab"[i % 2])).failed_wholly


# --- what must repeat -------------------------------------------------------------------------------------------------

PLAIN = tuple(Answer(f"{word} is what I see in it") for word in ("left", "right", "none"))


def repeated(*answers: Answer, plain: tuple[Answer, ...] = PLAIN) -> SettingTried:
    """What is found where requests with nothing but the likeliest token left are answered so in turn."""

    def ask(asked: Mapping[str, DrawRequest]) -> dict[str, Answer | str]:
        return {key: answers[int(key[-1]) % len(answers)] if key.startswith("top_k") else "x" for key in asked}

    _, first, *_ = draw_requests(asked := request(), asked.plan.draws(asked.key))
    return behaviour_of(first, plain, ask)["top_k"]


def test_equal_answers_are_as_likely_as_their_share_of_plain_draws_or_their_own_probability() -> None:
    short = tuple(Answer(a.text.split()[0]) for a in PLAIN)
    assert repeated(Answer("left"), plain=short).chance == pytest.approx((2 / 4) ** 3)
    assert repeated(Answer("other"), plain=short).chance == pytest.approx((1 / 4) ** 3)
    known = Answer("left", -0.7, 1, "stop", end_logprob=-0.1)
    assert repeated(known, plain=short).chance == pytest.approx(math.exp(3 * (log_probability(known) or 0.0)))


def test_two_answers_are_a_tie_where_they_are_about_as_likely_and_begin_alike() -> None:
    def apart(nats: float) -> bool | None:
        pair = (Answer("left", 0.0, 1, "stop"), Answer("right", -nats, 1, "stop"))
        return repeated(*pair, plain=pair).all_same

    at_border(apart, 0.05, "100")
    assert repeated(Answer("left"), Answer("right")).all_same is None, "perhaps a tie"
    assert repeated(*(Answer(word, -0.7, 1) for word in ("left", "right", "none"))).all_same is False

    def of_words(n: float) -> bool | None:
        begin = ["left"] + ["is"] * (int(n) - 2)
        return repeated(
            *(Answer(" ".join([*begin, end]), -nats, 1) for end, nats in (("here", 1), ("there", 9)))
        ).all_same

    assert [of_words(n) for n in (4, 5, 6, 7)] == [None, None, True, True]


# --- stores -----------------------------------------------------------------------------------------------------------


def test_a_log_of_so_many_bytes_is_the_last_and_becomes_a_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = 0

    def left(**borders: float) -> list[str]:
        nonlocal size
        for name, value in {"LARGEST_LOG": 10**9, "SMALLEST_SEGMENT": 10**9, **borders}.items():
            monkeypatch.setattr(store, name, int(value))
        folder = tmp_path / str(borders)
        with AnswerStore(folder) as written:
            written.put([FinishedDraw("a", Answer("yes"), "q", "clean", 0)])
            size = written.written
            written.put([FinishedDraw("b", Answer("yes"), "q", "clean", 1)])
        assert len(AnswerStore(folder)) == 2
        return sorted(file.suffix for file in folder.iterdir())

    assert left() == [".jsonl"]
    at_border(lambda n: left(LARGEST_LOG=n) == [".jsonl"] * 2, size, "110")
    at_border(lambda n: left(SMALLEST_SEGMENT=n) == [".parquet"], 2 * size, "110")


# --- given answers ----------------------------------------------------------------------------------------------------


def test_a_given_answer_is_as_likely_as_its_likelier_spelling() -> None:
    known = {"a": (-3.0, 1), " a": (-1.0, 2), "b": (-1.0, 3), " b": (None, None), "c": "refused", " c": "refused"}

    def forced_logprobs(_: Any, texts: list[str]) -> list[Answer | str]:
        return [one if isinstance(one := known[text], str) else Answer(text, *one) for text in texts]

    draws = draw_requests(asked := request(), asked.plan.draws(asked.key)[:4])
    found = reread(SimpleNamespace(forced_logprobs=forced_logprobs), draws, [*map(Answer, ["a", "", "b", "c"])])
    assert found[::2] == [Reread(-1.0, 2), Reread(-1.0, 3)]
    assert ["no tokens" in str(found[1]), found[3]] == [True, "refused"]
    assert reread(SimpleNamespace(reread=lambda *of: [of]), draws, []) == [(draws, [])]
    assert all(isinstance(one, str) for one in reread(object(), draws, [Answer("a")] * 4))
