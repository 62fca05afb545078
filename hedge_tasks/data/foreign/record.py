"""Answers of other tools as their files hold them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

RawAnswer = Mapping[str, Any]
"""`text`, and where they are known `logprobs` of its tokens, `mean_logprob`, `n_tokens`, `finish` and `reasoning`."""

FINISHES = {"stop": "stop", "eos": "stop", "length": "length", "max_tokens": "length", "content_filter": "filtered"}
"""Why a model stopped, in the words of other tools -> in ours."""


@dataclass(frozen=True)
class ForeignAnswers:
    """All answers to one question in a file.

    Attributes:
        baseline: the answer that is judged; None where the file does not say.
        draws: further answers.
    """

    id: str
    draws: tuple[RawAnswer, ...]
    baseline: RawAnswer | None = None
    question: str = ""
    reference: str = ""
    label: int | None = None
    group: str | None = None
    question_type: str | None = None

    @property
    def answers(self) -> tuple[RawAnswer, ...]:
        """The baseline answer, where the file says which it is, and the draws."""
        return self.draws if self.baseline is None else (self.baseline, *self.draws)


@dataclass(frozen=True)
class ForeignFile:
    """A file of another tool.

    Attributes:
        judge: who has labelled the answers; empty without labels.
    """

    form: str
    documents: tuple[ForeignAnswers, ...]
    model: str = ""
    judge: str = ""
    notes: tuple[str, ...] = ()


def choice_logprobs(choice: Mapping[str, Any]) -> list[Any] | None:
    """Log-probabilities of the tokens in a choice of a chat completion; None where it has none."""
    logprobs = choice.get("logprobs") or {}
    # Together and llama-cpp-python have them in a column, as completions without a chat.
    return [token["logprob"] for token in logprobs.get("content") or []] or logprobs.get("token_logprobs") or None


def reference_text(target: object) -> str:
    """The references in a field that holds one or a list of them, one a line."""
    return "\n".join(map(str, target)) if isinstance(target, (list, tuple)) else str(target or "")
