"""The checker `vqascore`: how surely a vision-language model says that a picture shows a statement."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from PIL import Image

from hedge_tasks.data.answers import Answer
from hedge_tasks.errors import ConfigError, HedgeError, unknown
from hedge_tasks.io import options
from hedge_tasks.llm.loading import resolve_model
from hedge_tasks.llm.template import Template, load_template
from hedge_tasks.making.pictures.base import PictureQuestion
from hedge_tasks.making.pictures.specs import model_name
from hedge_tasks.replies.yes_no import read_yes_no

_SHAPES_NOTHING = (
    *("base_url", "api_key", "num_concurrent", "timeout", "max_retries", "retry_backoff_s"),
    *("wait_for_server", "draws_per_request"),
    *("batch_size", "max_batch_size", "draws_per_batch", "device", "device_map"),
)
"""Arguments of adapters that are no part of the name: where the model is, and how fast it is asked."""

_FORCED, _ANSWER = _WAYS = ("forced", "answer")

_MOST_TOKENS = 8
"""Longest answer, in tokens, where a server gives no log-probabilities of given words."""


class VqaScore:
    """P(yes) to "Does this figure show '...'? Please answer yes or no." (Lin et al. 2024, VQAScore).

    The score is p(Yes) / (p(Yes) + p(No)) at temperature 1. VQAScore itself takes p(Yes) alone, of a model that was
    trained to say nothing but these two words; a chat model has other beginnings ("The figure ..."), and their share
    says nothing about the picture.

    Both probabilities come from forced passes (`forced_logprobs`). For servers that do not make these there is
    `by=answer`: the model is asked, and the log-probability of its own yes or no counts; where it has none either, the
    checker cannot say. That is another score, so it has another name, and no failure turns one into the other.

    Args:
        adapter: One of our adapters for lmms-eval, such as `hedge_hf` or `hedge_openai`.
        by: "forced" or "answer"; by default "forced" where the adapter has forced passes.
        arguments: As for lmms-eval's `--model_args`.

    Raises:
        ConfigError: There is no such adapter, or an argument makes no sense.
    """

    def __init__(self, adapter: str = "hedge_hf", *, by: str | None = None, **arguments: Any) -> None:
        from hedge_tasks.models import adapter_class

        if "api_key" in arguments:
            raise ConfigError("checker vqascore: a key belongs into the environment (OPENAI_API_KEY)")
        adapter_type = adapter_class(options.text("adapter", adapter))
        if not hasattr(adapter_type, "answer_conversations"):
            raise ConfigError(f"adapter {adapter!r} answers no conversations that belong to no task")
        forces = hasattr(adapter_type, "forced_logprobs")
        if by is not None and by not in _WAYS:
            raise unknown("way to ask", str(by), _WAYS)
        if by == _FORCED and not forces:
            raise ConfigError(f"adapter {adapter!r} makes no forced passes: give by={_ANSWER}")
        self._by = by or (_FORCED if forces else _ANSWER)
        named_arguments = {key: value for key, value in arguments.items() if key not in _SHAPES_NOTHING}
        if "pretrained" in arguments:
            named_arguments["pretrained"] = model_name(str(arguments["pretrained"]))
            arguments["pretrained"] = resolve_model(str(arguments["pretrained"]))
        self._model = adapter_type(**arguments)
        listed = ",".join(f"{key}={value}" for key, value in sorted(named_arguments.items()))
        self._has_forced = False
        self.name = f"vqascore:{adapter},{listed},by={self._by},prompt={_prompt().digest[:8]}"

    def check(self, pictures: Sequence[Image.Image], questions: Sequence[PictureQuestion]) -> list[float | str | None]:
        """As `Checker.check`.

        Raises:
            HedgeError: The model makes no forced passes, not even about a blank picture.
        """
        conversations = [_conversation(*pair) for pair in zip(pictures, questions, strict=True)]
        if self._by == _ANSWER:
            return self._scores_of_answers(conversations)
        scores = self._scores_of_forced_passes(conversations)
        if len(conversations) > 1:  # an adapter may give up a batch at its first failure
            scores = [
                self._scores_of_forced_passes([turns])[0] if isinstance(score, str) else score
                for turns, score in zip(conversations, scores, strict=True)
            ]
        self._has_forced |= any(not isinstance(score, str) for score in scores)
        if scores and not self._has_forced:
            blank = _conversation(Image.new("RGB", (64, 64), "white"), PictureQuestion("a house", "statement", {}))
            [reason] = self._scores_of_forced_passes([blank])
            if isinstance(reason, str):
                raise HedgeError(f"{self.name}: {reason}; for a server without forced passes give by={_ANSWER}")
            self._has_forced = True
        return scores

    def _scores_of_forced_passes(self, conversations: Sequence[list[dict[str, Any]]]) -> list[float | str | None]:
        """Scores; a text in place of one says why a pass failed."""
        words = _prompt().schema["enum"]
        passes = self._model.forced_logprobs([t for t in conversations for _ in words], [*words] * len(conversations))
        pairs = zip(passes[::2], passes[1::2], strict=True)
        return [_failure(pair) or p_yes(*map(_logprob, pair)) for pair in pairs]

    def _scores_of_answers(self, conversations: Sequence[list[dict[str, Any]]]) -> list[float | str | None]:
        answers = self._model.answer_conversations(conversations, max_new_tokens=_MOST_TOKENS)
        return [_p_yes_of_answer(answer) for answer in answers]


def p_yes(yes: float | None, no: float | None) -> float | None:
    """p(yes) / (p(yes) + p(no)) of two log-probabilities; None where either is unknown, or both are impossible.

    Example:
        >>> import math
        >>> round(p_yes(math.log(0.6), math.log(0.2)), 12)
        0.75
    """
    if yes is None or no is None or yes == no == -math.inf:
        return None
    difference = no - yes
    return 1 / (1 + math.exp(difference)) if difference < 700 else 0.0


def _failure(pair: Sequence[Answer | str]) -> str | None:
    return next((result or "a forced pass failed" for result in pair if isinstance(result, str)), None)


def _logprob(answer: Answer | str) -> float | None:
    """Log-probability of the whole answer, in nats."""
    if isinstance(answer, str) or answer.mean_logprob is None:
        return None
    return answer.mean_logprob * max(answer.n_tokens or 1, 1)


def _p_yes_of_answer(answer: Answer) -> float | None:
    """P(yes) of an answer that the model gave itself: to the other word all the rest is left."""
    logprob = _logprob(answer)
    verdict = read_yes_no(answer.text).value
    if logprob is None or verdict not in ("yes", "no") or len(answer.text.split()) > 1:
        return None
    likely = math.exp(min(logprob, 0.0))
    return likely if verdict == "yes" else 1 - likely


def _conversation(picture: Image.Image, question: PictureQuestion) -> list[dict[str, Any]]:
    return _prompt().conversation({"statement": question.statement}, [picture])


def _prompt() -> Template:
    return load_template("hedge_tasks.making.pictures", "vqascore")
