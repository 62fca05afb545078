"""A verdict on each setting: servers that do something else than they are asked, and what is said of them."""

from __future__ import annotations

import math
import random
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from at_border import at_border
from finished_runs import measure_health
from requested import FakeModel
from test_hook import requests

from hedge_tasks.data.answers import Answer, AnswerSet, Served, read_report
from hedge_tasks.models.hedge_openai import NEUTRAL
from hedge_tasks.runs.health import Health, decoding_line
from hedge_tasks.runs.health_tests import HealthTest
from hedge_tasks.runs.setting_tests import SETTINGS
from hedge_tasks.sampling.behaviour import MOST_REQUESTS
from hedge_tasks.sampling.hook import generate_samples
from hedge_tasks.sampling.probe import DRAWS
from hedge_tasks.sampling.requests import DrawRequest

pytestmark = pytest.mark.framework

NO, PERHAPS, YES, SURE = "contradicted", "not verifiable", "not contradicted", "verified"


def questions(n_documents: int) -> Iterator[SimpleNamespace]:
    for i, row in enumerate(requests(n_documents, model=None, n=10, n_noisy=0, probe=True)):
        request = replace(row.args[2], question=f"where, in picture {i}?")
        yield SimpleNamespace(args=(*row.args[:2], request, 0, *row.args[4:]))


WORDS = ("left", "right", "upper", "lower", "middle", "none", "both", "outer", "inner", "front", "back", "side")
ANEW = count()


def said_of(draw: DrawRequest, ignores: tuple[str, ...] = (), hottest: float = math.inf, scale: float = 1.0) -> Answer:
    """The answer of a model with known distributions, which may do something else than it is asked.

    Args:
        ignores: settings that are passed over, the seed among them.
        hottest: cap of the temperature.
        scale: factor on the log-probabilities that are told.
    """
    plan, text = draw.request.plan, draw.request.question[:200]
    p = np.random.default_rng(zlib.crc32(text.encode())).dirichlet(np.full(len(WORDS), 0.6)) + 1e-9
    asked = {name: value for name, value in plan.limits().items() if name not in ignores}
    q = p ** (1 / max(min(draw.draw.temperature, hottest), 1e-3))
    q, order = q / q.max(), np.argsort(-q)
    q[order[asked.get("top_k", len(q)) :]] = 0
    q[q < asked.get("min_p", 0)] = 0
    q /= q.sum()
    q[order[np.cumsum(q[order]) - q[order] >= asked.get("top_p", 1.0)]] = 0
    seed = f"{draw.draw.seed} {text}" if draw.seeded and "seed" not in ignores else next(ANEW)
    [i] = random.Random(seed).choices(range(len(q)), q.tolist())
    return Answer(WORDS[i], scale * math.log(p[i]), 1, "stop", end_logprob=0.0, served=Served("tiny"))


def health_of_model(n_documents: int = 3, **deviation: Any) -> Health:
    model: Any = FakeModel(partial(said_of, **deviation))
    model.sent_decoding = lambda limits: {**NEUTRAL, "repetition_penalty": "the server's"}
    lines = generate_samples(model, list(questions(n_documents)))
    report = read_report(lines[0])
    assert report is not None
    assert len(model.asked) == n_documents * 11 + DRAWS + 1 + DRAWS // 2 + MOST_REQUESTS
    return measure_health([AnswerSet.from_json(line) for line in lines], report)


def of(health: Health) -> dict[str, HealthTest]:
    return {one.name: one for one in health.settings}


def states(health: Health) -> dict[str, str]:
    return {name: one.state for name, one in of(health).items()}


def test_a_model_that_obeys_is_contradicted_by_nobody() -> None:
    found = health_of_model(60)
    assert tuple(of(found)) == SETTINGS
    named = {"seed": SURE, "no cache": SURE, "penalties": PERHAPS}
    assert states(found) == {name: named.get(name, YES) for name in SETTINGS}
    assert not any(finding.unreliable for finding in found.findings)


def test_what_a_model_does_otherwise_is_noticed() -> None:
    seedless = health_of_model(ignores=("seed",))
    assert (of(seedless)["seed"].state, seedless.unreliable) == (NO, None), "as good, but cannot be made again"
    for name in ("top_k", "top_p", "min_p"):
        ignored = states(health_of_model(ignores=(name,)))
        assert [other for other in ("top_k", "top_p", "min_p") if ignored[other] == PERHAPS] == [name]
    for deviation in ({"hottest": 0.4}, {"scale": 0.5}):
        found = health_of_model(60, **deviation)
        assert (states(found)["temperature"], found.unreliable is None) == (NO, False)


def test_a_model_that_this_package_samples_needs_no_belief() -> None:
    decoding = {"asked": "pure", "temperature": 1.0, "sampled_here": True, "sent": {"top_k": 0}}
    found = states(measure_health([AnswerSet("1", Answer("a"), (Answer("a"), Answer("b")))], {"decoding": decoding}))
    assert {name for name, state in found.items() if state != "verified"} == {"seed", "batch"}


TWO = [AnswerSet("1", Answer("a"), (Answer("a"), Answer("b")))]


def verdict(setting: str, sets: Sequence[AnswerSet] = TWO, sent: Mapping[str, Any] | None = None, **probe: Any) -> Any:
    decoding = {"asked": "pure", "temperature": 1.0, "sent": sent or {}}
    found = of(measure_health(sets, {"decoding": decoding, "probe": probe}))[setting]
    return found.state, found.unreliable, found.text


def tried(name: str, distinct: int, **fields: Any) -> dict[str, Any]:
    return {"behaviour": {name: {"draws": 4, "distinct": distinct, **fields}}}


def test_what_the_probe_tried_decides_on_its_setting() -> None:
    for setting, name in (("temperature", "temperature"), ("batch", "with a long prompt")):
        states = [verdict(setting, **tried(name, distinct))[:2] for distinct in (1, 2)]
        assert states == [(YES, False), (NO, setting == "temperature")]
    for setting in ("temperature", "batch", "top_k", "top_p", "min_p", "no cache", "log-probability base", "seed"):
        assert verdict(setting)[:2] == (PERHAPS, False)
        assert verdict(setting, behaviour={"no seed": {"draws": 1, "distinct": 1}})[0] == PERHAPS
    assert "tried with top_k 1: 429" in verdict("top_k", **tried("top_k", 2, failed="429"))[2]
    for name in ("top_k", "top_p", "min_p"):
        assert verdict(name, **tried(name, 1))[:2] == (YES, False)
        neutral = ({}, {name: None}, {name: -1}, {name: 0}, {"top_p": 1}, {"refused": [name], name: 0.5})
        assert {verdict(name, sent=sent, **tried(name, 2))[:2] for sent in neutral} == {(PERHAPS, False)}
        chosen = 0.9 if name == "top_p" else 1
        assert verdict(name, sent={name: chosen}, **tried(name, 2))[:2] == (NO, True)
        assert "not known" in verdict(name, sent={"refused": [name]}, **tried(name, 1))[2]
    assert [verdict("log-probability base", raw_logprobs=raw)[0] for raw in (True, False, None)] == [YES, NO, PERHAPS]


def test_seeds_and_caches_are_told_by_what_varied() -> None:
    seeds = [(False, True, NO), (True, True, SURE), (True, False, PERHAPS), (None, True, PERHAPS)]
    assert [verdict("seed", seeds_repeat=r, varied=v)[:2] for r, v, _ in seeds] == [(s, False) for *_, s in seeds]
    assert verdict("seed", seeds_repeat=True)[2] == "all seeds gave one answer"
    assert verdict("no cache", varied=True)[0] == YES
    assert verdict("no cache", **tried("no seed", 2))[:2] == (SURE, False)
    assert verdict("no cache", varied=True, **tried("no seed", 1))[0] == PERHAPS
    at_border(lambda p: verdict("no cache", **tried("no seed", 1, chance=p))[:2] == (NO, False), 0.01, "100")
    for setting in ("no cache", "temperature"):
        at_border(lambda p, s=setting: verdict(s, varied=False, certain=p)[:2] == (NO, True), 0.01, "100")
        assert verdict(setting, varied=True, certain=0.0)[0] != NO
    still = tried("temperature", 2)
    assert "at a temperature near 0" in verdict("temperature", varied=False, certain=0.0, **still)[2]
    assert "greedy" in verdict("temperature", varied=False, certain=0.0, **tried("temperature", 1))[2]


def test_nobody_sampled_where_nearly_all_clean_answers_are_the_same() -> None:
    def greedy(same: int, n: int) -> bool:
        sets = [AnswerSet(str(i), Answer("a"), (Answer("a"), Answer("a" if i < same else "b"))) for i in range(n)]
        return verdict("temperature", sets)[:2] == (NO, True)

    at_border(lambda same: greedy(int(same), 100), 98, "011")
    at_border(lambda n: greedy(int(n), int(n)), 10, "011")


def test_several_models_behind_one_name() -> None:
    def found(*served: Served) -> Any:
        return verdict("one model", [AnswerSet("1", Answer("a"), tuple(Answer("b", served=s) for s in served))])

    assert found(Served("m"), Served("n"))[:2] == (NO, True)
    names = [f.name for f in fields(Served) if f.name != "model"]
    assert all(found(Served("m", **{n: "1"}), Served("m", **{n: "2"}))[:2] == (NO, False) for n in names)
    text = found(*(Served(f"m{i}") for i in range(9)))[2]
    assert text.count("(1 answers)") == 4


def test_replies_that_do_not_say_who_they_are_from() -> None:
    decoding = {"asked": "pure", "temperature": 1.0}
    told = Answer("a", served=Served("m"))
    for answers, state in (([told, told], "not contradicted"), ([told, Answer("b")], "not verifiable")):
        health = measure_health([AnswerSet("1", answers[0], tuple(answers))], {"decoding": decoding})
        assert states(health)["one model"] == state
    nobody = measure_health([AnswerSet("1", Answer("a"), (Answer("b"),))], {"decoding": decoding})
    assert of(nobody)["one model"].text.startswith("no answer says who gave it")
    assert decoding_line(nobody) is not None
    assert measure_health([AnswerSet("1", Answer("a"), (Answer("b"),))], {}).settings == []
