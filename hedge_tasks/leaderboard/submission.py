"""A finished run as a file for the leaderboard: numbers that anybody can compute again, without the texts."""

from __future__ import annotations

import hashlib
import json
import math
import platform
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from hedge_tasks import __version__
from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.detectors.pipeline import SCORE_NAMES, Scores, detection_auroc, score_clustered
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.io.files import write_whole
from hedge_tasks.runs.run_files import Run
from hedge_tasks.runs.scorers import scorers_of

FORMAT = 1
DECIMALS = 6
"""Of aggregates."""

SUBMITTED = (*SCORE_NAMES, "discrete_se", "n_clusters", "baseline_nll", "clean_nll")
"""Detectors that follow from cluster ids and log-probabilities alone, so that nobody needs the texts to check them.

Others, those of other packages among them, stay in the run: whoever validates could not compute them again."""

_DISTRIBUTIONS = ("lmms-eval", "torch", "transformers", "sentence-transformers", "numpy", "scipy", "scikit-learn")
_NO_TEXT = ""


def make_submission(
    run: Run,
    *,
    name: str | None = None,
    url: str | None = None,
    note: str | None = None,
    texts: bool = False,
    scorers: Mapping[str, Scorer] | None = None,
) -> dict[str, Any]:
    """A run as a submission, ready for JSON.

    Args:
        name: of the entry on the leaderboard; by default the model.
        url: of a page about it, beginning with https://.
        note: a few words about it.
        texts: whether questions, references and answers are in it.
        scorers: what the answers are scored with; by default the run's own scorers.

    Raises:
        ConfigError: the run records no scorers, or the address is not https.
        DataError: there are no answers.
    """
    from hedge_tasks.leaderboard.schema import schema_fault

    if not run.answer_sets:
        raise DataError(f"{run.title}: there are no answers to submit")
    used = dict(scorers_of(run) if scorers is None else scorers)
    scores = {key: scorer.score(run.answer_sets) for key, scorer in used.items()}
    about = {"name": name or run.model or run.task, "task": run.task, "model": run.model, "created": run.created}
    documents = [
        _document(answers, {key: of_scorer[i] for key, of_scorer in scores.items()}, texts)
        for i, answers in enumerate(run.answer_sets)
    ]
    content: dict[str, Any] = {
        "hedge_submission": FORMAT,
        "entry": {**about, **({"url": url} if url else {}), **({"note": note} if note else {})},
        "versions": _versions(),
        "settings": json.loads(json.dumps(run.settings, default=str)),
        "summary": summary_of(run.answer_sets),
        "documents": documents,
    }
    # From what is stated there, as whoever validates it will do.
    content["clusterings"] = {
        key: {
            "settings": scorer.settings(),
            "alpha": scorer.alpha,
            "aggregates": aggregates_of(stored_scores(content, key)),
        }
        for key, scorer in used.items()
    }
    submission = {**content, "digest": digest_of(content)}
    if found := schema_fault(submission):
        raise ConfigError(f"cannot submit {run.title}: {found}")
    return submission


def write_submission(path: Path, submission: Mapping[str, Any]) -> None:
    """Write a submission as a whole or not at all."""
    write_whole(path, json.dumps(submission, ensure_ascii=True, allow_nan=False, indent=1) + "\n")


def digest_of(submission: Mapping[str, Any]) -> str:
    """SHA-256 of everything but the digest, in one canonical form."""
    content = {key: value for key, value in submission.items() if key != "digest"}
    text = json.dumps(content, sort_keys=True, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def summary_of(answer_sets: Sequence[AnswerSet]) -> dict[str, Any]:
    """How many documents, labels, hallucinations and answers there are."""
    labels = [a.label for a in answer_sets if a.label is not None]
    return {
        "documents": len(answer_sets),
        "labelled": len(labels),
        "hallucinated": sum(labels),
        "hallucination_rate": round(sum(labels) / len(labels), DECIMALS) if labels else None,
        "n_clean": min(len(a.clean) for a in answer_sets),
        "n_noisy": min(len(a.noisy) for a in answer_sets),
    }


def aggregates_of(
    scores: Sequence[Scores], known: dict[object, dict[str, Any]] | None = None
) -> dict[str, dict[str, Any]]:
    """ROC-AUC of every submitted score. By DeLong: no resampling, so that every machine gets the same interval.

    Args:
        known: aggregates of earlier calls for the same documents, by their values; taken from there and added to it.
            The scorers of a run share some scores, those that no clustering plays a role in.
    """
    known = {} if known is None else known
    aggregates = {}
    for name in SUBMITTED:
        values = tuple((s[name], s.held_out) for s in scores)
        if values not in known:
            known[values] = _aggregate(scores, name)
        aggregates[name] = known[values]
    return aggregates


def _aggregate(scores: Sequence[Scores], name: str) -> dict[str, Any]:
    estimate = detection_auroc(scores, name, method="delong")
    low, high = estimate.interval or (None, None)
    numbers = {"auroc": estimate.value, "stderr": estimate.stderr, "low": low, "high": high}
    rounded = {key: None if value is None else round(value, DECIMALS) for key, value in numbers.items()}
    return {**rounded, "n": estimate.n, "n_positive": estimate.n_positive, "reason": estimate.reason}


def scores_from(document: Mapping[str, Any], clustering: str, alpha: float) -> Scores:
    """The scores of a document, from its cluster ids and log-probabilities.

    Raises:
        DataError: numbers that no score can be made of.
    """
    clusters = document["clusterings"][clustering]["clusters"]
    logprobs = [-math.inf if value == "-inf" else value for value in document["logprobs"]]
    if len(clusters) != len(logprobs) or len(logprobs) < 1 + document["n_clean"]:
        raise DataError(f"{len(clusters)} cluster ids and {len(logprobs)} log-probabilities do not go together")
    answers = [Answer(_NO_TEXT, value) for value in logprobs]
    end = 1 + document["n_clean"]
    about = {key: document[key] for key in ("id", "label", "group", "question_type")}
    answer_set = AnswerSet(**about, baseline=answers[0], clean=tuple(answers[1:end]), noisy=tuple(answers[end:]))
    return score_clustered(answer_set.with_clusters(clusters), alpha=alpha, detectors=SUBMITTED)


def stored_scores(submission: Mapping[str, Any], clustering: str) -> list[Scores]:
    """The scores of all documents as the submission states them."""
    rows = []
    for document in submission["documents"]:
        stated = document["clusterings"][clustering]
        named = {name: stated["scores"].get(name) for name in SUBMITTED}
        about = {key: document[key] for key in ("id", "label", "group", "question_type")}
        rest = {"cluster_ids": tuple(stated["clusters"]), "held_out": stated.get("held_out", False)}
        rows.append(Scores(**about, numbers=named, weighting="", n_clean=document["n_clean"], **rest))
    return rows


def _document(answers: AnswerSet, scores: Mapping[str, Scores], texts: bool) -> dict[str, Any]:
    document: dict[str, Any] = {
        "id": answers.id,
        "label": answers.label,
        "group": answers.group,
        "question_type": answers.question_type,
        "n_clean": len(answers.clean),
        "logprobs": ["-inf" if a.mean_logprob == -math.inf else a.mean_logprob for a in answers.answers],
        "clusterings": {
            key: {
                "clusters": list(s.cluster_ids),
                "scores": {name: _finite(s[name]) for name in SUBMITTED},
                **({"held_out": True} if s.held_out else {}),
            }
            for key, s in scores.items()
        },
    }
    if texts:
        document["texts"] = {"question": answers.question, "reference": answers.reference, "answers": answers.texts}
    return document


def _finite(value: float | None) -> float | None:
    """JSON has no infinity: an impossible answer's NLL is left out."""
    return value if value is None or math.isfinite(value) else None


def _versions() -> dict[str, str]:
    versions = {"hedge-tasks": __version__, "python": platform.python_version()}
    for name in _DISTRIBUTIONS:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions
