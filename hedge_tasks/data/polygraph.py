"""Managers of lm-polygraph (`UEManager.save`, a file of torch) as tables; nothing but data is loaded."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from hedge_tasks.errors import DataError, first_line
from hedge_tasks.io import outside
from hedge_tasks.io.json_lines import Row

_COLUMNS = {
    **{"input_texts": "input", "target_texts": "target"},
    **{name: name for kind in ("greedy", "sample") for name in (f"{kind}_texts", f"{kind}_log_likelihoods")},
}
"""Statistics of a manager -> columns."""


def rows_of(file: Path) -> list[Row]:
    """The answers of a manager as rows: its greedy texts and its samples.

    Raises:
        DataError: it cannot be read without running code, or holds no texts, or more of one thing than of another.
    """
    manager = _load(file)
    stats = manager.get("stats") if isinstance(manager, Mapping) else None
    if not isinstance(stats, Mapping) or "greedy_texts" not in stats:
        raise DataError(f"{file}: no manager of lm-polygraph with greedy_texts")
    names = [name for name in _COLUMNS if stats.get(name) is not None]
    if len({len(stats[name]) for name in names}) > 1:
        raise DataError(f"{file}: not as many {', '.join(names)}")
    columns = zip(*(map(_plain, stats[name]) for name in names), strict=True)
    return [
        (f"{file}: {i}", dict(zip(map(_COLUMNS.__getitem__, names), row, strict=True))) for i, row in enumerate(columns)
    ]


def _load(file: Path) -> Any:
    import numpy as np
    import torch

    kinds = [np.ndarray, np.dtype, *(type(np.dtype(kind)) for kind in ("f4", "f8", "i4", "i8", "f2", "?"))]
    rebuilt = getattr(np, "_core", None) or np.core  # by the version of NumPy
    with suppress(zipfile.BadZipFile):  # older files are no archives
        outside.check_archive(file)
    try:
        with torch.serialization.safe_globals([*kinds, rebuilt.multiarray._reconstruct, rebuilt.multiarray.scalar]):
            return torch.load(file, weights_only=True, map_location="cpu")
    except Exception as error:  # of many kinds: no file of torch, or one that holds more than data
        raise DataError(
            f"{file}: not readable without running code in it ({first_line(error)}); save a manager with texts, tokens "
            "and log-likelihoods alone"
        ) from None


def _plain(value: Any) -> Any:
    """An array, or arrays in a list, as lists of numbers."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return list(map(_plain, value)) if isinstance(value, (list, tuple)) else value
