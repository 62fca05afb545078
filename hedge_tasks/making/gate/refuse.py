"""Refusal of texts that are no wrong answers, by rules; no model is asked."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

from hedge_tasks.data.sentences import split_sentences
from hedge_tasks.replies.declining import declines, doubts, unanswered
from hedge_tasks.replies.reading import DOUBT

MOST_FALLBACKS = 0.2
"""Share of rows that no judge was deceived by, from which on a set is not what it is called."""

FRAME = 0.5
"""Share of an answer's wording, foreign to its question, that stands in other answers too: then it follows a frame."""

_LIKE_LATIN = str.maketrans(
    "АВЕКМНОРСТХаеорсухіјѕԁԛԝΑΒΕΖΗΙΚΜΝΟΡΤΥΧαεικνορτυχѵɑɡıӏ", "ABEKMHOPCTXaeopcyxijsdqwABEZHIKMNOPTYXaeiknoptuxvagil"
)
"""Cyrillic and Greek letters that look like Latin ones."""

_NOTHING = re.compile(r"(?:n a|na|null|none|nil|nan|unknown|undefined|tbd|todo|no answer|empty|blank|not available)?")
_PHRASES: Mapping[str, Sequence[str]] = json.loads((resources.files(__package__) / "phrases.json").read_text("utf-8"))


def any_of(kind: str) -> re.Pattern[str]:
    """The phrases of a kind, in `phrases.json`."""
    return re.compile("|".join(_PHRASES[kind]), re.IGNORECASE)


PLACEHOLDER, MARKER, DECLINES = any_of("placeholder"), any_of("marker"), any_of("declines")
_ABOUT_ITSELF, _DECLINES_ABROAD, _EITHER = any_of("about_itself"), any_of("declines_abroad"), any_of("indefinite")
NEGATION = re.compile(r"\b(?:no|not|never|none|neither|nor|without|cannot)\b|n't\b", re.IGNORECASE)
_UNITS = {
    **dict.fromkeys(("mm", "millimetre", "millimeter", "millimetres", "millimeters"), (1.0, "length")),
    **dict.fromkeys(("cm", "centimetre", "centimeter", "centimetres", "centimeters"), (10.0, "length")),
    **dict.fromkeys(("m", "metre", "meter", "metres", "meters"), (1000.0, "length")),
    **dict.fromkeys(("mg", "milligram", "milligrams"), (1.0, "mass")),
    **dict.fromkeys(("g", "gram", "grams"), (1e3, "mass")),
    **dict.fromkeys(("kg", "kilogram", "kilograms"), (1e6, "mass")),
    **dict.fromkeys(("ml", "millilitre", "millilitres"), (1.0, "volume")),
    **dict.fromkeys(("l", "litre", "litres", "liter", "liters"), (1e3, "volume")),
    **dict.fromkeys(("min", "minute", "minutes"), (1.0, "time")),
    **dict.fromkeys(("h", "hour", "hours"), (60.0, "time")),
    **dict.fromkeys(("day", "days"), (1440.0, "time")),
    **dict.fromkeys(("week", "weeks"), (10080.0, "time")),
    **dict.fromkeys(("month", "months"), (1.0, "months")),
    **dict.fromkeys(("year", "years"), (12.0, "months")),
}
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)\b")
_LITTLE = frozenset(("a", "an", "the", "of", "is", "are", "was", "were", "it", "that", "this", "and", "to", "in"))
_DIRECTED = frozenset(
    ("before", "after", "than", "to", "from", "by", "above", "below", "over", "under", "left", "right")
)
STOCK_PHRASE = "stock phrase"
"""Reason of a text that stands in several rows."""

_NEAR = 6
_EXACT = 3
"""Words from which on a text that stands in another is no chance."""


def folded(text: str) -> str:
    """Lower-case words as a reader sees them: without invisible marks, look-alike letters, accents and labels in front.

    Quantities are in one unit each.

    Example:
        >>> folded("Answer: \\u200b“Ｌeft” lung, 0.5 cm"), folded("left lung 5 mm")
        ('left lung 5 length', 'left lung 5 length')
    """
    seen = "".join(
        c for c in unicodedata.normalize("NFKC", text) if unicodedata.category(c) not in ("Cf", "Cc") or c.isspace()
    )
    plain = "".join(
        c for c in unicodedata.normalize("NFKD", seen.translate(_LIKE_LATIN)) if not unicodedata.combining(c)
    )
    low = re.sub(r"\A\W*(?:the )?(?:\w+ )?answer(?: is)?\W*[:=]\s*", "", " ".join(plain.casefold().split()))
    low = _QUANTITY.sub(_in_one_unit, low)
    return " ".join(re.findall(r"\d+(?:\.\d+)?|\w+", low.replace("_", " ")))


def _in_one_unit(match: re.Match[str]) -> str:
    factor, kind = _UNITS.get(match[2], (None, ""))
    return match[0] if factor is None else f"{float(match[1]) * factor:g} {kind}"


def refused(text: str, truth: str, question: str = "", instructions: str = "", *, least: int = 1) -> str | None:
    """Why a text is no wrong answer; None where it may be one.

    Args:
        instructions: What its writer was told.
        least: Words from which on a part of the truth is refused; a single word may be all that a question asks for.

    Example:
        >>> refused("I'm sorry, but I cannot help.", "5 mm"), refused("0.5 cm", "5 mm"), refused("5 cm", "5 mm")
        ('refusal', 'same as the truth', None)
    """
    words, true_words = folded(text), folded(truth)
    if _NOTHING.fullmatch(words):
        return "empty"
    if _is_new(PLACEHOLDER, text, truth):
        return "placeholder"
    if words == folded(question) or (instructions and _copied(words, folded(instructions)) > _MOST_COPIED):
        return "echo"
    why = None if unanswered(truth) else unanswered(text)
    abroad = _is_new(_DECLINES_ABROAD, text, truth)
    if (
        abroad
        or _is_new(DECLINES, text, truth)
        or (declines(text) and not declines(truth))
        or (why not in (None, DOUBT))
    ):
        return "refusal"
    if _is_new(_ABOUT_ITSELF, text, f"{truth} {question}"):
        return "about itself"
    if _is_new(MARKER, text, f"{truth} {question}"):
        return "marker"
    if why or (doubts(text) and not doubts(truth)) or _is_new(_EITHER, text, truth):
        return "says nothing definite"
    return _copy(words, true_words, text, least)


def no_answer(text: str) -> str | None:
    """Why a judged text is no answer: it is empty, or a placeholder.

    What refuses or doubts may be judged: that is an answer of a model, and judges meet them.
    """
    if _NOTHING.fullmatch(folded(text)):
        return "empty"
    return "placeholder" if PLACEHOLDER.search(text) else None


_MOST_COPIED = 0.6


def _is_new(pattern: re.Pattern[str], text: str, beside: str) -> bool:
    present = {match[0].casefold() for match in pattern.finditer(beside)}
    return any(match[0].casefold() not in present for match in pattern.finditer(text))


def _copied(words: str, source: str) -> float:
    """Share of a text's runs of five words that stand in a source."""
    runs = _runs(words, 5)
    return len(runs & _runs(source, 5)) / len(runs) if runs else 0.0


def _runs(text: str, length: int) -> set[tuple[str, ...]]:
    words = text.split()
    return {tuple(words[at : at + length]) for at in range(len(words) - length + 1)}


def _copy(candidate: str, true: str, text: str, least: int) -> str | None:
    words, of_truth = candidate.split(), true.split()
    content, of_content = (sorted(w for w in text_words if w not in _LITTLE) for text_words in (words, of_truth))
    negations = [len(NEGATION.findall(text_words)) for text_words in (candidate, true)]
    if candidate == true or (content == of_content and negations[0] == negations[1] and _same_order(words, of_truth)):
        return "same as the truth"
    if len(of_truth) >= 1 and words == of_truth * (len(words) // len(of_truth)):
        return "same as the truth"
    if len(of_truth) >= _EXACT and f" {true} " in f" {candidate} ":
        return "repeats the truth"
    parts = [folded(sentence) for sentence in split_sentences(text)] or [candidate]
    if len(words) >= least and all(_stands_in(part, true) for part in parts if part):
        return "part of the truth"
    return None


def _stands_in(part: str, whole: str) -> bool:
    """Whether a part stands in a text that does not deny it: nothing in the few words in front of it does."""
    before, match, _ = f" {whole} ".partition(f" {part} ")
    return bool(match) and not NEGATION.search(" ".join(before.split()[-_NEAR:]))


def _same_order(words: Sequence[str], others: Sequence[str]) -> bool:
    """Whether what changed places are whole clauses: "A and B" is "B and A", "A before B" is not "B before A"."""
    if [w for w in words if w[0].isdecimal()] != [w for w in others if w[0].isdecimal()]:
        return False
    return list(words) == list(others) or not _DIRECTED & set(words)


@dataclass(frozen=True)
class Written:
    """A made text beside what it was made for.

    Attributes:
        text: The made one.
        beside: Question, truth and evidence: what may stand in it without being a frame.
    """

    text: str
    beside: str


def repeated(rows: Sequence[Written]) -> dict[int, str]:
    """Rows whose text is a stock phrase or follows a frame, by place. It depends on no order.

    A stock phrase stands in at least two rows and in no truth of theirs; of a frame at least half of the runs of three
    words are foreign to the row's own question and stand in a twentieth of the rows, and in three at least.
    """
    texts = [folded(row.text) for row in rows]
    times = Counter(texts)
    foreign = [_runs(text, 3) - _runs(folded(row.beside), 3) for text, row in zip(texts, rows, strict=True)]
    spread = Counter(run for runs in foreign for run in runs)
    many = max(3, len(rows) // 20)
    reasons: dict[int, str] = {}
    for place, (text, runs) in enumerate(zip(texts, foreign, strict=True)):
        n_runs = len(_runs(text, 3))
        if times[text] > 1 and len(text.split()) >= _EXACT + 1:
            reasons[place] = STOCK_PHRASE
        elif n_runs >= _EXACT and sum(spread[run] >= many for run in runs) >= FRAME * n_runs:
            reasons[place] = "follows a frame"
    return reasons
