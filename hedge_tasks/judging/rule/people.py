"""Telling that a question asks for a person, and that two full names are those of two people."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from hedge_tasks.judging.rule.reading import Text, unaccented
from hedge_tasks.judging.rule.vocabulary import ADDRESS, OTHER_NAMES, PARTICLES, PEOPLE, TITLES

_WORD = re.compile(r"[^\W\d_]+(?:['\u2019.-][^\W\d_]+)*\.?")
_FULL_NAME = (2, 4)
"""Words of a name: one alone may be a first name of the other, more are a sentence."""

_ALIKE = 0.7
"""Words that have more in common may be one name in two spellings."""


def two_people(question: Text, reference: str, answer: str) -> bool:
    """Do reference and answer name two people in full, who share no name, where the question asks for one?

    Other names of one person (stage names, titles) are asked for in words of their own, and are not told apart here.
    """
    words = question.words
    if not words or OTHER_NAMES & set(words) or not (words[0] in ("who", "whose", "whom") or _asks_for(words)):
        return False
    reference_name, answer_name = _full_name(reference), _full_name(answer)
    return bool(reference_name and answer_name) and not any(_alike(a, b) for a in reference_name for b in answer_name)


def _asks_for(question_words: Sequence[str]) -> bool:
    """'Which American actress played ...': a kind of people near the beginning."""
    return question_words[0] in ("which", "what", "name") and bool(PEOPLE & set(question_words[1:5]))


def _full_name(text: str) -> list[str]:
    """The words of a name of a person, without how one addresses them; empty if it is none, or has a title."""
    text = text.strip().rstrip(".")
    matches = _WORD.findall(text)
    if re.sub(r"[\s.]", "", text) != re.sub(r"\.", "", "".join(matches)):
        return []
    words = [word.rstrip(".") for word in matches]
    names = [word for word in words if word.casefold() not in ADDRESS]
    folded = [unaccented(word).casefold() for word in names if word.casefold() not in PARTICLES]
    least, most = _FULL_NAME
    if not least <= len(folded) <= most or TITLES & set(folded) or any(len(word) < 2 for word in folded):
        return []
    return folded if all(word[0].isupper() for word in names if word.casefold() not in PARTICLES) else []


def _alike(a: str, b: str) -> bool:
    return SequenceMatcher(None, a, b, autojunk=False).ratio() > _ALIKE
