"""Yes or no, also where it is said in a clause about what was asked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import takewhile
from typing import Any

from hedge_tasks.replies.clauses import AFFIRMED, DENIED, OPEN, WORD, Clause, clauses, polarity, stem, turned
from hedge_tasks.replies.reading import LEADING, LINE, OPENING, Reading
from hedge_tasks.replies.statements import OUTSIDE, AnswerMatch, Answers, choose
from hedge_tasks.replies.text import body, plain, spelled_out
from hedge_tasks.replies.wording import cues, opposites, pattern_of, phrases, words

YES, NO = "yes", "no"

_END = re.compile(r"\s*(?:[.,;:!?()\]\"'\n/&|।…]|-(?!\w)|\Z)")
_FEW = 3
_PRESENT = frozenset(["present", "absent", "visible", "seen", "detected"])
_ARTICLES = frozenset(["a", "an", "any", "one", "some", "no"])
_DEFINITE = frozenset(["the", "this", "that", "these", "those", "his", "her", "their", "its", "my", "your", "our"])
_QUESTION = re.compile(r"(?<![^.!?\n])[^.!?\n]*+\?")


@dataclass(frozen=True)
class YesNo(Answers):
    """The two answers to a question.

    Attributes:
        question: as it was asked ("Is there a dog in the image?"), or the name of what it asks for ("a dog").
    """

    question: str = ""

    @cached_property
    def spoken(self) -> str:
        """The question itself, lower case, without introduction."""
        lines = [line for line in plain(self.question).splitlines() if line.strip()]
        asked = next((line for line in reversed(lines) if "?" in line), lines[-1] if lines else "")
        return " ".join(spelled_out(asked.split("?")[0]).split())

    @cached_property
    def in_order(self) -> tuple[str, ...]:
        return tuple(map(stem, WORD.findall(self.spoken)))

    @cached_property
    def topic(self) -> tuple[str, ...]:
        """Stems of what the question is about: its words but those of grammar, and pictures where others are left."""
        own = [stem(word) for word in WORD.findall(self.spoken) if word not in words("grammar")]
        things = [word for word in own if word not in words("picture_word")]
        return tuple(dict.fromkeys(things or own))

    @cached_property
    def things(self) -> Set[str]:
        return frozenset(self.topic)

    @cached_property
    def negated(self) -> bool:
        return polarity(self.spoken) != AFFIRMED

    @cached_property
    def presence(self) -> bool:
        """Whether it asks if one thing is there."""
        spoken = WORD.findall(self.spoken)
        bare = not {"is", "are", "was", "were", "does", "do", "can", "has", "have"} & set(spoken[:1])
        shows = bool(cues("presence").match(self.spoken)) or bare or not words("shows").isdisjoint(spoken[1:])
        front = self.in_order[: _place(spoken, 3)]
        name = [at for at, word in enumerate(front) if word in self.topic] or [0, 0]
        return shows and bool(self.topic) and name[-1] - name[0] < len(name)

    @cached_property
    def head(self) -> str:
        """The thing whose denial is a no: the last word in front of where it would be."""
        spoken = WORD.findall(self.spoken)
        front = [stem(word) for word in spoken[: _place(spoken, 3)] if stem(word) in self.topic]
        return front[-1] if front else self.topic[-1] if self.topic else ""

    def marks(self) -> frozenset[str]:
        return frozenset("ABCD")

    def at(self, text: str) -> AnswerMatch | None:
        if match := cues("none_of").match(text):
            return AnswerMatch(OUTSIDE, match.end())
        if cues("neutral").match(text):
            return None
        for value, pattern in ((NO, _polar("no")), (YES, _polar("yes"))):
            if (match := pattern.match(text)) and _set_off(match[0].casefold(), text, match.end()):
                sided = match[0].casefold() in words("side") and not words("side").isdisjoint(WORD.findall(self.spoken))
                return None if sided else AnswerMatch(value, match.end())  # "right" may be a side
        return None

    def of_json(self, value: object) -> str | None:
        return {True: YES, False: NO}.get(value) if isinstance(value, bool) else None

    def in_object(self, some: Mapping[str, Any]) -> set[str]:
        """`{"bicycle": false}`, or any one flag of presence: `{"object": "bicycle", "present": true}`."""
        flags = [key for key in some if key.casefold().replace(" ", "_") in phrases("present_key")]
        texts = " ".join(value for value in some.values() if isinstance(value, str))
        named = set(map(stem, WORD.findall(texts.casefold())))
        answers = set()
        for key, value in some.items():
            flag = self.at(value) if isinstance(value, str) else None
            text = self.of_json(value) if flag is None else flag.value
            about = {
                stem(word) for word in WORD.findall(key.casefold().replace("_", " ")) if word not in words("grammar")
            }
            mine = bool(about) and about <= self.things
            flagged = flags == [key] and self.presence and (len(some) == 1 or self.head in named)
            if text in (YES, NO) and not self.negated and (mine or flagged):
                answers.add(text)
        return answers

    def said(self, every: list[Clause]) -> list[tuple[str, bool]]:
        """Yes where a clause states what was asked, no where one denies it; what else they say counts for nothing."""
        answers: list[tuple[str, bool]] = []
        strange = False
        for clause in every:
            answer = self._half(clause)
            if answer is None and self.topic and not self.negated:
                answer = None if strange else self._bare(clause)
                answer = answer or (self._last(clause) if clause is not every[0] else None) or self._stated(clause)
                strange |= answer is None and bool(self._others(clause))
            answers += [answer] if answer else []
        return answers

    def _half(self, clause: Clause) -> tuple[str, bool] | None:
        """ "Yes on the left, no on the right"."""
        begun = self.at(clause.original)
        if begun is None or words("place").isdisjoint(WORD.findall(clause.text[begun.end :])[:1]):
            return None
        return begun.value, False

    def _last(self, clause: Clause) -> tuple[str, bool] | None:
        """ "Also nein"."""
        last = self.at(clause.words[-1]) if len(clause.words) <= _FEW and clause.polarity != OPEN else None
        return None if last is None else (last.value, self.presence and len(clause.words) == 1)

    def _others(self, clause: Clause) -> Set[str]:
        """The words of a clause for something else than what was asked."""
        rivals = {word for thing in self.topic for word in opposites().get(thing, frozenset())} - words("side")
        return set(clause.own) - self.things - rivals - words("picture_word")

    def doubtful(self, value: str, every: list[Clause]) -> bool:
        """Whether a clause says that something else is there: "Yes, there is a cat", of a dog."""
        if value != YES or not self.presence:
            return False
        return any(
            c.own and c.words[:1] == ("there",) and self.things.isdisjoint(c.own) and self._bare(c) is None
            for c in every[:2]
        )

    def _named(self, clause: Clause) -> tuple[str, bool] | None:
        """Yes where a clause names the thing asked for as one that is there, no where it denies that there is one.

        Its noun phrase has to end with the name ("a dog house" is no dog), and the denial has to be of the thing: in
        front of it ("no dog", "not wearing a tie", but not "no food on the plate"), or that it is to be seen.
        """
        noun = _Noun.of(clause, self.head)
        if noun.is_compound:
            return None
        if clause.polarity == DENIED:
            return (NO, set(noun.modifiers) <= self.things) if noun.is_denied else None
        is_stated = self.things <= set(clause.own) and clause.text not in self.spoken
        return (YES, True) if is_stated and not noun.is_apart else None

    def _bare(self, clause: Clause) -> tuple[str, bool] | None:
        """ "There is one", "I do not see any", "absent": a clause without a word of its own."""
        spoken = self._in_front(clause)
        if clause.polarity == OPEN or cues("doubt").search(clause.text):
            return None
        denied, has_verb = clause.polarity == DENIED, not words("verb", "en").isdisjoint(spoken)
        alone = self.presence and not _PRESENT.isdisjoint(spoken)
        speaks = has_verb and not words("stand_in").isdisjoint(spoken)
        if not (speaks or alone or (denied and "not" in spoken)):
            return None
        return (NO if denied else YES, True) if denied or self.presence else None

    def _in_front(self, clause: Clause) -> Set[str]:
        """The words in front of where a thing is, of a clause that has no word of its own besides; else none."""
        front = _place(clause.words, 1)
        elsewhere = Clause(" ".join(clause.words[front:])).own if clause.own else ()
        if len(clause.own) > len(elsewhere) or (elsewhere and clause.polarity == DENIED):
            return frozenset()
        return frozenset(clause.words[:front])

    def _stated(self, clause: Clause) -> tuple[str, bool] | None:
        """The answer of a clause in the words of the question, and whether it is about nothing else."""
        if clause.polarity == OPEN:
            return None
        own, denied, alone = set(clause.own), clause.polarity == DENIED, not self._others(clause)
        rivals = {word for word in self.things - own if own & opposites().get(word, frozenset()) - self.things}
        if rivals:
            return (NO, alone) if not denied and self._near(own, rivals) else None
        if self.presence:
            return self._named(clause) if self.head in clause.stems else None
        if not self.things <= own:
            return (NO, alone) if denied and self._by_pronoun(clause) else None
        if turned(self.in_order, clause.stems, self.topic, words("place") | {"than"}):
            return None
        return (NO if denied else YES, alone) if denied or not words("verb").isdisjoint(clause.words) else None

    def _by_pronoun(self, clause: Clause) -> bool:
        """Whether a clause says all but the first thing that was asked, of a pronoun: "it is not enlarged"."""
        is_pronoun = clause.words[0] in ("it", "he", "she", "they", "this", "that")
        return is_pronoun and len(self.topic) > 1 and set(self.topic[1:]) <= set(clause.own)

    def _near(self, own: set[str], rivals: set[str]) -> bool:
        """Whether the words of a clause are about what was asked, but for the opposites of some of its words."""
        about = self.things - rivals
        if not about:
            return own <= words("picture_word") | {o for word in rivals for o in opposites()[word]}
        return about <= own or (not self.presence and self.topic[0] in own)


@dataclass(frozen=True)
class _Noun:
    """A noun of a clause with what stands around it.

    Attributes:
        word: as it is written.
        modifiers: the words in front of it that belong to it, the last first.
        article: the word in front of these, "" where there is none.
        governor: the word in front of the article, or of the modifiers where there is none: "on" of "on the sofa".
        before: the clause as far as the governor.
        behind: the rest of the clause.
    """

    word: str
    modifiers: Sequence[str]
    article: str
    governor: str
    before: Clause
    behind: Clause

    @classmethod
    def of(cls, clause: Clause, noun: str) -> _Noun:
        """The first place of a noun, of which the stem is given, in a clause that has it."""
        at = next(match for match in WORD.finditer(clause.text) if stem(match[0]) == noun)
        front, behind = (Clause(part) for part in (clause.text[: at.start()], clause.text[at.end() :]))
        free = words("verb") | words("place")
        modifiers = list(takewhile(lambda word: word not in free and stem(word) in front.own, front.words[::-1]))
        spoken = front.words[: len(front.words) - len(modifiers)]
        article = spoken[-1] if spoken and spoken[-1] in _ARTICLES | _DEFINITE else ""
        before = spoken[: len(spoken) - bool(article)]
        return cls(at[0], modifiers, article, "".join(before[-1:]), Clause(" ".join(before)), behind)

    @property
    def is_compound(self) -> bool:
        """Whether it is but the first part of a name: "a dog house", not "dogs sleep", "a dog sleeps"."""
        following = WORD.match(self.behind.text)
        if following is None or self.word != stem(self.word):
            return False
        endings = ("s", "ed", "ing") if self.article in _ARTICLES else ("ed", "ing")
        is_noun = stem(following[0]) in self.behind.own and following[0] not in words("verb") | words("place")
        return is_noun and not following[0].endswith(endings)

    @property
    def is_apart(self) -> bool:
        """Whether it is named without being there: "like a dog", "room for a dog", "head of a dog", "to buy a dog"."""
        is_part = self.governor in ("of", "than") and self.article in _ARTICLES
        is_aim = self.before.words[-2:-1] == ("to",) and stem(self.governor) in self.before.own
        return is_part or is_aim or self.governor in words("apart") or self.behind.words[:1] == ("or",)

    @property
    def is_denied(self) -> bool:
        """Whether the denial in its clause is of it: "no dog", not "no food on the dog", "the dog is not tall"."""
        is_new, is_next = self.article not in _DEFINITE, not self.before.own
        is_next |= any(cue.end() == len(self.before.text) for cue in cues("deny").finditer(self.before.text))
        if self.governor in words("place") and not self.governor.endswith("ing") and not (is_new and is_next):
            return False
        if polarity(f"{self.before.text} {self.article}") == DENIED:
            return is_new or not self.before.own
        front = Clause(" ".join(self.behind.words[: _place(self.behind.words)]))
        is_there = front.words[-1:] != ("not",) or not self.behind.own
        return is_there and not front.own and front.polarity == DENIED


def _place(spoken: Sequence[str], least: int = 0) -> int:
    """Where the words begin that say where something is; behind the last one where none do."""
    return next((at for at, word in enumerate(spoken) if at >= least and word in words("place")), len(spoken))


@cache
def _polar(role: str) -> re.Pattern[str]:
    return pattern_of(phrases(role))


def _set_off(word: str, text: str, end: int) -> bool:
    """Whether a yes or a no stands for itself: "no," and "no there is not", not "no mass"."""
    if _END.match(text, end):
        return len(word) > 1 or word in "✓✗是有对否不نه예네" or not text[end:].strip(" .!\n")
    if word in ("yes", "yeah", "yep", "yup"):
        return True
    if word not in ("no", "nope", "nah", "false", "incorrect", "wrong", "true", "correct", "right"):
        return False
    following = WORD.match(text, end + 1)
    return following is not None and following[0].casefold() in phrases("goes_on")


def read_yes_no(reply: str, question: str = "", *, cut: bool = False) -> Reading:
    """Yes, no, or why neither can be read.

    Args:
        reply: all that the model wrote.
        question: what was asked, or the name of the object that was asked for ("a dog"). Without it a sentence such as
            "There is a dog." says nothing, for there is nothing that it could be about.
        cut: whether the reply ended because it had become too long.

    Example:
        >>> print(read_yes_no("No."), read_yes_no("There is a cat.", "Is there a dog in the image?"))
        no (line) unreadable: no answer
    """
    answers = YesNo(question)
    read = choose(reply, answers, cut=cut)
    spoken = body(reply)
    own_question = _QUESTION.match(spoken) if isinstance(spoken, str) else None
    own = clauses(own_question[0].rstrip("?")) if own_question else []
    stems = set(own[0].own) if own else set()
    if read.basis in (LINE, OPENING) and stems and answers.topic and stems.isdisjoint(answers.topic):
        return Reading(read.value, LEADING)  # "Are the lungs expanded? Yes.", asked about something else
    return read
