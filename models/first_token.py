"""Offered answers read off the likeliest first tokens of a reply: all that most chat servers report.

Options of one token each stand there themselves. For others the model is asked, behind the conversation, for the letter
of one of them, in two orders.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from string import ascii_uppercase
from typing import Any

from hedge_tasks.data.answers import Answer
from hedge_tasks.models.base import spelled_answer
from hedge_tasks.perturb import Wording
from hedge_tasks.sampling.prompts import load_prompt

LEAST_MASS = 0.5
"""Of the first token's probability that the letters must hold together. Below it the model would rather write something
else, and what little is left to a letter may be the word "A"."""


def ask_for_letter(conversation: Sequence[Mapping[str, Any]], options: Sequence[str]) -> list[dict[str, Any]]:
    """Return the conversation with a request for the letter of one of the options at the end of its last turn."""
    listed = "\n".join(f"{letter}. {option}" for letter, option in zip(ascii_uppercase, options, strict=False))
    request = {"type": "text", "text": load_prompt("forced/letter").user_text(Wording(listed))}
    *turns, last = [dict(turn) for turn in conversation]
    content = last["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return [*turns, {**last, "content": [*parts, request]}]


def by_letters(orders: Sequence[Iterable[tuple[str, float]]], options: Sequence[str]) -> dict[str, Answer | str]:
    """Return how likely each option is by its letter, in the mean of two orders of the options; or why it is not known.

    The mean is of log-probabilities, made a distribution again: a liking for letters adds to logits, so that of two
    options it cancels out.

    Args:
        orders: tokens that the reply may begin with and their log-probabilities, where the options have their letters
            in the given order, and in the other one.
        options: two or more.

    Example:
        >>> even = [("A", math.log(0.6)), ("B", math.log(0.4))]
        >>> by_letters([even, even], ["upper", "upper left"])["upper"].mean_logprob  # it goes by places alone
        -0.69315
    """
    letters = list(ascii_uppercase[: len(options)])
    by_order = []
    for tokens, order in zip(orders, (letters, letters[::-1]), strict=True):
        answers = first_tokens(tokens, letters)
        missing = [answer for answer in answers.values() if isinstance(answer, str)]
        logprobs = {name: answer.mean_logprob or 0.0 for name, answer in answers.items() if isinstance(answer, Answer)}
        mass = math.fsum(map(math.exp, logprobs.values()))
        if missing or mass < LEAST_MASS:
            missing.append(f"the letters hold {mass:.2f} of the first token, and no {LEAST_MASS:g}")
            return dict.fromkeys(options, missing[0])
        by_order.append([logprobs[letter] for letter in order])
    means = [math.fsum(pair) / len(pair) for pair in zip(*by_order, strict=True)]
    whole = max(means) + math.log(math.fsum(math.exp(mean - max(means)) for mean in means))
    logs = zip(options, means, strict=True)
    return {option: Answer(option, round(min(mean - whole, 0.0), 5), 1, "length") for option, mean in logs}


def first_tokens(likeliest: Iterable[tuple[str, float]], options: Sequence[str]) -> dict[str, Answer | str]:
    """Return how likely an answer begins with each option, or why that is not known.

    The probability is of an answer that begins so, and not of one that says nothing else: the answers have the `finish`
    "length". Tokens that differ in blanks around them spell the same option.

    Args:
        likeliest: tokens that an answer may begin with, each with its log-probability; one may stand there twice.
        options: all that the question offers.

    Example:
        >>> first_tokens([("Yes", -0.5), (" Yes", -3.0), ("No", -1.5)], ["No", "Yes", "Not sure"])["Yes"].mean_logprob
        -0.42111
    """
    by_option: dict[str, dict[tuple[int, ...], float]] = {option: {} for option in options}
    for i, (token, logprob) in enumerate(dict(likeliest).items()):
        if token.strip() in by_option:
            by_option[token.strip()][(i,)] = logprob
    answers: dict[str, Answer | str] = {}
    for option, spellings in by_option.items():
        longer = [text for text in options if text != option and text.startswith(option)]
        if longer:
            answers[option] = f"an answer that begins with {option!r} may go on as {longer[0]!r}"
        elif not spellings:
            answers[option] = f"{option!r} is none of the likeliest first tokens"
        else:
            answer = spelled_answer(option, spellings)
            answers[option] = Answer(option, answer.mean_logprob, 1, "length")
    return answers
