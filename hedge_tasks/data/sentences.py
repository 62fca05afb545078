"""Sentences of medical text: abbreviations, decimals and list markers do not end one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

# Words whose full stop is no end where more text follows. Lower case, without the stop.
_STOPPED = (
    "approx ca cf jan feb aug sept oct nov dec p.o b.i.d q.d dr e.g eg etc fig figs i.e ie incl max min mr mrs "
    "ms no nos p pp prof resp st vs viz ant post sup inf lat med bilat dept dx hx tx rx esp est al a.m p.m"
)
_ABBREVIATIONS = frozenset(_STOPPED.split())
# Of these a capital letter may well begin a new sentence: "..., etc. The lungs are clear."
_MAY_END = frozenset({"etc", "al", "a.m", "p.m", "min", "max", "post", "lat", "med", "inf", "sup", "ant", "no"})

_MARKER = re.compile(r"(?:[-*•‣◦–·]|\(?[0-9]{1,2}[.)]|\(?[a-zA-Z][.)])\s+")
_BULLETS = "-•‣◦–·"
_ITEM = re.compile(r"(?<![\w.])([0-9]{1,2})\.\s")
_WORD = re.compile(r"\S+")
_MARKDOWN = re.compile(r"\A(?:#{1,6}\s+|>\s+)")
# From its first mark alone, or a row of ten thousand would be looked through ten thousand times.
_END = re.compile(r"(?<![.!?])[.!?]+[\"'”’)\]*_]*(?=\s)")
# Reports whose stops have become commas: "..., No effusion is seen, Surgical clips are noted".
_OPENED = re.compile(r",(?=\s(?:A|An|The|No|There|This|These|Those|It|Its)\s)")
_CAPITAL = re.compile(r",(?=\s(?:[A-Z][a-z]+|[A-Z]+\s[a-z]+|A)\b)")
_STOP_INSIDE = re.compile(r"[a-z0-9)][.!?]\s+[A-Z]")
_FEWEST_WORDS = 3
"""Words that a piece behind a comma has, all but one in lower case; else it is a name: "London, The Hague and Rome"."""
_LAST_WORD = re.compile(r"[^\s(\[\"'“‘]*$")
_OPENING = "\"'“‘([*_"

_LONGEST_HEADING = 5
"""Words of a line such as `Findings:` that says nothing of its own."""


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, without list markers, headings and empty pieces.

    A sentence ends at `.`, `!` or `?` before white space, at a comma that stands for one (before a capital "The", "No",
    "There" and their like; in a text without stops before any capital), at a blank line, and before a line that begins
    with a list marker. A stop after an abbreviation ("approx. 3 cm"), an initial or the number of a list item
    ("1. Clear lungs") ends none; a broken line does not either. Headings are lines of a few words with a colon at the
    end or a Markdown mark in front.

    Example:
        >>> split_sentences("A mass of approx. 3 cm. It has 2.5 cm walls.\\n\\nImpression:\\n1. Cyst.\\n2. No effusion")
        ['A mass of approx. 3 cm.', 'It has 2.5 cm walls.', 'Cyst.', 'No effusion']
    """
    return [sentence for block in _blocks(text) for sentence in _split_block(block) if _says_something(sentence)]


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Where the sentences of `split_sentences` stand in the text: start and end of their characters.

    Example:
        >>> text = "Impression:\\n1. Cyst in the\\nliver. 2. No effusion"
        >>> [text[start:end] for start, end in sentence_spans(text)]
        ['Cyst in the\\nliver.', 'No effusion']
    """
    words = [(match.start(), match.end()) for match in _WORD.finditer(text)]
    spans, at = [], 0
    for sentence in split_sentences(text):
        # A sentence is a run of whole words: what lies between two of them is white space, headings and markers.
        sentence_words = sentence.split()
        while text[slice(*words[at])] != sentence_words[0] or (
            [text[start:end] for start, end in words[at : at + len(sentence_words)]] != sentence_words
        ):
            at += 1
            if at + len(sentence_words) > len(words):
                raise AssertionError(f"{sentence!r} is no part of its text")
        spans.append((words[at][0], words[at + len(sentence_words) - 1][1]))
        at += len(sentence_words)
    return spans


def whole_sentences(text: str) -> list[str]:
    """The sentences of a text with all that stands in them: list markers, headings and marks are kept.

    Example:
        >>> whole_sentences("> p > 0.05 was found. It is\\n1) small")
        ['> p > 0.05 was found.', 'It is', '1) small']
    """
    return [piece for block in _blocks(text, whole=True) for piece in _split_block(block, whole=True) if piece]


def _blocks(text: str, *, whole: bool = False) -> Iterator[str]:
    """Lines that belong together, joined: list items, paragraphs."""
    block: list[str] = []
    for line in text.splitlines():
        stripped = _MARKDOWN.sub("", line.strip(), count=1)
        marker = _MARKER.match(stripped)
        if block and (not stripped or marker or _is_closed(block[-1]) or stripped != line.strip()):
            yield " ".join(block)
            block = []
        if whole:
            block += filter(None, [line.strip()])
        elif not _is_title(line, stripped):
            block += filter(None, [stripped[marker.end() :] if marker else stripped])
    if block:
        yield " ".join(block)


def _is_title(line: str, stripped: str) -> bool:
    """Whether a line is a Markdown heading, which says nothing of its own."""
    return line.lstrip().startswith("#") and stripped != line.strip() and len(stripped.split()) <= _LONGEST_HEADING


def _is_closed(line: str) -> bool:
    return line.rstrip("*_ \"'”’)]").endswith((".", "!", "?", ":", ";"))


def _split_block(block: str, *, whole: bool = False) -> Iterator[str]:
    start = 0
    items = {int(number) for number in _ITEM.findall(block)}
    ends = sorted((*_END.finditer(block), *_commas(block)), key=lambda end: end.start())
    for end in ends:
        if end[0] == "," or _is_end(block, start, end, items):
            yield _unmarked(block[start : end.end()], whole)
            start = end.end()
    yield _unmarked(block[start:], whole)


def _commas(block: str) -> list[re.Match[str]]:
    """Commas that stand where a stop should: before "The", "No" and their like, or, without stops, any capital."""
    pattern = _OPENED if _STOP_INSIDE.search(block) else _CAPITAL
    behind = ((comma, re.split(r"[,;]", block[comma.end() :], maxsplit=1)[0]) for comma in pattern.finditer(block))
    commas = [comma for comma, clause in behind if _is_clause(clause.split())]
    return commas if len(commas) > 1 else [comma for comma in commas if _OPENED.match(block, comma.start())]


def _is_clause(words: Sequence[str]) -> bool:
    return len(words) >= _FEWEST_WORDS and sum(word[0].islower() for word in words) >= _FEWEST_WORDS - 1


def _unmarked(piece: str, whole: bool) -> str:
    piece = piece.strip()
    if whole:
        return piece
    return piece[marker.end() :] if (marker := _MARKER.match(piece)) else piece


def _is_end(block: str, start: int, end: re.Match[str], items: set[int]) -> bool:
    following = block[end.end() : end.end() + 40].lstrip().lstrip(_OPENING)
    if not following:
        return True
    if end[0][0] != ".":
        return following[0].isupper() or following[0].isdigit()
    # A word is not longer than this: a text of one endless word must not make it slow.
    match = _LAST_WORD.search(block[max(start, end.start() - 40) : end.start()])
    word = match[0].lower() if match else ""
    if word in _ABBREVIATIONS:
        return word in _MAY_END and following[0].isupper()
    if len(word) == 1 and word.isalpha():
        return False
    if re.fullmatch("[0-9]{1,2}", word):
        # "2." in running text counts items where "1." or "3." stands there, too.
        at_start = end.start() - len(word) - start <= 1
        if at_start or items & {int(word) - 1, int(word) + 1}:
            return False
    return following[0].isalnum() or following[0] in _BULLETS


def _says_something(sentence: str) -> bool:
    words = sentence.strip("*_ ").split()
    heading = sentence.rstrip("*_ ").endswith(":") and len(words) <= _LONGEST_HEADING
    return not heading and any(character.isalnum() for character in sentence)
