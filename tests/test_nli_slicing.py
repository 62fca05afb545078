"""DeBERTa-v2 without the relative positions that cannot occur: the same logits."""

from __future__ import annotations

import pytest

from hedge_tasks.clustering import deberta as slicing
from hedge_tasks.clustering.deberta import slice_relative_positions

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from nli_models import deberta  # noqa: E402

BUILDS = {
    "as deberta-v2-xlarge-mnli": {"conv_kernel_size": 3, "conv_act": "gelu"},
    "own projections": {"share_att_key": False},
    "content to position only": {"pos_att_type": ["c2p"]},
    "position to content only": {"pos_att_type": ["p2c"], "share_att_key": False},
    "no norm": {"norm_rel_ebd": "none"},
    "no buckets": {"position_buckets": -1},
    "few buckets": {"position_buckets": 8},
}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def warnings():
    from loguru import logger

    messages = []
    sink = logger.add(lambda message: messages.append(str(message)), level="WARNING")
    yield messages
    logger.remove(sink)


def batch(length, rows=3, seed=0):
    generator = torch.Generator().manual_seed(seed + length)
    ids = torch.randint(4, 17, (rows, length), generator=generator)
    mask = torch.ones_like(ids)
    mask[1:, max(1, length - length // 3) :] = 0
    return {"input_ids": ids, "attention_mask": mask}


@torch.inference_mode()
def logits(model, length):
    return model(**batch(length)).logits


@pytest.mark.slow
@pytest.mark.parametrize("build", BUILDS.values(), ids=BUILDS)
def test_logits_stay_the_same_at_every_length(build):
    model = deberta(positions=512, buckets=256, **build)
    lengths = (1, 2, 3, 10, 33, 127, 128, 129, 200, 300, 511, 512)
    expected = {length: logits(model, length) for length in lengths}
    assert slice_relative_positions(model)
    for length in (*lengths, *reversed(lengths)):
        torch.testing.assert_close(logits(model, length), expected[length], rtol=1e-5, atol=2e-5)
    spread = torch.stack([expected[length].std() for length in lengths])
    assert spread.mean() > 0.1  # so that a wrong position would be seen


@pytest.mark.slow
def test_short_inputs_get_few_relative_positions_and_long_ones_all():
    model = deberta(positions=512, buckets=256)
    assert slice_relative_positions(model)
    rows = []
    attention = model.deberta.encoder.layer[1].attention.self
    attention.register_forward_pre_hook(
        lambda _, args, kwargs: rows.append(kwargs["rel_embeddings"].shape[0]), with_kwargs=True
    )
    for length in (1, 10, 100, 512, 10):
        logits(model, length)
    assert rows == [2, 20, 200, 512, 20]


def test_only_the_given_model_is_changed():
    one, other = deberta(), deberta()
    method = type(one.deberta.encoder).get_rel_embedding
    assert slice_relative_positions(one)
    logits(one, 5)
    assert type(one.deberta.encoder).get_rel_embedding is method
    assert other.deberta.encoder.get_rel_embedding.__func__ is method
    assert other.deberta.encoder.layer[0].attention.self.pos_ebd_size == 16
    assert not other.deberta.encoder._forward_pre_hooks


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


@pytest.mark.parametrize(
    "change",
    [
        lambda model: delattr(model.deberta.encoder.layer[1].attention.self, "pos_ebd_size"),
        lambda model: setattr(model.deberta.encoder.layer[1].attention.self, "pos_ebd_size", 8),
        lambda model: delattr(model.deberta.encoder, "rel_embeddings"),
        lambda model: delattr(model, "deberta"),
    ],
)
def test_a_model_that_is_built_in_another_way_is_left_alone_and_said_so(change, warnings):
    model = deberta()
    change(model)
    assert not slice_relative_positions(model)
    assert len(warnings) == 1
    assert "not built as expected" in warnings[0]


def test_other_architectures_are_left_alone_without_a_word(warnings):
    from transformers import BertConfig, BertForSequenceClassification

    bert = BertForSequenceClassification(
        BertConfig(vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8)
    )
    assert not slice_relative_positions(bert)
    assert not slice_relative_positions(deberta(relative_attention=False))
    assert warnings == []


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_sliced_too(dtype):
    model = deberta(positions=512, buckets=256).to(getattr(torch, dtype))
    assert slice_relative_positions(model)
