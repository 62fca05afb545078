"""Logs of inspect_ai (`.eval`, a ZIP archive, or `.json`): the epochs of a sample are its draws."""

from __future__ import annotations

import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hedge_tasks.data.foreign.tools import ForeignFile, choice_answer, reference_text
from hedge_tasks.errors import DataError
from hedge_tasks.io import outside

FORM = "inspect_ai"

_LABELS = {"C": 0, "I": 1, "1": 0, "0": 1, "1.0": 0, "0.0": 1, "True": 0, "False": 1}


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
    epochs: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for sample in samples:
        epochs[str(sample.get("id"))].append(sample)
    scorers = _scorers(epochs.values())
    scorer = scorers[0] if len(scorers) == 1 else ""
    answered = {id: [(s, list(_answers(s))) for s in sorted(of_id, key=_epoch)] for id, of_id in epochs.items()}
    rows = [(f"{file}: {id}", row) for id, of_id in answered.items() if (row := _row(id, of_id, scorer))]
    n_failed = sum(not answers for of_id in answered.values() for _, answers in of_id)
    notes = [f"lost: {n_failed} samples without an answer"] if n_failed else []
    if len(scorers) > 1:
        notes.append(f"labels: several scorers ({', '.join(scorers)}), none of which is taken")
    judge = f"inspect_ai: {scorer}" if scorer else ""
    return ForeignFile(FORM, rows, str((header.get("eval") or {}).get("model") or ""), judge, tuple(notes))


def _scorers(epochs: Iterable[Sequence[Mapping[str, Any]]]) -> list[str]:
    """The names of all scorers of samples."""
    return sorted({name for samples in epochs for sample in samples for name in sample.get("scores") or {}})


def _epoch(sample: Mapping[str, Any]) -> int:
    return sample.get("epoch") or 0


def _row(id: str, epochs: Sequence[tuple[Mapping[str, Any], Sequence[Any]]], scorer: str) -> dict[str, Any]:
    """The fields of a document: its first epoch that has an answer is the baseline; empty without any."""
    answered = [(sample, answers) for sample, answers in epochs if answers]
    if not answered:
        return {}
    first = answered[0][0]
    return {
        "id": id,
        "question": _question(first),
        "reference": reference_text(first.get("target")),
        "label": _LABELS.get(str(((first.get("scores") or {}).get(scorer) or {}).get("value"))),
        "answers": [answer for _, answers in answered for answer in answers],
    }


def _archive(file: Path) -> Iterator[Mapping[str, Any]]:
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


def _json_log(file: Path) -> Iterator[Mapping[str, Any]]:
    log = outside.read_json(file)
    if not isinstance(log, Mapping) or not isinstance(log.get("samples"), list):
        raise DataError(f"{file}: a log of inspect_ai without samples")
    return iter([log, *log["samples"]])


def _answers(sample: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for choice in (sample.get("output") or {}).get("choices") or ():
        text, reasoning = _content((choice.get("message") or {}).get("content"))
        yield {
            **choice_answer(choice),
            "text": text,
            "finish_reason": choice.get("stop_reason"),
            "reasoning": reasoning,
        }


def _content(content: Any) -> tuple[str, str]:
    """The text and the thought of a message."""
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content or ()
    texts = [str(part.get("text") or "") for part in parts if part.get("type") == "text"]
    return "\n".join(texts), "".join(str(part.get("reasoning") or "") for part in parts)


def _question(sample: Mapping[str, Any]) -> str:
    messages = sample.get("input")
    if isinstance(messages, str):
        return messages
    turns = [message.get("content") for message in messages or () if message.get("role") == "user"]
    return _content(turns[-1])[0] if turns else ""
