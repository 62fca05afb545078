"""How far VOPE's rules of presence agree: by category, and by likeness above 0.8 with a sentence encoder (or spaCy).

    python benchmarks/vope_presence.py [--items coco_captioning.json] [--captions captions.jsonl] [--presence embedding]

Every word of the vocabulary is looked up in every image of VOPE's items, and every mention in captions of images whose
objects are annotated (JSON lines: captions, instances).
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

import numpy as np

from hedge_tasks.suites.vope.building import read_items
from hedge_tasks.suites.vope.extraction import mentions
from hedge_tasks.suites.vope.presence import PRESENCES, THRESHOLD, is_present, word_vectors
from hedge_tasks.suites.vope.vocabulary import coco


def agreement(name: str, pairs: list[tuple[str, str, frozenset[str]]], presence: str, model: str | None) -> None:
    """Counts over (word, category, objects of the image)."""
    both = Counter((of in truth, is_present(word, of, truth, presence, model)) for word, of, truth in pairs)
    n, exact, added = len(pairs), both[True, True], both[False, True]
    chance = (exact / n) * ((exact + added) / n) + (1 - exact / n) * (1 - (exact + added) / n)
    kappa = ((n - added) / n - chance) / (1 - chance)
    print(f"{name}: {n} lookups, {exact} present by category, {added} more by likeness", end="; ")
    print(f"agreement {1 - added / n:.4f}, kappa {kappa:.3f}")


def between_categories(presence: str, model: str | None) -> None:
    """Pairs of words of different categories that are taken for one another."""
    vectors, categories = word_vectors(presence, model), coco().categories
    words = list(vectors)
    cosines = np.stack([vectors[word] for word in words]) @ np.stack([vectors[word] for word in words]).T
    places = zip(*np.nonzero(np.triu(cosines > THRESHOLD, 1)), strict=True)
    alike = [(words[i], words[j], float(cosines[i, j])) for i, j in places]
    strange = sorted((p for p in alike if categories[p[0]] != categories[p[1]]), key=lambda pair: -pair[2])
    print(f"{len(alike)} pairs of words above {THRESHOLD}, {len(strange)} of them of different categories")
    print("; ".join(f"{a} ({categories[a]}) ~ {b} ({categories[b]}) {c:.2f}" for a, b, c in strange[:25]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=Path)
    parser.add_argument("--captions", type=Path)
    parser.add_argument("--presence", choices=PRESENCES, default="embedding")
    parser.add_argument("--model")
    given = parser.parse_args()
    between_categories(given.presence, given.model)
    if given.items:
        truths = [frozenset(item.objects) for item in read_items(given.items)]
        every = [(word, category, truth) for truth in truths for word, category in coco().categories.items()]
        agreement(f"all words in {len(truths)} images", every, given.presence, given.model)
    if given.captions:
        rows = [json.loads(line) for line in given.captions.read_text("utf-8").splitlines()]
        said = [
            (mention.word, mention.category, frozenset(box["category"] for box in row["instances"]))
            for row in rows
            for caption in row["captions"]
            for mention in mentions(caption)
        ]
        agreement(f"mentions in captions of {len(rows)} images", said, given.presence, given.model)
