"""Questions to a model on a server: a prompt of the room, and replies that are kept in the cache on disk."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from functools import cached_property
from typing import Any, ClassVar, TypeVar

from hedge_tasks.clustering.nli_cache import cache_folder
from hedge_tasks.llm.account import Account
from hedge_tasks.llm.asker import Asker, Query, QueryResult
from hedge_tasks.llm.log import ReplyLog
from hedge_tasks.llm.models import CONCURRENCY, MAX_RETRIES, TIMEOUT_S, ServedModel
from hedge_tasks.llm.template import load_template

T = TypeVar("T")

_THOUGHTS = 16
"""How many times as long a reply with its thoughts may be."""


class ClaimAsker:
    """Asks one model with the prompt of the class.

    Attributes:
        prompt_name: of its prompt.
        account: what the asking has cost.

    Args:
        model: Name under which the server knows the model.
        url, account, thinking, concurrency, timeout, max_retries: See `ServedModel`.

    Raises:
        ConfigError: a value makes no sense.
    """

    prompt_name: ClassVar[str]

    def __init__(
        self,
        model: str,
        *,
        url: str | None = None,
        account: bool = False,
        thinking: bool = False,
        concurrency: int = CONCURRENCY,
        timeout: float = TIMEOUT_S,
        max_retries: int = MAX_RETRIES,
    ) -> None:
        how: dict[str, Any] = {"concurrency": concurrency, "timeout": timeout, "max_retries": max_retries}
        self.model = ServedModel(model, url, account=account, thinking=thinking, **how)
        self.prompt = load_template("hedge_tasks.claims", self.prompt_name)
        self.account = Account()

    def check(self) -> None:
        """Raises ConfigError where an address or a key is missing."""
        self.model.check()

    def settings(self) -> dict[str, Any]:
        """Return what decides what is said, ready for JSON."""
        prompt = {"prompt": self.prompt.id, "prompt_digest": self.prompt.digest[:16]}
        return {"model": self.model.name, "thinking": self.model.thinking, **prompt}

    def _answers(self, questions: Sequence[Query[T]]) -> list[QueryResult[T]]:
        """Return what came of each question.

        Raises:
            HedgeError: the server is gone, or refuses all.
        """
        with self._log or nullcontext():
            return Asker(self.model, self.account, self._log, stage=self.prompt_name).ask_all(questions)

    def _tokens(self, count: int) -> int:
        """Most tokens of a reply whose JSON has so many."""
        return count * (_THOUGHTS if self.model.thinking else 1)

    @cached_property
    def _log(self) -> ReplyLog | None:
        folder = cache_folder()
        return None if folder is None else ReplyLog(folder / "claims")
