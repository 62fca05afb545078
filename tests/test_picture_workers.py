"""Large pictures in processes of their own: the same to the byte, and no process stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from PIL import Image

from hedge_tasks.errors import ConfigError
from hedge_tasks.perturb import Perturbation, Wording
from hedge_tasks.perturb import workers as module
from hedge_tasks.perturb.workers import PictureJob, PictureWorkers, available_cores

PICTURES = [
    Image.fromarray(np.random.default_rng(i).integers(0, 255, (40 + i, 60, 3), dtype=np.uint8)) for i in range(2)
]
WORDING = Wording("which side?")
QUICK = Perturbation(p_affine=0, p_color=0)
"""Needs no Albumentations, which takes a second to load."""


@pytest.fixture(autouse=True)
def _everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGE", 1)


@pytest.fixture(scope="module")
def workers() -> Iterator[PictureWorkers]:
    with PictureWorkers(1) as made:
        yield made
    assert not children()


def children() -> list[int]:
    """Worker processes of this one."""
    found = []
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/children") as file:
                found += [int(number) for number in file.read().split()]
        except FileNotFoundError:  # a thread that is over
            continue
    return [number for number in found if b"perturb.workers" in command_of(number)]


def command_of(number: int) -> bytes:
    try:
        with open(f"/proc/{number}/cmdline", "rb") as file:
            return file.read()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def flat(made: list[Any]) -> list[Any]:
    return [one if isinstance(one, str) else (one.mode, one.size, one.tobytes()) for one in made]


@pytest.mark.parametrize("encode", [False, True])
@pytest.mark.parametrize("preset", ["hedge", "strong", None])
def test_the_same_pictures_to_the_byte(workers: PictureWorkers, preset: str | None, encode: bool) -> None:
    noise = None if preset is None else Perturbation.from_config(preset)
    for seed in range(3):
        job = PictureJob(noise, WORDING, seed, encode=encode, max_side=50 if seed else None)
        assert flat(workers.do(job, PICTURES)) == flat(job.done(PICTURES))
    assert len(children()) == 1


def test_what_a_worker_raises_is_raised_here(workers: PictureWorkers) -> None:
    # Of a user's transform that cannot take the picture.
    own = Perturbation(transforms=({"class": "RandomCrop", "height": 1000, "width": 1000},))
    job = PictureJob(own, WORDING, 0)
    with pytest.raises(ConfigError) as here:
        job.done(PICTURES)
    with pytest.raises(ConfigError) as there:
        workers.do(job, PICTURES)
    assert str(here.value) == str(there.value)
    fine = PictureJob(Perturbation(), WORDING, 1)
    assert flat(workers.do(fine, PICTURES)) == flat(fine.done(PICTURES)), "the worker lives on"


@pytest.mark.slow
def test_a_worker_that_is_killed_is_replaced_and_its_picture_made_here(workers: PictureWorkers) -> None:
    job = PictureJob(Perturbation(), WORDING, 1)
    workers.do(job, PICTURES)
    [number] = children()
    os.kill(number, signal.SIGKILL)
    assert flat(workers.do(job, PICTURES)) == flat(job.done(PICTURES))
    assert flat(workers.do(job, PICTURES)) == flat(job.done(PICTURES))
    assert len(children()) == 1
    assert children() != [number]


@pytest.mark.slow
def test_no_more_workers_than_allowed_and_none_is_left() -> None:
    jobs = [PictureJob(QUICK, WORDING, seed) for seed in range(8)]
    with PictureWorkers(2) as workers, ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda job: workers.do(job, PICTURES), jobs))
        assert 1 <= len(children()) <= 3  # one may be the module's own
    assert [flat(one) for one in made] == [flat(job.done(PICTURES)) for job in jobs]


class Elsewhere:
    """A kind of noise that no other process knows."""

    def perturb_images(self, images: Any, wording: Wording, *, seed: int) -> list[Any]:
        return [image.rotate(90) for image in images]


def test_what_is_small_or_of_another_kind_is_made_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module._Worker, "__init__", lambda self: pytest.fail("a process was begun"))
    with PictureWorkers(1) as workers:
        workers.do(PictureJob(Elsewhere(), WORDING, 0), PICTURES)  # type: ignore[arg-type]
        assert workers.do(PictureJob(None, WORDING, 0), PICTURES) == PICTURES
        monkeypatch.setattr(module, "LARGE", 10**6)
        workers.do(PictureJob(Perturbation(), WORDING, 0), PICTURES)
    with PictureWorkers(0) as none:
        monkeypatch.setattr(module, "LARGE", 1)
        none.do(PictureJob(Perturbation(), WORDING, 0), PICTURES)


@pytest.mark.parametrize("count", [-1, 1.5, True, "2"])
def test_a_count_that_makes_no_sense_is_refused(count: Any) -> None:
    with pytest.raises(ConfigError, match="picture_workers: expected an integer of at least 0"):
        PictureWorkers(count)


@pytest.mark.slow
def test_processes_of_torchrun_share_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1000")
    assert available_cores() == 1
    assert PictureWorkers().count == 1


PROGRAM = """
    import sys, threading, time
    sys.path[:] = {path!r}
    from PIL import Image
    import signal
    from hedge_tasks.perturb import Perturbation, Wording, workers
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a test run in the background ignores it
    workers.LARGE = 1
    pool = workers.PictureWorkers(1)
    pool.do(workers.PictureJob(Perturbation(p_affine=0, p_color=0), Wording("?"), 1), [Image.new("RGB", (30, 20))])
    print(pool._idle[0]._process.pid, flush=True)
    {end}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "sent"),
    [("raise SystemExit(3)", None), ("time.sleep(60)", signal.SIGINT), ("time.sleep(60)", signal.SIGKILL)],
    ids=["error", "Ctrl-C", "killed"],
)
def test_no_worker_outlives_its_program(end: str, sent: signal.Signals | None) -> None:
    text = textwrap.dedent(PROGRAM.format(path=sys.path, end=end))
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with subprocess.Popen([sys.executable, "-c", text], start_new_session=True, **pipes) as program:
        assert program.stdout is not None
        worker = int(program.stdout.readline())
        if sent is signal.SIGINT:
            os.killpg(program.pid, sent)  # as a terminal does: to the workers, too
        elif sent is not None:
            program.send_signal(sent)
        program.wait(30)
    for _ in range(200):
        if not command_of(worker):
            return
        time.sleep(0.05)
    pytest.fail("the worker is still there")
