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
    """Says what its script says, whatever it is shown. It tells no log-probabilities, for there are none.

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
        refuse_unknown(options, ("script",))
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
        of = self._replies[id]
        said = of.get(condition, of["baseline"])
        return said[index % len(said)]

    def answer_conversations(self, conversations: Sequence[list[dict[str, Any]]], **options: Any) -> list[Answer]:
        raise HedgeError("hedge_scripted answers the documents of its script, and no other conversation")

    def generate_until(self, requests: list[Any]) -> list[str]:
        raise HedgeError("hedge_scripted answers HEDGE tasks only")


def _checked(script: object, where: str) -> Mapping[str, Mapping[str, Sequence[str]]]:
    """Document -> condition -> texts."""
    if not isinstance(script, Mapping) or not script:
        raise ConfigError(f"{where}: expected an object from documents to replies, got {shown(script)}")
    replies = {}
    for id, of in script.items():
        given = of if isinstance(of, Mapping) else {"baseline": of}
        for condition in given:
            if condition not in _CONDITIONS:
                raise unknown(f"condition of {shown(id)} in {where}", condition, _CONDITIONS)
        texts = {condition: [said] if isinstance(said, str) else said for condition, said in given.items()}
        for condition, said in texts.items():
            if not (isinstance(said, list) and said and all(isinstance(text, str) for text in said)):
                raise ConfigError(f"{where}: {shown(id)}.{condition}: expected a text or a list of texts")
        if "baseline" not in texts:
            raise ConfigError(f"{where}: {shown(id)}: no baseline")
        replies[id] = texts
    return replies
