"""Sampling plans and prompts: settings at the door, draws that depend on nothing but their document."""

from __future__ import annotations

import base64
import io
from pathlib import Path

import pytest
from at_border import at_border
from hostile import attempt
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from hedge_tasks.data.pictures import at_most
from hedge_tasks.errors import ConfigError
from hedge_tasks.perturb import Wording, perturb_image
from hedge_tasks.perturb.workers import PictureWorkers
from hedge_tasks.sampling.definition import Definition
from hedge_tasks.sampling.plan import SamplingPlan
from hedge_tasks.sampling.prompts import Prompt, load_prompt
from hedge_tasks.sampling.requests import DrawRequest, SampleRequest, clean_images, seen_urls


def test_default_is_the_papers_protocol() -> None:
    draws = SamplingPlan().draws("doc")
    assert [d.condition for d in draws] == ["baseline"] + ["clean"] * 10 + ["noisy"] * 10
    assert [d.temperature for d in draws] == [0.1] + [1.0] * 20
    assert {d.perturbation for d in draws[:11]} == {None}
    assert {d.perturbation for d in draws[11:]} == {"hedge"}


@settings(max_examples=20)
@given(st.integers(1, 12), st.integers(1, 12), st.text())
def test_more_draws_keep_the_first_ones(n: int, more: int, document: str) -> None:
    few, many = SamplingPlan(n=n).draws(document), SamplingPlan(n=n + more).draws(document)
    assert set(few) <= set(many)


def test_every_draw_has_its_own_seed() -> None:
    draws = [d for document in ("a", "b") for seed in (0, 1) for d in SamplingPlan(seed=seed).draws(document)]
    assert len({d.seed for d in draws}) == len(draws)
    assert all(0 <= d.seed < 2**63 for d in draws)


BORDERS: list[tuple[str, float, str]] = [
    *((name, 0, "100") for name in ("n", "n_noisy", "seed", "image_check", "alternatives")),
    *((name, 1, "100") for name in ("max_new_tokens", "top_k", "max_image_side", "perturb_at")),
    *((name, 0.0, "100") for name in ("temperature", "baseline_temperature", "strength", "max_failed", "min_p")),
    *(("top_p", 0.0, "110"), ("top_p", 1.0, "001"), ("min_p", 1.0, "011"), ("alternatives", 20, "001")),
]


@pytest.mark.parametrize(("name", "border", "refused"), BORDERS)
def test_settings_are_refused_beyond_their_borders(name: str, border: float, refused: str) -> None:
    at_border(lambda value: attempt(lambda: SamplingPlan(**{name: value}))[1] != "", border, refused)


def test_as_many_documents_may_fail_as_a_number_or_a_share_says() -> None:
    allowed = [SamplingPlan(max_failed=most).allowed_failures(7) for most in (0, 0.5, 0.99, 1, 3)]
    assert allowed == [0, 3, 6, 1, 3]
    with pytest.raises(ConfigError, match="max_failed: expected an integer, or a share"):
        SamplingPlan(max_failed=1.5)


def test_pictures_are_made_smaller_before_anything_else_and_answers_know_it() -> None:
    picture = Image.new("RGB", (300, 200), (10, 200, 30))
    small, plain = (SamplingPlan(n=1, n_noisy=1, max_image_side=side) for side in (150, None))
    for plan, size in ((small, (150, 100)), (plain, (300, 200))):
        request = SampleRequest("1", "k", "q", Prompt("p", "{question}"), plan, lambda _: [picture])
        assert [image.size for image in clean_images(request, {})] == [size]
    assert at_most(picture, 300) is picture
    assert "max_image_side" not in plain.settings()
    prompt = Prompt("p", "{question}")
    definitions = [Definition.of("m", "t", prompt, plan) for plan in (small, plain)]
    [draw, *_] = plain.draws("k")
    keys = {definition.key("k", "q", draw) for definition in definitions}
    assert len(keys) == 2
    assert Definition.read(definitions[0].model_dump()).key("k", "q", draw) in keys


def test_pictures_perturbed_at_another_size_are_other_answers_and_clean_ones_stay() -> None:
    picture = Image.effect_noise((300, 200), 60).convert("RGB")
    plans = {side: SamplingPlan(n=1, n_noisy=1, perturb_at=side) for side in (None, 150, 400)}
    prompt = Prompt("p", "{question}")
    seen, keys = {}, {}
    for side, plan in plans.items():
        request = SampleRequest("1", "k", "q", prompt, plan, lambda _: [picture])
        draws = [DrawRequest(request, draw, dict, ("t", "s", 0)) for draw in plan.draws("k")]
        seen[side] = [[image.tobytes() for image in draw.images()] for draw in draws]
        with PictureWorkers() as workers:
            urls = [url for draw in draws for url in seen_urls(draw, [picture], workers)]
        told = [Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))).tobytes() for url in urls]
        assert told == [image for images in seen[side] for image in images]
        definition = Definition.read(Definition.of("m", "t", prompt, plan).model_dump())
        keys[side] = [definition.key("k", "q", draw.draw) for draw in draws]
        assert len({draw.prompt_key for draw in draws}) == 2
    assert seen[None][:2] == seen[150][:2] == seen[400][:2] == [[picture.tobytes()]] * 2
    assert seen[150][2] == [perturb_image(at_most(picture, 150), seed=plans[150].draws("k")[2].seed).tobytes()]
    assert seen[400] == seen[None]
    assert seen[150] != seen[None]
    assert keys[None][:2] == keys[150][:2]
    assert len({of[2] for of in keys.values()}) == 3
    assert "perturb_at" not in plans[None].settings()


# --- prompts ----------------------------------------------------------------------------------------------------------

words = st.lists(st.sampled_from(["Look:", "{question}", "{context}", "\n", "now"]), max_size=4).map(" ".join)


@given(words, words, st.booleans(), st.none() | st.just("Be brief."))
def test_a_prompt_is_read_alike_by_adapters_of_both_kinds(
    before: str, after: str, mark: bool, system: str | None
) -> None:
    prompt = Prompt("p", f"{before}{'<image>' * mark} {after}", system)
    wording = Wording("is {context} it?", "so")  # a mark in a question is a text
    turns = prompt.messages(wording, ["first", "second"])
    assert [turn["role"] for turn in turns] == ["system", "user"][system is None :]
    parts = [part for turn in turns for part in turn["content"]]
    assert " ".join(part["text"] for part in parts if part["type"] == "text").split() == prompt.text(wording).split()
    places = [i for i, part in enumerate(turns[-1]["content"]) if part["type"] == "image"]
    assert places == [begin := int(mark and bool(before.strip())), begin + 1]
    assert [turns[-1]["content"][i]["url"] for i in places] == ["first", "second"]


def test_a_prompt_that_is_not_there_is_named_with_the_nearest(tmp_path: Path) -> None:
    for reference, nearest in (
        ("plane/question", "plain"),
        (f"{tmp_path}/x.json/a", ""),
        ("plain/questin", "question"),
    ):
        with pytest.raises(ConfigError, match=f"unknown prompt.*{nearest}"):
            load_prompt(reference)
