"""Logs of inspect_ai (`.eval`, a ZIP archive, or `.json`): the epochs of a sample are its draws."""

from __future__ import annotations

import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hedge_tasks.data.foreign.tools import ForeignFile, choice_answer, reference_text
from hedge_tasks.errors import DataError
from hedge_tasks.io import outside

FORM = "inspect_ai"

_LABELS = {"C": 0, "I": 1, "1": 0, "0": 1, "1.0": 0, "0.0": 1, "True": 0, "False": 1}

Sample = Mapping[str, Any]


def is_log(file: Path) -> bool:
    """Whether a JSON file is a log of inspect_ai."""
    with file.open("rb") as opened:
        head = opened.read(4096)
    return b'"eval"' in head and b'"version"' in head and b'"status"' in head


def read(file: Path) -> ForeignFile:
    """The samples of a log.

    Raises:
        DataError: it cannot be read.
    """
    header, *samples = _archive(file) if file.suffix == ".eval" else _json_log(file)
    epochs: dict[str, list[tuple[Sample, list[Any]]]] = defaultdict(list)
    n_failed = 0
    for sample in sorted(samples, key=lambda sample: sample.get("epoch") or 0):
        answers = list(_answers(sample))
        n_failed += not answers
        if answers:
            epochs[str(sample.get("id"))].append((sample, answers))
    scorers = sorted({name for sample in samples for name in sample.get("scores") or {}})
    scorer = scorers[0] if len(scorers) == 1 else ""
    rows = [(f"{file}: {id}", _row(id, of_id, scorer)) for id, of_id in epochs.items()]
    notes = [f"lost: {n_failed} samples without an answer"] if n_failed else []
    if len(scorers) > 1:
        notes.append(f"labels: several scorers ({', '.join(scorers)}), none of which is taken")
    judge = f"inspect_ai: {scorer}" if scorer else ""
    return ForeignFile(FORM, rows, str((header.get("eval") or {}).get("model") or ""), judge, tuple(notes))


def _row(id: str, epochs: Sequence[tuple[Sample, list[Any]]], scorer: str) -> dict[str, Any]:
    """The fields of a document: its first epoch that has an answer is the baseline."""
    first = epochs[0][0]
    question = first.get("input")
    if not isinstance(question, str):
        turns = [turn.get("content") for turn in question or () if turn.get("role") == "user"]
        question = _content(turns[-1])[0] if turns else ""
    return {
        "id": id,
        "question": question,
        "reference": reference_text(first.get("target")),
        "label": _LABELS.get(str(((first.get("scores") or {}).get(scorer) or {}).get("value"))),
        "answers": [answer for _, answers in epochs for answer in answers],
    }


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


def _answers(sample: Sample) -> Iterator[Sample]:
    for choice in (sample.get("output") or {}).get("choices") or ():
        text, reasoning = _content((choice.get("message") or {}).get("content"))
        finish = choice.get("stop_reason")
        yield {**choice_answer(choice), "text": text, "finish_reason": finish, "reasoning": reasoning}


def _content(content: Any) -> tuple[str, str]:
    """The text and the thought of a message."""
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content or ()
    texts = [str(part.get("text") or "") for part in parts if part.get("type") == "text"]
    return "\n".join(texts), "".join(str(part.get("reasoning") or "") for part in parts)
