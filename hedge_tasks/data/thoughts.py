"""Division of a reply into thought and answer, in its text and in its tokens.

A model's thought is no part of its answer: neither of its text nor of its log-probability and length. Servers with a
reasoning parser take the thought out of the text and leave its tokens; others leave both. Adapters use this module.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from hedge_tasks.data.answers import Thought

# Thoughts of the model families: <think> (Qwen, DeepSeek, GLM), [THINK] (Magistral), ◁think▷ (Kimi), harmony's channels
# (gpt-oss), also where a server has left their names and taken the marks ("analysisThe user asks ...assistantfinalB").
_NAMES = r"(?:think|thinking|thought|thoughts|reasoning|reflection|analysis|scratchpad|seed:think)"
_BEGIN = re.compile(
    rf"<{_NAMES}>|\[THINK\]|◁think▷|<\|begin_of_thought\|>|<\|channel\|>(?:analysis|commentary)\b|\A\s*analysis(?=[^\W_])",
    re.IGNORECASE,
)
_END = re.compile(
    rf"</{_NAMES}>|\[/THINK\]|◁/think▷|<\|end_of_thought\|>|<\|channel\|>final<\|message\|>|(?<!\s)assistantfinal",
    re.IGNORECASE,
)

NO_END = "the thought has no end"
NO_BOUNDARY = "the end of the thought and the beginning of the answer are one token"
OTHER_TOKENS = "the log-probabilities belong to other tokens than those of the answer"
NO_TOKENS = "there are no tokens behind the thought"

_BLANKS = re.compile(r"[\s▁ĠĊ]")
"""White space, and the marks that vocabularies have for it."""

_INCOMPLETE = "\ufffd"


def without_thoughts(text: str) -> tuple[str, bool]:
    """Return what stands behind the last thought, and whether a thought was left open.

    Chat templates may put the opening mark into the prompt, so that a reply has only the closing one. Of a thought that
    was never closed nothing is kept, and nothing in front of it: it had been going to say more.

    Example:
        >>> without_thoughts("<think>1?</think>0"), without_thoughts("<think>1")
        (('0', False), ('', True))
    """
    end, is_open = _end_of_thought(text)
    return ("", True) if is_open else (text[end:], False)


def answer_of(text: str) -> str:
    """Return the answer in a reply, without surrounding white space; one whose thought has no end stays as it was
    written.
    """
    after_thought, is_open = without_thoughts(text)
    return (text if is_open else after_thought).strip()


def cut(text: str, until: Sequence[str]) -> str:
    """Return a reply up to the first of the texts that end its answer; in a thought, or between it and the answer, they
    end nothing.

    Example:
        >>> cut("<think>Left.\\nOr right?</think>\\n\\nleft\\nQ: Why?", ["\\n"])
        '<think>Left.\\nOr right?</think>\\n\\nleft'
    """
    end, is_open = _end_of_thought(text)
    begin = len(text) - len(text[end:].lstrip()) if end else 0
    ends = [at for stop in until if (at := text.find(stop, begin)) >= 0]
    return text if is_open else text[: min(ends, default=len(text))]


def has_thought(text: str) -> bool:
    """Whether a thought begins or ends in a text."""
    return bool(_BEGIN.search(text) or _END.search(text))


class Token(NamedTuple):
    """A token as it was written.

    Attributes:
        spelled: what it adds to the text; of a character in several tokens each has a part.
        logprob: in nats.
        control: whether it is no part of the text; the end token is one.
    """

    spelled: bytes
    logprob: float
    control: bool = False


@dataclass(frozen=True)
class Parts:
    """The tokens of a reply by what they are.

    Attributes:
        thought: all that come before the answer, marks and blanks between the two included.
        answer: those of the answer, and control tokens among or behind them.
        stopped: whether a text of `until` ended the answer: what is behind it is no part of it.
    """

    thought: tuple[Token, ...]
    answer: tuple[Token, ...]
    stopped: bool = False

    @property
    def counted(self) -> tuple[Token, ...]:
        """The answer without control tokens."""
        return tuple(token for token in self.answer if not token.control)

    @property
    def mean_logprob(self) -> float:
        """Nats per token of the answer; one of no token at all is as likely as the end token that made it."""
        counted = self.counted or self.answer[:1]
        return sum(token.logprob for token in counted) / len(counted)

    @property
    def end_logprob(self) -> float | None:
        """Log-probability of the end token (nats); None where the model did not end the answer."""
        return self.answer[-1].logprob if self.answer[-1].control and not self.stopped else None

    @property
    def thoughts(self) -> Thought | None:
        """Length and log-probability of the thought; None without one."""
        return thought_of(self.thought)


def thought_of(tokens: Sequence[Token]) -> Thought | None:
    """Length and log-probability of the tokens of a thought; None without any."""
    return Thought(len(tokens), sum(token.logprob for token in tokens) / len(tokens)) if tokens else None


def up_to_stop(parts: Parts, answer: str, *, is_cut: bool) -> Parts:
    """The tokens that spell an answer, without those behind them where one of the texts of `until` has ended it.

    Args:
        parts: of all that was written.
        answer: without the text that ended it. Of an empty one the first token stands for the end.
        is_cut: whether that text was found in the answer; else it has ended the answer where no end token does.

    Example:
        >>> written = Parts((), (Token(b"left", -0.5), Token(b"\\n", -0.1), Token(b"Q", -4.0)))
        >>> up_to_stop(written, "left", is_cut=True).mean_logprob
        -0.5
    """
    tokens = parts.answer
    if tokens[-1].control and not is_cut:
        return parts
    own = tokens[: _count_spelling(tokens, answer)]
    return Parts(parts.thought, own or (tokens[0]._replace(control=True),), stopped=True)


def split_tokens(
    tokens: Sequence[Token], answer: str | None = None, *, reasoning: str | None = None, whole: bool = True
) -> Parts | str:
    """The tokens of the thought and those of the answer, or why they cannot be told.

    Args:
        tokens: of the whole reply, or of its answer alone. There is at least one.
        answer: its text without the thought, which the tokens of the answer must then spell, white space aside; None
            where it is read from the tokens.
        reasoning: text of the thought, where the server tells it apart; for tokens that have no mark between the two.
        whole: the answer's tokens spell nothing more; a text that ended the answer is left out of it, its tokens mostly
            are not.

    Example:
        >>> reply = [Token(b"<think>", -1.0), Token(b"?", -1.0), Token(b"</think>", -1.0), Token(b"left", -0.5)]
        >>> split_tokens(reply, "left").mean_logprob
        -0.5
    """
    joined = b"".join(token.spelled for token in tokens)
    text = joined.decode("utf-8", "surrogateescape")
    end, is_open = _end_of_thought(text)
    if is_open:
        return NO_END
    begin = 0
    if end:
        n_bytes = len(text[:end].encode("utf-8", "surrogateescape"))
        ends = list(accumulate(len(token.spelled) for token in tokens))
        begin = bisect_left(ends, n_bytes) + 1
        if joined[n_bytes : ends[begin - 1]].decode("utf-8", "replace").strip():
            return NO_BOUNDARY
        begin = _behind_blanks(tokens, begin, control=False)
    if answer is not None and not spell(tokens[begin:], answer, whole=whole):
        last = None if begin else _beginning_of(tokens, answer, reasoning, whole=whole)
        if last is None:
            return OTHER_TOKENS
        begin = last
    if begin == len(tokens):
        return NO_TOKENS
    return Parts(tuple(tokens[:begin]), tuple(tokens[begin:]))


def texts_of(tokens: Sequence[Token]) -> list[str]:
    """The text that each token adds, of a character in several tokens the last one has it."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    return [decoder.decode(token.spelled, final=i + 1 == len(tokens)) for i, token in enumerate(tokens)]


def _end_of_thought(text: str) -> tuple[int, bool]:
    """Where what stands behind the last thought begins (0 without one), and whether a thought was left open."""
    end = max((match.end() for match in _END.finditer(text)), default=0)
    return end, _BEGIN.search(text, end) is not None


def _behind_blanks(tokens: Sequence[Token], at: int, *, control: bool) -> int:
    """The place behind blank tokens, which templates have between thought and answer, and control tokens if told."""
    while at < len(tokens) and (control if tokens[at].control else _is_blank(tokens[at].spelled)):
        at += 1
    return at


def _is_blank(spelled: bytes) -> bool:
    """Whether it is white space; nothing at all is a part of a character."""
    text = spelled.decode("utf-8", "replace")
    return bool(text) and not _BLANKS.sub("", text)


def _beginning_of(tokens: Sequence[Token], answer: str, reasoning: str | None, *, whole: bool) -> int | None:
    """The token at which the answer begins, where those before it are the thought; None where that is not so."""
    begin = _count_spelling(tokens, reasoning or "")
    if not reasoning or not answer.strip() or not spell(tokens[:begin], reasoning):
        return None
    begin = _behind_blanks(tokens, begin, control=True)
    return begin if spell(tokens[begin:], answer, whole=whole) else None


def _count_spelling(tokens: Sequence[Token], text: str) -> int:
    """The number of tokens that a text needs, all where they spell another one."""
    return bisect_left(range(len(tokens)), True, key=lambda n: spell(tokens[:n], text, whole=False))


# --- do the tokens spell the text? ------------------------------------------------------------------------------------


def spell(tokens: Sequence[Token], text: str, *, whole: bool = True) -> bool:
    """Whether tokens are those of a text, white space and control tokens aside.

    Args:
        whole: they spell nothing more.
    """
    joined = b"".join(token.spelled for token in tokens if not token.control).decode("utf-8", "replace")
    # What a server could not spell (U+FFFD) may be any few characters.
    theirs = _BLANKS.sub("", joined)
    ours = _BLANKS.sub("", text).replace(_INCOMPLETE, "")
    # How far into the text the tokens may have got by now.
    places = {0}
    for character in theirs:
        if not whole and len(ours) in places:
            return True
        if character == _INCOMPLETE:
            places |= {place + 1 for place in places if not ours[place : place + 1].isascii()}
        else:
            places = {place + 1 for place in places if ours.startswith(character, place)}
    return len(ours) in places
