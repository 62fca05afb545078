"""A finished run as a file for the leaderboard, with as much of it as licences allow."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from importlib import metadata
from itertools import groupby
from pathlib import Path
from typing import Any

from hedge_tasks import __version__
from hedge_tasks.data.answers import Answer, AnswerSet, Served, Thought
from hedge_tasks.data.manifests import text_digest
from hedge_tasks.detectors.pipeline import Scores, detection_auroc, detectors_of, prices_of
from hedge_tasks.detectors.registry import get, names
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.io import options
from hedge_tasks.io.files import write_whole
from hedge_tasks.io.json_lines import canonical
from hedge_tasks.io.outside import cleaned
from hedge_tasks.judging.outcomes import DECLINED, outcome_of
from hedge_tasks.judging.reply_judge import reads_replies
from hedge_tasks.leaderboard import audits, blind
from hedge_tasks.leaderboard.stated import finite, logprob_field, logprob_in, number_fields, rounded
from hedge_tasks.leaderboard.suite import suite_of_run
from hedge_tasks.leaderboard.units import claims_of_run
from hedge_tasks.runs.audit_files import audit_of
from hedge_tasks.runs.health import Health, health_of
from hedge_tasks.runs.relabel import judge_of
from hedge_tasks.runs.run_files import Run
from hedge_tasks.runs.scorers import scorers_of
from hedge_tasks.runs.trust import installed_tasks

FORMAT = 4
LICENCE = "texts"
"""Under `metadata` of a task's YAML: the licence under which its questions and references may be passed on."""

_DISTRIBUTIONS = ("lmms-eval", "torch", "transformers", "sentence-transformers", "numpy", "scipy", "scikit-learn")
_READ_TEXTS = frozenset({"lexical", "degree_jaccard", "eccentricity_jaccard", "eigv_jaccard"})
_NUMBERS = frozenset({"clean", "noisy", "clusters", "baseline_logprob", "baseline_tokens", "clean_logprobs"})
_NUMBERS |= {"clean_tokens", "noisy_logprobs", "noisy_tokens"}
CARRIED = _NUMBERS | {"relations", "cosines", "question", "claims"}
"""Evidence that a submission with texts carries, or that follows from it."""

_OURS = "hedge_tasks."


def make_submission(
    run: Run,
    *,
    name: str | None = None,
    url: str | None = None,
    note: str | None = None,
    weights: str | None = None,
    parameters: float | None = None,
    texts: bool | None = None,
    scorers: Mapping[str, Scorer] | None = None,
) -> dict[str, Any]:
    """A run as a submission, ready for JSON; with its audit, where one stands beside it.

    Args:
        name: of the entry on the leaderboard; by default the model.
        url: of a page about it, beginning with https://.
        note: a few words about it.
        weights: "open" where anybody can have them, else "closed".
        parameters: of the model, in billions.
        texts: whether questions, references and answers are in it, without which neither labels nor clusters can be
            verified. None puts them in where the task's YAML names a licence that allows it (`metadata.texts`).
        scorers: what the answers are scored with; by default the run's own scorers with their detectors.

    Raises:
        ConfigError: the run records no scorers, the address is not https, or name, note or parameters make no sense.
        DataError: there are no answers, or the audit beside the run is damaged.
    """
    from hedge_tasks.leaderboard.schema import schema_fault

    if not run.answer_sets:
        raise DataError(f"{run.title}: there are no answers to submit")
    if parameters is not None:
        options.number("parameters", parameters, zero=False)
    for key, text in (("name", name), ("note", note)):
        if text is not None and (not text.strip() or not text.isprintable()):
            raise ConfigError(f"{key}: expected a text on one line, got {text!r}")
    chosen = dict(scorers_of(run) if scorers is None else scorers)
    scores = {key: scorer.score(run.answer_sets) for key, scorer in chosen.items()}
    entry = {"name": name or run.model or run.task, "task": run.task, "model": run.model, "created": run.created}
    optional = {"url": url, "note": note, "weights": weights, "parameters": parameters}
    with_texts = texts_licence(run.task) is not None if texts is None else texts
    settings, versions = json.loads(json.dumps(run.settings, default=str)), installed_versions(_DISTRIBUTIONS)
    own, claims = suite_of_run(run), claims_of_run(run, texts=with_texts)
    documents = [
        document_record(
            a,
            run.verdicts.get(a.id) or {},
            {key: rows[i] for key, rows in scores.items()},
            texts=with_texts,
            suite=own.records[a.id],
            claims=None if claims is None else claims.records[a.id],
            replies=reads_replies(judge_of(run)),
        )
        for i, a in enumerate(run.answer_sets)
    ]
    content: dict[str, Any] = {
        "hedge_submission": FORMAT,
        "entry": {**entry, **{key: value for key, value in optional.items() if value}},
        "versions": {"hedge-tasks": __version__, "python": platform.python_version(), **versions},
        "run": {"sha256": run.digest or None},
        "settings": settings,
        "labels": {"judge": (settings.get("documents") or {}).get("judge"), "store": label_digest(documents)},
        "health": health_record(health_of(run)),
        "summary": summary_of(run.answer_sets, documents),
        "suite": own.numbers,
        "documents": documents,
        **({} if claims is None else {"claims": dict(claims.facts)}),
    }
    # From what is stated there, as whoever validates it will do.
    content["clusterings"] = {key: _clustering(scorer, scores[key]) for key, scorer in chosen.items()}
    for key, clustering in content["clusterings"].items():
        clustering["aggregates"] = aggregates_of(stored_scores(content, key))
    sets = [answer_set_of(document) for document in documents]
    stated = {key: stored_scores(content, key) for key in chosen}
    for document, blind_scores in zip(documents, blind.scores_by_document(run.answer_sets), strict=True):
        document |= {"blind": blind_scores} if blind_scores else {}
    content["blind"] = blind.record_of(content, stated)
    if (audit := audit_of(run)) is not None:
        for document in documents:
            document["audit"] = audits.in_document(audit, document["id"])
        content["audit"] = audits.record_of(audit, sets, stated)
    content = cleaned(content)  # as whoever reads the file has it
    submission = {**content, "digest": digest_of(content)}
    if fault := schema_fault(submission):
        raise ConfigError(f"cannot submit {run.title}: {fault}")
    return submission


def texts_licence(task: str) -> str | None:
    """The licence under which a task's questions and references may be passed on, as its YAML says; None without."""
    for config in installed_tasks():
        if config.get("task") == task:
            licence = (config.get("metadata") or {}).get(LICENCE)
            return licence if isinstance(licence, str) else None
    return None


def write_submission(path: Path, submission: Mapping[str, Any]) -> None:
    """Write a submission as a whole or not at all."""
    write_whole(path, json.dumps(submission, ensure_ascii=True, allow_nan=False, indent=1) + "\n")


def digest_of(submission: Mapping[str, Any]) -> str:
    """SHA-256 of everything but the digest, in one canonical form."""
    return sha256_of({key: value for key, value in submission.items() if key != "digest"})


def sha256_of(content: Any) -> str:
    """SHA-256 of a JSON value in its canonical form."""
    return f"sha256:{hashlib.sha256(canonical(content)).hexdigest()}"


def label_digest(documents: Sequence[Mapping[str, Any]]) -> str | None:
    """Digest of the label store's keys and the labels; None where no label came from a store."""
    keyed = [[document["judged"]["keys"], document["label"]] for document in documents if document["judged"]["keys"]]
    return sha256_of(sorted(keyed, key=lambda pair: pair[0])) if keyed else None


def health_record(health: Health) -> dict[str, Any]:
    """Of a run's health what readers of the leaderboard should know."""
    findings = [{"text": finding.text, "unreliable": finding.unreliable} for finding in health.findings]
    settings = [verdict.to_dict() for verdict in health.setting_verdicts]
    return {"unreliable": health.unreliable, "findings": findings, "settings": settings}


def summary_of(answer_sets: Sequence[AnswerSet], documents: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """How many documents, labels, hallucinations, declined answers and draws there are."""
    labels = [a.label for a in answer_sets if a.label is not None]
    return {
        "documents": len(answer_sets),
        "labelled": len(labels),
        "hallucinated": sum(labels),
        "declined": sum(outcome_of({**d["judged"], "label": d["label"]}) == DECLINED for d in documents),
        "hallucination_rate": rounded(sum(labels) / len(labels)) if labels else None,
        "n_clean": min(len(a.clean) for a in answer_sets),
        "n_noisy": min(len(a.noisy) for a in answer_sets),
    }


def aggregates_of(
    scores: Sequence[Scores], cached: dict[object, dict[str, Any]] | None = None
) -> dict[str, dict[str, Any]]:
    """ROC-AUC of every detector, with the interval that the run's report has.

    Args:
        cached: aggregates of earlier calls for the same documents, by their values; taken from there and added to it.
            The scorers of a run share some scores, those that no clustering plays a role in.
    """
    cached = {} if cached is None else cached
    aggregates = {}
    for name in detectors_of(scores):
        errors = tuple(s.choice_errors.get(name, 0.0) for s in scores)
        values = (tuple((s[name], s.held_out) for s in scores), errors)
        if values not in cached:
            cached[values] = _aggregate(scores, name)
        aggregates[name] = cached[values]
    return aggregates


def _aggregate(scores: Sequence[Scores], name: str) -> dict[str, Any]:
    estimate = detection_auroc(scores, name)
    counts = {"n": estimate.n, "n_positive": estimate.n_positive}
    return {**number_fields(estimate, "auroc"), **counts, "reason": estimate.reason}


def follows_from_numbers(name: str) -> bool:
    """Whether a detector is computed from cluster ids, log-probabilities and token counts alone, without any text.

    Only of this package's detectors is that known.
    """
    if name not in names():
        return False
    detector = get(name)
    ours = detector.function.__module__.startswith(_OURS)
    return ours and name not in _READ_TEXTS and detector.needs <= _NUMBERS


def answer_set_of(document: Mapping[str, Any]) -> AnswerSet:
    """A document's answers; without texts each is empty, which no detector may then look at.

    Raises:
        DataError: numbers that belong to no answers.
    """
    logprobs = [logprob_in(field) for field in document["logprobs"]]
    if len(logprobs) < 1 + document["n_clean"]:
        raise DataError(f"{len(logprobs)} log-probabilities for a baseline and {document['n_clean']} clean answers")
    nothing = [None] * len(logprobs)
    texts = document.get("texts") or {}
    columns = (
        texts.get("answers") or [""] * len(logprobs),
        logprobs,
        document.get("n_tokens") or nothing,
        texts.get("finish") or nothing,
    )
    ends = [logprob_in(field) for field in document.get("end_logprobs") or nothing]
    thoughts = [None if n is None else Thought(n) for n in document.get("thoughts") or nothing]
    served = [None if who is None else Served(**who) for n, who in document.get("answered_by") or () for _ in range(n)]
    if len(served or nothing) != len(logprobs):
        raise DataError(f"answered_by: {len(served)} answers, but there are {len(logprobs)}")
    extras = zip(ends, thoughts, served or nothing, strict=True)
    answers = [
        replace(Answer(*fields), end_logprob=end, thought=thought, served=who)
        for fields, (end, thought, who) in zip(zip(*columns, strict=True), extras, strict=True)
    ]
    end = 1 + document["n_clean"]
    document_fields: dict[str, Any] = {key: document[key] for key in ("id", "label", "group", "question_type")}
    document_fields |= {key: texts.get(key) for key in ("question", "reference")}
    return AnswerSet(**document_fields, baseline=answers[0], clean=tuple(answers[1:end]), noisy=tuple(answers[end:]))


def clustered_as_stated(answers: AnswerSet, document: Mapping[str, Any], clustering: str) -> AnswerSet:
    """A document's answers with the cluster ids that the submission states."""
    record = document["clusterings"][clustering]
    return replace(answers.with_clusters(record["clusters"]), held_out=record.get("held_out", False))


def stored_scores(submission: Mapping[str, Any], clustering: str) -> list[Scores]:
    """The scores of all documents as the submission states them."""
    clustering_of = submission["clusterings"][clustering]
    rows = []
    for document in submission["documents"]:
        record = document["clusterings"][clustering]
        numbers = {name: record["scores"].get(name) for name in clustering_of["detectors"]}
        fields = {key: document[key] for key in ("id", "label", "group", "question_type")}
        extras = {"cluster_ids": tuple(record["clusters"]), "held_out": record.get("held_out", False)}
        extras |= {"n_clean": document["n_clean"], "choice_errors": clustering_of["choice_errors"]}
        rows.append(Scores(**fields, numbers=numbers, weighting="", **extras))
    return rows


def _clustering(scorer: Scorer, scores: Sequence[Scores]) -> dict[str, Any]:
    prices = prices_of(scores)
    errors = {name: max(s.choice_errors.get(name, 0.0) for s in scores) for name in detectors_of(scores)}
    return {
        "settings": scorer.settings(),
        "alpha": scorer.alpha,
        "choice_errors": {name: error for name, error in errors.items() if error},
        "detectors": {name: {"title": get(name).title, "draws": round(price.mean)} for name, price in prices.items()},
    }


def document_record(
    answers: AnswerSet,
    verdict: Mapping[str, Any],
    scores: Mapping[str, Scores],
    *,
    texts: bool,
    suite: Mapping[str, Any] = {},
    claims: Mapping[str, Any] | None = None,
    replies: bool = False,
) -> dict[str, Any]:
    """Return what a submission says of one document.

    Args:
        answers: of the document.
        verdict: on its baseline answer, as the run file has it.
        scores: by clustering.
        texts: whether question, reference and answers are in it.
        suite: by metric of the suite, the record that it is made of.
        claims: of the baseline answer; see `hedge_tasks.leaderboard.units`.
        replies: whether the verdict's `raw` is what the model replied.
    """
    pictures = verdict.get("image_key")
    digests = {"question": text_digest(answers.question), "reference": text_digest(answers.reference)}
    document: dict[str, Any] = {
        "id": answers.id,
        "label": answers.label,
        "group": answers.group,
        "question_type": answers.question_type,
        "digests": {**digests, "pictures": pictures if isinstance(pictures, str) else None},
        "judged": _judged(verdict),
        "n_clean": len(answers.clean),
        "logprobs": [logprob_field(a.mean_logprob) for a in answers.answers],
        "clusterings": {
            key: {
                "clusters": list(s.cluster_ids),
                "scores": {name: finite(value) for name, value in s.items()},
                **({"held_out": True} if s.held_out else {}),
            }
            for key, s in scores.items()
        },
    }
    if any(answer.n_tokens is not None for answer in answers.answers):
        document["n_tokens"] = [answer.n_tokens for answer in answers.answers]
    document |= _server_evidence(answers.answers)
    if answers.drawn is not None:
        document["drawn"] = asdict(answers.drawn)
    if suite:
        document["suite"] = dict(suite)
    if claims is not None:
        document["claims"] = dict(claims)
    if texts:
        finish = [answer.finish for answer in answers.answers]
        document["texts"] = {"question": answers.question, "reference": answers.reference, "answers": answers.texts}
        document["texts"] |= {"finish": finish} if any(finish) else {}
        if replies and isinstance(verdict.get("raw"), str):
            document["texts"]["reply"] = verdict["raw"]
        if answers.follow_ups:
            document["texts"]["follow_ups"] = [_follow_up(answers, follow_up) for follow_up in answers.follow_ups]
    return document


def _server_evidence(answers: Sequence[Answer]) -> dict[str, Any]:
    """Return the evidence for verdicts on settings that is known besides the answers."""
    ends = [logprob_field(a.end_logprob) for a in answers]
    thoughts = [None if a.thought is None else a.thought.n_tokens for a in answers]
    columns: dict[str, list[Any]] = {"end_logprobs": ends, "thoughts": thoughts}
    evidence: dict[str, Any] = {
        key: column for key, column in columns.items() if any(value is not None for value in column)
    }
    if any(a.served is not None for a in answers):
        runs = groupby(None if a.served is None else a.served.to_dict() for a in answers)
        evidence["answered_by"] = [[len(list(group)), who] for who, group in runs]
    return evidence


def _follow_up(answers: AnswerSet, follow_up: AnswerSet) -> dict[str, Any]:
    """Return what the model was asked in the light of its baseline answer, and its first reply."""
    id, reply = follow_up.id.removeprefix(f"{answers.id}/"), follow_up.baseline
    return {"id": id, "question": follow_up.question, "reply": reply.text, "finish": reply.finish}


def _judged(verdict: Mapping[str, Any]) -> dict[str, Any]:
    """Return the judge, the kind of hallucination, and the keys of label stores."""
    votes = verdict.get("votes")
    verdicts = (
        [verdict, *(vote for vote in votes if isinstance(vote, Mapping))] if isinstance(votes, list) else [verdict]
    )
    keys = [record["key"] for record in verdicts if isinstance(record.get("key"), str)]
    judge, category = verdict.get("judge"), verdict.get("category")
    return {"judge": judge if isinstance(judge, str) else None, "category": category, "keys": keys}


def installed_versions(distributions: Iterable[str]) -> dict[str, str]:
    """Return the versions of those distributions that are installed here, by name."""
    versions = {}
    for name in distributions:
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions
