"""Questions that a model answers without the picture (of a whole set: the paper, section 4.2).

Guessing is no knowing: a yes-or-no question is put about the right answer and about the wrong one and takes a yes and a
no, a choice is put with the right option in each of its places and takes it in all. So a model that guesses passes a
yes-or-no question in one of four cases and a choice in one of 256, and what it says does not depend on which form of a
question the set has in the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hedge_tasks.llm.models import Model
from hedge_tasks.llm.template import load_template
from hedge_tasks.making.asking import Asking
from hedge_tasks.making.production import MadeRecord
from hedge_tasks.making.shale.items import LETTERS, with_options, wrong_options
from hedge_tasks.making.shale.records import Scene
from hedge_tasks.replies.parsing import HEDGE
from hedge_tasks.replies.text import normalise
from hedge_tasks.suites.shale.items import options_of
from hedge_tasks.suites.shale.judge import read

REQUESTS = {"ynq": 2, "mcq": len(LETTERS), "ffq": 1}
"""Requests a scene and model by type of question; captions need the picture."""

BlindAnswers = Mapping[str, Mapping[str, tuple[str, ...]]]
"""Id of a scene -> type of question -> models that answer it blindly."""


@dataclass(frozen=True)
class BlindFilter:
    """Asks models the questions of scenes without their pictures.

    Attributes:
        models: Text-only models, or others that are given no picture.
    """

    models: Sequence[Model]

    def __call__(self, scene: Scene, asking: Asking) -> MadeRecord:
        """The row `{"scene": id, "answered": {type: [models]}}`."""
        answered: dict[str, list[str]] = {}
        for place, model in enumerate(self.models):
            for task in REQUESTS:
                if self._answers(scene, task, model, str(place), asking):
                    answered.setdefault(task, []).append(model.name)
        steps = tuple(f"answered blindly: {task}" for task in answered)
        return MadeRecord({"scene": scene.id, "answered": answered}, steps)

    def _answers(self, scene: Scene, task: str, model: Model, place: str, asking: Asking) -> bool:
        prompt = load_template(__package__, "blind")
        for form, (question, right) in enumerate(_forms(scene, task)):
            number = f"{place}/{task}/{form}"
            reply = asking.ask("blind", model, prompt, {"question": question}, number=number)
            if reply is None or not _is_right(reply["answer"], question, right, task):
                return False  # the other forms need not be asked
        return True


def _forms(scene: Scene, task: str) -> list[tuple[str, str]]:
    """Ways to ask one question, each with what is right: "yes", "no", a letter, or the answer."""
    if task == "ynq":
        return [(scene.asking(scene.answer), "yes"), (scene.asking(scene.wrong[0]), "no")]
    if task == "ffq":
        return [(scene.ffq, scene.answer)]
    wrong = wrong_options(scene)
    return [
        (with_options(scene.ffq, [*wrong[:place], scene.answer, *wrong[place:]]), LETTERS[place])
        for place in range(len(LETTERS))
    ]


def _is_right(reply: str, question: str, right: str, task: str) -> bool:
    if task == "ffq":
        return _bare(reply) == _bare(right)
    assert bool(options_of(question)) == (task == "mcq")
    return read(HEDGE, reply, question).value == right


def _bare(text: str) -> str:
    words = normalise(text).split()
    return " ".join(words[1:] if words[:1] and words[0] in ("a", "an", "the") else words)
