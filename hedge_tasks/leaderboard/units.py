"""The claims of a run in a submission: where each stands, its label, how far every draw supports it, and what follows.

No text is in it but where the submission has texts. Scores are computed again from the support, ROC-AUCs from scores
and labels, always; the support itself where words or objects gave it and the texts are there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.detectors.registry import get, names
from hedge_tasks.detectors.units import Unit, UnitEvidence, columns_of
from hedge_tasks.errors import DataError, HedgeError
from hedge_tasks.leaderboard.recomputation import NO_TEXTS, PartStatus
from hedge_tasks.leaderboard.stated import MOST_FAULTS, differences, finite, number_fields
from hedge_tasks.measures.kept_claims import score_kept_claims
from hedge_tasks.measures.unit_numbers import TEXT, detectors_in, is_blind, with_text
from hedge_tasks.measures.unit_table import About, about_detector, detector_rows, draws_of
from hedge_tasks.numbers import Number
from hedge_tasks.runs.claim_files import label_options, packed, unpacked
from hedge_tasks.runs.claims import (
    Supported,
    ask_again,
    claim_evidence,
    claim_units,
    groups_of,
    stated_support,
)
from hedge_tasks.runs.run_files import Run
from hedge_tasks.statistics import StratifiedAuroc

_SUPPORT_TOLERANCE = 1e-6
_SCORE_TOLERANCE = 1e-11
_DIGITS = 9

_FREE = ("words", "object")
"""Supports that need no model."""

_OF_SUPPORT = frozenset({"clean_support", "noisy_support", "contradictions", "elsewhere"})
"""Evidence that a detector may need so that its scores follow from the support alone."""

CLAIM_PARTS = {
    "support": "support of claims",
    "elsewhere": "support of claims by another image's draws",
    "labels": "labels of claims",
}
"""Say which parts of the claims are verified and which are not."""

_PLACES = frozenset({"claim_position"})
"""Detectors that look at nothing but the order of the claims."""


@dataclass(frozen=True)
class UnitsOfRun:
    """Claims of a run, as a submission has them.

    Attributes:
        facts: settings, detectors and aggregates.
        records: by id of the document.
    """

    facts: Mapping[str, Any]
    records: Mapping[str, Mapping[str, Any]]


def claims_of_run(run: Run, *, texts: bool) -> UnitsOfRun | None:
    """The claims that are kept with a run, for a submission; None where none are.

    Args:
        texts: whether what is claimed is in it.
    """
    scored = score_kept_claims(run)
    if scored is None:
        return None
    options = label_options(run)
    counted = claim_units(scored, **options)
    names_of_run = detectors_in(counted.units)
    _, faults = columns_of(counted.labelled, names_of_run)
    # Blind baselines always, or nobody could tell those that say nothing from those that are kept silent.
    listed_names = [name for name in names_of_run if is_blind(name) or name not in faults]
    fitted = {unit.id: unit[TEXT] for unit in with_text(counted.labelled)[0]}
    of_text = fitted if len(set(fitted.values())) > 1 else {}
    listed = [*listed_names, *([TEXT] if of_text else [])]
    units = iter(counted.units)
    records = {}
    for scored_answer in scored.answers:
        evidence, mine = scored_answer.evidence, list(islice(units, len(scored_answer.claims)))
        values = {name: [unit[name] for unit in mine] for name in listed_names}
        values |= {TEXT: [of_text.get(unit.id) for unit in mine]} if of_text else {}
        record: dict[str, Any] = {
            "spans": [[claim.start, claim.end] for claim in scored_answer.claims],
            "labels": scored_answer.counted_labels(**options),
            "clean": packed(evidence.clean),
            "noisy": packed(evidence.noisy),
            "scores": {name: [finite(value) for value in column] for name, column in values.items()},
        }
        if evidence.elsewhere is not None:
            record["elsewhere"] = packed(evidence.elsewhere)
        if texts:
            record["texts"] = [claim.text for claim in scored_answer.claims]
        records[scored_answer.answers.id] = record
    facts = {
        "settings": dict(scored.settings),
        "contradicts": scored.answers[0].evidence.contradicts if scored.answers else True,
        "labels": {**options, "by": scored.labelled_by},
        "detectors": {name: _detector_fields(name, *draws_of(scored)) for name in listed},
    }
    documents = [{"claims": records[answers.id]} for answers in run.answer_sets]
    return UnitsOfRun({**facts, "aggregates": _aggregates(facts, documents, list(run.answer_sets))}, records)


def _detector_fields(name: str, clean: int, noisy: int) -> dict[str, Any]:
    fields = asdict(about_detector(name, clean, noisy))
    return fields if name == TEXT else {**fields, "title": get(name).title}


# --- what a submission says -------------------------------------------------------------------------------------------


def support_of(submission: Mapping[str, Any], answer_sets: Sequence[AnswerSet]) -> list[Supported]:
    """Return claims and support as they are stated.

    Raises:
        DataError: they are not those of the documents' answers; names the place.
    """
    supported = []
    for i, (document, answers) in enumerate(zip(submission["documents"], answer_sets, strict=True)):
        at = f"documents[{i}].claims"
        if "claims" not in document:
            raise DataError(f"{at}: missing")
        record = document["claims"]
        texts = record.get("texts") or [""] * len(record["spans"])
        k = len(record["spans"])
        lengths = {"texts": texts, "labels": record["labels"], **record["scores"]}
        for name, values in lengths.items():
            if len(values) != k:
                raise DataError(f"{at}.{name}: {len(values)} for {k} claims")
        if record["scores"].keys() != submission["claims"]["detectors"].keys():
            raise DataError(f"{at}.scores: not the detectors of the submission")
        if any(not 0 <= start < end for start, end in record["spans"]):
            raise DataError(f"{at}.spans: a claim has no characters")
        sizes = {"clean": len(answers.clean), "noisy": len(answers.noisy), "elsewhere": None}
        matrices = {name: _matrix(record[name], k, n, f"{at}.{name}") for name, n in sizes.items() if name in record}
        supported.append(stated_support(answers, record["spans"], texts, matrices))
    return supported


def _matrix(fields: Mapping[str, Any], k: int, n: int | None, at: str) -> npt.NDArray[np.floating[Any]]:
    try:
        matrix = unpacked(fields, at)
    except (ValueError, OverflowError):
        raise DataError(f"{at}: no matrix") from None
    if (
        matrix.ndim != 3
        or matrix.shape[0] != k
        or matrix.shape[2] != 3
        or (n is not None and k and matrix.shape[1] != n)
    ):
        raise DataError(f"{at}: the shape is not that of {k} claims and their draws")
    return matrix


class _StatedSupport:
    """The source of a submission's support, as `claim_evidence` asks for it."""

    def __init__(self, submission: Mapping[str, Any]) -> None:
        self.name = str(submission["claims"]["settings"].get("support", ""))
        self.contradicts: bool = submission["claims"]["contradicts"]


def evidence_of_claims(submission: Mapping[str, Any], answer_sets: Sequence[AnswerSet]) -> dict[str, UnitEvidence]:
    """By id what detectors see of a document's claims; empty where the submission has none.

    Raises:
        DataError: as `support_of`.
    """
    if "claims" not in submission:
        return {}
    evidence = claim_evidence(answer_sets, support_of(submission, answer_sets), _StatedSupport(submission))
    return {answers.id: claims_evidence for answers, claims_evidence in zip(answer_sets, evidence, strict=True)}


def units_of(
    facts: Mapping[str, Any], documents: Sequence[Mapping[str, Any]], answer_sets: Sequence[AnswerSet]
) -> list[Unit]:
    """The labelled claims of known support, with the stated scores of every detector."""
    units = []
    for document, answers, group in zip(documents, answer_sets, groups_of(answer_sets), strict=True):
        record = document["claims"]
        has_support = np.asarray(~np.isnan(unpacked(record["clean"], "clean")).any(axis=(1, 2)))
        for k, label in enumerate(record["labels"]):
            if label is not None and has_support[k]:
                scores = {name: _as_compared(record["scores"][name][k]) for name in facts["detectors"]}
                units.append(Unit(f"{answers.id}#{k}", "claim", answers.id, group, label, numbers=scores))
    return units


def _as_compared(score: float | None) -> float | None:
    """A stated score without the digits in which it may differ from what follows: they break no ties."""
    return None if score is None else round(score, _DIGITS)


def _aggregates(
    facts: Mapping[str, Any], documents: Sequence[Mapping[str, Any]], answer_sets: Sequence[AnswerSet]
) -> dict[str, Any]:
    units = units_of(facts, documents, answer_sets)
    columns, faults = columns_of(units, facts["detectors"])
    if not units:
        columns, faults = {}, dict.fromkeys(facts["detectors"], "no claim has a label")
    counts = {"n": len(units), "n_positive": sum(unit.label or 0 for unit in units)}
    aggregates = {}
    for name in facts["detectors"]:
        if name in columns:
            over_all, inside = columns[name].auroc(), columns[name].within()
        else:
            over_all, inside = Number.undefined(faults[name]), StratifiedAuroc.undefined(faults[name])
        pooled = {**number_fields(over_all), **counts, "reason": over_all.reason}
        aggregates[name] = {
            "pooled": pooled,
            "within": {**number_fields(inside), "n_pairs": inside.n_pairs, "reason": inside.reason},
        }
    return aggregates


# --- checks -----------------------------------------------------------------------------------------------------------


def check_claims(
    submission: Mapping[str, Any], answer_sets: Sequence[AnswerSet]
) -> tuple[dict[str, PartStatus], list[str]]:
    """Compute everything about claims again that can be.

    Returns:
        By "support", "elsewhere" (where it is stated) and "labels", and by the name of each detector, whether it is
        verified; and what is wrong.
    """
    if "claims" not in submission:
        strays = [i for i, document in enumerate(submission["documents"]) if "claims" in document]
        return {}, [f"documents[{i}].claims: the submission has no claims" for i in strays[:MOST_FAULTS]]
    try:
        supported = support_of(submission, answer_sets)
        evidence = claim_evidence(answer_sets, supported, _StatedSupport(submission))
    except DataError as error:
        return {}, [str(error)[:300]]
    texts = all("texts" in d["claims"] and "texts" in d for d in submission["documents"])
    support, elsewhere, wrong = _support_again(submission, supported, answer_sets, texts)
    detectors = submission["claims"]["detectors"]
    parts = {name: _part(name, support, elsewhere, texts) for name in detectors}
    # What follows from stated numbers must follow from them, verified or not.
    checked = [name for name, part in parts.items() if part.verified or _follows(name)]
    parts |= {"support": support, "labels": _labelled(submission)}
    parts |= {"elsewhere": elsewhere} if any(claims.elsewhere is not None for claims in supported) else {}
    wrong += islice(_score_faults(submission, evidence, checked), MOST_FAULTS)
    wrong += islice(_aggregate_faults(submission, answer_sets), MOST_FAULTS)
    wrong += islice(_detector_faults(submission, evidence), MOST_FAULTS)
    wrong += islice(_silent_baselines(submission, evidence, answer_sets), MOST_FAULTS)
    return parts, wrong[:MOST_FAULTS]


def _labelled(submission: Mapping[str, Any]) -> PartStatus:
    by = str(submission["claims"]["labels"].get("by") or "nobody")
    return PartStatus(False, f"by {by[:200]}; labels of claims are not given again here")


def _follows(name: str) -> bool:
    return name in names("claim") and get(name).needs <= _OF_SUPPORT


def _part(name: str, support: PartStatus, elsewhere: PartStatus, texts: bool) -> PartStatus:
    if name == TEXT:
        return PartStatus(False, "fitted to the labels by whoever submitted it")
    if name not in names("claim"):
        return PartStatus(False, "no detector of this name is installed here")
    if name in _PLACES:
        return PartStatus(True, "computed again from the places of the claims")
    if "elsewhere" in get(name).needs:
        return elsewhere
    if _follows(name):
        return PartStatus(True, f"computed again from the support ({support.reason})")
    if get(name).needs <= {"claims", "rarity"}:
        return PartStatus(texts, "computed again from the texts" if texts else NO_TEXTS)
    return PartStatus(False, "what it looks at is not in the submission")


def _support_again(
    submission: Mapping[str, Any], supported: Sequence[Supported], answer_sets: Sequence[AnswerSet], texts: bool
) -> tuple[PartStatus, PartStatus, list[str]]:
    """Compute the support of the claims again where it needs no model: by their own draws and by another image's."""
    name = str(submission["claims"]["settings"].get("support", ""))
    if name not in _FREE or not texts:
        who = f"the support is that of {name[:80]!r}, "
        part = PartStatus(False, who + (f"but {NO_TEXTS}" if name in _FREE else "who is not asked again here"))
        return part, part, []
    try:
        ours = ask_again(answer_sets, supported, name)
    except HedgeError as error:
        part = PartStatus(False, f"the support cannot be computed here: {error}"[:300])
        return part, part, []
    both = list(zip(supported, ours, strict=True))
    own = [
        i
        for i, (claims, our) in enumerate(both)
        if not (_is_close(claims.clean, our.clean) and _is_close(claims.noisy, our.noisy))
    ]
    others = [
        i
        for i, (claims, our) in enumerate(both)
        if claims.elsewhere is not None and not _is_close_elsewhere(claims, our)
    ]
    wrong = [f"documents[{i}].claims: not the support of {name!r}" for i in own]
    wrong += [f"documents[{i}].claims.elsewhere: not the support of {name!r} by another image's draws" for i in others]
    reason = f"the support is that of {name!r}, computed again"
    return (
        PartStatus(not own, reason),
        PartStatus(not others, f"{reason} with another image's draws"),
        wrong[:MOST_FAULTS],
    )


def _is_close(stated: npt.NDArray[np.floating[Any]], ours: npt.NDArray[np.floating[Any]]) -> bool:
    nothing = not len(stated) and not len(ours)  # no claims: of no draws, or of none by each of them
    return nothing or (stated.shape == ours.shape and np.allclose(stated, ours, atol=_SUPPORT_TOLERANCE))


def _is_close_elsewhere(stated: Supported, ours: Supported) -> bool:
    assert stated.elsewhere is not None
    assert ours.elsewhere is not None
    return _is_close(stated.elsewhere, ours.elsewhere)


def _score_faults(
    submission: Mapping[str, Any], evidence: Sequence[UnitEvidence], checked: Sequence[str]
) -> Iterator[str]:
    for i, (document, seen) in enumerate(zip(submission["documents"], evidence, strict=True)):
        for name in checked:
            stated_scores = document["claims"]["scores"][name]
            ours = get(name).claim_scores(seen) if seen.claims else np.empty(0)
            values = [None] * len(stated_scores) if ours is None else [finite(float(v)) for v in ours]
            if not all(_close(a, b, _SCORE_TOLERANCE) for a, b in zip(values, stated_scores, strict=True)):
                yield f"documents[{i}].claims.scores.{name}: not what follows from the support"


def _aggregate_faults(submission: Mapping[str, Any], answer_sets: Sequence[AnswerSet]) -> Iterator[str]:
    facts = submission["claims"]
    ours = _aggregates(facts, submission["documents"], answer_sets)
    yield from differences("claims.aggregates", ours, facts["aggregates"])


def _detector_faults(submission: Mapping[str, Any], evidence: Sequence[UnitEvidence]) -> Iterator[str]:
    """Yield faults in the prices of detectors, and in which are blind."""
    clean, noisy = (min((getattr(e, key) for e in evidence), default=0) for key in ("n_clean", "n_noisy"))
    stated_detectors = submission["claims"]["detectors"]
    for name, record in stated_detectors.items():
        if name != TEXT and name not in names("claim"):
            continue
        ours = _detector_fields(name, clean, noisy)
        for key in ("draws", "blind"):
            if record[key] != ours[key]:
                yield f"claims.detectors.{name}.{key}: stated {record[key]}, computed {ours[key]}"


def _silent_baselines(
    submission: Mapping[str, Any], evidence: Sequence[UnitEvidence], answer_sets: Sequence[AnswerSet]
) -> Iterator[str]:
    """Yield the blind baselines that are left out although a run always has them."""
    stated_detectors = submission["claims"]["detectors"]
    if not any(seen.claims for seen in evidence):
        return
    expected = ["claim_position", "claim_length", "claim_affirmed"]
    several = len(set(groups_of(answer_sets))) > 1
    expected += ["claim_rarity"] if several else []
    if submission["claims"]["settings"].get("elsewhere") is True:
        expected += ["claim_elsewhere"] if several and all(seen.n_clean for seen in evidence) else []
        for i, seen in enumerate(evidence):
            if seen.elsewhere is None:
                yield f"documents[{i}].claims.elsewhere: missing, though the settings say that it was asked for"
    for name in expected:
        if name not in stated_detectors:
            yield f"claims.detectors: the blind baseline {name} is missing"


def _close(ours: float | None, theirs: float | None, tolerance: float) -> bool:
    return ours is theirs if ours is None or theirs is None else abs(ours - theirs) <= tolerance


# --- for pages --------------------------------------------------------------------------------------------------------


def claims_for_page(submission: Mapping[str, Any], parts: Mapping[str, PartStatus]) -> dict[str, Any] | None:
    """Return what a page shows of the claims of a valid submission (`_claims_of_entry.html.j2`); None without any.

    Args:
        parts: whether what they rest on is verified; see `check_claims`.
    """
    if "claims" not in submission:
        return None
    facts = submission["claims"]
    answer_sets = [AnswerSet(d["id"], Answer(""), (), group=d["group"]) for d in submission["documents"]]
    columns, _ = columns_of(units_of(facts, submission["documents"], answer_sets), facts["detectors"])
    detectors = {name: About(**facts["detectors"][name]) for name in columns}
    rows, _ = detector_rows({name: column for name, column in columns.items() if len(column.values)}, detectors)
    settings = facts["settings"]
    return {
        "about": f"{settings.get('decomposition')} by {settings.get('support')}",
        "by": facts["labels"]["by"],
        "parts": {what: parts[key] for key, what in CLAIM_PARTS.items() if key in parts},
        "rows": [(row, _weakest(row.detector, parts)) for row in rows],
    }


def _weakest(name: str, parts: Mapping[str, PartStatus]) -> PartStatus:
    """The part that a number of a detector of claims can least rely on: its scores, the labels, or the support."""
    own = parts.get(name, PartStatus(False, "not looked at"))
    others = [parts[key] for key in ("labels", *(["support"] if _follows(name) else [])) if key in parts]
    return next((part for part in (own, *others) if not part.verified), own)
