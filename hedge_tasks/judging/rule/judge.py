"""A judge without a model: fixed rules for closed questions and short references.

It decides what can be decided from the words alone (yes/no, counts, one of the offered options, a short label and its
opposite) and says so when it cannot: a paraphrase, a synonym it does not know, a long free text. How often it is right,
and where it is wrong, is measured in this folder's README.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from hedge_tasks.errors import ConfigError
from hedge_tasks.judging.base import HALLUCINATED, SUPPORTED, Case, Judge, Verdict
from hedge_tasks.judging.config import Spec
from hedge_tasks.judging.fallback import Fallback
from hedge_tasks.judging.outcomes import of_unanswered
from hedge_tasks.judging.rule.labels import (
    LabelCase,
    asks_for_one_of_many,
    is_list,
    is_one_of_several,
    items,
    listed_organs,
    offered_options,
    reference_alternatives,
)
from hedge_tasks.judging.rule.measure import counted_nouns, overlap, ranges, same_size, single_count, stated_counts
from hedge_tasks.judging.rule.polar import says_yes_or_no, yes_no_reference
from hedge_tasks.judging.rule.reading import Text, affirmed_and_denied, may_deny, read_text, stem, stemmed
from hedge_tasks.judging.rule.synonyms import Synonyms, own
from hedge_tasks.judging.rule.vocabulary import (
    ANATOMY,
    AUXILIARY,
    COLORS,
    FAMILIES,
    FRAME,
    LEAD_WORDS,
    MANY,
    MAX_CHARACTERS,
    NEGATIONS,
    POSITIONS,
    QUALIFIERS,
    STOP,
    UNITS,
)
from hedge_tasks.replies import Reading, read_yes_no
from hedge_tasks.replies.declining import unanswered
from hedge_tasks.replies.reading import DECLINING, EMPTY, NOTICE, UNANSWERED, unreadable

RULES: dict[str, str] = {
    "no-reference": "No reference: not judged.",
    "empty-answer": (
        "An answer without a statement (empty, no letter or digit, or only a question or a 'please ...' back) claims "
        "nothing: not judged, rather than called false. Such sentences are ignored in longer answers too."
    ),
    "declined": (
        "The answer declines ('I cannot see the image', 'it is not clear whether') or is about nothing ('© 2016 ...'; "
        "a date where yes or no was asked for): not judged."
    ),
    "unfinished": "The answer was cut off before it began, or the request for it failed: not judged.",
    "equal": (
        "Answer and reference are the same words, in any order, or the same letters written apart ('hay fever', "
        "'hayfever'), accents not counted: supported."
    ),
    "count": (
        "A 'how many' question with a number as reference. The number in front of the counted noun, else the only "
        "number of the first sentence, decides ('no' and 'none' are 0). 'Several' contradicts 0 and 1. Two numbers in "
        "a short answer contradict each other: hallucinated."
    ),
    "polar": (
        "The reference is yes or no. The answer is read as every reply is (`hedge_tasks.replies`) and compared. One "
        "that says neither or both, or that is read only softly (the rest of it may take it back), is not judged, "
        "unless the model named as `fallback` reads it."
    ),
    "sentence": (
        "The reference is a negation ('no polyps are present'), longer than a label, or a list of places: a sentence "
        "about things, affirmed or denied. The same things, both affirmed or both denied: supported. One affirms and "
        "the other denies what they share, or a list ('liver, spleen and kidney') has other members: hallucinated. "
        "The same things denied, and what the reference affirms: supported, too ('normal' goes without saying). Less "
        "than 60 % of the reference's things, and others in words that the table of synonyms knows: hallucinated. Else "
        "not judged. Places such as 'upper-left' are one thing."
    ),
    "open-reference": "The reference has no word that can be compared: not judged.",
    "choice": (
        "The question offers two options or more ('CT, MRI or PET?') and the reference is one: the answer states only "
        "others: hallucinated; only the right one: supported."
    ),
    "negated": (
        "The answer denies the reference ('it is not in the liver', 'X makes it unlikely', 'rules it out'), or what it "
        "is a kind of: hallucinated. It may deny it, since not all that it says of it is understood: not judged."
    ),
    "conflict": (
        "The answer has a word that excludes one of the reference (left/right, upper/lower, CT/MRI, male/female...): "
        "hallucinated. It has both of them ('left and right'): hallucinated when the answer is short, else not judged. "
        "What follows 'than' or 'compared' is not counted. Colours are told completely: 'pink and red' is not 'pink'."
    ),
    "contains": (
        "All words of the reference, but for those that the question has ('right' to 'which lung?' with 'right lung'), "
        "are in the first sentence of the answer, in any order and inflection: supported; when the answer offers them "
        "as one of several ('bone or fat'), or the question has them all: not judged. A kind of the reference "
        "('glioblastoma' of 'brain tumor') names it."
    ),
    "extra": (
        "The answer names the reference in a list with another organ: hallucinated where the reference is a list and "
        "the question does not ask for one of many, else not judged."
    ),
    "measure": (
        "The reference is a measurement. The same ('5 mm', '0.5 cm'): supported. No number in the answer, or one "
        "that cannot be the same ('5-10 mm' and 'less than 5 mm', 3 cm and 8 mm; a single number stands for what is "
        "within 10 %): hallucinated; else not judged."
    ),
    "wrong-type": (
        "A yes or no to a question that asks for something else, and nothing of the reference; a number where yes or "
        "no was asked for: hallucinated."
    ),
    "one-of-many": (
        "The question asks to name something of a kind that a picture shows many of ('name one organ in the image'), "
        "and the answer names another part of the body than the reference: not judged, since both may be there."
    ),
    "hypernym": "The answer names only what the reference is a kind of ('tumor' for 'glioblastoma'): not judged.",
    "partial": (
        "Some words of the reference are missing. The answer has something else in their place, or the reference is a "
        "list: hallucinated. The answer is only less specific: not judged."
    ),
    "unknown-words": (
        "The answer shares no word with the reference, or has others in place of some, and the table of synonyms does "
        "not know the head words of both: not judged, for it may be the same in other words."
    ),
    "different": (
        "The answer shares no word with the reference, or only such that tell side, place or size: hallucinated."
    ),
    "undecided": (
        "An answer that names the reference only in passing, or that says yes or no where the reference says more: not "
        "judged."
    ),
}

SILENT = {"empty-answer": EMPTY, "declined": None, "unfinished": None}
"""Rules that find that an answer claims nothing, and why; of a declined one its reason says so."""

_DATE = re.compile(r"(?<!\d)(?:\d{1,4}[/.-]\d{1,4}[/.-]\d{1,4}|(?:19|20)\d{2}\b)")
"""Of a picture's margin; no answer to anything. Bounded: a million digits are searched in linear time."""

_LETTERS = 6
"""Of a name that may be written as one word or as two."""

_NO_BRACKETS = str.maketrans("()", "  ")

Decision = tuple[int | None, str, str]


class _Polar(NamedTuple):
    """An answer to a yes-or-no question: what is true, and what was read."""

    truth: bool
    reading: Reading


_PROMPT = "reply_yes_no"


class RuleJudge:
    """Judge closed and short answers by fixed rules; decline the rest.

    The rules are tried in the order of `RULES` and the first that applies decides; its id starts the reason of
    the verdict. `describe_rules()` returns them as text.

    Args:
        short_answer: An answer with at most so many content words (those of the question not counted) contradicts
            itself when it names both of two opposites, or two numbers; a longer one may compare them.
        short_reference: A reference with more content words than this is a sentence, not a label.
        fallback: A judge model that reads yes or no where the rules cannot, or only softly (`llm:model=...`).
    """

    name = "rule"
    version = "11"

    def __init__(
        self,
        *,
        short_answer: int = 6,
        short_reference: int = 6,
        fallback: Spec | None = None,
    ) -> None:
        for key, value in (("short_answer", short_answer), ("short_reference", short_reference)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ConfigError(f"{key} must be a positive integer, got {value!r}")
        self.short_answer = short_answer
        self.short_reference = short_reference
        self._names: Synonyms = own()
        self.fallback = None if fallback is None else Fallback(fallback, (_PROMPT,))

    def settings(self) -> dict[str, Any]:
        own_settings: dict[str, Any] = {"judge": self.name, "version": self.version}
        own_settings |= {"short_answer": self.short_answer, "short_reference": self.short_reference}
        return own_settings if self.fallback is None else {**own_settings, "fallback": self.fallback.settings()}

    @property
    def parts(self) -> Sequence[Judge]:
        return [] if self.fallback is None else self.fallback.parts

    def judge(self, cases: Sequence[Case]) -> list[Verdict]:
        decisions = [self._decide(case) for case in cases]
        if self.fallback is not None:
            polar_cases = [(i, case) for i, case in enumerate(cases) if isinstance(decisions[i], _Polar)]
            read = self.fallback.read([(case, decisions[i].reading, _PROMPT) for i, case in polar_cases])  # type: ignore[union-attr]
            for (i, _), reading in zip(polar_cases, read, strict=True):
                decisions[i] = decisions[i]._replace(reading=reading)  # type: ignore[union-attr]
        return [
            self._compared(decision) if isinstance(decision, _Polar) else self._verdict(*decision)
            for decision in decisions
        ]

    def _verdict(self, label: int | None, rule: str, why: str, basis: str | None = None) -> Verdict:
        if rule in SILENT:
            silent = of_unanswered(basis or SILENT[rule] or why, self.name, self.version)
            return replace(silent, reason=f"{rule}: {why}")
        return Verdict(label, f"{rule}: {why}", self.name, self.version, basis=basis)

    def _compared(self, polar: _Polar) -> Verdict:
        read = polar.reading
        if read.basis in UNANSWERED:
            return self._verdict(*_silent(read.basis))
        if read.value is None or read.soft:
            return self._verdict(None, "polar", f"unconfirmed: {read}" if read.soft else str(read), read.basis)
        right = (read.value == "yes") == polar.truth
        due = "yes" if polar.truth else "no"
        comparison = f"the answer says {read}; the reference is {due}"
        return self._verdict(SUPPORTED if right else HALLUCINATED, "polar", comparison, read.basis)

    def _decide(self, case: Case) -> Decision | _Polar:
        question_text, reference_text, answer_text = case.question, case.reference, case.answer
        names = self._names
        # 'Flash (Gordon)' is one thing, and no list of two.
        question, reference = (
            read_text(text, names.lexicon) for text in (question_text, reference_text.translate(_NO_BRACKETS))
        )
        answer = read_text(answer_text, names.lexicon, statements_only=True)
        reference, answer = names.resolve(reference, question, answer), names.resolve(answer, question, reference)
        if not reference.words:
            return None, "no-reference", "there is no reference"
        if not answer.words:
            return None, "empty-answer", "the answer states nothing"
        why = unanswered(answer_text[:MAX_CHARACTERS])
        if why is not None and says_yes_or_no(answer_text) is None:
            return _silent(why)
        polar = yes_no_reference(reference_text)
        same_words = answer.words == reference.words or _same_words(answer, reference)
        # "Yes?" asks: it must not support "yes" where it would not contradict "no".
        if same_words and (polar is None or read_yes_no(answer_text, question_text, cut=case.cut).value is not None):
            return SUPPORTED, "equal", "answer and reference are the same"
        nouns = counted_nouns(question)
        count = single_count(reference.words)
        if nouns is not None and count is not None and len(reference.content) <= 3:
            return self._count(count, nouns, answer)
        if (
            polar is None
            and reference.words[0] in ("yes", "no")
            and question.words[:1]
            and not offered_options(question)
        ):
            # 'No, there is no pneumothorax' as the reference of a yes/no question.
            polar = says_yes_or_no(reference_text) if question.words[0] in AUXILIARY else None
        if polar is not None:
            if "%" not in answer_text and not any(word.isalpha() for word in answer.words):
                if _DATE.search(answer_text):
                    return _Polar(polar, unreadable(NOTICE))
                return HALLUCINATED, "wrong-type", "a number where yes or no was asked for"
            return _Polar(polar, read_yes_no(answer_text, question_text, cut=case.cut))
        return self._label(question, reference, answer, says_yes_or_no(answer_text) is not None)

    def _count(self, count: float, nouns: set[str], answer: Text) -> Decision:
        counts = stated_counts(answer, nouns)
        if len(counts) == 1:
            answer_count = counts.pop()
            label = SUPPORTED if answer_count == count else HALLUCINATED
            return label, "count", f"the answer says {answer_count:g}, the reference {count:g}"
        if counts:
            if len(answer.words) <= 2 * self.short_answer:
                return HALLUCINATED, "count", "the answer gives several numbers"
            return None, "count", "several numbers in a long answer"
        if MANY & set(answer.lead(LEAD_WORDS).words):
            if count <= 1:
                return HALLUCINATED, "count", f"the answer says several, the reference {count:g}"
            return None, "count", "the answer says several"
        return None, "count", "no number in the answer"

    def _label(self, question: Text, reference: Text, answer: Text, says_yes_or_no: bool) -> Decision:
        polar = says_yes_or_no and question.words[:1] != [] and not _asks_yes_or_no(question)
        if NEGATIONS & set(reference.words):
            return self._sentence(reference, answer)
        sizes, one_of_many = (ranges(reference), ranges(answer.lead(LEAD_WORDS))), asks_for_one_of_many(question)
        heads_known = self._names.knows(reference) and self._names.knows(Text(answer.sentences[:1]))
        question, reference, answer = stemmed(question), stemmed(reference), stemmed(answer)
        alternatives = reference_alternatives(reference)
        if not alternatives:
            return None, "open-reference", "the reference has no word that can be compared"
        if max(map(len, alternatives)) > self.short_reference or (
            is_list(reference) and any("-" in item for item in items(reference))
        ):
            return self._sentence(reference, answer)
        lead = answer.lead(LEAD_WORDS)
        affirmed, denied = affirmed_and_denied(lead)
        options = offered_options(question)
        echoed = set(question.content) - set(options)
        first = Text(lead.sentences[:1]).words
        question_words, listed = set(question.words) - set(options), is_list(reference)
        decisions = []
        for needed in alternatives:
            if "bilateral" in needed and {"left", "right"} <= affirmed:  # 'the left and the right lung'
                affirmed = (affirmed | {"bilateral"}) - {"left", "right"}
                first = [*first, "bilateral"]
            own = needed - question_words or needed
            telling = [word for word in answer.content if word not in echoed or word in own]
            implied = set().union(*self._names.kinds_of(set(first) - denied))
            organs = listed_organs(lead.sentences[0]) if needed & STEMMED_ANATOMY else set()
            extra = organs - needed - question_words - denied
            parts = LabelCase(
                needed,
                affirmed,
                denied,
                first,
                len(telling),
                sizes,
                one_of_many,
                question_words,
                listed,
                polar,
                heads_known,
                implied,
                extra,
            )
            decision = self._one_label(parts, options)
            if decision[0] == SUPPORTED and self._may_deny(lead, needed, question_words):
                decision = None, "negated", f"the answer may deny {' '.join(sorted(needed))}"
            decisions.append(decision)
        # 'a or b': one alternative that fits is enough; and only when none may fit is the answer called wrong.
        for label in (SUPPORTED, None):
            for decision in decisions:
                if decision[0] == label:
                    return decision
        return decisions[0]

    def _may_deny(self, answer: Text, things: set[str], question_words: set[str]) -> bool:
        """Is there a clause in a stemmed answer that may deny the things, or what it names instead of them?"""
        names = things & set(answer.words) or set(answer.content)
        return may_deny(answer, names, (self._names.known | _TYPED | question_words) - NEGATIONS, _FRAME)

    def _one_label(self, case: LabelCase, options: list[str]) -> Decision:  # noqa: C901
        reference, affirmed = case.wanted, case.stated
        short = case.length <= self.short_answer
        names = " ".join(sorted(reference))
        if len(reference & set(options)) == 1:
            others = (set(options) - reference) & affirmed
            right = reference & set(options)
            if others and not right & affirmed:
                other_options = " and ".join(sorted(others))
                return HALLUCINATED, "choice", f"the answer says {other_options}, the reference {names}"
            if right <= affirmed and not others and (reference - case.asked) <= affirmed:
                return SUPPORTED, "choice", f"the answer says {names}, no other option"
        kinds = self._names.kinds_of(reference)
        if reference <= case.denied or any(kind <= case.denied for kind in kinds):
            return HALLUCINATED, "negated", f"the answer denies {names}"
        for family in FAMILIES:
            due, present = family & reference, family & affirmed
            if not due or not present or present == due:
                continue
            difference = f"the answer says {' and '.join(sorted(present))}, the reference {' and '.join(sorted(due))}"
            if not present & due:
                return HALLUCINATED, "conflict", difference
            if present > due:
                return (HALLUCINATED if short else None), "conflict", difference
        own, answer_colors = reference & COLORS, set(case.first) & COLORS - case.denied
        if own and answer_colors > own:
            return HALLUCINATED, "conflict", f"the answer also says {' '.join(sorted(answer_colors - own))}"
        # Words of the question need not be said again: 'right' to 'which lung?'.
        needed = reference - case.asked or reference
        if needed <= (set(case.first) - case.denied) | case.implied:
            if reference <= case.asked and len(case.first) > self.short_answer:
                return None, "undecided", f"the question itself has {names}, in these or other words"
            if is_one_of_several(needed, case.first):
                return None, "contains", f"the answer offers {names} as one of several"
            if case.extra:
                also = f"the answer lists {' '.join(sorted(case.extra))}, too"
                return (HALLUCINATED if case.listed and not case.one_of_many else None), "extra", also
            return SUPPORTED, "contains", f"the answer names {names}"
        if UNITS & reference:
            return self._measure(case)
        shared = needed & affirmed
        if needed <= shared:
            return None, "undecided", f"the answer names {names} only in passing"
        if case.one_of_many and not case.says_yes_or_no and (other_organs := affirmed & STEMMED_ANATOMY - reference):
            return None, "one-of-many", f"the answer names {' '.join(sorted(other_organs))}, and a picture shows many"
        broader: set[str] = set().union(*(kind for kind in kinds if kind <= affirmed))
        if broader and not affirmed - broader - reference - case.asked - STOP - QUALIFIERS:
            return None, "hypernym", f"the answer names only {' '.join(sorted(broader))}, which {names} is a kind of"
        if case.says_yes_or_no and not shared:
            return HALLUCINATED, "wrong-type", f"a yes or no where {names} was asked for"
        if shared - QUALIFIERS or (shared and needed <= QUALIFIERS):
            difference = f"the answer shares only {' '.join(sorted(shared))} with {names}"
            instead = affirmed - reference - case.asked - STOP - QUALIFIERS
            if instead and not self._comparable(needed - shared, instead):
                return None, "unknown-words", f"{difference}, and the rest is in words that the table does not know"
            return (HALLUCINATED if instead or case.listed else None), "partial", difference
        if not case.length and not case.denied:
            if {"yes", "no"} & set(case.first):
                return None, "undecided", f"a yes or no, and nothing about {names}"
            return None, "undecided", "the answer has only words of the question"
        if not case.known:
            return None, "unknown-words", f"no word of {names}, and words that the table of synonyms does not know"
        kind = "a short" if short else "a longer"
        return HALLUCINATED, "different", f"{kind} answer that is not {names}"

    def _measure(self, case: LabelCase) -> Decision:
        right, answer_sizes = case.sizes
        if (
            right
            and all(any(same_size(size, answer_size) for answer_size in answer_sizes) for size in right)
            and len(answer_sizes) == len(right)
        ):
            return SUPPORTED, "measure", "the answer states the same measurement"
        if not answer_sizes:
            return HALLUCINATED, "measure", "the answer states no measurement"
        if all(any(overlap(size, answer_size) for answer_size in answer_sizes) for size in right):
            return None, "measure", "the answer states nearly the same measurement"
        return HALLUCINATED, "measure", "the answer states another measurement"

    def _comparable(self, missing: set[str], instead: set[str]) -> bool:
        """Are there words on both sides that the table knows, so that other words are another thing?"""
        known_words, words = self._names.known, {word for item in instead for word in item.split("-")}
        lacking = {word for item in missing for word in item.split("-")}
        return (not lacking or bool(lacking & known_words)) and (not words or bool(words & known_words))

    def _sentence(self, reference: Text, answer: Text) -> Decision:
        lead = answer.lead(LEAD_WORDS)
        denies, denied = bool(NEGATIONS & set(reference.words)), bool(NEGATIONS & set(lead.words))
        right, answer_items = items(stemmed(reference)), items(stemmed(lead))
        if not right:
            return None, "open-reference", "the reference has no word that can be compared"
        shared = right & answer_items
        right_denied = affirmed_and_denied(stemmed(reference))[1] & shared
        unsure = self._may_deny(stemmed(lead), right_denied or shared, set())
        if denies != denied and shared and (denied or not unsure):
            return HALLUCINATED, "sentence", f"one denies {' '.join(sorted(shared))}, the other affirms it"
        places = POSITIONS[0] | POSITIONS[1]
        elsewhere = {item for item in answer_items - right if set(item.split("-")) <= places}
        if right & COLORS:
            elsewhere |= (answer_items - right) & COLORS
        if denies and denied and _denied_alike(reference, lead):
            return SUPPORTED, "sentence", "the same things are denied"
        if (
            denies == denied
            and (denied or not unsure)
            and (right == answer_items or (right <= answer_items and not denies and not elsewhere))
        ):
            return SUPPORTED, "sentence", "the same things, affirmed or denied alike"
        if is_list(reference) and (right - answer_items or elsewhere) and not denies:
            differing = ", ".join(sorted((right - answer_items) | elsewhere))
            return HALLUCINATED, "sentence", f"a list that differs in {differing}"
        if len(shared) < 0.6 * len(right) and (answer_items or not denies):
            if not self._comparable(right - answer_items, answer_items - right):
                return None, "unknown-words", "the answer is in other words, which the table of synonyms does not know"
            return HALLUCINATED, "sentence", f"the answer has {len(shared)} of {len(right)} things of the reference"
        return None, "sentence", f"the answer has {len(shared)} of {len(right)} things of the reference"


def _silent(why: str) -> Decision:
    """The decision on an answer that is none."""
    return None, "declined" if why in DECLINING else "unfinished", why


def _denied_alike(reference: Text, answer: Text) -> bool:
    """The same things denied, and all things affirmed that the reference affirms ('normal' goes without saying)."""
    (right, right_denied), (answer_affirmed, said_denied) = (
        affirmed_and_denied(stemmed(text)) for text in (reference, answer)
    )
    topic = items(stemmed(reference)) | items(stemmed(answer))
    denied = right_denied & topic
    return bool(denied) and denied == said_denied & topic and (right & topic) - {"normal"} <= answer_affirmed


def _same_words(answer: Text, reference: Text) -> bool:
    """The same content words in another order, neither negated, and the same places; or the same letters."""
    if NEGATIONS & {*answer.words, *reference.words} or not reference.content:
        return False
    letters = "".join(reference.content)
    if letters.isalpha() and len(letters) >= _LETTERS and letters == "".join(answer.content):
        return True
    return sorted(answer.content) == sorted(reference.content) and items(answer) == items(reference)


def _asks_yes_or_no(question: Text) -> bool:
    return question.words[0] in AUXILIARY and not offered_options(question)


STEMMED_ANATOMY = frozenset(map(stem, ANATOMY))
_FRAME = frozenset(map(stem, STOP | FRAME)) - NEGATIONS
_TYPED = QUALIFIERS | UNITS


def describe_rules() -> str:
    """The rules in the order they are tried, one per line."""
    return "\n".join(f"{number}. {name}: {text}" for number, (name, text) in enumerate(RULES.items(), start=1))


def question_type(question: str, reference: str) -> str:
    """ "closed": the reference is yes or no, or the question offers options; else "open"."""
    return "closed" if yes_no_reference(reference) is not None or offered_options(read_text(question)) else "open"
