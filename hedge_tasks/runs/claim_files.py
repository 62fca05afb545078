"""Files about claims: labels that people gave, scores, and the support that is kept with a run.

What is kept lies beside the run file as `claims-<run>-<digest of the settings>.jsonl`, sealed lines: a header with the
settings and the price, and one line an answer with its claims and their support. It is taken only for the same texts.
"""

from __future__ import annotations

import base64
import binascii
import glob
import hashlib
import json
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from loguru import logger
from pydantic import Strict

from hedge_tasks.claims.base import Claim
from hedge_tasks.claims.decomposition import Decomposed
from hedge_tasks.claims.labels import ERRORS, SILENT
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.data.spans import LabelledSpan, read_spans
from hedge_tasks.errors import DataError
from hedge_tasks.io import outside
from hedge_tasks.io.files import write_whole
from hedge_tasks.io.json_lines import read_objects, seal, unseal
from hedge_tasks.io.records import Count, Items, OpenRecord
from hedge_tasks.runs.claims import ScoredAnswer, ScoredClaims, Supported, SupportPrice, SupportSource
from hedge_tasks.runs.run_files import Run


def read_labels(path: Path, answer_sets: Sequence[AnswerSet]) -> Mapping[str, Sequence[LabelledSpan]]:
    """Read labels of claims by the answer's id: `{"id", "claims": [...]}` a line; see `hedge_tasks.data.spans`.

    Raises:
        DataError: a line is no such object, names an answer that is not there, or one twice; or a span does not stand
            in its answer.
    """
    answers = {a.id: a.baseline.text for a in answer_sets}
    labels: dict[str, Sequence[LabelledSpan]] = {}
    for where, row in read_objects(path):
        id = row.get("id")
        if isinstance(id, bool) or not isinstance(id, (str, int)) or "claims" not in row:
            raise DataError(f"{where}: expected the id of an answer and its claims")
        if str(id) not in answers:
            raise DataError(f"{where}: there is no answer with the id {outside.shown(str(id))}")
        if str(id) in labels:
            raise DataError(f"{where}: the id {outside.shown(str(id))} is labelled twice")
        labels[str(id)] = read_spans(row["claims"], answers[str(id)], f"{where}: claims")
    if not labels:
        raise DataError(f"{path}: no labels in it")
    return labels


def write_claim_scores(path: Path, scored: ScoredClaims) -> None:
    """Write one line a claim: id, answer, text, start, end, label where it has one, and the number of every detector.

    The file appears as a whole or not at all.
    """
    rows = (row for answer in scored.answers for row in claim_rows(answer))
    write_whole(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def claim_rows(answer: ScoredAnswer) -> list[dict[str, Any]]:
    """Return one row a claim, ready for JSON; see `write_claim_scores`."""
    rows = []
    for k, (claim, label) in enumerate(zip(answer.claims, answer.labels, strict=True)):
        span = {} if label is None else {k: v for k, v in label.to_dict().items() if k not in ("start", "end")}
        scores = {name: _json_score(float(values[k])) for name, values in answer.scores.items()}
        place = {"text": claim.text, "start": claim.start, "end": claim.end}
        rows.append({"id": claim.id, "answer": claim.answer, **place, **span, "scores": scores})
    return rows


def _json_score(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else str(value)


# --- support, kept with the run ---------------------------------------------------------------------------------------

HEADER = "hedge_claims"
FORMAT = 2

SETTING = "claims"
"""Setting of a run: `asked` are the settings of the support that its task kept, `labels` which labels count."""

Matrix = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True)
class KeptSupport:
    """The claims of a run and their support, as they were kept; it takes the place of the engine that gave it.

    Attributes:
        supported: of the run's answers, in their order.
        price: that was paid.
        settings: of decomposition and engine, and what else was asked for (`elsewhere`, `graph`).
        contradicts: see `Entailment`.
        path: of the file.
    """

    supported: tuple[Supported, ...]
    price: SupportPrice
    settings: Mapping[str, Any]
    contradicts: bool
    path: Path

    @property
    def name(self) -> str:
        """Of the engine."""
        return str(self.settings.get("support", ""))

    @property
    def title(self) -> str:
        """Decomposition, engine and its model in words."""
        model = self.settings.get("model")
        return f"{self.unit} by {self.name}" + (f" ({model})" if model else "")

    @property
    def unit(self) -> str:
        """Name of the decomposition."""
        return str(self.settings.get("decomposition", ""))


def kept_path(run: Run, settings: Mapping[str, Any]) -> Path | None:
    """Return the file that keeps the support of a run; None where the run was not read from a file."""
    if run.path is None:
        return None
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]
    return run.path.with_name(f"claims-{run.path.stem[:120]}-{digest}.jsonl")


def keep_support(
    run: Run, supported: Sequence[Supported], engine: SupportSource, price: SupportPrice, settings: Mapping[str, Any]
) -> Path:
    """Write the claims of a run and their support beside it.

    Args:
        engine: that gave it.
        settings: of decomposition and engine, and what else was asked for.

    Raises:
        DataError: the run was not read from a file, or the file cannot be written.
    """
    path = kept_path(run, settings)
    if path is None:
        raise DataError(f"{run.title}: only what lies beside a file is kept")
    facts = {"settings": settings, "contradicts": engine.contradicts, "price": asdict(price)}
    header = {HEADER: FORMAT, **facts, "answers": len(supported)}
    lines = [_kept_line(*both) for both in zip(run.answer_sets, supported, strict=True)]
    write_whole(path, b"".join(map(seal, (header, *lines))).decode("utf-8"))
    return path


def kept_support(run: Run, settings: Mapping[str, Any]) -> KeptSupport | None:
    """Return the support kept with these settings; None where there is none, or it is of other texts or damaged."""
    path = kept_path(run, settings)
    support = None if path is None or not path.is_file() else _read(path, run)
    return support if support is not None and support.settings == settings else None


def all_kept_supports(run: Run) -> list[KeptSupport]:
    """Return all supports kept with a run, that of its task's own settings first, then the newest."""
    if run.path is None:
        return []
    files = sorted(run.path.parent.glob(f"claims-{glob.escape(run.path.stem[:120])}-{'[0-9a-f]' * 12}.jsonl"))
    supports = [support for path in files if (support := _read(path, run)) is not None]
    task_settings = _task_settings(run)
    return sorted(supports, key=lambda support: (support.settings != task_settings, -support.path.stat().st_mtime_ns))


def support_of_run(run: Run, fits: Callable[[Mapping[str, Any]], bool] = lambda settings: True) -> KeptSupport | None:
    """Return the support that counts for a run: its task's own, else the only one, else the newest, with a warning.

    Args:
        fits: whether a support of these settings is what is asked for.

    Returns:
        None where nothing fits, or where that of the task is there but cannot be used: no other is taken for it.
    """
    fitting, own = [support for support in all_kept_supports(run) if fits(support.settings)], _task_settings(run)
    own_path = None if own is None or not fits(own) else kept_path(run, own)
    if own_path is not None and own_path.is_file() and (not fitting or fitting[0].path != own_path):
        return None
    if len(fitting) > 1 and own_path is None:
        first, others = fitting[0], ", ".join(f"{support.title} in {support.path.name}" for support in fitting[1:])
        logger.warning(
            "{} supports of claims are kept with {}: {} in {} was written last and is used, not {}",
            *(len(fitting), run.path, first.title, first.path.name, others),
        )
    return fitting[0] if fitting else None


def _task_settings(run: Run) -> Mapping[str, Any] | None:
    """Return the settings of the support that the run's task kept."""
    return (run.settings.get(SETTING) or {}).get("asked")


def _read(path: Path, run: Run) -> KeptSupport | None:
    """Read a kept support; None, with a warning, where it is damaged or of other answers."""
    try:
        rows = [(n, unseal(line)) for n, line in outside.read_raw_lines(path)]
        (_, header), lines = rows[0], rows[1:]
        settings, contradicts = header.get("settings"), header.get("contradicts")
        if header.get(HEADER) != FORMAT or not isinstance(settings, dict) or not isinstance(contradicts, bool):
            raise DataError("it is of another format")
        if len(lines) != len(run.answer_sets):
            raise DataError("it is of other answers")
        price = SupportPrice(**header["price"])
        supported = [_supported(row, a, f"line {n}") for (n, row), a in zip(lines, run.answer_sets, strict=True)]
    except (DataError, ValueError, KeyError, TypeError, IndexError) as error:
        logger.warning("The support of claims kept in {} is not used: {}", path, error)
        return None
    return KeptSupport(tuple(supported), price, settings, contradicts, path)


def _kept_line(answers: AnswerSet, support: Supported) -> dict[str, Any]:
    line: dict[str, Any] = {"id": answers.id, "texts": _checksum(answers)}
    line["claims"] = [[claim.text, claim.start, claim.end, claim.kind] for claim in support.decomposed.claims]
    line |= {"covered": support.decomposed.covered, "unlocated": support.decomposed.unlocated}
    for name in ("clean", "noisy", "elsewhere", "graph"):
        if (matrix := getattr(support, name)) is not None:
            line[name] = packed(matrix)
    return line | ({"graph_rows": list(support.graph_rows)} if support.graph_rows else {})


class _KeptLine(OpenRecord):
    id: str
    texts: str
    claims: Items[Annotated[tuple[str, Count, Count, str], Strict(False)]]
    covered: float
    unlocated: Count
    graph_rows: Items[Count] = ()


def _supported(row: Mapping[str, Any], answers: AnswerSet, where: str) -> Supported:
    kept = _KeptLine.read(row, where)
    if (kept.id, kept.texts) != (answers.id, _checksum(answers)):
        raise DataError(f"{where}: it is of other texts")
    if any(not start < end <= len(answers.baseline.text) for _, start, end, _ in kept.claims):
        raise DataError(f"{where}: a claim is no part of its answer")
    claims = tuple(Claim(f"{answers.id}#{i}", answers.id, *claim) for i, claim in enumerate(kept.claims))
    names = [name for name in ("clean", "noisy", "elsewhere", "graph") if name in row]
    matrices: dict[str, Any] = {name: unpacked(row[name], f"{where}: {name}") for name in names}
    k, n, m = len(claims), len(answers.clean), len(answers.noisy)
    shapes = {"clean": (k, n, 3), "noisy": (k, m, 3)}
    if wrong := [name for name, shape in shapes.items() if name in names and matrices[name].shape != shape]:
        raise DataError(f"{where}: {wrong[0]} is not the support of {k} claims by {n} + {m} draws")
    return Supported(Decomposed(claims, kept.covered, kept.unlocated), **matrices, graph_rows=kept.graph_rows)


def _checksum(answers: AnswerSet) -> str:
    return f"{zlib.crc32(chr(0).join(answers.texts).encode()):08x}"


def packed(matrix: Matrix) -> dict[str, Any]:
    """Return a matrix for JSON, in half the space where that loses nothing."""
    values = np.asarray(matrix, dtype="<f8")
    small = values.astype("<f4")
    if np.array_equal(small.astype("<f8"), values, equal_nan=True):
        values = small
    return {"shape": list(values.shape), "type": values.dtype.str, "data": base64.b64encode(values.tobytes()).decode()}


def unpacked(fields: Mapping[str, Any], where: str) -> Matrix:
    """Return the matrix that `packed` wrote.

    Raises:
        DataError: its type or encoding is another one, or a number is no probability; names `where`.
    """
    if fields["type"] not in ("<f4", "<f8"):
        raise DataError(f"{where}: numbers of the type {outside.shown(fields['type'])}")
    try:
        data = base64.b64decode(fields["data"], validate=True)
    except (binascii.Error, ValueError):
        raise DataError(f"{where}: no base64") from None
    matrix = np.frombuffer(data, fields["type"]).reshape([int(size) for size in fields["shape"]]).astype(np.float64)
    known_values = matrix[~np.isnan(matrix)]
    if len(known_values) and not (known_values.min() >= 0 and known_values.max() <= 1 + 1e-6):
        raise DataError(f"{where}: numbers that no engine says")
    return matrix


def label_options(run: Run) -> dict[str, Any]:
    """Return which labels count in a run's own rows; see `hedge_tasks.claims.labels.label_of`."""
    labels = (run.settings.get(SETTING) or {}).get("labels") or {}
    return {"silent": labels.get("silent") or SILENT[0], "errors": labels.get("errors") or ERRORS[0]}
