"""The inputs of draws, made in worker threads while the model is busy: in memory, in order, never as files.

An adapter of ours reads its messages from here instead of calling `DrawRequest.messages()` itself::

    for draw, messages in zip(draws, prefetch_messages(draws)):
        ...

Any other adapter fetches the pictures of one request after the other, in an order of its own: `NoisyPictures`.

The pictures are the same as without it, since they depend on the draw alone. Decoding and perturbing spend their time
in OpenCV, numpy and Pillow, which let other threads run. Large ones may be perturbed in processes of their own.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from threading import Lock
from typing import Any, TypeVar

from hedge_tasks.errors import ConfigError
from hedge_tasks.perturb.workers import PictureWorkers
from hedge_tasks.sampling.requests import DrawRequest, clean_images, draw_images, seen_images

In = TypeVar("In")
Out = TypeVar("Out")


def prefetch_messages(
    draws: Iterable[DrawRequest], *, workers: int = 2, ahead: int = 64, pictures: PictureWorkers | None = None
) -> Generator[list[dict[str, Any]], None, None]:
    """Results of `DrawRequest.messages()`, for one draw after the other.

    Clean draws of a document share its picture objects: do not change them in place. Close the iterator when leaving
    it early (`contextlib.closing`), or let it go out of scope: pending work is dropped and the threads end.

    Args:
        draws: in the order in which they will be asked for; those of a document next to each other.
        workers: threads; at least one for each process that makes pictures.
        ahead: at most this many draws are ready or in the making; bounds the memory.
        pictures: who perturbs large ones.

    Raises:
        ConfigError: `workers` or `ahead` is below 1.
        Exception: whatever making a draw's messages raised, when that draw's turn comes. It ends the iterator.
    """
    threads = max(workers, pictures.count) if pictures else workers
    documents = CleanPictures(keep=threads + 1)

    def messages(draw: DrawRequest) -> list[dict[str, Any]]:
        return draw.conversation(seen_images(draw, documents.images(draw), pictures))

    return ordered(draws, messages, workers=threads, ahead=ahead)


def ordered(items: Iterable[In], make: Callable[[In], Out], *, workers: int, ahead: int) -> Generator[Out, None, None]:
    """`map(make, items)` with threads that run ahead of the reader, but never by more than `ahead` items.

    The items themselves are taken one after the other in the reader's thread.
    """
    for name, value in (("workers", workers), ("ahead", ahead)):
        if value < 1:
            raise ConfigError(f"{name}: expected a positive integer, got {value!r}")
    return _ordered(items, make, workers, ahead)


def _ordered(items: Iterable[In], make: Callable[[In], Out], workers: int, ahead: int) -> Generator[Out, None, None]:
    pool = ThreadPoolExecutor(workers, thread_name_prefix="hedge-prefetch")
    remaining = iter(items)
    try:
        futures: deque[Future[Out]] = deque(pool.submit(make, item) for item in islice(remaining, ahead))
        while futures:
            result = futures.popleft().result()
            futures.extend(pool.submit(make, item) for item in islice(remaining, 1))
            yield result
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


class NoisyPictures:
    """The perturbed pictures of draws, made ahead for adapters that ask for them one by one, in any order.

    At most `ahead` draws are ready or in the making, which bounds the memory; one that is asked for before its turn is
    made at once. Close it to drop pending work.

    Args:
        draws: in the order in which they will roughly be asked for; clean ones cost nothing.
        workers: threads.
        ahead: how many draws the threads may be ahead.
        pictures: who perturbs large ones.
    """

    def __init__(
        self, draws: Sequence[DrawRequest], *, workers: int = 2, ahead: int = 64, pictures: PictureWorkers | None = None
    ) -> None:
        self._pictures, threads = pictures, max(workers, pictures.count) if pictures else workers
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="hedge-prefetch")
        self._rest = iter([draw for draw in draws if draw.draw.condition == "noisy"])
        self._ahead = ahead
        self._ready: dict[int, Future[list[Any]]] = {}
        self._lock = Lock()

    def __enter__(self) -> NoisyPictures:
        with self._lock:
            self._submit()
        return self

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._rest = iter(())
            self._ready.clear()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def images(self, draw: DrawRequest, document: Mapping[str, Any]) -> list[Any]:
        """Result of `draw_images(draw, document)`."""
        with self._lock:
            future = self._ready.pop(id(draw), None)
            self._submit()
        return draw_images(draw, document, self._pictures) if future is None else future.result()

    def _submit(self) -> None:
        # The documents are read here, in the thread of the adapter: data sets do not promise that others may, too.
        for draw in islice(self._rest, self._ahead - len(self._ready)):
            self._ready[id(draw)] = self._pool.submit(draw_images, draw, draw.row_of_data(), self._pictures)


class CleanPictures:
    """Fetches and decodes the images of a document once for all its draws, the last few documents at a time.

    Args:
        keep: how many.
    """

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._lock = Lock()
        self._fetching = Lock()
        self._entries: OrderedDict[int, _Entry] = OrderedDict()

    def images(self, draw: DrawRequest) -> list[Any]:
        """The images of this draw's document, as its clean draws see them."""
        entry = self._entry(draw)
        with entry.lock:
            if entry.clean is None:
                with self._fetching:  # data sets do not promise that several threads may read them at once
                    document = draw.row_of_data()
                entry.clean = clean_images(draw.request, document)
        return entry.clean

    def _entry(self, draw: DrawRequest) -> _Entry:
        # The entry holds the request, so that its id cannot become another one's.
        key = id(draw.request)
        with self._lock:
            entry = self._entries.setdefault(key, _Entry(draw.request))
            self._entries.move_to_end(key)
            while len(self._entries) > self._keep:
                self._entries.popitem(last=False)
        return entry


class _Entry:
    def __init__(self, request: Any) -> None:
        self.request = request
        self.lock = Lock()
        self.clean: list[Any] | None = None
