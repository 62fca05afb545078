"""Given answers, read by the model that is claimed to have drawn them.

How likely it finds each, and whether its seed chose it: an adapter that has `reread` tells both, as far as it knows
them. Nothing is drawn and nothing is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from hedge_tasks.data.answers import Answer
from hedge_tasks.sampling.requests import DrawRequest

BLANK = " "
"""Put in front of an answer: many models begin with one, and answers are stripped."""


@dataclass(frozen=True)
class Reread:
    """An answer as the model finds it, after the prompt and the picture of its draw.

    Attributes:
        mean_logprob: nats per token over the raw distribution, as `Answer` has it.
        n_tokens: that the text is made of, the end left out.
        end_logprob: of the end token; None where the answer did not end, or the engine does not tell.
        margin: by how much the token that the draw's seed chooses was ahead of the answer's own (logits over
            temperature plus noise), where it was most. 0: drawing again gives the answer. None where the tokens are
            not chosen by this package.
    """

    mean_logprob: float
    n_tokens: int
    end_logprob: float | None = None
    margin: float | None = None


class RereadingModel(Protocol):
    """An adapter that reads given answers as draws."""

    def reread(self, draws: Sequence[DrawRequest], answers: Sequence[Answer]) -> list[Reread | str]:
        """Read each answer as its draw; a string in place of a result says why there is none.

        Args:
            draws: whose prompts, pictures, temperatures and seeds count.
            answers: of which text and finish count.
        """
        ...


def reread(model: Any, draws: Sequence[DrawRequest], answers: Sequence[Answer]) -> list[Reread | str]:
    """Read each answer as its draw, by whatever method the adapter has; see `RereadingModel.reread`."""
    if hasattr(model, "reread"):
        rereads: list[Reread | str] = model.reread(draws, answers)
        return rereads
    if not hasattr(model, "forced_logprobs"):
        return [f"{type(model).__name__} does not tell how likely given answers are"] * len(answers)
    spoken = [i for i, answer in enumerate(answers) if answer.text]
    conversations = [draws[i].messages() for i in spoken]
    ways = [model.forced_logprobs(conversations, [blank + answers[i].text for i in spoken]) for blank in ("", BLANK)]
    by_place = {i: _likelier_spelling(both) for i, *both in zip(spoken, *ways, strict=True)}
    return [by_place.get(i, "an empty answer has no tokens to be read") for i in range(len(answers))]


def _likelier_spelling(ways: Sequence[Answer | str]) -> Reread | str:
    """The likelier of the spellings with and without a blank in front, which a drawn answer mostly is."""
    means = [(way.mean_logprob, way.n_tokens) for way in ways if isinstance(way, Answer)]
    likelihoods = [(mean * n, mean, n) for mean, n in means if mean is not None and n]
    if not likelihoods:
        return next((way for way in ways if isinstance(way, str)), "the server tells no log-probabilities")
    return Reread(*max(likelihoods)[1:])
