"""How a pipeline asks: each question once, each reply kept, each reading checked."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hedge_tasks.making.ledger import Ledger, Reply, digest
from hedge_tasks.making.prompts import Prompt, Unreadable
from hedge_tasks.making.writers import Writer
from hedge_tasks.serving.failures import RequestFailed

TRIES = 3
"""How often a question is put before a record does without its reply."""


class Unfinished(Exception):
    """A question got no reply: its record is left for another time, and nothing of it is lost.

    Attributes:
        unreachable: Whether nobody answered.
    """

    def __init__(self, reason: str, *, unreachable: bool) -> None:
        super().__init__(reason)
        self.unreachable = unreachable


@dataclass
class Tally:
    """What was asked in the making, by stage. Threads may share it.

    Attributes:
        asked: Requests that were made now, by stage.
        known: Replies that the ledger had, by stage.
        unreadable: Replies that were not of the form that was asked for, by stage.
        prompt_tokens, completion_tokens: What the requests cost that were made now, as far as servers tell.
    """

    asked: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    unreadable: Counter[str] = field(default_factory=Counter)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def count(self, stage: str, reply: Reply, *, known: bool) -> None:
        with self._lock:
            (self.known if known else self.asked)[stage] += 1
            if not known:
                self.prompt_tokens += reply.prompt_tokens or 0
                self.completion_tokens += reply.completion_tokens or 0

    def count_unreadable(self, stage: str) -> None:
        with self._lock:
            self.unreadable[stage] += 1


@dataclass(frozen=True)
class Asking:
    """The questions of one source record.

    Attributes:
        ledger: Where replies are kept.
        tally: What is counted.
        record: Id of the source record.
        seed: Of the whole making.
        stop: Ends pauses between retries once it is set.
    """

    ledger: Ledger
    tally: Tally
    record: str
    seed: int
    stop: threading.Event

    def ask(
        self,
        stage: str,
        writer: Writer,
        prompt: Prompt,
        fields: Mapping[str, Any],
        *,
        number: str = "",
        images: Sequence[Any] = (),
        image_keys: Sequence[str] = (),
        temperature: float = 0.0,
        top_p: float | None = None,
    ) -> dict[str, Any] | None:
        """A reply of the prompt's form.

        Args:
            stage: What the question is for; replies are counted by it.
            writer: Whom to ask.
            number: Tells apart questions that are put in the same words to get other replies.
            images: PIL images; `image_keys` are the digests of what they show.
            temperature, top_p: Of sampling; None leaves top_p to the model.

        Returns:
            The object that was replied; None where `TRIES` replies were none of the form.

        Raises:
            Unfinished: The request failed, retries included.
            HedgeError: Every other request would fail the same way.
        """
        assert len(images) == len(image_keys)
        for attempt in range(TRIES):
            asked = {
                "writer": dict(writer.identity),
                "prompt": prompt.digest,
                "fields": dict(fields),
                "images": list(image_keys),
                "decoding": {"temperature": temperature, "top_p": top_p, "max_tokens": prompt.max_tokens},
                "seed": self._seed(stage, number, attempt),
                "attempt": attempt,
            }
            reply = self._reply(stage, writer, prompt, asked, images)
            try:
                return prompt.read(reply.text)
            except Unreadable:
                self.tally.count_unreadable(stage)
        return None

    def _reply(
        self, stage: str, writer: Writer, prompt: Prompt, asked: Mapping[str, Any], images: Sequence[Any]
    ) -> Reply:
        key = digest(asked)
        known = self.ledger.get(key)
        if known is not None:
            self.tally.count(stage, known, known=True)
            return known
        decoding, attempt = asked["decoding"], asked["attempt"]
        reply = writer.ask(
            prompt.messages(asked["fields"], images, again=attempt > 0),
            # A greedy model would repeat itself word for word.
            temperature=decoding["temperature"] or (0.0 if attempt == 0 else 0.5),
            top_p=decoding["top_p"],
            max_tokens=decoding["max_tokens"],
            seed=asked["seed"],
            schema=prompt.schema,
            stop=self.stop,
        )
        if isinstance(reply, RequestFailed):
            raise Unfinished(f"{stage} ({writer.name}): {reply}", unreachable=reply.unreachable)
        self.tally.count(stage, reply, known=False)
        about = {"stage": stage, "record": self.record, "attempt": attempt, "seed": asked["seed"]}
        return self.ledger.add(key, reply, {**about, "model": writer.name, "prompt": prompt.id, "decoding": decoding})

    def _seed(self, stage: str, number: str, attempt: int) -> int:
        """31 bits that the place of the question decides: every engine takes them."""
        place = f"{self.seed}\0{self.record}\0{stage}\0{number}\0{attempt}"
        return int.from_bytes(hashlib.sha256(place.encode()).digest()[:4], "big") >> 1
