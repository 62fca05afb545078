"""What the adapters share: they chat, they generate, and they are strict about their arguments."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from lmms_eval.api.model import lmms

from hedge_tasks.errors import ConfigError, HedgeError, unknown


class ChatAdapter(lmms):
    """An lmms-eval chat model that generates and does nothing else."""

    is_simple = False

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


def refuse_unknown(options: Mapping[str, Any], valid: Collection[str]) -> None:
    """Raise ConfigError for the first model argument that is none, naming the nearest valid one."""
    for key in options:
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
