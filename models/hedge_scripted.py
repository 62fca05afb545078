"""hedge_scripted: a model whose every reply is written in a file. For demos, and to see what a table makes of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from hedge_tasks.data.answers import Answer
from hedge_tasks.errors import ConfigError, HedgeError, unknown
from hedge_tasks.io.outside import read_json
from hedge_tasks.io.records import Record, Text, checked
from hedge_tasks.io.sources import file_at
from hedge_tasks.models.base import ChatAdapter, refuse_unknown
from hedge_tasks.sampling.requests import DrawRequest

_Texts = Annotated[list[Text], BeforeValidator(lambda v: [v] if isinstance(v, str) else v), Field(min_length=1)]


class _Replies(Record):
    baseline: _Texts
    clean: _Texts | None = None
    noisy: _Texts | None = None


_Document = BeforeValidator(lambda value: {"baseline": value} if isinstance(value, (str, list)) else value)
_Script: Any = Annotated[dict[str, Annotated[_Replies, _Document]], Field(min_length=1)]


class HedgeScripted(ChatAdapter):
    """Replies as its script has it, whatever it is shown. There are no log-probabilities.

    Args:
        script: a JSON file, or `package://some.package/folder/file.json`: an object from ids of documents (of a second
            stage: `<id>/<what is asked>`) to a reply, or to an object with replies for `baseline`, `clean` and `noisy`
            draws, each a text or a list of texts that the draws take in turn. What it lacks of the three is as
            the baseline.

    Raises:
        ConfigError: there is no script.
        DataError: there is no such file, or it has another form; names the document.
    """

    takes_choices = False
    tells_tokens = False

    def __init__(self, script: str = "", batch_size: int | str = 1, device: str | None = None, **options: Any) -> None:
        super().__init__()
        refuse_unknown(options, HedgeScripted)
        if not script:
            raise ConfigError("hedge_scripted: script is missing, such as --model_args script=replies.json")
        self._replies: Mapping[str, _Replies] = checked(_Script, read_json(file_at(script)), script)
        self.answer_identity = f"hedge_scripted:{Path(script).name}"

    def generate_draws(self, draws: Sequence[DrawRequest]) -> Iterator[list[tuple[int, Answer]]]:
        """All at once, in their order.

        Raises:
            ConfigError: the script has nothing for a document; names the nearest one.
        """
        yield [
            (place, Answer(self._reply(d.request.id, d.draw.condition, d.draw.index))) for place, d in enumerate(draws)
        ]

    def _reply(self, id: str, condition: str, index: int) -> str:
        if id not in self._replies:
            raise unknown("document of the script", id, self._replies)
        replies = getattr(self._replies[id], condition) or self._replies[id].baseline
        return replies[index % len(replies)]

    def generate_until(self, requests: list[Any]) -> list[str]:
        raise HedgeError("hedge_scripted answers HEDGE tasks only")
