"""Managers of lm-polygraph (`UEManager.save`, a file of torch), of which nothing but data is loaded."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from hedge_tasks.data.forms import Form
from hedge_tasks.data.roles import ColumnSettings
from hedge_tasks.errors import DataError, first_line
from hedge_tasks.io import outside
from hedge_tasks.io.json_lines import Row

_FORM = Form(
    "lm-polygraph",
    ColumnSettings(question="input_texts", answers=("target_texts",), reply=("greedy_texts", "sample_texts")),
    logprobs={"greedy_texts": "greedy_log_likelihoods", "sample_texts": "sample_log_likelihoods"},
    in_words=False,
    notes=("ids: the number of the row, from 0",),
)


def read(file: Path) -> tuple[Form, list[Row]]:
    """The answers of a manager as a table: its greedy texts and its samples.

    Raises:
        DataError: it cannot be read without running code, or holds no texts, or more of one thing than of another.
    """
    stats = _load(file).get("stats")
    if not isinstance(stats, Mapping) or "greedy_texts" not in stats:
        raise DataError(f"{file}: no manager of lm-polygraph with greedy_texts")
    names = [name for name in (*_FORM.columns.named(), *_FORM.logprobs.values()) if stats.get(name) is not None]
    if len({len(stats[name]) for name in names}) > 1:
        raise DataError(f"{file}: not as many {', '.join(names)}")
    columns = zip(*(map(_plain, stats[name]) for name in names), strict=True)
    return _FORM, [(f"{file}: {i}", dict(zip(names, row, strict=True))) for i, row in enumerate(columns)]


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


def _plain(value: Any) -> Any:
    """An array, or arrays in a list, as lists of numbers."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return list(map(_plain, value)) if isinstance(value, (list, tuple)) else value
