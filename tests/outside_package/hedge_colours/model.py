from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from lmms_eval.api.model import lmms

from hedge_tasks.data.answers import Answer
from hedge_tasks.sampling.requests import DrawRequest

_TRUE = {"grass": "green", "blood": "red", "the sky": "blue"}


class ColourDice(lmms):
    """Knows what colour things have, and says another one the louder it is asked and the greater its seed."""

    is_simple = False
    answer_identity = "colour_dice/1"

    def __init__(self, batch_size: int = 1, device: str = "cpu", **unused: Any) -> None:
        super().__init__()

    def generate_draws(self, draws: Sequence[DrawRequest]) -> Iterator[list[tuple[int, Answer]]]:
        for place, draw in enumerate(draws):
            yield [(place, Answer(self._say(draw), -0.1 - draw.draw.index / 10, 2))]

    def _say(self, draw: DrawRequest) -> str:
        asked = draw.text()
        right = next(colour for thing, colour in _TRUE.items() if thing in asked.lower())
        sure = 5 - asked.count("!") - len(draw.request.id) % 4
        return f"{right} it is" if draw.draw.seed % 5 < sure else "red, perhaps red"

    def generate_until(self, requests: list[Any]) -> list[str]:
        raise NotImplementedError

    def generate_until_multi_round(self, requests: list[Any]) -> list[str]:
        raise NotImplementedError

    def loglikelihood(self, requests: list[Any]) -> list[tuple[float, bool]]:
        raise NotImplementedError
