"""Validation of submissions: everything that can be is computed again; the rest is called self-reported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from loguru import logger

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.data.manifests import Manifest, manifests_of
from hedge_tasks.detectors.base import NEEDS
from hedge_tasks.detectors.pipeline import Scores, detection_auroc
from hedge_tasks.detectors.registry import get, names
from hedge_tasks.detectors.scorer import score_all
from hedge_tasks.detectors.thresholds import ThresholdChoice, held_out_ids
from hedge_tasks.errors import ConfigError, DataError, HedgeError
from hedge_tasks.io.outside import read_json
from hedge_tasks.leaderboard.audits import check_audit
from hedge_tasks.leaderboard.blind import check_blind
from hedge_tasks.leaderboard.coverage import Coverage, coverage_of
from hedge_tasks.leaderboard.editions import Standing, manifests_of_edition, standing_of
from hedge_tasks.leaderboard.names import name_faults
from hedge_tasks.leaderboard.owners import NO_OWNER, check_owner
from hedge_tasks.leaderboard.recomputation import (
    NO_TEXTS,
    PartStatus,
    RecomputedClusters,
    cluster_again,
    health_again,
    judge_again,
    reply_problems,
    settings_again,
    text_problems,
)
from hedge_tasks.leaderboard.schema import schema_fault
from hedge_tasks.leaderboard.stated import MOST_FAULTS, differences, finite, has_texts
from hedge_tasks.leaderboard.submission import (
    CARRIED,
    aggregates_of,
    answer_set_of,
    clustered_as_stated,
    digest_of,
    follows_from_numbers,
    label_digest,
    stored_scores,
    summary_of,
)
from hedge_tasks.leaderboard.suite import check_suite
from hedge_tasks.leaderboard.tested import NO_END, RepeatedEvidence, bare, repeated_evidence, rests_on, why_untested
from hedge_tasks.leaderboard.units import check_claims, evidence_of_claims
from hedge_tasks.numbers import PERCENT, THREE_DIGITS, Number, format_value
from hedge_tasks.runs.editions import Edition, edition_for
from hedge_tasks.runs.health import Health
from hedge_tasks.runs.setting_verdicts import SETTINGS, SettingVerdict, power_text

LARGEST = 512 << 20
"""Bytes of a submission."""

NOT_REPLAYED = "nobody has had the model read them again: `hedge attest`"

_SCORE_TOLERANCE = 1e-11
# Of what a model computed in single precision.
_MODEL_TOLERANCE = 1e-3
_MODEL_AUROC = 0.005
_FIRST_YEAR = 2024
_OF_MODELS = frozenset({"relations", "cosines"})
_LOGPROBS = {True: frozenset({"baseline_logprob"}), False: frozenset({"clean_logprobs", "noisy_logprobs"})}
"""Evidence by whether it is of the baseline answer."""

FindManifests = Callable[[str], Sequence[Manifest]]
FindEdition = Callable[[str], Edition | None]

NO_MANIFEST = "no manifest of this task is known, so nobody can tell whether documents are missing or made up"


@dataclass(frozen=True)
class PrivateFindings:
    """Findings on an entry's model on documents that its makers have not seen.

    Attributes:
        part: whether scores on them count, and whose they are.
        aurocs: by clustering and detector.
        better: numbers of the entry that are better than there by more than chance.
    """

    part: PartStatus
    aurocs: Mapping[str, Mapping[str, Number]] = field(default_factory=dict)
    better: tuple[str, ...] = ()


@dataclass(frozen=True)
class ValidationFindings:
    """Findings of a validation.

    Attributes:
        problems: what is wrong; a submission with any is refused.
        coverage: how many of the task's documents it has; None where it could not be read that far.
        labels: whether the labels are verified.
        clusterings: by name, whether the cluster ids are.
        suite: by metric of the suite, whether its number is.
        detectors: by clustering and name, whether the scores follow from cluster ids, log-probabilities and texts.
        set_aside: why the entry is not ranked beside others.
        standing: whether it was made as the task's edition says; None where it could not be read that far.
        claims: of the support of claims, and by detector of claims, whether they are verified; empty without claims.
        audit: of the labels of experts; None without an audit.
        blind: by blind baseline, whether its scores are verified.
        remarks: what a reader should know of the run by its own answers, computed here; None where texts are missing.
        sampled: (setting, state, evidence) of its sampling, likewise.
        answers: whether the answers were replayed; see `hedge_tasks.leaderboard.attestation`.
        owner: whether a key has signed the run at its start; see `hedge_tasks.leaderboard.owners`.
        private: of private documents; None where there are no scores on them.
    """

    problems: tuple[str, ...] = ()
    coverage: Coverage | None = None
    labels: PartStatus = field(default_factory=lambda: PartStatus(False, "not looked at"))
    clusterings: Mapping[str, PartStatus] = field(default_factory=dict)
    detectors: Mapping[str, Mapping[str, PartStatus]] = field(default_factory=dict)
    suite: Mapping[str, PartStatus] = field(default_factory=dict)
    set_aside: tuple[str, ...] = ()
    claims: Mapping[str, PartStatus] = field(default_factory=dict)
    audit: PartStatus | None = None
    blind: Mapping[str, PartStatus] = field(default_factory=dict)
    standing: Standing | None = None
    answers: PartStatus = field(default_factory=lambda: PartStatus(False, NOT_REPLAYED))
    owner: PartStatus = NO_OWNER
    private: PrivateFindings | None = None
    remarks: tuple[str, ...] | None = None
    sampled: tuple[tuple[str, str, str], ...] | None = None

    @property
    def ranked(self) -> bool:
        return not self.problems and not self.set_aside

    def rests_on(self, clustering: str, detector: str) -> list[tuple[str, PartStatus]]:
        """Return what the scores of a detector of answers rest on, each with whether it is verified."""
        parts = [("clusters", self.clusterings[clustering])]
        if detector in names() and "claims" in get(detector).needs:
            parts.append(("support", self.claims.get("support", PartStatus(False, "the claims are not in it"))))
        return [*parts, ("scores", self.detectors[clustering][detector])]


def read_submission(path: Path) -> dict[str, Any]:
    """Read a submission's JSON.

    Raises:
        DataError: no file, too large, or no JSON object (NaN and infinity are none, either, nor is a key given twice).
    """
    content = read_json(path, largest=LARGEST, constants=False)
    if not isinstance(content, dict):
        raise DataError(f"{path}: expected a JSON object, got {type(content).__name__}")
    return content


def problems(submission: Mapping[str, Any], **options: Any) -> list[str]:
    """Return what is wrong with a submission; options as for `check`. At most twenty things are listed."""
    return list(check(submission, **options).problems)


def check(
    submission: Mapping[str, Any],
    *,
    manifests: FindManifests = manifests_of,
    editions: FindEdition = edition_for,
    thorough: bool = False,
) -> ValidationFindings:
    """Compute everything again that can be.

    Args:
        manifests: from a task's name to its manifests; those that ship with the installed tasks.
        editions: from a task's name to its edition; those that ship with the installed tasks.
        thorough: cluster again with NLI models, too, which takes minutes.

    Returns:
        The findings. A file that this package cannot compute with is refused, and the fault is logged.
    """
    try:
        return findings_of(submission, manifests, editions, thorough=thorough)
    except HedgeError:
        raise
    except Exception as error:  # of a stranger's file: it must not keep others' entries from the board
        logger.exception("a submission could not be computed with")
        return ValidationFindings((f"it could not be computed with ({type(error).__name__})",))


def findings_of(
    submission: Mapping[str, Any], manifests: FindManifests, editions: FindEdition, *, thorough: bool = False
) -> ValidationFindings:
    """Compute everything again as `check` does, but raise what fails in this package."""
    if fault := schema_fault(submission):
        return ValidationFindings((fault,))
    documents = submission["documents"]
    if wrong := list(islice(_document_faults(submission), MOST_FAULTS)):
        return ValidationFindings(tuple(wrong))  # nothing can be computed from such documents
    faults = list(islice((*name_faults(submission), *_inner_faults(submission)), MOST_FAULTS))
    edition = editions(submission["entry"]["task"])
    known_documents = manifests_of_edition(edition, manifests(submission["entry"]["task"]))
    coverage = coverage_of(submission, known_documents)
    if coverage.foreign and coverage.certain:
        some = ", ".join(repr(id[:80]) for id in coverage.foreign[:3])
        faults.append(f"documents: {len(coverage.foreign)} are none of the task's, such as {some}")
    answer_sets = [answer_set_of(document) for document in documents]
    owner, wrong = check_owner(submission, answer_sets)
    faults += wrong
    faults += [*text_problems(documents), *reply_problems(submission)][:MOST_FAULTS]
    labels, wrong = judge_again(submission, answer_sets)
    faults += wrong[:MOST_FAULTS]
    reclustered = {
        name: cluster_again(submission, name, answer_sets, thorough=thorough) for name in submission["clusterings"]
    }
    faults += [problem for clusters in reclustered.values() for problem in clusters.problems]
    health = health_again(submission, answer_sets)
    tested = repeated_evidence(answer_sets) if _holds_against_draws(health) else None
    verified: dict[str, Mapping[str, PartStatus]] = {}
    scores: dict[str, Sequence[Scores]] = {}
    cached: dict[object, dict[str, Any]] = {}
    for name in submission["clusterings"]:
        verified[name], scores[name], wrong = _check_clustering(
            submission, name, answer_sets, reclustered[name], cached, tested
        )
        faults += wrong
    suite, wrong = check_suite(submission, labels, known_task=edition is not None)
    faults += wrong
    claims, wrong = check_claims(submission, answer_sets)
    faults += wrong
    audit, wrong = check_audit(submission, answer_sets, scores)
    faults += wrong
    blind, wrong = check_blind(submission, answer_sets, scores)
    faults += wrong
    unreliable, wrong = _unreliable(submission, answer_sets, health)
    standing = standing_of(submission, edition, known_documents, answer_sets)
    aside = [_part_of_task(coverage), standing.why_apart, unreliable]
    return ValidationFindings(
        tuple([*faults, *wrong][:MOST_FAULTS]),
        coverage,
        labels,
        {name: clusters.part for name, clusters in reclustered.items()},
        verified,
        suite,
        tuple(reason for reason in aside if reason),
        claims,
        audit,
        blind,
        standing,
        owner=owner,
        remarks=tuple(finding.text for finding in health.findings) if isinstance(health, Health) else None,
        sampled=tuple(map(_setting_row, health.setting_verdicts)) if isinstance(health, Health) else None,
    )


def _holds_against_draws(health: Health | str | None) -> bool:
    """Whether draws were held against their log-probabilities, so that these are more than the submitter's word."""
    verdict = health.draws_verdict if isinstance(health, Health) else None
    return verdict is not None and verdict.two_sided and verdict.documents > 0


def _setting_row(verdict: SettingVerdict) -> tuple[str, str, str]:
    """Setting, state, and what says so; what follows from the submission's own record alone is only said."""
    value = "" if verdict.asked is None else f" {verdict.asked:g}"
    by_own_record = verdict.state == "verified" and verdict.by is None
    parts = [power_text(verdict.power)] if verdict.power else []
    parts += (
        [f"by its own record: {verdict.evidence}" if by_own_record else verdict.evidence] if verdict.evidence else []
    )
    return verdict.setting + value, "self-reported" if by_own_record else verdict.state, "; ".join(parts)


def _part_of_task(coverage: Coverage) -> str | None:
    if coverage.of is None:
        return NO_MANIFEST
    if coverage.whole:
        return None
    foreign = f", and {len(coverage.foreign)} others" if coverage.foreign else ""
    return f"partial: {coverage.matched} of {coverage.of} documents ({format_value(coverage.share, PERCENT)}){foreign}"


def _unreliable(
    submission: Mapping[str, Any], answer_sets: Sequence[AnswerSet], health: Health | str | None
) -> tuple[str | None, list[str]]:
    """Why the run is unreliable, by its own account or ours; a run that hides it, or a state of a setting, is wrong."""
    theirs, ours = (
        submission["health"]["unreliable"],
        health.unreliable if isinstance(health, Health) else health,
    )
    wrong = list(_state_faults(submission, settings_again(submission, answer_sets, health)))
    if ours and not theirs:
        wrong.insert(0, f"health.unreliable: stated null, computed {ours.removeprefix('unreliable: ')}")
        return f"unreliable: {ours}", wrong
    return (f"unreliable: {theirs}" if theirs else None), wrong


def _state_faults(submission: Mapping[str, Any], ours: Mapping[str, str]) -> Iterator[str]:
    every = Counter(row["setting"] for row in submission["health"]["settings"])
    yield from (f"health.settings: {name[:80]!r} is there {n} times" for name, n in every.items() if n > 1)
    if strange := sorted(every.keys() - set(SETTINGS)):
        yield f"health.settings: {strange[0][:80]!r} is no setting of the sampling"
    stated_states = {row["setting"]: row["state"] for row in submission["health"]["settings"]}
    for setting, state in ours.items():
        if stated_states.get(setting) != state:
            stated_state = "none" if setting not in stated_states else f"{stated_states[setting]!r}"
            yield f"health.settings: {setting}: stated {stated_state}, computed {state!r}"


def _inner_faults(submission: Mapping[str, Any]) -> Iterator[str]:
    """Yield what must follow from the rest of the file by itself."""
    documents = submission["documents"]
    if (digest := digest_of(submission)) != submission["digest"]:
        yield f"digest: the content's is {digest}, so it was changed after it was written"
    created = datetime.fromisoformat(submission["entry"]["created"])
    created = created if created.tzinfo is not None else created.replace(tzinfo=timezone.utc)
    if not created.year >= _FIRST_YEAR or created > datetime.now(timezone.utc) + timedelta(days=1):
        yield f"entry.created: {submission['entry']['created']} cannot be when it was made"
    sets = [answer_set_of(document) for document in documents]
    yield from differences("summary", summary_of(sets, documents), submission["summary"])
    if (ours := label_digest(documents)) != submission["labels"]["store"]:
        yield f"labels.store: stated {submission['labels']['store']}, computed {ours}"
    recorded = submission["settings"].get("documents")
    judge = recorded.get("judge") if isinstance(recorded, Mapping) else None
    if judge != submission["labels"]["judge"]:
        yield "labels.judge: not the judge of the settings"
    if isinstance(judge, Mapping) and {"judge", "version"} <= judge.keys():
        judge_name = f"{judge['judge']} {judge['version']}"
        others = {str(d["judged"]["judge"]) for d in documents} - {judge_name}
        if judge["judge"] == "rule" and others:
            yield f"documents[].judged.judge: {min(others)[:80]!r}, but the settings say {judge_name!r}"


def _document_faults(submission: Mapping[str, Any]) -> Iterator[str]:
    documents, clusterings = submission["documents"], submission["clusterings"]
    yield from _repeated(documents)
    for i, document in enumerate(documents):
        if set(document["clusterings"]) != set(clusterings):
            yield f"documents[{i}].clusterings: not the clusterings of the submission"
            continue
        n_answers = len(document["logprobs"])
        if n_answers < 1 + document["n_clean"]:
            yield f"documents[{i}].logprobs: {n_answers} for a baseline and {document['n_clean']} clean answers"
        lengths = {
            f"clusterings.{name}.clusters": clustering["clusters"]
            for name, clustering in document["clusterings"].items()
        }
        lengths |= {key: document[key] for key in ("n_tokens", "end_logprobs", "thoughts") if key in document}
        texts = document.get("texts") or {}
        lengths |= {f"texts.{name}": texts[name] for name in ("answers", "finish") if name in texts}
        for name, values in lengths.items():
            if len(values) != n_answers:
                yield f"documents[{i}].{name}: {len(values)} for {n_answers} answers"
        if "answered_by" in document and (answered := sum(n for n, _ in document["answered_by"])) != n_answers:
            yield f"documents[{i}].answered_by: {answered} for {n_answers} answers"
        for name, clustering in document["clusterings"].items():
            if clustering["scores"].keys() != clusterings[name]["detectors"].keys():
                yield f"documents[{i}].clusterings.{name}.scores: not the detectors of the submission"


def _repeated(documents: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for id, times in Counter(document["id"] for document in documents).items():
        if times > 1:
            yield f"documents: the id {id[:80]!r} occurs {times} times"
    # The store's keys tell even documents with the same texts apart.
    store_keys = Counter((d["drawn"]["definition"], d["drawn"]["document"]) for d in documents if "drawn" in d)
    for (_, key), times in store_keys.items():
        if times > 1:
            yield f"documents: the answers of {key[:80]!r} occur {times} times"
    texts = sum("texts" in document for document in documents)
    if texts not in (0, len(documents)):
        yield f"documents: {texts} of {len(documents)} have texts; all of them or none"


def _check_clustering(
    submission: Mapping[str, Any],
    name: str,
    answer_sets: Sequence[AnswerSet],
    reclustered: RecomputedClusters,
    cached: dict[object, dict[str, Any]],
    tested: RepeatedEvidence | None,
) -> tuple[dict[str, PartStatus], list[Scores], list[str]]:
    """Whether each detector's scores are verified; the scores, ours where they are computed again, so that no digit
    below the tolerance tells documents apart; and what is wrong with scores, held-out documents and aggregates.

    Args:
        tested: which evidence draws have tested; None where log-probabilities that are too high would not be noticed.
            Numbers that do not stand on what was tested are the submitter's word.
    """
    clustering = submission["clusterings"][name]
    stated = stored_scores(submission, name)
    parts = {detector: _can_be_computed(detector, submission, reclustered) for detector in clustering["detectors"]}
    wrong = list(islice(_price_faults(name, clustering, stated), MOST_FAULTS))
    alpha = clustering["alpha"]
    if (of_settings := clustering["settings"].get("alpha", alpha)) != alpha:
        wrong.append(f"clusterings.{name}.alpha: stated {alpha}, the settings say {of_settings}")
    checked = [detector for detector, part in parts.items() if part.verified]
    clustered = [clustered_as_stated(a, d, name) for a, d in zip(answer_sets, submission["documents"], strict=True)]
    backend = reclustered.scorer.backend if reclustered.scorer else None
    try:
        options: dict[str, Any] = {
            "alpha": alpha,
            "claims": lambda: evidence_of_claims(submission, answer_sets),
        }
        ours = score_all(clustered, backend, checked, **options)
    except DataError as error:
        return parts, stated, [*wrong, f"clusterings.{name}: {error}"]
    wrong += islice(_score_differences(name, checked, ours, stated), MOST_FAULTS)
    parts |= _on_what_is_tested(clustered, checked, ours, tested, partial(score_all, backend=backend, **options))
    wrong += islice(_held_out_faults(name, clustering["settings"], stated), MOST_FAULTS)
    wrong += islice(_choice_faults(name, clustering, reclustered), MOST_FAULTS)
    counted = [_with_computed(theirs, mine) for theirs, mine in zip(stated, ours, strict=True)]
    aggregates = differences(f"clusterings.{name}.aggregates", aggregates_of(counted, cached), clustering["aggregates"])
    wrong += islice(aggregates, MOST_FAULTS)
    wrong += _differences_by_models(name, [d for d in checked if get(d).needs & _OF_MODELS], ours, counted)
    return parts, counted, wrong


def _with_computed(stated: Scores, computed: Scores) -> Scores:
    """The scores as they were computed again; the submitter's where nobody can, or a model had to be asked."""
    ours = {name: value for name, value in computed.items() if not get(name).needs & _OF_MODELS}
    return replace(stated, numbers={**stated.numbers, **{name: finite(value) for name, value in ours.items()}})


def _on_what_is_tested(
    clustered: Sequence[AnswerSet],
    checked: Sequence[str],
    ours: Sequence[Scores],
    tested: RepeatedEvidence | None,
    score: Callable[..., Sequence[Scores]],
) -> dict[str, PartStatus]:
    """Return the detectors whose numbers do not stand on what draws have tested, as self-reported.

    Args:
        checked: detectors whose scores were computed again, `ours`.
        score: from documents and detectors to scores.
    """
    # Models are not asked again: their detectors say themselves whether they look at log-probabilities.
    again = [detector for detector in checked if not get(detector).needs & (_OF_MODELS | {"claims"})]
    changed = {
        baseline: _changed(again, ours, score(bare(clustered, baseline=baseline), detectors=again))
        | {d for d in checked if get(d).needs & _LOGPROBS[baseline]}
        for baseline in (True, False)
    }
    reported: dict[str, PartStatus] = {}
    for detector in checked:
        of_baseline, of_any = detector in changed[True], detector in changed[True] | changed[False]
        if tested is None:
            why = NO_END if of_any else None
        else:
            why = why_untested(ours, detector, tested, rests_on(detector, baseline=of_baseline), logprobs=of_any)
        if why is not None:
            reported[detector] = PartStatus(False, why)
    return reported


def _changed(detectors: Sequence[str], ours: Sequence[Scores], without: Sequence[Scores]) -> set[str]:
    pairs = list(zip(ours, without, strict=True))
    return {detector for detector in detectors if any(a[detector] != b[detector] for a, b in pairs)}


def _can_be_computed(detector: str, submission: Mapping[str, Any], reclustered: RecomputedClusters) -> PartStatus:
    """Whether a detector's scores can be computed here."""
    if detector not in names():
        return PartStatus(False, "no detector of this name is installed here")
    if follows_from_numbers(detector):
        return PartStatus(True, "computed again from cluster ids and log-probabilities")
    if lacking := sorted(get(detector).needs - CARRIED):
        return PartStatus(False, f"not in a submission: {NEEDS.get(lacking[0], lacking[0])}")
    if "claims" in get(detector).needs:
        carried = "claims" in submission
        return PartStatus(
            carried, "computed again from the support of claims" if carried else "the claims are not in it"
        )
    if not has_texts(submission):
        return PartStatus(False, NO_TEXTS)
    if get(detector).needs & _OF_MODELS and reclustered.scorer is None:
        return PartStatus(False, f"it needs the clustering's model: {reclustered.part.reason}")
    return PartStatus(True, "computed again from the texts")


def _price_faults(name: str, clustering: Mapping[str, Any], scores: Sequence[Scores]) -> Iterator[str]:
    clean, noisy = (min(getattr(s, attribute) for s in scores) for attribute in ("n_clean", "n_noisy"))
    for detector, record in clustering["detectors"].items():
        if detector in names() and record["draws"] != (price := get(detector).draws(clean, noisy)):
            yield f"clusterings.{name}.detectors.{detector}.draws: stated {record['draws']}, computed {price}"


def _held_out_faults(clustering: str, settings: Mapping[str, Any], scores: Sequence[Scores]) -> Iterator[str]:
    """Yield where other documents are held out than the settings of the tuning say, which a submitter could choose."""
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
    learned = enough and all(s.get(choice.target) is not None for s in chosen_on)
    if differing := stated ^ (split if learned else frozenset()):
        yield f"{place}: {len(differing)} documents differ from the settings' split, such as {min(differing)[:80]!r}"


def _choice_faults(name: str, clustering: Mapping[str, Any], reclustered: RecomputedClusters) -> Iterator[str]:
    """Yield what the choice of the threshold adds to the errors, where the choice was made again."""
    if reclustered.answer_sets is None or not reclustered.part.verified:
        return
    for detector in clustering["detectors"]:
        ours = max((a.choice_errors.get(detector, 0.0) for a in reclustered.answer_sets), default=0.0)
        theirs = clustering["choice_errors"].get(detector, 0.0)
        if abs(ours - theirs) > _MODEL_TOLERANCE:
            yield f"clusterings.{name}.choice_errors.{detector}: stated {theirs}, computed {ours}"


def _score_differences(
    clustering: str, checked: Sequence[str], computed: Sequence[Scores], stated: Sequence[Scores]
) -> Iterator[str]:
    tolerances = {name: _MODEL_TOLERANCE if get(name).needs & _OF_MODELS else _SCORE_TOLERANCE for name in checked}
    for i, (of_ours, of_theirs) in enumerate(zip(computed, stated, strict=True)):
        for name in checked:
            ours, theirs = of_ours[name], of_theirs[name]
            value = finite(ours)
            if not (theirs is None if value is None else _close(value, theirs, tolerances[name])):
                yield f"documents[{i}].clusterings.{clustering}.scores.{name}: stated {theirs}, computed {ours}"


def _differences_by_models(
    clustering: str, checked: Sequence[str], computed: Sequence[Scores], stated: Sequence[Scores]
) -> Iterator[str]:
    """Scores of a model differ in their last digits between machines, and ROC-AUCs hardly do: more than that is no
    rounding, but chosen where the scores are close to each other."""
    for name in checked:
        ours, theirs = (
            detection_auroc(
                [replace(s, numbers={name: row[name]}) for s, row in zip(stated, side, strict=True)],
                name,
            )
            for side in (computed, stated)
        )
        if ours.value is not None and theirs.value is not None and abs(ours.value - theirs.value) > _MODEL_AUROC:
            both = f"{THREE_DIGITS(theirs.value)}, of ours {THREE_DIGITS(ours.value)}"
            yield f"clusterings.{clustering}.scores.{name}: their AUROC is {both}"


def _close(ours: float, theirs: float | None, tolerance: float) -> bool:
    return theirs is not None and abs(ours - theirs) <= tolerance * max(1.0, abs(ours))
