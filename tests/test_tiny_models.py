"""The embedded models do what their model card says, and the demo data set is what its recipe makes."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from hedge_tasks.models.tiny import nli_path, vlm_path
from training import demo_set, evaluate, nli, overconfident_set, phantom

BLACK = np.zeros((phantom.IMAGE_SIZE, phantom.IMAGE_SIZE), np.uint8)


@pytest.fixture(scope="module")
def answerer():
    torch.set_num_threads(2)
    return evaluate.Answerer(vlm_path())


@pytest.fixture(scope="module")
def demo():
    return evaluate.load_demo(demo_set.DATA_FILE)


class TestFiles:
    @pytest.mark.parametrize("folder", [vlm_path(), nli_path()], ids=lambda folder: folder.name)
    def test_model_card_names_the_weights(self, folder):
        digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
        assert digest in (folder.parent / "README.md").read_text()


class TestDemoData:
    def test_equals_a_fresh_build(self):
        assert demo_set.differences() == []

    def test_all_types_equally_often(self, demo):
        assert len(demo) == 120
        assert {t: sum(i.question_type == t for i in demo) for t in phantom.QUESTION_TYPES} == dict.fromkeys(
            phantom.QUESTION_TYPES, 20
        )


class TestOverconfidentData:
    def test_equals_a_fresh_build(self):
        rows = overconfident_set.build_rows()
        assert demo_set.differences(overconfident_set.DATA_FILE, rows) == []
        assert overconfident_set.DATA_FILE.stat().st_size < 300_000


class TestVisionLanguageModel:
    @pytest.mark.slow
    def test_some_demo_answers_of_every_type_are_wrong(self, answerer, demo):
        wrong = evaluate.wrong_rates(demo, answerer.ask(demo))
        assert 0.15 <= wrong.pop("all") <= 0.35
        assert all(0 < rate < 0.6 for rate in wrong.values()), wrong


class TestNli:
    @pytest.mark.slow
    def test_accuracy_on_held_out_pairs(self):
        model = AutoModelForSequenceClassification.from_pretrained(nli_path()).eval()
        tokenizer = AutoTokenizer.from_pretrained(nli_path())
        assert nli.accuracy(nli.confusion(model, tokenizer, nli.held_out_pairs(500))) > 0.97


@pytest.mark.slow
def test_training_twice_gives_the_same_bytes(tmp_path: Path):
    was_deterministic = torch.are_deterministic_algorithms_enabled()
    try:
        for run in ("first", "second"):
            nli.main(["--smoke-test", "--out", str(tmp_path / run)])
    finally:
        torch.use_deterministic_algorithms(was_deterministic)
    first, second = ((tmp_path / run / "model.safetensors").read_bytes() for run in ("first", "second"))
    assert first == second
