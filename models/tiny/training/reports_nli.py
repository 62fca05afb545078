"""Teach the embedded NLI classifier what reports on phantom scans entail.

    python -m hedge_tasks.models.tiny.training.reports_nli --out DIR

It starts from the embedded weights. A premise is a report, a part of one, or a report that contradicts itself; a
hypothesis is a sentence. Their relation is known: `hedge_tasks.evaluations.demo_reports.statements.relation`.
"""

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from loguru import logger
from transformers import AutoTokenizer, DebertaV2ForSequenceClassification, PreTrainedTokenizerFast

from hedge_tasks.evaluations.demo_reports.statements import QUADRANTS, SENTENCES, Statement, World, relation, worded
from hedge_tasks.models.tiny import nli_path
from hedge_tasks.models.tiny.training import phantom, reports
from hedge_tasks.models.tiny.training.nli import Pair, accuracy, confusion, logits_of
from hedge_tasks.models.tiny.training.optimizing import make_deterministic, optimize, save_half

TRAIN_SEED, TEST_SEED = 21, 22

_STATEMENTS = tuple(SENTENCES)


@dataclass(frozen=True)
class Settings:
    """How much and how fast to train."""

    seed: int = 0
    steps: int = 1500
    batch: int = 48
    lr: float = 1e-3
    threads: int = 1
    n_test_pairs: int = 2000

    def for_smoke_test(self) -> "Settings":
        """The same run, cut down to a few seconds."""
        return replace(self, steps=2, batch=4, n_test_pairs=8)


def draw_pair(rng: np.random.Generator) -> Pair:
    """A report, or a part of one, and a sentence."""
    world = _draw_world(rng)
    said = reports.draw_report(world, rng)
    kind = rng.random()
    if kind < 0.25:  # a model that is wrong somewhere contradicts itself
        other = reports.draw_report(_changed(world, rng), rng)
        said = [(said if rng.random() < 0.5 else other)[i] for i in range(min(len(said), len(other)))]
    elif kind < 0.35:
        said = said[: rng.integers(1, len(said))]
    premise = " ".join(said)
    hypothesis = _draw_hypothesis(world, rng)
    sentence = worded(hypothesis, int(rng.integers(1, 3)), int(rng.integers(len(SENTENCES[hypothesis]))))
    return Pair(premise, sentence, relation(premise, hypothesis).value)


def _draw_hypothesis(world: World, rng: np.random.Generator) -> Statement:
    """Something true of the world, of a world like it, or anything."""
    kind = rng.random()
    if kind < 0.15:
        return _STATEMENTS[rng.integers(len(_STATEMENTS))]
    about = reports.statements(world if kind < 0.5 else _changed(world, rng), rng)
    return about[rng.integers(len(about))]


def _draw_world(rng: np.random.Generator) -> World:
    return reports.world_of(phantom.draw_scan(rng))


def _changed(world: World, rng: np.random.Generator) -> World:
    """A world that differs in some respects."""
    other = _draw_world(rng)
    if not world.quadrants or not other.quadrants:
        return other
    kept = {name: getattr(world, name) for name in ("modality", "shape", "size", "tone") if rng.random() < 0.6}
    if rng.random() < 0.5:
        moved = QUADRANTS[rng.integers(len(QUADRANTS))]
        kept["quadrants"] = (world.quadrants ^ {moved}) or world.quadrants
    return replace(other, **kept)


def train(settings: Settings) -> tuple[DebertaV2ForSequenceClassification, PreTrainedTokenizerFast]:
    """From the embedded classifier to one that reads reports."""
    make_deterministic(settings.seed, settings.threads)
    rng = np.random.default_rng([TRAIN_SEED, settings.seed])
    tokenizer = AutoTokenizer.from_pretrained(nli_path())
    model = DebertaV2ForSequenceClassification.from_pretrained(nli_path(), dtype=torch.float32).train()

    def losses() -> Iterator[torch.Tensor]:
        while True:
            pairs = [draw_pair(rng) for _ in range(settings.batch)]
            labels = torch.tensor([pair.label for pair in pairs])
            yield F.cross_entropy(logits_of(model, tokenizer, pairs), labels)

    began = time.perf_counter()
    optimizer = torch.optim.AdamW(model.parameters(), lr=settings.lr, betas=(0.9, 0.98), weight_decay=0.01)
    optimize("nli of reports", optimizer, losses(), settings.steps, warmup=100)
    logger.info("trained in {:.0f} s", time.perf_counter() - began)
    return model.eval(), tokenizer


def held_out_pairs(n_pairs: int) -> list[Pair]:
    """Other pairs than those of the training."""
    rng = np.random.default_rng(TEST_SEED)
    return [draw_pair(rng) for _ in range(n_pairs)]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder to write the classifier to")
    parser.add_argument("--seed", type=int, default=Settings.seed)
    parser.add_argument("--steps", type=int, default=Settings.steps)
    parser.add_argument("--smoke-test", action="store_true", help="a few steps only, to see that it runs")
    options = parser.parse_args(arguments)
    settings = Settings(seed=options.seed, steps=options.steps)
    if options.smoke_test:
        settings = settings.for_smoke_test()
    model, tokenizer = train(settings)
    logger.info("weights: sha256 {}", save_half(model, tokenizer.save_pretrained, options.out))
    table = confusion(model.float(), tokenizer, held_out_pairs(settings.n_test_pairs))
    logger.info("held-out accuracy {:.4f}, confusion {}", accuracy(table), json.dumps(table))


if __name__ == "__main__":
    main()
