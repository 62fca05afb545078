"""Convert the embedded vision-language model for llama.cpp, in float32: `python gguf_export.py FROM TO`.

Runs in llama.cpp's environment, which has the package gguf. TO/text.gguf is the language model, TO/vision.gguf the
vision tower with the projector, as llama.cpp's multimodal library wants them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from safetensors.numpy import load_file

Weights = dict[str, np.ndarray]

_LANGUAGE = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}
_VISION = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.out_proj": "attn_out",
    "mlp.fc1": "ffn_down",  # llama.cpp's names for the two are the other way round
    "mlp.fc2": "ffn_up",
    "layer_norm1": "ln1",
    "layer_norm2": "ln2",
}


def main(source: Path, target: Path) -> None:
    """Write both files."""
    config, processor, tokenizer = (
        json.loads((source / f"{name}.json").read_text("utf-8")) for name in ("config", "processor_config", "tokenizer")
    )
    weights = {
        name: np.ascontiguousarray(values, dtype=np.float32)
        for name, values in load_file(source / "model.safetensors").items()
    }
    target.mkdir(parents=True, exist_ok=True)
    template = (source / "chat_template.jinja").read_text("utf-8")
    _write_language(target / "text.gguf", weights, config["text_config"], tokenizer, template)
    _write_vision(target / "vision.gguf", weights, config["vision_config"], processor["image_processor"])


def _write_language(
    path: Path, weights: Weights, config: dict[str, Any], tokenizer: dict[str, Any], template: str
) -> None:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    _add_tokenizer(writer, config, tokenizer)
    # llama.cpp puts a marker where a picture was, so the template only has to keep the order of the parts.
    writer.add_chat_template(template)
    base = "language_model.model."
    writer.add_tensor("token_embd.weight", weights[f"{base}embed_tokens.weight"])
    writer.add_tensor("output_norm.weight", weights[f"{base}norm.weight"])
    for layer in range(config["num_hidden_layers"]):
        for ours, theirs in _LANGUAGE.items():
            values = weights[f"{base}layers.{layer}.{ours}.weight"]
            if theirs in ("attn_q", "attn_k"):
                values = _interleaved(values, config["num_attention_heads"])
            writer.add_tensor(f"blk.{layer}.{theirs}.weight", values)
    _finish(writer)


def _add_tokenizer(writer: gguf.GGUFWriter, config: dict[str, Any], tokenizer: dict[str, Any]) -> None:
    tokens = [f"[PAD{i}]" for i in range(config["vocab_size"])]
    types = [gguf.TokenType.UNUSED] * len(tokens)
    for token, i in tokenizer["model"]["vocab"].items():
        tokens[i], types[i] = token, gguf.TokenType.NORMAL
    for added in tokenizer["added_tokens"]:
        tokens[added["id"]], types[added["id"]] = added["content"], gguf.TokenType.CONTROL
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    merges = tokenizer["model"]["merges"]
    writer.add_token_merges([merge if isinstance(merge, str) else " ".join(merge) for merge in merges])
    writer.add_bos_token_id(config["bos_token_id"])
    writer.add_eos_token_id(config["eos_token_id"])
    writer.add_pad_token_id(config["pad_token_id"])
    writer.add_add_bos_token(False)  # the chat template writes it


def _interleaved(values: np.ndarray, heads: int) -> np.ndarray:
    """Rows of a query or key projection, shape (rows, columns), the halves of each rotary pair beside each other."""
    rows, columns = values.shape
    pairs = values.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2)
    return np.ascontiguousarray(pairs.reshape(rows, columns))


def _write_vision(path: Path, weights: Weights, config: dict[str, Any], processor: dict[str, Any]) -> None:
    writer = gguf.GGUFWriter(path, "clip")
    writer.add_name("tiny-vision")
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    for name, flag in {"has_vision_encoder": True, "has_text_encoder": False, "has_llava_projector": True}.items():
        writer.add_bool(f"clip.{name}", flag)
    writer.add_bool("clip.use_gelu", False)  # quick GELU
    for name in ("clip.projector_type", "clip.vision.projector_type"):
        writer.add_string(name, "mlp")
    for name, theirs in {
        "image_size": "image_size",
        "patch_size": "patch_size",
        "hidden_size": "embedding_length",
        "intermediate_size": "feed_forward_length",
        "projection_dim": "projection_dim",
        "num_attention_heads": "attention.head_count",
        "num_hidden_layers": "block_count",
    }.items():
        writer.add_uint32(f"clip.vision.{theirs}", config[name])
    writer.add_float32("clip.vision.attention.layer_norm_epsilon", config["layer_norm_eps"])
    for name in ("image_mean", "image_std"):
        writer.add_array(f"clip.vision.{name}", [float(value) for value in processor[name]])
    # The model reads the last layer's output (vision_feature_layer -1); without this llama.cpp stops one layer before.
    writer.add_array("clip.vision.feature_layer", [config["num_hidden_layers"]])
    tower = "vision_tower." if "vision_tower.embeddings.class_embedding" in weights else "vision_tower.vision_model."
    writer.add_tensor("v.patch_embd.weight", weights[f"{tower}embeddings.patch_embedding.weight"])
    writer.add_tensor("v.class_embd", weights[f"{tower}embeddings.class_embedding"].reshape(-1))
    writer.add_tensor("v.position_embd.weight", weights[f"{tower}embeddings.position_embedding.weight"])
    # No norm after the last layer: LLaVA reads the encoder's output before it.
    for part in ("weight", "bias"):
        writer.add_tensor(f"v.pre_ln.{part}", weights[f"{tower}pre_layrnorm.{part}"])
        for layer in range(config["num_hidden_layers"]):
            for ours, theirs in _VISION.items():
                writer.add_tensor(
                    f"v.blk.{layer}.{theirs}.{part}", weights[f"{tower}encoder.layers.{layer}.{ours}.{part}"]
                )
        for ours, theirs in (("linear_1", "mm.0"), ("linear_2", "mm.2")):
            writer.add_tensor(f"{theirs}.{part}", weights[f"multi_modal_projector.{ours}.{part}"])
    _finish(writer)


def _finish(writer: gguf.GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
