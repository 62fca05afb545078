"""A judge without a model: fixed rules for closed questions and short references.

It decides what can be decided from the words alone (yes/no, counts, one of the offered options, a short label and its
opposite) and says so when it cannot: a paraphrase, a synonym it does not know, a long free text. How often it is right,
and where it is wrong, is measured in this folder's README.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from hedge_tasks.adjudication.base import HALLUCINATED, SUPPORTED, Case, Verdict

__all__ = ["RULES", "RuleJudge", "describe_rules"]

# --- what is decided, in this order ---------------------------------------------------------------------------------

RULES: dict[str, str] = {
    "no-reference": "No reference: not judged.",
    "empty-answer": (
        "An answer without a statement (empty, no letter or digit, or only a question or a 'please ...' back) claims "
        "nothing: not judged, rather than called false. Such sentences are ignored in longer answers too."
    ),
    "refusal": "The answer declines ('I cannot see the image', 'it is not clear whether'): not judged.",
    "equal": "Answer and reference are the same words: supported.",
    "count": (
        "A 'how many' question with a number as reference. The number in front of the counted noun, else the only "
        "number of the first sentence, decides ('no' and 'none' are 0). 'Several' contradicts 0 and 1. Two numbers in "
        "a short answer contradict each other: hallucinated."
    ),
    "polar": (
        "The reference is yes or no. The answer is read as yes or no from, in this order: a leading yes or no; one "
        "that stands alone later; normal/abnormal when the question asks for it; a negated word of the question "
        "('there is no pneumothorax') or a statement with all words of the question; a statement with the opposite of "
        "one ('it is on the right' to 'is it on the left?'); 'normal' as a no to a question about a finding ('the scan "
        "looks normal'). An answer that says both is hallucinated. An answer that says "
        "neither, or hedges ('may'), is not judged."
    ),
    "open-reference": "The reference is longer than a label, or itself a negation: not judged.",
    "choice": (
        "The question offers two options ('CT or MRI?') and the reference is one: the answer states only the other: "
        "hallucinated; only the right one: supported."
    ),
    "negated": "The answer denies the reference ('it is not in the liver'): hallucinated.",
    "conflict": (
        "The answer has a word that excludes one of the reference (left/right, upper/lower, CT/MRI, male/female...): "
        "hallucinated. It has both of them ('left and right'): hallucinated when the answer is short, else not judged. "
        "What follows 'than' or 'compared' is not counted."
    ),
    "contains": (
        "All words of the reference are in the first sentence of the answer, in any order: supported; when the answer "
        "offers them as one of several ('bone or fat'): not judged."
    ),
    "measure": "The reference is a measurement and the answer does not state the same: not judged (no tolerance set).",
    "partial": "Some words of the reference are missing (less specific, or incomplete): not judged.",
    "different": (
        "A short answer that shares no word with the reference, or only such that tell side, place or size: "
        "hallucinated."
    ),
    "undecided": (
        "A longer answer, one that names the reference only in passing, or one that only repeats words of the "
        "question: not judged."
    ),
}

# --- vocabulary (after casefolding and plural -> singular) ----------------------------------------------------------


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Every phrase becomes the word on the left, in questions, references and answers alike.
_ALIASES: dict[str, tuple[str, ...]] = {
    "xray": ("x ray", "x ray image", "xr", "radiograph", "radiography", "radiographic", "plain film", "plain xray"),
    "chest xray": ("cxr",),
    "ct": (
        "cat scan",
        "computed tomography",
        "computerized tomography",
        "computerised tomography",
        "computer tomography",
    ),
    "mri": ("mr", "mr imaging", "magnetic resonance", "magnetic resonance imaging", "magnetic resonance image"),
    "ultrasound": ("ultrasonography", "ultrasonogram", "sonogram", "sonography"),
    "pet": ("positron emission tomography",),
    "mammogram": ("mammography",),
    "t1": ("t1 weighted", "t1w", "t 1"),
    "t2": ("t2 weighted", "t2w", "t 2"),
    "dwi": ("diffusion weighted", "diffusion weighted imaging", "dwi diffusion weighted"),
    "flair": ("fluid attenuated inversion recovery",),
    "pa": ("posterior anterior", "posteroanterior", "postero anterior"),
    "ap": ("anterior posterior", "anteroposterior", "antero posterior"),
    "axial": ("transaxial", "transverse plane", "transverse section", "transverse view", "transverse slice"),
    "left": ("l", "left side", "left sided", "left hand side"),
    "right": ("r", "right side", "right sided", "right hand side"),
    "bilateral": ("bilaterally", "both", "both side", "left and right", "right and left", "either side"),
    "upper": ("top", "superior"),
    "lower": ("bottom", "inferior"),
    "middle": ("mid", "central", "center", "centre"),
    "large": ("big",),
    "small": ("tiny", "little"),
    "round": ("circular", "rounded", "roundish"),
    "ring": ("ring shaped", "annular"),
    "female": ("woman", "women"),
    "male": ("man", "men"),
    "svc": ("superior vena cava",),
    "ivc": ("inferior vena cava",),
    "csf": ("cerebrospinal fluid", "cerebral spinal fluid"),
    "mca": ("middle cerebral artery",),
    "aca": ("anterior cerebral artery",),
    "pca": ("posterior cerebral artery",),
    "gi": ("gastrointestinal",),
    "fat": ("adipose", "adipose tissue", "fatty tissue", "fat tissue"),
    "intestine": ("bowel",),
    "kidney": ("renal",),
    "liver": ("hepatic",),
    "spleen": ("splenic",),
    "heart": ("cardiac",),
    "lung": ("pulmonary",),
    "pancreas": ("pancreatic",),
    "cerebellum": ("cerebellar",),
    "tumor": ("tumour",),
    "hemorrhage": ("haemorrhage", "bleed", "bleeding"),
    "edema": ("oedema",),
    "gray": ("grey",),
    "normal": (
        "unremarkable",
        "healthy",
        "within normal limit",
        "no abnormality",
        "no abnormal",
        "not abnormal",
        "no significant abnormality",
        "no obvious abnormality",
        "no visible abnormality",
        "no acute abnormality",
    ),
    "abnormal": ("not normal", "unhealthy", "abnormality", "anomaly"),
    "not": ("non",),
    "without": ("absence of", "lack of", "free of", "free from", "negative for"),
    "metastasis": ("metastase",),
    "vertebra": ("vertebrae",),
}

_NUMBERS = {
    word: str(number)
    for number, word in enumerate(
        re.findall(
            r"\w+",
            "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
            "seventeen eighteen nineteen twenty",
        )
    )
} | {"single": "1", "solitary": "1"}
_ORDINALS = {"1st": "first", "2nd": "second", "3rd": "third", "4th": "fourth", "5th": "fifth"}

# At most one member of a family is true of one thing.
_FAMILIES: tuple[frozenset[str], ...] = tuple(
    _words(members)
    for members in (
        "left right bilateral",
        "unilateral bilateral",
        "upper middle lower",
        "anterior posterior",
        "medial lateral",
        "proximal distal",
        "axial coronal sagittal",
        "ct mri xray ultrasound mammogram",
        "t1 t2 flair dwi",
        "pa ap",
        "male female",
        "normal abnormal",
        "small large",
        "smaller larger",
        "increased decreased",
        "enlarged shrunken",
        "acute chronic",
        "benign malignant",
        "cystic solid",
        "hypodense hyperdense isodense",
        "hypointense hyperintense isointense",
        "frontal temporal parietal occipital",
        "round irregular ring",
        "supratentorial infratentorial",
        "supine prone",
    )
)
# Sharing only these does not make two labels alike: 'left thalamus' and 'left kidney'.
_QUALIFIERS = _words(
    "left right bilateral unilateral upper middle lower anterior posterior medial lateral proximal distal small large "
    "acute chronic"
)

_NEGATIONS = _words("no not none without neither nor never absent lacks lacking")
_HEDGES = _words("may might could possible possibly perhaps maybe unclear uncertain suspected suspicious")
_POSITIVE_ONLY = _words("true correct present positive affirmative certainly indeed definitely yeah yep")
_NEGATIVE_ONLY = _words("false incorrect absent negative none never nope")
_MANY = _words("several multiple many numerous various")
_COMPARISONS = _words("than compared versus vs unlike opposed relative")
_DETECTED = _words("visible seen present evident identified noted detected shown found observed appreciated there")
_UNITS = _words("mm cm m ml cc kg g hu degree percent")
# After these an answer's 'no' stands for itself ('no there is not'), not for 'not any' ('no lesion').
_RESTART = _words("there it this that these those the they he she i we not")
_INTRODUCTIONS = _words("based according in from looking upon well sure given as judging considering on")
_ROLES = _words("human assistant answer a response gpt model user final output")

_FINDINGS = _words(
    "abnormal lesion mass nodule tumor fracture pathology disease hemorrhage infarct stroke effusion consolidation "
    "opacity edema pneumonia cyst calcification defect injury metastasis hernia abscess aneurysm obstruction "
    "perforation"
)
_FINDING_ENDING = re.compile(r"(?:itis|oma|osis|megaly|pathy|thorax|ectasis|rrhage|phrosis|cele|emia|plasia|trophy)$")

_STOP = _words(
    # function words
    "a an the of in on at to is are was were be been being it its this that these those there here and or with by "
    "for from as i you we they he she his her their my your our me us do does did have has had can could will would "
    "shall should may might must any some all also just only very more most than then so if into onto within over "
    "under about between which what where when who whom whose why how many much yes no not none please one's s t "
    # words about looking rather than about what is seen
    "image scan picture photo photograph figure film slice view plane section study imaging modality type kind see "
    "seen show shown showing visible present appear appearing look looking located location locate identify identified "
    "evidence suggest suggesting indicate indicating depict depicted demonstrate demonstrated based given patient side "
    "part region area portion quadrant likely using used taken take believe think clearly actually answer following "
    "object structure shape size"
)
_AUXILIARY = _words("is are was were do does did has have had can could will would should may might")

# 'I cannot see the image' declines, 'I cannot see a lesion' answers.
_REFUSAL = re.compile(
    r"\b(?:i am sorry|i m sorry|i apologi[sz]e|as an ai"
    r"|(?:can not|unable to|not able to|not possible to) (?:see|view|access|open) (?:the|this|any|your)? ?"
    r"(?:image|picture|photo|scan|xray|ct|mri|figure)"
    r"|(?:can not|unable to|not able to|not possible to) (?:determine|provide|tell|answer|assess|say|diagnose)"
    r"|can not be (?:determined|told|assessed|answered|conclusively|definitively|reliably)"
    r"|not clear (?:whether|if|from)|not enough information|insufficient information"
    r"|no image (?:was |is |has been )?(?:provided|attached|given|available))"
)

_MAX_CHARACTERS = 20_000
_LEAD_WORDS = 60
_NEGATION_REACH = 6


# --- reading --------------------------------------------------------------------------------------------------------

_PIECE = re.compile(r"\d+\.\d+|\w+(?:'\w+)?|[.!?;\n]|[,:()\u2013\u2014]")
_NUMBER_UNIT = re.compile(r"(\d+(?:\.\d+)?)([a-z%]+)")
_IRREGULAR = _words("yes does was its lens series always this has us plus gas rights")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")

Clause = tuple[str, ...]


@dataclass(frozen=True)
class _Text:
    """A text as sentences of clauses of words, words in their canonical form."""

    sentences: tuple[tuple[Clause, ...], ...]

    @property
    def clauses(self) -> list[Clause]:
        return [clause for sentence in self.sentences for clause in sentence]

    @property
    def words(self) -> list[str]:
        return [word for clause in self.clauses for word in clause]

    @property
    def content(self) -> list[str]:
        return [word for word in self.words if word not in _STOP]

    def lead(self, limit: int) -> _Text:
        """The first sentence, and those after it as long as there are at most ``limit`` words."""
        kept: list[tuple[Clause, ...]] = []
        total = 0
        for sentence in self.sentences:
            total += sum(len(clause) for clause in sentence)
            if kept and total > limit:
                break
            kept.append(sentence)
        return _Text(tuple(kept))


def _read(text: str, *, statements_only: bool = False) -> _Text:
    """Split into sentences, clauses and canonical words; linear in the (bounded) length.

    With ``statements_only``, questions and requests are dropped: models repeat the question, or its list of options.
    """
    sentences: list[tuple[Clause, ...]] = []
    clauses: list[Clause] = []
    words: list[str] = []

    def end_clause() -> None:
        if words:
            clauses.append(_canonical(words))
            words.clear()

    for piece in _PIECE.findall(_clean(text) + "\n"):
        if piece in ",:()\u2013\u2014":
            end_clause()
        elif piece in ".!?;\n":
            end_clause()
            length = sum(map(len, clauses))
            # 'CT?' is a doubtful answer, and still one.
            asks = (piece == "?" and length > 3) or any("please" in clause for clause in clauses)
            if clauses and not (statements_only and asks):
                sentences.append(tuple(clauses))
            clauses.clear()
        elif piece in ("but", "however", "although", "though", "whereas"):
            end_clause()
        else:
            words.extend(_split(piece))
    return _Text(_without_role(tuple(sentences)))


def _clean(text: str) -> str:
    text = unicodedata.normalize("NFKC", text[:_MAX_CHARACTERS])[:_MAX_CHARACTERS].casefold()
    text = text.replace("\u2019", "'").replace("\u2018", "'").replace("_", " ")
    # Invisible marks (zero width, text direction) vanish; other control characters separate words.
    kinds = ((character, unicodedata.category(character)) for character in text)
    return "".join("" if kind == "Cf" else " " if kind == "Cc" and c != "\n" else c for c, kind in kinds)


def _split(piece: str) -> list[str]:
    if piece.endswith("n't"):
        stem = piece[:-3]
        return [{"ca": "can", "wo": "will"}.get(stem, stem), "not"]
    if piece == "cannot":
        return ["can", "not"]
    piece, _, ending = piece.partition("'")
    extra = {"m": ["am"], "re": ["are"], "ll": ["will"], "ve": ["have"]}.get(ending, [])
    if match := _NUMBER_UNIT.fullmatch(piece):
        number, unit = match.groups()
        if unit in _UNITS:
            return [number, unit]
    return [_singular(piece), *extra]


def _singular(word: str) -> str:
    word = _ORDINALS.get(word, _NUMBERS.get(word, word))
    if len(word) < 4 or not word.endswith("s") or word in _IRREGULAR or word.endswith(("ss", "us", "is", "as")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "shes", "ches", "nuses")):  # the last for sinuses
        return word[:-2]
    return word[:-1]


def _phrase_table() -> dict[str, list[tuple[Clause, Clause]]]:
    table: dict[str, list[tuple[Clause, Clause]]] = {}
    for canonical, phrases in _ALIASES.items():
        for phrase in phrases:
            words = tuple(phrase.split())
            table.setdefault(words[0], []).append((words, tuple(canonical.split())))
    for entries in table.values():
        entries.sort(key=lambda entry: -len(entry[0]))
    return table


_PHRASES = _phrase_table()


def _canonical(words: Sequence[str]) -> Clause:
    """Replace every known phrase, the longest first; twice, because one phrase may build on another's result."""
    current = list(words)
    for _ in range(2):
        result: list[str] = []
        position = 0
        while position < len(current):
            for phrase, replacement in _PHRASES.get(current[position], ()):
                if tuple(current[position : position + len(phrase)]) == phrase:
                    result.extend(replacement)
                    position += len(phrase)
                    break
            else:
                result.append(current[position])
                position += 1
        current = result
    return tuple(current)


def _without_role(sentences: tuple[tuple[Clause, ...], ...]) -> tuple[tuple[Clause, ...], ...]:
    """Drop a leading 'Human:' or 'Answer:', which some models emit."""
    if not sentences or len(sentences[0]) < 2 or len(sentences[0][0]) > 2 or not set(sentences[0][0]) <= _ROLES:
        return sentences
    return (sentences[0][1:], *sentences[1:])


def _affirmed(text: _Text) -> tuple[set[str], set[str]]:
    """Words that are stated, and words denied by a negation in front of them in the same clause.

    What something is compared with ('clearer than the right lung') is neither.
    """
    stated: set[str] = set()
    denied: set[str] = set()
    for clause in text.clauses:
        until = -1
        for position, word in enumerate(clause):
            if word in _COMPARISONS:
                break
            if word in _NEGATIONS:
                until = position + _NEGATION_REACH
            elif position <= until:
                denied.add(word)
            else:
                stated.add(word)
    return stated, denied - stated


# --- yes or no ------------------------------------------------------------------------------------------------------


class _Reading(NamedTuple):
    """What an answer says to a yes/no question: True, False, None (cannot tell), and whether it contradicts itself."""

    value: bool | None
    why: str
    contradicts_itself: bool = False


def _polar_reference(reference: str) -> bool | None:
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
    if clause[0] == "no" and (len(clause) == 1 or clause[1] in _RESTART):
        return False
    if len(clause) == 1 and clause[0] in _POSITIVE_ONLY:
        return True
    if (len(clause) == 1 and clause[0] in _NEGATIVE_ONLY) or (len(clause) <= 3 and clause[0] == "not"):
        return False
    return None


def _leading(answer: _Text) -> bool | None:
    clauses = answer.clauses
    value = _standalone(clauses[0])
    if value is None and len(clauses) > 1 and clauses[0][0] in _INTRODUCTIONS:
        value = _standalone(clauses[1])
    return value


def _says_both(leading: bool, answer: _Text, key: set[str]) -> bool:
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
            if word not in _NEGATIONS:
                continue
            after = clause[position + 1 : position + 1 + _NEGATION_REACH]
            if key & set(after):
                return True
            unseen = word == "absent" or bool(_DETECTED & set(after[:2]))  # 'cannot be seen'
            if unseen and key & set(clause[:position]):
                return True
    return False


def _asks_about_finding(key: set[str]) -> bool:
    return any(word in _FINDINGS or _FINDING_ENDING.search(word) for word in key)


def _read_polar(question: _Text, answer: _Text) -> _Reading:
    key = set(question.content)
    leading = _leading(answer)
    if leading is not None:
        if _says_both(leading, answer, key):
            return _Reading(None, "the answer says both yes and no", contradicts_itself=True)
        return _Reading(leading, f"the answer starts with {_yes_no(leading)}")
    lead = answer.lead(_LEAD_WORDS)
    alone = {clause[0] for clause in lead.clauses if clause in (("yes",), ("no",))}
    if len(alone) == 2:
        return _Reading(None, "the answer says both yes and no", contradicts_itself=True)
    if alone:
        return _Reading(alone == {"yes"}, f"the answer says {alone.pop()}")
    if _NEGATIONS & set(question.words):
        return _Reading(None, "the question is negated and the answer has no clear yes or no")
    hedged = False
    for sentence in lead.sentences:
        words = {word for clause in sentence for word in clause}
        if _HEDGES & words:
            hedged = True
            continue
        value = _read_statement(sentence, words, key)
        if value is not None:
            return value
    return _Reading(None, "the answer hedges" if hedged else "the answer says neither yes nor no")


def _read_statement(sentence: tuple[Clause, ...], words: set[str], key: set[str]) -> _Reading | None:
    stated, denied = _affirmed(_Text((sentence,)))
    normal = "normal" in stated or "abnormal" in denied
    abnormal = "abnormal" in stated or "normal" in denied
    if normal != abnormal and key & {"normal", "abnormal"}:
        return _Reading(normal == ("normal" in key), f"the answer says {'normal' if normal else 'abnormal'}")
    if _denied(sentence, key):
        return _Reading(False, "the answer denies what was asked about")
    if key and key <= words and not _NEGATIONS & words:
        return _Reading(True, "the answer states what was asked about")
    for family in _FAMILIES:
        asked, said = family & key, family & stated
        if len(asked) == 1 and said and not asked & said and key - asked <= words:
            return _Reading(False, f"the answer says {' and '.join(sorted(said))} instead of {' '.join(asked)}")
    if normal and not abnormal and _asks_about_finding(key) and not key & words:
        return _Reading(False, "the answer says normal and the question is about a finding")
    return None


def _yes_no(value: bool) -> str:
    return "yes" if value else "no"


# --- numbers --------------------------------------------------------------------------------------------------------


def _count_of(words: Sequence[str]) -> float | None:
    """The reference as a count: one number (or no/none) and nothing else that matters."""
    numbers = {float(word) for word in words if _NUMBER.fullmatch(word)}
    if {"no", "none"} & set(words):
        numbers.add(0.0)
    return numbers.pop() if len(numbers) == 1 and not _UNITS & set(words) else None


def _counted_nouns(question: _Text) -> set[str] | None:
    """The content words right after 'how many' / 'number of'; None when the question does not ask for a count."""
    words = question.words
    for position in range(len(words) - 1):
        if (words[position], words[position + 1]) in (("how", "many"), ("number", "of")):
            rest = [word for word in words[position + 2 :] if word not in _STOP]
            return set(rest[:3])
    return None


def _counts_in(answer: _Text, nouns: set[str]) -> set[float]:
    near: set[float] = set()
    anywhere: set[float] = set()
    for sentence in answer.sentences[:1]:
        for clause in sentence:
            for position, word in enumerate(clause):
                if word in ("no", "none"):
                    value = 0.0
                elif _NUMBER.fullmatch(word):
                    value = float(word)
                else:
                    continue
                anywhere.add(value)
                if nouns & set(clause[position + 1 : position + 4]):
                    near.add(value)
    return near or anywhere


# --- labels ---------------------------------------------------------------------------------------------------------


def _options(question: _Text) -> list[str]:
    """The two words around 'or', when the question offers a choice."""
    words = [word for word in question.words if word not in ("a", "an", "the", "of", "in", "on", "side")]
    for position, word in enumerate(words[1:-1], start=1):
        if word == "or" and words[position - 1] not in _STOP and words[position + 1] not in _STOP:
            pair = [words[position - 1], words[position + 1]]
            return pair if pair[0] != pair[1] else []
    return []


def _alternatives(reference: _Text) -> list[set[str]]:
    """The reference's content words; several sets when it says 'a or b'."""
    groups: list[set[str]] = [set()]
    for word in reference.words:
        if word == "or":
            groups.append(set())
        elif word not in _STOP:
            groups[-1].add(word)
    return [group for group in groups if group]


def _one_of_several(wanted: set[str], words: list[str]) -> bool:
    """Is a wanted word next to an 'or': 'similar to bone or fat'?"""
    around = [words[max(at - 1, 0) : at] + words[at + 1 : at + 3] for at, word in enumerate(words) if word == "or"]
    return any(wanted & set(neighbours) for neighbours in around)


@dataclass(frozen=True)
class _Label:
    """An answer to a short-label reference, taken apart once for all label rules."""

    wanted: set[str]
    stated: set[str]
    denied: set[str]
    first: list[str]
    length: int


# --- the judge ------------------------------------------------------------------------------------------------------

Decision = tuple[int | None, str, str]


class RuleJudge:
    """Judge closed and short answers by fixed rules; decline the rest.

    The rules are tried in the order of :data:`RULES` and the first that applies decides; its id starts the reason of
    the verdict. ``describe_rules()`` returns them as text.

    Parameters
    ----------
    short_answer
        An answer with at most so many content words (those of the question not counted) is a label: when it shares
        none with the reference it is another label, and when it names both of two opposites it contradicts itself.
    short_reference
        A reference with more content words than this is free text and is not judged.
    """

    name = "rule"
    version = "1"

    def __init__(self, *, short_answer: int = 6, short_reference: int = 6) -> None:
        for key, value in (("short_answer", short_answer), ("short_reference", short_reference)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{key} must be a positive integer, got {value!r}")
        self.short_answer = short_answer
        self.short_reference = short_reference

    def settings(self) -> dict[str, Any]:
        return {
            "judge": self.name,
            "version": self.version,
            "short_answer": self.short_answer,
            "short_reference": self.short_reference,
        }

    def judge(self, cases: Sequence[Case]) -> list[Verdict]:
        return [self.judge_one(case) for case in cases]

    def judge_one(self, case: Case) -> Verdict:
        label, rule, why = self._decide(case.question, case.reference, case.answer)
        return Verdict(label=label, reason=f"{rule}: {why}", judge=self.name, version=self.version)

    def _decide(self, question_text: str, reference_text: str, answer_text: str) -> Decision:
        question, reference = _read(question_text), _read(reference_text)
        answer = _read(answer_text, statements_only=True)
        if not reference.words:
            return None, "no-reference", "there is no reference"
        if not answer.words:
            return None, "empty-answer", "the answer states nothing"
        if _leading(answer) is None and _REFUSAL.search(" ".join(answer.lead(_LEAD_WORDS).words)):
            return None, "refusal", "the answer declines"
        if answer.words == reference.words:
            return SUPPORTED, "equal", "answer and reference are the same"
        nouns = _counted_nouns(question)
        count = _count_of(reference.words)
        if nouns is not None and count is not None and len(reference.content) <= 3:
            return self._count(count, nouns, answer)
        polar = _polar_reference(reference_text)
        if polar is None and reference.words[0] in ("yes", "no") and question.words[:1] and not _options(question):
            # 'No, there is no pneumothorax' as the reference of a yes/no question.
            polar = _leading(reference) if question.words[0] in _AUXILIARY else None
        if polar is not None:
            return self._polar(polar, question, answer)
        return self._label(question, reference, answer)

    def _count(self, count: float, nouns: set[str], answer: _Text) -> Decision:
        found = _counts_in(answer, nouns)
        if len(found) == 1:
            said = found.pop()
            same = said == count
            return (SUPPORTED if same else HALLUCINATED), "count", f"the answer says {said:g}, the reference {count:g}"
        if found:
            if len(answer.words) <= 2 * self.short_answer:
                return HALLUCINATED, "count", "the answer gives several numbers"
            return None, "count", "several numbers in a long answer"
        if _MANY & set(answer.lead(_LEAD_WORDS).words):
            if count <= 1:
                return HALLUCINATED, "count", f"the answer says several, the reference {count:g}"
            return None, "count", "the answer says several"
        return None, "count", "no number in the answer"

    def _polar(self, truth: bool, question: _Text, answer: _Text) -> Decision:
        reading = _read_polar(question, answer)
        if reading.contradicts_itself:
            return HALLUCINATED, "polar", reading.why
        if reading.value is None:
            return None, "polar", reading.why
        label = SUPPORTED if reading.value == truth else HALLUCINATED
        return label, "polar", f"{reading.why}, read as {_yes_no(reading.value)}; the reference is {_yes_no(truth)}"

    def _label(self, question: _Text, reference: _Text, answer: _Text) -> Decision:
        alternatives = _alternatives(reference)
        if not alternatives or max(map(len, alternatives)) > self.short_reference or _NEGATIONS & set(reference.words):
            return None, "open-reference", "the reference is free text, a negation, or has no word that can be compared"
        lead = answer.lead(_LEAD_WORDS)
        stated, denied = _affirmed(lead)
        options = _options(question)
        echoed = set(question.content) - set(options)
        first = _Text(lead.sentences[:1]).words
        decisions = []
        for wanted in alternatives:
            if "bilateral" in wanted and {"left", "right"} <= stated:  # 'the left and the right lung'
                stated = (stated | {"bilateral"}) - {"left", "right"}
                first = [*first, "bilateral"]
            own = [word for word in answer.content if word not in echoed or word in wanted]
            parts = _Label(wanted, stated, denied, first, len(own))
            decisions.append(self._one_label(parts, options))
        # 'a or b': one alternative that fits is enough; and only when none may fit is the answer called wrong.
        for label in (SUPPORTED, None):
            for decision in decisions:
                if decision[0] == label:
                    return decision
        return decisions[0]

    def _one_label(self, case: _Label, options: list[str]) -> Decision:
        wanted, stated = case.wanted, case.stated
        short = case.length <= self.short_answer
        names = " ".join(sorted(wanted))
        if len(options) == 2 and len(wanted & set(options)) == 1:
            other = (set(options) - wanted).pop()
            if other in stated and not wanted & stated:
                return HALLUCINATED, "choice", f"the answer says {other}, the reference {names}"
            if wanted <= stated and other not in stated:
                return SUPPORTED, "choice", f"the answer says {names}, not {other}"
        if wanted <= case.denied:
            return HALLUCINATED, "negated", f"the answer denies {names}"
        for family in _FAMILIES:
            right, said = family & wanted, family & stated
            if not right or not said or said == right:
                continue
            found = f"the answer says {' and '.join(sorted(said))}, the reference {' and '.join(sorted(right))}"
            if not said & right:
                return HALLUCINATED, "conflict", found
            if said > right:
                return (HALLUCINATED if short else None), "conflict", found
        first = case.first
        if wanted <= set(first) - case.denied:
            if _one_of_several(wanted, first):
                return None, "contains", f"the answer offers {names} as one of several"
            return SUPPORTED, "contains", f"the answer names {names}"
        if _UNITS & wanted:
            return None, "measure", "the answer does not state the same measurement"
        shared = wanted & stated
        if wanted <= shared:
            return None, "undecided", f"the answer names {names} only in passing"
        if shared - _QUALIFIERS or (shared and wanted <= _QUALIFIERS):
            return None, "partial", f"the answer shares only {' '.join(sorted(shared))} with {names}"
        if not case.length:
            return None, "undecided", "the answer only repeats words of the question"
        if short:
            return HALLUCINATED, "different", f"a short answer that is not {names}"
        return None, "undecided", f"a longer answer without any word of {names}"


def describe_rules() -> str:
    """The rules in the order they are tried, one per line."""
    return "\n".join(f"{number}. {name}: {text}" for number, (name, text) in enumerate(RULES.items(), start=1))
