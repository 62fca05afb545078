"""Small copies of a run's pictures, from the data set of its task: run files hold no pictures."""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hedge_tasks.data import splits
from hedge_tasks.errors import DataError
from hedge_tasks.report.results import result_files
from hedge_tasks.runs.run_files import Run
from hedge_tasks.runs.trust import DocumentSource, installed_tasks

BUDGET = 8_000_000
"""Bytes of all pictures of a page together, as they stand in it."""

# Longest side in pixels and JPEG quality, from good to small.
STEPS = ((320, 80), (256, 70), (192, 65), (128, 60), (96, 50), (64, 40), (48, 30))
_LEAST_BYTES_A_PIXEL = 0.04
"""A photograph takes more, so that larger steps need not be tried."""
_MOST_PIXELS = 80_000_000


@dataclass(frozen=True)
class Thumbnails:
    """Pictures as data: addresses, and which documents show which.

    Attributes:
        addresses: distinct pictures.
        of_document: id of the document -> places in `addresses`.
        note: why pictures are missing, or "".
    """

    addresses: Sequence[str] = ()
    of_document: Mapping[str, Sequence[int]] = field(default_factory=dict)
    note: str = ""


NONE = Thumbnails()


@dataclass(frozen=True)
class Stored:
    """The pictures of a document of a run as its data set has them.

    Attributes:
        id: of the document.
        files: its pictures.
    """

    id: str
    files: Sequence[bytes]


def stored_documents(run: Run, configs: Mapping[str, Any] | None = None) -> tuple[list[Stored], str]:
    """Return the documents of a run with their pictures, and why there are none, or "".

    A document gets its picture only where the data set's question under its id is the question that was asked: ids
    may be row numbers, and data sets change.

    Args:
        configs: the task's configuration as lmms-eval's result file has it; else the installed task is looked up, or
            the result file beside the run.
    """
    documents = run.settings.get("documents") or {}
    columns = list(documents.get("images") or ())
    if not columns:
        return [], "" if documents else "The run does not say where its pictures are."
    source = DocumentSource.of(configs) if configs else _source_of_task(run.task) or _source_beside(run)
    if source is None:
        return [], f"Pictures are left out: the task {run.task} is not installed here."
    if not (run.trusted or source.trusted):
        what = f"the data set {source.path} is none of the installed tasks (--trust-run loads it)"
        return [], f"Pictures are left out: {what}."
    try:
        return list(_stored(run, source, columns)), ""
    except DataError as error:
        return [], f"Pictures are left out: {error}"


def thumbnails(run: Run, configs: Mapping[str, Any] | None = None, budget: int = BUDGET) -> Thumbnails:
    """Return small copies of the pictures of a run's documents.

    Args:
        configs: as for `stored_documents`.
        budget: bytes that all together may take.
    """
    rows, note = stored_documents(run, configs)
    if not rows:
        return Thumbnails(note=note)
    distinct = dict.fromkeys(file for row in rows for file in row.files)
    share = budget // max(len(distinct), 1)
    addresses = {file: address for file in distinct if (address := shrink(file, share)) is not None}
    place = {file: i for i, file in enumerate(addresses)}
    of_document = {row.id: [place[file] for file in row.files if file in place] for row in rows}
    missing = len(run.answer_sets) - sum(bool(places) for places in of_document.values())
    note = f"{missing} of {len(run.answer_sets)} questions are shown without a picture." if missing else ""
    return Thumbnails(list(addresses.values()), of_document, note)


def _source_of_task(task: str) -> DocumentSource | None:
    return next((DocumentSource.of(config) for config in installed_tasks() if config.get("task") == task), None)


def _source_beside(run: Run) -> DocumentSource | None:
    """Return the data set that the newest result file beside a run names for its task."""
    if run.path is None:
        return None
    configs = [file.configs.get(run.task) for file in result_files([run.path])]
    mappings = [config for config in configs if isinstance(config, Mapping)]
    return DocumentSource.of(mappings[-1]) if mappings else None


def _stored(run: Run, source: DocumentSource, columns: Sequence[str]) -> Iterator[Stored]:
    documents = run.settings["documents"]
    revision = documents.get("revision")
    questions = {a.id: a.question for a in run.answer_sets}
    stored = splits.load_split(source.path, source.name, source.split, revision=revision, files=source.files)
    id_column, question_column = documents.get("id"), documents.get("question")
    named = [*columns, *filter(None, (id_column, question_column))]
    if missing := [column for column in named if column not in stored.column_names]:
        raise DataError(f"{source.path} has no column {missing[0]!r}")
    ids = [str(v) for v in stored[id_column][:]] if id_column else [str(i) for i in range(len(stored))]
    asked = stored[question_column][:] if question_column else [None] * len(stored)
    places = [i for i, id in enumerate(ids) if id in questions and questions[id] in (None, asked[i])]
    shown = splits.fetch_images(stored.select(places), columns, source.path, revision, source.files)
    for i, row in zip(places, splits.undecoded(shown, columns), strict=True):
        yield Stored(ids[i], [v["bytes"] for v in row.values() if isinstance(v, Mapping) and v.get("bytes")])


def shrink(file: bytes, most: int) -> str | None:
    """Return a picture as a `data:` address of at most `most` bytes; None if it is damaged, huge, or does not fit."""
    from PIL import Image as Pictures

    steps = [step for step in STEPS if _LEAST_BYTES_A_PIXEL * step[0] ** 2 <= most] or STEPS[-1:]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Pictures.open(io.BytesIO(file)) as image:
                if image.width * image.height > _MOST_PIXELS:
                    return None
                # A format that can be read at a part of its size is.
                image.draft("RGB", (2 * steps[0][0], 2 * steps[0][0]))
                picture = image.convert("RGB")
    except (OSError, ValueError, SyntaxError, Pictures.DecompressionBombError):
        return None
    for side, quality in steps:
        picture.thumbnail((side, side))
        jpeg = io.BytesIO()
        picture.save(jpeg, "JPEG", quality=quality, optimize=True)
        address = f"data:image/jpeg;base64,{base64.b64encode(jpeg.getvalue()).decode()}"
        if len(address) <= most:
            return address
    return None
