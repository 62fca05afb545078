"""Reading the reply of a server with OpenAI's chat API: its answer, its log-probabilities, or what is wrong with it."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from hedge_tasks.data.answers import Answer, Finish
from hedge_tasks.io.outside import clean
from hedge_tasks.serving.failures import RequestFailed

# What a server writes in place of a log-probability that it does not tell exactly: OpenAI for tokens outside its top
# 20, vLLM for minus infinity. A mean with one of these in it would be nonsense.
_CLAMPED = -9999.0
_ROUNDING = 1e-4  # a certain token may come out a little above 0

# Control tokens, as servers spell them out. Only well-known names without the bars: `<b>` or `[left]` is text.
_SPECIAL = re.compile(
    r"<[|｜].*[|｜]?>|<.*[|｜]>|</?s>|\[/?INST\]"
    r"|<(?:bos|eos|pad|unk|mask|start_of_turn|end_of_turn|end_of_utterance)>|\[(?:BOS|EOS|PAD|UNK|CLS|SEP)\]",
    re.DOTALL,
)


# What finish reasons of OpenAI, vLLM, SGLang, TGI, llama.cpp, Gemini's and Mistral's gateways mean.
_FINISHES: Mapping[str, Finish] = {
    "stop": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "stop_sequence": "stop",
    "end_turn": "stop",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "filtered",
    "safety": "filtered",
}

_LONGEST_NAME = 200

_MOST_OTHERS = 20
"""Tokens beside one of the answer that are kept, whatever a server sends."""

Written = tuple[tuple[str, float], ...]
"""Tokens as text and with their log-probability in nats."""


@dataclass(frozen=True)
class Usage:
    """Tokens that a request cost."""

    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True)
class Completion:
    """What a server answered.

    Attributes:
        text: The answer, surrounding whitespace removed; of a model that refuses, its refusal. Reasoning is no part.
        mean_logprob: Mean log-probability of its tokens in nats, control tokens left out; None without usable ones.
        n_tokens: Number of tokens behind that mean.
        finish: Why the server stopped; None where it does not say. "filtered" where a content filter did.
        model: The model that answered, as the server names it; None where it does not.
        usage: None where the server does not tell.
        prompt: tokens of the prompt, each as text and with its log-probability, where they were asked for (vLLM's
            `prompt_logprobs`) and told.
        spelled: Whether the tokens of the log-probabilities spell the answer, blanks aside; None without any.
        tokens: text and log-probability of each token of the answer, control tokens left out; None without usable ones.
        alternatives: for each of them the likeliest tokens in its place, where they were asked for (`top_logprobs`) and
            told.
    """

    text: str
    mean_logprob: float | None = None
    n_tokens: int | None = None
    finish: Finish | None = None
    model: str | None = None
    usage: Usage | None = None
    prompt: tuple[tuple[str, float], ...] = ()
    spelled: bool | None = None
    tokens: Written | None = None
    alternatives: tuple[Written, ...] | None = None

    @property
    def answer(self) -> Answer:
        """As a sampled answer, without its tokens."""
        return Answer(self.text, self.mean_logprob, self.n_tokens, self.finish)

    @property
    def answer_in_tokens(self) -> Answer:
        """As a sampled answer, with its tokens where they are known."""
        return replace(self.answer, tokens=self.tokens, alternatives=self.alternatives)


def read_completion(body: object, until: Sequence[str] = ()) -> Completion:
    """The answer in a chat completion. A refusal is one; reasoning is not part of it.

    Args:
        body: Parsed JSON.
        until: Texts that end an answer, for servers that leave them in.

    Raises:
        RequestFailed: There is no answer in it. The reason quotes the server: redact it before it is shown.
    """
    choice = _first_choice(body)
    message = choice.get("message")
    if not isinstance(message, Mapping):
        raise RequestFailed("the first choice has no message", "garbled")
    text = _text(message.get("content"))
    if text is None:
        text = _text(message.get("refusal"))
    if text is None:
        raise _no_content(choice)
    tokens = _tokens(choice)
    if message.get("reasoning_content") or message.get("reasoning"):
        tokens = _closing_tokens(tokens, text)
    for stop in until:
        text = text.split(stop)[0]
    spelled = _spell(tokens, text, whole=not until) if tokens else None
    named = body.get("model") if isinstance(body, Mapping) else None
    model = named[:_LONGEST_NAME] if isinstance(named, str) else None
    finish = _finish(choice)
    mean, n_tokens = _mean_logprob(tokens, finished=finish == "stop")
    details = (_usage(body), _prompt(body), spelled)
    told = _written(tokens, finished=finish == "stop") if spelled else (None, None)
    return Completion(text.strip(), mean, n_tokens, finish, model, *details, *told)


def _finish(choice: Mapping[str, Any]) -> Finish | None:
    """Why the server stopped.

    Raises:
        RequestFailed: For a reason that is none of a finished answer (an error, or one that nobody knows).
    """
    reason = choice.get("finish_reason")
    if reason is None:
        return None
    if not isinstance(reason, str) or reason not in _FINISHES:
        raise RequestFailed(
            f"the server ended the answer early (finish_reason {str(reason)[:_LONGEST_NAME]!r})", "empty"
        )
    return _FINISHES[reason]


def _first_choice(body: object) -> Mapping[str, Any]:
    if not isinstance(body, Mapping):
        raise RequestFailed(f"the answer is {type(body).__name__} instead of a chat completion", "garbled")
    choices = body.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
        return choices[0]
    # Gateways report the failure of a server behind them with status 200.
    error = body.get("error")
    raise RequestFailed(f"the answer has no choices ({error})" if error else "the answer has no choices", "garbled")


def _no_content(choice: Mapping[str, Any]) -> RequestFailed:
    if choice.get("finish_reason") == "length":
        return RequestFailed("no answer before the token limit (all spent on reasoning?); raise max_new_tokens", "cut")
    return RequestFailed(f"the answer has no content (finish_reason {choice.get('finish_reason')!r})", "empty")


def _text(content: object) -> str | None:
    if isinstance(content, list):
        parts = [p["text"] for p in content if isinstance(p, Mapping) and isinstance(p.get("text"), str)]
        return "".join(parts) if parts else None
    return content if isinstance(content, str) else None


class _Token(NamedTuple):
    """A token of the answer; `others` are the likeliest ones in its place."""

    text: str
    spelled: bytes
    logprob: float
    others: Written


def _tokens(choice: Mapping[str, Any]) -> list[_Token]:
    """Tokens of the answer, none where a single one of them has no usable log-probability."""
    logprobs = choice.get("logprobs")
    entries = (logprobs.get("content") or logprobs.get("refusal")) if isinstance(logprobs, Mapping) else None
    tokens = []
    for entry in entries if isinstance(entries, list) else ():
        if not isinstance(entry, Mapping) or not isinstance(entry.get("token"), str):
            return []
        value = entry.get("logprob")
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not _CLAMPED < value <= _ROUNDING:
            return []
        tokens.append(_Token(entry["token"], _bytes(entry), min(float(value), 0.0), _others(entry)))
    return tokens


def _others(entry: Mapping[str, Any]) -> Written:
    """The likeliest tokens in one's place; those that are not told as they should be are left out."""
    told = entry.get("top_logprobs")
    found = []
    for other in told if isinstance(told, list) else ():
        if not isinstance(other, Mapping) or not isinstance(other.get("token"), str):
            continue
        value = other.get("logprob")
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not _CLAMPED < value <= _ROUNDING:
            continue
        if not _SPECIAL.fullmatch(other["token"]):
            found.append((clean(_bytes(other).decode("utf-8", "replace")), min(float(value), 0.0)))
    return tuple(found[:_MOST_OTHERS])


def _written(tokens: Sequence[_Token], *, finished: bool) -> tuple[Written | None, tuple[Written, ...] | None]:
    """The text that each token adds, with its log-probability, and the others in its place.

    Of a character in several tokens the last one has it.
    """
    kept = [token for token in _without_end(tokens, finished=finished) if not _SPECIAL.fullmatch(token.text)]
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    texts = [decoder.decode(token.spelled, final=token is kept[-1]) for token in kept]
    pieces = tuple((clean(text), token.logprob) for text, token in zip(texts, kept, strict=True))
    others = tuple(token.others for token in kept)
    return pieces, (others if any(others) else None)


def _without_end(tokens: Sequence[_Token], *, finished: bool) -> Sequence[_Token]:
    """llama.cpp spells its end token as nothing. Elsewhere an empty token is one: a part of a character."""
    nameless = finished and tokens and not tokens[-1].text and not tokens[-1].spelled
    return tokens[:-1] if nameless else tokens


def _bytes(entry: Mapping[str, Any]) -> bytes:
    try:
        return bytes(entry["bytes"])
    except (KeyError, TypeError, ValueError):
        return entry["token"].encode("utf-8", "replace")


def _closing_tokens(tokens: list[_Token], text: str) -> list[_Token]:
    """The last tokens, which spell the answer; those before are reasoning. Empty where they cannot be told apart."""
    answer, spelled = text.strip().encode(), b""
    for i in range(len(tokens) - 1, -1, -1):
        spelled = tokens[i].spelled + spelled
        if answer and answer in spelled:
            return tokens[i:]
    return []


def _spell(tokens: Sequence[_Token], text: str, *, whole: bool) -> bool:
    """Whether the tokens are those of the text.

    Args:
        whole: they spell nothing more; a text that ended the answer is left out of it, its tokens mostly are not.
    """
    joined = b"".join(token.spelled for token in tokens if not _SPECIAL.fullmatch(token.text))
    ours, theirs = _bare(joined.decode("utf-8", "replace")), _bare(text)
    return ours == theirs if whole else ours.startswith(theirs)


def _bare(text: str) -> str:
    """Without blanks, and the marks that tokenizers write for them."""
    return re.sub(r"[\s▁ĠĊ\ufffd]", "", text)


def _mean_logprob(tokens: Sequence[_Token], *, finished: bool) -> tuple[float | None, int | None]:
    """Mean over all but control tokens, in nats, and how many these are; (None, None) without any token.

    Args:
        finished: the model itself ended the answer.
    """
    if not tokens:
        return None, None
    spelled = _without_end(tokens, finished=finished)
    counted = [token.logprob for token in spelled if not _SPECIAL.fullmatch(token.text)]
    # An answer of no token at all is as likely as the end token that made it.
    return (sum(counted) / len(counted) if counted else tokens[0].logprob), len(counted)


def _prompt(body: object) -> tuple[tuple[str, float], ...]:
    """The tokens of the prompt as vLLM tells them: of each an object with one entry, null where nothing is known.

    Nothing where they are not told as they should be: a part of a text is another text.
    """
    table = body.get("prompt_logprobs") if isinstance(body, Mapping) else None
    tokens: list[tuple[str, float]] = []
    for entry in table if isinstance(table, list) else []:
        told = next(iter(entry.values()), None) if isinstance(entry, Mapping) else None
        if not isinstance(told, Mapping):
            tokens.clear()  # what comes after a gap is not joined to what came before
            continue
        piece, logprob = told.get("decoded_token"), told.get("logprob")
        if not isinstance(piece, str) or isinstance(logprob, bool) or not isinstance(logprob, (int, float)):
            return ()
        if not _CLAMPED < logprob <= _ROUNDING:
            return ()
        tokens.append((clean(piece), min(float(logprob), 0.0)))
    return tuple(tokens)


def _usage(body: object) -> Usage | None:
    usage = body.get("usage") if isinstance(body, Mapping) else None
    if not isinstance(usage, Mapping):
        return None
    prompt, completion = usage.get("prompt_tokens"), usage.get("completion_tokens")
    return Usage(prompt, completion) if isinstance(prompt, int) and isinstance(completion, int) else None
