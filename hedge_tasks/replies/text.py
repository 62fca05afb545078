"""From what a model wrote to plain text: without control tokens, thoughts, Markdown and LaTeX."""

from __future__ import annotations

import re
import unicodedata

from hedge_tasks.data.thoughts import without_thoughts
from hedge_tasks.replies.reading import CUT, EMPTY, FAILED, THOUGHT, Reading, unreadable
from hedge_tasks.replies.wording import languages, words

LONGEST_READ = 8_000
"""Characters that are read of a reply once its thoughts are gone: half from its beginning, half from its end."""

_FAILED = re.compile(r"\[LMMS_EVAL_(?:REQUEST_FAILED|BUDGET_EXCEEDED)\b")

# Tokens that a server should have kept to itself.
_CONTROL = re.compile(
    r"<\|[^<>|\n]{1,40}\|>|<｜[^<>｜\n]{1,40}｜>|</?s>|<(?:eos|bos|pad|unk)>|<(?:end|start)_of_(?:turn|utterance)>"
    r"|\[/?INST\]",
    re.IGNORECASE,
)
_ROLE = re.compile(r"\A\s*(?:assistant|model|ai|bot|human|user)\s*:\s*", re.IGNORECASE)

# Where a model that goes on without end plays the next one who asks.
_NEXT_TURN = re.compile(r"\n[^\S\n]*(?:question|user|human|q)\s*:", re.IGNORECASE)
_ASKS_FIRST = re.compile(
    r"\A\s*(?:question|user|human|q)\s*:(?:[^\n]*\n){1,4}?\s*(?:assistant|answer|model|a)\s*:", re.IGNORECASE
)

_BOXED = re.compile(r"\\(?:boxed|fbox)\s*\{((?:[^{}]|\{[^{}]*\}){0,300})\}")
_ANSWER_TAG = re.compile(
    r"<(answer|final_answer|final|verdict|output|result|choice)>(.{0,2000}?)(?:</\1>|\Z)", re.IGNORECASE | re.DOTALL
)
_TAG = re.compile(r"</?[a-z][a-z_]{0,30}>", re.IGNORECASE)
_LATEX_TEXT = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mathit|operatorname)\s*\{([^{}]*)\}")
_LATEX_MARK = re.compile(r"\\[()\[\],;! ]|\${1,2}")

_MARKDOWN = re.compile(r"(?m)^[ \t]*(?:#{1,6}(?!#)|>|[-*•+–](?=\s))[ \t]*|[*`]+|(?<!\w)_{1,2}|_{1,2}(?!\w)")

_PUNCTUATION = str.maketrans(
    {
        **dict.fromkeys("‘’‛′´", "'"),
        **dict.fromkeys("“”„‟«»「」『』〈〉《》", '"'),
        **dict.fromkeys("【〔", "("),
        **dict.fromkeys("】〕", ")"),
        **dict.fromkeys("、،", ","),
        "؛": ";",
        "؟": "?",
        **dict.fromkeys("。｡", ". "),
        **dict.fromkeys("¡¿\u00ad\u061c\ufeff", ""),
        **dict.fromkeys((chr(at) for at in range(0x200B, 0x2070) if unicodedata.category(chr(at)) == "Cf"), ""),
        **dict.fromkeys("‐‑‒–", "-"),
        **dict.fromkeys("—―", " - "),
        **dict.fromkeys("✔✅☑🗸", "✓"),
        **dict.fromkeys("✘❌✖☒✕❎⛔", "✗"),
        "\ufe0f": "",
        "→": " -> ",
    }
)
"""Typographic marks as plain ones; invisible ones (zero width, text direction) are gone.

Of check marks and crosses one of each is left.
"""

_MARKS = frozenset("✓✔✅☑✗✘❌✖✕❎")
"""That are an answer without any word."""

_LETTERS = re.compile(r"[^\W\d_]+")
_NO_LATIN = 0.3


def body(reply: str, *, cut: bool = False) -> str | Reading:
    """The part of a reply that may hold an answer, as it was written, or why there is none."""
    if _FAILED.match(reply.lstrip()):
        return unreadable(FAILED)
    text, is_open = without_thoughts(reply)
    if is_open:
        return unreadable(THOUGHT)
    text = _ROLE.sub("", _own_turn(_CONTROL.sub("", text)))
    if len(text) > LONGEST_READ:
        half = LONGEST_READ // 2
        text = f"{text[:half]}\n{text[-half:]}"
    if not any(character.isalnum() or character in _MARKS for character in text):
        return unreadable(CUT if cut else EMPTY)
    return text.strip()


def _own_turn(text: str) -> str:
    """A reply without the turns that its author makes up: what is asked next, and the question before its answer."""
    text = text[begun.end() :] if (begun := _ASKS_FIRST.match(text)) else text
    further = _NEXT_TURN.search(text)
    own_part = text[: further.start()] if further else text
    return own_part if any(character.isalnum() for character in own_part) else text


def plain(text: str) -> str:
    """Without Markdown, LaTeX and typographic punctuation; what is boxed or tagged as the answer says so in words.

    Example:
        >>> plain("So **it** is $\\\\boxed{\\\\text{B}}$。")
        'So it is\\nFinal answer: B\\n.'
    """
    text = unicodedata.normalize("NFKC", text.translate(_PUNCTUATION)).translate(_PUNCTUATION)
    text = _ANSWER_TAG.sub(lambda m: f"\nFinal answer: {m[2].strip()}\n", text)
    text = _BOXED.sub(lambda m: f"\nFinal answer: {_LATEX_TEXT.sub(_inner, m[1])}\n", text)
    text = _LATEX_MARK.sub("", _LATEX_TEXT.sub(_inner, text))
    text = _MARKDOWN.sub("", _TAG.sub(" ", text))
    lines = (" ".join(line.split()) for line in text.splitlines())
    whole = "\n".join(line for line in lines if line).strip()
    return whole[1:-1].strip() if whole[:1] in ('"', "'") and whole[0] == whole[-1] else whole


def is_foreign(text: str) -> bool:
    """Whether a text is in another language than English, of whose sentences only the plainest are read.

    Example:
        >>> is_foreign("(A) es incorrecta"), is_foreign("It is not correct"), is_foreign("Left kidney")
        (True, False, False)
    """
    spoken = _LETTERS.findall(text.casefold())
    if sum(not c.isascii() for word in spoken for c in word) > _NO_LATIN * max(sum(map(len, spoken)), 1):
        return True
    english = words("grammar", "en")
    foreign = {word for language in languages() if language != "en" for word in words("grammar", language)} - english
    n_foreign = sum((word in foreign and len(word) > 1) or not word.isascii() for word in spoken)
    return n_foreign > sum(word in english and len(word) > 1 for word in spoken)


def _inner(match: re.Match[str]) -> str:
    return match[1].strip()


_NOT_SPELLED = re.compile(r"n't\b|(?<=\b(?:is|do))nt\b|(?<=\b(?:are|was|did|has))nt\b|(?<=\b(?:does|were|have))nt\b")


def spelled_out(text: str) -> str:
    """Lower case, with contractions written out."""
    text = text.lower().replace("can't", "can not").replace("cannot", "can not").replace("won't", "will not")
    text = _NOT_SPELLED.sub(" not", text).replace("could not", "can not")
    text = re.sub(r"\b(no|some|any|every)(?: ?one|body)\b(?! of\b)", r"\1 person", text)
    text = re.sub(r"\b(i)'m\b", r"\1 am", text)
    text = re.sub(r"\b(it|that|he|she|there|this|what)'s\b", r"\1 is", text)
    return re.sub(r"\b(\w+)'(?:re)\b", r"\1 are", re.sub(r"\b(\w+)'d\b", r"\1 would", text))


def normalise(text: str) -> str:
    """Lower-case words with a space between them and nothing else; "no_answer" is "no answer"."""
    return " ".join(re.findall(r"\w+", text.replace("_", " ").casefold()))
