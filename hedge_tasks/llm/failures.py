"""Why a request came to nothing, in kinds that callers treat differently."""

from __future__ import annotations

import html
import math
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Literal

from hedge_tasks.errors import DrawsFailed, HedgeError

Kind = Literal["away", "broken", "late", "throttled", "busy", "garbled", "empty", "cut", "refused", "unsent"]
"""Of a failed request.

- `away`: nobody was there: no connection, or a gateway found nobody behind it (502, 503, 504).
- `broken`: the connection broke off, or its certificate is not known.
- `late`: there was no answer in time.
- `throttled`: the server asks for fewer requests (429): a speed, and no fault of this one.
- `busy`: the server says that it cannot answer now (408, 409, 425, other 5xx).
- `garbled`: what came back is no chat completion.
- `empty`: a chat completion with no answer in it.
- `cut`: likewise, because the token limit was spent before the answer began; asking again would end the same way.
- `refused`: the server refuses this request (400, 413, 422, ...); it may take others.
- `unsent`: the request could not be put together: a picture of it cannot be read.
"""

PASSING: frozenset[Kind] = frozenset({"away", "broken", "late", "throttled", "busy", "garbled"})
"""Kinds that may pass: such a request is made again."""

_OF_STATUS: Mapping[int, Kind] = {
    **dict.fromkeys((408, 409, 425), "busy"),
    429: "throttled",
    **dict.fromkeys((502, 503, 504), "away"),
}

LONGEST_RETRY_AFTER_S = 600.0
"""Seconds for which a server may ask to be left alone; what asks for more ends the run."""

_MOST_REASONS = 5
_TAGS = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.DOTALL | re.IGNORECASE)
_REASON_KEYS = ("message", "detail", "msg", "error", "error_message", "reason")
_LONGEST_BODY = 20_000


class RequestFailed(Exception):
    """A request without an answer; the text gives the reason, without secrets.

    Attributes:
        kind: See `Kind`.
        retry_after_s: Seconds that the server wants to be left alone; None where it does not say.
    """

    def __init__(self, reason: str, kind: Kind, retry_after_s: float | None = None) -> None:
        super().__init__(reason)
        self.kind, self.retry_after_s = kind, retry_after_s

    @property
    def unreachable(self) -> bool:
        """Whether the server did not answer."""
        return self.kind in ("away", "broken", "late")


class ServerRefuses(HedgeError):
    """Every other request to this server would fail the same way (key, credit, model name); says what to do."""


class ServerGone(DrawsFailed):
    """The server has not answered for a while; what was finished is kept."""


def kind_of(status: int) -> Kind:
    """The kind of a failure by the status of its reply, such as 503."""
    return _OF_STATUS.get(status, "busy" if status >= 500 else "refused")


def reason_in(body: object) -> str | None:
    """The text in the body of an error, whatever its form; None where there is none.

    OpenAI's `message`, FastAPI's `detail` (a text, or a list of `{"loc", "msg"}`), plain text, HTML without its tags.
    """
    if isinstance(body, Mapping):
        reason = next((text for key in _REASON_KEYS if (text := reason_in(body.get(key)))), None)
        place = body.get("loc")
        where = ".".join(map(str, place[:_MOST_REASONS])) if isinstance(place, list) else ""
        return f"{where}: {reason}" if reason and where else reason
    if isinstance(body, list):
        return "; ".join(reason for part in body[:_MOST_REASONS] if (reason := reason_in(part))) or None
    if isinstance(body, str):
        text = body[:_LONGEST_BODY]
        if re.search(r"<(?:!doctype|html|head|body)\b", text, re.IGNORECASE):
            text = html.unescape(_TAGS.sub(" ", text))
        return " ".join(text.split()) or None
    return None


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds that a response asks to wait for, by Retry-After: a number, or a date.

    Args:
        headers: Of the response; names in lower case, or a mapping that ignores case.

    Returns:
        None where nothing is asked for, or nothing that makes sense.
    """
    value = headers.get("retry-after") or "nan"
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except (TypeError, ValueError, OverflowError):
            return None
    return max(seconds, 0.0) if math.isfinite(seconds) else None
