"""Labels of claims: a sentence is right where it names the colour of the reference."""

from __future__ import annotations

from collections.abc import Sequence

from hedge_colours.judge import colour_in
from hedge_tasks.claims import Claim
from hedge_tasks.data.answers import AnswerSet


def right_colour(answers: AnswerSet, claims: Sequence[Claim]) -> list[int | str]:
    said = [colour_in(claim.text) for claim in claims]
    return ["silent" if colour is None else int(colour != answers.reference) for colour in said]
