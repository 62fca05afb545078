"""Which COCO objects a text mentions.

The vocabulary is closed, so nothing is tagged or parsed: words are looked up, singular or plural (inflect), longest
phrase first. A part-of-speech tagger that needs no download (TextBlob's) was tried instead on 400 human captions with
known objects: it would drop 18 right mentions ("with a sink" as a verb) for the 6 wrong ones it finds. What it would be
needed for is done by a few rules of grammar:

- right after a subject pronoun or a modal a word is a verb ("he trains", "she can bear"), and likewise a bare singular
  after "to" ("to book"), unless this "to" says where ("next to bench");
- "orange" is the fruit, as in CHAIR, though it may be a colour;
- of a hyphenated word its last part counts ("mountain-bike"), or the whole ("wine-glass"): "tie-dye" is no tie;
- a seat beside a toilet is its seat (as in CHAIR).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from hedge_tasks.suites.vope.vocabulary import Vocabulary, coco, engine, word_set

_TOKEN = re.compile(r"\w+(?:-\w+)*|[^\s\w]")
_POSSESSIVE = re.compile(r"['’]s?\b", re.IGNORECASE)
_WORD = re.compile(r"\w\w")
_NEGATED = re.compile(r"n['’]t\b", re.IGNORECASE)

_OF_PLURALS = {"children": "child", "oxen": "ox"}
"""Plurals that CHAIR lists as words of their own."""

_BEFORE_VERBS = word_set(
    "i he she they we who will would could can must should might may shall cannot not don doesn didn won"
)
"""Words that a verb follows, and a noun does not."""

_PLACES = word_set("next close closer near nearer adjacent opposite up close-up due")
"""Words whose "to" is followed by a thing."""


@dataclass(frozen=True, slots=True)
class Mention:
    """One mention of an object.

    Attributes:
        word: as the vocabulary spells it, in the singular ("puppy").
        category: of COCO ("dog").
        start, end: numbers of its first token and of the one after its last.
    """

    word: str
    category: str
    start: int
    end: int


def mentions(text: str, vocabulary: Vocabulary | None = None) -> list[Mention]:
    """Return all mentions of objects in a text, in order.

    Example:
        >>> [m.word for m in mentions("Two Puppies and a wine glass on the dining table; he trains them.")]
        ['puppy', 'wine glass', 'dining table']
    """
    vocabulary = coco() if vocabulary is None else vocabulary
    words = tokens(text)
    all_mentions = list(_mentions(words, [_base(word, vocabulary) for word in words], vocabulary))
    if any(mention.category == "toilet" for mention in all_mentions):
        all_mentions = [mention for mention in all_mentions if mention.word != "seat"]
    return all_mentions


def objects_in(text: str) -> list[tuple[str, str]]:
    """Return the different objects that a text mentions, as (word, category) in the order of their first mention.

    As in the reference code, a man and a woman are two objects.
    """
    return list(dict.fromkeys((mention.word, mention.category) for mention in mentions(text)))


def places(text: str, in_text: Sequence[Mention]) -> list[tuple[int, int] | None]:
    """Begin and end of each mention in the text as it was written; None where normalisation has moved it.

    Example:
        >>> text = "Don't touch the wine glasses."
        >>> [text[slice(*place)] for place in places(text, mentions(text))]
        ['wine glasses']
    """
    plain, at = text.lower(), 0
    same_length = len(plain) == len(text)  # of a few letters the lower case is longer
    spans: list[tuple[int, int] | None] = []
    for token in tokens(text):
        start = plain.find(token, at) if same_length else -1
        # No word is passed over: "n't" is read as "not", and the next "not" is another one.
        if start < 0 or _WORD.search(plain, at, start):
            spans.append(None)
            continue
        at = start + len(token)
        spans.append((start, at))
    ends = [(spans[mention.start], spans[mention.end - 1]) for mention in in_text]
    return [(first[0], last[1]) if first and last else None for first, last in ends]


def tokens(text: str) -> list[str]:
    """Words and punctuation marks, lower case; possessive endings gone, "don't" is "don not"."""
    plain = _NEGATED.sub(" not", unicodedata.normalize("NFKC", text).lower())
    return _TOKEN.findall(_POSSESSIVE.sub("", plain))


def _mentions(tokens: Sequence[str], bases: Sequence[str], vocabulary: Vocabulary) -> Iterator[Mention]:
    longest = max((phrase.count(" ") + 1 for phrase in vocabulary.phrases), default=1)
    at = 0
    while at < len(tokens):
        size, meaning = _phrase_at(at, tokens, bases, vocabulary, longest)
        if size > 1:
            if meaning in vocabulary.categories:
                yield Mention(meaning, vocabulary.categories[meaning], at, at + size)
        elif bases[at] in vocabulary.categories and _is_object(at, tokens, bases):
            yield Mention(bases[at], vocabulary.categories[bases[at]], at, at + 1)
        at += size


def _phrase_at(
    at: int, tokens: Sequence[str], bases: Sequence[str], vocabulary: Vocabulary, longest: int
) -> tuple[int, str]:
    """Length and meaning of the longest phrase that begins here; length 1 where there is none.

    Only the last word of a phrase is inflected: "wine glasses" is one, "hots dog" none.
    """
    for size in range(min(longest, len(tokens) - at), 1, -1):
        phrase = " ".join((*tokens[at : at + size - 1], bases[at + size - 1]))
        if phrase in vocabulary.phrases:
            return size, vocabulary.phrases[phrase]
    return 1, ""


def _is_object(at: int, tokens: Sequence[str], bases: Sequence[str]) -> bool:
    before = tokens[at - 1] if at else ""
    if before in _BEFORE_VERBS:
        return False
    bare = tokens[at] == bases[at] and _has_plural(tokens[at])
    return not (before == "to" and bare and not (at > 1 and tokens[at - 2] in _PLACES))


@cache
def _has_plural(word: str) -> bool:
    """Whether the word has a plural of its own, so that a singular without an article is hardly a noun."""
    return word not in ("people", "cattle", "luggage") and engine().plural_noun(word) != word


def _base(token: str, vocabulary: Vocabulary) -> str:
    """Return the word of the vocabulary that a token is a form of; the token itself where there is none."""
    if "-" in token:
        first, _, last = token.rpartition("-")
        last = _base(last, vocabulary)
        whole = " ".join((*first.split("-"), last))
        return next((form for form in (whole, whole.replace(" ", "")) if form in vocabulary.categories), last)
    if token in vocabulary.categories:
        return _OF_PLURALS.get(token, token)
    return _singular(token)


@cache
def _singular(token: str) -> str:
    if len(token) < 3 or not token.isalpha():
        return token
    return str(engine().singular_noun(token) or token)
