"""Logs of inspect_ai (`.eval`, a ZIP archive, or `.json`): the epochs of a sample are its draws."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hedge_tasks.data.foreign.tools import ForeignFile, choice_answer, reference_text
from hedge_tasks.errors import DataError
from hedge_tasks.io import outside

FORM = "inspect_ai"

_ZSTD = 93
_LOCAL_HEADER = 30
"""Method of packing, and bytes of a local header, in a ZIP archive (APPNOTE.TXT 4.3.7, 4.4.5)."""

_USED = ("epoch", "target", "scores", "output")
"""Fields of a sample that are kept besides its question: pictures, events and tools take most of a log."""

_RIGHT, _WRONG = ("C", 1, 1.0, True), ("I", 0, 0.0, False)


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
    header, samples = _read_archive(file) if file.suffix == ".eval" else _read_json_log(file)
    evaluation = header.get("eval") if isinstance(header.get("eval"), Mapping) else {}
    epochs: dict[str, list[Mapping[str, Any]]] = {}
    for sample in samples:
        used = {name: sample.get(name) for name in _USED} | {"question": _question(sample)}
        epochs.setdefault(str(sample.get("id")), []).append(used)
    scorers = sorted({name for of_id in epochs.values() for sample in of_id for name in sample.get("scores") or {}})
    rows, failed = [], 0
    for id, of_id in epochs.items():
        of_id.sort(key=lambda sample: sample.get("epoch") or 0)
        answered = [(sample, answers) for sample in of_id if (answers := list(_answers(sample)))]
        failed += len(of_id) - len(answered)
        if answered:
            first, (baseline, *others) = answered[0]
            draws = [*others, *(answer for _, answers in answered[1:] for answer in answers)]
            fields = {"id": id, "question": str(first["question"]), "reference": reference_text(first.get("target"))}
            label = _label(first, scorers[0]) if len(scorers) == 1 else None
            rows.append((f"{file}: {id}", {**fields, "label": label, "baseline": baseline, "answers": draws}))
    notes = [f"lost: {failed} samples without an answer"] if failed else []
    if len(scorers) > 1:
        notes.append(f"labels: several scorers ({', '.join(scorers)}), none of which is taken")
    judge = f"inspect_ai: {scorers[0]}" if len(scorers) == 1 else ""
    return ForeignFile(FORM, rows, str((evaluation or {}).get("model") or ""), judge, tuple(notes))


def _read_archive(file: Path) -> tuple[Mapping[str, Any], Iterator[Mapping[str, Any]]]:
    with _readable(file):
        outside.check_archive(file)
        archive = zipfile.ZipFile(file)
        header = outside.parse_json(_member(file, archive.getinfo("header.json")), f"{file}: header.json")
    return header, _samples(file, archive)


def _samples(file: Path, archive: zipfile.ZipFile) -> Iterator[Mapping[str, Any]]:
    """The samples, one after another: what has been used is let go."""
    for name in sorted(name for name in archive.namelist() if name.startswith("samples/")):
        with _readable(file):
            content = _member(file, archive.getinfo(name))
        yield outside.parse_json(content, f"{file}: {name}")


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, OSError, KeyError, NotImplementedError, struct.error, zlib.error) as error:
        raise DataError(f"{file}: not readable as a log of inspect_ai ({type(error).__name__}: {error})") from None


def _member(file: Path, info: zipfile.ZipInfo) -> bytes:
    """The bytes of a file in an archive, packed with zstd as well, which Python reads from 3.14 on.

    Raises:
        DataError: it is larger than `outside.LONGEST_LINE`.
    """
    import pyarrow as pa

    if info.file_size > outside.LONGEST_LINE:
        raise DataError(f"{file}: {info.filename}: larger than {outside.LONGEST_LINE >> 20} MiB")
    if info.compress_type != _ZSTD:
        with zipfile.ZipFile(file) as archive:
            return archive.read(info)
    with file.open("rb") as opened:
        opened.seek(info.header_offset + _LOCAL_HEADER - 4)
        of_name, of_extra = struct.unpack("<HH", opened.read(4))
        opened.seek(of_name + of_extra, 1)
        packed = opened.read(info.compress_size)
    with pa.input_stream(pa.BufferReader(packed), compression="zstd") as stream:
        return bytes(stream.read(info.file_size))


def _read_json_log(file: Path) -> tuple[Mapping[str, Any], Iterator[Mapping[str, Any]]]:
    log = outside.read_json(file)
    if not isinstance(log, Mapping) or not isinstance(log.get("samples"), list):
        raise DataError(f"{file}: a log of inspect_ai without samples")
    return log, iter(log["samples"])


def _answers(sample: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    output = sample.get("output")
    for choice in (output.get("choices") if isinstance(output, Mapping) else None) or ():
        text, reasoning = _content((choice.get("message") or {}).get("content"))
        yield {
            **choice_answer(choice),
            "text": text,
            "finish_reason": choice.get("stop_reason"),
            "reasoning": reasoning,
        }


def _content(content: Any) -> tuple[str, str]:
    if isinstance(content, str):
        return content, ""
    parts = [part for part in content or () if isinstance(part, Mapping)]
    texts = [str(part.get("text") or "") for part in parts if part.get("type") == "text"]
    return "\n".join(texts), "".join(str(part.get("reasoning") or "") for part in parts)


def _question(sample: Mapping[str, Any]) -> str:
    messages = sample.get("input")
    if isinstance(messages, str):
        return messages
    user_turns = [
        message for message in messages or () if isinstance(message, Mapping) and message.get("role") == "user"
    ]
    return _content(user_turns[-1].get("content"))[0] if user_turns else ""


def _label(sample: Mapping[str, Any], scorer: str) -> int | None:
    value = ((sample.get("scores") or {}).get(scorer) or {}).get("value")
    if isinstance(value, (str, int, float)):
        return 0 if value in _RIGHT else 1 if value in _WRONG else None
    return None
