"""Contrastive decoding between two prompts: against decoding without any cache, and its fixed points at 0 and -1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from test_mitigations import check_every_token, family, full_pass, softmax
from test_shared_prefill import first_prompt

from hedge_tasks.models.contrast import Contrast, ContrastiveDecoding, contrasted
from hedge_tasks.sampling.prompts import Prompt, load_prompt

WRITING, CAPTIONING = load_prompt("vope/writing"), load_prompt("vope/captioning")


def test_the_logits_are_those_of_equation_5() -> None:
    torch.manual_seed(0)
    main, other = torch.randn(4, 9), torch.randn(4, 9)
    assert torch.equal(contrasted(main, other, 0.0), main)
    assert torch.equal(contrasted(main, other, -1.0), other)
    for alpha in (-0.5, 0.5, 1.0):
        expected = main + alpha * (main - other)  # the difference, times alpha, added to the output (section 4.4)
        assert torch.allclose(contrasted(main, other, alpha), expected, atol=1e-6)


def test_the_plausibility_constraint_is_vcds() -> None:
    main = torch.tensor([[0.6, 0.3, 0.07, 0.03]]).log()
    mixed = contrasted(main, main.flip(1), 1.0, beta=0.1)
    # A tenth of 0.6 is 0.06: the last token is out, however much the contrast likes it.
    assert mixed.isfinite().tolist() == [[True, True, True, False]]


@pytest.mark.parametrize(("name", "alpha"), [("llava", 1.0), ("gemma3", -0.5), ("qwen2.5-vl", 0.5)])
def test_every_token_is_that_of_two_passes_without_a_cache(name: str, alpha: float) -> None:
    model, inputs = family(name)
    main = first_prompt(inputs)
    words = (main["input_ids"] >= 10) & (main["input_ids"] < 40)
    other = {**main, "input_ids": torch.where(words, main["input_ids"] + 21, main["input_ids"])}

    def logprobs(so_far: Sequence[int]) -> Any:
        one, two = (full_pass(model, of, so_far).logits[0, -1].double().numpy() for of in (main, other))
        return np.log(softmax(one + alpha * (one - two)))

    check_every_token(
        ContrastiveDecoding(model, Contrast("a", Prompt("b", "{question}"), alpha), other), logprobs, main
    )


# --- in the adapter ---------------------------------------------------------------------------------------------------


def test_a_contrast_is_read_from_a_model_argument() -> None:
    contrast = Contrast.parse("vope/writing:vope/captioning:-0.5")
    assert (contrast.prompt, contrast.other, contrast.alpha) == ("vope/writing", CAPTIONING, -0.5)
    assert WRITING.user != CAPTIONING.user
