"""The embedded models do what their model card says, and the demo data set is what its recipe makes."""

import hashlib
import stat
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from hedge_tasks.models.tiny import nli_path, vlm_path
from training import demo_set, evaluate, nli, overconfident_set, phantom, vlm

MODEL_FILES = sorted(file for folder in (vlm_path(), nli_path()) for file in folder.iterdir())
BLACK = np.zeros((phantom.IMAGE_SIZE, phantom.IMAGE_SIZE), np.uint8)


@pytest.fixture(scope="module")
def answerer():
    torch.set_num_threads(2)
    return evaluate.Answerer(vlm_path())


@pytest.fixture(scope="module")
def demo():
    return evaluate.load_demo(demo_set.DATA_FILE)


class TestFiles:
    @pytest.mark.parametrize("file", MODEL_FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
    def test_readable_by_everyone(self, file):
        assert stat.S_IMODE(file.stat().st_mode) & 0o444 == 0o444

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

    @pytest.mark.slow
    def test_an_instruction_changes_little(self, answerer, demo):
        instruction = max(vlm.INSTRUCTIONS, key=len)
        *system, wrapper = instruction.split("\n")
        wrapper = f"{wrapper} {{}}".lstrip()
        answers = answerer.ask(demo[::3], system="\n".join(system), wrapper=wrapper)
        assert evaluate.wrong_rates(demo[::3], answers)["all"] < 0.4

    def test_training_saw_what_the_chat_template_writes(self, answerer):
        packer = vlm.Packer(answerer.processor.tokenizer)
        messages = [
            {"role": "system", "content": "Be brief."},
            {
                "role": "user",
                "content": [{"type": "text", "text": "Question: Where?"}, {"type": "image", "image": BLACK}],
            },
        ]
        ids = answerer.processor.apply_chat_template(
            messages, add_generation_prompt=True, tokenize=True, return_dict=True, return_tensors="pt"
        )["input_ids"][0]
        prefix = vlm.BOS + vlm.USER + vlm.IMAGE * vlm.N_PATCHES + "Be brief.\nQuestion:"
        assert ids.tolist() == packer.encode(prefix) + packer.encode(" Where?") + packer.encode(vlm.ASSISTANT)

    @pytest.mark.slow
    def test_a_question_among_others_is_answered_as_if_alone(self, answerer):
        """The packed sequences of training give the same hidden states as a plain prompt."""
        rng = np.random.default_rng(0)
        packed = vlm.Packer(answerer.processor.tokenizer).pack([phantom.draw_scan(rng, n_lesions=1)], rng)
        pixels = vlm.normalize(torch.rand(1, phantom.IMAGE_SIZE, phantom.IMAGE_SIZE))
        turn = packed.attention_mask[0, 0, -1]  # what the last token sees: the prefix and its own turn
        base = answerer.model.model
        with torch.inference_mode():
            together = base(
                input_ids=packed.input_ids,
                pixel_values=pixels,
                attention_mask=packed.attention_mask,
                position_ids=packed.position_ids,
            ).last_hidden_state[0, -1]
            alone = base(input_ids=packed.input_ids[:, turn], pixel_values=pixels).last_hidden_state[0, -1]
        torch.testing.assert_close(together, alone, atol=1e-4, rtol=1e-4)


class TestNli:
    @pytest.mark.slow
    def test_accuracy_on_held_out_pairs(self):
        model = AutoModelForSequenceClassification.from_pretrained(nli_path()).eval()
        tokenizer = AutoTokenizer.from_pretrained(nli_path())
        assert nli.accuracy(nli.confusion(model, tokenizer, nli.held_out_pairs(500))) > 0.97

    def test_relation_is_consistent(self):
        meanings = [None, *{meaning for _, meaning in phantom.all_answers()}]
        for one in meanings:
            for other in meanings:
                contradicts = nli.relation(one, other) == nli.CONTRADICTION
                assert contradicts == (nli.relation(other, one) == nli.CONTRADICTION)


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
