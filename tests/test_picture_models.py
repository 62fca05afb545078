"""Image generators and checkers that rest on models, on tiny ones with random weights, against calculations by hand."""

from __future__ import annotations

import json
import math
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from openai_server import Response, serve
from picture_models import save_clip, save_grounding_dino, save_owlv2, save_siglip, save_stable_diffusion
from PIL import Image, ImageDraw, ImageFont

from hedge_tasks.errors import ConfigError, HedgeError
from hedge_tasks.llm.loading import ModelUnavailableError
from hedge_tasks.making.pictures.base import Order, PictureQuestion
from hedge_tasks.making.pictures.checkers import checker_from
from hedge_tasks.making.pictures.checkers.boxes import Box, distinct
from hedge_tasks.making.pictures.generators import generator_from
from hedge_tasks.making.pictures.inspection import inspect
from hedge_tasks.making.pictures.specs import model_name
from hedge_tasks.making.pictures.store import PictureStore, StoredPicture
from hedge_tasks.models.tiny import vlm_path

PICTURES = [Image.new("RGB", (40, 30), "red"), Image.new("RGB", (30, 50), "blue"), Image.new("RGB", (20, 20), "green")]


def noise(seed: int, side: int = 64) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (side, side, 3), dtype=np.uint8))


# --- diffusers --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_diffusion_model_paints_each_picture_by_its_own_seed(tmp_path: Path) -> None:
    pytest.importorskip("diffusers")
    folder = save_stable_diffusion(tmp_path / "sd")
    generator = generator_from(f"diffusers:{folder},steps=2,size=32,guidance=3.0")
    orders = [Order(str(i), f"a house {i}", i, {}) for i in range(3)]
    with PictureStore(tmp_path / "one") as one, PictureStore(tmp_path / "other") as other:
        alone = one.generate(generator, orders, batch=1)
        together = other.generate(generator, orders[::-1], batch=3)[::-1]
        reseeded = other.generate(generator, [Order("0", "a house 0", 9, {})])
    assert alone == together
    assert len({p.digest for p in [*alone, *reseeded] if isinstance(p, StoredPicture)}) == 4
    images = [p.open() for p in alone if isinstance(p, StoredPicture)]
    assert {image.size for image in images} == {(32, 32)}
    # The reference: one picture by the pipeline itself.
    import diffusers

    pipeline = diffusers.StableDiffusionPipeline.from_pretrained(folder)
    noise = torch.Generator("cpu").manual_seed(1)
    call = {"num_inference_steps": 2, "width": 32, "height": 32, "guidance_scale": 3.0}
    [expected] = pipeline(prompt="a house 1", generator=noise, **call).images
    assert np.abs(np.asarray(expected, int) - np.asarray(images[1], int)).max() <= 1
    # Other weights in a subfolder are another generator.
    before = generator.name
    copied = shutil.copytree(folder, tmp_path / "copy" / "sd")
    assert generator_from(f"diffusers:{copied},steps=2,size=32,guidance=3.0").name == before
    config = copied / "unet" / "config.json"
    config.write_text(config.read_text() + " ")
    assert generator_from(f"diffusers:{copied},steps=2,size=32,guidance=3.0").name != before


def test_what_decides_the_pictures_of_a_diffusion_model_is_in_its_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import huggingface_hub

    commits = {None: "a" * 40, "v1": "b" * 40}
    monkeypatch.setattr(
        huggingface_hub,
        "try_to_load_from_cache",
        lambda model, file, revision: str(tmp_path / "snapshots" / commits[revision] / file),
    )
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    cpu = generator_from("diffusers:org/model,steps=4").name
    assert cpu == f"diffusers:org/model,steps=4,dtype=float32,revision={'a' * 40}"
    assert generator_from("diffusers:org/model,steps=4,dtype=float32").name == cpu
    assert generator_from("diffusers:org/model,steps=4,revision=v1").name == cpu.replace("a" * 40, "b" * 40)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert generator_from("diffusers:org/model,steps=4").name == cpu.replace("float32", "bfloat16")
    loaded: dict[str, Any] = {}

    def load(kind: str, model: str, **loading: Any) -> Any:
        loaded.update(loading)
        return SimpleNamespace(set_progress_bar_config=lambda **_: None)

    monkeypatch.setattr("hedge_tasks.perturb.induction_image.load_diffusers", load)
    generator: Any = generator_from("diffusers:org/model,revision=v1")
    assert generator._pipeline is not None
    assert loaded == {"torch_dtype": torch.bfloat16, "revision": "b" * 40}


# --- CLIP and SigLIP --------------------------------------------------------------------------------------------------


QUESTIONS = [
    PictureQuestion("a red house", "statement", {"instead": ["a blue house", "a cat"]}),
    PictureQuestion("a dog", "existence", {"object": "dog"}),
    PictureQuestion("two dogs", "count", {"object": "dog", "count": 2}),
]


def similarities(folder: str, image: Image.Image, texts: list[str], padding: Any) -> torch.Tensor:
    """Cosines, computed from the two towers one after the other."""
    from transformers import AutoModel, AutoProcessor

    model, processor = AutoModel.from_pretrained(folder).eval(), AutoProcessor.from_pretrained(folder)
    with torch.inference_mode():
        pixels = processor(images=[image], return_tensors="pt")
        words = processor(text=texts, padding=padding, truncation=True, return_tensors="pt")
        towers = [model.get_image_features(**pixels), model.get_text_features(**words)]
        image_row, text_rows = (torch.nn.functional.normalize(t.pooler_output.double(), dim=-1) for t in towers)
        cosines: torch.Tensor = (text_rows @ image_row[0]) * model.logit_scale.exp()
        return cosines + getattr(model, "logit_bias", torch.zeros(1))


@pytest.mark.slow
def test_clip_is_weighed_against_other_texts(tmp_path: Path) -> None:
    folder = save_clip(tmp_path / "clip")
    checker = checker_from(f"clip:{folder}")
    scores = checker.check(PICTURES, QUESTIONS)
    logits = similarities(folder, PICTURES[0], ["a red house", "a blue house", "a cat"], True)
    assert scores[0] == pytest.approx(float(torch.exp(logits[0]) / torch.exp(logits).sum()), abs=1e-5)
    logits = similarities(folder, PICTURES[1], ["a dog", "a picture of something else"], True)
    assert scores[1] == pytest.approx(1 / (1 + math.exp(float(logits[1] - logits[0]))), abs=1e-5)
    assert scores[2] is None
    assert checker.check(PICTURES[2:], QUESTIONS[2:]) == [None]
    other = checker_from(f"clip:{folder},contrast=a thing")
    assert other.name == f"{checker.name},contrast=a thing"
    assert other.check(PICTURES[1:2], QUESTIONS[1:2]) != [scores[1]]


@pytest.mark.slow
def test_siglip_is_taken_as_a_probability(tmp_path: Path) -> None:
    folder = save_siglip(tmp_path / "siglip")
    scores = checker_from(f"clip:{folder}").check(PICTURES, QUESTIONS)
    [logit] = similarities(folder, PICTURES[1], ["a dog"], "max_length")
    assert scores[1] == pytest.approx(1 / (1 + math.exp(-float(logit))), abs=1e-5)
    logits = similarities(folder, PICTURES[0], ["a red house", "a blue house", "a cat"], "max_length")
    assert scores[0] == pytest.approx(float(logits.softmax(0)[0]), abs=1e-5)


# --- detectors --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("save", [save_owlv2, save_grounding_dino])
def test_detectors_give_boxes_in_pixels(tmp_path: Path, save: Any) -> None:
    folder = save(tmp_path / "detector")
    low = 0.001
    detector: Any = checker_from(f"detector:{folder},threshold={low},overlap=0.5")
    pictures, names = [*PICTURES, Image.new("RGB", (40, 30), "white")], ["dog", "cat", "dog", "a red cat"]
    together = detector._detect(pictures, names)
    alone = [detector._detect([p], [n])[0] for p, n in zip(pictures, names, strict=True)]
    for many, one, picture in zip(together, alone, pictures, strict=True):
        assert len(many) == len(one) > 0
        for a, b in zip(many, one, strict=True):
            assert (a.left, a.top, a.score) == pytest.approx((b.left, b.top, b.score), abs=1e-4)
        # The scale is that of the picture: OWLv2 pads it to a square.
        side = max(picture.size)
        assert all(-side < x < 2 * side for box in many for x in (box.left, box.top, box.right, box.bottom))
        assert max(box.right for box in many) > 2
    objects = len(distinct(together[0]))
    counts = [PictureQuestion("dogs", "count", {"object": "dog", "count": n}) for n in (objects, objects + 1)]
    assert detector.check(PICTURES[:1] * 2, counts) == [1.0, 0.0]
    certain = checker_from(f"detector:{folder},threshold=1.0")
    assert certain.check(PICTURES[:1], [PictureQuestion("a dog", "existence", {"object": "dog"})]) == [0.0]
    assert certain.check(PICTURES[:1], [PictureQuestion("a sentence", "statement", {})]) == [None]


@pytest.mark.slow
def test_the_boxes_of_owlv2_are_those_of_its_outputs(tmp_path: Path) -> None:
    from transformers import AutoProcessor, Owlv2ForObjectDetection

    folder = save_owlv2(tmp_path / "owl")
    detector: Any = checker_from(f"detector:{folder},threshold=0.0")
    [found] = detector._detect(PICTURES[:1], ["dog"])
    model = Owlv2ForObjectDetection.from_pretrained(folder).eval()
    inputs = AutoProcessor.from_pretrained(folder)(
        images=PICTURES[:1], text=[["a photo of dog"]], truncation=True, return_tensors="pt"
    )
    with torch.inference_mode():
        outputs = model(**inputs)
    # Centre and size as shares of the padded square, whose side is the longer one of the picture.
    x, y, width, height = (outputs.pred_boxes[0, 0] * 40).tolist()
    expected = Box(x - width / 2, y - height / 2, x + width / 2, y + height / 2)
    assert (found[0].left, found[0].top, found[0].right, found[0].bottom) == pytest.approx(
        (expected.left, expected.top, expected.right, expected.bottom), abs=1e-3
    )
    assert found[0].score == pytest.approx(float(outputs.logits[0, 0].sigmoid().max()), abs=1e-5)


def test_stub_boxes_become_scores_by_question(monkeypatch: pytest.MonkeyPatch) -> None:
    detector: Any = checker_from("detector:nowhere,overlap=0.5")
    there = {"dog": [Box(0, 0, 10, 10, 0.9), Box(1, 0, 11, 10, 0.8), Box(50, 0, 60, 10, 0.7)], "cat": []}
    asked: list[str] = []

    def detect(pictures: Any, names: list[str]) -> list[list[Box]]:
        asked.extend(names)
        return [there[name] for name in names]

    monkeypatch.setattr(detector, "_detect", detect)
    questions = [
        PictureQuestion("two dogs", "count", {"object": "dog", "count": 2}),  # two of three boxes are one dog
        PictureQuestion("a cat", "existence", {"object": "cat"}),
        PictureQuestion("a sentence", "statement", {}),
        PictureQuestion("a dog left of a cat", "relation", {"subject": "dog", "relation": "left of", "object": "cat"}),
    ]
    assert detector.check([PICTURES[0]] * 4, questions) == [1.0, 0.0, None, 0.0]
    assert asked == ["dog", "cat", "dog", "cat"]


# --- VQAScore ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_vqascore_is_the_models_own_probability_and_noise_is_held_back(tmp_path: Path) -> None:
    from transformers import AutoModelForImageTextToText, AutoProcessor

    checker = checker_from("vqascore:pretrained=package://hedge_tasks.models.tiny/vlm,batch_size=2")
    assert checker.name.startswith("vqascore:hedge_hf,pretrained=vlm@")
    assert checker.name == checker_from("vqascore:pretrained=package://hedge_tasks.models.tiny/vlm").name
    pictures = [noise(1), noise(2), Image.new("RGB", (64, 64))]
    statements = [PictureQuestion(text, "statement", {}) for text in ("a small mass", "an effusion", "nothing")]
    scores = checker.check(pictures, statements)
    # By hand: the model reads the conversation with each word at its end, and the words' tokens are multiplied.
    model = AutoModelForImageTextToText.from_pretrained(vlm_path(), dtype=torch.float32).eval()
    processor = AutoProcessor.from_pretrained(vlm_path())
    asked = "Does this figure show 'a small mass'? Please answer yes or no."
    turns = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": asked}]}]
    prompt = processor.apply_chat_template(turns, add_generation_prompt=True)
    likely = {}
    for word in ("Yes", "No"):
        spelled = []
        for blank in ("", " "):
            inputs = processor(text=[prompt], images=[pictures[0]], return_tensors="pt", add_special_tokens=False)
            tokens = processor.tokenizer(blank + word, add_special_tokens=False)["input_ids"]
            ids = torch.cat([inputs["input_ids"], torch.tensor([tokens])], dim=1)
            with torch.inference_mode():
                logits = model(input_ids=ids, pixel_values=inputs["pixel_values"]).logits[0].log_softmax(-1)
            start = ids.shape[1] - len(tokens)
            spelled.append(sum(float(logits[start + i - 1, token]) for i, token in enumerate(tokens)))
        likely[word] = math.exp(max(spelled))
    assert scores[0] == pytest.approx(likely["Yes"] / (likely["Yes"] + likely["No"]), abs=1e-3)
    with PictureStore(tmp_path) as store:
        verdicts = inspect(store, [checker], [StoredPicture.of(p) for p in pictures], [[s] for s in statements])
    assert {verdict.outcome for verdict in verdicts} == {"review"}


def forced_reply(body: dict[str, Any], odds: float) -> Any:
    """What vLLM's server says: the word at the end is the only token that has a log-probability."""
    word = body["messages"][-1]["content"]
    told = {"1": {"logprob": math.log(odds if word == "Yes" else 1 - odds), "decoded_token": word}}
    return {"choices": [{"message": {"content": "x"}, "finish_reason": "length"}], "prompt_logprobs": [None, told]}


def test_a_failed_forced_pass_is_asked_again_and_changes_no_neighbour(tmp_path: Path) -> None:
    odds, broken = {"a": 0.9, "b": 0.8, "c": 0.25}, {"a"}

    def reply(body: dict[str, Any]) -> Response:
        assert "prompt_logprobs" in body, "another definition of the score"
        name = next(name for name in odds if f"'{name}'" in json.dumps(body["messages"]))
        return (
            Response({"error": {"message": "no"}}, 400) if name in broken else Response(forced_reply(body, odds[name]))
        )

    pictures, asked = [StoredPicture.of(p) for p in PICTURES], [PictureQuestion(name, "statement", {}) for name in odds]
    with serve(reply) as url, PictureStore(tmp_path) as store:
        checker = checker_from(f"vqascore:adapter=hedge_openai,model=tiny,base_url={url},max_retries=0")
        first = store.check(checker, pictures, asked, batch=3)
        broken.clear()
        second = store.check(checker, pictures, asked, batch=3)
    assert ",by=forced," in checker.name
    assert first == [None, 0.8, 0.25]
    assert second == [0.9, 0.8, 0.25]
    assert store.scores_reused == 2


def test_a_server_without_forced_passes_is_told_apart(tmp_path: Path) -> None:
    plain = {"choices": [{"message": {"content": "x"}, "finish_reason": "length"}]}
    with serve(lambda body: Response(plain)) as url, PictureStore(tmp_path) as store:
        checker = checker_from(f"vqascore:adapter=hedge_openai,model=tiny,base_url={url},max_retries=0")
        with pytest.raises(HedgeError, match="give by=answer"):
            store.check(checker, [StoredPicture.of(PICTURES[0])], QUESTIONS[:1])
    assert store.scored == 0
    with pytest.raises(ConfigError, match="did you mean 'answer'"):
        checker_from("vqascore:adapter=hedge_openai,model=tiny,by=anser")


def test_vqascore_of_a_server_that_tells_no_given_words() -> None:
    answers = {"sure": ("Yes", 0.9), "unsure": ("No", 0.6), "vague": ("The figure is unclear", 0.5)}

    def reply(body: dict[str, Any]) -> Any:
        assert "prompt_logprobs" not in body
        shown = json.dumps(body["messages"])
        word, chance = next(answer for name, answer in answers.items() if f"'{name}'" in shown)
        tokens = [{"token": word, "logprob": math.log(chance), "bytes": list(word.encode())}]
        choice = {"message": {"content": word}, "finish_reason": "stop", "logprobs": {"content": tokens}}
        return {"choices": [choice]}

    with serve(lambda body: Response(reply(body))) as url:
        checker = checker_from(f"vqascore:adapter=hedge_openai,by=answer,model=tiny,base_url={url},max_retries=0")
        scores = checker.check(PICTURES, [PictureQuestion(name, "statement", {}) for name in answers])
    assert url not in checker.name
    assert ",by=answer," in checker.name
    assert scores[:2] == pytest.approx([0.9, 0.4], abs=1e-4)
    assert scores[2] is None


# --- reading ----------------------------------------------------------------------------------------------------------


def sign(text: str) -> Image.Image:
    image = Image.new("RGB", (360, 120), "white")
    ImageDraw.Draw(image).text((30, 20), text, "black", ImageFont.load_default(size=72))
    return image


def test_a_model_that_reads_is_compared_and_not_told(tmp_path: Path) -> None:
    bodies = []

    def reply(body: dict[str, Any]) -> str:
        bodies.append(json.dumps(body))
        return '{"text": "EXIT\\nkeep clear"}'

    words = [PictureQuestion("a sign", "text", {"text": t}) for t in ("exit", "EDIT")]
    with serve(reply) as url:
        checker = checker_from(f"ocr:model=reader,url={url},max_retries=0")
        scores = checker.check([sign("EXIT")] * 3, [*words, PictureQuestion("a dog", "existence", {"object": "dog"})])
    assert scores == [1.0, 0.75, None]
    assert len(bodies) == 2
    assert not any("exit" in body or "EDIT" in body for body in bodies)
    with serve(lambda body: "I cannot read this.") as url:
        assert checker_from(f"ocr:model=reader,url={url},max_retries=0").check([sign("EXIT")], words[:1]) == [None]


@pytest.mark.slow
def test_tesseract_reads_what_is_written(tmp_path: Path) -> None:
    pytest.importorskip("pytesseract")
    if shutil.which("tesseract") is None:
        pytest.skip("tesseract is not installed")
    checker = checker_from("ocr:engine=tesseract")
    asked = [PictureQuestion("a sign", "text", {"text": text}) for text in ("EXIT", "FISH", "EXIT")]
    right, wrong, none = checker.check([sign("EXIT"), sign("EXIT"), noise(0, 120)], asked)
    assert right == 1.0
    assert wrong is not None
    assert wrong < 0.85
    assert none is not None
    assert none < 0.85


@pytest.mark.slow
def test_rapidocr_reads_the_signs_that_are_drawn_by_code() -> None:
    pytest.importorskip("rapidocr_onnxruntime")
    from hedge_tasks.making.shale.drawing import draw

    checker = checker_from("ocr")
    drawn = draw("sign", {"color": "red", "answer": "EXIT"}, ground=1)
    asked = [PictureQuestion("a sign", "text", {"text": text}) for text in ("EXIT", "EDIT", "EXIT")]
    assert checker.check([drawn, drawn, noise(0, 64)], asked) == [1.0, 0.75, 0.0]


@pytest.mark.parametrize(
    ("module", "spec", "cure"),
    [
        ("pytesseract", "ocr:engine=tesseract", "apt install tesseract-ocr"),
        ("rapidocr_onnxruntime", "ocr", "hedge-tasks.ocr."),
    ],
)
def test_without_an_engine_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, module: str, spec: str, cure: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError, match=f"{cure}.*or take a model that reads"):
        checker_from(spec)


@pytest.mark.parametrize("spec", ["clip:/nowhere/at/all", "detector:/nowhere/at/all"])
def test_a_model_that_is_not_there_is_explained(spec: str) -> None:
    with pytest.raises(ModelUnavailableError, match=r"(?s)cannot load .* or give as `model` a local folder"):
        checker_from(spec).check(PICTURES[:1], [PictureQuestion("a dog", "existence", {"object": "dog"})])


def test_a_folder_is_named_by_its_content(tmp_path: Path) -> None:
    (tmp_path / "m" / "unet").mkdir(parents=True)
    (tmp_path / "m" / "config.json").write_text("{}")
    first = model_name(str(tmp_path / "m"))
    (tmp_path / "m" / "unet" / "weights").write_text("1")
    assert first.startswith("m@")
    assert model_name(str(tmp_path / "m")) != first
    assert model_name("org/model") == "org/model"
