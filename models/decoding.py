"""Two ways from prompts to sampled tokens: with one prefill a prompt, and with plain `generate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import GenerationConfig, LogitsProcessor, LogitsProcessorList

from hedge_tasks.data.answers import Answer
from hedge_tasks.models.token_sampling import AnswerReader, TokenSampler

DROP_SHARE = 0.25
"""Rows that finished leave the batch once they are this share of it: leaving means copying the others' cache."""

# Inputs that describe the tokens of a prompt one by one; what follows the prompt is text, kind 0.
_TOKEN_TYPES = ("token_type_ids", "mm_token_type_ids")

_PREFIX_MODELS = frozenset({"paligemma"})
"""Whose prompt sees itself whole. Its kind is 0 and that of the answer 1, and its positions count from 1."""

_CROSS_MASK = "cross_attention_mask"
"""Which tokens see which parts of a picture (Mllama). What follows the prompt sees what its last token sees."""


@dataclass
class _Rows:
    """State of the rows that are still decoding. Every tensor's batch dimension is `rows`."""

    rows: torch.Tensor
    ids: torch.Tensor
    mask: torch.Tensor
    positions: torch.Tensor  # of the newest token: (rows, 1), or (axes, rows, 1) for multi-axis rotary positions
    logits: torch.Tensor
    cross_mask: torch.Tensor | None = None  # of all tokens

    def select(self, rows: torch.Tensor) -> _Rows:
        cross = None if self.cross_mask is None else self.cross_mask[rows]
        positions = self.positions[..., rows, :]
        return _Rows(self.rows[rows], self.ids[rows], self.mask[rows], positions, self.logits[rows], cross)


class SharedPrefill:
    """Reads every prompt once and decodes all its draws from that one cache.

    Args:
        model: a transformers model whose cache can be re-indexed along the batch.
    """

    def __init__(self, model: Any) -> None:
        self._model = model

    @torch.inference_mode()
    def decode(
        self,
        inputs: Mapping[str, Any],
        owners: Sequence[int],
        sampler: TokenSampler,
        reader: AnswerReader,
        max_new_tokens: int,
    ) -> list[Answer]:
        """Sample one answer a draw.

        Args:
            inputs: processed prompts, left-padded.
            owners: for each draw the row of its prompt.
            sampler, reader: for the draws.
            max_new_tokens: bound on the length of an answer.
        """
        state, cache = self.prefill(inputs, owners)
        tokens: list[list[int]] = [[] for _ in owners]
        logprobs: list[list[float]] = [[] for _ in owners]
        unfinished = torch.ones(len(owners), dtype=torch.bool)
        for step in range(max_new_tokens):
            chosen, chosen_logprobs = sampler.choose(state.logits, state.ids, state.rows, step)
            for row, token, logprob in zip(state.rows.tolist(), chosen.tolist(), chosen_logprobs.tolist(), strict=True):
                if unfinished[row]:
                    tokens[row].append(token)
                    logprobs[row].append(logprob)
                    unfinished[row] = not reader.is_finished(tokens[row])
            if not unfinished.any() or step + 1 == max_new_tokens:
                break
            open_rows = unfinished[state.rows.cpu()].nonzero()[:, 0]
            if len(open_rows) <= (1 - DROP_SHARE) * len(state.rows):
                select_rows(cache, open_rows)  # on the CPU, which fits a cache whose layers lie on several devices
                open_rows = open_rows.to(state.rows.device)
                state, chosen = state.select(open_rows), chosen[open_rows]
            state = self.advance(state, cache, chosen)
        return [reader.read(*row) for row in zip(tokens, logprobs, sampler.likeliest, strict=True)]

    @torch.inference_mode()
    def reply_logprobs(
        self, inputs: Mapping[str, Any], replies: Sequence[Sequence[int]], ends: Sequence[int]
    ) -> list[float]:
        """Log-probability of each whole reply to one prompt, over the raw distribution: its tokens and then any end.

        Args:
            inputs: one processed prompt.
            replies: tokens of each, none or more, without an end token.
            ends: tokens that end a reply.
        """
        state, cache = self.prefill(inputs, [0] * len(replies))
        totals = torch.zeros(len(replies), dtype=torch.float64)
        lengths = torch.tensor([len(reply) for reply in replies])
        for step in range(int(lengths.max()) + 1):
            logprobs = state.logits.double().log_softmax(-1).cpu()
            chosen = torch.tensor([reply[step] if step < len(reply) else ends[0] for reply in replies])
            token_logprob = logprobs.gather(1, chosen[:, None])[:, 0]
            end_logprob = logprobs[:, list(ends)].logsumexp(-1)
            # Rows whose reply is over go on with a token that nothing looks at.
            totals += torch.where(lengths > step, token_logprob, torch.where(lengths == step, end_logprob, 0.0))
            if step < int(lengths.max()):
                state = self.advance(state, cache, chosen.to(state.ids.device))
        return totals.tolist()

    def prefill(self, inputs: Mapping[str, Any], owners: Sequence[int]) -> tuple[_Rows, Any]:
        """Read the prompts in one pass; return state (one row a draw) and cache before the first token."""
        positions = positions_of(self._model, inputs)
        output = self._model(**inputs, position_ids=positions, use_cache=True, logits_to_keep=1)
        index = torch.tensor(owners)
        select_rows(output.past_key_values, index)
        index = index.to(inputs["input_ids"].device)
        state = _Rows(
            rows=torch.arange(len(owners), device=index.device),
            ids=prompt_tokens(inputs)[index],
            mask=inputs["attention_mask"][index],
            positions=positions[..., index, -1:],
            logits=output.logits[:, -1][index],
            cross_mask=inputs[_CROSS_MASK][index] if _CROSS_MASK in inputs else None,
        )
        return state, output.past_key_values

    def advance(self, state: _Rows, cache: Any, tokens: torch.Tensor) -> _Rows:
        """Feed one token a row and return the state with the logits that follow it."""
        mask = torch.cat([state.mask, state.mask.new_ones(len(tokens), 1)], dim=1)
        positions = state.positions + 1
        cross = state.cross_mask
        cross = None if cross is None else torch.cat([cross, cross[:, -1:]], dim=1)
        output = self._model(
            input_ids=tokens[:, None],
            attention_mask=mask,
            position_ids=positions,
            past_key_values=cache,
            use_cache=True,
            **({} if cross is None else {_CROSS_MASK: cross}),
        )
        ids = torch.cat([state.ids, tokens[:, None]], dim=1)
        return _Rows(state.rows, ids, mask, positions, output.logits[:, -1], cross)

    @torch.inference_mode()
    def error(self, inputs: Mapping[str, Any], n_tokens: int = 4) -> float:
        """Return how far decoding from the shared cache is from decoding without any, for the first prompt of a batch.

        Feeds the same tokens to two draws that share a prefill and, without any cache, to the model.

        Returns:
            The largest total variation distance between the two next-token distributions, in [0, 1].
        """
        state, cache = self.prefill(inputs, [0, 0])
        shared = []
        for _ in range(n_tokens):
            state = self.advance(state, cache, state.logits[:1].argmax(dim=1).repeat(2))
            shared.append(state.logits.float().softmax(-1))
        tokens = state.ids[:1, inputs["input_ids"].shape[1] :].tolist()
        truth = _forced_pass(self._model, inputs, tokens)[0][0, 1:].float().softmax(-1)
        return float((torch.stack(shared, dim=1) - truth).abs().sum(-1).max()) / 2


def select_rows(cache: Any, rows: torch.Tensor) -> None:
    """Keep these rows of a cache, in their order, each perhaps several times.

    Layers of linear attention (Qwen3.5, LFM2) have states in place of keys and values; transformers selects the latter.
    """
    layers = getattr(cache, "layers", None)
    if layers is None:
        cache.batch_select_indices(rows)
        return
    for layer in layers:
        if hasattr(layer, "batch_select_indices"):
            layer.batch_select_indices(rows)
        for name in ("conv_states", "recurrent_states"):
            states = getattr(layer, name, None) or {}
            for i, state in states.items():
                if state is not None:
                    states[i] = state.index_select(0, rows.to(state.device))


def prompt_tokens(inputs: Mapping[str, Any]) -> torch.Tensor:
    """Return the tokens of each prompt, shape (rows, tokens), with its own last one in place of what fills it up.

    A repetition penalty counts every token of a row as written. Where padding is the end token, the answers to a short
    prompt would else depend on how long the prompts beside it are.
    """
    ids = inputs["input_ids"]
    return torch.where(inputs["attention_mask"].bool(), ids, ids[:, -1:])


def positions_of(model: Any, inputs: Mapping[str, Any]) -> torch.Tensor:
    """Return position ids of a left-padded prompt as `generate` would make them.

    Shape (rows, tokens), or (axes, rows, tokens) for the multi-axis positions of the Qwen-VL models, where an image
    takes fewer positions than tokens. Either way every further text token adds one to all of them.
    """
    positions: torch.Tensor = model._prepare_position_ids_for_generation(inputs["input_ids"], dict(inputs))
    return positions + 1 if model.config.model_type in _PREFIX_MODELS else positions


def _token_inputs(model: Any, inputs: Mapping[str, Any], n: int) -> dict[str, torch.Tensor]:
    """The inputs that describe the tokens of a prompt one by one, for `n` tokens of an answer behind it as well."""
    kind = int(model.config.model_type in _PREFIX_MODELS)
    types = {name: inputs[name] for name in _TOKEN_TYPES if name in inputs}
    longer = {name: torch.cat([ids, ids.new_full((len(ids), n), kind)], dim=1) for name, ids in types.items()}
    if _CROSS_MASK in inputs:
        mask = inputs[_CROSS_MASK]
        longer[_CROSS_MASK] = torch.cat([mask, mask[:, -1:].expand(-1, n, -1, -1)], dim=1)
    return longer


def continued(
    model: Any, inputs: Mapping[str, Any], tokens: Sequence[Sequence[int]]
) -> tuple[dict[str, Any], torch.Tensor]:
    """Processed prompts with given tokens behind them, and these tokens, shape (rows, longest).

    Args:
        inputs: left-padded.
        tokens: of each row, none or more.
    """
    ids, mask = inputs["input_ids"], inputs["attention_mask"]
    length = max(map(len, tokens))
    # What fills a row up comes after its tokens, so that nothing that counts can see it.
    filled = [[*row, *[0] * (length - len(row))] for row in tokens]
    counted = [[1] * len(row) + [0] * (length - len(row)) for row in tokens]
    forced = torch.tensor(filled, dtype=ids.dtype, device=ids.device).reshape(len(tokens), length)
    longer = dict(inputs)
    longer["input_ids"] = torch.cat([ids, forced], dim=1)
    longer["attention_mask"] = torch.cat([mask, torch.tensor(counted).to(mask).reshape(len(tokens), length)], dim=1)
    return longer | _token_inputs(model, inputs, length), forced


@torch.inference_mode()
def forced_logprobs(model: Any, inputs: Mapping[str, Any], tokens: Sequence[Sequence[int]]) -> list[list[float]]:
    """Log-probabilities, over the raw distribution, of given tokens after each prompt; one pass for all of them.

    Args:
        model: a transformers model.
        inputs: processed prompts, left-padded.
        tokens: of each row, none or more.
    """
    logits, forced = _forced_pass(model, inputs, tokens)
    logprobs = logits[:, :-1].float().log_softmax(-1).gather(2, forced[..., None])[..., 0]
    return [row[: len(own)].tolist() for row, own in zip(logprobs, tokens, strict=True)]


def _forced_pass(
    model: Any, inputs: Mapping[str, Any], tokens: Sequence[Sequence[int]]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits from the end of the prompt on, shape (rows, longest + 1, vocabulary), and the tokens as `continued`."""
    longer, forced = continued(model, inputs, tokens)
    n_kept = forced.shape[1] + 1
    output = model(**longer, position_ids=positions_of(model, longer), use_cache=False, logits_to_keep=n_kept)
    return output.logits[:, -n_kept:], forced


@torch.inference_mode()
def forced_draws(
    model: Any,
    inputs: Mapping[str, Any],
    tokens: Sequence[Sequence[int]],
    sampler: TokenSampler,
    ends: Sequence[int],
) -> list[tuple[list[float], list[float]]]:
    """Log-probabilities of given answers' tokens, then of an end, and by how much each draw's choice was ahead of them.

    Args:
        model: a transformers model.
        inputs: processed prompts, left-padded; one a draw.
        tokens: of each row's answer, none or more, without an end.
        sampler: of the draws.
        ends: tokens that end an answer; the one that comes closest to being chosen counts.
    """
    logits, forced = _forced_pass(model, inputs, tokens)
    prompt = prompt_tokens(inputs)
    draws: list[tuple[list[float], list[float]]] = [([], []) for _ in tokens]
    for step in range(logits.shape[1]):
        ids = torch.cat([prompt, forced[:, :step]], dim=1)
        for over in (False, True):
            places = [i for i, own in enumerate(tokens) if (len(own) == step if over else len(own) > step)]
            if not places:
                continue
            rows = torch.tensor(places, device=ids.device)
            targets = (
                torch.tensor([list(ends)] * len(places), device=ids.device) if over else forced[rows, step][:, None]
            )
            margins, logprobs = sampler.margins(logits[rows, step], ids[rows], rows, step, targets)
            for i, logprob, margin in zip(places, logprobs.tolist(), margins.tolist(), strict=True):
                draws[i][0].append(logprob)
                draws[i][1].append(margin)
    return draws


@torch.inference_mode()
def reply_logprob(model: Any, inputs: Mapping[str, Any], reply: Sequence[int], ends: Sequence[int]) -> float:
    """Log-probability of one whole reply to one prompt, without any cache; see `SharedPrefill.reply_logprobs`."""
    logits, forced = _forced_pass(model, inputs, [reply])
    logprobs = logits[0].double().log_softmax(-1).cpu()
    token_total = logprobs[:-1].gather(1, forced[0].cpu()[:, None]).sum() if reply else 0.0
    return float(token_total + logprobs[-1, list(ends)].logsumexp(-1))


class PlainGeneration:
    """Reads the prompt of every draw anew, through the model's own `generate`: slower, right for any architecture."""

    def __init__(self, model: Any) -> None:
        self._model = model

    @torch.inference_mode()
    def decode(
        self, inputs: Mapping[str, Any], sampler: TokenSampler, reader: AnswerReader, max_new_tokens: int
    ) -> list[Answer]:
        """Sample one answer a row of `inputs`; the rest as in `SharedPrefill.decode`."""
        defaults: GenerationConfig = self._model.generation_config
        config = GenerationConfig(
            max_new_tokens=max_new_tokens,
            do_sample=False,  # the sampler leaves one token to choose from
            repetition_penalty=1.0,  # the sampler has counted it; left out, it is the model's own once more
            eos_token_id=sorted(reader.ends),
            bos_token_id=defaults.bos_token_id,
            pad_token_id=defaults.pad_token_id if defaults.pad_token_id is not None else min(reader.ends),
        )
        chooser = _Chooser(sampler, prompt_tokens(inputs))
        sequences = self._model.generate(
            **inputs, generation_config=config, logits_processor=LogitsProcessorList([chooser])
        )
        tokens = sequences[:, inputs["input_ids"].shape[1] :].tolist()
        logprobs = torch.stack(chooser.logprobs, dim=1).tolist()
        return [reader.read(*row) for row in zip(tokens, logprobs, sampler.likeliest, strict=True)]


class _Chooser(LogitsProcessor):
    """Lets `TokenSampler` choose inside `generate`: all scores but the chosen token's become minus infinity."""

    def __init__(self, sampler: TokenSampler, prompts: torch.Tensor) -> None:
        self._sampler, self._prompts = sampler, prompts
        self.logprobs: list[torch.Tensor] = []

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        rows = torch.arange(len(scores), device=scores.device)
        ids = torch.cat([self._prompts, input_ids[:, self._prompts.shape[1] :]], dim=1)
        tokens, logprobs = self._sampler.choose(scores, ids, rows, len(self.logprobs))
        self.logprobs.append(logprobs)
        return torch.full_like(scores, -torch.inf).scatter(1, tokens[:, None], 0.0)
