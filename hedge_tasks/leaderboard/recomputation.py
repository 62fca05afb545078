"""Recomputation of a submission from its texts: labels, clusters, health."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hedge_tasks.clustering import ClusteringBackend
from hedge_tasks.clustering.model_outputs import RELATIONS, ReusesOutputs
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.data.manifests import text_digest
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.errors import HedgeError
from hedge_tasks.judging import Case, Judge, build_judge, reliability
from hedge_tasks.judging.base import JUDGES
from hedge_tasks.judging.reply_judge import ReplyJudge, reads_replies
from hedge_tasks.leaderboard.stated import has_texts, recorded_decoding
from hedge_tasks.runs.health import Health, measure_health
from hedge_tasks.runs.setting_verdicts import ONE_MODEL
from hedge_tasks.runs.trust import check_models

NO_TEXTS = "the texts are not in it"
_RULE = "rule"

_MOST_WORK: Mapping[str, int] = {"trials": 200, "folds": 50, "repeats": 50}
"""Of the choice of a threshold: a stranger's settings could keep a machine busy for days."""

# Embeddings differ in their last digits between machines, and a cosine may stand on the threshold.
DIFFERENT_BY_ROUNDING = 0.02


@dataclass(frozen=True)
class PartStatus:
    """A part of a submission that somebody could have made up.

    Attributes:
        verified: whether it was computed once more and is the same; else it is self-reported.
        reason: how it was verified, or why it was not.
    """

    verified: bool
    reason: str


@dataclass(frozen=True)
class RecomputedClusters:
    """Answers clustered once more.

    Attributes:
        part: whether the clusters are verified.
        answer_sets: with our cluster ids; None where that was not possible.
        scorer: what clustered them.
        problems: where they differ from the submission's.
    """

    part: PartStatus
    answer_sets: Sequence[AnswerSet] | None = None
    scorer: Scorer | None = None
    problems: tuple[str, ...] = ()


def text_problems(documents: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the faults of texts that do not have the digests beside them."""
    return [
        f"documents[{i}].texts.{name}: not the text of its digest"
        for i, document in enumerate(documents)
        if "texts" in document
        for name in ("question", "reference")
        if text_digest(document["texts"].get(name)) != document["digests"][name]
    ]


def reply_problems(submission: Mapping[str, Any]) -> list[str]:
    """Return the faults of replies where the stated judge reads none: it would judge other texts than were scored."""
    if reads_replies(submission["labels"]["judge"]):
        return []
    return [
        f"documents[{i}].texts.reply: this judge reads the answer itself, and no reply besides"
        for i, document in enumerate(submission["documents"])
        if "reply" in document.get("texts", {})
    ]


def judge_again(submission: Mapping[str, Any], answer_sets: Sequence[AnswerSet]) -> tuple[PartStatus, list[str]]:
    """Have the judge label the baseline answers again, where no model and nobody has to be asked: the rule judge, and
    judges of closed questions, who read the reply.

    Returns:
        Whether the labels, and the kinds that the judge named, are verified, and those that are others.
    """
    judge = _judge_here(submission)
    if isinstance(judge, str):
        return PartStatus(False, judge), []
    documents = submission["documents"]
    try:
        verdicts = judge.judge([_case(*both) for both in zip(documents, answer_sets, strict=True)])
    except HedgeError as error:
        return PartStatus(False, "the references are not those of the judge"), [f"documents[].texts: {error}"[:300]]
    wrong = [
        f"documents[{i}].{what}: stated {theirs}, the judge {judge.name!r} says {ours} ({verdict.reason[:80]})"
        for i, (document, verdict) in enumerate(zip(documents, verdicts, strict=True))
        for what, theirs, ours in (
            ("label", document["label"], verdict.label),
            ("judged.category", document["judged"]["category"], verdict.category),
        )
        if theirs != ours
    ]
    return PartStatus(not wrong, f"judged again by the judge {judge.name!r}, version {judge.version}"), wrong


def _judge_here(submission: Mapping[str, Any]) -> Judge | str:
    """The judge of a submission, where it is here and has to ask nobody; else why not."""
    settings = submission["labels"]["judge"]
    name = settings.get("judge") if isinstance(settings, Mapping) else None
    if not isinstance(settings, Mapping) or not isinstance(name, str):
        return "labelled by nobody that is recorded, who is not asked again here"
    labelled_by = f"labelled by the judge {name!r}"[:200]
    if not asks_nobody(name):
        return f"{labelled_by}, who is not asked again here"
    if settings.get("fallback") is not None:
        return f"{labelled_by} with a model behind it, which is not asked again here"
    if not has_texts(submission):
        return f"{labelled_by}, but {NO_TEXTS}"
    if name != _RULE and not all("reply" in document["texts"] for document in submission["documents"]):
        return f"{labelled_by}, but the replies are not among the texts"
    try:
        judge = build_judge(name, **{key: value for key, value in settings.items() if key not in ("judge", "version")})
    except HedgeError as error:
        return f"the judge {name!r} of these settings cannot be built here: {error}"[:500]
    if judge.settings() != dict(settings):
        return f"labelled by version {str(settings.get('version'))[:50]} of the judge {name!r}, not {judge.version}"
    return judge


def asks_nobody(name: str) -> bool:
    """Whether a judge is a set of rules that is installed here."""
    if name == _RULE:
        return True
    try:
        judge = JUDGES.get(name)
    except HedgeError:
        return False
    return isinstance(judge, type) and issubclass(judge, ReplyJudge) and judge.of_documents


def _case(document: Mapping[str, Any], answers: AnswerSet) -> Case:
    """Return what the judge saw: of closed questions the reply before it was read."""
    reply = document["texts"].get("reply", answers.baseline.text)  # `check` refuses one that the judge has no use for
    return Case(
        answers.id, answers.question or "", answers.reference or "", reply, cut=answers.baseline.finish == "length"
    )


def _asks_about_pairs(backend: ClusteringBackend) -> bool:
    return isinstance(backend, ReusesOutputs) and any(source.kind == RELATIONS for source in backend.sources())


def cluster_again(
    submission: Mapping[str, Any], name: str, answer_sets: Sequence[AnswerSet], *, thorough: bool
) -> RecomputedClusters:
    """Cluster the answers again, as the settings say.

    Args:
        thorough: also with NLI models, which takes minutes.
    """
    settings = submission["clusterings"][name]["settings"]
    if not has_texts(submission):
        return RecomputedClusters(PartStatus(False, NO_TEXTS))
    tuning = settings.get("tuning")
    for option, most in _MOST_WORK.items():
        if isinstance(tuning, Mapping) and isinstance(tuning.get(option), int) and tuning[option] > most:
            return RecomputedClusters(PartStatus(False, f"more than {most} {option} in the choice of the threshold"))
    try:
        check_models({name: settings}, "this submission")
        scorer = Scorer.from_settings(name, settings)
        if _asks_about_pairs(scorer.backend) and not thorough:
            return RecomputedClusters(
                PartStatus(False, "clusters of an NLI model are computed again only where that is asked for")
            )
        scorer.backend.check()
        clustered = scorer.cluster(answer_sets)
    except HedgeError as error:
        return RecomputedClusters(PartStatus(False, f"not clustered again here: {error}"[:500]))
    except Exception as error:  # of somebody else's clustering, given somebody else's settings
        return RecomputedClusters(PartStatus(False, f"not clustered again here: {type(error).__name__}"))
    return _compared(submission, name, scorer, clustered)


def _compared(
    submission: Mapping[str, Any], name: str, scorer: Scorer, clustered: Sequence[AnswerSet]
) -> RecomputedClusters:
    documents = submission["documents"]
    differing = [
        i
        for i, (document, ours) in enumerate(zip(documents, clustered, strict=True))
        if not same_clusters(ours.cluster_ids or (), document["clusterings"][name]["clusters"])
    ]
    exact = scorer.backend.name == "exact"
    if len(differing) > (0 if exact else DIFFERENT_BY_ROUNDING * len(documents)):
        first = differing[0]
        problem = (
            f"documents[{first}].clusterings.{name}.clusters: not those of the settings' clustering, as in "
            f"{len(differing)} of {len(documents)} documents"
        )
        return RecomputedClusters(
            PartStatus(False, "clustered again, with other clusters"), clustered, scorer, (problem,)
        )
    if differing:
        reason = f"{len(differing)} of {len(documents)} documents cluster differently here, which rounding may do"
        return RecomputedClusters(PartStatus(False, reason), clustered, scorer)
    return RecomputedClusters(PartStatus(True, f"clustered again ({scorer.backend.name})"), clustered, scorer)


def same_clusters(ours: Sequence[int], theirs: Sequence[int]) -> bool:
    """Whether two lists of cluster ids put the same answers together, ours numbered in the order of appearance."""
    numbers: dict[int, int] = {}
    return list(ours) == [numbers.setdefault(i, len(numbers)) for i in theirs]


def unreliable_again(submission: Mapping[str, Any], answer_sets: Sequence[AnswerSet]) -> str | None:
    """Why the run's numbers cannot be relied on, as far as the submission tells by its texts, or its labels alone."""
    health = health_again(submission, answer_sets)
    return health if health is None or isinstance(health, str) else health.unreliable


def health_again(submission: Mapping[str, Any], answer_sets: Sequence[AnswerSet]) -> Health | str | None:
    """Return the health of the run by the submission's texts; without texts why its labels are unreliable, or None."""
    settings, documents = submission["settings"], submission["documents"]
    verdicts = [{"label": d["label"], "category": d["judged"]["category"]} for d in documents]
    if not has_texts(submission):
        return reliability(verdicts) if any(d["label"] is not None for d in documents) else None
    n_failed = len(settings.get("failed") or ())
    return measure_health(answer_sets, settings.get("sampled") or {}, n_failed, verdicts)


def settings_again(
    submission: Mapping[str, Any], answer_sets: Sequence[AnswerSet], health: Health | str | None
) -> dict[str, str]:
    """Return the state of each setting by the submission itself; without texts only of who answered.

    Args:
        health: as `health_again` has it.
    """
    if isinstance(health, Health):
        return {setting.setting: setting.state for setting in health.setting_verdicts}
    stated_settings = {setting["setting"] for setting in submission["health"]["settings"]}
    nobody = all(answer.served is None for a in answer_sets for answer in a.answers)
    sampled_here = recorded_decoding(submission["settings"]).get("sampled_here") is True
    return {ONE_MODEL: "not verifiable"} if ONE_MODEL in stated_settings and nobody and not sampled_here else {}
