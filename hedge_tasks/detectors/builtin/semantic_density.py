"""Semantic density: how likely the samples are that mean what the baseline answer means."""

from __future__ import annotations

import math

from hedge_tasks.claims.base import CONTRADICTION, NEUTRAL
from hedge_tasks.detectors.evidence import Evidence
from hedge_tasks.detectors.registry import register
from hedge_tasks.detectors.similarity import relations_of


@register(
    "semantic_density",
    "Semantic density",
    needs=("clean", "relations", "baseline_logprob", "clean_logprobs"),
    source="Qiu and Miikkulainen 2024 (arXiv:2405.13845)",
)
def semantic_density(evidence: Evidence) -> float:
    r"""One minus the probability-weighted nearness of the different samples to the baseline answer.

    .. math::
        1 - \frac{\sum_t e^{\ell_t} K_t}{\sum_t e^{\ell_t}}, \qquad K_t = 1 - C_{0t} - \tfrac{1}{2} N_{0t}

    over the different texts t of the clean answers and the baseline answer itself with :math:`K = 1`; :math:`C_{0t},
    N_{0t}` are the probabilities that the baseline answer contradicts t or is neutral to it.

    This is one plus lm-polygraph's (which returns minus the density): the baseline answer is premise only and counts
    besides a sample of the same text. Of equal texts the likeliest counts here, the first one there. The authors' code
    asks both directions; uqlm's counts repeated texts and leaves the baseline answer out.

    Args:
        evidence: With clean answers, NLI relations and the log-probabilities of the clean and the baseline answers.

    Returns:
        A number in [0, 1]; None where every answer has probability 0.

    Example:
        >>> import numpy as np
        >>> from hedge_tasks.detectors.evidence import relation_matrices
        >>> texts = ("left", "left", "right")
        >>> [relations] = relation_matrices([texts], lambda pairs: [(1.0, 0.0, 0.0)] * len(pairs))
        >>> round(semantic_density(Evidence(texts, 2, mean_logprobs=np.log([0.6, 0.6, 0.4]), relations=relations)), 4)
        0.25
    """
    baseline, *samples = evidence.mean_logprobs[: 1 + evidence.n_clean].tolist()
    relations = evidence.shared(relations_of)[0, evidence.clean]
    kernels = (1.0 - relations[:, CONTRADICTION] - relations[:, NEUTRAL] / 2).tolist()
    likeliest: dict[str, tuple[float, float]] = {}
    for text, logprob, kernel in zip(evidence.texts[evidence.clean], samples, kernels, strict=True):
        likeliest[text] = max(likeliest.get(text, (-math.inf, 0.0)), (logprob, kernel))
    # Relative to the likeliest of all, so that not all of them underflow.
    largest = max(baseline, *(logprob for logprob, _ in likeliest.values()))
    if largest == -math.inf:
        return math.nan
    weights = [math.exp(baseline - largest), *(math.exp(logprob - largest) for logprob, _ in likeliest.values())]
    far = [0.0, *(1.0 - kernel for _, kernel in likeliest.values())]
    return math.fsum(w * x for w, x in zip(weights, far, strict=True)) / math.fsum(weights)
