"""Was an entry made as the task's edition says? What it records, and whether its answers look like it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any

from hedge_tasks.clustering.exact import normalise
from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.data.manifests import Manifest
from hedge_tasks.numbers import THREE_DIGITS
from hedge_tasks.runs.editions import Edition, differences, hash_of, manifest_digest, rules_of
from hedge_tasks.statistics.draws import verdict_on

NO_EDITION = "no edition of this task is known, so nobody can tell whether it was run as others were"

_MOST_TOLD = 4
_TELLING = 3
"""Different answers to a question with which two sets of draws can be told from each other."""

_FEWEST_TELLING = 10
_BOTH_EVEN, _ALL_EVEN, _SELDOM = 0.8, 0.4, 1e-4
_MOST_COPIES = 0.5
_ONE_TEXT = 0.1
"""Nats a token by which one text may differ on one picture: batches and kernels of half precision change hundredths."""
_MOST_OTHERWISE, _MOST_SPELLED = 0.2, 0.5
_DIGITS = 4


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
    def told(self) -> str | None:
        """Why it is not ranked beside those of the edition; None where it is."""
        if self.edition is None:
            return NO_EDITION
        if not self.reasons:
            return None
        more = f"; and {len(self.reasons) - _MOST_TOLD} more" if len(self.reasons) > _MOST_TOLD else ""
        other = f"another edition ({self.hash})" if self.hash != self.edition else f"not as edition {self.edition} says"
        return f"{other}: {'; '.join(self.reasons[:_MOST_TOLD])}{more}"


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
    clusterings = {name: of["settings"] for name, of in submission["clusterings"].items()}
    rules = rules_of(settings, clusterings)
    sampling = settings.get("sampling")
    seed = sampling.get("seed") if isinstance(sampling, Mapping) else None
    seed = seed if isinstance(seed, int) and not isinstance(seed, bool) else None
    if edition is None:
        return Standing("", None, seed)
    told = [*differences(edition, rules), *_of_seed(edition, seed), *_of_draws(edition, answer_sets)]
    told += [*_of_texts(answer_sets), *_of_tokens(edition, answer_sets)]
    told += [*_of_draws_by_label(settings, answer_sets)]
    told += [*_of_records(edition, settings), *_of_pictures(submission, manifests), *_contradicted(submission)]
    return Standing(hash_of(edition, rules), edition.hash, seed, edition.seeds, tuple(told))


def _of_seed(edition: Edition, seed: int | None) -> Iterator[str]:
    if seed not in edition.seeds:
        known = ", ".join(map(str, edition.seeds))
        yield f"seed {'not recorded' if seed is None else seed}, where the edition has {known}"


def _of_draws(edition: Edition, answer_sets: Sequence[AnswerSet]) -> Iterator[str]:
    """As many answers as there should be, and noisy ones that are none of the clean ones."""
    for name, key in (("clean", "n"), ("noisy", "n_noisy")):
        asked = edition.sampling.get(key)
        counts = Counter(len(getattr(a, name)) for a in answer_sets)
        others = sum(n for count, n in counts.items() if count != asked)
        if isinstance(asked, int) and others:
            least = min(counts)
            yield f"{least} {name} answers a question in {others} documents, where the edition has {asked}"
    if edition.sampling.get("n_noisy"):
        yield from _copies(answer_sets)
    yield from _doubled(answer_sets)


def _copies(answer_sets: Sequence[AnswerSet]) -> Iterator[str]:
    """Noisy answers are drawn on other pictures: their log-probabilities are others, and mostly their texts."""
    telling = [found for a in answer_sets if (found := _same_draws(a)) is not None]
    if len(telling) >= _FEWEST_TELLING and sum(telling) > _MOST_COPIES * len(telling):
        yield f"the noisy answers are the clean ones again in {sum(telling)} of {len(telling)} documents that tell"


def _doubled(answer_sets: Sequence[AnswerSet]) -> Iterator[str]:
    """Fewer draws, each several times: honest draws repeat themselves, but seldom all of them equally often.

    Of two different answers both counts are even (or share another divisor) in up to four fifths of honest questions,
    of three and more in less than two fifths.
    """
    for name in ("clean", "noisy"):
        counts = [Counter(map(_mark, getattr(a, name))) for a in answer_sets]
        pairs = [gcd(*of.values()) > 1 for of in counts if len(of) == 2]
        several = [gcd(*of.values()) > 1 for of in counts if len(of) > 2]
        mostly = len(several) >= _FEWEST_TELLING and sum(several) > _MOST_COPIES * len(several)
        chance = _BOTH_EVEN ** len(pairs) * _ALL_EVEN ** len(several)
        if mostly or (all(pairs) and all(several) and chance < _SELDOM):
            told = several if mostly else [*pairs, *several]
            yield f"every {name} answer is there several times in {sum(told)} of {len(told)} documents that tell"


def _same_draws(answers: AnswerSet) -> bool | None:
    """Whether most noisy answers are clean ones again; None where all answers are nearly the same in any case."""
    clean, noisy = (Counter(map(_mark, of)) for of in (answers.clean, answers.noisy))
    if not noisy or len(clean) < _TELLING or not any(mark for mark, _ in clean):
        return None
    if all(logprob is None for _, logprob in clean):
        return clean == noisy
    return bool(sum(n for mark, n in noisy.items() if mark in clean) > _MOST_COPIES * sum(noisy.values()))


def _mark(answer: Answer) -> tuple[object, float | None]:
    """Marks that tell an answer from others: the words where they are there, and the log-probability."""
    logprob = None if answer.mean_logprob is None else round(answer.mean_logprob, _DIGITS)
    return answer.text or logprob, logprob


def _of_records(edition: Edition, settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield the notes that are missing of how the model sampled, without which nobody can tell."""
    if not edition.sampling.get("n"):
        return
    sampled = settings.get("sampled")
    found = sampled if isinstance(sampled, Mapping) else {}
    decoding = found.get("decoding")
    if not isinstance(decoding, Mapping) or decoding.get("asked") != edition.sampling.get("decoding"):
        yield "the record of the decoding is left out"
    elif decoding.get("temperature") != edition.sampling.get("temperature"):
        yield "the record of the decoding has another temperature, or none"
    elif decoding.get("restricted") and not _restricts(edition):
        yield "the record says that the answers were constrained, cut or contrasted"
    if edition.sampling.get("probe") and not isinstance(found.get("probe"), Mapping):
        yield "the record of the probe is left out"


def _restricts(edition: Edition) -> bool:
    """Whether the edition itself asks for draws that are no samples of the model's distribution."""
    asked = edition.sampling
    cut = any(asked.get(name) is not None for name in ("top_p", "top_k", "min_p", "contrast"))
    return cut or bool(asked.get("guided")) or bool(asked.get("until"))


def _of_tokens(edition: Edition, answer_sets: Sequence[AnswerSet]) -> Iterator[str]:
    """Numbers of tokens: whoever tells log-probabilities knows them, and no draw can be tested without."""
    if not edition.sampling.get("n"):
        return
    without = sum(
        any(a.mean_logprob is not None and a.n_tokens is None for a in (one.baseline, *one.clean, *one.noisy))
        for one in answer_sets
    )
    if without:
        yield f"answers with a log-probability have no number of tokens in {without} documents"


def _of_texts(answer_sets: Sequence[AnswerSet]) -> Iterator[str]:
    """One text has one log-probability and one number of tokens on one picture: the baseline answer's are those of the
    same text drawn clean, and these agree. A baseline answer spelled as no draw of its words is cannot be compared."""
    told, spelled = [], []
    for one in answer_sets:
        mine = one.baseline
        alike = [a for a in one.clean if a.mean_logprob is not None and normalise(a.text) == normalise(mine.text)]
        if not alike or mine.mean_logprob is None or not mine.text:
            continue
        same = [a for a in alike if a.text == mine.text]
        spelled.append(not same)
        if same:
            told.append(not any(_told_alike(mine, a) for a in same))
    if len(told) >= _FEWEST_TELLING and sum(told) > _MOST_OTHERWISE * len(told):
        yield (
            f"the baseline answer has another log-probability or number of tokens than the same text drawn again in "
            f"{sum(told)} of {len(told)} documents"
        )
    if len(spelled) >= _FEWEST_TELLING and sum(spelled) > _MOST_SPELLED * len(spelled):
        yield f"the baseline answer is spelled as no draw of its words is in {sum(spelled)} of {len(spelled)} documents"
    several = [found for one in answer_sets if (found := _several_logprobs(one.clean)) is not None]
    if len(several) >= _FEWEST_TELLING and sum(several) > _MOST_OTHERWISE * len(several):
        yield f"one text has several log-probabilities in {sum(several)} of {len(several)} documents that draw it again"


def _several_logprobs(draws: Sequence[Answer]) -> bool | None:
    """Whether a text that was drawn again, without a thought before it, had another log-probability."""
    by_text: dict[object, list[float]] = {}
    for a in draws:
        if a.mean_logprob is not None and a.thought is None and a.text:
            by_text.setdefault((a.text, a.n_tokens, a.finish), []).append(a.mean_logprob)
    spans = [max(of) - min(of) for of in by_text.values() if len(of) > 1]
    return max(spans) > _ONE_TEXT if spans else None


def _told_alike(one: Answer, other: Answer) -> bool:
    near = abs((one.mean_logprob or 0.0) - (other.mean_logprob or 0.0)) <= _ONE_TEXT
    return near and (one.n_tokens == other.n_tokens or None in (one.n_tokens, other.n_tokens))


def _of_draws_by_label(settings: Mapping[str, Any], answer_sets: Sequence[AnswerSet]) -> Iterator[str]:
    """Draws against their own log-probabilities, apart for right and wrong answers: they are drawn without regard to
    the baseline answer, on which the label rests. Chosen by the label, they repeat too little here and too much there,
    and as they should in the mean."""
    sampled = settings.get("sampled")
    decoding = sampled.get("decoding") if isinstance(sampled, Mapping) else None
    for label, which in ((0, "right"), (1, "wrong")):
        of = [a.clean for a in answer_sets if a.label == label]
        verdict = verdict_on(of, decoding if isinstance(decoding, Mapping) else {}, alpha=_SELDOM)
        if verdict.state == "contradicted" and verdict.repeats is not None and verdict.expected is not None:
            yield (
                f"the draws about {which} baseline answers contradict their log-probabilities: a draw comes again "
                f"{THREE_DIGITS(verdict.repeats)} times, expected {THREE_DIGITS(verdict.expected)}"
            )


def _of_pictures(submission: Mapping[str, Any], manifests: Sequence[Manifest]) -> Iterator[str]:
    known = manifests[0].documents if manifests else {}
    shown = {id for id, digests in known.items() if digests.pictures is not None}
    without = sum(d["id"] in shown and d["digests"]["pictures"] is None for d in submission["documents"])
    if without:
        yield f"the digests of the pictures are left out in {without} documents"


def _contradicted(submission: Mapping[str, Any]) -> Iterator[str]:
    for one in submission["health"]["settings"]:
        if one["state"] == "contradicted":
            yield f"the draws contradict the {one['setting']}"
