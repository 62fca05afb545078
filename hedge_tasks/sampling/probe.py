"""Probe of a model and its server, on the first documents before anything is sampled.

A server that answers greedily whatever it is asked, one that fills in a top_p of its own, or log-probabilities taken
after the temperature give plausible tables of wrong numbers. A handful of draws that count in no score shows it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from loguru import logger

from hedge_tasks.data.answers import Answer, Condition, Refused, log_probability
from hedge_tasks.sampling.behaviour import NARROWEST, NEAR_ZERO, NO_SEED, SettingTried, as_probe, behaviour_of
from hedge_tasks.sampling.requests import DrawRequest

DRAWS = 8
"""Seeds that a prompt is asked with. A model whose likeliest answer has p = 0.5 repeats it eight times in 1 of 128."""

DOCUMENTS = 2
"""Prompts that are tried before a model is called certain."""

TOLERANCE = 0.05
"""Nats per token by which an answer's log-probability may differ between two temperatures, as in half precision."""

TELLING = -0.1
"""Nats per token below which an answer can tell: a nearly certain one has about the same value at every temperature."""

UNLIKELY = 0.01
"""Chance below which equal answers are no accident."""

NEARLY_NEUTRAL: Mapping[str, float | int] = {"top_p": 0.999, "top_k": 1000, "min_p": 0.001}
"""Values that hardly cut anything, for servers to which a neutral one is none."""

_COOLER = 0.5  # of the plan's temperature: most answers of the hot draws come again
_CONDITION: Condition = "clean"

Outcomes = Iterator[list[tuple[str, "Answer | str"]]]
Make = Callable[[Mapping[str, DrawRequest]], Outcomes]
"""Makes draws by key, as the hook does; a string in place of an answer says what went wrong."""


@dataclass(frozen=True)
class ProbeReport:
    """Findings of a probe. None means unknown.

    Attributes:
        draws: made for the probe.
        documents: prompts asked.
        varied: whether two seeds gave two answers at the plan's temperature.
        logprobs: whether every answer came with a log-probability.
        raw_logprobs: whether they are the same at another temperature, as those of the raw distribution are.
        seeds_repeat: whether the same seed gave the same answer again.
        cut: answers that reached the token limit.
        failed: draws that failed, with the first reason.
        reason: the first of those reasons.
        refused: how many of them failed for good, as requests that the server refuses do.
        certain: where `varied` is False, the chance that draws with the probabilities told are as equal.
        behaviour: what the server does with single settings, by name; empty where it was not tried.
        greedy_by: the setting whose neutral value makes the server greedy, as it is to be given instead.
    """

    draws: int = 0
    documents: int = 0
    varied: bool | None = None
    logprobs: bool | None = None
    raw_logprobs: bool | None = None
    seeds_repeat: bool | None = None
    cut: int = 0
    failed: int = 0
    reason: str | None = None
    refused: int = 0
    certain: float | None = None
    behaviour: Mapping[str, SettingTried] = field(default_factory=dict)
    greedy_by: str | None = None

    @property
    def failed_wholly(self) -> bool:
        """Whether the server answers nothing at all, and not because of what these documents ask."""
        return 0 < self.failed == self.draws and self.refused == 0

    def to_dict(self) -> dict[str, Any]:
        facts = {key: value for key, value in asdict(self).items() if value is not None and key != "behaviour"}
        tried = {name: tried.to_dict() for name, tried in self.behaviour.items()}
        return {**facts, **({"behaviour": tried} if tried else {})}

    def lines(self) -> list[str]:
        """The findings for people, what is wrong first."""
        texts: list[str] = []
        if self.varied is False:
            texts.append(
                f"{self.draws} draws of {self.documents} questions gave one answer each, whatever the seed: the server "
                "may decode greedily. Then every entropy is 0 and every AUROC undefined"
            )
        if self.greedy_by is not None:
            name = self.greedy_by.partition("=")[0]
            texts.append(
                f"a neutral {name} makes the server greedy, and another one does not: --gen_kwargs {self.greedy_by}"
            )
        if self.logprobs is False:
            texts.append(
                "no log-probabilities (or not for every answer): all samples weigh the same (discrete entropy)"
            )
        if self.raw_logprobs is False:
            texts.append("log-probabilities change with the temperature: they are not those of the raw distribution")
        if self.seeds_repeat is False:
            texts.append("the same seed gives other answers: a draw that is made again may differ")
        texts += behaviour_lines(self.behaviour)
        if self.cut:
            texts.append(f"{self.cut} of {self.draws} answers reached the token limit (max_new_tokens)")
        if self.failed:
            texts.append(f"{self.failed} of {self.draws} draws failed: {self.reason}")
        return texts


def probe(
    draws: Sequence[DrawRequest], make: Make, *, seeded: bool = True, settings: bool = False
) -> ProbeReport | None:
    """Ask the first prompts with several seeds.

    Args:
        draws: that are about to be made.
        make: makes draws without storing them.
        seeded: whether the adapter takes a seed a draw; others are not asked whether one repeats.
        settings: whether it is to be found out what becomes of single settings; see `behaviour_of`.

    Returns:
        None where the plan has no temperature to find anything out at.
    """
    firsts: dict[str, DrawRequest] = {}
    for draw in draws:
        if draw.draw.condition == _CONDITION and draw.draw.temperature > 0:
            firsts.setdefault(draw.request.key, draw)
        if len(firsts) == DOCUMENTS:
            break
    report: ProbeReport | None = None
    for first in firsts.values():
        latest, plain = _probe_one(first, make, seeded)
        if settings and latest.varied:
            latest = replace(latest, behaviour=behaviour_of(first, plain, lambda requests: _outcomes(make, requests)))
        report = latest if report is None else _combine(report, latest)
        if latest.varied:
            break
    if settings and report is not None and report.varied is False:
        report = replace(report, greedy_by=_greedy_by(first, make))
    return report


def _greedy_by(first: DrawRequest, make: Make) -> str | None:
    """The setting that makes a server greedy where it has its neutral value, as it is to be given instead."""
    for name, value in NEARLY_NEUTRAL.items():
        plan = first.request.plan.replaced(**{name: value})
        draw = replace(first, request=replace(first.request, plan=plan), patient=False)
        draws = {str(i): as_probe(draw, i, first.draw.temperature) for i in range(DRAWS)}
        if len({answer.text for answer in _outcomes(make, draws).values() if isinstance(answer, Answer)}) > 1:
            return f"{name}={value:g}"
    return None


def behaviour_lines(behaviour: Mapping[str, SettingTried]) -> list[str]:
    """Say in plain words which single settings a server does not follow."""
    lines = []
    if (cold := behaviour.get(NEAR_ZERO)) is not None and cold.all_same is False:
        lines.append(f"{cold.draws} draws at a temperature near 0 gave {cold.distinct} answers: it is not obeyed")
    ignored = [name for name in NARROWEST if name in behaviour and behaviour[name].all_same is False]
    if ignored:
        tried = ", ".join(f"{name} {NARROWEST[name]:g}" for name in ignored)
        lines.append(f"answers differ although only the likeliest was asked for ({tried}): the server ignores it")
    unseeded = behaviour.get(NO_SEED)
    if unseeded is not None and unseeded.all_same and (unseeded.chance or 1) < UNLIKELY:
        lines.append(f"{unseeded.draws} equal requests without a seed gave one answer: it may come from a cache")
    return lines


def announce(report: ProbeReport, task: str, server: Mapping[str, Any]) -> None:
    """Log the findings of a probe as one block.

    Args:
        task: that was probed.
        server: what the adapter has found out about its server; see `HedgeOpenAI.sampling_facts`.
    """
    lines = [*report.lines(), *server_lines(server)]
    if not lines:
        facts = {k: v for k, v in report.to_dict().items() if isinstance(v, bool)}
        logger.info(
            "{}: probe of {} draws found nothing wrong ({})", task, report.draws, ", ".join(facts) or "little to see"
        )
        return
    logger.warning("{}: probe of {} draws:\n  - {}", task, report.draws, "\n  - ".join(lines))


def server_lines(server: Mapping[str, Any]) -> list[str]:
    """Say in plain words what a reader of the numbers should know of a server.

    Args:
        server: as an adapter's `sampling_facts` tells it; from a file it may be anything.
    """
    lines = []
    refused, others = server.get("refused"), server.get("other_models")
    if isinstance(refused, Mapping) and refused:
        lines.append(f"the server refuses {', '.join(sorted(map(str, refused)))}")
    if isinstance(others, list) and others:
        lines.append(f"the server answers as another model than the one asked for: {', '.join(map(str, others))}")
    wrong, total = server.get("answers_of_other_tokens"), server.get("answers_with_tokens")
    if isinstance(wrong, int) and isinstance(total, int) and wrong > 0:
        lines.append(f"{wrong} of {total} answers came with log-probabilities of other tokens: they count as none")
    return lines


def _probe_one(first: DrawRequest, make: Make, seeded: bool) -> tuple[ProbeReport, list[Answer]]:
    temperature = first.draw.temperature
    hot = {f"hot {i}": as_probe(first, i, temperature) for i in range(DRAWS)}
    cool = {f"cool {i}": as_probe(first, DRAWS + i, _COOLER * temperature) for i in range(DRAWS // 2)}
    repeated = {"again": hot["hot 0"]} if seeded else {}
    outcomes = _outcomes(make, hot)
    if any(isinstance(answer, Answer) for answer in outcomes.values()):
        outcomes |= _outcomes(make, repeated) | _outcomes(make, cool)
    answers = {key: answer for key, answer in outcomes.items() if isinstance(answer, Answer)}
    sampled = [answer for key, answer in answers.items() if key.startswith("hot")]
    failures = [answer for answer in outcomes.values() if isinstance(answer, str)]
    varied = len({answer.text for answer in sampled}) > 1 if len(sampled) > 1 else None
    logp = log_probability(sampled[0]) if varied is False else None
    report = ProbeReport(
        draws=len(outcomes),
        documents=1,
        varied=varied,
        certain=None if logp is None else math.exp(logp * (len(sampled) - 1)),
        logprobs=all(answer.mean_logprob is not None for answer in sampled) if sampled else None,
        raw_logprobs=_same_at_both(sampled, [a for key, a in answers.items() if key.startswith("cool")]),
        seeds_repeat=answers["hot 0"].text == answers["again"].text if {"hot 0", "again"} <= set(answers) else None,
        cut=sum(answer.finish == "length" for answer in answers.values()),
        failed=len(failures),
        reason=failures[0][:300] if failures else None,
        refused=sum(isinstance(failure, Refused) for failure in failures),
    )
    return report, sampled


def _same_at_both(hot: Sequence[Answer], cool: Sequence[Answer]) -> bool | None:
    """Whether equal texts have equal log-probabilities at both temperatures; None where no text came at both.

    Equal texts may be different tokens, so the nearest of several counts.
    """
    gaps = []
    for answer in cool:
        hot_logprobs = [a.mean_logprob for a in hot if a.text == answer.text and a.mean_logprob is not None]
        if hot_logprobs and answer.mean_logprob is not None and max(hot_logprobs) < TELLING:
            gaps.append(min(abs(answer.mean_logprob - logprob) for logprob in hot_logprobs))
    return max(gaps) < TOLERANCE if gaps else None


def _combine(a: ProbeReport, b: ProbeReport) -> ProbeReport:
    def both(first: bool | None, second: bool | None) -> bool | None:
        return second if first is None else first if second is None else first and second

    return ProbeReport(
        draws=a.draws + b.draws,
        documents=a.documents + b.documents,
        varied=b.varied if a.varied is None else a.varied or bool(b.varied),
        logprobs=both(a.logprobs, b.logprobs),
        raw_logprobs=both(a.raw_logprobs, b.raw_logprobs),
        seeds_repeat=both(a.seeds_repeat, b.seeds_repeat),
        cut=a.cut + b.cut,
        failed=a.failed + b.failed,
        reason=a.reason or b.reason,
        refused=a.refused + b.refused,
        certain=None if a.certain is None or b.certain is None or b.varied else a.certain * b.certain,
        behaviour=a.behaviour or b.behaviour,
    )


def _outcomes(make: Make, draws: Mapping[str, DrawRequest]) -> dict[str, Answer | str]:
    return dict(outcome for batch in make(draws) for outcome in batch) if draws else {}
