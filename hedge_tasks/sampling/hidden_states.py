"""Hidden states of the model as it reads a question and its own baseline answer: side files beside the answers.

Off unless `--gen_kwargs hidden_states=true`. One forced pass a document, by adapters that have `hidden_states`; no draw
is another one for it. A log `states-*.jsonl` says where in a file `states-*.f16` the numbers of a document are: little
endian half precision, shape (layers, places, width), with a checksum. Readers map the files instead of reading them.
"""

from __future__ import annotations

import hashlib
import uuid
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Annotated, Any, Protocol, Self

import numpy as np
import numpy.typing as npt
from loguru import logger
from pydantic import Field
from tqdm import tqdm

from hedge_tasks.data.answers import Answer
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.io.files import sync
from hedge_tasks.io.keyed_log import KeyedLog
from hedge_tasks.io.records import OpenRecord
from hedge_tasks.sampling.jobs import Job
from hedge_tasks.sampling.requests import SampleRequest

PLACES = ("question", "image", "first", "last", "mean")
"""Last token before the answer, last token of the picture, first and last of the answer, mean over the answer."""

DEPTHS = (0.5, 0.75, 1.0)
"""Shares of the model's depth at which states are kept."""

States = npt.NDArray[np.float16]
"""Shape (layers, places, width); NaN where there is no such place, as without a picture."""

KIND = "states"
_CHUNK = 32
_Count = Annotated[int, Field(ge=1, le=1_000_000)]


class TellsStates(Protocol):
    """Methods that an adapter must offer to tell its hidden states."""

    def hidden_states(self, conversations: Sequence[list[dict[str, Any]]], texts: Sequence[str]) -> list[States | str]:
        """Of each text as the answer to its conversation; a string in place of them says why there are none."""
        ...


class _Place(OpenRecord):
    """Where the states of a document are."""

    file: str
    at: Annotated[int, Field(ge=0)]
    layers: _Count
    width: _Count
    crc32: int


class StateStore:
    """The hidden states in a folder, by key; `state_key` makes the keys.

    Raises:
        DataError: a file cannot be read.

    Example:
        >>> import tempfile
        >>> states = np.zeros((3, 5, 4), dtype=np.float16)
        >>> with tempfile.TemporaryDirectory() as folder, StateStore(Path(folder)) as store:
        ...     store.put({"key": states})
        ...     print(store.get("key").shape, store.get("other"))
        (3, 5, 4) None
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._log: KeyedLog[_Place] = KeyedLog(folder, KIND, "hidden states", _Place.read)
        self._numbers: IO[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __contains__(self, key: str) -> bool:
        return key in self._log

    def __len__(self) -> int:
        return len(self._log)

    def close(self) -> None:
        self._log.close()
        if self._numbers is not None:
            self._numbers.close()
            self._numbers = None

    def put(self, states: Mapping[str, States]) -> None:
        """Keep states: the numbers first, and where they are once they are on the disk.

        Raises:
            HedgeError: the disk is full, or the folder cannot be written.
        """
        if self._numbers is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._numbers = (self.folder / f"{KIND}-{uuid.uuid4().hex}.f16").open("xb", buffering=0)
        file = self._numbers
        places: list[tuple[str, _Place, Mapping[str, Any]]] = []
        for key, of in states.items():
            block = of.astype("<f2").tobytes()
            at, (layers, _, width) = file.tell(), of.shape
            if file.write(block) != len(block):
                raise DataError(f"{file.name}: the disk is full; what was stored before stays")
            about = {"file": Path(file.name).name, "at": at, "layers": layers, "width": width}
            about |= {"crc32": zlib.crc32(block)}
            places.append((key, _Place.read(about), about))
        sync(file.fileno(), Path(file.name).parent)
        self._log.keep(places)

    def get(self, key: str) -> States | None:
        """The states under a key; None where there are none, or only damaged ones (with a warning)."""
        place = self._log.get(key)
        if place is None:
            return None
        shape = (place.layers, len(PLACES), place.width)
        try:
            # The name comes from a file that may be anybody's: it says nothing about folders.
            path = self.folder / Path(place.file).name
            found: States = np.memmap(path, dtype="<f2", mode="r", offset=place.at, shape=shape)
        except (OSError, ValueError) as error:
            logger.warning("{}: hidden states of a document cannot be read and are left out: {}", self.folder, error)
            return None
        if zlib.crc32(found.tobytes()) != place.crc32:
            logger.warning("{}: damaged hidden states of a document are left out", path)
            return None
        return found


def state_key(task: str, model: str, id: str, answer: str) -> str:
    """The key of a document's states: all of it stands in a run file, too."""
    return hashlib.sha256("\0".join((task, model, id, answer)).encode()).hexdigest()[:32]


def check_states(model: Any, requests: Sequence[SampleRequest]) -> None:
    """See to it that hidden states that are asked for can be told and kept.

    Raises:
        ConfigError: the adapter does not tell its hidden states, or there is no folder to keep them in.
    """
    for request in requests:
        if not request.plan.hidden_states:
            continue
        if not hasattr(model, "hidden_states"):
            raise ConfigError(f"hidden_states: {type(model).__name__} does not tell them; hedge_hf and hedge_tiny do")
        if request.store is None:
            raise ConfigError("hidden_states: there is no folder to keep them in; give --output_path or HEDGE_STORE")
        if not isinstance(request.store, Path):
            raise ConfigError(f"hidden_states: files are mapped, and {request.store} is no folder of this machine")


def keep_states(model: Any, jobs: Sequence[Job]) -> None:
    """Read and keep the hidden states of the jobs that ask for them; `check_states` comes first.

    Args:
        jobs: of documents that are answered.
    """
    folders: dict[Path, list[Job]] = {}
    for job in jobs:
        if job.request.plan.hidden_states and isinstance(job.store.folder, Path):
            folders.setdefault(job.store.folder, []).append(job)
    for folder, mine in folders.items():
        with StateStore(folder) as store:
            _keep_missing(model, mine, store)


def _keep_missing(model: TellsStates, jobs: Sequence[Job], store: StateStore) -> None:
    pending = {key: job for job in jobs if (key := _key(job)) not in store}
    reasons: list[str] = []
    quiet = getattr(model, "rank", 0) != 0
    with tqdm(total=len(pending), desc="Hidden states", unit="document", disable=quiet) as bar:
        for part in _parts(list(pending.items())):
            draws = {key: _baseline(job) for key, job in part}
            told = model.hidden_states(
                [draw.messages() for draw, _ in draws.values()], [answer.text for _, answer in draws.values()]
            )
            found = dict(zip(draws, told, strict=True))
            store.put({key: of for key, of in found.items() if not isinstance(of, str)})
            reasons += [of for of in found.values() if isinstance(of, str)]
            bar.update(len(part))
    if reasons:
        logger.warning("no hidden states of {} of {} documents. First: {}", len(reasons), len(pending), reasons[0])


def _parts(items: list[tuple[str, Job]]) -> Iterator[list[tuple[str, Job]]]:
    for start in range(0, len(items), _CHUNK):
        yield items[start : start + _CHUNK]


def _baseline(job: Job) -> tuple[Any, Answer]:
    [(key, draw)] = [(key, draw) for key, draw in job.draws.items() if draw.draw.condition == "baseline"]
    return draw, job.store[key]


def _key(job: Job) -> str:
    request = job.request
    return state_key(job.definition.task, request.model or "", request.id, _baseline(job)[1].text)
