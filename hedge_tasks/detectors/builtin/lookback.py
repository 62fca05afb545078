"""Lookback ratio: does the model look back at the prompt, or at its own words?"""

from __future__ import annotations

from hedge_tasks.detectors.evidence import Evidence
from hedge_tasks.detectors.registry import register


@register(
    "lookback",
    "Little looking back",
    needs=("attention",),
    source="Chuang et al. 2024 (arXiv:2407.07071), the mean of its features",
    experimental=True,
)
def lookback(evidence: Evidence) -> float:
    r"""One minus the lookback ratio, the mean over layers, heads and tokens of the answer.

    .. math::
        1 - \frac{1}{L H T} \sum_{l, h, t}
        \frac{A^{l,h}_t(\text{prompt})}{A^{l,h}_t(\text{prompt}) + A^{l,h}_t(\text{answer})}

    where :math:`A_t` is the mean attention weight on a token of the prompt, picture included, or of the answer so far,
    of the position that has read token t. The paper fits a classifier on the ratios of all heads: `lookback_lens`.

    Args:
        evidence: With attention.

    Example:
        >>> import numpy as np
        >>> from hedge_tasks.data.inside import HEADS
        >>> heads = np.zeros((2, 1, len(HEADS)))
        >>> heads[:, 0, HEADS.index("lookback")] = (0.25, 0.5)
        >>> lookback(Evidence(("a cyst",), 0, inside={"heads": heads, "previous": np.zeros((2, 1))}))
        0.625
    """
    return 1.0 - float(evidence.inside_column("heads", "lookback").mean())
