"""A judge without a model: fixed rules for closed questions and short references.

It decides what can be decided from the words alone (yes/no, counts, sizes, a short label and its opposite) and says so
when it cannot: a paraphrase, a synonym it does not know, a long free text. The rules are tried in order, and the first
that applies decides; its id starts the reason of the verdict. The README of `judging` has them all, how often they are
right, and where they are wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence, Set
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

from hedge_tasks.judging.base import HALLUCINATED, SUPPORTED, Case, Verdict
from hedge_tasks.judging.config import Spec
from hedge_tasks.judging.fallback import Fallback
from hedge_tasks.judging.outcomes import of_unanswered
from hedge_tasks.judging.rule.labels import (
    SHORT_ANSWER,
    LabelCase,
    alternatives,
    asks_for_one_of_many,
    comparable,
    head_known,
    is_list,
    items,
    places,
)
from hedge_tasks.judging.rule.measure import Size, counted_nouns, sizes_in
from hedge_tasks.judging.rule.names import names, stem
from hedge_tasks.judging.rule.polar import says_yes_or_no, yes_no_reference
from hedge_tasks.judging.rule.reading import LONGEST, Text, affirmed_and_denied, may_deny, read_text
from hedge_tasks.judging.rule.vocabulary import families, words
from hedge_tasks.replies import Reading, read_yes_no
from hedge_tasks.replies.declining import unanswered
from hedge_tasks.replies.reading import ECHO, NOTICE, UNANSWERED, unreadable

SHORT_REFERENCE = 6
"""A reference with more content words is a sentence, not a label."""

_SILENT = "silent"
"""In place of a rule: the answer is none."""

_SHARED = 0.6
"""Share of a sentence's things below which an answer is about something else."""

_DATE = re.compile(r"(?<!\d)(?:\d{1,4}[/.-]\d{1,4}[/.-]\d{1,4}|(?:19|20)\d{2}\b)")
"""Of a picture's margin; no answer to anything. Bounded: a million digits are searched in linear time."""

_MARKED = re.compile(r"\d[,'\u2019\u202f]\d")
"""Numbers that depend on the language: 2,5 and 1'200."""
_BESIDE = 2
"""Words that a reference that is a number may have besides: "4 large lesions"."""

_LETTERS = 6
"""Of a name that may be written as one word or as two."""

_NO_BRACKETS = str.maketrans("()", "  ")
"""'Flash (Gordon)' is one thing, and no list of two."""

_PROMPT = "reply_yes_no"


class Decision(NamedTuple):
    """The word of a rule on an answer; `polar` is what was read of one to a yes-or-no question."""

    label: int | None
    rule: str
    why: str
    polar: Reading | None = None


class RuleJudge:
    """Judge closed and short answers by fixed rules; decline the rest.

    Args:
        fallback: a judge model that reads yes or no where the rules cannot, or only softly (`llm:model=...`); None for
            the model that replied, see `ReplyJudge`.
    """

    name = "rule"
    version = "15"

    def __init__(self, *, fallback: Spec | None = None) -> None:
        self.fallback = Fallback(fallback, (_PROMPT,))
        self.parts = self.fallback.parts

    def settings(self) -> dict[str, Any]:
        return {"judge": self.name, "version": self.version, **self.fallback.settings()}

    def judge(self, cases: Sequence[Case]) -> list[Verdict]:
        """One verdict a case, in their order."""
        compared = [_Compared(case) for case in cases]
        decisions = [beside.decision for beside in compared]
        polar = [(i, decision.polar) for i, decision in enumerate(decisions) if decision.polar is not None]
        readings = self.fallback.read([(cases[i], reading, _PROMPT) for i, reading in polar])
        for (i, _), reading in zip(polar, readings, strict=True):
            decisions[i] = _of_reading(compared[i].truth, reading)
        return [self._verdict(decision) for decision in decisions]

    def _verdict(self, decision: Decision) -> Verdict:
        if decision.rule == _SILENT:
            return of_unanswered(decision.why, self.name, self.version)
        basis = None if decision.polar is None else decision.polar.basis
        return Verdict(decision.label, f"{decision.rule}: {decision.why}", self.name, self.version, basis=basis)


def _of_reading(truth: bool | None, read: Reading) -> Decision:
    """The decision on an answer to a yes-or-no question."""
    if read.basis in UNANSWERED:
        return Decision(None, _SILENT, read.basis, read)
    if read.value is None or read.soft:
        return Decision(None, "polar", f"unconfirmed: {read}" if read.soft else str(read), read)
    due = "yes" if truth else "no"
    label = SUPPORTED if read.value == due else HALLUCINATED
    return Decision(label, "polar", f"the answer says {read}; the reference is {due}", read)


class _Compared:
    """An answer beside its question and reference."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.question = read_text(case.question)
        self.reference = read_text(case.reference.translate(_NO_BRACKETS))
        self.answer = read_text(case.answer, statements_only=True)

    @cached_property
    def truth(self) -> bool | None:
        """The truth, where the reference is yes or no, or 'No, there is no pneumothorax' to a yes-or-no question."""
        bare = yes_no_reference(self.case.reference)
        return says_yes_or_no(self.case.reference) if bare is None and self.asks_yes_or_no else bare

    @cached_property
    def asks_yes_or_no(self) -> bool:
        spoken = self.question.words
        return bool(spoken) and spoken[0] in words("auxiliary") and "or" not in spoken

    @cached_property
    def says_yes_or_no(self) -> bool:
        return says_yes_or_no(self.case.answer) is not None

    @property
    def decision(self) -> Decision:
        """The first rule's that applies."""
        for rule in (self._nothing, self._number, self._polar, self._equal):
            if (decision := rule()) is not None:
                return decision
        reference = self.reference.stems
        if words("negations") & set(reference.words):
            return self._sentence()
        every = alternatives(reference)
        if not every:
            return Decision(None, "open-reference", "the reference has no word that can be compared")
        if max(map(len, every)) > SHORT_REFERENCE or (is_list(reference) and _pairs(reference)):
            return self._sentence()
        decisions = [self._label(wanted) for wanted in every]
        # 'a or b': one alternative that fits is enough; and only when none may fit is the answer called wrong.
        order = (SUPPORTED, None, HALLUCINATED)
        return min(decisions, key=lambda decision: order.index(decision.label))

    def _nothing(self) -> Decision | None:
        if not self.reference.words:
            return Decision(None, "no-reference", "there is no reference")
        why = unanswered(self.case.answer[:LONGEST], cut=self.case.cut)
        if why is None and (not self.answer.words or self._plays):
            why = ECHO
        return None if why is None or self.says_yes_or_no else Decision(None, _SILENT, why)

    @property
    def _plays(self) -> bool:
        """Does the answer begin with what somebody has or wants ('Human: I want to ...'), and not with the picture?"""
        first, then = ([word for word in self.answer.words if word not in words("roles")] + ["", ""])[:2]
        return first == "i" and then in words("askers")

    def _polar(self) -> Decision | None:
        if self.truth is None:
            return None
        text = self.case.answer
        if "%" in text or any(word.isalpha() for word in self.answer.words):
            return _of_reading(self.truth, read_yes_no(text, self.case.question, cut=self.case.cut))
        if _DATE.search(text):
            return _of_reading(self.truth, unreadable(NOTICE))
        return Decision(HALLUCINATED, "wrong-type", "a number where yes or no was asked for")

    def _equal(self) -> Decision | None:
        """The same words; or the same content words in another order, neither negated, and the same places."""
        answer, reference = self.answer, self.reference
        same = answer.words == reference.words
        if not same and reference.content and not words("negations") & {*answer.words, *reference.words}:
            letters = "".join(reference.content)
            joined = letters.isalpha() and len(letters) >= _LETTERS and letters == "".join(answer.content)
            same = joined or (sorted(answer.content) == sorted(reference.content) and items(answer) == items(reference))
        return Decision(SUPPORTED, "equal", "answer and reference are the same") if same else None

    def _number(self) -> Decision | None:
        """Of a reference that is a number, with few words besides where it counts or measures."""
        nouns, unit = counted_nouns(self.question), min(words("units") & set(self.question.words), default="")
        due, stated = (sizes_in(text, unit, nouns) for text in (self.reference, self.answer))
        rest = {word for word in self.reference.content if word.isalpha()}
        rest -= words("units", "more", "less")
        if not due or len(rest) > _BESIDE or (rest and nouns is None and not any(size.unit for size in due)):
            return None
        if _MARKED.search(f"{self.case.reference} {self.case.answer}"):
            stated = None
        return _by_number(due, stated or set(), nouns is not None or rest <= {*self.question.words, *self.answer.words})

    def _sentence(self) -> Decision:
        reference, lead = self.reference.stems, self.answer.lead.stems
        right, stated = items(reference), items(lead)
        if not right:
            return Decision(None, "open-reference", "the reference has no word that can be compared")
        denies = bool(words("negations") & set(reference.words))
        more = stated - right
        elsewhere = places(more) | (more & words("colors") if right & words("colors") else set())
        same = right == stated or (right <= stated and not denies and not elsewhere)
        if (decision := self._alike(reference, lead, right & stated, same)) is not None:
            return decision
        if is_list(self.reference) and not denies and (differing := (right - stated) | elsewhere):
            return Decision(HALLUCINATED, "sentence", f"a list that differs in {', '.join(sorted(differing))}")
        return _by_share(right, stated, denies)

    def _alike(self, reference: Text, lead: Text, shared: set[str], same: bool) -> Decision | None:
        """The decision where both sentences affirm or deny the same things, or one affirms what the other denies."""
        denies, denied = (bool(words("negations") & set(text.words)) for text in (reference, lead))
        unsure = not denied and self._may_deny(lead, affirmed_and_denied(reference)[1] & shared or shared, set())
        if denies != denied:
            opposed = f"one denies {' '.join(sorted(shared))}, the other affirms it"
            return Decision(HALLUCINATED, "sentence", opposed) if shared and not unsure else None
        if denied and _denied_alike(reference, lead):
            return Decision(SUPPORTED, "sentence", "the same things are denied")
        return (
            Decision(SUPPORTED, "sentence", "the same things, affirmed or denied alike")
            if same and not unsure
            else None
        )

    @cached_property
    def _taken_apart(self) -> LabelCase:
        lead, reference = self.answer.lead, self.reference
        stated, denied = affirmed_and_denied(lead.stems)
        first = Text(lead.stems.sentences[:1]).words
        if "bilateral" in reference.words and {"left", "right"} <= stated:  # 'the left and the right lung'
            stated = (stated | {"bilateral"}) - {"left", "right"}
            first = [*first, "bilateral"]
        return LabelCase(
            wanted=set(),
            listed=is_list(reference.stems),
            asked=set(self.question.stems.words),
            stated=stated,
            denied=denied,
            first=first,
            told=self.answer.stems.content,
            heads_known=head_known(reference.clauses) and head_known(list(lead.sentences[0])),
            says_yes_or_no=self.says_yes_or_no and not self.asks_yes_or_no,
            of_many=asks_for_one_of_many(self.question),
        )

    def _label(self, wanted: set[str]) -> Decision:
        # Of 'cystic or solid?' the words of the reference are an answer, and no words given back.
        offered = wanted if "or" in self.question.words else set()
        case = replace(self._taken_apart, wanted=wanted, asked=self._taken_apart.asked - offered)
        decision = next(decision for rule in LABEL_RULES if (decision := rule(case)) is not None)
        if decision.label == SUPPORTED and self._may_deny(self.answer.lead.stems, wanted, case.asked):
            return Decision(None, "negated", f"the answer may deny {case.name}")
        return decision

    def _may_deny(self, answer: Text, things: set[str], asked: set[str]) -> bool:
        """Is there a clause in a stemmed answer that may deny the things, or what it names instead of them?"""
        known = (names().known | words("qualifiers", "units") | asked) - words("negations")
        frame = frozenset(map(stem, words("stop", "frame", "shades"))) - words("negations")
        return may_deny(answer, things & set(answer.words) or set(answer.content), known, frame)


def _by_share(right: set[str], stated: set[str], denies: bool) -> Decision:
    """The decision on a sentence by how many things of the reference it has; 'normal' says nothing against a denial."""
    shared = right & stated
    share = f"the answer has {len(shared)} of {len(right)} things of the reference"
    if len(shared) >= _SHARED * len(right) or (denies and stated <= {"normal"}):
        return Decision(None, "sentence", share)
    if comparable(right - stated, stated - right):
        return Decision(HALLUCINATED, "sentence", share)
    return Decision(None, "unknown-words", "the answer is in other words, which the table of synonyms does not know")


def _by_number(due: Set[Size], stated: Set[Size], is_told: bool) -> Decision:
    """The decision on as many numbers as are due, in the same units: fewer, more or others tell nothing."""
    units = {size.unit for size in due}
    same_unit = [size for size in stated if size.unit in units]
    if len(same_unit) != len(due):
        return Decision(None, "number", "the answer does not state one number where the reference has one")
    if all(any(map(size.equals, same_unit)) for size in due):
        return Decision(SUPPORTED if is_told else None, "number", "the answer states the same number")
    near = all(any(map(size.overlaps, same_unit)) for size in due)
    return Decision(
        None if near else HALLUCINATED, "number", "the answer states another number, if not nearly the same"
    )


def _denied_alike(reference: Text, answer: Text) -> bool:
    """The same things denied, and all things affirmed that the reference affirms ('normal' goes without saying)."""
    (right, right_denied), (affirmed, answer_denied) = affirmed_and_denied(reference), affirmed_and_denied(answer)
    topic = items(reference) | items(answer)
    denied = right_denied & topic
    return bool(denied) and denied == answer_denied & topic and (right & topic) - {"normal"} <= affirmed


def _pairs(text: Text) -> bool:
    return any("-" in item for item in items(text))


# --- rules of labels --------------------------------------------------------------------------------------------------


def _sides(case: LabelCase) -> Decision | None:
    """Where both sides are named, words do not tell what is said of which: 'the left is normal, the right is not'."""
    both = {"left", "right"}
    is_open = bool(case.wanted & both) and both <= case.stated | case.denied
    return Decision(None, "sides", "the answer names both sides") if is_open else None


def _negated(case: LabelCase) -> Decision | None:
    if case.wanted <= case.denied or any(kind <= case.denied for kind in case.kinds):
        return Decision(HALLUCINATED, "negated", f"the answer denies {case.name}")
    return None


def _conflict(case: LabelCase) -> Decision | None:
    """One of two words that exclude each other; and colours are told completely."""
    for family in families():
        due, present = family & case.wanted, family & case.stated
        if due and present and (present > due or not present & due):
            why = f"the answer says {' and '.join(sorted(present))}, the reference {' and '.join(sorted(due))}"
            return Decision(None if present & due else HALLUCINATED, "conflict", why)
    own, colors = case.wanted & words("colors"), set(case.first) & words("colors") - case.denied
    if own and colors > own:
        return Decision(HALLUCINATED, "conflict", f"the answer also says {' '.join(sorted(colors - own))}")
    return None


def _contains(case: LabelCase) -> Decision | None:
    if not case.needed <= (set(case.first) - case.denied) | case.implied:
        return None
    if case.wanted <= case.asked and len(case.first) > SHORT_ANSWER:
        return Decision(None, "undecided", f"the question itself has {case.name}, in these or other words")
    if "or" in case.first:
        return Decision(None, "contains", f"the answer offers {case.name} as one of several")
    if case.extra:
        return Decision(None, "extra", f"the answer names {' '.join(sorted(case.extra))}, too")
    return Decision(SUPPORTED, "contains", f"the answer names {case.name}")


def _related(case: LabelCase) -> Decision | None:
    """The answer names the reference in passing, or something beside or above it."""
    if case.needed <= case.stated:
        return Decision(None, "undecided", f"the answer names {case.name} only in passing")
    if case.of_many and not case.says_yes_or_no and case.instead & _anatomy():
        return Decision(None, "one-of-many", f"a picture shows many, and {case.name} is one")
    broader = set[str]().union(*(kind for kind in case.kinds if kind <= case.stated))
    if broader and not case.instead - broader:
        return Decision(None, "hypernym", f"the answer names only {' '.join(sorted(broader))}, a kind of {case.name}")
    return None


def _partial(case: LabelCase) -> Decision | None:
    shared, qualifiers = case.needed & case.stated, words("qualifiers")
    if case.says_yes_or_no and not shared:
        return Decision(HALLUCINATED, "wrong-type", f"a yes or no where {case.name} was asked for")
    if not shared - qualifiers and (not shared or case.needed - qualifiers):
        return None
    difference = f"the answer shares only {' '.join(sorted(shared))} with {case.name}"
    if case.instead and not comparable(case.needed - shared, case.instead):
        return Decision(None, "unknown-words", f"{difference}; the table of synonyms does not know the rest")
    return Decision(HALLUCINATED if case.instead or case.listed else None, "partial", difference)


def _different(case: LabelCase) -> Decision:
    if not case.length and not case.denied:
        return Decision(None, "undecided", f"the answer has only words of the question, and nothing of {case.name}")
    if not case.heads_known:
        return Decision(
            None, "unknown-words", f"no word of {case.name}, in words that the table of synonyms does not know"
        )
    return Decision(HALLUCINATED, "different", f"an answer that is not {case.name}")


def _anatomy() -> frozenset[str]:
    return frozenset(map(stem, words("anatomy")))


LABEL_RULES: tuple[Callable[[LabelCase], Decision | None], ...] = (
    *(_sides, _negated, _conflict, _contains, _related, _partial, _different),
)
"""Rules for a short reference, in the order they are tried; the last one always applies."""
