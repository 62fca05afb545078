"""hedge_hf with models and pictures that do not fit: smaller batches, device maps, pixel limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tiny_qwen
import torch
from PIL import Image
from requested import sample
from test_hedge_hf import clean, draw_request

from hedge_tasks.models.decoding import SharedPrefill
from hedge_tasks.sampling import Draw

pytestmark = pytest.mark.framework


@pytest.fixture
def picture() -> Image.Image:
    return Image.effect_noise((64, 64), 80).convert("RGB")


@pytest.fixture
def model() -> Any:
    from hedge_tasks.models.hedge_tiny import HedgeTiny

    return HedgeTiny(batch_size=1)


def document(picture: Image.Image) -> list[Any]:
    """21 draws of one document, and three of another."""
    noisy = [Draw("noisy", i, 1.0, 100 + i, "hedge") for i in range(10)]
    draws = [Draw("baseline", 0, 0.1, 1), *(clean(seed) for seed in range(10)), *noisy]
    first = [draw_request(picture, draw) for draw in draws]
    return first + [draw_request(picture.rotate(90), clean(seed), key="other") for seed in range(3)]


# --- memory -----------------------------------------------------------------------------------------------------------


class SmallDevice:
    """Lets a model's forward pass run out of memory above so many rows, as a GPU does: in the middle of decoding."""

    def __init__(self, rows: int, error: type[RuntimeError] = torch.OutOfMemoryError) -> None:
        self.rows, self.error, self.failures = rows, error, 0

    def __call__(self, module: Any, arguments: Any, named: dict[str, Any]) -> None:
        if len(named["input_ids"]) > self.rows:
            self.failures += 1
            raise self.error("CUDA out of memory. Tried to allocate 3.25 GiB.\nGPU 0 has a total capacity of ...")


@pytest.mark.parametrize(("shared", "error"), [(True, torch.OutOfMemoryError), (False, RuntimeError)])
def test_without_memory_for_a_batch_its_draws_are_asked_in_halves_and_stay_the_same(
    model: Any, picture: Image.Image, said: list[str], shared: bool, error: type[RuntimeError]
) -> None:
    draws = document(picture)
    model.share_prefill, model.batch_size = shared, 2
    whole = sample(model, draws)
    device = SmallDevice(5, error)
    with model._model.register_forward_pre_hook(device, with_kwargs=True):
        yielded = list(model.generate_draws(draws))
    answers = dict(pair for part in yielded for pair in part)
    assert [answers[i].text for i in range(len(draws))] == [answer.text for answer in whole]
    assert [answers[i].mean_logprob for i in range(len(draws))] == pytest.approx(
        [answer.mean_logprob for answer in whole], abs=2e-5
    )
    assert model.draws_per_batch == 3  # 24, 12, 6, 3
    assert device.failures == 3  # what was learned is not forgotten
    assert max(len(part) for part in yielded) == 3  # and every part is stored as it comes
    warnings = [line for line in said if "no memory for" in line]
    assert [line.partition("no memory for ")[2].partition(" draws")[0] for line in warnings] == ["24", "12", "6"]
    assert "CUDA out of memory. Tried to allocate 3.25 GiB.)" in warnings[0]


def test_no_memory_for_a_single_draw_is_an_error(model: Any, picture: Image.Image) -> None:
    model.share_prefill = False
    with (
        model._model.register_forward_pre_hook(SmallDevice(0), with_kwargs=True),
        pytest.raises(torch.OutOfMemoryError),
    ):
        sample(model, document(picture))
    assert model.draws_per_batch == 1


def test_another_error_is_raised_at_once(model: Any, picture: Image.Image, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def broken(self: Any, *arguments: Any) -> Any:
        calls.append(arguments)
        raise RuntimeError("expected scalar type Half but found Float")

    monkeypatch.setattr(SharedPrefill, "decode", broken)
    model.share_prefill = True
    with pytest.raises(RuntimeError, match="scalar type"):
        sample(model, document(picture))
    assert len(calls) == 1
    assert model.draws_per_batch is None


# --- devices ----------------------------------------------------------------------------------------------------------


PARTS = ("model.vision_tower", "model.multi_modal_projector", "model.language_model", "lm_head")


@pytest.mark.slow
@pytest.mark.parametrize("elsewhere", [None, PARTS[2:]])
def test_a_spread_model_gives_the_same_answers(model: Any, picture: Image.Image, elsewhere: Any) -> None:
    """Layers on the disk stand in for layers on another GPU: the same hooks carry tensors to and fro."""
    from hedge_tasks.models.hedge_tiny import HedgeTiny

    draws = document(picture)
    home = model.device
    device_map = "auto" if elsewhere is None else {part: "disk" if part in elsewhere else str(home) for part in PARTS}
    spread = HedgeTiny(device_map=device_map, batch_size=1)
    assert spread.device == home
    if elsewhere:
        assert any(parameter.is_meta for parameter in spread._model.parameters())
    answers, expected = sample(spread, draws), sample(model, draws)
    assert [answer.text for answer in answers] == [answer.text for answer in expected]
    logprobs = [answer.mean_logprob for answer in expected]
    assert [answer.mean_logprob for answer in answers] == pytest.approx(logprobs, abs=2e-5)
    assert spread._shares == {True: True}  # the check ran on the pictures' kind of prompt, and passed
    assert spread.answer_identity == model.answer_identity


def test_a_windowed_tower_without_flash_attention_is_told(said: list[str]) -> None:
    from transformers import AutoConfig

    from hedge_tasks.models.weights import tell_of_windows

    for family in ("qwen2_vl", "qwen2_5_vl"):
        for device in ("cpu", "cuda"):
            tell_of_windows(AutoConfig.for_model(family), torch.device(device))
    assert [line for line in said if "flash-attention is not installed" in line] == said
    assert len(said) == 1


def test_rows_of_a_cache_are_chosen_by_an_index_that_fits_every_device(
    model: Any, picture: Image.Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An index on one GPU cannot choose from a tensor on another; one on the CPU can choose from any."""
    from transformers.cache_utils import DynamicLayer

    original, devices = DynamicLayer.batch_select_indices, []

    def spy(self: Any, indices: torch.Tensor) -> None:
        devices.append(indices.device.type)
        original(self, indices)

    monkeypatch.setattr(DynamicLayer, "batch_select_indices", spy)
    sample(model, document(picture))
    assert set(devices) == {"cpu"}


# --- pictures ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_pixel_limits_bound_what_an_image_costs_and_are_part_of_the_model(tmp_path: Path) -> None:
    from hedge_tasks.models.hedge_hf import HedgeHF

    qwen = tiny_qwen.write(tmp_path)
    scan = Image.effect_noise((560, 420), 80).convert("RGB")
    request = draw_request(scan, clean(0))

    def image_tokens(adapter: Any) -> int:
        ids = adapter._inputs([request.messages()])["input_ids"]
        return int((ids == adapter._model.config.image_token_id).sum())

    free = HedgeHF(pretrained=str(qwen), dtype="float32")
    bounded = HedgeHF(pretrained=str(qwen), dtype="float32", max_pixels=56 * 56 * 4)
    raised = HedgeHF(pretrained=str(qwen), dtype="float32", min_pixels=470_400)
    assert image_tokens(free) == (560 // 28) * (420 // 28)  # one token for 28 x 28 pixels
    assert 0 < image_tokens(bounded) <= 16
    assert image_tokens(raised) >= 600
    assert bounded.answer_identity == f"{free.answer_identity}:max_pixels=12544"
    assert raised.answer_identity == f"{free.answer_identity}:min_pixels=470400"
    assert sample(bounded, [request, request])[0].n_tokens is not None
