"""Small copies of a run's pictures, from the data set of its task: run files hold no pictures."""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hedge_tasks.data import splits
from hedge_tasks.errors import DataError
from hedge_tasks.report.results import result_files
from hedge_tasks.runs.run_files import Run
from hedge_tasks.runs.trust import DocumentSource, installed_tasks

if TYPE_CHECKING:
    from PIL.Image import Image

BUDGET = 8_000_000
"""Bytes of all pictures of a page together, as they stand in it."""

# Longest side in pixels and JPEG quality, from good to small.
STEPS = ((320, 80), (256, 70), (192, 65), (128, 60), (96, 50), (64, 40), (48, 30))
_MOST_PIXELS = 80_000_000

_SMALL = 200
# A photograph takes more bytes a pixel than this, so that larger steps need not be tried; and what a failed step took
# tells which of the next ones are hopeless. Thousands of pictures are made smaller in a minute instead of several.
_LEAST_BYTES_A_PIXEL = 0.04
_HOPELESS = 1.5


@dataclass(frozen=True)
class Thumbnails:
    """Pictures as data: addresses, and which documents show which.

    Attributes:
        addresses: distinct pictures.
        of_document: id of the document -> places in `addresses`.
        note: why pictures are missing, or "".
    """

    addresses: Sequence[str] = ()
    of_document: Mapping[str, Sequence[int]] = ()  # type: ignore[assignment]
    note: str = ""


NONE = Thumbnails((), {}, "")


@dataclass(frozen=True)
class Stored:
    """A document of a run as its data set has it.

    Attributes:
        id: of the document.
        files: its pictures.
        texts: of the columns that shape what is asked (`TEXT_COLUMNS`), by their role; empty unless asked for.
    """

    id: str
    files: Sequence[bytes]
    texts: Mapping[str, object] = field(default_factory=dict)


TEXT_COLUMNS = ("question", "answer", "context", "distractor")
"""Roles of the columns whose texts are part of a document's key, in their order there."""


def stored_documents(
    run: Run, configs: Mapping[str, Any] | None = None, *, texts: bool = False
) -> tuple[list[Stored], str]:
    """Return the documents of a run with their pictures, and why there are none, or "".

    A document gets its picture only where the data set's question under its id is the question that was asked: ids
    may be row numbers, and data sets change.

    Args:
        configs: the task's configuration as lmms-eval's result file has it; else the installed task is looked up, or
            the result file beside the run.
        texts: whether their texts are read, too.
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
        return list(_rows(run, source, columns, texts)), ""
    except DataError as error:
        return [], f"Pictures are left out: {error}"


def thumbnails(
    run: Run,
    configs: Mapping[str, Any] | None = None,
    budget: int = BUDGET,
    stored: tuple[Sequence[Stored], str] | None = None,
) -> Thumbnails:
    """Return small copies of the pictures of a run's documents.

    Args:
        configs: as for `stored_documents`.
        budget: bytes that all together may take.
        stored: its result, where it is known already.
    """
    rows, note = stored if stored is not None else stored_documents(run, configs)
    return Thumbnails((), {}, note) if note or not rows else _shrink_all(rows, budget, len(run.answer_sets))


def _source_of_task(task: str) -> DocumentSource | None:
    return next((DocumentSource.of(config) for config in installed_tasks() if config.get("task") == task), None)


def _source_beside(run: Run) -> DocumentSource | None:
    """Return the data set that the newest result file beside a run names for its task."""
    if run.path is None:
        return None
    configs = [file.configs.get(run.task) for file in result_files([run.path])]
    mappings = [config for config in configs if isinstance(config, Mapping)]
    return DocumentSource.of(mappings[-1]) if mappings else None


def _rows(run: Run, source: DocumentSource, columns: Sequence[str], with_texts: bool) -> Iterator[Stored]:
    documents = run.settings["documents"]
    revision = documents.get("revision")
    questions = {a.id: a.question for a in run.answer_sets}
    stored = splits.load_split(source.path, source.name, source.split, revision=revision, files=source.files)
    id_column, question_column = documents.get("id"), documents.get("question")
    roles = [role for role in TEXT_COLUMNS if with_texts and documents.get(role)]
    named = [c for c in (*columns, id_column, question_column, *map(documents.get, roles)) if c]
    if missing := [column for column in named if column not in stored.column_names]:
        raise DataError(f"{source.path} has no column {missing[0]!r}")
    ids = [str(v) for v in stored[id_column][:]] if id_column else [str(i) for i in range(len(stored))]
    asked = stored[question_column][:] if question_column else [None] * len(stored)
    texts = {role: stored[documents[role]][:] for role in roles}
    places = [i for i, id in enumerate(ids) if id in questions and questions[id] in (None, asked[i])]
    shown = splits.fetch_images(stored.select(places), columns, source.path, revision, source.files)
    for i, row in zip(places, splits.undecoded(shown, columns), strict=True):
        files = [image["bytes"] for image in row.values() if isinstance(image, Mapping) and image.get("bytes")]
        yield Stored(ids[i], files, {role: column[i] for role, column in texts.items()})


def _shrink_all(rows: Sequence[Stored], budget: int, n_documents: int) -> Thumbnails:
    distinct = dict.fromkeys(file for row in rows for file in row.files)
    share = budget // max(len(distinct), 1)
    addresses: list[str] = []
    place: dict[bytes, int] = {}
    for file in distinct:
        if (address := shrink(file, share)) is not None:
            place[file] = len(addresses)
            addresses.append(address)
    of_document = {row.id: [place[file] for file in row.files if file in place] for row in rows}
    n_shown = sum(bool(places) for places in of_document.values())
    missing = n_documents - n_shown
    note = f"{missing} of {n_documents} questions are shown without a picture." if missing else ""
    return Thumbnails(addresses, of_document, note)


def shrink(file: bytes, most: int) -> str | None:
    """Return a picture as a `data:` address of at most `most` bytes; None if it is damaged, huge, or does not fit."""
    from PIL import Image as Pictures

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Pictures.open(io.BytesIO(file)) as image:
                if image.width * image.height > _MOST_PIXELS:
                    return None
                # A format that can be read at a part of its size is.
                side = _steps(most)[0][0]
                image.draft("RGB", (side * 2, side * 2) if side > _SMALL else (side, side))
                picture = image.convert("RGB")
    except (OSError, ValueError, SyntaxError, Pictures.DecompressionBombError):
        return None
    return address_of(picture, most)


def address_of(picture: Image, most: int) -> str | None:
    """Return an RGB picture, made smaller, as a `data:` address of at most `most` bytes; None where it does not fit."""
    bytes_a_pixel = 0.0
    for side, quality in (steps := _steps(most)):
        if bytes_a_pixel * side**2 > most * _HOPELESS and side != steps[-1][0]:
            continue
        small = picture.copy()
        small.thumbnail((side, side))
        jpeg = io.BytesIO()
        small.save(jpeg, "JPEG", quality=quality, optimize=True)
        address = f"data:image/jpeg;base64,{base64.b64encode(jpeg.getvalue()).decode()}"
        if len(address) <= most:
            return address
        bytes_a_pixel = len(address) / max(small.size) ** 2
    return None


def _steps(most: int) -> Sequence[tuple[int, int]]:
    return [step for step in STEPS if _LEAST_BYTES_A_PIXEL * step[0] ** 2 <= most] or STEPS[-1:]
