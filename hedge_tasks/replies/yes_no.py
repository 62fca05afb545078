"""Yes or no, also where it is said in a clause about what was asked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from hedge_tasks.replies.clauses import AFFIRMED, DENIED, OPEN, WORD, Clause, clauses, polarity, stem, turned
from hedge_tasks.replies.reading import LEADING, LINE, OPENING, Reading
from hedge_tasks.replies.statements import OUTSIDE, SEVERAL, AnswerMatch, Answers, choose
from hedge_tasks.replies.text import body, plain, spelled_out
from hedge_tasks.replies.wording import cues, opposites, pattern_of, phrases, words

YES, NO = "yes", "no"

_END = re.compile(r"\s*(?:[.,;:!?()\]\"'\n/&|।…]|-(?!\w)|\Z)")
_BOTH = re.compile(
    r"(?:yes\W{1,3}(?:and|or)?\W{0,3}no|no\W{1,3}(?:and|or)?\W{0,3}yes)\b(?!\W+\w)|either yes or no", re.I
)
_MARKED = re.compile(
    r"(?<!\w)[(\[]?([A-Za-z0-9])[\"']?\s*(?:[).:=\]]|for\b|if\b|means\b)\s*[\"']?(yes|no)\b", re.IGNORECASE
)
_MARK_ONLY = re.compile(
    r"[(\[]?([A-Za-z0-9])(?![.,]\d)(?=[)\].:,]|\s*\Z|\n)[)\].:,]*\s*(?:[\"']?(?P<said>yes|no)\b)?", re.I
)
_LABELLED = re.compile(r"(?m)(?:^[^\S\n]*(?:A|R|TL;?DR|Reply)\s*[:-]|(?<=\?)\s+A:)\s*(?=\w)")
_SECOND_ITEM = re.compile(r"(?m)^\W{0,4}B\s*[:.)-]")
_FEW = 3
_PRESENT = frozenset(["present", "absent", "visible", "seen", "detected"])
_NORMAL = frozenset(["normal", "unremarkable"])
_QUESTION = re.compile(r"(?<![^.!?\n])[^.!?\n]*+\?")


@dataclass(frozen=True)
class YesNo(Answers):
    """The two answers to a question.

    Attributes:
        question: as it was asked ("Is there a dog in the image?"), or the name of what it asks for ("a dog").
    """

    question: str = ""

    @cached_property
    def asked_marks(self) -> dict[str, str]:
        """The letters or digits that the question gives to yes and to no."""
        marked = {mark.casefold(): answer.casefold() for mark, answer in _MARKED.findall(self.question)}
        return marked if set(marked.values()) == {YES, NO} and len(marked) == 2 else {}

    @cached_property
    def spoken(self) -> str:
        """The question itself, lower case, without introduction."""
        text = _MARKED.sub(" ", self.question) if self.asked_marks else self.question
        lines = [line for line in plain(text).splitlines() if line.strip()]
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
    def sides(self) -> Set[str]:
        """Words on whose either side things stand that must not change places: "above", "than"."""
        return frozenset() if self.presence else words("place") | {"than"}

    @cached_property
    def negated(self) -> bool:
        return polarity(self.spoken) != AFFIRMED

    @cached_property
    def presence(self) -> bool:
        """Whether it asks if something is there."""
        spoken = WORD.findall(self.spoken)
        bare = not {"is", "are", "was", "were", "does", "do", "can", "has", "have"} & set(spoken[:1])
        return bool(cues("presence").match(self.spoken) or bare or not words("shows").isdisjoint(spoken[1:])) and bool(
            self.topic
        )

    @cached_property
    def head(self) -> str:
        """The thing whose denial is a no: the last word in front of where it would be."""
        spoken = WORD.findall(self.spoken)
        front = [stem(word) for word in spoken[: _place(spoken, 3)] if stem(word) in self.topic]
        return front[-1] if front else self.topic[-1] if self.topic else ""

    @property
    def _finding(self) -> bool:
        """Whether it asks for something that is not there where all is normal."""
        ending = any(self.head.endswith(end) for end in words("finding_ending"))
        return self.presence and (self.head in words("finding") or ending)

    def marks(self) -> frozenset[str]:
        return frozenset(mark.upper() for mark in self.asked_marks) or frozenset("ABCD")

    def at(self, text: str) -> AnswerMatch | None:
        if match := _BOTH.match(text):
            return AnswerMatch(SEVERAL, match.end())
        if self.asked_marks and (match := _MARK_ONLY.match(text)):
            value = self.asked_marks.get(match[1].casefold())
            if value is not None:
                return AnswerMatch(value if (match["said"] or value).casefold() == value else SEVERAL, match.end())
        if match := cues("none_of").match(text):
            return AnswerMatch(OUTSIDE, match.end())
        if cues("neutral").match(text):
            return None
        for value, pattern in ((NO, _polar("no")), (YES, _polar("yes"))):
            if (match := pattern.match(text)) and _set_off(match[0].casefold(), text, match.end()):
                return AnswerMatch(value, match.end())
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
        answers, strange = [], False
        for clause in every:
            begun = self.at(clause.original)
            if begun is not None and set(WORD.findall(clause.text[begun.end :])[:1]) & words("place"):
                answers.append((begun.value, False))  # "yes on the left, no on the right"
                continue
            if self.negated or not self.topic:
                continue
            value = self._bare(clause) if not strange else None
            if value is not None:
                answers.append((value, True))
                continue
            last = self.at(clause.words[-1]) if clause is not every[0] and len(clause.words) <= _FEW else None
            if last is not None and clause.polarity != OPEN:
                answers.append((last.value, False))  # "also nein"
                continue
            value = self._clause(clause)
            rivals = {word for thing in self.topic for word in opposites().get(thing, frozenset())} - words("side")
            others = set(self._up_to(clause)) - self.things - rivals - words("picture_word") - _NORMAL
            strange |= bool(others)
            if value is not None:
                answers.append((value, not others))
        return answers

    def doubtful(self, value: str, every: list[Clause]) -> bool:
        """Whether a clause says that something else is there: "Yes, there is a cat", of a dog."""
        if value != YES or not self.presence:
            return False
        return any(
            c.own and c.words[:1] == ("there",) and self.things.isdisjoint(c.own) and self._bare(c) is None
            for c in every[:2]
        )

    def _up_to(self, clause: Clause) -> Sequence[str]:
        """The own words of a clause; of one that says that a thing is there, those up to it: where it is may follow."""
        if clause.polarity == DENIED or not self.presence or self.head not in clause.own or not self._exists(clause):
            return clause.own
        return clause.own[: clause.own.index(self.head) + 1]

    def _exists(self, clause: Clause) -> bool:
        """Whether a clause says that a thing is there: "there is a mass", "a mass is seen", not "a mass grew"."""
        at = clause.stems.index(self.head) if self.head in clause.stems else 0
        behind = clause.words[at + 1 :]
        there = not words("verb").isdisjoint(clause.words[:at])
        return there or not Clause(" ".join(behind[: _place(behind)])).own

    def _bare(self, clause: Clause) -> str | None:
        """ "There is one", "I do not see any", "absent": a clause without a word of its own."""
        spoken = self._in_front(clause)
        if clause.polarity == OPEN or cues("doubt").search(clause.text):
            return None
        denied, has_verb = clause.polarity == DENIED, not words("verb", "en").isdisjoint(spoken)
        alone = self.presence and not _PRESENT.isdisjoint(spoken)
        speaks = has_verb and not words("stand_in").isdisjoint(spoken)
        if not (speaks or alone or (denied and has_verb and "not" in spoken)):
            return None
        return NO if denied else YES if self.presence else None

    def _in_front(self, clause: Clause) -> Set[str]:
        """The words in front of where a thing is, of a clause that has no word of its own besides; else none."""
        front = _place(clause.words, 1)
        elsewhere = Clause(" ".join(clause.words[front:])).own if clause.own else ()
        if len(clause.own) > len(elsewhere) or (elsewhere and (clause.polarity == DENIED or not self.presence)):
            return frozenset()
        return frozenset(clause.words[:front])

    def _clause(self, clause: Clause) -> str | None:
        if clause.polarity == OPEN:
            return None
        own, topic = set(clause.own), self.things
        if own & _NORMAL and self._finding and own <= _NORMAL | words("picture_word"):
            return NO if clause.polarity == AFFIRMED else None  # "the scan looks normal", asked for a lesion
        if topic <= own and turned(self.in_order, clause.stems, self.topic, self.sides):
            return None
        rivals = {word for word in topic - own if own & opposites().get(word, frozenset()) - topic}
        if rivals:
            return NO if clause.polarity == AFFIRMED and self._near(own, rivals) else None
        if clause.polarity == DENIED:
            return NO if self._denies(clause, own) else None
        return YES if self._affirms(clause, own) else None

    def _near(self, own: set[str], rivals: set[str]) -> bool:
        """Whether the words of a clause are about what was asked, but for the opposites of some of its words."""
        about = self.things - rivals
        if not about:
            return own <= words("picture_word") | {o for word in rivals for o in opposites()[word]}
        return about <= own or (not self.presence and self.topic[0] in own)

    def _affirms(self, clause: Clause, own: set[str]) -> bool:
        """Whether a clause names all that was asked, and states it."""
        if not self.things <= own:
            return False
        if self.presence and clause.words[0] in ("a", "an") and own != self.things:
            return True  # "a cat sleeps" is said where there is one
        return not words("verb").isdisjoint(clause.words) and (not self.presence or self._exists(clause))

    def _denies(self, clause: Clause, own: set[str]) -> bool:
        """Whether what a clause denies is what was asked."""
        elsewhere = any(opposites().get(word, frozenset()) & own for word in self.topic)  # another side than asked
        if self.things <= own or (self.presence and self.head in own and not elsewhere):
            return True
        pronoun = clause.words[0] in ("it", "he", "she", "they", "this", "that") and set(self.topic[1:]) <= own
        return pronoun and len(self.topic) > 1 and not self.presence


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
    read = choose(reply if _SECOND_ITEM.search(reply) else _LABELLED.sub("Answer: ", reply), answers, cut=cut)
    spoken = body(reply)
    own_question = _QUESTION.match(spoken) if isinstance(spoken, str) else None
    own = clauses(own_question[0].rstrip("?")) if own_question else []
    stems = set(own[0].own) if own else set()
    if read.basis in (LINE, OPENING) and stems and answers.topic and stems.isdisjoint(answers.topic):
        return Reading(read.value, LEADING)  # "Are the lungs expanded? Yes.", asked about something else
    return read
