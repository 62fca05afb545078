"""How much, and how widely, the model looks at its picture while it says the baseline answer."""

from __future__ import annotations

from hedge_tasks.detectors.evidence import Evidence
from hedge_tasks.detectors.registry import register


@register(
    "image_attention",
    "Little attention to the image",
    needs=("image_attention",),
    source="Jiang et al. 2025 (VOPE, section 4.6)",
    experimental=True,
)
def image_attention(evidence: Evidence) -> float:
    r"""One minus the share of attention on image tokens, the mean over layers, heads and tokens of the answer.

    .. math::
        1 - \frac{1}{L H T} \sum_{l, h, t} \sum_{j \in \text{image}} a^{l,h}_{t,j}

    The position that says token t is the one before it.

    Args:
        evidence: With attention to image tokens.

    Example:
        >>> import numpy as np
        >>> from hedge_tasks.data.inside import HEADS
        >>> heads = np.zeros((2, 1, len(HEADS)))
        >>> heads[:, 0, HEADS.index("image")] = (0.25, 0.5)
        >>> image_attention(Evidence(("a cyst",), 0, inside={"heads": heads}))
        0.625
    """
    return 1.0 - float(evidence.inside_column("heads", "image").mean())


@register(
    "image_attention_entropy",
    "Entropy of the attention to the image",
    needs=("image_attention",),
    source="entropy over image tokens, as a share of the largest",
    experimental=True,
)
def image_attention_entropy(evidence: Evidence) -> float:
    r"""Entropy of the attention over image tokens, the mean over layers, heads and tokens of the answer.

    .. math::
        \frac{1}{L H T} \sum_{l, h, t} \frac{H(\tilde a^{l,h}_t)}{\ln M}, \qquad
        \tilde a^{l,h}_{t,j} = \frac{a^{l,h}_{t,j}}{\sum_{k \in \text{image}} a^{l,h}_{t,k}}

    with M image tokens: 1 where all are looked at alike.

    Args:
        evidence: With attention to image tokens.

    Example:
        >>> import numpy as np
        >>> from hedge_tasks.data.inside import HEADS
        >>> heads = np.zeros((2, 1, len(HEADS)))
        >>> heads[:, 0, HEADS.index("image_entropy")] = (0.5, 1.0)
        >>> image_attention_entropy(Evidence(("a cyst",), 0, inside={"heads": heads}))
        0.75
    """
    return float(evidence.inside_column("heads", "image_entropy").mean())
