"""Lettered options of a question, and their reversal, which shows how far a model goes by their places."""

from __future__ import annotations

import re
from string import ascii_uppercase
from typing import NamedTuple

_IN_BRACKETS = re.compile(r"\((?P<letter>[A-Z])\)\s*(?P<text>\S.*?)(?=[\s.;,]*(?:\([A-Z]\)|\n|$))")
_ON_LINES = re.compile(r"^[ \t]*\(?(?P<letter>[A-Z])[.):][ \t]+(?P<text>\S.*?)[ \t]*$", re.MULTILINE)

MOST = 26


class Option(NamedTuple):
    """An option of a question: its letter, its text, and where the text stands."""

    letter: str
    text: str
    start: int
    end: int


def options_in(question: str) -> tuple[Option, ...]:
    """The options of a multiple-choice question, with letters from A on; none where they cannot be told for sure.

    Example:
        >>> [option[:2] for option in options_in("Which color?\\nA. red\\nB. dark blue\\nAnswer with the letter.")]
        [('A', 'red'), ('B', 'dark blue')]
        >>> options_in("Is (A) red?")
        ()
    """
    for form in (_ON_LINES, _IN_BRACKETS):
        options = tuple(Option(m["letter"], m["text"], *m.span("text")) for m in form.finditer(question))
        # Of examples in the prompt, or letters in sentences, nobody knows which ones are meant.
        if len(options) >= 2 and ascii_uppercase.startswith("".join(option.letter for option in options)):
            return options
    return ()


def spellings(option: str) -> tuple[str, ...]:
    """Ways to write an offered answer as the whole reply, itself first: a letter may have brackets, or a full stop.

    Example:
        >>> spellings("A"), spellings("yes")
        (('A', '(A)', 'A.'), ('yes',))
    """
    is_letter = len(option) == 1 and option.isascii() and option.isupper()
    return (option, f"({option})", f"{option}.") if is_letter else (option,)


def reversed_question(question: str) -> str | None:
    """The question with the texts of its options in the other order, behind the same letters; None without options.

    The text behind the i-th letter stands behind the i-th from the end.

    Example:
        >>> reversed_question("Which color? (A) red (B) dark blue")
        'Which color? (A) dark blue (B) red'
    """
    options = options_in(question)
    if not options:
        return None
    parts, done = [], 0
    for option, opposite in zip(options, reversed(options), strict=True):
        parts += [question[done : option.start], opposite.text]
        done = option.end
    return "".join([*parts, question[done:]])


def reversed_letters(question: str) -> dict[str, str]:
    """Letter of each option -> letter behind which its text stands in the other order."""
    letters = [option.letter for option in options_in(question)]
    return dict(zip(letters, reversed(letters), strict=True))
