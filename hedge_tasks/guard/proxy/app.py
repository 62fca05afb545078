"""The proxy's paths: `/v1/chat/completions`, `/v1/audits`, `/v1/models`, `/health`, `/metrics`.

Of what is asked and answered nothing is logged: a line has the outcome, the draws and the seconds. An answer goes out
with a verdict, or says that it has none; where anything goes wrong there is an error and no answer.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fastapi import Depends, FastAPI, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from loguru import logger

from hedge_tasks import __version__
from hedge_tasks.errors import ConfigError, DataError, HedgeError
from hedge_tasks.guard.ask import Guard
from hedge_tasks.guard.models import served_name
from hedge_tasks.guard.proxy import replies
from hedge_tasks.guard.proxy.metrics import Metrics
from hedge_tasks.guard.proxy.requests import CannotJudge, ChatRequest, RefusedRequest, question_in, read_request
from hedge_tasks.guard.proxy.settings import ProxySettings
from hedge_tasks.guard.verdict import GuardVerdict
from hedge_tasks.io.outside import parse_json
from hedge_tasks.numbers import Format

_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_TYPES = {401: "authentication_error", 429: "rate_limit_error"}
_OUTCOMES = {401: "unauthorized", 429: "overloaded"}
_AGAIN_AFTER_S = 1
_MOST_ACCEPTED = 100_000
"""Accepted answers that can still be audited, the latest ones."""

_CLOSE = {"Connection": "close"}
"""Do not wait for what is still coming of the request."""


class _Gone(Exception):
    """The client has hung up."""


class Proxy:
    """The state behind the paths. One for each app.

    Args:
        guard: judges.
        settings: how requests are treated.

    Raises:
        ConfigError: unjudged answers shall be passed on, and the policy's decoding is none that can be asked for alone.
    """

    def __init__(self, guard: Guard, settings: ProxySettings) -> None:
        self.guard, self.settings = guard, settings
        self.model = served_name(guard.policy)
        self.metrics = Metrics(guard.policy, guard.monitor)
        self._busy = 0
        self._failing = False
        self._accepted: dict[str, None] = {}
        limits = guard.plan.limits()
        pure = limits == {"max_new_tokens": guard.plan.max_new_tokens, "decoding": "pure"}
        if settings.on_unjudged == "flag" and not pure:
            raise ConfigError("on_unjudged: flag needs a policy with pure decoding and no stop texts")

    # --- paths --------------------------------------------------------------------------------------------------------

    async def chat(self, request: Request) -> Response:
        """An answer and its verdict."""
        if self._busy >= self.settings.most_requests:
            await self._drain(request)
            raise RefusedRequest("the guard has all hands full; ask again", status=429, code="overloaded")
        with self._slot() as slot:
            content = await self._body(request)
            model, plan, settings = self.model, self.guard.plan, self.settings
            chat_request = await asyncio.to_thread(read_request, content, model, plan, settings)
            del content
            try:
                reply = await self._judged(request, chat_request, slot)
            except CannotJudge as reason:
                if settings.on_unjudged == "refuse":
                    raise
                reply = await self._unjudged(request, chat_request, reason, slot)
        if chat_request.stream:
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
        self.metrics.audited()
        return await self.health()

    async def models(self) -> Response:
        """The one model that can be asked."""
        listed = {"id": self.model, "object": "model", "created": 0, "owned_by": "hedge"}
        return JSONResponse({"object": "list", "data": [listed]})

    async def health(self) -> Response:
        """Whether the guard is there, and whether the last question found a model."""
        policy, watch = self.guard.policy, self.guard.watch
        monitor = self.guard.monitor
        stopped = watch.reason if watch.state == "failed" else monitor.reason
        state = {
            "status": "stopped" if stopped else "degraded" if self._failing else "ok",
            "version": __version__,
            "model": self.model,
            "detector": policy.detector,
            "risk": policy.promise.risk,
            "confidence": policy.promise.confidence,
            "drift": monitor.shifted,
            "audits": dict(zip(("answers", "hallucinated"), monitor.audits, strict=True)),
            "refuted": monitor.broken,
            "server": watch.state,
            **({"reason": stopped} if stopped else {}),
        }
        return JSONResponse(state)

    async def measured(self) -> Response:
        """Numbers for Prometheus."""
        return Response(self.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    # --- who may ask --------------------------------------------------------------------------------------------------

    def check_host(self, request: Request) -> None:
        """On a loopback address only this machine's names count: a web page's own name could be made to point here."""
        if not self.settings.local:
            return
        host = request.headers.get("host", "")
        name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
        if name.lower() not in _LOCAL_NAMES:
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

    async def _judged(self, request: Request, chat_request: ChatRequest, slot: _Slot) -> dict[str, Any]:
        guard = self.guard
        parsed = question_in(chat_request, guard.prompt, guard.plan)
        question = await asyncio.to_thread(guard.question, parsed.pictures, parsed.question, chat_request.seed)
        future = slot.hold(guard.submit(question))
        try:
            verdict: GuardVerdict = await self._unless_gone(request, guard.answered(question, future))
        except HedgeError as error:
            raise self._failed(error) from None
        if verdict.answer is None:
            self.metrics.judged(verdict)
            raise RefusedRequest(f"the model has not answered: {verdict.reason}", status=504, code="undecided")
        self._failing = False
        self.metrics.judged(verdict)
        logger.info("{}: {} draws, {} s", verdict.state, verdict.draws, Format(2)(verdict.seconds))
        reply = replies.judged(verdict, self.model, withhold=self.settings.on_reject == "refuse")
        if verdict.accepted:
            self._accepted[reply["id"]] = None
            while len(self._accepted) > _MOST_ACCEPTED:
                self._accepted.pop(next(iter(self._accepted)))
        return reply

    async def _unjudged(self, request: Request, chat: ChatRequest, reason: CannotJudge, slot: _Slot) -> dict[str, Any]:
        plan = self.guard.plan
        settings = {
            "temperature": plan.baseline_temperature if chat.temperature is None else chat.temperature,
            "max_new_tokens": chat.max_tokens or plan.max_new_tokens,
            "seeds": [plan.seed if chat.seed is None else chat.seed],
        }
        future = slot.hold(self.guard.pass_on(chat.conversation(), **settings))
        waiting = asyncio.wait_for(asyncio.shield(asyncio.wrap_future(future)), self.guard.within)
        try:
            answer = await self._unless_gone(request, waiting)
        except TimeoutError:
            self.metrics.count("undecided")
            raise RefusedRequest("the model has not answered in time", status=504, code="undecided") from None
        except HedgeError as error:
            raise self._failed(error) from None
        self._failing = False
        self.metrics.count("unjudged")
        logger.info("unjudged")
        return replies.unjudged(answer, self.model, reason.reasons)

    def _failed(self, error: HedgeError) -> RefusedRequest:
        self._failing = True
        logger.warning("The model did not answer a question ({})", type(error).__name__)
        words = str(error).replace(str(getattr(self.guard.model, "base_url", "\0")), "the model's server")
        return RefusedRequest(words[:500], status=502, code="upstream")

    async def _unless_gone(self, request: Request, work: Any) -> Any:
        """The result of some work, which is cancelled where the client hangs up."""
        task, gone = asyncio.ensure_future(work), asyncio.ensure_future(_hung_up(request))
        try:
            await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise _Gone
            return task.result()
        finally:
            task.cancel()
            gone.cancel()

    async def _body(self, request: Request) -> bytes:
        if request.headers.get("content-encoding", "identity").lower() != "identity":
            raise RefusedRequest("send the request uncompressed", status=415)
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise RefusedRequest("content-type: expected application/json", status=415)
        try:
            return await asyncio.wait_for(self._read(request), self.settings.body_seconds)
        except TimeoutError:
            raise RefusedRequest("the request did not arrive in time", status=408) from None

    async def _read(self, request: Request) -> bytes:
        most, parts, size = self.settings.largest_body, [], 0
        stated_length = request.headers.get("content-length", "0")
        if stated_length.isdigit() and int(stated_length) > most:
            raise RefusedRequest(f"a request has at most {most} bytes", status=413)
        async for part in request.stream():
            size += len(part)
            if size > most:
                raise RefusedRequest(f"a request has at most {most} bytes", status=413)
            parts.append(part)
        return b"".join(parts)

    async def _drain(self, request: Request) -> None:
        """Let a client finish its sentence, or it would see a broken pipe in place of the reply."""

        async def read() -> None:
            size = 0
            async for part in request.stream():
                size += len(part)
                if size > self.settings.largest_body:
                    return

        try:
            await asyncio.wait_for(read(), min(self.settings.body_seconds, 1.0))
        except TimeoutError:
            return

    @contextmanager
    def _slot(self) -> Iterator[_Slot]:
        """A place in the house, which a question keeps until its last thread has let go of it."""
        slot = _Slot()
        self._busy += 1
        self.metrics.in_flight.set(self._busy)
        try:
            yield slot
        finally:
            slot.when_free(self._leave)

    def _leave(self) -> None:
        self._busy -= 1
        self.metrics.in_flight.set(self._busy)


class _Slot:
    def __init__(self) -> None:
        self._future: Future[Any] | None = None

    def hold(self, future: Future[Any]) -> Future[Any]:
        self._future = future
        return future

    def when_free(self, leave: Any) -> None:
        loop = asyncio.get_running_loop()
        if self._future is None:
            leave()
            return

        def left(_: Future[Any]) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(leave)

        self._future.add_done_callback(left)


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

    async def chat(request: Request) -> Response:
        try:
            return await proxy.chat(request)
        except RefusedRequest:
            raise
        except _Gone:
            proxy.metrics.count("gone")
            return Response(status_code=499)
        except Exception as error:  # its text and its traceback may quote the question
            proxy.metrics.count("failed")
            logger.error("unexpected {} at {}", type(error).__name__, _place(error))
            return JSONResponse(replies.error("the guard failed", kind="server_error"), 500)

    async def refused(request: Request, error: Any) -> Response:
        outcome = "failed" if error.status in (502, 504) else _OUTCOMES.get(error.status, "refused")
        if error.code != "undecided":
            proxy.metrics.count(outcome)
        logger.info("{}: {}", error.status, outcome)
        kind = _TYPES.get(error.status, "upstream_error" if error.status >= 500 else "invalid_request_error")
        headers = {429: {"Retry-After": str(_AGAIN_AFTER_S)}, 408: _CLOSE, 413: _CLOSE}.get(error.status)
        body = replies.error(error.message, kind=kind, param=error.param, code=error.code)
        return JSONResponse(body, error.status, headers)

    app.add_exception_handler(RefusedRequest, refused)
    app.add_api_route("/v1/chat/completions", chat, methods=["POST"], dependencies=keyed)
    app.add_api_route("/v1/audits", proxy.audit, methods=["POST"], dependencies=keyed)
    app.add_api_route("/v1/models", proxy.models, methods=["GET"], dependencies=keyed)
    app.add_api_route("/metrics", proxy.measured, methods=["GET"], dependencies=keyed)
    app.add_api_route("/health", proxy.health, methods=["GET"], dependencies=open_to_all)
    return app


def _place(error: BaseException) -> str:
    """File and line where an error came from."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "?" if trace is None else f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
