"""Hidden states of a model over a prompt and a given answer, in one pass without a cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from hedge_tasks.models.decoding import continued, positions_of
from hedge_tasks.sampling.hidden_states import DEPTHS, PLACES, States


@torch.inference_mode()
def hidden_states(
    model: Any, inputs: Mapping[str, Any], tokens: Sequence[Sequence[int]], image_token: int | None
) -> list[States | str]:
    """States of each row at the places and depths of `hedge_tasks.sampling.hidden_states`.

    Args:
        model: a transformers model.
        inputs: processed prompts, left-padded.
        tokens: of each row's answer; a row without any has no states.
        image_token: id of the placeholder of pictures; None where the model has none.

    Returns:
        Shape (layers, places, width) each; a string where the answer is empty or a number overflows half precision.
    """
    longer, _ = continued(model, inputs, tokens)
    output = model(
        **longer,
        position_ids=positions_of(model, longer),
        use_cache=False,
        output_hidden_states=True,
        logits_to_keep=1,
    )
    depth = len(output.hidden_states) - 1
    layers = torch.stack([output.hidden_states[round(depth * share)].float().cpu() for share in DEPTHS], dim=1)
    begins = inputs["input_ids"].shape[1]
    ids = inputs["input_ids"].cpu()
    return [
        _of_row(layers[i], begins, len(said), _last(ids[i] == image_token) if image_token is not None else None)
        for i, said in enumerate(tokens)
    ]


def _last(flags: torch.Tensor) -> int | None:
    found = flags.nonzero()
    return int(found[-1]) if len(found) else None


def _of_row(states: torch.Tensor, begins: int, n: int, image: int | None) -> States | str:
    """States of shape (layers, tokens, width) at the places of one row."""
    if not n:
        return "the answer is empty"
    answer = states[:, begins : begins + n]
    nowhere = torch.full_like(states[:, 0], float("nan"))
    at = {
        "question": states[:, begins - 1],
        "image": nowhere if image is None else states[:, image],
        "first": answer[:, 0],
        "last": answer[:, -1],
        "mean": answer.mean(dim=1),
    }
    found = torch.stack([at[place] for place in PLACES], dim=1)
    if found.nan_to_num().abs().max() > float(np.finfo(np.float16).max):
        return "a hidden state is too large for half precision"
    return found.numpy().astype(np.float16)
