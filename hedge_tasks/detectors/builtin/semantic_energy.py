"""Semantic energy: logits in place of probabilities, so that answers that all agree still differ."""

from __future__ import annotations

import math

from hedge_tasks.detectors.evidence import Evidence
from hedge_tasks.detectors.registry import register


@register(
    "semantic_energy",
    "Semantic energy",
    needs=("clean", "clusters", "draw_logits"),
    source="Ma et al. 2025 (arXiv:2508.14496)",
    experimental=True,
)
def semantic_energy(evidence: Evidence) -> float:
    r"""Energy of the clean answers that mean what the baseline answer means.

    .. math::
        \frac{1}{n} \sum_{i: c_i = c_0} \frac{1}{T_i} \sum_t -z(y^i_t)

    with :math:`z` the logit of the token. Many answers with large logits make it low; where no clean answer agrees with
    the baseline answer it is 0. Logits have no zero of their own: a model whose logits are negative turns the order of
    agreement round.

    Args:
        evidence: With clusters and logits of the clean answers.

    Example:
        >>> import numpy as np
        >>> from hedge_tasks.data.inside import LOGITS
        >>> logits = np.zeros((2, len(LOGITS)))
        >>> logits[:, LOGITS.index("logit")] = (10.0, 20.0)
        >>> semantic_energy(Evidence(("a", "a", "b"), 2, (0, 0, 1), inside={"draw_logits": logits}))
        -5.0
    """
    logits = evidence.inside_column("draw_logits", "logit").tolist()
    agreeing = [z for z, id in zip(logits, evidence.clean_ids, strict=True) if id == evidence.baseline_id]
    return 0.0 - math.fsum(agreeing) / evidence.n_clean


@register(
    "free_energy",
    "Free energy",
    needs=("token_logits",),
    source="Liu et al. 2020 (arXiv:2010.03759), equation 4, the mean over tokens",
    experimental=True,
)
def free_energy(evidence: Evidence) -> float:
    r"""Mean free energy of the next token, over the tokens of the baseline answer.

    .. math::
        -\frac{1}{T} \sum_t \ln \sum_v e^{z_t(v)}

    Args:
        evidence: With logits of the baseline answer's tokens.

    Example:
        >>> import numpy as np
        >>> from hedge_tasks.data.inside import LOGITS
        >>> logits = np.zeros((2, len(LOGITS)))
        >>> logits[:, LOGITS.index("free_energy")] = (10.0, 20.0)
        >>> free_energy(Evidence(("a cyst",), 0, inside={"logits": logits}))
        -15.0
    """
    return -float(evidence.inside_column("logits", "free_energy").mean())
