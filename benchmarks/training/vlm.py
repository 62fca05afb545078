"""Train the embedded vision-language model on phantom scans.

    python -m training.vlm --out DIR

The model is an ordinary LLaVA: a CLIP vision tower, a two-layer projector, a Llama language model. Training counts
steps, not seconds, and everything random comes from one seed, so that a second run on the same machine gives the same
bytes.

Stage 1 teaches the vision tower to see: for every patch, is there a lesion, of which shape and size; for the image,
which modality. The labels come from the generator. Its heads are thrown away. Without it the language loss alone is too
weak a signal, and the model never learns where a lesion is.

Stage 2 teaches the whole model to answer. All questions of an image share one sequence: a block mask lets every
question see the image and itself, not the other questions, which is exactly what it sees when asked alone.
"""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from loguru import logger
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    CLIPImageProcessor,
    CLIPVisionConfig,
    LlamaConfig,
    LlavaConfig,
    LlavaForConditionalGeneration,
    LlavaProcessor,
    PreTrainedTokenizerFast,
)

from training import phantom
from training.optimizing import (
    decay_groups,
    make_deterministic,
    optimize,
    read_settings,
    save_half,
)

TRAIN_SEED = 1
"""Set number of the training scans, see `phantom.scan_rng`; others are in `evaluate.py` and `tasks/hedge_demo`."""

PATCH_SIZE = 16
GRID = phantom.IMAGE_SIZE // PATCH_SIZE
N_PATCHES = GRID**2
CONTEXT_LENGTH = 2048  # room for long system prompts and for texts of tasks that have no image
VOCABULARY_SIZE = 768
PIXEL_MEAN, PIXEL_STD = 0.45, 0.25
IGNORED = -100  # label of tokens that take no part in the loss

BOS, EOS, PAD, UNKNOWN = "<s>", "</s>", "<pad>", "<unk>"
IMAGE, USER, ASSISTANT = "<image>", "<|user|>", "<|assistant|>"

CHAT_TEMPLATE = """\
{%- macro text_of(content) -%}
  {%- if content is string -%}{{ content }}
  {%- else -%}{%- for part in content if part['type'] == 'text' -%}{{ part['text'] }}{%- endfor -%}
  {%- endif -%}
{%- endmacro -%}
{{- bos_token -}}
{%- set pending = namespace(system='') -%}
{%- for message in messages -%}
  {%- if message['role'] == 'system' -%}
    {%- set pending.system = pending.system + text_of(message['content']) + '\\n' -%}
  {%- elif message['role'] == 'assistant' -%}
    {{- '<|assistant|>' + text_of(message['content']) + eos_token -}}
  {%- else -%}
    {{- '<|user|>' -}}
    {%- if message['content'] is not string -%}
      {%- for part in message['content'] if part['type'] == 'image' -%}{{- '<image>' -}}{%- endfor -%}
    {%- endif -%}
    {{- pending.system + text_of(message['content']) -}}
    {%- set pending.system = '' -%}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|assistant|>' -}}{%- endif -%}
"""
"""Images first, then what the system said, then the user's text."""

INSTRUCTIONS = (
    "Question:",
    "Answer the question using a single word or phrase.\n",
    "Answer this question as concisely as possible based on the provided image:",
    "You are a medical image analysis expert.\n"
    "Answer this question as concisely as possible based on the provided image:",
    "You are a medical vision-language assistant. Given a medical image and a clinical question, provide only the "
    "minimal, clinically correct answer. Answers may be 'yes', 'no', or a short medically relevant label (e.g., "
    "modality, anatomy, finding). Do not generate full sentences, explanations, or extra text - only output exactly "
    "the expected label.\nQuestion:",
    "You are a medical image analysis expert; always respond in no more than a single sentence.\n"
    "Answer this question as concisely as possible based on the provided image:",
    "You are a medical image analysis expert. Given an image and a question, provide a concise and accurate response. "
    "The answer should be a short phrase, slightly longer than a single label if needed, but not a full grammatical "
    "sentence and without a period at the end. Avoid explanations or extra text - only give the short direct "
    "answer.\nQuestion:",
)
"""Texts in front of a question that the model learns to live with. They do not change what it answers."""

SUFFIXES = ("\nAnswer the question using a single word or phrase.", "\nAnswer briefly.")
"""Texts after a question."""


@dataclass(frozen=True)
class Settings:
    """Settings of the training. Steps, never seconds: the result must not depend on the machine's load."""

    seed: int = 0
    n_scans: int = 40_000
    vision_steps: int = 1600
    vision_batch: int = 64
    vision_lr: float = 2e-3
    steps: int = 3400
    batch: int = 48
    lr: float = 1.5e-3
    threads: int = 2

    def for_smoke_test(self) -> "Settings":
        """Return the same run, cut down to a few seconds."""
        return replace(self, n_scans=64, vision_steps=3, vision_batch=8, steps=3, batch=8)


# ----------------------------------------------------------------------------------------------- model and processor


def build_tokenizer() -> PreTrainedTokenizerFast:
    """Byte-level BPE: small, yet able to spell any text."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    questions = [q for wordings in phantom.QUESTIONS.values() for q in wordings]
    answers = [text for text, _ in phantom.all_answers()]
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY_SIZE,
        min_frequency=1,
        special_tokens=[PAD, BOS, EOS, UNKNOWN, IMAGE, USER, ASSISTANT],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    # Questions and answers first and often: they must be short. Each with a space in front too, as after a prompt.
    texts = [space + text for text in questions + answers for space in ("", " ")]
    bpe.train_from_iterator(texts * 4 + [*INSTRUCTIONS, *SUFFIXES], trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        bos_token=BOS,
        eos_token=EOS,
        pad_token=PAD,
        unk_token=UNKNOWN,
        extra_special_tokens={"image_token": IMAGE},
        padding_side="left",
        model_max_length=CONTEXT_LENGTH,
        clean_up_tokenization_spaces=False,
    )


def build_processor() -> LlavaProcessor:
    """Tokenizer, image preprocessing and chat template."""
    size = {"height": phantom.IMAGE_SIZE, "width": phantom.IMAGE_SIZE}
    image_processor = CLIPImageProcessor(
        size=size, do_center_crop=False, crop_size=size, image_mean=[PIXEL_MEAN] * 3, image_std=[PIXEL_STD] * 3
    )
    return LlavaProcessor(
        image_processor,
        build_tokenizer(),
        patch_size=PATCH_SIZE,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,  # CLIP's class token, which "default" then drops
        chat_template=CHAT_TEMPLATE,
    )


def build_model(tokenizer: PreTrainedTokenizerFast) -> LlavaForConditionalGeneration:
    """Build a LLaVA with random weights."""
    special_ids = {
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }
    vision = CLIPVisionConfig(
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=3,
        num_attention_heads=4,
        image_size=phantom.IMAGE_SIZE,
        patch_size=PATCH_SIZE,
        projection_dim=128,
    )
    text = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=CONTEXT_LENGTH,
        tie_word_embeddings=True,
        **special_ids,
    )
    config = LlavaConfig(
        vision_config=vision,
        text_config=text,
        image_token_index=tokenizer.convert_tokens_to_ids(IMAGE),
        image_seq_length=N_PATCHES,
        vision_feature_layer=-1,
        vision_feature_select_strategy="default",
        tie_word_embeddings=True,
    )
    model = LlavaForConditionalGeneration(config)
    model.generation_config.update(**special_ids)
    return model


# --------------------------------------------------------------------------------------------------------------- data


@dataclass(frozen=True)
class ScanSet:
    """Scans with their pictures, uint8 [n, size, size], and which patches show a lesion, bool [n, GRID, GRID]."""

    scans: tuple[phantom.Scan, ...]
    pictures: torch.Tensor
    lesion_patches: torch.Tensor

    def __len__(self) -> int:
        return len(self.scans)


_MIN_LESION_PIXELS = 6  # a patch counts as showing a lesion from this many pixels on


def draw_scan_set(n_scans: int, seed: int) -> ScanSet:
    """Scans 0..n_scans-1 of the set `seed`."""
    scans = []
    pictures = np.empty((n_scans, phantom.IMAGE_SIZE, phantom.IMAGE_SIZE), np.uint8)
    pixels = np.empty((n_scans, GRID, GRID), np.float32)
    for index in range(n_scans):
        rng = phantom.scan_rng(seed, index)
        scans.append(phantom.draw_scan(rng))
        pictures[index], mask = phantom.render(scans[-1], rng)
        pixels[index] = mask.reshape(GRID, PATCH_SIZE, GRID, PATCH_SIZE).sum((1, 3))
    return ScanSet(tuple(scans), torch.from_numpy(pictures), torch.from_numpy(pixels > _MIN_LESION_PIXELS))


def normalize(pictures: torch.Tensor) -> torch.Tensor:
    """Grey values in [0, 1], [n, size, size] -> what the image processor gives, [n, 3, size, size]."""
    return ((pictures - PIXEL_MEAN) / PIXEL_STD)[:, None].expand(-1, 3, -1, -1).contiguous()


def vary_light(pictures: torch.Tensor, share: float = 0.5) -> torch.Tensor:
    """Change brightness, contrast and noise of a `share` of the pictures. Grey values in [0, 1], [n, size, size]."""
    n = len(pictures)
    chosen = (torch.rand(n, 1, 1) < share).float()
    gain = 1 + chosen * (torch.rand(n, 1, 1) - 0.5) * 0.4
    offset = chosen * (torch.rand(n, 1, 1) - 0.5) * 0.3
    noise = chosen * torch.rand(n, 1, 1) * 0.08 * torch.randn_like(pictures)
    return (pictures * gain + offset + noise).clamp(0, 1)


def vary_pose(pictures: torch.Tensor, share: float = 0.5) -> torch.Tensor:
    """Turn (up to 8 degrees), shift and scale (up to 8 %) a `share` of the pictures, [n, size, size]."""
    n = len(pictures)
    strength = (torch.rand(n, 1) < share) * (torch.rand(n, 4) - 0.5) * 2
    angle, zoom = strength[:, 0] * math.radians(8), 1 + strength[:, 1] * 0.08
    shift = strength[:, 2:] * 0.16  # the picture is 2 wide in these coordinates
    cos, sin = zoom * torch.cos(angle), zoom * torch.sin(angle)
    affine = torch.stack([cos, -sin, shift[:, 0], sin, cos, shift[:, 1]], 1).view(n, 2, 3)
    grid = F.affine_grid(affine, [n, 1, *pictures.shape[1:]], align_corners=False)
    moved = F.grid_sample(pictures[:, None], grid, padding_mode="zeros", align_corners=False)[:, 0]
    untouched = (strength == 0).all(1)[:, None, None]
    return torch.where(untouched, pictures, moved)


@dataclass(frozen=True)
class Batch:
    """Scans of one step: pictures as grey values in [0, 1], half of all scans mirrored."""

    scans: list[phantom.Scan]
    pictures: torch.Tensor
    lesion_patches: torch.Tensor


def draw_batch(data: ScanSet, size: int, rng: np.random.Generator) -> Batch:
    """`size` random scans, each mirrored with probability 1/2 (what is asked about changes with it)."""
    index = rng.integers(0, len(data), size)
    mirror = rng.random(size) < 0.5
    scans = [phantom.mirrored(data.scans[i]) if flip else data.scans[i] for i, flip in zip(index, mirror, strict=True)]
    flip = torch.from_numpy(mirror)[:, None, None]
    pictures = data.pictures[index].float() / 255
    patches = data.lesion_patches[index]
    return Batch(scans, torch.where(flip, pictures.flip(2), pictures), torch.where(flip, patches.flip(2), patches))


# ------------------------------------------------------------------------------------------------ packing of questions


@dataclass(frozen=True)
class Packed:
    """All questions of a batch of scans as token sequences.

    `input_ids`, `labels`, `position_ids` are [n, length]; `attention_mask` is bool [n, 1, length, length].
    """

    input_ids: torch.Tensor
    labels: torch.Tensor
    position_ids: torch.Tensor
    attention_mask: torch.Tensor


class Packer:
    """Writes the questions and answers of scans as token sequences, exactly as the chat template would."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        self._tokenizer = tokenizer
        self._known: dict[str, list[int]] = {}
        self._assistant = tokenizer.convert_tokens_to_ids(ASSISTANT)
        self.pad_id: int = tokenizer.pad_token_id

    def encode(self, text: str) -> list[int]:
        """Token ids of `text`, without anything added."""
        if text not in self._known:
            self._known[text] = self._tokenizer(text, add_special_tokens=False).input_ids
        return self._known[text]

    def pack(self, scans: Sequence[phantom.Scan], rng: np.random.Generator) -> Packed:
        """Every question that has an answer for a scan, in a random wording, behind one instruction for the batch."""
        instruction = draw_instruction(rng)
        suffix = SUFFIXES[rng.integers(len(SUFFIXES))] if rng.random() < 0.1 else ""
        prefix = self.encode(BOS + USER + IMAGE * N_PATCHES) + self._encode_once(instruction)
        space = " " if instruction.endswith(":") else ""
        rows = [
            [
                self.question(rng, meaning, space, suffix)
                for meaning in map(_as_meaning, phantom.true_values(scan).items())
            ]
            for scan in scans
        ]
        return lay_out(prefix, rows, self.pad_id)

    def _encode_once(self, text: str) -> list[int]:
        """Like `encode`, for random texts that are not worth remembering."""
        return self._tokenizer(text, add_special_tokens=False).input_ids

    def question(
        self, rng: np.random.Generator, meaning: phantom.Meaning, space: str = "", suffix: str = ""
    ) -> tuple[list[int], list[int]]:
        wordings = phantom.QUESTIONS[meaning.question_type]
        question = space + wordings[rng.integers(len(wordings))] + suffix
        return self.turn(question, phantom.word_answer(rng, meaning))

    def turn(self, question: str, answer: str) -> tuple[list[int], list[int]]:
        """Token ids of a question (up to where the answer starts) and of its answer."""
        return [*self.encode(question), self._assistant], [*self.encode(answer), self._tokenizer.eos_token_id]


def _as_meaning(item: tuple[str, str]) -> phantom.Meaning:
    return phantom.Meaning(*item)


_RANDOM_WORDS = tuple(sorted({word for text in INSTRUCTIONS for word in text.split()}))


def draw_instruction(rng: np.random.Generator) -> str:
    """Draw the text in front of the questions: mostly nothing, else a known instruction or a jumble of words.

    The jumble makes the model robust against prompts that it has never seen.
    """
    kind = rng.random()
    if kind < 0.55:
        return ""
    if kind < 0.8:
        return INSTRUCTIONS[rng.integers(len(INSTRUCTIONS))]
    return " ".join(rng.choice(_RANDOM_WORDS, size=rng.integers(1, 40))) + ("\n" if rng.random() < 0.5 else ":")


def lay_out(prefix: list[int], rows: list[list[tuple[list[int], list[int]]]], pad_id: int) -> Packed:
    """Put the turns of each row behind `prefix`; every turn continues the prefix's positions and sees only it."""
    start = len(prefix)
    length = start + max(sum(len(q) + len(a) for q, a in turns) for turns in rows)
    ids = np.full((len(rows), length), pad_id)
    labels = np.full((len(rows), length), IGNORED)
    positions = np.zeros((len(rows), length), int)
    turn_of = np.full((len(rows), length), -1)  # 0: prefix, 1, 2, ...: turns, -1: padding
    ids[:, :start], positions[:, :start], turn_of[:, :start] = prefix, np.arange(start), 0
    for row, turns in enumerate(rows):
        at = start
        for number, (question, answer) in enumerate(turns, 1):
            end = at + len(question) + len(answer)
            ids[row, at:end] = question + answer
            labels[row, at + len(question) : end] = answer
            positions[row, at:end] = np.arange(start, start + end - at)
            turn_of[row, at:end] = number
            at = end
    turn = torch.from_numpy(turn_of)
    sees = (turn[:, :, None] == turn[:, None, :]) | (turn[:, None, :] == 0)
    sees &= torch.ones(length, length, dtype=torch.bool).tril()
    return Packed(torch.from_numpy(ids), torch.from_numpy(labels), torch.from_numpy(positions), sees[:, None])


# ----------------------------------------------------------------------------------------------------------- training


class PatchHeads(torch.nn.Module):
    """Linear heads on the patch features of the vision tower; used in stage 1 only."""

    _WIDTHS = (1, len(phantom.SHAPES), len(phantom.SIZES), len(phantom.MODALITIES))

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(hidden_size, sum(self._WIDTHS))

    def loss(self, features: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Loss of the patch features [n, N_PATCHES, hidden_size] of a batch."""
        lesion, shape, size, modality = self.linear(features).split(self._WIDTHS, dim=-1)
        shows = batch.lesion_patches.flatten(1)
        lesion_loss = F.binary_cross_entropy_with_logits(lesion[..., 0], shows.float(), pos_weight=torch.tensor(3.0))
        row = shows.nonzero()[:, 0]  # the scan of every patch that shows a lesion
        shape_loss = F.cross_entropy(shape[shows], _targets(batch, "shape", phantom.SHAPES)[row])
        size_loss = F.cross_entropy(size[shows], _targets(batch, "size", phantom.SIZES)[row])
        modality_loss = F.cross_entropy(modality.mean(1), _targets(batch, "modality", phantom.MODALITIES))
        return lesion_loss + 0.4 * shape_loss + 0.4 * size_loss + 0.3 * modality_loss


def _targets(batch: Batch, attribute: str, values: Sequence[str]) -> torch.Tensor:
    """Class numbers [n] of an attribute of the scans."""
    return torch.tensor([values.index(getattr(scan, attribute)) for scan in batch.scans])


def train_vision(
    model: LlavaForConditionalGeneration, data: ScanSet, settings: Settings, rng: np.random.Generator
) -> None:
    """Stage 1: dense supervision of the vision tower."""
    tower = model.model.vision_tower
    heads = PatchHeads(tower.config.hidden_size)

    def losses() -> Iterator[torch.Tensor]:
        while True:
            batch = draw_batch(data, settings.vision_batch, rng)
            pixels = normalize(vary_light(batch.pictures))
            # The features that the language model will get: last layer, before the final norm, no class token.
            hidden = tower(pixels, output_hidden_states=True).hidden_states[-1][:, 1:]
            yield heads.loss(hidden, batch)

    parameters = [*tower.parameters(), *heads.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=settings.vision_lr, betas=(0.9, 0.98), weight_decay=0.02)
    optimize("vision", optimizer, losses(), settings.vision_steps, warmup=60)


def train_answers(
    model: LlavaForConditionalGeneration,
    packer: Packer,
    data: ScanSet,
    settings: Settings,
    rng: np.random.Generator,
) -> None:
    """Stage 2: the whole model learns to answer. The vision tower, trained already, moves at a fifth of the rate."""

    def losses() -> Iterator[torch.Tensor]:
        while True:
            batch = draw_batch(data, settings.batch, rng)
            pixels = normalize(vary_light(vary_pose(batch.pictures)))
            yield answer_loss(model, packer.pack(batch.scans, rng), pixels)

    tower = list(model.model.vision_tower.parameters())
    in_tower = set(map(id, tower))
    groups = decay_groups((p for p in model.parameters() if id(p) not in in_tower), 0.05)
    groups.append({"params": tower, "weight_decay": 0.02, "lr": settings.lr / 5})
    optimizer = torch.optim.AdamW(groups, lr=settings.lr, betas=(0.9, 0.98))
    optimize("answers", optimizer, losses(), settings.steps, warmup=40)


def answer_loss(model: LlavaForConditionalGeneration, packed: Packed, pixels: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy (nats) of the answer tokens."""
    hidden = model.model(
        input_ids=packed.input_ids,
        pixel_values=pixels,
        attention_mask=packed.attention_mask,
        position_ids=packed.position_ids,
        use_cache=False,
    ).last_hidden_state
    labels = packed.labels[:, 1:]
    counted = labels != IGNORED
    return F.cross_entropy(model.lm_head(hidden[:, :-1][counted]), labels[counted])


def train(settings: Settings) -> tuple[LlavaForConditionalGeneration, LlavaProcessor]:
    """Both stages, from nothing to a trained model."""
    make_deterministic(settings.seed, settings.threads)
    rng = np.random.default_rng([TRAIN_SEED, settings.seed, settings.n_scans])
    processor = build_processor()
    model = build_model(processor.tokenizer)
    logger.info("{} parameters", sum(p.numel() for p in model.parameters()))
    began = time.perf_counter()
    data = draw_scan_set(settings.n_scans, TRAIN_SEED)
    logger.info("{} scans drawn in {:.0f} s", len(data), time.perf_counter() - began)
    model.train()
    train_vision(model, data, settings, rng)
    train_answers(model, Packer(processor.tokenizer), data, settings, rng)
    logger.info("trained in {:.0f} s", time.perf_counter() - began)
    return model.eval(), processor


# ------------------------------------------------------------------------------------------------------- command line


def main(arguments: Sequence[str] | None = None) -> None:
    steps = {"steps": "steps of stage 2", "vision_steps": "steps of stage 1"}
    settings, out = read_settings(__doc__, Settings(), arguments, out="folder to write the model to", steps=steps)
    model, processor = train(settings)
    logger.info("weights: sha256 {}", save_half(model, processor.save_pretrained, out))


if __name__ == "__main__":
    main()
