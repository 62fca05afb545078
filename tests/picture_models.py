"""Tiny models about pictures with random weights, saved as hub models would be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

VISION = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
"""Of every tower, of texts too."""

_BYTES = [*range(33, 127), *range(161, 173), *range(174, 256)]


def clip_tokenizer(length: int) -> Any:
    """Letter by letter: no merges at all."""
    from transformers import CLIPTokenizer

    # As GPT-2 writes bytes: those that cannot be seen come after the first 256 characters.
    hidden = [b for b in range(256) if b not in _BYTES]
    letters = [chr(b) for b in _BYTES] + [chr(256 + i) for i in range(len(hidden))]
    pieces = [*letters, *(f"{letter}</w>" for letter in letters), "<|startoftext|>", "<|endoftext|>"]
    return CLIPTokenizer(
        vocab={piece: i for i, piece in enumerate(pieces)},
        merges=[],
        model_max_length=length,
        pad_token="<|endoftext|>",
    )


def text_config(tokenizer: Any, length: int) -> dict[str, Any]:
    ids = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id, "pad_token_id": 0}
    return {**VISION, "vocab_size": len(tokenizer), "max_position_embeddings": length, **ids}


def save_clip(folder: Path) -> str:
    import torch
    from transformers import CLIPConfig, CLIPImageProcessor, CLIPModel, CLIPProcessor

    torch.manual_seed(0)
    tokenizer = clip_tokenizer(32)
    vision = {**VISION, "image_size": 16, "patch_size": 8}
    config = CLIPConfig(text_config=text_config(tokenizer, 32), vision_config=vision, projection_dim=8)
    CLIPModel(config).save_pretrained(folder)
    processor = CLIPImageProcessor(size={"shortest_edge": 16}, crop_size={"height": 16, "width": 16})
    CLIPProcessor(processor, tokenizer).save_pretrained(folder)
    return str(folder)


def save_siglip(folder: Path) -> str:
    import torch
    from transformers import SiglipConfig, SiglipImageProcessor, SiglipModel, SiglipProcessor

    torch.manual_seed(0)
    tokenizer = clip_tokenizer(32)
    text = {**text_config(tokenizer, 32), "projection_size": 16}
    config = SiglipConfig(text_config=text, vision_config={**VISION, "image_size": 16, "patch_size": 8})
    SiglipModel(config).save_pretrained(folder)
    SiglipProcessor(SiglipImageProcessor(size={"height": 16, "width": 16}), tokenizer).save_pretrained(folder)
    return str(folder)


def save_owlv2(folder: Path) -> str:
    import torch
    from transformers import Owlv2Config, Owlv2ForObjectDetection, Owlv2ImageProcessor, Owlv2Processor

    torch.manual_seed(0)
    tokenizer = clip_tokenizer(16)
    vision = {**VISION, "image_size": 32, "patch_size": 8}
    config = Owlv2Config(text_config=text_config(tokenizer, 16), vision_config=vision, projection_dim=16)
    Owlv2ForObjectDetection(config).save_pretrained(folder)
    Owlv2Processor(Owlv2ImageProcessor(size={"height": 32, "width": 32}), tokenizer).save_pretrained(folder)
    return str(folder)


def save_grounding_dino(folder: Path) -> str:
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import (
        BertConfig,
        GroundingDinoConfig,
        GroundingDinoForObjectDetection,
        GroundingDinoImageProcessor,
        GroundingDinoProcessor,
        PreTrainedTokenizerFast,
        SwinConfig,
    )

    torch.manual_seed(0)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", ".", "a", "dog", "cat", "red", "house"]
    backend = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    names = {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, model_max_length=32, **names)
    text = BertConfig(vocab_size=len(words), max_position_embeddings=32, **VISION)
    backbone = SwinConfig(
        image_size=64, embed_dim=8, depths=[1, 1, 1, 1], num_heads=[1, 1, 2, 2], window_size=4,
        out_features=["stage2", "stage3", "stage4"],
    )  # fmt: skip
    config = GroundingDinoConfig(
        backbone_config=backbone, text_config=text, d_model=32, encoder_layers=1, decoder_layers=2, num_queries=9,
        encoder_ffn_dim=32, decoder_ffn_dim=32, encoder_attention_heads=2, decoder_attention_heads=2,
        max_text_len=32,
    )  # fmt: skip
    GroundingDinoForObjectDetection(config).save_pretrained(folder)
    images = GroundingDinoImageProcessor(size={"shortest_edge": 96, "longest_edge": 160})
    GroundingDinoProcessor(images, tokenizer).save_pretrained(folder)
    return str(folder)


def save_stable_diffusion(folder: Path) -> str:
    """Stable Diffusion in all its parts, of 2 MB."""
    import torch
    from diffusers import AutoencoderKL, DDIMScheduler, StableDiffusionPipeline, UNet2DConditionModel
    from transformers import CLIPTextConfig, CLIPTextModel

    torch.manual_seed(0)
    tokenizer = clip_tokenizer(24)
    parts = {
        "vae": AutoencoderKL(
            block_out_channels=[8, 8], norm_num_groups=4, latent_channels=4, sample_size=32,
            down_block_types=["DownEncoderBlock2D"] * 2, up_block_types=["UpDecoderBlock2D"] * 2,
        ),
        "text_encoder": CLIPTextModel(CLIPTextConfig(**text_config(tokenizer, 24))).eval(),
        "unet": UNet2DConditionModel(
            block_out_channels=(8, 16), layers_per_block=1, sample_size=16, norm_num_groups=4, cross_attention_dim=16,
            attention_head_dim=2, down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
            up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        ),
    }  # fmt: skip
    StableDiffusionPipeline(
        **parts, tokenizer=tokenizer, scheduler=DDIMScheduler(clip_sample=False), safety_checker=None,
        feature_extractor=None, requires_safety_checker=False,
    ).save_pretrained(folder)  # fmt: skip
    assert json.loads((folder / "model_index.json").read_text())["unet"]
    return str(folder)
