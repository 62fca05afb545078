"""Made pictures and their scores on disk: found again by what made them, whenever the process was killed.

    painted/ab/<key>.png    a picture, under the digest of its generator and order
    scores-*.jsonl          what checkers said, under the digest of checker, pixels and question

A picture appears as a whole or not at all.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from loguru import logger
from PIL import Image

from hedge_tasks.data.pictures import image_file_fault, open_picture, to_rgb8
from hedge_tasks.errors import DataError, HedgeError
from hedge_tasks.io import outside
from hedge_tasks.io.files import write_whole
from hedge_tasks.io.keyed_log import KeyedLog
from hedge_tasks.io.progress import progress
from hedge_tasks.llm.log import digest
from hedge_tasks.making.pictures.base import Checker, ImageGenerator, Order, PictureQuestion

PAINTED, SCORES = "painted", "scores"
BATCH = 8
"""Pictures that an image generator or a checker is handed at a time: what a kill can lose."""

_DECIMALS = 5
"""Models give slightly other numbers in other batches; what is beyond these digits would depend on a kill."""


@dataclass(frozen=True)
class StoredPicture:
    """A picture that is not in memory.

    Attributes:
        path: Its PNG file, which holds the pixels and nothing else.
        digest: Of its size and pixels.
    """

    path: Path
    digest: str

    def open(self) -> Image.Image:
        """The picture, 8-bit RGB."""
        return to_rgb8(open_picture(self.path))


class PictureStore:
    """The pictures and scores of a making.

    Args:
        folder: Where they are; made when the first is kept.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._scores: KeyedLog[float | None] = KeyedLog(folder, SCORES, "scores", _read_score)

    @classmethod
    @contextmanager
    def opened(cls, folder: Path) -> Iterator[PictureStore]:
        """A store that is closed in the end, so that everything is durable."""
        store = cls(folder)
        try:
            yield store
        finally:
            store._scores.close()

    def generate(self, generator: ImageGenerator, orders: Sequence[Order]) -> list[StoredPicture]:
        """The pictures of orders; those that are there are not made again, and equal orders have one picture.

        Raises:
            HedgeError: The generator failed, or the folder cannot be written; what was made before is kept.
        """
        keys = [digest({"generator": generator.name, **asdict(order)}) for order in orders]
        pictures = {key: picture for key in keys if (picture := self._stored(key)) is not None}
        todo = {key: order for key, order in zip(keys, orders, strict=True) if key not in pictures}
        with progress(total=len(todo), name="Generating", unit="picture") as bar:
            for part in _batches(list(todo)):
                images = generator.generate([todo[key] for key in part])
                if len(images) != len(part):
                    raise HedgeError(f"generator {generator.name}: {len(images)} pictures for {len(part)} orders")
                for key, image in zip(part, images, strict=True):
                    pictures[key] = self._keep(key, to_rgb8(image))
                bar.update(len(part))
        return [pictures[key] for key in keys]

    def _place(self, key: str) -> Path:
        return self.folder / PAINTED / key[:2] / f"{key}.png"

    def _stored(self, key: str) -> StoredPicture | None:
        """Return the picture under a key; a damaged file is generated again."""
        path = self._place(key)
        if not path.is_file():
            return None
        if image_file_fault(path.read_bytes(), decode=True, formats=("PNG",)):
            logger.warning("{} is damaged and is generated again", path)
            return None
        return StoredPicture(path, pixel_digest(to_rgb8(open_picture(path))))

    def _keep(self, key: str, image: Image.Image) -> StoredPicture:
        content = io.BytesIO()
        image.save(content, "PNG")
        path = self._place(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content.getvalue())
        return StoredPicture(path, pixel_digest(image))

    def check(
        self, checker: Checker, pictures: Sequence[StoredPicture], questions: Sequence[PictureQuestion]
    ) -> list[float | None]:
        """The scores of a checker; what it has said is not asked again. Where asking failed there is None.

        Args:
            questions: One for each picture.

        Raises:
            HedgeError: The checker failed or said what is no score, or the folder cannot be written.
        """
        pairs = list(zip(pictures, questions, strict=True))
        keys = [digest({"checker": checker.name, "picture": p.digest, "question": asdict(q)}) for p, q in pairs]
        todo = {key: pair for key, pair in zip(keys, pairs, strict=True) if key not in self._scores}
        with progress(total=len(todo), name=f"Checking by {checker.name}", unit="picture") as bar:
            for part in _batches(list(todo)):
                scores = checker.check([todo[key][0].open() for key in part], [todo[key][1] for key in part])
                self._scores.keep(
                    (key, score, {"score": score, "checker": checker.name, "question": asdict(todo[key][1])})
                    for key, score in _scores_of(checker, part, scores)
                )
                bar.update(len(part))
        return [self._scores.get(key) for key in keys]


def _scores_of(
    checker: Checker, keys: Sequence[str], scores: Sequence[float | str | None]
) -> list[tuple[str, float | None]]:
    """Scores that may be kept, by key."""
    if len(scores) != len(keys):
        raise HedgeError(f"checker {checker.name}: {len(scores)} scores for {len(keys)} pictures")
    if failed := [score for score in scores if isinstance(score, str)]:
        logger.warning("{}: {} of {} scores failed, first: {}", checker.name, len(failed), len(scores), failed[0])
    known = [(key, score) for key, score in zip(keys, scores, strict=True) if not isinstance(score, str)]
    if strange := [score for _, score in known if score is not None and not 0 <= score <= 1]:
        raise HedgeError(f"checker {checker.name}: a score of {strange[0]}, which is not from 0 to 1")
    return [(key, None if score is None else round(float(score), _DECIMALS)) for key, score in known]


def pixel_digest(image: Image.Image) -> str:
    """A digest of the size and the pixels of an 8-bit RGB picture: the same for whatever file they were in."""
    return hashlib.sha256(b"%d,%d\0" % image.size + image.tobytes()).hexdigest()


def _batches(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    return (keys[start : start + BATCH] for start in range(0, len(keys), BATCH))


def _read_score(record: Mapping[str, Any]) -> float | None:
    score = record.get("score")
    if score is None and "score" in record:
        return None
    value = outside.number(score, "score")
    if not 0 <= value <= 1:
        raise DataError(f"a score of {value}")
    return value
