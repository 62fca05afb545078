"""The noisy pictures of a run as its model saw them, made again from the seeds of its draws.

Run files hold no pictures. They hold the seed, the perturbation and the key of each document, which is a hash of its
texts and picture files: a picture whose document has another key is not the one that was asked about, and is not shown.
"""

from __future__ import annotations

import io
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.data.pictures import UNREADABLE_ERRORS, at_most, to_rgb8, whole_pictures
from hedge_tasks.data.splits import content_key
from hedge_tasks.detectors.builtin.semantic_entropy import discrete_semantic_entropy
from hedge_tasks.errors import HedgeError
from hedge_tasks.numbers import count_of
from hedge_tasks.perturb.base import Noise, Wording, build_noise
from hedge_tasks.report.analysis import Analysis
from hedge_tasks.report.pictures import Stored, address_of
from hedge_tasks.runs.run_files import Run
from hedge_tasks.sampling.plan import draw_seed

if TYPE_CHECKING:
    from PIL.Image import Image

BUDGET = 6_000_000
"""Bytes of all noisy pictures of a page together."""

SECONDS = 60.0
"""After which no more of them are begun."""

_MOST_BYTES = 30_000
_MOST_PIXELS = 16_000_000
"""Of one picture: it is perturbed at its full size, as for the model."""


class CannotBeMade(Exception):
    """Why the noisy pictures of a run or document cannot be made again."""


@dataclass(frozen=True)
class SeenPictures:
    """The pictures of one document as its draws saw them, as places among the addresses.

    Attributes:
        clean: what the baseline and the clean draws saw.
        noisy: by noisy draw what it saw.
    """

    clean: Sequence[int]
    noisy: Sequence[Sequence[int]]


@dataclass(frozen=True)
class PictureAddresses:
    """Pictures as `data:` addresses, and which document's draws saw which.

    Attributes:
        note: what is missing and why, or "".
    """

    addresses: Sequence[str] = ()
    of_document: Mapping[str, SeenPictures] = field(default_factory=dict)
    note: str = ""


NONE = PictureAddresses()


def most_scattered(analysis: Analysis) -> list[str]:
    """Return ids of the documents, those first whose samples scatter most, by discrete entropy over all clusterings."""
    entropies: dict[str, float] = dict.fromkeys((a.id for a in analysis.run.answer_sets), 0.0)
    for scores in analysis.scores.values():
        for s in scores:
            if len(s.cluster_ids) > 1:
                entropies[s.id] += discrete_semantic_entropy(s.cluster_ids[1:])
    return sorted(entropies, key=lambda id: -entropies[id])


def not_asked_for(run: Run) -> str:
    """Return what a page without noisy pictures says about them."""
    documents = run.settings.get("documents") or {}
    if not documents.get("images") or not any(a.noisy for a in run.answer_sets):
        return ""
    return "The noisy pictures are not in this page; hedge report ... --noisy-pictures 20 makes those of 20 questions."


def noisy_pictures(
    run: Run, stored: Sequence[Stored], order: Sequence[str], most: int, *, budget: int = BUDGET
) -> PictureAddresses:
    """Make the noisy pictures of some documents again.

    Args:
        stored: the documents, with their texts.
        order: their ids, those first that are to be shown.
        most: documents.
        budget: bytes that all pictures together may take.
    """
    by_id = {document.id: document for document in stored}
    sets = {a.id: a for a in run.answer_sets if a.noisy}
    chosen = [id for id in order if id in sets and id in by_id][:most]
    if not chosen:
        return NONE
    try:
        noise = _noise_of(run)
    except (CannotBeMade, HedgeError) as error:
        return replace(NONE, note=f"The noisy pictures cannot be made again: {error}.")
    n_pictures = sum((1 + len(sets[id].noisy)) * len(by_id[id].files) for id in chosen)
    share = min(_MOST_BYTES, budget // max(n_pictures, 1))
    addresses: list[str] = []
    of_document: dict[str, SeenPictures] = {}
    reasons: dict[str, int] = {}
    ends = time.monotonic() + SECONDS
    for id in chosen:
        if time.monotonic() > ends:
            reason = f"it would have taken more than {SECONDS:g} seconds"
        else:
            try:
                of_document[id] = _made_again(run, noise, sets[id], by_id[id], share, addresses)
                continue
            except (CannotBeMade, HedgeError) as error:
                reason = str(error)
        reasons[reason] = reasons.get(reason, 0) + 1
    n = count_of(len(of_document), "question")
    notes = [f"The noisy pictures of {n}, whose answers scatter most, were made again."]
    notes += [f"Those of {count_of(count, 'question')} are left out: {reason}." for reason, count in reasons.items()]
    return PictureAddresses(addresses, of_document, " ".join(notes))


def _noise_of(run: Run) -> Noise:
    sampling = run.settings.get("sampling") or {}
    settings = sampling.get("perturbation")
    if not isinstance(settings, Mapping) or not isinstance(sampling.get("seed"), int):
        raise CannotBeMade("the run does not say how they were made")
    ours = "kind" not in settings and not settings.get("transforms")
    # Other kinds load code or files by name: not out of a file that somebody else wrote.
    if not (ours or run.trusted or run.path is None):
        raise CannotBeMade("their perturbation is none of this package's own (--trust-run allows for it)")
    # At its strength: the recorded settings are those of the perturbation that the strength has been applied to.
    return build_noise(settings)


def _made_again(
    run: Run, noise: Noise, answers: AnswerSet, document: Stored, share: int, addresses: list[str]
) -> SeenPictures:
    if answers.drawn is None:
        raise CannotBeMade("the run keeps no key of the document, which is part of the seeds")
    key = answers.drawn.document
    if key.partition(".")[0] != content_key(list(document.texts.values()), document.files):
        raise CannotBeMade("the data set's texts or pictures are others than those that were asked about")
    sampling = run.settings["sampling"]
    wording = _wording(document.texts)
    clean = [_clean(file, sampling.get("max_image_side")) for file in document.files]
    side = sampling.get("perturb_at")
    perturbed = clean if side is None else [at_most(picture, side) for picture in clean]
    pictures_by_draw: list[list[Image]] = [clean]
    for index in range(len(answers.noisy)):
        seed = draw_seed(sampling["seed"], key, "noisy", index)
        pictures_by_draw.append(noise.perturb_images(perturbed, wording, seed=seed))
    addresses_by_draw = list(_encoded(pictures_by_draw, share))
    start = len(addresses)
    addresses += [address for of_draw in addresses_by_draw for address in of_draw]
    places = iter(range(start, len(addresses)))
    clean_places, *noisy_places = ([next(places) for _ in of_draw] for of_draw in addresses_by_draw)
    return SeenPictures(clean_places, noisy_places)


def _encoded(pictures_by_draw: Sequence[Sequence[Image]], share: int) -> Iterator[list[str]]:
    for of_draw in pictures_by_draw:
        encoded = [address_of(picture, share) for picture in of_draw]
        if None in encoded:
            raise CannotBeMade("they do not fit into the page")
        yield [address for address in encoded if address is not None]


def _clean(file: bytes, side: Any) -> Image:
    """Return the picture as a clean draw sees it; see `hedge_tasks.sampling.requests.clean_images`."""
    from PIL import Image as Pictures

    try:
        with whole_pictures(), Pictures.open(io.BytesIO(file)) as picture:
            if picture.width * picture.height > _MOST_PIXELS:
                raise CannotBeMade("their pictures are too large")
            return at_most(to_rgb8(picture), side if isinstance(side, int) else None)
    except (*UNREADABLE_ERRORS, Pictures.DecompressionBombError):
        raise CannotBeMade("their pictures cannot be read") from None


def _wording(texts: Mapping[str, object]) -> Wording:
    roles = ("question", "context", "distractor", "answer")
    return Wording(*(str(texts.get(role) or "") for role in roles))
