"""The generator `openai`: a model behind a server with OpenAI's image API."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from PIL import Image

from hedge_tasks.errors import ConfigError, HedgeError
from hedge_tasks.io import options
from hedge_tasks.llm.accounts import server_and_key
from hedge_tasks.llm.concurrency import ask_each
from hedge_tasks.llm.failures import RequestFailed, ServerGone
from hedge_tasks.llm.images import ImageClient
from hedge_tasks.making.pictures.base import Order
from hedge_tasks.making.pictures.specs import spec_name

_OPTIONAL = ("seed", "response_format")
"""Settings a picture can do without where the server refuses them: gpt-image-1 knows neither."""


class ServedGenerator:
    """A model behind a server with OpenAI's image API.

    A server that takes no seed (OpenAI's) makes another picture each time: the one that is kept first stands.

    Args:
        model: Name under which the server knows the model.
        url: Such as `http://localhost:8000/v1`; None takes OPENAI_API_URL, or OpenAI's.
        account: Whether a server at `url` is told OPENAI_API_KEY.
        size: Such as `1024x1024`; None leaves it to the model.
        quality: As the model takes it; None leaves it out.
        concurrency: Requests under way at any time.
        timeout: Seconds to wait for a picture.
        max_retries: How often a request that failed is made again.

    Raises:
        ConfigError: A value makes no sense.
    """

    def __init__(
        self,
        model: str,
        url: str | None = None,
        *,
        account: bool = False,
        size: str | None = None,
        quality: str | None = None,
        concurrency: int = 8,
        timeout: float = 300.0,
        max_retries: int = 6,
    ) -> None:
        model = options.text("model", model)
        url = None if url is None else options.address("url", url)
        url, key = server_and_key(url, account=options.flag("account", account), who=f"generator {model!r}")
        self._settings: dict[str, Any] = {"response_format": "b64_json"}
        self._settings |= {} if size is None else {"size": _size(size)}
        self._settings |= {} if quality is None else {"quality": options.text("quality", quality)}
        self._concurrency = options.count("concurrency", concurrency, at_least=1)
        self.name = spec_name("openai", model, size=size, quality=quality)
        self._client = ImageClient(
            model,
            url,
            key,
            timeout=options.number("timeout", timeout, zero=False),
            max_retries=options.count("max_retries", max_retries),
            backoff_s=0.5,
        )

    def generate(self, orders: Sequence[Order]) -> list[Image.Image | str]:
        """The pictures of the orders, or why a request came to nothing (retries included).

        Raises:
            HedgeError: Every other request would fail the same way, or nobody answers any more.
        """

        async def call(at: int, stop: threading.Event) -> Image.Image | RequestFailed:
            # Servers read 32 bits, and some of those a sign.
            settings = {**self._settings, "seed": orders[at].seed % 2**31}
            return await self._client.draw_async(orders[at].prompt, settings, optional=_OPTIONAL, stop=stop)

        results: dict[int, Image.Image | RequestFailed] = {}
        workers = max(1, min(self._concurrency, len(orders)))
        try:
            with closing(ask_each(call, len(orders), workers, unreachable=_unreachable)) as batches:
                for batch in batches:
                    results.update(batch)
        except ServerGone as gone:
            raise HedgeError(f"{self.name}: nobody answers any more ({gone.last})") from None
        outcomes = [results[at] for at in range(len(orders))]
        return [str(outcome) if isinstance(outcome, RequestFailed) else outcome for outcome in outcomes]


def _unreachable(result: Image.Image | RequestFailed) -> bool:
    return isinstance(result, RequestFailed) and result.unreachable


def _size(size: object) -> str:
    width, _, height = str(size).partition("x")
    if not (width.isdecimal() and height.isdecimal() and int(width) and int(height)) and size != "auto":
        raise ConfigError(f"size: expected WIDTHxHEIGHT, such as 1024x1024, got {size!r}")
    return str(size)
