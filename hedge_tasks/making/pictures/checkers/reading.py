"""The checker `ocr`: whether the words that have to stand in a picture can be read there."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import closing
from importlib.metadata import version
from typing import Any

import numpy as np
from PIL import Image

from hedge_tasks.errors import ConfigError, HedgeError, unknown
from hedge_tasks.io import options
from hedge_tasks.llm.account import Account
from hedge_tasks.llm.asker import Asker, Query
from hedge_tasks.llm.concurrency import as_finished, in_threads
from hedge_tasks.llm.log import digest
from hedge_tasks.llm.models import Model
from hedge_tasks.llm.template import load_template
from hedge_tasks.making.pictures.base import Checker, PictureQuestion
from hedge_tasks.models.by_text import model_from
from hedge_tasks.replies.text import normalise

_LONGEST = 2000
_AT_ONCE = 8
_ELSE = "or take a model that reads: ocr:model=NAME,url=..."


ENGINES = ("rapidocr", "tesseract")


def reading_checker(**settings: Any) -> Checker:
    """`ocr` by a program, or by a model: `ocr:model=NAME,url=...`, `ocr:adapter=hedge_hf,pretrained=...`.

    Args:
        settings: `engine`: rapidocr (default) finds words in pictures of scenes; tesseract is made for pages, and reads
            none of the signs that are drawn by code. With it `language` (default: eng). Or what `model_from` takes.

    Raises:
        ConfigError: The engine is not installed, or a setting makes no sense.
    """
    if not set(settings) <= {"engine", "language"}:
        return ModelReading(model_from(",".join(f"{key}={value}" for key, value in settings.items())))
    engine = settings.pop("engine", ENGINES[0])
    if engine not in ENGINES:
        raise unknown("engine of checker ocr", str(engine), ENGINES)
    if engine == "tesseract":
        return TesseractReading(**settings)
    if settings:
        raise ConfigError("checker ocr: language is a setting of engine=tesseract")
    return RapidReading()


def likeness(expected: str, read: str) -> float:
    """Similarity of the text in a picture and the expected one: 1 - edits / length of the longer one, 0 to 1.

    Case, punctuation and breaks of lines do not count. The text as a whole and each of its lines are compared, and the
    best counts: pictures may hold other writing, too.

    Example:
        >>> likeness("hell", "Hello"), likeness("EXIT", "exit\\nkeep clear"), likeness("hell", "")
        (0.8, 1.0, 0.0)
    """
    target = normalise(expected)[:_LONGEST]
    texts = [normalise(text)[:_LONGEST] for text in (read, *read.splitlines()[:_LONGEST])]
    return max(_alike(target, text) for text in texts)


def _alike(first: str, second: str) -> float:
    longer = max(len(first), len(second))
    return 1 - edits(first, second) / longer if longer else 1.0


def edits(first: str, second: str) -> int:
    """Levenshtein distance: fewest insertions, deletions and replacements of a letter that make one the other."""
    above = list(range(len(second) + 1))
    for i, a in enumerate(first, start=1):
        row = [i]
        for j, b in enumerate(second, start=1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (a != b)))
        above = row
    return above[-1]


class _Reading(ABC):
    """Common part of both readers: only written words are compared, and several pictures are read at once."""

    def check(self, pictures: Sequence[Image.Image], questions: Sequence[PictureQuestion]) -> list[float | None]:
        targets = [_words_of(question) for question in questions]
        places = [i for i, words in enumerate(targets) if words is not None]
        scores: list[float | None] = [None] * len(questions)

        def call(at: int, stop: threading.Event) -> str | None:
            return self._read(pictures[places[at]], stop)

        with closing(as_finished(in_threads(call, _AT_ONCE), len(places), _AT_ONCE)) as batches:
            for batch in batches:
                for at, read in batch:
                    words = targets[places[at]]
                    scores[places[at]] = None if read is None or words is None else likeness(words, read)
        return scores

    @abstractmethod
    def _read(self, picture: Image.Image, stop: threading.Event) -> str | None:
        """Return what is written in a picture; None where that cannot be said. Threads call it."""


def _words_of(question: PictureQuestion) -> str | None:
    words = question.expected.get("text")
    return words if question.kind == "text" and isinstance(words, str) and normalise(words) else None


class RapidReading(_Reading):
    """RapidOCR: PaddleOCR's models for words in scenes, through ONNX; their weights lie in its package.

    Raises:
        ConfigError: It is not installed; says how.
    """

    def __init__(self) -> None:
        try:
            import rapidocr_onnxruntime
        except ImportError:
            raise ConfigError(f"checker ocr: needs RapidOCR: pip install 'hedge-tasks[ocr]'; {_ELSE}") from None
        self.name = f"ocr:rapidocr {version('rapidocr-onnxruntime')}"
        self._engine = rapidocr_onnxruntime.RapidOCR()
        self._lock = threading.Lock()

    def _read(self, picture: Image.Image, stop: threading.Event) -> str:
        with self._lock:  # it uses all cores for one picture
            lines, _ = self._engine(np.asarray(picture)[:, :, ::-1])  # blue, green, red
        return "\n".join(str(text) for _, text, _ in lines or ())


class TesseractReading(_Reading):
    """Tesseract through pytesseract, in its mode for scattered words.

    Args:
        language: Of its data files.

    Raises:
        ConfigError: It is not installed; says how.
    """

    def __init__(self, language: str = "eng") -> None:
        self._language = options.text("language", language)
        try:
            import pytesseract

            number = pytesseract.get_tesseract_version()
        except (ImportError, OSError) as error:
            needs = "tesseract (apt install tesseract-ocr) and pip install 'hedge-tasks[pictures]'"
            raise ConfigError(f"checker ocr: needs {needs}; {_ELSE} ({type(error).__name__})") from None
        self.name = f"ocr:tesseract {number},{self._language}"

    def _read(self, picture: Image.Image, stop: threading.Event) -> str:
        import pytesseract

        try:
            return str(pytesseract.image_to_string(picture, lang=self._language, config="--psm 11", timeout=60))
        except (RuntimeError, OSError) as error:
            raise HedgeError(f"{self.name}: {error}") from error


class ModelReading(_Reading):
    """Any chat model that reads pictures; what it says is compared, and it is not told what it should read.

    Attributes:
        account: What the asking has cost.
    """

    def __init__(self, model: Model) -> None:
        self._prompt = load_template("hedge_tasks.making.pictures", "read_text")
        identity = digest({"model": dict(model.identity), "prompt": self._prompt.digest})
        self.name = f"ocr:{model.name},{identity[:12]}"
        self.account = Account()
        self._asker = Asker(model, self.account, stage=self.name)

    def _read(self, picture: Image.Image, stop: threading.Event) -> str | None:
        question = Query(
            self._prompt,
            {},
            lambda reply: str(self._prompt.object(reply.text)["text"]),
            lambda: [picture],
            place=self.name,
        )
        outcome = self._asker.ask(question, stop)
        if outcome.failure is not None:
            raise HedgeError(f"{self.name}: {outcome.failure}")
        return outcome.value
