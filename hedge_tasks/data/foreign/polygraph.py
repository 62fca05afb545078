"""Managers of lm-polygraph (`UEManager.save`, a file of torch), of which nothing but data is loaded."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from hedge_tasks.data.foreign.tools import ForeignFile, reference_text
from hedge_tasks.errors import DataError, first_line
from hedge_tasks.io import outside

FORM = "lm-polygraph"


def read(file: Path) -> ForeignFile:
    """The answers of a manager: its greedy texts and its samples.

    Raises:
        DataError: it cannot be read without running code, or holds no texts.
    """
    stats = _load(file).get("stats")
    if not isinstance(stats, Mapping) or "greedy_texts" not in stats:
        raise DataError(f"{file}: no manager of lm-polygraph with greedy_texts")
    greedy, n = _as_list(stats["greedy_texts"]), len(stats["greedy_texts"])
    questions, targets = (_column(stats, name, n) for name in ("input_texts", "target_texts"))
    samples = _column(stats, "sample_texts", n)
    of_greedy, of_samples = _column(stats, "greedy_log_likelihoods", n), _column(stats, "sample_log_likelihoods", n)
    rows = []
    for i, text in enumerate(greedy):
        tokens = _as_list(of_samples[i]) if of_samples[i] is not None else []
        draws = [_answer(t, tokens[k] if k < len(tokens) else None) for k, t in enumerate(_as_list(samples[i]))]
        fields = {"id": str(i), "question": str(questions[i] or ""), "reference": reference_text(targets[i])}
        rows.append((f"{file}: {i}", {**fields, "baseline": _answer(text, of_greedy[i]), "answers": draws}))
    notes = ["ids: the number of the row, from 0"]
    if "sample_texts" not in stats:
        notes.append("draws: none, for the manager was saved without sample_texts (save_stats)")
    return ForeignFile(FORM, rows, notes=tuple(notes))


def _load(file: Path) -> Mapping[str, Any]:
    import numpy as np
    import torch

    kinds = [np.ndarray, np.dtype, *(type(np.dtype(kind)) for kind in ("f4", "f8", "i4", "i8", "f2", "?"))]
    rebuilt = [getattr(np, "_core", None) or np.core]  # by the version of NumPy
    allowed = [*kinds, rebuilt[0].multiarray._reconstruct, rebuilt[0].multiarray.scalar]
    with suppress(zipfile.BadZipFile):  # older files are no archives
        outside.check_archive(file)
    try:
        with torch.serialization.safe_globals(allowed):
            manager = torch.load(file, weights_only=True, map_location="cpu")
    except Exception as error:  # of many kinds: no file of torch, or one that holds more than data
        raise DataError(
            f"{file}: not readable without running code in it ({first_line(error)}); save a manager with texts, tokens "
            "and log-likelihoods alone"
        ) from None
    if not isinstance(manager, Mapping):
        raise DataError(f"{file}: no manager of lm-polygraph")
    return manager


def _column(stats: Mapping[str, Any], name: str, n: int) -> list[Any]:
    values = _as_list(stats[name]) if name in stats else [None] * n
    if len(values) != n:
        raise DataError(f"{name}: {len(values)} values for {n} greedy_texts")
    return values


def _as_list(values: Any) -> list[Any]:
    return [] if values is None else values.tolist() if hasattr(values, "tolist") else list(values)


def _answer(text: object, tokens: Any) -> Mapping[str, Any]:
    return {"text": str(text).strip(), "logprobs": [*map(float, _as_list(tokens))] or None}
