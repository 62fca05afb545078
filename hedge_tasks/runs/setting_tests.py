"""Verdicts on whether a run was sampled as it was asked for, setting by setting, with the evidence.

Servers drop settings, cap them, or fill in their own, and say nothing. So nothing that was sent counts as done. There
are three witnesses: the draws against their own log-probabilities (`statistics.draws`), what the probe found before the
first draw (`sampling.probe`), and who answered, as the replies say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from hedge_tasks.numbers import count_of, format_p, format_value
from hedge_tasks.runs.health_tests import HealthTest, Sampled, State
from hedge_tasks.sampling.behaviour import NARROWEST, NEAR_ZERO, NO_SEED, TOGETHER, SettingTried
from hedge_tasks.sampling.probe import UNLIKELY

TEMPERATURE, SEED, PENALTIES, ONE_MODEL = "temperature", "seed", "penalties", "one model"
BASE, CACHE, BATCH = "log-probability base", "no cache", "batch"
SETTINGS = (TEMPERATURE, *NARROWEST, SEED, PENALTIES, ONE_MODEL, BASE, CACHE, BATCH)

_BY_DRAWS = (TEMPERATURE, *NARROWEST, PENALTIES, BASE)
"""Settings one of which is otherwise where the draws contradict their log-probabilities."""

_TOLD_BY_DRAWS = (TEMPERATURE, "top_p", "top_k", BASE)
"""Settings that draws speak for where they do not contradict."""

_GREEDY = (10, 0.98)
"""Documents, and the share of them whose clean answers are all the same, from which nobody sampled."""

_MOST_NAMED = 4
NO_TEST = "no test tells"

Witness = tuple[State, str, bool]
"""State and evidence of the probe or the replies, and whether it makes the run unreliable."""


def setting_tests(run: Sampled) -> Iterator[HealthTest]:
    """Yield a verdict on each of `SETTINGS`; none where nothing was sampled by this package."""
    decoding = run.part("decoding")
    if not decoding.get("asked"):
        return
    for setting in SETTINGS:
        if decoding.get("sampled_here") is True and setting not in (SEED, BATCH):
            yield HealthTest(setting, "verified", "this package's own code chose the tokens", setting=True)
        else:
            yield _with_draws(HealthTest(setting, *_WITNESSES[setting](run), setting=True), run)


def _with_draws(test: HealthTest, run: Sampled) -> HealthTest:
    """The verdict of the probe or the replies together with that of the draws, which do not say whose fault it is."""
    draws = run.draws
    if test.state in ("contradicted", "verified"):
        return test
    if draws.state == "contradicted" and test.name in _BY_DRAWS:
        number = "" if draws.repeats is None else repeats_text(draws.repeats, draws.expected or 0.0)
        text = f"{draws.reason or number}: one of {', '.join(_BY_DRAWS)}"
        return replace(test, state="contradicted", text=text, unreliable=True, implied=True)
    if draws.state == "not contradicted" and test.name in _TOLD_BY_DRAWS:
        one_sided = "" if draws.two_sided else "end tokens are not known: too many repeats alone would show"
        return replace(test, state="not contradicted", text="; ".join(filter(None, [test.text, one_sided])))
    return test


def repeats_text(repeats: float, expected: float) -> str:
    """Return in words how often draws repeat, and how often they were expected to by their log-probabilities."""
    return f"a draw comes again {format_value(repeats)} times, expected {format_value(expected)}"


def _tried(run: Sampled, name: str, words: str) -> tuple[SettingTried, str]:
    """Return a test of the probe, and in words what came of it."""
    tried = SettingTried.of((run.part("probe").get("behaviour") or {}).get(name))
    if tried.all_same is None:
        return tried, f"tried {words}: {tried.failed}" if tried.failed else NO_TEST
    chance = "" if tried.chance is None else f" (chance {format_p(tried.chance)} of plain draws)"
    return tried, f"{tried.draws} draws {words} gave {count_of(tried.distinct, 'answer')}{chance}"


def _single_answer(run: Sampled) -> str | None:
    """That all seeds gave one answer in the probe, where that is unlikely by its own probability; else None."""
    chance = run.part("probe").get("certain")
    if run.part("probe").get("varied") is not False or not isinstance(chance, (int, float)) or chance >= UNLIKELY:
        return None
    text = f"all seeds gave one answer, with a chance of {format_p(chance)} by its own probability"
    return f"{text}: greedy decoding, or a cache"


def _temperature(run: Sampled) -> Witness:
    tried, text = _tried(run, NEAR_ZERO, "at a temperature near 0, where no cap shows,")
    fewest, share = _GREEDY
    if run.hot and len(run.distinct) >= fewest and run.distinct.count(1) >= share * len(run.distinct):
        return "contradicted", "the clean answers of nearly all documents are one and the same", True
    if tried.all_same is not False and (one_answer := _single_answer(run)):
        return "contradicted", one_answer, True
    return _STATES[tried.all_same], text, tried.all_same is False


def _narrowing(name: str, run: Sampled) -> Witness:
    tried, text = _tried(run, name, f"with {name} {NARROWEST[name]:g}")
    sent = run.part("decoding").get("sent") or {}
    value = sent.get(name)
    explicit = value not in (None, -1, 0) and (name, value) != ("top_p", 1)
    if name in (sent.get("refused") or ()):
        return "not verifiable", "the server refuses it, what it has in its place is not known", False
    if tried.all_same is False:
        return "contradicted" if explicit else "not verifiable", f"ignored: {text}", explicit
    return _STATES[tried.all_same], text, False


def _seed(run: Sampled) -> Witness:
    repeats = run.part("probe").get("seeds_repeat")
    if repeats is False:
        return "contradicted", "the same seed gives other answers: a draw that is made again may differ", False
    if repeats is True and run.part("probe").get("varied") is True:
        return "verified", "the same seed gave the same answer, others gave others", False
    return "not verifiable", "all seeds gave one answer" if repeats else "not tried: no seeds, or no probe", False


def _one_model(run: Sampled) -> Witness:
    if others := run.part("server").get("other_models"):
        return "contradicted", f"answers as {', '.join(map(str, others))}, which was not asked for", False
    for name, values in sorted(run.served.items(), key=lambda item: item[0] != "model"):
        if len(values) > 1:
            counted = ", ".join(f"{value} ({n} answers)" for value, n in values.most_common(_MOST_NAMED))
            text = f"answers come from more than one model behind one name: {name} {counted}"
            return "contradicted", text, name == "model"
    n = max((values.total() for values in run.served.values()), default=0)
    same = f"{', '.join(run.served)} the same in {n} of {len(run.answers)} answers"
    state: State = "not contradicted" if n == len(run.answers) else "not verifiable"
    return state, same if n else "no answer says who gave it", False


def _base(run: Sampled) -> Witness:
    raw = run.part("probe").get("raw_logprobs")
    if not isinstance(raw, bool):
        return "not verifiable", NO_TEST, False
    changed = "" if raw else " other than those of the raw distribution"
    return _STATES[raw], f"log-probabilities at two temperatures{changed}", False


def _cache(run: Sampled) -> Witness:
    tried, text = _tried(run, NO_SEED, "without a seed")
    if one_answer := _single_answer(run):
        return "contradicted", one_answer, True
    if tried.all_same is None and run.part("probe").get("varied") is True:
        return "not contradicted", "other seeds gave other answers", False
    unlikely = tried.all_same and tried.chance is not None and tried.chance < UNLIKELY
    return "contradicted" if unlikely else "verified" if tried.all_same is False else "not verifiable", text, False


def _batch(run: Sampled) -> Witness:
    tried, text = _tried(run, TOGETHER, "alone and beside a long prompt")
    return _STATES[tried.all_same], text, False


_STATES: Mapping[bool | None, State] = {True: "not contradicted", False: "contradicted", None: "not verifiable"}
"""By whether what had to repeat did so."""

_WITNESSES: Mapping[str, Callable[[Sampled], Witness]] = {
    TEMPERATURE: _temperature,
    **{name: partial(_narrowing, name) for name in NARROWEST},
    SEED: _seed,
    PENALTIES: lambda run: ("not verifiable", NO_TEST, False),
    ONE_MODEL: _one_model,
    BASE: _base,
    CACHE: _cache,
    BATCH: _batch,
}
