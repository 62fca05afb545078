"""The client for servers with OpenAI's image API (`/v1/images/generations`)."""

from __future__ import annotations

import base64
import binascii
import io
import threading
from collections.abc import Awaitable, Collection, Mapping
from typing import Any

from PIL import Image

from hedge_tasks.data.pictures import image_file_fault, to_rgb8
from hedge_tasks.llm.border import HttpReply
from hedge_tasks.llm.chat import ChatClient, encoded
from hedge_tasks.llm.failures import RequestFailed

MOST_PIXELS = 4096 * 4096
"""Of a picture out of a reply."""

_FORMATS = ("PNG", "JPEG", "WEBP")


class ImageClient(ChatClient):
    """Asks one model on one server for pictures; built and bounded as `ChatClient`."""

    async def draw_async(
        self,
        prompt: str,
        settings: Mapping[str, Any],
        *,
        optional: Collection[str] = (),
        stop: threading.Event | None = None,
    ) -> Image.Image | RequestFailed:
        """One picture, 8-bit RGB; or why there is none.

        Args:
            settings: All other fields of the request's body, such as `size`.
            optional: Settings that are left out where the server refuses them.
            stop: Ends the pauses between retries once it is set.

        Raises:
            ServerRefuses: Every other request would fail the same way.
        """

        def send(body: Mapping[str, Any]) -> Awaitable[HttpReply]:
            return self._post("/images/generations", encoded({"model": self.model, "prompt": prompt, "n": 1, **body}))

        return await self._until_read(send, read_picture, settings, optional, stop)


def read_picture(body: object) -> Image.Image:
    """The first picture in an answer, 8-bit RGB. Only what is in the answer itself: no address is fetched.

    Raises:
        RequestFailed: There is none, or it is no PNG, JPEG or WebP file of at most `MOST_PIXELS` pixels.
    """
    data = body.get("data") if isinstance(body, Mapping) else None
    first = data[0] if isinstance(data, list) and data else None
    if not isinstance(first, Mapping):
        error = body.get("error") if isinstance(body, Mapping) else None
        raise RequestFailed(f"the answer has no picture ({error})" if error else "the answer has no picture", "garbled")
    coded = first.get("b64_json")
    if not isinstance(coded, str):
        what = "an address in place of the picture" if first.get("url") else "no b64_json"
        raise RequestFailed(f"the answer has {what}", "refused")
    try:
        content = base64.b64decode(coded, validate=True)
    except (binascii.Error, ValueError):
        raise RequestFailed("the picture is no base64", "garbled") from None
    if fault := image_file_fault(content, decode=True, most_pixels=MOST_PIXELS, formats=_FORMATS):
        raise RequestFailed(f"the answer is {fault}", "garbled")
    return to_rgb8(Image.open(io.BytesIO(content), formats=_FORMATS))
