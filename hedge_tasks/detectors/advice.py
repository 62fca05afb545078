"""Advice on detectors at their price: whether the draws buy anything over what the answer itself tells.

The log-probability of the baseline answer is there before the first further draw. A detector that draws has to be
better than that to be worth its price; whether it is depends on the model and on the length of its answers, so that the
advice is read off the run at hand (docs/detectors.md has what was found over real models).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hedge_tasks.numbers import SIGNED, THREE_DIGITS, format_interval

__all__ = ["FREE", "DrawingGain", "price_advice"]

FREE = ("msp", "baseline_nll")
"""Detectors that cost nothing beyond the answer; of a run the first that it has: the best would be a choice."""

_LEVEL = 0.05

_ONLY_OPTIONS = ". That is of options, each with one spelling; answers in words are another matter (docs/detectors.md)."


@dataclass(frozen=True)
class DrawingGain:
    """Gain of a detector that draws over one that does not, on the same questions.

    Attributes:
        title: of the detector.
        draws: its price.
        auroc: its ROC-AUC.
        difference: less that of the free detector.
        interval: of the difference, 95 %; None where it is unknown.
        p_value: of the difference, adjusted for all detectors that draw; None where it is unknown.
    """

    title: str
    draws: int
    auroc: float
    difference: float
    interval: tuple[float, float] | None
    p_value: float | None

    @property
    def better(self) -> bool:
        return self.difference > 0 and self.p_value is not None and self.p_value < _LEVEL

    @property
    def worse(self) -> bool:
        return self.difference < 0 and self.p_value is not None and self.p_value < _LEVEL


def price_advice(
    free: tuple[str, float] | None, gains: Mapping[str, DrawingGain], *, one_spelling: bool = False
) -> str:
    """Return a sentence or two on what the draws of a run are good for.

    Args:
        free: title and ROC-AUC of the detector that draws nothing; None where the run has none.
        gains: of the detectors that draw, by name.
        one_spelling: whether every meaning has one spelling, as where answers are options: the log-probability of an
            answer is that of its meaning there and nowhere else, and says nothing of answers in words.

    Example:
        >>> gains = {"se": DrawingGain("Semantic entropy", 10, 0.82, -0.03, (-0.04, -0.02), 0.001)}
        >>> price_advice(("Sequence probability", 0.85), gains)
        'At no draw, Sequence probability has 0.850. All 1 detectors that draw are worse, the best among them (...
    """
    if not gains:
        return ""
    best = max(gains.values(), key=lambda gain: gain.auroc)
    if free is None:
        return (
            "Nothing is free here, for the log-probabilities of the answers are not known, or all the same: "
            f"{best.title} is the best of what {best.draws} draws buy, at {THREE_DIGITS(best.auroc)}."
        )
    title, auroc = free
    start = f"At no draw, {title} has {THREE_DIGITS(auroc)}."
    better = sorted((gain for gain in gains.values() if gain.better), key=lambda gain: (gain.draws, -gain.auroc))
    worse = sum(gain.worse for gain in gains.values())
    if not better:
        if best.worse:
            share = f"All {len(gains)}" if worse == len(gains) else f"{worse} of {len(gains)}"
            end = _ONLY_OPTIONS if one_spelling else ": at this price nobody should draw."
            return f"{start} {share} detectors that draw are worse, the best among them ({_in_words(best)}){end}"
        nothing = "No detector that draws is better beyond chance, so that nothing here speaks for drawing"
        return f"{start} {nothing}; the best is {_in_words(best)}."
    cheapest = better[0]
    others = f", the best of them {_in_words(best)}" if best is not cheapest and best.better else ""
    share = f"{len(better)} of {len(gains)} detectors that draw are better"
    return f"{start} {share}: the cheapest, {_in_words(cheapest)}{others}."


def _in_words(gain: DrawingGain) -> str:
    between = "" if gain.interval is None else f" {format_interval(gain.interval, SIGNED)}"
    return f"{gain.title} at {gain.draws} draws, by {SIGNED(gain.difference)}{between}"


def free_detector(names: Sequence[str]) -> str | None:
    """Return the detector of a run that costs nothing and that the others are compared with; None without any."""
    return next((name for name in FREE if name in names), None)
