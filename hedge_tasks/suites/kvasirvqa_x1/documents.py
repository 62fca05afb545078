"""KvasirVQA-x1: which questions of the test split are asked, and the columns that the tables need."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from datasets import Dataset
from loguru import logger

from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.io.outside import parse_json
from hedge_tasks.suites.documents import check_columns, check_options

DEFAULTS: dict[str, int | None] = {"size": 500, "complexity": 1, "seed": 0}

_NEEDED = ("img_id", "question", "answer", "complexity", "question_class", "original")


def process_docs(dataset: Dataset, **options: int | None) -> Dataset:
    """Choose representative questions, and add columns that the hub's data set lacks.

    `question_id` (image and a hash of the question), `question_kind` (its classes), `description` (its atomic pairs).

    Args:
        options: `size` (500; null for all), `complexity` (1; 2 or 3; null for all) and `seed` (0) of the choice.

    Raises:
        ConfigError: an option is unknown or makes no sense.
        DataError: a column is missing, or no question has the complexity.
    """
    size, complexity, seed = _checked(options)
    check_columns("KvasirVQA-x1", dataset, _NEEDED)
    levels = dataset["complexity"][:]
    rows = [i for i, level in enumerate(levels) if complexity is None or level == complexity]
    if not rows:
        raise DataError(
            f"KvasirVQA-x1: no question of complexity {complexity}; there are {sorted(set(levels), key=str)}"
        )
    dataset = dataset.select(rows)
    kinds = [question_kind(classes) for classes in dataset["question_class"]]
    keys = list(zip(dataset["img_id"], dataset["question"], dataset["answer"], strict=True))
    if size is not None and size > len(rows):
        logger.warning("KvasirVQA-x1: {} questions are wanted, there are {}", size, len(rows))
    chosen = representative(kinds, keys, size, seed or 0)
    dataset = dataset.select(chosen).add_column("question_kind", [kinds[i] for i in chosen])
    dataset = dataset.add_column("question_id", question_ids([keys[i] for i in chosen]))
    return dataset.add_column("description", [atomic_pairs(original) for original in dataset["original"]])


def representative(kinds: list[str], keys: Sequence[tuple[str, ...]], size: int | None, seed: int) -> list[int]:
    """Choose documents so that every kind has its share, in a way that anybody can repeat; returns their rows in order.

    Within a kind the documents are put in the order of a hash of seed and content. The document of rank r (from 0)
    among the n of its kind has the position (r + 1/2) / n, and the `size` documents of the smallest positions are taken
    (ties by the hash). That is the method of Sainte-Laguë: shares are as near to proportional as whole numbers can be,
    a larger size keeps all documents of a smaller one, and the order of the data set does not matter.

    Args:
        kinds: kind of each document.
        keys: content that tells the documents apart.
        size: how many; None or more than there are takes all.
    """
    hashes = [hashlib.sha256("\0".join((str(seed), *key)).encode()).hexdigest() for key in keys]
    members = defaultdict(list)
    for i in sorted(range(len(kinds)), key=lambda i: (hashes[i], i)):
        members[kinds[i]].append(i)
    position = {i: (2 * r + 1) / (2 * len(rows)) for rows in members.values() for r, i in enumerate(rows)}
    chosen = sorted(position, key=lambda i: (position[i], hashes[i], i))[:size]
    return sorted(chosen)


def question_ids(keys: Sequence[tuple[str, ...]]) -> list[str]:
    """Return an id from the content, which does not change with the choice; exact duplicates get a counter."""
    seen: Counter[str] = Counter()
    ids = []
    for img_id, *texts in keys:
        name = f"{img_id}-{hashlib.sha256(chr(0).join(texts).encode()).hexdigest()[:8]}"
        ids.append(f"{name}.{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return ids


def question_kind(classes: Any) -> str:
    """Return the classes of a question as one name; at complexity 1 there is one."""
    return classes if isinstance(classes, str) else " + ".join(sorted(map(str, classes or [])))


def atomic_pairs(original: str) -> str:
    """Return the question-answer pairs that a question was made of, a line each; "" where they cannot be read."""
    try:
        pairs = parse_json(original, "original")
        return "\n".join(f"{pair['q']} {pair['a']}" for pair in pairs)
    except (TypeError, ValueError, KeyError):
        return ""


def _checked(options: dict[str, int | None]) -> tuple[int | None, int | None, int | None]:
    check_options("KvasirVQA-x1 under 'dataset_kwargs'", options, DEFAULTS)
    for name, value in options.items():
        least = 0 if name == "seed" else 1
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
            raise ConfigError(f"KvasirVQA-x1: {name}: expected an integer of at least {least}, got {value!r}")
    size, complexity, seed = ({**DEFAULTS, **options}[name] for name in DEFAULTS)
    return size, complexity, seed
