"""Checks before the first draw, so that a run fails then, and not after hours of sampling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loguru import logger

from hedge_tasks.data import splits
from hedge_tasks.errors import ConfigError, DataError, HedgeError
from hedge_tasks.lmms.documents import Documents
from hedge_tasks.lmms.filters import FILTERS_VARIABLE, ClusterFilter, steps_of
from hedge_tasks.sampling.plan import SamplingPlan
from hedge_tasks.sampling.requests import SampleRequest


def check_images(task: str, documents: Documents, plan: SamplingPlan) -> None:
    """Leave out documents without a picture that can be shown, as far as the plan allows.

    Raises:
        DataError: there are more of them.
    """
    if not documents.image_faults:
        return
    n_documents = len(documents.keys)
    faults = splits.describe_faults(documents.image_faults, n_documents)
    what = f"{task} ({documents.source.path}, {documents.source.split}): {faults}"
    if len(documents.image_faults) > plan.allowed_failures(n_documents):
        raise DataError(f"{what}; max_failed leaves out as many as it says")
    logger.warning("{}; they are left out", what)


def check_models(ensembles: Sequence[Any]) -> None:
    """Check that the models of all clustering filters can be had.

    Raises:
        HedgeError: one cannot; names the filters that can run without it.
    """
    faults: dict[str, Exception] = {}
    for name, step in steps_of(ensembles, ClusterFilter):
        try:
            step.check()
        except HedgeError as error:
            faults[name] = error
    if not faults:
        return
    first = next(iter(faults.values()))
    runnable = [ensemble.name for ensemble in ensembles if ensemble.name not in faults]
    hint = f" To run only the filters that can run, set {FILTERS_VARIABLE}={','.join(runnable)}." if runnable else ""
    raise type(first)(f"{first}{hint}") from first


def check_noise(task: str, plan: SamplingPlan, request: SampleRequest) -> None:
    """Check that a document has what the noise perturbs.

    Raises:
        ConfigError: it has not; names the document.
    """
    try:
        plan.noise.check(request.wording)
    except ConfigError as error:
        raise ConfigError(f"{task}, document {request.id}: {error}") from None
