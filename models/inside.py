"""Hidden states, attention and logits of a model over a prompt and a given answer, in one pass without a cache."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from hedge_tasks.data.inside import DEPTHS, PLACES, TOP, Inside
from hedge_tasks.errors import ConfigError
from hedge_tasks.models.decoding import continued, positions_of

Array = npt.NDArray[Any]

FEWEST = 2
"""A single image token is a mark in the text: the picture itself is read elsewhere, by cross-attention."""


@torch.inference_mode()
def arrays_inside(
    model: Any,
    inputs: Mapping[str, Any],
    tokens: Sequence[Sequence[int]],
    image_token: int | None,
    parts: frozenset[str],
    sentences: Sequence[Sequence[Sequence[int]]] = (),
) -> list[Inside | str]:
    """Return the arrays of each row that `hedge_tasks.data.inside` describes.

    Args:
        model: a transformers model; with the eager implementation of attention where `attention` is asked for.
        inputs: processed prompts, left-padded.
        tokens: of each row's answer; a row without any has no arrays.
        image_token: id of the placeholder of pictures; None where the model has none.
        parts: of `PARTS`. Of `draws` there is one row for each answer; `sentence_spans` are the caller's.
        sentences: of each row, the tokens of each sentence, counted from the answer's first; for `sentences`.

    Returns:
        Arrays by name; a string where the answer is empty or a number overflows half precision.

    Raises:
        ConfigError: The model reports no attention weights.
    """
    longer, forced = continued(model, inputs, tokens)
    length, begins = forced.shape[1], inputs["input_ids"].shape[1]
    output = model(
        **longer,
        position_ids=positions_of(model, longer),
        use_cache=False,
        output_hidden_states=bool(parts & {"states", "sentences", "draws"}),
        output_attentions="attention" in parts,
        logits_to_keep=length + 1 if parts & {"logits", "draws"} else 1,
    )
    ids = inputs["input_ids"].cpu()
    is_prompt = inputs["attention_mask"].cpu().bool()
    rows: list[Inside | str] = []
    for i, answer in enumerate(tokens):
        if not answer:
            rows.append("the answer is empty")
            continue
        if "sentences" in parts and not all(sentences[i]):
            rows.append("the tokenizer does not tell which tokens a sentence has")
            continue
        is_image = torch.zeros_like(ids[i], dtype=torch.bool) if image_token is None else ids[i] == image_token
        arrays: dict[str, Array] = {}
        if parts & {"logits", "draws"}:
            arrays["logits"] = _logit_array(output.logits[i, -length - 1 :][: len(answer)], forced[i, : len(answer)])
        if "draws" in parts:
            middle = output.hidden_states[round((len(output.hidden_states) - 1) * DEPTHS[0])]
            arrays["draw_states"] = _half(middle[i, begins + len(answer) - 1])
            arrays["draw_logits"] = arrays["logits"].mean(axis=0)
        if "logits" not in parts:
            arrays.pop("logits", None)
        if "states" in parts:
            arrays["states"] = _state_array(output.hidden_states, i, begins, len(answer), is_image)
        if "sentences" in parts:
            arrays["sentence_states"] = _sentence_array(output.hidden_states, i, begins, sentences[i])
        if "attention" in parts:
            arrays |= _attention_arrays(output.attentions, i, is_prompt[i], is_image, len(answer))
        too_large = any(np.isinf(array).any() for array in arrays.values() if array.dtype == np.float16)
        rows.append("a hidden state is too large for half precision" if too_large else arrays)
    return rows


def _half(states: torch.Tensor) -> Array:
    array: Array = states.float().cpu().to(torch.float16).numpy()
    return array


def _state_array(layers: Sequence[torch.Tensor], row: int, begins: int, n: int, is_image: torch.Tensor) -> Array:
    """States at the places of one row, shape (layers, places, width)."""
    depth = len(layers) - 1
    states = torch.stack([layers[round(depth * share)][row].float().cpu() for share in DEPTHS])
    answer = states[:, begins : begins + n]
    image = states[:, int(is_image.nonzero()[-1])] if is_image.any() else torch.full_like(states[:, 0], float("nan"))
    at = {
        "question": states[:, begins - 1],
        "image": image,
        "first": answer[:, 0],
        "last": answer[:, -1],
        "mean": answer.mean(dim=1),
    }
    return _half(torch.stack([at[place] for place in PLACES], dim=1))


def _sentence_array(layers: Sequence[torch.Tensor], row: int, begins: int, sentences: Sequence[Sequence[int]]) -> Array:
    """States of each sentence of one row, shape (sentences, layers, sentence places, width)."""
    depth = len(layers) - 1
    states = torch.stack([layers[round(depth * share)][row, begins:].float().cpu() for share in DEPTHS])
    at_sentences = [
        torch.stack([states[:, places[-1]], states[:, list(places)].mean(dim=1)], dim=1) for places in sentences
    ]
    return _half(torch.stack(at_sentences) if at_sentences else states.new_empty((0, len(DEPTHS), 2, states.shape[-1])))


def _logit_array(logits: torch.Tensor, tokens: torch.Tensor) -> Array:
    """Columns of `LOGITS` at each token, shape (tokens, columns), from logits of shape (tokens, vocabulary)."""
    logits = logits.float()
    total = logits.logsumexp(-1)
    logprobs = logits - total[:, None]
    possible = torch.isfinite(logprobs)
    inside = torch.where(possible, logprobs, 0.0)
    n = possible.sum(-1)
    logit = logits.gather(1, tokens[:, None])[:, 0]
    columns = {
        "logprob": logit - total,
        "entropy": -(inside.exp() * inside * possible).sum(-1),
        "uniform_divergence": -inside.sum(-1) / n - n.log(),
        "free_energy": total,
        "logit": logit,
    }
    top = logprobs.topk(min(TOP, logprobs.shape[1]), dim=-1).values
    top = torch.nn.functional.pad(top, (0, TOP - top.shape[1]), value=float("-inf"))
    array: Array = torch.cat([torch.stack(list(columns.values()), dim=1), top], dim=1).cpu().numpy()
    return array


def _attention_arrays(
    attentions: Sequence[torch.Tensor | None] | None, row: int, is_prompt: torch.Tensor, is_image: torch.Tensor, n: int
) -> dict[str, Array]:
    """Arrays of the part `attention` of one row.

    Args:
        attentions: of each layer, shape (rows, heads, tokens, tokens); None of layers without attention.
        is_prompt: tokens of the prompt that are no padding.
        is_image: tokens of the prompt that stand for the picture.
        n: tokens of the answer.
    """
    begins, pictured = len(is_prompt), int(is_image.sum()) >= FEWEST
    heads, previous, shares = [], [], []
    for layer in attentions or ():
        if layer is None:
            continue
        # Positions that say the tokens of the answer, and the last token itself: one layer at a time is in memory here.
        looks = layer[row, :, begins - 1 : begins + n].float().cpu()
        prompt, answer = looks[..., :begins][..., is_prompt].sum(-1), looks[..., begins : begins + n].sum(-1)
        image = looks[..., :begins][..., is_image]
        on_image = image.sum(-1) if pictured else torch.full_like(prompt, float("nan"))
        share = image / on_image[..., None].clamp_min(1e-12)
        entropy = torch.special.entr(share).sum(-1) / np.log(max(FEWEST, int(is_image.sum())))
        if not pictured:
            entropy = torch.full_like(prompt, float("nan"))
        # Means over tokens, of the prompt and of the answer so far, as the prompt is so much longer.
        context = prompt[:, 1:] / int(is_prompt.sum())
        new = answer[:, 1:] / torch.arange(1, n + 1)
        columns = [on_image[:, :n], (prompt - on_image.nan_to_num())[:, :n], answer[:, :n], entropy[:, :n]]
        columns.append(context / (context + new).clamp_min(1e-12))
        heads.append(torch.stack([column.mean(-1) for column in columns], dim=-1))
        before = looks[:, torch.arange(1, n), begins + torch.arange(n - 1)]
        most = int(before.mean(-1).argmax()) if n > 1 else 0
        previous.append(torch.cat([torch.full((1,), float("nan")), before[most]]))
        shares.append(on_image[:, :n].mean(0))
    if not heads:
        raise ConfigError("attention: the model tells no attention weights")
    by_layer = {"heads": heads, "previous": previous, "image_shares": shares}
    arrays = {name: torch.stack(layers).numpy() for name, layers in by_layer.items()}
    return arrays | {"image_shares": arrays["image_shares"].mean(axis=0)}


@contextmanager
def eager(model: Any) -> Iterator[None]:
    """The eager implementation of attention for a while: no other tells its weights.

    Raises:
        ConfigError: the model has none.
    """
    before = model.config._attn_implementation
    try:
        model.set_attn_implementation("eager")
    except ValueError as error:
        raise ConfigError(f"attention: the model has no eager implementation of attention: {error}") from error
    try:
        yield
    finally:
        model.set_attn_implementation(before)


def image_token(config: Any) -> int | None:
    """Return the token that stands in a prompt once for every embedding of a picture."""
    named = (getattr(config, name, None) for name in ("image_token_id", "image_token_index"))
    return next((value for value in named if isinstance(value, int)), None)
