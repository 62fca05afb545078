"""SHALE's construction on scripted models: what becomes of every scene, kills, people, and the command.

The writer proposes kites of four colours; image generators make one colour for a prompt; checkers take pictures
of one colour for right. So what becomes of every scene is known by the number of its kite.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from making import asked_of
from PIL import Image
from scripted_making import Killed, Script, Scripted

from hedge_tasks.cli import main
from hedge_tasks.errors import ConfigError
from hedge_tasks.making.pictures.base import Order, PictureQuestion
from hedge_tasks.making.shale.construction import MadeScenes, ShaleMaking
from hedge_tasks.making.shale.pictures import PictureMaking

COLORS = ("red", "green", "blue", "yellow")
SCENARIOS = ("sty", "txt", "pfx", "sty_p", "txt_p")


def number_of(text: str) -> int:
    return int(text.partition("kite ")[2].split()[0].rstrip("?,."))


def play(body: dict[str, Any]) -> str:
    fields = asked_of(body)
    if "guide" in fields:
        return _records()
    candidate, truth = fields["candidate_answer"], fields["reference_answer"]
    color = next(c for c in (*COLORS, "white") if f"in {c} " in truth)
    right = f"in {color} " in candidate and "not true" not in candidate and number_of(candidate) == number_of(truth)
    return json.dumps({"verdict": "supported" if right else "contradicted", "sentence": 1})


def _records() -> str:
    """Seven scenes: the eighth is the seventh again, the ninth and the tenth are no usable records."""
    records = [_record(number) for number in range(7)]
    records += [_record(6), {**_record(8), "counterfactual": ["red", "Red.", "green"]}, {**_record(9), "entity": "{x}"}]
    return json.dumps({"records": records})


def _record(number: int) -> dict[str, Any]:
    wrong = [color for color in COLORS if color != COLORS[number % 4]]
    place = {"entity": f"a kite {number}", "relation": "in a room", "facts": ""}
    return {**place, "attribute": COLORS[number % 4], "counterfactual": [*wrong, "white"]}


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
    """Scores by the number of the kite; 0.5 where a picture is not of one colour and `strict` names its number."""

    def __init__(self, name: str, scores: Mapping[int, float | None], strict: Sequence[int] = ()) -> None:
        self.name = name
        self._scores, self._strict = scores, strict

    def check(self, pictures: Sequence[Image.Image], questions: Sequence[PictureQuestion]) -> list[float | None]:
        return [self._score(*pair) for pair in zip(pictures, questions, strict=True)]

    def _score(self, picture: Image.Image, question: PictureQuestion) -> float | None:
        number = number_of(question.statement)
        if number in self._strict and len(picture.getcolors(picture.width * picture.height)) > 1:
            return 0.5
        return self._scores.get(number, 1.0)


CHECKERS = (PlainChecker("one", {0: 0.8, 3: 1.0}, strict=(2,)), PlainChecker("other", {0: 0.8, 1: None, 3: 0.7}, (2,)))
"""Kite 0 is in doubt, of kite 1 only one can speak, kite 2 with a text on it is in doubt, over kite 3 they differ."""


def making(reply: Any = play, generator: Any = None, **pictures: Any) -> ShaleMaking:
    return ShaleMaking(
        PictureMaking(generator or Plain(), CHECKERS, **pictures),
        per_aspect=8,
        aspects=["color"],
        scenarios=SCENARIOS,
        writer=Scripted("writer", reply),  # type: ignore[arg-type]
        verifiers=[Scripted("verifier", reply)],  # type: ignore[list-item]
    )


def outcomes(made: MadeScenes) -> dict[int, str]:
    return {number_of(scene.scene.prompt): scene.verdicts["clean"].outcome for scene in made.scenes}


def test_what_becomes_of_every_scene(tmp_path: Path) -> None:
    made = making().run(tmp_path)
    assert outcomes(made) == {0: "review", **dict.fromkeys(range(1, 7), "accepted")}
    assert made.made.steps["record dropped: fewer than three counterfactuals"] == 1
    assert made.made.steps["record dropped: a value that no question can quote"] == 1
    assert set(made.made.controls.values()) == {(7, 7)}  # the eighth record is one of the seven
    two = next(scene for scene in made.scenes if number_of(scene.scene.prompt) == 2)
    assert (two.verdicts["txt"].outcome, two.has("txt_p"), two.has("pfx")) == ("review", False, True)
    scenarios = Counter(item.scenario for item in made.items)
    assert scenarios["clean"] == 6 * 4
    assert scenarios["pfx"] == scenarios["pfx_true"] == scenarios["pfx_neutral"] == 6 * 2
    assert scenarios["txt"] == 5 * 4
    assert making(beta=0.01).run(tmp_path).made.accepted == 5  # over kite 3 they differ: 1.0 and 0.7


@pytest.mark.parametrize("step", [1, 3, 5])
def test_killed_anywhere_and_resumed_it_is_the_same(tmp_path: Path, step: int) -> None:
    whole = making().run(tmp_path / "whole")
    counter = 0

    def reply(body: dict[str, Any]) -> str:
        nonlocal counter
        counter += 1
        if counter % (step + 1) == 0:
            raise Killed
        return play(body)

    generated = []
    while True:
        generator = Plain(fuse=8 * step)
        try:
            made = making(reply, generator).run(tmp_path / "killed", concurrency=1)
            break
        except Killed:
            continue
        finally:
            generated += generator.orders
    assert made.items == whole.items
    assert made.made.steps == whole.made.steps
    assert [s.verdicts for s in made.scenes] == [s.verdicts for s in whole.scenes]
    assert [{k: p.digest for k, p in s.pictures.items()} for s in made.scenes] == [
        {k: p.digest for k, p in s.pictures.items()} for s in whole.scenes
    ]
    assert len(generated) == len({(order.prompt, order.seed) for order in generated})  # nothing is painted twice


def test_people_decide_what_is_in_doubt_and_damage_is_painted_again(tmp_path: Path) -> None:
    first = making().run(tmp_path)
    [doubtful] = [scene.scene.id for scene in first.scenes if not scene.accepted]
    for label, outcome in ((0, "accepted"), (1, "rejected")):
        again = making(lambda body: pytest.fail("asked again"), labels={f"{doubtful}-clean": label}).run(tmp_path)
        assert outcomes(again)[0] == outcome
    path = first.scenes[3].pictures["clean"].path
    path.write_bytes(path.read_bytes()[:-30])
    generator = Plain()
    assert making(generator=generator).run(tmp_path).items == first.items
    assert len(generator.orders) == 1


def test_a_style_is_in_the_prompt_where_the_generator_takes_one(tmp_path: Path) -> None:
    generator = Plain()
    making(generator=generator).run(tmp_path)
    styled = [order for order in generator.orders if "in the style of a" in order.prompt]
    clean = {order.seed for order in generator.orders if "in the style of a" not in order.prompt}
    assert len(styled) == 6
    assert {order.seed for order in styled} < clean  # from the same noise of the generator


def test_what_cannot_be_checked_is_refused() -> None:
    with pytest.raises(ConfigError, match="need a checker"):
        ShaleMaking(PictureMaking(Plain(), ()))
    with pytest.raises(ConfigError, match="a writer needs a verifier"):
        ShaleMaking(PictureMaking(Plain(), CHECKERS), writer=Scripted("w", play))  # type: ignore[arg-type]


@pytest.mark.slow
def test_the_command_makes_a_set_that_hedge_shale_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from datasets import Dataset

    out = tmp_path / "out"
    command = ["make", "shale", "--out", str(out), "--generator", "drawn:size=48", "--per-aspect", "3", "--floor", "1"]
    command += ["--aspect", "color", "--aspect", "count", "--aspect", "culture", "--scenario", "pfx", "--json"]
    assert main([*command, "--dry-run"]) == 0
    assert not out.exists()
    capsys.readouterr()
    assert main(command) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["accepted"] == 6
    assert facts["warnings"] == [
        "culture: 0 scenes, fewer than wanted; what can be drawn or filled in there is exhausted"
    ]
    [file] = [file for file in facts["files"] if "ynq" in file]
    rows = Dataset.from_parquet(file, keep_in_memory=True)
    assert {row["scenario"] for row in rows} == {"clean", "pfx", "pfx_true", "pfx_neutral"}
    assert set(rows["licence"]) == {"Apache-2.0"}
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


def test_the_seed_of_a_request_is_its_own(tmp_path: Path) -> None:
    script = Script(play)
    making(script).run(tmp_path)
    seeds = Counter((body["model"], body["seed"], str(body["messages"])) for body in script.bodies)
    assert max(seeds.values()) == 1
