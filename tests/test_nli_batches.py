"""How pairs become forward passes: batches by length, and number formats that overflow."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedge_tasks.clustering import nli_model
from hedge_tasks.clustering.nli_model import TOKENS_OF_A_PAIR, NliModel, plan_batches
from hedge_tasks.errors import ConfigError

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from nli_models import deberta, save  # noqa: E402


@settings(max_examples=15)
@given(st.lists(st.integers(1, 4 * TOKENS_OF_A_PAIR), max_size=40), st.integers(1, 12))
def test_batches_hold_every_pair_once_and_keep_both_limits(lengths, batch_size):
    pairs = [(str(i), "x") for i in range(len(lengths))]
    length = dict(zip(pairs, lengths, strict=True))
    batches = list(plan_batches(pairs, lengths, batch_size))
    assert sorted(pair for batch in batches for pair in batch) == sorted(pairs)
    for batch in batches:
        fits = max(1, batch_size * 32 // max(32, *(length[pair] for pair in batch)))
        assert len(batch) == fits or (batch is batches[-1] and 1 <= len(batch) < fits)
    longest_first = [length[pair] for batch in batches for pair in batch]
    assert longest_first == sorted(lengths, reverse=True)


def test_a_model_needs_a_fast_tokenizer():
    with pytest.raises(ConfigError, match="no fast tokenizer"):
        NliModel(deberta(), SimpleNamespace(is_fast=False, model_max_length=9))


def test_a_gpu_takes_64_pairs_a_gib_from_256_to_1024(monkeypatch):
    def pairs(gib, device="cuda:0"):
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda at: SimpleNamespace(total_memory=gib * 2**30))
        return nli_model.pairs_a_pass(device)

    assert [pairs(gib) for gib in (1, 4, 5, 15, 16, 80)] == [256, 256, 320, 960, 1024, 1024]
    assert pairs(80, "cpu") == 256


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(save(tmp_path_factory.mktemp("model")))


@pytest.mark.parametrize("side", ["left", "right"])
def test_rows_are_padded_as_the_tokenizer_pads(tokenizer, side, monkeypatch):
    monkeypatch.setattr(tokenizer, "padding_side", side)
    model, pairs, seen = deberta(), [("left lung", "left"), ("heart", "there is a large effusion"), ("no", "yes")], []
    model.register_forward_pre_hook(lambda _, args, kwargs: seen.append(kwargs), with_kwargs=True)
    classifier = NliModel(model, tokenizer)
    seen.clear()
    (order,) = [list(batch) for batch in classifier.predict(pairs, batch_size=9)]
    expected = tokenizer.pad([tokenizer(*pair) for pair in order], return_tensors="pt")
    assert {name: value.tolist() for name, value in seen[0].items()} == {k: v.tolist() for k, v in expected.items()}


# --- number formats --------------------------------------------------------------------------------------------------


class Overflowing(torch.nn.Module):
    """A model whose logits overflow in half precision for inputs that contain the token `right`."""

    def __init__(self, tokenizer):
        super().__init__()
        self.inner, self.token = deberta(), tokenizer.get_vocab()["right"]
        self.config, self.calls = self.inner.config, []

    @property
    def dtype(self):
        return self.inner.dtype

    @property
    def device(self):
        return self.inner.device

    def forward(self, input_ids, **inputs):
        output = self.inner(input_ids=input_ids, **inputs)
        self.calls.append((str(self.dtype), len(input_ids)))
        if self.dtype != torch.float32:
            output.logits[(input_ids == self.token).any(dim=1)] = torch.inf
        return output


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_pairs_that_overflow_in_half_precision_are_computed_again_in_float32(tokenizer, warnings, dtype):
    nli_model._warn_of_overflow.cache_clear()
    overflowing = Overflowing(tokenizer).to(dtype)
    pairs = [("left lung", "left"), ("right lung", "left"), ("heart", "heart right"), ("heart", "lung")]
    classifier = NliModel(overflowing, tokenizer)
    predictions = [next(iter(classifier.predict([pair], batch_size=1)))[pair] for pair in pairs]
    assert overflowing.dtype == dtype
    assert [call[0] for call in overflowing.calls].count("torch.float32") == 2
    in_float32 = NliModel(Overflowing(tokenizer).to(dtype).float(), tokenizer)
    for pair, prediction in zip(pairs, predictions, strict=True):
        expected = next(iter(in_float32.predict([pair], batch_size=1)))[pair]
        overflowed = "right" in " ".join(pair)
        assert prediction == pytest.approx(expected, abs=1e-6 if overflowed else 0.1)
    assert sum("computed again in float32" in message for message in warnings) == 1
