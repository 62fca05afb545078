"""SHALE's construction on scripted painters and checkers: what becomes of every scene, kills, people, and the command.

Image generators make one colour for a prompt; checkers take pictures of one colour for right. So what becomes of every
scene is known by its number.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from printed import json_of
from scripted_making import Killed

from hedge_tasks.cli import main
from hedge_tasks.making.pictures.base import Order, PictureQuestion
from hedge_tasks.making.shale.construction import MadeScenes, ShaleMaking
from hedge_tasks.making.shale.pictures import PictureMaking
from hedge_tasks.making.shale.scenes import scenes_of

N = 7
SCENARIOS = ("sty", "txt", "pfx", "sty_p", "txt_p")
NUMBER = {scene.prompt: number for number, scene in enumerate(scenes_of("color", N))}


class Plain:
    """One colour for a prompt; `fuse` orders from now it is killed."""

    name = "plain"

    def __init__(self, fuse: int = 10**9) -> None:
        self.orders: list[Order] = []
        self.fuse = fuse

    def generate(self, orders: Sequence[Order]) -> list[Image.Image]:
        self.fuse -= len(orders)
        if self.fuse < 0:
            raise Killed
        self.orders += orders
        digests = (hashlib.sha256(order.prompt.encode()).digest() for order in orders)
        return [Image.new("RGB", (48, 48), (d[0], d[1], d[2])) for d in digests]


class PlainChecker:
    """Scores by the number of the scene; 0.5 where a picture is not of one colour and `strict` names its number."""

    def __init__(self, name: str, scores: Mapping[int, float | None], strict: Sequence[int] = ()) -> None:
        self.name = name
        self._scores, self._strict = scores, strict

    def check(self, pictures: Sequence[Image.Image], questions: Sequence[PictureQuestion]) -> list[float | None]:
        return [self._score(*pair) for pair in zip(pictures, questions, strict=True)]

    def _score(self, picture: Image.Image, question: PictureQuestion) -> float | None:
        number = NUMBER[question.statement]
        if number in self._strict and len(picture.getcolors(picture.width * picture.height)) > 1:
            return 0.5
        return self._scores.get(number, 1.0)


CHECKERS = (PlainChecker("one", {0: 0.8, 3: 1.0}, strict=(2,)), PlainChecker("other", {0: 0.8, 1: None, 3: 0.7}, (2,)))
"""Scene 0 is in doubt, of scene 1 only one can speak, 2 with a text on it is in doubt, over 3 they differ."""


def making(generator: Any = None, **pictures: Any) -> ShaleMaking:
    return ShaleMaking(PictureMaking(generator or Plain(), CHECKERS, **pictures), N, ["color"], SCENARIOS)


def outcomes(made: MadeScenes) -> dict[int, str]:
    return {NUMBER[scene.scene.prompt]: scene.verdicts["clean"].outcome for scene in made.scenes}


def test_what_becomes_of_every_scene(tmp_path: Path) -> None:
    generator = Plain()
    made = making(generator).run(tmp_path)
    assert outcomes(made) == {0: "review", **dict.fromkeys(range(1, N), "accepted")}
    assert (made.scenes[2].verdicts["txt"].outcome, made.scenes[2].has("txt_p"), made.scenes[2].has("pfx")) == (
        "review",
        False,
        True,
    )
    scenarios = Counter(item.scenario for item in made.made.rows)
    assert scenarios["clean"] == 6 * 4
    assert scenarios["pfx"] == scenarios["pfx_true"] == scenarios["pfx_neutral"] == 6 * 2
    assert scenarios["txt"] == 5 * 4
    assert making(beta=0.01).run(tmp_path).made.accepted == 5  # over scene 3 they differ: 1.0 and 0.7
    # A style is in the prompt, and the picture is painted from the same noise of the generator.
    styled = [order for order in generator.orders if "in the style of a" in order.prompt]
    assert len(styled) == 6
    assert {order.seed for order in styled} < {order.seed for order in generator.orders if order not in styled}


def test_killed_anywhere_and_resumed_it_is_the_same(tmp_path: Path) -> None:
    whole = making().run(tmp_path / "whole")
    generated = []
    while True:
        generator = Plain(fuse=8)
        try:
            made = making(generator).run(tmp_path / "killed")
            break
        except Killed:
            continue
        finally:
            generated += generator.orders
    assert (made.made.rows, made.made.steps) == (whole.made.rows, whole.made.steps)
    assert [s.verdicts for s in made.scenes] == [s.verdicts for s in whole.scenes]
    assert [{k: p.digest for k, p in s.pictures.items()} for s in made.scenes] == [
        {k: p.digest for k, p in s.pictures.items()} for s in whole.scenes
    ]
    assert len(generated) == len({(order.prompt, order.seed) for order in generated})  # nothing is painted twice


def test_people_decide_what_is_in_doubt_and_damage_is_painted_again(tmp_path: Path) -> None:
    first = making().run(tmp_path)
    [doubtful] = [scene.scene.id for scene in first.scenes if not scene.accepted]
    for label, outcome in ((0, "accepted"), (1, "rejected")):
        assert outcomes(making(labels={f"{doubtful}-clean": label}).run(tmp_path))[0] == outcome
    path = first.scenes[3].pictures["clean"].path
    path.write_bytes(path.read_bytes()[:-30])
    generator = Plain()
    assert making(generator).run(tmp_path).made.rows == first.made.rows
    assert len(generator.orders) == 1


def test_the_command_makes_a_set_that_hedge_shale_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from datasets import Dataset

    out = tmp_path / "out"
    command = ["make", "shale", "--out", str(out), "--generator", "drawn:size=48", "--per-aspect", "3", "--floor", "1"]
    command += ["--aspect", "color", "--aspect", "count", "--aspect", "culture", "--scenario", "pfx", "--json"]
    assert main([*command, "--dry-run"]) == 0
    assert not out.exists()
    capsys.readouterr()
    facts = json_of(capsys, command)
    assert facts["accepted"] == 6
    assert facts["warnings"] == [
        "culture: 0 scenes, fewer than wanted; what can be drawn or filled in there is exhausted"
    ]
    [file] = [file for file in facts["files"] if "ynq" in file]
    rows = Dataset.from_parquet(file, keep_in_memory=True)
    assert {row["scenario"] for row in rows} == {"clean", "pfx", "pfx_true", "pfx_neutral"}
    assert set(rows["generator"]) == {"drawn:size=48,edition=3"}
    card = (out / "README.md").read_text()
    assert "license: apache-2.0" in card
    assert "ynq, pfx" in card
    assert (out / "review.html").read_text().count("<article") == 6
    files = {file: Path(file).read_bytes() for file in facts["files"]}
    assert main(command) == 0
    assert {file: Path(file).read_bytes() for file in files} == files


def test_no_scene_is_accepted_says_its_reasons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["make", "shale", "--out", str(tmp_path), "--generator", "drawn:size=48", "--aspect", "color"]
    assert main([*command, "--scenario", "pfx", "--aspect", "culture", "--beta", "2"]) == 2
    assert "beta" in capsys.readouterr().err
    assert main([*command[:-2], "--aspect", "culture", "--scenario", "pfx"]) == 2
    assert "nothing is accepted (there is no source row)" in capsys.readouterr().err
