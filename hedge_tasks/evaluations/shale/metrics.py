"""The rows of SHALE's tables: shares of right answers by scenario and aspect, resistance, what the image adds.

An answer is right where the judge's label is 0. For closed questions an answer that cannot be read is wrong; for open
ones so is an "unclear" one (appendix A.3), and one that the judge could not decide is in no row but `unlabelled_rate`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.evaluations.shale.items import (
    CLEAN,
    COMBINED_SCENARIOS,
    DISCRIMINATIVE,
    IMAGE_SCENARIOS,
    INSTRUCTION_SCENARIOS,
    KNOWLEDGE,
    NOISY_SCENARIOS,
    PERCEPTION,
    SCENARIOS,
)
from hedge_tasks.lmms.metrics import NOT_AVAILABLE, Metric, OfSums, RateMetric, Record
from hedge_tasks.numbers import Number
from hedge_tasks.replies.parsing import OFFICIAL
from hedge_tasks.replies.reading import UNREADABLE
from hedge_tasks.statistics import estimate_mean
from hedge_tasks.statistics.base import FloatArray
from hedge_tasks.statistics.sums import of_values


def is_right(verdict: Record) -> int | None:
    """1 for a right answer, 0 for a wrong, unclear or unreadable one, None where the judge said nothing."""
    if verdict["label"] is not None:
        return int(verdict["label"] == 0)
    return None if verdict.get("category") is None else 0


class RightShare(OfSums):
    """Share of right answers: accuracy of closed questions, non-hallucination rate of open ones.

    Args:
        name: of the row.
        kept: columns of the documents and the values that they must have.
        wanted: what to call these documents where there are none.
    """

    higher_is_better = True

    def __init__(self, name: str, wanted: str, **kept: Sequence[str]) -> None:
        self.__name__ = name
        self.wanted = wanted
        self.kept = kept

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        mine = all(document[column] in values for column, values in self.kept.items())
        return {"right": is_right(verdict) if mine else None, "group": document["group"]}

    def __call__(self, records: Sequence[Record]) -> float | str:
        values = [r["right"] for r in records if r["right"] is not None]
        return sum(values) / len(values) if values else f"undefined: no judged document is of {self.wanted}"

    def counts(self, records: Sequence[Record]) -> FloatArray:
        """Right, and judged, shape (n, 2)."""
        return of_values([record["right"] for record in records])


class ReadShare(RightShare):
    """Share of right answers among the replies that can be read."""

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        record = super().record(scores, verdict, document)
        return {**record, "right": None} if verdict.get("category") == UNREADABLE else record


class OfficialShare(RightShare):
    """Share of right answers as the published code reads the replies; one that it cannot read is wrong."""

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        return super().record(scores, reading_of(verdict, OFFICIAL), document)


def reading_of(verdict: Record, parsing: str) -> Record:
    """The vote of one way to read replies."""
    return next(vote for vote in verdict["votes"] if str(vote["judge"]).endswith(f":{parsing}"))


class ResistanceRate(OfSums):
    r"""Share of the items answered rightly when clean that are still answered rightly when perturbed (section 3.3).

    .. math:: RR = \frac{\sum_i 1_{nh}(i)\, 1_{nh}(\tilde i)}{\sum_i 1_{nh}(i)}

    over the items that were asked and judged in both scenarios. Of several scenarios it is the mean of theirs, as in
    the column RR of Tables 2 and 3; scenarios that nothing was asked in are left out of it.

    Args:
        scenarios: perturbed ones.
    """

    higher_is_better = True

    def __init__(self, name: str, scenarios: Sequence[str]) -> None:
        self.__name__ = name
        self.scenarios = tuple(scenarios)

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        right = is_right(verdict) if document["scenario"] in (CLEAN, *self.scenarios) else None
        return {"right": right, "scenario": document["scenario"], "pair": document["pair"], "group": document["group"]}

    def __call__(self, records: Sequence[Record]) -> float | str:
        rate = self.statistic(self.counts(records).sum(0)[None])[0]
        what = self.scenarios[0] if len(self.scenarios) == 1 else "any perturbed scenario"
        return f"undefined: no item is right when clean and asked in {what}" if np.isnan(rate) else float(rate)

    def counts(self, records: Sequence[Record]) -> FloatArray:
        """Still right, and right when clean, shape (n, scenarios, 2); a perturbed item stands with its clean one."""
        clean = {r["pair"]: r["right"] for r in records if r["scenario"] == CLEAN and r["right"] is not None}
        counts = np.zeros((len(records), len(self.scenarios), 2))
        for row, record in zip(counts, records, strict=True):
            if record["scenario"] in self.scenarios and record["right"] is not None and clean.get(record["pair"]):
                row[self.scenarios.index(record["scenario"])] = record["right"], 1
        return counts

    def statistic(self, sums: FloatArray) -> FloatArray:
        """Mean over the scenarios that anything was asked in; shape (m, scenarios, 2) -> (m,)."""
        rates = _rates(sums)
        asked = (~np.isnan(rates)).sum(axis=-1)
        return np.where(asked > 0, np.nansum(rates, axis=-1) / np.maximum(asked, 1), np.nan)


class Average(OfSums):
    """Mean of the shares of several types of questions, each counting the same (Table 2; column Avg of Table 5)."""

    higher_is_better = True

    def __init__(self, name: str, parts: Sequence[RightShare]) -> None:
        self.__name__ = name
        self.parts = tuple(parts)

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        return {part.__name__: part.record(scores, verdict, document) for part in self.parts}

    def __call__(self, records: Sequence[Record]) -> float | str:
        values = [part([r[part.__name__] for r in records]) for part in self.parts]
        reasons = [value for value in values if isinstance(value, str)]
        return reasons[0] if reasons else float(np.mean([v for v in values if not isinstance(v, str)]))

    def counts(self, records: Sequence[Record]) -> FloatArray:
        """Right, and judged, by type of question, shape (n, types, 2)."""
        return np.stack([part.counts([r[part.__name__] for r in records]) for part in self.parts], axis=1)

    def statistic(self, sums: FloatArray) -> FloatArray:
        """Mean of the shares of all types; nan where a type is not there."""
        return _rates(sums).mean(axis=-1)

    def group_of(self, record: Record) -> Hashable:
        return self.parts[0].group_of(record[self.parts[0].__name__])


def _rates(sums: FloatArray) -> FloatArray:
    """Parts over wholes, shape (m, rates, 2) -> (m, rates); nan where nothing was asked."""
    part, whole = np.moveaxis(sums, -1, 0)
    return np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), np.nan)


class UnreadableRate(RateMetric):
    """Share of closed questions whose reply takes no answer, or more than one. They count as wrong."""

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        return {"value": int(verdict.get("category") == UNREADABLE)}


class SampledUnreadableRate(RateMetric):
    """Share of documents of which a sampled answer cannot be read. Together these answers are one meaning."""

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        return {"value": int(UNREADABLE in document["sampled"])}


class ParsersDiffer(RateMetric):
    """Share of replies that our reading and the published code's read differently."""

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        return {"value": int(len({vote.get("category") for vote in verdict["votes"]}) > 1)}


class UnclearRate(RateMetric):
    """Share of open questions whose answer the judge calls unclear. They count as not free of hallucination."""

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        decided = verdict["label"] is not None or verdict.get("category") is not None
        return {"value": int(verdict["label"] is None) if decided else None}


class _MeanDifference:
    """Mean of a difference between two readings of the same documents, clustered by picture."""

    def _differences(self, records: Sequence[Record]) -> list[tuple[int, str]]:
        raise TypeError(f"{type(self).__name__} is abstract")

    def _estimate(self, records: Sequence[Record]) -> Number:
        differences = self._differences(records)
        return estimate_mean([difference for difference, _ in differences], [group for _, group in differences])

    def stderr(self, records: Sequence[Record]) -> float | str:
        stderr = self._estimate(records).stderr
        return NOT_AVAILABLE if stderr is None else stderr


class Gain(_MeanDifference):
    """Share of right answers with the image less that without, on the same questions (Chen et al. 2024, MMStar, MG).

    .. math:: MG = S_v - S_{wv}
    """

    higher_is_better = True
    __name__ = "multimodal_gain"

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        return {"with": is_right(verdict), "without": document["blind_right"], "group": document["group"]}

    def __call__(self, records: Sequence[Record]) -> float | str:
        mean = self._estimate(records).value
        return "undefined: nothing was judged" if mean is None else mean

    def _differences(self, records: Sequence[Record]) -> list[tuple[int, str]]:
        return [(r["with"] - r["without"], r["group"]) for r in records if r["with"] is not None]


class Leakage(_MeanDifference):
    """What the model gets right without the image beyond its language model alone, at least 0 (MMStar, ML).

    .. math:: ML = max(0, S_{wv} - S_t)

    :math:`S_t` is the share that the language model without any visual training gets right on the same questions. The
    standard error is that of the difference, before it is cut off at 0.
    """

    higher_is_better = False
    __name__ = "multimodal_leakage"

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        return {"without": document["blind_right"], "base": document["base_right"], "group": document["group"]}

    def __call__(self, records: Sequence[Record]) -> float | str:
        mean = self._estimate(records).value
        if mean is None:
            return "undefined: HEDGE_SHALE_BASE names no run of the language model on these questions"
        return max(0.0, mean)

    def _differences(self, records: Sequence[Record]) -> list[tuple[int, str]]:
        return [(r["without"] - r["base"], r["group"]) for r in records if r["base"] is not None]


class BlindAccuracy(RateMetric):
    """Share of right answers without the image (the column Blind of Table 2, all questions counting the same)."""

    higher_is_better = True

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        return {"value": document["blind_right"]}


def _shares(name: str) -> list[RightShare]:
    scenarios = [RightShare(f"{name}_{s}", f"the scenario {s!r}", scenario=(s,)) for s in SCENARIOS]
    clean = {"scenario": (CLEAN,)}
    parts = [*((aspect, (aspect,)) for aspect in (*PERCEPTION, *KNOWLEDGE)), ("perception", PERCEPTION)]
    parts.append(("knowledge", KNOWLEDGE))
    return scenarios + [
        RightShare(f"{name}_{part}", f"the aspect {part!r} (clean)", aspect=values, **clean) for part, values in parts
    ]


def _discriminative_average(scenario: str) -> Average:
    ending = "" if scenario == CLEAN else f"_{scenario}"
    shares = [
        RightShare(f"accuracy_{task}{ending}", f"type {task!r} in {scenario!r}", scenario=(scenario,), task=(task,))
        for task in DISCRIMINATIVE
    ]
    return Average(f"accuracy_average{ending}", shares)


def _by_name(metrics: Sequence[Metric]) -> dict[str, Metric]:
    return {metric.__name__: metric for metric in metrics}


METRICS: Mapping[str, Metric] = _by_name(
    [
        *_shares("accuracy"),
        *_shares("non_hallucination"),
        *(ResistanceRate(f"resistance_{scenario}", (scenario,)) for scenario in NOISY_SCENARIOS),
        ResistanceRate("resistance_image", IMAGE_SCENARIOS),
        ResistanceRate("resistance_instruction", INSTRUCTION_SCENARIOS),
        ResistanceRate("resistance_combination", COMBINED_SCENARIOS),
        ResistanceRate("resistance_rate", NOISY_SCENARIOS),
        *_discriminative_average(CLEAN).parts,
        *map(_discriminative_average, SCENARIOS),
        ReadShare("accuracy_clean_read", "the scenario 'clean' and readable", scenario=(CLEAN,)),
        OfficialShare("accuracy_clean_official", "the scenario 'clean'", scenario=(CLEAN,)),
        UnreadableRate("unreadable_rate"),
        SampledUnreadableRate("sampled_unreadable_rate"),
        ParsersDiffer("parsers_differ"),
        UnclearRate("unclear_rate"),
        BlindAccuracy("accuracy_blind"),
        Gain(),
        Leakage(),
    ]
)
"""Every metric of this benchmark, by the name that its row has."""
