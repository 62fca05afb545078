"""Probe of a model and its server, on the first documents before anything is sampled.

A server that answers greedily whatever it is asked, one that fills in a top_p of its own, or log-probabilities taken
after the temperature give plausible tables of wrong numbers. A handful of draws that count in no score shows it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from loguru import logger
from pydantic import Field

from hedge_tasks.data.answers import Answer, Refused, log_probability
from hedge_tasks.io.records import Count, Objects, OpenRecord
from hedge_tasks.sampling.behaviour import NO_SEED, SettingTried, as_probe, behaviour_of
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

Outcomes = Iterator[list[tuple[str, "Answer | str"]]]
Make = Callable[[Mapping[str, DrawRequest]], Outcomes]
"""Makes draws by key, as the hook does; a string in place of an answer says what went wrong."""


class ProbeReport(OpenRecord):
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

    draws: Count = 0
    documents: Count = 0
    varied: bool | None = None
    logprobs: bool | None = None
    raw_logprobs: bool | None = None
    seeds_repeat: bool | None = None
    cut: Count = 0
    failed: Count = 0
    reason: str | None = None
    refused: Count = 0
    certain: float | None = None
    behaviour: Objects[SettingTried] = Field(default_factory=dict)
    greedy_by: str | None = None

    @property
    def failed_wholly(self) -> bool:
        """Whether the server answers nothing at all, and not because of what these documents ask."""
        return 0 < self.failed == self.draws and self.refused == 0

    def to_dict(self) -> dict[str, Any]:
        return {key: value for key, value in self.model_dump(exclude_none=True).items() if value != {}}

    def lines(self) -> list[str]:
        """The findings for people, what is wrong first."""
        texts = [text for name, text in _SAYS.items() if getattr(self, name) is False]
        if self.greedy_by is not None:
            neutral = self.greedy_by.partition("=")[0]
            texts.append(f"a neutral {neutral} makes the server greedy, and another value does not: {self.greedy_by}")
        ignored = [name for name, tried in self.behaviour.items() if tried.all_same is False and name != NO_SEED]
        if ignored:
            texts.append(f"requests that must repeat gave several answers: the server ignores {', '.join(ignored)}")
        counts = {"reached the token limit (max_new_tokens)": self.cut, f"failed: {self.reason}": self.failed}
        return [*texts, *(f"{n} of {self.draws} draws {what}" for what, n in counts.items() if n)]


_SAYS = {
    "varied": "every question got one answer, whatever the seed: the server may decode greedily. Then every entropy is "
    "0 and every AUROC undefined",
    "logprobs": "no log-probabilities (or not for every answer): all samples weigh the same (discrete entropy)",
    "raw_logprobs": "log-probabilities change with the temperature: they are not those of the raw distribution",
    "seeds_repeat": "the same seed gives other answers: a draw that is made again may differ",
}
"""Findings that are false, in words."""


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
        if draw.draw.condition == "clean" and draw.draw.temperature > 0:
            firsts.setdefault(draw.request.key, draw)
        if len(firsts) == DOCUMENTS:
            break
    documents: list[_Asked] = []
    for first in firsts.values():
        documents.append(_ask(first, make, seeded))
        if documents[-1].varied:
            break
    if not documents:
        return None
    report, last = _report(documents), documents[-1]
    if settings and last.varied:
        return report.replaced(behaviour=behaviour_of(first, last.hot, lambda requests: _outcomes(make, requests)))
    return report.replaced(greedy_by=_greedy_by(first, make)) if settings and report.varied is False else report


def _greedy_by(first: DrawRequest, make: Make) -> str | None:
    """The setting that makes a server greedy where it has its neutral value, as it is to be given instead."""
    for name, value in NEARLY_NEUTRAL.items():
        plan = first.request.plan.replaced(**{name: value})
        draw = replace(first, request=replace(first.request, plan=plan), patient=False)
        draws = {str(i): as_probe(draw, i, first.draw.temperature) for i in range(DRAWS)}
        if len({answer.text for answer in _outcomes(make, draws).values() if isinstance(answer, Answer)}) > 1:
            return f"{name}={value:g}"
    return None


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


@dataclass(frozen=True)
class _Asked:
    """Outcomes of the draws of one prompt: at the plan's temperature, at a lower one, and with the first seed again."""

    outcomes: Mapping[str, Answer | str]

    def answers(self, kind: str) -> list[Answer]:
        return [a for key, a in self.outcomes.items() if key.startswith(kind) and isinstance(a, Answer)]

    @property
    def hot(self) -> list[Answer]:
        return self.answers("hot")

    @property
    def varied(self) -> bool | None:
        return len({answer.text for answer in self.hot}) > 1 if len(self.hot) > 1 else None

    @property
    def logprobs(self) -> bool | None:
        return all(answer.mean_logprob is not None for answer in self.hot) if self.hot else None

    @property
    def repeated(self) -> bool | None:
        pair = [self.outcomes.get(key) for key in ("hot 0", "again")]
        texts = [answer.text for answer in pair if isinstance(answer, Answer)]
        return texts[0] == texts[1] if len(texts) == 2 else None


def _ask(first: DrawRequest, make: Make, seeded: bool) -> _Asked:
    temperature = first.draw.temperature
    hot = {f"hot {i}": as_probe(first, i, temperature) for i in range(DRAWS)}
    outcomes = _outcomes(make, hot)
    if any(isinstance(answer, Answer) for answer in outcomes.values()):
        cool = {f"cool {i}": as_probe(first, DRAWS + i, _COOLER * temperature) for i in range(DRAWS // 2)}
        outcomes |= _outcomes(make, {"again": hot["hot 0"]} if seeded else {}) | _outcomes(make, cool)
    return _Asked(outcomes)


def _report(documents: Sequence[_Asked]) -> ProbeReport:
    outcomes = [outcome for tried in documents for outcome in tried.outcomes.values()]
    answers = [outcome for outcome in outcomes if isinstance(outcome, Answer)]
    failures = [outcome for outcome in outcomes if isinstance(outcome, str)]
    varied = _of_known(any, (tried.varied for tried in documents))
    return ProbeReport(
        draws=len(outcomes),
        documents=len(documents),
        varied=varied,
        certain=_chance(documents) if varied is False else None,
        logprobs=_of_known(all, (tried.logprobs for tried in documents)),
        raw_logprobs=_same_at_both(documents),
        seeds_repeat=_of_known(all, (tried.repeated for tried in documents)),
        cut=sum(answer.finish == "length" for answer in answers),
        failed=len(failures),
        reason=next((failure[:300] for failure in failures), None),
        refused=sum(isinstance(failure, Refused) for failure in failures),
    )


def _chance(documents: Sequence[_Asked]) -> float | None:
    """That draws are as equal as these, by their own probability; None where that is not known."""
    expected = [(log_probability(tried.hot[0]), len(tried.hot) - 1) for tried in documents if tried.hot]
    logprobs = [logp * n for logp, n in expected if logp is not None]
    return math.exp(math.fsum(logprobs)) if len(logprobs) == len(expected) else None


def _of_known(decide: Callable[[Iterable[bool]], bool], flags: Iterable[bool | None]) -> bool | None:
    """Whether any or all of those that are known are true; None where none is known."""
    known = [flag for flag in flags if flag is not None]
    return decide(known) if known else None


def _same_at_both(documents: Sequence[_Asked]) -> bool | None:
    """Whether equal texts have equal log-probabilities at both temperatures; None where no text came at both.

    Equal texts may be different tokens, so the nearest of several counts.
    """
    gaps = []
    for tried in documents:
        for answer in tried.answers("cool"):
            same = [a.mean_logprob for a in tried.hot if a.text == answer.text and a.mean_logprob is not None]
            if same and answer.mean_logprob is not None and max(same) < TELLING:
                gaps.append(min(abs(answer.mean_logprob - logprob) for logprob in same))
    return max(gaps) < TOLERANCE if gaps else None


def _outcomes(make: Make, draws: Mapping[str, DrawRequest]) -> dict[str, Answer | str]:
    return dict(outcome for batch in make(draws) for outcome in batch) if draws else {}
