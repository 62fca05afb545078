"""Logs of inspect_ai (`.eval`, a ZIP archive, or `.json`): the epochs of a sample are its draws."""

from __future__ import annotations

import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hedge_tasks.data.forms import Form, content_of
from hedge_tasks.data.roles import ColumnSettings
from hedge_tasks.errors import DataError
from hedge_tasks.io import outside
from hedge_tasks.io.json_lines import Row

_LABELS = {"C": 0, "I": 1, "1": 0, "0": 1, "1.0": 0, "0.0": 1, "True": 0, "False": 1}

Sample = Mapping[str, Any]


def is_log(file: Path) -> bool:
    """Whether a JSON file is a log of inspect_ai."""
    with file.open("rb") as opened:
        head = opened.read(4096)
    return b'"eval"' in head and b'"version"' in head and b'"status"' in head


def read(file: Path) -> tuple[Form, list[Row]]:
    """The samples of a log as a table, a row an id: its first epoch that has an answer is the baseline.

    Raises:
        DataError: it cannot be read.
    """
    header, *samples = _archive(file) if file.suffix == ".eval" else _json_log(file)
    epochs: dict[str, list[Sample]] = defaultdict(list)
    for sample in sorted(samples, key=lambda sample: sample.get("epoch") or 0):
        if (sample.get("output") or {}).get("choices"):
            epochs[str(sample.get("id"))].append(sample)
    scorers = sorted({name for sample in samples for name in sample.get("scores") or {}})
    label = f"scores.{scorers[0]}" if len(scorers) == 1 else None
    model = (header.get("eval") or {}).get("model")
    rows: list[Row] = [
        (f"{file}: {id}", {"id": id, "model": model, **_row(of_id, label)}) for id, of_id in epochs.items()
    ]
    notes = []
    if n_failed := len(samples) - sum(map(len, epochs.values())):
        notes.append(f"lost: {n_failed} samples without an answer")
    if len(scorers) > 1:
        notes.append(f"labels: several scorers ({', '.join(scorers)}), none of which is taken")
    columns = ColumnSettings(id="id", question="input", answers=("target",), reply=("choices",), label=label)
    return Form("inspect_ai", columns, in_words=False, notes=tuple(notes)), rows


def _row(epochs: Sequence[Sample], label: str | None) -> dict[str, Any]:
    first = epochs[0]
    choices = [choice for sample in epochs for choice in sample["output"]["choices"]]
    row = {"input": _question(first.get("input")), "target": first.get("target"), "choices": choices}
    if label:
        score = (first.get("scores") or {}).get(label.removeprefix("scores.")) or {}
        row[label] = _LABELS.get(str(score.get("value")))
    return row


def _question(messages: Any) -> str:
    """The text of the last turn of the user."""
    if isinstance(messages, str):
        return messages
    turns = [turn.get("content") for turn in messages or () if turn.get("role") == "user"]
    return content_of(turns[-1])[0] if turns else ""


def _archive(file: Path) -> Iterator[Sample]:
    """The header of an archive and its samples, as far as Python unpacks them."""
    try:
        outside.check_archive(file)
        with zipfile.ZipFile(file) as archive:
            samples = sorted(name for name in archive.namelist() if name.startswith("samples/"))
            for name in ("header.json", *samples):
                yield outside.parse_json(archive.read(name), f"{file}: {name}")
    except (zipfile.BadZipFile, OSError, KeyError, NotImplementedError, zlib.error) as error:
        convert = f"inspect log convert {file} --to json --output-dir ."
        raise DataError(f"{file}: not readable ({type(error).__name__}: {error}); `{convert}` may do it") from None


def _json_log(file: Path) -> Iterator[Sample]:
    log = outside.read_json(file)
    if not isinstance(log, Mapping) or not isinstance(log.get("samples"), list):
        raise DataError(f"{file}: a log of inspect_ai without samples")
    return iter([log, *log["samples"]])
