"""Which cosine threshold a question is clustered at, and which questions had a say in that.

A threshold that is tuned on the documents it is then reported on looks better than it is. `cross-fit`, `tuned` and
`label-free` avoid that; `oracle` is what the reference implementation does, for comparing with published numbers, and
is named so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import Annotated, Any, Literal, Self

import numpy as np
from loguru import logger
from pydantic import Field, model_validator

from hedge_tasks.detectors.thresholds.plateau import Grid, choice_errors, plateau
from hedge_tasks.detectors.thresholds.profile import DocumentProfile
from hedge_tasks.errors import ConfigError, check_names
from hedge_tasks.io.records import AtLeastOne, Count, Settings
from hedge_tasks.statistics import auroc

METHODS = ("cross-fit", "tuned", "label-free", "oracle")

Cosine = Annotated[float, Field(ge=-1, le=1)]
Part01 = Annotated[float, Field(gt=0, lt=1)]


class ThresholdChoice(Settings):
    """How the threshold of embedding clustering is chosen.

    Attributes:
        method: "cross-fit": in folds, every document with thresholds that neither it nor its group helped to choose.
            "tuned": for the AUROC on a held-out share of the documents, which are then left out of every AUROC.
            "label-free": a quantile of the merge heights of all documents. "oracle": on the very documents that are
            reported.
        target: the score whose AUROC is made as large as possible: "se" (as the reference does), "radflag" or "vase".
        low, high: range that is searched; "label-free" stays in it as well.
        search: "plateau" (the middle of the range over which the AUROC, smoothed, is as good as its best; see
            `plateau.py`) or "optuna" (HEDGE §4.6: `trials` trials, TPE).
        trials: number of trials of Optuna.
        share: of the documents that "tuned" holds out.
        folds: of "cross-fit".
        repeats: splits into folds of "cross-fit"; a document's threshold is the median over them.
        quantile: of the merge heights, for "label-free".
        per_class: labelled documents of each class that a search needs at least.
        seed: of the split and of Optuna.
        fallback: threshold where the labels do not allow a choice.
    """

    method: Literal["cross-fit", "tuned", "label-free", "oracle"] = "cross-fit"
    target: Literal["se", "radflag", "vase"] = "se"
    low: Cosine = 0.8
    high: Cosine = 0.99
    search: Literal["plateau", "optuna"] = "plateau"
    trials: AtLeastOne = 20
    share: Part01 = 0.2
    folds: Annotated[int, Field(ge=2)] = 5
    repeats: AtLeastOne = 5
    quantile: Part01 = 0.75
    per_class: AtLeastOne = 10
    seed: Count = 0
    fallback: Cosine = 0.9

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low >= self.high:
            raise ValueError(f"low must be below high, got {self.low} and {self.high}")
        return self

    @classmethod
    def from_config(cls, method: str, settings: object = None) -> ThresholdChoice:
        """Build from the threshold's name in a YAML and the mapping `tuning` beside it.

        Raises:
            ConfigError: a name or value is unknown or makes no sense; names the nearest valid one.
        """
        check_names("choice of the threshold", [method], (*METHODS, "a number"))
        if settings is not None and not isinstance(settings, Mapping):
            raise ConfigError(f"tuning: expected a mapping, got {settings!r}")
        return cls.read({**(settings or {}), "method": method}, "tuning")

    def settings(self) -> dict[str, Any]:
        """Everything that decides the choice, for JSON: `from_config(**settings())`."""
        described = self.model_dump()
        return {"threshold": described.pop("method"), "tuning": described}


@dataclass(frozen=True)
class Part:
    """One search: its threshold, the AUROC it reached where it searched, and why it fell back, if it did."""

    threshold: float
    auroc: float | None
    n: int
    reason: str | None = None


@dataclass(frozen=True)
class Chosen:
    """The outcome of a choice.

    Attributes:
        thresholds: by document id.
        held_out: ids of the documents that no AUROC may count, since the threshold was chosen on them.
        parts: the searches: one, or one a fold of each split.
        errors: by score, what the choice adds to the standard error of its AUROC; see `plateau.choice_errors`.
    """

    thresholds: Mapping[str, float]
    held_out: frozenset[str] = field(default_factory=frozenset)
    parts: tuple[Part, ...] = ()
    errors: Mapping[str, float] = field(default_factory=dict)

    def settings(self) -> dict[str, Any]:
        """Return what to record: the thresholds, what they reached where they were searched, and reasons for falling
        back.
        """
        parts = [asdict(part) for part in self.parts]
        return {"parts": parts, "held_out": len(self.held_out), "errors": dict(self.errors)}


def choose(profiles: Sequence[DocumentProfile], choice: ThresholdChoice) -> Chosen:
    """Choose the threshold of every document. Neither the order of the documents nor their processes matter.

    Documents of one group (image) stay on one side of every split.
    """
    profiles = sorted(profiles, key=lambda profile: profile.id)
    labelled = [profile for profile in profiles if profile.label is not None]
    if choice.method == "label-free":
        part = _by_heights(profiles, choice)
        return Chosen({profile.id: part.threshold for profile in profiles}, parts=(part,))
    if choice.method == "cross-fit":
        return _cross_fit(profiles, labelled, choice)
    held_out = _held_out(labelled, choice) if choice.method == "tuned" else labelled
    part = _search(held_out, choice)
    _warn([part], choice)
    # Where nothing was learned from them, there is no reason to leave them out.
    learned = choice.method == "tuned" and part.reason is None
    ids = frozenset(profile.id for profile in held_out) if learned else frozenset()
    return Chosen({profile.id: part.threshold for profile in profiles}, ids, (part,))


def with_errors(chosen: Chosen, profiles: Sequence[DocumentProfile], choice: ThresholdChoice) -> Chosen:
    """Return the outcome together with what the choice adds to the errors of the AUROCs, where it was cross-fitted.

    The other ways add nothing that a resampling of the reported documents does not show: their threshold was chosen on
    other documents, or without labels; the oracle's AUROC is biased, not uncertain.
    """
    if choice.method != "cross-fit" or any(part.reason for part in chosen.parts):
        return chosen
    labelled = sorted((p for p in profiles if p.label is not None), key=lambda profile: profile.id)
    at = np.array([chosen.thresholds[profile.id] for profile in labelled])
    split = {"folds": choice.folds, "repeats": choice.repeats, "seed": choice.seed}
    return replace(chosen, errors=choice_errors(labelled, at, choice.target, choice.low, choice.high, **split))


def _cross_fit(
    profiles: Sequence[DocumentProfile], labelled: Sequence[DocumentProfile], choice: ThresholdChoice
) -> Chosen:
    parts: list[Part] = []
    thresholds: dict[str, list[float]] = {profile.id: [] for profile in profiles}
    for repeat in range(choice.repeats):
        # The first split is that of the seed itself.
        folds = _folds(profiles, f"{choice.seed}.{repeat}" if repeat else str(choice.seed), choice.folds)
        searches = [_search([p for p in labelled if folds[p.id] != k], choice) for k in range(choice.folds)]
        parts += searches
        for profile in profiles:
            thresholds[profile.id].append(searches[folds[profile.id]].threshold)
    _warn(parts, choice)
    if failed := [part for part in parts if part.reason]:
        # Some thresholds chosen and some fallen back on would be scores on two scales.
        return Chosen({profile.id: choice.fallback for profile in profiles}, parts=tuple(failed))
    # No search that a document's threshold rests on has seen its label: the median of honest choices is honest.
    medians = {id: round(float(np.median(values)), 6) for id, values in thresholds.items()}
    return Chosen(medians, parts=tuple(parts))


def _by_heights(profiles: Sequence[DocumentProfile], choice: ThresholdChoice) -> Part:
    """The similarity that a given share of all merges stays below, which asks no label and so overfits to none."""
    heights = np.concatenate([profile.heights for profile in profiles]) if profiles else np.array([])
    if not len(heights):
        return Part(choice.fallback, None, len(profiles), "no document has two different answers")
    threshold = float(np.clip(np.quantile(heights, choice.quantile), choice.low, choice.high))
    return Part(round(threshold, 6), None, len(profiles))


def _warn(parts: Sequence[Part], choice: ThresholdChoice) -> None:
    if reasons := [part.reason for part in parts if part.reason]:
        _say_once(
            f"The embedding threshold could not be chosen in {len(reasons)} of {len(parts)} searches ({reasons[0]}): "
            f"{choice.fallback} is used instead of a {choice.method} one"
        )


@cache
def _say_once(text: str) -> None:
    """Warn, once a process: every clustering and whoever scores the run again would repeat it."""
    logger.warning("{}", text)


def _groups(profiles: Sequence[DocumentProfile], seed: str) -> list[list[DocumentProfile]]:
    """Documents by group, the groups in an order that depends on the seed and their names alone."""
    groups: dict[str, list[DocumentProfile]] = {}
    for profile in profiles:
        name = f"document {profile.id}" if profile.group is None else f"group {profile.group}"
        groups.setdefault(name, []).append(profile)
    return [groups[name] for name in sorted(groups, key=lambda name: _shuffled(seed, name))]


def _shuffled(seed: str, name: str) -> bytes:
    return hashlib.blake2b(f"{seed}\0{name}".encode(), digest_size=16).digest()


def _held_out(labelled: Sequence[DocumentProfile], choice: ThresholdChoice) -> list[DocumentProfile]:
    """Return whole groups of documents, until they make up the share."""
    chosen: list[DocumentProfile] = []
    for group in _groups(labelled, str(choice.seed)):
        if len(chosen) >= choice.share * len(labelled):
            break
        chosen += group
    return chosen


def _folds(profiles: Sequence[DocumentProfile], seed: str, n_folds: int) -> dict[str, int]:
    """Fold of each document: every group goes to the fold that is smallest by then."""
    sizes = [0] * n_folds
    folds: dict[str, int] = {}
    for group in _groups(profiles, seed):
        fold = sizes.index(min(sizes))
        sizes[fold] += len(group)
        folds |= {profile.id: fold for profile in group}
    return folds


def _search(profiles: Sequence[DocumentProfile], choice: ThresholdChoice) -> Part:
    if reason := why_not(profiles, choice.target, choice.per_class):
        return Part(choice.fallback, None, len(profiles), reason)
    if choice.search == "optuna":
        return _by_optuna(profiles, choice)
    grid = Grid.of(profiles, choice.target, choice.low, choice.high)
    areas = grid.areas(np.ones((1, len(profiles))))
    [at] = plateau(areas)
    return Part(round(float(grid.thresholds[at]), 6), float(areas[0, at]), len(profiles))


def why_not(profiles: Sequence[DocumentProfile], target: str, per_class: int = 1) -> str | None:
    """Return why no threshold can be chosen on these documents; None if one can."""
    if not profiles:
        return "no document has a label"
    if any(target not in profile.scores for profile in profiles):
        return f"some documents have no {target}"
    labels = {profile.label for profile in profiles}
    if len(labels) < 2:
        which = "hallucinated" if labels == {1} else "supported"
        return f"all {len(profiles)} documents that may choose are labelled {which}"
    hallucinated = sum(profile.label == 1 for profile in profiles)
    if (rarer := min(hallucinated, len(profiles) - hallucinated)) < per_class:
        which = "hallucinated" if rarer == hallucinated else "supported"
        return f"only {rarer} of the {len(profiles)} documents that may choose are labelled {which}, not {per_class}"
    return None


def _by_optuna(profiles: Sequence[DocumentProfile], choice: ThresholdChoice) -> Part:
    """Return the best of `trials` thresholds that Optuna's TPE sampler tries, to 6 digits as in the reference."""
    import optuna

    scores = [(profile.thresholds, profile.scores[choice.target]) for profile in profiles]
    labels = [int(profile.label == 1) for profile in profiles]

    def rounded(threshold: float) -> float:
        return min(max(round(threshold, 6), choice.low), choice.high)

    def objective(threshold: float) -> float:
        return auroc([s[np.searchsorted(t, threshold)] for t, s in scores], labels)

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)  # or every trial is a line in the user's log
    try:
        study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=choice.seed))
        study.optimize(
            lambda trial: objective(rounded(trial.suggest_float("threshold", choice.low, choice.high))),
            n_trials=choice.trials,
        )
    finally:
        optuna.logging.set_verbosity(before)
    threshold = rounded(study.best_params["threshold"])
    return Part(threshold, objective(threshold), len(profiles))
