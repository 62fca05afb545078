"""hedge_ray as far as it needs no Ray; with one: tests/cluster/test_ray.py (`make test-cluster`)."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import pytest
from PIL import Image
from sampling_process import requests

from hedge_tasks.errors import ConfigError
from hedge_tasks.models.hedge_ray import HedgeRay, _batches, _carried
from hedge_tasks.sampling.requests import DrawRequest

PICTURE = Image.effect_noise((24, 16), 50)


def draws(folder: Path) -> list[DrawRequest]:
    """Draws of every document in turn, whose rows no other process could fetch."""
    of = [instance.args[2] for instance in requests(folder, 2)]
    return [
        DrawRequest(request, draw, lambda: {"image": PICTURE}, ("task", "test", i))
        for k in range(5)
        for i, request in enumerate(of)
        for draw in request.plan.draws(request.key)[k : k + 1]
    ]


def test_without_ray_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=r"pip install 'hedge-tasks\[ray\]'"):
        HedgeRay(of="hedge_tiny")
    with pytest.raises(ConfigError, match="of is another adapter"):
        HedgeRay(of="hedge_ray")


def test_each_draw_is_in_one_batch_and_those_of_a_document_are_together(tmp_path: Path) -> None:
    made = draws(tmp_path)
    batches = list(_batches(made, 12))
    assert sorted(i for batch in batches for i in batch) == list(range(len(made)))
    documents = [{made[i].request.key for i in batch} for batch in batches]
    assert sum(map(len, documents)) == len(set().union(*documents))
    assert all(len(batch) >= 12 for batch in batches[:-1])


def test_carried_draws_need_nothing_of_this_process(tmp_path: Path) -> None:
    made = draws(tmp_path)[:7]
    carried = pickle.loads(pickle.dumps(_carried(made)))
    assert [draw.draw for draw in carried] == [draw.draw for draw in made]
    for there, here in zip(carried, made, strict=True):
        assert [image.tobytes() for image in there.images()] == [image.tobytes() for image in here.images()]
