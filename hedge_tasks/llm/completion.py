"""Replies of servers with OpenAI's chat API: the answer, its log-probabilities, or what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, NamedTuple

from hedge_tasks.data.answers import Answer, Finish, Served, Thought
from hedge_tasks.data.placeholders import extremes
from hedge_tasks.data.thoughts import (
    NO_END,
    OTHER_TOKENS,
    Parts,
    Token,
    answer_of,
    cut,
    has_thought,
    spell,
    split_tokens,
    texts_of,
    thought_of,
    up_to_stop,
)
from hedge_tasks.errors import DataError
from hedge_tasks.io import outside
from hedge_tasks.io.outside import clean
from hedge_tasks.llm.failures import RequestFailed

# Control tokens, as servers spell them out. Only well-known names without the bars: `<b>` or `[left]` is text.
_SPECIAL = re.compile(
    r"<[|｜].*[|｜]?>|<.*[|｜]>|</?s>|\[/?INST\]"
    r"|<(?:bos|eos|pad|unk|mask|start_of_turn|end_of_turn|end_of_utterance)>|\[(?:BOS|EOS|PAD|UNK|CLS|SEP)\]",
    re.DOTALL,
)

# How a control token looks that nobody has told of: believed only where the rest spells the answer.
_LIKE_CONTROL = re.compile(r"\s*[<\[(◁][^\s<>]{1,40}[>\])▷]\s*")
_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
"""A byte that a vocabulary falls back to."""


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

_REASONING = ("reasoning_content", "reasoning")
"""Fields of a message in which servers with a parser tell a thought."""

_LONGEST_NAME = 200

_MOST_OTHERS = 20
"""Tokens beside one of the answer that are kept, whatever a server sends."""

Written = tuple[tuple[str, float], ...]
"""Tokens as text and with their log-probability in nats."""


class PromptToken(NamedTuple):
    """A token of a prompt, with its number in the vocabulary and its log-probability in nats."""

    id: int
    text: str
    logprob: float


@dataclass(frozen=True)
class Completion:
    """The answer of a server.

    Attributes:
        text: What was written, surrounding whitespace removed; of a model that refuses, its refusal. A thought is part
            of it where the server has no parser that takes it out.
        answer: The answer without its thought, with its tokens where they are known, and for each of them the likeliest
            ones in its place, where they were asked for (`top_logprobs`) and told.
        usage: Tokens that the request cost, `prompt_tokens` and `completion_tokens`; empty where nobody tells.
        prompt: tokens of the prompt, where they were asked for (vLLM's `prompt_logprobs`) and told.
    """

    text: str
    answer: Answer
    usage: Mapping[str, int] = field(default_factory=dict)
    prompt: tuple[PromptToken, ...] = ()

    @property
    def model(self) -> str | None:
        """The model that answered, as the server names it, of a path its last part; None where it does not."""
        return self.answer.served.model if self.answer.served else None

    @property
    def spelled(self) -> bool | None:
        """Whether the tokens of the log-probabilities spell the answer, blanks aside; None without any."""
        if self.answer.tokens is not None:
            return True
        return None if self.answer.no_logprob in (None, NO_END) else False


def read_choices(body: Any, until: Sequence[str] = ()) -> list[Completion | RequestFailed]:
    """The answers in all choices of a chat completion, or why one of them is none.

    A refusal is an answer; a thought is no part of it. The reasons quote the server: redact them before they are shown.

    Args:
        body: Parsed JSON.
        until: Texts that end an answer, for servers that leave them in.

    Raises:
        RequestFailed: There are no choices.
    """
    if not isinstance(body, Mapping):
        raise RequestFailed(f"the answer is {type(body).__name__} instead of a chat completion", "garbled")
    # Gateways report the failure of a server behind them with status 200, some beside what there was of an answer.
    if error := body.get("error"):
        raise RequestFailed(f"the answer is an error ({error})", "garbled")
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        raise RequestFailed("the answer has no choices", "garbled")
    completions: list[Completion | RequestFailed] = []
    for choice in sorted(choices, key=_index_of):
        try:
            completions.append(_read_choice(body, _object(choice), until))
        except RequestFailed as failure:
            completions.append(failure)
    return completions


def _index_of(choice: object) -> int:
    index = _object(choice).get("index")
    return index if isinstance(index, int) else 0


def _read_choice(body: Mapping[str, Any], choice: Mapping[str, Any], until: Sequence[str]) -> Completion:
    message = choice.get("message")
    if not isinstance(message, Mapping):
        raise RequestFailed("the first choice has no message", "garbled")
    texts = [text for name in ("content", "refusal") if (text := _text(message.get(name))) is not None]
    if not texts:
        if choice.get("finish_reason") == "length":
            reason = "no answer before the token limit (all spent on reasoning?); raise max_new_tokens"
            raise RequestFailed(reason, "cut")
        raise RequestFailed(f"the answer has no content (finish_reason {choice.get('finish_reason')!r})", "empty")
    finish, reasoning = _finish(choice), next(filter(None, map(_text, map(message.get, _REASONING))), None)
    text, entries = texts[0].lstrip() if reasoning else texts[0], _entries(choice, finish)
    answer_text, parts, is_cut = _split_answer(entries, text, reasoning, until, finish)
    answer = _answer(entries, answer_text, parts, "stop" if is_cut else finish, body)
    return Completion(cut(text, until).strip(), answer, _usage(body), _prompt(body))


def _split_answer(
    entries: Sequence[_Entry], text: str, reasoning: str | None, until: Sequence[str], finish: Finish | None
) -> tuple[str, Parts | str | None, bool]:
    """The answer's text, its tokens, or why these are not known (None where there are none at all), and whether one of
    the texts of `until` was found in it.
    """
    written = cut(text, until)
    answer = answer_of(written)
    if not entries:
        return answer, None, written != text
    strict = [entry.token for entry in entries]
    loose = [entry.loosely for entry in entries]
    # Tokens of a text that ended the answer mostly follow it.
    whole = not until
    parts = split_tokens(strict, answer, reasoning=reasoning, whole=whole)
    if parts == OTHER_TOKENS and loose != strict:
        parts = split_tokens(loose, answer, reasoning=reasoning, whole=whole)
    if isinstance(parts, str) and reasoning is None and not has_thought(text) and spell(loose, text, whole=whole):
        # Where the marks are control tokens, a server without a parser leaves them out, and thought and answer are one.
        parts = split_tokens(loose)
        text = "".join(texts_of(parts.counted if isinstance(parts, Parts) else loose)).lstrip()
        written = cut(text, until)
        answer = written.strip()
    if until and isinstance(parts, Parts) and (written != text or finish != "length"):
        parts = up_to_stop(parts, answer, is_cut=written != text)
    return answer, parts, written != text


def _answer(
    entries: Sequence[_Entry], text: str, parts: Parts | str | None, finish: Finish | None, body: Mapping[str, Any]
) -> Answer:
    """The answer's text, with its log-probability or why there is none."""
    served, counted = _served(body), _counted_thought(body)
    if not isinstance(parts, Parts):
        thought = thought_of([entry.token for entry in entries]) if parts == NO_END else None
        return Answer(text, finish=finish, thought=thought or counted, no_logprob=parts, served=served)
    logprobs = [token.logprob for token in parts.counted]
    end = None if finish == "length" else parts.end_logprob  # a control token that it was cut behind
    mean, known = parts.mean_logprob, (*_in_tokens(entries, parts), end, parts.thoughts or counted)
    return Answer(text, mean, len(logprobs), finish, *known, served=served, **extremes(logprobs))


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


def _object(value: object) -> Mapping[str, Any]:
    """A JSON object; an empty one for anything else."""
    return value if isinstance(value, Mapping) else {}


def _text(content: object) -> str | None:
    if isinstance(content, list):
        parts = [p["text"] for p in content if isinstance(p, Mapping) and isinstance(p.get("text"), str)]
        return "".join(parts) if parts else None
    return content if isinstance(content, str) else None


class _Entry(NamedTuple):
    """A token as the server sends it, under its name there; `others` are the likeliest ones in its place."""

    text: str
    token: Token
    others: Written

    @property
    def loosely(self) -> Token:
        """The token, also as a control token where it only looks like one."""
        return self.token._replace(control=self.token.control or bool(_LIKE_CONTROL.fullmatch(self.text)))


def _entries(choice: Mapping[str, Any], finish: Finish | None) -> list[_Entry]:
    """Tokens of the answer, none where a single one of them has no usable log-probability."""
    logprobs = _object(choice.get("logprobs"))
    tokens = logprobs.get("content") or logprobs.get("refusal")
    if not tokens:
        # As completions without a chat have them, and Together and llama-cpp-python those of a chat.
        columns = [v if isinstance(v := logprobs.get(name), list) else [] for name in ("tokens", "token_logprobs")]
        tokens = [dict(zip(("token", "logprob"), pair, strict=True)) for pair in zip_longest(*columns)]
    entries = [_entry(token) for token in tokens] if isinstance(tokens, list) else []
    sound = [entry for entry in entries if entry is not None]
    if finish == "stop" and sound and not (sound[-1].text or sound[-1].token.spelled):
        # llama.cpp spells its end token as nothing. Elsewhere an empty token is part of a character.
        sound[-1] = sound[-1]._replace(token=sound[-1].token._replace(control=True))
    return sound if len(sound) == len(entries) else []


def _entry(token: object) -> _Entry | None:
    """A token with those in its place, malformed ones left out; None where it is malformed itself."""
    if not isinstance(token, Mapping) or not isinstance(text := token.get("token"), str):
        return None
    if (logprob := _usable_logprob(token)) is None:
        return None
    listed = token.get("top_logprobs")
    others = [entry for value in (listed if isinstance(listed, list) else ()) if (entry := _entry(value)) is not None]
    spoken = [entry.token for entry in others if not entry.token.control][:_MOST_OTHERS]
    pieces = tuple((clean(entry.spelled.decode("utf-8", "replace")), entry.logprob) for entry in spoken)
    return _Entry(text, Token(_bytes(token), logprob, _SPECIAL.fullmatch(text) is not None), pieces)


def _usable_logprob(token: Mapping[str, Any]) -> float | None:
    """Log-probability of a token in nats; None where it is missing or none."""
    try:
        return outside.log_probability(token.get("logprob"), "logprob")
    except DataError:
        return None


def _in_tokens(entries: Sequence[_Entry], parts: Parts) -> tuple[Written, tuple[Written, ...] | None]:
    """The text that each token of the answer adds, with its log-probability, and the others in its place."""
    texts = map(clean, texts_of(parts.counted))
    pieces = tuple((text, token.logprob) for text, token in zip(texts, parts.counted, strict=True))
    behind = zip(entries[len(parts.thought) :], parts.answer, strict=False)  # without those behind what has ended it
    others = tuple(entry.others for entry, token in behind if not token.control)
    return pieces, (others if any(others) else None)


def _bytes(entry: Mapping[str, Any]) -> bytes:
    if byte := _BYTE.fullmatch(entry["token"]):
        return bytes([int(byte[1], 16)])
    try:
        return bytes(entry["bytes"])
    except (KeyError, TypeError, ValueError):
        return entry["token"].encode("utf-8", "replace")


def _counted_thought(body: Mapping[str, Any]) -> Thought | None:
    """The thought whose tokens are only counted. With several choices it is not known whose they are."""
    count = _object(_object(body.get("usage")).get("completion_tokens_details")).get("reasoning_tokens")
    if not isinstance(count, int) or isinstance(count, bool) or count <= 0:
        return None
    return Thought(count) if len(body["choices"]) == 1 else None


def _served(body: Mapping[str, Any]) -> Served | None:
    """Which model and server answered. Of a model's path on the server's disk only the last part is kept."""
    values = {name: body.get(name) for name in ("model", "provider", "system_fingerprint")}
    texts = {name: clean(value[:_LONGEST_NAME]) for name, value in values.items() if isinstance(value, str) and value}
    if re.match(r"[/\\~.]|[A-Za-z]:[/\\]", texts.get("model", "")):
        texts["model"] = re.split(r"[/\\]", texts["model"].rstrip("/\\"))[-1]
    return Served(**texts) if texts else None


def is_control(text: str) -> bool:
    """Whether a token looks like one that is no text, as servers spell them out."""
    return bool(_SPECIAL.fullmatch(text) or _LIKE_CONTROL.fullmatch(text))


def _prompt(body: Mapping[str, Any]) -> tuple[PromptToken, ...]:
    """The tokens of the prompt as vLLM sends them: an object with one entry for each, null where nothing is known.

    Empty where one of them is malformed: a part of a text is another text.
    """
    table = body.get("prompt_logprobs")
    tokens: list[PromptToken] = []
    for entry in table if isinstance(table, list) else []:
        number, token = next(iter(entry.items()), ("", None)) if isinstance(entry, Mapping) else ("", None)
        if not isinstance(token, Mapping):
            tokens.clear()  # what comes after a gap is not joined to what came before
            continue
        piece, logprob = token.get("decoded_token"), _usable_logprob(token)
        if not isinstance(piece, str) or logprob is None or not number.isdecimal():
            return ()
        tokens.append(PromptToken(int(number), clean(piece), logprob))
    return tuple(tokens)


def _usage(body: Mapping[str, Any]) -> Mapping[str, int]:
    counts = {name: _object(body.get("usage")).get(name) for name in ("prompt_tokens", "completion_tokens")}
    return {name: count for name, count in counts.items() if isinstance(count, int)}
