"""Teach the embedded vision-language model to write reports on phantom scans.

    python -m training.reports_vlm --out FILE

It starts from the embedded weights. The vision tower stays as it is, so that only the projector and the language model
are stored: `hedge_tiny` puts them over those of the model that answers questions.
"""

import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from loguru import logger
from safetensors.torch import save_file
from transformers import AutoTokenizer, LlavaForConditionalGeneration

from hedge_tasks.models.tiny import vlm_path
from training import phantom, reports
from training.optimizing import decay_groups, make_deterministic, optimize, read_settings
from training.phantom import Meaning
from training.vlm import (
    BOS,
    IMAGE,
    N_PATCHES,
    TRAIN_SEED,
    USER,
    Batch,
    Packed,
    Packer,
    answer_loss,
    draw_batch,
    draw_scan_set,
    lay_out,
    normalize,
    vary_light,
    vary_pose,
)

_TOWER = "model.vision_tower."
_TIED = "lm_head.weight"


@dataclass(frozen=True)
class Settings:
    """Settings of the training."""

    seed: int = 0
    n_scans: int = 6_000
    steps: int = 800
    batch: int = 24
    questions: int = 2
    lr: float = 8e-4
    threads: int = 1

    def for_smoke_test(self) -> "Settings":
        """Return the same run, cut down to a few seconds."""
        return replace(self, n_scans=16, steps=2, batch=4)


def pack(packer: Packer, batch: Batch, n: int, rng: np.random.Generator) -> Packed:
    """Lay out a report on every scan, and n of the questions that the model knows, none of which sees the others.

    The questions keep alive what it can do: reports alone teach it what reports are like long before what scans are.
    """
    prefix = packer.encode(BOS + USER + IMAGE * N_PATCHES)
    rows = []
    for scan in batch.scans:
        request = reports.REQUESTS[rng.integers(len(reports.REQUESTS))]
        report = " ".join(reports.draw_report(reports.world_of(scan), rng, in_order=True))
        values = list(phantom.true_values(scan).items())
        questions = [packer.question(rng, Meaning(*values[i])) for i in rng.permutation(len(values))[:n]]
        rows.append([packer.turn(request, report), *questions])
    return lay_out(prefix, rows, packer.pad_id)


def train(settings: Settings) -> dict[str, torch.Tensor]:
    """From the embedded model to the weights of one that writes reports: those that differ, as float16."""
    make_deterministic(settings.seed, settings.threads)
    rng = np.random.default_rng([TRAIN_SEED, settings.seed, settings.n_scans])
    model = LlavaForConditionalGeneration.from_pretrained(vlm_path(), dtype=torch.float32).train()
    model.model.vision_tower.requires_grad_(False)
    packer = Packer(AutoTokenizer.from_pretrained(vlm_path()))
    began = time.perf_counter()
    data = draw_scan_set(settings.n_scans, TRAIN_SEED)

    def losses() -> Iterator[torch.Tensor]:
        while True:
            batch = draw_batch(data, settings.batch, rng)
            pixels = normalize(vary_light(vary_pose(batch.pictures)))
            yield answer_loss(model, pack(packer, batch, settings.questions, rng), pixels)

    groups = decay_groups((p for p in model.parameters() if p.requires_grad), 0.05)
    optimizer = torch.optim.AdamW(groups, lr=settings.lr, betas=(0.9, 0.98))
    optimize("reports", optimizer, losses(), settings.steps, warmup=40)
    logger.info("trained in {:.0f} s", time.perf_counter() - began)
    state = model.state_dict()
    return {name: p.half() for name, p in state.items() if not name.startswith(_TOWER) and name != _TIED}


def main(arguments: Sequence[str] | None = None) -> None:
    file = "file to write the weights to"
    settings, out = read_settings(__doc__, Settings(), arguments, out=file, steps={"steps": None})
    weights = train(settings)
    out.parent.mkdir(parents=True, exist_ok=True)
    save_file(weights, out, metadata={"format": "pt"})
    out.chmod(0o644)
    logger.info("weights: sha256 {}", hashlib.sha256(out.read_bytes()).hexdigest())


if __name__ == "__main__":
    main()
