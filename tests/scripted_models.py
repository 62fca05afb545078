"""Models that know the answers, more or less, and keep what they were asked."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from lmms_eval.api.model import lmms

LETTERS = "ABCDE"
GUESSES = ("A", "no", "7", "red", "round")


class Asked(NamedTuple):
    """One request: what was shown, as sizes of pictures or texts of parts."""

    task: str
    row: int
    text: str
    shown: tuple[Any, ...]
    settings: Mapping[str, Any]


class Scripted(lmms):
    """Greedy and nearly greedy requests get an answer that depends on text and row alone, others a guess."""

    is_simple = True
    asked: ClassVar[list[Asked]] = []

    def __init__(self, batch_size: int = 1, device: str | None = None, **options: Any) -> None:
        super().__init__()
        self._chance = random.Random(0)

    def generate_until(self, requests: list[Any]) -> list[str]:
        return [self._answer(request) for request in requests]

    def _answer(self, request: Any) -> str:
        if self.is_simple:
            text, settings, visual, row, task, split = request.args
        else:
            text, messages, settings, row, task, split = request.args
        document = self.task_dict[task][split][row]
        if self.is_simple:
            shown = tuple(getattr(one, "size", type(one).__name__) for one in visual(document) or ())
        else:
            parts = [part for turn in messages(document) for part in turn["content"]]
            shown = tuple(part["text"] if part["type"] == "text" else part["url"].size for part in parts)
        Scripted.asked.append(Asked(task, row, text, shown, settings))
        hot = settings.get("temperature", 0) >= 1
        chance = self._chance if hot else random.Random(f"{text} {row}")
        if chance.random() < (0.8 if row % 2 else 0.4):
            return known_answer(document)
        # MMMU's own scoring guesses at random where it cannot read an answer, and would be equal to nothing.
        return chance.choice("ABCD" if "subfield" in document else GUESSES)

    def loglikelihood(self, requests: Any) -> Any:
        raise NotImplementedError

    def generate_until_multi_round(self, requests: Any) -> Any:
        raise NotImplementedError


class ScriptedChat(Scripted):
    is_simple = False


def known_answer(document: Mapping[str, Any]) -> str:
    """The right answer of a stand-in, in the form that its task asks for."""
    answer = document.get("answer", document.get("label", document.get("number")))
    if isinstance(answer, int) and "choices" in document:
        return LETTERS[answer]
    if "options" in document and str(answer).isdigit() and isinstance(document["options"], list):
        return f"{LETTERS[int(answer)]}."
    if isinstance(answer, str) and "#### " in answer:
        return f"The answer is {answer.split('#### ')[1]}."
    return str(document["answers"][0] if answer is None else answer)
