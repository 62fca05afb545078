"""Arrays from inside a model as it reads a question and its own answers: side files beside the answers.

Off unless `--gen_kwargs inside=all` (or some of `PARTS`, with a plus between). Forced passes by adapters that have
`inside`; no draw is another one for it. A log `inside-*.jsonl` says where in a file `inside-*.bin` the arrays of a
document are, each with its shape and a checksum. Readers map the files instead of reading them.
"""

from __future__ import annotations

import hashlib
import uuid
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Annotated, Any, Literal, Protocol, Self

import numpy as np
import numpy.typing as npt
from loguru import logger
from pydantic import Field
from tqdm import tqdm

from hedge_tasks.data.answers import Answer
from hedge_tasks.data.inside import ARRAYS, Inside, parts_of
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.io.chunks import chunks
from hedge_tasks.io.files import sync
from hedge_tasks.io.keyed_log import KeyedLog
from hedge_tasks.io.records import OpenRecord
from hedge_tasks.sampling.jobs import Job
from hedge_tasks.sampling.requests import SampleRequest

KIND = "inside"
MODEL = "inside_model"
"""Of a run's settings: the name of its model among keys."""

_CHUNK = 32
_MOST = 1 << 40
_Count = Annotated[int, Field(ge=0, le=10_000_000)]


class TellsInside(Protocol):
    """Methods that an adapter must offer to give arrays from inside its model."""

    def inside(
        self, conversations: Sequence[list[dict[str, Any]]], texts: Sequence[str], parts: frozenset[str]
    ) -> list[Inside | str]:
        """Return arrays for each text as the answer to its conversation; a string says why there are none.

        Of the part `draws` there is one row for a text: `draw_states` (width,) and `draw_logits` (columns,).
        """
        ...


class _Array(OpenRecord):
    """Place of an array in a file of numbers."""

    file: str
    at: Annotated[int, Field(ge=0, le=_MOST)]
    shape: Annotated[list[_Count], Field(max_length=4)]
    dtype: Literal["<f2", "<f4"]
    crc32: int


class InsideStore:
    """The arrays in a folder, by key; `inside_key` makes the keys.

    Raises:
        DataError: a file cannot be read.

    Example:
        >>> import tempfile
        >>> arrays = {"states": np.zeros((3, 5, 4), dtype=np.float16)}
        >>> with tempfile.TemporaryDirectory() as folder, InsideStore(Path(folder)) as store:
        ...     store.put({"key": arrays})
        ...     print(store.get("key")["states"].shape, store.get("other"))
        (3, 5, 4) {}
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._log: KeyedLog[_Array] = KeyedLog(folder, KIND, "arrays from inside", _Array.read)
        self._numbers: IO[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def names(self, key: str) -> frozenset[str]:
        """The names of the arrays under a key."""
        return frozenset(self._places(key))

    def close(self) -> None:
        self._log.close()
        if self._numbers is not None:
            self._numbers.close()
            self._numbers = None

    def put(self, documents: Mapping[str, Inside]) -> None:
        """Keep arrays beside those that are there: the numbers first, and where they are once they are on the disk.

        Raises:
            HedgeError: the disk is full, or the folder cannot be written.
        """
        if self._numbers is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._numbers = (self.folder / f"{KIND}-{uuid.uuid4().hex}.bin").open("xb", buffering=0)
        file = self._numbers
        entries: list[tuple[str, _Array, Mapping[str, Any]]] = []
        for key, arrays in documents.items():
            for name, array in arrays.items():
                dtype = "<f2" if array.dtype == np.float16 else "<f4"
                block, at = array.astype(dtype).tobytes(), file.tell()
                if file.write(block) != len(block):
                    raise DataError(f"{file.name}: the disk is full; what was stored before stays")
                where = {"file": Path(file.name).name, "at": at, "shape": list(array.shape)}
                where |= {"dtype": dtype, "crc32": zlib.crc32(block)}
                entries.append((f"{key}/{name}", _Array.read(where), where))
        sync(file.fileno(), Path(file.name).parent)
        self._log.keep(entries)

    def get(self, key: str, names: frozenset[str] | None = None) -> Inside:
        """The arrays under a key, or some of them; without those that are damaged (with a warning)."""
        read = {name: self._read(array) for name, array in self._places(key).items() if names is None or name in names}
        return {name: array for name, array in read.items() if array is not None}

    def _places(self, key: str) -> dict[str, _Array]:
        places = {name: self._log.get(f"{key}/{name}") for of_part in ARRAYS.values() for name in of_part}
        return {name: place for name, place in places.items() if place is not None}

    def _read(self, place: _Array) -> npt.NDArray[Any] | None:
        """An array; None, with a warning, where it cannot be had."""
        if 0 in place.shape:
            return np.empty(place.shape, dtype=place.dtype)
        # The name comes from a file that may be anybody's: it says nothing about folders.
        path = self.folder / Path(place.file).name
        problem = "its checksum is another one"
        try:
            array = np.memmap(path, dtype=place.dtype, mode="r", offset=place.at, shape=tuple(place.shape))
            if zlib.crc32(array.tobytes()) == place.crc32:
                return array
        except (OSError, ValueError) as error:
            problem = f"it cannot be read: {error}"
        logger.warning("{}: an array of a document is left out: {}", path, problem)
        return None


def model_key(identity: str | None) -> str:
    """Return the name of a model in keys. Its identity may name folders of this machine, which must stay here."""
    return hashlib.sha256((identity or "").encode()).hexdigest()[:16]


def inside_key(task: str, model: str, id: str, answer: str) -> str:
    """The key of a document's arrays: all of it stands in a run file, too.

    Args:
        model: as `model_key` names it.
    """
    return hashlib.sha256("\0".join((task, model, id, answer)).encode()).hexdigest()[:32]


def check_inside(model: Any, requests: Sequence[SampleRequest]) -> None:
    """Check that the arrays that are asked for can be read and kept.

    Raises:
        ConfigError: the adapter cannot be looked at from inside, or there is no folder to keep the arrays in.
    """
    for request in requests:
        if not parts_of(request.plan.inside):
            continue
        if not hasattr(model, "inside"):
            raise ConfigError(f"inside: {type(model).__name__} cannot be looked at; hedge_hf and hedge_tiny can")
        if request.store is None:
            raise ConfigError("inside: there is no folder to keep arrays in; give --output_path or HEDGE_STORE")
        if not isinstance(request.store, Path):
            raise ConfigError(f"inside: files are mapped, and {request.store} is no folder of this machine")


def keep_inside(model: Any, jobs: Sequence[Job]) -> None:
    """Read the arrays from inside the model for the jobs that ask for them, and store them; `check_inside` comes first.

    Args:
        jobs: of documents that are answered.
    """
    folders: dict[tuple[Path, frozenset[str]], list[Job]] = {}
    for job in jobs:
        parts = parts_of(job.request.plan.inside)
        if parts and isinstance(job.store.folder, Path):
            folders.setdefault((job.store.folder, parts), []).append(job)
    for (folder, parts), folder_jobs in folders.items():
        with InsideStore(folder) as store:
            _keep_missing(model, folder_jobs, parts, store)


def _keep_missing(model: TellsInside, jobs: Sequence[Job], parts: frozenset[str], store: InsideStore) -> None:
    pending: dict[str, tuple[Job, frozenset[str]]] = {}
    for job in jobs:
        key = _key(job)
        stored_names = store.names(key)
        missing = frozenset(part for part in parts if not stored_names.issuperset(ARRAYS[part]))
        # A question without clean answers has none to be looked at.
        if missing := missing if _draws(job, "clean") else missing - {"draws"}:
            pending[key] = job, missing
    reasons: list[str] = []
    quiet = getattr(model, "rank", 0) != 0
    with tqdm(total=len(pending), desc="Inside", unit="document", disable=quiet) as bar:
        for chunk in chunks(list(pending.items()), _CHUNK):
            arrays: dict[str, Inside] = {}
            for key, outcome in (*_of_baselines(model, chunk), *_of_draws(model, chunk)):
                if isinstance(outcome, str):
                    reasons.append(outcome)
                else:
                    arrays[key] = {**arrays.get(key, {}), **outcome}
            store.put(arrays)
            bar.update(len(chunk))
    if reasons:
        logger.warning("not everything could be kept of {} documents. First: {}", len(reasons), reasons[0])


_Missing = tuple[str, tuple[Job, frozenset[str]]]
"""Key of a document, its job, and the parts that are missing."""


def _of_baselines(model: TellsInside, chunk: Sequence[_Missing]) -> Iterator[tuple[str, Inside | str]]:
    for parts in {missing - {"draws"} for _, (_, missing) in chunk} - {frozenset()}:
        same = [(key, job) for key, (job, missing) in chunk if missing - {"draws"} == parts]
        draws = [draw for _, job in same for draw in _draws(job, "baseline")]
        yield from zip((key for key, _ in same), _arrays_of(model, draws, parts), strict=True)


def _of_draws(model: TellsInside, chunk: Sequence[_Missing]) -> Iterator[tuple[str, Inside | str]]:
    for key, (job, missing) in chunk:
        if "draws" in missing:
            rows = _arrays_of(model, _draws(job, "clean"), frozenset({"draws"}))
            failed = next((row for row in rows if isinstance(row, str)), None)
            known = [row for row in rows if not isinstance(row, str)]
            yield key, failed or {name: np.stack([row[name] for row in known]) for name in ARRAYS["draws"]}


def _arrays_of(model: TellsInside, draws: Sequence[tuple[Any, Answer]], parts: frozenset[str]) -> list[Inside | str]:
    return model.inside([draw.messages() for draw, _ in draws], [answer.text for _, answer in draws], parts)


def _draws(job: Job, condition: str) -> list[tuple[Any, Answer]]:
    """The draws of a condition with their answers, in their order."""
    draws = [(key, draw) for key, draw in job.draws.items() if draw.draw.condition == condition]
    return [(draw, job.store[key]) for key, draw in sorted(draws, key=lambda keyed: keyed[1].draw.index)]


def _key(job: Job) -> str:
    request = job.request
    [(_, answer)] = _draws(job, "baseline")
    return inside_key(job.definition.task, model_key(request.model), request.id, answer.text)
