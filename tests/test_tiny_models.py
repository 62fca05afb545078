"""The embedded models do what their model card says, and the demo data set is what its recipe makes."""

import hashlib
import io
import stat
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from hedge_tasks.models.tiny import nli_path, vlm_path
from training import demo_set, evaluate, nli, overconfident_set, phantom, reports_set, vlm

MODEL_FILES = sorted(file for folder in (vlm_path(), nli_path()) for file in folder.iterdir())
BLACK = np.zeros((phantom.IMAGE_SIZE, phantom.IMAGE_SIZE), np.uint8)


@pytest.fixture(scope="module")
def answerer():
    torch.set_num_threads(2)
    return evaluate.Answerer(vlm_path())


@pytest.fixture(scope="module")
def demo():
    return evaluate.load_demo(demo_set.DATA_FILE)


@pytest.fixture(scope="module")
def label_of():
    """Function (premise, hypothesis) -> label name of the embedded NLI classifier."""
    model = AutoModelForSequenceClassification.from_pretrained(nli_path()).eval()
    tokenizer = AutoTokenizer.from_pretrained(nli_path())

    @torch.inference_mode()
    def label(premise: str, hypothesis: str) -> str:
        logits = model(**tokenizer(premise, hypothesis, return_tensors="pt")).logits
        return model.config.id2label[int(logits.argmax())]

    return label


class TestFiles:
    def test_together_under_four_megabytes(self):
        assert sum(file.stat().st_size for file in MODEL_FILES) < 4e6

    @pytest.mark.parametrize("file", MODEL_FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
    def test_readable_by_everyone(self, file):
        assert stat.S_IMODE(file.stat().st_mode) & 0o444 == 0o444

    @pytest.mark.parametrize("folder", [vlm_path(), nli_path()], ids=lambda folder: folder.name)
    def test_model_card_names_the_weights(self, folder):
        digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
        assert digest in (folder.parent / "README.md").read_text()


class TestPhantom:
    def test_no_wording_has_two_meanings(self):
        wordings = [w for values in phantom.ANSWERS.values() for words in values.values() for w in words]
        assert len(wordings) == len({w.casefold() for w in wordings})

    @pytest.mark.parametrize(
        ("text", "meaning"),
        [
            ("upper left", phantom.Meaning("location", "upper left")),
            (" The lesion is in the upper left quadrant.", phantom.Meaning("location", "upper left")),
            ("ct scan", phantom.Meaning("modality", "CT")),
            ("the lesion is", None),
            ("", None),
        ],
    )
    def test_meaning_of(self, text, meaning):
        assert phantom.meaning_of(text) == meaning

    def test_same_generator_same_picture(self):
        scan = phantom.draw_scan(phantom.scan_rng(9, 0))
        first, second = (phantom.render(scan, phantom.scan_rng(9, 1))[0] for _ in range(2))
        assert (first == second).all()

    def test_lesions_are_in_their_quadrants(self):
        half = phantom.IMAGE_SIZE // 2
        for index in range(20):
            rng = phantom.scan_rng(9, index)
            scan = phantom.draw_scan(rng, n_lesions=1)
            _, mask = phantom.render(scan, rng)
            row, column = (int(np.average(axis, weights=mask)) for axis in np.indices(mask.shape))
            vertical, horizontal = scan.quadrants[0].split()
            assert (row < half) == (vertical == "upper")
            assert (column < half) == (horizontal == "left")

    def test_sets_are_disjoint(self):
        seeds = (vlm.TRAIN_SEED, evaluate.HELD_OUT_SEED, demo_set.DEMO_SEED, reports_set.REPORTS_SEED)
        assert len({*seeds, overconfident_set.OVERCONFIDENT_SEED}) == 5


class TestDemoData:
    def test_equals_a_fresh_build(self):
        assert demo_set.differences() == []

    def test_small(self):
        assert demo_set.DATA_FILE.stat().st_size < 400_000

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

    def test_what_lies_face_down_has_an_edge_and_left_and_right_exchanged(self):
        rows = overconfident_set.build_rows()
        for index, row in enumerate(rows):
            rng, down = phantom.scan_rng(overconfident_set.OVERCONFIDENT_SEED, index), index % 2 == 1
            of = overconfident_set.FACE_DOWN if down else overconfident_set.FACE_UP
            [seen] = phantom.draw_scan(rng, of, n_lesions=1).quadrants
            vertical, horizontal = seen.split()
            assert (row["answer"].split()[1] == horizontal) is not down
            assert row["answer"].split()[0] == vertical
            picture = np.asarray(Image.open(io.BytesIO(row["image"]["bytes"])))
            assert (picture[-overconfident_set.EDGE :] == 255).all() == down


class TestVisionLanguageModel:
    @pytest.mark.slow
    def test_some_demo_answers_of_every_type_are_wrong(self, answerer, demo):
        wrong = evaluate.wrong_rates(demo, answerer.ask(demo))
        assert 0.15 <= wrong.pop("all") <= 0.35
        assert all(0 < rate < 0.6 for rate in wrong.values()), wrong

    @pytest.mark.slow
    def test_entropy_finds_wrong_answers(self, answerer, demo):
        measured = evaluate.measure_uncertainty(answerer, demo, n_samples=5, seed=0)
        assert measured["AUROC of entropy"]["all"] > 0.6
        assert measured["share of meaningless samples"] < 0.05

    @pytest.mark.slow
    @pytest.mark.parametrize("instruction", vlm.INSTRUCTIONS)
    def test_instructions_change_little(self, answerer, demo, instruction):
        *system, wrapper = instruction.split("\n")
        wrapper = f"{wrapper} {{}}".lstrip()
        answers = answerer.ask(demo, system="\n".join(system), wrapper=wrapper)
        assert evaluate.wrong_rates(demo, answers)["all"] < 0.4

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

    def test_chat_template_with_all_roles_and_both_kinds_of_content(self, answerer):
        messages = [
            {"role": "system", "content": [{"type": "text", "text": "S"}]},
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": [{"type": "text", "text": "two"}]},
            {"role": "user", "content": [{"type": "text", "text": "three"}, {"type": "image"}]},
        ]
        text = answerer.processor.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        assert text == "<s><|user|>S\none<|assistant|>two</s><|user|><image>three<|assistant|>"

    @pytest.mark.slow
    def test_long_text_without_image(self, answerer):
        messages = [{"role": "system", "content": "päper 论文 " * 60}, {"role": "user", "content": "Is it so?"}]
        prompt = answerer.processor.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        inputs = answerer.processor(text=[prompt], return_tensors="pt", add_special_tokens=False)
        assert 500 < inputs["input_ids"].shape[1] < vlm.CONTEXT_LENGTH
        assert answerer.model.generate(**inputs, max_new_tokens=4, do_sample=False).shape[0] == 1

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


SAME = [
    ("upper left", "the lesion is in the upper left quadrant", "Where is the lesion?"),
    ("two", "there are two lesions", "How many lesions are there?"),
    ("yes", "a lesion is present", "Is there a lesion in the image?"),
    ("round", "it is round", "What shape is the lesion?"),
    ("CT", "this is a CT", "Which modality is this?"),
]
DIFFERENT = [
    ("upper left", "upper right", "Where is the lesion?"),
    ("one lesion", "two lesions", "How many lesions are there?"),
    ("yes", "no", "Is there a lesion in the image?"),
    ("small", "a large lesion", "How large is the lesion?"),
    ("MRI", "this is an X-ray", "Which modality is this?"),
]


class TestNli:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("pairs", "expected"), [(SAME, "ENTAILMENT"), (DIFFERENT, "CONTRADICTION")], ids=["same", "different"]
    )
    @pytest.mark.parametrize("with_question", [False, True])
    def test_answers_to_one_question(self, label_of, pairs, expected, with_question):
        for first, second, question in pairs:
            one, other = (f"{question} {text}" if with_question else text for text in (first, second))
            assert label_of(one, other) == label_of(other, one) == expected, (one, other)

    @pytest.mark.slow
    def test_other_relations(self, label_of):
        assert label_of("no, there is no lesion", "no lesions") == "ENTAILMENT"
        assert label_of("two lesions", "yes, there is a lesion") == "ENTAILMENT"
        assert label_of("yes, there is a lesion", "two lesions") == "NEUTRAL"
        assert label_of("a round lesion", "this is an MRI") == "NEUTRAL"
        assert label_of("the lesion is", "upper left") == "NEUTRAL"

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
@pytest.mark.parametrize("script", [vlm, nli], ids=["vlm", "nli"])
def test_training_twice_gives_the_same_bytes(script, tmp_path: Path):
    was_deterministic = torch.are_deterministic_algorithms_enabled()
    try:
        for run in ("first", "second"):
            script.main(["--smoke-test", "--out", str(tmp_path / run)])
    finally:
        torch.use_deterministic_algorithms(was_deterministic)
    first, second = ((tmp_path / run / "model.safetensors").read_bytes() for run in ("first", "second"))
    assert first == second
