"""VCD and DoLa: token by token against full passes without a cache, in softmaxes and loops written out here."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from requested import draw_requests, request, sample
from test_shared_prefill import FAMILIES, SPECIAL, TOKENIZER, first_prompt, sharpen

from hedge_tasks.errors import ConfigError, HedgeError
from hedge_tasks.models import decoding as plain_decoding
from hedge_tasks.models.decoding import SharedPrefill, reply_logprob
from hedge_tasks.models.mitigations import (
    DISTORTED,
    Dola,
    DolaModel,
    Vcd,
    VcdModel,
    candidate_layers,
    diffused,
    distorted_pixels,
    layers_contrasted,
    mitigation,
)
from hedge_tasks.models.token_sampling import AnswerReader, TokenSampler, gumbel_noise
from hedge_tasks.sampling import Draw
from hedge_tasks.sampling.prompts import load_prompt
from hedge_tasks.sampling.requests import DrawRequest

Inputs = dict[str, torch.Tensor]
Row = np.ndarray[Any, Any]

PICTURED = ["llava", "qwen2.5-vl", "mllama"]
LAYERED = ["llava", "qwen3.5", "mllama", "text only"]
ALPHA, BETA = 1.0, 0.1


def family(name: str) -> tuple[Any, Inputs]:
    torch.manual_seed(0)
    model, inputs = FAMILIES[name]()
    model.generation_config.eos_token_id = 89  # one token alone ends an answer
    return sharpen(model), inputs


def with_noise(inputs: Inputs, step: int = 500) -> Inputs:
    return {**inputs, DISTORTED: distorted_pixels(inputs, step, 2 if "image_grid_thw" in inputs else 1)}


def one_prompt(inputs: Inputs) -> Inputs:
    """The first row, its noisy picture among it."""
    alone = first_prompt({name: of for name, of in inputs.items() if name != DISTORTED})
    if DISTORTED in inputs:
        alone[DISTORTED] = inputs[DISTORTED][: len(alone["pixel_values"])]
    return alone


# --- references: probabilities in double precision, one full pass a token, nothing of the package ---------------------


def softmax(logits: Row) -> Row:
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


@torch.inference_mode()
def full_pass(model: Any, inputs: Inputs, tokens: Sequence[int], **options: Any) -> Any:
    """The model over one prompt and an answer so far, positions left to transformers."""
    n = len(tokens)
    kinds = {"input_ids": None, "attention_mask": 1, "mm_token_type_ids": 0}
    kinds["token_type_ids"] = int(model.config.model_type == "paligemma")
    longer = {name: of for name, of in inputs.items() if name != DISTORTED}
    for name, kind in kinds.items():
        if name in inputs:
            new = torch.tensor([tokens if kind is None else [kind] * n], dtype=inputs[name].dtype).reshape(1, n)
            longer[name] = torch.cat([inputs[name], new], dim=1)
    if "cross_attention_mask" in inputs:
        mask = inputs["cross_attention_mask"]
        longer["cross_attention_mask"] = torch.cat([mask, *[mask[:, -1:]] * n], dim=1)
    return model(**longer, use_cache=False, **options)


def plain_logprobs(model: Any, inputs: Inputs, tokens: Sequence[int]) -> Row:
    with np.errstate(divide="ignore"):
        return np.log(softmax(full_pass(model, inputs, tokens).logits[0, -1].double().numpy()))


def vcd_logprobs(model: Any, inputs: Inputs, tokens: Sequence[int]) -> Row:
    """Logarithms of equation 3 of VCD, with its constraint on probabilities."""
    noisy = {**inputs, "pixel_values": inputs[DISTORTED]}
    clean, other = (full_pass(model, of, tokens).logits[0, -1].double().numpy() for of in (inputs, noisy))
    p = softmax((1 + ALPHA) * clean - ALPHA * other)
    return constrained(p, softmax(clean))


def dola_logprobs(model: Any, inputs: Inputs, tokens: Sequence[int]) -> Row:
    """Logarithms of equations 2 to 5 of DoLa: the head by hand on the states of each layer but the last."""
    output = full_pass(model, inputs, tokens, output_hidden_states=True)
    last = softmax(output.logits[0, -1].double().numpy())
    weight = model.get_output_embeddings().weight.detach().double().numpy()
    cap = getattr(model.config.get_text_config(), "final_logit_softcapping", None)
    candidates = []
    for states in output.hidden_states[:-1]:
        logits = weight @ states[0, -1].double().numpy()
        candidates.append(softmax(logits if not cap else cap * np.tanh(logits / cap)))
    divergences = [divergence(last, premature) for premature in candidates]
    premature = candidates[max(range(len(candidates)), key=divergences.__getitem__)]
    ratio = np.log(last) - np.log(premature)
    return constrained(softmax(ratio), last)


def divergence(p: Row, q: Row) -> float:
    from scipy.spatial.distance import jensenshannon

    return float(jensenshannon(p, q) ** 2)


def constrained(p: Row, of_model: Row) -> Row:
    kept = np.where(of_model >= BETA * of_model.max(), p, 0.0)
    with np.errstate(divide="ignore"):
        return np.log(kept / kept.sum())


def drawn(logprobs: Callable[[Sequence[int]], Row], draw: Draw, n: int, top_p: float) -> tuple[list[int], list[float]]:
    """A draw out of the contrasted distribution: temperature, then top-p, then the draw's own noise."""
    tokens, told = list[int](), list[float]()
    for step in range(n):
        known = logprobs(tokens)
        scores = known / draw.temperature if draw.temperature else known.copy()
        scores[sorted(SPECIAL)] = -np.inf
        if draw.temperature:
            p, order = softmax(scores), np.argsort(-scores)
            before = np.cumsum(p[order]) - p[order]
            scores[order[before >= top_p]] = -np.inf
            scores = scores + gumbel_noise(torch.tensor([draw.seed]), torch.tensor([step]), len(scores))[0].numpy()
        token = int(scores.argmax())
        tokens.append(token)
        told.append(float(known[token]))
        if token == 89:
            break
    return tokens, told


METHODS: dict[str, tuple[Callable[..., Row], Callable[[Any], Any]]] = {
    "plain": (plain_logprobs, lambda model: model),
    "vcd": (vcd_logprobs, lambda model: VcdModel(model, Vcd(alpha=ALPHA, beta=BETA))),
    "dola": (
        dola_logprobs,
        lambda model: DolaModel(
            model, Dola(layers=tuple(range(model.config.get_text_config().num_hidden_layers)), beta=BETA)
        ),
    ),
}
OF_METHOD = {"plain": [*FAMILIES], "vcd": PICTURED, "dola": LAYERED}
CASES = [(method, name) for method, names in OF_METHOD.items() for name in names]
DRAWS = [Draw("baseline", 0, 0.0, 7), Draw("clean", 0, 1.0, 11), Draw("clean", 1, 0.7, 12)]


def decoded(contrasting: Any, inputs: Inputs, owners: list[int], draws: Sequence[Draw], n: int, top_p: float) -> Any:
    decoder = contrasting if isinstance(contrasting, SharedPrefill) else SharedPrefill(contrasting)
    config = decoder._model.generation_config
    sampler = TokenSampler(draws, {"top_p": top_p}, config, SPECIAL, torch.device("cpu"))
    reader = AnswerReader(SimpleNamespace(**{**vars(TOKENIZER), "eos_token_id": 89}), config, ())
    return decoder.decode(inputs, owners, sampler, reader, n)


def check_every_token(contrasting: Any, logprobs: Callable[[Sequence[int]], Row], inputs: Inputs) -> None:
    """Draws of one prompt are those of the reference, as likely as it says."""
    for answer, draw in zip(decoded(contrasting, inputs, [0] * len(DRAWS), DRAWS, 4, 0.9), DRAWS, strict=True):
        tokens, told = drawn(logprobs, draw, 4, top_p=0.9)
        ended = tokens[-1] == 89
        counted = [p for token, p in zip(tokens, told, strict=True) if token not in (89, *SPECIAL, 1)]
        assert answer.text.split() == [str(token) for token in (tokens[:-1] if ended else tokens)]
        assert answer.mean_logprob == pytest.approx(np.mean(counted or told[:1]), abs=1e-3)


@pytest.mark.parametrize(("method", "name"), CASES)
def test_every_token_is_that_of_the_equations(method: str, name: str) -> None:
    model, inputs = family(name)
    reference, wrap = METHODS[method]
    alone = one_prompt(with_noise(inputs) if method == "vcd" else inputs)
    check_every_token(wrap(model), lambda so_far: reference(model, alone, so_far), alone)


@pytest.mark.parametrize(("method", "name"), [("plain", "qwen3.5"), ("vcd", "llava"), ("dola", "gemma3")])
def test_given_words_are_as_likely_as_they_are_drawn(method: str, name: str) -> None:
    model, inputs = family(name)
    reference, wrap = METHODS[method]
    alone = one_prompt(with_noise(inputs) if method == "vcd" else inputs)
    tokens, told = drawn(lambda so_far: reference(model, alone, so_far), Draw("clean", 0, 1.0, 5), 3, top_p=1.0)
    contrasting = wrap(model)
    [forced] = plain_decoding.forced_logprobs(contrasting, alone, [tokens])
    assert forced == pytest.approx(told, abs=1e-4)
    ends = [89, 50]
    end = reference(model, alone, tokens)[ends]
    expected = sum(told) + (np.logaddexp(*end) if np.isfinite(end).any() else -np.inf)
    assert reply_logprob(contrasting, alone, tokens, ends) == pytest.approx(expected, abs=1e-4)
    shared = SharedPrefill(contrasting).reply_logprobs(alone, [tokens, tokens[:1]], ends)
    assert shared[0] == pytest.approx(expected, abs=1e-4)


def test_what_is_implausible_is_impossible() -> None:
    model, inputs = family("llava")
    alone = one_prompt(with_noise(inputs))
    impossible = int(vcd_logprobs(model, alone, []).argmin())
    [forced] = plain_decoding.forced_logprobs(METHODS["vcd"][1](model), alone, [[impossible]])
    assert forced == [-math.inf]


def test_alpha_0_without_the_constraint_is_the_model() -> None:
    model, inputs = family("qwen3-vl")
    inputs = with_noise(inputs)
    contrasting = VcdModel(model, Vcd(alpha=0.0, beta=0.0))
    plain = {name: of for name, of in inputs.items() if name != DISTORTED}
    mine = decoded(contrasting, inputs, [0, 0, 1], DRAWS, 6, top_p=1.0)
    assert mine == decoded(model, plain, [0, 0, 1], DRAWS, 6, top_p=1.0)
    greedy = VcdModel(model, Vcd(alpha=0.0, beta=0.5))  # the likeliest token is always plausible
    assert [a.text for a in decoded(greedy, inputs, [0], DRAWS[:1], 6, 1.0)] == [mine[0].text]


# --- layers -----------------------------------------------------------------------------------------------------------


def test_the_farthest_layer_of_each_position_is_contrasted() -> None:
    """By hand: of two candidates the one that differs, at each of two positions another one."""
    last = torch.tensor([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3]]).log()
    far = torch.tensor([[0.1, 0.1, 0.8], [0.8, 0.1, 0.1]]).log()
    first = torch.stack([far[0], last[1]])
    second = torch.stack([last[0], far[1]])
    ratio = torch.tensor([[6.0, 3.0, 1 / 8], [1 / 4, 5.0, 3.0]]).log()
    mixed = layers_contrasted(last + 5.0, [first, second - 2.0], beta=0.0)  # logits are known up to a constant
    assert torch.allclose(mixed, ratio, atol=1e-5)
    masked = layers_contrasted(last, [first, second], beta=0.5)
    assert masked.isfinite().tolist() == [[True, True, False], [False, True, True]]


@pytest.mark.parametrize(
    ("layers", "depth", "tied", "expected"),
    [
        ("low", 32, False, tuple(range(0, 16, 2))),  # as DoLa's release has them
        ("high", 32, False, tuple(range(16, 32, 2))),
        ("low", 32, True, tuple(range(2, 16, 2))),
        ("high", 80, False, tuple(range(60, 80, 2))),
        ("low", 80, False, tuple(range(0, 20, 2))),
        ("low", 2, True, (1,)),
        ("high", 2, True, (1,)),
        ((0, 3), 4, True, (0, 3)),
    ],
)
def test_candidates(layers: Any, depth: int, tied: bool, expected: tuple[int, ...]) -> None:
    assert candidate_layers(layers, depth, tied=tied) == expected


def test_a_layer_must_be_before_the_last_and_the_head_must_be_the_models() -> None:
    with pytest.raises(ConfigError, match="4 is not before the last of the model's 4 layers"):
        candidate_layers((1, 4), 4, tied=False)
    model, inputs = family("text only")
    contrasting = DolaModel(model, Dola(layers=(0,)))
    contrasting._cap = 0.1  # as if a model did something else behind its head
    with pytest.raises(HedgeError, match="not its last layer through its head"):
        decoded(contrasting, one_prompt(inputs), [0], DRAWS[:1], 2, 1.0)


# --- noise ------------------------------------------------------------------------------------------------------------


def test_the_diffusion_is_vcds() -> None:
    kept = 1.0
    for i in range(501):
        x = -6 + 12 * i / 999
        kept *= 1 - (0.00499 / (1 + math.exp(-x)) + 1e-5)
    picture, noise = torch.randn(3, 4, 4), torch.randn(3, 4, 4)
    expected = math.sqrt(kept) * picture + math.sqrt(1 - kept) * noise
    assert torch.allclose(diffused(picture, noise, 500), expected, atol=1e-6)


def test_noise_is_standard_normal_and_a_pictures_own() -> None:
    torch.manual_seed(0)
    pictures = torch.randn(2, 3, 64, 64)
    both = distorted_pixels({"pixel_values": pictures}, 999)
    noise = (both - diffused(pictures, torch.zeros_like(pictures), 999)) / diffused(torch.zeros(1), torch.ones(1), 999)
    assert noise.mean().abs() < 0.02
    assert (noise.std() - 1).abs() < 0.02
    assert np.corrcoef(noise[0].flatten(), noise[1].flatten())[0, 1] == pytest.approx(0, abs=0.03)
    alone = distorted_pixels({"pixel_values": pictures[1:]}, 999)
    assert torch.equal(alone[0], both[1])


def test_patches_have_the_noise_of_their_picture_alike_in_all_frames() -> None:
    torch.manual_seed(0)
    grids = torch.tensor([[1, 2, 3], [1, 1, 2]])
    patches = torch.randn(6 + 2, 3 * 2 * 4)
    both = distorted_pixels({"pixel_values": patches, "image_grid_thw": grids}, 999, 2)
    share = diffused(torch.ones(1), torch.zeros(1), 999).item()
    noise = ((both - share * patches) / math.sqrt(1 - share**2)).reshape(8, 3, 2, 4)
    assert torch.allclose(noise[:, :, 0], noise[:, :, 1], atol=1e-5)
    assert noise[:, :, 0].unique().numel() == 8 * 3 * 4
    assert abs(noise.std().item() - 1) < 0.2
    alone = distorted_pixels({"pixel_values": patches[6:], "image_grid_thw": grids[1:]}, 999, 2)
    assert torch.equal(alone, both[6:])


def test_what_fills_pictures_up_does_not_change_their_noise() -> None:
    torch.manual_seed(0)
    picture, empty = torch.randn(3, 6, 8), torch.zeros(3, 6, 8)
    alone = distorted_pixels({"pixel_values": picture[None]}, 500)[0]
    tiles = distorted_pixels({"pixel_values": torch.stack([picture, empty])[None]}, 500)
    assert torch.equal(tiles[0, 0], alone)
    assert not tiles[0, 1].any()  # models find such tiles by their zeros
    padded = torch.nn.functional.pad(picture, (0, 3, 0, 2))
    sizes = torch.tensor([[6, 8]])
    larger = distorted_pixels({"pixel_values": padded[None], "image_sizes": sizes}, 500)[0]
    assert torch.equal(larger[:, :6, :8], alone)
    assert not larger[:, 6:].any()
    with pytest.raises(HedgeError, match="no pixel_values"):
        distorted_pixels({"images": padded}, 500)
    with pytest.raises(HedgeError, match="no pictures"):
        distorted_pixels({"pixel_values": torch.randn(5, 4)}, 500)


# --- arguments --------------------------------------------------------------------------------------------------------


def test_arguments_as_a_command_line_gives_them() -> None:
    assert mitigation(None) is None
    assert mitigation("vcd", alpha=1, noise_step=999) == Vcd(alpha=1.0, beta=0.1, noise_step=999)
    assert mitigation("dola", layers="4/0/2") == Dola(layers=(0, 2, 4), beta=0.1)
    assert mitigation("dola", layers=2, beta=0) == Dola(layers=(2,), beta=0.0)


# --- in the adapter ---------------------------------------------------------------------------------------------------


def tiny(**options: Any) -> Any:
    from hedge_tasks.models.hedge_tiny import HedgeTiny

    return HedgeTiny(**options)


@pytest.fixture(scope="module")
def pictures() -> list[Image.Image]:
    from training import phantom

    generators = [phantom.scan_rng(3, i) for i in range(3)]
    return [phantom.to_pil(phantom.render(phantom.draw_scan(g, n_lesions=1), g)[0]) for g in generators]


@pytest.fixture(scope="module")
def prompt(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("prompts") / "own.json"
    file.write_text(json.dumps({"prompts": {"where": {"user": "<image>where is the lesion?{question}"}}}), "utf-8")
    return f"{file}/where"


def draws_of(prompt: str, pictures: list[Image.Image], choices: tuple[str, ...] = ()) -> list[DrawRequest]:
    draws = []
    for i, picture in enumerate(pictures):
        asked = request(i, plan={"max_new_tokens": 8}, prompt=load_prompt(prompt), choices=choices)
        kinds = [Draw("baseline", 0, 0.0, i), *(Draw("clean", k, 1.0, 10 * i + k) for k in range(2))]
        draws += draw_requests(asked, [*kinds, Draw("noisy", 0, 1.0, 77 + i, "hedge")], picture, i)
    return draws


def asked(pictures: list[Image.Image], text: str = "is there a lesion?") -> list[list[dict[str, Any]]]:
    parts = [[{"type": "image", "url": p}, {"type": "text", "text": text}] for p in pictures]
    return [[{"role": "user", "content": of}] for of in parts]


@pytest.mark.slow
@pytest.mark.framework
@pytest.mark.parametrize("options", [{"decoding": "vcd"}, {"decoding": "dola", "layers": "0/1"}])
def test_answers_depend_on_no_batch_and_on_the_decoding(
    options: dict[str, Any], prompt: str, pictures: list[Image.Image]
) -> None:
    draws = draws_of(prompt, pictures)
    plain, one, many = tiny(batch_size=8), tiny(draws_per_batch=1, **options), tiny(batch_size=8, **options)
    answers = sample(many, draws)
    alone = sample(one, draws)
    assert [a.text for a in alone] == [a.text for a in answers]
    assert [a.mean_logprob for a in alone] == pytest.approx([a.mean_logprob for a in answers], abs=2e-5)
    assert answers != sample(plain, draws)
    assert plain.answer_identity != many.answer_identity == one.answer_identity
    spoken = many.answer_conversations(asked(pictures), temperature=1.0, seeds=[3, 4, 5])
    forced = many.forced_logprobs(asked(pictures), [answer.text for answer in spoken])
    assert [a.mean_logprob for a in forced] == pytest.approx([a.mean_logprob for a in spoken], abs=1e-4)
    reread = many.reread(draws[:1], answers[:1])[0]
    assert (reread.mean_logprob, reread.margin) == (pytest.approx(answers[0].mean_logprob, abs=1e-4), 0.0)
    with pytest.raises(ConfigError, match="logits: kept logits are the model's own"):
        many.inside(asked(pictures), ["yes"] * 3, frozenset({"logits"}))
    assert "states" in many.inside(asked(pictures)[:1], ["yes"], frozenset({"states"}))[0]


@pytest.mark.slow
@pytest.mark.framework
def test_what_cannot_be_contrasted_is_refused(pictures: list[Image.Image], prompt: str) -> None:
    model = tiny(decoding="vcd")
    with pytest.raises(ConfigError, match="decoding=vcd needs pictures, and there is a prompt without any"):
        model.answer_conversations([[{"role": "user", "content": [{"type": "text", "text": "hello"}]}]])
    with pytest.raises(ConfigError, match="guided: decoding=vcd leaves out implausible tokens"):
        sample(model, draws_of(prompt, pictures[:1], choices=("left", "right")))
    with pytest.raises(HedgeError, match="needs a shared prefill"):
        tiny(decoding="dola", share_prefill=False).answer_conversations(asked(pictures))
