"""The proxy's paths: `/v1/chat/completions`, `/v1/audits`, `/v1/models`, `/health`.

Of what is asked and answered nothing is logged: a line has the outcome, the draws and the seconds. An answer goes out
with a verdict; where anything goes wrong there is an error and no answer.
"""

from __future__ import annotations

import asyncio
import hmac
from collections import Counter
from concurrent.futures import Future
from typing import Any

from fastapi import Depends, FastAPI, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from loguru import logger

from hedge_tasks import __version__
from hedge_tasks.errors import DataError, HedgeError
from hedge_tasks.guard.ask import Guard, PendingQuestion
from hedge_tasks.guard.models import served_name
from hedge_tasks.guard.proxy import replies
from hedge_tasks.guard.proxy.requests import RefusedRequest, read_request
from hedge_tasks.guard.proxy.settings import ProxySettings
from hedge_tasks.guard.verdict import GuardVerdict
from hedge_tasks.io.outside import parse_json
from hedge_tasks.numbers import Format

_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_TYPES = {401: "authentication_error", 429: "rate_limit_error", 500: "server_error"}
_MOST_ACCEPTED = 100_000
"""Accepted answers that can still be audited, the latest ones."""


class Proxy:
    """The state behind the paths. One for each app; asked from one event loop.

    Args:
        guard: judges.
        settings: how requests are treated.
    """

    def __init__(self, guard: Guard, settings: ProxySettings) -> None:
        self.guard, self.settings = guard, settings
        self.model = served_name(guard.policy)
        self.outcomes: Counter[str] = Counter()
        self._busy = 0
        self._failing = False
        self._accepted: dict[str, None] = {}

    # --- paths --------------------------------------------------------------------------------------------------------

    async def chat(self, request: Request) -> Response:
        """An answer and its verdict."""
        content = await self._body(request)
        if self._busy >= self.settings.most_requests:
            raise RefusedRequest("the guard has all hands full; ask again", status=429, code="overloaded")
        guard, left = self.guard, None
        self._busy += 1  # until the last thread has let go of the question
        try:
            policy = (guard.policy.circumstances.pictured, guard.prompt, guard.plan)
            parsed = await asyncio.to_thread(read_request, content, self.model, *policy, self.settings)
            del content
            question = await asyncio.to_thread(guard.question, parsed.pictures, parsed.question, parsed.seed)
            future = guard.submit(question)
            left = asyncio.wrap_future(future)
        finally:
            if left is None:
                self._busy -= 1
            else:
                left.add_done_callback(self._leave)
        verdict = await self._judged(request, question, future)
        reply = replies.judged(verdict, self.model, withhold=self.settings.on_reject == "refuse")
        if verdict.accepted:
            self._accepted[reply["id"]] = None
            while len(self._accepted) > _MOST_ACCEPTED:
                self._accepted.pop(next(iter(self._accepted)))
        if parsed.stream:
            return StreamingResponse(replies.events(reply), media_type="text/event-stream")
        return JSONResponse(reply)

    async def audit(self, request: Request) -> Response:
        """Take somebody's finding about an accepted answer: {"id": of the reply, "hallucinated": true or false}."""
        try:
            content = parse_json(await self._body(request), "the audit")
        except DataError as error:
            raise RefusedRequest(str(error)) from None
        if not isinstance(content, dict) or content.keys() != {"id", "hallucinated"}:
            raise RefusedRequest('an audit is {"id": "chatcmpl-...", "hallucinated": true or false}')
        if not isinstance(content["hallucinated"], bool):
            raise RefusedRequest("hallucinated: expected true or false", param="hallucinated")
        if not isinstance(content["id"], str) or content["id"] not in self._accepted:
            raise RefusedRequest("id: no accepted answer of this server, or audited before", param="id", status=404)
        self._accepted.pop(content["id"])  # each counts once
        self.guard.monitor.audited(hallucinated=content["hallucinated"])
        return await self.health()

    async def models(self) -> Response:
        """The one model that can be asked."""
        listed = {"id": self.model, "object": "model", "created": 0, "owned_by": "hedge"}
        return JSONResponse({"object": "list", "data": [listed]})

    async def health(self) -> Response:
        """Whether the guard is there, whether the last question reached a model, and what became of all questions."""
        policy, monitor = self.guard.policy, self.guard.monitor
        stopped = monitor.reason
        state = {
            "status": "stopped" if stopped else "degraded" if self._failing else "ok",
            "version": __version__,
            "model": self.model,
            "detector": policy.detector,
            "risk": policy.promise.risk,
            "confidence": policy.promise.confidence,
            "accepted_when_calibrated": policy.promise.accepted,
            "drift": monitor.shifted,
            "audits": dict(zip(("answers", "hallucinated"), monitor.audits, strict=True)),
            "refuted": monitor.broken,
            "outcomes": dict(self.outcomes),
            **({"reason": stopped} if stopped else {}),
        }
        return JSONResponse(state)

    # --- who may ask --------------------------------------------------------------------------------------------------

    def check_host(self, request: Request) -> None:
        """On a loopback address only this machine's names count: a web page's own name could be made to point here."""
        host = request.headers.get("host", "")
        name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
        if self.settings.local and name.lower() not in _LOCAL_NAMES:
            raise RefusedRequest("this guard is asked as localhost", status=403, code="host")

    def check_key(self, request: Request) -> None:
        """Compare the key in a time that does not depend on it."""
        self.check_host(request)
        if self.settings.key is None:
            return
        brought = request.headers.get("authorization", "")
        if not hmac.compare_digest(brought.encode("utf-8", "replace"), f"Bearer {self.settings.key}".encode()):
            raise RefusedRequest("a key is needed: Authorization: Bearer KEY", status=401, code="invalid_api_key")

    # --- a request ----------------------------------------------------------------------------------------------------

    async def _judged(self, request: Request, question: PendingQuestion, future: Future[GuardVerdict]) -> GuardVerdict:
        """The verdict; a client that hangs up is not waited for."""
        guard = self.guard
        verdict = asyncio.ensure_future(guard.answered(question, future))
        gone = asyncio.ensure_future(_hung_up(request))
        try:
            await asyncio.wait({verdict, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not verdict.done():
                raise RefusedRequest("the client has hung up", status=499, code="gone")
            judged = verdict.result()
        except HedgeError as error:
            self._failing = True
            logger.warning("The model did not answer a question ({})", type(error).__name__)
            words = str(error).replace(str(getattr(guard.model, "base_url", "\0")), "the model's server")
            raise RefusedRequest(words[:500], status=502, code="upstream") from None
        finally:
            verdict.cancel()
            gone.cancel()
        if judged.answer is None:
            raise RefusedRequest(f"the model has not answered: {judged.reason}", status=504, code="undecided")
        self._failing = False
        self.outcomes[judged.state] += 1
        logger.info("{}: {} draws, {} s", judged.state, judged.draws, Format(2)(judged.seconds))
        return judged

    def _leave(self, left: asyncio.Future[GuardVerdict]) -> None:
        self._busy -= 1
        if not left.cancelled():
            left.exception()  # whoever waits for the verdict has it, too

    async def _body(self, request: Request) -> bytes:
        if request.headers.get("content-encoding", "identity").lower() != "identity":
            raise RefusedRequest("send the request uncompressed", status=415)
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise RefusedRequest("content-type: expected application/json", status=415)
        body, largest = bytearray(), self.settings.largest_body
        too_large = RefusedRequest(f"a request has at most {largest} bytes", status=413)
        if int(request.headers.get("content-length", 0)) > largest:  # which nobody waits for
            raise too_large
        async for part in request.stream():
            body += part
            if len(body) > largest:
                raise too_large
        return bytes(body)


async def _hung_up(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def build_app(guard: Guard, settings: ProxySettings | None = None) -> FastAPI:
    """The proxy as an ASGI application.

    Args:
        guard: judges; whoever made it closes it.
        settings: by default `ProxySettings()`.
    """
    proxy = Proxy(guard, settings or ProxySettings())
    app = FastAPI(title="hedge guard", docs_url=None, redoc_url=None, openapi_url=None)
    app.state.proxy = proxy
    keyed, open_to_all = [Depends(proxy.check_key)], [Depends(proxy.check_host)]

    async def refused(request: Request, error: Any) -> Response:
        proxy.outcomes[error.code] += 1
        logger.info("{}: {}", error.status, error.code)
        kind = _TYPES.get(error.status, "upstream_error" if error.status >= 500 else "invalid_request_error")
        headers = {429: {"Retry-After": "1"}, 413: {"Connection": "close"}}.get(error.status)
        body = replies.error(error.message, kind=kind, param=error.param, code=error.code)
        return JSONResponse(body, error.status, headers)

    async def chat(request: Request) -> Response:
        try:
            return await proxy.chat(request)
        except RefusedRequest:
            raise
        except Exception as error:  # its text and its traceback may quote the question
            logger.error("unexpected {}", type(error).__name__)
            raise RefusedRequest("the guard failed", status=500, code="failed") from None

    app.add_exception_handler(RefusedRequest, refused)
    app.add_api_route("/v1/chat/completions", chat, methods=["POST"], dependencies=keyed)
    app.add_api_route("/v1/audits", proxy.audit, methods=["POST"], dependencies=keyed)
    app.add_api_route("/v1/models", proxy.models, methods=["GET"], dependencies=keyed)
    app.add_api_route("/health", proxy.health, methods=["GET"], dependencies=open_to_all)
    return app
