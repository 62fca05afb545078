"""Contrastive decoding between two prompts: against decoding without any cache, and its fixed points at 0 and -1."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from PIL import Image
from test_shared_prefill import FAMILIES, SPECIAL, TOKENIZER, first_prompt, sampler_and_reader, sharpen

from hedge_tasks.errors import HedgeError
from hedge_tasks.models.contrast import Contrast, ContrastiveDecoding, contrasted
from hedge_tasks.models.decoding import SharedPrefill
from hedge_tasks.models.token_sampling import AnswerReader, TokenSampler
from hedge_tasks.sampling import Draw, SamplingPlan
from hedge_tasks.sampling.prompts import Prompt, load_prompt
from hedge_tasks.sampling.requests import DrawRequest, SampleRequest

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


@pytest.mark.slow
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
    plain, tokens, logprobs = SharedPrefill(model), list[int](), list[float]()
    for step in range(n):
        so_far = torch.tensor([tokens], dtype=torch.long)
        one, two = (plain._uncached(inputs, so_far).float() for inputs in (main, other))
        token, logprob = sampler.choose(one + alpha * (one - two), so_far, torch.tensor([0]), step)
        tokens, logprobs = [*tokens, int(token)], [*logprobs, float(logprob)]
        if reader.is_finished(tokens):
            break
    return reader.read(tokens, logprobs).text


# --- in the adapter ---------------------------------------------------------------------------------------------------

PROMPTS = {"where": "<image>where is the lesion?{question}", "shape": "<image>what is its shape?{question}"}


@pytest.fixture(scope="module")
def prompts(tmp_path_factory: pytest.TempPathFactory) -> str:
    import json

    file = tmp_path_factory.mktemp("prompts") / "own.json"
    file.write_text(json.dumps({"prompts": {name: {"user": user} for name, user in PROMPTS.items()}}), "utf-8")
    return str(file)


def tiny(**options: Any) -> Any:
    from hedge_tasks.models.hedge_tiny import HedgeTiny

    return HedgeTiny(**options)


@pytest.fixture(scope="module")
def pictures() -> list[Image.Image]:
    from training import phantom

    generators = [phantom.scan_rng(3, i) for i in range(2)]
    return [phantom.to_pil(phantom.render(phantom.draw_scan(g, n_lesions=1), g)[0]) for g in generators]


def sample(model: Any, prompt: str, pictures: list[Image.Image], extra: str | None = None) -> list[Any]:
    draws = []
    for name in filter(None, (prompt, extra)):
        for i, picture in enumerate(pictures):
            request = SampleRequest(
                *("q", f"doc{i}", "", load_prompt(name), SamplingPlan(max_new_tokens=8)), lambda doc: [doc["image"]]
            )
            kinds = [Draw("clean", k, 1.0, 10 * i + k) for k in range(2)]
            kinds.append(Draw("noisy", 0, 1.0, 77 + i, "hedge"))
            load = lambda picture=picture: {"image": picture}  # noqa: E731
            draws += [DrawRequest(request, draw, load, ("task", "test", i)) for draw in kinds]
    answers = dict(pair for batch in model.generate_draws(draws) for pair in batch)
    return [answers[i] for i in range(len(draws))]


@pytest.mark.slow
@pytest.mark.framework
def test_alpha_0_changes_nothing_and_alpha_minus_1_is_the_other_prompt(
    prompts: str, pictures: list[Image.Image]
) -> None:
    where, shape = f"{prompts}/where", f"{prompts}/shape"
    plain = tiny(batch_size=2)
    as_where, as_shape = sample(plain, where, pictures), sample(plain, shape, pictures)
    assert [a.text for a in as_where] != [a.text for a in as_shape]
    assert sample(tiny(contrast=f"{where}:{shape}:0", batch_size=2), where, pictures) == as_where
    other_way = tiny(contrast=f"{where}:{shape}:-1", batch_size=8)
    # In one batch with draws of the other prompt, which are sampled as ever.
    assert sample(other_way, where, pictures, shape) == [*as_shape, *as_shape]
    identities = {plain.answer_identity, other_way.answer_identity}
    assert len(identities | {tiny(contrast=f"{where}:{shape}:-1:0.1").answer_identity}) == 3
    with pytest.raises(HedgeError, match="needs a shared prefill"):
        sample(tiny(contrast=f"{where}:{shape}:0.5", share_prefill=False), where, pictures)


def test_a_contrast_is_read_from_a_model_argument() -> None:
    contrast = Contrast.parse("vope/writing:vope/captioning:-0.5:0.1")
    assert (contrast.prompt, contrast.other, contrast.alpha, contrast.beta) == ("vope/writing", CAPTIONING, -0.5, 0.1)
    assert WRITING.user != CAPTIONING.user
