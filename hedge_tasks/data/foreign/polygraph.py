"""Managers of lm-polygraph (`UEManager.save`, a file of torch), of which nothing but data is loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hedge_tasks.data.foreign.record import ForeignAnswers, ForeignFile, GivenAnswer
from hedge_tasks.errors import DataError

FORM = "lm-polygraph"


def read(file: Path) -> ForeignFile:
    """The answers of a manager: its greedy texts and its samples.

    Raises:
        DataError: it cannot be read without running code, or holds no texts.
    """
    stats = _loaded(file).get("stats")
    if not isinstance(stats, Mapping) or "greedy_texts" not in stats:
        raise DataError(f"{file}: no manager of lm-polygraph with greedy_texts")
    greedy, n = _listed(stats["greedy_texts"]), len(stats["greedy_texts"])
    questions, targets = (_column(stats, name, n) for name in ("input_texts", "target_texts"))
    samples = _column(stats, "sample_texts", n)
    of_greedy, of_samples = _column(stats, "greedy_log_likelihoods", n), _column(stats, "sample_log_likelihoods", n)
    documents = []
    for i, text in enumerate(greedy):
        tokens = _listed(of_samples[i]) if of_samples[i] is not None else []
        draws = [_answer(one, tokens[k] if k < len(tokens) else None) for k, one in enumerate(_listed(samples[i]))]
        target = targets[i]
        reference = "\n".join(map(str, target)) if isinstance(target, (list, tuple)) else str(target or "")
        baseline = _answer(text, of_greedy[i])
        documents.append(ForeignAnswers(str(i), tuple(draws), baseline, str(questions[i] or ""), reference))
    notes = ["ids: the number of the row, from 0"]
    if "sample_texts" not in stats:
        notes.append("draws: none, for the manager was saved without sample_texts (save_stats)")
    return ForeignFile(FORM, tuple(documents), notes=tuple(notes))


def _loaded(file: Path) -> Mapping[str, Any]:
    import numpy as np
    import torch

    kinds = [np.ndarray, np.dtype, *(type(np.dtype(kind)) for kind in ("f4", "f8", "i4", "i8", "f2", "?"))]
    rebuilt = [getattr(np, "_core", None) or np.core]  # by the version of NumPy
    known = [*kinds, rebuilt[0].multiarray._reconstruct, rebuilt[0].multiarray.scalar]
    try:
        with torch.serialization.safe_globals(known):
            found = torch.load(file, weights_only=True, map_location="cpu")
    except Exception as error:  # of many kinds: no file of torch, or one that holds more than data
        first = (str(error).strip().splitlines() or [""])[0][:200]
        raise DataError(
            f"{file}: not readable without running code in it ({type(error).__name__}: {first}); save a manager with "
            "texts, tokens and log-likelihoods alone"
        ) from None
    if not isinstance(found, Mapping):
        raise DataError(f"{file}: no manager of lm-polygraph")
    return found


def _column(stats: Mapping[str, Any], name: str, n: int) -> list[Any]:
    values = _listed(stats[name]) if name in stats else [None] * n
    if len(values) != n:
        raise DataError(f"{name}: {len(values)} values for {n} greedy_texts")
    return values


def _listed(values: Any) -> list[Any]:
    return [] if values is None else values.tolist() if hasattr(values, "tolist") else list(values)


def _answer(text: object, tokens: Any) -> GivenAnswer:
    logprobs: Sequence[float] | None = _listed(tokens) or None
    return {"text": str(text).strip(), "logprobs": [min(0.0, float(one)) for one in logprobs] if logprobs else None}
