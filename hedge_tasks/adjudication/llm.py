"""The judge `llm`: a model behind any provider of lmms-eval's `llm_judge`, such as an OpenAI-compatible server."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from threading import Event
from typing import TYPE_CHECKING, Any

from hedge_tasks.adjudication.base import Case
from hedge_tasks.adjudication.model_judge import DEFAULT_MODEL, ModelJudge, Replies, Reply
from hedge_tasks.errors import ConfigError, HedgeError
from hedge_tasks.io import options
from hedge_tasks.serving.failures import ServerGone
from hedge_tasks.serving.thread_pool import ask_each

if TYPE_CHECKING:
    from hedge_tasks.adjudication.providers import Provider


class LLMJudge(ModelJudge):
    """Asks a model over the network, many cases at a time.

    Where it is and who pays is said by the environment variables that lmms-eval's own judges read: `API_TYPE`
    (openai, azure, local, bedrock), `OPENAI_API_URL` and `OPENAI_API_KEY`, `LLM_JUDGE_URL`, `AZURE_ENDPOINT`, ...

    Args:
        model: Name under which the server knows the model.
        prompt, images, asks, ask_unlabelled: See `ModelJudge`.
        provider: Instead of `API_TYPE`.
        url: Such as `http://localhost:8000/v1`, instead of `OPENAI_API_URL`.
        account: Send `OPENAI_API_KEY` to `url`, too. By default a server that a judge names itself is told no key.
        temperature: 0 is greedy; None takes the prompt's, or 0.
        top_p, top_k, min_p: Limits of what is sampled; None takes the prompt's, or leaves them to the server.
        max_tokens: Of a reply; where a reply is asked for again, twice as many. None takes the prompt's, or 512.
        thinking: Let a model that can do so reason before it replies (needs a larger `max_tokens`).
        concurrency: Requests under way at any time.
        timeout: Seconds to wait for a reply.
        max_retries: How often a request that failed (connection, 429, 5xx) is made again, after growing pauses.

    Raises:
        ConfigError: A value makes no sense.
    """

    name = "llm"

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        prompt: str = "hedge",
        *,
        images: bool | None = None,
        provider: str | None = None,
        url: str | None = None,
        account: bool = False,
        temperature: float | None = None,
        top_p: float | None = None,
        top_k: int | None = None,
        min_p: float | None = None,
        max_tokens: int | None = None,
        thinking: bool = False,
        asks: int = 2,
        ask_unlabelled: bool = False,
        concurrency: int = 16,
        timeout: float = 120.0,
        max_retries: int = 8,
    ) -> None:
        super().__init__(model, prompt, images, asks, ask_unlabelled)
        self.provider = options.optional_text("provider", provider)
        self.url = None if url is None else options.address("url", url)
        self.account = options.flag("account", account)
        given = {"temperature": temperature, "top_p": top_p, "top_k": top_k, "min_p": min_p, "max_tokens": max_tokens}
        decoding = {"temperature": 0.0, "max_tokens": 512, **self.prompt.decoding}
        decoding |= {key: value for key, value in given.items() if value is not None}
        self.max_tokens = options.count("max_tokens", decoding.pop("max_tokens"), at_least=1)
        self.temperature = options.number("temperature", decoding.pop("temperature"))
        if "top_k" in decoding:
            options.count("top_k", decoding["top_k"], at_least=1)
        for key in ("top_p", "min_p"):
            if options.number(key, decoding.get(key, 0.0)) > 1:
                raise ConfigError(f"{key}: expected a number up to 1, got {decoding[key]!r}")
        self.limits = decoding
        self.thinking = options.flag("thinking", thinking)
        self.concurrency = options.count("concurrency", concurrency, at_least=1)
        self.timeout = options.number("timeout", timeout, zero=False)
        self.max_retries = options.count("max_retries", max_retries)

    def _identity(self) -> dict[str, Any]:
        return {"model": self.model, "temperature": self.temperature, "thinking": self.thinking, **self.limits}

    def settings(self) -> dict[str, Any]:
        return {**super().settings(), "max_tokens": self.max_tokens}

    def check(self, cases_have_images: bool = True) -> None:
        """As `ModelJudge.check`, and that lmms-eval knows the provider and has what it needs to call it.

        Raises:
            ConfigError: A provider, an address or a key is missing.
        """
        super().check(cases_have_images)
        _ = self._provider

    @cached_property
    def _provider(self) -> Provider:
        # Not before it is needed: lmms-eval takes ten seconds to import, and stored labels need none of it.
        from hedge_tasks.adjudication.providers import JudgeRequest, connect

        request = JudgeRequest(
            self.title,
            self.model,
            self.temperature,
            self.thinking,
            self.prompt.schema,
            timeout=self.timeout,
            max_retries=self.max_retries,
            limits=self.limits,
        )
        return connect(self.provider, self.url, request, account=self.account)

    def _ask(self, cases: Sequence[Case], *, again: bool) -> Replies:
        from hedge_tasks.serving.messages import to_openai

        provider = self._provider
        limit = self.max_tokens * (2 if again else 1)

        def call(position: int, stop: Event) -> Reply:
            case = cases[position]
            try:
                images = list(case.images()) if self.images and case.images is not None else []
                messages = to_openai(self.prompt.messages(case, images, again=again))
            except (OSError, ValueError) as error:
                return Reply(problem=f"its images cannot be read ({error})", failed=True)
            return provider.ask(messages, limit, stop)

        workers = min(self.concurrency, len(cases))
        try:
            yield from ask_each(call, len(cases), workers, unreachable=lambda reply: reply.unreachable)
        except ServerGone as gone:
            raise HedgeError(
                f"judge {self.title} is gone: {gone.in_vain} cases in a row failed, the last one with: "
                f"{gone.last.problem}. Labels that came before are kept; the same command continues from there."
            ) from None
