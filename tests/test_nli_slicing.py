"""DeBERTa-v2 without the relative positions that cannot occur: the same logits."""

from __future__ import annotations

import pytest
from at_border import at_border
from nli_models import deberta

from hedge_tasks.clustering import deberta as slicing
from hedge_tasks.clustering.deberta import slice_relative_positions

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")


BUILDS = {
    "as deberta-v2-xlarge-mnli": {"conv_kernel_size": 3, "conv_act": "gelu"},
    "content to position only": {"pos_att_type": ["c2p"]},
    "position to content only": {"pos_att_type": ["p2c"], "share_att_key": False},
    "no norm": {"norm_rel_ebd": "none"},
    "no buckets": {"position_buckets": -1},
    "few buckets": {"position_buckets": 8},
}


def batch(length, rows=3, seed=0):
    generator = torch.Generator().manual_seed(seed + length)
    ids = torch.randint(4, 17, (rows, length), generator=generator)
    mask = torch.ones_like(ids)
    mask[1:, max(1, length - length // 3) :] = 0
    return {"input_ids": ids, "attention_mask": mask}


@torch.inference_mode()
def logits(model, length):
    return model(**batch(length)).logits


def test_a_model_whose_logits_would_change_is_left_as_it_was(monkeypatch, warnings):
    model = deberta()
    expected = logits(model, 20)
    monkeypatch.setattr(slicing._Slicer, "_span", lambda self, hidden_states: 2)  # too few positions
    assert not slice_relative_positions(model)
    torch.testing.assert_close(logits(model, 20), expected, rtol=0, atol=0)
    assert model.deberta.encoder.layer[0].attention.self.pos_ebd_size == 16
    assert "get_rel_embedding" not in vars(model.deberta.encoder)
    assert len(warnings) == 1
    assert "changes its logits" in warnings[0]


def test_a_model_that_turns_to_nan_is_left_as_it_was(warnings):
    model = deberta()
    with torch.no_grad():
        model.classifier.bias.fill_(torch.nan)
    assert not slice_relative_positions(model)
    assert not model.deberta.encoder._forward_pre_hooks


@pytest.mark.parametrize("build", BUILDS.values(), ids=BUILDS)
def test_short_inputs_use_the_buckets_that_occur_and_keep_their_logits(build):
    model = deberta(positions=96, buckets=32, **build)
    lengths = (1, 2, 40, 96)
    expected = {length: logits(model, length) for length in lengths}
    attention = model.deberta.encoder.layer[-1].attention.self
    whole = attention.pos_ebd_size
    assert slice_relative_positions(model)
    for length in (*lengths, *reversed(lengths)):
        torch.testing.assert_close(logits(model, length), expected[length], rtol=1e-5, atol=2e-5)
        assert attention.pos_ebd_size == length or length > 2
    assert attention.pos_ebd_size < whole
    assert not slice_relative_positions(deberta(relative_attention=False, pos_att_type=None))
    other = deberta()
    other.config.model_type = "deberta"
    assert not slice_relative_positions(other)


def test_layers_that_do_not_share_their_positions_are_left_alone(warnings):
    model = deberta()
    model.deberta.encoder.layer[0].attention.self.pos_ebd_size -= 1
    assert not slice_relative_positions(model)
    assert "do not share" in warnings[0]


@pytest.mark.parametrize(
    ("dtype", "border"), [("float32", 1e-4), ("float16", 2e-2), ("bfloat16", 1e-1), ("float64", 0.0)]
)
def test_logits_may_change_by_rounding_alone(dtype, border, monkeypatch, warnings):
    model = deberta().to(getattr(torch, dtype))

    def slices(difference):
        monkeypatch.setattr(slicing, "_largest_difference", lambda *_: difference)
        return slice_relative_positions(model)

    at_border(slices, border, "110")
