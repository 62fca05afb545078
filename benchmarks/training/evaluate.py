"""Measure the embedded vision-language model: the numbers of its model card.

    python -m training.evaluate --model DIR --demo tasks/hedge_demo/data/demo-test.parquet

Answers count as right when their meaning (`phantom.meaning_of`) is the true one; a text that means nothing is wrong.
"""

import argparse
import io
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from loguru import logger
from PIL import Image
from transformers import AutoModelForImageTextToText, AutoProcessor

from hedge_tasks.models.tiny import vlm_path
from hedge_tasks.statistics import auroc
from training import phantom

HELD_OUT_SEED = 2
"""Set number of the held-out scans, see `phantom.scan_rng`."""

MAX_NEW_TOKENS = 16
_BATCH = 250


@dataclass(frozen=True)
class Item:
    """One question about one picture (greyscale PIL image)."""

    picture: Image.Image
    question: str
    question_type: str
    answer: str

    def is_answered_by(self, text: str) -> bool:
        return phantom.meaning_of(text) == phantom.Meaning(self.question_type, self.answer)


def load_demo(file: Path) -> list[Item]:
    """Return the items of the demo data set."""
    import pyarrow.parquet as pq

    return [
        Item(Image.open(io.BytesIO(row["image"]["bytes"])), row["question"], row["question_type"], row["answer"])
        for row in pq.read_table(file).to_pylist()
    ]


def draw_held_out(n_scans: int) -> list[Item]:
    """Return every question about `n_scans` new scans of the training distribution."""
    items = []
    for index in range(n_scans):
        rng = phantom.scan_rng(HELD_OUT_SEED, index)
        scan = phantom.draw_scan(rng)
        picture = phantom.to_pil(phantom.render(scan, rng)[0])
        items += [
            Item(picture, str(rng.choice(phantom.QUESTIONS[question_type])), question_type, value)
            for question_type, value in phantom.true_values(scan).items()
        ]
    return items


def perturb(picture: Image.Image, rng: np.random.Generator) -> Image.Image:
    """Strong perturbation: turn by up to 10 degrees, shift and scale by up to 10 %, brightness and contrast by up to
    20 %, Gaussian noise of 0.07 (grey values in [0, 1])."""
    angle, zoom = np.radians(rng.uniform(-10, 10)), rng.uniform(0.9, 1.1)
    shift_x, shift_y = rng.uniform(-0.1, 0.1, 2) * picture.width
    gain, offset = rng.uniform(0.8, 1.2), rng.uniform(-0.2, 0.2)
    cos, sin, center = np.cos(angle) / zoom, np.sin(angle) / zoom, picture.width / 2
    offset_x = center - cos * (center + shift_x) - sin * (center + shift_y)
    offset_y = center + sin * (center + shift_x) - cos * (center + shift_y)
    matrix = (cos, sin, offset_x, -sin, cos, offset_y)
    moved = np.asarray(picture.transform(picture.size, Image.Transform.AFFINE, matrix, Image.Resampling.BILINEAR))
    changed = moved / 255 * gain + offset + rng.normal(0, 0.07, moved.shape)
    return Image.fromarray(np.round(np.clip(changed, 0, 1) * 255).astype(np.uint8))


class Answerer:
    """A model with its processor, asked in batches."""

    def __init__(self, folder: Path) -> None:
        self.processor = AutoProcessor.from_pretrained(folder)
        self.model = AutoModelForImageTextToText.from_pretrained(folder).eval()

    def ask(self, items: Sequence[Item], temperature: float = 0.0) -> list[str]:
        """Return one answer for each item; temperature 0 is greedy decoding."""
        starts = range(0, len(items), _BATCH)
        return [answer for i in starts for answer in self._ask_batch(items[i : i + _BATCH], temperature)]

    @torch.inference_mode()
    def _ask_batch(self, items: Sequence[Item], temperature: float) -> list[str]:
        turns = [
            [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": i.question}]}] for i in items
        ]
        prompts = self.processor.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
        pictures = [item.picture for item in items]
        inputs = self.processor(
            text=prompts, images=pictures, padding=True, return_tensors="pt", add_special_tokens=False
        )
        sampling = {"do_sample": True, "temperature": temperature, "top_k": 0} if temperature else {"do_sample": False}
        output = self.model.generate(**inputs, max_new_tokens=MAX_NEW_TOKENS, **sampling)
        return self.processor.batch_decode(output[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)


def semantic_entropy(texts: Iterable[str]) -> float:
    """Discrete semantic entropy (nats): meanings are counted; texts without meaning count by their wording."""
    counts = np.array(list(Counter(phantom.meaning_of(text) or text for text in texts).values()))
    shares = counts / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def by_type(
    items: Sequence[Item], values: Sequence, summary: Callable[[list], float | None]
) -> dict[str, float | None]:
    """`summary` of the values of each question type, and of all of them as "all"."""
    groups = defaultdict(list)
    for item, value in zip(items, values, strict=True):
        groups[item.question_type].append(value)
        groups["all"].append(value)
    results = {name: summary(groups[name]) for name in (*phantom.QUESTION_TYPES, "all")}
    return {name: None if value is None else round(value, 3) for name, value in results.items()}


def wrong_rates(items: Sequence[Item], answers: Sequence[str]) -> dict[str, float | None]:
    """Share of wrong answers."""
    wrong = [not item.is_answered_by(answer) for item, answer in zip(items, answers, strict=True)]
    return by_type(items, wrong, lambda group: float(np.mean(group)))


def entropy_aurocs(
    items: Sequence[Item], baselines: Sequence[str], samples: Sequence[Sequence[str]]
) -> dict[str, float | None]:
    """AUROC of semantic entropy of the samples of each item as a sign that its baseline answer is wrong."""
    pairs = [
        (semantic_entropy(texts), not item.is_answered_by(baseline))
        for item, baseline, texts in zip(items, baselines, samples, strict=True)
    ]
    return by_type(
        items, pairs, lambda group: auroc(*zip(*group, strict=True)) if len({y for _, y in group}) > 1 else None
    )


def measure_uncertainty(answerer: Answerer, items: Sequence[Item], n_samples: int, seed: int) -> dict:
    """Wrong rates of the T = 0.1 baseline and what semantic entropy at T = 1 knows about them."""
    torch.manual_seed(seed)
    baselines = answerer.ask(items, temperature=0.1)
    rounds = [answerer.ask(items, temperature=1.0) for _ in range(n_samples)]
    samples = list(zip(*rounds, strict=True))
    meaningless = [phantom.meaning_of(text) is None for texts in samples for text in texts]
    return {
        "wrong at T=0.1": wrong_rates(items, baselines),
        "mean entropy": by_type(items, [semantic_entropy(s) for s in samples], lambda group: float(np.mean(group))),
        "AUROC of entropy": entropy_aurocs(items, baselines, samples),
        "share of meaningless samples": round(float(np.mean(meaningless)), 4),
    }


def perturbed_copy(items: Sequence[Item], seed: int) -> list[Item]:
    """Return the same questions about perturbed pictures."""
    rng = np.random.default_rng(seed)
    return [Item(perturb(i.picture, rng), i.question, i.question_type, i.answer) for i in items]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, default=vlm_path())
    parser.add_argument("--demo", type=Path, required=True, help="demo-test.parquet")
    parser.add_argument("--held-out-scans", type=int, default=1000)
    parser.add_argument("--samples", type=int, default=10, help="answers at T = 1 for every question")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    answerer = Answerer(options.model)
    results: dict[str, object] = {}
    for name, items in {"demo": load_demo(options.demo), "held out": draw_held_out(options.held_out_scans)}.items():
        results[f"{name}, greedy, wrong"] = wrong_rates(items, answerer.ask(items))
        results[f"{name}, uncertainty"] = measure_uncertainty(answerer, items, options.samples, options.seed)
        perturbed = perturbed_copy(items, options.seed)
        results[f"{name}, perturbed, greedy, wrong"] = wrong_rates(items, answerer.ask(perturbed))
    logger.info("{}", json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
