"""Refusal of texts that are no wrong answers, by rules; no model is asked."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

from hedge_tasks.data.sentences import split_sentences
from hedge_tasks.replies.declining import declines, doubts, unanswered
from hedge_tasks.replies.reading import DOUBT

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
STOCK_PHRASE = "stock phrase"
"""Reason of a text that stands in several rows."""

_NEAR = 6
_EXACT = 3
"""Words from which on a text that stands in another is no chance."""


def folded(text: str) -> str:
    """Lower-case words as a reader sees them: without invisible marks, look-alike letters, accents and labels in front.

    Example:
        >>> folded("Answer: \\u200b“Ｌeft” lung, 0.5 cm")
        'left lung 0.5 cm'
    """
    seen = "".join(
        c for c in unicodedata.normalize("NFKC", text) if unicodedata.category(c) not in ("Cf", "Cc") or c.isspace()
    )
    plain = "".join(
        c for c in unicodedata.normalize("NFKD", seen.translate(_LIKE_LATIN)) if not unicodedata.combining(c)
    )
    low = re.sub(r"\A\W*(?:the )?(?:\w+ )?answer(?: is)?\W*[:=]\s*", "", " ".join(plain.casefold().split()))
    return " ".join(re.findall(r"\d+(?:\.\d+)?|\w+", low.replace("_", " ")))


def refused(text: str, truth: str, question: str = "", instructions: str = "") -> str | None:
    """Why a text is no wrong answer; None where it may be one.

    Args:
        instructions: What its writer was told.

    Example:
        >>> refused("I'm sorry, but I cannot help.", "5 mm"), refused("“5 MM”", "5 mm"), refused("5 cm", "5 mm")
        ('refusal', 'same as the truth', None)
    """
    words, beside = folded(text), f"{truth} {question}"
    why = None if unanswered(truth) else unanswered(text)
    checks: Mapping[str, Callable[[], object]] = {
        "empty": lambda: _NOTHING.fullmatch(words),
        "placeholder": lambda: _is_new(PLACEHOLDER, text, truth),
        "echo": lambda: words == folded(question) or _copied(words, folded(instructions)) > _MOST_COPIED,
        "refusal": lambda: why not in (None, DOUBT) or _declines(text, truth),
        "about itself": lambda: _is_new(_ABOUT_ITSELF, text, beside),
        "marker": lambda: _is_new(MARKER, text, beside),
        "says nothing definite": lambda: why or (doubts(text) and not doubts(truth)) or _is_new(_EITHER, text, truth),
    }
    return next((reason for reason, fails in checks.items() if fails()), None) or _copy(words, folded(truth), text)


def _declines(text: str, truth: str) -> bool:
    abroad = _is_new(_DECLINES_ABROAD, text, truth) or _is_new(DECLINES, text, truth)
    return abroad or (declines(text) and not declines(truth))


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


def _copy(candidate: str, true: str, text: str) -> str | None:
    words, true_words = candidate.split(), true.split()
    repeats = bool(true_words) and words == true_words * (len(words) // len(true_words))
    if candidate == true or repeats:
        return "same as the truth"
    if len(true_words) >= _EXACT and _stands_in(true, candidate):
        return "repeats the truth"
    parts = [folded(sentence) for sentence in split_sentences(text)] or [candidate]
    return "part of the truth" if all(_stands_in(part, true) for part in parts if part) else None


def _stands_in(part: str, whole: str) -> bool:
    """Whether a part stands in a text that does not deny it: nothing in the few words in front of it does."""
    before, match, _ = f" {whole} ".partition(f" {part} ")
    return bool(match) and not NEGATION.search(" ".join(before.split()[-_NEAR:]))


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
