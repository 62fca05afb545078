"""SHALE's induction as perturbations: what each scenario does to image and wording, seeds, and settings."""

from __future__ import annotations

import hashlib
import io
import random
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from hedge_tasks.perturb import Wording, build_noise, induction_words
from hedge_tasks.perturb.induction import PREFIXES, PRESETS
from hedge_tasks.perturb.induction_image import corrupt
from hedge_tasks.suites.shale.items import options_of

TINY = "package://hedge_tasks.models.tiny/vlm"
ASKED = Wording("Which one? (A) red (B) a boat (C) left", distractor="a boat", answer="(A) red")


def picture(width: int = 72, height: int = 56) -> Image.Image:
    values = np.random.default_rng(0).integers(40, 215, (height // 8 + 1, width // 8 + 1, 3), dtype=np.uint8)
    return Image.fromarray(values).resize((width, height), Image.Resampling.BICUBIC)


def noise_of(preset: str, **changes: Any) -> Any:
    if "adv" in preset:
        changes = {"encoder": TINY, "steps": 1, **changes}
    return build_noise({"kind": "induction", "name": preset, **changes})


def fake_encoder(model: str, revision: str | None, device: str) -> Any:
    """Vectors that depend on the text alone, so that nearness can be computed beside it."""
    return lambda texts: [fake_vector(text) for text in texts]


def fake_vector(text: str) -> np.ndarray:
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
    return np.random.default_rng(seed).normal(size=6)


@pytest.fixture
def _fake_embeddings(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("hedge_tasks.llm.encoders.load_encoder", fake_encoder)
    induction_words._embed_candidates.cache_clear()
    yield
    induction_words._embed_candidates.cache_clear()


# --- all scenarios ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", sorted(PRESETS))
@pytest.mark.usefixtures("_fake_embeddings")
def test_a_seed_decides_and_the_size_is_kept(preset: str) -> None:
    noise, clean = noise_of(preset), picture()
    before = clean.tobytes()

    def made(seed: int) -> tuple[bytes, str]:
        [image] = noise.perturb_images([clean], ASKED, seed=seed)
        assert (image.size, image.mode) == (clean.size, "RGB")
        return image.tobytes(), noise.perturb_wording(ASKED, seed=seed).question

    assert made(5) == made(5)
    several = [made(seed) for seed in (5, 6, 7)]
    assert len(set(several)) > 1
    assert all((image != before) == (noise.image is not None) for image, _ in several)
    assert all((question != ASKED.question) == (noise.wording is not None) for _, question in several)
    assert clean.tobytes() == before  # the clean draws see the same picture
    wording = noise.perturb_wording(ASKED, seed=1)
    assert (wording.answer, wording.distractor) == (ASKED.answer, ASKED.distractor)


@given(st.integers(1, 90), st.integers(1, 90), st.integers(0, 2**63 - 1), st.sampled_from(["crp", "txt", "sty"]))
@settings(max_examples=40)
def test_pictures_of_any_size_keep_it(width: int, height: int, seed: int, kind: str) -> None:
    [image] = build_noise(f"shale_{kind}").perturb_images([picture(width, height)], ASKED, seed=seed)
    assert image.size == (width, height)


# --- CRP --------------------------------------------------------------------------------------------------------------


class Chosen(random.Random):
    """Chooses what a test wants to see."""

    def __init__(self, kind: str, seed: int = 0) -> None:
        super().__init__(seed)
        self.kind = kind

    def choice(self, options: Any) -> Any:
        assert self.kind in options
        return self.kind


def corrupted(kind: str, image: Image.Image, strength: float = 1.0, **ranges: tuple[float, float]) -> np.ndarray:
    given = {"salt_pepper": (0.1, 0.1), "blur": (3.0, 3.0), "jpeg": (20.0, 20.0), **ranges}
    return np.asarray(corrupt(image, Chosen(kind), strength=strength, **given))


def test_salt_and_pepper_hits_the_given_share_of_pixels() -> None:
    grey = Image.new("RGB", (200, 200), (100, 120, 140))
    for strength in (0.5, 1.0, 20.0):
        after = corrupted("salt_pepper", grey, strength)
        hit = (after != np.asarray(grey)).any(axis=2)
        n, p = hit.size, min(1.0, 0.1 * strength)
        assert abs(hit.sum() - n * p) <= 5 * (n * p * (1 - p)) ** 0.5
        assert set(np.unique(after[hit])) == {0, 255}
        assert (after[hit].std(axis=1) == 0).all()  # whole pixels, black or white
        assert abs((after[hit][:, 0] == 255).mean() - 0.5) < 0.05


def test_blur_spreads_a_point_by_its_standard_deviation() -> None:
    """A point becomes a Gaussian; its width is measured by the second moment, for two sizes of picture."""
    for side, strength in ((256, 1.0), (256, 2.0), (512, 1.0)):
        point = Image.new("RGB", (side, side))
        point.paste((255, 255, 255), (side // 2 - 2, side // 2 - 2, side // 2 + 2, side // 2 + 2))
        after = corrupted("blur", point, strength).astype(float)[..., 0]
        place = np.arange(side)
        weights = after.sum(axis=0) / after.sum()
        center = (weights * place).sum()
        variance = (weights * (place - center) ** 2).sum()
        expected = (3.0 * strength * side / 512) ** 2 + (4**2 - 1) / 12  # that of the blur and of the point itself
        assert variance == pytest.approx(expected, rel=0.25)


def test_jpeg_has_the_given_quality() -> None:
    for strength, quality in ((1.0, 20), (0.5, 60), (2.0, 1), (0.0, 95)):
        buffer = io.BytesIO()
        picture().save(buffer, "JPEG", quality=quality)
        expected = np.asarray(Image.open(buffer).convert("RGB"))
        assert np.array_equal(corrupted("jpeg", picture(), strength), expected)


# --- PFX --------------------------------------------------------------------------------------------------------------


def test_the_prefix_is_one_of_the_templates_before_the_whole_question() -> None:
    noise = build_noise("shale_pfx")
    questions = {noise.perturb_wording(ASKED, seed=seed).question for seed in range(60)}
    assert questions == {f"{template.replace('{distractor}', 'a boat')} {ASKED.question}" for template in PREFIXES}
    whole = Wording("Which?", distractor="There seems to be a squirrel in the forest.")
    assert noise.perturb_wording(whole, seed=3).question == "There seems to be a squirrel in the forest. Which?"
    odd = Wording("Which?", distractor="{distractor} {question}")
    assert noise.perturb_wording(odd, seed=3).question.count("{distractor}") == 1


# --- SYN --------------------------------------------------------------------------------------------------------------


def by_hand(target: str, wrong: list[str], candidates: list[str], too_near: float, size: int) -> list[set[str]]:
    """What each wrong option may become: itself alone, or candidates among the nearest `size` that are nearer still."""
    cosine = {text: _cosine(text, target) for text in [*wrong, *candidates]}
    others = [c for c in candidates if cosine[c] < too_near and c.lower() not in {w.lower() for w in [target, *wrong]}]
    head = sorted({*others, *wrong}, key=lambda text: -cosine[text])[:size]
    return [{c for c in head if c in others and cosine[c] > cosine[w]} or {w} for w in wrong]


@pytest.mark.usefixtures("_fake_embeddings")
@pytest.mark.parametrize("draw", range(8))
def test_wrong_options_give_way_to_nearer_ones_or_stay(draw: int) -> None:
    candidates = [f"word {draw} {i}" for i in range(12)]
    wrong = [f"own {draw} {i}" for i in range(3)]
    given = [*candidates, wrong[0].upper(), "Target"]
    allowed = by_hand("target", wrong, given, 0.8, 6)
    seen: list[set[str]] = [set(), set(), set()]
    for seed in range(60):
        found = induction_words.nearer_words("target", wrong, given, Random(seed), nearest=2.0, too_near=0.8)
        assert len(set(found)) == 3
        for text, may, mine in zip(found, allowed, seen, strict=True):
            # Where the others have taken all that are nearer, an option stays.
            assert text in may or text in wrong
            mine.add(text)
    hardest = max(range(3), key=lambda i: _cosine(wrong[i]))
    assert seen[hardest] == allowed[hardest]  # it chooses first, and everything eligible is drawn


def _cosine(text: str, target: str = "target") -> float:
    one, other = fake_vector(text), fake_vector(target)
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


@pytest.mark.usefixtures("_fake_embeddings")
def test_only_the_wrong_options_are_replaced() -> None:
    candidates = [f"word {i}" for i in range(9)]
    noise = noise_of("shale_syn", candidates=[*candidates, "Red", "left"], too_near=1.0)
    changed = 0
    for seed in range(20):
        options = options_of(noise.perturb_wording(ASKED, seed=seed).question)
        assert options["A"] == "red"
        assert options["B"] in (*candidates, "a boat")
        assert options["C"] in (*candidates, "left")
        assert options["B"] != options["C"]
        changed += options["B"] != "a boat" or options["C"] != "left"
    assert changed == 20
    by_text = Wording(ASKED.question, answer="RED")
    assert noise.perturb_wording(by_text, seed=1).question == noise.perturb_wording(ASKED, seed=1).question


# --- ADV --------------------------------------------------------------------------------------------------------------


def similarity(image: Image.Image, encoder: str = TINY) -> float:
    """Of the encoder's view of a picture to that of the clean one, by the attack's own embedding."""
    import torch

    from hedge_tasks.perturb.induction_attack import _embedder

    def embed(of: Image.Image) -> Any:
        return _embedder(encoder)(torch.from_numpy(np.array(of, np.float32) / 255).permute(2, 0, 1)[None])

    with torch.no_grad():
        return float(torch.nn.functional.cosine_similarity(embed(image), embed(picture()), dim=-1))


def test_the_attack_stays_in_its_ball_and_beats_noise_of_the_same_size() -> None:
    clean = np.asarray(picture()).astype(int)
    [attacked] = noise_of("shale_adv", steps=6).perturb_images([picture()], ASKED, seed=3)
    assert np.abs(np.asarray(attacked) - clean).max() <= 8
    signs = np.random.default_rng(0).choice([-8, 8], clean.shape)
    random_noise = Image.fromarray(np.clip(clean + signs, 0, 255).astype(np.uint8))
    assert similarity(picture()) == pytest.approx(1, abs=1e-5)
    assert similarity(attacked) < similarity(random_noise) - 0.02
    [weak] = noise_of("shale_adv", steps=6, strength=0.0).perturb_images([picture()], ASKED, seed=3)
    assert weak.tobytes() == picture().tobytes()
