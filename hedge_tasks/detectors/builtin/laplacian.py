"""The graph of the samples: degree, eigenvalues and eccentricity, over NLI, cosine and word similarity."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hedge_tasks.detectors.distribution import FloatArray
from hedge_tasks.detectors.evidence import Evidence
from hedge_tasks.detectors.registry import register
from hedge_tasks.detectors.similarity import clean_cosine, clean_entailment, jaccard, settled

Spectrum = tuple[FloatArray, FloatArray]

# Lin et al. 2024: eigenvectors of larger eigenvalues say nothing of meanings.
INFORMATIVE = 0.9


def degree(similarity: FloatArray) -> float:
    r"""Mean dissimilarity of the answers, each compared with all of them.

    .. math::
        \frac{1}{n^2} \sum_{i, j} (1 - W_{ij})

    Lin et al. 2024, :math:`U_\mathrm{Deg} = \operatorname{trace}(nI - D) / n^2`, as in lm-polygraph's DegMat; the
    authors' code divides by n. With :math:`W_{ii} = 1`; lm-polygraph takes what the model says of a text and itself.

    Args:
        similarity: :math:`W`, symmetric, in [0, 1], shape `(n, n)`.

    Returns:
        A number in [0, 1).

    Example:
        >>> import numpy as np
        >>> degree(np.array([[1.0, 0.5], [0.5, 1.0]]))
        0.25
    """
    return settled(1.0 - similarity.mean())


def eigenvalue_sum(similarity: FloatArray) -> float:
    r"""A continuous number of meanings: how many eigenvalues of the graph's Laplacian are near zero.

    .. math::
        \sum_k \max(0, 1 - \lambda_k), \qquad L = I - D^{-1/2} W D^{-1/2}

    with :math:`\lambda_k` the eigenvalues of :math:`L` and :math:`D` the diagonal matrix of the row sums of :math:`W`.
    Lin et al. 2024; lm-polygraph's EigValLaplacian.

    Args:
        similarity: :math:`W`, symmetric, in [0, 1] with ones on the diagonal, shape `(n, n)`.

    Returns:
        A number in [1, n]: for answers that are alike or not at all the number of groups.

    Example:
        >>> import numpy as np
        >>> eigenvalue_sum(np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]))
        2.0
    """
    return _eigenvalue_sum(_spectrum(similarity))


def eccentricity(similarity: FloatArray, *, below: float = INFORMATIVE) -> float:
    r"""How far the answers lie from their centre, in the coordinates that the graph's Laplacian gives them.

    .. math::
        \bigl\lVert (v_i - \bar v)_{i = 1 \ldots n} \bigr\rVert_2
        = \sqrt{\operatorname{tr} P - \tfrac{1}{n} \mathbf{1}^\top P \mathbf{1}}

    with :math:`v_i` the i-th row of the eigenvectors with eigenvalue below a threshold and :math:`P` the projection
    onto them, which needs no choice of a basis among equal eigenvalues. Lin et al. 2024; lm-polygraph's
    Eccentricity, whose rounding errors give agreeing answers up to 1e-6 in place of 0.

    Args:
        similarity: :math:`W`, as for `eigenvalue_sum`.
        below: The threshold.

    Returns:
        A number in :math:`[0, \sqrt{n - 1}]`.

    Example:
        >>> import numpy as np
        >>> eccentricity(np.ones((3, 3))), round(eccentricity(np.eye(3)), 4)
        (0.0, 1.4142)
    """
    return _eccentricity(_spectrum(similarity), below)


def _spectrum(similarity: FloatArray) -> Spectrum:
    """Eigenvalues, shape (n,), and eigenvectors as columns, shape (n, n), of the normalised Laplacian."""
    scale = similarity.sum(axis=1) ** -0.5
    values, vectors = np.linalg.eigh(np.eye(len(similarity)) - scale[:, None] * similarity * scale)
    return values, vectors


def _eigenvalue_sum(spectrum: Spectrum) -> float:
    return settled(np.maximum(0.0, 1.0 - spectrum[0]).sum())


def _eccentricity(spectrum: Spectrum, below: float) -> float:
    values, vectors = spectrum
    informative = vectors[:, np.round(values, 12) < below]
    n = len(values)
    # Settled below the root, too: it would turn a rounding error of 1e-16 into 1e-8.
    squared = settled(informative.shape[1] - (informative.sum(axis=0) ** 2).sum() / n)
    return settled(max(0.0, squared) ** 0.5)


def _register(kind: str, words: str, needs: tuple[str, ...], similarity: Callable[[Evidence], FloatArray]) -> None:
    """Register three detectors on one graph; the two of them that need its eigenvalues share them."""

    def spectrum(evidence: Evidence) -> Spectrum:
        return _spectrum(evidence.shared(similarity))

    def degree_score(evidence: Evidence) -> float:
        return degree(evidence.shared(similarity))

    def eigenvalue_score(evidence: Evidence) -> float:
        return _eigenvalue_sum(evidence.shared(spectrum))

    def eccentricity_score(evidence: Evidence, *, below: float = INFORMATIVE) -> float:
        return _eccentricity(evidence.shared(spectrum), below)

    degree_score.__doc__ = degree.__doc__
    eigenvalue_score.__doc__ = eigenvalue_sum.__doc__
    eccentricity_score.__doc__ = eccentricity.__doc__
    all_needs = ("clean", *needs)
    register(f"degree_{kind}", f"Degree, {words}", needs=all_needs, source="Lin et al. 2024 (arXiv:2305.19187)")(
        degree_score
    )
    register(
        f"eigv_{kind}",
        f"Sum of eigenvalues, {words}",
        needs=all_needs,
        unit="meanings",
        source="Lin et al. 2024 (arXiv:2305.19187)",
    )(eigenvalue_score)
    register(
        f"eccentricity_{kind}", f"Eccentricity, {words}", needs=all_needs, source="Lin et al. 2024 (arXiv:2305.19187)"
    )(eccentricity_score)


_register("nli", "NLI", ("relations",), clean_entailment)
_register("cosine", "cosine", ("cosines",), clean_cosine)
_register("jaccard", "words", (), jaccard)
