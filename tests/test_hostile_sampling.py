"""Judges that deny what they name, pictures that are bombs or cut off."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset, Features, Value
from datasets import Image as ImageFeature
from PIL import Image
from requested import FakeModel, instances, request
from test_hook import ForeignModel

from hedge_tasks.data.pictures import TOO_LARGE, UNREADABLE, image_file_fault
from hedge_tasks.data.splits import contents_of
from hedge_tasks.errors import DrawsFailed
from hedge_tasks.judging.prompt import load_judge_prompt
from hedge_tasks.sampling import Answer, AnswerSet

PROMPT = load_judge_prompt("hedge")


# --- judges -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reply",
    [
        "supported: false",
        '"supported": false',
        "Hallucinated = 0",
        "verdict: supported by nothing",
        "The verdict is supported? No.",
        "supported: 1\nhallucinated: 0",
    ],
)
def test_a_judge_that_denies_what_it_names_is_unreadable(reply: str) -> None:
    assert PROMPT.outcome_in(reply)[0] is None


# --- pictures ---------------------------------------------------------------------------------------------------------


def file_of(kind: str, size: tuple[int, int]) -> bytes:
    file = io.BytesIO()
    Image.effect_noise(size, 90).save(file, kind)
    return file.getvalue()


PNG, JPEG = file_of("PNG", (40, 30)), file_of("JPEG", (200, 200))


def bomb(side: int) -> bytes:
    """A PNG of a few bytes that says it is `side` x `side`."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 99)) + chunk(b"IEND", b"")
    )


def pictures(*files: bytes) -> Dataset:
    rows = {"q": [f"q{i}" for i in range(len(files))], "image": [{"bytes": file, "path": None} for file in files]}
    return Dataset.from_dict(rows, features=Features({"q": Value("string"), "image": ImageFeature()}))


@pytest.mark.parametrize("side", [14_000, 60_000, 2**31 - 1])
def test_a_decompression_bomb_is_refused_before_it_is_decoded(side: int) -> None:
    assert image_file_fault(bomb(side), decode=True) == TOO_LARGE
    assert contents_of(pictures(PNG, bomb(side)), [], ["image"]).faults == {1: TOO_LARGE}


@pytest.mark.parametrize("place", [0, 40])
def test_a_png_that_is_cut_off_is_found_at_the_start(place: int) -> None:
    files = [PNG] * 41
    files[place] = files[place][:-200]
    assert contents_of(pictures(*files), [], ["image"]).faults == {place: UNREADABLE}


def test_a_jpeg_that_is_cut_off_is_found_at_the_start_among_the_first() -> None:
    assert image_file_fault(JPEG[:3000], decode=True) == UNREADABLE
    assert contents_of(pictures(PNG, JPEG[:3000]), [], ["image"]).faults == {1: UNREADABLE}


def asked_of(dataset: Dataset, folder: Path | None = None, **settings: Any) -> list[Any]:
    """Requests as a task makes them, one a row."""
    plan = {"n": 2, "probe": True, **settings}
    return instances(request(i, plan=plan, model="m", store=folder) for i in range(len(dataset)))


@pytest.mark.parametrize("ours", [True, False], ids=["our adapter", "a foreign adapter"])
@pytest.mark.parametrize("bad", [0, 2], ids=["the probed document", "a later document"])
def test_a_document_with_an_unreadable_picture_is_left_out_with_the_reason(
    bad: int, ours: bool, tmp_path: Path
) -> None:
    from hedge_tasks.data.answers import FailedDocument, read_response
    from hedge_tasks.sampling.hook import generate_samples

    files = [PNG] * 4
    files[bad] = JPEG[:3000]
    dataset = pictures(*files)
    foreign = ForeignModel(is_simple=True, reply=lambda instance, _: f"seen {len(foreign.images(instance))}")
    foreign.task_dict = {"task": {"test": dataset}}
    model = FakeModel(lambda draw: Answer("seen", -0.5, 2), {"task": {"test": dataset}}) if ours else foreign
    read = [read_response(line) for line in generate_samples(model, asked_of(dataset, tmp_path, max_failed=1))]
    failed = read.pop(bad)
    assert isinstance(failed, FailedDocument)
    assert failed.reason.startswith(f"document q{bad}: its picture cannot be read: ")
    assert all(isinstance(r, AnswerSet) and len(r.answers) == 5 for r in read)
    with pytest.raises(DrawsFailed, match=rf"allows to leave out 0. First reason: document q{bad}: its picture cannot"):
        generate_samples(model, asked_of(dataset))
