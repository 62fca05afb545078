"""Managers of lm-polygraph (`UEManager.save`, a file of torch), of which nothing but data is loaded."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path
from typing import Any

from hedge_tasks.data.foreign.tools import ForeignFile, reference_text
from hedge_tasks.errors import DataError, first_line
from hedge_tasks.io import outside

FORM = "lm-polygraph"

_COLUMNS = (
    *("greedy_texts", "input_texts", "target_texts", "greedy_log_likelihoods", "sample_texts"),
    "sample_log_likelihoods",
)


def read(file: Path) -> ForeignFile:
    """The answers of a manager: its greedy texts and its samples.

    Raises:
        DataError: it cannot be read without running code, or holds no texts, or more of one thing than of another.
    """
    stats = _load(file).get("stats")
    if not isinstance(stats, Mapping) or "greedy_texts" not in stats:
        raise DataError(f"{file}: no manager of lm-polygraph with greedy_texts")
    n = len(stats["greedy_texts"])
    columns = [_as_list(stats.get(name)) or [None] * n for name in _COLUMNS]
    if any(len(values) != n for values in columns):
        raise DataError(f"{file}: not as many {', '.join(_COLUMNS[1:])} as greedy_texts")
    rows = []
    for i, (text, question, target, tokens, samples, of_samples) in enumerate(zip(*columns, strict=True)):
        pairs = zip_longest(_as_list(samples), _as_list(of_samples)[: len(samples or ())])
        fields = {"id": str(i), "question": str(question or ""), "reference": reference_text(target)}
        draws = [_answer(*pair) for pair in pairs]
        rows.append((f"{file}: {i}", {**fields, "baseline": _answer(text, tokens), "answers": draws}))
    notes = ["ids: the number of the row, from 0"]
    if "sample_texts" not in stats:
        notes.append("draws: none, for the manager was saved without sample_texts (save_stats)")
    return ForeignFile(FORM, rows, notes=tuple(notes))


def _load(file: Path) -> Mapping[str, Any]:
    import numpy as np
    import torch

    kinds = [np.ndarray, np.dtype, *(type(np.dtype(kind)) for kind in ("f4", "f8", "i4", "i8", "f2", "?"))]
    rebuilt = getattr(np, "_core", None) or np.core  # by the version of NumPy
    with suppress(zipfile.BadZipFile):  # older files are no archives
        outside.check_archive(file)
    try:
        with torch.serialization.safe_globals([*kinds, rebuilt.multiarray._reconstruct, rebuilt.multiarray.scalar]):
            manager = torch.load(file, weights_only=True, map_location="cpu")
    except Exception as error:  # of many kinds: no file of torch, or one that holds more than data
        raise DataError(
            f"{file}: not readable without running code in it ({first_line(error)}); save a manager with texts, tokens "
            "and log-likelihoods alone"
        ) from None
    return manager if isinstance(manager, Mapping) else {}


def _as_list(values: Any) -> list[Any]:
    return [] if values is None else values.tolist() if hasattr(values, "tolist") else list(values)


def _answer(text: object, tokens: Any) -> Mapping[str, Any]:
    return {"text": str(text).strip(), "logprobs": [*map(float, _as_list(tokens))] or None}
