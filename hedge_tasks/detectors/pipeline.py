"""Cluster, score, summarise: the one path that lmms-eval filters, `hedge score` and notebooks share."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hedge_tasks.clustering import ClusteringBackend, build_backend
from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.detectors import scoring
from hedge_tasks.detectors.builtin.lexical import samples_pairs
from hedge_tasks.errors import DataError
from hedge_tasks.statistics import Estimate, StratifiedAuroc, estimate_auroc, stratified_auroc


@dataclass(frozen=True)
class Scores:
    """Hallucination scores of one question; higher = more likely hallucinated, None = undefined.

    Attributes:
        id, label, group, question_type: as in the answer set.
        se, radflag, vase: HEDGE Eq. 3, 4 and 5; vase is None without noisy answers.
        discrete_se: semantic entropy with every answer weighing the same.
        n_clusters: number of clusters among the clean answers.
        baseline_nll: negative mean log-probability of the baseline answer, None where the model gives none.
        clean_nll: negative mean over the clean answers' mean log-probabilities, likewise.
        lexical: lexical disagreement of the clean answers.
        lexical_sampled: whether that compares a sample of the pairs of answers, because there are too many.
        weighting: "logprob" or "uniform": what the answers' weights in se and vase are.
        cluster_ids: in the order baseline, clean, noisy.
        held_out: the threshold of the clustering was chosen on this question, so no AUROC counts it.
        choice_errors: by score, what the choice of the threshold adds to the standard error of the AUROC.
    """

    id: str
    label: int | None
    group: str | None
    question_type: str | None
    se: float
    radflag: float
    vase: float | None
    discrete_se: float
    n_clusters: int
    baseline_nll: float | None
    clean_nll: float | None
    lexical: float
    weighting: str
    cluster_ids: tuple[int, ...]
    held_out: bool = False
    choice_errors: Mapping[str, float] = field(default_factory=dict)
    lexical_sampled: bool = False

    @property
    def reported_label(self) -> int | None:
        """The label as an AUROC may count it: None also where the clustering was tuned on this question."""
        return None if self.held_out else self.label


SCORE_NAMES = ("se", "radflag", "vase")
"""The scores of the HEDGE paper."""

BASELINE_NAMES = ("discrete_se", "n_clusters", "baseline_nll", "clean_nll", "lexical")
"""What any of them should be compared with."""


def cluster_answer_sets(
    answer_sets: Sequence[AnswerSet], backend: ClusteringBackend, *, with_question: bool = False
) -> list[AnswerSet]:
    """Give every answer set its cluster ids.

    Args:
        backend: see `hedge_tasks.clustering`.
        with_question: put the question in front of each answer, for clustering only (the paper's A+Q).

    Raises:
        DataError: with_question, but a set has no question.
    """
    questions = questions_of(answer_sets) if with_question else None
    ids = backend.cluster([answer_set.texts for answer_set in answer_sets], questions)
    return [answer_set.with_clusters(i) for answer_set, i in zip(answer_sets, ids, strict=True)]


def score_clustered(answer_set: AnswerSet, *, alpha: float = 1.0) -> Scores:
    """Score an answer set that has cluster ids.

    Where a clean or noisy answer has no log-probability, all weights are uniform (discrete semantic entropy), and
    `weighting` says so.

    Raises:
        DataError: no cluster ids, or numbers that no score can be made of; names the question.
    """
    ids = answer_set.cluster_ids
    if ids is None:
        raise DataError(f"{answer_set.id}: the answers are not clustered")
    clean_ids, noisy_ids = ids[1 : 1 + len(answer_set.clean)], ids[1 + len(answer_set.clean) :]
    weighted = answer_set.has_logprobs
    clean_logprobs = _logprobs(answer_set.clean) if weighted else None
    noisy_logprobs = _logprobs(answer_set.noisy) if weighted else None
    try:
        return Scores(
            id=answer_set.id,
            label=answer_set.label,
            group=answer_set.group,
            question_type=answer_set.question_type,
            se=scoring.semantic_entropy(clean_ids, clean_logprobs),
            radflag=scoring.radflag(ids[0], clean_ids),
            vase=(
                scoring.vase(clean_ids, noisy_ids, clean_logprobs, noisy_logprobs, baseline_id=ids[0], alpha=alpha)
                if noisy_ids
                else None
            ),
            discrete_se=scoring.discrete_semantic_entropy(clean_ids),
            n_clusters=int(scoring.number_of_clusters(clean_ids)),
            baseline_nll=_optional(scoring.negative_baseline_logprob, answer_set.baseline.mean_logprob),
            clean_nll=_optional(scoring.negative_mean_clean_logprob, clean_logprobs),
            lexical=scoring.lexical_disagreement([answer.text for answer in answer_set.clean]),
            weighting="logprob" if weighted else "uniform",
            cluster_ids=ids,
            held_out=answer_set.held_out,
            choice_errors=answer_set.choice_errors,
            lexical_sampled=samples_pairs([answer.text for answer in answer_set.clean]),
        )
    except ValueError as error:
        raise DataError(f"{answer_set.id}: {error}") from error


def score_answers(
    answer_set: AnswerSet,
    *,
    clustering: str | ClusteringBackend = "embed",
    with_question: bool = False,
    alpha: float = 1.0,
    **options: Any,
) -> Scores:
    """Cluster and score the answers to one question.

    Args:
        clustering: "exact", "embed", "nli" or a backend; not used where the set already has cluster ids.
        options: of the backend, such as `threshold=0.85`.

    Example:
        >>> from hedge_tasks.sampling import Answer
        >>> answers = [Answer("yes"), Answer("Yes."), Answer("no")]
        >>> asked = AnswerSet("q1", baseline=Answer("yes"), clean=tuple(answers))
        >>> round(score_answers(asked, clustering="exact").se, 4)
        0.6365
    """
    if answer_set.cluster_ids is None:
        backend = build_backend(clustering, **options) if isinstance(clustering, str) else clustering
        [answer_set] = cluster_answer_sets([answer_set], backend, with_question=with_question)
    return score_clustered(answer_set, alpha=alpha)


def detection_auroc(scores: Sequence[Scores], name: str, **options: Any) -> Estimate:
    """ROC-AUC of one score against the labels, over the documents that have both.

    Undefined (no labels, one class, a score that this data cannot have) comes back with the reason.
    """
    triples = [(getattr(s, name), s.reported_label, s.group) for s in scores]
    pairs = [(score, label, group) for score, label, group in triples if label is not None]
    extra = max((s.choice_errors.get(name, 0.0) for s in scores), default=0.0)
    return auroc_of_pairs(pairs, extra_stderr=extra, **options)


def auroc_of_pairs(pairs: Sequence[tuple[float | None, int, str | None]], **options: Any) -> Estimate:
    """AUROC of (score, label, group); groups are resampled as a whole where every document has one."""
    defined = [pair for pair in pairs if pair[0] is not None]
    if pairs and len(defined) < len(pairs):
        missing = len(pairs) - len(defined)
        reason = f"{missing} of {len(pairs)} documents have no such score"
        return Estimate(None, None, len(pairs), sum(label for _, label, _ in pairs), reason)
    if not pairs:
        return Estimate(None, None, 0, 0, "no document has a label")
    if len({score for score, _, _ in defined}) == 1 and len({label for _, label, _ in defined}) == 2:
        # 0.5 by the definition, and by a server that always gives the same answer: no finding about a detector.
        n_positive = sum(label for _, label, _ in defined)
        return Estimate(None, None, len(defined), n_positive, "every document has the same score")
    # In an order of their own: which rank of a distributed run hands its documents in first must not matter.
    values, labels, groups = zip(*sorted(defined, key=lambda pair: (str(pair[2]), pair[1], pair[0])), strict=True)
    return estimate_auroc(values, labels, groups=shared_groups(groups), **options)


def shared_groups(groups: Sequence[str | None]) -> list[Hashable] | None:
    """Groups to resample by: every document has one, and some documents share one; else None."""
    named: list[Hashable] = [group for group in groups if group is not None]
    return named if len(named) == len(groups) and len(set(named)) < len(named) else None


def within_strata_auroc(rows: Sequence[tuple[float | None, int, str | None, str | None]]) -> StratifiedAuroc:
    """AUROC of (score, label, question_type, group) that compares only documents of the same question type.

    A pooled AUROC can be nothing but the question type: some types are harder and have more diverse answers.
    """
    if not rows or any(score is None or question_type is None for score, _, question_type, _ in rows):
        return StratifiedAuroc(None, {}, 0, "some documents have no such score or no question type")
    # In an order of their own, as for `auroc_of_pairs`.
    ordered = sorted(rows, key=lambda row: (str(row[2]), str(row[3]), row[1], row[0]))
    scores, labels, strata, groups = zip(*ordered, strict=True)
    return stratified_auroc(scores, labels, strata, groups=shared_groups(groups))


def summarise(scores: Sequence[Scores]) -> dict[str, Any]:
    """AUROC of every score and of the simple baselines, the share of hallucinations, and what the numbers rest on."""
    labels = [s.label for s in scores if s.label is not None]
    return {
        "n": len(scores),
        "n_labelled": len(labels),
        "n_held_out": sum(s.held_out for s in scores),
        "hallucination_rate": sum(labels) / len(labels) if labels else None,
        "weighting": _weighting(scores),
        "lexical_sampled": sum(s.lexical_sampled for s in scores),
        "auroc": {name: detection_auroc(scores, name) for name in (*SCORE_NAMES, *BASELINE_NAMES)},
        "auroc_within_question_types": {name: _within(scores, name) for name in (*SCORE_NAMES, *BASELINE_NAMES)},
    }


def _weighting(scores: Sequence[Scores]) -> str:
    uniform = sum(s.weighting == "uniform" for s in scores)
    if uniform in (0, len(scores)):
        return "uniform" if uniform else "logprob"
    return f"uniform for {uniform} of {len(scores)} documents (log-probabilities missing), logprob for the others"


def _within(scores: Sequence[Scores], name: str) -> StratifiedAuroc:
    rows = [(getattr(s, name), s.reported_label, s.question_type, s.group) for s in scores]
    return within_strata_auroc([(score, label, *rest) for score, label, *rest in rows if label is not None])


def questions_of(answer_sets: Sequence[AnswerSet]) -> list[str]:
    """The question of each answer set.

    Raises:
        DataError: a set has none.
    """
    return [_question(answer_set) for answer_set in answer_sets]


def _question(answer_set: AnswerSet) -> str:
    if answer_set.question is None:
        raise DataError(f"{answer_set.id}: clustering with the question needs a question")
    return answer_set.question


def _logprobs(answers: Sequence[Answer]) -> list[float]:
    return [answer.mean_logprob for answer in answers if answer.mean_logprob is not None]


def _optional(score: Callable[[Any], float], logprobs: Any) -> float | None:
    return None if logprobs is None else score(logprobs)
