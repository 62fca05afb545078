"""The checker `ocr`: whether the words that have to stand in a picture can be read there."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from PIL import Image

from hedge_tasks.construct.ledger import digest
from hedge_tasks.construct.pictures.base import Checker, Question
from hedge_tasks.construct.prompts import Unreadable, load_prompt
from hedge_tasks.construct.writers import Writer, writer_from
from hedge_tasks.errors import ConfigError, HedgeError
from hedge_tasks.io import options
from hedge_tasks.replies.text import normalise
from hedge_tasks.serving.failures import RequestFailed
from hedge_tasks.serving.thread_pool import as_finished

_LONGEST = 2000
_TRIES = 2
_AT_ONCE = 8


def reading_checker(**settings: Any) -> Checker:
    """`ocr` by tesseract, or by a model: `ocr:model=NAME,url=...`, `ocr:adapter=hedge_hf,pretrained=...`.

    Args:
        settings: `language` of tesseract's (default: eng); or what `writer_from` takes.

    Raises:
        ConfigError: Tesseract is not installed, or a setting makes no sense.
    """
    if set(settings) <= {"language"}:
        return TesseractReading(**settings)
    return ModelReading(writer_from(",".join(f"{key}={value}" for key, value in settings.items())))


def likeness(expected: str, read: str) -> float:
    """How like a text in a picture is to what should stand there: 1 - edits / length of the longer one, 0 to 1.

    Case, punctuation and breaks of lines do not count. The text as a whole and each of its lines are compared, and the
    best counts: pictures may hold other writing, too.

    Example:
        >>> likeness("hell", "Hello"), likeness("EXIT", "exit\\nkeep clear"), likeness("hell", "")
        (0.8, 1.0, 0.0)
    """
    wanted = normalise(expected)[:_LONGEST]
    found = [normalise(text)[:_LONGEST] for text in (read, *read.splitlines()[:_LONGEST])]
    return max(_alike(wanted, text) for text in found)


def _alike(one: str, other: str) -> float:
    longer = max(len(one), len(other))
    return 1 - edits(one, other) / longer if longer else 1.0


def edits(one: str, other: str) -> int:
    """Levenshtein distance: fewest insertions, deletions and replacements of a letter that make one the other."""
    above = list(range(len(other) + 1))
    for i, a in enumerate(one, start=1):
        row = [i]
        for j, b in enumerate(other, start=1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (a != b)))
        above = row
    return above[-1]


class _Reading:
    """What both have in common: only written words are compared, and several pictures are read at once."""

    def check(self, pictures: Sequence[Image.Image], questions: Sequence[Question]) -> list[float | None]:
        wanted = [_words_of(question) for question in questions]
        places = [i for i, words in enumerate(wanted) if words is not None]
        found: list[float | None] = [None] * len(questions)

        def call(at: int, stop: threading.Event) -> str | None:
            return self._read(pictures[places[at]], stop)

        with closing(as_finished(call, len(places), _AT_ONCE)) as batches:
            for batch in batches:
                for at, read in batch:
                    words = wanted[places[at]]
                    found[places[at]] = None if read is None or words is None else likeness(words, read)
        return found

    def _read(self, picture: Image.Image, stop: threading.Event) -> str | None:
        """What is written in a picture; None where that cannot be said. Threads call it."""
        raise NotImplementedError


def _words_of(question: Question) -> str | None:
    words = question.expected.get("text")
    return words if question.kind == "text" and isinstance(words, str) and normalise(words) else None


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

            version = pytesseract.get_tesseract_version()
        except (ImportError, OSError) as error:
            raise ConfigError(
                "checker ocr: needs tesseract (apt install tesseract-ocr) and pip install 'hedge-tasks[pictures]', or "
                f"a model that reads: ocr:model=NAME,url=... ({type(error).__name__})"
            ) from None
        self.name = f"ocr:tesseract {version},{self._language}"

    def _read(self, picture: Image.Image, stop: threading.Event) -> str:
        import pytesseract

        try:
            return str(pytesseract.image_to_string(picture, lang=self._language, config="--psm 11", timeout=60))
        except (RuntimeError, OSError) as error:
            raise HedgeError(f"{self.name}: {error}") from error


class ModelReading(_Reading):
    """Any chat model that reads pictures; what it says is compared, and it is not told what it should read."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._prompt = load_prompt("hedge_tasks.construct.pictures", "read_text")
        asked = digest({"writer": dict(writer.identity), "prompt": self._prompt.digest})
        self.name = f"ocr:{writer.name},{asked[:12]}"

    def _read(self, picture: Image.Image, stop: threading.Event) -> str | None:
        for attempt in range(_TRIES):
            reply = self._writer.ask(
                self._prompt.messages({}, [picture], again=attempt > 0),
                temperature=0.0,
                top_p=None,
                max_tokens=self._prompt.max_tokens,
                seed=attempt,
                schema=self._prompt.schema,
                stop=stop,
            )
            if isinstance(reply, RequestFailed):
                raise HedgeError(f"{self.name}: {reply}")
            try:
                return str(self._prompt.read(reply.text)["text"])
            except Unreadable:
                continue
        return None
