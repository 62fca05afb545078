"""Making pictures: verdicts, the folder that survives kills, and arithmetic on boxes and words by hand."""

from __future__ import annotations

import base64
import io
import json
import math
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from once import python
from openai_server import Response, Script, error, serve
from picture_process import Brightness, Slow, orders, question
from PIL import Image

from hedge_tasks.errors import ConfigError, HedgeError
from hedge_tasks.judging import judge_from
from hedge_tasks.judging.review import write_review
from hedge_tasks.making.pictures.base import Order, PictureQuestion, verdict_of
from hedge_tasks.making.pictures.checkers import checker_from
from hedge_tasks.making.pictures.checkers.boxes import Box, distinct, holds, overlap, relation_named
from hedge_tasks.making.pictures.checkers.detector import objects_of, score
from hedge_tasks.making.pictures.checkers.reading import edits, likeness
from hedge_tasks.making.pictures.checkers.vqascore import p_yes
from hedge_tasks.making.pictures.generators import generator_from
from hedge_tasks.making.pictures.inspection import inspect, review_items, with_label
from hedge_tasks.making.pictures.store import PictureStore, StoredPicture

HERE = Path(__file__).parent


# --- verdicts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "outcome", "reason"),
    [
        ({"a": 0.85}, "accepted", ""),
        ({"a": 0.9, "b": 0.8}, "accepted", ""),
        ({"a": 0.9, "b": 0.79}, "review", "mean 0.845 below 0.85"),
        ({"a": None, "b": 0.9}, "accepted", ""),
        ({"a": None}, "review", "no checker can say"),
        ({}, "review", "no checker can say"),
        ({"a": 0.0, "b": 0.0}, "review", "mean 0.000 below 0.85"),
    ],
)
def test_a_verdict_by_the_papers_rule(scores: Mapping[str, float | None], outcome: str, reason: str) -> None:
    verdict = verdict_of(scores)
    assert (verdict.outcome, verdict.reason) == (outcome, reason)


def test_mean_and_variance_by_hand() -> None:
    verdict = verdict_of({"a": 1.0, "b": 0.5, "c": None, "d": 0.6})
    assert verdict.mean == pytest.approx(0.7)
    assert verdict.variance == pytest.approx((0.09 + 0.04 + 0.01) / 3)
    # The paper's beta holds nothing back; one below 0.1275 does.
    scores = {"a": 1.0, "b": 0.72}
    assert verdict_of(scores).outcome == "accepted"
    assert verdict_of(scores, beta=0.01).reason == "variance 0.020 above 0.01"
    assert verdict_of({"a": 0.1}, floor=0.2).outcome == "rejected"
    assert verdict_of({"a": 0.2}, floor=0.2).outcome == "review"


@pytest.mark.parametrize("options", [{"alpha": 1.5}, {"beta": -1}, {"floor": 2}])
def test_a_threshold_that_makes_no_sense_is_named(options: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        verdict_of({"a": 1.0}, **options)
    with pytest.raises(ConfigError, match=r"checker a: a score of 1\.5"):
        verdict_of({"a": 1.5})


# --- the folder -------------------------------------------------------------------------------------------------------


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("painted/*/*.png")}


def lines(path: Path) -> Counter[str]:
    return Counter(path.read_text().split("\n")[:-1])


def process(call: str, *arguments: str) -> str:
    program = f"import sys, picture_process as p; p.{call}"
    ran = subprocess.run([python(), "-c", program, *arguments], cwd=HERE, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.slow
def test_killed_20_times_the_pictures_and_scores_are_the_same(tmp_path: Path) -> None:
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    kills = process("run_killed(sys.argv[1], sys.argv[2], 20)", str(killed), str(tmp_path / "diary"))
    process("run_killed(sys.argv[1], sys.argv[2], 0)", str(whole), str(tmp_path / "other"))
    assert int(kills) >= 15  # some of the last may have been done before
    assert len(contents(whole)) == 40
    assert contents(killed) == contents(whole)
    results = [next(folder.glob("result-*.json")).read_text() for folder in (killed, whole)]
    assert results[0] == results[1]
    assert not list(killed.glob("painted/*/*.part"))
    assert set(lines(tmp_path / "other").values()) == {1}
    # What is made twice was under way as a kill came: at most a batch of two each time.
    assert sum(lines(tmp_path / "diary").values()) <= 80 + 2 * 20


@pytest.mark.slow
def test_workers_that_join_paint_nothing_twice(tmp_path: Path) -> None:
    process("run_together(sys.argv[1], sys.argv[2], 3)", str(tmp_path / "shared"), str(tmp_path / "diary"))
    painted = {line: count for line, count in lines(tmp_path / "diary").items() if line.startswith("make")}
    assert painted == {f"make o{i}": 1 for i in range(40)}
    results = {path.read_text() for path in (tmp_path / "shared").glob("result-*.json")}
    assert len(results) == 1
    assert not list((tmp_path / "shared").glob("painted/*/*.lock"))


def test_what_is_there_is_neither_painted_nor_checked_again(tmp_path: Path) -> None:
    asked = [[question(i)] for i in range(5)]
    with PictureStore(tmp_path) as store:
        first = store.generate(Slow(tmp_path / "d", 0), orders(5))
        verdicts = inspect(store, [Brightness(tmp_path / "d", 0)], first, asked)
        assert (store.generated, store.reused, store.scored, store.scores_reused) == (5, 0, 5, 0)
    with PictureStore(tmp_path) as store:
        renamed = [Order(f"other{o.id}", o.prompt, o.seed, o.details) for o in reversed(orders(5))]
        again = store.generate(Slow(tmp_path / "d", 0), renamed, batch=2)
        assert again == list(reversed(first))
        assert inspect(store, [Brightness(tmp_path / "d", 0)], first, asked) == verdicts
        assert (store.generated, store.reused, store.scored, store.scores_reused) == (0, 5, 0, 5)
        twins = store.generate(Slow(tmp_path / "d", 0), [Order(n, "new", 7, {}) for n in "ab"])
        assert twins[0] == twins[1]
        assert store.generated == 1
    assert set(lines(tmp_path / "d").values()) == {1}


def test_a_picture_says_where_it_came_from(tmp_path: Path) -> None:
    with PictureStore(tmp_path) as store:
        [picture] = store.generate(Slow(tmp_path / "d", 0), orders(1))
    assert isinstance(picture, StoredPicture)
    assert picture.path is not None
    with Image.open(picture.path) as image:
        origin = json.loads(image.info["hedge"])
    assert origin == {
        "generator": "slow", "prompt": "a picture of 0", "seed": 0, "about": {"number": 0}, "pixels": picture.digest
    }  # fmt: skip
    assert StoredPicture.of(picture.open()) == picture


@pytest.mark.parametrize("damage", [lambda b: b[: len(b) // 2], lambda b: b"", lambda b: b[:-40] + b"x" * 40])
def test_a_damaged_picture_is_painted_again(tmp_path: Path, damage: Any) -> None:
    with PictureStore(tmp_path) as store:
        store.generate(Slow(tmp_path / "d", 0), orders(3))
    before = contents(tmp_path)
    path = next(tmp_path.glob("painted/*/*.png"))
    path.write_bytes(damage(path.read_bytes()))
    with PictureStore(tmp_path) as store:
        store.generate(Slow(tmp_path / "d", 0), orders(3))
        assert store.generated == 1
    assert contents(tmp_path) == before


def test_a_generator_that_cannot_says_why_and_is_asked_again(tmp_path: Path) -> None:
    class Moody:
        name = "moody"
        mood = "refused"

        def generate(self, given: Sequence[Order]) -> list[Image.Image | str]:
            return [self.mood or Image.new("RGB", (4, 4)) for _ in given]

    moody = Moody()
    with PictureStore(tmp_path) as store:
        assert store.generate(moody, orders(2)) == ["refused", "refused"]
        moody.mood = ""
        assert all(isinstance(found, StoredPicture) for found in store.generate(moody, orders(2)))
        assert store.generated == 2


def test_a_checker_that_says_nonsense_is_an_error(tmp_path: Path) -> None:
    class Broken:
        name = "broken"
        scores: Sequence[float | None] = [math.nan]

        def check(self, pictures: Any, questions: Any) -> Any:
            return self.scores

    picture = [StoredPicture.of(Image.new("RGB", (4, 4)))]
    with PictureStore(tmp_path) as store:
        with pytest.raises(HedgeError, match="a score of nan"):
            store.check(Broken(), picture, [question(0)])
        Broken.scores = [0.5, 0.5]
        with pytest.raises(HedgeError, match="2 scores for 1 pictures"):
            store.check(Broken(), picture, [question(0)])
        Broken.scores = [None]
        assert store.check(Broken(), picture, [question(0)]) == [None]
    Broken.scores = [0.9]
    with PictureStore(tmp_path) as store:  # that it cannot say is remembered, too
        assert store.check(Broken(), picture, [question(0)]) == [None]


# --- people -----------------------------------------------------------------------------------------------------------


def test_what_is_in_doubt_goes_to_people_and_comes_back(tmp_path: Path) -> None:
    pictures = [StoredPicture.of(Image.new("RGB", (40, 30), color)) for color in ("red", "green", "blue", "white")]
    verdicts = [verdict_of({"a": s}) for s in (0.99, 0.5, 0.4, 0.3)]
    ids = ["red", "green", "blue", "white"]
    items = list(review_items(ids, pictures, ["a <b>", "c", "d", "e"], verdicts))
    assert [item.id for item in items] == ["green", "blue", "white"]
    write_review(tmp_path / "review.html", "Pictures", items)
    page = (tmp_path / "review.html").read_text()
    assert page.count("<article") == 3
    assert page.count("data:image/jpeg;base64,") == 3
    labels = tmp_path / "labels.csv"
    labels.write_text("id,label\ngreen,0\nblue,1\nwhite,\n")
    assert judge_from(f"labels:path={labels}").name == "labels"
    said = (None, 0, 1, None)
    heard_of = [with_label(verdict, label).outcome for verdict, label in zip(verdicts, said, strict=True)]
    assert heard_of == ["accepted", "accepted", "rejected", "review"]


# --- boxes and words, by hand -----------------------------------------------------------------------------------------


def test_two_boxes_of_one_object_count_once() -> None:
    # 10 x 10 at 0 and shifted by 3: 70 / 130 = 0.538; shifted by 4: 60 / 140 = 0.43.
    first, shifted, other = Box(0, 0, 10, 10, 0.9), Box(3, 0, 13, 10, 0.8), Box(4, 20, 14, 30, 0.7)
    assert overlap(first, shifted) == pytest.approx(70 / 130)
    assert distinct([shifted, other, first]) == [first, other]
    assert distinct([first, Box(4, 0, 14, 10, 0.8)]) == [first, Box(4, 0, 14, 10, 0.8)]
    assert overlap(first, other) == overlap(Box(1, 1, 1, 1), Box(1, 1, 1, 1)) == 0.0


@pytest.mark.parametrize(
    ("relation", "subject", "object_", "expected"),
    [
        ("left", Box(0, 0, 2, 2), Box(10, 1, 12, 3), True),
        ("right", Box(0, 0, 2, 2), Box(10, 1, 12, 3), False),
        ("left", Box(0, 0, 2, 2), Box(3, 10, 5, 12), False),  # more above than left
        ("above", Box(0, 0, 2, 2), Box(3, 10, 5, 12), True),
        ("below", Box(3, 10, 5, 12), Box(0, 0, 2, 2), True),
        ("below", Box(0, 0, 2, 2), Box(3, 10, 5, 12), False),
        ("left", Box(0, 0, 10, 10), Box(5, 0, 15, 10), False),  # a third of both is shared
        ("inside", Box(1, 1, 3, 3), Box(0, 0, 10, 10), True),
        ("inside", Box(0, 0, 10, 10), Box(1, 1, 3, 3), False),
        ("inside", Box(-1, 0, 3, 2), Box(0, 0, 10, 10), False),  # a quarter sticks out
    ],
)
def test_relations_of_boxes(relation: str, subject: Box, object_: Box, expected: bool) -> None:
    assert holds(relation, subject, object_) is expected
    mirrored = {"left": "right", "right": "left", "above": "below", "below": "above"}.get(relation)
    if mirrored is not None:
        assert holds(mirrored, object_, subject) is expected


def test_what_boxes_say_of_a_question() -> None:
    dogs, cat = [Box(0, 0, 2, 2), Box(20, 0, 22, 2)], [Box(10, 0, 12, 2)]
    boxes = {"dog": dogs, "cat": cat, "cow": []}

    def said(kind: Any, **expected: Any) -> float | None:
        return score(PictureQuestion("s", kind, expected), boxes)

    assert said("existence", object="dog") == 1.0
    assert said("existence", object="cow") == 0.0
    assert [said("count", object="dog", count=n) for n in (1, 2, 3)] == [0.0, 1.0, 0.0]
    assert said("count", object="cow", count=0) == 1.0
    assert said("relation", subject="dog", relation="to the left of", object="cat") == 1.0
    assert said("relation", subject="dog", relation="right of", object="cat") == 1.0  # the other dog
    assert said("relation", subject="dog", relation="left of", object="dog") == 1.0
    assert said("relation", subject="cat", relation="above", object="dog") == 0.0
    assert said("relation", subject="cow", relation="left", object="dog") == 0.0
    assert said("relation", subject="cat", relation="behind", object="dog") is None
    assert said("count", object="dog") is None
    assert said("statement") is None
    assert said("text", text="dog") is None
    assert objects_of(PictureQuestion("s", "relation", {"subject": "dog", "relation": "left", "object": "dog"})) == [
        "dog"
    ]
    assert relation_named("On  Top of") == "above"


def test_likeness_of_words_by_hand() -> None:
    assert [edits("kitten", "sitting"), edits("", "abc"), edits("abc", "abc")] == [3, 3, 0]
    assert likeness("OPEN", "open!") == 1.0
    assert likeness("hell", "hello") == pytest.approx(1 - 1 / 5)
    assert likeness("EXIT", "no parking\nExit") == 1.0
    assert likeness("EXIT", "") == 0.0


def test_p_yes_by_hand() -> None:
    assert p_yes(math.log(0.6), math.log(0.3)) == pytest.approx(2 / 3)
    assert p_yes(-1000.0, 0.0) == 0.0
    assert p_yes(0.0, -1000.0) == 1.0
    assert p_yes(None, -1.0) is None


# --- a server that makes ---------------------------------------------------------------------------------------------


def png(color: str, side: int = 8) -> str:
    content = io.BytesIO()
    Image.new("RGB", (side, side), color).save(content, "PNG")
    return base64.b64encode(content.getvalue()).decode()


def painted(body: dict[str, Any]) -> Response:
    return Response({"created": 1, "data": [{"b64_json": png(body["prompt"].split()[-1])}]})


COLORS = [Order(color, f"all in {color}", 2**40 + i, {}) for i, color in enumerate(("red", "green", "blue", "white"))]


def test_a_server_paints_in_order_and_is_told_what_to(tmp_path: Path) -> None:
    script = Script(painted)
    with serve(script) as url, PictureStore(tmp_path) as store:
        generator = generator_from(f"openai:tiny,url={url},size=64x64,max_retries=0")
        made = store.generate(generator, COLORS)
    assert generator.name == "openai:tiny,size=64x64"
    assert [p.open().getpixel((0, 0)) for p in made if isinstance(p, StoredPicture)] == [
        (255, 0, 0), (0, 128, 0), (0, 0, 255), (255, 255, 255)
    ]  # fmt: skip
    [body] = [body for body in script.bodies if body["prompt"] == "all in blue"]
    expected = {"model": "tiny", "prompt": "all in blue", "n": 1, "size": "64x64", "response_format": "b64_json"}
    assert body == {**expected, "seed": 2}  # 31 bits


def test_a_server_that_knows_neither_seed_nor_form_paints_all_the_same() -> None:
    def picky(body: dict[str, Any]) -> Response:
        for name in ("response_format", "seed"):
            if name in body:
                return error(400, f"Unknown parameter: '{name}'.", param=name)
        return painted(body)

    script = Script(picky)
    with serve(script) as url:
        generator = generator_from(f"openai:tiny,url={url},concurrency=1,max_retries=0")
        assert not any(isinstance(found, str) for found in generator.generate(COLORS))
    assert len(script.bodies) == 2 + len(COLORS)


@pytest.mark.parametrize(
    ("reply", "complaint"),
    [
        (error(400, "Your request was rejected by the safety system."), "safety system"),
        (Response({"data": []}), "no picture"),
        (Response({"data": [{"url": "http://elsewhere/p.png"}]}), "an address in place of the picture"),
        (Response({"data": [{"b64_json": "%%%"}]}), "no base64"),
        (Response({"data": [{"b64_json": base64.b64encode(b"GIF89a").decode()}]}), "unreadable image"),
        (Response({"data": [{"b64_json": png("red")[:60]}]}), "unreadable image"),
        (Response([1]), "no picture"),
        (error(503, "overloaded"), "overloaded"),
    ],
)
def test_what_is_no_picture_is_a_reason(reply: Response, complaint: str) -> None:
    def one(body: dict[str, Any]) -> Response:
        return reply if "green" in body["prompt"] else painted(body)

    with serve(one) as url:
        found = generator_from(f"openai:tiny,url={url},max_retries=0").generate(COLORS)
    assert [isinstance(outcome, str) for outcome in found] == [False, True, False, False]
    assert complaint in str(found[1])


def test_a_picture_out_of_a_reply_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hedge_tasks.llm.images.MOST_PIXELS", 63)
    with serve(painted) as url:
        [found] = generator_from(f"openai:tiny,url={url},max_retries=0").generate(COLORS[:1])
    assert "more than" in str(found)


def test_a_busy_server_is_asked_again_and_a_wrong_key_is_not() -> None:
    script = Script(error(503, "busy"), painted)
    with serve(script) as url:
        [found] = generator_from(f"openai:tiny,url={url},max_retries=1").generate(COLORS[:1])
    assert isinstance(found, Image.Image)
    with serve(painted, key="right") as url, pytest.raises(HedgeError, match="refuses the API key"):
        generator_from(f"openai:tiny,url={url},max_retries=0").generate(COLORS[:1])


# --- words for image generators and checkers --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "spec", "complaint"),
    [
        (generator_from, "diffuser:org/model", "did you mean 'diffusers'"),
        (generator_from, "diffusers", "'model' is missing"),
        (generator_from, "diffusers:m,step=4", "did you mean 'steps'"),
        (generator_from, "diffusers:m,steps=0", "steps: expected an integer"),
        (generator_from, "diffusers:m,dtype=int8", "dtype"),
        (generator_from, "diffusers:m,model=n", "the model is given twice"),
        (generator_from, "openai:m,url=http://localhost:1/v1,size=big", "WIDTHxHEIGHT"),
        (generator_from, ":m", "expected NAME"),
        (checker_from, "clap:m", "did you mean 'clip'"),
        (checker_from, "detector:m,threshold=2", "threshold: expected a number from 0 to 1"),
        (checker_from, "vqascore:adapter=hedge_hg", "did you mean 'hedge_hf'"),
        (checker_from, "vqascore:adapter=hedge_openai,api_key=abc", "environment"),
        (checker_from, "ocr:modle=m", "did you mean 'model'"),
        (checker_from, "ocr:engine=teseract", "did you mean 'tesseract'"),
        (checker_from, "ocr:language=deu", "engine=tesseract"),
    ],
)
def test_a_wrong_word_is_named(build: Any, spec: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        build(spec)
