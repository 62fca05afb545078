"""A Qwen2.5-VL of random weights, small enough for a test: lmms-eval's own adapter loads it like any other."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    PreTrainedTokenizerFast,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen2_5_VLProcessor,
    Qwen2VLImageProcessor,
    Qwen2VLVideoProcessor,
)

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>")
PADS = ("<|image_pad|>", "<|video_pad|>")

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ part['text'] }}{% endif %}"
    "{% endfor %}{% endif %}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
)


def write(folder: Path) -> Path:
    """Write weights and processor as the hub has them; a token a byte."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = Tokenizer(models.BPE({letter: i for i, letter in enumerate(letters)}, []))
    words.pre_tokenizer, words.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=words,
        eos_token=SPECIAL[2],
        pad_token=SPECIAL[0],
        additional_special_tokens=[*SPECIAL, *PADS],
        chat_template=TEMPLATE,
    )
    id_of = tokenizer.convert_tokens_to_ids
    pictures = {"patch_size": 14, "merge_size": 2, "temporal_patch_size": 2}
    processor = Qwen2_5_VLProcessor(
        Qwen2VLImageProcessor(**pictures), tokenizer, Qwen2VLVideoProcessor(**pictures), chat_template=TEMPLATE
    )
    layers = {"hidden_size": 32, "intermediate_size": 32}
    config = Qwen2_5_VLConfig(
        text_config={
            **layers,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "vocab_size": len(tokenizer),
            "rope_scaling": {"type": "mrope", "mrope_section": [1, 1, 2]},
            "bos_token_id": id_of(SPECIAL[0]),
            "eos_token_id": id_of(SPECIAL[2]),
        },
        vision_config={**layers, "depth": 2, "num_heads": 2, "out_hidden_size": 32, "fullatt_block_indexes": [1]},
        image_token_id=id_of(PADS[0]),
        video_token_id=id_of(PADS[1]),
        vision_start_token_id=id_of(SPECIAL[3]),
        vision_end_token_id=id_of(SPECIAL[4]),
    )
    torch.manual_seed(0)
    Qwen2_5_VLForConditionalGeneration(config).to(torch.bfloat16).save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder
