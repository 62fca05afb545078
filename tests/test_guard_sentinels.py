"""Sentinel questions: a server that is no longer the calibrated one gets nothing accepted, and an honest one passes."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from finished_runs import finished_run
from guarded import PICTURE, SERVED, chat_body, get, of_server, policy, post, proxied, reply
from openai_server import Response, completion, error, serve, texts_of

from hedge_tasks.data.answers import Answer, AnswerSet, Served
from hedge_tasks.errors import DataError, DrawsFailed
from hedge_tasks.guard import Guard
from hedge_tasks.guard.policy import Policy, load_policy, save_policy
from hedge_tasks.guard.sentinels import DRAWS, LEVEL, Sentinel, ServerCheck, ServerWatch, choose, counts_of, p_value

CHANCES = [f"{0.4 + 0.05 * i:.2f}" for i in range(10)]


def draws_of(question: str, n: int, seed: int) -> list[str]:
    chance = random.Random(seed)
    return [str(reply({**ask(question), "seed": chance.getrandbits(60)})) for _ in range(n)]


def ask(question: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": f"Short answer: {question}"}], "temperature": 1.0}


def watched(n: int = 10) -> Policy:
    """A policy with questions that the scripted model has been asked, without pictures."""
    kept = [Sentinel(question=q, answers=dict(Counter(draws_of(q, n, i)))) for i, q in enumerate(CHANCES)]
    return of_server(policy()).replaced(sentinels=kept)


POLICY = watched()
Upstream = Callable[[dict[str, Any]], "str | Response"]


def frozen(body: dict[str, Any]) -> str:
    """Ignores seed and temperature."""
    return reply({**body, "seed": 0, "temperature": 1.0})


def greedy(body: dict[str, Any]) -> str:
    return "a"


def caching() -> Upstream:
    """Answers a question as it first did."""
    cache: dict[str, str] = {}
    return lambda body: cache.setdefault(texts_of(body)[-1], reply(body))


def accepted(guard: Guard, n: int = 60) -> int:
    return sum(guard.ask(PICTURE, f"0.{i:03d}").accepted for i in range(n))


@pytest.mark.slow
@pytest.mark.parametrize("upstream", [frozen, greedy, caching()], ids=["ignores the seed", "greedy", "a cache"])
def test_nothing_that_a_frozen_server_says_is_accepted(upstream: Upstream) -> None:
    with serve(upstream, models=[SERVED]) as url, Guard.load(POLICY, endpoint=url) as guard:
        assert accepted(guard) == 0
        assert guard.watch.state == "failed"
        assert "does not answer the sentinel questions" in guard.ask(PICTURE, "0.0").reason
    with serve(upstream, models=[SERVED]) as url, Guard.load(of_server(policy()), endpoint=url) as guard:
        assert accepted(guard, 3) == 3  # without sentinels it takes the share that is accepted to tell
        assert accepted(guard, 100) < 60
        assert guard.ask(PICTURE, "0.0").state == "rejected"
        assert "another share of answers" in guard.ask(PICTURE, "0.0").reason


def test_an_honest_server_passes_and_is_asked_once() -> None:
    asked: list[float] = []

    def kept(body: dict[str, Any]) -> str:
        asked.append(body["temperature"])
        return reply(body)

    with serve(kept, models=[SERVED]) as url, Guard.load(POLICY, endpoint=url) as guard:
        assert guard.watch.state == "unchecked"
        guard.check_server()
        assert (guard.watch.state, len(asked), set(asked)) == ("passed", len(CHANCES) * DRAWS, {1.0})
        assert guard.ask(PICTURE, "0.0").accepted
        assert guard.watch.checks == 1


@pytest.mark.slow
def test_health_says_that_nothing_is_accepted() -> None:
    with serve(greedy, models=[SERVED]) as upstream, proxied(Guard.load(POLICY, endpoint=upstream)) as url:
        assert get(f"{url}/health")[1]["server"] == "unchecked"
        assert post(url, chat_body("0.0"))[1]["hedge"]["accepted"] is False
        found = get(f"{url}/health")[1]
        assert (found["status"], found["server"]) == ("stopped", "failed")
        assert "sentinel" in found["reason"]


@pytest.mark.slow
def test_a_server_that_came_back_greedy_is_found_by_its_fingerprint_or_its_absence() -> None:
    for sign in ("fingerprint", "absence"):
        now: dict[str, Any] = {"greedy": False, "away": False}

        def upstream(body: dict[str, Any], now: dict[str, Any] = now, sign: str = sign) -> str | Response:
            if now["away"]:
                return error(400, "gone")
            text = greedy(body) if now["greedy"] else reply(body)
            name = "fp_2" if now["greedy"] and sign == "fingerprint" else "fp_1"
            return Response({**completion(text), "system_fingerprint": name})

        with serve(upstream, models=[SERVED]) as url, Guard.load(POLICY, endpoint=url) as guard:
            assert guard.ask(PICTURE, "0.0").accepted
            if sign == "absence":
                now["away"] = True
                with pytest.raises(DrawsFailed):
                    guard.ask(PICTURE, "0.01")
            now.update(greedy=True, away=False)
            assert accepted(guard, 5) == 0


@pytest.mark.slow
def test_the_hour_is_over_and_a_failed_server_may_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("hedge_tasks.guard.sentinels.time.monotonic", lambda: clock[0])
    honest, n = [True], [0]
    kept = [Sentinel(question="q", answers={str(i): 1}) for i in range(10)] * 1
    sentinels = [s.replaced(answers=dict.fromkeys("abcde", 2)) for s in kept]

    def answers(of: Any, seeds: Any) -> list[list[Answer]]:
        n[0] += 1
        return [[Answer("abcde"[i] if honest[0] else "a") for i in range(DRAWS)] for _ in of]

    watch = ServerWatch(sentinels, answers, every_s=3600)
    watch.look()
    honest[0] = False
    clock[0] = 3599.0
    watch.look()
    assert (watch.state, n[0]) == ("passed", 1)
    clock[0] = 3600.0
    watch.look()
    assert (watch.state, n[0], watch.reason is None) == ("failed", 2, False)
    honest[0] = True
    clock[0] += 59
    watch.look()
    assert watch.state == "failed"
    clock[0] += 1
    watch.look()
    assert watch.state == "passed"
    watch.look([Served(model="m", system_fingerprint="new")])
    watch.look([Served(model="m", system_fingerprint="new")])
    assert n[0] == 4


def test_what_cannot_be_asked_is_not_trusted() -> None:
    def fails(of: Any, seeds: Any) -> list[list[Answer]]:
        raise DrawsFailed("no")

    watch = ServerWatch(POLICY.sentinels, fails)
    for _ in range(2):
        with pytest.raises(DrawsFailed):
            watch.look()
        assert watch.state == "unchecked"
        assert watch.reason is not None
    with ExitStack() as stack:
        url = stack.enter_context(serve(lambda body: error(400, "no"), models=[SERVED]))
        guard = stack.enter_context(Guard.load(POLICY, endpoint=url))
        stack.enter_context(pytest.raises(DrawsFailed, match="sentinel"))
        guard.ask(PICTURE, "0.0")


def brute(calibrated: str, fresh: str) -> float:
    """The p-value by going through all ways to divide the draws of one question."""
    both = calibrated + fresh

    def statistics(now: tuple[int, ...]) -> tuple[int, int]:
        inside, outside = [both[i] for i in now], [both[i] for i in range(len(both)) if i not in now]
        equal = sum(a == b for a, b in combinations(inside, 2))
        return 2 * equal, sum(a == b for a, b in product(inside, outside))

    first = statistics(tuple(range(len(calibrated), len(both))))
    all_ways = [statistics(ways) for ways in combinations(range(len(both)), len(fresh))]
    frozen = np.mean([s[0] >= first[0] for s in all_ways])
    other = np.mean([s[1] <= first[1] for s in all_ways])
    return float(min(1.0, 2 * min(frozen, other)))


@pytest.mark.parametrize(
    ("calibrated", "fresh"),
    [("aabbcd", "aabc"), ("abcdef", "aaaa"), ("aaaaaa", "bbbb"), ("aaab", "ab"), ("aabb", "cc")],
)
def test_the_p_value_is_that_of_all_permutations(calibrated: str, fresh: str) -> None:
    found = p_value([(Counter(calibrated), Counter(fresh))], seed=1)
    expected = brute(calibrated, fresh)
    assert found == pytest.approx(expected, abs=4 * np.sqrt(expected / 1999) + 1e-3)


@pytest.mark.slow
def test_an_honest_server_fails_no_more_often_than_said() -> None:
    """At a level that a hundred checks can tell; benchmarks/sentinels.py has the small one."""
    chance = np.random.default_rng(3)
    low = 0
    for i in range(150):
        laws = chance.dirichlet(np.ones(5) * 0.7, size=6)
        pairs = [(chance.multinomial(10, law), chance.multinomial(DRAWS, law)) for law in laws]
        counts = [tuple({str(k): int(c) for k, c in enumerate(of) if c} for of in pair) for pair in pairs]
        low += p_value(counts, seed=i) <= 0.1  # type: ignore[arg-type]
    assert low <= 15 + 3 * np.sqrt(150 * 0.1 * 0.9)


@pytest.mark.slow
def test_sentinels_are_chosen_by_draws_that_are_not_kept() -> None:
    sets = list(finished_run(200, seed=5, samples=10).answer_sets)
    pictures = {a.id: [b"x"] for a in sets}
    found = choose(sets, pictures)
    assert len(found) == 12
    by_question = {a.question: a for a in sets}
    for one in found:
        assert one.answers == counts_of(by_question[one.question].clean)
        assert 0.3 <= max(counts_of(by_question[one.question].noisy).values()) / 10 <= 0.6
    moved = [replace(a, clean=tuple(Answer("z") for _ in a.clean)) for a in sets]
    assert [s.question for s in choose(moved, pictures)] == [s.question for s in found]
    halves = choose([replace(a, noisy=()) for a in sets], pictures)
    assert all(sum(s.answers.values()) == 5 for s in halves)
    assert choose(sets, {}) == ()
    assert choose(sets, {a.id: [b"x" * 600_000] for a in sets}) == ()


def test_a_model_that_hardly_varies_has_none() -> None:
    sets = [AnswerSet(f"q{i}", Answer("a"), (Answer("a"),) * 10, (Answer("a"),) * 10, f"q {i}") for i in range(50)]
    assert choose(sets, {a.id: [] for a in sets}) == ()


def test_they_travel_in_the_policy(tmp_path: Path) -> None:
    save_policy(POLICY, tmp_path / "policy.json")
    assert load_policy(tmp_path / "policy.json").sentinels == POLICY.sentinels
    with pytest.raises(DataError, match="not base64"):
        Sentinel(question="q", pictures=("?",), answers={"a": 1})
    assert ServerCheck(LEVEL, False, 1).passed is False
