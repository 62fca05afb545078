"""Reading an answer as yes or no."""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from hedge_tasks.adjudication.rule.reading import Clause, Text, affirmed_and_denied
from hedge_tasks.adjudication.rule.vocabulary import (
    DETECTED,
    FAMILIES,
    FINDING_ENDING,
    FINDINGS,
    HEDGES,
    INTRODUCTIONS,
    LEAD_WORDS,
    NEGATION_REACH,
    NEGATIONS,
    NEGATIVE_ONLY,
    POSITIVE_ONLY,
    RESTART,
)


class YesNoReading(NamedTuple):
    """What an answer says to a yes/no question: True, False, None (cannot tell), and whether it contradicts itself."""

    value: bool | None
    why: str
    contradicts_itself: bool = False


def yes_no_reference(reference: str) -> bool | None:
    """True or False when the reference is a bare yes or no. Spelled 'n, o' in some files, so only letters count."""
    letters = re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", reference[:40]).casefold())
    return {"yes": True, "y": True, "true": True, "no": False, "n": False, "false": False}.get(letters)


def _standalone(clause: Clause) -> bool | None:
    """True/False when the clause starts with a yes or no that stands for itself."""
    if not clause:
        return None
    if clause[0] in ("the", "final") and clause[1:2] == ("answer",):
        clause = clause[1:]
    if clause[0] == "answer" and clause[1:2] == ("is",):
        clause = clause[2:]
    if not clause:
        return None
    if clause[0] == "yes":
        return True
    if clause[0] == "no" and (len(clause) == 1 or clause[1] in RESTART):
        return False
    if len(clause) == 1 and clause[0] in POSITIVE_ONLY:
        return True
    if (len(clause) == 1 and clause[0] in NEGATIVE_ONLY) or (len(clause) <= 3 and clause[0] == "not"):
        return False
    return None


def leading_yes_no(answer: Text) -> bool | None:
    clauses = answer.clauses
    value = _standalone(clauses[0])
    if value is None and len(clauses) > 1 and clauses[0][0] in INTRODUCTIONS:
        value = _standalone(clauses[1])
    return value


def _says_both(leading: bool, answer: Text, key: set[str]) -> bool:
    """A second, opposite yes/no, or 'yes, there is no X' when X is what was asked."""
    clauses = answer.clauses
    first = set(clauses[0])  # 'both' has become 'bilateral' by then
    if {"yes", "no"} <= first and first <= {"yes", "no", "and", "or", "bilateral"}:
        return True
    for clause in clauses[1:]:
        if clause in (("yes",), ("no",)) and (clause == ("yes",)) != leading:
            return True
    if not leading or len(clauses) < 2 or len(clauses[0]) > 1:
        return False
    second = clauses[1]
    return second[:3] in (("there", "is", "no"), ("there", "are", "no")) and bool(key & set(second[3:6]))


def _denied(sentence: tuple[Clause, ...], key: set[str]) -> bool:
    """Is a word of the question denied: 'no lesion', 'lesion is not visible', 'lesion is absent'?"""
    for clause in sentence:
        for position, word in enumerate(clause):
            if word not in NEGATIONS:
                continue
            after = clause[position + 1 : position + 1 + NEGATION_REACH]
            if key & set(after):
                return True
            unseen = word == "absent" or bool(DETECTED & set(after[:2]))  # 'cannot be seen'
            if unseen and key & set(clause[:position]):
                return True
    return False


def _asks_about_finding(key: set[str]) -> bool:
    return any(word in FINDINGS or FINDING_ENDING.search(word) for word in key)


def read_yes_no(question: Text, answer: Text) -> YesNoReading:
    key = set(question.content)
    leading = leading_yes_no(answer)
    if leading is not None:
        if _says_both(leading, answer, key):
            return YesNoReading(None, "the answer says both yes and no", contradicts_itself=True)
        return YesNoReading(leading, f"the answer starts with {yes_no_word(leading)}")
    lead = answer.lead(LEAD_WORDS)
    alone = {clause[0] for clause in lead.clauses if clause in (("yes",), ("no",))}
    if len(alone) == 2:
        return YesNoReading(None, "the answer says both yes and no", contradicts_itself=True)
    if alone:
        return YesNoReading(alone == {"yes"}, f"the answer says {alone.pop()}")
    if NEGATIONS & set(question.words):
        return YesNoReading(None, "the question is negated and the answer has no clear yes or no")
    hedged = False
    for sentence in lead.sentences:
        words = {word for clause in sentence for word in clause}
        if HEDGES & words:
            hedged = True
            continue
        value = _read_statement(sentence, words, key)
        if value is not None:
            return value
    return YesNoReading(None, "the answer hedges" if hedged else "the answer says neither yes nor no")


def _read_statement(sentence: tuple[Clause, ...], words: set[str], key: set[str]) -> YesNoReading | None:
    stated, denied = affirmed_and_denied(Text((sentence,)))
    normal = "normal" in stated or "abnormal" in denied
    abnormal = "abnormal" in stated or "normal" in denied
    if normal != abnormal and key & {"normal", "abnormal"}:
        return YesNoReading(normal == ("normal" in key), f"the answer says {'normal' if normal else 'abnormal'}")
    if _denied(sentence, key):
        return YesNoReading(False, "the answer denies what was asked about")
    if key and key <= words and not NEGATIONS & words:
        return YesNoReading(True, "the answer states what was asked about")
    for family in FAMILIES:
        asked, said = family & key, family & stated
        if len(asked) == 1 and said and not asked & said and key - asked <= words:
            return YesNoReading(False, f"the answer says {' and '.join(sorted(said))} instead of {' '.join(asked)}")
    if normal and not abnormal and _asks_about_finding(key) and not key & words:
        return YesNoReading(False, "the answer says normal and the question is about a finding")
    return None


def yes_no_word(value: bool) -> str:
    return "yes" if value else "no"
