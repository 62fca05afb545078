"""The probe before sampling, documents that may fail, the picture check: on models that behave in a known way."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from requested import FakeModel
from test_hook import requests

from hedge_tasks.data.answers import AnswerSet, FailedDocument, Refused, read_report, read_response
from hedge_tasks.errors import DrawsFailed
from hedge_tasks.sampling import Answer, archive
from hedge_tasks.sampling.behaviour import MOST_REQUESTS
from hedge_tasks.sampling.hook import generate_samples
from hedge_tasks.sampling.probe import DRAWS
from hedge_tasks.sampling.requests import DrawRequest
from hedge_tasks.sampling.store import AnswerStore

# A model's one-token answers at temperature 1, with their log-probabilities.
RAW = {"left": -0.5, "right": -1.2}


def sound(draw: DrawRequest) -> Answer:
    text = ("left", "right")[draw.draw.seed % 2]
    return Answer(text, RAW[text], 1, "stop")


def report_of(model: Any, n_documents: int = 3, **settings: Any) -> dict[str, Any]:
    lines = generate_samples(model, requests(n_documents, probe=True, **settings))
    report = read_report(lines[0])
    assert report is not None
    assert all(read_report(line) is None for line in lines[1:])  # once a task is enough
    return dict(report)


def test_a_prompt_is_asked_at_the_plans_temperature_and_at_half_of_it_with_seeds_of_their_own() -> None:
    model = FakeModel(lambda draw: replace(sound(draw), mean_logprob=None))
    report_of(model, 1, temperature=0.8)
    probing = model.asked[: DRAWS + 1 + DRAWS // 2]
    assert Counter(draw.draw.temperature for draw in probing) == {0.8: DRAWS + 1, 0.4: DRAWS // 2}
    seeds = Counter(draw.draw.seed for draw in probing)
    assert sorted(seeds.values()) == [1] * (DRAWS + DRAWS // 2 - 1) + [2]
    assert seeds[probing[0].draw.seed] == 2, "the first again"


def test_the_probe_counts_in_no_score_and_leaves_nothing_in_the_store(tmp_path: Path) -> None:
    model = FakeModel(sound)
    lines = generate_samples(model, requests(2, tmp_path, probe=True))
    assert len(model.asked) == DRAWS + 1 + DRAWS // 2 + MOST_REQUESTS + 2 * 5
    with AnswerStore(tmp_path) as store:
        assert len(store) == 2 * 5
        [report] = store.reports.values()
    assert report["probe"]["varied"] is True
    # A second call has everything: no draw, no probe, but the report of the first.
    again = generate_samples(model, requests(2, tmp_path, probe=True))
    assert again == lines


def test_a_probe_that_failed_wholly_stops_the_run() -> None:
    model = FakeModel(lambda draw: "on fire")
    with pytest.raises(DrawsFailed, match=r"all 16 draws of the probe failed, so nothing is sampled.* on fire"):
        generate_samples(model, requests(3, probe=True))
    assert len(model.asked) == 16


def refusing(*ids: str) -> FakeModel:
    def answer(draw: DrawRequest) -> Answer | str:
        return Refused("status 400: bad picture") if draw.request.id in ids else sound(draw)

    return FakeModel(answer)


def test_a_refused_document_ends_the_run_at_once_by_default() -> None:
    model = refusing("q1")
    with pytest.raises(DrawsFailed, match=r"max_failed allows to leave out 0. First reason: status 400: bad picture"):
        generate_samples(model, requests(3))
    assert len(model.asked) == 5 + 1  # neither the rest of the document nor another try


@pytest.mark.parametrize("max_failed", [1, 0.34])
def test_as_many_documents_as_max_failed_allows_are_left_out(max_failed: float, tmp_path: Path) -> None:
    lines = generate_samples(refusing("q1"), requests(3, tmp_path, max_failed=max_failed))
    read = [read_response(line) for line in lines]
    assert read[1] == FailedDocument("q1", "status 400: bad picture")
    assert [type(r) for r in read] == [AnswerSet, FailedDocument, AnswerSet]
    with pytest.raises(DrawsFailed, match="2 of 3 documents"):
        generate_samples(refusing("q0", "q2"), requests(3, max_failed=max_failed))


def answers_from_picture(draw: DrawRequest) -> Answer:
    return Answer(hashlib.sha256(draw.images()[0].tobytes()).hexdigest()[:6])


@pytest.mark.parametrize(("answer", "same"), [(answers_from_picture, 0), (sound, 2)])
def test_the_picture_check_tells_who_looks(answer: Any, same: int, tmp_path: Path) -> None:
    model = FakeModel(answer)
    model.task_dict["task"]["test"] = [{"image": Image.new("RGB", (8, 8), (i * 40, 0, 0))} for i in range(3)]
    rows = requests(3, tmp_path, image_check=2)
    for i, row in enumerate(rows):
        row.args[2].__dict__["group"] = f"picture {i}"
    lines = generate_samples(model, rows)
    report = read_report(lines[0])
    assert report is not None
    assert report["image_use"] == {"blank": 2, "blank_same": same, "other": 2, "other_same": same}
    n_asked = len(model.asked)
    assert n_asked == 3 * 5 + 2 * 2
    assert read_report(generate_samples(model, rows)[0]) == report
    assert len(model.asked) == n_asked  # the further draws are in the store, too
    [store] = {file.parent for file in tmp_path.rglob("answers-*.jsonl")}
    assert len(archive.open_store(store)) == n_asked
