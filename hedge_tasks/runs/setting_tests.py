"""Verdicts on whether a run was sampled as it was asked for, setting by setting, with the evidence.

Servers drop settings, cap them, or fill in their own, and say nothing. So nothing that was sent counts as done. There
are three witnesses: the draws against their own log-probabilities (`statistics.draws`), what the probe found before the
first draw (`sampling.probe`), and who answered, as the replies say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from hedge_tasks.numbers import format_p, format_value
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
_LONGEST_METHOD = 80

Witness = tuple[State, str] | tuple[State, str, bool]
"""State and evidence of the probe or the replies, and whether it makes the run unreliable."""


def setting_tests(run: Sampled) -> Iterator[HealthTest]:
    """Yield a verdict on each of `SETTINGS`; none where nothing was sampled by this package."""
    decoding = run.part("decoding")
    if not decoding.get("asked"):
        return
    itself = decoding.get("sampled_here") is True
    sent = decoding.get("sent") or {}
    for setting in SETTINGS:
        if itself and setting not in (SEED, BATCH):
            witness: Witness = ("verified", "this package's own code chose the tokens")
        elif setting in NARROWEST:
            witness = _narrowing(run, setting)
        else:
            witness = _WITNESSES[setting](run)
        requested = decoding.get("temperature") if setting == TEMPERATURE else sent.get(setting)
        is_number = isinstance(requested, (int, float)) and setting in (TEMPERATURE, *NARROWEST)
        number, grave = float(requested or 0) if is_number else None, len(witness) == 3 and witness[2]
        yield _with_draws(HealthTest(setting, witness[0], witness[1], grave, True, number), run)


def _with_draws(test: HealthTest, run: Sampled) -> HealthTest:
    """The verdict of the probe or the replies together with that of the draws, which do not say whose fault it is."""
    if test.state in ("contradicted", "verified"):
        return test
    draws = run.draws
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


def _tried(run: Sampled, name: str) -> SettingTried:
    return SettingTried.of((run.part("probe").get("behaviour") or {}).get(name))


def _single_answer(run: Sampled) -> str | None:
    """That all seeds gave one answer in the probe, where that is unlikely by its own probability; else None."""
    chance = run.part("probe").get("certain")
    if run.part("probe").get("varied") is not False or not isinstance(chance, (int, float)) or chance >= UNLIKELY:
        return None
    return f"all seeds gave one answer, which has the chance {format_p(chance)} by its own probability"


def _temperature(run: Sampled) -> Witness:
    tried, one_answer = _tried(run, NEAR_ZERO), _single_answer(run)
    fewest, share = _GREEDY
    same = len(run.distinct) >= fewest and run.distinct.count(1) >= share * len(run.distinct)
    if tried.all_same is False:
        return "contradicted", f"{tried.draws} draws at a temperature near 0 gave {tried.distinct} answers", True
    if one_answer is not None:
        return "contradicted", f"{one_answer}: greedy decoding, or a cache", True
    if same and run.part("decoding").get("temperature") != 0:
        return "contradicted", "the clean answers of nearly all documents are one and the same", True
    if tried.all_same:
        return "not contradicted", f"{tried.draws} draws near 0 gave one answer; a cap would not show there"
    return "not verifiable", f"tried near 0: {tried.failed}" if tried.failed else "no test tells"


def _narrowing(run: Sampled, name: str) -> Witness:
    tried, narrow = _tried(run, name), f"{name} {NARROWEST[name]:g}"
    sent = run.part("decoding").get("sent") or {}
    requested = sent.get(name)
    explicit = requested not in (None, -1, 0) and (name, requested) != ("top_p", 1)
    if name in (sent.get("refused") or ()):
        return "not verifiable", "the server refuses it, what it has in its place is not known"
    if tried.all_same is False:
        text = f"ignored: {narrow} gave {tried.distinct} answers to {tried.draws} seeds"
        return "contradicted" if explicit else "not verifiable", text, explicit
    if tried.all_same:
        chance = "" if tried.chance is None else f" (chance {format_p(tried.chance)} if it were ignored)"
        return "not contradicted", f"{narrow} gives one answer to {tried.draws} seeds{chance}"
    return "not verifiable", f"tried with {narrow}: {tried.failed}" if tried.failed else "no test tells"


def _seed(run: Sampled) -> Witness:
    repeats = run.part("probe").get("seeds_repeat")
    if repeats is False:
        return "contradicted", "the same seed gives other answers: a draw that is made again may differ"
    if repeats is True and run.part("probe").get("varied") is True:
        return "verified", "the same seed gave the same answer, others gave others"
    return "not verifiable", "all seeds gave one answer" if repeats else "not tried: no seeds, or no probe"


def _one_model(run: Sampled) -> Witness:
    if others := run.part("server").get("other_models"):
        return "contradicted", f"answers as {', '.join(map(str, others))}, which was not asked for"
    for name, values in sorted(run.served.items(), key=lambda item: item[0] != "model"):
        if len(values) > 1:
            counted = ", ".join(f"{value} ({n} answers)" for value, n in list(values.items())[:_MOST_NAMED])
            text = f"answers come from more than one model behind one name: {name} {counted}"
            return "contradicted", text, name == "model"
    n = max((sum(values.values()) for values in run.served.values()), default=0)
    text = (
        f"{', '.join(run.served)} the same in {n} of {len(run.answers)} answers" if n else "no answer says who gave it"
    )
    return "not contradicted" if n == len(run.answers) else "not verifiable", text


def _base(run: Sampled) -> Witness:
    raw = run.part("probe").get("raw_logprobs")
    if raw is False:
        return "contradicted", "log-probabilities change with the temperature: not those of the raw distribution"
    if raw is True:
        return "not contradicted", "the same at two temperatures"
    none = run.part("probe").get("logprobs") is False
    return "not verifiable", "there are no log-probabilities, or not for every answer" if none else "no test tells"


def _cache(run: Sampled) -> Witness:
    tried, one_answer = _tried(run, NO_SEED), _single_answer(run)
    if one_answer is not None:
        return "contradicted", f"{one_answer}: a cache, or greedy decoding", True
    if tried.all_same is False:
        return "verified", f"{tried.draws} equal requests without a seed gave {tried.distinct} answers"
    if tried.all_same:
        chance = 1.0 if tried.chance is None else tried.chance
        text = f"{tried.draws} equal requests without a seed gave one answer (chance {format_p(chance)})"
        return "contradicted" if chance < UNLIKELY else "not verifiable", text
    if run.part("probe").get("varied") is True:
        return "not contradicted", "other seeds gave other answers"
    return "not verifiable", "no test tells"


def _batch(run: Sampled) -> Witness:
    same = _tried(run, TOGETHER).all_same
    if same is None:
        return "not verifiable", "not tried, or the answers failed"
    if same:
        return "not contradicted", "the same answer alone and beside a long prompt"
    return "contradicted", "another answer beside a long prompt than alone, near temperature 0"


_WITNESSES: Mapping[str, Callable[[Sampled], Witness]] = {
    TEMPERATURE: _temperature,
    SEED: _seed,
    PENALTIES: lambda run: ("not verifiable", "no test tells whether they are obeyed"),
    ONE_MODEL: _one_model,
    BASE: _base,
    CACHE: _cache,
    BATCH: _batch,
}


def mitigation_line(decoding: Mapping[str, Any]) -> str | None:
    """How logits were contrasted before a token was chosen, as a run has it under `sampled`; None where they were not.

    Example:
        >>> mitigation_line({"asked": "pure", "method": {"name": "vcd", "alpha": 1.0, "noise_step": 500}})
        'vcd (alpha 1, noise step 500)'
    """
    method = decoding.get("method")
    if not isinstance(method, Mapping):
        return None
    options = [f"{key} {_value_text(value)}" for key, value in method.items() if key != "name"]
    text = f"{method.get('name')} ({', '.join(options)})".replace("_", " ")
    return "".join(filter(str.isprintable, text))[:_LONGEST_METHOD]


def _value_text(value: object) -> str:
    if isinstance(value, list):
        return "/".join(map(str, value))
    return f"{value:g}" if isinstance(value, int | float) else str(value)
