"""Cluster, score, summarise: the one path that lmms-eval filters, `hedge score` and notebooks share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from hedge_tasks.clustering import build_backend
from hedge_tasks.clustering.base import Behind, ClusteringBackend
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors import registry
from hedge_tasks.detectors.base import Detector
from hedge_tasks.detectors.evidence import Evidence, evidence_of
from hedge_tasks.detectors.units import Unit, UnitsOfAnswer, detection_auroc
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.numbers import ONE_DIGIT

SCORE_NAMES = ("se", "radflag", "vase")
"""The detectors of the HEDGE paper: what is shown first."""

BASELINE_NAMES = ("discrete_se", "n_clusters", "msp", "baseline_nll", "clean_nll", "lexical")
"""Detectors that any other should be compared with."""

USUAL = (*SCORE_NAMES, *BASELINE_NAMES)
"""Detectors computed of every question; the others where they are named."""

FREE = ("msp", "baseline_nll")
"""Detectors that cost nothing beyond the answer; of a run the first that it has: the best would be a choice."""

REFERENCE = SCORE_NAMES[0]
"""The detector that others are compared with, where nobody says otherwise."""


@dataclass(frozen=True)
class Scores(Unit, Mapping[str, float | None]):
    """A unit that is a whole answer: name -> number, the higher the more likely it is hallucinated.

    A detector that was asked and has no number is there with None; `left_out` says why.

    Attributes:
        weighting: "logprob" or "uniform": what the answers' weights in se and vase are.
        cluster_ids: in the order baseline, clean, noisy.
        held_out: the threshold of the clustering was chosen on this question, so no AUROC counts it.
        n_clean: how many of the answers are clean samples.
        parts: the labelled claims of the baseline answer with their scores, for rows about these.
    """

    weighting: str = "uniform"
    cluster_ids: tuple[int, ...] = ()
    held_out: bool = False
    n_clean: int = 0
    parts: UnitsOfAnswer | None = None

    @property
    def n_noisy(self) -> int:
        """Number of noisy samples among the answers."""
        return len(self.cluster_ids) - 1 - self.n_clean

    def __getitem__(self, name: str) -> float | None:
        return self.numbers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def reported_label(self) -> int | None:
        """The label as an AUROC may count it: None also where the clustering was tuned on this question."""
        return None if self.held_out else self.label


def cluster_answer_sets(
    answer_sets: Sequence[AnswerSet], backend: ClusteringBackend, *, with_question: bool = False, behind: bool = False
) -> list[AnswerSet]:
    """Give every answer set its cluster ids.

    Args:
        backend: see `hedge_tasks.clustering`.
        with_question: put the question in front of each answer, for clustering only (the paper's A+Q).
        behind: put it behind the answer instead.

    Raises:
        DataError: with_question, but a set has no question.
    """
    questions = questions_of(answer_sets, behind=behind) if with_question else None
    ids = backend.cluster([answer_set.texts for answer_set in answer_sets], questions)
    return [answer_set.with_clusters(i) for answer_set, i in zip(answer_sets, ids, strict=True)]


def cluster_open(
    answer_sets: Sequence[AnswerSet], cluster: Callable[[Sequence[AnswerSet]], Iterable[AnswerSet]]
) -> list[AnswerSet]:
    """Give cluster ids to those that have none; ids that came with the answers stay."""
    fresh = iter(cluster([answer_set for answer_set in answer_sets if answer_set.cluster_ids is None]))
    return [next(fresh) if answer_set.cluster_ids is None else answer_set for answer_set in answer_sets]


def score_clustered(
    answer_set: AnswerSet,
    *,
    alpha: float = 1.0,
    detectors: Sequence[str] = USUAL,
    evidence: Evidence | None = None,
) -> Scores:
    """Score an answer set that has cluster ids.

    Where a clean or noisy answer has no log-probability, all weights are uniform (discrete semantic entropy), and
    `weighting` says so.

    Args:
        alpha: weight of the clean-noisy gap in VASE; handed to every detector with an option of this name.
        detectors: names of those that are asked.
        evidence: of this answer set, where more is known than the set holds: relations or cosines.

    Raises:
        ConfigError: there is no such detector; names the nearest one.
        DataError: no cluster ids, or numbers that no score can be made of; names the question.
    """
    if answer_set.cluster_ids is None:
        raise DataError(f"{answer_set.id}: the answers are not clustered")
    evidence = evidence or evidence_of(answer_set)
    numbers: dict[str, float | None] = {}
    left_out: dict[str, str] = {}
    for name, detector in _chosen(tuple(detectors), alpha):
        try:
            numbers[name] = detector.score(evidence)
        except ValueError as error:
            raise DataError(f"{answer_set.id}: {error}") from error
        if numbers[name] is None:
            left_out[name] = _reason(detector, evidence)
    return Scores(
        id=answer_set.id,
        label=answer_set.label,
        group=answer_set.group,
        parent=answer_set.question_type,
        numbers=numbers,
        weighting="logprob" if answer_set.has_logprobs else "uniform",
        cluster_ids=answer_set.cluster_ids,
        held_out=answer_set.held_out,
        choice_errors=answer_set.choice_errors,
        left_out=left_out,
        n_clean=len(answer_set.clean),
    )


@lru_cache(maxsize=64)
def _chosen(names: tuple[str, ...], alpha: float) -> tuple[tuple[str, Detector], ...]:
    """Return detectors by name, looked up once for all questions of a run; a NaN is a key of its own and no harm."""
    detectors = [(name, registry.get(name)) for name in dict.fromkeys(names)]
    return tuple((name, d.with_options(alpha=alpha) if "alpha" in d.option_names else d) for name, d in detectors)


def _reason(detector: Detector, evidence: Evidence) -> str:
    missing = detector.missing(evidence)
    if not missing:
        return "undefined for these answers"
    singular = missing[0].startswith("the ") and not missing[0].split()[1].endswith("s")
    return f"there {'is' if singular else 'are'} no {'; no '.join(words.removeprefix('the ') for words in missing)}"


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

    Raises:
        ConfigError: what is given is no answer set, or no clustering.

    Example:
        >>> from hedge_tasks.sampling import Answer
        >>> answers = [Answer("yes"), Answer("Yes."), Answer("no")]
        >>> asked = AnswerSet("q1", baseline=Answer("yes"), clean=tuple(answers))
        >>> round(score_answers(asked, clustering="exact")["se"], 4)
        0.6365
    """
    if not isinstance(answer_set, AnswerSet):
        raise ConfigError(f"expected the AnswerSet of one question, got {type(answer_set).__name__}")
    if not isinstance(clustering, str) and not hasattr(clustering, "cluster"):
        raise ConfigError(f"clustering: expected a name or a backend, got {clustering!r}")
    if answer_set.cluster_ids is None:
        backend = build_backend(clustering, **options) if isinstance(clustering, str) else clustering
        [answer_set] = cluster_answer_sets([answer_set], backend, with_question=with_question)
    return score_clustered(answer_set, alpha=alpha)


def main_detectors(names: Iterable[str]) -> tuple[str, ...]:
    """Return the detectors that figures show: all but the simple baselines, unless there is nothing else."""
    detectors = tuple(dict.fromkeys(names))
    return tuple(name for name in detectors if name not in BASELINE_NAMES) or detectors


def name_of(detector: str) -> str:
    """Return what a detector is called for people; the plain name where the package that brings it is not here."""
    return registry.get(detector).label if detector in registry.names() else detector


def detectors_of(scores: Sequence[Scores]) -> list[str]:
    """Return the detectors that any of these questions was scored with, in their first order."""
    return list(dict.fromkeys(name for s in scores for name in s))


@dataclass(frozen=True)
class Price:
    """How many answers a question a detector costs besides the baseline answer.

    Attributes:
        mean: over the questions.
        least, most: of any question; the same where all have as many draws.
    """

    mean: float
    least: int
    most: int

    @property
    def as_json(self) -> int | dict[str, float]:
        """The price for JSON: a number where it is one."""
        return self.most if self.least == self.most else asdict(self)

    def __str__(self) -> str:
        """Return the number, or the mean with its range.

        Example:
            >>> str(Price(20.0, 20, 20)), str(Price(19.9, 6, 20))
            ('20', '19.9 (6-20)')
        """
        if self.least == self.most:
            return str(self.most)
        return f"{ONE_DIGIT(self.mean)} ({self.least}-{self.most})"


def prices_of(scores: Sequence[Scores]) -> dict[str, Price]:
    """Return the cost of each detector. Questions may differ in their draws: servers give fewer, or draws fail."""
    counts = Counter((s.n_clean, s.n_noisy) for s in scores)
    return {name: _price(registry.get(name), counts) for name in detectors_of(scores)}


def _price(detector: Detector, counts: Mapping[tuple[int, int], int]) -> Price:
    draws = {sizes: detector.draws(*sizes) for sizes in counts}
    mean = sum(draws[sizes] * n for sizes, n in counts.items()) / sum(counts.values())
    return Price(mean, min(draws.values()), max(draws.values()))


def summarise(scores: Sequence[Scores]) -> dict[str, Any]:
    """Return the AUROC of every detector, the share of hallucinations, and what the numbers rest on."""
    labels = [s.label for s in scores if s.label is not None]
    names = detectors_of(scores) or USUAL
    return {
        "n": len(scores),
        "n_labelled": len(labels),
        "n_held_out": sum(s.held_out for s in scores),
        "hallucination_rate": sum(labels) / len(labels) if labels else None,
        "weighting": _weighting(scores),
        "draws": {name: price.as_json for name, price in prices_of(scores).items()},
        "auroc": {name: detection_auroc(scores, name) for name in names},
        "auroc_within_question_types": {name: detection_auroc(scores, name, within=True) for name in names},
    }


def _weighting(scores: Sequence[Scores]) -> str:
    uniform = sum(s.weighting == "uniform" for s in scores)
    if uniform in (0, len(scores)):
        return "uniform" if uniform else "logprob"
    return f"uniform for {uniform} of {len(scores)} documents (log-probabilities missing), logprob for the others"


def questions_of(answer_sets: Sequence[AnswerSet], *, behind: bool = False) -> list[str]:
    """The question of each answer set, as clusterings take it: to be put in front of the answers, or `behind` them.

    Raises:
        DataError: a set has none.
    """
    return [(Behind if behind else str)(_question(answer_set)) for answer_set in answer_sets]


def _question(answer_set: AnswerSet) -> str:
    if answer_set.question is None:
        raise DataError(f"{answer_set.id}: clustering with the question needs a question")
    return answer_set.question
