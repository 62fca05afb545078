"""`hedge show`: the clusters of one question, as in Appendix A of the HEDGE paper."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

from hedge_tasks.cli.choices import ClusteringChoice, RunChoice

if TYPE_CHECKING:
    from hedge_tasks.data.answers import AnswerSet
    from hedge_tasks.numbers import Table


def show(run: RunChoice, clustering: ClusteringChoice, *, id_: str) -> dict[str, Any]:
    """Show the clusters of one question.

    Args:
        id_: The question's id.
    """
    from hedge_tasks.detectors.scorer import score_all
    from hedge_tasks.errors import unknown
    from hedge_tasks.runs.audit_files import audit_of
    from hedge_tasks.runs.health import decoding_line, health_of

    finished = run.load()
    audit = audit_of(finished)
    by_id = {answers.id: answers for answers in finished.answer_sets}
    if id_ not in by_id:
        raise unknown(f"question of {finished.task}", id_, by_id)
    scorer = clustering.scorer(finished)
    # A threshold is chosen on all questions, a fixed one needs this question only.
    clusterings = scorer.cluster(list(by_id.values()) if scorer.choice else [by_id[id_]])
    [answers] = (answers for answers in clusterings if answers.id == id_)
    [scores] = score_all([answers], scorer.backend, scorer.detectors, alpha=scorer.alpha)
    return {
        "run": finished.title,
        **{key: getattr(answers, key) or "" for key in ("question", "reference")},
        "baseline": answers.baseline.text,
        **({"label_by_experts": audit.on([id_]).label(0)} if audit else {}),
        "label_by_judge" if audit else "label": answers.label,
        "verdict": finished.verdicts.get(id_) or {},
        "decoding": decoding_line(health_of(finished)),
        "clustering": scorer.settings(),
        "cluster_ids": answers.cluster_ids,
        "weighting": scores.weighting,
        "scores": dict(scores),
        "left_out": dict(scores.left_out),
        "answers": _table(answers),
    }


def _table(clustered: AnswerSet) -> Table:
    """Return a row for each answer with its cluster, in the order of the clusters."""
    from hedge_tasks.numbers import Table

    drawn = ["baseline", *["clean"] * len(clustered.clean), *["noisy"] * len(clustered.noisy)]
    rows = zip(clustered.cluster_ids or (), drawn, clustered.answers, strict=True)
    return Table.of(
        ("cluster", "drawn", "logprob", "end", "answer"),
        [
            (cluster, draw, answer.mean_logprob, answer.finish, answer.text.replace("\n", r"\n"))
            for cluster, draw, answer in sorted(rows, key=itemgetter(0))
        ],
    )
