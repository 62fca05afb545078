"""Large pictures, perturbed and encoded in processes of their own: the same to the byte as in this one.

The processes are plain interpreters that read jobs from a pipe. Those of `multiprocessing` would import the program's
main module first (with lmms-eval ten seconds and half a gigabyte each), ask for a guard around it in users' scripts,
and stay behind where the program is killed; these end with the pipe.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import weakref
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from loguru import logger
from PIL import Image

from hedge_tasks.data.pictures import at_most, png_url
from hedge_tasks.perturb.base import Noise, Wording
from hedge_tasks.perturb.image import Perturbation

LARGE = 512 * 512
"""Pixels of a draw's pictures from which on another process is worth the way there."""

_PATIENCE_S = 5.0
"""For a process to end; then it is killed."""

_BEGIN = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from hedge_tasks.perturb.workers import work; work()"
)


@dataclass(frozen=True)
class PictureJob:
    """Treatment of the pictures of a draw.

    Attributes:
        noise: None leaves them as they are.
        wording: Of the document.
        seed: Of the draw.
        perturb_at: With a longer side they are scaled down to it before they are perturbed.
        encode: Whether they are wanted as data URLs.
    """

    noise: Noise | None
    wording: Wording
    seed: int
    perturb_at: int | None = None
    encode: bool = False

    def done(self, images: Sequence[Image.Image]) -> list[Any]:
        """Do the job in this process.

        Args:
            images: 8-bit RGB.
        """
        seen = list(images)
        if self.noise is not None:
            seen = [at_most(image, self.perturb_at) for image in seen]
            seen = self.noise.perturb_images(seen, self.wording, seed=self.seed)
        return [png_url(image) for image in seen] if self.encode else seen


class PictureWorkers:
    """Processes that are begun when there is a large picture and none is idle. Threads may share it.

    Attributes:
        count: of them at most: the available cores, shared with the other processes of `torchrun` on this machine.
    """

    def __init__(self) -> None:
        self.count = available_cores()
        self._places = threading.Semaphore(self.count)
        self._idle: list[_Worker] = []
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._closing = weakref.finalize(self, _end, self._idle)  # at the end of the program, too

    def __enter__(self) -> PictureWorkers:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the processes that have nothing to do. They are begun again when they are needed."""
        with self._lock:
            idle = self._idle[:]
            self._idle.clear()
        _end(idle)

    def do(self, job: PictureJob, images: Sequence[Image.Image]) -> list[Any]:
        """Do a job: the pictures, or their data URLs.

        Raises:
            Exception: Whatever perturbing them raises.
        """
        if not self._is_worth_it(job, images):
            return job.done(images)
        with self._places:
            worker = self._worker()
            try:
                pictures = worker.do(job, images)
            except BaseException as error:  # an interrupt, too: what it would answer is nobody's
                worker.end()
                if not isinstance(error, (OSError, EOFError, pickle.PickleError, AttributeError, TypeError)):
                    raise
                logger.debug("a picture is made in this process: {}: {}", type(error).__name__, error)
                return job.done(images)
            with self._lock:
                self._idle.append(worker)
        if isinstance(pictures, Exception):
            raise pictures
        return pictures

    def _is_worth_it(self, job: PictureJob, images: Sequence[Any]) -> bool:
        # Other kinds of noise may hold models, or be of a program that another process does not know.
        ours = job.noise is None or isinstance(job.noise, Perturbation)
        if not ours or (job.noise is None and not job.encode):
            return False
        return self._process == os.getpid() and sum(image.width * image.height for image in images) >= LARGE

    def _worker(self) -> _Worker:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return _Worker()


class _Worker:
    """A process that does one job after the other."""

    def __init__(self) -> None:
        # One thread each: there are as many processes as cores.
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-c", _BEGIN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._of = self._process.stdin, self._process.stdout
        self._send(sys.path)

    def do(self, job: PictureJob, images: Sequence[Image.Image]) -> list[Any] | Exception:
        self._send((job, [_packed(image) for image in images]))
        pictures = pickle.load(self._of)
        return (
            [_unpacked(picture) for picture in pictures] if isinstance(pictures, list) and not job.encode else pictures
        )

    def _send(self, what: object) -> None:
        self._to.write(pickle.dumps(what, protocol=pickle.HIGHEST_PROTOCOL))
        self._to.flush()

    def end(self) -> None:
        for pipe in (self._to, self._of):
            with suppress(OSError):  # of a process that is gone with what was to be written
                pipe.close()
        try:
            self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(_PATIENCE_S)


def work() -> None:
    """Do jobs until the pipe ends: the main function of a worker."""
    import signal

    import cv2

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes of a terminal; ours ends the pipe
    jobs, results = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no result
    cv2.setNumThreads(1)
    while True:
        try:
            job, images = pickle.load(jobs)
        except EOFError:
            return
        result: Any
        try:
            result = job.done([_unpacked(image) for image in images])
        except Exception as error:  # raised by whoever asked
            result = error
        else:
            result = result if job.encode else [_packed(image) for image in result]
        try:
            results.write(pickle.dumps(result, protocol=pickle.HIGHEST_PROTOCOL))
            results.flush()
        except BrokenPipeError:
            return


def available_cores() -> int:
    """Cores that this process may use, its share where several of `torchrun` are on this machine."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(cores // max(int(os.environ.get("LOCAL_WORLD_SIZE") or 1), 1), 1)


def _end(workers: Sequence[_Worker]) -> None:
    for worker in workers:
        worker.end()


def _packed(image: Image.Image) -> tuple[str, tuple[int, int], bytes]:
    return image.mode, image.size, image.tobytes()


def _unpacked(packed: tuple[str, tuple[int, int], bytes]) -> Image.Image:
    return Image.frombytes(*packed)
