"""The judge `llm`: a model behind a server with OpenAI's API."""

from __future__ import annotations

from typing import Any

from hedge_tasks.io import options
from hedge_tasks.judging.model_judge import DEFAULT_MODEL, ModelJudge, title
from hedge_tasks.judging.prompt import load_judge_prompt
from hedge_tasks.llm.models import CONCURRENCY, MAX_RETRIES, TIMEOUT_S, ServedModel


class LLMJudge(ModelJudge):
    """Asks a model over the network, many cases at a time.

    Where it is and who pays is said by OPENAI_API_URL and OPENAI_API_KEY, which lmms-eval's own judges read, too.

    Args:
        model: Name under which the server knows the model.
        prompt, images, asks: See `ModelJudge`.
        url, account, thinking, concurrency, timeout, max_retries: See `ServedModel`.
        temperature: 0 is greedy; None takes the prompt's, or 0.
        max_tokens: Of a reply; where a reply is asked for again, twice as many. None takes the prompt's, or 512.

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
        url: str | None = None,
        account: bool = False,
        temperature: float | None = None,
        max_tokens: int | None = None,
        thinking: bool = False,
        asks: int = 2,
        concurrency: int = CONCURRENCY,
        timeout: float = TIMEOUT_S,
        max_retries: int = MAX_RETRIES,
    ) -> None:
        loaded = load_judge_prompt(prompt)
        decoding: dict[str, Any] = {"temperature": 0.0, "max_tokens": 512}
        for chosen in (loaded.decoding, {"temperature": temperature, "max_tokens": max_tokens}):
            decoding |= {key: value for key, value in chosen.items() if value is not None}
        options.number("temperature", decoding["temperature"])
        served = ServedModel(
            model,
            url,
            account=account,
            thinking=thinking,
            concurrency=concurrency,
            timeout=timeout,
            max_retries=max_retries,
            who=f"judge {title(self.name, str(model))}",
        )
        super().__init__(
            served, loaded, images=images, asks=asks, max_tokens=decoding.pop("max_tokens"), sampling=decoding
        )
