"""The inputs of draws, made in worker threads while the model is busy: in memory, in order, never as files.

An adapter of ours reads its messages from here instead of calling `DrawRequest.messages()` itself::

    for draw, messages in zip(draws, prefetch_messages(draws)):
        ...

The pictures are the same as without it, since they depend on the draw alone. Decoding and perturbing spend their time
in OpenCV, numpy and Pillow, which let other threads run. Large ones may be perturbed in processes of their own.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from threading import Lock
from typing import Any, TypeVar

from hedge_tasks.perturb.workers import PictureWorkers
from hedge_tasks.sampling.requests import DrawRequest, clean_images, seen_images

In = TypeVar("In")
Out = TypeVar("Out")


def prefetch_messages(
    draws: Iterable[DrawRequest],
    *,
    workers: int = 2,
    ahead: int = 64,
    pictures: PictureWorkers | None = None,
    make: Callable[[DrawRequest, list[Any]], Any] = DrawRequest.conversation,
) -> Generator[Any, None, None]:
    """Results of `DrawRequest.messages()`, for one draw after the other.

    Clean draws of a document share its picture objects: do not change them in place. Close the iterator when leaving
    it early (`contextlib.closing`), or let it go out of scope: pending work is dropped and the threads end.

    Args:
        draws: in the order in which they will be asked for; those of a document next to each other.
        workers: threads; at least one for each process that makes pictures.
        ahead: at most this many draws are ready or in the making; bounds the memory.
        pictures: who perturbs large ones.
        make: makes something else of a draw and its pictures.

    Raises:
        Exception: whatever making a draw's messages raised, when that draw's turn comes. It ends the iterator.
    """
    threads = max(workers, pictures.count) if pictures else workers
    documents = CleanPictures(keep=threads + 1)

    def made_of(draw: DrawRequest) -> Any:
        return make(draw, seen_images(draw, documents.images(draw), pictures))

    return ordered(draws, made_of, workers=threads, ahead=ahead)


def ordered(items: Iterable[In], make: Callable[[In], Out], *, workers: int, ahead: int) -> Generator[Out, None, None]:
    """`map(make, items)` with threads that run ahead of the reader, but never by more than `ahead` items.

    The items themselves are taken one after the other in the reader's thread.
    """
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
