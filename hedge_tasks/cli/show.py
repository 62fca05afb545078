"""`hedge show`: the clusters of one question, under one clustering or two, as in Appendix A of the HEDGE paper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hedge_tasks.cli.choices import ClusteringChoice, RunChoice, printable

if TYPE_CHECKING:
    from hedge_tasks.data.answers import AnswerSet
    from hedge_tasks.detectors.scorer import Scorer
    from hedge_tasks.numbers import Table


def show(run: RunChoice, clustering: ClusteringChoice, *, id_: str, against: str | None = None) -> dict[str, Any]:
    """Show the clusters of one question.

    Args:
        id_: The question's id.
        against: Another clustering, as --clustering has it, to be shown beside the first.
    """
    from hedge_tasks.errors import ConfigError, unknown
    from hedge_tasks.runs.health import decoding_line, health_of

    finished = run.load()
    by_id = {answers.id: answers for answers in finished.answer_sets}
    if id_ not in by_id:
        raise unknown(f"question of {finished.task}", id_, by_id)
    scorers = [clustering.scorer(finished)]
    if against is not None:
        scorers.append(ClusteringChoice(against, clustering.alpha).scorer(finished))
        if scorers[0].name == scorers[1].name:
            raise ConfigError(f"{against} beside itself; choose another with --clustering or --against")
    views = [_view(scorer, by_id, id_) for scorer in scorers]
    answers, facts = by_id[id_], [facts for _, facts in views]
    return {
        "run": finished.title,
        **{key: printable(getattr(answers, key) or "") for key in ("question", "reference")},
        "baseline": printable(answers.baseline.text),
        "label": answers.label,
        "verdict": finished.verdicts.get(id_) or {},
        "decoding": decoding_line(health_of(finished)),
        **facts[0],
        "answers": _answers({scorer.name: clustered for scorer, (clustered, _) in zip(scorers, views, strict=True)}),
        **({"against": facts[1]} if len(facts) > 1 else {}),
    }


def _view(scorer: Scorer, by_id: Mapping[str, AnswerSet], name: str) -> tuple[AnswerSet, dict[str, Any]]:
    """Return a question as one clustering sees it, and facts about it."""
    from hedge_tasks.detectors.scorer import score_all

    # A threshold is chosen on all questions, a fixed one needs this question only.
    needed = list(by_id.values()) if scorer.choice else [by_id[name]]
    [clustered] = (answers for answers in scorer.cluster(needed) if answers.id == name)
    [scores] = score_all([clustered], scorer.backend, scorer.detectors, alpha=scorer.alpha)
    return clustered, {
        "clustering": scorer.settings(),
        "cluster_ids": clustered.cluster_ids,
        "weighting": scores.weighting,
        "scores": dict(scores),
        "left_out": dict(scores.left_out),
    }


def _answers(views: Mapping[str, AnswerSet]) -> Table:
    """Return a row for each answer with its cluster under each clustering, in the order of the first one's clusters."""
    from hedge_tasks.numbers import Column, Table

    [first, *_] = views.values()
    drawn = ["baseline", *["clean"] * len(first.clean), *["noisy"] * len(first.noisy)]
    rows = [
        {name: (view.cluster_ids or ())[i] for name, view in views.items()}
        | {"drawn": drawn[i], "answer": printable(answer.text), "logprob": answer.mean_logprob, "end": answer.finish}
        for i, answer in enumerate(first.answers)
    ]
    rows.sort(key=lambda row: str(row[next(iter(views))]).zfill(9))
    return Table([*map(Column, (*views, "drawn", "logprob", "end", "answer"))], rows)
