"""How an entry came to its numbers, in a few words: what badges say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hedge_tasks.leaderboard.stated import recorded_decoding
from hedge_tasks.report.texts import clean
from hedge_tasks.runs.setting_verdicts import mitigation_line

WEIGHTS = ("open", "closed")
SIZES = ((0, 4, "up to 4 B"), (4, 10, "4 to 10 B"), (10, 40, "10 to 40 B"), (40, float("inf"), "more than 40 B"))
"""From, to (included) and what it is called, in billions of parameters."""


def judge_of(content: Mapping[str, Any]) -> str:
    """Return the name of the judge."""
    settings = content["labels"]["judge"]
    named = settings.get("judge") if isinstance(settings, Mapping) else None
    return clean(named, 60) if isinstance(named, str) else "unknown"


def protocol_of(content: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (setting, value) of decoding, judge and number of draws."""
    sampling = content["settings"].get("sampling")
    decoding = sampling.get("decoding") if isinstance(sampling, Mapping) else None
    summary = content["summary"]
    draws = f"{summary['n_clean']} clean + {summary['n_noisy']} noisy"
    if not summary["n_clean"] + summary["n_noisy"]:
        draws = "one answer, no samples"
    method_name = clean(decoding, 30) if isinstance(decoding, str) else "not recorded"
    if method := mitigation_line(recorded_decoding(content["settings"])):
        method_name = f"{method_name}, {clean(method, 60)}"
    return [("decoding", method_name), ("judge", judge_of(content)), ("n", draws)]


def weights_of(content: Mapping[str, Any]) -> str:
    """Whether the submitter says that anybody can have the weights: open, closed or unknown."""
    return str(content["entry"].get("weights", "unknown"))


def parameters_of(content: Mapping[str, Any]) -> float | None:
    """Return the billions of parameters that the submitter states; None without."""
    parameters = content["entry"].get("parameters")
    return None if parameters is None else float(parameters)


def size_of(parameters: float | None) -> str:
    """The class of a size."""
    if parameters is None:
        return "unknown"
    return next(name for low, high, name in SIZES if low < parameters <= high)
