"""Ways of choosing the threshold of embedding clustering on one run, and the ROC-AUC that each reports."""

from __future__ import annotations

from collections.abc import Sequence

from hedge_tasks.clustering.embedding import EmbeddingClustering
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors.pipeline import score_clustered
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.detectors.thresholds.choice import METHODS, Chosen, Part, ThresholdChoice, choose, why_not, with_errors
from hedge_tasks.detectors.thresholds.profile import profile_documents
from hedge_tasks.detectors.units import detection_auroc
from hedge_tasks.errors import ConfigError
from hedge_tasks.numbers import FOUR_DIGITS, Cell, Column, Table, reason_lines


def threshold_table(answer_sets: Sequence[AnswerSet], scorer: Scorer, choice: ThresholdChoice) -> Table:
    """Choose a threshold in every way, from one pass over the answers.

    Args:
        answer_sets: of a run, with labels.
        scorer: embedding clustering; a threshold or choice of its own plays no role.
        choice: target, range, search and seed.

    Raises:
        ConfigError: the scorer does not cluster by embeddings, or the labels allow no choice.
    """
    backend = scorer.backend
    if not isinstance(backend, EmbeddingClustering):
        raise ConfigError(
            f"{scorer.name}: only the clustering 'embed' has a threshold to choose, this one is {backend.name!r}"
        )
    trees = backend.dendrograms([a.texts for a in answer_sets], scorer.questions(answer_sets))
    profiles = profile_documents(answer_sets, trees, low=choice.low, high=choice.high, alpha=scorer.alpha)
    if reason := why_not([p for p in profiles if p.label is not None], choice.target, choice.per_class):
        raise ConfigError(f"no threshold can be chosen: {reason}")
    fixed = (Part(choice.fallback, None, len(profiles)),)
    ways = {"fixed": Chosen({a.id: choice.fallback for a in answer_sets}, parts=fixed)}
    for name in METHODS:
        way = choice.replaced(method=name)
        ways[name] = with_errors(choose(profiles, way), profiles, way)
    rows: list[dict[str, Cell]] = []
    for name, chosen in ways.items():
        clustered = (
            answers.with_clusters(tree.cluster_ids(chosen.thresholds[answers.id])).with_choice(
                answers.id in chosen.held_out, chosen.errors
            )
            for answers, tree in zip(answer_sets, trees, strict=True)
        )
        estimate = detection_auroc([score_clustered(a, alpha=scorer.alpha) for a in clustered], choice.target)
        thresholds = [part.threshold for part in chosen.parts]
        rows.append({"way": name, "lowest": min(thresholds), "highest": max(thresholds), "auroc": estimate})
    columns = [
        *(Column("way"), Column("lowest", format=FOUR_DIGITS), Column("highest", format=FOUR_DIGITS)),
        Column("auroc", "ROC-AUC", format=FOUR_DIGITS),
        Column("interval", "95 %", show="interval", of="auroc"),
        *(Column("rarer", "rarer class", show="n_rarer", of="auroc"), Column("documents", show="n", of="auroc")),
    ]
    reasons = ((name, part.reason) for name, chosen in ways.items() for part in chosen.parts if part.reason)
    title = f"ROC-AUC of {choice.target} by the way its threshold is chosen"
    return Table(columns, rows, title, ["oracle: on the reported documents", *reason_lines("fell back", reasons)])
