"""The common part of the adapters: they chat, they generate, and they are strict about their arguments."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from lmms_eval.api.model import lmms

from hedge_tasks.data.answers import Answer, Draw
from hedge_tasks.errors import ConfigError, DrawsFailed, HedgeError, unknown
from hedge_tasks.llm.completion import PromptToken
from hedge_tasks.models.token_sampling import rounded

_PADDING = 16
"""Blanks that a template or a tokenizer may put around a text."""


Conversations = Sequence[list[dict[str, Any]]]
"""Each a list of turns in lmms-eval's form."""


class ChatAdapter(lmms):
    """An lmms-eval chat model that generates and does nothing else."""

    is_simple = False
    takes_choices = True
    tells_tokens = True
    takes_threads = False
    """Whether several threads may ask it at once."""
    control_marks: frozenset[str] = frozenset()
    """Texts that it reads as marks of its own: no document is asked whose text holds one."""
    samples_itself = False
    """Whether this package's own code chooses the tokens; whoever else does is asked whether settings are obeyed."""

    @classmethod
    def keeps_schemas(cls) -> bool:
        """Whether answers are kept to a JSON schema as they are written, or a server is asked to do so."""
        return False

    def answer_conversations(
        self,
        conversations: Conversations,
        *,
        temperature: float = 0.0,
        max_new_tokens: int = 512,
        seeds: Sequence[int] | None = None,
        schema: Mapping[str, Any] | None = None,
    ) -> list[Answer]:
        """Answer conversations that belong to no task, as a judge or a data set's maker asks them.

        Args:
            conversations: Each a list of turns in lmms-eval's form: `role`, and `content` as a list of parts of the
                types `text` and `image` (`url` is a PIL image).
            temperature: 0 is greedy.
            max_new_tokens: Bound on the length of an answer.
            seeds: One a conversation; by default their positions.
            schema: JSON schema that every answer is kept to; without `keeps_schemas` it is left out.

        Returns:
            One answer a conversation, in their order.

        Raises:
            DrawsFailed: A conversation got no answer.
            ConfigError: The number of seeds is another one.
        """
        draws = conversation_draws(len(conversations), temperature, seeds)
        return _complete(self._answer_draws(conversations, draws, max_new_tokens, schema))

    def _answer_draws(
        self, conversations: Conversations, draws: Sequence[Draw], limit: int, schema: Mapping[str, Any] | None
    ) -> Sequence[Answer | str]:
        """Answer each conversation with temperature and seed of its draw; a text says why there is no answer.

        Args:
            limit: Bound on the number of new tokens.
            schema: JSON schema of every answer; None for free text.
        """
        raise HedgeError(f"{self._name} answers the documents of its tasks, and no other conversation")

    @property
    def _name(self) -> str:
        return type(self).__module__.rpartition(".")[2]

    def loglikelihood(self, requests: list[Any]) -> list[tuple[float, bool]]:
        raise HedgeError(
            f"{self._name} generates; for tasks that score given continuations use another lmms-eval model"
        )

    def generate_until_multi_round(self, requests: list[Any]) -> list[str]:
        raise HedgeError(f"{self._name} does not do multi-round tasks; use another lmms-eval model for them")

    def messages_of(self, request: Any) -> list[dict[str, Any]]:
        """Return the conversation of an ordinary `generate_until` request."""
        _, doc_to_messages, _, doc_id, task, split = request.args
        return doc_to_messages(self.task_dict[task][split][doc_id])


def marks_of(processor: Any, placeholders: Sequence[int] = ()) -> frozenset[str]:
    """Return the texts that a model reads as marks of its own: ends of turns, places of pictures.

    Args:
        processor: of the model, or its tokenizer.
        placeholders: tokens that stand for pictures.
    """
    tokenizer = getattr(processor, "tokenizer", processor)
    named = [value for name, value in vars(processor).items() if name.endswith("_token")]
    named += [tokenizer.convert_ids_to_tokens(token) for token in placeholders]
    named += [token.content for token in getattr(tokenizer, "added_tokens_decoder", {}).values() if token.special]
    return frozenset(mark for mark in named if isinstance(mark, str) and mark.strip())


Reading = Sequence[PromptToken] | str
"""The tokens of a prompt that a model has read, or why they are not known."""


def forced_answer(reading: Reading, text: str) -> Answer | str:
    """Return a forced text as an answer, from the tokens of a prompt that ends with it.

    Args:
        reading: Of the prompt.
        text: The end of the prompt, as the model was made to write it.

    Returns:
        The answer, or why there is none: the prompt was not read, or its last tokens make another text.

    Example:
        >>> prompt = [PromptToken(1, "?", -3.0), PromptToken(2, " left", -0.5), PromptToken(3, " lung", -1.0)]
        >>> forced_answer(prompt, "left lung").mean_logprob
        -0.75
    """
    if isinstance(reading, str):
        return reading
    n_tokens = _count_spelling(reading, text, from_end=True)
    if n_tokens is None:
        return "the prompt's last tokens are another text than the one that was to be forced"
    last = reading[-n_tokens:]
    return spelled_answer(text, {tuple(token.id for token in last): _summed(last)})


SPELLINGS = ("", " ")
"""Put in front of a reply: many models begin with a blank, which is another first token."""


def spelled_answer(text: str, spellings: Mapping[tuple[int, ...], float]) -> Answer:
    """Return a text that a model may write in several ways as one answer.

    Args:
        text: Without surrounding blanks.
        spellings: Tokens -> log-probability of all of them; one spelling must not stand twice under two names.

    Returns:
        The sum of the probabilities, as a mean over the tokens of the likeliest spelling.
    """
    likeliest = max(spellings, key=lambda tokens: spellings[tokens])
    top, n_tokens = spellings[likeliest], max(len(likeliest), 1)
    # Relative to the largest, so that what is hardly possible is not lost.
    gain = 0.0 if top == -math.inf else math.log(math.fsum(math.exp(value - top) for value in spellings.values()))
    return Answer(text, rounded((top + gain) / n_tokens), len(likeliest))


Prompted = tuple[list[dict[str, Any]], str | None]
"""A conversation, and the reply that is its finished last turn; None where the model would go on."""


def by_object(pairs: Iterable[tuple[list[dict[str, Any]], Any]]) -> dict[int, list[dict[str, Any]]]:
    """Return the conversations of pairs, each object once, by its id."""
    return {id(conversation): conversation for conversation, _ in pairs}


def whole_replies(
    conversations: Conversations,
    texts: Sequence[str],
    read: Callable[[Sequence[Prompted]], Sequence[Reading]],
    is_control: Callable[[PromptToken], bool],
) -> list[Answer | str]:
    """Return each text as the whole reply to its conversation.

    Args:
        conversations: Each object is read once.
        texts: One a conversation.
        read: Has prompts read, either all with a finished reply or none.
        is_control: Whether a token may be an end.
    """
    pairs = list(zip(conversations, texts, strict=True))
    begun = by_object(pairs)
    prompts = dict(zip(begun, read([(conversation, None) for conversation in begun.values()]), strict=True))
    closed = iter(read([(conversation, blank + text) for conversation, text in pairs for blank in SPELLINGS]))
    return [
        whole_reply(prompts[id(conversation)], [next(closed) for _ in SPELLINGS], text, is_control)
        for conversation, text in pairs
    ]


def whole_reply(
    prompt: Reading, closed: Sequence[Reading], text: str, is_control: Callable[[PromptToken], bool]
) -> Answer | str:
    """Return a whole reply, its end included, from prompts in which it is a finished turn of the assistant's.

    The chat template writes the end. What it writes behind that (a line break) is no part of the reply.

    Args:
        prompt: That the model would go on from.
        closed: The prompt with the finished turn, one a spelling.
        text: Of the turn.
        is_control: Whether a token may be an end.

    Returns:
        The sum over the spellings, or why there is none.
    """
    if isinstance(prompt, str):
        return prompt
    spellings: dict[tuple[int, ...], float] = {}
    reason = "the model tells no log-probabilities of a finished reply"
    for reading in closed:
        if isinstance(reading, str):
            return reading
        turn = _finished_turn(prompt, reading, text)
        if isinstance(turn, str):
            reason = turn
        elif turn.behind is None or not is_control(turn.behind):
            reason = "the chat template writes no end behind a reply"
        else:
            reply = [*turn.tokens, turn.behind]
            spellings[tuple(token.id for token in reply)] = _summed(reply)
    return spelled_answer(text, spellings) if spellings else reason


class _Turn(NamedTuple):
    """A finished turn: the tokens of its text, and the token behind them, if there is one."""

    tokens: Sequence[PromptToken]
    behind: PromptToken | None


def _finished_turn(prompt: Sequence[PromptToken], closed: Sequence[PromptToken], text: str) -> _Turn | str:
    """Find a text behind a prompt, in the prompt with the finished turn; or say why it is not there."""
    begin = [token.id for token in prompt]
    if [token.id for token in closed[: len(begin)]] != begin:
        return "the chat template writes a finished reply behind another prompt"
    tokens = closed[len(begin) :]
    n_tokens = _count_spelling(tokens, text)
    if n_tokens is None:
        return "the chat template writes a finished reply as another text"
    return _Turn(tokens[:n_tokens], tokens[n_tokens] if len(tokens) > n_tokens else None)


def _count_spelling(tokens: Sequence[PromptToken], text: str, *, from_end: bool = False) -> int | None:
    """Number of the first (or last) tokens that spell a text; None where they spell another one."""
    spelled = ""
    for count, token in enumerate(reversed(tokens) if from_end else tokens, start=1):
        spelled = token.text + spelled if from_end else spelled + token.text
        if spelled.strip() == text.strip():
            return count
        if len(spelled) > len(text) + _PADDING:
            break
    return None


def _summed(tokens: Sequence[PromptToken]) -> float:
    return math.fsum(token.logprob for token in tokens)


def conversation_draws(count: int, temperature: float, seeds: Sequence[int] | None) -> list[Draw]:
    """Return draws that carry temperature and seed of plain conversations.

    Raises:
        ConfigError: The number of seeds is another one.
    """
    seeds = range(count) if seeds is None else seeds
    if len(seeds) != count:
        raise ConfigError(f"seeds: expected one a conversation, {count}, got {len(seeds)}")
    return [Draw("clean", i, temperature, seed) for i, seed in enumerate(seeds)]


def _complete(answers: Sequence[Answer | str]) -> list[Answer]:
    """Return the answers where every conversation has one.

    Raises:
        DrawsFailed: One is a reason why there is none.
    """
    failed = [reason for reason in answers if isinstance(reason, str)]
    if failed:
        raise DrawsFailed(f"{len(failed)} of {len(answers)} conversations got no answer. First reason: {failed[0]}")
    return [answer for answer in answers if isinstance(answer, Answer)]


ONLY_HEDGE_HF = (
    "decoding: vcd and dola change what is computed at every step, which only hedge_hf can; use --model hedge_hf "
    "(how draws are sampled, decoding=pure or decoding=model, belongs to --gen_kwargs)"
)


@dataclass(frozen=True)
class PlainSettings:
    """Settings of an ordinary `generate_until` request.

    Attributes:
        temperature: 0 is greedy.
        max_new_tokens: Bound on the length of an answer.
        until: Texts that end an answer.
        top: `top_p` and `top_k`, where they are set and answers are sampled.
    """

    temperature: float
    max_new_tokens: int
    until: tuple[str, ...]
    top: Mapping[str, Any]

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> PlainSettings:
        """Read the generation settings of a task."""
        until = settings.get("until") or ()
        texts = [until] if isinstance(until, str) else until
        temperature = float(settings.get("temperature") or 0) if settings.get("do_sample", True) else 0.0
        top = {
            name: settings[name] for name in ("top_p", "top_k") if temperature > 0 and settings.get(name) is not None
        }
        return cls(temperature, int(settings.get("max_new_tokens") or 256), tuple(filter(None, texts)), top)


_NO_ARGUMENTS = ("self", "options", "max_batch_size")
"""Parameters of an adapter that are no model arguments, or that lmms-eval alone passes."""


def refuse_unknown(options: Mapping[str, Any], adapter: type[ChatAdapter]) -> None:
    """Raise ConfigError for the first of the options that an adapter does not know, naming the nearest valid one."""
    valid = [name for name in inspect.signature(adapter).parameters if name not in _NO_ARGUMENTS]
    for key in options:
        if key == "decoding":
            raise ConfigError(ONLY_HEDGE_HF)
        raise unknown("model argument", key, valid)
