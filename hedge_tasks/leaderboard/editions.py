"""Was an entry made as the task's edition says? What it records, and whether its answers look like it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.data.manifests import Manifest
from hedge_tasks.judging.reply_judge import reads_replies
from hedge_tasks.leaderboard.plausibility import implausible
from hedge_tasks.leaderboard.stated import recorded_decoding
from hedge_tasks.runs.editions import Edition, differences, hash_of, manifest_digest, rules_of

NO_EDITION = "no edition of this task is known, so nobody can tell whether it was run as others were"

_MOST_TOLD = 4
_MOST_WITHOUT = 0.1


@dataclass(frozen=True)
class Standing:
    """Whether an entry is of its task's edition.

    Attributes:
        hash: of the rules that it was made by.
        edition: hash of the task's edition; None where none is known.
        seed: base seed of its draws; None where it is not recorded.
        seeds: those of the edition, the one that counts first.
        reasons: why it is not of the edition, in words; nothing where it is.
    """

    hash: str
    edition: str | None = None
    seed: int | None = None
    seeds: tuple[int, ...] = ()
    reasons: tuple[str, ...] = ()

    @property
    def of_edition(self) -> bool:
        return self.edition is not None and not self.reasons

    @property
    def why_apart(self) -> str | None:
        """Why it is not ranked beside those of the edition; None where it is."""
        if self.edition is None:
            return NO_EDITION
        if not self.reasons:
            return None
        unlisted = f"; and {len(self.reasons) - _MOST_TOLD} more" if len(self.reasons) > _MOST_TOLD else ""
        heading = (
            f"another edition ({self.hash})" if self.hash != self.edition else f"not as edition {self.edition} says"
        )
        return f"{heading}: {'; '.join(self.reasons[:_MOST_TOLD])}{unlisted}"


def manifests_of_edition(edition: Edition | None, manifests: Sequence[Manifest]) -> list[Manifest]:
    """The manifest that counts: the edition's; the first where the edition names none."""
    if edition is None or edition.documents is None:
        return list(manifests[:1])
    return [manifest for manifest in manifests if manifest_digest(manifest) == edition.documents]


def standing_of(
    submission: Mapping[str, Any],
    edition: Edition | None,
    manifests: Sequence[Manifest],
    answer_sets: Sequence[AnswerSet],
) -> Standing:
    """Compare a submission with the edition of its task.

    Args:
        submission: of the task.
        edition: of the task; None where none is known.
        manifests: the one that counts, or none.
        answer_sets: of the submission.
    """
    settings = submission["settings"]
    clusterings = {name: clustering["settings"] for name, clustering in submission["clusterings"].items()}
    rules = rules_of(settings, clusterings)
    sampling = settings.get("sampling")
    seed = sampling.get("seed") if isinstance(sampling, Mapping) else None
    seed = seed if isinstance(seed, int) and not isinstance(seed, bool) else None
    if edition is None:
        return Standing("", None, seed)
    reasons = [*differences(edition, rules), *_seed_faults(edition, seed), *_draw_count_faults(edition, answer_sets)]
    reasons += [
        *implausible(answer_sets, recorded_decoding(settings), read=reads_replies(submission["labels"]["judge"])),
        *_token_faults(edition, answer_sets),
    ]
    reasons += [
        *_sampling_record_faults(edition, settings),
        *_logprob_faults(settings, answer_sets),
        *_picture_faults(submission, manifests),
        *_contradicted(submission),
    ]
    return Standing(hash_of(edition, rules), edition.hash, seed, edition.seeds, tuple(reasons))


def _seed_faults(edition: Edition, seed: int | None) -> Iterator[str]:
    if seed not in edition.seeds:
        seeds = ", ".join(map(str, edition.seeds))
        yield f"seed {'not recorded' if seed is None else seed}, where the edition has {seeds}"


def _draw_count_faults(edition: Edition, answer_sets: Sequence[AnswerSet]) -> Iterator[str]:
    """Yield where there are fewer or more answers than the edition asks for."""
    for name, key in (("clean", "n"), ("noisy", "n_noisy")):
        expected = edition.sampling.get(key)
        counts = Counter(len(getattr(a, name)) for a in answer_sets)
        others = sum(n for count, n in counts.items() if count != expected)
        if isinstance(expected, int) and others:
            least = min(counts)
            yield f"{least} {name} answers a question in {others} documents, where the edition has {expected}"


def _sampling_record_faults(edition: Edition, settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield the notes that are missing of how the model sampled, without which nobody can tell."""
    if not edition.sampling.get("n"):
        return
    decoding = recorded_decoding(settings)
    if decoding.get("asked") != edition.sampling.get("decoding"):
        yield "the record of the decoding is left out"
    elif decoding.get("temperature") != edition.sampling.get("temperature"):
        yield "the record of the decoding has another temperature, or none"
    elif decoding.get("method") is not None and edition.sampling.get("contrast") is None:
        yield "the record says that a method changed the decoding, which the edition does not"
    elif decoding.get("restricted") and not _restricts(edition):
        yield "the record says that the answers were constrained, cut or contrasted"
    if edition.sampling.get("probe") and (settings.get("sampled") or {}).get("probe") is None:
        yield "the record of the probe is left out"


def _restricts(edition: Edition) -> bool:
    """Whether the edition itself asks for draws that are no samples of the model's distribution."""
    sampling = edition.sampling
    cut = any(sampling.get(name) is not None for name in ("top_p", "top_k", "min_p", "contrast"))
    return cut or bool(sampling.get("guided")) or bool(sampling.get("until"))


def _token_faults(edition: Edition, answer_sets: Sequence[AnswerSet]) -> Iterator[str]:
    """Yield where numbers of tokens are missing beside log-probabilities: without them no draw can be tested."""
    if not edition.sampling.get("n"):
        return
    without = sum(
        any(
            a.mean_logprob is not None and a.n_tokens is None
            for a in (answers.baseline, *answers.clean, *answers.noisy)
        )
        for answers in answer_sets
    )
    if without:
        yield f"answers with a log-probability have no number of tokens in {without} documents"


def _logprob_faults(settings: Mapping[str, Any], answer_sets: Sequence[AnswerSet]) -> Iterator[str]:
    """Yield where log-probabilities are missing although the record says that the model gave some."""
    probe = (settings.get("sampled") or {}).get("probe") or {}
    logprobs_recorded = probe.get("logprobs") is True
    if not logprobs_recorded and recorded_decoding(settings).get("sampled_here") is not True:
        return
    without = sum(any(a.mean_logprob is None for a in answers.answers) for answers in answer_sets)
    if without > _MOST_WITHOUT * len(answer_sets):
        yield f"the record says that log-probabilities were told, and {without} documents have answers without"


def _picture_faults(submission: Mapping[str, Any], manifests: Sequence[Manifest]) -> Iterator[str]:
    manifest_documents = manifests[0].documents if manifests else {}
    with_pictures = {id for id, digests in manifest_documents.items() if digests.pictures is not None}
    without = sum(d["id"] in with_pictures and d["digests"]["pictures"] is None for d in submission["documents"])
    if without:
        yield f"the digests of the pictures are left out in {without} documents"


def _contradicted(submission: Mapping[str, Any]) -> Iterator[str]:
    for setting in submission["health"]["settings"]:
        if setting["state"] == "contradicted":
            yield f"the draws contradict the {setting['setting']}"
