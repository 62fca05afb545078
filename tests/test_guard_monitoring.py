"""Tests that are valid at any time, and alarms that stop acceptance."""

from __future__ import annotations

import random
from itertools import count
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from at_border import at_border
from guarded import PICTURE, SERVED, Model, chat_body, get, of_server, policy, post, proxied, reply
from openai_server import serve

from hedge_tasks.guard import Guard
from hedge_tasks.guard.monitoring import Monitor
from hedge_tasks.statistics.betting import _PARTS, MeanTest


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    for level in ("warning", "error"):
        monkeypatch.setattr(
            f"hedge_tasks.guard.monitoring.logger.{level}", lambda text, *values: lines.append(text.format(*values))
        )
    return lines


def by_hand(values: list[float], bound: float) -> float:
    """The winnings written out: a bettor after 0, 1, 3, 7, ... values, each with every stake."""
    won, share_left, start, k = 0.0, 1.0, 0, 1
    while start < len(values):
        products = [np.prod([1 + part / bound * (x - bound) for x in values[start:]]) for part in _PARTS]
        won += np.mean(products) / (k * (k + 1))
        share_left -= 1 / (k * (k + 1))
        start, k = 2 * start + 1, k + 1
    return float(won + share_left)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 8, 20])
def test_the_winnings_are_those_of_the_formula(n: int) -> None:
    chance = random.Random(n)
    values = [chance.random() for _ in range(n)]
    test = MeanTest(0.3)
    for value in values:
        winnings = test.add(value)
    assert winnings == pytest.approx(by_hand(values, 0.3))


def test_no_bet_can_be_expected_to_win_at_the_bound() -> None:
    """The expectation over all sequences of six answers is one exactly."""
    expected = 0.0
    for sequence in range(2**6):
        values = [float(sequence >> i & 1) for i in range(6)]
        expected += by_hand(values, 0.25) * 0.25 ** sum(values) * 0.75 ** (6 - sum(values))
    assert expected == pytest.approx(1)


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
def test_what_is_no_share_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="in \\[0, 1\\]"):
        MeanTest(0.5).add(value)
    with pytest.raises(ValueError, match="bound"):
        MeanTest(0.0)


def test_alarms_are_where_the_winnings_reach_what_the_level_says() -> None:
    promise = policy().promise
    low, high = promise.accepted_interval
    for seed in range(4):
        refuting, won, audits = Monitor(promise), 0.0, list[float]()
        while won < 100:
            audits.append(float(random.Random(f"{seed} {len(audits)}").random() < 0.6))
            refuting.audited(hallucinated=audits[-1] == 1)
            won = by_hand(audits, promise.risk)
            assert refuting.broken == (won >= 100)
    for accepted, bound in ((True, high), (False, 1 - low)):
        drifting, lenient = Monitor(promise), Monitor(promise, "audits")
        for n in count(1):
            drifting.judged(accepted=accepted)
            lenient.judged(accepted=accepted)
            won = by_hand([1.0] * n, bound)
            assert drifting.shifted == (drifting.reason is not None) == (won >= 200)  # two tests share the level
            if won >= 200:
                break
        assert (lenient.shifted, lenient.reason) == (True, None)


def test_winnings_at_the_level_are_an_alarm() -> None:
    def monitor(winnings: float) -> Monitor:
        watched: Any = Monitor(policy().promise)
        watched._risk = watched._more = SimpleNamespace(add=lambda value: winnings, n=1, total=1)
        watched.audited(hallucinated=True)
        watched.judged(accepted=True)
        return cast("Monitor", watched)

    at_border(lambda winnings: monitor(winnings).broken, 100.0, "011")
    at_border(lambda winnings: monitor(winnings).shifted, 200.0, "011")


def test_audits_that_refute_the_promise_stop_acceptance(said: list[str]) -> None:
    guard = Guard(policy(), Model())
    assert guard.ask(PICTURE, "0.0").accepted
    for _ in range(10):
        guard.monitor.audited(hallucinated=True)
    assert guard.monitor.broken
    verdict = guard.ask(PICTURE, "0.0")
    assert (verdict.state, verdict.promised_risk) == ("rejected", None)
    assert "audits have refuted the promise: 10 of 10" in verdict.reason
    assert len(said) == 1
    lenient = Guard(policy(), Model(), stop_on="none")
    for _ in range(10):
        lenient.monitor.audited(hallucinated=True)
    assert lenient.ask(PICTURE, "0.0").accepted


def test_audits_come_in_over_http(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hedge_tasks.guard.proxy.app._MOST_ACCEPTED", 2)  # nobody waits for 100,000
    guarded = of_server(policy())
    with serve(reply, models=[SERVED]) as upstream, proxied(Guard.load(guarded, endpoint=upstream)) as url:
        forgotten, first, known = (post(url, chat_body("0.0"))[1]["id"] for _ in range(3))
        assert post(url, {"id": forgotten, "hallucinated": False}, "audits")[0] == 404, "the latest can be audited"
        assert post(url, {"id": first, "hallucinated": True}, "audits")[0] == 200
        rejected = post(url, chat_body("0.99"))[1]["id"]
        refused = [{"id": known, "hallucinated": 1}, {"id": known}, []]
        assert [post(url, body, "audits")[0] for body in refused] == [400] * 3
        assert [post(url, {"id": id, "hallucinated": True}, "audits")[0] for id in ([known], rejected)] == [404] * 2
        status, found = post(url, {"id": known, "hallucinated": True}, "audits")
        assert (status, found["audits"]) == (200, {"answers": 2, "hallucinated": 2})
        assert post(url, {"id": known, "hallucinated": True}, "audits")[0] == 404
        assert get(f"{url}/health")[1]["refuted"] is False
        for _ in range(9):
            found = post(url, {"id": post(url, chat_body("0.0"))[1]["id"], "hallucinated": True}, "audits")[1]
            if found["refuted"]:
                break
        assert found["status"] == "stopped"
        assert post(url, chat_body("0.0"))[1]["hedge"]["accepted"] is False
