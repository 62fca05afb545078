"""vLLM's own extraction of hidden states beside a plain pass: `python hidden_states.py MODEL WEIGHTS ROWS OUT`.

Runs in vLLM's environment. MODEL are the weights under names that vLLM knows, WEIGHTS those of the package, ROWS a JSON
file of questions, answers and pictures. OUT gets the largest difference and the largest state by layer.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from vllm.distributed.kv_transfer.kv_connector.v1 import example_hidden_states_connector as theirs

LAYERS = [0, 1, 2]


class _Torch:
    """`torch` on a CPU, where no memory can be pinned."""

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)

    @staticmethod
    def empty_like(*args: Any, pin_memory: bool = False, **options: Any) -> Any:
        return torch.empty_like(*args, **options)


class _Copied:
    """The event of a copy that has ended."""

    def query(self) -> bool:
        return True


class CpuConnector(theirs.ExampleHiddenStatesConnector):
    """vLLM's connector, which would ask CUDA for pinned memory and for events."""

    def _submit_async_write(self, pending: Any) -> None:
        with patch.object(theirs, "torch", _Torch()):
            super()._submit_async_write(pending)
        self._req_copy_events[pending.req_id] = _Copied()


def main(model: Path, weights: Path, rows: Path, out: Path) -> None:
    from PIL import Image
    from transformers import AutoImageProcessor, AutoModelForImageTextToText
    from vllm import LLM, SamplingParams

    asked = [(row, Image.open(row["image"]).convert("RGB")) for row in json.loads(rows.read_text("utf-8"))]
    draft = {"hf_config": {"eagle_aux_hidden_state_layer_ids": LAYERS}}
    engine = LLM(
        model=str(model),
        dtype="float32",
        enforce_eager=True,
        max_model_len=256,
        max_num_batched_tokens=8192,
        limit_mm_per_prompt={"image": 1},
        speculative_config={
            "method": "extract_hidden_states",
            "num_speculative_tokens": 1,
            "draft_model_config": draft,
        },
        kv_transfer_config={
            "kv_connector": "CpuConnector",
            "kv_connector_module_path": "hidden_states",
            "kv_role": "kv_producer",
            "kv_connector_extra_config": {"shared_storage_path": str(out.parent / "states")},
        },
    )
    conversations = [
        [
            {
                "role": "user",
                "content": [{"type": "image_pil", "image_pil": picture}, {"type": "text", "text": row["question"]}],
            },
            {"role": "assistant", "content": row["answer"]},
        ]
        for row, picture in asked
    ]
    read = {"add_generation_prompt": False, "continue_final_message": True}
    outputs = engine.chat(conversations, SamplingParams(max_tokens=1, temperature=0), use_tqdm=False, **read)
    plain = AutoModelForImageTextToText.from_pretrained(weights, dtype=torch.float32).eval()
    pixels = AutoImageProcessor.from_pretrained(weights)
    norm = plain.model.language_model.norm
    differences, largest = [0.0] * len(LAYERS), [0.0] * len(LAYERS)
    for (_, picture), output in zip(asked, outputs, strict=True):
        found = theirs.load_hidden_states(output.kv_transfer_params["hidden_states_path"])
        shown = pixels(picture, return_tensors="pt")["pixel_values"]
        with torch.inference_mode():
            states = plain(input_ids=found["token_ids"][None], pixel_values=shown, output_hidden_states=True)
            for i, layer in enumerate(LAYERS):
                expected, ours = states.hidden_states[layer][0], found["hidden_states"][:, i].float()
                # vLLM tells the deepest states before the last norm, transformers behind it.
                ours = norm(ours) if layer == LAYERS[-1] else ours
                differences[i] = max(differences[i], float((ours - expected).abs().max()))
                largest[i] = max(largest[i], float(expected.abs().max()))
    out.write_text(json.dumps({"differences": differences, "largest": largest, "read": len(outputs)}), "utf-8")


if __name__ == "__main__":  # vLLM starts its engine in a process that imports this file
    main(*map(Path, sys.argv[1:]))
