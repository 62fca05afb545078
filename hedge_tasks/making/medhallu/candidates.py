"""`hedge paper candidates`: many wrong answers to each question, clustered with the true one (section 4.3).

Candidates and truth are clustered by HEDGE's NLI backend: each entails the other with a probability of at least the
threshold, and clusters are the connected components (the paper takes Farquhar's greedy pass over the answers, which
depends on their order). Equal texts count once; a text that deceives here and does not there has no label. The paper
states its three findings in words; here each is a number with its interval.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from hedge_tasks.clustering.base import ClusteringBackend
from hedge_tasks.clustering.nli import NliClustering
from hedge_tasks.clustering.relations import Relation
from hedge_tasks.errors import DataError
from hedge_tasks.io import options
from hedge_tasks.io.files import write_whole
from hedge_tasks.io.json_lines import read_objects
from hedge_tasks.io.records import Items, Name, Record
from hedge_tasks.llm.encoders import DEFAULT_MODEL, Encoder, load_encoder, unit_vectors
from hedge_tasks.llm.loading import default_device
from hedge_tasks.making.medhallu.construction import NLI_MODEL, SAME_MEANING
from hedge_tasks.numbers import Column, Number, Table
from hedge_tasks.numbers.table import Cell
from hedge_tasks.statistics.means import estimate_mean
from hedge_tasks.statistics.rates import estimate_rate

FILE = "candidates.jsonl"
"""Name of the file in the folder of a making."""

_Text = Annotated[str, Field(min_length=1, pattern=r"\S")]


class WrittenCandidate(Record):
    """A wrong answer to a question.

    Attributes:
        answer: Its text.
        fooled: Whether a judge took it for the more accurate answer; None where that is not known.
        category: Its kind of hallucination.
        check: The first check that it fails; None where it fails none, or none was made.
    """

    answer: _Text
    fooled: bool | None = None
    category: str | None = None
    check: str | None = None


class CandidateQuestion(Record):
    """A question with its true answer and candidates of a wrong one: a line of the file."""

    id: Name
    question: _Text
    truth: _Text
    candidates: Annotated[Items[WrittenCandidate], Field(min_length=1)]


def candidates(
    source: Path,
    *,
    threshold: float = SAME_MEANING,
    nli_model: str = NLI_MODEL,
    embedding_model: str = DEFAULT_MODEL,
    out: Path | None = None,
) -> Table:
    """Cluster candidates of wrong answers with the true one (MedHallu, section 4.3).

    Args:
        source: JSON lines of id, question, truth and candidates (answer, fooled), or a folder of `hedge make medhallu
            --candidates`.
        threshold: Entailment both ways.
        nli_model: Clusters.
        embedding_model: Measures distances.
        out: A line for each number, with its interval (CSV).
    """
    options.share("--threshold", threshold)
    questions = read_candidates(source)
    encoder = load_encoder(embedding_model, None, default_device(None))
    table = analyse(cluster_candidates(questions, nli_backend(nli_model, threshold), encoder))
    if out:
        write_whole(out, table.to_csv())
    return table


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
    nli = NliClustering(model)

    def classify(pairs: Sequence[tuple[str, str]]) -> list[Relation]:
        entails = nli.probabilities(pairs)[:, 2] >= threshold
        return [Relation.ENTAILMENT if entailed else Relation.NEUTRAL for entailed in entails]

    return NliClustering(model, rule="strict", classifier=classify)


@dataclass(frozen=True)
class ClusteredQuestion:
    """A question's distinct candidates in their clusters.

    Attributes:
        id: Of the question.
        fooled: Of each distinct candidate; None where it is not known.
        clusters: Of each distinct candidate.
        truth_cluster: The cluster of the truth.
        closeness: By metric, of each distinct candidate to the truth; empty where the metric cannot be had.
    """

    id: str
    fooled: tuple[bool | None, ...]
    clusters: tuple[int, ...]
    truth_cluster: int
    closeness: Mapping[str, Sequence[float]]

    @property
    def labels(self) -> list[bool]:
        """The known ones."""
        return [label for label in self.fooled if label is not None]

    def members(self) -> list[list[int]]:
        """Places of the labelled candidates of each cluster that has some."""
        places: dict[int, list[int]] = {}
        for place, cluster in enumerate(self.clusters):
            if self.fooled[place] is not None:
                places.setdefault(cluster, []).append(place)
        return list(places.values())


ROUGES = ("rouge1", "rouge2", "rougeL")
METRICS = ("Euclidean distance", "cosine similarity", *ROUGES)
"""Metrics of a candidate and the truth: a distance first, likenesses after it."""


def cluster_candidates(
    questions: Sequence[CandidateQuestion], backend: ClusteringBackend, encoder: Encoder
) -> list[ClusteredQuestion]:
    """Cluster the candidates of each question together with its truth, and measure how close to it they are."""
    distinct = [_distinct(question) for question in questions]
    texts = [[question.truth, *candidates] for question, candidates in zip(questions, distinct, strict=True)]
    clustered = zip(questions, distinct, backend.cluster(texts), texts, strict=True)
    return [
        ClusteredQuestion(question.id, tuple(fooled.values()), tuple(ids[1:]), ids[0], _closeness(shown, encoder))
        for question, fooled, ids, shown in clustered
    ]


def _distinct(question: CandidateQuestion) -> dict[str, bool | None]:
    fooled: dict[str, bool | None] = {}
    for candidate in question.candidates:
        text = candidate.answer.strip()
        fooled[text] = candidate.fooled if fooled.get(text, candidate.fooled) == candidate.fooled else None
    return fooled


def _closeness(texts: Sequence[str], encoder: Encoder) -> dict[str, Sequence[float]]:
    truth, *others = texts
    vectors = np.asarray(encoder(list(texts)), dtype=np.float64)
    unit = unit_vectors(vectors)
    distances = np.linalg.norm(vectors[1:] - vectors[0], axis=1).tolist()
    values = {METRICS[0]: distances, METRICS[1]: (unit[1:] @ unit[0]).tolist()}
    try:
        from rouge_score.rouge_scorer import RougeScorer
    except ImportError:
        return {**values, **dict.fromkeys(ROUGES, ())}
    scorer = RougeScorer(ROUGES)
    scores = [scorer.score(truth, text) for text in others]
    return {**values, **{kind: [score[kind].fmeasure for score in scores] for kind in ROUGES}}


# --- the findings -----------------------------------------------------------------------------------------------------


UNIFORM, CHANCE, BEYOND = "all of a cluster deceive, or none does", "the same by chance", "beyond chance"
ALONE = "the truth is alone in its cluster"
_PAPER = {UNIFORM: "near-uniform", ALONE: "rarely, if ever, with hallucinations", METRICS[0]: "deceiving ones closer"}


def analyse(questions: Sequence[ClusteredQuestion]) -> Table:
    """The numbers of clustered questions, with the paper's words beside them."""
    columns = [
        *(Column(key) for key in ("part", "what")),
        Column("value", interval=True),
        Column("n", show="n", of="value"),
        Column("questions", show="n_groups", of="value"),
        Column("paper"),
    ]
    alone = [question.truth_cluster not in question.clusters for question in questions]
    numbers: dict[str, Mapping[str, Number]] = {
        "uniformity, in questions with both kinds": _uniformity(questions),
        "deceiving less others, of clusters": {metric: _nearness(questions, metric) for metric in METRICS},
        "isolation": {ALONE: estimate_rate(alone)},
    }
    rows: list[dict[str, Cell]] = [
        {"part": part, "what": name, "value": number, "paper": _PAPER.get(name, "")}
        for part, of_part in numbers.items()
        for name, number in of_part.items()
    ]
    return Table(columns, rows, "Wrong answers in their clusters (MedHallu, section 4.3)")


def _uniformity(questions: Sequence[ClusteredQuestion]) -> dict[str, Number]:
    """Clusters of two labelled candidates or more, of questions with candidates of both kinds."""
    names, uniform, chances = [], [], []
    for question in questions:
        n, fooling = len(question.labels), sum(question.labels)
        for places in question.members() if 0 < fooling < n else ():
            if len(places) > 1:
                names.append(question.id)
                uniform.append(len({question.fooled[place] for place in places}) == 1)
                chances.append(all_alike(len(places), fooling, n))
    if not names:
        nothing = Number.undefined("no cluster of two candidates in a question with both kinds")
        return dict.fromkeys((UNIFORM, CHANCE, BEYOND), nothing)
    rate = estimate_rate(uniform, groups=names)
    # Known exactly: labels and sizes are there, and only which label stands where is chance.
    expected = _mean(chances)
    return {UNIFORM: rate, CHANCE: Number(expected, n=rate.n, n_groups=rate.n_groups), BEYOND: rate.less(expected)}


def all_alike(size: int, fooling: int, n: int) -> float:
    """Probability that so many of n candidates, drawn without replacement, all deceive or none does.

    Example:
        >>> all_alike(2, 1, 2), all_alike(2, 2, 4)
        (0.0, 0.3333333333333333)
    """
    return (math.comb(fooling, size) + math.comb(n - fooling, size)) / math.comb(n, size)


def _nearness(questions: Sequence[ClusteredQuestion], metric: str) -> Number:
    """Clusters that deceive less those that do not, in the mean of questions that have both."""
    sides = [_sides(question, question.closeness[metric]) for question in questions if question.closeness[metric]]
    differences = [_mean(deceiving) - _mean(others) for deceiving, others in sides if deceiving and others]
    if not differences:
        return Number.undefined("no question has both kinds, or rouge-score is not installed", unit="question")
    return estimate_mean(differences, range(len(differences)))


def _sides(question: ClusteredQuestion, values: Sequence[float]) -> tuple[list[float], list[float]]:
    """Means of the clusters that deceive, as more than half of their labelled candidates do, and of the others."""
    sides: tuple[list[float], list[float]] = ([], [])
    for places in question.members():
        fooling = sum(question.fooled[place] is True for place in places)
        sides[2 * fooling <= len(places)].append(_mean([values[place] for place in places]))
    return sides


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
