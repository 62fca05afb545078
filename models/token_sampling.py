"""Choosing tokens in which every draw owns its noise, and turning tokens into answers.

A draw's next token is arg max(logits / T + Gumbel noise), which is an exact sample of softmax(logits / T). The noise
of a token is a function of the draw's seed, the step and the token alone, so an answer depends on the model, the prompt
and the draw, and not on batch size, batch neighbours, the number of draws or the device.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from transformers import (
    GenerationConfig,
    LogitsProcessor,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from hedge_tasks.data.answers import Answer, Draw, Finish, Thought
from hedge_tasks.data.thoughts import (
    NO_BOUNDARY,
    NO_END,
    Parts,
    Token,
    answer_of,
    cut,
    has_thought,
    split_tokens,
    up_to_stop,
)
from hedge_tasks.errors import ConfigError, HedgeError

VERSION = "gumbel-3"
"""Part of a model's identity: raise it when the same seed would no longer choose the same token."""

LOGPROB_DECIMALS = 5
"""Log-probabilities differ by up to 5e-6 between batch compositions; what is beyond is noise."""

Likeliest = list[tuple[int, float]]
"""The likeliest tokens of a step with their log-probabilities."""

_WINDOW = 8
"""Tokens before another one that decide how it is written."""

_STEP = 2**24  # more than any vocabulary has tokens, so that no two (step, token) pairs share a counter


def gumbel_noise(seeds: torch.Tensor, steps: torch.Tensor, size: int) -> torch.Tensor:
    """Standard Gumbel noise by counter, float64, shape (rows, size).

    SplitMix64 (Steele, Lea, Flood 2014) at position step * 2^24 + token of the stream that starts at the seed. Integer
    arithmetic, so every device gives the same numbers.

    Args:
        seeds, steps: int64, shape (rows,).
        size: of the vocabulary.
    """
    counters = steps[:, None] * _STEP + torch.arange(1, size + 1, device=seeds.device)
    bits = _mix(seeds[:, None] + counters * _as_int64(0x9E3779B97F4A7C15))
    uniform = (_shift_right(bits, 11).double() + 0.5) * 2.0**-53
    return -torch.log(-torch.log(uniform))


def _mix(x: torch.Tensor) -> torch.Tensor:
    x = (x ^ _shift_right(x, 30)) * _as_int64(0xBF58476D1CE4E5B9)
    x = (x ^ _shift_right(x, 27)) * _as_int64(0x94D049BB133111EB)
    return x ^ _shift_right(x, 31)


def _shift_right(x: torch.Tensor, bits: int) -> torch.Tensor:
    """Logical shift; torch's own carries the sign along."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def _as_int64(constant: int) -> int:
    return constant - 2**64 if constant >= 2**63 else constant


class TokenSampler:
    """Chooses the next token of every row of a batch.

    Args:
        draws: one a row.
        limits: `SamplingPlan.limits()`.
        defaults: the model's generation config, for its repetition penalty and, with `decoding: model`, the rest.
        forbidden: tokens that are no text (image placeholders); never chosen.
        device: of the logits.
        allowed: for each draw, what may follow the tokens chosen so far; None leaves it free.
        alternatives: for each draw, how many of the likeliest tokens are kept at every step; None keeps none.

    Attributes:
        likeliest: for each draw that keeps them, of every step the likeliest tokens with their log-probabilities over
            the raw distribution at temperature 1; None for the others.
    """

    def __init__(
        self,
        draws: Sequence[Draw],
        limits: Mapping[str, Any],
        defaults: GenerationConfig,
        forbidden: Collection[int],
        device: torch.device,
        allowed: Sequence[Continuations | None] = (),
        alternatives: Sequence[int | None] = (),
    ) -> None:
        self._allowed = list(allowed) or [None] * len(draws)
        self._alternatives = list(alternatives) or [None] * len(draws)
        self.likeliest: list[list[Likeliest] | None] = [None if k is None else [] for k in self._alternatives]
        self._seeds = torch.tensor([draw.seed for draw in draws], dtype=torch.int64, device=device)
        temperatures = torch.tensor([draw.temperature for draw in draws], dtype=torch.float64, device=device)[:, None]
        # At temperature 0 the logits stay as they are and there is no noise.
        self._divisors = torch.where(temperatures > 0, temperatures, 1.0)
        self._noisiness = (temperatures > 0).double()
        self._forbidden = torch.tensor(sorted(forbidden), dtype=torch.int64, device=device)
        penalty = defaults.repetition_penalty
        self._penalty = None if penalty in (None, 1.0) else RepetitionPenaltyLogitsProcessor(penalty)
        self._warpers = _warpers(sent_decoding(limits, defaults))

    def choose(
        self, logits: torch.Tensor, ids: torch.Tensor, rows: torch.Tensor, step: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the next tokens and their log-probabilities over the raw distribution at temperature 1.

        Args:
            logits: shape (len(rows), vocabulary).
            ids: prompt and tokens so far of these rows, for the repetition penalty.
            rows: which draws the rows are, int64.
            step: number of tokens chosen so far.
        """
        raw = logits.float()
        scores, tokens = self._noised(raw, ids, rows, step).max(dim=1)
        if torch.isneginf(scores).any():
            raise HedgeError(
                "no token is left to choose from: those that are plausible stand for pictures, or are not allowed"
            )
        self._keep_likeliest(raw, rows)
        return tokens, raw.gather(1, tokens[:, None])[:, 0] - raw.logsumexp(dim=1)

    def margins(
        self, logits: torch.Tensor, ids: torch.Tensor, rows: torch.Tensor, step: int, tokens: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return by how much the choice is ahead of given tokens, and their log-probabilities as `choose` has them.

        Args:
            logits, ids, rows, step: as for `choose`.
            tokens: of each row those to be compared, shape (len(rows), k); the one that comes closest counts.
        """
        raw = logits.float()
        scores = self._noised(raw, ids, rows, step)
        own, place = scores.gather(1, tokens).max(dim=1)
        closest = tokens.gather(1, place[:, None])
        return scores.max(dim=1).values - own, raw.gather(1, closest)[:, 0] - raw.logsumexp(dim=1)

    def _noised(self, raw: torch.Tensor, ids: torch.Tensor, rows: torch.Tensor, step: int) -> torch.Tensor:
        """Scores of all tokens with the noise of the rows' draws: the largest is chosen."""
        scores = raw if self._penalty is None else self._penalty(ids, raw.clone())
        scores = scores.double() / self._divisors[rows]
        scores[:, self._forbidden] = -torch.inf
        self._keep_allowed(scores, ids, rows, step)
        for warper in self._warpers:
            scores = warper(ids, scores)
        noise = gumbel_noise(self._seeds[rows], torch.full_like(rows, step), scores.shape[1])
        return scores + noise * self._noisiness[rows]

    def _keep_likeliest(self, raw: torch.Tensor, rows: torch.Tensor) -> None:
        for place, row in enumerate(rows.tolist()):
            steps, k = self.likeliest[row], self._alternatives[row]
            if steps is not None and k is not None:
                values, tokens = raw[place].log_softmax(0).topk(min(k, raw.shape[1]))
                steps.append(list(zip(tokens.tolist(), values.tolist(), strict=True)))

    def _keep_allowed(self, scores: torch.Tensor, ids: torch.Tensor, rows: torch.Tensor, step: int) -> None:
        for place, row in enumerate(rows.tolist()):
            allowed = self._allowed[row]
            if allowed is None:
                continue
            mask = torch.full_like(scores[place], -torch.inf)
            mask[allowed.after(ids[place, ids.shape[1] - step :].tolist())] = 0.0
            scores[place] += mask


class Continuations:
    """Which tokens may come next, where an answer must be one of a few texts.

    Args:
        tokenizer: of the model.
        choices: the texts.
        ends: tokens that end an answer.
    """

    def __init__(self, tokenizer: Any, choices: Sequence[str], ends: Collection[int]) -> None:
        self._ends = sorted(ends)
        self._sequences = [tuple(tokenizer.encode(text, add_special_tokens=False)) for text in choices]
        if not all(self._sequences):
            raise ConfigError(f"guided: the model's tokenizer has no tokens for one of {list(choices)}")

    def after(self, tokens: Sequence[int]) -> list[int]:
        """Return the tokens that may follow; the ends where the answer is complete."""
        chosen = tuple(token for token in tokens if token not in self._ends)
        n = len(chosen)
        following = {s[n] for s in self._sequences if len(s) > n and s[:n] == chosen}
        return sorted(following | (set(self._ends) if chosen in self._sequences or not following else set()))


NEUTRAL: Mapping[str, Any] = {"top_p": 1.0, "top_k": 0, "min_p": 0.0}
"""Decoding parameters that change nothing, as transformers and vLLM write them."""


def sent_decoding(limits: Mapping[str, Any], defaults: GenerationConfig) -> dict[str, Any]:
    """Settings of decoding besides the temperature: `top_p`, `top_k`, `min_p`, `repetition_penalty`.

    Args:
        limits: `SamplingPlan.limits()`.
        defaults: the model's generation config. Of its values, those for top_p, top_k and min_p count with
            `decoding: model` only; what the plan sets itself counts always.
    """
    own = {name: getattr(defaults, name, None) for name in NEUTRAL} if limits.get("decoding") == "model" else {}
    chosen = {name: limits.get(name, own.get(name)) for name in NEUTRAL}
    values = {name: NEUTRAL[name] if value is None else value for name, value in chosen.items()}
    return {**values, "repetition_penalty": defaults.repetition_penalty or 1.0}


def _warpers(decoding: Mapping[str, Any]) -> list[LogitsProcessor]:
    """In the order of `generate`: top-k, top-p, min-p."""
    warpers: list[LogitsProcessor] = []
    if decoding["top_k"] > 0:
        warpers.append(TopKLogitsWarper(decoding["top_k"]))
    if decoding["top_p"] < 1:
        warpers.append(TopPLogitsWarper(decoding["top_p"]))
    if decoding["min_p"] > 0:
        warpers.append(MinPLogitsWarper(decoding["min_p"]))
    return warpers


class AnswerReader:
    """Turns generated tokens into answers.

    Args:
        tokenizer: of the model.
        defaults: its generation config, for the end tokens.
        until: texts that end an answer, themselves left out.
        thinks: whether the model may think first, perhaps in a thought that the prompt has begun.
    """

    def __init__(self, tokenizer: Any, defaults: GenerationConfig, until: Sequence[str], thinks: bool = False) -> None:
        self._tokenizer = tokenizer
        self.ends = _as_set(defaults.eos_token_id) | _as_set(tokenizer.eos_token_id)
        self._special = set(tokenizer.all_special_ids) | self.ends
        self._until, self._thinks = until, thinks

    def is_finished(self, tokens: Sequence[int]) -> bool:
        if tokens[-1] in self.ends or not self._until:
            return tokens[-1] in self.ends
        written = self._tokenizer.decode(tokens, skip_special_tokens=False)
        return (not self._thinks or has_thought(written)) and cut(written, self._until) != written

    def read(
        self, tokens: Sequence[int], logprobs: Sequence[float], likeliest: Sequence[Likeliest] | None = None
    ) -> Answer:
        """Return the answer of the tokens up to the end token, if there is one.

        Its log-probability and length are those of the answer alone; see `hedge_tasks.data.thoughts`.

        Args:
            tokens: As they were chosen.
            logprobs: Of the tokens, in nats, over the raw distribution.
            likeliest: Likeliest tokens of every step; with them the answer has its tokens and alternatives.
        """
        length = next((i for i, token in enumerate(tokens) if token in self.ends), len(tokens))
        parts = self._parts(tokens[: length + 1], logprobs)
        finish: Finish = "stop" if length < len(tokens) else "length"
        if isinstance(parts, str):
            thought = thought_of(logprobs[:length]) if parts == NO_END else None
            text = self._decode(tokens[:length])
            # Marks that are control tokens have to stay, or the thought would pass for an answer.
            text = text if has_thought(text) else self._tokenizer.decode(tokens[:length], skip_special_tokens=False)
            return Answer(answer_of(text), finish=finish, thought=thought, no_logprob=parts)
        begin = len(parts.thought)
        own = tokens[begin:length]
        whole = self._decode(own).lstrip() if begin else self._decode(own)
        text = cut(whole, self._until)
        if text != whole:
            parts, finish = up_to_stop(parts, text, is_cut=True), "stop"
        answer = answer_in(text, parts, finish)
        if likeliest is None or parts.stopped:
            return answer
        pieces, alternatives = self._with_alternatives(own, logprobs[begin:length], likeliest[begin:length])
        return replace(answer, tokens=pieces, alternatives=alternatives)

    def _parts(self, tokens: Sequence[int], logprobs: Sequence[float]) -> Parts | str:
        """Return the tokens of thought and answer, or why they cannot be told."""
        pieces = [self._tokenizer.decode([token], skip_special_tokens=False).encode() for token in tokens]
        controls = [token in self._special for token in tokens]
        written = list(map(Token, pieces, logprobs, controls))
        if not has_thought(self._tokenizer.decode(tokens, skip_special_tokens=False)):
            return Parts((), tuple(written))
        parts = split_tokens(written)
        if isinstance(parts, str):
            return parts
        return NO_BOUNDARY if has_thought(self._decode(tokens[len(parts.thought) :])) else parts

    def _with_alternatives(
        self, tokens: Sequence[int], logprobs: Sequence[float], likeliest: Sequence[Likeliest]
    ) -> tuple[Any, ...]:
        """Texts and log-probabilities of the tokens and of those in their place, special ones left out.

        A token's text is what it adds to the text before it; of a character in several tokens the last one has it.
        """
        pieces: list[tuple[str, float]] = []
        alternatives: list[tuple[tuple[str, float], ...]] = []
        before = ""
        for i, (token, logprob) in enumerate(zip(tokens, logprobs, strict=False)):
            if token in self._special:
                continue
            so_far = self._decode(tokens[: i + 1])
            whole = so_far if i + 1 == len(tokens) else so_far.rstrip("\ufffd")
            pieces.append((whole.removeprefix(before), rounded(logprob)))
            before = whole if whole.startswith(before) else before
            window = list(tokens[max(i - _WINDOW, 0) : i])
            # A character that the window breaks off in is no text yet.
            left = self._decode(window).rstrip("\ufffd")
            instead = [(self._decode([*window, o]), rounded(p)) for o, p in likeliest[i] if o not in self._special]
            # Where a token changes the text before it, it is not known what it adds.
            clear = all(whole.startswith(left) for whole, _ in instead)
            alternatives.append(tuple((whole.removeprefix(left), p) for whole, p in instead) if clear else ())
        return tuple(pieces), (tuple(alternatives) if any(alternatives) else None)

    def _decode(self, tokens: Sequence[int]) -> str:
        return self._tokenizer.decode(tokens, skip_special_tokens=True)


def answer_in(text: str, parts: Parts, finish: Finish) -> Answer:
    """Return an answer with its log-probability, that of its end, and its thought.

    Args:
        text: perhaps with white space around it.
        parts: its tokens, and those of the thought before it.
        finish: why the model stopped.
    """
    end = parts.end_logprob if finish == "stop" else None
    thought = thought_of([token.logprob for token in parts.thought])
    answer = Answer(text.strip(), rounded(parts.mean_logprob), len(parts.counted), finish, thought=thought)
    return answer if end is None else replace(answer, end_logprob=rounded(end))


def thought_of(logprobs: Sequence[float]) -> Thought | None:
    """Return a thought of these tokens; None without any."""
    return Thought(len(logprobs), rounded(sum(logprobs) / len(logprobs))) if logprobs else None


def rounded(logprob: float) -> float:
    """Return a log-probability without the noise of its batch."""
    return min(round(logprob, LOGPROB_DECIMALS), 0.0)


def _as_set(value: int | Sequence[int] | None) -> set[int]:
    if value is None:
        return set()
    return {value} if isinstance(value, int) else set(value)
