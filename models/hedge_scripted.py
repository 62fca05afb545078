"""hedge_scripted: a model whose every reply is written in a file. For demos, and to see what a table makes of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hedge_tasks.data.answers import Answer
from hedge_tasks.errors import ConfigError, HedgeError, unknown
from hedge_tasks.io.outside import read_json, shown
from hedge_tasks.io.sources import file_at
from hedge_tasks.models.base import ChatAdapter, refuse_unknown
from hedge_tasks.sampling.requests import DrawRequest

_CONDITIONS = ("baseline", "clean", "noisy")


class HedgeScripted(ChatAdapter):
    """Replies as its script has it, whatever it is shown. There are no log-probabilities.

    Args:
        script: a JSON file, or `package://some.package/folder/file.json`: an object from ids of documents (of a second
            stage: `<id>/<what is asked>`) to a reply, or to an object with replies for `baseline`, `clean` and `noisy`
            draws, each a text or a list of texts that the draws take in turn. What it lacks of the three is as
            the baseline.

    Raises:
        ConfigError: the script has another form; names the document.
        DataError: there is no such file.
    """

    takes_choices = False
    tells_tokens = False

    def __init__(self, script: str = "", batch_size: int | str = 1, device: str | None = None, **options: Any) -> None:
        super().__init__()
        refuse_unknown(options, HedgeScripted)
        if not script:
            raise ConfigError("hedge_scripted: script is missing, such as --model_args script=replies.json")
        self._replies = _checked(read_json(file_at(script)), script)
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
        by_condition = self._replies[id]
        replies = by_condition.get(condition, by_condition["baseline"])
        return replies[index % len(replies)]

    def generate_until(self, requests: list[Any]) -> list[str]:
        raise HedgeError("hedge_scripted answers HEDGE tasks only")


def _checked(script: object, where: str) -> Mapping[str, Mapping[str, Sequence[str]]]:
    """Return the script as document -> condition -> replies."""
    if not isinstance(script, Mapping) or not script:
        raise ConfigError(f"{where}: expected an object from documents to replies, got {shown(script)}")
    checked = {}
    for id, entry in script.items():
        by_condition = entry if isinstance(entry, Mapping) else {"baseline": entry}
        texts = {}
        for condition, value in by_condition.items():
            if condition not in _CONDITIONS:
                raise unknown(f"condition of {shown(id)} in {where}", condition, _CONDITIONS)
            replies = [value] if isinstance(value, str) else value
            if not (isinstance(replies, list) and replies and all(isinstance(reply, str) for reply in replies)):
                raise ConfigError(f"{where}: {shown(id)}.{condition}: expected a text or a list of texts")
            texts[condition] = replies
        if "baseline" not in texts:
            raise ConfigError(f"{where}: {shown(id)}: no baseline")
        checked[id] = texts
    return checked
