"""Comparing a short label with an answer: alternatives, lists and places of the reference, and what the answer says."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from hedge_tasks.judging.rule.names import Clause, Things, names, stem
from hedge_tasks.judging.rule.reading import NUMBER, Text
from hedge_tasks.judging.rule.vocabulary import words

SHORT_ANSWER = 6
"""Words of a first sentence that answers in words of the question; a longer one may give the question back."""

ROWS, COLUMNS = frozenset({"upper", "middle", "lower"}), frozenset({"left", "middle", "right"})
"""'upper-left' is one place."""


@dataclass(frozen=True)
class LabelCase:
    """An answer to a short-label reference, taken apart once for all rules of labels. Words are stems.

    Attributes:
        wanted: words of the reference, or of one of its alternatives.
        listed: whether the reference names several things.
        asked: words of the question.
        stated, denied: words that the beginning of the answer affirms and denies.
        first: words of its first sentence.
        told: all its content words.
        heads_known: whether the head words of both are known to the table of synonyms.
        says_yes_or_no: whether the answer says yes or no in so many words.
        of_many: whether the question asks for one of many things of a kind.
    """

    wanted: set[str]
    listed: bool
    asked: set[str]
    stated: set[str]
    denied: set[str]
    first: list[str]
    told: list[str]
    heads_known: bool
    says_yes_or_no: bool
    of_many: bool

    @property
    def name(self) -> str:
        """The reference, for people."""
        return " ".join(sorted(self.wanted))

    @cached_property
    def length(self) -> int:
        """How many of the answer's content words are not the question's."""
        return sum(word not in self.asked or word in self.needed for word in self.told)

    @cached_property
    def needed(self) -> set[str]:
        """Words of the question need not be said again: 'right' to 'which lung?'."""
        return self.wanted - self.asked or self.wanted

    @cached_property
    def kinds(self) -> set[Things]:
        """Of what is wanted."""
        return names().kinds_of(self.wanted)

    @cached_property
    def implied(self) -> set[str]:
        """The kinds of the things in the first sentence: 'glioblastoma' is a 'brain tumor'."""
        return set().union(*names().kinds_of(set(self.first) - self.denied))

    @cached_property
    def extra(self) -> set[str]:
        """Organs that the answer names beside those that are wanted."""
        organs = frozenset(map(stem, words("organs")))
        return (set(self.first) & organs) - self.wanted - self.asked - self.denied if self.wanted & organs else set()

    @cached_property
    def instead(self) -> set[str]:
        """Things that the answer says in place of those that are wanted."""
        return self.stated - self.wanted - self.asked - words("stop", "qualifiers")


def alternatives(reference: Text) -> list[set[str]]:
    """The reference's content words; several sets where it says 'a or b'."""
    groups: list[set[str]] = [set()]
    for word in reference.words:
        if word == "or":
            groups.append(set())
        elif word not in words("stop"):
            groups[-1].add(word)
    # Words around the thing are left out where there is a thing.
    return [group - words("frame") or group for group in groups if group]


def asks_for_one_of_many(question: Text) -> bool:
    """Does the question ask to name something of a kind that a picture shows many of, and single none of them out?

    To 'name one organ in the image' a reference is an example and not the only right answer.
    """
    asked = set(question.words)
    shown = words("many_of") & asked and words("pictured") & asked
    return bool(shown) and not set(question.content) - words("many_of", "pictured", "naming")


def is_list(reference: Text) -> bool:
    """Does the reference name several things: 'basal ganglia, cerebellum and cortex'?"""
    return sum(bool(set(clause) - words("stop")) for clause in reference.clauses) > 1 or "and" in reference.words[1:-1]


def items(text: Text) -> set[str]:
    """The topic of a sentence: content words, a place such as 'upper-left' as one of them."""
    topic: set[str] = set()
    for clause in text.clauses:
        left = [word for word in reversed(clause) if word not in words("stop", "frame", "negations")]
        while left:
            word = left.pop()
            pair = {word, left[-1]} if left else set()
            is_place = len(pair) == 2 and pair <= ROWS | COLUMNS and bool(pair & ROWS) and bool(pair & COLUMNS)
            topic.add("-".join(sorted((word, left.pop()))) if is_place else word)
    return topic


def places(topic: set[str]) -> set[str]:
    """The items of a topic that are places."""
    return {item for item in topic if not set(item.split("-")) - ROWS - COLUMNS}


def comparable(missing: set[str], instead: set[str]) -> bool:
    """Are there words on both sides that the table knows, so that other words are another thing?"""
    lacking, words_ = ({word for item in side for word in item.split("-")} for side in (missing, instead))
    return (not lacking or bool(lacking & names().known)) and (not words_ or bool(words_ & names().known))


def head_known(clauses: list[Clause]) -> bool:
    """Is the head word of a clause known, or what it says a number?"""
    heads = [head for clause in clauses if (head := _head(clause)) is not None]
    return any(stem(head) in names().known or NUMBER.fullmatch(head) for head in heads)


def _head(clause: Clause) -> str | None:
    """The last word with a meaning before a preposition, no side or size if there is another."""
    chunk: list[str] = []
    for word in clause:
        if word in words("prepositions") and chunk:
            break
        if word not in words("stop"):
            chunk.append(word)
    specific = [word for word in chunk if word not in words("qualifiers")]
    return next(iter((specific or chunk)[-1:]), None)
