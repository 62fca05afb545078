"""The border to a server: what is sent, and what may come back: from the host asked, in time, and of a size that
can be kept.

A reply of 300 MB, a byte a minute, or a redirect that hands the questions to another host are no answers.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from hedge_tasks.errors import ConfigError
from hedge_tasks.io.downloads import certificates
from hedge_tasks.llm.event_loop import session
from hedge_tasks.llm.failures import RequestFailed

if TYPE_CHECKING:
    import aiohttp

LARGEST_REPLY = 16 * 2**20
"""Bytes. A chat completion with log-probabilities takes about 100 a token."""

_LONGEST_CONNECT_S = 60.0
_LARGE_BODY = 2**20


@dataclass(frozen=True)
class HttpReply:
    """A whole reply; names of headers in any case."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class HttpClient:
    """Requests to one server, on the event loop of `hedge_tasks.llm.event_loop`; it shares its connections.

    The environment's proxies (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY) and certificates (SSL_CERT_FILE,
    SSL_CERT_DIR) count. Replies are asked for uncompressed, and others are refused: a megabyte can unpack to a
    gigabyte.

    Args:
        url: What every path is put behind.
        headers: Of every request.
        timeout: Seconds for a whole reply, whatever trickles in meanwhile.

    Raises:
        ConfigError: The environment's proxy is of a kind that is not known.
    """

    def __init__(self, url: str, headers: Mapping[str, str], timeout: float) -> None:
        self.url, self.timeout = url.rstrip("/"), timeout
        self._headers = {"Accept": "application/json", "Accept-Encoding": "identity", **headers}
        self._proxy = _proxy(self.url)

    async def request(self, path: str, body: bytes | None = None) -> HttpReply:
        """Send a GET request, or with a body, JSON, a POST request.

        Raises:
            RequestFailed: There is no whole reply, or none within bounds. The reason may quote the server.
        """
        import aiohttp
        from yarl import URL

        address = URL(f"{self.url}{path}", encoded=True)
        headers = self._headers if body is None else {**self._headers, "Content-Type": "application/json"}
        # Less than all the time, so that a connection that does not come about is told from a reply that does not.
        connect = min(0.9 * self.timeout, _LONGEST_CONNECT_S)
        try:
            async with session().request(
                "GET" if body is None else "POST",
                address,
                data=io.BytesIO(body) if body is not None and len(body) > _LARGE_BODY else body,
                headers=headers,
                allow_redirects=False,
                proxy=self._proxy,
                ssl=certificates() if address.scheme == "https" else True,
                timeout=aiohttp.ClientTimeout(total=self.timeout, sock_connect=connect),
            ) as response:
                return HttpReply(response.status, response.headers, await _content(response))
        except TimeoutError as error:
            reason = f"no answer within {self.timeout:g} s; a larger timeout= waits longer"
            is_away = isinstance(error, aiohttp.ConnectionTimeoutError)
            raise RequestFailed(reason, "away" if is_away else "late") from None
        except (aiohttp.ClientError, OSError) as error:
            is_away = isinstance(error, aiohttp.ClientConnectorError) and not isinstance(error, aiohttp.ClientSSLError)
            reason = f"no connection ({str(error) or type(error).__name__})"
            raise RequestFailed(reason, "away" if is_away else "broken") from None


async def _content(response: aiohttp.ClientResponse) -> bytes:
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise RequestFailed("the answer is compressed, although that was not asked for", "garbled")
    content = bytearray()
    async for part in response.content.iter_any():
        content += part
        if len(content) > LARGEST_REPLY:
            raise RequestFailed(f"the answer is larger than {LARGEST_REPLY >> 20} MiB", "garbled")
    return bytes(content)


def _proxy(url: str) -> str | None:
    """The environment's proxy for an address."""
    parts = urlsplit(url)
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy or proxy_bypass(parts.netloc):
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    if urlsplit(proxy).scheme not in ("http", "https"):
        raise ConfigError(
            f"{parts.scheme.upper()}_PROXY: only http and https proxies are known, got {urlsplit(proxy).scheme!r}"
        )
    return proxy
