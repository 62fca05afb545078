"""A finished run scored by claim: decomposition, support, labels and detectors, without a new draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress, zip_longest
from typing import Any

import numpy as np

from hedge_tasks.claims.base import Claim, ClaimEvidence
from hedge_tasks.claims.blind import other_image, rarity
from hedge_tasks.claims.decomposition import Decomposed, Decomposition, decompose
from hedge_tasks.claims.entailment import Entailment, SupportQuery
from hedge_tasks.claims.labels import join, label_of
from hedge_tasks.claims.tokens import claim_logprobs
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.data.spans import LabelledSpan
from hedge_tasks.detectors import registry
from hedge_tasks.detectors.base import Detector
from hedge_tasks.detectors.units import Unit
from hedge_tasks.errors import DataError
from hedge_tasks.runs.claim_labels import labelled_spans
from hedge_tasks.runs.run_files import Run
from hedge_tasks.runs.support import Support, Supported, SupportPrice, SupportSource
from hedge_tasks.statistics.base import FloatArray


@dataclass(frozen=True)
class Inquiry:
    """The queries to an engine about some answers.

    Attributes:
        answer_sets: in their order.
        decomposed: the claims of each.
        settings: of the decomposition.
        own: claims and draws of each answer, clean ones first.
        elsewhere: claims and another image's draws, for a blind baseline; empty where not wanted.
    """

    answer_sets: Sequence[AnswerSet]
    decomposed: Sequence[Decomposed]
    settings: Mapping[str, Any]
    own: Sequence[SupportQuery]
    elsewhere: Sequence[SupportQuery]

    def source(self, engine: Entailment) -> SupportSource:
        """Return what would compute the support, with its price."""
        price = SupportPrice(
            answers=len(self.answer_sets),
            claims=sum(len(answer.claims) for answer in self.decomposed),
            draws=min((len(query.draws) for query in self.own), default=0),
            amount=engine.price([*self.own, *self.elsewhere]),
            unit=engine.priced,
        )
        settings = {**self.settings, **engine.settings()}
        return SupportSource(settings=settings, engine=engine.name, contradicts=engine.contradicts, price=price)

    def ask(self, engine: Entailment) -> Support:
        """Ask an engine for the support of the claims of each answer; nothing is asked twice."""
        replies, n = list(engine.support([*self.own, *self.elsewhere])), len(self.own)
        sides = zip_longest(self.answer_sets, self.decomposed, replies[:n], replies[n:])
        supported = {
            a.id: Supported(
                decomposed=parts, clean=own[:, : len(a.clean)], noisy=own[:, len(a.clean) :], elsewhere=blind
            )
            for a, parts, own, blind in sides
        }
        return Support(source=self.source(engine), answers=supported)


def inquiry(
    answer_sets: Sequence[AnswerSet],
    decomposition: Decomposition,
    *,
    among: Sequence[AnswerSet] | None = None,
    elsewhere: bool = True,
    decomposed: Sequence[Decomposed] | None = None,
) -> Inquiry:
    """Return the queries to an engine about answers of a run.

    Args:
        among: all answers of the run, where these are those of one process.
        elsewhere: also about another image's draws: the price of all clean draws once more.
        decomposed: the claims of the answers, where they are known.

    Raises:
        DataError: no answer of the run has a claim.
    """
    decomposed = decompose(answer_sets, decomposition) if decomposed is None else decomposed
    texts = [tuple(claim.text for claim in answer.claims) for answer in decomposed]
    if among is None and not any(texts):
        raise DataError(f"the decomposition {decomposition.name} finds no claim in any of {len(texts)} answers")
    among = answer_sets if among is None else among
    others = dict(zip((a.id for a in among), other_image(groups_of(among)), strict=True))
    draws = [(*a.clean, *a.noisy) for a in answer_sets]
    blind = [() if (i := others[a.id]) is None else among[i].clean for a in answer_sets] if elsewhere else []
    queries = (
        [SupportQuery(claims, tuple(a.text for a in side)) for claims, side in zip(texts, sides, strict=False)]
        for sides in (draws, blind)
    )
    return Inquiry(answer_sets, decomposed, decomposition.settings(), *queries)


def groups_of(answer_sets: Sequence[AnswerSet]) -> list[str]:
    """Return the image of each answer; an answer without one is a group of its own."""
    return [f"group {a.group}" if a.group is not None else f"answer {a.id}" for a in answer_sets]


@dataclass(frozen=True)
class ScoredAnswer:
    """The claims of one answer with their scores and labels.

    Attributes:
        answers: the answer with its draws.
        evidence: what detectors see.
        labels: what spans of people or of a judge say.
        scores: by detector of claims: shape (K,), NaN where there is none.
    """

    answers: AnswerSet
    evidence: ClaimEvidence
    labels: tuple[LabelledSpan | None, ...]
    scores: Mapping[str, FloatArray]

    @property
    def claims(self) -> tuple[Claim, ...]:
        return self.evidence.claims

    def counted_labels(self, *, silent: str = "unlabelled", errors: str = "all") -> list[int | None]:
        """Return the label of each claim as it counts; see `hedge_tasks.claims.labels.label_of`."""
        return [label_of(span, silent=silent, errors=errors) for span in self.labels]


@dataclass(frozen=True)
class ScoredClaims:
    """A run scored by claim.

    Attributes:
        title: of the run.
        answers: of all its documents.
        support: of their claims.
        left_out: detector -> why no answer has its scores.
        labelled_by: where the labels come from.
    """

    title: str
    answers: tuple[ScoredAnswer, ...]
    support: Support
    left_out: Mapping[str, str] = field(default_factory=dict)
    labelled_by: str = ""


@dataclass(frozen=True)
class ClaimUnits:
    """The claims of a run as units.

    Attributes:
        units: all claims in their order; those that do not count have no label.
        n_silent: on how many of them the reference is silent.
        n_unknown: how many labelled ones do not count because their support is not known.
    """

    units: tuple[Unit, ...]
    n_silent: int
    n_unknown: int

    @property
    def labelled(self) -> tuple[Unit, ...]:
        """Those that count."""
        return tuple(unit for unit in self.units if unit.label is not None)

    @property
    def n_positive(self) -> int:
        """How many of them are hallucinated."""
        return sum(unit.label or 0 for unit in self.units)


def claim_units(scored: ScoredClaims, *, silent: str = "unlabelled", errors: str = "all") -> ClaimUnits:
    """Return the claims of a run as units, each within its answer.

    Args:
        silent, errors: see `hedge_tasks.claims.labels.label_of`.
    """
    units, n_silent, n_unknown = [], 0, 0
    for answer, group in zip(scored.answers, groups_of([answer.answers for answer in scored.answers]), strict=True):
        n_silent += sum(span is not None and span.silent for span in answer.labels)
        labels = answer.counted_labels(silent=silent, errors=errors)
        unknown = np.asarray(np.isnan(answer.evidence.clean).any(axis=(1, 2)))
        n_unknown += sum(label is not None for label in compress(labels, unknown))
        for k, claim in enumerate(answer.claims):
            numbers = {name: None if np.isnan(v[k]) else float(v[k]) for name, v in answer.scores.items()}
            counted = None if unknown[k] else labels[k]
            units.append(Unit(claim.id, counted, group, claim.answer, numbers, level="claim", text=claim.text))
    return ClaimUnits(tuple(units), n_silent, n_unknown)


def score_claims(
    run: Run,
    support: Support,
    detectors: Sequence[str] | None = None,
    spans: Mapping[str, Sequence[LabelledSpan]] | None = None,
    labelled_by: str = "given labels",
) -> ScoredClaims:
    """Score every claim of a run with every detector.

    Args:
        support: of its answers.
        detectors: names; by default all of claims.
        spans: labelled spans by the answer's id; by default those of the answers, else those of the run's verdicts.
        labelled_by: where these come from, in words.

    Raises:
        ConfigError: there is no such detector; names the nearest one.
        DataError: the support is of other answers.
    """
    installed = [registry.get(name) for name in (registry.names("claim") if detectors is None else detectors)]
    source, of_run = labelled_spans(run) if spans is None else (labelled_by, spans)
    scored = []
    for answers, evidence in zip(run.answer_sets, claim_evidence(run.answer_sets, support), strict=True):
        labels = join(evidence.claims, of_run.get(answers.id, ()))
        scores = {d.name: d.claim_scores(evidence) for d in installed if evidence.claims}
        known = {name: values for name, values in scores.items() if values is not None}
        scored.append(ScoredAnswer(answers, evidence, labels, known))
    left_out = {d.name: _why_not(d, scored) for d in installed if not any(d.name in answer.scores for answer in scored)}
    return ScoredClaims(run.title, tuple(scored), support, left_out, source)


def claim_evidence(answer_sets: Sequence[AnswerSet], support: Support) -> list[ClaimEvidence]:
    """Return the evidence that detectors of claims see, of each answer of a run.

    Args:
        answer_sets: all of the run, since what is rare is so among them.

    Raises:
        DataError: the support is of other answers.
    """
    supported = support.of(answer_sets)
    if supported is None:
        raise DataError("the support of claims is of other answers or draws; ask for it again with `hedge claims`")
    texts = [[claim.text for claim in answer.decomposed.claims] for answer in supported]
    rare = rarity(texts, [a.baseline.text for a in answer_sets], groups_of(answer_sets))
    return [
        ClaimEvidence(
            claims=answer.decomposed.claims,
            answer=answers.baseline.text,
            clean=answer.clean,
            noisy=answer.noisy,
            contradicts=support.source.contradicts,
            elsewhere=answer.elsewhere,
            rarity=rarity_of_claims,
            logprobs=claim_logprobs(answers.baseline, answer.decomposed.claims),
            engine=support.source.engine,
        )
        for answers, answer, rarity_of_claims in zip(answer_sets, supported, rare, strict=True)
    ]


def _why_not(detector: Detector, scored: Sequence[ScoredAnswer]) -> str:
    if detector.level != "claim":
        return "it scores whole answers, not claims"
    missing = dict.fromkeys(words for answer in scored if answer.claims for words in detector.missing(answer.evidence))
    return f"there are no {'; no '.join(words.removeprefix('the ') for words in missing)}" if missing else "undefined"
