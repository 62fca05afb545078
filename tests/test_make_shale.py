"""SHALE's construction on scripted models, against counts made by hand."""

from __future__ import annotations

import base64
import io
import json
import math
import multiprocessing
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from datasets import Image as Undecoded
from evaluation import evaluate
from openai_server import Response, Script, images_of, serve
from PIL import Image
from shale_process import Plain, PlainChecker, make, making, number_of, play

from hedge_tasks.cli import main
from hedge_tasks.errors import DataError
from hedge_tasks.making.pictures.base import Order
from hedge_tasks.making.pictures.store import pixel_digest
from hedge_tasks.making.shale.pictures import PictureFilter
from hedge_tasks.making.shale.report import distributions, warnings_of, write
from hedge_tasks.making.shale.scenes import prompted_scenes
from hedge_tasks.suites.shale.items import CLEAN


def result(folder: Path) -> dict[str, bytes]:
    """What a making leaves behind, besides what it keeps for going on."""
    kept = {"ledger", "pictures"}
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and not kept & set(path.parts)]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.slow
def test_every_stage_has_the_counts_of_a_calculation_by_hand(tmp_path: Path) -> None:
    with serve(play) as url:
        made = make(url, tmp_path)
    assert made.steps == {
        "record proposed": 8,
        "record dropped: fewer than three counterfactuals": 1,
        "record dropped: a value that no question can quote": 1,
        "clean picture accepted": 6,  # seven kites; the first is in doubt
        "clean picture review": 1,
        "sty picture accepted": 6,
        "txt picture accepted": 5,
        "txt picture review": 1,  # the third kite, once a text is on it
        "answered blindly: ynq": 1,
        "answered blindly: mcq": 1,
        "answered blindly: ffq": 1,
        "truth supported by verifier": 8,
    }
    # Six scenes. Who says yes is asked about the right and the wrong answer, one choice and the open question; who
    # knows the fourth kite is asked all seven.
    assert made.account.of("requests") == {
        "propose": 1,
        "verify": 7 * 4,  # the eighth record is the seventh again
        "control": 7,
        "blind": 5 * (2 + 1 + 1) + 7,
    }
    assert made.short == {"color": 7}
    # Of the fourth kite only the caption is left, and of the third nothing with a text on it.
    whole, left = 5 * 4 + 1, 5 * 2
    counts = {CLEAN: whole, "sty": whole, "txt": whole - 4, "pfx": left, "sty_p": left, "txt_p": left - 2}
    # Each prefix that lies has a twin that tells the truth; PFX one that says nothing as well.
    counts |= {"pfx_true": left, "pfx_neutral": left, "sty_p_true": left, "txt_p_true": left - 2}
    assert Counter(item.scenario for item in made.items) == counts
    assert made.report()["rejected"] == {"clean picture: review": 1}
    assert {item.task for item in made.items if "kite 4" in item.description} == {"ic"}
    assert distributions(made)["Pictures by verdict"][1] == [
        ["clean", "6", "1", "0"],
        ["sty", "6", "0", "0"],
        ["txt", "5", "1", "0"],
        ["all", "17", "2", "0"],
    ]
    assert distributions(made)["Items by aspect (clean)"][1][-1] == ["all", "5", "5", "5", "6"]
    assert distributions(made)["Right answers (clean)"][1][0][:2] in (["2", "3"], ["3", "2"])
    assert warnings_of(made)[1].startswith("2 pictures wait for people")


@pytest.mark.slow
def test_a_style_is_in_the_prompt_where_the_generator_takes_one(tmp_path: Path) -> None:
    generator = Plain()
    with serve(play) as url:
        make(url, tmp_path, generator=generator, scenarios=["sty"])
    clean, styled = generator.asked[:7], generator.asked[7:]
    assert len(styled) == 6
    for order in styled:
        prompt, _, style = order.prompt.partition(", in the style of a ")
        assert style in ("color sketch", "watercolor", "poster", "mosaic", "color engraving")
        assert [(first.prompt, first.seed) for first in clean if first.prompt == prompt] == [(prompt, order.seed)]


@pytest.mark.slow
def test_what_is_answered_blindly_can_be_marked_instead(tmp_path: Path) -> None:
    with serve(play) as url:
        make(url, tmp_path, blind_items="mark")
    rows = Dataset.from_parquet(str(tmp_path / "BeiiiY__SHALE" / "discriminative-mcq.parquet"), keep_in_memory=True)
    marked = {number_of(row["question"]): row["answered_blindly"] for row in rows if row["scenario"] == CLEAN}
    assert marked == {**dict.fromkeys((1, 2, 3, 5, 6), ""), 4: "reader"}
    first = rows[0]
    assert (first["source"], first["licence"], first["generator"], first["picture_score"]) == (
        *("writer", "unknown", "plain"),
        "1.0000",
    )


@pytest.mark.slow
def test_people_decide_what_is_in_doubt(tmp_path: Path) -> None:
    """The first kite is accepted and the third's text rejected; of accepted pictures they are not heard."""
    with serve(play) as url:
        made = make(url, tmp_path)
        scenes = {number_of(one.scene.prompt): one.scene.id for one in made.scenes}
        review = (tmp_path / "review.html").read_text()
        labels = {f"{scenes[0]}-clean": 0, f"{scenes[2]}-txt": 1, f"{scenes[5]}-clean": 1}
        assert [f'data-id="{name}"' in review for name in labels] == [True, True, False]
        again = make(url, tmp_path, picture_filter=PictureFilter(labels=labels))
    assert again.steps["clean picture accepted"] == 7
    assert again.steps["txt picture rejected"] == 1
    assert again.account.of("requests") == {"blind": 4}  # of the kite that came back


@pytest.mark.slow
def test_the_variance_between_checkers_counts(tmp_path: Path) -> None:
    with serve(play) as url:  # 1.0 and 0.7: the mean is 0.85, the variance 0.0225
        assert make(url, tmp_path, picture_filter=PictureFilter(beta=0.0226)).steps["clean picture accepted"] == 6
        assert make(url, tmp_path, picture_filter=PictureFilter(beta=0.0224)).steps["clean picture accepted"] == 5


class NoiseGenerator:
    """What an untrained model makes."""

    name = "noise"

    def generate(self, orders: Sequence[Order]) -> list[Image.Image | str]:
        return [
            Image.effect_noise((32, 32), 90).convert("RGB") if i % 2 else "out of order" for i, _ in enumerate(orders)
        ]


def test_pictures_that_show_nothing_become_no_questions(tmp_path: Path) -> None:
    blind = PlainChecker("one", dict.fromkeys(range(9), 0.1))
    with serve(play) as url:
        settings = making(url, generator=NoiseGenerator(), checkers=[blind], batch=8)
        made = settings.run(tmp_path)
        with pytest.raises(DataError, match=r"no scene is accepted .*review\.html"):
            write(tmp_path, settings, made)
    assert not made.items
    assert made.steps["clean picture review"] + made.steps["clean picture rejected"] == 7
    assert not list(tmp_path.glob("BeiiiY__SHALE/*"))
    assert (tmp_path / "review.html").read_text().count("<article") == made.steps["clean picture review"]


@pytest.mark.slow
def test_a_request_that_fails_leaves_the_set_partial(tmp_path: Path) -> None:
    def reply(body: dict[str, Any]) -> Any:
        asked = json.dumps(body)
        fails = "kite 5" in asked and "candidate_answer" not in asked
        return Response({"error": {"message": "overloaded"}}, 503) if fails else play(body)

    with serve(reply) as url:
        made = make(url, tmp_path)
    assert len(made.unfinished) == 1
    assert "overloaded" in next(iter(made.unfinished.values()))
    assert not any("kite 5" in item.description for item in made.items)
    assert "**Partial: 1 of" in (tmp_path / "README.md").read_text()
    with serve(play) as url:
        assert not make(url, tmp_path).unfinished


@pytest.mark.slow
def test_killed_20_times_it_ends_with_the_same_bytes(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    script = Script(lambda body: time.sleep(0.03) or play(body))
    folder = tmp_path / "killed"

    def progress() -> int:
        return len(script.bodies) + len(list((folder / "pictures").rglob("*.png")))

    with serve(script) as url:
        seen = []
        for _ in range(20):  # each time once something more was asked or painted
            before = progress()
            process = context.Process(target=make, args=(url, folder, 0.06))
            process.start()
            while process.is_alive() and progress() == before:
                time.sleep(0.003)
            process.kill()
            process.join()
            assert process.exitcode == -9, "it was done before it was killed so often"
            seen.append(progress())
        make(url, folder)
        assert len(set(seen)) == 20
        assert progress() > seen[-1]
        whole = make(url, tmp_path / "whole")
    assert whole.items
    assert result(tmp_path / "killed") == result(tmp_path / "whole")
    assert len(result(tmp_path / "whole")) == 4 + 4


@pytest.mark.slow
def test_workers_make_their_shares_and_the_last_run_collects(tmp_path: Path) -> None:
    """Two workers over a pool of scenes: the last run makes and asks nothing, and the set is that of one."""
    scenes = prompted_scenes("color", 6)
    checker = _Everything()
    options = {"writer": None, "checkers": [checker], "per_aspect": 6}
    script = Script(lambda body: json.dumps({"answer": "No"}))
    with serve(script) as url:
        alone = make(url, tmp_path / "alone", **options)
        for worker in ((1, 2), (2, 2)):
            share = making(url, **options).run(tmp_path / "shared", worker=worker)
            assert [one.scene for one in share.scenes] == scenes[worker[0] - 1 :: 2]
        generator, before = Plain(), len(script.bodies)
        together = make(url, tmp_path / "shared", **{**options, "generator": generator})
        assert len(script.bodies) == before
    assert not generator.asked
    assert together.items == alone.items
    assert result(tmp_path / "shared") == result(tmp_path / "alone")


class _Everything:
    name = "everything"

    def check(self, pictures: Sequence[Image.Image], questions: Sequence[Any]) -> list[float | None]:
        return [1.0 for _ in pictures]


# --- the command ------------------------------------------------------------------------------------------------------


def test_a_dry_run_makes_nothing_and_is_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    models = [
        "--writer",
        "model=w,url=http://localhost:1/v1",
        "--verifier",
        "v",
        "--blind",
        "b",
        "--blind",
        "c",
        "--checker",
        "clip:x",
    ]
    wanted = [
        "--per-aspect",
        "25",
        "--aspect",
        "color",
        "--aspect",
        "count",
        "--scenario",
        "sty",
        "--scenario",
        "txt_p",
    ]
    command = ["make", "shale", "--out", str(tmp_path / "out"), "--generator", "diffusers:x", *models, *wanted]
    assert main([*command, "--dry-run", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    # Two aspects of 25 take three requests of ten records each. A model is asked seven times a scene at most.
    assert said["requests"] == {
        "propose": [6, 6],
        "verify": [0, 6 * 10 * 6],
        "control": [0, 6 * 10],
        "blind": [0, 2 * 50 * 7],
    }
    assert said["pictures"] == {"generated": [50, 100], "induced": [0, 50]}  # STY by the generator, TXT by us
    assert said["items"] == {"clean": [0, 200], "sty": [0, 200], "txt_p": [0, 100], "txt_p_true": [0, 100]}
    assert said["most_items"] == 600
    assert not (tmp_path / "out").exists()


def test_the_estimate_is_what_is_made_where_everything_is_accepted(tmp_path: Path) -> None:
    with serve(lambda body: json.dumps({"answer": "No"})) as url:
        settings = making(url, writer=None, checkers=[_Everything()], per_aspect=5)
        made = settings.run(tmp_path)
        most = {kind: {name: up for name, (_, up) in of.items()} for kind, of in settings.estimate().items()}
    assert Counter(item.scenario for item in made.items) == most["items"]
    assert len(list((tmp_path / "pictures" / "painted").rglob("*.png"))) == sum(most["pictures"].values())
    scores = [line for file in (tmp_path / "pictures").glob("scores-*.jsonl") for line in file.read_text().splitlines()]
    assert len(scores) == most["scores"]["everything"]


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        (["--worker", "4/3"], "--worker: expected K/N"),
        (["--generator", "drawn:side=3"], "did you mean 'size'"),
        (["--generator", "difusers:x"], "did you mean 'diffusers'"),
        (["--generator", "diffusers:x"], "need a checker"),
        (["--writer", "model=w,url=http://localhost:1/v1"], "need an image generator that takes prompts"),
        (
            ["--writer", "model=w,url=http://localhost:1/v1", "--generator", "diffusers:x", "--checker", "clip:x"],
            "a writer needs a verifier",
        ),
        (["--scenario", "crpp"], "did you mean 'crp"),
        (["--aspect", "colour"], "did you mean 'color'"),
        (["--per-aspect", "0"], "at least 1"),
        (["--alpha", "2"], "alpha"),
        (["--knowledge", "none.nt"], "cannot read none.nt"),
        (["--labels", "none.csv"], "none.csv"),
        (["--blind-items", "keep"], "way with blind items"),
    ],
)
def test_a_wrong_option_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], complaint: str
) -> None:
    assert main(["make", "shale", "--out", str(tmp_path), "--aspect", "color", *more]) == 2
    assert complaint in capsys.readouterr().err


@pytest.mark.slow
def test_pictures_of_the_set_hold_their_pixels_and_no_words(tmp_path: Path) -> None:
    with serve(play) as url:
        made = make(url, tmp_path, scenarios=["txt"])
    rows = Dataset.from_parquet(str(tmp_path / "BeiiiY__SHALE" / "generative-ic.parquet"), keep_in_memory=True)
    for row in rows.cast_column("image", Undecoded(decode=False)):
        place = next(i for i, one in enumerate(made.scenes) if one.scene.prompt == row["description"])
        kept = made.scenes[place].pictures[row["scenario"]]
        assert kept.path is not None
        assert b"kite" in kept.path.read_bytes()
        content = row["image"]["bytes"]
        assert b"kite" not in content
        with Image.open(io.BytesIO(content)) as image:
            assert not image.info
            assert pixel_digest(image.convert("RGB")) == kept.digest


def everybody(body: dict[str, Any]) -> Any:
    """One server in all parts: it makes, writes, checks pictures, answers blindly, and is evaluated in the end."""
    if "prompt" in body:
        content = io.BytesIO()
        Plain().generate([Order("", body["prompt"], 0, {})])[0].save(content, "PNG")
        return Response({"created": 1, "data": [{"b64_json": base64.b64encode(content.getvalue()).decode()}]})
    if "prompt_logprobs" in body:
        return Response({"choices": [{"message": {"content": "x"}, "finish_reason": "length"}]})
    said = "Yes" if images_of(body) else play(body)
    tokens = [{"token": said, "logprob": math.log(0.95), "bytes": list(said.encode())}]
    choice = {"message": {"content": said}, "finish_reason": "stop", "logprobs": {"content": tokens}}
    return Response({"choices": [choice]})


@pytest.mark.slow
@pytest.mark.framework
def test_the_command_makes_a_set_that_hedge_shale_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "data"
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with serve(everybody) as url:
        models = [
            "--writer",
            f"model=writer,url={url}",
            "--verifier",
            f"model=v,url={url}",
            "--blind",
            f"model=reader,url={url}",
        ]
        models += [
            "--generator",
            f"openai:tiny,url={url}",
            "--checker",
            f"vqascore:adapter=hedge_openai,by=answer,model=tiny,base_url={url}",
        ]
        wanted = [
            "--per-aspect",
            "7",
            "--aspect",
            "color",
            "--scenario",
            "sty",
            "--scenario",
            "txt",
            "--scenario",
            "txt_p",
            "--json",
        ]
        assert main(["make", "shale", "--out", str(out), *models, *wanted]) == 0
        report = json.loads(capsys.readouterr().out)
        monkeypatch.setenv("HEDGE_DATA_DIR", str(out))
        run = evaluate(
            tmp_path / "run",
            *("--model", "hedge_openai", "--model_args", f"model=tiny,base_url={url}"),
            *("--tasks", "hedge_shale_closed_single"),
        )
    # Seven kites, all pictures at 0.95; of the fourth kite the caption is left.
    assert (report["records"], report["accepted"]) == (7, 7)
    closed, whole = 6 * 2, 6 * 4 + 1
    assert report["items"] == 3 * whole + 2 * closed
    asked = {name: stage["requests"] for name, stage in report["asked"]["stages"].items()}
    assert asked == {"propose": 1, "verify": 28, "control": 7, "blind": 6 * 4 + 7}
    card = (out / "README.md").read_text()
    assert f"| all | {3 * 6 + 12} | {3 * 6 + 12} | {3 * 6} | {3 * 7} |" in card
    assert url not in card + (out / "report.json").read_text()
    # It says yes to everything: right where that is right, and no option is ever read.
    assert len(run.samples("hedge_shale_closed_single")) == 5 * closed
    cells = run.values("hedge_shale_closed_single")
    assert (cells["accuracy_ynq,exact"], cells["accuracy_mcq,exact"]) == (0.5, 0.0)
    assert cells["resistance_rate,exact"] == 1.0
