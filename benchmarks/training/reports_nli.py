"""Teach the embedded NLI classifier what reports on phantom scans entail.

    python -m training.reports_nli --out DIR

It starts from the embedded weights. A premise is a report, a part of one, or a report that contradicts itself; a
hypothesis is a sentence. Their relation is known: `hedge_tasks.suites.demo_reports.statements.relation`.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from transformers import AutoTokenizer, DebertaV2ForSequenceClassification, PreTrainedTokenizerFast

from hedge_tasks.models.tiny import nli_path
from hedge_tasks.suites.demo_reports.statements import QUADRANTS, SENTENCES, Statement, World, relation, worded
from training import phantom, reports
from training.nli import Pair, Settings, fit, train_and_save
from training.optimizing import make_deterministic

TRAIN_SEED, TEST_SEED = 21, 22

_STATEMENTS = tuple(SENTENCES)


SETTINGS = Settings(steps=1500, lr=1e-3, threads=1, n_test_pairs=2000)


def draw_pair(rng: np.random.Generator) -> Pair:
    """Draw a report, or a part of one, and a sentence."""
    world = _draw_world(rng)
    report = reports.draw_report(world, rng)
    kind = rng.random()
    if kind < 0.25:  # a model that is wrong somewhere contradicts itself
        wrong = reports.draw_report(_changed(world, rng), rng)
        report = [(report if rng.random() < 0.5 else wrong)[i] for i in range(min(len(report), len(wrong)))]
    elif kind < 0.35:
        report = report[: rng.integers(1, len(report))]
    premise = " ".join(report)
    hypothesis = _draw_hypothesis(world, rng)
    sentence = worded(hypothesis, int(rng.integers(1, 3)), int(rng.integers(len(SENTENCES[hypothesis]))))
    return Pair(premise, sentence, relation(premise, hypothesis).value)


def _draw_hypothesis(world: World, rng: np.random.Generator) -> Statement:
    """Something true of the world, of a world like it, or anything."""
    kind = rng.random()
    if kind < 0.15:
        return _STATEMENTS[rng.integers(len(_STATEMENTS))]
    statements = reports.statements(world if kind < 0.5 else _changed(world, rng), rng)
    return statements[rng.integers(len(statements))]


def _draw_world(rng: np.random.Generator) -> World:
    return reports.world_of(phantom.draw_scan(rng))


def _changed(world: World, rng: np.random.Generator) -> World:
    """Return a world that differs in some respects."""
    changed = _draw_world(rng)
    if not world.quadrants or not changed.quadrants:
        return changed
    unchanged = {name: getattr(world, name) for name in ("modality", "shape", "size", "tone") if rng.random() < 0.6}
    if rng.random() < 0.5:
        moved = QUADRANTS[rng.integers(len(QUADRANTS))]
        unchanged["quadrants"] = (world.quadrants ^ {moved}) or world.quadrants
    return replace(changed, **unchanged)


def train(settings: Settings) -> tuple[DebertaV2ForSequenceClassification, PreTrainedTokenizerFast]:
    """From the embedded classifier to one that reads reports."""
    make_deterministic(settings.seed, settings.threads)
    rng = np.random.default_rng([TRAIN_SEED, settings.seed])
    tokenizer = AutoTokenizer.from_pretrained(nli_path())
    model = DebertaV2ForSequenceClassification.from_pretrained(nli_path(), dtype=torch.float32)
    fit("nli of reports", model, tokenizer, lambda: draw_pair(rng), settings, warmup=100)
    return model, tokenizer


def held_out_pairs(n_pairs: int) -> list[Pair]:
    """Other pairs than those of the training."""
    rng = np.random.default_rng(TEST_SEED)
    return [draw_pair(rng) for _ in range(n_pairs)]


def main(arguments: Sequence[str] | None = None) -> None:
    train_and_save(__doc__, SETTINGS, train, held_out_pairs, arguments)


if __name__ == "__main__":
    main()
