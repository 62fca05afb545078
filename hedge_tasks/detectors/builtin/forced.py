"""Detectors on one more pass over given words: no draw, but not free either. Experimental."""

from __future__ import annotations

import math

import numpy as np

from hedge_tasks.data.answers import NOISY, OPTION
from hedge_tasks.detectors.distribution import entropy, softmax
from hedge_tasks.detectors.evidence import Evidence
from hedge_tasks.detectors.registry import register


@register(
    "p_true",
    "p(true), one forced pass",
    needs=("forced_truth",),
    source="Kadavath et al. 2022 (arXiv:2207.05221), without samples in the prompt",
    experimental=True,
)
def p_true(evidence: Evidence) -> float:
    r"""How unlikely the model is to call its own answer true, when it is shown and asked.

    .. math::
        \frac{p(\text{False})}{p(\text{True}) + p(\text{False})}

    Both words are forced after the same prompt, so that it costs one reading of it and no draw. lm-polygraph's PTrue is
    the log-probability of the single token "True", and its prompt another one; theirs with sampled answers in the
    prompt is PTrueSampling.

    Args:
        evidence: With the forced words.

    Returns:
        A number in [0, 1].

    Example:
        >>> import math
        >>> p_true(Evidence(("left",), 0, forced={"true": math.log(0.6), "false": math.log(0.2)}))
        0.25
    """
    words = [evidence.forced["false"], evidence.forced["true"]]
    return float(softmax(np.array(words))[0]) if max(words) > -np.inf else math.nan


@register(
    "image_ratio",
    "Image ratio, one forced pass",
    needs=("baseline_logprob", "baseline_tokens", "forced_blank"),
    unit="nats",
    source="pointwise mutual information with the image; for text Takayama and Arase 2019",
    experimental=True,
)
def image_ratio(evidence: Evidence) -> float:
    r"""How little the image adds to the log-probability of the baseline answer.

    .. math::
        -\bigl(\ln p(y \mid \text{image}, x) - \ln p(y \mid \text{blank}, x)\bigr)

    of the whole answer; the blank is a grey image of the same size. An answer that is as likely without the image rests
    on the question alone.

    Args:
        evidence: With log-probability and token count of the baseline answer, and the forced one.

    Example:
        >>> import numpy as np
        >>> said, tokens = np.array([-0.25]), np.array([4.0])
        >>> image_ratio(Evidence(("a small effusion",), 0, mean_logprobs=said, n_tokens=tokens, forced={"blank": -3.0}))
        -2.0
    """
    return evidence.forced["blank"] - float(evidence.summed_logprobs[0])


@register(
    "reworded_msp",
    "Sequence probability (−log), reworded question",
    needs=("forced_reworded",),
    unit="nats",
    source="the answer's part of VL-Uncertainty's rewording (arXiv:2411.11919), which clusters draws",
    experimental=True,
)
def reworded_msp(evidence: Evidence) -> float:
    r"""How unlikely the baseline answer is when the same question is asked in other words.

    .. math::
        -\ln p(y \mid \text{image}, x')

    of the whole answer; :math:`x'` is the question behind an introduction that changes nothing of what is asked (the
    perturbation `neutral_wording`), the same for a document in every run. `msp` is this for the question as it was
    asked.

    Args:
        evidence: With the forced answer.

    Example:
        >>> reworded_msp(Evidence(("a small effusion",), 0, forced={"reworded": -3.5}))
        3.5
    """
    return 0.0 - evidence.forced["reworded"]


@register(
    "option_entropy",
    "Entropy over the offered answers, forced passes",
    short="option entropy",
    needs=("forced_options",),
    unit="nats",
    source="predictive entropy where all answers are known (Kadavath et al. 2022, arXiv:2207.05221)",
    experimental=True,
)
def option_entropy(evidence: Evidence) -> float:
    r"""Entropy of the model's distribution over the answers that the question offers.

    .. math::
        -\sum_o q_o \ln q_o, \qquad q_o = \frac{p(o \mid x)}{\sum_{o'} p(o' \mid x)}

    with the probability of each option as the whole reply, its end included. What the model would rather say in other
    words is left out by the normalisation.

    Args:
        evidence: With the forced options, two at least.

    Returns:
        A number from 0 to the logarithm of the number of options; NaN where the model never says any of them.

    Example:
        >>> import math
        >>> even = {"option:yes": math.log(0.3), "option:no": math.log(0.3)}
        >>> round(option_entropy(Evidence(("yes",), 0, forced=even)), 4)
        0.6931
    """
    logprobs = np.array([value for name, value in evidence.forced.items() if name.startswith(OPTION)])
    if logprobs.max() == -np.inf:
        return math.nan
    shares = softmax(logprobs)
    return float(-(shares * np.log(shares, where=shares > 0, out=np.zeros_like(shares))).sum())


@register(
    "option_vase",
    "VASE over the offered answers, forced passes",
    short="option VASE",
    needs=("forced_noisy",),
    unit="nats",
    source="Liao et al. 2025 with the model's own distributions in place of sampled ones",
    experimental=True,
)
def option_vase(evidence: Evidence, *, alpha: float = 1.0) -> float:
    r"""VASE of the model's distributions over the answers that the question offers, without a draw.

    .. math::
        H\bigl(\operatorname{softmax}(q + \alpha (q - \bar q'))\bigr)

    :math:`q` is the distribution of `option_entropy` on the clean image, and :math:`\bar q'` the mean of those on the
    perturbed images of the noisy draws, each from forced passes of its own.

    Args:
        evidence: With the forced options on the clean image and on each perturbed one.
        alpha: Strength of the contrast.

    Returns:
        A number from 0 to the logarithm of the number of options; NaN where the model never says any of them.

    Example:
        >>> import math
        >>> clean = {"option:yes": math.log(0.9), "option:no": math.log(0.1)}
        >>> noise = {"noisy:0:yes": math.log(0.5), "noisy:0:no": math.log(0.5)}
        >>> round(option_vase(Evidence(("yes",), 0, forced=clean | noise)), 4)
        0.4527
    """
    offered = [name.removeprefix(OPTION) for name in evidence.forced if name.startswith(OPTION)]
    noisy = (name.removeprefix(NOISY).partition(":")[0] for name in evidence.forced if name.startswith(NOISY))
    beginnings = [OPTION, *(f"{NOISY}{picture}:" for picture in dict.fromkeys(noisy))]
    logprobs = np.array([[evidence.forced[begin + option] for option in offered] for begin in beginnings])
    if (logprobs.max(axis=1) == -np.inf).any():
        return math.nan
    clean, *noisy_shares = map(softmax, logprobs)
    mean = np.array([math.fsum(column) / len(noisy_shares) for column in zip(*noisy_shares, strict=True)])
    return entropy(softmax(clean + alpha * (clean - mean)))
