"""What is kept from inside is the model's own, and detectors make of it what the libraries make."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from requested import FakeModel
from test_hook import requests

from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.data.inside import ARRAYS, HEADS, LOGITS, PARTS, PLACES, SENTENCE_PLACES
from hedge_tasks.detectors import get
from hedge_tasks.detectors.evidence import Evidence, evidence_of
from hedge_tasks.sampling.hook import generate_samples
from hedge_tasks.sampling.inside import InsideStore, inside_key, model_key

GOLDEN = json.loads((Path(__file__).parent / "golden" / "inside.json").read_text("utf-8"))

# --- numbers of lm-polygraph -----------------------------------------------------------------------------------------

REPORTS = {"rauq": lambda x: x + 1}
"""What lm-polygraph reports in place of our number x."""


def golden_evidence(question: dict[str, Any]) -> Evidence:
    attention, logprobs = np.array(question["attention"]), np.array(question["logprobs"])
    before = np.diagonal(attention, offset=-1, axis1=2, axis2=3)
    most = before.mean(-1).argmax(1)
    previous = np.array([np.append(np.nan, of[head]) for of, head in zip(before, most, strict=True)])
    logits = np.zeros((len(logprobs), len(LOGITS)))
    logits[:, LOGITS.index("logprob")] = logprobs[np.arange(len(logprobs)), question["said"]]
    logits[:, LOGITS.index("entropy")] = -(np.exp(logprobs) * logprobs).sum(-1)
    logits[:, LOGITS.index("uniform_divergence")] = -logprobs.mean(-1) - np.log(logprobs.shape[1])
    inside = {"heads": np.zeros((5, 3, len(HEADS))), "previous": previous, "logits": logits}
    inside["draw_states"] = np.array(question["states"])
    answers = AnswerSet("q", Answer("a"), tuple(Answer(str(i)) for i in range(5)))
    return evidence_of(answers, inside=inside)


@pytest.mark.parametrize("name", sorted(GOLDEN["values"].keys() - {"mahalanobis", "relative_mahalanobis"}))
def test_the_number_is_that_of_lm_polygraph(name: str) -> None:
    for question, theirs in zip(GOLDEN["questions"], GOLDEN["values"][name], strict=True):
        ours = get(name).score(golden_evidence(question))
        assert ours is not None
        assert REPORTS.get(name, float)(ours) == pytest.approx(theirs, abs=1e-6)


# --- what is read ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tiny() -> Any:
    from hedge_tasks.models.hedge_tiny import HedgeTiny

    return HedgeTiny()


def conversation(question: str, colour: str) -> list[dict[str, Any]]:
    from PIL import Image

    image = {"type": "image", "url": Image.new("RGB", (64, 64), colour)}
    return [{"role": "user", "content": [image, {"type": "text", "text": question}]}]


def by_hand(tiny: Any, turns: list[dict[str, Any]], text: str) -> dict[str, Any]:
    """One plain pass with everything, and brute force: loops over heads and tokens."""
    import torch

    inputs = tiny._inputs([turns])
    prompt = inputs["input_ids"]
    passes = []
    tiny._model.set_attn_implementation("eager")
    for blank in ("", " "):
        ids = tiny._tokenizer(blank + text, add_special_tokens=False)["input_ids"]
        tokens = torch.tensor([ids], device=tiny.device)
        whole = torch.cat([prompt, tokens], dim=1)
        more = {k: v for k, v in inputs.items() if k not in ("input_ids", "attention_mask")}
        with torch.inference_mode():
            output = tiny._model(input_ids=whole, output_hidden_states=True, output_attentions=True, **more)
        logits = output.logits[0, prompt.shape[1] - 1 : -1].double().cpu()
        likely = float(logits.log_softmax(-1)[range(len(ids)), ids].sum())
        passes.append((likely, output, logits, ids))
    tiny._model.set_attn_implementation("sdpa")
    _, output, logits, tokens = max(passes, key=lambda one: one[0])
    n, begins = len(tokens), prompt.shape[1]
    seen = (prompt[0] == tiny._image_token).cpu().numpy()
    logprobs = logits.log_softmax(-1).numpy()
    heads = np.zeros((len(output.attentions), output.attentions[0].shape[1], len(HEADS)))
    previous = np.full((len(heads), n), np.nan)
    for layer, weights in enumerate(output.attentions):
        looks = weights[0].double().cpu().numpy()
        for head, of in enumerate(looks):
            says = [of[begins - 1 + t] for t in range(n)]
            on_image = [w[:begins][seen] for w in says]
            heads[layer, head, 0] = np.mean([w.sum() for w in on_image])
            heads[layer, head, 1] = np.mean([w[:begins][~seen].sum() for w in says])
            heads[layer, head, 2] = np.mean([w[begins:].sum() for w in says])
            shares = [w / w.sum() for w in on_image]
            heads[layer, head, 3] = np.mean([-(p * np.log(p)).sum() / np.log(len(p)) for p in shares])
            read = [of[begins + t] for t in range(n)]
            ratios = [(w[:begins].mean(), w[begins : begins + t + 1].mean()) for t, w in enumerate(read)]
            heads[layer, head, 4] = np.mean([c / (c + new) for c, new in ratios])
        before = [[of[begins + t, begins + t] for t in range(n - 1)] for of in looks]
        if n > 1:
            previous[layer, 1:] = max(before, key=np.mean)
    deepest = output.hidden_states[-1][0].double().cpu().numpy()
    middle = output.hidden_states[round((len(output.hidden_states) - 1) / 2)][0].double().cpu().numpy()
    raw = logits.numpy()
    columns = {
        "logprob": logprobs[np.arange(n), tokens],
        "entropy": -(np.exp(logprobs) * logprobs).sum(-1),
        "uniform_divergence": -logprobs.mean(-1) - np.log(logprobs.shape[1]),
        "free_energy": np.log(np.exp(raw).sum(-1)),
        "logit": raw[np.arange(n), tokens],
        "top1": logprobs.max(-1),
        "top3": np.sort(logprobs, axis=-1)[:, -3],
    }
    states = {"question": deepest[-n - 1], "first": deepest[-n], "last": deepest[-1], "mean": deepest[-n:].mean(0)}
    return {"heads": heads, "previous": previous, "columns": columns, "states": states, "draw": middle[-1]}


@pytest.mark.framework
def test_arrays_are_those_of_a_plain_pass_whatever_stands_beside_them(tiny: Any) -> None:
    asked = [conversation("what is in the image?", "red"), conversation("is it large?", "blue")]
    texts = ["a red circle", "no"]
    together = tiny.inside(asked, texts, frozenset(PARTS))
    batch = tiny.inside(asked, texts, frozenset({"states", "logits", "draws"}))
    for turns, text, found, other in zip(asked, texts, together, batch, strict=True):
        assert found.keys() == {name for names in ARRAYS.values() for name in names}
        expected = by_hand(tiny, turns, text)
        np.testing.assert_allclose(found["heads"], expected["heads"], atol=1e-4)
        np.testing.assert_allclose(found["previous"], expected["previous"], atol=1e-4)
        np.testing.assert_allclose(found["image_shares"].mean(), expected["heads"][..., 0].mean(), atol=1e-4)
        for one in (found, other):
            for name, column in expected["columns"].items():
                np.testing.assert_allclose(one["logits"][:, LOGITS.index(name)], column, atol=1e-3, err_msg=name)
            for place, of in expected["states"].items():
                at = one["states"][-1, PLACES.index(place)].astype(float)
                np.testing.assert_allclose(at, of, rtol=1e-3, atol=1e-3)
            np.testing.assert_allclose(one["draw_states"].astype(float), expected["draw"], rtol=1e-3, atol=1e-3)
            np.testing.assert_allclose(one["draw_logits"], one["logits"].mean(0), atol=1e-5)
    assert tiny._model.config._attn_implementation == "sdpa"
    without = [{"role": "user", "content": [{"type": "text", "text": "Say."}]}]
    [blind, empty] = tiny.inside([without, without], ["no", ""], frozenset({"attention"}))
    assert np.isnan(blind["heads"][..., 0]).all()
    assert not np.isnan(blind["heads"][..., [1, 2, 4]]).any()
    assert isinstance(empty, str)


@pytest.mark.framework
def test_sentences_have_the_states_of_their_tokens(tiny: Any) -> None:
    """A text has the states of its first sentence whatever comes after, as nobody looks ahead."""
    asked = conversation("what is in the image?", "red")
    first, whole = "the lesion is round.", "the lesion is round. it is in the upper left. "
    parts = frozenset({"states", "sentences"})
    [one, two, three] = tiny.inside([asked] * 3, [first, whole, f" {whole}"], parts)
    assert one["sentence_spans"].tolist() == [[0, len(first)]]
    assert [whole[int(a) : int(b)] for a, b in two["sentence_spans"]] == [first, "it is in the upper left."]
    assert one["sentence_states"].shape == (1, *one["states"].shape[:1], len(SENTENCE_PLACES), one["states"].shape[-1])
    for i, place in enumerate(SENTENCE_PLACES):
        np.testing.assert_array_equal(one["sentence_states"][0, :, i], one["states"][:, PLACES.index(place)])
    same, other = (two["sentence_states"][k].astype(float) for k in (0, 1))
    np.testing.assert_allclose(same, one["sentence_states"][0].astype(float), rtol=5e-3, atol=5e-3)
    assert np.abs(other - same).max() > 0.1
    assert three["sentence_spans"].tolist() == (two["sentence_spans"] + 1).tolist()


# --- what is kept ----------------------------------------------------------------------------------------------------


def test_arrays_come_back_and_damaged_ones_do_not(tmp_path: Path) -> None:
    states = np.random.default_rng(0).normal(size=(3, len(PLACES), 8)).astype(np.float16)
    logits = np.arange(6, dtype=np.float32).reshape(2, 3)
    with InsideStore(tmp_path) as store:
        store.put({"a": {"states": states}, "b": {"states": states + 1, "logits": logits}})
        store.put({"a": {"logits": logits[:0]}})
    with InsideStore(tmp_path) as store:
        np.testing.assert_array_equal(store.get("a")["states"], states)
        assert store.get("a")["logits"].shape == (0, 3)
        assert store.names("b") == {"states", "logits"}
        assert store.get("b", frozenset({"logits"})).keys() == {"logits"}
        assert store.get("c") == {}
    [file] = tmp_path.glob("*.bin")
    content = bytearray(file.read_bytes())
    content[5] ^= 1
    file.write_bytes(content)
    with InsideStore(tmp_path) as store:
        assert "states" not in store.get("a")
        np.testing.assert_array_equal(store.get("b")["states"], states + 1)
    file.write_bytes(content[:100])
    with InsideStore(tmp_path) as store:
        assert store.get("b") == {}


class Looked(FakeModel):
    """Arrays that say whose they are: the number of characters of the text."""

    looks = 0

    def inside(self, messages: list[Any], texts: list[str], parts: frozenset[str]) -> list[Any]:
        self.looks += 1
        arrays = [{n: np.full(2, len(text)) for part in parts for n in ARRAYS[part]} for text in texts]
        return ["no picture" if "noisy" in text else array for text, array in zip(texts, arrays, strict=True)]


def test_all_parts_of_a_document_stand_together_and_are_looked_at_once(tmp_path: Path) -> None:
    model = Looked(lambda draw: Answer(f"{draw.draw.condition} {draw.draw.index}", -0.5, 2))
    for _ in range(2):
        lines = generate_samples(model, requests(2, tmp_path, inside="all"))
        assert model.looks == 1 + 2  # all baseline answers, the draws of each
    [folder] = {file.parent for file in tmp_path.rglob("inside-*.bin")}
    with InsideStore(folder) as store:
        for line in lines:
            answers = AnswerSet.from_json(line)
            found = store.get(inside_key("task", model_key("m"), answers.id, answers.baseline.text))
            assert found.keys() == {name for names in ARRAYS.values() for name in names}
            assert set(found["states"].tolist()) == {len(answers.baseline.text)}
            assert found["draw_states"].tolist() == [[len(a.text)] * 2 for a in answers.clean]
