"""Options of one token each, read off the likeliest first tokens of an answer: all that most chat servers tell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hedge_tasks.data.answers import Answer
from hedge_tasks.models.base import spelled_answer


def first_tokens(told: Iterable[tuple[str, float]], options: Sequence[str]) -> dict[str, Answer | str]:
    """How likely an answer begins with each option, or why that is not known.

    The probability is of an answer that begins so, and not of one that says nothing else: the answers have the `finish`
    "length". Tokens that differ in blanks around them spell the same option.

    Args:
        told: tokens that an answer may begin with, each with its log-probability; one may stand there twice.
        options: all that the question offers.

    Example:
        >>> first_tokens([("Yes", -0.5), (" Yes", -3.0), ("No", -1.5)], ["No", "Yes", "Not sure"])["Yes"].mean_logprob
        -0.42111
    """
    by_option: dict[str, dict[tuple[int, ...], float]] = {option: {} for option in options}
    for i, (token, logprob) in enumerate(dict(told).items()):
        if token.strip() in by_option:
            by_option[token.strip()][(i,)] = logprob
    found: dict[str, Answer | str] = {}
    for option, spellings in by_option.items():
        longer = [other for other in options if other != option and other.startswith(option)]
        if longer:
            found[option] = f"an answer that begins with {option!r} may go on as {longer[0]!r}"
        elif not spellings:
            found[option] = f"{option!r} is none of the likeliest first tokens"
        else:
            answer = spelled_answer(option, spellings)
            found[option] = Answer(option, answer.mean_logprob, 1, "length")
    return found
