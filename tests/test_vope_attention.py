"""Attention to the image while an object is said: against the model's own weights computed by hand, and as numbers."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import vope_images
from PIL import Image
from sklearn.metrics import roc_auc_score

from hedge_tasks.cli import main
from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.errors import ConfigError
from hedge_tasks.models.hedge_tiny import HedgeTiny
from hedge_tasks.runs.run_files import Run, save_run
from hedge_tasks.sampling.prompts import load_prompt
from hedge_tasks.suites.vope.attention import AttendedObject, attended, numbers_of, object_weights
from hedge_tasks.suites.vope.extraction import mentions, places

TEXT = "A dog and two wine glasses."


@pytest.fixture(scope="module")
def model() -> HedgeTiny:
    """The embedded model with queries and keys at random: its own hardly tell one place from another."""
    adapter = HedgeTiny()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, weights in adapter._model.named_parameters():
            if "q_proj" in name or "k_proj" in name:
                weights.copy_(torch.randn(weights.shape, generator=generator) * 0.3)
    return adapter


def asked(shade: int = 90) -> list[dict[str, Any]]:
    picture = Image.new("RGB", (64, 64), (shade, 10, 10))
    return [{"role": "user", "content": [{"type": "image", "url": picture}, {"type": "text", "text": "Say."}]}]


def by_hand(adapter: HedgeTiny, ids: list[int], pixels: torch.Tensor, image_token: int) -> float:
    """Share on image tokens of a prefix's last position: Llama's queries, keys, rotation and softmax written out."""
    language = adapter._model.model.language_model
    config = language.config
    with torch.inference_mode():
        output = adapter._model(
            input_ids=torch.tensor([ids]), pixel_values=pixels, output_hidden_states=True, use_cache=False
        )
        seen = torch.tensor(ids) == image_token
        shares = []
        for layer, hidden in zip(language.layers, output.hidden_states, strict=False):
            normed = layer.input_layernorm(hidden)[0]
            size, heads = config.head_dim, config.num_attention_heads
            query, key = (
                proj(normed).reshape(len(ids), heads, size) for proj in (layer.self_attn.q_proj, layer.self_attn.k_proj)
            )
            rate = config.rope_parameters["rope_theta"] ** (-torch.arange(0, size, 2) / size)
            angle = torch.arange(len(ids))[:, None] * rate
            cos, sin = (torch.cat([f(angle)] * 2, -1)[:, None] for f in (torch.cos, torch.sin))

            def turned(x: torch.Tensor, cos: torch.Tensor = cos, sin: torch.Tensor = sin) -> torch.Tensor:
                half = x.shape[-1] // 2
                return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin

            scores = torch.einsum("hd,thd->ht", turned(query)[-1], turned(key)) / size**0.5
            shares.append(scores.softmax(-1)[:, seen].sum(-1).mean())
    return float(torch.stack(shares).mean())


@pytest.mark.slow
def test_the_weights_are_those_of_the_position_that_says_the_token(model: HedgeTiny) -> None:
    """Prefix by prefix, with queries and keys multiplied by hand."""
    found = model.image_attention(asked(), TEXT)
    inputs = model._inputs([asked()])
    prompt = inputs["input_ids"][0].tolist()
    tokens = model._tokenizer(TEXT, add_special_tokens=False)["input_ids"]
    assert found[0][0] == 0
    assert found[-1][1] == len(TEXT)
    token = model._model.config.image_token_id
    expected = [by_hand(model, prompt + tokens[:k], inputs["pixel_values"], token) for k in range(len(tokens))]
    assert [share for *_, share in found] == pytest.approx(expected, abs=1e-5)
    assert len({round(share, 4) for share in expected}) > 3  # they differ, so that the place matters
    assert np.std(expected) > 0.001
    assert model._model.config._attn_implementation == "sdpa"  # as before


@pytest.mark.slow
def test_a_prompt_without_picture_has_no_such_weights(model: HedgeTiny) -> None:
    with pytest.raises(ConfigError, match="no image tokens"):
        model.image_attention([{"role": "user", "content": [{"type": "text", "text": "Say."}]}], TEXT)
    assert model.image_attention(asked(), "") == []


@pytest.mark.slow
def test_mentions_are_found_in_the_text_as_it_was_written() -> None:
    text = "Don't wake the Dog’s puppy; two WINE GLASSES, a dog."
    found = mentions(text)
    said = [text[slice(*place)] if place else None for place in places(text, found)]
    assert said == ["Dog", "puppy", "WINE GLASSES", "dog"]
    wide = "ﬁne dog"  # a ligature: normalisation makes two letters of it
    assert places(wide, mentions(wide)) in ([None], [(4, 7)])


def test_an_objects_weight_is_the_mean_of_its_tokens_and_mentions() -> None:
    text = "A dog, a wine glass, a dog"
    tokens = [(0, 1, 0.9), (1, 5, 0.2), (5, 6, 0.9), (8, 13, 0.1), (13, 16, 0.3), (16, 19, 0.5), (22, 26, 0.6)]
    weights = object_weights(text, tokens)
    assert weights == {"dog": (pytest.approx(0.4), 2), "wine glass": (pytest.approx(0.3), 1)}
    objects = attended([("s", "g", text, {"dog": "true_description", "cat": None})], lambda id, text: tokens)
    assert [(one.word, one.weight, one.mentions) for one in objects] == [("dog", pytest.approx(0.4), 2)]


def test_the_numbers_are_means_and_rank_sums() -> None:
    chance = random.Random(0)
    kinds = ["true_description", "hallucinated_description", "true_imagination", "hallucinated_imagination", None]
    objects = [
        AttendedObject(
            str(i), str(i // 3), chance.choice(["dog", "car", "bus"]), chance.choice(kinds), chance.random(), 1
        )
        for i in range(90)
    ]
    numbers = numbers_of(objects)
    read = [one for one in objects if one.kind]
    imagined = [int("imagination" in str(one.kind)) for one in read]
    wrong = [int(str(one.kind).startswith("hallucinated")) for one in read]
    scores = [-one.weight for one in read]
    assert numbers.imagined.value == pytest.approx(roc_auc_score(imagined, scores))
    assert numbers.hallucinated.value == pytest.approx(roc_auc_score(wrong, scores))
    told = [(w, s) for w, s, i in zip(wrong, scores, imagined, strict=True) if not i]
    assert numbers.hallucinated_described.value == pytest.approx(roc_auc_score(*zip(*told, strict=True)))
    described = [one.weight for one, i in zip(read, imagined, strict=True) if not i]
    assert numbers.means["described"].value == pytest.approx(np.mean(described))
    [dog] = [word for word in numbers.words if word.word == "dog"]
    mine = [one.weight for one, i in zip(read, imagined, strict=True) if i and one.word == "dog"]
    assert (dog.imagined, dog.n_imagined) == (pytest.approx(np.mean(mine)), len(mine))


@pytest.mark.slow
@pytest.mark.framework
def test_the_command_reads_a_run_and_its_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    vope_images.build(tmp_path / "hub", size=(64, 64))
    monkeypatch.setenv("HEDGE_DATA_DIR", str(tmp_path / "hub"))
    prompt = load_prompt("vope/writing")
    settings = {"prompt": {"name": prompt.name, "user": prompt.user, "system": None}, "sampling": {}}
    kinds = ("true_description", "true_imagination")
    sets = tuple(
        AnswerSet(str(100 + i), Answer("A dog and a car."), (Answer("A dog"),), question="this image", group=str(i))
        for i in range(4)
    )
    verdicts = {
        a.id: {"judge": "vope 3", "objects": [{"word": "dog", "kind": kinds[i % 2]}, {"word": "car", "kind": kinds[1]}]}
        for i, a in enumerate(sets)
    }
    save_run(Run("hedge_vope_writing", "hedge_tiny", sets, verdicts, settings, "2026"), tmp_path / "runs")
    out = tmp_path / "objects.jsonl"
    command = [
        "detectors",
        "vope-attention",
        str(tmp_path / "runs"),
        "--model",
        "hedge_tiny",
        "--limit",
        "3",
        "--out",
        str(out),
    ]
    assert main([*command, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    rows = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert [(row["story"], row["word"]) for row in rows] == [
        (str(100 + i), w) for i in range(3) for w in ("dog", "car")
    ]
    assert all(0 < row["weight"] < 1 for row in rows)
    assert len({row["weight"] for row in rows if row["word"] == "dog"}) > 1  # the pictures differ
    assert facts["means"]["described"]["n"] == 2
    assert facts["means"]["imagined"]["value"] == pytest.approx(
        np.mean([row["weight"] for row in rows if row["kind"] == "true_imagination"])
    )
    assert main(command) == 0
    assert "Figure 9" in capsys.readouterr().out
    assert main(["detectors", "vope-attention", str(tmp_path / "runs"), "--model", "hedge_openai"]) == 2
    assert "hedge_openai does not tell its attention" in capsys.readouterr().err
