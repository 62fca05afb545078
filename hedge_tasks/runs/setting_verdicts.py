"""Verdicts on whether a run was sampled as it was asked for, setting by setting, with the evidence.

Servers drop settings, cap them, or fill in their own, and say nothing. So nothing that was sent counts as done. There
are three witnesses: the draws against their own log-probabilities (`statistics.draws`), what the probe found before the
first draw (`sampling.probe`), and who answered, as the replies say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.numbers import format_p, format_value
from hedge_tasks.sampling.behaviour import NARROWEST, NEAR_ZERO, NO_SEED, TOGETHER, SettingTried
from hedge_tasks.sampling.probe import UNLIKELY
from hedge_tasks.statistics.draws import DrawsVerdict

State = Literal["verified", "not contradicted", "not verifiable", "contradicted"]

STATES: tuple[State, ...] = ("contradicted", "not verifiable", "not contradicted", "verified")
"""The gravest first."""

TEMPERATURE, SEED, PENALTIES, ONE_MODEL = "temperature", "seed", "penalties", "one model"
BASE, CACHE, BATCH = "log-probability base", "no cache", "batch"
SETTINGS = (TEMPERATURE, *NARROWEST, SEED, PENALTIES, ONE_MODEL, BASE, CACHE, BATCH)

_BY_DRAWS = (TEMPERATURE, "top_p", "top_k", ONE_MODEL, BASE)
"""Settings that the test of draws tells of."""

_TOO_OFTEN = (TEMPERATURE, *NARROWEST, PENALTIES, BASE)
_TOO_RARELY = (TEMPERATURE, PENALTIES, ONE_MODEL, BASE)
"""Settings that may be otherwise where draws repeat more and less often than their log-probabilities have it."""

_GREEDY = (10, 0.98)
"""Documents, and the share of them whose clean answers are all the same, from which nobody sampled."""


@dataclass(frozen=True)
class SettingVerdict:
    """Verdict on one setting of a run.

    Attributes:
        setting: one of `SETTINGS`.
        state: `verified` where nobody has to be believed; `not contradicted` where a test could have contradicted.
        evidence: what says so, or why nothing can.
        asked: the value that was asked for, where it is a number.
        unreliable: whether the run's numbers cannot be relied on because of it.
        by: the witness of a contradiction.
    """

    setting: str
    state: State
    evidence: str
    asked: float | None = None
    unreliable: bool = False
    by: Literal["draws", "probe", "replies"] | None = None

    def line(self) -> str:
        """Return it in words, such as "top_p 1: not contradicted (top_p 0.01 gives one answer to 4 seeds)"."""
        value = "" if self.asked is None else f" {self.asked:g}"
        return f"{self.setting}{value}: {self.state}" + (f" ({self.evidence})" if self.evidence else "")

    def to_dict(self) -> dict[str, Any]:
        return {key: value for key, value in asdict(self).items() if value is not None and value is not False}


def repeats_text(repeats: float, expected: float) -> str:
    """Return in words how often draws repeat, and how often they were expected to by their log-probabilities."""
    return f"a draw comes again {format_value(repeats)} times, expected {format_value(expected)}"


def setting_verdicts(
    sampled: Mapping[str, Any],
    draws: DrawsVerdict,
    served: Mapping[str, Mapping[str, int]],
    answer_sets: Sequence[AnswerSet],
) -> tuple[SettingVerdict, ...]:
    """A verdict on each of `SETTINGS`; none where nothing was sampled by this package.

    Args:
        sampled: how the model behaved, as a run's settings have it.
        draws: of the clean draws against their own log-probabilities.
        served: models and servers that answered: by field of `Served`, how many answers each value has.
        answer_sets: of the run.
    """
    decoding = sampled.get("decoding") or {}
    if not decoding.get("asked"):
        return ()
    checks = _SettingChecks(sampled, draws, served, answer_sets)
    return tuple(sorted(checks.verdicts(), key=lambda verdict: SETTINGS.index(verdict.setting)))


class _SettingChecks:
    """Evidence of the draws, the probe and the replies about each setting of one run."""

    def __init__(
        self,
        sampled: Mapping[str, Any],
        draws: DrawsVerdict,
        served: Mapping[str, Mapping[str, int]],
        answer_sets: Sequence[AnswerSet],
    ) -> None:
        self.decoding = sampled.get("decoding") or {}
        self.probe = sampled.get("probe") or {}
        self.server = sampled.get("server") or {}
        self.draws, self.served, self.answer_sets = draws, served, answer_sets
        recorded = self.probe.get("behaviour")
        tried = recorded if isinstance(recorded, Mapping) else {}
        self.tried = {name: SettingTried.of(trial) for name, trial in tried.items()}
        sent = self.decoding.get("sent")
        self.sent: Mapping[str, Any] = sent if isinstance(sent, Mapping) else {}
        self.sampled_here = self.decoding.get("sampled_here") is True
        names = self.sent.get("refused")
        self.refused = set(map(str, names)) if isinstance(names, list) else set()

    def verdicts(self) -> Iterator[SettingVerdict]:
        by_witness = {verdict.setting: verdict for verdict in self._by_replies_and_probe()}
        blamed = self._blamed(by_witness)
        for setting in SETTINGS:
            own = by_witness.get(setting)
            if own is not None and own.state == "contradicted":
                yield own
            elif setting in blamed:
                yield self._verdict(setting, "contradicted", self._deviation(blamed), unreliable=True, by="draws")
            elif own is not None and own.state == "verified":
                yield own
            else:
                yield self._by_draws(setting, own)

    def _by_draws(self, setting: str, own: SettingVerdict | None) -> SettingVerdict:
        """Add the test of draws to the verdicts known otherwise."""
        evidence = own.evidence if own else ""
        not_contradicted = own is not None and own.state == "not contradicted"
        if self.draws.state == "not contradicted" and setting in _BY_DRAWS:
            if not self.draws.two_sided:
                one_sided = "end tokens are not known: too many repeats alone would show"
                evidence = f"{evidence}; {one_sided}" if evidence else one_sided
            # Draws do not say whose they are.
            state: State = "not verifiable" if setting == ONE_MODEL and not not_contradicted else "not contradicted"
            return self._verdict(setting, state, evidence)
        if own is not None and not_contradicted:
            return own
        reasons = [evidence] if evidence else []
        if setting in _BY_DRAWS and self.draws.state == "not verifiable" and self.draws.reason:
            reasons.append(f"of the draws: {self.draws.reason}")
        return self._verdict(setting, "not verifiable", "; ".join(reasons) or "no test tells")

    def _blamed(self, by_witness: Mapping[str, SettingVerdict]) -> tuple[str, ...]:
        """Settings one of which must be otherwise, by the test of draws; where all are sure, the log-probabilities."""
        if self.draws.state != "contradicted":
            return ()
        if self.draws.t is None and self.draws.p_value is None:
            return (BASE,)  # all log-probabilities are 0
        family = _TOO_OFTEN if self.draws.t is None or self.draws.t > 0 else _TOO_RARELY
        open_ones = [name for name in family if name not in by_witness or by_witness[name].state != "verified"]
        return tuple(open_ones) or (BASE,)

    def _deviation(self, blamed: Sequence[str]) -> str:
        if self.draws.repeats is None or self.draws.expected is None:
            return self.draws.reason or "the draws contradict their log-probabilities"
        p = "" if self.draws.p_value is None else f", p {format_p(self.draws.p_value)}"
        one_of = f": one of {', '.join(blamed)}" if len(blamed) > 1 else ""
        return f"{repeats_text(self.draws.repeats, self.draws.expected)}{p}{one_of}"

    def _by_replies_and_probe(self) -> Iterator[SettingVerdict]:
        if self.sampled_here:
            for setting in SETTINGS:
                if setting not in (SEED, BATCH):
                    yield self._verdict(setting, "verified", "this package's own code chose the tokens")
        else:
            yield from self._temperature()
            for setting in NARROWEST:
                yield from self._narrowing(setting)
            yield self._penalties()
            yield self._one_model()
            yield from self._base()
            yield from self._cache()
        yield from self._seed()
        yield from self._batch()

    def _temperature(self) -> Iterator[SettingVerdict]:
        tried, one_answer = self.tried.get(NEAR_ZERO), self._unlikely_single_answer()
        if tried is not None and tried.all_same is False:
            evidence = f"{tried.draws} draws at a temperature near 0 gave {tried.distinct} answers"
            yield self._verdict(TEMPERATURE, "contradicted", evidence, unreliable=True, by="probe")
        elif one_answer is not None:
            evidence = f"{one_answer}: greedy decoding, or a cache"
            yield self._verdict(TEMPERATURE, "contradicted", evidence, unreliable=True, by="probe")
        elif self._is_greedy():
            evidence = "the clean answers of nearly all documents are one and the same"
            yield self._verdict(TEMPERATURE, "contradicted", evidence, unreliable=True, by="replies")
        elif tried is not None and tried.all_same:
            evidence = f"{tried.draws} draws near 0 gave one answer, draws at {self._requested(TEMPERATURE):g} several"
            yield self._verdict(TEMPERATURE, "not contradicted", f"{evidence}; a cap would not show there")
        elif self.probe.get("varied") is False:
            yield self._verdict(TEMPERATURE, "not verifiable", "all seeds gave one answer in the probe")
        elif tried is not None and tried.failed:
            yield self._verdict(TEMPERATURE, "not verifiable", f"tried near 0: {tried.failed}")

    def _unlikely_single_answer(self) -> str | None:
        """That all seeds gave one answer in the probe, where that is unlikely by its own probability; else None."""
        chance = self.probe.get("certain")
        if self.probe.get("varied") is not False or not isinstance(chance, (int, float)) or chance >= UNLIKELY:
            return None
        return f"all seeds gave one answer, which has the chance {format_p(chance)} by its own probability"

    def _is_greedy(self) -> bool:
        distinct = [len({answer.text for answer in a.clean}) for a in self.answer_sets if len(a.clean) > 1]
        fewest, share = _GREEDY
        return (
            len(distinct) >= fewest and distinct.count(1) >= share * len(distinct) and self._requested(TEMPERATURE) != 0
        )

    def _narrowing(self, name: str) -> Iterator[SettingVerdict]:
        tried = self.tried.get(name)
        narrow = f"{name} {NARROWEST[name]:g}"
        requested = self._requested(name)
        explicit = requested is not None and requested not in (-1, 0) and not (name == "top_p" and requested == 1)
        if name in self.refused:
            yield self._verdict(name, "not verifiable", "the server refuses it, what it has in its place is not known")
        elif tried is not None and tried.all_same is False:
            evidence = f"ignored: {narrow} gave {tried.distinct} answers to {tried.draws} seeds"
            state: State = "contradicted" if explicit else "not verifiable"
            remark = "" if explicit else "; what the server has in its place is not known"
            yield self._verdict(name, state, evidence + remark, unreliable=explicit, by="probe" if explicit else None)
        elif tried is not None and tried.all_same:
            chance = "" if tried.chance is None else f" (chance {format_p(tried.chance)} if it were ignored)"
            yield self._verdict(name, "not contradicted", f"{narrow} gives one answer to {tried.draws} seeds{chance}")
        elif tried is not None and tried.failed:
            yield self._verdict(name, "not verifiable", f"tried with {narrow}: {tried.failed}")

    def _penalties(self) -> SettingVerdict:
        refused = sorted(name for name in self.refused if "penalty" in name)
        own = self.sent.get("repetition_penalty")
        if refused:
            return self._verdict(PENALTIES, "not verifiable", f"the server refuses {', '.join(refused)}")
        if own == "unknown":
            return self._verdict(PENALTIES, "not verifiable", "the model's own repetition penalty is not known")
        return self._verdict(PENALTIES, "not verifiable", "sent, and no test tells whether they are obeyed")

    def _one_model(self) -> SettingVerdict:
        others = self.server.get("other_models")
        if isinstance(others, list) and others:
            evidence = f"answers as {', '.join(map(str, others))}, which was not asked for"
            return self._verdict(ONE_MODEL, "contradicted", evidence, by="replies")
        several = {name: values for name, values in self.served.items() if len(values) > 1}
        if several:
            evidence = "; ".join(f"{name} has {len(values)} values" for name, values in several.items())
            grave = "model" in several
            return self._verdict(ONE_MODEL, "contradicted", evidence, unreliable=grave, by="replies")
        if not self.served:
            return self._verdict(ONE_MODEL, "not verifiable", "no answer says who gave it")
        n = max(sum(values.values()) for values in self.served.values())
        total = sum(len(a.answers) for a in self.answer_sets)
        evidence = f"{', '.join(self.served)} the same in {n} of {total} answers"
        return self._verdict(ONE_MODEL, "not contradicted" if n == total else "not verifiable", evidence)

    def _base(self) -> Iterator[SettingVerdict]:
        raw = self.probe.get("raw_logprobs")
        if raw is False:
            evidence = "they change with the temperature: not those of the raw distribution"
            yield self._verdict(BASE, "contradicted", evidence, by="probe")
        elif raw is True:
            yield self._verdict(BASE, "not contradicted", "the same at two temperatures")
        elif self.probe.get("logprobs") is False:
            yield self._verdict(BASE, "not verifiable", "there are no log-probabilities, or not for every answer")

    def _cache(self) -> Iterator[SettingVerdict]:
        tried, one_answer = self.tried.get(NO_SEED), self._unlikely_single_answer()
        if one_answer is not None:
            evidence = f"{one_answer}: a cache, or greedy decoding"
            yield self._verdict(CACHE, "contradicted", evidence, unreliable=True, by="probe")
        elif tried is not None and tried.all_same is False:
            evidence = f"{tried.draws} equal requests without a seed gave {tried.distinct} answers"
            yield self._verdict(CACHE, "verified", evidence)
        elif tried is not None and tried.all_same:
            chance = 1.0 if tried.chance is None else tried.chance
            evidence = f"{tried.draws} equal requests without a seed gave one answer (chance {format_p(chance)})"
            caught = chance < UNLIKELY
            yield self._verdict(
                CACHE, "contradicted" if caught else "not verifiable", evidence, by="probe" if caught else None
            )
        elif self.probe.get("varied") is True:
            yield self._verdict(CACHE, "not contradicted", "other seeds gave other answers")

    def _seed(self) -> Iterator[SettingVerdict]:
        repeats, varied = self.probe.get("seeds_repeat"), self.probe.get("varied")
        if repeats is False:
            yield self._verdict(SEED, "contradicted", "the same seed gave another answer", by="probe")
        elif repeats is True and varied is True:
            yield self._verdict(SEED, "verified", "the same seed gave the same answer, others gave others")
        elif repeats is None:
            yield self._verdict(SEED, "not verifiable", "not tried: the adapter takes no seeds, or there was no probe")
        else:
            yield self._verdict(SEED, "not verifiable", "all seeds gave one answer")

    def _batch(self) -> Iterator[SettingVerdict]:
        tried = self.tried.get(TOGETHER)
        if tried is None or tried.all_same is None:
            yield self._verdict(BATCH, "not verifiable", "not tried" if tried is None else "the answers failed")
        elif tried.all_same:
            evidence = "the same answer alone and beside a long prompt"
            yield self._verdict(BATCH, "not contradicted", evidence)
        else:
            evidence = "another answer beside a long prompt than alone, near temperature 0"
            yield self._verdict(BATCH, "contradicted", evidence, by="probe")

    def _requested(self, setting: str) -> float | None:
        value = self.decoding.get("temperature") if setting == TEMPERATURE else self.sent.get(setting)
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None

    def _verdict(self, setting: str, state: State, evidence: str, **details: Any) -> SettingVerdict:
        requested = self._requested(setting) if setting in (TEMPERATURE, *NARROWEST) else None
        return SettingVerdict(setting, state, evidence, requested, **details)


_LONGEST_METHOD = 80


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


def summary_of(verdicts: Sequence[SettingVerdict]) -> str | None:
    """Settings by state on one line, the gravest first; None where there are none."""
    parts = []
    for state in STATES:
        in_state = [verdict for verdict in verdicts if verdict.state == state]
        named = ", ".join(verdict.setting for verdict in in_state)
        parts += [f"{state}: {named}"] if in_state else []
    return "; ".join(parts) or None
