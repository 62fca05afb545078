"""Server faults and honest models, simulated: every fault is seen, no honest model is called unreliable."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from at_border import at_border
from finished_runs import measure_health
from scipy.stats import binom

from hedge_tasks.data.answers import Answer, AnswerSet, Served
from hedge_tasks.measures.headline import headline
from hedge_tasks.runs import answer_tests
from hedge_tasks.runs.answer_tests import MANY, SOME, likeness
from hedge_tasks.runs.health import Health
from hedge_tasks.runs.health_tests import share_test
from hedge_tasks.runs.run_files import Run

DECODING = {"asked": "pure", "temperature": 1.0}
COOL = {"baseline_temperature": 0.1}
PLACES = ("left", "right", "upper", "lower", "middle", "outer")
ORGANS = ("lung", "kidney", "liver", "heart", "spleen", "aorta", "carina", "pleura")
SIGNS = ("nodule", "effusion", "fracture", "cyst", "mass", "opacity", "calcification", "tube")
N, DRAWS = 80, 6

Sets = list[AnswerSet]
Words = Mapping[str, float]


def options_of(dice: random.Random, sure: float) -> Words:
    """What a model may answer about one document, with its probabilities."""
    texts = [f"{dice.choice(PLACES)} {dice.choice(ORGANS)} {dice.choice(SIGNS)}" for _ in range(4)]
    return shares(texts, dice, sure)


def shares(texts: Sequence[str], dice: random.Random, sure: float = 1.0) -> Words:
    weights = [dice.uniform(0.1, 1.0) ** sure for _ in texts]
    summed: dict[str, float] = {}
    for text, weight in zip(texts, weights, strict=True):
        summed[text] = summed.get(text, 0.0) + weight / sum(weights)
    return summed


def drawn(words: Words, dice: random.Random) -> Answer:
    [text] = dice.choices(list(words), list(words.values()))
    n = len(text.split())
    return Answer(text, math.log(words[text]) / n, n, "stop", end_logprob=0.0)


def simulated(
    options: Callable[[random.Random], Words],
    *,
    noise: float = 1.0,
    question: Callable[[int], str] = lambda i: f"What does picture {i} show here?",
    seed: int = 0,
    n: int = N,
) -> Sets:
    """Answers of a model that draws from its own distribution, which `noise` changes on noisy pictures."""
    dice = random.Random(seed)
    sets = []
    for i in range(n):
        words = options(dice)
        baseline = max((drawn(words, dice) for _ in range(4)), key=lambda a: (a.mean_logprob or 0) * (a.n_tokens or 0))

        def noisy(words: Words = words) -> Answer:
            parts = {text: share * math.exp(noise * dice.gauss(0, 1)) for text, share in words.items()}
            return drawn({text: part / sum(parts.values()) for text, part in parts.items()}, dice)

        clean = tuple(drawn(words, dice) for _ in range(DRAWS))
        label = int(baseline.text != max(words, key=lambda text: words[text]))
        sets.append(AnswerSet(f"q{i}", baseline, clean, tuple(noisy() for _ in range(DRAWS)), question(i), "-", label))
    return sets


def open_questions(seed: int = 0) -> Sets:
    return simulated(lambda dice: options_of(dice, 1.0), seed=seed)


def of_shared(texts: Sequence[str], sure: float = 1.0) -> Callable[[random.Random], Words]:
    """Documents that have the same answers to choose from, each with its own preferences."""
    return lambda dice: shares(texts, dice, sure)


SAME = {"a left lung nodule": 0.4, "no finding": 0.3, "a cyst": 0.3}

HONEST: dict[str, Callable[[int], Sets]] = {
    "open questions": open_questions,
    "blind": lambda seed: simulated(lambda dice: options_of(dice, 1.0), noise=0.0, seed=seed),
    "sure of most answers": lambda seed: simulated(lambda dice: options_of(dice, 4.0), noise=0.2, seed=seed),
    "nearly greedy": lambda seed: simulated(lambda dice: options_of(dice, 8.0), noise=0.0, seed=seed),
    "yes or no": lambda seed: simulated(of_shared(("yes", "no"), 3.0), seed=seed),
    "letters": lambda seed: simulated(of_shared("ABCD", 3.0), seed=seed),
    "always yes, now and then no": lambda seed: simulated(lambda dice: {"yes": 0.55, "no": 0.45}, noise=0.0, seed=seed),
    "one question, one distribution": lambda seed: simulated(
        lambda dice: SAME, noise=0.0, question=lambda i: "What does this picture show?", seed=seed
    ),
    "noise makes it see nothing": lambda seed: [
        replace(s, noisy=(*s.noisy[:4], *(replace(a, text="I cannot tell.") for a in s.noisy[4:])))
        for s in open_questions(seed)
    ],
    "no log-probabilities": lambda seed: bare(open_questions(seed)),
}


def bare(sets: Sets) -> Sets:
    return on_all(lambda a: Answer(a.text, finish=a.finish))(sets)


def on_all(change: Callable[[Answer], Answer]) -> Callable[[Sets], Sets]:
    def changed(sets: Sets) -> Sets:
        return [
            replace(
                s, baseline=change(s.baseline), clean=tuple(map(change, s.clean)), noisy=tuple(map(change, s.noisy))
            )
            for s in sets
        ]

    return changed


def on_draws(change: Callable[[Answer], Answer], *names: str) -> Callable[[Sets], Sets]:
    def changed(sets: Sets) -> Sets:
        return [replace(s, **{name: tuple(map(change, getattr(s, name))) for name in names}) for s in sets]

    return changed


def moved(name: str, by: int = 1) -> Callable[[Sets], Sets]:
    """The draws of another document."""
    return lambda sets: [replace(s, **{name: getattr(sets[(i - by) % len(sets)], name)}) for i, s in enumerate(sets)]


def shuffled(name: str) -> Callable[[Sets], Sets]:
    def changed(sets: Sets) -> Sets:
        pool = [a for s in sets for a in getattr(s, name)]
        random.Random(1).shuffle(pool)
        return [replace(s, **{name: tuple(pool[DRAWS * i : DRAWS * (i + 1)])}) for i, s in enumerate(sets)]

    return changed


def resampled(power: float) -> Callable[[Sets], Sets]:
    """Clean draws at another temperature than was asked for, with the log-probabilities of temperature 1."""

    def changed(sets: Sets) -> Sets:
        dice = random.Random(2)

        def again(s: AnswerSet) -> tuple[Answer, ...]:
            distinct = list({a.text: a for a in s.clean}.values())
            weights = [math.exp(power * (a.mean_logprob or 0) * (a.n_tokens or 0)) for a in distinct]
            return tuple(dice.choices(distinct, weights, k=DRAWS))

        return [replace(s, clean=again(s)) for s in sets]

    return changed


REFUSAL = "I'm sorry, I can't help with that."
CLEAN_AND_NOISY = ("clean", "noisy")
FAULTS: dict[str, Callable[[Sets], Sets]] = {
    "clean draws of the document before": moved("clean"),
    "noisy draws of the document before": moved("noisy"),
    "clean draws dealt out at random": shuffled("clean"),
    "draws of the document before, late": lambda sets: [*sets[: N // 2], *moved("clean")(sets)[N // 2 :]],
    "sides swapped": lambda sets: [replace(s, clean=s.noisy, noisy=s.clean) for s in sets],
    "baseline drawn at random": lambda sets: [replace(s, baseline=s.clean[1]) for s in sets],
    "all draws refused": on_draws(lambda a: replace(a, text=REFUSAL), *CLEAN_AND_NOISY),
    "noisy draws empty": on_draws(lambda a: Answer("", finish="stop"), "noisy"),
    "noisy draws an error text": on_draws(lambda a: replace(a, text="upstream image decoder: code 17"), "noisy"),
    "noisy equal to clean": lambda sets: [replace(s, noisy=s.clean) for s in sets],
    "draws are the baseline answer": lambda sets: [replace(s, clean=(s.baseline,) * DRAWS) for s in sets],
    "each draw there twice": lambda sets: [replace(s, clean=s.clean[:3] * 2) for s in sets],
    "the prompt in place of draws": lambda sets: [
        on_draws(lambda a: replace(a, text=s.question or ""), "clean")([s])[0]  # noqa: B023
        for s in sets
    ],
    "noisy draws cut to a letter": on_draws(lambda a: replace(a, text=a.text[:1]), "noisy"),
    "draws cut by the limit": on_draws(lambda a: replace(a, finish="length"), *CLEAN_AND_NOISY),
    "draws filtered": on_draws(lambda a: Answer("", finish="filtered"), "noisy"),
    "log-probabilities of zero": on_all(lambda a: replace(a, mean_logprob=0.0)),
    "cooler than told": resampled(4.0),
    "two models behind one name": on_draws(lambda a: replace(a, served=Served(f"m{len(a.text) % 2}")), "clean"),
    "one text for every document": lambda sets: [
        replace(s, baseline=sets[0].baseline, clean=sets[0].clean, noisy=sets[0].noisy) for s in sets
    ],
}
NEEDS_LOGPROBS = {
    "sides swapped",
    "baseline drawn at random",
    "log-probabilities of zero",
    "cooler than told",
    "clean draws dealt out at random",
    "one text for every document",
}


def health(sets: Sets) -> Health:
    return measure_health(sets, {"decoding": DECODING}, sampling=COOL)


def state(sets: Sets) -> Any:
    verdicts = {s.id: {"label": s.label, "judge": "labels", "reason": ""} for s in sets}
    run = Run("t", "m", tuple(sets), verdicts, {"sampled": {"decoding": DECODING}, "sampling": COOL}, "2026-01-02")
    return headline(run, {}).trust


@pytest.mark.parametrize("kind", HONEST)
def test_no_honest_model_is_unreliable(kind: str) -> None:
    found = health(HONEST[kind](0))
    assert [c for c in found.tests if c.state == "contradicted" and c.unreliable] == []


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_seen(fault: str) -> None:
    sets = FAULTS[fault](open_questions())
    assert health(sets).unreliable
    without = health(bare_but_served(sets))
    assert without.unreliable or (fault in NEEDS_LOGPROBS and without.unchecked)


def bare_but_served(sets: Sets) -> Sets:
    return on_all(lambda a: Answer(a.text, finish=a.finish, served=a.served))(sets)


def test_green_is_where_everything_could_be_tested() -> None:
    sets = simulated(lambda dice: options_of(dice, 1.0), n=150)
    assert state(sets).level == "green", state(sets).text
    without = state(bare(sets))
    assert "no log-probabilities" in without.text, without.text
    same = state(simulated(lambda dice: SAME, noise=0.0, n=150))
    assert same.level == "not checked", same.text
    assert "no more alike than to others" in same.text
    # Where nothing was sampled there is nothing to test.
    assert measure_health([replace(s, clean=(), noisy=()) for s in sets], {}).unchecked == []


def test_likeness_is_that_of_all_pairs() -> None:
    usable = [("a b", ["a", "b c", "a"]), ("c", ["c", "b"]), ("d a", ["d", "d a"])]

    def cosine(one: str, other: str) -> float:
        first, second = set(one.split()), set(other.split())
        return len(first & second) / math.sqrt(len(first) * len(second))

    def mean(values: list[float]) -> float:
        return sum(values) / len(values)

    to_baseline, within = likeness(usable)
    for i, (baseline, draws) in enumerate(usable):
        others = [d for j, (_, d) in enumerate(usable) if j != i]
        own = mean([cosine(baseline, d) for d in draws])
        assert to_baseline[i] == pytest.approx(own - mean([mean([cosine(baseline, d) for d in o]) for o in others]))
        pairs = mean([cosine(d, e) for k, d in enumerate(draws) for m, e in enumerate(draws) if k != m])
        apart = mean([mean([cosine(d, e) for d in draws for e in o]) for o in others])
        assert within[i] == pytest.approx(pairs - apart)


def test_shares_are_judged_at_their_borders() -> None:
    def check(n: float, total: float = 100) -> Any:
        [test] = share_test("x", int(n), int(total), "answers are odd", SOME, MANY, 20)
        return test

    at_border(lambda n: check(n).state == "contradicted", int(100 * SOME), "001")
    at_border(lambda n: check(n).unreliable, int(100 * MANY), "001")
    at_border(lambda n: check(n, n).state != "not verifiable", 20, "011")


def of_name(sets: Sets, name: str, **settings: Any) -> Any:
    settings = {"sampling": COOL, **settings}
    return next((t for t in measure_health(sets, {"decoding": DECODING}, **settings).tests if t.name == name), None)


def said(texts: str, mean: float = -1.0) -> tuple[Answer, ...]:
    return tuple(Answer(text, mean, 1, "stop") for text in texts)


COINCIDENCES: dict[str, tuple[float, Callable[[bool], tuple[tuple[Answer, ...], tuple[Answer, ...]]]]] = {
    "each clean answer drawn anew": (0.8, lambda odd: (said("bbcc" if odd else "bbbc"), ())),
    "noisy answers are draws of their own": (2 / 3, lambda odd: (said("bc"), said("cbd" if odd else "bb"))),
    "baseline answers are not drawn at random": (0.25, lambda odd: (said("ba", -0.9 if odd else -1.0), ())),
}


@pytest.mark.parametrize("name", COINCIDENCES)
def test_coincidences_are_judged_by_the_exact_binomial_test(name: str) -> None:
    share, draws = COINCIDENCES[name]

    def found(n: int, total: int = 200) -> Any:
        sides = [draws(i < n) for i in range(total)]
        return of_name([AnswerSet(str(i), *said("a"), *side) for i, side in enumerate(sides)], name)

    at_border(lambda n: found(int(n)).state == "contradicted", int(binom.isf(1e-3, 200, share)), "001")
    assert "in 199 of 200 documents" in found(199).text
    fewest = math.ceil(math.log(1e-3, share))
    at_border(lambda n: found(int(n), int(n)).state != "not verifiable", fewest, "011")


def test_a_random_baseline_is_told_by_cool_ones_alone() -> None:
    name = "baseline answers are not drawn at random"
    sets = [AnswerSet(str(i), *said("a"), said("b", -0.5)) for i in range(40)]
    at_border(lambda t: of_name(sets, name, sampling={"baseline_temperature": t}) is not None, 0.5, "100")
    assert of_name(sets, name, sampling={}) is None  # of answers from elsewhere nothing is known
    # Likelier by token and not in all.
    longer = [replace(s, clean=(replace(s.clean[0], n_tokens=3),)) for s in sets]
    assert [of_name(s, name).state for s in (sets, longer)] == ["contradicted", "not contradicted"]


def test_draws_belong_to_their_documents_at_the_borders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Likenesses are made up: equal ones within a document, and so much of that to its baseline answer."""

    def found(name: str, shares: Sequence[float], each_other: float = 100.0) -> Any:
        n = len(shares)
        made_up = (np.array(shares) * each_other, np.full(n, each_other))
        monkeypatch.setattr(answer_tests, "likeness", lambda usable: made_up)
        sets = [AnswerSet(str(i), *said("a"), **{"clean": (), name: said("bc")}) for i in range(n)]
        return of_name(sets, f"{name} answers belong to their documents")

    for name, border in (("clean", 0.5), ("noisy", 0.25)):
        at_border(lambda share, name=name: found(name, [share] * 30).state == "contradicted", border, "100")
    assert found("clean", [0.0] * 30, 0.0).state == "not verifiable"
    at_border(lambda n: found("clean", [0.0] * int(n)).state == "contradicted", 20, "011")
    late = found("clean", [0.9] * 60 + [0.2] * 20)
    assert "documents 61 to 80" in late.text
    assert found("clean", [0.9] * 140 + [0.2] * 20).state == "not contradicted", "of four parts only"


def test_odd_draws_are_counted_against_those_before_at_the_borders() -> None:
    def found(refused: Sequence[int], baselines: int = 0) -> Any:
        sets = []
        for i, n in enumerate(refused):
            draws = tuple(Answer(REFUSAL if k < n else f"{i} {k}") for k in range(10))
            sets.append(AnswerSet(str(i), Answer(REFUSAL if i < baselines else "a"), draws))
        return of_name(sets, "clean answers beside baseline ones")

    assert [found(counts).state == "contradicted" for counts in ([0] + [1] * 19, [2] + [1] * 19)] == [False, True]
    assert [found(counts).unreliable for counts in ([5] * 20, [6] + [5] * 19)] == [False, True]
    assert found([6] * 20).text == "60.0 % of the clean answers are refused or empty, of those before 0.0 %"
    at_border(lambda n: found([6] * int(n)).state == "contradicted", 20, "011")
    at_border(lambda n: found(([0, 10] * 251)[: int(n)]).state == "contradicted", 500, "110")
    # More in ten documents and less in none is no chance; more in nine is.
    at_border(lambda n: found([10] * int(n) + [0] * (20 - int(n))).state == "contradicted", 10, "011")
    assert found([10] * 10 + [0] * 10).text.startswith("50.0 %")
    assert found([10] * 20, baselines=20).state == "not contradicted"


def test_questions_of_four_words_can_be_repeated() -> None:
    def found(question: str) -> Any:
        sets = simulated(
            lambda dice: {f"{question}, a cyst": 0.5, f"{question}, a mass": 0.5}, question=lambda i: question
        )
        return of_name(sets, "answers without their question")

    assert found("is it a cyst?").unreliable
    assert found("is it one?") is None
