"""KvasirVQA-x1: which questions are asked, and the columns that are added."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st

from hedge_tasks.suites.kvasirvqa_x1 import documents as kvasir

KINDS = st.lists(st.sampled_from("abcde"), min_size=1, max_size=60)


def keys(n: int) -> list[tuple[str, ...]]:
    return [(f"image-{i % 7}", f"question {i}?", "yes") for i in range(n)]


def rows(kinds: list[str], **columns: Any) -> Dataset:
    n = len(kinds)
    values = {
        "image": ["x.jpg"] * n,
        "img_id": [f"image-{i % 7}" for i in range(n)],
        "complexity": [1] * n,
        "question": [f"question {i}?" for i in range(n)],
        "answer": ["No polyps are seen."] * n,
        "original": [json.dumps([{"q": "Any polyps?", "a": "no"}])] * n,
        "question_class": [[kind] for kind in kinds],
    }
    return Dataset.from_dict({**values, **columns})


@given(KINDS, st.integers(1, 70))
def test_shares_are_those_of_sainte_lague(kinds: list[str], size: int) -> None:
    """No seat could go to another kind with a larger quotient n / (2 k + 1): what defines the method."""
    chosen = kvasir.representative(kinds, keys(len(kinds)), size, 0)
    assert len(chosen) == len(set(chosen)) == min(size, len(kinds))
    assert chosen == sorted(chosen)
    there, seats = Counter(kinds), Counter(kinds[i] for i in chosen)
    for one in there:
        for other in there:
            if seats[one] < there[one] and seats[other]:
                assert there[one] * (2 * seats[other] - 1) <= there[other] * (2 * seats[one] + 1)


@given(st.permutations(range(30)), st.integers(1, 30))
def test_the_order_of_the_data_set_does_not_matter(order: list[int], size: int) -> None:
    kinds = ["abc"[i % 3] if i < 20 else "d" for i in range(30)]
    chosen = kvasir.representative(kinds, keys(30), size, 0)
    shuffled = kvasir.representative([kinds[i] for i in order], [keys(30)[i] for i in order], size, 0)
    assert sorted(order[i] for i in shuffled) == chosen


def test_another_seed_chooses_other_questions_in_the_same_shares() -> None:
    kinds = [random.Random(i).choice("aaab") for i in range(400)]
    one, other = (kvasir.representative(kinds, keys(400), 100, seed) for seed in (0, 1))
    assert one != other
    assert Counter(kinds[i] for i in one) == Counter(kinds[i] for i in other)
