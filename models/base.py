"""The common part of the adapters: they chat, they generate, and they are strict about their arguments."""

from __future__ import annotations

import abc
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from lmms_eval.api.model import lmms

from hedge_tasks.data.answers import Answer, Draw
from hedge_tasks.errors import ConfigError, DrawsFailed, HedgeError, unknown
from hedge_tasks.models.token_sampling import LOGPROB_DECIMALS
from hedge_tasks.sampling.reread import Reread
from hedge_tasks.serving.completion import PromptToken

_PADDING = 16
"""Blanks that a template or a tokenizer may put around a text."""


class ChatAdapter(lmms):
    """An lmms-eval chat model that generates and does nothing else."""

    is_simple = False
    takes_choices = True
    tells_tokens = True
    takes_threads = False
    """Whether several threads may ask it at once."""
    samples_itself = False
    """Whether this package's own code chooses the tokens; whoever else does is asked whether settings are obeyed."""

    @classmethod
    def keeps_schemas(cls) -> bool:
        """Whether answers are kept to a JSON schema as they are written, or a server is asked to do so."""
        return False

    @abc.abstractmethod
    def answer_conversations(
        self,
        conversations: Sequence[list[dict[str, Any]]],
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
        """Conversation of an ordinary `generate_until` request."""
        _, doc_to_messages, _, doc_id, task, split = request.args
        return doc_to_messages(self.task_dict[task][split][doc_id])


def forced_answer(tokens: Sequence[PromptToken], text: str) -> Answer | str:
    """A forced text out of the tokens of a prompt that ends with it.

    Args:
        tokens: of the prompt.
        text: at its end, as the model was made to say it.

    Returns:
        The answer, or why there is none: the last tokens make another text.

    Example:
        >>> prompt = [PromptToken(1, "?", -3.0), PromptToken(2, " left", -0.5), PromptToken(3, " lung", -1.0)]
        >>> forced_answer(prompt, "left lung").mean_logprob
        -0.75
    """
    said = ""
    for count, token in enumerate(reversed(tokens), start=1):
        said = token.text + said
        if said.strip() == text.strip():
            return spelled_answer(text, {tuple(token.id for token in tokens[-count:]): _summed(tokens[-count:])})
        if len(said) > len(text) + _PADDING:
            break
    return "the prompt's last tokens are another text than the one that was to be forced"


SPELLINGS = ("", " ")
"""Put in front of a reply: many models begin with a blank, which is another first token."""


def spelled_answer(text: str, spellings: Mapping[tuple[int, ...], float]) -> Answer:
    """A text that a model may write in several ways.

    Args:
        text: without surrounding blanks.
        spellings: tokens -> log-probability of all of them; one spelling must not stand twice under two names.

    Returns:
        The sum of the probabilities, as a mean over the tokens of the likeliest spelling.
    """
    most = max(spellings, key=lambda tokens: spellings[tokens])
    top, n = spellings[most], max(len(most), 1)
    # Relative to the largest, so that what is hardly possible is not lost.
    rest = 0.0 if top == -math.inf else math.log(math.fsum(math.exp(value - top) for value in spellings.values()))
    return Answer(text, min(round((top + rest) / n, LOGPROB_DECIMALS), 0.0), len(most))


def whole_reply(
    prompt: Sequence[PromptToken], closed: Sequence[Sequence[PromptToken]], text: str, controls: Collection[int]
) -> Answer | str:
    """A whole reply, its end included, out of prompts in which it is a finished turn of the assistant's.

    The chat template writes the end. What it writes behind that (a line break) is no part of the reply.

    Args:
        prompt: that the model would go on from.
        closed: the prompt with the finished turn, one a spelling.
        text: of the turn.
        controls: tokens that may be an end.

    Returns:
        The sum over the spellings, or why there is none.
    """
    begin = [token.id for token in prompt]
    spellings: dict[tuple[int, ...], float] = {}
    reason = "the model tells no log-probabilities of a finished reply"
    for tokens in closed:
        rest = tokens[len(begin) :]
        n_said = _spelled_by(rest, text)
        if [token.id for token in tokens[: len(begin)]] != begin:
            reason = "the chat template writes a finished reply behind another prompt"
        elif n_said is None:
            reason = "the chat template writes a finished reply as another text"
        elif len(rest) == n_said or rest[n_said].id not in controls:
            reason = "the chat template writes no end behind a reply"
        else:
            reply = rest[: n_said + 1]
            spellings[tuple(token.id for token in reply)] = _summed(reply)
    return spelled_answer(text, spellings) if spellings else reason


def drawn_reply(
    prompt: Sequence[PromptToken], closed: Sequence[Sequence[PromptToken]], text: str, controls: Collection[int]
) -> Reread | str:
    """A reply as a draw of it would have been told: of the likelier spelling, its tokens and its end.

    Args:
        prompt, closed, text, controls: as for `whole_reply`.
    """
    begin = [token.id for token in prompt]
    found: list[tuple[float, Reread]] = []
    for tokens in closed:
        rest = tokens[len(begin) :]
        n_said = _spelled_by(rest, text) if [token.id for token in tokens[: len(begin)]] == begin else None
        if n_said:
            total = _summed(rest[:n_said])
            end = rest[n_said] if len(rest) > n_said and rest[n_said].id in controls else None
            mean, told = round(total / n_said, LOGPROB_DECIMALS), None
            if end is not None:
                told = min(round(end.logprob, LOGPROB_DECIMALS), 0.0)
            found.append((total, Reread(min(mean, 0.0), n_said, told)))
    if not found:
        return "the chat template writes a finished reply as another text, or behind another prompt"
    return max(found, key=lambda one: one[0])[1]


def _spelled_by(tokens: Sequence[PromptToken], text: str) -> int | None:
    """How many of the first tokens spell a text; None where they are another one."""
    said = ""
    for count, token in enumerate(tokens, start=1):
        said += token.text
        if said.strip() == text.strip():
            return count
        if len(said) > len(text) + _PADDING:
            break
    return None


def _summed(tokens: Sequence[PromptToken]) -> float:
    return math.fsum(token.logprob for token in tokens)


def conversation_draws(count: int, temperature: float, seeds: Sequence[int] | None) -> list[Draw]:
    """Draws that carry temperature and seed of plain conversations.

    Raises:
        ConfigError: The number of seeds is another one.
    """
    seeds = range(count) if seeds is None else seeds
    if len(seeds) != count:
        raise ConfigError(f"seeds: expected one a conversation, {count}, got {len(seeds)}")
    return [Draw("clean", i, temperature, seed) for i, seed in enumerate(seeds)]


def complete(answers: Sequence[Answer | str]) -> list[Answer]:
    """The answers, where there is none that is a reason why there is none.

    Raises:
        DrawsFailed: There is one.
    """
    failed = [reason for reason in answers if isinstance(reason, str)]
    if failed:
        raise DrawsFailed(f"{len(failed)} of {len(answers)} conversations got no answer. First reason: {failed[0]}")
    return [answer for answer in answers if isinstance(answer, Answer)]


ONLY_HEDGE_HF = (
    "decoding: vcd, dola and pai change what is computed at every step, which only hedge_hf can; use --model hedge_hf "
    "(how draws are sampled, decoding=pure or decoding=model, belongs to --gen_kwargs)"
)


def refuse_unknown(options: Mapping[str, Any], valid: Collection[str]) -> None:
    """Raise ConfigError for the first model argument that is none, naming the nearest valid one."""
    for key in options:
        if key == "decoding" and key not in valid:
            raise ConfigError(ONLY_HEDGE_HF)
        raise unknown("model argument", key, valid)


def positive(name: str, value: object) -> int:
    """A count from the command line, where numbers may come as text.

    Raises:
        ConfigError: it is no positive integer.
    """
    try:
        number = int(str(value))
    except ValueError:
        number = 0
    if number < 1:
        raise ConfigError(f"{name}: expected a positive integer, got {value!r}")
    return number
