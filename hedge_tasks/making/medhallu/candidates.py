"""MedHallu's semantic analysis (paper: section 4.3): many wrong answers to a question, clustered with the true one.

Candidates and truth are clustered by HEDGE's NLI backend: each entails the other with a probability of at least the
threshold, and clusters are the connected components (the paper takes Farquhar's greedy pass over the answers, which
depends on their order). Equal texts count once; a text that deceives here and does not there has no label.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import Field

from hedge_tasks.clustering import ClusteringBackend, NliClustering, Relation
from hedge_tasks.clustering.nli import Classifier, Pair
from hedge_tasks.errors import DataError
from hedge_tasks.io.json_lines import read_objects
from hedge_tasks.io.records import Items, Name, Record
from hedge_tasks.llm.encoders import Encoder, unit_vectors
from hedge_tasks.making.medhallu.checks import NLI_MODEL, SAME_MEANING
from hedge_tasks.numbers import Column, Number, Table
from hedge_tasks.numbers.table import Cell
from hedge_tasks.statistics.means import estimate_mean
from hedge_tasks.statistics.rates import estimate_rate
from hedge_tasks.statistics.sums import estimate_of_sums, ratio
from hedge_tasks.suites.medhallmark.wording import NotHere, rouge

FILE = "candidates.jsonl"
"""Name of the file in the folder of a making."""

Written = Annotated[str, Field(min_length=1, pattern=r"\S")]


class WrittenCandidate(Record):
    """A wrong answer to a question.

    Attributes:
        answer: Its text.
        fooled: Whether a judge took it for the more accurate answer; None where that is not known.
        category: Its kind of hallucination.
        check: The first check that it fails; None where it fails none, or none was made.
    """

    answer: Written
    fooled: bool | None = None
    category: str | None = None
    check: str | None = None


class CandidateQuestion(Record):
    """A question with its true answer and candidates of a wrong one: a line of the file."""

    id: Name
    question: Written
    truth: Written
    candidates: Annotated[Items[WrittenCandidate], Field(min_length=1)]


def read_candidates(path: Path) -> list[CandidateQuestion]:
    """Questions of a JSONL file, or of the folder of `hedge make medhallu --candidates`.

    Raises:
        DataError: There is no such file, or a line is of another form; names the line and the key.
    """
    path = path / FILE if path.is_dir() else path
    if not path.is_file():
        raise DataError(f"there is no file {path}")
    questions = [CandidateQuestion.read(row, where) for where, row in read_objects(path)]
    if not questions:
        raise DataError(f"{path}: there is no question in it")
    [(name, times)] = Counter(question.id for question in questions).most_common(1)
    if times > 1:
        raise DataError(f"{path}: {times} lines have the id {name!r}")
    return questions


def nli_backend(model: str = NLI_MODEL, threshold: float = SAME_MEANING) -> NliClustering:
    """The clustering of the paper: both directions entail with at least this probability."""
    return NliClustering(model, rule="strict", classifier=_entails(NliClustering(model), threshold))


def _entails(nli: NliClustering, threshold: float) -> Classifier:
    def classify(pairs: Sequence[Pair]) -> list[Relation]:
        entails = nli.probabilities(pairs)[:, 2] >= threshold
        return [Relation.ENTAILMENT if entailed else Relation.NEUTRAL for entailed in entails]

    return classify


@dataclass(frozen=True)
class ClusteredQuestion:
    """A question's distinct candidates in their clusters.

    Attributes:
        id: Of the question.
        n_written: Candidates as they were written, copies included.
        fooled: Of each distinct candidate; None where it is not known.
        clusters: Of each distinct candidate.
        truth_cluster: The cluster of the truth.
        closeness: By metric, of each distinct candidate to the truth; empty where the metric cannot be had.
    """

    id: str
    n_written: int
    fooled: tuple[bool | None, ...]
    clusters: tuple[int, ...]
    truth_cluster: int
    closeness: Mapping[str, tuple[float, ...]]

    @property
    def labels(self) -> list[bool]:
        """The known ones."""
        return [label for label in self.fooled if label is not None]

    @property
    def mixed(self) -> bool:
        """Whether some candidates deceive and others do not."""
        return len(set(self.labels)) == 2

    @property
    def n_clusters(self) -> int:
        """Clusters, the truth's among them."""
        return len({*self.clusters, self.truth_cluster})

    def members(self) -> dict[int, list[int]]:
        """Places of the distinct candidates of each cluster."""
        places: dict[int, list[int]] = {}
        for place, cluster in enumerate(self.clusters):
            places.setdefault(cluster, []).append(place)
        return places


METRICS = {
    "euclidean": "Euclidean distance",
    "cosine": "cosine similarity",
    "rouge1": "ROUGE-1",
    "rouge2": "ROUGE-2",
    "rougeL": "ROUGE-L",
}
"""Metrics of a candidate and the truth, with their names in the table: distances first, likenesses after them."""


def cluster_candidates(
    questions: Sequence[CandidateQuestion], backend: ClusteringBackend, encoder: Encoder
) -> list[ClusteredQuestion]:
    """Cluster the candidates of each question together with its truth, and measure how close to it they are."""
    distinct = [_distinct(question) for question in questions]
    texts = [[question.truth, *candidates] for question, candidates in zip(questions, distinct, strict=True)]
    ids = backend.cluster(texts)
    return [
        ClusteredQuestion(
            question.id,
            len(question.candidates),
            tuple(candidates.values()),
            tuple(cluster_ids[1:]),
            cluster_ids[0],
            _closeness(question_texts, encoder),
        )
        for question, candidates, cluster_ids, question_texts in zip(questions, distinct, ids, texts, strict=True)
    ]


def _distinct(question: CandidateQuestion) -> dict[str, bool | None]:
    fooled: dict[str, bool | None] = {}
    for candidate in question.candidates:
        text = candidate.answer.strip()
        fooled[text] = candidate.fooled if fooled.get(text, candidate.fooled) == candidate.fooled else None
    return fooled


def _closeness(texts: Sequence[str], encoder: Encoder) -> dict[str, tuple[float, ...]]:
    truth, *others = texts
    vectors = np.asarray(encoder(list(texts)), dtype=np.float64)
    unit = unit_vectors(vectors)
    values_by_metric: dict[str, npt.ArrayLike] = {
        "euclidean": np.linalg.norm(vectors[1:] - vectors[0], axis=1),
        "cosine": unit[1:] @ unit[0],
    }
    try:
        values_by_metric |= {
            kind: [rouge(kind, "f1", text, truth) for text in others] for kind in ("rouge1", "rouge2", "rougeL")
        }
    except NotHere:
        values_by_metric |= dict.fromkeys(("rouge1", "rouge2", "rougeL"), ())
    return {kind: tuple(np.asarray(values, dtype=float).tolist()) for kind, values in values_by_metric.items()}


# --- uniformity -------------------------------------------------------------------------------------------------------


class ClusterUniformity(NamedTuple):
    """A cluster with at least two labelled candidates.

    Attributes:
        question: Its id.
        mixed: Whether the question has candidates of both kinds.
        uniform: Whether its candidates all deceive, or none does.
        chance: Probability of that, were the labels of the question dealt out anew.
        majority: Share of its candidates that are like most of them.
    """

    question: str
    mixed: bool
    uniform: bool
    chance: float
    majority: float


def uniformity(questions: Sequence[ClusteredQuestion]) -> list[ClusterUniformity]:
    """Return every cluster with at least two labelled candidates."""
    clusters = []
    for question in questions:
        n, fooling = len(question.labels), sum(question.labels)
        for places in question.members().values():
            labels = [label for place in places if (label := question.fooled[place]) is not None]
            if len(labels) < 2:
                continue
            most = max(sum(labels), len(labels) - sum(labels))
            chance = _all_alike(len(labels), fooling, n)
            clusters.append(
                ClusterUniformity(question.id, question.mixed, most == len(labels), chance, most / len(labels))
            )
    return clusters


def _all_alike(size: int, fooling: int, n: int) -> float:
    """Probability that so many of n candidates, drawn without replacement, all deceive or none does.

    Example:
        >>> _all_alike(2, 1, 2), _all_alike(2, 2, 4)
        (0.0, 0.3333333333333333)
    """
    return (math.comb(fooling, size) + math.comb(n - fooling, size)) / math.comb(n, size)


# --- proximity --------------------------------------------------------------------------------------------------------


_COMPARED = ("fooling", "others", "difference")


@dataclass(frozen=True)
class Proximity:
    """Closeness to the truth of what deceives and of what does not, in the mean of questions that have both.

    Attributes:
        unit: "candidates", or "clusters": the mean of their candidates, counted as deceiving where more than half do.
        metric: Key of `METRICS`.
        fooling, others, difference: Means over questions; the difference is the first less the second.
    """

    unit: str
    metric: str
    fooling: Number
    others: Number
    difference: Number


def proximity(questions: Sequence[ClusteredQuestion]) -> list[Proximity]:
    """Return every metric of candidates and clusters."""
    return [
        _proximity(questions, unit, split, metric)
        for unit, split in (("candidates", _by_candidate), ("clusters", _by_cluster))
        for metric in METRICS
    ]


Split = Callable[[ClusteredQuestion, Sequence[float]], tuple[list[float], list[float]]]
"""A question and values of its candidates -> values of what deceives, and of what does not."""


def _by_candidate(question: ClusteredQuestion, values: Sequence[float]) -> tuple[list[float], list[float]]:
    labelled = list(zip(question.fooled, values, strict=True))
    return [value for label, value in labelled if label is True], [value for label, value in labelled if label is False]


def _by_cluster(question: ClusteredQuestion, values: Sequence[float]) -> tuple[list[float], list[float]]:
    fooling: list[float] = []
    others: list[float] = []
    for places in question.members().values():
        labels = [label for place in places if (label := question.fooled[place]) is not None]
        if labels:
            mean = math.fsum(values[place] for place in places) / len(places)
            (fooling if 2 * sum(labels) > len(labels) else others).append(mean)
    return fooling, others


def _proximity(questions: Sequence[ClusteredQuestion], unit: str, split: Split, metric: str) -> Proximity:
    pairs = []
    for question in questions:
        values = question.closeness[metric]
        fooling, others = split(question, values) if values else ([], [])
        if fooling and others:
            pairs.append((math.fsum(fooling) / len(fooling), math.fsum(others) / len(others)))
    if not pairs:
        lacking = metric.startswith("rouge") and not any(candidate.closeness[metric] for candidate in questions)
        reason = "ROUGE needs the package rouge-score" if lacking else f"no question has {unit} of both kinds"
        nothing = Number.undefined(reason, unit="question")
        return Proximity(unit, metric, nothing, nothing, nothing)
    means = np.array(pairs).T
    return Proximity(unit, metric, *(_mean(values, len(pairs)) for values in (*means, means[0] - means[1])))


def _mean(values: npt.ArrayLike, n: int) -> Number:
    return estimate_mean(values, range(n))


# --- tables -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SemanticAnalysis:
    """The three findings of section 4.3, in numbers.

    Attributes:
        counts: Of questions, candidates and clusters, by what they count.
        uniformity, isolation: By what they are.
        proximity: By unit and metric.
    """

    counts: Mapping[str, Number]
    uniformity: Mapping[str, Number]
    proximity: Sequence[Proximity]
    isolation: Mapping[str, Number]


UNIFORM, CHANCE, BEYOND = "uniform, mixed questions", "by chance", "beyond chance"
ALONE = "questions whose truth is alone"


def analyse(questions: Sequence[ClusteredQuestion]) -> SemanticAnalysis:
    """Return the numbers of clustered questions."""
    n = len(questions)
    clusters = uniformity(questions)
    mixed = [question for question in clusters if question.mixed]
    uniform = _rate([(c.question, c.uniform) for c in mixed], _FEW_MIXED)
    # Known exactly: labels and sizes are given, and only which label stands where is chance.
    expected = math.fsum(c.chance for c in mixed) / len(mixed) if mixed else None
    chance = Number(expected, n=uniform.n, n_groups=uniform.n_groups, reason=uniform.reason if not mixed else None)
    together = [(q.id, cluster == q.truth_cluster) for q in questions for cluster in q.clusters]
    deceiving = [
        (question.id, cluster == question.truth_cluster)
        for question in questions
        for cluster, label in zip(question.clusters, question.fooled, strict=True)
        if label
    ]
    return SemanticAnalysis(
        counts={
            "candidates a question": _mean([question.n_written for question in questions], n),
            "different texts": _mean([len(question.clusters) for question in questions], n),
            "of these deceiving": estimate_rate(
                [label for question in questions for label in question.labels],
                groups=[question.id for question in questions for _ in question.labels],
            ),
            "clusters a question, with the truth's": _mean([question.n_clusters for question in questions], n),
        },
        uniformity={
            "uniform, all questions": _rate([(c.question, c.uniform) for c in clusters], _FEW),
            UNIFORM: uniform,
            CHANCE: chance,
            BEYOND: uniform.less(chance.value),
            "candidates like most of their cluster": _grouped([(c.question, c.majority) for c in mixed], _FEW_MIXED),
        },
        proximity=proximity(questions),
        isolation={
            ALONE: estimate_rate(
                [question.truth_cluster not in question.clusters for question in questions],
                groups=[question.id for question in questions],
            ),
            "candidates in the truth's cluster": _rate(together, "no candidate"),
            "deceiving candidates in it": _rate(deceiving, "no candidate deceives"),
        },
    )


_FEW = "no cluster has two different candidates whose effect is known"
_FEW_MIXED = f"{_FEW}, in a question where some deceive and some do not"


def _rate(values: Sequence[tuple[str, bool]], reason: str) -> Number:
    if not values:
        return Number.undefined(reason)
    return estimate_rate([value for _, value in values], groups=[group for group, _ in values])


def _grouped(values: Sequence[tuple[str, float]], reason: str) -> Number:
    if not values:
        return Number.undefined(reason)
    parts = [(value, 1) for _, value in values]
    return estimate_of_sums(parts, [group for group, _ in values], ratio)


def rows_of_analysis(analysis: SemanticAnalysis) -> Table:
    """Return one row a number: what `--out` writes."""
    parts = {"counts": analysis.counts, "uniformity": analysis.uniformity, "isolation": analysis.isolation}
    rows: list[dict[str, Cell]] = [
        {"part": part, "what": name, "of": "", "value": n}
        for part, numbers in parts.items()
        for name, n in numbers.items()
    ]
    for p in analysis.proximity:
        labels: dict[str, Cell] = {"part": "proximity", "what": METRICS[p.metric]}
        rows += [{**labels, "of": f"{p.unit}, {name}", "value": getattr(p, name)} for name in _COMPARED]
    return Table([], rows)


_PAPER = {
    UNIFORM: "near-uniform",
    ALONE: "rarely, if ever, with hallucinations",
}
_COUNTED = (Column("n", show="n", of="value"), Column("n_groups", "questions", show="n_groups", of="value"))


def tables_of_analysis(analysis: SemanticAnalysis) -> list[Table]:
    """Return the numbers as tables, the paper's findings beside them."""
    columns = [Column("what", " "), Column("value", interval=True), *_COUNTED, Column("paper")]
    titles = {
        "Candidates": analysis.counts,
        "Clusters: all of a cluster deceive, or none does (clusters of two different candidates or more)": (
            analysis.uniformity
        ),
        "Isolation of the truth": analysis.isolation,
    }
    counts, uniform, isolation = (_with_words(columns, title, rows) for title, rows in titles.items())
    rows: list[dict[str, Cell]] = [
        {
            "of": p.unit,
            "metric": METRICS[p.metric],
            **{name: getattr(p, name) for name in _COMPARED},
            "paper": _CLOSER if p.unit == "clusters" else "",
        }
        for p in analysis.proximity
    ]
    near_columns = [
        Column("of"),
        Column("metric", "to the truth"),
        Column("fooling", "deceiving"),
        Column("others"),
        Column("difference", interval=True),
        Column("n", "questions", show="n", of="difference"),
        Column("paper"),
    ]
    near = Table(near_columns, rows, "Proximity: what deceives, and what does not, in questions that have both")
    notes = [
        "The paper states these findings in words; the table with its numbers (cluster_metric) is not part of the text "
        "that our published values are from."
    ]
    findings = Table.of(
        ("finding", "paper", "here"), list(_findings(analysis)), title="The paper's findings", notes=notes
    )
    return [counts, uniform, near, isolation, findings]


def _with_words(columns: Sequence[Column], title: str, numbers: Mapping[str, Number]) -> Table:
    rows: list[dict[str, Cell]] = [
        {"what": name, "value": number, "paper": _PAPER.get(name, "")} for name, number in numbers.items()
    ]
    return Table(columns, rows, title)


_CLOSER = "closer"


def _findings(analysis: SemanticAnalysis) -> Iterator[tuple[str, str, str]]:
    yield "within a cluster candidates deceive alike", "near-uniform", _beside_0(analysis.uniformity[BEYOND], "chance")
    distance = next(p for p in analysis.proximity if (p.unit, p.metric) == ("clusters", "euclidean"))
    compared = _beside_0(distance.difference, "the others' distance")
    yield "clusters that deceive are closer to the truth", "notably closer", compared
    alone = analysis.isolation[ALONE]
    if alone.interval is None:
        isolated = alone.reason or "undefined"
    elif alone.interval[0] > 0.5:
        isolated = "alone in most questions"
    else:
        isolated = "not alone in most questions" if alone.interval[1] < 0.5 else "undecided"
    yield "the truth is in no cluster of hallucinations", "rarely, if ever", isolated


def _beside_0(difference: Number, what: str) -> str:
    if difference.interval is None:
        return difference.reason or "undefined"
    low, high = difference.interval
    return f"above {what}" if low > 0 else f"below {what}" if high < 0 else f"not told from {what}"
