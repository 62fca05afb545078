"""Sampling in which every draw owns its noise.

A draw's next token is arg max(logits / T + Gumbel noise), which is an exact sample of softmax(logits / T), and the
noise comes from a generator seeded by that draw alone. So an answer depends on the model, the prompt and the draw, and
not on batch size, batch neighbours or the number of draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from transformers import (
    GenerationConfig,
    LogitsProcessor,
    LogitsProcessorList,
    RepetitionPenaltyLogitsProcessor,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from hedge_tasks.sampling.answers import Answer, Draw

LOGPROB_DECIMALS = 5
"""Log-probabilities differ by up to 5e-6 between batch compositions; what is beyond is noise."""


class DrawSampler:
    """Samples one batch of draws with `model.generate`.

    Args:
        draws: one a row of the batch.
        limits: `SamplingPlan.limits()`, equal for all rows.
        defaults: the model's generation config; its end tokens and repetition penalty are kept, its sampling is not.
    """

    def __init__(self, draws: Sequence[Draw], limits: Mapping[str, Any], defaults: GenerationConfig) -> None:
        self._draws = draws
        self._limits = limits
        self._defaults = defaults

    @torch.inference_mode()
    def sample(self, model: Any, tokenizer: Any, inputs: Mapping[str, Any]) -> list[Answer]:
        noise = _SeededNoise(self._draws, self._warpers(), inputs["input_ids"].shape[1])
        until = list(self._limits.get("until", ()))
        stopping = {"stop_strings": until, "tokenizer": tokenizer} if until else {}
        sequences = model.generate(
            **inputs,
            **stopping,
            generation_config=self._config(tokenizer),
            logits_processor=LogitsProcessorList([noise]),
        )
        tokens = sequences[:, inputs["input_ids"].shape[1] :]
        logprobs = noise.logprobs(sequences)
        ends = _as_set(self._defaults.eos_token_id) | {tokenizer.eos_token_id}
        special = set(tokenizer.all_special_ids) | ends
        return [
            _answer(tokenizer, row.tolist(), row_logprobs.tolist(), ends, special, until)
            for row, row_logprobs in zip(tokens, logprobs, strict=True)
        ]

    def _config(self, tokenizer: Any) -> GenerationConfig:
        return GenerationConfig(
            max_new_tokens=self._limits["max_new_tokens"],
            do_sample=False,  # arg max over noisy scores *is* the sample
            eos_token_id=self._defaults.eos_token_id,
            bos_token_id=self._defaults.bos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )

    def _warpers(self) -> list[LogitsProcessor]:
        warpers: list[LogitsProcessor] = []
        if "top_k" in self._limits:
            warpers.append(TopKLogitsWarper(self._limits["top_k"]))
        if "top_p" in self._limits:
            warpers.append(TopPLogitsWarper(self._limits["top_p"]))
        if (penalty := self._defaults.repetition_penalty) not in (None, 1.0):
            return [RepetitionPenaltyLogitsProcessor(penalty), *warpers]
        return warpers


class _SeededNoise(LogitsProcessor):
    """Adds each row's own Gumbel noise and remembers the log-probability of the token that was taken.

    Only one step's logits are kept: the token that followed from them is seen at the next step.
    """

    def __init__(self, draws: Sequence[Draw], warpers: list[LogitsProcessor], prompt_length: int) -> None:
        # CPU generators give the same numbers on every machine.
        self._generators = [torch.Generator().manual_seed(draw.seed) for draw in draws]
        self._temperatures = torch.tensor([draw.temperature for draw in draws], dtype=torch.float64)[:, None]
        self._penalties = [w for w in warpers if isinstance(w, RepetitionPenaltyLogitsProcessor)]
        self._warpers = [w for w in warpers if w not in self._penalties]
        self._prompt_length = prompt_length
        self._previous: torch.Tensor | None = None
        self._taken: list[torch.Tensor] = []

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        self._remember(input_ids)
        self._previous = scores.float()
        for penalty in self._penalties:
            scores = penalty(input_ids, scores)
        temperatures = self._temperatures.to(scores.device)
        scores = scores.double() / torch.where(temperatures > 0, temperatures, 1.0)
        for warper in self._warpers:
            scores = warper(input_ids, scores)
        return scores + torch.where(temperatures > 0, self._noise(scores), 0.0)

    def logprobs(self, sequences: torch.Tensor) -> torch.Tensor:
        """Log-probability at temperature 1 of every generated token, shape (rows, tokens)."""
        self._remember(sequences)
        return torch.stack(self._taken, dim=1).cpu()

    def _remember(self, sequences: torch.Tensor) -> None:
        if self._previous is None:
            return
        token = sequences[:, self._prompt_length + len(self._taken)][:, None]
        chosen = self._previous.gather(1, token)[:, 0]
        self._taken.append(chosen - self._previous.logsumexp(dim=1))

    def _noise(self, scores: torch.Tensor) -> torch.Tensor:
        exponential = torch.empty(scores.shape, dtype=torch.float64)
        for row, generator in zip(exponential, self._generators, strict=True):
            row.exponential_(generator=generator)
        return -exponential.log().to(scores.device)


def _answer(
    tokenizer: Any, tokens: list[int], logprobs: list[float], ends: set[int], special: set[int], until: list[str]
) -> Answer:
    length = next((i for i, token in enumerate(tokens) if token in ends), len(tokens))
    text = tokenizer.decode(tokens[:length], skip_special_tokens=True)
    for stop in until:
        text = text.split(stop)[0]
    counted = [logprob for token, logprob in zip(tokens[:length], logprobs, strict=False) if token not in special]
    # An answer of no token at all is as likely as the end token that made it.
    mean = sum(counted) / len(counted) if counted else logprobs[0]
    return Answer(text.strip(), round(mean, LOGPROB_DECIMALS), len(counted))


def _as_set(value: int | Sequence[int] | None) -> set[int]:
    if value is None:
        return set()
    return {value} if isinstance(value, int) else set(value)
