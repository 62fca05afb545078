"""Whether two samplers answer alike: an exact permutation test on the answers to the same questions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def p_value(
    a: Sequence[Sequence[str]], b: Sequence[Sequence[str]], *, permutations: int = 9_999, seed: int = 0
) -> float:
    """How often answers of one and the same sampler differ as much as these do.

    Under the hypothesis that both samplers draw the answers to a question from one distribution, which of a question's
    answers came from which sampler is chance, so it is dealt out anew. What is compared is the difference of the counts
    of every text, absolute and summed over all texts and questions. Exact for any number of answers.

    Args:
        a: for every question the answers of one sampler, drawn independently.
        b: those of the other one, as many for each question.
        permutations: how many are tried.
        seed: of the permutations.

    Returns:
        (1 + number of permutations at least as different) / (1 + `permutations`).
    """
    dice = np.random.default_rng(seed)
    observed, permuted = 0, np.zeros(permutations, dtype=np.int64)
    for one, other in zip(a, b, strict=True):
        codes = np.unique([*one, *other], return_inverse=True)[1]
        observed += int(_difference(codes[None], len(one))[0])
        permuted += _difference(dice.permuted(np.tile(codes, (permutations, 1)), axis=1), len(one))
    return float(1 + (permuted >= observed).sum()) / (1 + permutations)


def _difference(codes: npt.NDArray[np.int64], n_first: int) -> npt.NDArray[np.int64]:
    """Sum of |count among the first - count among the rest| over the texts, of each row."""
    texts = np.arange(codes.max() + 1)
    first = (codes[:, :n_first, None] == texts).sum(axis=1)
    return np.abs(2 * first - (codes[:, :, None] == texts).sum(axis=1)).sum(axis=1)
