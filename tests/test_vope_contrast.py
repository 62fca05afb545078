"""Contrastive decoding between two prompts: against decoding without any cache, and its fixed points at 0 and -1."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from test_shared_prefill import FAMILIES, SPECIAL, TOKENIZER, first_prompt, sampler_and_reader, sharpen

from hedge_tasks.models.contrast import Contrast, ContrastiveDecoding, contrasted
from hedge_tasks.models.decoding import _forced_pass
from hedge_tasks.models.token_sampling import AnswerReader, TokenSampler
from hedge_tasks.sampling import Draw
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
def test_decoding_equals_decoding_without_any_cache(name: str, alpha: float) -> None:
    torch.manual_seed(0)
    model, inputs = FAMILIES[name]()
    sharpen(model)
    main = first_prompt(inputs)
    words = (main["input_ids"] >= 10) & (main["input_ids"] < 40)
    other = {**main, "input_ids": torch.where(words, main["input_ids"] + 21, main["input_ids"])}
    draws = [Draw("clean", i, 1.0 if i else 0.1, 500 + i) for i in range(2)]
    contrast = Contrast("a", Prompt("b", "{question}"), alpha)
    decoding = ContrastiveDecoding(model, contrast, other)
    answers = decoding.decode(main, [0, 0], *sampler_and_reader(model, draws), 6)
    assert [a.text for a in answers] == [uncached(model, main, other, draw, alpha, 6) for draw in draws]
    alone = decoding.decode(main, [0], *sampler_and_reader(model, draws[1:]), 6)
    assert alone[0].text == answers[1].text


@torch.inference_mode()
def uncached(model: Any, main: Any, other: Any, draw: Draw, alpha: float, n: int) -> str:
    sampler = TokenSampler([draw], {}, model.generation_config, SPECIAL, torch.device("cpu"))
    reader = AnswerReader(TOKENIZER, model.generation_config, ())
    tokens, logprobs = list[int](), list[float]()
    for step in range(n):
        so_far = torch.tensor([tokens], dtype=torch.long)
        one, two = (_forced_pass(model, inputs, [tokens])[0][:, -1].float() for inputs in (main, other))
        token, logprob = sampler.choose(one + alpha * (one - two), so_far, torch.tensor([0]), step)
        tokens, logprobs = [*tokens, int(token)], [*logprobs, float(logprob)]
        if reader.is_finished(tokens):
            break
    return reader.read(tokens, logprobs).text


# --- in the adapter ---------------------------------------------------------------------------------------------------


def test_a_contrast_is_read_from_a_model_argument() -> None:
    contrast = Contrast.parse("vope/writing:vope/captioning:-0.5")
    assert (contrast.prompt, contrast.other, contrast.alpha) == ("vope/writing", CAPTIONING, -0.5)
    assert WRITING.user != CAPTIONING.user
