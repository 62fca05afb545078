"""Sentences of medical text: abbreviations, decimals and list markers do not end one."""

from __future__ import annotations

import re
from collections.abc import Iterator

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
_MARKDOWN = re.compile(r"\A(?:#{1,6}\s+|>\s+)")
# From its first mark alone, or a row of ten thousand would be looked through ten thousand times.
_END = re.compile(r"(?<![.!?])[.!?]+[\"'”’)\]*_]*(?=\s)")
_LAST_WORD = re.compile(r"[^\s(\[\"'“‘]*$")
_OPENING = "\"'“‘([*_"

_LONGEST_HEADING = 5
"""Words of a line such as `Findings:` that says nothing of its own."""


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, without list markers, headings and empty pieces.

    A sentence ends at `.`, `!` or `?` before white space, at a blank line, and before a line that begins with a list
    marker. A stop after an abbreviation ("approx. 3 cm"), an initial or the number of a list item
    ("1. Clear lungs") ends none; a broken line does not either. Headings are lines of a few words with a colon at the
    end or a Markdown mark in front.

    Example:
        >>> split_sentences("A mass of approx. 3 cm. It has 2.5 cm walls.\\n\\nImpression:\\n1. Cyst.\\n2. No effusion")
        ['A mass of approx. 3 cm.', 'It has 2.5 cm walls.', 'Cyst.', 'No effusion']
    """
    return [_on_one_line(text[start:end]) for start, end in sentence_spans(text)]


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Where the sentences of `split_sentences` stand in the text: start and end of their characters.

    Example:
        >>> text = "Impression:\\n1. Cyst in the\\nliver. 2. No effusion"
        >>> [text[start:end] for start, end in sentence_spans(text)]
        ['Cyst in the\\nliver.', 'No effusion']
    """
    return [(start, end) for start, end in _spans(text) if _says_something(text[start:end])]


def whole_sentences(text: str) -> list[str]:
    """The sentences of a text with all that stands in them: list markers, headings and marks are kept.

    Example:
        >>> whole_sentences("> p > 0.05 was found. It is\\n1) small")
        ['> p > 0.05 was found.', 'It is', '1) small']
    """
    return [_on_one_line(text[start:end]) for start, end in _spans(text, whole=True)]


def _on_one_line(text: str) -> str:
    return " ".join(map(str.strip, text.splitlines()))


def _spans(text: str, *, whole: bool = False) -> Iterator[tuple[int, int]]:
    """The pieces of all blocks without the white space around them and, unless `whole`, their list markers."""
    for first, last in _blocks(text, whole=whole):
        block, begin = text[first:last], 0
        for end in (*_ends(block), len(block)):
            stop = first + begin + len(block[begin:end].rstrip())
            start = first + end - len(block[begin:end].lstrip())
            if not whole and (marker := _MARKER.match(text, start, stop)):
                start = marker.end()
            if start < stop:
                yield start, stop
            begin = end


def _blocks(text: str, *, whole: bool = False) -> Iterator[tuple[int, int]]:
    """Where lines that belong together begin and end: list items, paragraphs."""
    start = end = at = 0
    last = ""
    for raw in text.splitlines(keepends=True):
        line = raw.strip()
        stripped = _MARKDOWN.sub("", line, count=1)
        marker = _MARKER.match(stripped)
        if last and (not stripped or marker or _is_closed(last) or stripped != line):
            yield start, end
            last = ""
        own = line if whole else "" if _is_title(line, stripped) else stripped[marker.end() :] if marker else stripped
        if own:
            end = at + len(raw.rstrip())
            start, last = start if last else end - len(own), own
        at += len(raw)
    if last:
        yield start, end


def _is_title(line: str, stripped: str) -> bool:
    """Whether a line is a Markdown heading, which says nothing of its own."""
    return line.startswith("#") and stripped != line and len(stripped.split()) <= _LONGEST_HEADING


def _is_closed(line: str) -> bool:
    return line.rstrip("*_ \"'”’)]").endswith((".", "!", "?", ":", ";"))


def _ends(block: str) -> Iterator[int]:
    """Where sentences of a block end."""
    start = 0
    items = {int(number) for number in _ITEM.findall(block)}
    for end in _END.finditer(block):
        if _is_end(block, start, end, items):
            yield (start := end.end())


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
