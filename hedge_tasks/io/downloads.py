"""Files from addresses that a data set names: over https, from the host named, in time, and of a bounded size."""

from __future__ import annotations

import os
import ssl
import time
from functools import lru_cache
from typing import Any
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from hedge_tasks.errors import DataError

LARGEST = 64 << 20
"""Bytes."""

_TIMEOUT_S = 60.0
"""For a whole file, whatever trickles in meanwhile."""


def same_origin(address: str, elsewhere: str) -> bool:
    """Whether a redirect stays at the host: the one rule for every request of ours, whatever it asks for.

    Whoever answers may else have us fetch what only this machine can reach, or hand what we send to others.
    """
    from yarl import URL

    return URL(address).origin() == URL(elsewhere).origin()


@lru_cache(maxsize=1)
def certificates() -> ssl.SSLContext:
    """Those that the environment names (SSL_CERT_FILE, SSL_CERT_DIR), or else certifi's."""
    import certifi

    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    return ssl.create_default_context(cafile=file or (None if folder else certifi.where()), capath=folder)


class _AtItsHost(HTTPRedirectHandler):
    def redirect_request(self, req: Request, *answer: Any) -> Request | None:
        if not same_origin(req.full_url, answer[-1]):
            raise DataError(f"it redirects to another host ({answer[-1][:200]}); name that one if it is meant")
        return super().redirect_request(req, *answer)


def download(address: str) -> bytes:
    """The content of an https:// address.

    Raises:
        DataError: it is another address, redirects to another host, or is too large or too slow.
        OSError: nobody is there, or the server refuses.
    """
    if not address.startswith("https://"):
        raise DataError("only https:// addresses are downloaded")
    opener, end = build_opener(_AtItsHost, HTTPSHandler(context=certificates())), time.monotonic() + _TIMEOUT_S
    content = bytearray()
    with opener.open(address, timeout=_TIMEOUT_S) as response:
        while piece := response.read1(1 << 16):
            content += piece
            if len(content) > LARGEST:
                raise DataError(f"more than {LARGEST >> 20} MiB")
            if time.monotonic() > end:
                raise DataError(f"not whole within {_TIMEOUT_S:g} s")
    return bytes(content)
