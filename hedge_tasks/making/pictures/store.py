"""Made pictures and their scores on disk: found again by what made them, whenever the process was killed.

    painted/ab/<key>.png    a picture, under the digest of its generator and order; what it came from stands in the file
    painted/ab/<key>.lock   it is being generated, while a worker holds a lock on this; the lock ends with the process
    scores-*.jsonl          what checkers said, under the digest of checker, pixels and question

A picture appears as a whole or not at all. Workers may share the folder: none makes what another one is at.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from loguru import logger
from PIL import Image, PngImagePlugin

from hedge_tasks.data.pictures import UNREADABLE_ERRORS, image_file_fault, open_picture, to_rgb8
from hedge_tasks.errors import DataError, HedgeError
from hedge_tasks.io import outside
from hedge_tasks.io.files import write_whole
from hedge_tasks.io.keyed_log import KeyedLog
from hedge_tasks.io.progress import progress
from hedge_tasks.llm.log import digest
from hedge_tasks.making.pictures.base import Checker, ImageGenerator, Order, PictureQuestion

PAINTED, SCORES = "painted", "scores"
BATCH = 8
"""Pictures that an image generator or a checker is given at a time: what a kill can lose."""

SCORE_DECIMALS = 5

_ORIGIN = "hedge"
"""Keyword of the PNG text that says where a picture came from."""
_MOST_ORIGIN = 1 << 20


@dataclass(frozen=True)
class StoredPicture:
    """A picture that need not be in memory.

    Attributes:
        digest: Of its size and pixels.
        open: Loads it, 8-bit RGB.
        path: Its file; None for one that has none.
    """

    digest: str
    open: Callable[[], Image.Image] = field(compare=False)
    path: Path | None = field(default=None, compare=False)

    @classmethod
    def of(cls, image: Image.Image) -> StoredPicture:
        """Any picture in memory, such as a noisy one."""
        plain = to_rgb8(image)
        return cls(pixel_digest(plain), lambda: plain)


def pixel_digest(image: Image.Image) -> str:
    """A digest of the size and the pixels of an 8-bit RGB picture: the same for whatever file they were in."""
    assert image.mode == "RGB"
    return hashlib.sha256(b"%d,%d\0" % image.size + image.tobytes()).hexdigest()


class PictureStore:
    """The pictures and scores of a making.

    Args:
        folder: Where they are; made when the first is kept.

    Attributes:
        generated, reused: How many pictures were made now, and how many were there already.
        scored, scores_reused: How many scores were asked for now, and how many were there already.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._scores: KeyedLog[float | None] = KeyedLog(folder, SCORES, "scores", _read_score)
        self.generated = self.reused = self.scored = self.scores_reused = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Make everything durable.

        Raises:
            HedgeError: The folder cannot be written.
        """
        self._scores.close()

    # --- generating ---------------------------------------------------------------------------------------------------

    def generate(
        self, generator: ImageGenerator, orders: Sequence[Order], *, batch: int = BATCH
    ) -> list[StoredPicture | str]:
        """The pictures of orders; those that are there are not made again.

        Args:
            batch: Orders that the generator is given at a time.

        Returns:
            In the order of the orders; a text in place of a picture says why there is none, and the next time it is
            tried again. Orders that differ in nothing but their ids have one picture.

        Raises:
            HedgeError: The generator failed, or the folder cannot be written; what was made before is kept.
        """
        keys = [_order_key(generator.name, order) for order in orders]
        pictures: dict[str, StoredPicture | str] = {}
        todo: dict[str, Order] = {}
        for key, order in zip(keys, orders, strict=True):
            if key not in pictures and (stored := self._stored(key)):
                pictures[key] = stored
            elif key not in pictures:
                todo.setdefault(key, order)
        self.reused += len(pictures)
        with progress(total=len(todo), name="Generating", unit="picture") as bar:
            for wait in (False, True):  # first what nobody is at, then what others left
                for part in _batches([key for key in todo if key not in pictures], 1 if wait else batch):
                    new = self._generate_some(generator, {key: todo[key] for key in part}, wait=wait)
                    pictures |= new
                    bar.update(len(new))
        return [pictures[key] for key in keys]

    def _generate_some(
        self, generator: ImageGenerator, orders: Mapping[str, Order], *, wait: bool
    ) -> dict[str, StoredPicture | str]:
        """The pictures of some orders, without those that another worker is generating."""
        pictures: dict[str, StoredPicture | str] = {}
        with ExitStack() as stack:
            claimed: list[str] = []
            for key in orders:
                ours = stack.enter_context(_claim(self._place(key).with_suffix(".lock"), wait=wait))
                if stored := self._stored(key):  # by somebody else meanwhile
                    pictures[key] = stored
                    self.reused += 1
                elif ours:
                    claimed.append(key)
            if not claimed:
                return pictures
            images = generator.generate([orders[key] for key in claimed])
            if len(images) != len(claimed):
                raise HedgeError(f"generator {generator.name}: {len(images)} pictures for {len(claimed)} orders")
            for key, image in zip(claimed, images, strict=True):
                if isinstance(image, str):
                    pictures[key] = image
                    continue
                pictures[key] = self._keep(key, to_rgb8(image), generator.name, orders[key])
                self.generated += 1
        return pictures

    def _place(self, key: str) -> Path:
        return self.folder / PAINTED / key[:2] / f"{key}.png"

    def _stored(self, key: str) -> StoredPicture | None:
        """Return the picture under a key; a damaged file is removed, and generated again."""
        path = self._place(key)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror or error}") from error
        named = None if image_file_fault(content, decode=False, formats=("PNG",)) else _digest_in(content)
        if named is None:
            logger.warning("{} is damaged and is generated again", path)
            path.unlink(missing_ok=True)
            return None
        return StoredPicture(named, lambda: _load(path), path)

    def _keep(self, key: str, image: Image.Image, generator: str, order: Order) -> StoredPicture:
        path = self._place(key)
        named = pixel_digest(image)
        origin = {"generator": generator, "prompt": order.prompt, "seed": order.seed, "about": dict(order.details)}
        text = PngImagePlugin.PngInfo()
        text.add_text(_ORIGIN, json.dumps({**origin, "pixels": named}, sort_keys=True, ensure_ascii=True))
        content = io.BytesIO()
        image.save(content, "PNG", pnginfo=text)
        write_whole(path, content.getvalue())
        return StoredPicture(named, lambda: _load(path), path)

    # --- checking -----------------------------------------------------------------------------------------------------

    def check(
        self,
        checker: Checker,
        pictures: Sequence[StoredPicture],
        questions: Sequence[PictureQuestion],
        *,
        batch: int = BATCH,
    ) -> list[float | None]:
        """Return the scores of a checker for pictures; what it has said is not asked again. Where asking failed there
        is None.

        Args:
            pictures: Generated, or any others (`StoredPicture.of`).
            questions: One for each.
            batch: Pictures that the checker is given at a time.

        Raises:
            HedgeError: The checker failed or said what is no score, or the folder cannot be written.
        """
        keys = [_score_key(checker.name, p, q) for p, q in zip(pictures, questions, strict=True)]
        cached = {key for key in keys if key in self._scores}
        todo = {key: at for at, key in enumerate(keys) if key not in cached}
        self.scores_reused += len(cached)
        with progress(total=len(todo), name=f"Checking by {checker.name}", unit="picture") as bar:
            for part in _batches(list(todo), batch):
                places = [todo[key] for key in part]
                scores = checker.check([pictures[i].open() for i in places], [questions[i] for i in places])
                self._keep_scores(checker.name, part, scores, [questions[i] for i in places])
                bar.update(len(part))
        return [self._scores.get(key) for key in keys]

    def _keep_scores(
        self,
        checker: str,
        keys: Sequence[str],
        results: Sequence[float | str | None],
        questions: Sequence[PictureQuestion],
    ) -> None:
        if len(results) != len(keys):
            raise HedgeError(f"checker {checker}: {len(results)} scores for {len(keys)} pictures")
        scores = [(i, score) for i, score in enumerate(results) if not isinstance(score, str)]
        if failed := [score for score in results if isinstance(score, str)]:
            logger.warning("{}: {} of {} scores failed, first: {}", checker, len(failed), len(results), failed[0])
        for _, score in scores:
            if score is not None and not 0 <= score <= 1:
                raise HedgeError(f"checker {checker}: a score of {score}, which is not from 0 to 1")
        # Models give slightly other numbers in other batches; what is beyond these digits would depend on a kill.
        rounded = [(i, None if score is None else round(float(score), SCORE_DECIMALS)) for i, score in scores]
        self._scores.keep(
            (keys[i], score, {"score": score, "checker": checker, "question": asdict(questions[i])})
            for i, score in rounded
        )
        self.scored += len(keys)


def _batches(keys: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (keys[start : start + size] for start in range(0, len(keys), size))


def _order_key(generator: str, order: Order) -> str:
    return digest({"generator": generator, "prompt": order.prompt, "seed": order.seed, "about": dict(order.details)})


def _score_key(checker: str, picture: StoredPicture, question: PictureQuestion) -> str:
    return digest({"checker": checker, "picture": picture.digest, "question": asdict(question)})


def _read_score(record: Mapping[str, Any]) -> float | None:
    score = record.get("score")
    if score is None and "score" in record:
        return None
    value = outside.number(score, "score")
    if not 0 <= value <= 1:
        raise DataError(f"a score of {value}")
    return value


def _digest_in(content: bytes) -> str | None:
    """Return what a PNG of ours says of its pixels, without decoding them; None where it says nothing."""
    try:
        with Image.open(io.BytesIO(content), formats=("PNG",)) as image:
            text = image.info.get(_ORIGIN)
        if not isinstance(text, str) or len(text) > _MOST_ORIGIN:
            return None
        origin = outside.parse_json(text, "a picture's origin")
    except (*UNREADABLE_ERRORS, DataError):
        return None
    named = origin.get("pixels") if isinstance(origin, Mapping) else None
    return named if isinstance(named, str) and len(named) == 64 else None


def _load(path: Path) -> Image.Image:
    return to_rgb8(open_picture(path))


@contextmanager
def _claim(path: Path, *, wait: bool) -> Iterator[bool]:
    """Whether a lock file is ours as long as this lasts, and not another worker's.

    The lock ends with the process, however that ends. Where there are no locks everything is ours: two workers may then
    make one picture, and the later one stands.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        path.parent.mkdir(parents=True, exist_ok=True)
        yield True
        return
    how = fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB)
    with ExitStack() as stack:
        while True:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                file = stack.enter_context(path.open("ab"))
                fcntl.flock(file.fileno(), how)
                if _is(file, path):
                    break
                file.close()  # whoever had it has removed it before we had the lock
            except BlockingIOError:
                yield False
                return
            except OSError as error:
                if error.errno in (errno.ENOLCK, errno.ENOTSUP):
                    break
                raise HedgeError(f"cannot write {path}: {error.strerror or error}") from error
        try:
            yield True
        finally:
            path.unlink(missing_ok=True)


def _is(file: IO[bytes], path: Path) -> bool:
    """Whether an open file still is the one of this name."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
