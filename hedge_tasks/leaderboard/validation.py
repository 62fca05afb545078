"""Is a submission what it says it is? Every score and every aggregate is computed again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.detectors.thresholds import ThresholdChoice, held_out_ids
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.io.outside import read_json
from hedge_tasks.leaderboard.schema import schema_fault
from hedge_tasks.leaderboard.submission import (
    DECIMALS,
    SUBMITTED,
    aggregates_of,
    digest_of,
    scores_from,
    stored_scores,
    summary_of,
)

LARGEST = 512 << 20
"""Bytes of a submission."""

_MOST = 20
# Half a unit in the last decimal is rounding; anything more is another number.
_TOLERANCE = 0.5 * 10**-DECIMALS + 1e-9
_SCORE_TOLERANCE = 1e-9


def read_submission(path: Path) -> dict[str, Any]:
    """Read a submission's JSON.

    Raises:
        DataError: no file, too large, or no JSON object (NaN and infinity are none, either, nor is a key given twice).
    """
    content = read_json(path, largest=LARGEST, constants=False)
    if not isinstance(content, dict):
        raise DataError(f"{path}: expected a JSON object, got {type(content).__name__}")
    return content


def problems(submission: Mapping[str, Any], *, recompute_scores: bool = True) -> list[str]:
    """What is wrong with a submission; nothing if every number follows from the documents. At most twenty are listed.

    Args:
        recompute_scores: whether scores are computed again from cluster ids and log-probabilities, too. Aggregates
            always are computed again from the scores.
    """
    if fault := schema_fault(submission):
        return [fault]
    return list(islice(_inconsistencies(submission, recompute_scores), _MOST))


def _inconsistencies(submission: Mapping[str, Any], recompute_scores: bool) -> Iterator[str]:
    if (digest := digest_of(submission)) != submission["digest"]:
        yield f"digest: the content's is {digest}, so it was changed after it was written"
    documents = submission["documents"]
    wrong = list(islice(_document_faults(documents, set(submission["clusterings"])), _MOST))
    yield from wrong
    if wrong:
        return  # nothing can be computed from such documents
    yield from _differences("summary", summary_of(list(map(_without_texts, documents))), submission["summary"])
    known: dict[object, dict[str, Any]] = {}
    for name, clustering in submission["clusterings"].items():
        scores = stored_scores(submission, name)
        if recompute_scores:
            yield from _score_differences(documents, name, clustering["alpha"], scores)
        yield from _held_out_faults(name, clustering["settings"], scores)
        yield from _differences_of_aggregates(name, aggregates_of(scores, known), clustering["aggregates"])


def _document_faults(documents: Sequence[Mapping[str, Any]], clusterings: set[str]) -> Iterator[str]:
    for id, times in Counter(document["id"] for document in documents).items():
        if times > 1:
            yield f"documents: the id {id[:80]!r} occurs {times} times"
    for i, document in enumerate(documents):
        if set(document["clusterings"]) != clusterings:
            yield f"documents[{i}].clusterings: not the clusterings of the submission"
        n_answers = len(document["logprobs"])
        if n_answers < 1 + document["n_clean"]:
            yield f"documents[{i}].logprobs: {n_answers} for a baseline and {document['n_clean']} clean answers"
        for name, of_clustering in document["clusterings"].items():
            if len(of_clustering["clusters"]) != n_answers:
                n_clusters = len(of_clustering["clusters"])
                yield f"documents[{i}].clusterings.{name}.clusters: {n_clusters} for {n_answers} answers"
        if "texts" in document and len(document["texts"]["answers"]) != n_answers:
            yield f"documents[{i}].texts.answers: {len(document['texts']['answers'])} for {n_answers} answers"


def _held_out_faults(clustering: str, settings: Mapping[str, Any], scores: Sequence[Scores]) -> Iterator[str]:
    """Aggregates leave out the documents that the settings of the tuning say, or a submitter could choose them."""
    stated = {s.id for s in scores if s.held_out}
    place = f"documents[].clusterings.{clustering}.held_out"
    if settings.get("threshold") != "tuned":
        if stated:
            yield f"{place}: {len(stated)} documents, but this threshold is not tuned on held-out documents"
        return
    try:
        choice = ThresholdChoice.from_config("tuned", settings.get("tuning"))
    except (ConfigError, TypeError) as error:
        yield f"clusterings.{clustering}.settings: {error}"
        return
    split = held_out_ids(scores, choice)
    chosen_on = [s for s in scores if s.id in split]
    # With too few of a class no threshold is chosen, and nothing is left out.
    hallucinated = sum(s.label == 1 for s in chosen_on)
    enough = min(hallucinated, len(chosen_on) - hallucinated) >= max(choice.per_class, 1)
    learned = enough and all(s[choice.target] is not None for s in chosen_on)
    if differing := stated ^ (split if learned else frozenset()):
        yield f"{place}: {len(differing)} documents differ from the settings' split, such as {min(differing)[:80]!r}"


def _score_differences(
    documents: Sequence[Mapping[str, Any]], clustering: str, alpha: float, stated: Sequence[Scores]
) -> Iterator[str]:
    for i, (document, scores) in enumerate(zip(documents, stated, strict=True)):
        try:
            computed = scores_from(document, clustering, alpha)
        except DataError as error:
            yield f"documents[{i}].clusterings.{clustering}: {error}"
            continue
        for name in SUBMITTED:
            ours, theirs = computed[name], scores[name]
            infinite = ours in (float("inf"), float("-inf"))
            if not (theirs is None if ours is None or infinite else _close(ours, theirs, _SCORE_TOLERANCE)):
                yield f"documents[{i}].clusterings.{clustering}.scores.{name}: stated {theirs}, computed {ours}"


def _differences_of_aggregates(
    clustering: str, computed: Mapping[str, Mapping[str, Any]], stated: Mapping[str, Any]
) -> Iterator[str]:
    for name in computed.keys() | stated.keys():
        place = f"clusterings.{clustering}.aggregates.{name}"
        if name not in stated or name not in computed:
            yield f"{place}: {'is missing' if name in computed else 'no such score'}"
        else:
            yield from _differences(place, computed[name], stated[name])


def _differences(place: str, computed: Mapping[str, Any], stated: Mapping[str, Any]) -> Iterator[str]:
    for key, ours in computed.items():
        theirs = stated[key]
        same = _close(ours, theirs, _TOLERANCE) if isinstance(ours, float) else ours == theirs
        if not same:
            yield f"{place}.{key}: stated {theirs}, computed {ours}"


def _close(ours: float, theirs: float | None, tolerance: float) -> bool:
    return theirs is not None and abs(ours - theirs) <= tolerance


def _without_texts(document: Mapping[str, Any]) -> AnswerSet:
    end = 1 + document["n_clean"]
    answers = [Answer("")] * len(document["logprobs"])
    nothing = AnswerSet(document["id"], answers[0], tuple(answers[1:end]), tuple(answers[end:]))
    return replace(nothing, label=document["label"])
