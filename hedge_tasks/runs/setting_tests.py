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
from hedge_tasks.statistics.draws import DrawsVerdict

TEMPERATURE, SEED, BASE, BATCH = "temperature", "seed", "log-probability base", "batch"

_BY_DRAWS = (TEMPERATURE, *NARROWEST, "penalties", BASE)
"""Settings one of which is otherwise where the draws contradict their log-probabilities."""

_TOLD_BY_DRAWS = (TEMPERATURE, "top_p", "top_k", BASE)
"""Settings that draws speak for where they do not contradict."""

_GREEDY = (10, 0.98)
"""Documents, and the share of them whose clean answers are all the same, from which nobody sampled."""

NO_TEST = "no test tells"

Witness = tuple[State, str, bool]
"""State and evidence of the probe or the replies, and whether it makes the run unreliable."""

_STATES: Mapping[bool | None, State] = {True: "not contradicted", False: "contradicted", None: "not verifiable"}
"""By whether what had to repeat did so."""


def setting_tests(run: Sampled) -> Iterator[HealthTest]:
    """Yield a verdict on each of `SETTINGS`; none where nothing was sampled by this package."""
    for setting, witness in _WITNESSES.items() if run.decoding.get("asked") else ():
        if run.decoding.get("sampled_here") is True and setting not in (SEED, BATCH):
            yield HealthTest(setting, "verified", "this package's own code chose the tokens", setting=True)
        else:
            yield _with_draws(HealthTest(setting, *witness(run), setting=True), run.draws)


def _with_draws(test: HealthTest, draws: DrawsVerdict) -> HealthTest:
    """The verdict of the probe or the replies together with that of the draws, which do not say whose fault it is."""
    if test.state in ("contradicted", "verified"):
        return test
    if draws.state == "contradicted" and test.name in _BY_DRAWS:
        text = f"{draws_text(draws)}: one of {', '.join(_BY_DRAWS)}"
        return replace(test, state="contradicted", text=text, unreliable=True, implied=True)
    if draws.state == "not contradicted" and test.name in _TOLD_BY_DRAWS:
        one_sided = "" if draws.two_sided else "end tokens are not known: too many repeats alone would show"
        return replace(test, state="not contradicted", text="; ".join(filter(None, [test.text, one_sided])))
    return test


def draws_text(draws: DrawsVerdict) -> str:
    """Return in words what the draws say against their log-probabilities, or why they say nothing."""
    parts = [draws.reason or ""]
    if draws.repeats is not None:
        repeats, expected = format_value(draws.repeats), format_value(draws.expected or 0.0)
        parts.append(f"a draw comes again {repeats} times, expected {expected}")
    if draws.p_value is not None:
        parts.append(f"p {format_p(draws.p_value)}, {draws.documents} documents")
    return "; ".join(filter(None, parts))


def _repeated(name: str, words: str, run: Sampled) -> Witness:
    """Whether the answers to a test of the probe were the same, as they had to be."""
    tried = _tried(run, name)
    if tried.all_same is None:
        return "not verifiable", f"tried {words}: {tried.failed}" if tried.failed else NO_TEST, False
    chance = "" if tried.chance is None else f" (chance {format_p(tried.chance)} of plain draws)"
    text = f"{tried.draws} draws {words} gave {count_of(tried.distinct, 'answer')}{chance}"
    return _STATES[tried.all_same], text, False


def _tried(run: Sampled, name: str) -> SettingTried:
    return SettingTried.read(run.probe.get("behaviour", {}).get(name, {}))


def _single_answer(run: Sampled) -> str | None:
    """That all seeds gave one answer in the probe, where that is unlikely by its own probability; else None."""
    chance = run.probe.get("certain")
    if run.probe.get("varied") is not False or chance is None or chance >= UNLIKELY:
        return None
    text = f"all seeds gave one answer, with a chance of {format_p(chance)} by its own probability"
    return f"{text}: greedy decoding, or a cache"


def _temperature(run: Sampled) -> Witness:
    state, text, _ = _repeated(NEAR_ZERO, "at a temperature near 0, where no cap shows,", run)
    fewest, share = _GREEDY
    if run.hot and len(run.distinct) >= fewest and run.distinct.count(1) >= share * len(run.distinct):
        return "contradicted", "the clean answers of nearly all documents are one and the same", True
    if state != "contradicted" and (one_answer := _single_answer(run)):
        return "contradicted", one_answer, True
    return state, text, state == "contradicted"


def _narrowing(name: str, run: Sampled) -> Witness:
    state, text, _ = _repeated(name, f"with {name} {NARROWEST[name]:g}", run)
    sent = run.decoding.get("sent") or {}
    explicit = sent.get(name) not in (None, -1, 0) and (name, sent[name]) != ("top_p", 1)
    if name in (sent.get("refused") or ()):
        return "not verifiable", "the server refuses it, what it has in its place is not known", False
    if state == "contradicted":
        return "contradicted" if explicit else "not verifiable", f"ignored: {text}", explicit
    return state, text, False


def _seed(run: Sampled) -> Witness:
    repeats = run.probe.get("seeds_repeat")
    if repeats is False:
        return "contradicted", "the same seed gives other answers: a draw that is made again may differ", False
    if repeats and run.probe.get("varied"):
        return "verified", "the same seed gave the same answer, others gave others", False
    return "not verifiable", "all seeds gave one answer" if repeats else "not tried: no seeds, or no probe", False


def _one_model(run: Sampled) -> Witness:
    if others := run.server.get("other_models"):
        return "contradicted", f"answers as {', '.join(others)}, which was not asked for", False
    for name, values in run.served.items():  # the model first
        if len(values) > 1:
            counted = ", ".join(f"{value} ({n} answers)" for value, n in values.most_common(4))
            text = f"answers come from more than one model behind one name: {name} {counted}"
            return "contradicted", text, name == "model"
    n = max((values.total() for values in run.served.values()), default=0)
    same = f"{', '.join(run.served)} the same in {n} of {len(run.answers)} answers"
    state: State = "not contradicted" if n == len(run.answers) else "not verifiable"
    return state, same if n else "no answer says who gave it", False


def _base(run: Sampled) -> Witness:
    raw = run.probe.get("raw_logprobs")
    if raw is None:
        return "not verifiable", NO_TEST, False
    changed = "" if raw else " other than those of the raw distribution"
    return _STATES[raw], f"log-probabilities at two temperatures{changed}", False


def _cache(run: Sampled) -> Witness:
    if one_answer := _single_answer(run):
        return "contradicted", one_answer, True
    state, text, _ = _repeated(NO_SEED, "without a seed", run)
    if state == "contradicted":  # what had to repeat elsewhere must not here
        return "verified", text, False
    if state == "not verifiable" and run.probe.get("varied"):
        return "not contradicted", "other seeds gave other answers", False
    chance = _tried(run, NO_SEED).chance
    unlikely = state == "not contradicted" and chance is not None and chance < UNLIKELY
    return "contradicted" if unlikely else "not verifiable", text, False


_WITNESSES: Mapping[str, Callable[[Sampled], Witness]] = {
    TEMPERATURE: _temperature,
    **{name: partial(_narrowing, name) for name in NARROWEST},
    SEED: _seed,
    "penalties": lambda run: ("not verifiable", NO_TEST, False),
    "one model": _one_model,
    BASE: _base,
    "no cache": _cache,
    BATCH: partial(_repeated, TOGETHER, "alone and beside a long prompt"),
}

SETTINGS = tuple(_WITNESSES)
"""Settings that there is a verdict on."""
